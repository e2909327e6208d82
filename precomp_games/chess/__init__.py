"""Preparing chess: the game, engines as policies, stored searches, and books that chess programs read."""

from precomp_games.chess.books.book import Book, BookExit, BookMove, BookPosition, write_polyglot
from precomp_games.chess.books.pgn import write_pgn
from precomp_games.chess.books.repertoire import (
    Repertoire,
    RepertoirePosition,
    RepertoireReport,
    read_repertoire,
)
from precomp_games.chess.engines.cluster import DaskEngine
from precomp_games.chess.engines.pool import (
    EngineError,
    EngineNotFoundError,
    EnginePool,
    SearchLimit,
    find_engine,
)
from precomp_games.chess.engines.searches import MAX_LIMIT
from precomp_games.chess.engines.store import EvaluationStore, StoreError
from precomp_games.chess.engines.stored_engine import StoredEngine
from precomp_games.chess.evaluation.calibration import (
    CalibratedUtility,
    CalibrationScope,
    fit_calibration,
    load_calibration,
    save_calibration,
)
from precomp_games.chess.evaluation.policies import PLAYS, EngineEvaluation, EngineMenu, EnginePolicy
from precomp_games.chess.evaluation.samples import CalibrationSample, material, played_samples
from precomp_games.chess.evaluation.scores import LinearUtility, ThresholdUtility, WdlUtility
from precomp_games.chess.game import (
    RULES_OF_CHESS,
    ChessGame,
    ChessState,
    action_of,
    board_key,
    move_of,
    position_key,
)
from precomp_games.chess.opponents.count_fit import ALPHAS, HALF_LIVES, CountFit, RollingCounts
from precomp_games.chess.opponents.engine_specs import opponent_policy
from precomp_games.chess.opponents.estimation import Choice, OpponentFit, fit_opponent, opponent_choices
from precomp_games.chess.opponents.played import engine_moves, pgn_moves, pgn_results, played_in
from precomp_games.chess.opponents.policies import (
    FITS,
    GamesPolicy,
    explorer_policy,
    games_policy,
    polyglot_policy,
    prior_of_moves,
    read_table,
    rolling_fit,
)
from precomp_games.chess.opponents.reply_games import PlayedGame, ReplyGames, reply_games
from precomp_games.chess.play.match import (
    MATCH_PLIES,
    ExitScore,
    MatchGame,
    MatchResult,
    book_exits,
    play_match,
    write_match_pgn,
)
from precomp_games.chess.play.players import EnginePlayer, PolicyPlayer
from precomp_games.chess.play.uci_engine import UciEngine, uci_book
from precomp_games.chess.preparation.best_parts import best_parts
from precomp_games.chess.preparation.control_books import MAIN_LINES, control_book
from precomp_games.chess.preparation.engines import Engines
from precomp_games.chess.preparation.evaluations import EVALUATIONS
from precomp_games.chess.preparation.judging import (
    RepertoireJudgment,
    judge_repertoire,
)
from precomp_games.chess.preparation.policies import PreparationPolicies, preparation_policies
from precomp_games.chess.preparation.preparation import Preparation, read_preparation, write_preparation
from precomp_games.chess.preparation.prepare import prepare
from precomp_games.chess.preparation.prepared_book import certified_book, preparation_book
from precomp_games.chess.preparation.settings import PreparationSettings
from precomp_games.chess.preparation.trees import equilibrium_tree, kept_entries, preparation_tree
from precomp_games.chess.records.book_counts import POLYGLOT_WEIGHTS, ExplorerCounts, PolyglotCounts
from precomp_games.chess.records.game_records import SPEEDS, GameRecord, position_hash, read_games
from precomp_games.chess.records.move_counts import (
    CountsPolicy,
    GameTable,
    GameWeights,
    MoveCounts,
    own_states,
    predicted_rows,
)
from precomp_games.chess.records.pgn_files import GameReport, pgn_names
from precomp_games.chess.study.drill import Drill, DrillCard
from precomp_games.chess.study.exports import EXPORTS, write_exports
from precomp_games.chess.study.report import ReportBook, ReportMatch, report_book, write_report

__all__ = [
    "ALPHAS",
    "EVALUATIONS",
    "EXPORTS",
    "FITS",
    "HALF_LIVES",
    "MAIN_LINES",
    "MATCH_PLIES",
    "MAX_LIMIT",
    "PLAYS",
    "POLYGLOT_WEIGHTS",
    "RULES_OF_CHESS",
    "SPEEDS",
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
    "CountFit",
    "CountsPolicy",
    "DaskEngine",
    "Drill",
    "DrillCard",
    "EngineError",
    "EngineEvaluation",
    "EngineMenu",
    "EngineNotFoundError",
    "EnginePlayer",
    "EnginePolicy",
    "EnginePool",
    "Engines",
    "EvaluationStore",
    "ExitScore",
    "ExplorerCounts",
    "GameRecord",
    "GameReport",
    "GameTable",
    "GameWeights",
    "GamesPolicy",
    "LinearUtility",
    "MatchGame",
    "MatchResult",
    "MoveCounts",
    "OpponentFit",
    "PlayedGame",
    "PolicyPlayer",
    "PolyglotCounts",
    "Preparation",
    "PreparationPolicies",
    "PreparationSettings",
    "Repertoire",
    "RepertoireJudgment",
    "RepertoirePosition",
    "RepertoireReport",
    "ReplyGames",
    "ReportBook",
    "ReportMatch",
    "RollingCounts",
    "SearchLimit",
    "StoreError",
    "StoredEngine",
    "ThresholdUtility",
    "UciEngine",
    "WdlUtility",
    "action_of",
    "best_parts",
    "board_key",
    "book_exits",
    "certified_book",
    "control_book",
    "engine_moves",
    "equilibrium_tree",
    "explorer_policy",
    "find_engine",
    "fit_calibration",
    "fit_opponent",
    "games_policy",
    "judge_repertoire",
    "kept_entries",
    "load_calibration",
    "material",
    "move_of",
    "opponent_choices",
    "opponent_policy",
    "own_states",
    "pgn_moves",
    "pgn_names",
    "pgn_results",
    "play_match",
    "played_in",
    "played_samples",
    "polyglot_policy",
    "position_hash",
    "position_key",
    "predicted_rows",
    "preparation_book",
    "preparation_policies",
    "preparation_tree",
    "prepare",
    "prior_of_moves",
    "read_games",
    "read_preparation",
    "read_repertoire",
    "read_table",
    "reply_games",
    "report_book",
    "rolling_fit",
    "save_calibration",
    "uci_book",
    "write_exports",
    "write_match_pgn",
    "write_pgn",
    "write_polyglot",
    "write_preparation",
    "write_report",
]
