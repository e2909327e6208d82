"""Properties that all results share: one line, a small table, a frame, JSON, and plots."""

import dataclasses
import functools
import importlib
import inspect
import json
import math
import sys
from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree, make_policy
from precomp_games._support.results import Result, Shown
from precomp_games.algorithms import (
    best_first_precomputation,
    best_precomputation,
    certified_precomputation,
    judge_book,
    memory_frontier,
    meta_equilibrium,
    restricted_nash,
    solve,
)
from precomp_games.algorithms.lookahead import commit_against_lookahead, equilibrium_values
from precomp_games.algorithms.search import SearchBudget, alpha_beta
from precomp_games.chess import ChessGame, PreparationSettings, SearchLimit
from precomp_games.chess.play.match import MatchGame, MatchResult
from precomp_games.chess.play.match_statistics import MatchStatistics, sprt
from tests.oracles.chess_books import small_book
from tests.wrong_calls import FACES

matplotlib.use("Agg")


@functools.cache
def kuhn():
    game = pyspiel.load_game("kuhn_poker")
    sigma_pre, sigma = make_policy(game, "random(seed=3)"), make_policy(game, "uniform")
    return HistoryTree.from_game(game, sigma_pre=sigma_pre, sigma=sigma, penalties=0.01)


def certificate(evaluated):
    game = pyspiel.load_game("tic_tac_toe")
    sigma = make_policy(game, "uniform")
    if evaluated:
        return best_first_precomputation(game, sigma, sigma, 0.05, 0, lambda state: 0.0, gap=0.1)
    return certified_precomputation(game, sigma, sigma, 0.1, 0, epsilon=0.5, max_rollouts=2000)


def match(scores, book=None):
    games = tuple(MatchGame(k, (), score, "checkmate", 0) for k, score in enumerate(scores))
    return MatchResult(small_book() if book is None else book, games)


RESULTS: dict[str, Callable[[], Any]] = {
    "tree": kuhn,
    "best": lambda: best_precomputation(kuhn(), 0),
    "state": lambda: next(best_precomputation(kuhn(), 0).states()),
    "frontier": lambda: memory_frontier(kuhn(), 0),
    "judgment": lambda: judge_book(kuhn(), 0, [0]),
    "equilibrium of both": lambda: meta_equilibrium(kuhn()),
    "strategy": lambda: meta_equilibrium(kuhn()).strategies[1],
    "restricted": lambda: restricted_nash(kuhn(), 0, model_probability=0.5),
    "equilibrium": lambda: solve("kuhn_poker", method="cfr+", iterations=100, check_every=20),
    "certificate": lambda: certificate(False),
    "certified by evaluations": lambda: certificate(True),
    "commitment": lambda: commit_against_lookahead(kuhn().game, 0, 1, equilibrium_values(kuhn().game, 1)),
    "search": lambda: alpha_beta(pyspiel.load_game("tic_tac_toe").new_initial_state(), SearchBudget(depth=3)),
    "book": small_book,
    "match": lambda: match([1, 0.5, 0]),
    "statistics": lambda: MatchStatistics(3, 2, 1),
    "sprt": lambda: sprt([1, 0, 1], 0.0, 5.0),
}
made = functools.cache(lambda name: RESULTS[name]())


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_says_what_it_is(name):
    found = made(name)
    line, page, columns = repr(found), found._repr_html_(), found.columns()
    assert line.startswith(f"{type(found).__name__}(") and line.endswith(")")
    assert len(line) < 300 and "\n" not in line and " at 0x" not in line and "e-17" not in line
    assert page.startswith(("<table>", "<svg")) and " at 0x" not in page
    assert len({len(column) for column in columns.values()}) == 1
    told = found.to_json()
    assert json.loads(json.dumps(told, allow_nan=False)) == told and told


@pytest.mark.parametrize("name", RESULTS)
def test_frames_have_a_row_for_each_entry(name):
    pytest.importorskip("pandas")
    frame, columns = made(name).to_frame(), made(name).columns()
    assert list(frame.columns) == list(columns) and len(frame) == len(next(iter(columns.values())))


def test_frames_need_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ImportError, match=r"to_frame\(\) needs pandas: pip install 'precomp-games\[frames\]'"
    ):
        made("best").to_frame()


_NO_RESULTS = {"NodeValues", "SequenceGame"}


def test_public_classes_say_what_they_are():
    """Data show their fields, and games of OpenSpiel their own text."""
    for face in FACES:
        for name in importlib.import_module(face).__all__:
            kind = getattr(importlib.import_module(face), name)
            if inspect.isclass(kind) and not issubclass(kind, Exception):
                assert kind.__repr__ is not object.__repr__, f"{face}.{name}: inherit Shown"
                made_by_users = hasattr(kind.__init__, "_reads_annotations") or name in _NO_RESULTS
                if dataclasses.is_dataclass(kind) and not made_by_users:
                    assert issubclass(kind, Result), f"{face}.{name}: inherit Result"


def test_lines_leave_out_what_says_nothing():
    game = pyspiel.load_game("kuhn_poker")
    policy = make_policy(game, "noisy(policy=uniform(),epsilon=0.3)")
    assert repr(policy) == "_NoisyPolicy(game=kuhn_poker(), policy=UniformRandomPolicy, epsilon=0.3)"
    settings = PreparationSettings(penalty=0.01, max_plies=7, own_limit=SearchLimit(nodes=5))
    assert repr(settings) == "PreparationSettings(penalty=0.01, own_limit=nodes=5, max_plies=7)"
    assert repr(small_book()) == "Book(side='white', positions=4, distinct_positions=4)"

    @dataclasses.dataclass(frozen=True)
    class Found(Result):
        value: float
        gap: float
        shares: tuple[float, ...]
        rows: np.ndarray
        work: dict[str, int]
        game: object
        best: Shown
        never: float = math.nan
        kind: str = "plain"
        function: object = len

    found = Found(0.1 + 0.2, -5.55e-17, (1 / 3, -0.0), np.zeros((3, 2)), {"steps": 3}, ChessGame(), policy)
    line = (
        "value=0.3, gap=0, shares=(0.333333, 0), rows=float64[3, 2], work={'steps': 3}, game=python_chess(f"
    )
    assert repr(found).startswith(f"Found({line}") and repr(found).endswith("best=_NoisyPolicy)")
    told = found.to_json()
    assert told["never"] is None and told["rows"] == [[0.0, 0.0]] * 3 and told["shares"] == [1 / 3, 0.0]
    assert told["function"] == "len" and told["best"] == repr(policy)
    assert (
        dataclasses.replace(found, work=dict.fromkeys("abcdef", 1), value=math.inf).to_json()["value"] is None
    )
    assert "work=dict[6]" in repr(dataclasses.replace(found, work=dict.fromkeys("abcdef", 1)))
    many = dataclasses.replace(found, kind="many" * 20, function=repr, shares=(0.123456789,) * 4)
    assert (
        len(repr(many)) < 300 and "<script>" not in dataclasses.replace(found, kind="<script>")._repr_html_()
    )


def test_a_long_tuple_takes_no_time_and_moves_are_texts():
    @dataclasses.dataclass(frozen=True)
    class Found(Result):
        value: float
        many: tuple[Any, ...]

    class Untouched(tuple):
        def __iter__(self):
            pytest.fail("looked at")

    assert "many=Untouched[9])" in repr(Found(0.5, Untouched([1.0] * 9)))
    assert small_book().to_json()["positions"][1]["history"] == ["e2e4", "c7c5"]


def test_tables_have_the_numbers():
    best, frontier = made("best"), made("frontier")
    assert best.columns()["gain"].sum() == pytest.approx(best.utility - best.unprepared)
    assert best.columns()["infoset"] == [kuhn().key(state.infoset) for state in best.states()]
    assert frontier.columns()["utility"].tolist() == frontier.utilities.tolist()
    strategy = made("strategy")
    assert strategy.columns()["plan"].sum() == pytest.approx(strategy.expected_size)
    book = small_book().columns()
    assert book["after"][2:] == ["1. e4 e5", "1. e4 e5 2. Nf3 Nc6"] and book["play"] == [
        "e4",
        "Nf3",
        "Nf3",
        "Bb5",
    ]


def test_a_book_is_shown_on_a_board():
    page = small_book()._repr_html_()
    assert page.startswith("<svg") and page.count('class="arrow"') == 2 * 2  # e4 and d4, line and head
    assert "1. e4 e5 2. Nf3 Nc6 3. Bb5" in page


@pytest.mark.parametrize("name", ["frontier", "equilibrium", "equilibrium of both", "certificate"])
def test_plots(name):
    from matplotlib import pyplot

    found = made(name)
    axes = found.plot()
    assert axes.get_xlabel() and axes.lines
    again = found.plot(axes)
    assert again is axes
    pyplot.close("all")
    with pytest.raises(ValueError, match=r"\.plot\(\): expected axes to be matplotlib's axes, got 3$"):
        found.plot(3)


def test_plots_show_what_was_found():
    from matplotlib import pyplot

    frontier = made("frontier")
    exact, beyond = (line.get_xydata() for line in frontier.plot().lines)
    drawn = np.concatenate([exact, beyond[1:-1]])  # which meet, and end at the largest size
    np.testing.assert_array_equal(drawn, np.column_stack([frontier.sizes, frontier.utilities]))
    assert frontier.plot(most=9).get_xlim() == (0.0, 9.0)
    (line,) = made("equilibrium").plot().lines
    assert [tuple(point) for point in line.get_xydata()] == list(made("equilibrium").trace)
    found = made("certificate")
    upper, lower = found.plot().lines
    assert found.trace and upper.get_ydata()[-1] == found.upper and lower.get_ydata()[-1] == found.lower
    assert found.trace[-1][0] == found.work["rollouts"]
    pyplot.close("all")
