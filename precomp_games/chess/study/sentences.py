"""What is said of a book's moves: sentences that follow from what the preparation knows, and no others.

Of a move of ours: how often the line comes up and which reply is likeliest, by where games leave the book;
the usual mistake, which is the likeliest of `mistakes`, what it costs by the analyst's evaluations before our
move and after the reply, and the book's answer; how the book goes on against the likeliest replies that it
answers; which likely replies it does not answer, or what is expected where it ends. Of a reply: how likely it
is. Where a fact is not known, its sentence is left out. Nothing is searched, and what a move is good for in
general is not said, since no number says it.
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
_NEXT = 3  # own moves of how the book goes on
_NAMED = 4  # replies without an answer; of more, so many others
_ROUNDING = 1e-9  # of shares, which are quotients of sums


class BookSentences:
    """A preparation's sentences, by the moves up to what they are about.

    Attributes:
      root: the book's trie with its exits.
    """

    def __init__(self, made: Preparation) -> None:
        """Takes what the preparation knows."""
        self._made = made
        self.root = trie_with_exits(made.book, made.exits)
        self._mistakes: dict[_History, list[Trap]] = {}
        for each in made.mistakes:
            self._mistakes.setdefault(each.history, []).append(each)

    def share(self, history: _History) -> float | None:
        """How likely the opponent's last move is where it is played; None where nobody knows."""
        node, before = self.root, self.root
        for move in history:
            node, before = node.children.get(move, Node(node.board)), node
        known = bool(history) and before.board.turn != self._made.book.side and before.mass > 0.0
        return node.mass / before.mass if known else None

    def is_rare(self, history: _History, least: float) -> bool:
        """Whether one of the opponent's moves up to here is less likely than that where it is played."""
        shares = (self.share(history[: ply + 1]) for ply in range(len(history)))
        return any(share is not None and share < least * (1.0 - _ROUNDING) for share in shares)

    def is_mistake(self, history: _History) -> bool:
        """Whether the opponent's last move is a likely one that costs."""
        return any(trap.reply == history[-1] for trap in self._mistakes.get(history[:-1], ()))

    def of_move(self, history: _History, *, whole: bool = True) -> str:
        """The sentences about a move of the book's, the last one of these.

        Args:
          history: the moves up to it, and itself.
          whole: with how often the line comes up, and where the book ends; cards and pages show that
            otherwise.

        Returns:
          "" where the book does not have the move, or nothing is known of it.
        """
        here = self.root.line(history[:-1])[-1]
        position, move = here.position, history[-1]
        played = [] if position is None else [e for e in position.moves if e.probability > 0.0]
        if position is None or move not in [entry.move for entry in played]:
            return ""
        told = []
        if whole and position.reach < 0.995:
            told.append(f"You get here in {often(position.reach)}.")
        if len(played) > 1:
            share = next(entry.probability for entry in played if entry.move == move)
            told.append(f"Play {_numbered(here.board, move)} in {often(share, 'cases')}.")
        if (after := here.children.get(move)) is not None:
            told += self._after(history, after)
            told += self._ends(history, after) if whole else ()
        return " ".join(told)

    def of_position(self, position: BookPosition, *, whole: bool = True) -> str:
        """The sentences about the likeliest move of a position, as `of_move` has them."""
        best = max(position.moves, key=lambda entry: entry.probability).move
        return self.of_move((*position.history, best), whole=whole)

    def of_reply(self, history: _History) -> str:
        """The sentence about a move of the opponent's, the last one of these."""
        text = self._how_often(history)
        return f"{text[:1].upper()}{text[1:]}." if text else ""

    def _how_often(self, history: _History) -> str:
        """How likely a reply is where it is played, and what a person's games say of it."""
        share = self.share(history)
        return ("" if share is None else f"in {often(share, 'cases')}") + self._backing(history)

    def _backing(self, history: _History) -> str:
        """In how many of a person's games the last reply was seen, or that it never was; "" of others."""
        made = self._made
        if made.person is None:
            return ""
        if (found := made.games.get(history)) is not None:
            return f" ({SEEN.format(found.count)})"
        guess = OpponentWords(made.settings, made.engines[1]).unseen == "guesses"
        return " (a guess)" if guess else " (not in their games)"

    def _after(self, history: _History, after: Node) -> Iterator[str]:
        """What follows a move of ours: what to expect, the usual mistake, and the plan."""
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
        """How likely the replies to a move of ours are that are not rare, the likeliest first."""
        shares = {move: self.share((*history, move)) or 0.0 for move in after.children}
        likely = [move for move, share in shares.items() if share >= LIKELY * (1.0 - _ROUNDING)]
        return {move: shares[move] for move in sorted(likely, key=lambda move: (-shares[move], move.uci()))}

    def _ends(self, history: _History, after: Node) -> Iterator[str]:
        """Where games leave the book."""
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
        """What a mistake costs and, unless that is told elsewhere, what answers it."""
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
    """The book's next moves against the likeliest replies that it answers, with their numbers."""
    board, told = node.board.copy(), []
    for move in main_line(node)[: 2 * _NEXT]:
        if board.turn == side:
            told.append(_numbered(board, move))
        board.push(move)
    return told


def _listed(texts: Sequence[str], word: str = "and") -> str:
    """Texts as people list them."""
    *others, last = texts
    return f"{', '.join(others)} {word} {last}" if others else last


def _numbered(board: chess.Board, move: chess.Move) -> str:
    """A move with its number, such as "3. d4" or "3...d5"."""
    return board.variation_san([move])
