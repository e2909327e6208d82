"""Preparing chess: the game, engines as policies, stored searches, and books that chess programs read."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from precomp_games.chess.data.book import Book, BookMove, BookPosition, write_pgn, write_polyglot
    from precomp_games.chess.data.game_records import read_games
    from precomp_games.chess.data.pgn_files import GameReport
    from precomp_games.chess.data.repertoire import read_repertoire
    from precomp_games.chess.engines.cluster import DaskEngine
    from precomp_games.chess.engines.pool import EngineError, EnginePool, find_engine
    from precomp_games.chess.engines.searches import SearchLimit
    from precomp_games.chess.engines.store import EvaluationStore
    from precomp_games.chess.engines.stored_engine import StoredEngine
    from precomp_games.chess.game import ChessGame, ChessState, action_of, board_key, move_of, position_key
    from precomp_games.chess.model.engine_policies import EngineEvaluation, EnginePolicy
    from precomp_games.chess.model.model import Engines
    from precomp_games.chess.model.opponents import games_policy, opponent_policy
    from precomp_games.chess.model.settings import PreparationSettings
    from precomp_games.chess.plan.controls import control_book
    from precomp_games.chess.plan.judging import judge_repertoire
    from precomp_games.chess.plan.preparation import Preparation
    from precomp_games.chess.plan.prepare import prepare
    from precomp_games.chess.plan.trees import preparation_book, preparation_tree
    from precomp_games.chess.play.match import book_exits
    from precomp_games.chess.study.drill import Drill
    from precomp_games.chess.study.exports import write_exports
    from precomp_games.chess.study.page import BookPage, write_report
else:
    from precomp_games._support.faces import face

    __getattr__ = face(
        __name__,
        {
            "data.book": "Book BookMove BookPosition write_pgn write_polyglot",
            "data.repertoire": "read_repertoire",
            "engines.cluster": "DaskEngine",
            "engines.pool": "EngineError EnginePool find_engine",
            "engines.searches": "SearchLimit",
            "engines.store": "EvaluationStore",
            "engines.stored_engine": "StoredEngine",
            "model.engine_policies": "EngineEvaluation EnginePolicy",
            "game": "ChessGame ChessState action_of board_key move_of position_key",
            "model.opponents": "games_policy opponent_policy",
            "play.match": "book_exits",
            "plan.controls": "control_book",
            "plan.judging": "judge_repertoire",
            "model.model": "Engines",
            "plan.preparation": "Preparation",
            "plan.prepare": "prepare",
            "model.settings": "PreparationSettings",
            "plan.trees": "preparation_book preparation_tree",
            "data.game_records": "read_games",
            "data.pgn_files": "GameReport",
            "study.drill": "Drill",
            "study.exports": "write_exports",
            "study.page": "BookPage write_report",
        },
    )

__all__ = [
    "Book",
    "BookMove",
    "BookPage",
    "BookPosition",
    "ChessGame",
    "ChessState",
    "DaskEngine",
    "Drill",
    "EngineError",
    "EngineEvaluation",
    "EnginePolicy",
    "EnginePool",
    "Engines",
    "EvaluationStore",
    "GameReport",
    "Preparation",
    "PreparationSettings",
    "SearchLimit",
    "StoredEngine",
    "action_of",
    "board_key",
    "book_exits",
    "control_book",
    "find_engine",
    "games_policy",
    "judge_repertoire",
    "move_of",
    "opponent_policy",
    "position_key",
    "preparation_book",
    "preparation_tree",
    "prepare",
    "read_games",
    "read_repertoire",
    "write_exports",
    "write_pgn",
    "write_polyglot",
    "write_report",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
