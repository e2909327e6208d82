"""Calls that work: chess, its engines, stores, policies, preparations and books.

The engine is the tests' own, a hash function. A program that is not there and an option that an engine lacks
are right in kind, and end in an EngineError, which the engine's own tests look at.
"""

import atexit
import dataclasses
import datetime
import functools
import json
import math
import pathlib
import sys
import tempfile

import chess
import numpy as np
import pyspiel

from precomp_games import chess as face
from precomp_games.algorithms import best_first_precomputation, best_precomputation
from precomp_games.chess.searches import Line, SearchResult
from tests.chess import fake_engine
from tests.chess.test_preparation import HashEngine
from tests.wrong_calls import cluster_address, good_call

_FAKE = [sys.executable, fake_engine.__file__]
_START = chess.Board().epd()
_MATED = "r1bqkb1r/pppp1Qpp/2n2n2/4p3/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq -"
_LIMIT = face.SearchLimit(nodes=100)
_MOVE = chess.Move.from_uci("e2e4")
_LINE = Line("e2e4", 30, None)
_SEEDS = [10**30]  # a seed may be of any size
# Each is a position's text, and no position: which it is, is found where it is searched.
_ANY_TEXT = ["nonsense", _START + "?"]


@functools.cache
def game():
    return pyspiel.load_game("python_chess")


def start():
    return game().new_initial_state()


def over():
    return pyspiel.load_game("python_chess", {"fen": _MATED + " 0 1"}).new_initial_state()


def other_state():
    return pyspiel.load_game("kuhn_poker").new_initial_state()


@functools.cache
def pool():
    return face.EnginePool(_FAKE, workers=1)


@functools.cache
def store():
    kept = face.EvaluationStore(":memory:")
    kept.put("Fake 1.0", _LIMIT, 1, _START, SearchResult((_LINE,), 3, 100))
    return kept


@functools.cache
def folder():
    kept = tempfile.TemporaryDirectory()
    _kept.append(kept)
    return pathlib.Path(kept.name)


_kept = []


@functools.cache
def engine():
    return face.StoredEngine(store(), pool())


@functools.cache
def settings():
    return face.PreparationSettings(penalty=0.002, opponent_temperature_cp=80.0, max_plies=5)


@functools.cache
def tree(fen=""):
    return face.preparation_tree(dataclasses.replace(settings(), fen=fen), HashEngine(spread=400.0))


def states(fen=""):
    return list(best_precomputation(tree(fen), 0).states())


def certified(name):
    """What is worth learning, with a certificate, in a game whose leaves are all worth the same."""
    return best_first_precomputation(
        pyspiel.load_game(name), _first, _first, 0.1, 0, lambda state: 0.5, max_evaluations=3
    )


def _first(state):
    return {state.legal_actions()[0]: 1.0}


@functools.cache
def book():
    return face.preparation_book(tree(), 0, states())


def position():
    return face.BookPosition((), (face.BookMove(_MOVE, 1.0),), 1.0, 0.1)


# -- the game --------------------------------------------------------------------------------------------


@good_call(
    "precomp_games.chess:ChessGame",
    more={
        "params": [{"fen": 7}, {"fen": "8/8"}, {"max_plies": 0}, {"max_plies": 10**30}, {"threefold": "yes"}]
    },
)
def _():
    return face.ChessGame, {"params": {"max_plies": 9}}


@good_call("precomp_games.chess:ChessGame.make_py_observer", fine={"params": [{}]})
def _():
    kind = pyspiel.IIGObservationType(perfect_recall=True)
    return face.ChessGame().make_py_observer, {"iig_obs_type": kind, "params": None}


@good_call("precomp_games.chess:action_of", more={"move": [chess.Move.null(), "e2e4"]})
def _():
    return face.action_of, {"move": _MOVE}


@good_call("precomp_games.chess:move_of", more={"action": [0, 4096, 64 * 64 * 6]})
def _():
    return face.move_of, {"action": face.action_of(_MOVE)}


# -- engines ---------------------------------------------------------------------------------------------


@good_call("precomp_games.chess:SearchLimit", more={"nodes": [0, None], "movetime_ms": [5]})
def _():
    return face.SearchLimit, {"nodes": 5, "movetime_ms": None}


@good_call("precomp_games.chess:SearchLimit.parse", more={"text": ["nodes=0", "nodes=" + "9" * 5000]})
def _():
    return face.SearchLimit.parse, {"text": "movetime=5"}


_ENGINES = {
    "fine": {
        "command": ["nonsense"],
        "options": [{"a": "b"}],
        "timeout_seconds": [0.5],
        "startup_seconds": [0.5],
    },
    "more": {
        "command": ["", [], [""]],
        "workers": [0],
        "options": [{"UCI_Elo": 1400}, {"MultiPV": 2}, {"Hash": 1.5}, {7: 7}, {"Style": "Wild\nquit"}],
    },
}
_HOW = {
    "command": _FAKE,
    "options": {"Hash": 8},
    "timeout_seconds": 20.0,
    "retries": 1,
    "startup_seconds": 20.0,
}
_SEARCHES = {"epds": [_START, [_MATED], ["nonsense"], [_START, 7]], "multipv": [0, 501], "limit": ["nodes=5"]}
_SEARCH = {
    "epds": [_START],
    "limit": _LIMIT,
    "multipv": 1,
    "on_result": lambda epd, result: None,
    "samples": 2,
}


def closing(kind):
    """What makes one and closes it again."""

    @functools.wraps(kind)
    def make(**arguments):
        with kind(**arguments) as made:
            return made

    return make


@good_call("precomp_games.chess:EnginePool", **_ENGINES)
def _():
    return closing(face.EnginePool), {"workers": 1, **_HOW}


@good_call("precomp_games.chess:EnginePool.search", more=_SEARCHES)
def _():
    return pool().search, _SEARCH


@good_call("precomp_games.chess:DaskEngine", **_ENGINES)
def _():
    return closing(face.DaskEngine), {"cluster": cluster_address(), **_HOW}


@good_call("precomp_games.chess:DaskEngine.search", more=_SEARCHES)
def _():
    return cluster_engine().search, _SEARCH


@functools.cache
def cluster_engine():
    made = face.DaskEngine(_FAKE, cluster_address())
    atexit.register(made.close)  # before its cluster goes, of which Dask would tell
    return made


@good_call("precomp_games.chess:StoredEngine", more={"engine_id": ["Fake 2.0"]})
def _():
    return face.StoredEngine, {
        "store": store(),
        "pool": pool(),
        "engine_id": "Fake 1.0",
        "on_search": print,
        "progress": print,
    }


@good_call(
    "precomp_games.chess:StoredEngine.search",
    more={"epds": [_START, [_MATED], ["nonsense"], [_START, 7]], "multipv": [0, 501]},
)
def _():
    return engine().search, {"epds": [_START], "limit": _LIMIT, "multipv": 1, "samples": 2}


# -- the store -------------------------------------------------------------------------------------------


@good_call(
    "precomp_games.chess:EvaluationStore",
    # Files may be called so; they would be made.
    fine={"path": ["nonsense", ":memory:?"]},
    more={"path": ["\0"], "read_only": [True]},
)
def _():
    return face.EvaluationStore, {"path": ":memory:", "read_only": False}


_KEY = {"engine": "Fake 1.0", "limit": _LIMIT, "multipv": 1}
# An engine's identity and a position's text can be anything.
_FINE_KEY = {"engine": ["nonsense", "Fake 1.0?"]}
_WRONG_KEY = {"limit": ["nodes=0", "nonsense"], "multipv": [0, 501]}


@good_call(
    "precomp_games.chess:EvaluationStore.put",
    fine=_FINE_KEY | {"epd": _ANY_TEXT},
    more=_WRONG_KEY
    | {
        "result": [
            SearchResult((), 1, 1),
            SearchResult((_LINE, _LINE), 1, 1),
            SearchResult((_LINE,), -1, 1),
            SearchResult((_LINE,), 1, 2**63),
            SearchResult((_LINE,), 1, 1, (("e2e4", 1),)),
            SearchResult((_LINE,), 1, 1, (), (_LINE,)),
            SearchResult((_LINE,), 1, 1, (("e2e4", 0),), (_LINE,)),
        ]
    },
)
def _():
    other = face.EvaluationStore(":memory:")
    return other.put, _KEY | {"epd": _START, "result": SearchResult((_LINE,), 3, 100)}


@good_call(
    "precomp_games.chess:EvaluationStore.get_many",
    fine=_FINE_KEY | {"epds": [{"a": "b"}]},  # an iterable of texts
    more=_WRONG_KEY | {"epds": [_START, [7]]},
)
def _():
    return store().get_many, _KEY | {"epds": [_START], "samples": 0}


@good_call(
    "precomp_games.chess:EvaluationStore.export",
    fine={"path": ["nonsense"]},  # a path
    more={"path": ["\0"], "keys": [[("Fake 1.0", _LIMIT, 1)], [("Fake 1.0", "nonsense", 1, _START)]]},
)
def _():
    keys = [("Fake 1.0", _LIMIT, 1, _START)]
    return store().export, {"path": folder() / "copy.sqlite", "keys": keys}


# -- scores, policies and evaluations --------------------------------------------------------------------


# Half a centipawn for a sure win is small, and a number of centipawns.
@good_call("precomp_games.chess:LinearUtility", more={"scale_cp": [0.0, 1e5]})
def _():
    return face.LinearUtility, {"scale_cp": 400.0}


@good_call("precomp_games.chess:ThresholdUtility", more={"threshold_cp": [0.0]})
def _():
    return face.ThresholdUtility, {"threshold_cp": 400.0}


def _scope():
    return face.CalibrationScope("Stockfish 15.1", "nodes=5000", "nodes=1000", 8, 2, "softmax", 1.0, 40.0)


def _fit():
    return face.CalibratedUtility((0.5,) * 3, 4.0, _scope())


def _sample():
    return face.CalibrationSample(_LINE, 1, 10.0, 3, 2, 1)


@good_call(
    "precomp_games.chess:CalibrationScope",
    # Names can be anything.
    fine={**{name: ["nonsense", "", "Stockfish 15.1?", "softmax?"] for name in ("engine", "plays")}},
    more={"analyst": ["nodes=0"], "multipv": [0, 501], "top_k": [0], "least_r": [0.0, 41.0]},
)
def _():
    return face.CalibrationScope, dataclasses.asdict(_scope())


@good_call(
    "precomp_games.chess:CalibrationSample", more={"material": [104, -104], "opponent_temperature_cp": [0.0]}
)
def _():
    sample = _sample()
    fields = [field.name for field in dataclasses.fields(sample)]
    return face.CalibrationSample, {name: getattr(sample, name) for name in fields} | {"setting": "all"}


@good_call(
    "precomp_games.chess:CalibratedUtility",
    fine={"coefficients": [(1, 2, 3)]},
    more={"coefficients": [(0.5,) * 2, (0.5, -0.5, 0.5), (1e9, 0.5, 0.5), [0.5] * 3]},
)
def _():
    return face.CalibratedUtility, {"coefficients": (0.5,) * 3, "prior_games": 4.0, "made_for": _scope()}


_ANY_ENGINE = {"engine_id": ["nonsense", "", "Stockfish 15.1?"]}


@good_call(
    "precomp_games.chess:CalibratedUtility.misfits",
    fine=_ANY_ENGINE,
    more={"settings": [face.PreparationSettings, _LIMIT]},
)
def _():
    return _fit().misfits, {"settings": settings(), "engine_id": "Stockfish 15.1"}


@good_call(
    "precomp_games.chess:fit_calibration",
    fine=_ANY_ENGINE,
    more={
        "settings": [face.PreparationSettings, _LIMIT],
        # No game, and none from the same position as another one.
        "samples": lambda: [[], [_LINE], _sample(), [dataclasses.replace(_sample(), draws=0, wins=0)]],
    },
)
def _():
    return face.fit_calibration, {
        "samples": [_sample()],
        "settings": settings(),
        "engine_id": "Stockfish 15.1",
    }


@good_call(
    "precomp_games.chess:save_calibration",
    fine={"evidence": [{"a": "b"}]},
    more={"evidence": [{"games": float("nan")}, {7: {7}}]},
)
def _():
    return face.save_calibration, {
        "calibration": _fit(),
        "path": folder() / "fit.json",
        "evidence": {"games": 4},
    }


@good_call("precomp_games.chess:load_calibration", fine={"path": ["nonsense"]}, more={"path": ["", "\0"]})
def _():
    face.save_calibration(_fit(), folder() / "loaded.json")
    (folder() / "nonsense").touch()
    return face.load_calibration, {"path": folder() / "loaded.json"}


@good_call(
    "precomp_games.chess:played_samples", more={"states": lambda: [[over()], [other_state()], start()]}
)
def _():
    board = face.ChessGame({"max_plies": 2}).new_initial_state()
    value = face.EngineEvaluation(HashEngine(), _LIMIT, 2, face.LinearUtility())
    return face.played_samples, {
        "states": [board],
        "sigma": _first,
        "evaluation": value,
        "opponent_temperature_cp": 10.0,
        "games": 2,
        "seed": 0,
        "setting": "all",
        "min_probability": 1e-9,
        "progress": print,
    }


@good_call("precomp_games.chess:WdlUtility.for_engine", more={"engine_id": ["Stockfish 99", "Lc0 0.30"]})
def _():
    return face.WdlUtility.for_engine, {"engine_id": "Stockfish 15.1"}


@good_call(
    "precomp_games.chess:EnginePolicy",
    more={
        "game": lambda: [pyspiel.load_game("kuhn_poker"), start()],
        "temperature_cp": [0.0],
        "top_k": [0, 501],
    },
)
def _():
    arguments = {"game": game(), "engine": engine(), "limit": _LIMIT, "temperature_cp": 10.0, "top_k": 2}
    return face.EnginePolicy, arguments | {"plays": "bestmove", "samples": 3}


def policy():
    return face.EnginePolicy(game(), engine(), _LIMIT, 10.0)


def _wrong_states():
    return [other_state(), [other_state()], [over()], start(), [start(), None]]


@good_call("precomp_games.chess:EnginePolicy.action_probabilities_batch", more={"states": _wrong_states})
def _():
    return policy().action_probabilities_batch, {"states": [start()]}


@good_call(
    "precomp_games.chess:EnginePolicy.action_probabilities",
    more={"state": lambda: [other_state(), over(), game()], "player_id": [1, 2]},
)
def _():
    return policy().action_probabilities, {"state": start(), "player_id": 0}


# -- how an opponent plays -------------------------------------------------------------------------------


@good_call(
    "precomp_games.chess:Choice",
    fine={"scores_cp": [(1, 2, 3)]},
    more={"scores_cp": [(), (10**6,), (1.5,), [30, 20]], "played": [2], "legal": [1, 219], "count": [0]},
)
def _():
    return face.Choice, {"scores_cp": (30, 20), "played": 1, "legal": 30, "count": 2}


@good_call("precomp_games.chess:fit_opponent", more={"choices": [[]]})
def _():
    return face.fit_opponent, {"choices": [face.Choice((30, 20), 1, 30)] * 3, "confidence": 0.95}


@good_call(
    "precomp_games.chess:opponent_choices",
    more={"moves": [{(_START, "e2e5"): 1}, {(_START, "e2e4"): 0}, {("nonsense", "e2e4"): 1}, {(7, 7): 1}]},
)
def _():
    moves = {(_START, "e2e4"): 2}
    return face.opponent_choices, {"engine": HashEngine(), "limit": _LIMIT, "top_k": 2, "moves": moves}


@good_call(
    "precomp_games.chess:pgn_moves",
    fine={"path": ["nonsense"]},
    more={"path": ["\0"], "player": ["Nobody"], "max_games": [0]},
)
def _():
    path = folder() / "games.pgn"
    path.write_text('[White "A"]\n[Black "B"]\n\n1. e4 e5 *\n')
    return face.pgn_moves, {"path": path, "player": "A", "skip_plies": 0, "max_games": 5}


@good_call(
    "precomp_games.chess:pgn_results",
    fine={"path": ["nonsense"]},
    more={"path": ["\0"], "player": ["Nobody"], "max_games": [0]},
)
def _():
    path = folder() / "finished.pgn"
    path.write_text('[White "A"]\n[Black "B"]\n[Result "1-0"]\n\n1. e4 e5 1-0\n')
    return face.pgn_results, {"path": path, "player": "A", "skip_plies": 0, "max_games": 5}


# -- people, books and databases ---------------------------------------------------------------------------


@functools.cache
def games_file():
    path = folder() / "people.pgn"
    tags = '[White "A"]\n[Black "B"]\n[Date "{}.??.??"]\n\n'
    path.write_text("".join(tags.format(1990 + k) + "1. e4 e5 2. Nf3 *\n\n" for k in range(4)))
    (folder() / "people.bin").write_bytes(bytes(16))
    (folder() / "answers").mkdir(exist_ok=True)
    (folder() / "answers" / "start.json").write_text('{"moves": [{"uci": "e2e4", "white": 1}]}')
    return path


@functools.cache
def table_of_games():
    return face.read_table(games_file(), "A")


def counts():
    return face.MoveCounts.of_tables([table_of_games()])


def counting():
    return face.CountsPolicy(game(), counts(), 1.0)


_READ = {"path": ["\0"], "player": ["Nobody"], "max_plies": [0]}
_ANY_PATH = {
    "path": ["nonsense"],
    "without": ["nonsense", "C?", ""],
}  # a file that is not there; nobody to leave out
_ANY_FACTOR = {"half_life": [0.5, math.inf], "rating_scale": [0.5, math.inf]}


@good_call("precomp_games.chess:pgn_names", fine={"path": ["nonsense"]}, more={"path": ["\0"]})
def _():
    return face.pgn_names, {"path": games_file()}


@good_call(
    "precomp_games.chess:read_games",
    fine=_ANY_PATH | {"max_plies": [10**30], "max_games": [10**30], "setups": ...},
    more=_READ | {"max_games": [0], "report": [face.GameReport]},
)
def _():
    return face.read_games, {
        "path": games_file(),
        "player": "A",
        "without": "C",
        "max_plies": 9,
        "max_games": 9,
        "setups": False,
        "key": face.position_hash,
        "report": face.GameReport(),
        "progress": lambda done, size: None,
    }


@good_call(
    "precomp_games.chess:read_table",
    fine=_ANY_PATH | {"max_plies": [10**30]},
    more=_READ | {"report": [face.GameReport]},
)
def _():
    return face.read_table, {
        "path": games_file(),
        "player": "A",
        "without": "C",
        "max_plies": 9,
        "report": face.GameReport(),
        "progress": lambda done, size: None,
    }


@good_call("precomp_games.chess:GameTable.select")
def _():
    table = table_of_games()
    return table.select, {"games": table.years > 1991}


@good_call("precomp_games.chess:GameTable.join", more={"tables": lambda: [table_of_games()]})
def _():
    return face.GameTable.join, {"tables": [table_of_games()]}


@good_call(
    "precomp_games.chess:GameWeights",
    fine=_ANY_FACTOR
    | {"as_of": [-1, 0.5, -1990.0], "rating": [-1, 0.5, -2700.0], "other_speeds": [0.5], "speed": [""]},
    more={"speed": ["correspondence"]},
)
def _():
    return face.GameWeights, {
        "half_life": 8.0,
        "as_of": 1990.0,
        "rating": 2700.0,
        "rating_scale": 100.0,
        "speed": "blitz",
        "other_speeds": 0.5,
    }


@good_call("precomp_games.chess:MoveCounts")
def _():
    made = counts()
    return face.MoveCounts, {"keys": made.keys, "actions": made.actions, "weights": made.weights}


@good_call("precomp_games.chess:MoveCounts.of_tables", more={"tables": lambda: [table_of_games()]})
def _():
    return face.MoveCounts.of_tables, {"tables": [table_of_games()], "weights": face.GameWeights()}


_SMOOTHED = {"alpha": [0.5, math.inf]}


@good_call(
    "precomp_games.chess:CountsPolicy",
    fine=_SMOOTHED | {"prior": [None]},
    more={"game": lambda: [pyspiel.load_game("kuhn_poker")], "counts": lambda: [face.MoveCounts]},
)
def _():
    return face.CountsPolicy, {"game": game(), "counts": counts(), "alpha": 1.0, "prior": counting()}


@good_call("precomp_games.chess:CountsPolicy.action_probabilities_batch", more={"states": _wrong_states})
def _():
    return counting().action_probabilities_batch, {"states": [start()]}


@good_call(
    "precomp_games.chess:CountsPolicy.action_probabilities",
    more={"state": lambda: [other_state(), over(), game()], "player_id": [1, 2]},
)
def _():
    return counting().action_probabilities, {"state": start(), "player_id": 0}


_STATES = {"policy": [None], "states": [None, {"a": "b"}]}  # any legal move; no states that are asked for


@good_call("precomp_games.chess:predicted_rows", fine={"states": _STATES["states"]})
def _():
    table = table_of_games()
    return face.predicted_rows, {"policy": counting(), "table": table, "states": face.own_states(table)}


@good_call("precomp_games.chess:prior_of_moves", fine=_STATES)
def _():
    table = table_of_games()
    return face.prior_of_moves, {"policy": counting(), "table": table, "states": face.own_states(table)}


@good_call("precomp_games.chess:RollingCounts", more={"period": [0.0]})
def _():
    return face.RollingCounts, {
        "table": table_of_games(),
        "weights": face.GameWeights(),
        "period": 1.0,
    }


def rolling():
    return face.RollingCounts(table_of_games())


@good_call("precomp_games.chess:RollingCounts.start", fine={"block": ...})
def _():
    return rolling().start, {"block": 1}


@good_call("precomp_games.chess:RollingCounts.probabilities")
def _():
    made = rolling()
    return made.probabilities, {"half_life": 8.0, "alpha": 1.0, "prior": np.full(len(made.block), 0.1)}


@good_call(
    "precomp_games.chess:RollingCounts.fits",
    fine={"half_lives": [(1, 2, 3)]},
    more={"before": [[], [1900.0]], "half_lives": [[], [0.0]]},
)
def _():
    made = rolling()
    return made.fits, {
        "prior": np.full(len(made.block), 0.1),
        "before": [1992.0],
        "half_lives": [8.0, math.inf],
    }


@good_call("precomp_games.chess:rolling_fit", fine={"prior": [None]}, more={"before": [1900.0]})
def _():
    return face.rolling_fit, {
        "table": table_of_games(),
        "prior": counting(),
        "weights": face.GameWeights(),
        "period": 1.0,
        "before": 1993.0,
    }


@good_call(
    "precomp_games.chess:games_policy",
    fine=_ANY_PATH | _SMOOTHED | {"prior": [None], "weights": [None], "period": [0.5], "max_plies": [10**30]},
    more=_READ | {"game": lambda: [pyspiel.load_game("kuhn_poker")], "fit": ["best"], "period": [0.0]},
)
def _():
    return face.games_policy, {
        "game": game(),
        "path": games_file(),
        "player": "A",
        "without": "C",
        "prior": counting(),
        "alpha": 1.0,
        "weights": face.GameWeights(),
        "fit": "given",
        "period": 1.0,
        "max_plies": 9,
        "progress": lambda done, size: None,
    }


@good_call("precomp_games.chess:PolyglotCounts", more={"weights": ["wins"]})
def _():
    games_file()
    return face.PolyglotCounts, {"path": folder() / "people.bin", "weights": "score"}


@good_call("precomp_games.chess:ExplorerCounts", fine={"folder": ["nonsense"]}, more={"folder": ["\0"]})
def _():
    games_file()
    return face.ExplorerCounts, {"folder": folder() / "answers"}


@good_call(
    "precomp_games.chess:polyglot_policy",
    fine=_SMOOTHED | {"path": ["nonsense"], "prior": [None]},
    more={"game": lambda: [pyspiel.load_game("kuhn_poker")], "weights": ["wins"]},
)
def _():
    games_file()
    return face.polyglot_policy, {
        "game": game(),
        "path": folder() / "people.bin",
        "weights": "score",
        "alpha": 1.0,
        "prior": counting(),
    }


@good_call(
    "precomp_games.chess:explorer_policy",
    fine=_SMOOTHED | {"folder": ["nonsense"], "prior": [None]},
    more={"game": lambda: [pyspiel.load_game("kuhn_poker")]},
)
def _():
    games_file()
    return face.explorer_policy, {
        "game": game(),
        "folder": folder() / "answers",
        "alpha": 1.0,
        "prior": counting(),
    }


@good_call(
    "precomp_games.chess:opponent_policy",
    more={
        "game": lambda: [pyspiel.load_game("kuhn_poker")],
        "spec": ["nonsense", "uci(r=0)", "uci(nodes=1,depth=1)", "uci(options=5)"],
    },
)
def _():
    return face.opponent_policy, {
        "game": game(),
        "spec": "uci(r=20,top_k=3)",
        "engine": engine(),
        "trusted": False,
    }


_ASKED = {
    "engine": lambda: [pool, store(), face.StoredEngine],
    "limit": ["nodes=5"],
    "samples": [0, 10**7],
}


@good_call("precomp_games.chess:played_in", more=_ASKED | {"epds": [_START, [_MATED], ["nonsense"]]})
def _():
    return face.played_in, {"engine": engine(), "limit": _LIMIT, "epds": [_START], "samples": 2}


@good_call(
    "precomp_games.chess:engine_moves",
    more=_ASKED | {"games": [0, 10**7], "plies": [0, 10**7], "opening_plies": [10**7]},
)
def _():
    return face.engine_moves, {
        "engine": engine(),
        "limit": _LIMIT,
        "games": 1,
        "plies": 1,
        "samples": 2,
        "opening_plies": 2,
        "seed": 0,
    }


@good_call("precomp_games.chess:EngineMenu", more={"multipv": [0, 501], "count": [0, 3]})
def _():
    return face.EngineMenu, {
        "engine": engine(),
        "limit": _LIMIT,
        "multipv": 2,
        "count": 2,
        "window_cp": 50.0,
    }


@good_call(
    "precomp_games.chess:EngineEvaluation", more={"multipv": [0, 501], "utility": [face.LinearUtility]}
)
def _():
    return face.EngineEvaluation, {
        "engine": engine(),
        "limit": _LIMIT,
        "multipv": 2,
        "utility": face.LinearUtility(),
    }


@good_call("precomp_games.chess:EngineEvaluation.evaluate_batch", more={"states": _wrong_states})
def _():
    evaluation = face.EngineEvaluation(engine(), _LIMIT, 2, face.LinearUtility())
    return evaluation.evaluate_batch, {"states": [start()]}


# -- preparations ----------------------------------------------------------------------------------------


@good_call(
    "precomp_games.chess:PreparationSettings",
    fine={
        **{name: [0.5] for name in ("penalty", "own_temperature_cp", "scale_cp")},
        "opponent_temperature_cp": [0.5, (1, 2, 3), [10.0]],  # several
        **{
            name: [0.5] for name in ("rollout_epsilon", "rollout_delta", "min_probability")
        },  # a file, which is looked at where it is used
    },
    more={
        "player": [2],
        "penalty": [0.0],
        "opponent_temperature_cp": [(), [1.0, 0.0]],
        "opponent_weights": [[1.0, 2.0], [0.0], ["x"]],
        "scale_cp": [1e5],
        "fen": ["8/8/8/8/8/8/8/8 w - - 0 1"],
        "top_k": [0, 501],
        "opponent_samples": [0, 10**7],
        "menu": [501],
        "max_plies": [0],
        "rollout_delta": [1.0],
        "min_probability": [1.0],
    },
)
def _():
    return face.PreparationSettings, dataclasses.asdict(face.PreparationSettings()) | {
        "analyst_limit": face.SearchLimit(nodes=5000),
        "opponent_limit": face.SearchLimit(nodes=1000),
        "fen": chess.STARTING_FEN,
    }


_TREE = {"settings": lambda: [face.PreparationSettings, game()], "analyst": lambda: [pool, store()]}


@good_call(
    "precomp_games.chess:preparation_tree",
    fine={"max_memory": [None, math.inf]},
    more=_TREE
    | {
        "truncate": ["backup"],
        "keep": [{chess.Board().epd(): chess.Move.from_uci("e2e5")}, {chess.STARTING_FEN: "e2e4"}],
    },
)
def _():
    return face.preparation_tree, {
        "settings": settings(),
        "analyst": HashEngine(),
        "opponent": HashEngine(),
        "progress": lambda level, histories: None,
        "truncate": "values",
        "keep": {chess.Board().epd(): chess.Move.from_uci("e2e4")},
        "max_memory": "10GB",
    }


@good_call(
    "precomp_games.chess:equilibrium_tree",
    fine={"max_memory": [None, math.inf]},
    more=_TREE | {"max_histories": [0]},
)
def _():
    return face.equilibrium_tree, {
        "settings": dataclasses.replace(settings(), max_plies=3),
        "analyst": HashEngine(),
        "opponent": HashEngine(),
        "progress": lambda level, histories: None,
        "max_histories": 10_000,
        "max_memory": "10GB",
    }


@good_call(
    "precomp_games.chess:preparation_book",
    more={
        "tree": lambda: [tree("4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1"), game()],
        "player": [1],
        "states": lambda: [states("4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1") or 0, states()[0]],
    },
)
def _():
    return face.preparation_book, {"tree": tree(), "player": 0, "states": states()}


@good_call("precomp_games.chess:write_opponent_data", fine={"folder": ["nonsense"]}, more=_TREE)
def _():
    return face.write_opponent_data, {
        "folder": folder(),
        "settings": settings(),
        "policies": face.preparation_policies(settings(), HashEngine()),
    }


@good_call("precomp_games.chess:certified_book", more={"found": lambda: [tree(), certified("tic_tac_toe")]})
def _():
    return face.certified_book, {"found": certified("python_chess(max_plies=2)")}


@good_call(
    "precomp_games.chess:BookPosition",
    more={"history": ["e2e4", ["e2e4"]], "moves": [(), [_MOVE]], "reach": [1.1]},
)
def _():
    return face.BookPosition, {
        "history": (),
        "moves": (face.BookMove(_MOVE, 1.0),),
        "reach": 1.0,
        "worth": 0.1,
    }


@good_call(
    "precomp_games.chess:Book",
    more={
        "start": [chess.Board(None), chess.STARTING_FEN],
        "positions": lambda: [[position()] * 2, position(), [states()[0]]],
    },
)
def _():
    return face.Book, {"start": chess.Board(), "side": chess.WHITE, "positions": [position()]}


@good_call(
    "precomp_games.chess:write_pgn",
    fine={"headers": [{"a": "b"}]},  # a path, and a tag of one's own
    more={"book": [face.Book], "headers": [{"Result": "1-0"}, {"White": 7}, {7: "White"}, {"White": "a\nb"}]}
    | {"exits": [[7], [face.BookExit]]},
)
def _():
    return face.write_pgn, {
        "book": book(),
        "path": folder() / "book.pgn",
        "headers": {"White": "Us"},
        "exits": face.book_exits(book(), _first),
    }


_ANY_NUMBER = [0.5, -1, -2000.0, math.inf, -math.inf]


@good_call(
    "precomp_games.chess:reply_games",
    fine=_ANY_PATH | {"max_plies": [10**30], "most": [10**30], "before": _ANY_NUMBER},
    more=_READ | {"book": [face.Book], "most": [0], "exits": [[7]], "report": [face.GameReport]},
)
def _():
    return face.reply_games, {
        "book": book(),
        "path": games_file(),
        "player": "A",
        "exits": (),
        "without": "C",
        "most": 3,
        "max_plies": 9,
        "before": 2000.0,
        "report": face.GameReport(),
        "progress": lambda done, size: None,
    }


@good_call("precomp_games.chess:best_parts")
def _():
    return face.best_parts, {"book": book(), "gains": [0.01] * len(book())}


@good_call("precomp_games.chess:write_report")
def _():
    shown = face.ReportBook(book(), [0.01] * len(book()), utility=0.6, unprepared=0.5)
    return face.write_report, {"path": folder() / "report.html", "books": [shown], "title": "A book"}


@good_call("precomp_games.chess:write_exports", more={"formats": [["pgn", 7]], "books": [[], [7]]})
def _():
    shown = face.ReportBook(book(), [0.01] * len(book()), utility=0.6, unprepared=0.5)
    return face.write_exports, {
        "folder": folder(),
        "books": [shown],
        "formats": ["pgn", "csv"],
        "title": "A book",
        "changed": 1e9,
    }


# -- matches ---------------------------------------------------------------------------------------------


@functools.cache
def match():
    return face.play_match(book(), _first, _first, 2, max_plies=4)


_PLAYS = {"book": [face.Book], "max_plies": [0, face.MATCH_PLIES * 10_000], "min_probability": [1.0]}


@good_call(
    "precomp_games.chess:play_match",
    more=_PLAYS
    | {
        "opponent": lambda: [book(), lambda state: {}],
        "own": lambda: [book(), 7],
        "games": [0],
        "batch": [0],
    },
)
def _():
    return face.play_match, {
        "book": book(),
        "opponent": _first,
        "own": _first,
        "games": 2,
        "seed": 3,
        "max_plies": 5,
        "min_probability": 1e-9,
        "batch": 2,
        "progress": lambda finished: None,
    }


@good_call(
    "precomp_games.chess:book_exits",
    more=_PLAYS
    | {
        "opponent": lambda: [book(), lambda state: {}],
        "leaf_value": [7, "exact", lambda state: None],
        "horizon": [0],
    },
)
def _():
    return face.book_exits, {
        "book": book(),
        "opponent": _first,
        "leaf_value": lambda state: 0.5,
        "horizon": 9,
        "max_plies": 9,
        "min_probability": 1e-9,
    }


@good_call("precomp_games.chess:MatchResult.exit_scores", more={"exits": [[7], [face.BookExit]]})
def _():
    return match().exit_scores, {"exits": face.book_exits(book(), _first)}


@good_call(
    "precomp_games.chess:write_match_pgn",
    fine={"headers": [{"a": "b"}]},  # a path, and a tag of one's own
    more={"headers": [{"Result": "1-0"}, {"Round": "1"}, {"White": 7}, {7: "White"}, {"White": "a\nb"}]},
)
def _():
    return face.write_match_pgn, {
        "result": match(),
        "path": folder() / "games.pgn",
        "headers": {"White": "Us"},
    }


_CONTROL = _TREE | {"positions": [-1]}


def _control():
    return {"settings": settings(), "analyst": HashEngine(), "opponent": HashEngine(), "positions": 2}


# As many as there are.
@good_call("precomp_games.chess:most_reached_book", more=_CONTROL)
def _():
    return face.most_reached_book, _control()


@good_call("precomp_games.chess:main_line_book", more=_CONTROL | {"moves": [0]})
def _():
    return face.main_line_book, _control() | {"moves": 3}


# -- for chess programs --------------------------------------------------------------------------------------


def _told():
    told = {"settings": settings().as_dict(), "memorized": [], "utility": 0.5}
    return told | {"analyst": "Fake 1.0", "opponent": "Fake 1.0"}


@good_call("precomp_games.chess:WrittenPreparation.of", more={"told": [{"settings": 5}]})
def _():
    return face.WrittenPreparation.of, {"told": _told()}


@good_call("precomp_games.chess:read_preparation", fine={"folder": ...})
def _():
    (folder() / "result.json").write_text(json.dumps(_told()))
    return face.read_preparation, {"folder": folder()}


# Any text is the path of a file that may not be there.
@good_call(
    "precomp_games.chess:uci_book", fine={"book": ["nonsense"]}, more={"book": [face.Book, position()]}
)
def _():
    return face.uci_book, {"book": book()}


_UCI_SEEDS = [None, *_SEEDS, [1], (1, 2, 3)]


@good_call("precomp_games.chess:PolicyPlayer", fine={"seed": _UCI_SEEDS})
def _():
    return face.PolicyPlayer, {"policy": _first, "name": "first", "seed": 1}


@good_call(
    "precomp_games.chess:EnginePlayer", fine={"command": ["nonsense"]}, more={"command": ["", [], [""]]}
)
def _():
    def make(command):
        face.EnginePlayer(command).close()

    return functools.wraps(face.EnginePlayer)(make), {"command": _FAKE}


@good_call("precomp_games.chess:UciEngine", fine={"seed": _UCI_SEEDS}, more={"player": [face.PolicyPlayer]})
def _():
    player = face.PolicyPlayer(_first, "first")
    return face.UciEngine, {"player": player, "book": face.uci_book(book()), "say": print, "seed": 1}


# The keys of a mapping are an iterable of text.
@good_call("precomp_games.chess:UciEngine.run", fine={"lines": [{"a": "b"}]}, more={"lines": ["uci", [7]]})
def _():
    engine = face.UciEngine(face.PolicyPlayer(_first, "first"), say=lambda line: None)
    return engine.run, {"lines": ["uci"]}


# -- drills --------------------------------------------------------------------------------------------------

_NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
_TIMES = {"now": [datetime.datetime(2026, 1, 1), _NOW.date()]}


@functools.cache
def drill():
    return face.Drill(book(), ":memory:", seed=1)


@good_call(
    "precomp_games.chess:Drill",
    # A path is any text; a seed may be none.
    fine={"path": ["nonsense", ":memory:?"]},
    more={"book": lambda: [face.Book(chess.Board(), chess.WHITE, [])], "path": ["\0"]},
)
def _():
    return face.Drill, {"book": book(), "path": folder() / "drill.sqlite", "seed": 1}


@good_call("precomp_games.chess:Drill.known", more=_TIMES)
def _():
    return drill().known, {"card": drill().cards[0], "now": _NOW}


@good_call("precomp_games.chess:Drill.expected_loss", more=_TIMES)
def _():
    return drill().expected_loss, {"now": _NOW}


@good_call("precomp_games.chess:Drill.next", more=_TIMES)
def _():
    return drill().next, {"now": _NOW, "least": 0.0}


@good_call("precomp_games.chess:Drill.answer", more=_TIMES)
def _():
    return drill().answer, {"card": drill().cards[0], "move": _MOVE, "now": _NOW}


# -- a book that is there already --------------------------------------------------------------------------


@functools.cache
def repertoire_file():
    path = pathlib.Path(tempfile.mkdtemp()) / "mine.pgn"
    path.write_text("1. e4 e5 (1... c5 2. Nf3) 2. Nf3 Nc6 3. Bb5 *\n")
    return path


@functools.cache
def repertoire():
    return face.read_repertoire(repertoire_file(), chess.WHITE)


def repertoire_preparation(menu=2):
    given = dataclasses.replace(settings(), menu=menu, max_plies=4, fen="")
    return face.preparation_policies(given, HashEngine())


@functools.cache
def repertoire_tree():
    given = dataclasses.replace(settings(), menu=2, max_plies=4, fen="", penalty=0.05)
    policies = face.repertoire_policies(repertoire_preparation(), repertoire(), 3)
    return face.preparation_tree(given, HashEngine(), policies=policies, truncate="reach")


@good_call(
    "precomp_games.chess:read_repertoire",
    fine={"paths": ["nonsense"]},
    more={"paths": [[], [None], "\0"], "fen": ["nonsense", _START + " x"]},
)
def _():
    return face.read_repertoire, {
        "paths": [str(repertoire_file())],
        "side": chess.WHITE,
        "fen": chess.STARTING_FEN,
        "max_games": 9,
        "max_plies": 9,
    }


@good_call(
    "precomp_games.chess:repertoire_policies",
    more={"policies": lambda: [repertoire_preparation(menu=0), repertoire_preparation().sigma]},
)
def _():
    return face.repertoire_policies, {
        "policies": repertoire_preparation(),
        "repertoire": repertoire(),
        "horizon": 3,
        "count": 1,
    }


@good_call("precomp_games.chess:known_entries", more={"known": ["moves"]})
def _():
    return face.known_entries, {"tree": repertoire_tree(), "repertoire": repertoire(), "known": "lines"}
