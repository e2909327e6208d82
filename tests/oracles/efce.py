"""Games, subgames, refinements and plans of the EFCE tests; those of named games are made once."""

import dataclasses
import functools

import numpy as np
import pyspiel
import pytest
from hypothesis import strategies as st

from precomp_games.algorithms import efce
from precomp_games.algorithms.efce.correlation_plans import RelevantPairs, plan_error
from precomp_games.algorithms.efce.scaled_extensions import ScaledExtensions, write_again
from precomp_games.algorithms.efce.sequence_game import moves
from tests.oracles.games import SEEDS, Level, level_game
from tests.oracles.treeplex import NormalForm, count_profiles

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


def random_games(chance="none", turns=4, most=None, first=()):
    """Games of any sum in which players see parts of what was done, and some have one action only.

    Args:
      chance: "none", "public" (both players see what it draws) or "private" (one of them does).
      turns: the most moves, without the first ones.
      most: the most pairs of reduced pure strategies, and then there are four or more; None for any number.
      first: turns that come first.
    """
    flag, opened = st.booleans(), st.sampled_from((False, False, True))
    actions, hidden = st.sampled_from((2, 3, 2, 1)), st.tuples(flag, flag)
    levels = st.builds(Level, st.integers(0, 1), actions, hidden, late=flag, open=opened)
    if chance != "none":
        hidden = st.sampled_from(((True, False), (False, True)) if chance == "private" else ((False, False),))
        levels |= st.builds(Level, st.just(-1), st.integers(2, 3), hidden, late=flag, open=st.just(False))
    drawn = st.lists(levels, min_size=3, max_size=turns) | st.lists(levels, min_size=turns, max_size=turns)
    drawn = drawn.filter(lambda turns: max(turns).mover >= 0)
    every = drawn.map(lambda turns: [*first, *turns])
    games = st.builds(level_game, SEEDS, every, ties=st.booleans(), general=st.just(True))
    return games if most is None else games.filter(lambda game: 4 <= count_profiles(game) <= most)


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


def random_subgames(chance="none"):
    """(random game with subgames, of at most five moves, without triangles; the depth where they begin)."""

    def decomposed(game, depth):
        try:
            RelevantPairs.of(held(game))
        except ValueError:
            return None, depth
        return subgames_from(held(game), depth), depth

    every = st.builds(decomposed, random_games(chance, 5), st.integers(1, 3))
    return every.filter(lambda found: found[0] is not None)


def moved(whole, scale, offset):
    """Return a game with each player's utilities times `scale` plus `offset`."""
    scale, offset = np.broadcast_to(scale, 2), np.broadcast_to(offset, 2)
    utility = whole.leaf_utility * scale[:, None] + np.outer(offset, whole.leaf_chance)
    return dataclasses.replace(whole, leaf_utility=utility)


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


def refined_again(level, one, depth):
    """Refined further where the subgame has subgames of its own."""
    finer = subgames_from(one.plan.game, depth)
    if finer is None:
        return one
    states, label = [finer.game.new_initial_state()], {}
    for h in range(1, finer.num_nodes):
        state = states[finer.node_parent[h]]
        states.append(state.child(moves(state)[finer.node_action[h]][0]))
    for state, number in zip(states, finer.node_label.tolist(), strict=True):
        label[tuple(state.history())] = number if number >= 0 else None
    try:
        deeper = level.deeper(one, lambda state: label[tuple(state.history())])
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


def pure_plan(pairs, plans):
    """Return the vertex of Xi of two pure strategies, {information state: action} each."""
    played = []
    for form, plan, own in zip(pairs.game.players, plans, pairs.sequences(), strict=True):
        plays = np.ones(form.num_sequences, bool)
        for k in range(1, form.num_infosets):
            at = slice(form.first[k], form.first[k + 1])
            plays[at] = (form.action[at] == plan.get(form.keys[k])) & plays[form.parent[k]]
        played.append(plays[own])
    return (played[0] & played[1]).astype(float)


def _pure_strategies(pairs, xi):
    """Return what `pure_plan` makes a vertex of Xi of."""
    found = []
    for player, form in enumerate(pairs.game.players):
        own = np.arange(1, form.num_sequences)
        at = pairs.index(own, 0 * own) if player == 0 else pairs.index(0 * own, own)
        found.append({form.keys[form.infoset[s]]: int(form.action[s]) for s in own[xi[at] > 0.5]})
    return found


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
        found.append((weight, _pure_strategies(plan.pairs, played)))
    return found


def check_exploitability(game, plan):
    """Return the mixture of a plan, after a check that it has the plan's utilities and gains of deviating."""
    assert plan_error(plan.pairs, plan.xi) <= 1e-9
    mixed = taken_apart(plan)
    weights, profiles = zip(*mixed, strict=True)
    mean = sum(weight * pure_plan(plan.pairs, plans) for weight, plans in zip(weights, profiles, strict=True))
    np.testing.assert_allclose(mean, plan.xi, atol=1e-9)
    form = NormalForm(game, "efce", profiles)
    np.testing.assert_allclose(form.utilities.T @ weights, plan.utilities(), atol=1e-8)
    deltas, measured, seen = form.deltas(weights), efce.exploitability(plan), set()
    for player, own in enumerate(plan.game.players):
        for s in range(1, own.num_sequences):
            k = own.infoset[s]
            trigger = (player, own.keys[k], int(own.action[s]))
            seen.add(trigger)
            expected = deltas.get(trigger, 0.0) if own.num_actions[k] > 1 else -np.inf
            assert measured.delta[player][s] == pytest.approx(expected, abs=1e-8)
    assert set(deltas) <= seen
    for notion in ("efcce", "nfcce"):
        worst = max(NormalForm(game, notion, profiles).deltas(weights).values())
        assert max(efce.exploitability(plan, notion).worst, 0.0) == pytest.approx(max(worst, 0.0), abs=1e-8)
    return mixed
