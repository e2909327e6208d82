"""Best-first preparation in chess against the tree of Algorithm 1, with an engine that is a hash function."""

import chess
import pytest

from precomp_games.algorithms import best_precomputation
from precomp_games.algorithms.best_first_precomputation import best_first_precomputation
from precomp_games.chess import EngineEvaluation, EnginePolicy, PreparationSettings, preparation_tree
from precomp_games.chess.game import position_key
from precomp_games.chess.scores import score_utility
from tests.chess.test_preparation import HashEngine


def _best_first(settings, engine, gap, **options):
    game = settings.game()
    book = EnginePolicy(game, engine, settings.analyst_limit, settings.own_temperature_cp, settings.top_k)
    replies = EnginePolicy(
        game, engine, settings.opponent_limit, settings.opponent_temperature_cp, settings.top_k
    )
    value = EngineEvaluation(
        engine,
        settings.analyst_limit,
        settings.top_k,
        score_utility(settings.evaluation, settings.scale_cp, engine.engine_id),
    )
    return best_first_precomputation(
        game, book, replies, settings.penalty, settings.player, value,
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
                assert row == pytest.approx(best.tree.memorised_row(known[actions].infoset))
    assert searched[0] <= len(set(whole.asked)) and searched[2] <= searched[1] <= searched[0]
    assert best.size > 3


def test_positions_are_evaluated_once():
    settings = PreparationSettings(penalty=0.002, opponent_temperature_cp=200.0, max_plies=10, top_k=3)
    engine = HashEngine(spread=600.0)
    found = _best_first(settings, engine, 0.0, batch=7)
    assert found.work["evaluations"] < found.work["nodes"]
    assert chess.Board().epd() in {epd for epd, _, _ in engine.asked}
