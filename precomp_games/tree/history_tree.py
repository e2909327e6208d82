"""The history tree: the truncated histories of a base game under two policies per player, as flat arrays.

Everything else is a view of it: Algorithm 1 and the meta-game's solvers make passes over its arrays; books
and OpenSpiel policies are read off it. Parents stand before their children. The children of a history
stand side by side in order of their actions, and levels follow each other.

Source: `precomputation`, sections 2 to 4. `expansion.levels` explains what is kept and why.

Memory: 49 bytes per history (45 without a `position_key`), and 1 byte per information state.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.files import packed, unpacked
from precomp_games._support.results import Result, as_json
from precomp_games.policies.rows import Menu, MinProbability, PolicyLike, as_batch_policies
from precomp_games.tree.arrays import check_arrays, read_tree, write_fields
from precomp_games.tree.base_game import AnySumGame, loaded_game
from precomp_games.tree.expansion import options
from precomp_games.tree.expansion.levels import expand
from precomp_games.tree.facts import ARRAYS, NEVER, OPTIONAL, TreeFacts

_SPOT_CHECKS = 64  # histories that are compared to see whether a game is the tree's


@dataclasses.dataclass(frozen=True, eq=False)
class HistoryTree(Result, TreeFacts):
    """Histories of a base game as arrays over n histories and m information states.

    Trees can be pickled, and so travel to other processes. Whatever of `policies` and `base_game` does not
    bear that is None in the copy: functions without a name, engines, games that were read from text. What
    needs them documents it, and takes them: `policy(sigma=...)` of results, and `with_game`.

    Attributes:
      game_string: The string of which `pyspiel.load_game` makes the base game.
      penalties: (lambda_0, lambda_1), the utility that each memorized information state costs the player;
        infinite for a player who never memorizes.
      utility_range: R = u_max - u_min, what the truncation multiplied reaches with.
      utility_sum: c, the constant that the players' utilities add up to.
      stop_value: "backup" or "evaluate", see `from_game`; "never" in the tree of a game alone, see `of_game`.
      parent: int32[n], -1 at the root.
      first_child: int32[n], -1 at leaves.
      num_children: int32[n].
      player: int8[n], the mover: 0, 1, CHANCE, or TERMINAL. A leaf that is not TERMINAL was cut.
      action: int32[n], the base game's action that leads here, -1 at the root.
      infoset: int32[n], the mover's information state where it may be memorized, else -1. Numbered in order
        of appearance, so an information state comes after its mover's previous one.
      sigma: float64[n], probability of the edge that leads here under what the parent's mover computes during
        play; after a chance move, chance's. 0: not played there.
      sigma_pre: The same under what the parent's mover can memorize; of a menu, under the entry that plays
        it.
      value: float64[n], u^sigma(h) for player 0, in the base game's utility; NaN where not evaluated.
      position: int32[n], equal where `position_key` is; empty where no key was given.
      infoset_player: int8[m].
      infoset_keys: The m information state strings; None for perfect information, where each is a
        history.
      work: The work of the expansion, by name: "histories", "expanded" (including histories that were dropped
        again), "policy_queries", "leaf_evaluations", "games_sampled".
      cut_for: The price for which the tree was pruned: "infosets", "positions" (`from_game`, `price`), or
        "nothing" where it was not. What is cut for positions keeps all that a price per information state
        needs, and more.
      entry: int16[n], which entry of the mover's menu plays the edge that leads here, 0 where none does;
        empty where all menus have one entry. Entries are numbered over the whole tree, see `first_entry`.
      weight: float64[m], the number of penalties that memorizing an information state costs: 0 where it is
        known already. Empty where it is 1 everywhere. `infoset_weight` and `infoset_penalty` have it for all.
      value_1: float64[n], player 1's utility where the game is over and its players' utilities add up to no
        constant; NaN elsewhere. Empty where they do, or where one player's is all that is kept.
      value_of: The player whose utility is all that is kept, in a game whose utilities add up to no constant.
        `value` is then what player 0 would have if the other one had what this one lacks: player 1's utility
        with the other sign. None in the tree of a game alone, and where they add up to a constant.
      cut_menus: bool[m], where truncate="values" left an entry out that cannot pay. Empty where nowhere.
      policies: Each player's sigma. Files do not hold it; it is None in a tree that was loaded.
      mixture: The components' policies and values of a mixed opponent; None without one, and in a tree
        that was loaded.
      base_game: The game that the tree was expanded from. Files do not hold it either.
    """

    @classmethod
    @public
    def from_game(
        cls,
        game: AnySumGame,
        *,
        sigma_pre: PolicyLike | Sequence[PolicyLike],
        sigma: PolicyLike | Sequence[PolicyLike],
        penalties: float | Sequence[float],
        weight: Callable[[Any], float] | None = None,
        leaf_value: Any = "exact",
        truncate: options.Truncation = "reach",
        price: options.Price = "infosets",
        stop_value: options.StopValue = "backup",
        position_key: Callable[[Any], Hashable] | None = None,
        utility_range: checks.PositiveFloat | None = None,
        min_probability: MinProbability = 1e-12,
        max_histories: checks.PositiveInt = 50_000_000,
    ) -> HistoryTree:
        """Expand a base game.

        Args:
          game: a sequential game of two players with perfect recall. Perfect recall is checked on what is
            expanded; a game that forgets something only beyond that is not noticed. Where utilities add up to
            no constant, one player has a finite penalty, and its utility is the only one that counts.
          sigma_pre: a player's candidate moves to memorize: a policy, or a `Menu` of which it may choose an
            entry; one for both, or a pair. None stands for a player who never memorizes. What it and sigma
            answer is the same at all histories of an information state, up to 1e-6: nobody can play anything
            else.
          sigma: a player's policy during play; one for both, or a pair. None stands for a player
            whose sigma is never asked, which there is with stop_value="evaluate" only. Of a player who never
            memorizes it may be a `MixturePolicy`.
          penalties: the utility that each memorized information state costs, positive; one for both players,
            or a pair. `math.inf` is a player who never memorizes: (lambda, inf) is Algorithm 1's setting.
          weight: a function from a state to how many penalties it costs the mover to memorize its information
            state (or position): 0 where it is known already, and is kept however rare. None: 1 everywhere.
          leaf_value: where u^sigma of cut leaves comes from: "exact", which looks at everything below them,
            `RolloutValues`, or an evaluation function, which gives player 0's utility; where utilities add up
            to no constant, the player who prepares. Against a mixture, a list has one for each component.
          truncate: what is left out because it cannot be worth memorizing. "reach" leaves out what is reached
            too seldom (Lemma 3). "values" leaves out as well what the values of stopping rule out meanwhile;
            it needs perfect information and an evaluation function (`expansion.pruning`). Under
            stop_value="evaluate" that loses nothing. Under "backup" it loses nothing where the evaluations
            are exact, and otherwise what Algorithm 1 would not have memorized. "none" leaves out nothing:
            every history is kept that can be reached while somebody still memorizes.
          price: what a penalty is paid for, and so what is cut. "infosets": each information state that is
            memorized. "positions": each position, by `position_key`, whose histories then share one price,
            and which is kept or cut as a whole; one player prepares, with perfect information. Solvers are
            given the price as well: `best_precomputation(tree, player, price="positions")`.
          stop_value: the value of stopping. "backup": the values of the leaves that sigma plays on to.
            "evaluate": `leaf_value` at the history itself, as in the paper's Algorithm 1. Then only one
            player may have a finite penalty, and its own sigma is not asked. The two agree for exact values.
          position_key: a function from a state to a key. It promises that states of one level with equal keys
            are the same for both policies, for `leaf_value` and in all that may follow; the promise is
            checked here and there. None: every history stands for itself.
          utility_range: R, where the reachable utilities are known to lie closer together than the game's own
            bounds.
          min_probability: a policy's probabilities below this are set to zero and the rest renormalized;
            at most 0.01. It is meant to leave out what hardly ever happens, not to make likely moves certain.
          max_histories: the most histories, and the most states below the leaves, that are looked at; beyond
            that, an error is raised.

        Raises:
          ValueError: an argument, the game, or a policy's answer is not as above; or more memory is about to
            be taken than the process may have (`config`).
        """
        costs, policies = checks.check_penalties(penalties), checks.check_pair(sigma, "sigma")
        if stop_value == "evaluate" and np.isfinite(costs).all():
            wanted = 'one player with an infinite penalty for stop_value="evaluate"'
            raise ArgumentError(f"expected {wanted}, got penalties {costs}")
        value_of = None
        if not checks.of_constant_sum(game):
            if np.isfinite(costs).sum() != 1:
                checks.check_game(game)
            value_of = int(np.argmin(costs))
        mixture = options.mixture_of(sigma_pre, policies, costs)
        how = options.ExpansionOptions(
            sigma_pre=as_batch_policies(sigma_pre, "sigma_pre", menus=True),
            sigma=as_batch_policies(sigma, "sigma"),
            penalties=costs,
            weight=weight,
            utility_range=_range(game) if utility_range is None else utility_range,
            leaf_values=options.leaf_values_of(leaf_value, mixture),
            mixture=mixture,
            stop_value=stop_value,
            truncate=truncate,
            price=price,
            position_key=options.key_of(game, costs, price, position_key, sigma),
            min_probability=min_probability,
            max_histories=max_histories,
            value_of=value_of,
        )
        return cls(**expand(game, how), policies=policies)

    @classmethod
    @public
    def of_game(
        cls,
        game: AnySumGame,
        *,
        max_histories: checks.PositiveInt = 50_000_000,
    ) -> HistoryTree:
        """Expand a base game alone: nobody prepares, and at each turn the mover chooses one of its actions.

        That is the tree in which every action is an entry of a menu, at no price, and nobody computes
        anything during play: so nobody can stop, `penalties` are 0 and `sigma` is 0 at the players' turns.
        Nothing is cut. A strategy of it (`MetaStrategy`) is a behavioral strategy of the game.

        Args:
          game: see `from_game`.
          max_histories: see there.

        Raises:
          ValueError: the game is not as there, or too large.
        """
        how = options.ExpansionOptions(
            sigma_pre=(Menu.of_actions(), Menu.of_actions()),
            sigma=(None, None),
            penalties=(0.0, 0.0),
            utility_range=_range(game),
            leaf_values=options.leaf_values_of("exact", None),
            stop_value=NEVER,
            max_histories=max_histories,
        )
        return cls(**expand(game, how))

    # -- size and structure ------------------------------------------------------------------------

    @functools.cached_property
    def game(self) -> pyspiel.Game:
        """The base game; loaded from its string where the tree came from a file.

        Raises:
          ValueError: the string does not load: the game's module is not imported, it was made of what is not
            in its string, as `pyspiel.load_efg_game(text)` does, or it names files or engines, which a tree's
            file cannot open. Then `with_game` is the way.
        """
        if self.base_game is not None:
            return self.base_game
        return loaded_game(self.game_string)

    @public
    def with_game(self, game: AnySumGame) -> HistoryTree:
        """Return the tree on its base game, where its string does not load it.

        Games that were read from text, such as `pyspiel.load_efg_game(text)`, are not in files and pickles
        of their trees:

            tree = HistoryTree.load(path).with_game(pyspiel.load_efg_game(text))

        Raises:
          ValueError: it is another game, as a comparison of some histories shows.
        """
        if str(game) != self.game_string:
            raise ArgumentError(f"expected the game {self.game_string!r}, got {str(game)!r}")
        for h in np.unique(np.linspace(0, self.num_histories - 1, _SPOT_CHECKS, dtype=np.int64)).tolist():
            if not self._is_played(game, h):
                got = f"another {self.game_string!r}: history {self.actions(h)} is not the same there"
                raise ArgumentError(f"expected the game that the tree was expanded from, got {got}")
        return dataclasses.replace(self, base_game=game)

    def _is_played(self, game: pyspiel.Game, history: int) -> bool:
        """Return whether a game has a history as the tree has it."""
        knows_all = game.get_type().information == pyspiel.GameType.Information.PERFECT_INFORMATION
        if knows_all != (self.infoset_keys is None):
            return False
        state = game.new_initial_state()
        for action in self.actions(history):
            if action not in state.legal_actions():
                return False
            state.apply_action(action)
        if state.current_player() != self.player[history]:
            return False
        if state.is_terminal():
            first, second = state.returns()
            returns = [-second if self.value_of == 1 else first, second]
            values = [column[history] for column in (self.value, self.value_1) if len(column)]
            return bool(np.isclose(returns[: len(values)], values, rtol=1e-9, atol=0.0).all())
        infoset = int(self.infoset[history])
        return infoset < 0 or self.infoset_keys is None or self.infoset_of(state) == infoset

    @public
    def same_as(self, other: HistoryTree) -> bool:
        """Return whether two trees have equal histories, policies and values, whatever their penalties are.

        Then the information states of both have the same numbers.
        """
        alike = (self.num_histories, self.num_infosets) == (other.num_histories, other.num_infosets)
        return self is other or (alike and self.fingerprint == other.fingerprint)

    def _facts(self) -> dict[str, Any]:
        names = ("game_string", "num_histories", "num_infosets", "penalties", "stop_value", "fingerprint")
        return {name: getattr(self, name) for name in names}

    def to_json(self) -> dict[str, Any]:
        """Return the facts of the repr as JSON; `save` keeps the tree itself."""
        return {name: as_json(value) for name, value in self._facts().items()}

    def __repr__(self) -> str:
        """Return one line: game, size, penalties."""
        return (
            f"HistoryTree({self.game_string}, histories={self.num_histories}, "
            f"infosets={self.num_infosets}, penalties={self.penalties}, stop_value={self.stop_value!r})"
        )

    @public
    def children(self, history: int) -> range:
        """Return the indices of a history's children.

        Raises:
          ValueError: there is no history of that index.
        """
        history = self._history(history)
        first = int(self.first_child[history])
        return range(first, first + int(self.num_children[history])) if first >= 0 else range(0)

    @public
    def actions(self, history: int) -> list[int]:
        """Return the base game's actions from the root to a history.

        Raises:
          ValueError: there is no history of that index.
        """
        history = self._history(history)
        path = []
        while history > 0:
            path.append(int(self.action[history]))
            history = int(self.parent[history])
        return path[::-1]

    @public
    def state(self, history: int) -> Any:
        """Return the base game's state at a history, replayed.

        Raises:
          ValueError: there is no history of that index, or the base game cannot be had (see `game`).
        """
        path = self.actions(self._history(history))
        state = self.game.new_initial_state()
        for action in path:
            state.apply_action(action)
        return state

    @functools.cached_property
    def entry_action(self) -> npt.NDArray[np.int32]:
        """int32[E]: the action that each entry plays, the last one of an entry that plays several."""
        actions = np.zeros(self.num_entries, np.int32)
        edges = np.flatnonzero(self.edge_entry >= 0)
        actions[self.edge_entry[edges]] = self.action[edges]
        return actions

    @functools.cached_property
    def infoset_states(self) -> list[Any]:
        """A state of the base game at each information state, at its first history; kept.

        Raises:
          ValueError: the base game cannot be had (see `game`).
        """
        needed = np.zeros(self.num_histories, bool)
        level = np.unique(self.infoset_history)
        while len(level):
            needed[level] = True
            level = np.unique(self.parent[level])
            level = level[(level >= 0) & ~needed[level]]
        states = {0: self.game.new_initial_state()}
        for history in np.flatnonzero(needed)[1:].tolist():
            states[history] = states[int(self.parent[history])].child(int(self.action[history]))
        return [states[history] for history in self.infoset_history.tolist()]

    @public
    def find(self, actions: Sequence[int]) -> int:
        """Return the index of the history that `actions` lead to, -1 where the tree does not have it.

        Raises:
          ValueError: `actions` are no integers.
        """
        if not isinstance(actions, Sequence | np.ndarray) or isinstance(actions, str | bytes):
            raise ArgumentError(f"expected actions to be integers, got {shown(actions)}")
        history = 0
        for action in [checks.check_integer(a, f"actions[{k}]") for k, a in enumerate(actions)]:
            first, count = int(self.first_child[history]), int(self.num_children[history])
            if first < 0:
                return -1
            child = first + int(np.searchsorted(self.action[first : first + count], action))
            if child == first + count or self.action[child] != action:
                return -1
            history = child
        return history

    @public
    def infoset_of(self, state: Any) -> int:
        """Return the information state of a base-game state's mover, -1 where it cannot be memorized.

        Raises:
          ValueError: it is no state of the base game.
        """
        checks.check_state(state, self.base_game or self.game_string)
        player = state.current_player()
        if player < 0:
            return -1
        if self.infoset_keys is None:
            history = self.find(state.history())
            return int(self.infoset[history]) if history >= 0 else -1
        return self._infoset_index.get((player, state.information_state_string(player)), -1)

    @public
    def key(self, infoset: int) -> str:
        """Return the base game's name of an information state, unique for its player.

        It is the information state string; where information is perfect, the history's actions, "4, 0", as in
        OpenSpiel's `history_str()`: the empty string before the first move.

        Raises:
          ValueError: there is no information state of that index.
        """
        infoset = self._infoset(infoset)
        if self.infoset_keys is not None:
            return self.infoset_keys[infoset]
        return ", ".join(map(str, self.actions(int(self.infoset_history[infoset]))))

    def _history(self, index: int) -> int:
        return checks.check_integer(index, "history", least=0, most=self.num_histories - 1)

    def _infoset(self, index: int) -> int:
        return checks.check_integer(index, "infoset", least=0, most=self.num_infosets - 1)

    @functools.cached_property
    def _infoset_index(self) -> dict[tuple[int, str], int]:
        assert self.infoset_keys is not None
        players = self.infoset_player.tolist()
        return {(players[k], key): k for k, key in enumerate(self.infoset_keys)}

    @public
    def memorized_row(self, entry: int) -> dict[int, float]:
        """Return {action: probability} of what is memorized at an information state: one entry of its menu.

        Args:
          entry: its number in the tree; where menus have one entry, the information state's.

        Raises:
          ValueError: there is no entry of that number.
        """
        entry = checks.check_integer(entry, "entry", least=0, most=self.num_entries - 1)
        history = int(self.infoset_history[self.entry_infoset[entry]])
        return {
            int(self.action[child]): float(self.sigma_pre[child])
            for child in self.children(history)
            if self.sigma_pre[child] > 0.0 and self.edge_entry[child] == entry
        }

    # -- penalties ---------------------------------------------------------------------------------

    @public
    def with_penalties(self, penalties: float | Sequence[float]) -> HistoryTree:
        """Return the tree with larger penalties.

        Raises:
          ValueError: a penalty is smaller than the tree's own, at which more histories might be worth
            memorizing; or the tree is of a game alone, where nothing has a price.
        """
        if not self.may_stop:
            raise ArgumentError(f"expected the tree of a meta-game, got that of a game alone: {self}")
        new = checks.check_penalties(penalties)
        for i in (0, 1):
            if new[i] < self.penalties[i]:
                least = f"{self.penalties}, for which the tree was expanded"
                raise ArgumentError(f"expected penalties of at least {least}, got {new}")
        return dataclasses.replace(self, penalties=new)

    @public
    def with_weights(self, weight: npt.ArrayLike) -> HistoryTree:
        """Return the tree with a weight for each information state: the penalties that memorizing it costs.

        Weights may be as small as you like: histories that the tree left out do not become cheaper by that.

        Args:
          weight: float[m], see `HistoryTree`.

        Raises:
          ValueError: these are not m numbers of at least 0.
        """
        weights = checks.check_numbers(weight, self.num_infosets, "weight", least=0.0)
        return dataclasses.replace(self, weight=weights)

    # -- copies and pickles ------------------------------------------------------------------------

    def __copy__(self) -> HistoryTree:
        return dataclasses.replace(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> HistoryTree:
        # Policies and games are not copied: some cannot be, and none is changed.
        arrays = {name: getattr(self, name).copy() for name in (*ARRAYS, *OPTIONAL)}
        return dataclasses.replace(self, **arrays)

    def __getstate__(self) -> dict[str, Any]:
        state = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        state["policies"] = tuple(map(packed, self.policies))
        state["base_game"] = packed(self.base_game)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state["policies"] = tuple(map(unpacked, state["policies"]))
        state["base_game"] = unpacked(state["base_game"])
        self.__dict__.update(state)

    # -- files -------------------------------------------------------------------------------------

    @public
    def save(self, path: checks.FilePath) -> None:
        """Write the tree as a NumPy archive (.npz), whole or not at all.

        Policies are not in the file, and of the base game only its string is: see `game`.

        Raises:
          ValueError: `path` is none.
          OSError: the file cannot be written.
        """
        write_fields(self, os.fspath(path))

    @classmethod
    @public
    def load(cls, path: checks.FilePath) -> HistoryTree:
        """Read what `save` wrote. Policies are not in the file.

        Raises:
          ValueError: not such a file, damaged, or not a tree.
          OSError: it cannot be opened.
        """
        return read_tree(cls, os.fspath(path))

    def check(self) -> None:
        """Verify that the arrays are a tree. Solvers index without bounds checks and rely on it.

        Raises:
          ValueError: they are not; the error names the array.
        """
        check_arrays(self)


def _range(game: pyspiel.Game) -> float:
    """Return R, 0 where all payoffs are equal, and nothing is worth memorizing."""
    return float(game.max_utility() - game.min_utility())
