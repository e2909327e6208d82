"""Games, subgames and refinements of the EFCE tests, each made once, and oracles.

The oracles know nothing of sequences, pairs or plans: they walk OpenSpiel's states.
"""

import collections
import dataclasses
import functools
import itertools

import numpy as np
import pyspiel
import pytest
import scipy.optimize

from precomp_games.algorithms import efce
from precomp_games.algorithms.efce.correlation_plans import RelevantPairs, plan_error
from precomp_games.algorithms.efce.scaled_extensions import ScaledExtensions, write_again
from precomp_games.algorithms.efce.sequence_game import moves
from tests.oracles.games import EfgText

# -- games, subgames and refinements -----------------------------------------------------------------------


@functools.cache
def battleship(height, width, shots, *, size=1, multiplier=2.0):
    return pyspiel.load_game(
        f"battleship(board_height={height},board_width={width},ship_sizes=[{size}],ship_values=[1.0],"
        f"num_shots={shots},allow_repeated_shots=false,loss_multiplier={float(multiplier)})"
    )


@functools.cache
def sheriff(items=1, bribe=1, rounds=1):
    return pyspiel.load_game(f"sheriff(max_items={items},max_bribe={bribe},num_rounds={rounds})")


@functools.cache
def goofspiel(cards, *, hidden=False):
    """Prizes in random order; utilities are the prizes won, and nobody wins one after equal bids."""
    return pyspiel.load_game(
        f"turn_based_simultaneous_game(game=goofspiel(num_cards={cards},points_order=random,"
        f"returns_type=total_points,imp_info={hidden}))"
    )


@functools.cache
def random_game(seed, depth=4, chance=None):
    """Return a random tree with perfect recall and general utilities, as an EFG.

    Who moves and who sees it is random at each node, so that information sets lie at several depths, players
    move twice in a row, and some have one action only.

    chance: "public", a quarter of the nodes are chance's, and both players see what it draws; "private", each
    sees nothing of it or a part.
    """
    rng = np.random.default_rng(seed)
    text, infosets, actions = EfgText(), ({}, {}), {}
    seen, mover = rng.choice([0.0, 0.3, 0.6, 1.0]), rng.random()

    def walk(left, views):
        if left == 0 or (left < depth and rng.random() < 0.15):
            text.leaf(*rng.integers(-3, 4, 2))
            return
        if chance is not None and rng.random() < 0.25:
            odds = rng.uniform(0.1, 1.0, 2 if chance == "public" else 3)
            odds = (odds / odds.sum()).round(3)
            odds[-1] = 1.0 - odds[:-1].sum()
            text.chance(dict(enumerate(odds)))
            sees = [chance == "public" or rng.random() < 0.5 for _ in views]
            for k in range(len(odds)):
                # Of three outcomes, a player that sees something may not tell two from each other.
                shown = [("drew", k if chance == "public" else int(rng.integers(2))) for _ in views]
                after = [(*v, x) if s else v for v, x, s in zip(views, shown, sees, strict=True)]
                walk(left - 1, tuple(after))
            return
        player = int(rng.random() < mover)
        view = views[player]
        number = infosets[player].setdefault(view, 1 + len(infosets[player]))
        count = actions.setdefault((player, view), int(rng.integers(1, 4)))
        text.move(player + 1, number, range(count))
        for k in range(count):
            after = list(views)
            after[player] = (*view, ("did", k))
            if rng.random() < seen:
                after[1 - player] = (*after[1 - player], ("saw", int(rng.integers(2))))
            walk(left - 1, tuple(after))

    walk(depth, ((), ()))
    return text.game()


_held = {}  # by id, since OpenSpiel's games cannot be hashed; what is held keeps its game


def held(game, rounds=None):
    """Return a game as sequences, with subgames after so many rounds of public moves if any."""
    key = id(game), rounds
    if key not in _held:
        whole = efce.SequenceGame.of(game)
        _held[key] = whole if rounds is None else efce.decompose(whole, efce.public_moves(game, rounds))
    return _held[key]


def subgames_from(whole, depth):
    """The finest subgames; None where all ends too soon, or information sets are both above and below."""
    try:
        return efce.finest_subgames(whole, depth)
    except ValueError:
        return None


def moved(whole, scale, offset):
    """Return a game with each player's utilities times `scale` plus `offset`."""
    scale, offset = np.broadcast_to(scale, 2), np.broadcast_to(offset, 2)
    utility = whole.leaf_utility * scale[:, None] + np.outer(offset, whole.leaf_chance)
    return dataclasses.replace(whole, leaf_utility=utility)


@functools.cache
def random_subgames(count, chance=None):
    """[(seed, random game with subgames from the third move on)]."""
    found = ((seed, subgames_from(held(random_game(seed, 5, chance)), 2)) for seed in itertools.count())
    return list(itertools.islice((each for each in found if each[1] is not None), count))


@functools.cache
def blueprint(seed, width=0.5):
    """Return a jittered blueprint, or the uniform one if the seed is None."""
    return efce.uniform_blueprint() if seed is None else efce.jittered_blueprint(seed, width)


@functools.cache
def resolving(whole, of_blueprint, bounds="aggregate"):
    return efce.Resolving.of_subgames(whole, of_blueprint, bounds)


@functools.cache
def refined(level, name):
    return efce.refine_lp(level.problem(name))


def all_refined(level):
    return [refined(level, name) for name in level.names]


def stitched(level, of_blueprint, refinements):
    """Return the safety of the stitched plan of the whole game."""
    plan = efce.stitch(level.game, of_blueprint, refinements)
    assert plan_error(plan.pairs, plan.xi) < 1e-7
    return efce.safety(plan, of_blueprint)


def labels_by_history(whole):
    """{history: the number of its subgame, -1 in the trunk}."""
    states = [whole.game.new_initial_state()]
    for h in range(1, whole.num_nodes):
        state = states[whole.node_parent[h]]
        states.append(state.child(moves(state)[whole.node_action[h]][0]))
    histories = (tuple(state.history()) for state in states)
    return dict(zip(histories, whole.node_label.tolist(), strict=True))


def refined_again(level, one, depth):
    """Refined further where the subgame has subgames of its own."""
    finer = subgames_from(one.plan.game, depth)
    if finer is None:
        return one
    label = labels_by_history(finer)
    try:
        deeper = level.deeper(one, lambda state: k if (k := label[tuple(state.history())]) >= 0 else None)
    except ValueError as error:
        assert "reach before it" in str(error)
        return one
    return deeper.complete(all_refined(deeper))


# -- plans -----------------------------------------------------------------------------------------------


def pairs_of(game):
    return RelevantPairs.of(held(game))


def all_steps(pairs):
    """Return the extensions that write all entries but the first, which is 1."""
    label = np.zeros_like(pairs.label)
    label[0] = -1
    return ScaledExtensions.of(dataclasses.replace(pairs, label=label))


def random_plan(pairs, seed):
    """Return a point of Xi that is no product: random shares on the scaled extensions."""
    rng = np.random.default_rng(seed)
    xi = rng.random(len(pairs)) ** 3
    xi[0] = 1.0
    write_again(all_steps(pairs), xi)
    return efce.CorrelationPlan(pairs, xi)


def plays(form, plan):
    """bool[S], the sequences that a pure plan plays, {information state: action}."""
    found = np.ones(form.num_sequences, bool)
    for k in range(1, form.num_infosets):
        sequences = slice(form.first[k], form.first[k + 1])
        found[sequences] = (form.action[sequences] == plan.get(form.keys[k])) & found[form.parent[k]]
    return found


def pure_plan(pairs, plans):
    s, t = pairs.sequences()
    x, y = (plays(form, plan) for form, plan in zip(pairs.game.players, plans, strict=True))
    return (x[s] & y[t]).astype(float)


def taken_apart(plan):
    """[(weight, two pure strategies)] with a plan as their mean: by the largest share of each step."""
    steps = [each.tolist() for each in all_steps(plan.pairs)]
    left, found = np.maximum(plan.xi, 0.0), []
    while left[0] > 1e-10:
        rest, pure = left.tolist(), [0.0] * len(left)
        pure[0] = 1.0
        for start, stride, size, other, is_sum in zip(*steps, strict=True):
            entries = range(start, start + size * stride, stride)
            if is_sum:
                pure[other] = sum(pure[e] for e in entries)
            elif pure[other]:
                pure[max(entries, key=rest.__getitem__)] = 1.0
        played = np.array(pure)
        weight = min(left[played > 0.5].min(), left[0])
        left = np.maximum(left - weight * played, 0.0)
        found.append((weight, as_plans(plan.pairs, played)))
    return found


def as_plans(pairs, pure):
    """Return a vertex of Xi as two dictionaries, {information state: action}."""
    found = []
    for player, form in enumerate(pairs.game.players):
        own = np.arange(1, form.num_sequences)
        at = pairs.index(own, 0 * own) if player == 0 else pairs.index(0 * own, own)
        played = own[pure[at] > 0.5]
        found.append({form.keys[form.infoset[s]]: int(form.action[s]) for s in played})
    return found


# -- oracles -----------------------------------------------------------------------------------------------


class OwnTree:
    """A player's information states: legal actions, and the next ones after each action."""

    def __init__(self, game, player):
        self.actions, self.next, self.first = {}, collections.defaultdict(dict), {}

        def walk(state, last):
            if state.is_terminal():
                return
            if state.current_player() == player:
                key = state.information_state_string()
                self.actions[key] = state.legal_actions()
                (self.first if last is None else self.next[last])[key] = None
                for action in state.legal_actions():
                    walk(state.child(action), (key, action))
            else:
                for action in state.legal_actions():
                    walk(state.child(action), last)

        walk(game.new_initial_state(), None)

    def plans(self, keys):
        """Return all reduced plans for these information states and what follows, as dictionaries."""
        keys = list(keys)
        if not keys:
            return [{}]
        return [
            {k: v for part in parts for k, v in part.items()}
            for parts in itertools.product(*(self.plans_from(key, self.actions[key]) for key in keys))
        ]

    def plans_from(self, key, actions):
        return [{key: action} | below for action in actions for below in self.plans(self.next[key, action])]


def visited(state, plans):
    """Yield (probability, state) of what two plans come to from here: decisions and ends of the game."""
    stack = [(1.0, state)]
    while stack:
        p, state = stack.pop()
        if state.is_chance_node():
            stack += [(p * q, state.child(action)) for action, q in state.chance_outcomes()]
            continue
        yield p, state
        if not state.is_terminal():
            action = plans[state.current_player()][state.information_state_string()]
            stack.append((p, state.child(action)))


def play(state, plans):
    """Return both players' expected utilities from a state on."""
    return sum(p * np.array(end.returns()) for p, end in visited(state, plans) if end.is_terminal())


def brute_force_deltas(game, device):
    """{(player, information state, action): delta} of every trigger, over every deviation."""
    deltas = {}
    for player in (0, 1):
        tree = OwnTree(game, player)
        follow = collections.defaultdict(float)
        deviate = {
            (key, action): [[plan, 0.0] for plan in tree.plans_from(key, [a for a in actions if a != action])]
            for key, actions in tree.actions.items()
            for action in actions
        }
        for weight, plans in device:
            for p, state in visited(game.new_initial_state(), plans):
                if state.current_player() == player:
                    key = state.information_state_string()
                    action = plans[player][key]
                    follow[key, action] += weight * p * play(state, plans)[player]
                    # The opponent goes on as recommended, whatever the player now does.
                    for entry in deviate[key, action]:
                        both = [None, None]
                        both[player], both[1 - player] = entry[0], plans[1 - player]
                        entry[1] += weight * p * play(state, both)[player]
        # A trigger's value counts plays that come to it although it is recommended only with what the player
        # did before.
        for trigger, entries in deviate.items():
            if entries:
                deltas[player, *trigger] = max(value for _, value in entries) - follow[trigger]
    return deltas


def check_exploitability(game, plan):
    """Every trigger's delta and both utilities are those of the plan's profiles, played out."""
    assert plan_error(plan.pairs, plan.xi) <= 1e-12
    plans = taken_apart(plan)
    expected = brute_force_deltas(game, plans)
    measured = efce.exploitability(plan)
    seen = 0
    for player, form in enumerate(plan.game.players):
        for s in range(1, form.num_sequences):
            trigger = (player, form.keys[form.infoset[s]], int(form.action[s]))
            if trigger not in expected:  # there is only one action
                assert measured.delta[player][s] == -np.inf
                continue
            assert measured.delta[player][s] == pytest.approx(expected[trigger], abs=1e-8)
            seen += 1
    assert seen == len(expected)
    u = np.sum([w * np.array(play(game.new_initial_state(), both)) for w, both in plans], axis=0)
    np.testing.assert_allclose(u, plan.utilities(), atol=1e-8)


def normal_form_efce_welfare(game):
    """Return the greatest welfare of an EFCE: a linear program over all pairs of reduced pure strategies."""
    trees = [OwnTree(game, player) for player in (0, 1)]
    profiles = list(itertools.product(*(tree.plans(tree.first) for tree in trees)))
    welfare, columns = [], []
    rows = {}
    for number, plans in enumerate(profiles):
        welfare.append(sum(play(game.new_initial_state(), plans)))
        for p, state in visited(game.new_initial_state(), plans):
            if state.is_terminal():
                continue
            player = state.current_player()
            key = state.information_state_string()
            action, follow = plans[player][key], play(state, plans)[player]
            others = [a for a in trees[player].actions[key] if a != action]
            for n, deviation in enumerate(trees[player].plans_from(key, others)):
                row = rows.setdefault((player, key, action, n), len(rows))
                both = [deviation, plans[1]] if player == 0 else [plans[0], deviation]
                columns.append((row, number, p * (play(state, both)[player] - follow)))
    matrix = np.zeros((len(rows), len(profiles)))
    for row, number, gain in columns:
        matrix[row, number] += gain
    result = scipy.optimize.linprog(
        -np.array(welfare),
        A_ub=matrix,
        b_ub=np.zeros(len(rows)),
        A_eq=np.ones((1, len(profiles))),
        b_eq=[1.0],
    )
    assert result.status == 0, result.message
    return -result.fun
