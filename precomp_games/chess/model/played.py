"""Played moves: moves and results of games in PGN, an engine's own moves, and the games behind replies.

`read_games` describes which games of a file are left out. Here games from other start positions count as
well, since their positions are positions of chess like others.

A reply of a book's opponent is listed with the games in which the opponent played it in that position,
by whatever order of moves, as `CountsPolicy` counts them. They are found in tables of the games, of which
only one at a time is needed, and the listed games are then read from the file to their end.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias

import chess
import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games.chess.data import game_records
from precomp_games.chess.data.book import Book, Exits, Node, trie_with_exits
from precomp_games.chess.data.game_records import MAX_GAMES, GameRecord, position_hash, read_games
from precomp_games.chess.data.move_counts import GameSelection, GameTable, game_tables
from precomp_games.chess.data.pgn_files import GameReport
from precomp_games.chess.engines.searches import Positions, SearchLimit, SomeSamples, check_position
from precomp_games.chess.engines.stored_engine import EngineLike, searches_to_see
from precomp_games.chess.game import action_of, move_of

Moves: TypeAlias = dict[tuple[str, str], int]
_KEPT_PLIES = 200  # half-moves of a listed game


@public
def pgn_moves(
    path: checks.FilePath,
    player: str | None = None,
    *,
    skip_plies: checks.NonNegativeInt = 0,
    report: GameReport | None = None,
) -> Moves:
    """Count how often each (position as EPD, move in UCI notation) was played in a file of games.

    Copies of a game count once: see `read_games`.

    Args:
        path: the file.
        player: the player whose moves count, named as in White and Black tags (see `read_games`). None: all.
        skip_plies: half-moves at the start of each game that are left out, as known by heart.
        report: report to which the counts are added.

    Raises:
        ValueError: a name that nobody or several have (the error lists names), or no moves.
        OSError: the file cannot be read.
    """
    moves: collections.Counter[tuple[str, str]] = collections.Counter()
    for game in _games(path, player, skip_plies, report):
        for ply in range(skip_plies, len(game.actions)):
            if game.mover(ply) in game.own:
                moves[game.keys[ply], move_of(game.actions[ply]).uci()] += 1
    return dict(moves)


@public
def pgn_results(
    path: checks.FilePath,
    player: str | None = None,
    *,
    skip_plies: checks.NonNegativeInt = 0,
    report: GameReport | None = None,
) -> list[tuple[list[str], float]]:
    """Return the positions with a player to move, and the player's score, for each finished game in a file.

    If everyone's are asked for, a game gives two of these.

    Args:
        path: see `pgn_moves`, as for the rest.
        player: the player.
        skip_plies: half-moves at the start of each game that are left out.
        report: report to which the counts are added.

    Raises:
        ValueError: a name that nobody or several have (the error lists names), or no results.
        OSError: the file cannot be read.
    """
    results: list[tuple[list[str], float]] = []
    report = GameReport() if report is None else report
    for game in _games(path, player, skip_plies, report):
        white = game_records.WHITE_SCORES.get(game.result)
        if white is None:
            report.left_out["games without a result"] += 1
        for color in game.own:
            plies = range(skip_plies, len(game.actions))
            epds = [game.keys[ply] for ply in plies if game.mover(ply) == color]
            if white is not None and epds:
                results.append((epds, white if color == chess.WHITE else 1.0 - white))
    if not results:
        raise ArgumentError(f"expected finished games in {str(path)!r}, got none")
    return results


def _games(path: Any, player: str | None, skip_plies: int, report: GameReport | None) -> Iterator[GameRecord]:
    """Yield each game of a player, with EPDs as keys."""
    report = GameReport() if report is None else report
    any_long = False
    for game in game_records.read_games(path, player, setups=True, key=chess.Board.epd, report=report):
        any_long = any_long or len(game.actions) > skip_plies
        yield game
    if not any_long:
        raise ArgumentError(
            f"expected games of {'anyone' if player is None else repr(player)} of more than "
            f"{skip_plies} plies in {path!r}, got none ({report})"
        )


def played_in(engine: EngineLike, limit: SearchLimit, epds: Positions, *, samples: SomeSamples = 1) -> Moves:
    """Count how often an engine plays each (position, move) when asked in positions.

    Args:
        engine: the engine.
        limit: of its searches.
        epds: the positions, without clocks.
        samples: number of searches of each position, if its options make it draw moves.

    Raises:
        EngineError: a search failed.
    """
    samples = searches_to_see(engine, samples)
    asked = list(dict.fromkeys(epds))
    for epd in asked:
        check_position(epd)
    return {
        (epd, move): count
        for epd, result in zip(asked, engine.search(asked, limit, 1, samples), strict=True)
        for move, count in result.played
    }


@public
def engine_moves(
    engine: EngineLike,
    limit: SearchLimit,
    *,
    games: Annotated[int, checks.Ge(1), checks.Le(MAX_GAMES)],
    plies: Annotated[int, checks.Ge(1), checks.Le(game_records.MAX_PLIES)],
    samples: SomeSamples = 1,
    opening_plies: Annotated[int, checks.Ge(0), checks.Le(game_records.MAX_PLIES)] = 8,
    seed: checks.NonNegativeInt = 0,
) -> Moves:
    """Count how often an engine plays each (position, move) in games with itself.

    Args:
        engine: plays both sides.
        limit: of its searches.
        games: number of games.
        plies: half-moves of each, after the opening.
        samples: number of searches of each position, if its options make it draw moves; one of the answers is
            played.
        opening_plies: half-moves at the start of each game that are drawn from all legal ones.
        seed: of the openings, and of the choice of answers.

    Raises:
        EngineError: a search failed.
    """
    samples = searches_to_see(engine, samples)
    rng = np.random.default_rng(seed)
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
                moves[epd, move] = count  # the same value if a position comes up twice: it was asked once
            answers, counts = zip(*result.played, strict=True)
            board.push_uci(str(rng.choice(answers, p=np.array(counts) / samples)))
    if not moves:
        raise ArgumentError(f"expected positions after {opening_plies} drawn plies, got games that are over")
    return moves


History = tuple[chess.Move, ...]


@public
@dataclasses.dataclass(frozen=True)
class PlayedGame:
    """A game from a file.

    Attributes:
      white, black: names, as in the file.
      year: of the game; None if unknown.
      result: the Result tag.
      moves: from the usual start position, as far as they are kept; () if they are not.
    """

    white: str
    black: str
    year: Annotated[int, checks.Ge(0), checks.Le(9999)] | None
    result: str
    moves: Annotated[tuple[chess.Move, ...], checks.each_of(chess.Move)] = dataclasses.field(
        default=(), repr=False
    )


@public
@dataclasses.dataclass(frozen=True)
class ReplyGames:
    """The games in which a reply was played.

    Attributes:
      count: number of games.
      games: some of them, the newest first.
    """

    count: checks.PositiveInt
    games: Annotated[tuple[PlayedGame, ...], checks.each_of(PlayedGame)]


@public
@dataclasses.dataclass(frozen=True)
class Person:
    """An opponent who is a person, with data of the person's games in that color.

    Attributes:
      name: as in the file.
      games: number of games.
      first, last: years of the oldest and the newest of them; None if no game has one.
    """

    name: str
    games: checks.NonNegativeInt
    first: Annotated[int, checks.Ge(0), checks.Le(9999)] | None = None
    last: Annotated[int, checks.Ge(0), checks.Le(9999)] | None = None


def reply_games(
    book: Book,
    meant: GameSelection,
    *,
    exits: Exits = (),
    most: int = 5,
    report: GameReport | None = None,
    table: GameTable | None = None,
) -> tuple[dict[History, ReplyGames], Person | None]:
    """Return the games behind each reply that a book answers, or that leaves it, and their player.

    Args:
      book: the book whose opponent replies.
      meant: the games, of the opponent or of everybody.
      exits: exits of the book; their replies are listed as well.
      most: largest number of games that are listed of a reply.
      report: filled with the counts of what was read; must be filled already if a table is given.
      table: these games, if they have been read.

    Returns:
      By the moves up to the reply, the reply included (replies that nobody played are not in it), and the
      player; None if the games are everybody's.

    Raises:
      ValueError, OSError: see `read_games`.
    """
    report = GameReport() if report is None else report
    replies = _replies(trie_with_exits(book, exits), book.side)
    answered = np.array([key for key, _ in replies], np.uint64)
    counts: collections.Counter[tuple[int, int]] = collections.Counter()
    newest: dict[tuple[int, int], list[tuple[float, int]]] = collections.defaultdict(list)
    years = [np.empty(0)]
    for each in game_tables(meant.records(report)) if table is None else [table]:
        part = each.select(each.years < meant.before) if math.isfinite(meant.before) else each
        years.append(part.years[part.sides[:, 0 if book.side == chess.BLACK else 1]])
        there = part.own & np.isin(part.keys, answered)
        columns = (column[there].tolist() for column in (part.keys, part.actions, part.game))
        # Undated games come last; of the same date, the first one in the file comes first.
        age = np.where(np.isnan(part.years), math.inf, -part.years)
        for key, action, game in dict.fromkeys(zip(*columns, strict=True)):  # once a game
            if (key, action) in replies:
                counts[key, action] += 1
                newest[key, action].append((age[game], int(part.number[game])))
        newest = collections.defaultdict(list, {reply: sorted(old)[:most] for reply, old in newest.items()})
    listed = _listed(meant, {number for games in newest.values() for _, number in games})
    behind = {
        history: ReplyGames(counts[reply], tuple(listed[n] for _, n in newest[reply] if n in listed))
        for reply, histories in replies.items()
        if counts[reply]
        for history in histories
    }
    if meant.player is None:
        return behind, None
    played = np.concatenate(years)
    known = [math.floor(year) for year in played[~np.isnan(played)]]
    name = report.names[0] if report.names else meant.player
    return behind, Person(name, len(played), min(known, default=None), max(known, default=None))


def _listed(meant: GameSelection, numbers: set[int]) -> dict[int, PlayedGame]:
    """Read the games of these numbers to their end, whichever moves count for a policy."""
    how: dict[str, Any] = {"setups": True, "copies": True, "numbers": numbers}
    games = read_games(meant.path, max_plies=max(meant.max_plies, _KEPT_PLIES), **how) if numbers else ()
    return {record.number: _played_game(record) for record in games}


def _played_game(record: GameRecord) -> PlayedGame:
    year = None if record.year is None else math.floor(record.year)
    # Games from other positions can be listed, but not be played through.
    from_start = record.keys[:1] == (position_hash(chess.Board()),)
    moves = map(move_of, record.actions[:_KEPT_PLIES]) if from_start else ()
    return PlayedGame(record.white, record.black, year, record.result, tuple(moves))


def _replies(root: Node, side: chess.Color) -> dict[tuple[int, int], list[History]]:
    """Return the histories of each reply, by position and move."""
    histories: dict[tuple[int, int], list[History]] = collections.defaultdict(list)
    waiting: list[tuple[Node, History]] = [(root, ())]
    while waiting:
        node, history = waiting.pop()
        key = position_hash(node.board) if node.board.turn != side and node.children else 0
        for move, child in node.children.items():
            if node.board.turn != side:
                histories[key, action_of(move)].append((*history, move))
            waiting.append((child, (*history, move)))
    return histories


def rests_on_guesses(book: Book, games: Mapping[History, ReplyGames]) -> list[bool]:
    """Return for each position of a book whether a reply before it is in none of a person's games."""
    first = book.start.turn != book.side  # whether the opponent moves first
    return [
        any(
            position.history[: ply + 1] not in games
            for ply in range(0 if first else 1, len(position.history), 2)
        )
        for position in book.positions
    ]
