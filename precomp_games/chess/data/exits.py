"""What is known of a book by where games leave it: how long they stay in it, and which likely replies pay.

All of it is computed from exits, how often games leave there and what is promised: nothing is searched. What
a book has after some moves is the mean of what its exits there and below promise, by their reach.

A trap is a likely reply that costs its player, and to which the book knows the answer: we then have more than
after the other replies, and the analyst finds our position better than before it. The first alone would call
good moves traps, since we have more wherever the book is long and people err later; the second alone, moves
that people of a rating are not punished for. It is compared with the others alone, not with the mean of all
replies, of which a mistake that half of all players make is half.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import chess
import chess.engine
import chess.pgn

from precomp_games.chess.data.book import (
    Book,
    Exits,
    Node,
    pgn_text,
    points,
    set_headers,
    trie_with_exits,
)

_History = tuple[chess.Move, ...]
_LIKELY = 0.05  # of the replies
_GAIN = 0.03  # of a game: about half a pawn among people
_COSTS = 30  # centipawns, by the analyst
_MATE = 10_000  # centipawns
_SHOWN = 5  # half-moves of what punishes it, in words
_SELDOM = 0.002  # games that come to less are not worth telling


def coverage(book: Book, exits: Exits) -> dict[int, float]:
    """The share of games in which each of our moves, by its number, is still the book's.

    Games that end inside the book have never left it. {} where it is not known where games leave.
    """
    # Where games leave it is our turn, so that half of the moves before, rounded down, were ours.
    left = [(len(each.history) // 2, each.reach) for each in exits if not each.over]
    first = book.start.fullmove_number + (book.side == chess.WHITE and book.start.turn == chess.BLACK)
    whole = math.fsum(each.reach for each in exits)
    return {
        first + known: whole - math.fsum(reach for moves, reach in left if moves <= known)
        for known in range(max((moves for moves, _ in left), default=0))
    }


@dataclasses.dataclass(frozen=True)
class Trap:
    """A likely reply that costs its player.

    Attributes:
      history: the moves before the reply.
      reply: it.
      reach: probability that a game comes to where it is played.
      probability: of the reply there.
      gain: what our side then has more than after the other replies, in [0, 1].
      line: how the book goes on: our move, and the likeliest replies and our answers to them.
    """

    history: _History
    reply: chess.Move
    reach: float
    probability: float
    gain: float
    line: _History

    def parts(self, start: chess.Board) -> list[str]:
        """The trap in words, for the book's player; every second part is what is played."""
        board = start.copy(stack=False)
        before = board.variation_san(self.history)
        for move in self.history:
            board.push(move)
        reply, line = board.san_and_push(self.reply), board.variation_san(self.line[:_SHOWN])
        return [
            f"After {before}, {100.0 * self.probability:.0f} of 100 play ",
            f"{reply}?",
            f", which gives you {points(self.gain)} points more in 100 games than their other moves: ",
            line,
            f". It comes up in {points(self.reach * self.probability)} of 100 games.",
        ]

    def text(self, start: chess.Board) -> str:
        """The trap in a sentence or two."""
        return "".join(self.parts(start))


def traps(book: Book, exits: Exits, evaluations: Mapping[_History, chess.engine.PovScore]) -> list[Trap]:
    """The traps of a book, those first that bring most in all games; of transpositions the first one.

    Args:
      book: whose.
      exits: where games leave it, and what is promised there.
      evaluations: the analyst's of our positions, by the moves up to them; where there is none, no trap.
    """
    pawns = {after: each.pov(book.side).score(mate_score=_MATE) for after, each in evaluations.items()}
    found: dict[tuple[str, chess.Move], Trap] = {}
    nodes: list[tuple[_History, Node]] = [((), trie_with_exits(book, exits))]
    for history, node in nodes:  # grows as it goes
        nodes += [((*history, move), child) for move, child in node.children.items()]
        if node.board.turn == book.side or node.value is None or history[:-1] not in pawns:
            continue
        for reply, child in node.children.items():
            others = node.mass - child.mass
            better = pawns.get((*history, reply), -_MATE) - pawns[history[:-1]]
            known = child.position is not None and child.value is not None and others > 0.0
            if not known or better < _COSTS or child.mass < max(_LIKELY * node.mass, _SELDOM):
                continue
            assert child.value is not None
            gain = child.value / child.mass - (node.value - child.value) / others
            if gain >= _GAIN:
                share = child.mass / node.mass
                trap = Trap(history, reply, node.mass, share, gain, _main_line(child))
                key = node.board.epd(), reply
                found[key] = max(found.get(key, trap), trap, key=_worth)
    return sorted(found.values(), key=_worth, reverse=True)


def _worth(trap: Trap) -> float:
    """What a trap brings in all games."""
    return trap.reach * trap.probability * trap.gain


def _main_line(node: Node) -> _History:
    """The most reached moves from a position of ours on, up to our last one that is known."""
    line: list[chess.Move] = []
    while node.position is not None:
        best = max(node.position.moves, key=lambda entry: entry.probability)
        line.append(best.move)
        replies = node.children.get(best.move, Node(node.board)).children
        known = [(child.mass, move) for move, child in replies.items() if child.position is not None]
        if not known:
            break
        _, reply = max(known, key=lambda pair: (pair[0], pair[1].uci()))
        line.append(reply)
        node = node.children[best.move].children[reply]
    return tuple(line)


def traps_pgn(book: Book, found: list[Trap], headers: dict[str, str]) -> str:
    """Traps as PGN, a game each: its line, with a question mark at the reply and the trap in words."""
    return "".join(_trap_game(book, trap, headers) for trap in found)


def _trap_game(book: Book, trap: Trap, headers: dict[str, str]) -> str:
    game = chess.pgn.Game()
    game.setup(book.start)
    set_headers(game, headers)
    node = game.add_line(trap.history) if trap.history else game
    node = node.add_variation(trap.reply, comment=trap.text(book.start), nags=[chess.pgn.NAG_MISTAKE])
    node.add_line(trap.line)
    return pgn_text(game)
