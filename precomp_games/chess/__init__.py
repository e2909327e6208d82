"""Preparing chess: the game, engines as policies, stored searches, and books that chess programs read."""

from precomp_games.chess.best_parts import best_parts
from precomp_games.chess.book import (
    Book,
    BookExit,
    BookMove,
    BookPosition,
    write_pgn,
    write_polyglot,
)
from precomp_games.chess.calibration import (
    CalibratedUtility,
    CalibrationScope,
    fit_calibration,
    load_calibration,
    save_calibration,
)
from precomp_games.chess.calibration_samples import CalibrationSample, material, played_samples
from precomp_games.chess.control_books import main_line_book, most_reached_book
from precomp_games.chess.engine import (
    EngineError,
    EngineNotFoundError,
    EnginePool,
    SearchLimit,
    find_engine,
)
from precomp_games.chess.estimation import Choice, OpponentFit, fit_opponent, opponent_choices
from precomp_games.chess.game import (
    RULES_OF_CHESS,
    ChessGame,
    ChessState,
    action_of,
    board_key,
    move_of,
    position_key,
)
from precomp_games.chess.match import (
    MATCH_PLIES,
    ExitScore,
    MatchGame,
    MatchResult,
    book_exits,
    play_match,
    write_match_pgn,
)
from precomp_games.chess.played import engine_moves, pgn_moves, pgn_results, played_in
from precomp_games.chess.policies import PLAYS, EngineEvaluation, EngineMenu, EnginePolicy
from precomp_games.chess.preparation import (
    EVALUATIONS,
    PreparationPolicies,
    PreparationSettings,
    certified_book,
    equilibrium_tree,
    preparation_book,
    preparation_policies,
    preparation_tree,
)
from precomp_games.chess.report import ReportBook, ReportMatch, write_report
from precomp_games.chess.scores import LinearUtility, ThresholdUtility, WdlUtility
from precomp_games.chess.searches import MAX_LIMIT
from precomp_games.chess.store import EvaluationStore, StoreError
from precomp_games.chess.stored_engine import StoredEngine

__all__ = [
    "EVALUATIONS",
    "MATCH_PLIES",
    "MAX_LIMIT",
    "PLAYS",
    "RULES_OF_CHESS",
    "Book",
    "BookExit",
    "BookMove",
    "BookPosition",
    "CalibratedUtility",
    "CalibrationSample",
    "CalibrationScope",
    "ChessGame",
    "ChessState",
    "Choice",
    "EngineError",
    "EngineEvaluation",
    "EngineMenu",
    "EngineNotFoundError",
    "EnginePolicy",
    "EnginePool",
    "EvaluationStore",
    "ExitScore",
    "LinearUtility",
    "MatchGame",
    "MatchResult",
    "OpponentFit",
    "PreparationPolicies",
    "PreparationSettings",
    "ReportBook",
    "ReportMatch",
    "SearchLimit",
    "StoreError",
    "StoredEngine",
    "ThresholdUtility",
    "WdlUtility",
    "action_of",
    "best_parts",
    "board_key",
    "book_exits",
    "certified_book",
    "engine_moves",
    "equilibrium_tree",
    "find_engine",
    "fit_calibration",
    "fit_opponent",
    "load_calibration",
    "main_line_book",
    "material",
    "most_reached_book",
    "move_of",
    "opponent_choices",
    "pgn_moves",
    "pgn_results",
    "play_match",
    "played_in",
    "played_samples",
    "position_key",
    "preparation_book",
    "preparation_policies",
    "preparation_tree",
    "save_calibration",
    "write_match_pgn",
    "write_pgn",
    "write_polyglot",
    "write_report",
]
