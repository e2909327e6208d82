"""What `examples/chess_preparation.py` has written, read again: a book, and what it was made by.

A file is not to be trusted: settings, moves and numbers are checked as if they were given anew, and what
settings name is neither opened nor run (`PreparationSettings.trusted`).
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import chess
import chess.engine

from precomp_games._support.arguments import ArgumentError, FilePath, public
from precomp_games._support.checks import check_integer, shown
from precomp_games._support.messages import one_line, plain_text
from precomp_games.chess.books.book import Book, BookExit, BookMove, BookPosition
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.opponents.played import PlayedGame, ReplyGames
from precomp_games.chess.preparation.model_files import MODEL_FILE, ModelFiles
from precomp_games.chess.preparation.settings import PreparationPolicies, PreparationSettings

__all__ = ["WrittenPreparation", "read_preparation", "write_opponent_data"]

# What another kind of value than was written ends in.
_NO_RESULT = "read_preparation(): expected a result.json of chess_preparation.py, got {!r} ({})"
_PROBLEMS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@dataclasses.dataclass(frozen=True)
class WrittenPreparation:
    """A book and what it was made by.

    Attributes:
      settings: Of the preparation.
      book: What is memorized.
      promised: The book's expected score by the preparation, or its analyst's score.
      engines: The analyst's and the opponent's identity, as `StoredEngine` has it.
      stops: What games from where lines leave the book are expected to score, by moves in UCI notation.
      exits: Where games leave the book.
      evaluations: The analyst's, by the moves up to the position.
      games: In which the opponent's replies were played, by the moves up to the reply and with it.
      told: All that the result says, as JSON has it.
    """

    settings: PreparationSettings
    book: Book
    promised: float
    engines: tuple[str, str]
    stops: dict[tuple[str, ...], float]
    exits: tuple[BookExit, ...] = ()
    evaluations: Mapping[tuple[chess.Move, ...], chess.engine.PovScore] = dataclasses.field(
        default_factory=dict
    )
    games: Mapping[tuple[chess.Move, ...], ReplyGames] = dataclasses.field(default_factory=dict)
    told: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def side(self) -> str:
        """The book's, "white" or "black"."""
        return chess.COLOR_NAMES[self.book.side]

    @classmethod
    @public
    def of(cls, told: Any) -> WrittenPreparation:
        """What a result of `chess_preparation.py` says, as JSON has it.

        Raises:
          ValueError: it is no such result.
        """
        try:
            return cls._parsed(told)
        except _PROBLEMS as error:
            raise ArgumentError(
                f"expected a result of chess_preparation.py, got {shown(told)} ({one_line(repr(error))})"
            ) from None

    @classmethod
    def _parsed(cls, told: Any, files: ModelFiles | None = None) -> WrittenPreparation:
        given = dict(told["settings"])
        for name in ("analyst_limit", "opponent_limit"):
            given[name] = SearchLimit.parse(given[name])
        settings = PreparationSettings(**given, trusted=False, files=files)  # a file that says so is refused
        engines = (plain_text(str(told["analyst"])), plain_text(str(told["opponent"])))
        for text in (*engines, settings.opponent, settings.calibration):  # which terminals are shown
            if not text.isprintable():
                raise ValueError(f"a name that cannot be printed, {shown(text)}")
        positions = [
            BookPosition(
                _moves(entry["after"]),
                tuple(BookMove(chess.Move.from_uci(move), p) for move, p in entry["play"].items()),
                entry["reach"],
                entry["net_gain"],
                tuple(
                    (chess.Move.from_uci(move), -change) for move, change in entry.get("instead", {}).items()
                ),
            )
            for entry in told["memorized"]
        ]
        exits = [
            BookExit(_moves(each["after"]), each["over"], each["reach"], each["promised"])
            for each in told.get("exits", ())
        ]
        side = chess.WHITE if settings.player == 0 else chess.BLACK
        evaluations = {
            position.history: _score(entry["evaluation"], side)
            for position, entry in zip(positions, told["memorized"], strict=True)
            if "evaluation" in entry
        }
        return cls(
            settings,
            Book(settings.game().start_board, side, positions),
            float(told["utility"]),
            engines,
            {tuple(stop["after"]): float(stop["value"]) for stop in told.get("stops", ())},
            tuple(exits),
            evaluations,
            {_moves(each["after"]): _games(each) for each in told.get("replies", ())},
            told,
        )


def _moves(texts: Sequence[str]) -> tuple[chess.Move, ...]:
    """Moves in UCI notation."""
    return tuple(map(chess.Move.from_uci, texts))


def _score(told: Mapping[str, Any], side: chess.Color) -> chess.engine.PovScore:
    """An evaluation, in centipawns or moves to mate, of the book's side."""
    ((unit, value),) = told.items()
    kinds = {"cp": chess.engine.Cp, "mate": chess.engine.Mate}
    return chess.engine.PovScore(kinds[unit](check_integer(value, unit)), side)


def _games(told: Mapping[str, Any]) -> ReplyGames:
    """The games of a reply."""
    names = [field.name for field in dataclasses.fields(PlayedGame)]
    games = [PlayedGame(**{name: each[name] for name in names}) for each in told["games"]]
    return ReplyGames(told["count"], tuple(games))


@public
def read_preparation(folder: FilePath) -> WrittenPreparation:
    """Reads `result.json` in an output folder, and what its opponent was made of, if `opponent.npz` is there.

    Raises:
      ValueError: the folder has no such file, or what is in it is no result of a preparation.
    """
    path = pathlib.Path(folder) / "result.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        data = path.with_name(MODEL_FILE)
        files = ModelFiles.load(data) if data.is_file() else None
    except OSError as error:
        raise ArgumentError(
            f"expected an output folder of chess_preparation.py, got {str(folder)!r} "
            f"({error.strerror}: {path})"
        ) from None
    except (RecursionError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(_NO_RESULT.format(str(path), one_line(repr(error)))) from None
    try:
        return WrittenPreparation._parsed(told, files)
    except _PROBLEMS as error:
        raise ValueError(_NO_RESULT.format(str(path), one_line(repr(error)))) from None


@public
def write_opponent_data(
    folder: FilePath, settings: PreparationSettings, policies: PreparationPolicies
) -> bool:
    """Writes what an opponent and an evaluation were made of beside a result, to be played without the files.

    `opponent.npz` has counts of moves, as they were fitted, and a calibration: no games.

    Args:
      folder: where `result.json` is.
      settings: of the preparation.
      policies: what `preparation_policies` made of them.

    Returns:
      Whether there was something to write: the settings name files, and no engine (whose spec must be
      repeated by whoever plays the preparation).

    Raises:
      ValueError: arguments of another kind.
      OSError: the file cannot be written.
    """
    path = pathlib.Path(folder) / MODEL_FILE
    data = ModelFiles.of(settings, policies.sigma[1 - settings.player], policies.leaf_value)
    if data is not None:
        data.save(path)
    return data is not None
