"""A player's games, counted: the same as a count game by game."""

import collections
import dataclasses
import io
import math
import random
import statistics
import types
from pathlib import Path

import chess
import chess.pgn
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from precomp_games.chess.data.game_records import bounds_of, month_of, position_hash, read_games
from precomp_games.chess.data.scouting import GameFilter, ScoutedGames, Tally, scout
from precomp_games.chess.game import move_of
from precomp_games.chess.model.people import read_person
from precomp_games.chess.study.scout_page import line_rows, scout_pgn, write_scout_page
from tests.oracles.games import SEEDS
from tests.oracles.pgn import game
from tests.properties import examples

_SAMPLE = Path(__file__).parents[2] / "precomp_games" / "commands" / "data" / "karpov_sample.pgn"
_PLIES = 60


# -- game by game ------------------------------------------------------------------------------------------


def played_games(path, player):
    """Return the player's games, from its side and in the order of time, as they are read one by one."""
    games = []
    for record in read_games(path, player, max_plies=_PLIES, clocks=True):
        (color,) = record.own
        white = {"1-0": 1.0, "0-1": 0.0, "1/2-1/2": 0.5}.get(record.result, math.nan)
        rating, seconds = record.ratings[1 if color else 0], {}
        for ply in range(2 + (not color), len(record.actions), 2) if record.control else ():
            before, after = record.clocks[ply - 2], record.clocks[ply]
            if before is not None and after is not None and before + record.control[1] >= after:
                seconds[ply // 2 + 1] = before - after + record.control[1]
        found = types.SimpleNamespace(color=color, year=record.year, speed=record.speed, seconds=seconds)
        found.score, found.opponent = white if color else 1.0 - white, math.nan if rating is None else rating
        found.rated, found.keys = record.rated is True, record.keys
        found.moves = [move_of(action) for action in record.actions]
        games.append(found)
    dated = [each.year for each in games if each.year is not None]
    if dated and dated[0] > dated[-1]:
        games.reverse()
    return sorted(games, key=lambda each: -math.inf if each.year is None else each.year)


def last_of(games, default=None):
    """Return the time of the newest game."""
    return max((each.year for each in games if each.year is not None), default=default)


def check_tally(tally, games):
    scores = [each.score for each in games if not math.isnan(each.score)]
    both = [each for each in games if not math.isnan(each.score + each.opponent)]
    assert tally.games == len(games)
    assert tally.score == (pytest.approx(statistics.fmean(scores)) if scores else None)
    if len(scores) > 1:
        assert tally.error == pytest.approx(statistics.stdev(scores) / math.sqrt(len(scores)))
    points = sum(each.score for each in both)

    def missing(rating):
        return sum(1 / (1 + 10 ** ((each.opponent - rating) / 400)) for each in both) - points

    won_some = 0 < points < len(both)
    expected = pytest.approx(optimize.brentq(missing, -9e3, 9e3), abs=1e-3) if won_some else None
    assert tally.performance == expected


def check(found, every, kept, least, known, recent):
    """Compare what was counted with a count of the games that are kept."""
    assert found.games == len(kept)
    for color in found.colors:
        all_own, mine = (
            [each for each in games if each.color == (color.color == "white")] for games in (every, kept)
        )
        check_lines(color.lines, mine, least)
        check_color(color, all_own, mine, known, recent)
    assert {each.speed for each in found.speeds} == {each.speed for each in kept}
    for each in found.speeds:
        of = [played for played in kept if played.speed == each.speed]
        check_tally(each.tally, of)
        seconds = collections.defaultdict(list)
        for move, spent in (item for played in of for item in played.seconds.items()):
            seconds[move].append(spent)
        means = {
            move: (len(all_of), pytest.approx(statistics.fmean(all_of), abs=1e-3))
            for move, all_of in seconds.items()
        }
        assert each.seconds == means


def check_lines(root, games, least):
    """Compare the tree of lines with the games of one color."""
    lines = collections.defaultdict(list)
    for each in games:
        for ply in range(len(each.moves) + 1):
            lines[tuple(each.moves[:ply])].append(each)
    stack = [((), root)]
    for history, line in stack:
        check_tally(line.tally, lines[history])
        assert line.last == last_of(lines[history])
        sizes = [each.tally.games for each in line.replies]
        assert sizes == sorted(sizes, reverse=True)
        stack += [((*history, each.move), each) for each in line.replies]
    frequent = {history for history, of in lines.items() if len(of) >= least or not history}
    assert {history for history, _ in stack} == frequent


def check_color(color, every, mine, known, recent):
    """Compare what a player knows and what is new with all games of one color, of which some are kept."""
    white = color.color == "white"
    met, left = collections.Counter(), {}
    for each in every:
        left[id(each)] = next((k for k, key in enumerate(each.keys) if met[key] < known), -1)
        met.update(set(each.keys))
    newest = last_of(mine, math.nan)
    last_year = [each for each in mine if each.year is not None and each.year > newest - 1.0]
    before = [each for each in mine if each.year is not None and each.year <= newest - 1.0]
    parts = {"all": mine, "last": mine[-recent:] if len(mine) > recent else []}
    parts |= {"year": last_year if before else [], "before": before}
    assert color.form.keys() == {name for name, part in parts.items() if part}
    for name, (tally, leaving) in color.form.items():
        check_tally(tally, parts[name])
        plies = [left[id(each)] for each in parts[name]]
        assert leaving.moves == collections.Counter((ply + 1) // 2 for ply in plies if ply > 0)
        assert leaving.stayed == plies.count(-1)
        assert leaving.by_player == sum(((ply - 1) % 2 == 0) == white for ply in plies if ply > 0)

    # What is new: no older game of the color, whether it is kept or not, has the move there.
    def own_moves(each):
        return list(zip(each.keys, each.moves, strict=True))[not white :: 2]

    older = [each for each in every if each.year is None or not each.year > newest - 1.0]
    old = {pair for each in older for pair in own_moves(each)}
    new = collections.defaultdict(list)
    for each in last_year if len(older) >= known else ():
        if (first := next((pair for pair in own_moves(each) if pair not in old), None)) is not None:
            new[first].append(each)
    sizes = sorted((len(of) for of in new.values() if len(of) > 1), reverse=True)
    assert [each.tally.games for each in color.new] == sizes[:10]
    for each in color.new:
        board = chess.Board()
        for move in each.line[:-1]:
            board.push(move)
        here = position_hash(board)
        check_tally(each.tally, new[here, each.line[-1]])
        assert each.before == sum(here in game.keys[not white :: 2] for game in older)
        moves = (move for game in older for key, move in own_moves(game) if key == here)
        most = collections.Counter(moves).most_common()
        assert each.instead in ([move for move, count in most if count == most[0][1]] or [None])


# -- files of games ----------------------------------------------------------------------------------------


def random_games(rng, count, dated=True):
    """Games of "Me" that share their first moves, with whatever tags games have."""
    text = ""
    for _ in range(count):
        board, words, left = chess.Board(), [], [300.0, 300.0]
        clocks = rng.random() < 0.7
        for ply in range(rng.choice((1, 2, 7, 12, 30, 70))):
            legal = sorted(board.legal_moves, key=chess.Move.uci)
            if not legal:
                break
            move = rng.choice(legal[:2] if ply < 8 else legal)
            left[ply % 2] += 2 - rng.randrange(12 if ply > 1 else 1)
            at = max(0, int(left[ply % 2]))
            words += [board.san(move)] + [f"{{[%clk 0:{at // 60:02}:{at % 60:02}]}}"] * clocks
            board.push(move)
        day = rng.choice(("{}.{:02}.{:02}", "{}.{:02}.??", "{}.??.??") if dated else ("????.??.??",))
        tags = {
            "Event": rng.choice(("Rated blitz game", "Casual game", "Unrated x", "?")),
            "TimeControl": rng.choice(("300+2", "60+0", "900+10", "-")),
            "WhiteElo": rng.choice(("1500", "1720", "?")),
            "BlackElo": rng.choice(("1480", "1650", "-")),
            "Date": day.format(rng.choice((2019, 2020, 2021)), rng.randrange(1, 13), rng.randrange(1, 29)),
            "Result": rng.choice(("1-0", "0-1", "1/2-1/2", "*")),
        }
        sides = ("Me", f"Other {rng.randrange(9)}")
        text += game(" ".join(words), *(sides if rng.random() < 0.6 else sides[::-1]), **tags)
    return text


_FIRST, _LAST = bounds_of("2020-03-01")[0], bounds_of("2021-06")[1]
_FILTERS = [
    (GameFilter(), lambda each: True),
    (GameFilter(color="white"), lambda each: each.color),
    (GameFilter(since=_FIRST, until=_LAST), lambda each: each.year and _FIRST <= each.year < _LAST),
    (GameFilter(speed=("blitz", "rapid")), lambda each: each.speed in ("blitz", "rapid")),
    (GameFilter(rating=(1500.0, 1700.0)), lambda each: 1500 <= each.opponent <= 1700),
    (GameFilter(rated=True), lambda each: each.rated),
]


@examples(32)
@given(
    seed=SEEDS,
    count=st.integers(20, 60),
    dated=st.booleans(),
    chosen=st.sampled_from(_FILTERS),
    how=st.fixed_dictionaries(
        {"least": st.integers(1, 3), "known": st.sampled_from([1, 3]), "recent": st.sampled_from([10, 100])}
    ),
)
def test_counts_are_those_of_games_one_by_one(tmp_path_factory, seed, count, dated, chosen, how):
    path = tmp_path_factory.mktemp("counts") / "games.pgn"
    path.write_text(random_games(random.Random(seed), count, dated))
    every, (filtered, fits) = played_games(path, "Me"), chosen
    kept = [each for each in every if fits(each)]
    found = scout(ScoutedGames.read(path, "Me", _PLIES), filtered, **how)
    check(found, every, kept, **how)
    assert sum(found.taken.values()) == len(every) - len(kept)


def test_days_have_bounds_and_months():
    march = 2021 + 2 / 12
    bounds = {"2021": (2021, 2022), "2021-02": (2021 + 1 / 12, march), "2021.12.31": (2022 - 1 / 372, 2022)}
    bounds |= dict.fromkeys(("2021-03-01", "20210301"), (march, march + 1 / 372))
    assert all(bounds_of(day) == pytest.approx(each) for day, each in bounds.items())
    months = {1984.5: "1984", 1984 + 0.5 / 12: "1984-01", 1984 + 11.98 / 12: "1984-12", 1984.501: "1984-07"}
    assert {year: month_of(year) for year in months} == months


@pytest.mark.parametrize("day", ["", "21-03-01", "2021-13", "2021-01-32", "2021-00", "March", "2021-03-01x"])
def test_what_is_no_day_is_refused(day):
    with pytest.raises(ValueError, match="expected a day, a month or a year"):
        bounds_of(day)


def test_a_file_that_begins_with_the_newest_game(tmp_path):
    """Its days are turned as well: of two games of one day the lower one is earlier."""
    days = [("1. d4 d5", "2021.05.02"), ("1. d4 Nf6", "2021.05.01"), ("1. e4 e5", "2021.05.01")]
    path = tmp_path / "games.pgn"
    path.write_text("".join(game(moves, "Me", "B", Date=day) for moves, day in days))
    read = ScoutedGames.read(path, "Me")
    assert read.place.tolist() == [2, 1, 0] and read.seen[read.table.ply == 0].tolist() == [2, 1, 0]


def test_games_against_oneself_are_of_neither_color(tmp_path):
    path = tmp_path / "games.pgn"
    path.write_text(game("1. e4", "Me", "Me") + game("1. d4", "Me", "B"))
    found = scout(ScoutedGames.read(path, "Me"))
    assert found.games == 1 and found.read == "1 game; 1 left out: games against oneself; 1 without a date"


def test_performance_of_a_score():
    """Against one rating it is that rating, and 191 more for three points of four."""
    ratings = np.full(4, 1600.0)
    assert Tally.of(np.array([1.0, 0.0, 0.5, 0.5]), ratings).performance == pytest.approx(1600.0)
    assert Tally.of(np.array([1.0, 1.0, 1.0, 0.0]), ratings).performance == pytest.approx(1790.85, abs=0.01)
    assert Tally.of(np.ones(4), ratings).performance is None


# -- what is written ---------------------------------------------------------------------------------------


def test_the_pgn_and_the_rows_have_the_lines():
    karpov = scout(ScoutedGames.read(_SAMPLE, "Karpov Anatoli"))
    text = io.StringIO(scout_pgn(karpov))
    for color in karpov.colors:
        read = chess.pgn.read_game(text)
        assert read.errors == []
        assert f"Karpov Anatoli with {color.color.capitalize()}" in read.headers["Event"]
        stack = [(read, color.lines)]
        for node, line in stack:
            assert [each.move for each in node.variations] == [each.move for each in line.replies]
            for child, reply in zip(node.variations, line.replies, strict=True):
                assert child.comment.startswith(f"{reply.tally.games} games (")
                stack.append((child, reply))
        rows = [row for each in line_rows(color) for _, row in each.flat()]
        words = sum(len([word for word in row.text.split() if not word.endswith(".")]) for row in rows)
        assert words == len(stack) - 1 and len(rows) < words
    assert chess.pgn.read_game(text) is None


def test_the_page_escapes_names(tmp_path):
    name = "<script>alert(1)</script> & {{7*7}}"
    path = tmp_path / "games.pgn"
    path.write_text(game("1. e4 e5", name, "B") * 2)
    found = scout(ScoutedGames.read(path, name), least=1)
    write_scout_page(tmp_path / "scout.html", found, {"Lines": "scout.pgn"})
    page = (tmp_path / "scout.html").read_text()
    assert "<script" not in page and "&lt;script&gt;alert(1)&lt;/script&gt; &amp; {{7*7}}" in page
    assert "script-src" not in page and "default-src &#39;none&#39;" in page and ">1. e4 e5</b>" in page
    assert "<script>" in chess.pgn.read_game(io.StringIO(scout_pgn(found))).headers["White"]


def test_a_person_is_read_once() -> None:
    """The games that were scouted are those that a model of the person is fitted to."""
    read = ScoutedGames.read(_SAMPLE, "Karpov Anatoli")
    once, twice = (read_person(str(_SAMPLE), "Karpov Anatoli", None, 30, each) for each in (read, None))
    for field in dataclasses.fields(once.table):
        np.testing.assert_array_equal(getattr(once.table, field.name), getattr(twice.table, field.name))
    assert (once.rating, once.speed, str(once.report)) == (twice.rating, twice.speed, str(twice.report))
