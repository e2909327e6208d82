"""Facts about a book that follow from its exits: how long games stay in it, and its traps.

All of it is computed from the exits' reach and expected scores; nothing is searched. The book's expected
score after some moves is the mean expected score of the exits there and below, weighted by their reach.

A trap is a likely reply that costs its player, and to which the book knows the answer. Two conditions must
hold: our expected score is higher than after the other replies, and the analyst finds our position better
than before the reply, both right after it and after our answer and each next reply that the book knows,
since one short search may be wrong. The first condition alone would call good moves traps, since the
expected score is higher wherever the book is long and people err later; the second alone, moves that people
of a rating are not punished for. The reply is compared with the other replies only, not with the mean of all
replies: a mistake that half of all players make is itself half of that mean.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping

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
LIKELY = 0.05
"""The smallest share of replies that counts as likely."""
MATE = 10_000
"""Centipawns of a mate; one in n moves counts n less."""
_GAIN = 0.03  # of a game: about half a pawn among people
_COSTS = 30  # centipawns, by the analyst
_SHOWN = 5  # half-moves of the book's answer in a description
_SELDOM = 0.002  # share of games below which a trap is not listed


def coverage(book: Book, exits: Exits) -> dict[int, float]:
    """Return the share of games in which each of our moves, by its number, is still the book's.

    Games that end inside the book have never left it. Return {} if the exits are not known.
    """
    # At an exit it is our turn, so half of the moves before it, rounded down, were ours.
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
      reply: the mistake.
      reach: probability that a game comes to the position before the reply.
      probability: probability of the reply there.
      gain: our expected score after it minus that after the other replies, in [0, 1].
      costs: at least how much it costs according to the analyst, in centipawns; a mate counts `MATE`.
      line: the book's continuation: our move, and the likeliest replies with our answers.
    """

    history: _History
    reply: chess.Move
    reach: float
    probability: float
    gain: float
    costs: int
    line: _History

    def parts(self, start: chess.Board) -> list[str]:
        """Describe the trap for the book's player; every second part is a move."""
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
        """Describe the trap in a sentence or two."""
        return "".join(self.parts(start))


def traps(book: Book, exits: Exits, evaluations: Mapping[_History, chess.engine.PovScore]) -> list[Trap]:
    """Return the traps of a book, most valuable over all games first; of transpositions the first one.

    The arguments are those of `mistakes`.
    """
    found: dict[tuple[str, chess.Move], Trap] = {}
    for trap in mistakes(book, exits, evaluations):
        board = book.start.copy(stack=False)
        for move in trap.history:
            board.push(move)
        key = board.epd(), trap.reply
        found[key] = max(found.get(key, trap), trap, key=_worth)
    return sorted(found.values(), key=_worth, reverse=True)


def mistakes(book: Book, exits: Exits, evaluations: Mapping[_History, chess.engine.PovScore]) -> list[Trap]:
    """Return each trap after each history that leads to it, parents first.

    Args:
      book: the book.
      exits: its exits, with expected scores.
      evaluations: the analyst's evaluations of our positions, by the moves up to them; without one, no trap.
    """
    pawns = {after: each.pov(book.side).score(mate_score=MATE) for after, each in evaluations.items()}
    found: list[Trap] = []
    nodes: list[tuple[_History, Node]] = [((), trie_with_exits(book, exits))]
    for history, node in nodes:  # grows as it goes
        nodes += [((*history, move), child) for move, child in node.children.items()]
        if node.board.turn == book.side or node.value is None or history[:-1] not in pawns:
            continue
        for reply, child in node.children.items():
            others = node.mass - child.mass
            here = (*history, reply)
            known = child.position is not None and here in pawns and others > 0.0
            if child.value is None or not known or child.mass < max(LIKELY * node.mass, _SELDOM):
                continue
            costs = min(pawns.get(after, MATE) for after in (here, *_next_positions(here, child)))
            costs -= pawns[history[:-1]]
            gain = child.value / child.mass - (node.value - child.value) / others
            if gain >= _GAIN and costs >= _COSTS:
                share = child.mass / node.mass
                found.append(Trap(history, reply, node.mass, share, gain, costs, main_line(child)))
    return found


def _worth(trap: Trap) -> float:
    """Return a trap's gain over all games."""
    return trap.reach * trap.probability * trap.gain


def _next_positions(history: _History, node: Node) -> Iterator[_History]:
    """Yield our positions in the book after our answer and a reply to it."""
    for move, after in node.children.items():
        for reply, child in after.children.items():
            if child.position is not None:
                yield (*history, move, reply)


def main_line(node: Node) -> _History:
    """Return the most reached moves from a position of ours on, up to our last one that is known."""
    line: list[chess.Move] = []
    while node.position is not None:
        best = max(node.position.moves, key=lambda entry: entry.probability)
        line.append(best.move)
        reply = answered(node.children.get(best.move, Node(node.board)))
        if reply is None:
            break
        line.append(reply)
        node = node.children[best.move].children[reply]
    return tuple(line)


def answered(node: Node) -> chess.Move | None:
    """Return the likeliest reply to which the book has an answer."""
    known = [(move, child) for move, child in node.children.items() if child.position is not None]
    best = max(known, key=lambda pair: (pair[1].mass or pair[1].flow, pair[0].uci()), default=None)
    return None if best is None else best[0]


def traps_pgn(book: Book, found: list[Trap], headers: dict[str, str]) -> str:
    """Return traps as PGN, a game each: its line, with a question mark at the reply and a description."""
    return "".join(_trap_game(book, trap, headers) for trap in found)


def _trap_game(book: Book, trap: Trap, headers: dict[str, str]) -> str:
    game = chess.pgn.Game()
    game.setup(book.start)
    set_headers(game, headers)
    node = game.add_line(trap.history) if trap.history else game
    node = node.add_variation(trap.reply, comment=trap.text(book.start), nags=[chess.pgn.NAG_MISTAKE])
    node.add_line(trap.line)
    return pgn_text(game)
