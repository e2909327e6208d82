"""Evaluations that are fitted to games."""

import dataclasses
import json
import math
import pickle
from typing import Any

import chess
import numpy as np
import pyspiel
import pytest

from precomp_games.chess import PreparationSettings, SearchLimit
from precomp_games.chess.engines.searches import Line
from precomp_games.chess.game import RULES_OF_CHESS
from precomp_games.chess.model.calibration import (
    CalibratedUtility,
    CalibrationSample,
    CalibrationScope,
    fit_calibration,
    load_calibration,
    played_samples,
    save_calibration,
)
from precomp_games.chess.model.model import preparation_policies
from tests.oracles.engines import HashEngine
from tests.oracles.files import with_value
from tests.oracles.games import uniform

SETTINGS = PreparationSettings(menu=8)
SCOPE = CalibrationScope("Stockfish 15.1", "nodes=5000", "nodes=1000", 8, 2, "softmax", 1.0, 40.0)
TRUE = CalibratedUtility((-0.3, 0.8, 0.3), 4.0, SCOPE)


def simulated(fit, count, *, games, draws, seed=0):
    """Positions whose expected scores are scattered around a fit's, and games of them.

    `draws`: how much of the probability of the rarer of a win and a loss goes over into draws.
    """
    rng = np.random.default_rng(seed)
    samples = []
    for _ in range(count):
        mate = int(rng.choice([-3, 3])) if rng.random() < 0.1 else None
        line = Line("e2e4", None if mate else int(rng.normal(0, 500)), mate)
        empty = CalibrationSample(line, int(rng.integers(-6, 7)), float(rng.choice([1, 10, 40])), 0, 0, 0)
        p = fit.expected(empty.line, empty.material)
        score = rng.beta(fit.prior_games * p, fit.prior_games * (1 - p))
        half = draws * min(score, 1 - score)
        odds = np.maximum([score - half, 2 * half, 1 - score - half], 0)
        wins, drawn, losses = rng.multinomial(games, odds / odds.sum()).tolist()
        samples.append(dataclasses.replace(empty, wins=wins, draws=drawn, losses=losses))
    return samples


def test_a_fit_recovers_what_games_were_simulated_from():
    true = dataclasses.replace(TRUE, prior_games=30.0)
    samples = simulated(true, 6000, games=30, draws=0.0, seed=1)  # n0 varies by 4 % from seed to seed
    fit = fit_calibration(samples, SETTINGS, "Stockfish 15.1 [Hash=1]")
    assert fit.made_for == SCOPE
    np.testing.assert_allclose(fit.coefficients, TRUE.coefficients, atol=0.05)
    assert fit.prior_games == pytest.approx(30.0, rel=0.1)
    off = [abs(fit.expected(s.line, s.material) - TRUE.expected(s.line, s.material)) for s in samples[:500]]
    assert max(off) < 0.04 and np.mean(off) < 0.01
    # Positions that do not differ need no games of their own.
    samples = simulated(dataclasses.replace(TRUE, prior_games=1e6), 3000, games=4, draws=0.5)
    assert fit_calibration(samples, SETTINGS, "x").prior_games > 30.0


def test_games_that_a_value_is_worth_make_the_best_estimate_where_games_are_drawn():
    # Three of a position's games predict the score of all of them.
    fit = fit_calibration(simulated(TRUE, 4000, games=6, draws=0.7), SETTINGS, "Stockfish 15.1")
    assert fit.prior_games < 3.0  # draws vary less than wins and losses: games inform more than they would
    rng, errors = np.random.default_rng(2), np.zeros(3)
    for each in simulated(TRUE, 6000, games=60, draws=0.7, seed=1):
        few = rng.multivariate_hypergeometric([each.wins, each.draws, each.losses], 3) @ [1.0, 0.5, 0.0]
        priors = fit.prior_games * np.array([0.5, 1.0, 2.0])
        estimate = (priors * fit.expected(each.line, each.material) + few) / (priors + 3)
        errors += (each.score / 60 - estimate) ** 2
    assert errors.argmin() == 1


_LEVEL, _AHEAD = chess.Board(), chess.Board("8/8/4k3/8/8/4K3/4P3/8 w - - 0 1")
_BEHIND = chess.Board("r1b2rk1/ppp2ppp/8/8/8/8/PPP2PPP/R1BQ1RK1 b - - 0 1")


@pytest.mark.parametrize("fit", [TRUE, load_calibration(), load_calibration("engines")])
def test_values_grow_with_the_score_and_stay_inside(fit):
    scores = [(None, -1), (None, -30), *((cp, None) for cp in range(-5000, 5001, 25)), (None, 30), (None, 1)]
    for board in (_LEVEL, _AHEAD, _BEHIND):
        values = [fit.mover_utility(Line("e2e4", *score), board) for score in scores]
        assert values == sorted(values) and 0.0 < values[0] < 0.2 and 0.8 < values[-1] < 1.0
    # A queen less, as much, a pawn more.
    values = [fit.mover_utility(Line("e2e4", 100, None), board) for board in (_BEHIND, _LEVEL, _AHEAD)]
    assert values == sorted(values) and len(set(values)) == 3


def test_what_is_shipped_is_for_the_defaults():
    fit = load_calibration()
    assert fit.misfits(SETTINGS, "Stockfish 15.1 [Hash=1]") == []
    assert 1.0 < fit.prior_games < 20.0
    settings = PreparationSettings(evaluation="calibrated", opponent_temperature_cp=20.0, menu=8)
    value = preparation_policies(settings, HashEngine()).leaf_value
    assert value.utility == fit
    # Whoever is to move prepares: what a level position is worth to it is White's, or one less it.
    for fen in ("", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 0 1"):
        state = pyspiel.load_game("python_chess", {"fen": fen}).new_initial_state()
        line = HashEngine().result(state.epd, settings.analyst_limit, 8).lines[0]
        mover = value.utility.mover_utility(line, state.board)
        assert value.evaluate_batch([state])[0] == (mover if not fen else 1.0 - mover)


def test_what_does_not_fit_is_reported():
    for changed, *words in (
        ({"analyst_limit": SearchLimit(nodes=9)}, "nodes=5000", "nodes=9"),
        ({"opponent_limit": SearchLimit(movetime_ms=9)}, "nodes=1000", "movetime=9"),
        ({"menu": 3}, "MultiPV 8", "not with 3"),
        ({"top_k": 9}, "MultiPV", "top_k = 2"),
        ({"opponent_plays": "bestmove"}, "softmax", "bestmove"),
        ({"opponent_temperature_cp": 41.0}, "r from 1 to 40 cp", "41"),
        ({"opponent_temperature_cp": (20.0, 80.0)}, "r from 1 to 40 cp", "20 to 80"),
        ({}, "Stockfish 15.1", "Stockfish 16."),
    ):
        engine = "Stockfish 15.1" if changed else "Stockfish 16"
        lines = TRUE.misfits(dataclasses.replace(SETTINGS, **changed), engine)
        assert all(word in " ".join(lines) for word in words), changed
        assert lines[-1].endswith("precomp-games calibrate.")


_OF_NO_FORM = ["", "nonsense", "[]", "{}", "[" * 100_000, '{"prior_games": ' + "9" * 10_000 + "}"]
_WRONG: dict[str, list[Any]] = {
    "format": ["precomp-games calibration 2"],
    "prior_games": [0, "4", math.nan, math.inf],
    "coefficients": [{"constant": 0.5}, [0.5] * 3],
    "coefficients.score": [-0.1],
    "coefficients.constant": [1e9, True, None],
    "made_for": ["Stockfish"],
    "made_for.engine": [7],
    "made_for.analyst": ["nodes=0"],
    "made_for.multipv": [0],
    "made_for.least_r": [50],
    "made_for.most_r": [math.nan],
    "evidence": [" " * (1 << 20)],
}


def test_files_come_back_as_they_were_and_those_that_are_none_are_refused(tmp_path):
    path = tmp_path / "fit.json"
    save_calibration(TRUE, path, {"games": 3})
    data = json.loads(path.read_text())
    assert load_calibration(path) == TRUE and data["evidence"] == {"games": 3}
    assert pickle.loads(pickle.dumps(TRUE)) == TRUE
    settings = PreparationSettings(evaluation="calibrated", calibration=str(path), trusted=True)
    assert preparation_policies(settings, HashEngine()).leaf_value.utility == TRUE
    with pytest.raises(ValueError, match="JSON"):
        save_calibration(TRUE, tmp_path / "other.json", {"games": math.nan})
    assert not (tmp_path / "other.json").exists()
    wrong = [json.dumps(with_value(data, at, value)) for at, values in _WRONG.items() for value in values]
    for text in [*_OF_NO_FORM, *wrong, "\xff" + json.dumps(data)]:
        path.write_text(text, encoding="latin-1")
        expected = r"load_calibration\(\): expected a calibration, got '.*fit.json' \("
        with pytest.raises(ValueError, match=expected):
            load_calibration(path)
            pytest.fail(f"taken: {text[:200]}")


def test_games_are_counted_for_the_side_to_move_and_depend_on_their_seed_alone():
    engine = HashEngine()
    value = preparation_policies(PreparationSettings(menu=3), engine).leaf_value
    mate_in_one = "6k1/5ppp/8/8/8/8/8/K3R3 w - - 0 1"
    game = pyspiel.load_game("python_chess", {**RULES_OF_CHESS, "fen": mate_in_one, "max_plies": 2})
    start = game.new_initial_state()

    def mates(state):
        won = [a for a in state.legal_actions() if "#" in state.action_to_string(a)]
        return {(won or state.legal_actions())[0]: 1.0}

    (sample,) = played_samples([start], mates, value, 20.0, 5, setting="mate")
    assert (sample.wins, sample.draws, sample.losses, sample.material) == (5, 0, 0, 2)
    assert sample.line == engine.result(start.epd, value.limit, 3).lines[0]
    assert (sample.opponent_temperature_cp, sample.setting, sample.score) == (20.0, "mate", 5.0)
    # Black to move can only wait: it is mated, or the game is too long.
    black = start.child(next(a for a in start.legal_actions() if start.action_to_string(a) == "Kb1"))
    (sample,) = played_samples([black], mates, value, 20.0, 5)
    assert (sample.wins, sample.draws, sample.losses, sample.material) == (0, 5, 0, -2)
    first = pyspiel.load_game("python_chess", {**RULES_OF_CHESS, "max_plies": 60}).new_initial_state()
    states = [first, first.child(first.legal_actions()[0])]
    both, again, one = (
        played_samples(some, uniform, value, 10.0, 4, seed=1) for some in (states, states, [first])
    )
    assert both == again and both[:1] == one
    assert [each.games for each in both] == [4, 4]
