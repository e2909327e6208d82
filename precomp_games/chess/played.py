"""Moves that were played: read from games in PGN, which may be broken, or drawn from an engine's own games.

A file of games is not to be trusted. It is read game by game, so its size does not matter; variations,
comments, other rules of chess, games of others, and what follows a move that cannot be read are left out; a
line longer than any in a file that people made is cut. What remains are legal moves in positions of chess.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import os
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, TypeAlias, cast

import chess
import chess.pgn
import numpy as np

from precomp_games.checks import check_instance, check_integer, check_path, check_seed
from precomp_games.chess._engine_arguments import check_position, check_positions, weakened_by
from precomp_games.chess.engine import SearchLimit
from precomp_games.chess.searches import MAX_SAMPLES
from precomp_games.chess.stored_engine import StoredEngine, check_engine

__all__ = ["engine_moves", "pgn_moves", "pgn_results", "played_in"]

Moves: TypeAlias = dict[tuple[str, str], int]

MAX_LINE = 1 << 16  # characters; PGN allows 255
MAX_PLIES = 1000  # of one game
MAX_GAMES = 10**6
_RULES = frozenset({"", "standard", "chess", "normal", "?"})
_RESULTS = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}
_SAME_FROM = 20  # plies: from there on, two games with the same moves are one game that stands there twice


class _Lines:
    """A text file whose lines have an end."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def readline(self) -> str:
        return self._file.readline(MAX_LINE)


class _Game(chess.pgn.BaseVisitor["_Game"]):
    """The moves of a game's main line, and who played them."""

    def __init__(self) -> None:
        self.headers = chess.pgn.Headers({})
        self.moves: list[tuple[chess.Color, str, str]] = []
        self._over = False

    def begin_headers(self) -> chess.pgn.Headers:
        return self.headers

    def visit_header(self, tagname: str, tagvalue: str) -> None:
        self.headers[tagname] = tagvalue

    def begin_variation(self) -> Any:
        return chess.pgn.SKIP

    def visit_board(self, board: chess.Board) -> None:
        # The first one is that of the start: a position that cannot come up is none to search.
        if not self.moves and not board.is_valid():
            self._over = True

    def visit_move(self, board: chess.Board, move: chess.Move) -> None:
        self._over = self._over or not move or len(self.moves) >= MAX_PLIES
        if not self._over:
            self.moves.append((board.turn, board.epd(), move.uci()))

    def handle_error(self, error: Exception) -> None:
        self._over = True

    def result(self) -> _Game:
        return self


def pgn_moves(
    path: str | os.PathLike[str],
    player: str | None = None,
    *,
    skip_plies: int = 0,
    max_games: int = MAX_GAMES,
) -> Moves:
    """How often each (position as EPD, move in UCI notation) was played in a file of games.

    A game that stands there twice counts once.

    Args:
        path: the file.
        player: whose moves, as the White and Black tags have the name, in capitals or not. None: everyone's.
        skip_plies: how many half-moves at the start of each game are left out, as known by heart.
        max_games: how many games, of that player, are read.

    Raises:
        ValueError: an argument of another kind; or no moves of that player, saying whose there are.
        OSError: the file cannot be read.
    """
    who = "pgn_moves()"
    path, wanted, skip_plies, max_games = _checked(path, player, skip_plies, max_games, who)
    moves: collections.Counter[tuple[str, str]] = collections.Counter()
    names: collections.Counter[str] = collections.Counter()
    for game, sides in _games(path, wanted, max_games, names):
        for color, epd, move in game.moves[skip_plies:]:
            if wanted in (None, sides[color]):
                moves[epd, move] += 1
    if not moves:
        raise ValueError(f"{who}: expected {_missed(player, skip_plies, path, names)}")
    return dict(moves)


def pgn_results(
    path: str | os.PathLike[str],
    player: str | None = None,
    *,
    skip_plies: int = 0,
    max_games: int = MAX_GAMES,
) -> list[tuple[list[str], float]]:
    """Positions in which a player was to move, and what it scored, for each finished game in a file.

    Where everyone's are asked for, a game gives two of these.

    Args:
        path: see `pgn_moves`, as for the rest.
        player: who.
        skip_plies: how many half-moves at the start of each game are left out.
        max_games: how many games, of that player, are read.

    Raises:
        ValueError: an argument of another kind; or no results of that player, saying whose there are.
        OSError: the file cannot be read.
    """
    who = "pgn_results()"
    path, wanted, skip_plies, max_games = _checked(path, player, skip_plies, max_games, who)
    found: list[tuple[list[str], float]] = []
    names: collections.Counter[str] = collections.Counter()
    for game, sides in _games(path, wanted, max_games, names):
        white = _RESULTS.get(game.headers.get("Result", "*"))
        for color in chess.COLORS:
            epds = [epd for turn, epd, _ in game.moves[skip_plies:] if turn == color]
            if white is not None and epds and wanted in (None, sides[color]):
                found.append((epds, white if color == chess.WHITE else 1.0 - white))
    if not found:
        raise ValueError(f"{who}: expected results and {_missed(player, skip_plies, path, names)}")
    return found


def _checked(
    path: Any, player: Any, skip_plies: Any, max_games: Any, caller: str
) -> tuple[str, str | None, int, int]:
    """What is read of which file; the player as names are compared."""
    return (
        check_path(path, "path", caller),
        None if player is None else _plain(check_instance(player, str, "player", caller)),
        check_integer(skip_plies, "skip_plies", caller, least=0),
        check_integer(max_games, "max_games", caller, least=1),
    )


def _missed(player: str | None, skip_plies: int, path: str, names: collections.Counter[str]) -> str:
    """What a file does not have, and whose games it has."""
    found = ", ".join(repr(name) for name, _ in names.most_common(5))
    return (
        f"moves of {'anyone' if player is None else repr(player)} after {skip_plies} plies in {path!r}, "
        f"got none: the file has {f'games of {found}' if found else 'no games'}"
    )


def _games(
    path: str, wanted: str | None, max_games: int, names: collections.Counter[str]
) -> Iterator[tuple[_Game, list[str]]]:
    """(a game, Black's and White's name) of each game of that player; counts all names in `names`."""
    seen: set[tuple[str, ...]] = set()
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        lines, games = cast(TextIO, _Lines(file)), 0
        while games < max_games:
            game = _Game()
            with contextlib.suppress(IndexError, AssertionError, ValueError):  # python-chess's, of odd games
                if chess.pgn.read_game(lines, Visitor=functools.partial(_same, game)) is None:
                    break
            if not game.headers:
                continue  # the rest of a game that broke off
            sides = [_plain(game.headers.get(side, "?")) for side in ("Black", "White")]
            names.update(sides)
            if wanted is not None and wanted not in sides:
                continue
            if game.headers.get("Variant", "").casefold() not in _RULES:
                continue
            line = tuple(move for _, _, move in game.moves)
            if len(line) >= _SAME_FROM:
                if line in seen:
                    continue
                seen.add(line)
            games += 1
            yield game, sides


def _same(game: _Game) -> _Game:
    return game


def _plain(name: str) -> str:
    """A name as it is compared."""
    return " ".join(name.casefold().split())


def played_in(engine: StoredEngine, limit: SearchLimit, epds: Iterable[str], *, samples: int = 1) -> Moves:
    """How often each (position, move) is played by an engine that is asked in positions.

    Args:
        engine: plays what it answers.
        limit: of its searches.
        epds: the positions, without clocks.
        samples: how often it is asked in each position, where its options make it draw.

    Raises:
        ValueError: an argument of another kind, or out of range.
        EngineError, StoreError: a search failed.
    """
    who = "played_in()"
    limit, samples = _check_player(engine, limit, samples, who)
    asked = list(dict.fromkeys(check_positions(epds, who)))
    for epd in asked:
        check_position(epd, who)
    return {
        (epd, move): count
        for epd, result in zip(asked, engine.search(asked, limit, 1, samples), strict=True)
        for move, count in result.played
    }


def _check_player(engine: Any, limit: Any, samples: Any, caller: str) -> tuple[SearchLimit, int]:
    """The limit, and how often the engine is asked: once where it does not draw its moves."""
    check_engine(engine, "engine", caller, scores=False)
    limit = check_instance(limit, SearchLimit, "limit", caller)
    samples = check_integer(samples, "samples", caller, least=1, most=MAX_SAMPLES)
    return limit, samples if weakened_by(engine.engine_id) else 1


def engine_moves(
    engine: StoredEngine,
    limit: SearchLimit,
    *,
    games: int,
    plies: int,
    samples: int = 1,
    opening_plies: int = 8,
    seed: int = 0,
) -> Moves:
    """How often each (position, move) is played by an engine in games with itself.

    Args:
        engine: plays both sides, what it answers.
        limit: of its searches.
        games: how many.
        plies: half-moves of each, after the opening.
        samples: how often it is asked in each position, where its options make it draw; one of the answers
            is played.
        opening_plies: half-moves at the start of each game that are drawn from all legal ones.
        seed: for the openings, and for which of the answers is played.

    Raises:
        ValueError: an argument of another kind, or out of range.
        EngineError, StoreError: a search failed.
    """
    who = "engine_moves()"
    limit, samples = _check_player(engine, limit, samples, who)
    games = check_integer(games, "games", who, least=1, most=MAX_GAMES)
    plies = check_integer(plies, "plies", who, least=1, most=MAX_PLIES)
    opening_plies = check_integer(opening_plies, "opening_plies", who, least=0, most=MAX_PLIES)
    rng = np.random.default_rng(check_seed(seed, who))
    boards = []
    for _ in range(games):
        board = chess.Board()
        for _ in range(opening_plies):
            legal = list(board.legal_moves)
            if not legal:
                break
            board.push(legal[rng.integers(len(legal))])
        boards.append(board)
    moves: Moves = {}
    for _ in range(plies):
        boards = [board for board in boards if not board.is_game_over()]
        epds = [board.epd() for board in boards]
        for board, epd, result in zip(boards, epds, engine.search(epds, limit, 1, samples), strict=True):
            for move, count in result.played:
                moves[epd, move] = count  # the same again where a position comes up twice: it was asked once
            answers, counts = zip(*result.played, strict=True)
            board.push_uci(str(rng.choice(answers, p=np.array(counts) / samples)))
    if not moves:
        raise ValueError(
            f"{who}: expected positions after {opening_plies} drawn plies, got games that are over"
        )
    return moves
