"""Books of memorized positions, the format that chess programs play from, and PGN with variations.

A book contains the positions that one side has memorized: histories after which it is to move, and its moves
there. It does not depend on how it was computed. `write_polyglot` writes a file for engines and GUIs to play
from, `write_pgn` one for study tools and people to read.

A book counts histories, as the papers do. Polyglot files know positions only: histories that
transpose into each other are one entry there, and a program plays from the entry however it got
there, so it may know more than the book's owner was charged for. `len(book)` and
`book.distinct_positions` give both counts.
"""

from __future__ import annotations

import html
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import chess
import chess.pgn
import chess.polyglot
import chess.svg

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.files import atomic_write
from precomp_games._support.results import Result, as_json
from precomp_games.chess.game import board_after, is_legal

# Tolerance of a probability above 1, and of the sum of a position's probabilities.
_TOLERANCE = 1e-6
_Probability = Annotated[
    float, checks.Ge(0.0), checks.Le(1.0 + _TOLERANCE)
]  # a product of probabilities may exceed 1 a little
_History = Annotated[tuple[chess.Move, ...], checks.each_of(chess.Move)]
# A weight is an unsigned 16-bit number, but programs add up a position's in a signed one.
_MAX_WEIGHT_SUM = 32767


@public
@dataclass(frozen=True)
class BookMove:
    """A move that we play, with its probability in [0, 1]; moves of probability 0 are not written."""

    move: chess.Move
    probability: _Probability


@public
@dataclass(frozen=True)
class BookPosition(Result):
    """A memorized history and what we play after it.

    Attributes:
      history: all moves, ours and the opponent's, from the book's start to this position.
      moves: the moves that we play, best first; their probabilities sum to 1.
      reach: probability in [0, 1] that a game comes here.
      worth: loss of utility, from our viewpoint and over all games (not only those that come here), if this
        position and all that follow it are forgotten, less the penalties that this would save.
      others: the other candidate moves, each with the loss of choosing it instead, as `worth`.

    Raises:
      ValueError: probabilities that do not sum to 1, a reach outside [0, 1], or a worth that is not finite.
    """

    history: _History
    moves: Annotated[tuple[BookMove, ...], checks.each_of(BookMove)]
    reach: _Probability
    worth: float
    others: Annotated[tuple[tuple[chess.Move, float], ...], checks.Check(_others)] = ()

    def __post_init__(self) -> None:
        """Check what can be checked without the position; `Book` checks the rest."""
        probabilities = [entry.probability for entry in self.moves]
        # Sums of products, so 1 may be missed by a little.
        if abs(math.fsum(probabilities) - 1.0) > _TOLERANCE:
            raise ArgumentError(
                f"expected moves with probabilities that sum to 1, got {probabilities} after {self}"
            )

    def __str__(self) -> str:
        """Return the history in UCI notation."""
        return " ".join(move.uci() for move in self.history) or "(start)"


@public
@dataclass(frozen=True)
class BookExit:
    """A history after which games leave a book, or end in it.

    Attributes:
      history: all moves up to the first position of ours that the book does not have, or to the game's end.
      over: whether the game ends here, inside the book.
      reach: probability that a game leaves here, against the opponent as modeled. They sum to 1.
      promised: expected score of such a game, for the book's side, in [0, 1]; None if unknown.

    """

    history: _History
    over: bool
    reach: _Probability
    promised: _Probability | None


Exits = Annotated[Iterable[BookExit], checks.each_of(BookExit)]
"""The exits of a book, as `book_exits` gives them."""


@dataclass
class Node:
    """A memorized position, or one on the way to a memorized one: a node of a trie of histories.

    Attributes:
      board: the position, without a move stack.
      children: nodes by the next move.
      position: the memorized position, or None.
      flow: the reach of the most reached memorized position, or exit, here or below.
      exit: the exit, if games leave the book here.
      mass: the reach of all exits here or below; 0 where they are not known.
      value: sum of reach times expected score over these exits; None if one of them is unknown.
    """

    board: chess.Board
    children: dict[chess.Move, Node] = field(default_factory=dict)
    position: BookPosition | None = None
    flow: float = 0.0
    exit: BookExit | None = None
    mass: float = 0.0
    value: float | None = 0.0

    def line(self, history: Sequence[chess.Move], what: str = "") -> list[Node]:
        """Return this node and the nodes after each move of `history`, and make those that do not exist.

        Raises:
          ValueError: a move is illegal; the message begins with `what`.
        """
        nodes = [self]
        for ply, move in enumerate(history, start=1):
            node = nodes[-1]
            if move not in node.children:
                if not is_legal(node.board, move):
                    text = " ".join(each.uci() for each in history)
                    raise ArgumentError(
                        f"expected {what}legal moves, got {move.uci()} as move {ply} of {text}"
                    )
                node.children[move] = Node(board_after(node.board, move))
            nodes.append(node.children[move])
        return nodes


class Book(Result):
    """The positions that one side has memorized.

    Positions need not be closed under predecessors: where we come to a memorized position from one
    that is not, our move is shown on the way, without a comment.

    Attributes:
      start: the position in which every history begins; a copy.
      side: chess.WHITE or chess.BLACK, whose book it is.
      positions: as given, possibly none.
      distinct_positions: number of different positions, by EPD.

    Raises:
      ValueError: `start` is not a valid position of standard chess; a history has an illegal move,
        leads to the other side's move, or comes twice; moves to play are illegal or repeated.
    """

    @public
    def __init__(
        self,
        start: chess.Board,
        side: chess.Color,
        positions: Annotated[Iterable[BookPosition], checks.each_of(BookPosition)],
    ) -> None:
        if type(start).uci_variant != "chess" or start.chess960 or start.status():
            raise ArgumentError(f"expected a valid start position of standard chess, got {start!r}")
        self.start = start.copy(stack=False)
        self.side: chess.Color = side
        self.positions = tuple(positions)
        self._root = Node(self.start)
        self._nodes = tuple(self._add(position) for position in self.positions)
        self.distinct_positions = len({node.board.epd() for node in self._nodes})
        _measure_flows(self._root)

    def __reduce__(self) -> tuple[Any, ...]:
        # A trie is as deep as games are long, deeper than pickle follows.
        return Book, (self.start, self.side, self.positions)

    def _facts(self) -> dict[str, Any]:
        side = chess.COLOR_NAMES[self.side]
        return {"side": side, "positions": len(self), "distinct_positions": self.distinct_positions}

    def _repr_html_(self) -> str:
        """Draw a board with the first moves, ours and those that we answer, and list the likeliest lines."""
        first = {each.history[:1] for each in self.positions}
        first |= {(play.move,) for each in self.positions if not each.history for play in each.moves}
        arrows = [chess.svg.Arrow(move.from_square, move.to_square) for moves in first for move in moves]
        board = chess.svg.board(self.start, orientation=self.side, arrows=arrows, size=320)
        return f"{board}<pre>{html.escape(repr(self))}\n{html.escape(self.first_lines(5))}</pre>"

    def columns(self) -> dict[str, Any]:
        """Return a row for each position: the moves up to it and our likeliest one in SAN, reach, worth."""
        lines = [self.start.variation_san(each.history) if each.history else "" for each in self.positions]
        plays = zip(self._nodes, self.positions, strict=True)
        return {
            "after": lines,
            "play": [node.board.san(position.moves[0].move) for node, position in plays],
            "reach": [each.reach for each in self.positions],
            "worth": [each.worth for each in self.positions],
        }

    def to_json(self) -> dict[str, Any]:
        """Return the book for JSON, with moves in UCI notation."""
        given = {"start": self.start, "side": chess.COLOR_NAMES[self.side], "positions": self.positions}
        return {name: as_json(value) for name, value in given.items()}

    def __len__(self) -> int:
        """Return the number of memorized histories."""
        return len(self.positions)

    @property
    def boards(self) -> list[chess.Board]:
        """Board of each position, in their order: copies without move stack."""
        return [node.board.copy(stack=False) for node in self._nodes]

    @public
    def first_lines(self, n: checks.NonNegativeInt) -> str:
        """Return the `n` most valuable lines as text, one a line: reach of the line's end, then its moves.

        A line begins with the position of largest worth, then reach, that is on no line before it. It goes on
        with the most valuable position that follows. So the lines that carry most of the book's worth come
        first, even where each of them is rare.
        """
        rest = sorted(self.positions, key=lambda each: (-each.worth, -each.reach, len(each.history)))
        lines: list[str] = []
        while rest and len(lines) < n:
            on: BookPosition | None = rest[0]
            while on is not None:
                end, line = on, (*on.history, _best_move(on))
                on = next((each for each in rest if each.history[: len(line)] == line), None)
            rest = [each for each in rest if each.history != line[: len(each.history)]]
            lines.append(f"{percent(end.reach):>8}  {self.start.variation_san(line)}")
        return "\n".join(lines)

    def _add(self, position: BookPosition) -> Node:
        """Check a position and add it to the trie."""
        text, node = str(position), self._root.line(position.history)[-1]
        if node.board.turn != self.side:
            color = chess.COLOR_NAMES[self.side]
            raise ArgumentError(f"expected {color} to move after each history, got {text}")
        if node.position is not None:
            raise ArgumentError(f"expected each history once, got {text} twice")
        seen: set[chess.Move] = set()
        for entry in position.moves:
            if entry.move in seen or not is_legal(node.board, entry.move):
                raise ArgumentError(
                    f"expected different legal moves to play, got {entry.move.uci()} after {text}"
                )
            seen.add(entry.move)
        node.position = position
        return node


@public
def write_polyglot(book: Book, path: checks.FilePath) -> None:
    """Write a Polyglot book (`.bin`) of our side's positions, replacing `path` atomically.

    Entries are 16 bytes, big-endian: position key, move, weight, learn (0); sorted by key, then by
    falling weight. Weights are proportional to the moves' probabilities, but at least 1; those of a
    position add up to at most 32767. Histories with the same key are merged, their probabilities
    weighted by reach (equally, where none is ever reached). An EPD can have two keys, since
    Polyglot looks only at whether a pawn stands beside the en passant square: each key gets what
    was memorized for it.

    An empty book gives an empty file, which programs read as a book without positions.

    Raises:
      OSError: as `atomic_write`.
    """
    merged: dict[int, list[Node]] = defaultdict(list)
    for node in book._nodes:
        merged[chess.polyglot.zobrist_hash(node.board)].append(node)
    data = bytearray()
    for key in sorted(merged):
        weights = _polyglot_weights(merged[key])
        for move, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
            data += chess.polyglot.ENTRY_STRUCT.pack(key, move, weight, 0)
    with atomic_write(path, "wb") as file:
        file.write(data)


def trie_with_exits(book: Book, exits: Exits) -> Node:
    """Return a book's trie with its exits added, or the trie itself if there are no exits."""
    if not exits:
        return book._root
    root = Book(book.start, book.side, book.positions)._root
    for each in exits:
        nodes = root.line(each.history, "exits with ")
        nodes[-1].exit = each
        worth = 0.0 if each.reach == 0.0 else None if each.promised is None else each.reach * each.promised
        for node in nodes:
            node.mass += each.reach
            node.value = None if node.value is None or worth is None else node.value + worth
    _measure_flows(root)
    return root


def _others(value: Any, name: str) -> tuple[tuple[chess.Move, float], ...]:
    """Return moves, each with a number."""
    try:
        return tuple(
            (checks.check_instance(move, chess.Move, name), checks.check_number(loss, name))
            for move, loss in value
        )
    except (TypeError, ValueError):
        raise ArgumentError(f"expected {name} to be (move, loss), got {shown(value)}") from None


def _polyglot_weights(nodes: Sequence[Node]) -> dict[int, int]:
    """Return weights by Polyglot move, for a position that is memorized after each of some histories."""
    positions = [node.position for node in nodes if node.position is not None]
    reached = any(position.reach > 0.0 for position in positions)
    masses: dict[int, float] = defaultdict(float)
    board = nodes[0].board
    for position in positions:
        for entry in position.moves:
            if entry.probability > 0.0:
                scale = position.reach if reached else 1.0
                masses[_polyglot_move(board, entry.move)] += scale * entry.probability
    total = math.fsum(masses.values())
    # Programs take a weight of 0 for a deleted move, so rare moves are rounded up...
    weights = {move: max(1, int(_MAX_WEIGHT_SUM * (mass / total))) for move, mass in masses.items()}
    # ...at the expense of the most common, which is always large enough: at most 218 moves.
    most_common = max(weights, key=lambda move: (weights[move], -move))
    weights[most_common] -= max(0, sum(weights.values()) - _MAX_WEIGHT_SUM)
    return weights


def _polyglot_move(board: chess.Board, move: chess.Move) -> int:
    """Return a move's 16 bits: to, from << 6, promotion << 12 (knight 1 to queen 4).

    Castling is written as king takes rook.
    """
    move = chess.Move.from_uci(board.uci(move, chess960=True))
    promotion = move.promotion - 1 if move.promotion else 0
    return move.to_square | move.from_square << 6 | promotion << 12


def _measure_flows(root: Node) -> None:
    """Set `flow` of each node of a trie."""
    order = [root]
    for node in order:  # Grows as it goes: parents before children.
        order.extend(node.children.values())
    for node in reversed(order):
        own = node.position.reach if node.position is not None else 0.0
        own = max(own, node.exit.reach) if node.exit is not None else own
        node.flow = max([own, *(child.flow for child in node.children.values())])


def _best_move(position: BookPosition) -> chess.Move:
    """Return the first move of positive probability."""
    return next(entry.move for entry in position.moves if entry.probability > 0.0)


def points(fraction: float) -> str:
    """Return points in 100 games, such as "73", "1.4" or "0.35"."""
    value = abs(100.0 * fraction)
    text = f"{value:.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.995 else f"{value:.2f}"
    return ("−" if fraction < 0.0 and float(text) else "") + text


def points_axis(axis: Any) -> None:
    """Label a plot's axis of scores in points in 100 games."""
    axis.set_major_formatter(lambda value, _: f"{100.0 * value:g}")


def percent(fraction: float) -> str:
    """Return a fraction as a percentage with three digits."""
    return f"{100.0 * fraction:.3g}%"


@public
def write_pgn(
    book: Book,
    path: checks.FilePath,
    headers: Mapping[str, str] | None = None,
    exits: Exits = (),
    seen: Mapping[tuple[chess.Move, ...], int] | None = None,
) -> None:
    """Write the book as one PGN game with variations, replacing `path` atomically.

    The main line at each move is the most reached one. Of the opponent's moves, those that lead to memorized
    positions are written. Lines end with our move in their last memorized position. A comment at each of our
    moves gives the share of games that reach its position and the cost of forgetting it (its worth), the
    move's own probability where we mix, and the other candidate moves with the change that each would have
    made, all in points of 100 games. The result is "*". The same book gives the same bytes: no date is
    written unless `headers` has one.

    Args:
      book: what to write; if empty, a game without moves.
      path: the file.
      headers: PGN tags to set. SetUp and FEN come from the book.
      exits: exits of the book, as `book_exits` gives them. With them, the opponent's moves that leave the
        book are written as well, each with a comment on its probability, and each exit has a comment on the
        expected score of the games that leave there.
      seen: number of games of the opponent in which each reply was played, by the moves up to the reply and
        including it. A comment at each reply then states it; replies that are missing were never seen.

    Raises:
      ValueError: a header that is set here (FEN, SetUp, Result, Variant), with an invalid name, or whose
        value has control characters; or exits with illegal moves.
      OSError: as `atomic_write`.
    """
    game, _ = book_game(book, exits, seen)
    set_headers(game, headers)
    with atomic_write(path) as file:
        file.write(pgn_text(game))


def pgn_text(game: chess.pgn.Game) -> str:
    """Return a game's PGN, with the empty line after it."""
    return game.accept(chess.pgn.StringExporter(headers=True, variations=True, comments=True)) + "\n\n"


def book_game(
    book: Book,
    exits: Exits,
    seen: Mapping[tuple[chess.Move, ...], int] | None = None,
    unseen: str = "not in their games",
) -> tuple[chess.pgn.Game, list[tuple[chess.pgn.GameNode, Node | None, tuple[chess.Move, ...]]]]:
    """Return a book as a game with variations and comments, as `write_pgn` writes it.

    Args:
      book: as for `write_pgn`.
      exits: as for `write_pgn`.
      seen: as for `write_pgn`.
      unseen: comment at a reply that was never seen.

    Returns:
      The game, and each of its nodes with the trie's node and the moves up to there, parents first; None
      beside a move of ours after which the trie has nothing.
    """
    game = chess.pgn.Game()
    game.setup(book.start)
    nodes: list[tuple[chess.pgn.GameNode, Node | None, tuple[chess.Move, ...]]]
    nodes = [(game, trie_with_exits(book, exits), ())]
    # This grows as it goes: a trie is as deep as games are long, which the recursion limit may not allow for.
    for pgn_node, node, history in nodes:
        if node is None:
            continue
        for move, comment in _continuations(node):
            after = (*history, move)
            if seen is not None and pgn_node.turn() != book.side:
                comment = ", ".join(filter(None, (comment, _seen(seen.get(after, 0), unseen))))
            nodes.append((pgn_node.add_variation(move, comment=comment), node.children.get(move), after))
    return game, nodes


def _seen(games: int, unseen: str) -> str:
    """State in how many of a person's games a reply was seen."""
    return f"seen in {games} of their games" if games else unseen


def set_headers(game: chess.pgn.Game, headers: Mapping[str, str] | None, own: Sequence[str] = ()) -> None:
    """Set PGN tags that a user gave; `own` are tags that the caller sets besides the usual ones.

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
    """Return the moves to show after a node, most reached first, with their comments."""
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
            alternatives = [
                f"{node.board.san(move)} {'+' if loss < 0.0 else '-'}{points(abs(loss))}"
                for move, loss in others
                if is_legal(node.board, move)
            ]
            comment += f"; instead: {', '.join(alternatives)}"
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
    """Return a comment on games that leave the book at a node, after `before`; "" if none leave here."""
    if node is None or node.exit is None or node.exit.promised is None:
        return ""
    what = "the game is over" if node.exit.over else "the book ends"
    return f"{before}{what}, expected {points(node.exit.promised)} points in 100 games"


def _forgetting(worth: float) -> str:
    """Describe the cost of forgetting a position."""
    shown_worth = points(abs(worth))
    if float(shown_worth) == 0.0:
        return "forgetting it costs less than 0.01 points in 100 games"
    return f"forgetting it {'costs' if worth > 0.0 else 'saves'} {shown_worth} points in 100 games"
