"""A book as a PGN game with variations, which study tools import and people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import chess
import chess.pgn

from precomp_games._support.files import atomic_write
from precomp_games._support.validation import ArgumentError, FilePath, public, shown
from precomp_games.chess.books.book import Book, Exits, Node, percent, points, trie_with_exits
from precomp_games.chess.game import is_legal


@public
def write_pgn(
    book: Book,
    path: FilePath,
    headers: Mapping[str, str] | None = None,
    exits: Exits = (),
    seen: Mapping[tuple[chess.Move, ...], int] | None = None,
) -> None:
    """Writes the book as one PGN game with variations, replacing `path` atomically.

    The main line at each move is the most reached one; of the opponent's moves there are those that
    lead to memorized positions. Lines end with our move in their last memorized position. A comment
    at each move of ours says how often its position comes up and what forgetting that costs (its
    worth), the move's own probability where we mix, and what else there was to choose and what it would
    have changed, all in points of 100 games. The result is "*". The same book gives the
    same bytes: no date is written unless `headers` has one.

    Args:
      book: what to write; if empty, a game without moves.
      path: the file.
      headers: PGN tags to set. SetUp and FEN come from the book.
      exits: where games leave the book, as `book_exits` gives them. With them, the opponent's moves that
        leave the book are written as well, each of its moves has a comment on how likely it is, and each
        exit one on what is expected of the games that leave there.
      seen: in how many games of an opponent with games each reply was played, by the moves up to the reply
        and with it. A comment at each reply then says so; what is not in it was never seen.

    Raises:
      ValueError: no book or path, exits that are none or have illegal moves, or a header that is set here
        (FEN, SetUp, Result, Variant), with an invalid name, or whose value has control characters.
      OSError: as `atomic_write`.
    """
    game, _ = book_game(book, exits, seen)
    set_headers(game, headers)
    with atomic_write(path) as file:
        file.write(pgn_text(game))


def pgn_text(game: chess.pgn.Game) -> str:
    """A game as it stands in a file, with the empty line after it."""
    return game.accept(chess.pgn.StringExporter(headers=True, variations=True, comments=True)) + "\n\n"


def book_game(
    book: Book,
    exits: Exits,
    seen: Mapping[tuple[chess.Move, ...], int] | None = None,
    guess: str = "a guess: never seen",
) -> tuple[chess.pgn.Game, list[tuple[chess.pgn.GameNode, Node | None]]]:
    """A book as a game with variations and comments, as `write_pgn` writes it.

    Args:
      book: see there.
      exits: see there.
      seen: see there.
      guess: what is said of a reply that was never seen.

    Returns:
      The game, and each of its nodes with the one of the trie, parents first; None beside a move of ours
      after which the trie has nothing.

    Raises:
      ValueError: see `write_pgn`.
    """
    game = chess.pgn.Game()
    game.setup(book.start)
    pairs: list[tuple[chess.pgn.GameNode, Node | None]] = [(game, trie_with_exits(book, exits))]
    histories: list[tuple[chess.Move, ...]] = [()]
    # Both grow as they go: a trie is as deep as games are long, which the recursion limit may not allow for.
    for (pgn_node, node), history in zip(pairs, histories, strict=True):
        if node is None:
            continue
        for move, comment in _continuations(node):
            after = (*history, move)
            if seen is not None and pgn_node.turn() != book.side:
                comment = ", ".join(filter(None, (comment, _seen(seen.get(after, 0), guess))))
            pairs.append((pgn_node.add_variation(move, comment=comment), node.children.get(move)))
            histories.append(after)
    return game, pairs


def _seen(games: int, guess: str) -> str:
    """In how many of a person's games a reply was seen, in words."""
    return f"seen in {games} of their games" if games else guess


def set_headers(game: chess.pgn.Game, headers: Mapping[str, str] | None, own: Sequence[str] = ()) -> None:
    """Sets PGN tags, as a user gives them; `own` are tags that the caller sets besides the usual ones.

    Raises:
      ValueError: see `write_pgn`.
    """
    taken = ("FEN", "SetUp", "Result", "Variant", *own)
    for name, value in (headers or {}).items():
        if name in taken or not isinstance(value, str):
            raise ArgumentError(
                f"expected headers as text, other than {', '.join(taken[:-1])} and {taken[-1]}, "
                f"got {name}={shown(value)}"
            )
        if any(ord(character) < 32 for character in value):
            raise ArgumentError(f"expected headers of one line, got {name}={value!r}")
        try:
            # python-chess writes values as they are; the standard wants these two escaped.
            game.headers[name] = value.replace("\\", "\\\\").replace('"', '\\"')
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"expected PGN tag names, got {name!r}") from error


def _continuations(node: Node) -> list[tuple[chess.Move, str]]:
    """The moves to show after a node, most reached first, with their comments."""
    position = node.position
    played = [entry for entry in position.moves if entry.probability > 0.0] if position else []
    # Equal reach: in the given order, which is best first; the others by their names.
    shown: list[tuple[float, int, str, chess.Move, str]] = []
    for rank, entry in enumerate(played):
        assert position is not None
        comment = f"in {percent(position.reach)} of games, {_forgetting(position.worth)}"
        if len(played) > 1:
            comment += f", played {percent(entry.probability)}"
        if position.others and rank == 0:
            others = sorted(position.others, key=lambda other: other[1])
            told = [
                f"{node.board.san(move)} {'+' if loss < 0.0 else '-'}{points(abs(loss))}"
                for move, loss in others
                if is_legal(node.board, move)
            ]
            comment += f"; instead: {', '.join(told)}"
        comment += _ending(node.children.get(entry.move), "; ")
        flow = position.reach * entry.probability
        shown.append((-flow, rank, entry.move.uci(), entry.move, comment))
    ours = {entry.move for entry in played}
    for move, child in node.children.items():
        if move not in ours:
            # The opponent's move, or ours from a position that is not in the book.
            likely = f"{percent(child.mass / node.mass)} of replies" if position is None and node.mass else ""
            comment = likely + _ending(child, "; " if likely else "")
            shown.append((-child.flow, len(played), move.uci(), move, comment))
    shown.sort(key=lambda item: item[:3])
    return [(move, comment) for *_, move, comment in shown]


def _ending(node: Node | None, before: str) -> str:
    """What is to be said of games that leave the book at a node, after what stands `before`; else nothing."""
    if node is None or node.exit is None or node.exit.promised is None:
        return ""
    what = "the game is over" if node.exit.over else "the book ends"
    return f"{before}{what}, expected {points(node.exit.promised)} points in 100 games"


def _forgetting(worth: float) -> str:
    """What forgetting a position means, in words."""
    shown_worth = points(abs(worth))
    if float(shown_worth) == 0.0:
        return "forgetting it costs less than 0.01 points in 100 games"
    return f"forgetting it {'costs' if worth > 0.0 else 'saves'} {shown_worth} points in 100 games"
