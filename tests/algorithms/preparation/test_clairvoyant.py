"""What knowing the opponent would be worth: each one beside the solver, and draws by their moments."""

import numpy as np
import pytest

from precomp_games.algorithms import best_precomputation, confirmed_precomputation
from precomp_games.algorithms.preparation.best_first import BestFirstSearch
from precomp_games.algorithms.preparation.clairvoyant import clairvoyant_values, drawn_replies
from precomp_games.algorithms.preparation.partial_tree import PreparationProblem
from tests.algorithms.preparation.cases import evaluation, one_sided, setting
from tests.random_games import random_policy

_OPPONENTS = 3


def _history(state):
    return tuple(state.history())


def _search(seed, batches):
    """(game, player, sigma, search) that has looked for a while."""
    game, menu, sigma, player = setting("menu", seed)
    problem = PreparationProblem.checked(game, menu, (sigma, sigma), 0.01, player, None, 1e-12)
    search = BestFirstSearch(problem, evaluation(seed), "optimistic")
    for _ in range(batches):
        search.work(4)
    return game, player, sigma, search


def _others(seed, policies):
    """Opponents with the replies of `sigma`, in other shares."""

    def possible(states, rows):
        found = []
        for state, row in zip(states, rows, strict=True):
            shares = np.array([[p(state).get(a, 0.0) + 0.01 for p in policies] for a in row])
            found.append(dict(zip(row, shares / shares.sum(axis=0), strict=True)))
        return found

    return possible


def test_each_is_worth_the_best_set_of_what_is_open(cases):
    """By the whole tree's solver on what was opened, one opponent after the other."""
    better = 0
    for seed in range(cases(12)):
        game, player, sigma, search = _search(seed, batches=4 + seed)
        possible = _others(seed, [random_policy(100 * seed + k, "full") for k in range(_OPPONENTS)])
        values = clairvoyant_values(search, possible)
        stops = {node.actions(): search.stop_value(node) for node in search.tree.nodes[1:]}
        opened = search.result(*search.so_far(None), True).menu

        def stop(state, stops=stops, player=player, game=game):
            own = stops.get(_history(state), 0.0)
            return own if player == 0 else game.utility_sum() - own

        for k, value in enumerate(np.broadcast_to(values, _OPPONENTS)):

            def rival(state, k=k, possible=possible, sigma=sigma):
                row = {a: p for a, p in sigma(state).items() if p > 0.0}
                return {a: each[k] for a, each in possible([state], [row])[0].items()}

            tree = one_sided(
                game, player, opened, rival, truncate="none", leaf_value=stop, stop_value="evaluate"
            )
            best = best_precomputation(tree, player)
            assert value == pytest.approx(best.utility, abs=1e-7)  # where entries cost next to nothing
            better += value > best.unprepared + 1e-6
    assert better > cases(12)


def test_nobody_learns_more_than_is_known(cases):
    """The mean of opponents is what was prepared for, and against it the best set is worth no more."""
    more = 0
    for seed in range(cases(12)):
        game, menu, sigma, player = setting("menu", seed)
        draws = drawn_replies(lambda states: [0.5] * len(states), 400, seed, _history)
        options = {"games": 0, "promise_games": 0, "prior_games": 1e9}
        found, certain = (
            confirmed_precomputation(
                game, menu, sigma, 0.002, player, evaluation(seed), possible=possible, **options
            )
            for possible in (
                draws,
                lambda states, rows: [{a: np.array([p]) for a, p in r.items()} for r in rows],
            )
        )
        values = found.clairvoyant
        error = values.std() / np.sqrt(len(values))
        assert len(certain.clairvoyant) == 1
        assert found.promise <= certain.clairvoyant[0] + 1e-9  # at the price of what is learned
        assert certain.clairvoyant[0] <= values.mean() + 4.0 * error + 1e-9
        more += values.mean() > found.promise + 4.0 * error
    assert more >= cases(12) // 4


def test_draws_are_of_a_dirichlet_distribution():
    """Its mean, its variance p (1 - p) / (n + 1), and one draw for each position."""
    row, games = {4: 0.7, 7: 0.2, 9: 0.1}, [1.0, 9.0, 9.0]
    possible = drawn_replies(lambda states: games[: len(states)], 40_000, 3, lambda state: state % 2)
    rows = possible([0, 1, 3], [row] * 3)
    assert rows[1] is rows[2] and rows[0] is not rows[1]
    for each, count in zip(rows[:2], games, strict=False):
        assert sum(each.values()) == pytest.approx(1.0)
        for action, p in row.items():
            assert each[action].mean() == pytest.approx(p, abs=0.01)
            assert each[action].var() == pytest.approx(p * (1.0 - p) / (count + 1.0), rel=0.05)
    again = drawn_replies(lambda states: games[: len(states)], 40_000, 3, lambda state: state % 2)([0], [row])
    assert (again[0][4] == rows[0][4]).all()
