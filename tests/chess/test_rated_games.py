"""Samples of rated games, and fits of the time that people spend."""

import dataclasses
import math
import random

import chess
import numpy as np
import pytest

from precomp_games.chess.model.clock_times import KNOTS, NAMES, ClockTimes, expected_seconds, fit_clock_times
from precomp_games.chess.model.people_checks import check_seconds
from precomp_games.chess.model.people_values import PeopleFit, PeopleRow, PeopleUtility
from precomp_games.chess.model.rated_games import TimedMove, band, rated_games, spread

TRUE = ClockTimes(
    "blitz",
    (0.3, 0.5, 0.9, 1.2, 1.4, 1.5, 1.3, 0.9, 0.3, -0.3, -0.2, 0.1, 0.0, -0.2, -0.2, -0.3, 0.4, 0.9, 0.4),
    (0.0,) * len(NAMES),
    1,
    1,
)
ROW = PeopleRow("blitz", None, 1500.0, 1, 1, PeopleUtility(0.25, 1.5, 1.0))


def rated_game(number, *, plies=50, clocks=True, **tags):
    """PGN of random moves, with seconds that grow with the half-move."""
    rng, board, words = random.Random(number), chess.Board(), []
    left = [180, 180]
    for ply in range(plies):
        moves = list(board.legal_moves)
        if not moves:
            break
        left[ply % 2] -= (ply // 10 - 2) if ply > 1 else 0
        san = board.san(move := rng.choice(moves))
        words.append(
            f"{san} {{[%clk 0:{left[ply % 2] // 60:02}:{left[ply % 2] % 60:02}]}}" if clocks else san
        )
        board.push(move)
    result = ("1-0", "0-1", "1/2-1/2")[number % 3]
    told = {"White": f"A{number}", "Black": "B", "Result": result, "Date": f"{2000 + number}.01.01"}
    told |= {"WhiteElo": "1500", "BlackElo": "1700", "TimeControl": "180+2"} | tags
    head = "".join(f'[{name} "{value}"]\n' for name, value in told.items())
    return f"{head}\n{' '.join(words)} {result}\n\n"


def test_what_is_drawn_is_what_the_file_says(tmp_path):
    path = tmp_path / "games.pgn"
    left_out = (
        rated_game(30, clocks=False),
        rated_game(31, WhiteElo="?"),
        rated_game(32, TimeControl="-"),
        rated_game(33, Result="*").replace(" 1-0\n", " *\n"),
        rated_game(34, TimeControl="60+0"),
    )
    path.write_text("".join(map(rated_game, range(20))) + "".join(left_out))
    drawn = rated_games(path, positions=2, speeds=("blitz",), seed=1)
    assert drawn.games == 20
    assert drawn == rated_games(path, positions=2, speeds=("blitz",), seed=1)
    assert len(drawn.positions) <= 40 and {each.game for each in drawn.positions} == set(range(20))
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
    path.write_text("".join(left_out[:4]))
    with pytest.raises(ValueError, match=r"rated_games\(\): expected path to have games with WhiteElo"):
        rated_games(path)


def test_positions_are_spread_over_speeds_and_bands(tmp_path):
    path = tmp_path / "games.pgn"
    kinds = ["60+0"] * 24 + ["180+0"] * 6
    path.write_text("".join(rated_game(k, TimeControl=control) for k, control in enumerate(kinds)))
    drawn = rated_games(path, positions=1)
    some = spread(drawn.positions, 8)
    assert [each.speed for each in some].count("blitz") == 4
    assert len(set(spread(drawn.positions, 1000))) == len(drawn.positions)
    assert (band(1499.5), band(1500), band(0)) == (1200, 1500, 0)


def simulated_moves(count, seed=0):
    """Moves whose seconds scatter around what is expected far more than a Poisson's would."""
    rng = np.random.default_rng(seed)
    moves = []
    for game in range(count):
        rating, control = float(rng.integers(1000, 2200)), ((180, 0), (180, 2), (300, 3))[game % 3]
        tempo = rng.gamma(4.0, 0.25)
        for ply, num in zip(
            rng.integers(2, 130, size=8).tolist(), rng.integers(1, 60, size=8).tolist(), strict=True
        ):
            seconds = tempo * rng.gamma(1.0)
            moves.append(TimedMove(game, 2000.0, "blitz", control, rating, ply, num, seconds))
    expected = expected_seconds(TRUE, moves).tolist()
    return [
        dataclasses.replace(move, seconds=mean * move.seconds)
        for move, mean in zip(moves, expected, strict=True)
    ]


def test_a_fit_recovers_what_seconds_were_simulated_from():
    (fit,) = fit_clock_times(simulated_moves(2000))
    off = (np.array(fit.coefficients) - TRUE.coefficients) / fit.errors
    assert np.abs(off).max() < 3.5 and 0.5 < np.sqrt((off**2).mean()) < 1.6
    people = PeopleFit((ROW,), (fit,), "", "", "")
    classes = check_seconds(people, simulated_moves(1500, seed=1))
    assert len(classes) == 10 and all(abs(x.expected - x.spent) < 3.5 * x.error + 0.1 for x in classes)
    with pytest.raises(ValueError, match="expected moves of 50 games"):
        fit_clock_times(simulated_moves(20))


def test_clocks_run_down_by_what_is_spent():
    times = dataclasses.replace(TRUE, control=(180, 2))
    assert times.clock(2) == times.clock(3) == 180.0
    assert times.clock(6) == pytest.approx(180.0 - times.seconds(2) - times.seconds(4) + 4.0)
    assert dataclasses.replace(TRUE, control=(1, 0)).clock(80) == 1.0
    seconds = [times.seconds(20, moves) for moves in range(15, 60)]
    assert seconds == sorted(seconds) and times.seconds(200) == times.seconds(2 * KNOTS[-1] - 2)
    assert times.saved(20) == times.seconds(20) - 1.0
    assert dataclasses.replace(TRUE, control=(1, 0)).saved(20) == 0.0
    with pytest.raises(ValueError, match=r"expected control\[0\] to be"):
        dataclasses.replace(TRUE, control=(math.nan, 0))
