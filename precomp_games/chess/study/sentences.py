"""Sentences about a book's moves that follow from facts of the preparation, and no others.

About a move of ours: the frequency of the line and the likeliest reply, by the exits; the usual mistake,
which is the likeliest of `mistakes`, its cost by the analyst's evaluations before our move and after the
reply, and the book's answer; the book's continuation against the likeliest replies that it answers; likely
replies that it does not answer, or the expected score where it ends. About a reply: its probability. If a
fact is unknown, its sentence is left out. Nothing is searched, and the general idea of a move is not
explained, since no number shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import chess
import chess.engine

from precomp_games.chess.data.book import BookPosition, Node, points, trie_with_exits
from precomp_games.chess.data.exits import LIKELY, MATE, Trap, answered, main_line
from precomp_games.chess.plan.preparation import Preparation
from precomp_games.chess.study.words import SEEN, OpponentWords, often

_History = tuple[chess.Move, ...]
_NEXT = 3  # own moves of the book's continuation
_NAMED = 4  # replies without an answer; further ones are counted
_ROUNDING = 1e-9  # of shares, which are quotients of sums


class BookSentences:
    """A preparation's sentences, by the moves up to and including their subject.

    Attributes:
      root: the book's trie with its exits.
    """

    def __init__(self, made: Preparation) -> None:
        """Collect the facts of the preparation."""
        self._made = made
        self.root = trie_with_exits(made.book, made.exits)
        self._mistakes: dict[_History, list[Trap]] = {}
        for each in made.mistakes:
            self._mistakes.setdefault(each.history, []).append(each)

    def share(self, history: _History) -> float | None:
        """Return the probability of the opponent's last move where it is played; None if unknown."""
        node, before = self.root, self.root
        for move in history:
            node, before = node.children.get(move, Node(node.board)), node
        known = bool(history) and before.board.turn != self._made.book.side and before.mass > 0.0
        return node.mass / before.mass if known else None

    def is_rare(self, history: _History, least: float) -> bool:
        """Return whether one of the opponent's moves so far is less likely than `least` at its position."""
        shares = (self.share(history[: ply + 1]) for ply in range(len(history)))
        return any(share is not None and share < least * (1.0 - _ROUNDING) for share in shares)

    def is_mistake(self, history: _History) -> bool:
        """Return whether the opponent's last move is a likely mistake."""
        return any(trap.reply == history[-1] for trap in self._mistakes.get(history[:-1], ()))

    def of_move(self, history: _History, *, whole: bool = True) -> str:
        """Return the sentences about a move of the book, the last one of the history.

        Args:
          history: the moves up to it, and itself.
          whole: with the frequency of the line, and the end of the book; cards and pages show these
            otherwise.

        Returns:
          "" if the book does not have the move, or nothing is known about it.
        """
        here = self.root.line(history[:-1])[-1]
        position, move = here.position, history[-1]
        played = [] if position is None else [e for e in position.moves if e.probability > 0.0]
        if position is None or move not in [entry.move for entry in played]:
            return ""
        sentences = []
        if whole and position.reach < 0.995:
            sentences.append(f"You get here in {often(position.reach)}.")
        if len(played) > 1:
            share = next(entry.probability for entry in played if entry.move == move)
            sentences.append(f"Play {_numbered(here.board, move)} in {often(share, 'cases')}.")
        if (after := here.children.get(move)) is not None:
            sentences += self._after(history, after)
            sentences += self._ends(history, after) if whole else ()
        return " ".join(sentences)

    def of_position(self, position: BookPosition, *, whole: bool = True) -> str:
        """Return the sentences about the likeliest move of a position, as `of_move`."""
        best = max(position.moves, key=lambda entry: entry.probability).move
        return self.of_move((*position.history, best), whole=whole)

    def of_reply(self, history: _History) -> str:
        """Return the sentence about a move of the opponent, the last one of the history."""
        text = self._how_often(history)
        return f"{text[:1].upper()}{text[1:]}." if text else ""

    def _how_often(self, history: _History) -> str:
        """Describe a reply's probability where it is played, and its number in a person's games."""
        share = self.share(history)
        return ("" if share is None else f"in {often(share, 'cases')}") + self._backing(history)

    def _backing(self, history: _History) -> str:
        """State in how many of a person's games the last reply was seen, if any; "" for other opponents."""
        made = self._made
        if made.person is None:
            return ""
        if (found := made.games.get(history)) is not None:
            return f" ({SEEN.format(found.count)})"
        guess = OpponentWords(made.settings, made.engines[1]).unseen == "guesses"
        return " (a guess)" if guess else " (not in their games)"

    def _after(self, history: _History, after: Node) -> Iterator[str]:
        """Yield sentences on the continuation after our move: the reply, the usual mistake, and the plan."""
        shares = self._shares(history, after)
        expected = next(iter(shares), None)
        mistakes = self._mistakes.get(history, ())
        usual = max(mistakes, key=lambda trap: trap.probability, default=None)
        reply = answered(after)
        plan = [] if reply is None else _own_moves(after.children[reply], self._made.book.side)
        costs = "" if usual is None else self._costs(usual, answers=usual.reply != reply or len(plan) < 2)
        if expected is not None:
            mistaken = usual is not None and usual.reply == expected
            name = f"{_numbered(after.board, expected)}{'?' if mistaken else ''}"
            then = f": {costs}" if mistaken else ""
            if reply is not None and after.children[expected].exit is not None:
                then = ", to which the book has no answer"
            yield f"Expect {name} {self._how_often((*history, expected))}{then}."
        if usual is not None and usual.reply != expected:
            name = f"{_numbered(after.board, usual.reply)}?"
            yield f"The usual mistake is {name}, {self._how_often((*history, usual.reply))}: {costs}."
        if reply is not None and len(plan) > 1:
            yield f"Your plan against {_numbered(after.board, reply)} is {_listed(plan)}."

    def _shares(self, history: _History, after: Node) -> dict[chess.Move, float]:
        """Return the probabilities of the replies to our move that are not rare, the likeliest first."""
        shares = {move: self.share((*history, move)) or 0.0 for move in after.children}
        likely = [move for move, share in shares.items() if share >= LIKELY * (1.0 - _ROUNDING)]
        return {move: shares[move] for move in sorted(likely, key=lambda move: (-shares[move], move.uci()))}

    def _ends(self, history: _History, after: Node) -> Iterator[str]:
        """Yield sentences on where games leave the book."""
        if after.exit is not None and after.exit.over:
            yield "The game is over."
        elif answered(after) is None and after.mass > 0.0:
            yield "The book ends here."
            if after.value is not None:
                yield f"{self._made.score_name}: {points(after.value / after.mass)} of 100."
        else:
            # The likeliest reply has been named.
            others = list(self._shares(history, after))[1:]
            names = [_numbered(after.board, move) for move in others if after.children[move].exit is not None]
            if len(names) > _NAMED:
                names[_NAMED - 1 :] = [f"{len(names) - _NAMED + 1} others"]
            if names:
                yield f"The book has no answer to {_listed(names, 'or')}."

    def _costs(self, trap: Trap, *, answers: bool) -> str:
        """Describe the cost of a mistake and, if it is not named elsewhere, the answer to it."""
        side, here = self._made.book.side, (*trap.history, trap.reply)
        mate, costs = (
            self._made.evaluations[here].pov(side).mate(),
            f"it costs {trap.costs / 100.0:.1f} pawns",
        )
        if trap.costs > MATE // 2 and self._made.evaluations[trap.history[:-1]].is_mate():
            costs = "it lets their mate go"
        elif trap.costs > MATE // 2 and mate is not None:
            costs = f"it allows mate in {mate}"
        board = self.root.line(here)[-1].board
        return f"{costs}, and you answer {_numbered(board, trap.line[0])}" if answers else costs


def _own_moves(node: Node, side: chess.Color) -> list[str]:
    """Return the book's next moves against the likeliest replies that it answers, with their numbers."""
    board, moves = node.board.copy(), []
    for move in main_line(node)[: 2 * _NEXT]:
        if board.turn == side:
            moves.append(_numbered(board, move))
        board.push(move)
    return moves


def _listed(texts: Sequence[str], word: str = "and") -> str:
    """Join texts as people list them."""
    *others, last = texts
    return f"{', '.join(others)} {word} {last}" if others else last


def _numbered(board: chess.Board, move: chess.Move) -> str:
    """Return a move with its number, such as "3. d4" or "3...d5"."""
    return board.variation_san([move])
