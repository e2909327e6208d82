"""Studies of Lichess: a game with many variations, cut into chapters by opening.

A study of Lichess has at most 64 chapters; here it also has at most 3,000 nodes, and a chapter 80, enough for
a pupil, except where a line cannot be cut. A chapter begins with one of the moves where the book's lines
first part. A long chapter is cut again in the same way, and moves with few prepared positions share a
chapter. Chapters are in the order of the tree, the most reached move first. Together they have each node of
it, and the moves before their openings once or more.
"""

from __future__ import annotations

import dataclasses
import itertools
import textwrap
from collections.abc import Iterator, Sequence

import chess
import chess.pgn

from precomp_games.chess.data.book import Book, pgn_text, set_headers
from precomp_games.chess.study.words import opening_of

MOST_CHAPTERS = 64  # of a study
MOST_IN_ALL = 3000  # nodes of a study
MOST_NODES = 80  # of a chapter, the start among them
_LONG = 40  # positions above which a chapter is cut again
_FEW = 3  # positions from which on a move has a chapter of its own
_NAME = 80  # characters of a chapter's name


@dataclasses.dataclass(eq=False)
class _Part:
    """A node of a game, and all that follows it.

    Attributes:
      node: the node.
      history: the moves up to it.
      rank: its place by falling reach of the moves.
      branches: the next nodes.
      nodes: number of nodes, itself included.
      positions: number of these that are prepared.
    """

    node: chess.pgn.GameNode
    history: tuple[chess.Move, ...] = ()
    rank: tuple[int, ...] = ()
    branches: list[_Part] = dataclasses.field(default_factory=list)
    nodes: int = 1
    positions: int = 0

    @property
    def size(self) -> int:
        """Number of nodes of a chapter of it alone."""
        return len(self.history) + self.nodes


def _whole(book: Book, game: chess.pgn.Game) -> _Part:
    """Return all of a book's game."""
    known, root = {position.history for position in book.positions}, _Part(game)
    order = [root]
    for part in order:  # grows as it goes: parents before children
        part.positions = int(part.history in known)
        part.branches = [
            _Part(child, (*part.history, child.move), (*part.rank, k))
            for k, child in enumerate(part.node.variations)
        ]
        order += part.branches
    for part in reversed(order):
        part.nodes += sum(each.nodes for each in part.branches)
        part.positions += sum(each.positions for each in part.branches)
    return root


@dataclasses.dataclass
class _Chapter:
    """Parts of a game; the moves before them belong to it as well."""

    parts: list[_Part]
    nodes: int
    depth: int  # of the longest way to a part
    named: bool  # whether its name is that of its first part


def _cut(root: _Part) -> list[_Chapter]:
    """Cut a game into chapters."""
    found: list[_Chapter] = []
    # With unprepared moves beside those that lead there.
    waiting: list[tuple[_Part, list[_Part]]] = [(root, [])]
    while waiting:
        part, beside = waiting.pop()
        openings, rest = _parted(part)
        if not openings:
            whole = part.size <= MOST_NODES or not part.branches
            openings, rest = ([part], []) if whole else ([], part.branches)
        rest = beside + rest
        # If a part cannot be cut, all of it is one chapter, however long it is.
        long = [each for each in openings if each is not part and each.positions > _LONG]
        others = [each for each in openings + rest if each is not part and each not in long]
        long += [each for each in others if each.size > MOST_NODES]
        own = [_Chapter([e], e.size, len(e.history), named=True) for e in openings if e not in long]
        rest = [each for each in rest if each not in long]
        left = [each for each in rest if not own and long and not each.positions]
        waiting += [(each, left if each is long[0] else []) for each in long]
        found += own + _gathered([each for each in rest if each not in left], own)
    return sorted(found, key=lambda chapter: chapter.parts[0].rank)


def _parted(part: _Part) -> tuple[list[_Part], list[_Part]]:
    """Return the moves where lines first part, each prepared, and the moves beside and before them."""
    rest: list[_Part] = []
    while True:
        openings = [each for each in part.branches if each.positions >= _FEW]
        rest += [each for each in part.branches if each not in openings]
        if len(openings) != 1:
            return openings, rest
        (part,) = openings


def _gathered(rest: list[_Part], own: list[_Chapter]) -> list[_Chapter]:
    """Return chapters of the remaining parts; moves that leave the book go where there is room."""
    found: list[_Chapter] = []
    for part in rest:
        for chapter in ([] if part.positions else own) + found[-1:]:
            # Parts of a cut are on one line of moves, of which a chapter has those that lead to its own.
            more = part.nodes + max(0, len(part.history) - chapter.depth)
            if chapter.nodes + more <= MOST_NODES:
                chapter.parts.append(part)
                chapter.nodes += more
                chapter.depth = max(chapter.depth, len(part.history))
                break
        else:
            found.append(_Chapter([part], part.size, len(part.history), named=False))
    return found


def studies(book: Book, game: chess.pgn.Game, title: str) -> Iterator[str]:
    """Yield the text of each study."""
    chapters = _cut(_whole(book, game))
    named = list(zip(_names(book, chapters), chapters, strict=True))
    parts = list(_divided(named))
    for number, part in enumerate(parts, start=1):
        study = f"{title} ({number})" if len(parts) > 1 else title
        games = []
        for name, chapter in part:
            made = _chapter_game(game, chapter)
            side = chess.COLOR_NAMES[book.side]
            set_headers(made, {"Event": name, "StudyName": study, "ChapterName": name, "Orientation": side})
            games.append(pgn_text(made))
        yield "".join(games)


def _divided(named: Sequence[tuple[str, _Chapter]]) -> Iterator[list[tuple[str, _Chapter]]]:
    """Yield the chapters of each study."""
    part: list[tuple[str, _Chapter]] = []
    for name, chapter in named:
        nodes = chapter.nodes + sum(each.nodes for _, each in part)
        if part and (len(part) == MOST_CHAPTERS or nodes > MOST_IN_ALL):
            yield part
            part = []
        part.append((name, chapter))
    yield part


def _names(book: Book, chapters: Sequence[_Chapter]) -> list[str]:
    """Return unique names of chapters: the opening, and the moves before their subject."""
    found: list[str] = []
    for chapter in chapters:
        named = chapter.named or len(chapter.parts) == 1
        common = chapter.parts[0].history
        if not named:
            columns = zip(*(part.history[:-1] for part in chapter.parts), strict=False)
            same = itertools.takewhile(lambda column: len(set(column)) == 1, columns)
            common = tuple(column[0] for column in same)
        line = book.start.variation_san(common)
        name = (line or "All lines") if named else f"{line}: other moves" if line else "Other moves"
        opening = opening_of(book.start, common).partition(" ")[2]
        opening = textwrap.shorten(opening, _NAME - 30, placeholder="…")
        room = _NAME - len(opening) - len(":  (99)")
        if len(name) > room:
            name = "… " + name[2 - room :].partition(" ")[2]
        name = f"{opening}: {name}" if opening else name
        for count in itertools.count(2):
            if name not in found:
                break
            name = f"{name.rpartition(' (')[0] if count > 2 else name} ({count})"
        found.append(name)
    return found


def _chapter_game(game: chess.pgn.Game, chapter: _Chapter) -> chess.pgn.Game:
    """Return a game of a chapter's parts and the moves before them, in the tree's order."""
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
                copied = new.add_variation(child.move, comment=child.comment, nags=child.nags)
                stack.append((child, copied, all_of_it))
    return made
