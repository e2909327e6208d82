"""The games behind an opponent's replies: who played them, when, and how they ended.

A reply is listed with the games in which the opponent played it in that position, however the game came
there, as `CountsPolicy` counts them. Reading takes one pass over the file, and memory for what is listed.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import os
from collections.abc import Callable
from typing import Annotated, Any

import chess

from precomp_games._support.arguments import INFINITE, Ge, Le, PositiveInt, each_of, public
from precomp_games.chess.books.book import Book, Exits, Node, trie_with_exits
from precomp_games.chess.game import action_of
from precomp_games.chess.opponents.policies import DEFAULT_PLIES
from precomp_games.chess.records.game_records import GameRecord, position_hash, read_games
from precomp_games.chess.records.pgn_files import GameReport, name_words

__all__ = ["PlayedGame", "ReplyGames", "reply_games"]

History = tuple[chess.Move, ...]


@public
@dataclasses.dataclass(frozen=True)
class PlayedGame:
    """A game that somebody played.

    Attributes:
      white, black: names, as the file has them.
      year: when; None if the file does not know.
      result: the Result tag.
    """

    white: str
    black: str
    year: Annotated[int, Ge(0), Le(9999)] | None
    result: str


@public
@dataclasses.dataclass(frozen=True)
class ReplyGames:
    """The games in which a reply was played.

    Attributes:
      count: how many there are.
      games: some of them, the newest first.
    """

    count: PositiveInt
    games: Annotated[tuple[PlayedGame, ...], each_of(PlayedGame)]


@public
def reply_games(
    book: Book,
    path: str | os.PathLike[str],
    player: str | None = None,
    *,
    exits: Exits = (),
    without: str | None = None,
    most: PositiveInt = 5,
    max_plies: int = DEFAULT_PLIES,
    before: Annotated[float, INFINITE] = math.inf,
    report: GameReport | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[History, ReplyGames]:
    """The games behind each reply that a book has an answer to, or that leaves it.

    Args:
      book: whose opponent replies.
      path: a PGN file.
      player: who the opponent is, as the file has the name (see `read_games`); None: everybody.
      exits: where games leave the book; replies that do are listed as well.
      without: whose games are left out.
      most: how many games are listed of a reply.
      max_plies: half-moves of a game that count, as for `games_policy`.
      before: a decimal year. Where it is finite, only games that are known to be older count.
      report: is filled with what was read and what was not.
      progress: called now and then with the bytes that were read so far, and with the file's size.

    Returns:
      By the moves up to the reply, the reply included; replies that nobody played are not in it.

    Raises:
      ValueError: arguments of another kind; see `read_games`.
      OSError: the file cannot be read.
    """
    root = trie_with_exits(book, exits)
    report = GameReport() if report is None else report
    records = read_games(path, player, without=without, max_plies=max_plies, report=report, progress=progress)
    replies = _replies(root, book.side)
    counts: collections.Counter[tuple[int, int]] = collections.Counter()
    newest: dict[tuple[int, int], list[tuple[float, PlayedGame]]] = collections.defaultdict(list)
    names: set[Any] | None = None
    for record in records:
        if player is not None and names is None:  # known from the first game on
            names = {name_words(name) for name in report.names}
        if math.isfinite(before) and not (record.year is not None and record.year < before):
            continue
        for reply in _played(record, replies, names):
            counts[reply] += 1
            year = None if record.year is None else math.floor(record.year)
            game = PlayedGame(record.white, record.black, year, record.result)
            listed = newest[reply]
            # Undated games come last; of the same date, the first one in the file first.
            listed.append((math.inf if record.year is None else -record.year, game))
            listed.sort(key=lambda entry: entry[0])
            del listed[most:]
    return {
        history: ReplyGames(counts[reply], tuple(game for _, game in newest[reply]))
        for reply, histories in replies.items()
        if counts[reply]
        for history in histories
    }


def _replies(root: Node, side: chess.Color) -> dict[tuple[int, int], list[History]]:
    """The histories of each reply, by position and move."""
    found: dict[tuple[int, int], list[History]] = collections.defaultdict(list)
    waiting: list[tuple[Node, History]] = [(root, ())]
    while waiting:
        node, history = waiting.pop()
        key = position_hash(node.board) if node.board.turn != side and node.children else 0
        for move, child in node.children.items():
            if node.board.turn != side:
                found[key, action_of(move)].append((*history, move))
            waiting.append((child, (*history, move)))
    return found


def _played(
    record: GameRecord, replies: dict[tuple[int, int], list[History]], names: set[Any] | None
) -> set[tuple[int, int]]:
    """The replies that a game has, by somebody with one of these names; each once."""
    played = {chess.WHITE: record.white, chess.BLACK: record.black}
    theirs = {color: names is None or name_words(name) in names for color, name in played.items()}
    return {
        pair
        for ply, pair in enumerate(zip(record.keys, record.actions, strict=True))
        if theirs[record.mover(ply)] and pair in replies
    }
