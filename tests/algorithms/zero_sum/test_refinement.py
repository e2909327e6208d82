"""What players do off the path of play: exact equilibria that are best against trembling hands everywhere."""

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree
from precomp_games.algorithms import solve
from precomp_games.algorithms.programs import LinearProgramError
from precomp_games.algorithms.zero_sum import double_oracle, refinement
from precomp_games.algorithms.zero_sum.refinement import conditional_regrets
from precomp_games.algorithms.zero_sum.tables import table_of
from tests.algorithms.zero_sum.games import SMALL, constant_sum, game_of, is_perfect, random_game, recursion
from tests.random_games import EfgText, random_efg, random_tree

_CASES = 200
_UP_TO_ROUNDING = 1e-8  # of the range of utilities; the programs' own tolerance is 1e-9


def _check(game: pyspiel.Game, gap: float = _UP_TO_ROUNDING) -> Any:
    """As exact as without, and with a gap that is small where play without may lose much."""
    plain, found = solve(game), solve(game, refine=True)
    spread = game.max_utility() - game.min_utility()
    assert found.value == pytest.approx(plain.value, abs=1e-12 * spread)
    assert found.converged and found.nash_conv <= 1e-12 * spread
    assert plain.refinement is None and found.refinement.gap <= gap * spread
    assert np.add(*(s.memorize for s in found.refinement.trembling)).min() > 0.0
    return found


def test_random_games_stay_exact(cases):
    without = []
    for seed in range(cases(_CASES)):
        game = random_game(seed)
        found = _check(game, 0.01 if is_perfect(game) else _UP_TO_ROUNDING)
        assert found.refinement.distance < 0.02
        regrets = conditional_regrets(found.tree, solve(game).strategies, found.refinement.trembling)
        without.append(regrets.max() / found.tree.scale)
    assert len(without) < 20 or np.mean(np.array(without) > 0.01) > 0.3


@pytest.mark.parametrize("name", SMALL)
def test_games_of_openspiel_stay_exact(name):
    game = game_of(name)
    _check(game, 0.01 if is_perfect(game) else 1e-5)


def _histories(state: Any, weight: float, policy: Any, player: int) -> Iterator[tuple[float, Any]]:
    """(probability by chance and the opponent, state) of each of the player's decisions."""
    if state.is_terminal():
        return
    mover = state.current_player()
    if mover == player:
        yield weight, state
    odds = dict(state.chance_outcomes()) if mover < 0 else policy.action_probabilities(state)
    for action in state.legal_actions():
        on = weight * (1.0 if mover == player else odds[action])
        yield from _histories(state.child(action), on, policy, player)


def _utility(state: Any, player: int, own: Any, other: Any) -> float:
    """The player's expected utility where it plays own(state) and the opponent a policy."""
    if state.is_terminal():
        return float(state.returns()[player])
    mover = state.current_player()
    if mover == player:
        odds = own(state)
    else:
        odds = dict(state.chance_outcomes()) if mover < 0 else other.action_probabilities(state)
    return sum(p * _utility(state.child(a), player, own, other) for a, p in odds.items() if p > 0.0)


def _chosen(player: int, choice: dict[str, int], state: Any) -> dict[int, float]:
    return {choice[state.information_state_string(player)]: 1.0}


def _oracle(game: pyspiel.Game, policy: Any, trembling: Any) -> float:
    """The gap by trying all pure continuations from each information state, on the game's own states."""
    most = 0.0
    for player in (0, 1):
        met: dict[str, list[tuple[float, Any]]] = {}
        for weight, state in _histories(game.new_initial_state(), 1.0, trembling, player):
            met.setdefault(state.information_state_string(player), []).append((weight, state))
        for visits in met.values():
            below: dict[str, list[int]] = {}
            for _, state in visits:
                for _, later in _histories(state, 1.0, trembling, player):
                    below[later.information_state_string(player)] = later.legal_actions()

            def worth(own: Any, visits: Any = visits, player: int = player) -> float:
                total = sum(weight for weight, _ in visits)
                return sum(w * _utility(s, player, own, trembling) for w, s in visits) / total

            pure = (dict(zip(below, actions, strict=True)) for actions in itertools.product(*below.values()))
            best = max(worth(functools.partial(_chosen, player, choice)) for choice in pure)
            most = max(most, best - worth(policy.action_probabilities))
    return most


def test_the_gap_is_what_pure_continuations_gain(cases):
    larger = 0
    for seed in range(cases(30)):
        game = random_efg(seed, depth=3 + seed % 2)
        found, plain = solve(game, refine=True), solve(game)
        tree, trembling = found.tree, found.refinement.trembling
        hands, spread = table_of(tree, trembling), game.max_utility() - game.min_utility()
        assert _oracle(game, found.policy(), hands) == pytest.approx(found.refinement.gap, abs=1e-9 * spread)
        without = conditional_regrets(tree, plain.strategies, trembling).max()
        assert _oracle(game, plain.policy(), hands) == pytest.approx(without, abs=1e-9 * spread)
        larger += without > 0.01 * spread
    assert larger > 0


def test_perfect_information_is_backward_induction(cases):
    for seed in range(cases(20)):
        game = random_tree(seed, depth=4, chance=0.2)
        policy = solve(game, refine=True).policy()
        states = [game.new_initial_state()]
        while states:
            state = states.pop()
            if not state.is_terminal():
                states += [state.child(a) for a in state.legal_actions()]
            if state.current_player() >= 0:
                played = recursion(state, policy, ())
                assert played == pytest.approx(recursion(state, None, (0, 1)), abs=1e-12)


def _rows(found: Any) -> dict[int, list[float]]:
    """What is played at each information state, by number in order of appearance."""
    tree, played = found.tree, np.add(*(s.memorize for s in found.strategies))
    return {
        k: played[tree.first_entry[k] : tree.first_entry[k + 1]].tolist() for k in range(tree.num_infosets)
    }


def test_matching_pennies_that_nobody_comes_to():
    """Player 1 takes 2 rather than play for at most 1: the rest is mixed as if it were the game."""
    text = EfgText()
    text.move(1, 1, ["take", "play"])
    text.leaf(2)
    text.move(1, 2, ["heads", "tails"])
    for sign in (1, -1):
        text.move(2, 1, ["heads", "tails"])
        text.leaf(sign)
        text.leaf(-sign)
    found = _check(text.game())
    assert found.value == 2.0
    rows = _rows(found)
    assert rows[0] == [1.0, 0.0]
    assert rows[1] == pytest.approx([0.5, 0.5], abs=1e-6) and rows[2] == pytest.approx([0.5, 0.5], abs=1e-6)


def test_subgames_of_moves_at_once_that_nobody_comes_to():
    """The same with payoffs that are not even: 3, -1; -1, 1, whose equilibrium is (1/3, 2/3) for both."""
    text = EfgText()
    text.move(2, 1, ["leave", "play"])
    text.leaf(-5)
    for half in ((3, -1), (-1, 1)):
        if half[0] == 3:
            text.move(1, 1, ["up", "down"])
        text.move(2, 2, ["left", "right"])
        for payoff in half:
            text.leaf(payoff)
    rows = _rows(_check(text.game()))
    assert rows[0] == [1.0, 0.0]
    for k in (1, 2):
        assert rows[k] == pytest.approx([1 / 3, 2 / 3], abs=0.005)  # hands tremble by a thousandth


def _guess_the_ace() -> pyspiel.Game:
    """Miltersen and Sorensen 2010: of 52 cards one is the ace. Player 1 may let player 2 guess, for 1000."""
    text = EfgText()
    text.move(1, 1, ["no", "offer"])
    text.leaf(0)
    text.chance({"ace": "1/52", "other": "51/52"})
    for right in (0, 1):
        text.move(2, 1, ["ace", "other"])
        for guess in (0, 1):
            text.leaf(-1000 if guess == right else 0)
    return text.game()


def test_guess_the_ace():
    found = _check(_guess_the_ace())
    assert found.value == 0.0 and _rows(found) == {0: [1.0, 0.0], 1: [0.0, 1.0]}


def test_poker_folds_nothing_that_cannot_lose():
    policy = solve("kuhn_poker", refine=True).policy()
    for key, row in (("2b", [0, 1]), ("2pb", [0, 1]), ("0b", [1, 0]), ("0pb", [1, 0])):
        assert policy.policy_for_key(key).tolist() == pytest.approx(row, abs=1e-12)
    folds = {}
    for refine in (False, True):
        found = solve("leduc_poker", refine=refine)
        tree, played = found.tree, np.add(*(s.memorize for s in found.strategies))
        folds[refine] = 0.0
        for e in np.flatnonzero(tree.entry_action == 0).tolist():
            key = tree.key(int(tree.entry_infoset[e]))
            private, public = (
                (key.split(f"[{name}: ")[1][0] for name in ("Private", "Public")) if "Public" in key else "??"
            )
            if public not in "?-" and int(private) // 2 == int(public) // 2:  # a pair, which nothing beats
                folds[refine] = max(folds[refine], played[e])
    assert folds[False] > 0.3 and folds[True] < 1e-9


def test_one_player_and_constant_sums():
    _check(constant_sum(), 0.01)
    for player, best in ((1, [0.0, 1.0]), (2, [1.0, 0.0])):
        text = EfgText()
        text.chance({"a": 0.5, "b": 0.5})
        for worse in (1, 2):
            text.move(player, 1, ["leave", "go"])
            text.leaf(0)
            text.move(player, 2, ["c", "d"])
            text.leaf(worse)
            text.leaf(3)
        rows = _rows(_check(text.game()))
        assert rows == {0: best, 1: best}
    text = EfgText()  # nothing is at stake
    text.move(1, 1, ["a", "b"])
    for _ in range(2):
        text.move(2, 1, ["c", "d"])
        text.leaf(0)
        text.leaf(0)
    assert _check(text.game()).refinement.gap == 0.0


def test_what_cannot_be_refined(monkeypatch):
    with pytest.raises(ValueError, match=r'solve\(\): expected method="exact" with refine=True, got \'cfr\''):
        solve("kuhn_poker", method="cfr", refine=True)

    def fails(*_: Any) -> Any:
        raise LinearProgramError("Unknown")

    with monkeypatch.context() as patch:
        patch.setattr(refinement, "_perturbed", fails)
        with pytest.raises(ValueError, match="expected a game that HiGHS can refine"):
            solve("kuhn_poker", refine=True)
    with monkeypatch.context() as patch:
        patch.setattr(double_oracle, "equilibrium_plans", fails)
        with pytest.raises(ValueError, match="expected a game that HiGHS can solve with refine=True"):
            solve("kuhn_poker", refine=True)
    monkeypatch.setattr("precomp_games.algorithms.zero_sum.solve.MOST_OF_GAME", 20)
    with pytest.raises(ValueError, match="expected a game of at most 20 actions with refine=True, got 24"):
        solve("kuhn_poker", refine=True)


def test_where_no_nearest_plan_is_found_the_equilibrium_stays(monkeypatch):
    """What its own play never comes to is still played as against trembling hands."""
    tree = HistoryTree.of_game(pyspiel.load_game("leduc_poker"))
    plain = solve(tree)

    monkeypatch.setattr(refinement, "_GIVEN_AWAY", -1.0)  # then any other plan gives away too much
    found = solve(tree, refine=True)
    for i in (0, 1):
        np.testing.assert_allclose(found.strategies[i].plan(), plain.strategies[i].plan(), atol=1e-12)
