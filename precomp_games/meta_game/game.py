"""The meta-game of preparing, G' of the paper, as an OpenSpiel game.

    game = MetaPrecomputationGame(tree)                         # audit: exact for all policies
    game = MetaPrecomputationGame(tree, form="reweighted")      # Lemma 4, refused where it is wrong
    game = pyspiel.load_game("python_meta_precomputation", {"tree_file": "tree.npz", "form": "audit"})
    game = pyspiel.load_game(
        "python_meta_precomputation(game=kuhn_poker(),sigma=uniform(),sigma_pre=cfr(iterations=50),"
        "penalty_0=0.1,penalty_1=-1.0)"
    )

At each history of the tree where a player may memorize and has not stopped, it chooses action 1, to memorize,
or action 0, to stop for good. With a menu, action 1 + k memorizes its entry k. A chance move then draws the
base game's action from sigma_pre or from sigma. Neither player sees the other's choices. Both see the base
game as it is: all of its moves where information is perfect, and their base-game information states
elsewhere. A player whose penalty is infinite has no decisions.

The game is zero-sum. A player's return is its base-game utility less c / 2, less what it was charged for
memorizing, plus what the opponent was charged. Here c is the constant sum of the base game, and c / 2 is the
game's `value_shift`: add it to a value of the game to get the meta-game utility. `meta_game.rules` shows how
memorizing is charged, and why the expected charge is lambda_i for each information state that is memorized.

Source: `precomputation`, section 4.1 and Lemma 4 of the appendix.

Deviations: chance moves of the base game are kept (the paper has none); chance probabilities of zero are left
out; the form is refused where it is not the meta-game; the audit form.

Strings and files. Games made by `pyspiel.load_game` are pickled and serialized as their parameters. A game
made on a tree in memory is pickled with its tree; its string, which OpenSpiel's own serialization uses, names
the tree by a digest, and loads as long as a game on such a tree lives in the process. Anywhere else it raises
a ValueError: save the tree, and load the game by `tree_file`.

Cost: a child takes about 6 us. A state has one attribute, an immutable position; tables live on the game.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games.games.openspiel_game import StringObserver, load_base_game, observation_type
from precomp_games.games.registered import META_GAME
from precomp_games.meta_game.rules import MetaPosition, MetaRules
from precomp_games.policies.specs import in_game_string, make_policy, unquoted
from precomp_games.tree.facts import CHANCE, TERMINAL
from precomp_games.tree.history_tree import HistoryTree

_IN_MEMORY = "memory:"  # how the tree_file of a tree without a file begins
_NEVER = -1.0  # an infinite penalty, which no game string can hold

_DEFAULTS = META_GAME.defaults
_SPECS = [name for name in _DEFAULTS if name not in ("tree_file", "form", "check_supports")]

# What living games play by, under the strings that their parameters make: OpenSpiel loads a game anew for
# each state that it deserializes.
_LIVE: weakref.WeakValueDictionary[str, MetaRules] = weakref.WeakValueDictionary()


class MetaPrecomputationGame(pyspiel.Game):
    """The meta-game on a history tree; registered as `python_meta_precomputation`.

    `pyspiel.load_game` makes it of parameters. There is either a tree_file, or a base game with policies and
    penalties. Names of games and policies are written with parentheses in game strings, `uniform()`, and as
    {"name": "uniform"} elsewhere.

    Args:
      tree: a tree that was expanded with stop_value="backup"; or the parameters below as a mapping, which is
        how OpenSpiel calls it. Then `form` and `check_supports` are among them.
      form: "audit", which is exact for all policies, or "reweighted", Lemma 4.
      check_supports: refuse "reweighted" where it is not the meta-game; False makes the game regardless.

    Game Parameters:
      tree_file: a file that `HistoryTree.save` wrote. In game strings, a name with `,`, `=` or parentheses in
        it stands in double quotes, and these are escaped, as in this game's own string.
      form: as above.
      check_supports: as above.
      game: the base game.
      sigma: both players' policy during play, a spec that `make_policy` understands. It is not
        trusted: what reads files or runs engines goes into a tree by `HistoryTree.from_game`.
      sigma_pre: both players' candidate moves, a spec as well.
      penalty_0, penalty_1: the players' penalties; -1.0 (or math.inf) is infinite. OpenSpiel's parser reads a
        penalty only with a point and without an exponent, and raises "Wrong type for parameter" otherwise: in
        strings write 1.0, not 1, and 0.001, not 1e-3; in dictionaries for `pyspiel.load_game`, float(1).

    Attributes:
      tree: the history tree.
      form: "reweighted" or "audit", how memorizing is charged.
      value_shift: c / 2; player 0's value of the meta-game is its value here plus this, player 1's too.

    Raises:
      ValueError: another form, a tree with evaluated stops, "reweighted" where it is not the meta-game; or
        parameters that contradict each other, cannot be read, or name a tree in another process's memory.
      OSError: there is no such tree_file.
    """

    @public
    def __init__(
        self,
        tree: HistoryTree | Mapping[str, Any] | None = None,
        form: str = "audit",
        check_supports: bool = True,
    ) -> None:
        if tree is None or isinstance(tree, Mapping):
            if (form, check_supports) != ("audit", True):
                got = f"{form!r} and {check_supports!r} beside them"
                raise ArgumentError(f"expected form and check_supports among the parameters, got {got}")
            parameters, rules = _by_parameters(tree or {})
        else:
            rules = MetaRules(tree, form, check_supports)
            parameters = {
                "tree_file": _IN_MEMORY + _digest(tree),
                "form": form,
                "check_supports": rules.check_supports,
            }
            # The first of the games on equal trees stands in the registry, and all of them keep it there.
            self._registered = _LIVE.setdefault(_live_key(parameters), rules)
        # `rules` are those on plain positions, for walks that OpenSpiel's states would make slow.
        self.rules, self._parameters = rules, parameters
        self.tree, self.form, self.value_shift = rules.tree, rules.form, rules.shift
        info = pyspiel.GameInfo(
            num_distinct_actions=rules.num_actions,
            max_chance_outcomes=rules.max_chance_outcomes,
            num_players=2,
            min_utility=-rules.max_utility,
            max_utility=rules.max_utility,
            utility_sum=0.0,
            max_game_length=max(rules.max_decisions, 1),
        )
        super().__init__(META_GAME.type, info, self._parameters)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._parameters["tree_file"].startswith(_IN_MEMORY):
            return MetaPrecomputationGame, (self.tree, self.form, self.rules.check_supports)
        return MetaPrecomputationGame, (self._parameters,)

    def new_initial_state(self) -> MetaPrecomputationState:
        """Return the state before anything has happened."""
        return MetaPrecomputationState(self)

    def max_chance_nodes_in_history(self) -> int:
        """Return the most chance moves that a line of play has."""
        return self.rules.max_chance_nodes

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> MetaObserver | StringObserver:
        """Return an observer: what a player knows, of the base game and of its own choices."""
        kind = observation_type(iig_obs_type, params, self)
        if kind is not None and kind.private_info == pyspiel.PrivateInfoType.NONE:
            return StringObserver(lambda state, player: None)  # base games' strings do not distinguish it
        return MetaObserver(self.rules)


class MetaPrecomputationState(pyspiel.State):
    """A state of the meta-game. Made by `MetaPrecomputationGame.new_initial_state` and `child`.

    Attributes:
      position: The position in the game's rules.
    """

    def __init__(self, game: MetaPrecomputationGame) -> None:
        super().__init__(game)
        # The only attribute: OpenSpiel copies and pickles a state's attributes one by one.
        self.position: MetaPosition = game.rules.start()

    def _rules(self) -> MetaRules:
        rules: MetaRules = self.get_game().rules
        return rules

    @property
    def infoset(self) -> int:
        """The tree's information state that the mover decides on, -1 at chance moves and the end."""
        return self._rules().infoset(self.position)

    def current_player(self) -> int:
        """Return 0, 1, or pyspiel's chance or terminal player."""
        return self._rules().player(self.position)

    def is_terminal(self) -> bool:
        """Return whether the game is over."""
        return self._rules().player(self.position) == TERMINAL

    def returns(self) -> list[float]:
        """Return both players' returns, with sum 0; zeros until the game is over."""
        value = self._rules().returns(self.position)
        return [value, 0.0 - value]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return a chance move's outcomes with their probabilities, all positive."""
        return self._rules().outcomes(self.position)

    def _legal_actions(self, player: int) -> list[int]:
        if player == CHANCE:
            return [action for action, _ in self._rules().outcomes(self.position)]
        return list(self._rules().choices(self.position))

    def _apply_action(self, action: int) -> None:
        self.position = self._rules().step(self.position, action)

    def _action_to_string(self, player: int, action: int) -> str:
        del player
        return self._rules().action_name(self.position, action)

    def __str__(self) -> str:
        return self._rules().describe(self.position)


class MetaObserver:
    """Observations of a meta-game state for a player, as a string and as a tensor (for learning solvers).

    A tensor consists of parts, whose numbers are 1 where something holds and 0 elsewhere. Let m be the larger
    number of information states that a player has in the tree:

        player    2                  the observing player
        infoset   m                  the last of its information states that the player came to
        choices   m x num_actions    its choice at each of its information states: 0 is to stop, 1 + k to
                                     memorize entry k of the menu
        moves     depth x width      where information is perfect: each ancestor's rank among its siblings

    Two tensors are equal if and only if the strings are: they show what the player knows and has done, and
    nothing of what its opponent chose. OpenSpiel's observations may forget; these do not, since a choice that
    was made cannot be seen anywhere later.

    An observation sets a few numbers for each own decision and each ancestor. A tensor has at least
    m (1 + num_actions) numbers, so for trees of many thousand information states a table serves better.

    Attributes:
      tensor: float32[size], the last observation of `set_from`.
      dict: the parts by name, views of the same memory in the shapes above.
    """

    def __init__(self, rules: MetaRules) -> None:
        """Lay out the parts for a game's tree."""
        tree = rules.tree
        self._rules = rules
        self._place = np.zeros(tree.num_infosets, np.int64)  # among the owner's
        for player in (0, 1):
            own = np.flatnonzero(tree.infoset_player == player)
            self._place[own] = np.arange(len(own))
        most = 1 + int(self._place.max(initial=0))
        shapes: dict[str, tuple[int, ...]] = {
            "player": (2,),
            "infoset": (most,),
            "choices": (most, rules.num_actions),
        }
        if tree.infoset_keys is None:
            width = int(tree.num_children.max())
            shapes["moves"] = (max(len(tree.levels) - 1, 1), max(width, 1))
        ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
        self.tensor = np.zeros(int(ends[-1]), np.float32)
        parts = zip(shapes.items(), np.split(self.tensor, ends[:-1]), strict=True)
        self.dict = {name: part.reshape(shape) for (name, shape), part in parts}

    def set_from(self, state: Any, player: int) -> None:
        """Write what a player sees of a state into `tensor` and `dict`."""
        tree, at = self._rules.tree, state.position
        last, made = self._rules.known(at, player)
        self.tensor.fill(0.0)
        self.dict["player"][player] = 1.0
        if last >= 0:
            self.dict["infoset"][self._place[tree.infoset[last]]] = 1.0
        for infoset, action in made:
            self.dict["choices"][self._place[infoset], action] = 1.0
        if "moves" in self.dict:
            history, ranks = at.history, []
            while history > 0:
                parent = int(tree.parent[history])
                ranks.append(history - int(tree.first_child[parent]))
                history = parent
            self.dict["moves"][np.arange(len(ranks)), ranks[::-1]] = 1.0

    def string_from(self, state: Any, player: int) -> str:
        """Return the observation in words: the information state string."""
        return self._rules.view(state.position, player)


# -- by parameters ---------------------------------------------------------------------------------


def _digest(tree: HistoryTree) -> str:
    """Return a name for a tree with its penalties, short enough for a game string."""
    text = f"{tree.fingerprint} {tree.penalties[0]!r} {tree.penalties[1]!r}"
    text += f" {tree.weight.tolist()}" if len(tree.weight) else ""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _live_key(parameters: Mapping[str, Any]) -> str:
    path = unquoted(str(parameters.get("tree_file", "")))
    stat = os.stat(path) if path and not path.startswith(_IN_MEMORY) else None
    written = stat and [stat.st_mtime_ns, stat.st_size]
    return json.dumps([dict(parameters), written], sort_keys=True, default=str)


def _by_parameters(params: Mapping[str, Any]) -> tuple[dict[str, Any], MetaRules]:
    """Return the parameters written in full, and their rules, of a living game where there is one."""
    values: dict[str, Any] = checks.check_parameters(params, _DEFAULTS)
    path = values["tree_file"] and unquoted(checks.check_path(values["tree_file"], "tree_file"))
    if path:
        twice = [name for name in _SPECS if values[name] != _DEFAULTS[name]]
        if twice:
            raise ArgumentError(f"expected tree_file alone, which says it all, got {twice} as well")
        kept = {name: values[name] for name in ("form", "check_supports")}
        values = {"tree_file": in_game_string(path)} | kept
    else:
        del values["tree_file"]
        for name in ("penalty_0", "penalty_1"):
            values[name] = _penalty(values[name], name)
        for name in ("game", "sigma", "sigma_pre"):
            if not isinstance(values[name], Mapping):
                kind = f"a dictionary such as {_DEFAULTS[name]}"
                raise ArgumentError(f"expected {name} to be {kind}, got {shown(values[name])}")
    key = _live_key(values)
    rules = _LIVE.get(key)
    if rules is None:
        if path.startswith(_IN_MEMORY):
            got = f"{path!r}, a tree in the memory of a process or a game that is gone"
            raise ArgumentError(f"expected tree_file to be a file, got {got}; save the tree with save()")
        tree = HistoryTree.load(path) if path else _tree_of_specs(values)
        rules = _LIVE[key] = MetaRules(tree, values["form"], values["check_supports"])
    return {"tree_file": ""} | values, rules


def _penalty(value: Any, name: str) -> float:
    """Return a penalty of a game string. OpenSpiel's parser gives "1" as an integer and "1e-3" as text."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    penalty = checks.check_number(value, name, finite=False)
    return _NEVER if penalty == math.inf else penalty


def _tree_of_specs(values: Mapping[str, Any]) -> HistoryTree:
    """Return the tree of a base game and policies that are named.

    Game strings stand in files and in configurations, so specs in them open and run nothing.
    """
    game = load_base_game(values["game"])
    given = [float(values[name]) for name in ("penalty_0", "penalty_1")]
    penalties = [math.inf if penalty == _NEVER else penalty for penalty in given]
    return HistoryTree.from_game(
        game,
        sigma_pre=make_policy(game, values["sigma_pre"], trusted=False),
        sigma=make_policy(game, values["sigma"], trusted=False),
        penalties=penalties,
    )
