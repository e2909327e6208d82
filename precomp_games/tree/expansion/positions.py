"""The distinct positions of one level: asking policies about them, and the positions that follow.

A history tree multiplies histories, but a policy is asked once for each distinct position of a level, in
one batch. What is the same position is the caller's promise, `position_key`, which is held to it on a few
of the pairs that it joins.

Policies and menus are held to one answer for all histories of an information state (`AlikeRows`). Whoever
plays cannot tell these histories apart. An answer that differs between them looks at what is hidden, or was
drawn anew at each, and nobody can play it as a tree has it. Each answer is compared with that at the first
history of its information state, wherever in the game the two are.

Cost: an information state string for each distinct position that is asked about; in bytes, what is answered
and the history, for each information state. Where information is perfect nothing is done.
"""

from __future__ import annotations

import array
import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.checks import ArgumentError, shown
from precomp_games._support.game_facts import GameFacts, information_state
from precomp_games._support.memory import BLOCK, MemoryMeter, in_blocks
from precomp_games.policies import rows
from precomp_games.policies.mixtures import component_name
from precomp_games.tree.expansion.options import ExpansionOptions
from precomp_games.tree.facts import CHANCE, TERMINAL

_SPOT_TOLERANCE = 1e-9
_TOLERANCE = 1e-6  # as of sums: networks that answer batches of float32 numbers are no more exact
_BYTES_AN_ANSWER = 80  # of a policy, a number: what joining takes, measured (tests/test_memory.py)
_NOBODY = int(pyspiel.PlayerId.INVALID)  # -1 is chance


class Edges(NamedTuple):
    """The distinct edges out of a level's positions, in order of (position, action).

    Attributes:
      start: int64[positions + 1], position k has edges start[k]:start[k + 1].
      action: int64[edges].
      sigma_pre, sigma: float64[edges], 0 where that policy was not asked or does not play the action.
      entry: int16[edges], the entry of the mover's menu that plays the action; 0 where none does.
      components: float64[edges, K], what each component of a mixed opponent plays, 0 where it was not asked;
        K is 0 where there is no such opponent.
    """

    start: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]
    sigma_pre: npt.NDArray[np.float64]
    sigma: npt.NDArray[np.float64]
    entry: npt.NDArray[np.int16]
    components: npt.NDArray[np.float64]


class AlikeRows:
    """Answers at the first occurrences of information states in one expansion."""

    def __init__(self) -> None:
        """Nothing has been answered."""
        self._index: dict[str, dict[str, int]] = {}  # by policy, of information states
        self._histories: list[bytes] = []  # of int32
        self._rows = rows.NO_ROWS

    def hold(
        self,
        states: Sequence[Any],
        answers: rows.PolicyRows,
        names: tuple[str, str],
        movers: Iterable[tuple[int, str]] | None = None,
    ) -> None:
        """Compare what was answered at states with what was answered before, and among them.

        Args:
          states: what was asked about, wherever the game goes on; chance is passed over.
          answers: the answers.
          names: whose they are, by player; what has one name is compared.
          movers: the movers and their information state strings, where they are known.

        Raises:
          ValueError: two histories of one information state have different answers.
        """
        which, new = [], []
        index, histories = [self._index.setdefault(name, {}) for name in names], self._histories
        for k, (player, infoset) in enumerate(map(_mover, states) if movers is None else movers):
            first = -1
            if player >= 0:
                first = index[player].setdefault(infoset, len(histories))
                if first == len(histories):
                    histories.append(array.array("i", states[k].history()).tobytes())
                    new.append(k)
            which.append(first)
        if new:
            self._rows = rows.stacked([self._rows, rows.taken(answers, np.array(new))])
        for begin in range(0, len(which), BLOCK):  # what is compared is copied
            block = np.arange(begin, min(begin + BLOCK, len(which)))
            seen = np.array(which[begin : begin + BLOCK], np.int64)
            wrong = _first_difference(self._rows, rows.taken(answers, block), seen, _TOLERANCE)
            if wrong >= 0:
                self._reject(states, answers, names, begin + wrong, which[begin + wrong])

    def _reject(
        self, states: Sequence[Any], answers: rows.PolicyRows, names: tuple[str, str], wrong: int, first: int
    ) -> NoReturn:
        state = states[wrong]
        player, game = state.current_player(), state.get_game()
        before = np.frombuffer(self._histories[first], np.int32).tolist()
        asked = (self._rows, first, before), (answers, wrong, state.history())
        other: Any = game.new_initial_state()
        for action in before:
            other.apply_action(action)
        legal = [sorted(each.legal_actions()) for each in (other, state)]
        if legal[0] != legal[1]:
            where = f"{information_state(state)!r} of {shown(str(game))}"
            raise ArgumentError(
                f"expected one set of legal actions at {where}, got {legal[0]} and {legal[1]}"
            )
        there, here = (
            f"{_row(each, k)} after {', '.join(rows.action_words(game, path))!r}" for each, k, path in asked
        )
        raise ArgumentError(
            f"expected {names[player]} to be the same at all histories of an information state, got {there} "
            f"and {here}, which player {player} cannot tell apart; nobody can play what looks at hidden "
            "things, or draws an answer anew at each history (as MCTS does)"
        )


def _mover(state: Any) -> tuple[int, str]:
    """Return the mover and its information state string, "" at chance's."""
    player = state.current_player()
    return player, information_state(state, player) if player >= 0 else ""


def _row(answers: rows.PolicyRows, k: int) -> str:
    """Return a row as {action: probability}; the entries where a menu has several, or none."""
    (entries,) = rows.entry_rows(rows.taken(answers, np.array([k])))
    return shown(entries[0] if len(entries) == 1 else entries)


def _first_difference(known: rows.PolicyRows, new: rows.PolicyRows, which: np.ndarray, least: float) -> int:
    """Return the first new row k that differs from row which[k] by more than `least`, -1 for none.

    which[k] is -1 where there is nothing to compare with.
    """
    compared = np.flatnonzero(which >= 0)
    there, here = rows.taken(known, which[compared]), rows.taken(new, compared)
    if all(np.array_equal(there[k], here[k]) for k in range(len(there))):
        return -1
    at = np.arange(len(compared))
    start, _, odds, _ = rows.joined_rows([(at, each) for each in (there, here)], len(at))
    numbers = (each._replace(probability=1.0 + each.entry.astype(np.float64)) for each in (there, here))
    entries = rows.joined_rows([(at, each) for each in numbers], len(at))[2]
    differ = np.abs(odds[0] - odds[1]) > least
    differ |= (entries[0] != entries[1]) & (np.minimum(odds[0], odds[1]) > least)
    wrong = np.repeat(compared, np.diff(start))[differ]
    return int(wrong[0]) if len(wrong) else -1


class LevelPositions:
    """Steps from one level's positions to the next one's.

    states: the current level's positions; without a key, None where the game is over: of these the utility is
    all that anybody asks for. keys: theirs. mover: int8[n], who moves there. utilities: float64[n, 2], the
    players' where the game is over. policy_queries: rows asked of policies so far. alike, memory: what hears
    of answers, and of states.
    """

    def __init__(
        self,
        root: Any,
        options: ExpansionOptions,
        alike: AlikeRows | None,
        memory: MemoryMeter,
    ) -> None:
        """Start at the root; `alike` compares answers where information is imperfect."""
        self._facts = GameFacts(root.get_game())
        self.policy_queries = 0
        self._mixed_player, mixture = options.mixture or (_NOBODY, None)
        self._key, self.alike, self.memory = options.position_key, alike, memory
        # What is asked, and its name for each player: sigma_pre, sigma, and each component of a mixture.
        self._asks: list[tuple[Callable[[Sequence[Any]], rows.PolicyRows], tuple[str, str]]] = []
        for name, policies in (("sigma_pre", options.sigma_pre), ("sigma", options.sigma)):
            least = options.min_probability
            ask = functools.partial(rows.movers_rows, policies=policies, name=name, min_probability=least)
            self._asks.append((ask, (f"{name}[0]", f"{name}[1]")))
        for k, component in enumerate(() if mixture is None else mixture.components):
            name = component_name(k)
            self._asks.append((functools.partial(_component_rows, component, name), (name, name)))
        self._ids: dict[Hashable, int] = {}
        self._merges = 0
        self._doubles: list[tuple[int, Any]] = []
        self._movers = array.array("b")  # `mover`, of which Python reads one faster
        self._strings: list[str | None] = []  # of the level
        self._names: dict[str, str] = {}  # those strings, each once
        self._enter([root])

    def _enter(self, reached: Iterable[Any]) -> np.ndarray:
        """Go on to the distinct ones of states, as they are made; return which of them stands for each."""
        states: list[Any] = []
        index: dict[Hashable, int] = {}
        which, movers, utilities = array.array("i"), array.array("b"), array.array("d")
        self._doubles = []
        facts, key, known = self._facts, self._key, self._facts.movers
        for state in reached if key is None else self._distinct(reached, index, which):
            mover = state.current_player()
            if mover not in known:
                facts.mover(state)
            movers.append(mover)
            if mover == TERMINAL:
                utilities.extend(facts.utilities(state))
                if key is None:
                    state = None
            states.append(state)
        self.states, self.keys = states, list(index)
        self._strings, self._names = [None] * len(states), {}
        self._movers, self.mover = movers, np.array(movers)
        self.utilities = np.zeros((len(states), 2))
        self.utilities[self.mover == TERMINAL] = np.array(utilities).reshape(-1, 2)
        self._facts.check_names(states, self.mover)
        return np.arange(len(states), dtype=np.int32) if self._key is None else np.array(which)

    def _distinct(
        self, states: Iterable[Any], index: dict[Hashable, int], which: array.array[int]
    ) -> Iterator[Any]:
        """The states that come first with their keys; writes down all keys, and who stands for each state."""
        assert self._key is not None
        for state in states:
            new = len(index)
            k = index.setdefault(self._key(state), new)
            which.append(k)
            if k == new:
                yield state
                continue
            self._merges += 1
            if self._merges & (self._merges - 1) == 0:  # the 1st, 2nd, 4th, 8th, ... of the tree
                self._doubles.append((k, state))

    def infoset_strings(self, positions: Iterable[int]) -> Iterator[str]:
        """Yield the movers' strings at some of the positions, "" at chance's; each is asked for once."""
        states, movers, strings, names = self.states, self._movers, self._strings, self._names
        for k in positions:
            if (name := strings[k]) is None:
                name = information_state(states[k], movers[k]) if movers[k] >= 0 else ""
                name = strings[k] = names.setdefault(name, name)
            yield name

    def ids(self) -> np.ndarray | None:
        """Return int32[n]: the positions' numbers in the whole tree; None without a key."""
        if self._key is None:
            return None
        return np.array([self._ids.setdefault(key, len(self._ids)) for key in self.keys], np.int32)

    def ask(self, wants_pre: np.ndarray, wants_sigma: np.ndarray) -> Edges:
        """Ask each policy about the positions where it is wanted (bool[n] each).

        Raises:
          ValueError: a policy is missing or its answer is wrong, or `position_key` broke its promise.
        """
        mixed = wants_sigma & (self.mover == self._mixed_player)
        wanted = [wants_pre, wants_sigma & ~mixed, *[mixed] * (len(self._asks) - 2)]
        answers = []
        for (ask, names), here in zip(self._asks, wanted, strict=True):
            asked = np.flatnonzero(here)
            self.policy_queries += int((self.mover[asked] >= 0).sum())
            states = [self.states[k] for k in asked.tolist()]
            answer = rows.asked_rows(ask, states, self.memory)
            if self.alike is not None:
                movers = zip(self.mover[asked].tolist(), self.infoset_strings(asked.tolist()), strict=True)
                compared = self.memory.watched("compared answers", movers, len(asked))
                self.alike.hold(states, answer, names, compared)
            answers.append((asked, answer))
        self._spot_check(wanted)
        self.memory.check(_BYTES_AN_ANSWER * sum(len(answer.action) for _, answer in answers))
        start, action, columns, entry = rows.joined_rows(answers, len(self.states))
        self._facts.check_level(self.states, self.mover, start, action)
        by_chance = np.repeat(self.mover == CHANCE, np.diff(start))
        columns[0, by_chance] = columns[1, by_chance]
        return Edges(start, action, columns[0], columns[1], entry, np.ascontiguousarray(columns[2:].T))

    def advance(self, edges: Edges, used: np.ndarray) -> np.ndarray:
        """Go on to the positions behind edges.

        Args:
          edges: those of the level.
          used: int[n], which of them, the same ones more than once.

        Returns:
          int32[n]: the new position behind each.
        """
        is_used = np.zeros(len(edges.action), bool)
        is_used[used] = True
        taken = np.flatnonzero(is_used)
        owner = np.repeat(np.arange(len(self.states)), np.diff(edges.start))[taken]
        made = self._children(owner, edges.action[taken])
        behind = np.zeros(len(edges.action), np.int32)
        behind[taken] = self._enter(self.memory.watched("states", made, len(taken)))
        return np.asarray(behind[used])

    def _children(self, owner: np.ndarray, action: np.ndarray) -> Iterator[Any]:
        """The states behind edges; each position is let go when its last child is made."""
        waiting, at = self.states[::-1], -1
        parent: Any = None
        self.states, self._strings = [], []
        for where, move in in_blocks(owner, action):
            while at < where:
                parent, at = waiting.pop(), at + 1
            yield parent.child(move)

    def _spot_check(self, wanted: list[np.ndarray]) -> None:
        """Compare a few states with the ones that stand for them."""
        for k, other in self._doubles:
            state = self.states[k]
            same = self._seen(state) == self._seen(other)
            # Only what was asked here anyway: a further answer may cost a search.
            for (ask, _), here in zip(self._asks, wanted, strict=True):
                if same and self.mover[k] >= 0 and here[k]:
                    pair = [rows.taken(ask([state, other]), np.array([each])) for each in (0, 1)]
                    same = _first_difference(pair[0], pair[1], np.zeros(1, np.int64), _SPOT_TOLERANCE) < 0
            if not same:
                raise ArgumentError(
                    "expected position_key to join only states that play the same, got "
                    f"{state.history_str()!r} and {other.history_str()!r} under one key; "
                    "a policy that depends on the history needs position_key=None"
                )

    def _seen(self, state: Any) -> tuple[Any, ...]:
        """Return what has to be the same in histories of one position."""
        player = state.current_player()
        asked = (0, 1) if player >= 0 and self.alike is not None else ()
        open_facts = state.returns() if state.is_terminal() else state.legal_actions()
        return player, open_facts, [state.information_state_string(p) for p in asked]


def _component_rows(component: rows.BatchPolicy, name: str, states: Sequence[Any]) -> rows.PolicyRows:
    """Return a component's whole policy: rare actions are cut only in the mixture."""
    return rows.policy_rows(component, states, name=name) if states else rows.NO_ROWS
