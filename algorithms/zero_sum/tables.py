"""Strategies of a base game as OpenSpiel's tables, and whatever OpenSpiel plays as strategies.

    policy = table_of(tree, strategies)                  # an open_spiel.python.policy.TabularPolicy
    strategy = strategy_by(tree, policy, 0)              # of any policy: a table, a solver's, a network's
    save_policy(policy, "leduc.npz"); load_policy("leduc.npz")

Where information is perfect, a tree's information states are histories, and OpenSpiel's may be positions. Of
several that have one name, that with the greatest reach by its own player speaks for all. Where both players
have information states of one name, as in breakthrough, a table's names begin with the player: OpenSpiel's
own tables mix these players up.

Cost: tables are read as arrays. Any other policy is asked once about each information state, in one batch, at
states that the tree keeps once they have been made; that takes some 10 us each.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyspiel
from open_spiel.python import policy as openspiel_policy

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown
from precomp_games._support.config import memory_limit
from precomp_games._support.files import read_archive, write_archive
from precomp_games._support.game_facts import information_state, legal_actions
from precomp_games.policies.rows import as_batch_policy, policy_rows
from precomp_games.tree.base_game import Game, given_game, loaded_game
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy, adjusted, check_constant_sum

_FORMAT = "precomp-games policy 1"
_TOLERANCE = 1e-6  # of sums of probabilities, as everywhere

Policies = Annotated[Any, checks.Check(checks.check_pair)]
"""A policy of both players, or one for each (`PolicyLike`); the function gets a pair."""

ConstantSumGame = Annotated[Any, checks.Check(lambda value, name: _game_or_tree(value, True))]
"""A base game of constant sum: as `tree.base_game` says, or expanded already."""

AnyGame = Annotated[Any, checks.Check(lambda value, name: _game_or_tree(value, False))]
"""The same, of any sum."""


def _game_or_tree(value: Any, constant_sum: bool) -> Any:
    if not isinstance(value, HistoryTree):
        return given_game(value, constant_sum=constant_sum)
    if value.may_stop:
        raise ArgumentError(
            f"expected a tree of a base game alone, as HistoryTree.of_game() makes, got {shown(value)}"
        )
    return check_constant_sum(value) if constant_sum else value


def tree_of(game: pyspiel.Game | HistoryTree) -> HistoryTree:
    """Return the tree of what `AnyGame` takes."""
    return game if isinstance(game, HistoryTree) else HistoryTree.of_game(game)


class _Table(openspiel_policy.TabularPolicy):
    """OpenSpiel's, made of a tree and not by a walk through the game; its states are made when asked for."""

    def __init__(
        self,
        game: pyspiel.Game,
        keys: tuple[list[str], list[str]],
        probabilities: np.ndarray,
        legal: np.ndarray,
        by_player: bool,
    ) -> None:
        """Make the table.

        Args:
          game: of which it is.
          keys: each player's information states, those of player 0 first in the rows.
          probabilities: float64[rows, actions].
          legal: bool[rows, actions].
          by_player: whether names begin with the player.
        """
        openspiel_policy.Policy.__init__(self, game, [0, 1])
        self.game_type = game.get_type()
        self.states_per_player = list(keys)
        self.state_lookup: dict[str, int] = {}
        for row, key in enumerate(itertools.chain(*keys)):
            self.state_lookup.setdefault(key, row)
        self.legal_actions_mask = legal.astype(np.int64)
        self.by_player = by_player
        self.action_probability_array = probabilities
        self.state_in = None  # information state tensors, which its own methods do not read

    @functools.cached_property
    def states(self) -> list[Any]:  # what OpenSpiel's constructor sets
        """A state of each row."""
        found: dict[str, Any] = {}
        stack = [self.game.new_initial_state()]
        while stack and len(found) < len(self.state_lookup):
            state = stack.pop()
            if state.current_player() >= 0:
                found.setdefault(self._state_key(state, state.current_player()), state)
            if not state.is_terminal():
                stack += [state.child(action) for action in reversed(legal_actions(state))]
        return [found[key] for key in itertools.chain(*self.states_per_player)]

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Return {action: probability}; all alike where chance never goes, of which no tree knows."""
        try:
            row: dict[int, float] = super().action_probabilities(state, player_id)
            return row
        except KeyError:
            if str(state.get_game()) != str(self.game):
                raise
            legal = legal_actions(state)
            return dict.fromkeys(legal, 1.0 / len(legal))

    def _state_key(self, state: Any, player: int | None) -> str:
        key = str(super()._state_key(state, player))
        return _owned(state.current_player() if player is None else player, key) if self.by_player else key


def table_of(
    tree: HistoryTree, strategies: tuple[MetaStrategy, MetaStrategy]
) -> openspiel_policy.TabularPolicy:
    """Return both players' strategies of a base game as OpenSpiel's table."""
    played = strategies[0].memorize + strategies[1].memorize
    plan = strategies[0].realization_plan() + strategies[1].realization_plan()
    reach = np.where(tree.previous >= 0, plan[tree.previous], 1.0)
    keys, rows = _distinct(tree, reach)
    by_player = not set(keys[0]).isdisjoint(keys[1])
    if by_player:
        keys = ([_owned(0, key) for key in keys[0]], [_owned(1, key) for key in keys[1]])
    place = np.full(tree.num_infosets, -1)
    place[rows] = np.arange(len(rows))
    at = place[tree.entry_infoset]
    shown_entries = at >= 0
    probabilities, legal = _blank(len(rows), tree.game)
    where = at[shown_entries], tree.entry_action[shown_entries]
    probabilities[where], legal[where] = played[shown_entries], True
    return _Table(tree.game, keys, probabilities, legal, by_player)


def _blank(count: int, game: pyspiel.Game) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return arrays with a row for each information state and a column for each action of the game.

    Raises:
      ValueError: they are larger than the memory: a small file may ask for as many as it likes.
    """
    shape = (count, game.num_distinct_actions())
    if 17.0 * shape[0] * shape[1] > memory_limit():
        rows, columns = shape
        raise ArgumentError(f"expected a table that fits into memory, got one of {rows} x {columns} numbers")
    return np.zeros(shape), np.zeros(shape, bool)


def _distinct(
    tree: HistoryTree, reach: npt.NDArray[np.float64]
) -> tuple[tuple[list[str], list[str]], npt.NDArray[np.int64]]:
    """Return each player's information states by OpenSpiel's name, and the tree's numbers, 0's first."""
    keys: tuple[list[str], list[str]] = ([], [])
    rows: list[int] = []
    names = _names(tree)
    for i in (0, 1):
        found: dict[str, int] = {}
        for k in np.flatnonzero(tree.infoset_player == i).tolist():
            before = found.setdefault(names[k], k)
            if reach[k] > reach[before]:
                found[names[k]] = k
        keys[i].extend(found)
        rows += found.values()
    return keys, np.array(rows, np.int64)


def _owned(player: int, key: str) -> str:
    """Return an information state's name where both players have some of the same name."""
    return f"player {player}: {key}"


def _names(tree: HistoryTree) -> Sequence[str]:
    """Return OpenSpiel's table names of the information states."""
    if tree.infoset_keys is not None:
        return tree.infoset_keys
    kind = tree.game.get_type()
    if kind.provides_information_state_string:
        return [information_state(state) for state in tree.infoset_states]
    if kind.provides_observation_string:
        return [state.observation_string() for state in tree.infoset_states]
    return [str(state) for state in tree.infoset_states]


def strategy_by(tree: HistoryTree, policy: Any, player: int) -> MetaStrategy:
    """Return a player's policy in a base game as a strategy.

    Args:
      tree: of the game alone.
      policy: OpenSpiel's, in Python or C++, a table or not; a function from a state to {action: probability};
        one that answers batches.
      player: 0 or 1.

    Raises:
      ValueError: it is no policy, or an answer is no distribution over legal actions.
    """
    own = np.flatnonzero(tree.infoset_player == player)
    entries = np.flatnonzero(tree.entry_player == player)
    memorize = np.zeros(tree.num_entries)
    if isinstance(policy, openspiel_policy.TabularPolicy):
        names, index = _names(tree), policy.state_lookup
        if getattr(policy, "by_player", False):
            names = [_owned(player, name) for name in names]
        try:
            rows = np.array([index[names[k]] for k in own.tolist()], np.int64)
        except KeyError as error:
            raise ArgumentError(
                f"expected policy to know information state {error}, of {tree.game}"
            ) from None
        row = np.zeros(tree.num_infosets, np.int64)
        row[own] = rows
        memorize[entries] = policy.action_probability_array[
            row[tree.entry_infoset[entries]], tree.entry_action[entries]
        ]
    elif isinstance(policy, pyspiel.TabularPolicy):
        names, known = _names(tree), policy.policy_table()
        actions = tree.entry_action.tolist()
        for k in own.tolist():
            if names[k] not in known:
                raise ArgumentError(f"expected policy to know information state {names[k]!r}, of {tree.game}")
            given = dict(known[names[k]])
            for entry in range(*tree.first_entry[k : k + 2].tolist()):
                memorize[entry] = given.get(actions[entry], 0.0)
    elif len(own):
        states = [tree.infoset_states[k] for k in own.tolist()]
        answers = policy_rows(as_batch_policy(policy, "policy"), states, name="policy")
        owner = own[np.repeat(np.arange(len(own)), np.diff(answers.start))]
        memorize[_entries_at(tree, owner, answers.action)] = answers.probability
    totals = np.zeros(tree.num_infosets)
    np.add.at(totals, tree.entry_infoset[entries], memorize[entries])
    totals[tree.entry_infoset[entries[~(memorize[entries] >= 0.0)]]] = np.nan
    bad = ~(np.abs(totals[own] - 1.0) <= _TOLERANCE)
    if bad.any():
        k = int(own[np.argmax(bad)])
        row_of = memorize[tree.first_entry[k] : tree.first_entry[k + 1]].tolist()
        raise ArgumentError(
            f"expected policy to give a distribution over legal actions at {tree.key(k)!r}, got "
            f"{shown(row_of)}"
        )
    return MetaStrategy(tree, player, adjusted(tree, memorize, player))


def _entries_at(
    tree: HistoryTree, infoset: npt.NDArray[np.int64], action: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the entry of each (information state, action); entries are in order of their actions."""
    most = tree.game.num_distinct_actions()
    codes = tree.entry_infoset.astype(np.int64) * most + tree.entry_action
    places: npt.NDArray[np.int64] = np.searchsorted(codes, infoset.astype(np.int64) * most + action)
    return places


@public
def save_policy(policy: openspiel_policy.TabularPolicy, path: checks.FilePath) -> None:
    """Write a table to a file (.npz), whole or not at all; a million information states take seconds.

    Raises:
      ValueError: `policy` is no table of OpenSpiel's, or `path` is none.
      OSError: the file cannot be written.
    """
    table = checks.check_instance(policy, openspiel_policy.TabularPolicy, "policy")
    keys = list(map(list, table.states_per_player))
    rows = np.array([table.state_lookup[key] for key in itertools.chain(*keys)], np.int64)
    owner, action = np.nonzero(table.legal_actions_mask[rows])
    arrays = {
        "start": np.append(0, np.cumsum(np.bincount(owner, minlength=len(rows)))).astype(np.int64),
        "action": action.astype(np.int32),
        "probability": table.action_probability_array[rows[owner], action],
    }
    header: dict[str, Any] = {"format": _FORMAT, "game": str(table.game), "keys": keys}
    header["by_player"] = bool(getattr(table, "by_player", False))
    write_archive(path, header, arrays)


@public
def load_policy(path: checks.FilePath, game: Game | None = None) -> openspiel_policy.TabularPolicy:
    """Read what `save_policy` wrote.

    Args:
      path: the file.
      game: of which it is. None: the file's game, unless that names files or programs; a stranger's file
        may name a game that is too large for the machine, so give the game there.

    Raises:
      ValueError: it is no such file, damaged, or of another game.
      OSError: it cannot be opened.
    """
    try:
        head, arrays = read_archive(path, ("start", "action", "probability"))
        if head["format"] != _FORMAT:
            raise ValueError(f"format {head['format']!r}")
        (first, second), name, by_player = head["keys"], str(head["game"]), bool(head["by_player"])
        keys = (list(map(str, first)), list(map(str, second)))
        start, action, probability = arrays["start"], arrays["action"], arrays["probability"]
        count = len(keys[0]) + len(keys[1])
        if (
            start.shape != (count + 1,)
            or start.dtype != np.int64
            or start[0] != 0
            or not ((start >= 0) & (start <= len(action))).all()
            or (np.diff(start) < 1).any()
            or action.shape != (start[-1],)
            or action.dtype != np.int32
            or probability.shape != action.shape
            or probability.dtype != np.float64
            or not ((probability >= 0.0) & (probability <= 1.0 + _TOLERANCE)).all()
        ):
            raise ValueError("the arrays are no table")
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArgumentError(
            f'expected a file written by save_policy() ("{_FORMAT}"), got {path!r}: {one_line(error)}'
        ) from error
    if game is None:
        try:
            game = checks.check_game(loaded_game(name))
        except ArgumentError as error:
            raise ArgumentError(
                f"expected game, since that of the file does not serve: {one_line(error)}"
            ) from None
    elif str(game) != name:
        raise ArgumentError(f"expected a policy of {game}, got one of {name!r}: {path!r}")
    most = game.num_distinct_actions()
    if not ((action >= 0) & (action < most)).all():
        raise ArgumentError(f"expected actions below {most}, as {game} has, got others: {path!r}")
    owner = np.repeat(np.arange(count), np.diff(start))
    probabilities, legal = _blank(count, game)
    probabilities[owner, action], legal[owner, action] = probability, True
    return _Table(game, keys, probabilities, legal, by_player)
