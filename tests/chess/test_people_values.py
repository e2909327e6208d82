"""Rated games: samples, fits of scores and of the time that people spend, files, checks of predictions."""

import dataclasses
import itertools
import json
import math
from typing import Any

import chess
import numpy as np
import pytest

from precomp_games.chess import ChessGame, PreparationSettings
from precomp_games.chess.engines.searches import Line
from precomp_games.chess.game import action_of
from precomp_games.chess.model import people_checks
from precomp_games.chess.model.clock_times import KNOTS, NAMES, ClockTimes, expected_seconds, fit_clock_times
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.model.off_policy import Choices, move_slope, position_slope
from precomp_games.chess.model.people_values import (
    TERMS,
    PeopleFit,
    PeopleRow,
    PeopleUtility,
    fit_people,
    load_people,
    save_people,
)
from precomp_games.chess.model.rated_games import RatedPosition, TimedMove, band, rated_games, spread
from precomp_games.chess.model.saved_time import SavedTime
from tests.oracles.engines import HashEngine
from tests.oracles.files import with_value
from tests.oracles.pgn import rated_game

BLITZ = PeopleUtility(0.25, 1.8, 1.3, -0.3)
BULLET = PeopleUtility(0.15, 1.8, 2.2, -0.1)
ROW = PeopleRow("blitz", None, 1500.0, 1, 1, PeopleUtility(0.25, 1.5, 1.0))
_BY_PLY = (0.3, 0.5, 0.9, 1.2, 1.4, 1.5, 1.3, 0.9, 0.3, -0.3)
_OF_OTHERS = (-0.2, 0.1, 0.0, -0.2, -0.2, -0.3, 0.4, 0.9, 0.4)
TIMES = ClockTimes("blitz", _BY_PLY + _OF_OTHERS, (0.0,) * len(NAMES), 1, 1)


def people(*rows):
    """Return a fit with these rows, or of simulated games."""
    rows = rows or fit_people(*simulated(BLITZ, "blitz", 400))
    return PeopleFit(rows, (TIMES,), "games", "Fish 1", "nodes=1")


# -- samples -----------------------------------------------------------------------------------------------


def test_what_is_drawn_is_what_the_file_says(tmp_path):
    path = tmp_path / "games.pgn"
    without = [{"clocks": False}, {"WhiteElo": "?"}, {"TimeControl": "-"}]
    left_out = [rated_game(30 + k, **tags) for k, tags in enumerate(without)]
    left_out.append(rated_game(33, Result="*").replace(" 1-0\n", " *\n"))
    bullet = rated_game(34, TimeControl="60+0")
    path.write_text("".join([*map(rated_game, range(20)), *left_out, bullet]))
    drawn = rated_games(path, positions=2, speeds=("blitz",), seed=1)
    assert drawn == rated_games(path, positions=2, speeds=("blitz",), seed=1)
    assert drawn.games == 20 and len(drawn.positions) <= 40
    assert {each.game for each in drawn.positions} == set(range(20))
    for each in drawn.positions:
        white = each.epd.split()[1] == "w"
        score = (1.0, 0.0, 0.5)[each.game % 3]
        assert each.score == (score if white else 1.0 - score)
        assert each.ratings == ((1500, 1700) if white else (1700, 1500)) and each.rating == 1600.0
    for move in drawn.moves:
        assert move.seconds == 2 + move.ply // 10 - 2 and move.ply >= 2 and move.num_moves > 0
    earlier, later = drawn.parted(0.15)
    assert (earlier.games, later.games) == (17, 3)
    assert {each.game for each in later.moves} == {each.game for each in later.positions} == {17, 18, 19}
    path.write_text("".join(left_out))
    with pytest.raises(ValueError, match=r"rated_games\(\): expected path to have games with WhiteElo"):
        rated_games(path)


def test_positions_are_spread_over_speeds_and_bands(tmp_path):
    path = tmp_path / "games.pgn"
    kinds = ["60+0"] * 24 + ["180+0"] * 6
    path.write_text("".join(rated_game(k, TimeControl=control) for k, control in enumerate(kinds)))
    drawn = rated_games(path, positions=1)
    assert [each.speed for each in spread(drawn.positions, 8)].count("blitz") == 4
    assert len(set(spread(drawn.positions, 1000))) == len(drawn.positions)
    assert (band(1499.5), band(1500), band(0)) == (1200, 1500, 0)


# -- the time that people spend ----------------------------------------------------------------------------


def simulated_moves(count, seed=0):
    """Return moves whose seconds scatter around what is expected far more than a Poisson's would."""
    rng = np.random.default_rng(seed)
    moves, tempos = [], []
    for game in range(count):
        rating, control = float(rng.integers(1000, 2200)), ((180, 0), (180, 2), (300, 3))[game % 3]
        tempo = rng.gamma(4.0, 0.25)
        for ply, num in zip(rng.integers(2, 130, size=8), rng.integers(1, 60, size=8), strict=True):
            moves.append(TimedMove(game, 2000.0, "blitz", control, rating, int(ply), int(num), 0.0))
            tempos.append(tempo * rng.gamma(1.0))
    seconds = (expected_seconds(TIMES, moves) * tempos).tolist()
    return [dataclasses.replace(move, seconds=each) for move, each in zip(moves, seconds, strict=True)]


def test_a_fit_recovers_what_seconds_were_simulated_from():
    (fit,) = fit_clock_times(simulated_moves(2000))
    off = (np.array(fit.coefficients) - TIMES.coefficients) / fit.errors
    assert np.abs(off).max() < 3.5 and 0.5 < np.sqrt((off**2).mean()) < 1.6
    fits = PeopleFit((ROW,), (fit,), "", "", "")
    classes = people_checks.check_seconds(fits, simulated_moves(1500, seed=1))
    assert len(classes) == 10 and all(abs(x.expected - x.spent) < 3.5 * x.error + 0.1 for x in classes)
    with pytest.raises(ValueError, match="expected moves of 50 games"):
        fit_clock_times(simulated_moves(20))


def test_clocks_run_down_by_what_is_spent():
    times, short = (dataclasses.replace(TIMES, control=control) for control in ((180, 2), (1, 0)))
    assert times.clock(2) == times.clock(3) == 180.0
    assert times.clock(6) == pytest.approx(180.0 - times.seconds(2) - times.seconds(4) + 4.0)
    seconds = [times.seconds(20, moves) for moves in range(15, 60)]
    assert seconds == sorted(seconds) and times.seconds(200) == times.seconds(2 * KNOTS[-1] - 2)
    assert times.saved(20) == times.seconds(20) - 1.0
    assert (short.clock(80), short.saved(20)) == (1.0, 0.0)


@pytest.mark.parametrize("player", [0, 1])
def test_all_known_moves_but_the_first_save_time_which_adds_on_the_logit(player):
    times, utility = load_people().times_at("blitz", 1500.0), load_people().at("blitz", 1500.0)
    saved, state = SavedTime(times, utility, player), ChessGame({"max_plies": 100}).new_initial_state()
    expected = 0.0
    for ply, san in enumerate(["e4", "e5", "Nf3", "Nc6", "Bb5", "a6", "Ba4", "Nf6", "O-O"]):
        assert saved.seconds(state) == pytest.approx(expected)
        if ply % 2 == player:
            left = times.clock(ply)
            z = math.log(0.53 / 0.47) + utility.clock * math.log((left + expected) / left)
            assert saved.with_time(0.53, state) == pytest.approx(1.0 / (1.0 + math.exp(-z)))
            expected += times.saved(ply, len(state.legal_actions())) if ply >= 2 else 0.0
        state.apply_action(action_of(state.board.parse_san(san)))
    assert expected > 0.5
    assert [saved.with_time(each, state) for each in (0.0, 1.0)] == [0.0, 1.0]  # ended games stay


# -- what positions are worth ------------------------------------------------------------------------------


def simulated(true, speed, games, *, rating=1600.0, first=0, seed=0):
    """Return two positions of each game, with one result: draws are half of what is close to even."""
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
    return [list(itertools.chain(*each)) for each in zip(*parts, strict=True)]


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


def test_bands_of_few_games_lean_on_their_speed():
    parts = [simulated(BLITZ, "blitz", 300, rating=1050.0 + 300 * k, first=300 * k, seed=k) for k in range(4)]
    same, alone = joined(*parts), [fit_people(*part)[0] for part in parts]
    whole, *bands = fit_people(*same)
    assert whole.band is None and [row.band for row in bands] == [900, 1200, 1500, 1800]
    for own, wide in zip(bands, alone, strict=True):
        for name in TERMS:
            assert getattr(own.utility, f"{name}_error") < getattr(wide.utility, f"{name}_error")
    assert np.std([row.utility.pawn for row in bands]) < np.std([row.utility.pawn for row in alone])
    other = joined(same, simulated(PeopleUtility(0.9, 1.8, 1.3), "blitz", 1200, rating=2250, first=2000))
    assert fit_people(*other)[-1].utility.pawn == pytest.approx(0.9, abs=0.15)  # one that differs does
    # Few games of another speed lean on the nearest one.
    few = fit_people(*joined(same, simulated(BLITZ, "rapid", 60, first=5000)))[-1]
    assert few.speed == "rapid" and few.utility.clock_error < 0.7
    with pytest.raises(ValueError, match="expected positions of 50 games"):
        fit_people(*simulated(BLITZ, "blitz", 20))


def test_later_games_say_what_predictions_are_worth():
    earlier, later = simulated(BLITZ, "blitz", 400), simulated(BLITZ, "blitz", 1500, seed=5)
    first, *_, last = checks = people_checks.check_values(people(), earlier, later)
    bits = {check.by: check.bits for check in checks}
    assert bits["nothing"] == pytest.approx(1.0) and first.slope is None
    assert bits["both and clock"] < bits["both"] < min(bits["ratings"], bits["evaluation"]) < 1.0
    assert bits["the move as well"] < bits["both and clock"]
    assert bits["bands"] == pytest.approx(bits["the move as well"], abs=0.003)
    assert abs(last.slope - 1.0) < 3.5 * last.slope_error
    steep = people(dataclasses.replace(ROW, utility=PeopleUtility(0.75, 5.4, 3.9)))
    assert (
        people_checks.check_values(steep, earlier, later)[-1].slope < 0.7
    )  # three times as much is promised
    classes = people_checks.value_classes(people(), *later)
    assert [each.positions for each in classes] == [300] * 10
    expected = [each.expected for each in classes]
    assert expected == sorted(expected) and expected[0] < 0.35 and expected[-1] > 0.65
    assert all(abs(each.scored - each.expected) < 4.0 * each.error for each in classes)


@pytest.mark.parametrize("speed", ["bullet", "blitz", "rapid", "classical"])
def test_what_is_shipped_grows_with_all_that_is_better(speed):
    fit = load_people()
    for rating in (0.0, 900.0, 1500.0, 1777.0, 2800.0):
        utility = fit.at(speed, rating)

        def worth(cp, mate=None, board=None, more=0.0, utility=utility):
            return utility.mover_utility(Line("e2e4", cp, mate), board or chess.Board(), more)

        values = [worth(None, -1), *(worth(cp) for cp in range(-1000, 1001, 50)), worth(None, 1)]
        assert values == sorted(values) and 0.0 < values[0] < 0.3 and values[21] == 0.5
        assert 0.02 < worth(100) - 0.5 < 0.09
        assert utility.of_ratings(200) > 0 and utility.of_clocks(60, 60) == 0.0
        assert utility.of_clocks(60, 60, saved=5) == utility.of_clocks(65, 60) > 0 > utility.of_clocks(0, 60)
        assert worth(0, more=1.0) == pytest.approx(0.7310586)
        assert utility.of_move(60) == utility.move < utility.of_move(4) == utility.move / 2 < 0.0
        for number, ply in ((3, 4), (30, 58)):
            board = chess.Board(f"{chess.STARTING_BOARD_FEN} w - - 0 {number}")
            assert worth(0, board=board) == pytest.approx(1 / (1 + math.exp(-utility.of_move(ply))))
        times = fit.times_at(speed, rating)
        assert 0.2 < times.seconds(4) < times.seconds(30)
        assert times.clock(20) > times.clock(40) > 0.3 * times.control[0]


def test_between_bands_all_is_linear():
    high = PeopleUtility(0.45, 2.5, 2.0)
    low = dataclasses.replace(ROW, band=900, rating=1000.0)
    fit = people(ROW, low, dataclasses.replace(ROW, band=1800, rating=2000.0, utility=high))
    assert fit.at("blitz", 1250.0).pawn == pytest.approx(0.30)
    assert fit.at("blitz", 100.0) == ROW.utility and fit.at("rapid", 3000.0) == high
    with pytest.raises(ValueError, match="expected rows with one of each whole speed"):
        people(low)


_NONE = ["", "[]", "{}", '{"format": "precomp-games calibration 1"}', "[" * 100_000]
_WRONG: dict[str, list[Any]] = {
    "format": ["precomp-games people 1"],
    "rows": [[], {"a": 1}],
    "times": [[]],
    "source": [7, "\x1b[2J"],
    "evidence": [[]],
    "rows.0.speed": ["hyper"],
    "rows.0.band": ["low"],
    "rows.0.rating": [math.nan],
    "rows.0.utility.pawn": [-0.1, 1e9],
    "rows.0.utility.more": [1.0],
    "times.0.coefficients": [[0.0] * 3, ["0"] * 19, 3],
    "times.0.errors": [[math.inf] * 19],
    "times.0.control": [[0], {"0": 1, "1": 2}, [-5, 0], [math.nan, 0]],
}


def test_files_are_read_again_and_those_that_are_none_refused(tmp_path):
    path = tmp_path / "fit.json"
    fit = dataclasses.replace(people(ROW), evidence={"games": 3})
    save_people(fit, path)
    assert load_people(path) == fit and load_people(path).evidence == {"games": 3}
    data = json.loads(path.read_text())
    wrong = [json.dumps(with_value(data, at, value)) for at, values in _WRONG.items() for value in values]
    for text in [*_NONE, *wrong]:
        path.write_text(text)
        with pytest.raises(
            ValueError, match=r"^load_people\(\): expected values of people's games, got '.*json' \("
        ):
            load_people(path)
            pytest.fail(f"taken: {text[:2000]}")


def test_settings_name_a_speed_and_a_rating():
    settings = PreparationSettings(evaluation="people", speed="bullet", rating=1900)
    value = preparation_policies(settings, HashEngine()).leaf_value
    assert value.utility == load_people().at("bullet", 1900) and not settings.touches
    assert 0.3 < value.evaluate_batch([settings.game().new_initial_state()])[0] < 0.7
    assert "people's rated games" in settings.kind.note()
    own = dataclasses.replace(settings, calibration="fit.json")  # see test_model_files.py
    assert own.touches == {"calibration": "fit.json"}
    with pytest.raises(ValueError, match="a calibration that is shipped"):
        preparation_policies(own, HashEngine())


def test_evaluations_ask_for_one_line_where_few_positions_need_a_menu():
    for menu, evaluation, lines in ((4, "people", 1), (1, "people", 2), (4, "linear", 4)):
        settings = PreparationSettings(menu=menu, evaluation=evaluation)
        policies = preparation_policies(settings, HashEngine())
        assert policies.leaf_value.multipv == lines
        assert policies.sigma_pre[0].multipv == settings.multipv


# -- checks of replies and of moves ------------------------------------------------------------------------


def test_replies_cost_bits_and_errors_are_by_game():
    rows = [{1: 0.5, 2: 0.25, 3: 0.25}, {4: 0.5, 5: 0.5}, {6: 1.0}, {7: 0.75, 8: 0.25}]
    check = people_checks.check_replies(rows, [1, 5, 9, 8], np.array([0, 0, 1, 2]))
    assert (check.moves, check.games) == (4, 3)
    assert check.bits == pytest.approx((1 + 1 + 40 + 2) / 4)  # what is ruled out costs 40
    assert check.first == 0.25  # of equally likely moves the first one is the guess
    # The mean's error is that of three sums: (1 + 1, 40, 2) less as often the mean.
    assert check.bits_error == pytest.approx(math.hypot(2 - 22, 40 - 11, 2 - 11) / 4)
    values, games = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0, 0, 1, 1])
    assert people_checks.mean_of_games(values, games) == pytest.approx((0.5, math.sqrt(2.0) / 4))
    assert people_checks.mean_of_games(values, np.arange(4)) == pytest.approx((0.5, 0.25))


def test_ten_classes_hold_all_legal_moves():
    rng = np.random.default_rng(0)
    odds = rng.dirichlet([0.5] * 6, 4000)
    played = [int(rng.choice(6, p=row)) for row in odds]
    rows = [dict(enumerate(row.tolist())) for row in odds]
    classes = people_checks.reply_classes(rows, played, np.arange(4000))
    assert len(classes) == 10 and sum(each.pairs for each in classes) == 24_000
    assert sum(each.moves for each in classes) == 4000
    for k, each in enumerate(classes):
        assert k / 10 <= each.expected <= (k + 1) / 10
        assert abs(each.played - each.expected) < 4.0 * each.error
        assert each.played == pytest.approx(each.moves / each.pairs)
    sure = people_checks.reply_classes([{1: 1.0}], [1], np.array([0]))
    assert [(each.pairs, each.expected, each.played) for each in sure] == [(1, 1.0, 1.0)]


def chosen(slope, *, positions=60, games=150, seed=0):
    """Return games through positions, three moves at each, whose real gains are `slope` times predicted ones.

    A position has a gain of its own, which comparisons of its moves must not see.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for position in range(positions):
        base, gains = rng.normal(0.0, 0.1), rng.normal(0.0, 0.1, 3)
        for game in rng.choice(2000, games, replace=False).tolist():
            move = int(rng.integers(3))
            real = base + slope * gains[move] + rng.normal(0.0, 0.4)
            rows.append((position, 3 * position + move, game, real, gains[move], 2.0 * base))
    columns = np.array(rows).T
    return Choices(*columns[:3].astype(np.int64), *columns[3:])


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_moves_that_were_chosen_say_what_gains_were(slope):
    choices = chosen(slope)
    found = move_slope(choices, 20)
    assert len(found.points) == 60 and found.games == 9000 and found.intercept == 0.0
    assert abs(found.slope - slope) < 3.5 * found.error
    assert found == move_slope(choices, 20)
    # The same by hand: the best of each position against its others, weighted by inverse variances.
    top, bottom = 0.0, 0.0
    for position in range(60):
        here = choices.position == position
        best = here & (choices.predicted == choices.predicted[here].max())
        both = [best, here & ~best]
        gain, real = (
            -np.diff([of[part].mean() for part in both])[0] for of in (choices.predicted, choices.real)
        )
        weight = 1.0 / sum(1.0 / part.sum() for part in both)
        top += weight * gain * real
        bottom += weight * gain**2
    assert found.slope == pytest.approx(top / bottom)
    assert found.error == pytest.approx(0.4 / math.sqrt(bottom), rel=0.25)


def test_positions_are_compared_by_what_the_evaluation_says_before_a_move_of_many_games():
    found = position_slope(chosen(0.0, positions=200))
    assert len(found.points) == 200 and abs(found.slope - 0.5) < 3.5 * found.error
    assert found.intercept == pytest.approx(0.0, abs=0.02)
    few = chosen(1.0, positions=4, games=60)  # of each move some twenty games
    assert move_slope(few, 5).games == 240
    with pytest.raises(ValueError, match="expected choices of two positions or more"):
        move_slope(few, 50)
