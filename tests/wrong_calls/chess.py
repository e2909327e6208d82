"""Chess, its engines, stores, policies, preparations and books.

The engine is the tests' own, a hash function. A program that is not there and an option that an engine lacks
are right in kind, and end in an EngineError, which the engine's own tests look at.
"""

import atexit
import dataclasses
import datetime
import json
import sys

import chess
import pyspiel

from precomp_games import chess as face
from precomp_games.algorithms import best_first_precomputation, best_precomputation
from precomp_games.chess.data.book import BookExit
from precomp_games.chess.data.move_counts import CountsPolicy, GameSelection, MoveCounts
from precomp_games.chess.engines.searches import Line, SearchResult
from precomp_games.chess.model.calibration import (
    CalibratedUtility,
    CalibrationScope,
    save_calibration,
)
from precomp_games.chess.model.engine_policies import LinearUtility
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.play.match import MATCH_PLIES
from tests.chess import fake_engine
from tests.chess.test_preparation import HashEngine
from tests.dask_clusters import cluster_address
from tests.oracles.games import first
from tests.wrong_calls import Arg, folder

_START = chess.Board().epd()
_MATED = "r1bqkb1r/pppp1Qpp/2n2n2/4p3/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq -"
_PAWNS = "4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1"
_MOVE = chess.Move.from_uci("e2e4")
_LINE = Line("e2e4", 30, None)


def table():
    game = pyspiel.load_game("python_chess")
    start = game.new_initial_state()
    over = pyspiel.load_game("python_chess", {"fen": _MATED + " 0 1"}).new_initial_state()
    kuhn = pyspiel.load_game("kuhn_poker")
    kuhn_start = kuhn.new_initial_state()
    no_states = [kuhn_start, [kuhn_start], [over], start, [start, None]]

    fake = [sys.executable, fake_engine.__file__]
    limit = face.SearchLimit(nodes=100)
    pool = face.EnginePool(fake, workers=1)
    on_cluster = face.DaskEngine(fake, cluster_address())
    atexit.register(on_cluster.close)  # before its cluster goes, of which Dask would tell
    result = SearchResult((_LINE,), 3, 100)
    store = face.EvaluationStore(":memory:")
    key = ("Fake 1.0", limit, 1, _START)
    store.put(*key, result)
    engine = face.StoredEngine(store, pool)
    analyst = HashEngine(spread=400.0)

    settings = face.PreparationSettings(penalty=0.002, opponent_temperature_cp=80.0, max_plies=5)
    small = dataclasses.replace(settings, max_plies=3)
    tree = face.preparation_tree(settings, analyst)
    other_tree = face.preparation_tree(dataclasses.replace(settings, fen=_PAWNS), analyst)
    states, other_states = (list(best_precomputation(each, 0).states()) for each in (tree, other_tree))
    book = face.preparation_book(tree, 0, states)
    position = face.BookPosition((), (face.BookMove(_MOVE, 1.0),), 1.0, 0.1)

    scope = CalibrationScope("Stockfish 15.1", "nodes=5000", "nodes=1000", 8, 2, "softmax", 1.0, 40.0)
    calibration = CalibratedUtility((0.5,) * 3, 4.0, scope)

    files = _Files(calibration)
    counts = MoveCounts.of_tables([GameSelection(files.games, "A").table()])
    counting = CountsPolicy(game, counts, 1.0)

    repertoire = face.read_repertoire(files.repertoire, chess.WHITE)
    with_menu = dataclasses.replace(settings, menu=2, max_plies=4, penalty=0.05)
    policies = preparation_policies(with_menu, analyst)
    without_menu = preparation_policies(dataclasses.replace(with_menu, menu=0), analyst)
    with_a_menu = Arg(policies, without_menu)
    drill = face.Drill(book, ":memory:", seed=1)
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    two = face.Engines(engine, engine)
    within = dataclasses.replace(settings, max_plies=2, top_k=1, analyst_limit=limit, opponent_limit=limit)
    made = face.prepare(within, two)
    shown = face.BookPage(made)
    (folder() / "result.json").write_text(json.dumps(made.to_json()))

    new_path = Arg(folder() / "new", "\0", fine=["nonsense"])
    headers = [{"Result": "1-0"}, {"White": 7}, {7: "White"}, {"White": "a\nb"}]
    return {
        # objects on which methods are called
        "DaskEngine()": on_cluster,
        "Drill()": drill,
        # the game
        "game": Arg(game, kuhn, start),
        "ChessState.game": face.ChessGame(),
        "ChessGame.params": Arg(
            {"max_plies": 9},
            *[{"fen": 7}, {"fen": "8/8"}, {"max_plies": 0}, {"max_plies": 10**30}, {"threefold": "yes"}],
        ),
        "make_py_observer.params": Arg({}, fine=[None]),
        "iig_obs_type": pyspiel.IIGObservationType(perfect_recall=True),
        "move": _MOVE,
        "action_of.move": Arg(_MOVE, chess.Move.null(), "e2e4"),
        "action": Arg(face.action_of(_MOVE), 0, 4096, 64 * 64 * 6),
        "state": Arg(start, kuhn_start, over, game),
        **{f"{name}.state": Arg(start, kuhn_start, game) for name in ("board_key", "position_key")},
        "states": Arg([start], *no_states),
        "player_id": Arg(0, 1, 2),
        # engines
        "find_engine.path": sys.executable,
        "command": Arg(fake, "", [], [""], fine=["nonsense"]),
        "workers": Arg(1, 0),
        "options": Arg(
            {"Hash": 8},
            *[{"UCI_Elo": 1400}, {"MultiPV": 2}, {"Hash": 1.5}, {7: 7}, {"Style": "Wild\nquit"}],
            fine=[{"a": "b"}],
        ),
        "cluster": cluster_address(),
        "nodes": Arg(5, 0, None),
        "movetime_ms": Arg(None, 5),
        "SearchLimit.depth": None,
        "text": Arg("movetime=5", "nodes=0", "nodes=" + "9" * 5000),
        "limit": Arg(limit, "nodes=5", "nodes=0", "nonsense"),
        "epds": Arg([_START], _START, [_MATED], ["nonsense"], [_START, 7]),
        "multipv": Arg(1, 0, 501),
        "samples": Arg(2, -1, 10**7),
        "StoredEngine.engine_id": Arg("Fake 1.0", "Fake 2.0"),
        # the store
        "store": store,
        "pool": pool,
        "EvaluationStore.path": Arg(":memory:", "\0", fine=["nonsense", ":memory:?"]),
        "read_only": Arg(False, True),
        "EvaluationStore.engine": "Fake 1.0",
        "EvaluationStore.limit": Arg(limit, "nodes=0", "nonsense"),  # or its text
        "epd": _START,
        "EvaluationStore.epds": Arg([_START], _START, [7], fine=[{"a": "b"}]),  # an iterable of texts
        "get_many.samples": 0,
        "put.result": Arg(
            result,
            SearchResult((), 1, 1),
            SearchResult((_LINE, _LINE), 1, 1),
            SearchResult((_LINE,), -1, 1),
            SearchResult((_LINE,), 1, 2**63),
            SearchResult((_LINE,), 1, 1, (("e2e4", 0),)),
            SearchResult((_LINE,), 1, 1, (("e2e9", 1),)),
        ),
        "export.path": new_path,
        "export.keys": Arg([key], [key[:3]], [7]),
        # scores, policies and evaluations
        "scale_cp": Arg(400.0, 0.0, 1e5),
        "plays": "softmax",
        "engine_id": "Stockfish 15.1",
        # No game, and none from the same position as another one.
        "calibration": calibration,
        "evaluation": face.EngineEvaluation(analyst, limit, 2, LinearUtility()),
        "EnginePolicy.limit": limit,
        "temperature_cp": Arg(10.0, 0.0),
        "top_k": Arg(2, 0, 501),
        "engine": Arg(engine, face.EnginePool, store, face.StoredEngine),
        # people and books
        **dict.fromkeys(("path", "file"), Arg(files.games, "\0", fine=["nonsense"])),
        "player": Arg("A", "Nobody"),
        "max_games": Arg(5, 0),
        "max_plies": Arg(9, 0),
        "numbers": Arg([0], ["one"]),
        "report": Arg(face.GameReport(), face.GameReport),
        "keys": counts.keys,
        "alpha": 1.0,
        "prior": Arg(counting, fine=[None]),
        "fit": Arg("given", "best"),
        "spec": Arg("uci(r=20,top_k=3)", "nonsense", "uci(r=0)", "uci(nodes=1,depth=1)", "uci(options=5)"),
        "utility": Arg(LinearUtility(), LinearUtility),
        # preparations
        **dict.fromkeys(("Engines.analyst", "Engines.opponent"), engine),
        "engines": two,
        "record": Arg(set(), {7}),
        "match.settings": within,
        "against": Arg(None, fine=[None]),
        "prepare.settings": Arg(within, face.PreparationSettings, limit),
        "prepare.games": Arg(0, -1),
        "prepare.budget": None,
        "order": Arg("optimistic", "random"),
        "gap": 0.001,
        "max_evaluations": Arg(9, 0),
        "plan": Arg((), (3, 2), ("a",), fine=[(1, 2, 3)]),
        "prepare.keep": Arg(None, {_START: chess.Move.from_uci("e2e5")}, {chess.STARTING_FEN: "e2e4"}),
        "enough": Arg(None, fine=...),
        "made": Arg(made, face.Preparation),
        "write.folder": Arg(folder(), fine=["nonsense"]),
        "more": Arg(None, fine=[{"a": "b"}]),
        "PreparationSettings.player": Arg(0, 2),
        "penalty": Arg(0.001, 0.0),
        # One opponent, or several.
        "opponent_temperature_cp": Arg(80.0, (), [1.0, 0.0], fine=[0.5, (1, 2, 3), [80.0]]),
        "opponent_weights": Arg((), [1.0, 2.0], [0.0], ["x"]),
        "PreparationSettings.fen": Arg(chess.STARTING_FEN, "8/8/8/8/8/8/8/8 w - - 0 1"),
        "opponent_samples": Arg(2, 0, 10**7),
        "menu": Arg(0, 501),
        "rollout_delta": Arg(0.1, 1.0),
        **dict.fromkeys(("PreparationSettings.opponent", "PreparationSettings.calibration"), ""),
        "PreparationSettings.evaluation": "linear",
        "PreparationSettings.files": Arg(None, fine=...),
        "settings": Arg(small, face.PreparationSettings, limit, game),
        "analyst": Arg(analyst, face.EnginePool, store),
        "opponent": Arg(analyst, face.EnginePool, store),
        "truncate": Arg("values", "backup"),
        "keep": Arg({_START: _MOVE}, {_START: chess.Move.from_uci("e2e5")}, {chess.STARTING_FEN: "e2e4"}),
        "tree": Arg(tree, other_tree, game),
        "preparation_book.player": Arg(0, 1),
        "preparation_book.states": Arg(states, other_states or 0, states[0]),
        "policies": preparation_policies(small, analyst),
        "control_book.policies": with_a_menu,
        "BookPosition.history": Arg((), "e2e4", ["e2e4"]),
        "BookPosition.moves": Arg((face.BookMove(_MOVE, 1.0),), (), [_MOVE]),
        "others": Arg((), [_MOVE]),
        "reach": Arg(1.0, 1.1),
        "worth": 0.1,
        "probability": 1.0,
        "start": Arg(chess.Board(), chess.Board(None), chess.STARTING_FEN),
        "side": chess.WHITE,
        "Book.positions": Arg([position], [position] * 2, position, [start]),
        "n": 1,
        "book": Arg(book, face.Book),
        **dict.fromkeys(("write_polyglot.path", "write_report.path"), new_path),
        "write_pgn.path": new_path,
        "write_pgn.headers": Arg({"White": "Us"}, *headers, fine=[{"a": "b"}]),  # a tag of one's own
        "exits": Arg(face.book_exits(book, first), [7], [BookExit]),
        "seen": Arg({(_MOVE,): 3}, 7, fine=[None]),
        "books": Arg([shown], [], [7]),
        "BookPage.notes": Arg({}, {(): 7}),
        "BookPage.matches": Arg((), [7]),
        "plots": Arg({}, {"Memory": 7}),
        "write_exports.folder": folder(),
        "formats": Arg(["pgn", "csv"], ["pgn", 7]),
        # matches
        "book_exits.opponent": Arg(first, book, lambda state: {}),
        "own": Arg(first, book, 7),
        "games": Arg(2, 0),
        "book_exits.max_plies": Arg(9, 0, MATCH_PLIES * 10_000),
        "min_probability": Arg(1e-9, 1.0),
        "leaf_value": Arg(lambda state: 0.5, 7, "exact", lambda state: None),
        "book_exits.horizon": Arg(9, 0),
        "positions": Arg(2, -1),
        "control_book.moves": Arg(3, 0),
        # for chess programs
        "read.folder": Arg(folder(), fine=...),
        # Any text is the path of a file that may not be there.
        "seed": Arg(1, fine=[None, 10**30, [1], (1, 2, 3)]),  # of any size, several, or none
        # drills
        "Drill.book": Arg(book, face.Book(chess.Board(), chess.WHITE, [])),
        "Drill.path": Arg(":memory:", "\0", fine=["nonsense", ":memory:?"]),
        "now": Arg(now, datetime.datetime(2026, 1, 1), now.date()),
        "card": drill.cards[0],
        "position": drill.line(drill.cards[0]),
        # a book that is there already
        "paths": Arg([str(files.repertoire)], [], [None], "\0", fine=["nonsense"]),
        "read_repertoire.fen": Arg(chess.STARTING_FEN, "nonsense", _START + " x"),
        "repertoire": repertoire,
        "judge_repertoire.settings": with_menu,
        "judge_repertoire.policies": Arg(policies, without_menu, policies.sigma),
        "judge_repertoire.horizon": 3,
        "known": Arg("lines", "moves"),
    }


class _Files:
    """Files that people wrote."""

    def __init__(self, calibration):
        tags = '[White "A"]\n[Black "B"]\n'
        self.games = folder() / "people.pgn"
        self.games.write_text(
            "".join(f'{tags}[Date "{1990 + k}.??.??"]\n\n1. e4 e5 2. Nf3 *\n\n' for k in range(4))
        )
        self.finished = folder() / "finished.pgn"
        self.finished.write_text(f'{tags}[Result "1-0"]\n\n1. e4 e5 1-0\n')
        self.polyglot = folder() / "people.bin"
        self.polyglot.write_bytes(bytes(16))
        self.repertoire = folder() / "mine.pgn"
        self.repertoire.write_text("1. e4 e5 (1... c5 2. Nf3) 2. Nf3 Nc6 3. Bb5 *\n")
        self.calibration = folder() / "fit.json"
        save_calibration(calibration, self.calibration)


def _certified(name):
    """Return a certified preparation in a game whose leaves all have the same value."""
    return best_first_precomputation(
        pyspiel.load_game(name), first, first, 0.1, 0, lambda state: 0.5, max_evaluations=3
    )
