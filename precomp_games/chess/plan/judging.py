"""Judging a repertoire: its moves on a history tree beside the analyst's, and what is said of them.

A book that is there already is judged on a tree of the preparation (`preparation_tree`), and so has to be on
it: a position's menu has the analyst's moves and the repertoire's. The analyst's go as far as a horizon, the
repertoire's to the end of its lines. Cut such a tree by reach alone (`truncate="reach"`): by values, a move
that does not pay would be cut, and with it what is to be judged.

`judge_repertoire` does all of it, from settings and engines to a judgment with its tables.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import chess
import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.deadlines import as_far_as_time_goes
from precomp_games._support.results import Result
from precomp_games.algorithms.preparation.judgment import BookJudgment, judge_book
from precomp_games.chess.data.repertoire import Repertoire
from precomp_games.chess.game import ChessState, move_of
from precomp_games.chess.model.engine_policies import EngineMenu
from precomp_games.chess.model.model import Engines, PreparationPolicies, by_player
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan.trees import penalties, preparation_tree
from precomp_games.tree.history_tree import HistoryTree

KNOWN = ("positions", "lines")
"""What the owner of a book knows: each of its positions, however it came up, or its lines alone."""


@dataclasses.dataclass(frozen=True)
class RepertoireMenu:
    """A menu with the moves of a repertoire beside those of an engine, which come first."""

    repertoire: Repertoire
    engine_menu: EngineMenu

    def entries_batch(self, states: Sequence[ChessState]) -> list[list[int]]:
        """The actions at each state."""
        of_engine = self.engine_menu.entries_batch(states)
        return [
            [*entries, *(a for a in self.repertoire.actions_at(state.epd) if a not in entries)]
            for state, entries in zip(states, of_engine, strict=True)
        ]


def repertoire_policies(
    policies: PreparationPolicies, repertoire: Repertoire, horizon: int, count: int = 1
) -> PreparationPolicies:
    """The policies of a preparation whose player has a repertoire's moves to choose among as well.

    Args:
      policies: of `preparation_policies`, with a menu for the repertoire's side.
      repertoire: the moves.
      horizon: from this half-move on, there are only the repertoire's.
      count: how many of the engine's best moves there are to choose among, no more than the menu has. The
        tree grows with this number to the power of moves.

    Raises:
      ValueError: the policies have no such menu.
    """
    menu = policies.sigma_pre[repertoire.player]
    if not isinstance(menu, EngineMenu):
        raise ArgumentError(
            f"expected policies of settings with a menu of at least 1 for the repertoire's side, got {menu!r}"
        )
    fewer = dataclasses.replace(menu, max_plies=min(menu.max_plies, horizon), count=min(menu.count, count))
    both = RepertoireMenu(repertoire, fewer)
    return dataclasses.replace(policies, sigma_pre=by_player(repertoire.player, both, None))


@dataclasses.dataclass(frozen=True, eq=False)
class KnownEntries:
    """What a repertoire has of a tree.

    Attributes:
      memorization_set: int32[k], the entries that play its first choices, increasing.
      own_entries: int32, those of all its choices.
      met: The positions of the set, as EPD.
    """

    memorization_set: npt.NDArray[np.int32]
    own_entries: npt.NDArray[np.int32]
    met: frozenset[str]


def known_entries(tree: HistoryTree, repertoire: Repertoire, known: str = "positions") -> KnownEntries:
    """Finds a repertoire on a tree over `ChessGame` whose menus have its moves.

    Args:
      tree: see `repertoire_policies`.
      repertoire: the book.
      known: one of `KNOWN`.
    """
    by_position = known == "positions"
    first: list[int] = []
    own: list[int] = []
    met: set[str] = set()
    start: Any = tree.game.new_initial_state()
    waiting: list[tuple[int, Any, tuple[int, ...], bool]] = [(0, start, (), True)]
    while waiting:
        history, state, line, chosen = waiting.pop()
        children = tree.children(history)
        if tree.player[history] != repertoire.player:
            for child in children:
                action = int(tree.action[child])
                waiting.append((child, state.child(action), (*line, action), chosen))
            continue
        if tree.infoset[history] < 0 or not (by_position or line in repertoire.lines):
            continue
        after = {int(tree.action[child]): child for child in children if tree.sigma_pre[child] > 0.0}
        for rank, action in enumerate(repertoire.actions_at(state.epd)):
            if action not in after:
                continue
            entry, plays = int(tree.edge_entry[after[action]]), chosen and rank == 0
            own.append(entry)
            if plays:
                first.append(entry)
                met.add(state.epd)
            waiting.append((after[action], state.child(action), (*line, action), plays))
    return KnownEntries(_increasing(first), _increasing(own), frozenset(met))


def _increasing(entries: list[int]) -> npt.NDArray[np.int32]:
    return np.unique(np.array(entries, np.int32))


@dataclasses.dataclass(frozen=True, eq=False)
class RepertoireJudgment(Result):
    """What is said of a repertoire; moves are in SAN, lines from the start of the repertoire.

    Attributes:
      repertoire: The book.
      tree: On which it is judged.
      known: What it has of the tree.
      judgment: What it is worth there, in the tree's numbers.
      penalty: By which it was judged: that of the settings, or a greater one, as far as there was time.
    """

    repertoire: Repertoire
    tree: HistoryTree
    known: KnownEntries
    judgment: BookJudgment
    penalty: float

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Rows by the name of a table, each with a line ("after") and a move in the position behind it.

        "positions" are those of the book, "learn" what to learn next, "holes" the replies without an answer,
        and "not_met" the book's positions that games do not come to, in the order of its files.
        """
        return {
            "positions": self._position_rows(),
            "learn": self._lesson_rows(),
            "holes": self._hole_rows(),
            "not_met": self._not_met_rows(),
        }

    def columns(self) -> dict[str, Any]:
        """One row for each position of the book: `tables()["positions"]`."""
        rows = self._position_rows()
        return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}

    def to_json(self) -> dict[str, Any]:
        """What is said of the book as a whole, as JSON has it."""
        judged, report = self.judgment, self.repertoire.report
        counts = (
            *("positions", "lines", "redundant", "entries"),
            *("mistakes", "transpositions", "contradictions"),
        )
        return {
            "read": {
                **{name: getattr(report, name) for name in counts},
                "games": report.games,
                "left_out": dict(report.left_out),
                "cut": dict(report.cut),
            },
            "size": judged.size,
            "met": len(self.known.met),
            "value": judged.value,
            "utility": judged.utility,
            "unprepared": judged.unprepared,
            "best_of_its_size": judged.best.utility,
            "regret": judged.regret,
            "truncation_loss": judged.best.truncation_loss,
            "best_of_its_moves": judged.own_utility,
            "own_regret": judged.own_regret,
            "best_book": [
                dict(zip(("after", "play"), self._entry(entry), strict=True))
                for entry in judged.best.memorization_set.tolist()
            ],
            "tree": {"histories": self.tree.num_histories, "fingerprint": self.tree.fingerprint},
        }

    def _position_rows(self) -> list[dict[str, Any]]:
        judged, rows = self.judgment, []
        rank = {entry: k + 1 for k, entry in enumerate(judged.drop_order.tolist())}
        for k, entry in enumerate(judged.memorization_set.tolist()):
            after, play = self._entry(entry)
            better = int(judged.better[k])
            rows.append(
                {
                    "after": after,
                    "play": play,
                    "reach": float(judged.reach[k]),
                    "gain": float(judged.gain[k]),
                    "forgetting": float(judged.forgetting[k]),
                    "drop": rank[entry],
                    "threshold": float(judged.threshold[k]),
                    "loss": float(judged.loss[k]),
                    "better": self._entry(better)[1] if better >= 0 else "",
                }
            )
        return rows

    def _lesson_rows(self) -> list[dict[str, Any]]:
        rows = []
        for entry, gain, net_gain in zip(*(each.tolist() for each in self.judgment.lessons), strict=True):
            after, play = self._entry(entry)
            rows.append({"after": after, "play": play, "gain": gain, "with_what_follows": net_gain})
        return rows

    def _hole_rows(self) -> list[dict[str, Any]]:
        rows = []
        columns = (each.tolist() for each in self.judgment.holes)
        for infoset, reach, cost, answer in zip(*columns, strict=True):
            after, play = self._line_and_move(infoset, answer)
            rows.append({"after": after, "answer": play, "reach": reach, "cost": cost})
        return rows

    def _not_met_rows(self) -> list[dict[str, Any]]:
        book, rows = self.repertoire, []
        not_met = [(epd, position) for epd, position in book.positions.items() if epd not in self.known.met]
        lines = _sans(book.start, [(*position.history, position.moves[0]) for _, position in not_met])
        for (epd, position), (*line, play) in zip(not_met, lines, strict=True):
            rows.append(
                {
                    "after": _numbered(book.start, line) or "(start)",
                    "play": play,
                    "because": "the opponent" if epd in book.playable else "the book's own first choices",
                    "source": position.source,
                }
            )
        return rows

    def _entry(self, entry: int) -> tuple[str, str]:
        return self._line_and_move(int(self.tree.entry_infoset[entry]), entry)

    def _line_and_move(self, infoset: int, entry: int) -> tuple[str, str]:
        """(the line to an information state, the move of an entry there)."""
        history = int(self.tree.infoset_history[infoset])
        (action,) = self.tree.memorized_row(entry)
        board = self.tree.state(history).board
        moves = [move_of(a) for a in self.tree.actions(history)]
        return line_of(self.repertoire.start, moves), board.san(move_of(action))


def _sans(start: chess.Board, lines: Iterable[tuple[chess.Move, ...]]) -> Iterator[list[str]]:
    """The moves of lines in SAN. What a line shares with the one before it is played once."""
    board, before, sans = start.copy(stack=False), tuple[chess.Move, ...](), list[str]()
    for line in lines:
        pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, line, strict=False))
        same = sum(1 for _ in pairs)
        for _ in before[same:]:
            board.pop()
        sans = sans[:same] + [board.san_and_push(move) for move in line[same:]]
        before = line
        yield sans


def _numbered(start: chess.Board, sans: Sequence[str]) -> str:
    """Moves in SAN from a start position, with their numbers, as python-chess writes a variation."""
    first, words = start.ply(), list[str]()
    for ply, san in enumerate(sans, first):
        dots = ". " if ply % 2 == 0 else "..." if ply == first else ""
        words.append(f"{ply // 2 + 1}{dots}{san}" if dots else san)
    return " ".join(words)


def line_of(board: chess.Board, moves: Sequence[chess.Move]) -> str:
    """Moves from a start position, numbered."""
    return board.variation_san(moves) or "(start)"


@public
def judge_repertoire(
    repertoire: Repertoire,
    settings: PreparationSettings,
    engines: Engines,
    *,
    policies: PreparationPolicies | None = None,
    horizon: checks.PositiveInt | None = None,
    count: checks.PositiveInt = 1,
    known: Annotated[str, checks.one_of(KNOWN)] = "positions",
    learn: checks.NonNegativeInt = 10,
) -> RepertoireJudgment:
    """Judges a repertoire against the opponent of some settings: see `judge_book`.

    Args:
      repertoire: the book, of the side of `settings`.
      settings: with a menu of at least 1. The tree has what comes up in a share of the penalty of games;
        where there is a deadline, of a greater penalty, as far as there is time.
      engines: whose searches.
      policies: of the settings, with another opponent; by default theirs.
      horizon: so many half-moves long may the analyst's books be; by default one more than the longest line.
      count: how many of the analyst's best moves there are to choose among in a position.
      known: one of `KNOWN`.
      learn: how many positions to learn next.

    Raises:
      ValueError, EngineError: an argument is not as above, or as of `preparation_tree`.
    """
    if policies is None:
        policies = engines.policies(settings)
    both = repertoire_policies(policies, repertoire, horizon or repertoire.longest + 1, count)

    def look(penalty: float) -> HistoryTree:
        each = dataclasses.replace(settings, penalty=penalty)
        return preparation_tree(each, engines.analyst, engines.opponent, policies=both, truncate="reach")

    looks = penalties(settings.penalty) if engines.can_search else [settings.penalty]
    penalty, tree = as_far_as_time_goes(looks, settings.penalty, look)
    entries = known_entries(tree, repertoire, known)
    judgment = judge_book(
        tree,
        repertoire.player,
        entries.memorization_set,
        own_entries=entries.own_entries,
        learn=learn,
    )
    return RepertoireJudgment(repertoire, tree, entries, judgment, penalty)
