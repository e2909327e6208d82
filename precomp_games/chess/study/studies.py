"""Studies of Lichess: a game with many variations, cut into chapters by opening.

A study of Lichess has at most 64 chapters, and a chapter 3,000 nodes. A chapter is what follows one of the
moves where the book's lines first part. One that is long is cut again in the same way, and moves that are
hardly prepared for share a chapter. Chapters stand in the order of the tree, the most reached move first. All
together they have each node of it, and the moves before their openings once or more.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import chess
import chess.pgn

from precomp_games.chess.data.book import Book, pgn_text, set_headers

MOST_CHAPTERS = 64  # of a study
MOST_NODES = 3000  # of a chapter, the start among them
_LONG = 40  # positions from which on a chapter is cut again
_FEW = 3  # positions from which on a move has a chapter of its own
_NAME = 80  # characters of a chapter's name


@dataclasses.dataclass(frozen=True)
class _Part:
    """A node of a game, and all that follows it.

    Attributes:
      node: the node.
      depth: nodes before it.
      rank: its place by falling reach of what comes first.
    """

    node: chess.pgn.GameNode
    depth: int
    rank: tuple[int, ...]

    def branches(self) -> list[_Part]:
        return [_Part(child, self.depth + 1, (*self.rank, k)) for k, child in enumerate(self.node.variations)]


@dataclasses.dataclass
class _Chapter:
    """Parts of a game; the moves before them belong to it as well."""

    parts: list[_Part]
    nodes: int
    depth: int  # of the longest way to a part
    named: bool  # whether its first part says what it is about


class _Cutter:
    """Cuts a game into chapters."""

    def __init__(self, book: Book, game: chess.pgn.Game) -> None:
        order: list[chess.pgn.GameNode] = [game]
        for node in order:  # grows as it goes: parents before children
            order.extend(node.variations)
        index = {id(node): k for k, node in enumerate(order)}
        known = {position.history for position in book.positions}
        histories: list[tuple[chess.Move, ...]] = [()]
        for node in order[1:]:
            assert isinstance(node, chess.pgn.ChildNode)
            histories.append((*histories[index[id(node.parent)]], node.move))
        self._nodes = {id(node): 1 for node in order}
        self._positions = {id(node): int(histories[k] in known) for k, node in enumerate(order)}
        for node in reversed(order[1:]):
            for count in (self._nodes, self._positions):
                count[id(node.parent)] += count[id(node)]
        self.chapters = self._cut(_Part(game, 0, ()))

    def _size(self, part: _Part) -> int:
        """Nodes of a chapter of it alone."""
        return part.depth + self._nodes[id(part.node)]

    def _cut(self, root: _Part) -> list[_Chapter]:
        found: list[_Chapter] = []
        # With what stands beside the moves that lead there, and is not prepared for.
        waiting: list[tuple[_Part, list[_Part]]] = [(root, [])]
        while waiting:
            part, beside = waiting.pop()
            openings, rest = self._parted(part)
            if not openings:
                whole = self._size(part) <= MOST_NODES or not part.node.variations
                openings, rest = ([part], []) if whole else ([], part.branches())
            rest = beside + rest
            # Of a part that cannot be cut, all is one chapter, however long it is.
            long = [each for each in openings if each is not part and self._positions[id(each.node)] > _LONG]
            long += [
                each
                for each in openings + rest
                if each is not part and each not in long and self._size(each) > MOST_NODES
            ]
            own = [_Chapter([e], self._size(e), e.depth, named=True) for e in openings if e not in long]
            rest = [each for each in rest if each not in long]
            left = [each for each in rest if not own and long and not self._positions[id(each.node)]]
            waiting += [(each, left if each is long[0] else []) for each in long]
            found += own + self._gathered([each for each in rest if each not in left], own)
        return sorted(found, key=lambda chapter: chapter.parts[0].rank)

    def _parted(self, part: _Part) -> tuple[list[_Part], list[_Part]]:
        """The moves where lines first part, each prepared for, and what stands beside and before them."""
        rest: list[_Part] = []
        while True:
            branches = part.branches()
            openings = [each for each in branches if self._positions[id(each.node)] >= _FEW]
            rest += [each for each in branches if each not in openings]
            if len(openings) != 1:
                return openings, rest
            (part,) = openings

    def _gathered(self, rest: list[_Part], own: list[_Chapter]) -> list[_Chapter]:
        """Chapters of what has none of its own; moves that leave the book go where there is room."""
        found: list[_Chapter] = []
        for part in rest:
            nothing = self._positions[id(part.node)] == 0
            for chapter in (own if nothing else []) + found[-1:]:
                # Parts of a cut stand on one line of moves, of which a chapter has what leads to its own.
                more = self._nodes[id(part.node)] + max(0, part.depth - chapter.depth)
                if chapter.nodes + more <= MOST_NODES:
                    chapter.parts.append(part)
                    chapter.nodes += more
                    chapter.depth = max(chapter.depth, part.depth)
                    break
            else:
                found.append(_Chapter([part], self._size(part), part.depth, named=False))
        return found


def studies(book: Book, game: chess.pgn.Game, title: str) -> Iterator[str]:
    """The text of each study."""
    chapters = _Cutter(book, game).chapters
    names = _names(book, chapters)
    several = len(chapters) > MOST_CHAPTERS
    for number, first in enumerate(range(0, len(chapters), MOST_CHAPTERS), start=1):
        study = f"{title} ({number})" if several else title
        games = []
        for name, chapter in zip(
            names[first : first + MOST_CHAPTERS], chapters[first : first + MOST_CHAPTERS], strict=True
        ):
            made = _chapter_game(game, chapter)
            side = chess.COLOR_NAMES[book.side]
            set_headers(made, {"Event": name, "StudyName": study, "ChapterName": name, "Orientation": side})
            games.append(pgn_text(made))
        yield "".join(games)


def _names(book: Book, chapters: Sequence[_Chapter]) -> list[str]:
    """What chapters are called: the moves before what they are about, each name once."""
    found: list[str] = []
    for chapter in chapters:
        named = chapter.named or len(chapter.parts) == 1
        moves = [_history(part.node) for part in chapter.parts[: 1 if named else None]]
        if not named:
            moves = [history[:-1] for history in moves]
        common = [column[0] for column in itertools.takewhile(_all_same, zip(*moves, strict=False))]
        line = book.start.variation_san(common)
        name = (line or "All lines") if named else f"{line}: other moves" if line else "Other moves"
        if len(name) > _NAME:
            name = "… " + name[2 - _NAME :].partition(" ")[2]
        for count in itertools.count(2):
            if name not in found:
                break
            name = f"{name.rpartition(' (')[0] if count > 2 else name} ({count})"
        found.append(name)
    return found


def _all_same(column: tuple[chess.Move, ...]) -> bool:
    return len(set(column)) == 1


def _history(node: chess.pgn.GameNode) -> list[chess.Move]:
    """The moves before and at a node of a game."""
    found = []
    while isinstance(node, chess.pgn.ChildNode):
        found.append(node.move)
        node = node.parent
    return found[::-1]


def _chapter_game(game: chess.pgn.Game, chapter: _Chapter) -> chess.pgn.Game:
    """A game of a chapter's parts and the moves before them, in the tree's order."""
    whole = {id(part.node) for part in chapter.parts}
    before: set[int] = set()
    for part in chapter.parts:
        node = part.node.parent
        while node is not None and id(node) not in before:
            before.add(id(node))
            node = node.parent
    made = chess.pgn.Game.without_tag_roster()
    made.setup(game.board())
    made.comment = game.comment
    stack: list[tuple[chess.pgn.GameNode, chess.pgn.GameNode, bool]] = [(game, made, id(game) in whole)]
    while stack:
        old, new, inside = stack.pop()
        for child in old.variations:
            all_of_it = inside or id(child) in whole
            if all_of_it or id(child) in before:
                stack.append((child, new.add_variation(child.move, comment=child.comment), all_of_it))
    return made
