"""Judges a repertoire: its moves on a history tree beside the analyst's, and the tables of results.

An existing book is judged on a tree of the preparation (`preparation_tree`), and so has to be on it: a
position's menu has the analyst's moves and the repertoire's. The analyst's end at a horizon, the repertoire's
with its lines. Prune such a tree by reach alone (`truncate="reach"`): by values, a move that does not pay
would be pruned, and it is to be judged.

`judge_repertoire` does all of it, from settings and engines to a judgment with its tables.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import chess
import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.results import Result, rows_of
from precomp_games.algorithms.preparation.judgment import BookJudgment, judge_book
from precomp_games.chess.data.repertoire import Repertoire
from precomp_games.chess.game import ChessState, move_of
from precomp_games.chess.model.engine_policies import EngineMenu
from precomp_games.chess.model.model import Engines, PreparationPolicies, by_player
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan.prepare import looked_at
from precomp_games.chess.plan.repertoire_book import KNOWN, with_likely_replies
from precomp_games.chess.plan.trees import looked_far, preparation_tree
from precomp_games.tree.history_tree import HistoryTree

_BEYOND = 2  # moves of ours outside the repertoire, as people reply in many ways


@dataclasses.dataclass(frozen=True)
class RepertoireMenu:
    """A menu with the moves of a repertoire beside those of an engine, which come first.

    Attributes:
      repertoire: The moves.
      engine_menu: The engine's.
      beyond: After so many positions in a row that the repertoire does not have, the menu is empty; None: the
        engine's moves go on. For trees that share nothing between orders of moves.
    """

    repertoire: Repertoire
    engine_menu: EngineMenu
    beyond: int | None = None

    def entries_batch(self, states: Sequence[ChessState]) -> list[list[int]]:
        """Return the actions at each state."""
        looked_at = [state for state in states if self._near(state)]
        of_engine = iter(self.engine_menu.entries_batch(looked_at))
        by_state = {id(state): next(of_engine) for state in looked_at}
        entries = [by_state.get(id(state), []) for state in states]
        return [
            [*each, *(a for a in self.repertoire.actions_at(state.epd) if a not in each)]
            for state, each in zip(states, entries, strict=True)
        ]

    def _near(self, state: ChessState) -> bool:
        """Return whether one of the last positions is the repertoire's, or there were no more."""
        known, history = self.repertoire.positions, state.history()
        if self.beyond is None or state.epd in known or len(history) < 2 * self.beyond:
            return True
        earlier = [state.get_game().new_initial_state()]
        for action in history[:-2]:
            earlier.append(earlier[-1].child(action))
        return any(each.epd in known for each in earlier[: -2 * self.beyond : -2])


def repertoire_policies(
    policies: PreparationPolicies,
    repertoire: Repertoire,
    horizon: int,
    count: int = 1,
    beyond: int | None = None,
) -> PreparationPolicies:
    """Return the policies of a preparation whose player may choose a repertoire's moves as well.

    Args:
      policies: of `preparation_policies`, with a menu for the repertoire's side.
      repertoire: the moves.
      horizon: from this half-move on, there are only the repertoire's.
      count: number of the engine's best moves to choose among, no more than the menu has. The tree grows with
        this number to the power of moves.
      beyond: see `RepertoireMenu`.

    Raises:
      ValueError: the policies have no such menu.
    """
    menu = policies.sigma_pre[repertoire.player]
    if not isinstance(menu, EngineMenu):
        raise ArgumentError(
            f"expected policies of settings with a menu of at least 1 for the repertoire's side, got {menu!r}"
        )
    fewer = dataclasses.replace(menu, max_plies=min(menu.max_plies, horizon), count=min(menu.count, count))
    both = RepertoireMenu(repertoire, fewer, beyond)
    return dataclasses.replace(policies, sigma_pre=by_player(repertoire.player, both, None))


class KnownEntries(NamedTuple):
    """The part of a tree that a repertoire covers.

    Attributes:
      memorization_set: int32[k], the entries of its first choices, increasing.
      own_entries: int32, those of all its choices.
      met: The positions of the set, as EPD.
    """

    memorization_set: npt.NDArray[np.int32]
    own_entries: npt.NDArray[np.int32]
    met: frozenset[str]


def known_entries(tree: HistoryTree, repertoire: Repertoire, known: str = "positions") -> KnownEntries:
    """Find a repertoire on a tree over `ChessGame` whose menus have its moves.

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
    of_set, of_all = (np.unique(np.array(entries, np.int32)) for entries in (first, own))
    return KnownEntries(of_set, of_all, frozenset(met))


@dataclasses.dataclass(frozen=True, eq=False)
class RepertoireJudgment(Result):
    """Judgment of a repertoire; moves are in SAN, lines from the start of the repertoire.

    Attributes:
      repertoire: The book.
      tree: The tree of the judgment.
      known: The part of the tree that it covers.
      judgment: Its values there, in the tree's numbers.
      penalty: The penalty of the tree: that of the settings, or a greater one, if there was too little time.
    """

    repertoire: Repertoire
    tree: HistoryTree
    known: KnownEntries
    judgment: BookJudgment
    penalty: float

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return rows by the name of a table, each with a line ("after") and a move after it.

        "positions" are those of the book, "learn" what to learn next, "holes" the replies without an answer,
        at the end of a line or beside replies that have one, and "not_met" the book's positions that games do
        not reach, in the order of its files.
        """
        lessons, holes = self.judgment.lessons, self.judgment.holes
        learn = _columns(map(self._entry, lessons.entry.tolist()))
        answers = map(self._line_and_move, holes.infoset.tolist(), holes.answer.tolist())
        tables = {
            "positions": self.columns(),
            "learn": learn | {"gain": lessons.gain, "with_what_follows": lessons.net_gain},
            "holes": _columns(answers, "answer")
            | {"reach": holes.reach, "gain": holes.gain, "cost": holes.cost, "where": self._ends()},
        }
        return {name: rows_of(each) for name, each in tables.items()} | {"not_met": self._not_met()}

    def columns(self) -> dict[str, Any]:
        """Return a row for each position of the book: `tables()["positions"]`."""
        judged = self.judgment
        members, better = judged.memorization_set.tolist(), judged.better.tolist()
        rank = {entry: k for k, entry in enumerate(judged.drop_order.tolist(), start=1)}
        return _columns(map(self._entry, members)) | {
            "reach": judged.reach,
            "gain": judged.gain,
            "forgetting": judged.forgetting,
            "drop": [rank[entry] for entry in members],
            "threshold": judged.threshold,
            "loss": judged.loss,
            "better": [self._entry(entry)[1] if entry >= 0 else "" for entry in better],
        }

    def to_json(self) -> dict[str, Any]:
        """Return the judgment of the book as a whole, for JSON."""
        judged, report = self.judgment, self.repertoire.report
        counts = (
            "positions",
            "lines",
            "redundant",
            "entries",
            "mistakes",
            "transpositions",
            "contradictions",
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
            "best_book": rows_of(_columns(map(self._entry, judged.best.memorization_set.tolist()))),
            "tree": dataclasses.asdict(looked_at(self.tree)),
        }

    def _ends(self) -> list[str]:
        """Return for each hole whether the book has an answer to another reply there, in words."""
        judged, before = self.judgment, self.tree.previous
        answered = set(before[self.tree.entry_infoset[judged.memorization_set]].tolist())
        holes = before[judged.holes.infoset].tolist()
        return ["beside others" if each in answered else "a line ends" for each in holes]

    def _not_met(self) -> list[dict[str, Any]]:
        book = self.repertoire
        rest = [(epd, position) for epd, position in book.positions.items() if epd not in self.known.met]
        lines = _written(book.start, [(*position.history, position.moves[0]) for _, position in rest])
        return [
            {
                "after": after or "(start)",
                "play": play,
                "because": "the opponent" if epd in book.playable else "the book's own first choices",
                "source": position.source,
            }
            for (epd, position), (after, play) in zip(rest, lines, strict=True)
        ]

    def _entry(self, entry: int) -> tuple[str, str]:
        return self._line_and_move(int(self.tree.entry_infoset[entry]), entry)

    def _line_and_move(self, infoset: int, entry: int) -> tuple[str, str]:
        """Return (the line to an information state, the move of an entry there)."""
        history = int(self.tree.infoset_history[infoset])
        (action,) = self.tree.memorized_row(entry)
        board = self.tree.state(history).board
        moves = [move_of(a) for a in self.tree.actions(history)]
        return line_of(self.repertoire.start, moves), board.san(move_of(action))


def _columns(pairs: Iterable[tuple[str, str]], move: str = "play") -> dict[str, Any]:
    """Return columns of lines and of the moves after them."""
    given = list(pairs)
    return {"after": [line for line, _ in given], move: [san for _, san in given]}


def _written(start: chess.Board, lines: Iterable[tuple[chess.Move, ...]]) -> Iterator[tuple[str, str]]:
    """Yield for each line the moves before its last one, as python-chess writes a variation, and that in SAN.

    Moves that a line shares with the one before it are played once.
    """
    board, texts, sans = start.copy(stack=False), [""], list[str]()
    for line in lines:
        same = sum(itertools.takewhile(bool, map(operator.eq, board.move_stack, line)))
        while len(board.move_stack) > same:
            board.pop()
        del texts[same + 1 :], sans[same:]
        for move in line[same:]:
            sans.append(board.san(move))
            dots = ". " if board.turn else "..."
            number = f"{board.fullmove_number}{dots}" if board.turn or not sans[1:] else ""
            texts.append(f"{texts[-1]} {number}{sans[-1]}".lstrip())
            board.push(move)
        yield texts[-2], sans[-1]


def line_of(board: chess.Board, moves: Sequence[chess.Move]) -> str:
    """Return moves from a start position as text, numbered."""
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
    """Judge a repertoire against the opponent of some settings: see `judge_book`.

    Args:
      repertoire: the book, of the side of `settings`.
      settings: with a menu of at least 1. The tree has the positions whose reach exceeds the penalty; with a
        deadline, a greater penalty, as far as there is time.
      engines: engines of the searches.
      policies: of the settings, with another opponent; by default theirs.
      horizon: half-moves after which the analyst's books end; by default one more than the longest line,
        and against people no more than two moves away from the repertoire.
      count: number of the analyst's best moves among which to choose in a position.
      known: one of `KNOWN`.
      learn: number of positions to learn next.

    Raises:
      ValueError, EngineError: as `preparation_tree`.
    """
    if policies is None:
        policies = engines.policies(settings)
    beyond = _BEYOND if horizon is None and settings.of_people else None
    both = repertoire_policies(policies, repertoire, horizon or repertoire.longest + 1, count, beyond)

    def look(each: PreparationSettings) -> HistoryTree:
        likely = with_likely_replies(both, each)
        return preparation_tree(each, engines.analyst, engines.opponent, policies=likely, truncate="reach")

    tree = looked_far(settings, look, by_steps=engines.can_search)
    entries = known_entries(tree, repertoire, known)
    own, chosen = entries.own_entries, entries.memorization_set
    judgment = judge_book(tree, repertoire.player, chosen, own_entries=own, learn=learn)
    return RepertoireJudgment(repertoire, tree, entries, judgment, tree.penalties[repertoire.player])
