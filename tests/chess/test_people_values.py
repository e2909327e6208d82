"""Leaf values of people: fits, files, and settings that name them."""

import dataclasses
import json
import math

import chess
import numpy as np
import pytest

from precomp_games.chess import PreparationSettings
from precomp_games.chess.engines.searches import Line
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.model.people_checks import check_values
from precomp_games.chess.model.people_values import (
    TERMS,
    PeopleFit,
    PeopleUtility,
    fit_people,
    load_people,
    save_people,
)
from precomp_games.chess.model.rated_games import RatedPosition
from tests.chess.test_preparation import HashEngine
from tests.chess.test_rated_games import ROW, TRUE

BLITZ = PeopleUtility(0.25, 1.8, 1.3, -0.3)
BULLET = PeopleUtility(0.15, 1.8, 2.2, -0.1)


def simulated(true, speed, games, *, rating=1600.0, first=0, seed=0):
    """Two positions of each game, with one result: draws are half of what is close to even."""
    rng = np.random.default_rng(seed)
    move = round(100 * true.move / true.pawn)  # in centipawns, which evaluations count
    positions, lines = [], []
    for game in range(first, first + games):
        mean, apart = rng.normal(rating, 40), rng.normal(0, 60)
        cp, clocks = int(rng.normal(0, 200)), np.exp(rng.normal(4, 0.3, size=2))
        z = true.pawn * cp / 100 + true.of_ratings(2 * apart) + true.of_clocks(*clocks)
        p = 1 / (1 + math.exp(-z))
        half = min(p, 1 - p) / 2
        score = float(rng.choice([1.0, 0.5, 0.0], p=[p - half, 2 * half, 1 - p - half]))
        for side in (1, -1):
            of = (round(mean + side * apart), round(mean - side * apart))
            both = tuple(clocks.tolist())[::side]
            ended = score if side == 1 else 1 - score
            positions.append(RatedPosition(game, 2000.0, speed, of, both, "", ended))
            lines.append(Line("e2e4", side * cp - move, None))
    return positions, lines


def joined(*parts):
    return [x for part in parts for x in part[0]], [x for part in parts for x in part[1]]


def test_a_fit_recovers_what_games_were_simulated_from():
    rows = fit_people(
        *joined(simulated(BLITZ, "blitz", 1500), simulated(BULLET, "bullet", 3000, first=1500, seed=1))
    )
    whole = {row.speed: row for row in rows if row.band is None}
    assert list(whole) == ["bullet", "blitz"]
    for true, row in ((BULLET, whole["bullet"]), (BLITZ, whole["blitz"])):
        assert row.positions == 2 * row.games
        for name in TERMS:
            error = getattr(row.utility, f"{name}_error")
            assert abs(getattr(row.utility, name) - getattr(true, name)) < 3.5 * error
    # Both sides of a game are the same news twice: errors are those of one side.
    both = simulated(dataclasses.replace(BLITZ, move=0.0), "blitz", 1500)  # as many are ahead as behind
    alone, twice = (fit_people(*([part[::step] for part in both]))[0].utility.pawn_error for step in (2, 1))
    assert alone == pytest.approx(twice, rel=0.05)


def _apart(rows):
    return np.std([row.utility.pawn for row in rows])


def test_bands_of_few_games_lean_on_their_speed():
    parts = [simulated(BLITZ, "blitz", 300, rating=1050.0 + 300 * k, first=300 * k, seed=k) for k in range(4)]
    same, alone = joined(*parts), [fit_people(*part)[0] for part in parts]
    whole, *bands = fit_people(*same)
    assert whole.band is None and [row.band for row in bands] == [900, 1200, 1500, 1800]
    for own, wide in zip(bands, alone, strict=True):
        for name in ("pawn_error", "rating_error", "clock_error", "move_error"):
            assert getattr(own.utility, name) < getattr(wide.utility, name)
    assert np.std([row.utility.pawn for row in bands]) < np.std([row.utility.pawn for row in alone])
    other = joined(same, simulated(PeopleUtility(0.9, 1.8, 1.3), "blitz", 1200, rating=2250, first=2000))
    assert fit_people(*other)[-1].utility.pawn == pytest.approx(0.9, abs=0.15)  # one that differs does
    # Few games of another speed lean on the nearest one.
    rapid = joined(same, simulated(BLITZ, "rapid", 60, first=5000))
    few = fit_people(*rapid)[-1]
    assert few.speed == "rapid" and few.utility.clock_error < 0.7
    with pytest.raises(ValueError, match="expected positions of 50 games"):
        fit_people(*simulated(BLITZ, "blitz", 20))


def people(*rows):
    return PeopleFit(
        rows or fit_people(*simulated(BLITZ, "blitz", 400)), (TRUE,), "games", "Fish 1", "nodes=1"
    )


def test_later_games_say_what_predictions_are_worth():
    checks = check_values(people(), simulated(BLITZ, "blitz", 400), simulated(BLITZ, "blitz", 1500, seed=5))
    bits = {check.by: check.bits for check in checks}
    assert bits["nothing"] == pytest.approx(1.0)
    assert bits["both and clock"] < bits["both"] < min(bits["ratings"], bits["evaluation"]) < 1.0
    assert bits["the move as well"] < bits["both and clock"]
    assert bits["bands"] == pytest.approx(bits["the move as well"], abs=0.003)
    last = checks[-1]
    assert abs(last.slope - 1.0) < 3.5 * last.slope_error and checks[0].slope is None
    steep = people(dataclasses.replace(ROW, utility=PeopleUtility(0.75, 5.4, 3.9)))
    last = check_values(steep, simulated(BLITZ, "blitz", 40), simulated(BLITZ, "blitz", 1500, seed=5))[-1]
    assert last.slope < 0.7  # three times as much is promised


@pytest.mark.parametrize("speed", ["bullet", "blitz", "rapid", "classical"])
def test_what_is_shipped_grows_with_all_that_is_better(speed):
    fit = load_people()
    for rating in (0.0, 900.0, 1500.0, 1777.0, 2800.0):
        utility = fit.at(speed, rating)
        scores = [(None, -1), *((cp, None) for cp in range(-1000, 1001, 50)), (None, 1)]
        values = [utility.mover_utility(Line("e2e4", *score), chess.Board()) for score in scores]
        assert values == sorted(values) and 0.0 < values[0] < 0.3 and values[21] == 0.5
        assert 0.02 < utility.mover_utility(Line("e2e4", 100, None), chess.Board()) - 0.5 < 0.09
        assert utility.of_ratings(200) > 0 and utility.of_clocks(60, 60) == 0.0
        assert utility.of_clocks(60, 60, saved=5) == utility.of_clocks(65, 60) > 0 > utility.of_clocks(0, 60)
        assert utility.mover_utility(Line("e2e4", 0, None), chess.Board(), 1.0) == pytest.approx(0.7310586)
        early, late = (chess.Board(f"{chess.STARTING_BOARD_FEN} w - - 0 {number}") for number in (3, 30))
        assert utility.of_move(60) == utility.move < utility.of_move(4) == utility.move / 2 < 0.0
        for board, ply in ((early, 4), (late, 58)):
            logit = utility.of_move(ply)
            value = utility.mover_utility(Line("e2e4", 0, None), board)
            assert value == pytest.approx(1 / (1 + math.exp(-logit)))
        times = fit.times_at(speed, rating)
        assert 0.2 < times.seconds(4) < times.seconds(30)
        assert times.clock(20) > times.clock(40) > 0.3 * times.control[0]


def test_between_bands_all_is_linear():
    high = PeopleUtility(0.45, 2.5, 2.0)
    rows = [
        dataclasses.replace(ROW, band=900, rating=1000.0),
        dataclasses.replace(ROW, band=1800, rating=2000.0, utility=high),
    ]
    fit = people(ROW, *rows)
    assert fit.at("blitz", 1250.0).pawn == pytest.approx(0.30)
    assert fit.at("blitz", 100.0) == ROW.utility and fit.at("rapid", 3000.0) == high
    with pytest.raises(ValueError, match="expected speed to be"):
        fit.at("hyper", 1500.0)
    with pytest.raises(ValueError, match="expected rows with one of each whole speed"):
        people(rows[0])


_NONE = ["", "[]", "{}", '{"format": "precomp-games calibration 1"}', "[" * 100_000]
_WRONG: list[tuple[str, object]] = [
    ("format", "precomp-games people 1"),
    ("rows", []),
    ("rows", {"a": 1}),
    ("times", []),
    ("source", 7),
    ("source", "\x1b[2J"),
    ("evidence", []),
    ("row.speed", "hyper"),
    ("row.band", "low"),
    ("row.games", 0),
    ("row.rating", math.nan),
    ("utility.pawn", -0.1),
    ("utility.pawn", 1e9),
    ("utility.clock", None),
    ("utility.more", 1.0),
    ("time.speed", "x"),
    ("time.coefficients", [0.0] * 3),
    ("time.coefficients", ["0"] * 19),
    ("time.coefficients", 3),
    ("time.errors", [math.inf] * 19),
    ("time.control", [0]),
    ("time.control", {"0": 1, "1": 2}),
    ("time.control", [-5, 0]),
]


def test_files_are_read_again_and_those_that_are_none_refused(tmp_path):
    path = tmp_path / "fit.json"
    fit = dataclasses.replace(people(ROW), evidence={"games": 3})
    save_people(fit, path)
    assert load_people(path) == fit and load_people(path).evidence == {"games": 3}
    texts = list(_NONE)
    for field, value in _WRONG:
        told = json.loads(path.read_text())
        of, _, name = field.rpartition(".")
        row = told["rows"][0]
        {"": told, "row": row, "utility": row["utility"], "time": told["times"][0]}[of][name] = value
        texts.append(json.dumps(told))
    for text in texts:
        path.write_text(text)
        expected = r"load_people\(\): expected values of people's games, got '.*fit.json' \("
        with pytest.raises(ValueError, match=expected):
            load_people(path)
            pytest.fail(f"taken: {text[:2000]}")


def test_settings_name_a_speed_and_a_rating(tmp_path):
    settings = PreparationSettings(evaluation="people", speed="bullet", rating=1900)
    value = preparation_policies(settings, HashEngine()).leaf_value
    assert value.utility == load_people().at("bullet", 1900) and not settings.touches
    state = settings.game().new_initial_state()
    assert 0.3 < value.evaluate_batch([state])[0] < 0.7
    save_people(people(ROW), tmp_path / "fit.json")
    own = dataclasses.replace(settings, calibration=str(tmp_path / "fit.json"))
    assert own.touches == {"calibration": own.calibration}
    with pytest.raises(ValueError, match="a calibration that is shipped"):
        preparation_policies(own, HashEngine())
    trusted = dataclasses.replace(own, trusted=True)
    assert preparation_policies(trusted, HashEngine()).leaf_value.utility == ROW.utility
    with pytest.raises(ValueError, match="expected speed to be"):
        PreparationSettings(speed="fast")
    assert settings.kind.score_name == "People's score" and "people's rated games" in settings.kind.note()


def test_evaluations_ask_for_one_line_where_few_positions_need_a_menu():
    engine = HashEngine()
    for menu, evaluation, lines in ((4, "people", 1), (1, "people", 2), (4, "linear", 4)):
        settings = PreparationSettings(menu=menu, evaluation=evaluation)
        policies = preparation_policies(settings, engine)
        assert policies.leaf_value.multipv == lines
        assert policies.sigma_pre[0].multipv == settings.multipv
