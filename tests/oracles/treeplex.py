"""Reduced pure strategies of a game and their utilities, by walking OpenSpiel's states.

Nothing here knows of sequences, of pairs of them, or of plans that mix.
"""

import collections
import itertools
import math

import numpy as np
import scipy.optimize
import scipy.sparse


def key_of(state):
    """Return the information state of who moves: its string, or the history where there is none."""
    named = state.get_game().get_type().provides_information_state_string
    return state.information_state_string() if named else state.history_str()


class OwnTree:
    """A player's information states: legal actions, and the next ones after each action."""

    def __init__(self, game, player):
        self.actions, self.next, self.first = {}, collections.defaultdict(dict), {}

        def walk(state, last):
            if state.is_terminal():
                return
            own = state.current_player() == player
            if own:
                key = key_of(state)
                self.actions[key] = state.legal_actions()
                (self.first if last is None else self.next[last])[key] = None
            for action in state.legal_actions():
                walk(state.child(action), (key, action) if own else last)

        walk(game.new_initial_state(), None)

    def count(self, keys):
        """Return the number of `plans`, without making them."""
        below = (sum(self.count(self.next[key, a]) for a in self.actions[key]) for key in keys)
        return math.prod(below)

    def plans(self, keys=None):
        """Return reduced plans, {information state: action}: all, or from some information states on."""
        parts = (self.plans_from(key, self.actions[key]) for key in (self.first if keys is None else keys))
        joined = [{}]
        for part in parts:
            joined = [one | other for one in joined for other in part]
        return joined

    def plans_from(self, key, actions):
        """Return the reduced plans from an information state on that begin with one of some actions."""
        return [{key: action} | below for action in actions for below in self.plans(self.next[key, action])]


def profiles_of(game):
    """Return all pairs of reduced pure strategies."""
    return list(itertools.product(*(OwnTree(game, player).plans() for player in (0, 1))))


def count_profiles(game):
    """Return their number."""
    trees = [OwnTree(game, player) for player in (0, 1)]
    return math.prod(tree.count(tree.first) for tree in trees)


def visited(state, plans):
    """[(probability, state)] of what two plans come to from a state, chance's nodes left out."""
    if state.is_chance_node():
        drawn = ((p, visited(state.child(action), plans)) for action, p in state.chance_outcomes())
        return [(p * q, below) for p, found in drawn for q, below in found]
    if state.is_terminal():
        return [(1.0, state)]
    action = plans[state.current_player()][key_of(state)]
    return [(1.0, state), *visited(state.child(action), plans)]


def expected(state, plans):
    """Return both players' expected utilities from a state: float64[2]."""
    return sum(p * np.array(end.returns()) for p, end in visited(state, plans) if end.is_terminal())


class NormalForm:
    """Distributions over pairs of reduced pure strategies, and what deviating from them gains.

    Attributes:
      utilities: float64[profiles, 2].
      gains: Sparse, deviations x profiles: what each gains.
      triggers: Of each deviation: (player, information state, recommended action), of which coarser notions
        have the first two or the first one.
    """

    def __init__(self, game, notion, profiles=None):
        """`profiles`: those of interest; None for all."""
        trees = [OwnTree(game, player) for player in (0, 1)]
        root = game.new_initial_state()
        profiles = profiles or profiles_of(game)
        self.utilities = np.array([expected(root, plans) for plans in profiles])
        rows, entries = {}, []
        for number, plans in enumerate(profiles):
            for p, state, trigger, deviations in self._triggers(root, trees, plans, notion):
                player = trigger[0]
                follow = expected(state, plans)[player]
                for n, deviation in enumerate(deviations):
                    both = (deviation, plans[1]) if player == 0 else (plans[0], deviation)
                    gain = p * (expected(state, both)[player] - follow)
                    entries.append((rows.setdefault((trigger, n), len(rows)), number, gain))
        self.triggers = [trigger for trigger, _ in rows]
        row, column, gain = np.array(entries or [(0, 0, 0.0)]).T
        shape = (max(len(rows), 1), len(profiles))
        self.gains = scipy.sparse.coo_array((gain, (row.astype(int), column.astype(int))), shape).tocsr()

    @staticmethod
    def _triggers(root, trees, plans, notion):
        """Yield (probability, state, trigger, plans to deviate by) of all triggers that two plans come to."""
        if notion == "nfcce":
            yield from ((1.0, root, (player,), trees[player].plans()) for player in (0, 1))
            return
        for p, state in visited(root, plans):
            if state.is_terminal():
                continue
            player, key = state.current_player(), key_of(state)
            actions, action = trees[player].actions[key], plans[player][key]
            if notion == "efcce":
                yield p, state, (player, key), trees[player].plans_from(key, actions)
            else:
                others = [a for a in actions if a != action]
                yield p, state, (player, key, action), trees[player].plans_from(key, others)

    def deltas(self, weights):
        """{trigger: what the best deviation gains}, where profiles have these probabilities."""
        found = collections.defaultdict(lambda: -np.inf)
        for trigger, gain in zip(self.triggers, self.gains @ weights, strict=False):
            found[trigger] = max(found[trigger], gain)
        return found

    def greatest(self, weights, floors=(-np.inf, -np.inf)):
        """Return the greatest weighted sum of utilities without gains; None: the greatest smaller utility."""
        count, smaller = len(self.utilities), weights is None
        rows, limits = [scipy.sparse.hstack([self.gains, np.zeros((self.gains.shape[0], 1))])], []
        limits.append(np.zeros(self.gains.shape[0]))
        for own, floor in zip(self.utilities.T, floors, strict=True):
            if smaller:
                rows.append(np.append(-own, 1.0)[None, :])
                limits.append([0.0])
            if floor > -np.inf:
                rows.append(np.append(-own, 0.0)[None, :])
                limits.append([-floor])
        cost = np.append(np.zeros(count) if smaller else self.utilities @ weights, float(smaller))
        result = scipy.optimize.linprog(
            -cost,
            A_ub=scipy.sparse.vstack([scipy.sparse.csr_array(each) for each in rows]),
            b_ub=np.concatenate(limits),
            A_eq=np.append(np.ones(count), 0.0)[None, :],
            b_eq=[1.0],
            bounds=[(0, None)] * count + [(None, None) if smaller else (0, 0)],
        )
        assert result.status == 0, result.message
        return -result.fun
