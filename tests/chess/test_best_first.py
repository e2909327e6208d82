"""Best-first preparation in chess against the tree of Algorithm 1, with an engine that is a hash function."""

import chess
import pytest

from precomp_games.algorithms import best_precomputation
from precomp_games.algorithms.preparation.best_first import best_first_precomputation
from precomp_games.chess import (
    PreparationSettings,
    action_of,
    position_key,
    preparation_book,
    preparation_tree,
)
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.plan.trees import certified_book
from tests.chess.test_preparation import HashEngine


def _best_first(settings, engine, gap, **options):
    policies = preparation_policies(settings, engine)
    return best_first_precomputation(
        settings.game(), policies.sigma_pre, policies.sigma, settings.penalty, settings.player,
        policies.leaf_value,
        gap=gap, position_key=position_key, min_probability=settings.min_probability, **options,
    )  # fmt: skip


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("temperature", [3.0, 30.0])
def test_the_interval_closes_on_algorithm_1(player, temperature):
    settings = PreparationSettings(
        player=player, penalty=0.002, opponent_temperature_cp=temperature, max_plies=12
    )
    whole = HashEngine(spread=600.0)
    best = best_precomputation(preparation_tree(settings, whole), player)
    searched = []
    for gap in (0.0, 0.01, 0.05):
        engine = HashEngine(spread=600.0)
        found = _best_first(settings, engine, gap)
        assert found.reached and found.lower - 1e-9 <= best.value <= found.upper + 1e-9
        searched.append(len(set(engine.asked)))
        if gap == 0.0:
            assert found.lower == pytest.approx(best.value, abs=1e-9)
            assert found.size == best.size
            known = {state.actions: state for state in best.states()}
            assert set(found.histories) == set(known)
            for actions, reach, row in zip(found.histories, found.reach, found.rows, strict=True):
                assert reach == pytest.approx(known[actions].reach)
                assert row == pytest.approx(best.tree.memorized_row(known[actions].infoset))
            book = certified_book(found)
            worth = {tuple(map(action_of, position.history)): position.worth for position in book.positions}
            gains = {actions: state.net_gain for actions, state in known.items()}
            assert worth == pytest.approx(gains, abs=1e-9)
            expected = preparation_book(best.tree, player, best.states())
            assert book.first_lines(5) == expected.first_lines(5) and len(book.positions) == best.size
    assert searched[0] <= len(set(whole.asked)) and searched[2] <= searched[1] <= searched[0]
    assert best.size > 3


@pytest.mark.parametrize("player", [0, 1])
def test_half_of_the_searches_of_the_whole_tree(player):
    """A penalty of 1e-3 and a gap of 0.01, as docs/frontier_and_bounds.md has it of a real engine."""
    settings = PreparationSettings(player=player, penalty=1e-3, opponent_temperature_cp=10.0, max_plies=16)
    whole, engine = HashEngine(spread=150.0), HashEngine(spread=150.0)
    best = best_precomputation(preparation_tree(settings, whole, truncate="reach"), player)
    found = _best_first(settings, engine, 0.01)
    assert found.reached and found.lower - 1e-9 <= best.value <= found.upper + 1e-9
    assert len(set(engine.asked)) <= len(set(whole.asked)) / 2
    assert len(set(whole.asked)) > 300 and found.size > 3


def test_positions_are_evaluated_once():
    settings = PreparationSettings(penalty=0.002, opponent_temperature_cp=200.0, max_plies=10, top_k=3)
    engine = HashEngine(spread=600.0)
    found = _best_first(settings, engine, 0.0, batch=7)
    assert found.work["evaluations"] < found.work["nodes"]
    assert chess.Board().epd() in {epd for epd, _, _ in engine.asked}
