"""Policies as the library asks them: many states at once, checked, with tiny probabilities cut off.

A policy is an `open_spiel.python.policy.Policy`, or any callable `state -> {action: probability}`. One
that can answer many states together (an engine pool, a neural network) has a method
`action_probabilities_batch(states) -> [{action: probability}, ...]`; the others are asked state by state.
In place of dictionaries an answer may be an array, [actions] or [states, actions], over all of the game's
actions; what it gives to illegal ones is left out. `policies.bots` makes policies of bots and networks.

Rows of a whole batch are kept as flat arrays (`PolicyRows`), because that is what the expansion of a
history tree multiplies with.

If sigma_pre is a policy, a player only decides whether to memorize its row. With a menu it also decides which
of several entries to memorize, each of them a distribution over actions. The entries of one menu share no
action, so that the move that was played reveals which of them was memorized, and a history of the base game
still is a state of the decision problem.

    HistoryTree.from_game(game, sigma_pre=(Menu.of_actions(), None), ...)       # any legal move
    HistoryTree.from_game(game, sigma_pre=Menu(lambda state: state.legal_actions()[:2]), ...)
    HistoryTree.from_game(game, sigma_pre=Menu.of_support(policy), ...)         # one entry for each of its
    moves

A policy is a menu of one entry. Where a menu is empty, nothing can be memorized, there and further on.

Deviations: the paper's players choose where sigma_pre is memorized, never what it is.
"""

from __future__ import annotations

import dataclasses
import itertools
import numbers
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, at_history, public, shown
from precomp_games._support.game_facts import legal_actions
from precomp_games._support.memory import BLOCK, MemoryMeter
from precomp_games.policies.bots import BotRow

BatchPolicy = Callable[[Sequence[Any]], Sequence[Mapping[int, float]]]
"""The form that every policy is turned into: `states -> one {action: probability} per state`."""

BatchPolicies = tuple[BatchPolicy | None, BatchPolicy | None]
"""Each player's, None where it is not known, or never asked."""

MinProbability = Annotated[float, checks.Ge(0.0), checks.Le(0.01)]
"""Below which a policy's probabilities are set to zero and the rest renormalized."""
LeastProbability = Annotated[float, checks.Ge(0.0), checks.Lt(1.0)]
"""The same, up to any share; what makes trees asks for a `MinProbability`."""

_SUM_TOLERANCE = 1e-6
_OF_FLOATS = 1e-4  # the same, of arrays whose numbers may be float32
_MOST_ENTRIES = 2**15
_LEAST = 1e-9  # of a probability that a menu has an entry for; smaller ones are rounding

_Rows = TypeVar("_Rows", bound=tuple[npt.NDArray[Any], ...])


class PolicyRows(NamedTuple):
    """Action distributions of n states in compressed rows: state k has numbers `start[k]:start[k + 1]`.

    Attributes:
      start: int64[n + 1].
      action: int64[m], increasing within a row.
      probability: float64[m], positive, summing to 1 in each row; of menus, for each entry of a row.
      entry: int16[m], the entry of the state's menu that plays the action; 0 for policies.
    """

    start: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]
    probability: npt.NDArray[np.float64]
    entry: npt.NDArray[np.int16]


NO_ROWS = PolicyRows(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int16))
"""The rows of no states."""


def as_batch_policy(policy: PolicyLike, name: str = "policy") -> BatchPolicy:
    """Return `states -> rows` for any of the accepted kinds of policy.

    Raises:
      ValueError: `policy` is none of them; `name` is the argument and the function in errors.
    """
    if isinstance(policy, pyspiel.Bot):
        return _OneByOne(BotRow(policy))
    made = not isinstance(policy, type)  # a class was meant to be an instance
    if made and hasattr(policy, "action_probabilities_batch"):
        batch: BatchPolicy = policy.action_probabilities_batch
        return batch
    ask = getattr(policy, "action_probabilities", policy)
    if not (made and callable(ask)):
        raise ArgumentError(
            f"expected {name} to be an OpenSpiel Policy or Bot, a NetworkPolicy(network), an object with "
            f"action_probabilities_batch(states), or a function from a state to {{action: probability}}, got "
            f"{shown(policy)}"
        )
    return _OneByOne(ask)


PolicyLike = Annotated[Any, checks.Check(lambda value, name: as_batch_policy(value, name) and value)]
"""An OpenSpiel `Policy` or `Bot`, one that has `action_probabilities_batch`, or `state -> {action: p}`."""


def as_batch_menu(menu: Any, name: str) -> Any:
    """Return a player's candidate moves as a menu: the menu as it is, or `as_batch_policy`.

    Raises:
      ValueError: it is neither.
    """
    return menu if hasattr(menu, "entries_batch") else as_batch_policy(menu, name)


def as_batch_policies(
    policies: PolicyLike | Sequence[PolicyLike | None], name: str, *, menus: bool = False
) -> tuple[Any, Any]:
    """Return `as_batch_policy` for both players, of one policy or a pair; None stays None.

    `menus`: whether a player may have a menu, too, which is left as it is.

    Raises:
      ValueError: they are not one or two, or one is no policy.
    """
    ask = as_batch_menu if menus else as_batch_policy
    first, second = (
        None if policy is None else ask(policy, f"{name}[{i}]")
        for i, policy in enumerate(checks.check_pair(policies, name))
    )
    return first, second


@dataclasses.dataclass(frozen=True)
class _OneByOne:
    """Asks a policy that answers one state at a time. A class: it can be pickled if its policy can."""

    ask: Callable[[Any], Mapping[int, float]]

    def __call__(self, states: Sequence[Any]) -> list[Mapping[int, float]]:
        return [self.ask(state) for state in states]


def check_policies(value: Any, name: str) -> tuple[PolicyLike | None, PolicyLike | None]:
    """Return both players' policies, of one or a pair; None for a player whose policy is not known.

    Raises:
      ValueError: one of them is no policy.
    """
    as_batch_policies(value, name)
    return checks.check_pair(value, name)


def policy_rows(
    policy: BatchPolicy, states: Sequence[Any], *, name: str = "policy", min_probability: float = 0.0
) -> PolicyRows:
    """Ask `policy` about `states` and check the answers.

    Args:
      policy: see `as_batch_policy`.
      states: decision states, distinct.
      name: how error messages call the policy.
      min_probability: probabilities below this are set to zero and the rest renormalized.

    Raises:
      ValueError: a row is missing, names an illegal action, has a negative or non-finite probability,
        or does not sum to 1 (within 1e-6).
    """
    try:
        answers = policy(states)
    except KeyError as error:  # what tables raise
        asked = f"the states that it is asked about, such as that {at_history(states[0])}"
        got = f"of {states[0].get_game()}, got KeyError: {error}; is it a policy of another game?"
        raise ArgumentError(f"expected {name} to know {asked} {got}") from error
    if hasattr(answers, "__array__"):
        answers = list(np.atleast_1d(as_array(answers)))
    if not isinstance(answers, Sequence) or len(answers) != len(states):
        got = f"{len(answers)} rows" if isinstance(answers, Sequence) else repr(answers)
        raise ArgumentError(f"expected {name} to answer {len(states)} states, got {got}")
    if not {dict}.issuperset(map(type, answers)):
        answers = [_as_row(state, answer, name) for state, answer in zip(states, answers, strict=True)]
    lengths: list[int] = []
    actions: list[int] = []
    probabilities: list[float] = []
    for state, answer in zip(states, answers, strict=True):
        if not (legal := set(legal_actions(state))).issuperset(answer) and any(
            p != 0.0 for action, p in answer.items() if action not in legal
        ):
            _check_row(state, answer, name)
        lengths.append(len(answer))
        actions += answer
        probabilities += answer.values()
    # What is left is decided for the whole batch at once; a bad row is then looked into.
    owner = np.repeat(np.arange(len(states)), lengths)
    try:
        action, probability = np.array(actions, np.int64), checks.real_array(probabilities)
        if probability is None:
            raise ArgumentError(f"expected {name} to give probabilities, got {shown(probabilities)}")
    except (TypeError, ValueError, OverflowError):
        for state, answer in zip(states, answers, strict=True):
            _check_row(state, answer, name)
        raise
    bad = ~(np.abs(np.bincount(owner, weights=probability, minlength=len(states)) - 1.0) <= _SUM_TOLERANCE)
    bad[owner[~(probability >= 0.0)]] = True
    if bad.any():
        k = int(np.argmax(bad))
        _check_row(states[k], answers[k], name)
    if not ((action[1:] > action[:-1]) | (owner[1:] > owner[:-1])).all():
        order = np.lexsort((action, owner))
        action, probability = action[order], probability[order]
    keep = (probability > 0.0) & (probability >= min_probability)
    if not keep.all():
        for k in np.flatnonzero(np.bincount(owner[keep], minlength=len(states)) == 0).tolist():
            row = np.flatnonzero(owner == k)  # min_probability is above every entry: keep the likeliest
            keep[row[np.argmax(probability[row])]] = True
        owner, action, probability = owner[keep], action[keep], probability[keep]
    start = _starts(owner, len(states))
    probability = probability / np.bincount(owner, weights=probability, minlength=len(states))[owner]
    return PolicyRows(start, action, probability, np.zeros(len(action), np.int16))


def asked_rows(ask: Callable[[Sequence[Any]], _Rows], states: Sequence[Any], memory: MemoryMeter) -> _Rows:
    """Return `ask(states)` of very many states, block by block: answers take more memory than rows.

    Rows are `PolicyRows`, or another tuple of arrays whose first one is `start`.

    Raises:
      ValueError: as `ask`, or the memory does not suffice.
    """
    parts = []
    memory.look("answers", 0, len(states))
    for first in range(0, max(len(states), 1), BLOCK):
        parts.append(ask(states[first : first + BLOCK]))
        memory.look("answers", BLOCK, max(len(states) - first - BLOCK, 0))
    if len(parts) == 1:
        return parts[0]
    memory.check(sum(column.nbytes for part in parts for column in part))  # all of it twice, for a moment
    return stacked(parts)


def stacked(parts: Sequence[_Rows]) -> _Rows:
    """Return the rows of several, those of the first one first."""
    counts = np.concatenate([np.diff(part[0]) for part in parts])
    _, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return type(parts[0])(np.append(0, np.cumsum(counts)), *columns)


def taken(rows: PolicyRows, chosen: npt.NDArray[np.int64]) -> PolicyRows:
    """Return some of the rows, in the order of `chosen`."""
    counts = np.diff(rows.start)[chosen]
    ends = np.cumsum(counts)
    at = np.arange(counts.sum()) + np.repeat(rows.start[chosen] - (ends - counts), counts)
    return PolicyRows(np.append(0, ends), *(column[at] for column in rows[1:]))


Entry = int | Mapping[int, float]
"""A move that can be memorized at an information state: an action, or {action: probability}."""


@public
@dataclasses.dataclass(frozen=True)
class Menu:
    """A player's menu at each state.

    An object of any other class is a menu, too, if it has `entries_batch(states)`: one that asks an engine
    about many positions at once, for instance.

    Attributes:
      entries: A function from a state to a sequence of entries: actions, or {action: probability}. It must
        give the same at all histories of an information state.
    """

    entries: Callable[[Any], Sequence[Entry]]

    def entries_batch(self, states: Sequence[Any]) -> list[Sequence[Entry]]:
        """Return the menu at each of several states."""
        return [self.entries(state) for state in states]

    @classmethod
    def of_actions(cls) -> Menu:
        """Return every legal action: which move is memorized is left to the player altogether."""
        return cls(legal_actions)

    @classmethod
    @public
    def of_support(cls, policy: PolicyLike) -> Any:
        """Make a menu with an entry for each action that a policy plays.

        Of moves that it plays alike, one is enough to know.

        Raises:
          ValueError: it is no policy.
        """
        return _SupportMenu(as_batch_policy(policy))


@dataclasses.dataclass(frozen=True)
class _SupportMenu:
    """A menu with an entry for each action that a policy plays."""

    policy: BatchPolicy

    def entries_batch(self, states: Sequence[Any]) -> list[list[int]]:
        """Return the menu at each of several states, actions in increasing order."""
        rows = map(_as_row, states, self.policy(states), itertools.repeat("policy"))
        return [sorted(a for a, p in row.items() if p >= _LEAST) for row in rows]


def menu_rows(menu: Any, states: Sequence[Any], *, name: str, min_probability: float = 0.0) -> PolicyRows:
    """Ask a menu about `states` and check the answers: each entry is a row of `policy_rows`.

    Args:
      menu: an object with `entries_batch(states)`, see `Menu`.
      states: see `policy_rows`, as for the rest.
      name: how error messages call the menu.
      min_probability: probabilities of an entry below this are set to zero and the rest renormalized.

    Raises:
      ValueError: an entry is no action and no distribution over legal actions, or two entries of a state
        play the same action.
    """
    if isinstance(menu, Menu) and menu.entries is legal_actions:  # what needs no looking into is made at once
        menus = [legal_actions(state) for state in states]
        counts = np.fromiter(map(len, menus), np.int64, len(menus))
        if (counts > _MOST_ENTRIES).any():
            _check_sizes(menus, states)
        start = np.append(0, np.cumsum(counts))
        action = np.fromiter(itertools.chain.from_iterable(menus), np.int64, int(start[-1]))
        falls = np.append(np.diff(action) < 0, False)
        falls[start[1:] - 1] = False  # from one menu to the next
        if falls.any():
            action = np.fromiter(itertools.chain(*map(sorted, menus)), np.int64, len(action))
        number = np.arange(len(action)) - np.repeat(start[:-1], np.diff(start))
        return PolicyRows(start, action, np.ones(len(action)), number.astype(np.int16))
    menus = menu.entries_batch(states)
    if not isinstance(menus, Sequence) or len(menus) != len(states):
        raise ArgumentError(f"expected {name} to give {len(states)} menus, got {shown(menus)}")
    _check_sizes(menus, states)
    for state, entries in zip(states, menus, strict=True):
        if not isinstance(entries, Sequence | np.ndarray) or isinstance(entries, str | bytes):
            kind = "a sequence of actions or {action: probability}"
            got = f"{shown(entries)} {at_history(state)}"
            raise ArgumentError(f"expected {name} to give {kind}, got {got}")
    sizes = list(map(len, menus))
    rows = [entry_row(entry) for entries in menus for entry in entries]
    owners = [state for state, size in zip(states, sizes, strict=True) for _ in range(size)]
    distributions = policy_rows(lambda _: rows, owners, name=name, min_probability=min_probability)
    counts = np.diff(distributions.start)
    owner = np.repeat(np.repeat(np.arange(len(states)), sizes), counts)
    entry = np.repeat([k for size in sizes for k in range(size)], counts).astype(np.int16)
    order = np.lexsort((distributions.action, owner))
    owner, action = owner[order], distributions.action[order]
    twice = np.flatnonzero((np.diff(owner) == 0) & (np.diff(action) == 0))
    if len(twice):
        where = int(owner[twice[0]])
        raise ArgumentError(
            f"expected the entries of {name} to share no action, so that a move tells which one was "
            f"memorized, got {shown(list(menus[where]))} {at_history(states[where])}"
        )
    return PolicyRows(_starts(owner, len(states)), action, distributions.probability[order], entry[order])


def _check_sizes(menus: Sequence[Any], states: Sequence[Any]) -> None:
    """Refuse menus of more entries than their numbers can be, int16.

    Raises:
      ValueError: there is one.
    """
    for entries, state in zip(menus, states, strict=True):
        if hasattr(entries, "__len__") and len(entries) > _MOST_ENTRIES:
            got = f"{len(entries)} {at_history(state)}"
            raise ArgumentError(f"expected at most {_MOST_ENTRIES} entries on a menu, got {got}")


def _starts(owner: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return `PolicyRows.start`, where `owner` has the state of each action, in increasing order."""
    return np.append(0, np.cumsum(np.bincount(owner, minlength=count)))


def joined_rows(
    answers: Sequence[tuple[npt.NDArray[np.int64], PolicyRows]], count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int16]]:
    """Return the distinct edges that answers of several policies are about, in order of (position, action).

    Args:
      answers: (int64[asked], which positions it was asked about, in order; what it answered) of each policy.
      count: how many positions there are.

    Returns:
      `start`, `action` and `entry` as `PolicyRows` has them; before the last, float64[policies, edges],
      0 where a policy was not asked or does not play the action.
    """
    spoke = [k for k, (_, rows) in enumerate(answers) if len(rows.action)]
    if len(spoke) == 1:  # there is nothing to join, and all is in order
        at, rows = answers[spoke[0]]
        columns, counts = np.zeros((len(answers), len(rows.action))), np.zeros(count, np.int64)
        columns[spoke[0]], counts[at] = rows.probability, np.diff(rows.start)
        return np.append(0, np.cumsum(counts)), rows.action, columns, rows.entry
    position = np.concatenate([np.repeat(at, np.diff(rows.start)) for at, rows in answers])
    action = np.concatenate([rows.action for _, rows in answers])
    order = np.lexsort((action, position))
    position, action = position[order], action[order]
    new = np.ones(len(order), bool)
    new[1:] = (position[1:] != position[:-1]) | (action[1:] != action[:-1])
    edge = np.empty(len(order), np.int64)  # of each answer
    edge[order] = np.cumsum(new) - 1
    action = action[new]
    columns, entry = np.zeros((len(answers), len(action))), np.zeros(len(action), np.int16)
    ends = np.cumsum([len(rows.action) for _, rows in answers])[:-1]
    for column, (_, rows), at in zip(columns, answers, np.split(edge, ends), strict=True):
        column[at] = rows.probability
        entry[at[rows.entry > 0]] = rows.entry[rows.entry > 0]
    return _starts(position[new], count), action, columns, entry


def entry_rows(rows: PolicyRows) -> list[list[dict[int, float]]]:
    """Return the entries of each state, as {action: probability}; a policy's one row."""
    menus: list[list[dict[int, float]]] = []
    for first, end in itertools.pairwise(rows.start.tolist()):
        menu: dict[int, dict[int, float]] = {}
        for k in range(first, end):
            menu.setdefault(int(rows.entry[k]), {})[int(rows.action[k])] = float(rows.probability[k])
        menus.append([menu[entry] for entry in sorted(menu)])
    return menus


def entry_row(entry: Any) -> Mapping[int, float]:
    """Return an entry of a menu as {action: probability}: one action is played for sure."""
    return {int(entry): 1.0} if isinstance(entry, numbers.Integral) else entry


def _outcomes(states: Sequence[Any]) -> list[dict[int, float]]:
    """Return chance's distributions, which are looked at as what policies answer."""
    return [dict(state.chance_outcomes()) for state in states]


def movers_rows(
    states: Sequence[Any], policies: BatchPolicies, *, name: str, min_probability: float
) -> PolicyRows:
    """Asks, about each state, whoever is to move there: chance, or a player's policy, in one batch each.

    Args:
      states: where the game goes on, distinct.
      policies: each player's, None where it is not to be asked.
      name: how error messages call them both.
      min_probability: see `policy_rows`; chance is as it is.

    Raises:
      ValueError: a policy is missing or its answer is wrong, or chance's probabilities do not sum to 1.
    """
    movers = [state.current_player() for state in states]
    batches: list[tuple[list[int], PolicyRows]] = []
    for player in sorted(set(movers)):
        asked = [k for k, mover in enumerate(movers) if mover == player]
        batch = [states[k] for k in asked]
        policy: Any = policies[player] if player >= 0 else _outcomes
        called, least = (f"{name}[{player}]", min_probability) if player >= 0 else ("chance", 0.0)
        if policy is None:
            where = at_history(batch[0])
            raise ArgumentError(f"expected a policy as {called}, which plays {where}, got None")
        ask = menu_rows if hasattr(policy, "entries_batch") else policy_rows
        rows = ask(policy, batch, name=called, min_probability=least)
        batches.append((asked, rows))
    if len(batches) == 1:
        return batches[0][1]
    if not batches:
        return NO_ROWS
    owner = np.concatenate([np.repeat(asked, np.diff(rows.start)) for asked, rows in batches])
    order = np.argsort(owner, kind="stable")
    _, *columns = zip(*(rows for _, rows in batches), strict=True)
    return PolicyRows(_starts(owner, len(states)), *(np.concatenate(each)[order] for each in columns))


def action_words(game: pyspiel.Game, actions: Sequence[int]) -> list[str]:
    """Return the action strings of a history, of players and of chance."""
    state: Any = game.new_initial_state()
    words = []
    for action in actions:
        words.append(str(state.action_to_string(state.current_player(), action)))
        state.apply_action(action)
    return words


def is_of_history(asked: Any) -> bool:
    """Return whether a policy or an evaluator declares that its answers depend on more than the position."""
    return bool(getattr(asked, "of_history", False))


def shared_key(position_key: Any, policies: Any) -> Any:
    """Return a `position_key`, or None where a policy declares that it depends on more than the position."""
    each = policies if isinstance(policies, list | tuple) else (policies,)
    return None if any(map(is_of_history, each)) else position_key


class DistinctStates:
    """States to be asked about, each once, in order of first appearance.

    Attributes:
      states: Those that have come.
    """

    def __init__(self, key: Callable[[Any], Hashable] | None) -> None:
        """Nothing has come. States with equal keys are the same; without a `key`, none are."""
        self.states: list[Any] = []
        self._key = key
        self._index: dict[Hashable, int] = {}

    @property
    def keys(self) -> list[Hashable]:
        """Of `states`; empty without a key."""
        return list(self._index)

    def add(self, states: Iterable[Any]) -> list[int]:
        """Return the index in `states` of each, or of what came first of those that are the same."""
        first = len(self.states)
        if self._key is None:
            self.states += states
            return list(range(first, len(self.states)))
        indices = []
        for state in states:
            index = self._index.setdefault(self._key(state), len(self.states))
            if index == len(self.states):
                self.states.append(state)
            indices.append(index)
        return indices


def as_array(answer: Any) -> npt.NDArray[Any]:
    """Return an array, of whatever library's; those of torch may be about to learn, and elsewhere."""
    for leave in ("detach", "cpu"):
        answer = getattr(answer, leave, lambda answer=answer: answer)()
    return np.asarray(answer)


def _as_row(state: Any, answer: Any, name: str) -> Mapping[int, float]:
    """Return an answer as {action: probability}, without illegal actions where it is an array.

    Raises:
      ValueError: it is neither.
    """
    if isinstance(answer, Mapping):
        return answer
    row, kinds = None, "{action: probability}"
    if hasattr(answer, "__array__"):
        row, most = checks.real_array(as_array(answer)), state.get_game().num_distinct_actions()
        kinds += f", or {most} probabilities, one for each action of the game,"
    if row is None or row.shape != (most,) or not abs(row.sum() - 1.0) <= _OF_FLOATS:
        raise ArgumentError(f"expected {name} to give {kinds} {at_history(state)}, got {shown(answer)}")
    legal = legal_actions(state)
    total = float(row[legal].sum()) or 1.0
    return {action: float(row[action]) / total for action in legal}


def _check_row(state: Any, answer: Mapping[int, float], name: str) -> None:
    """Raise an error that states what is wrong with a row, if anything is."""
    legal, where, wrong = set(legal_actions(state)), at_history(state), ""
    for action, p in answer.items():
        if not isinstance(action, numbers.Integral) or not isinstance(p, numbers.Real):
            wrong = f"give {{action: probability}} {where}, got {action!r}: {p!r}"
        elif not p >= 0.0 or p > 1.0 + _SUM_TOLERANCE:
            wrong = f"give probabilities in [0, 1] {where}, got {shown(p)} for action {action}"
        elif p != 0.0 and action not in legal:
            wrong = f"play legal actions {where}, got action {action}, not one of {sorted(legal)}"
        if wrong:
            raise ArgumentError(f"expected {name} to {wrong}")
    if not abs((total := sum(answer.values())) - 1.0) <= _SUM_TOLERANCE:
        raise ArgumentError(f"expected the probabilities of {name} to sum to 1 {where}, got {total!r}")
