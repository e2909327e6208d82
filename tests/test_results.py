"""Properties that all results share: one line, a small table, a frame, JSON, and plots."""

import dataclasses
import functools
import importlib
import inspect
import json
import math
import sys
from typing import Any

import matplotlib
import numpy as np
import pyspiel
import pytest
from matplotlib import pyplot

from precomp_games import HistoryTree, algorithms, make_policy
from precomp_games._support.results import Result, Shown
from precomp_games.algorithms import lookahead, search
from precomp_games.chess import ChessGame, PreparationSettings, SearchLimit
from precomp_games.chess.play.match import MatchGame, MatchResult
from precomp_games.chess.play.match_statistics import MatchStatistics, sprt
from tests.oracles.chess_books import small_book
from tests.oracles.games import kuhn_poker, uniform
from tests.wrong_calls import FACES

matplotlib.use("Agg")


@functools.cache
def kuhn():
    sigma_pre = make_policy(kuhn_poker(), "random(seed=3)")
    return HistoryTree.from_game(kuhn_poker(), sigma_pre=sigma_pre, sigma=uniform, penalties=0.01)


@functools.cache
def made(name):
    return RESULTS[name]()


_BOARD = (pyspiel.load_game("tic_tac_toe"), uniform, uniform)


def _match():
    scores = enumerate((1, 0.5, 0))
    return MatchResult(small_book(), tuple(MatchGame(k, (), score, "checkmate", 0) for k, score in scores))


RESULTS: dict[str, Any] = {
    "tree": kuhn,
    "best": lambda: algorithms.best_precomputation(kuhn(), 0),
    "state": lambda: next(made("best").states()),
    "frontier": lambda: algorithms.memory_frontier(kuhn(), 0),
    "judgment": lambda: algorithms.judge_book(kuhn(), 0, [0]),
    "equilibrium of both": lambda: algorithms.meta_equilibrium(kuhn()),
    "strategy": lambda: made("equilibrium of both").strategies[1],
    "restricted": lambda: algorithms.restricted_nash(kuhn(), 0, model_probability=0.5),
    "equilibrium": lambda: algorithms.solve("kuhn_poker", method="cfr+", iterations=100, check_every=20),
    "certificate": lambda: algorithms.certified_precomputation(
        *_BOARD, 0.1, 0, epsilon=0.5, max_rollouts=999
    ),
    "evaluations": lambda: algorithms.best_first_precomputation(*_BOARD, 0.05, 0, lambda state: 0.0, gap=0.1),
    "commitment": lambda: lookahead.commit_against_lookahead("kuhn_poker", 0, 1, lambda state: 0.0),
    "search": lambda: search.alpha_beta(_BOARD[0].new_initial_state(), search.SearchBudget(depth=3)),
    "book": small_book,
    "match": _match,
    "statistics": lambda: MatchStatistics(3, 2, 1),
    "sprt": lambda: sprt([1, 0, 1], 0.0, 5.0),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_says_what_it_is(name):
    found = made(name)
    line, page, columns = repr(found), found._repr_html_(), found.columns()
    assert line.startswith(f"{type(found).__name__}(") and line.endswith(")")
    assert len(line) < 300 and "\n" not in line and " at 0x" not in line and "e-17" not in line
    assert page.startswith(("<table>", "<svg")) and " at 0x" not in page
    (rows,) = {len(column) for column in columns.values()}
    as_json = found.to_json()
    assert json.loads(json.dumps(as_json, allow_nan=False)) == as_json and as_json
    pytest.importorskip("pandas")
    frame = found.to_frame()
    assert list(frame.columns) == list(columns) and len(frame) == rows


def test_frames_need_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_frame\(\) needs pandas: pip install 'precomp-games\[fra"):
        made("best").to_frame()


def test_public_classes_say_what_they_are():
    """Data show their fields, and games of OpenSpiel their own text."""
    for face in FACES:
        for name in importlib.import_module(face).__all__:
            kind = getattr(importlib.import_module(face), name)
            if inspect.isclass(kind) and not issubclass(kind, Exception):
                assert kind.__repr__ is not object.__repr__, f"{face}.{name}: inherit Shown"
                made_by_users = hasattr(kind.__init__, "_reads_annotations")
                if dataclasses.is_dataclass(kind) and not made_by_users:
                    is_result = issubclass(kind, Result) or name in ("NodeValues", "SequenceGame")
                    assert is_result, f"{face}.{name}: inherit Result"


# -- lines and JSON -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Found(Result):
    value: float
    gap: float
    shares: tuple[Any, ...]
    rows: np.ndarray
    work: dict[str, int]
    game: object
    best: Shown
    never: float = math.nan
    kind: str = "plain"
    function: object = len


_POLICY = make_policy(kuhn_poker(), "noisy(policy=uniform(),epsilon=0.3)")
_FOUND = Found(0.1 + 0.2, -5.55e-17, (1 / 3, -0.0), np.zeros((3, 2)), {"steps": 3}, ChessGame(), _POLICY)


def test_a_line_is_short_rounds_and_leaves_out_defaults():
    settings = PreparationSettings(penalty=0.01, max_plies=7, own_limit=SearchLimit(nodes=5))
    assert repr(settings) == "PreparationSettings(penalty=0.01, own_limit=nodes=5, max_plies=7)"
    assert repr(_POLICY) == "_NoisyPolicy(game=kuhn_poker(), policy=UniformRandomPolicy, epsilon=0.3)"
    assert repr(small_book()) == "Book(side='white', positions=4, distinct_positions=4)"
    found = functools.partial(dataclasses.replace, _FOUND)
    line = "Found(value=0.3, gap=0, shares=(0.333333, 0), rows=float64[3, 2], work={'steps': 3}, game=python"
    assert repr(_FOUND).startswith(line) and repr(_FOUND).endswith("best=_NoisyPolicy)")
    assert "work=dict[6]" in repr(found(work=dict.fromkeys("abcdef", 1)))
    assert len(repr(found(kind="many" * 20, function=repr, shares=(0.123456789,) * 4))) < 300
    assert "<script>" not in found(kind="<script>")._repr_html_()

    class Untouched(tuple):
        def __iter__(self):
            pytest.fail("looked at")

    assert "shares=Untouched[9]" in repr(found(shares=Untouched([1.0] * 9)))


def test_json_has_what_a_result_holds():
    found = dataclasses.replace(_FOUND, value=math.inf).to_json()
    assert found["value"] is None and found["never"] is None and found["rows"] == [[0.0, 0.0]] * 3
    assert found["shares"] == [1 / 3, 0.0] and found["function"] == "len" and found["best"] == repr(_POLICY)
    assert small_book().to_json()["positions"][1]["history"] == ["e2e4", "c7c5"]  # moves are texts


# -- tables, boards and plots -------------------------------------------------------------------------


def test_tables_have_the_numbers_and_a_book_is_shown_on_a_board():
    best, frontier, strategy = made("best"), made("frontier"), made("strategy")
    assert best.columns()["gain"].sum() == pytest.approx(best.utility - best.unprepared)
    assert best.columns()["infoset"] == [kuhn().key(state.infoset) for state in best.states()]
    assert frontier.columns()["utility"].tolist() == frontier.utilities.tolist()
    assert strategy.columns()["plan"].sum() == pytest.approx(strategy.expected_size)
    book = small_book().columns()
    assert book["after"][2:] == ["1. e4 e5", "1. e4 e5 2. Nf3 Nc6"]
    assert book["play"] == ["e4", "Nf3", "Nf3", "Bb5"]

    page = small_book()._repr_html_()
    assert page.startswith("<svg") and page.count('class="arrow"') == 2 * 2  # e4 and d4, line and head
    assert "1. e4 e5 2. Nf3 Nc6 3. Bb5" in page


def test_plots_show_what_was_found():
    for each in map(made, ("frontier", "equilibrium", "equilibrium of both", "certificate")):
        axes = each.plot()
        assert axes.get_xlabel() and axes.lines and each.plot(axes) is axes
        with pytest.raises(ValueError, match=r"\.plot\(\): expected axes to be matplotlib's axes, got 3$"):
            each.plot(3)
    frontier, found = made("frontier"), made("certificate")
    exact, beyond = (line.get_xydata() for line in frontier.plot().lines)
    drawn = np.concatenate([exact, beyond[1:-1]])  # which meet, and end at the largest size
    np.testing.assert_array_equal(drawn, np.column_stack([frontier.sizes, frontier.utilities]))
    assert frontier.plot(most=9).get_xlim() == (0.0, 9.0)
    (line,) = made("equilibrium").plot().lines
    assert [tuple(point) for point in line.get_xydata()] == list(made("equilibrium").trace)
    upper, lower = found.plot().lines
    assert found.trace and upper.get_ydata()[-1] == found.upper and lower.get_ydata()[-1] == found.lower
    assert found.trace[-1][0] == found.work["rollouts"]
    pyplot.close("all")
