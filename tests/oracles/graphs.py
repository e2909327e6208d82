"""Plain minimax for the searches of games of perfect information, and their positions and evaluations."""

import functools

import numpy as np
import pyspiel


class Oracle:
    """Plain (expecti)minimax by the definition, remembered by (position, player to move, depth)."""

    def __init__(self, evaluator, key):
        self.evaluator, self.key, self.known = evaluator, key, {}

    def value(self, state, depth):
        """Player 0's utility, `depth` moves of the players ahead."""
        if state.is_terminal():
            return state.returns()[0]
        if depth == 0:
            return self.evaluator(state)
        at = (self.key(state), state.current_player(), depth)
        if at not in self.known:
            if state.is_chance_node():
                total = 0.0  # Python 3.12's sum() rounds otherwise
                for outcome, probability in state.chance_outcomes():
                    total += probability * self.value(state.child(outcome), depth)
                self.known[at] = total
            else:
                best = max if state.current_player() == 0 else min
                self.known[at] = best(self.value(state.child(a), depth - 1) for a in state.legal_actions())
        return self.known[at]

    def scores(self, state, depth):
        """Return the mover's utility of every move."""
        total = state.get_game().utility_sum()
        own = {a: self.value(state.child(a), depth - 1) for a in state.legal_actions()}
        return own if state.current_player() == 0 else {a: total - value for a, value in own.items()}


def by_position(seed, ties=False):
    """Return an evaluation of positions, as states show them, from -1 to 2; ties: of whole numbers."""

    @functools.cache
    def value(position):
        drawn = np.random.default_rng([seed, *position.encode()]).uniform(-1.0, 2.0)
        return float(round(drawn) if ties else drawn)

    return lambda state: value(str(state))


def after(game_string, moves):
    """Return a state of a game that OpenSpiel loads."""
    return follow(pyspiel.load_game(game_string).new_initial_state(), moves)


def first_decision(game):
    """Return the state at which a player moves first, after chance's first outcomes."""
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    return state


def follow(state, line):
    """Return the state after a line of legal moves; from a clone."""
    state = state.clone()
    for action in line:
        assert action in state.legal_actions()
        state.apply_action(action)
    return state


def without_time(result):
    """Return all that a seed or a budget of nodes decides."""
    return {name: value for name, value in vars(result).items() if name != "seconds"}
