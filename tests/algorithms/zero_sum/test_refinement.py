"""Play off the equilibrium's path: equilibria of every proper subgame."""

from typing import Any

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree
from precomp_games.algorithms import solve
from precomp_games.algorithms.programs import LinearProgramError
from precomp_games.algorithms.zero_sum import refinement
from precomp_games.algorithms.zero_sum.refinement import certified
from tests.oracles.games import EfgText, random_efg, random_tree
from tests.oracles.zero_sum import (
    SMALL,
    constant_sum,
    game_of,
    nash_conv_of,
    random_game,
    subgames,
)

_CASES = 120
_NOTHING = 1e-12  # of the range of utilities


def _check(game: pyspiel.Game) -> Any:
    """Check that a refinement is as exact, and an equilibrium of every proper subgame, by OpenSpiel."""
    plain, found = solve(game), solve(game, refine=True)
    spread = game.max_utility() - game.min_utility()
    assert found.value == pytest.approx(plain.value, abs=1e-12 * spread)
    assert found.converged and found.nash_conv <= _NOTHING * spread
    assert plain.refinement is None
    starts = subgames(game)
    assert found.refinement.subgames == len(starts)
    gap = max(nash_conv_of(game, found.policy(), start) for start in starts)
    assert gap <= _NOTHING * spread and found.refinement.gap <= _NOTHING * spread
    return found


def _with_subgames(seed: int) -> pyspiel.Game:
    return random_efg(seed, depth=4 + seed % 3, actions=2 + (seed % 5 == 0), shown=0.2 + 0.1 * (seed % 4))


def test_random_games_are_solved_in_every_proper_subgame(cases):
    counts = []
    for seed in range(cases(_CASES)):
        counts.append(_check(_with_subgames(seed)).refinement.subgames)
    assert np.mean(np.array(counts) > 1) > 0.5 and max(counts) > 10


def test_other_random_games(cases):
    for seed in range(cases(60)):
        _check(random_game(seed))


def test_the_gap_is_what_openspiel_measures_in_the_worst_subgame(cases):
    gaps = []
    for seed in range(cases(60)):
        game = _with_subgames(seed)
        plain, spread = solve(game), game.max_utility() - game.min_utility()
        theirs = max(nash_conv_of(game, plain.policy(), start) for start in subgames(game))
        found = certified(plain.tree, plain.strategies)
        assert found.gap == pytest.approx(theirs, abs=1e-12 * spread)
        gaps.append(theirs / spread)
    assert len(gaps) < 10 or np.mean(np.array(gaps) > 0.01) > 0.2  # which refine=True is for


@pytest.mark.parametrize("scale", [1e6, 1e-6])
def test_payoffs_in_other_units(scale, cases):
    for seed in range(cases(20)):
        _check(random_efg(seed, depth=5, scale=scale, shown=0.4))


@pytest.mark.parametrize("name", [name for name in SMALL if name != "leduc_poker"])
def test_games_of_openspiel(name):
    _check(game_of(name))


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("kuhn_poker", 1),
        ("leduc_poker", 1),
        ("matrix_rps", 1),
        ("goofspiel(num_cards=4,imp_info=True)", 501),
        ("oshi_zumo(coins=3,size=1,horizon=3)", 113),
    ],
)
def test_how_many_subgames_there_are(name, count):
    tree = HistoryTree.of_game(game_of(name))
    found = solve(tree, refine=True)
    assert found.refinement.subgames == count
    assert found.refinement.gap <= _NOTHING * tree.utility_range
    if count > 1:
        assert certified(tree, solve(tree).strategies).gap > 0.5 * tree.utility_range


def test_perfect_information_is_backward_induction(cases):
    for seed in range(cases(20)):
        game = random_tree(seed, depth=4, chance=0.2)
        found = _check(game)
        assert found.method == "backward induction"
        assert found.refinement.subgames == (found.tree.num_children > 0).sum()


def _rows(found: Any) -> dict[int, list[float]]:
    """Return the probabilities at each information state, by number in order of appearance."""
    tree, played = found.tree, np.add(*(s.memorize for s in found.strategies))
    return {
        k: played[tree.first_entry[k] : tree.first_entry[k + 1]].tolist() for k in range(tree.num_infosets)
    }


def test_moves_at_once_that_nobody_comes_to():
    """A player leaves rather than play a game of which it hopes for less; that game is played well anyway."""
    for owner, payoffs, odds in (
        (1, ((1, -1), (-1, 1)), (1 / 2, 1 / 2)),
        (2, ((3, -1), (-1, 1)), (1 / 3, 2 / 3)),
        (1, ((0, -9), (-1, 0)), (1 / 10, 9 / 10)),
    ):
        text = EfgText()
        text.move(owner, 1, ["leave", "play"])
        text.leaf(2 if owner == 1 else -5)
        text.move(1, 2 if owner == 1 else 1, ["up", "down"])
        for row in payoffs:
            text.move(2, 1 if owner == 1 else 2, ["left", "right"])
            for payoff in row:
                text.leaf(payoff)
        found = _check(text.game())
        assert found.refinement.subgames == 2
        rows = _rows(found)
        assert rows[0] == [1.0, 0.0] and rows[1] == pytest.approx(odds, abs=1e-12)


def test_a_subgame_that_begins_with_chance():
    """Miltersen and Sorensen 2010: of 52 cards one is the ace. Player 1 may let player 2 guess, for 1000."""
    text = EfgText()
    text.move(1, 1, ["no", "offer"])
    text.leaf(0)
    text.chance({"ace": "1/52", "other": "51/52"})
    for right in (0, 1):
        text.move(2, 1, ["ace", "other"])
        for guess in (0, 1):
            text.leaf(-1000 if guess == right else 0)
    found = _check(text.game())
    assert found.refinement.subgames == 2
    assert found.value == 0.0 and _rows(found) == {0: [1.0, 0.0], 1: [0.0, 1.0]}


def test_an_information_state_that_leaves_a_subgame_ends_it():
    """Player 2 does not see which way was taken: neither is a game by itself. Below the second one is."""
    text = EfgText()
    text.move(1, 1, ["left", "right"])
    text.move(1, 2, ["up", "down"])
    for _ in range(2):
        text.move(2, 1, ["x", "y"])
        text.leaf(1)
        text.leaf(0)
    text.move(2, 1, ["x", "y"])
    text.leaf(0)
    text.move(2, 2, ["good", "bad"])
    text.leaf(-3)
    text.leaf(5)
    found = _check(text.game())
    assert found.refinement.subgames == 2
    assert _rows(found)[3] == [1.0, 0.0]


def test_subgames_in_subgames_of_chance_and_of_one_player():
    text = EfgText()
    text.move(1, 1, ["out", "in"])
    text.leaf(9)
    text.chance({"a": "1/4", "b": "3/4"})
    text.move(2, 1, ["end", "on"])  # which is reported
    text.leaf(-1)
    text.move(1, 2, ["worse", "better"])
    text.leaf(1)
    text.leaf(2)
    text.chance({"win": "1/2", "lose": "1/2"})  # nobody moves here
    text.leaf(4)
    text.leaf(-4)
    found = _check(text.game())
    assert found.refinement.subgames == 5
    assert _rows(found) == {0: [1.0, 0.0], 1: [1.0, 0.0], 2: [0.0, 1.0]}
    assert _check(constant_sum()).value > 0.0
    text = EfgText()  # nothing is at stake, and some have no choice
    text.move(1, 1, ["a"])
    text.move(2, 1, ["c", "d"])
    text.leaf(0)
    text.move(1, 2, ["only"])
    text.leaf(0)
    assert _check(text.game()).refinement.gap == 0.0


def test_what_cannot_be_refined(monkeypatch):
    with pytest.raises(ValueError, match=r'solve\(\): expected method="exact" with refine=True, got \'cfr\''):
        solve("kuhn_poker", method="cfr", refine=True)

    def fails(*_: Any) -> Any:
        raise LinearProgramError("Unknown")

    with monkeypatch.context() as patch:
        patch.setattr(refinement, "equilibrium_plans", fails)
        with pytest.raises(ValueError, match="expected a game that HiGHS can solve with refine=True"):
            solve("kuhn_poker", refine=True)
    monkeypatch.setattr("precomp_games.algorithms.zero_sum.solve.MOST_OF_GAME", 20)
    with pytest.raises(ValueError, match="expected a game of at most 20 actions with refine=True, got 24"):
        solve("kuhn_poker", refine=True)
