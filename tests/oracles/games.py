"""Small random base games and policies to hold the algorithms against brute force.

Two kinds: "perfect", which is `RandomTreeGame`, with perfect information and chance nodes, and "imperfect",
which is EFG text with random information states, `level_game`. Properties take them from `games`, and with
policies from `settings`. What fails is printed as the call that makes it again.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from hypothesis import strategies as st

from precomp_games import HistoryTree, Menu


def tree_type(name: str, chance_mode: Any, parameters: dict[str, Any], **other: Any) -> pyspiel.GameType:
    """Return the type of a constant-sum game of perfect information without strings, or of another one."""
    usual: dict[str, Any] = {
        "long_name": "Random tree (test)",
        "dynamics": pyspiel.GameType.Dynamics.SEQUENTIAL,
        "information": pyspiel.GameType.Information.PERFECT_INFORMATION,
        "utility": pyspiel.GameType.Utility.CONSTANT_SUM,
        "reward_model": pyspiel.GameType.RewardModel.TERMINAL,
        "max_num_players": 2,
        "min_num_players": 2,
        "provides_information_state_string": False,
        "provides_information_state_tensor": False,
        "provides_observation_string": False,
        "provides_observation_tensor": False,
    }
    given = {"short_name": name, "chance_mode": chance_mode, "parameter_specification": parameters}
    return pyspiel.GameType(**usual | given | other)


_USUAL: dict[str, Any] = {"seed": 0, "depth": 4, "actions": 3, "chance": 0.2, "width": 0}
_USUAL |= {"scale": 1.0, "ties": False}
_TYPE = tree_type("python_test_random_tree", pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC, _USUAL)


class RandomTreeGame(pyspiel.Game):
    """A random perfect-information tree; utilities in [-1, 2] times scale, constant sum 1 times scale.

    width: most positions of a level, where several histories lead to one; 0: each history is a position.
    ties: utilities are -1, 0, 1 or 2 times scale.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        seed, depth, actions, chance, *others = (_USUAL | (params or {})).values()
        self.settings = (seed, depth, actions, chance)
        self.width, self.scale, self.ties = others
        ends = (-self.scale, 2.0 * self.scale, self.scale)
        super().__init__(_TYPE, pyspiel.GameInfo(actions, actions, 2, *ends, depth), params or {})

    def new_initial_state(self) -> RandomTreeState:
        return RandomTreeState(self)


@functools.cache
def _node(settings: Any, position: tuple[int, ...], turn: int) -> tuple[int, np.ndarray, float]:
    """Return (player, chance or legal weights, utility) at a position, from the seed alone."""
    seed, depth, actions, chance = settings
    rng = np.random.default_rng([seed, turn, *position])
    draw = rng.random()
    count = int(rng.integers(2, actions + 1))
    weights = rng.dirichlet(np.ones(count))
    utility = float(rng.uniform(-1.0, 2.0))
    if turn == depth or (turn > 1 and draw > 0.9):
        return int(pyspiel.PlayerId.TERMINAL), weights, utility
    if draw < chance:
        return int(pyspiel.PlayerId.CHANCE), weights, utility
    return int(rng.integers(2)) if draw < 0.4 else turn % 2, weights, utility


@functools.cache
def _position(seed: int, width: int, path: bytes) -> tuple[int, ...]:
    """Return the position after a history: one of `width` of its level, or the history itself."""
    if not width:
        return tuple(path)
    if not path:
        return ()
    # A generator of numbers takes far longer to set up than to draw one.
    drawn = hashlib.blake2b(f"{seed} {path[-1]} {_position(seed, width, path[:-1])}".encode(), digest_size=8)
    return (len(path), int.from_bytes(drawn.digest(), "little") % width)


class RandomTreeState(pyspiel.State):
    def __init__(self, game: RandomTreeGame) -> None:
        super().__init__(game)
        self.settings = game.settings
        self.width, self.scale, self.ties = game.width, game.scale, game.ties
        self.path = b""  # bytes are not copied with a state

    def _node(self) -> tuple[int, np.ndarray, float]:
        return _node(self.settings, self.position(), len(self.path))

    def position(self) -> tuple[int, ...]:
        """Return the position, on which all that follows depends."""
        return _position(self.settings[0], self.width, self.path)

    def current_player(self) -> int:
        return self._node()[0]

    def _legal_actions(self, player: int) -> list[int]:
        return list(range(len(self._node()[1])))

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return list(enumerate(self._node()[1].tolist()))

    def _apply_action(self, action: int) -> None:
        self.path += bytes([action])

    def _action_to_string(self, player: int, action: int) -> str:
        return str(action)

    def is_terminal(self) -> bool:
        return self._node()[0] == int(pyspiel.PlayerId.TERMINAL)

    def returns(self) -> list[float]:
        if not self.is_terminal():
            return [0.0, 0.0]
        utility, scale = self._node()[2], self.scale
        if self.ties:
            utility = float(round(utility))
        return [scale * utility, scale * (1.0 - utility)]

    def __str__(self) -> str:
        return str(self.position())


pyspiel.register_game(_TYPE, RandomTreeGame)


def random_tree(seed: int, **parameters: Any) -> pyspiel.Game:
    """Return a `RandomTreeGame`."""
    return pyspiel.load_game("python_test_random_tree", {"seed": seed} | parameters)


class EfgText:
    """A game that is written node by node, parents first; actions are named."""

    def __init__(self) -> None:
        self.lines = ['EFG 2 R "test" { "one" "two" }']
        self._chances = self._outcomes = 0

    def chance(self, odds: Mapping[Any, Any]) -> None:
        self._chances += 1
        labels = " ".join(f'"{name}" {p}' for name, p in odds.items())
        self.lines.append(f'c "" {self._chances} "" {{ {labels} }} 0')

    def move(self, player: int, infoset: int, actions: Iterable[Any]) -> None:
        """Players are 1 and 2 here."""
        labels = " ".join(f'"{action}"' for action in actions)
        self.lines.append(f'p "" {player} {infoset} "" {{ {labels} }} 0')

    def leaf(self, utility: float, other: float | None = None) -> None:
        """Write a leaf; without `other`, player 2's utility is the negative of player 1's."""
        self._outcomes += 1
        other = -utility if other is None else other
        self.lines.append(f't "" {self._outcomes} "" {{ {utility} {other} }}')

    def game(self) -> pyspiel.Game:
        return pyspiel.load_efg_game("\n".join(self.lines) + "\n")


def written(*nodes: Any) -> pyspiel.Game:
    """Return a game node by node: (player, information state, actions), chance's odds, or utilities."""
    text = EfgText()
    for node in nodes:
        if isinstance(node, dict):
            text.chance(node)
        elif isinstance(node, tuple) and len(node) == 3:
            text.move(*node)
        else:
            text.leaf(*(node if isinstance(node, tuple) else (node,)))
    return text.game()


class Level(NamedTuple):
    """A turn of a `level_game`: player 0's, player 1's, or that of chance (-1), with so many actions.

    hidden[p]: player p does not see what is done. late: the turn comes about only where the actions before
    have an even sum, so that histories are of several lengths. open: all see what was done before; a proper
    subgame begins.
    """

    mover: int
    actions: int = 2
    hidden: tuple[bool, bool] = (False, False)
    late: bool = False
    open: bool = False


def level_game(
    seed: int | np.random.Generator,
    levels: Sequence[Level],
    scale: float = 1.0,
    ties: bool = False,
    lottery: bool = False,
    general: bool = False,
) -> pyspiel.Game:
    """Return a game of these turns; its chances and utilities, in [-2, 2] times scale, come from the seed.

    Perfect recall holds because a player's information state is named by its own past and what it saw.
    ties: utilities are whole numbers times scale. lottery: chance alone decides at the end, worth the same
    whatever was played. general: each player has utilities of its own; otherwise they add up to 0.
    """
    rng = np.random.default_rng(seed)
    chances = [rng.dirichlet(np.ones(level.actions)) for level in levels]
    names: tuple[dict[tuple[Any, ...], int], ...] = ({}, {})
    text = EfgText()
    digits = 0 if ties else 6

    def leaves() -> None:
        ends = [round(float(rng.uniform(-2, 2)), digits)]
        if lottery:
            ends = [-1.0, 0.5, 2.0]
            text.chance({"x": 0.3, "y": 0.1, "z": 0.6})
        for u in ends:
            text.leaf(u * scale, round(float(rng.uniform(-3, 1)), digits) * scale if general else None)

    def walk(path: tuple[int | None, ...]) -> None:
        """None in a path is a turn that did not come about."""
        d = len(path)
        if d == len(levels):
            leaves()
            return
        level, p = levels[d], levels[d].mover
        if level.late and sum(a or 0 for a in path) % 2:
            walk((*path, None))
            return
        if p < 0:
            odds = [f"{x:.6f}" for x in chances[d][:-1]]
            odds.append(f"{1 - sum(map(float, odds)):.6f}")
            text.chance(dict(enumerate(odds)))
        else:
            known = max((k for k in range(d + 1) if levels[k].open), default=0)
            shown = (k < known or levels[k].mover == p or not levels[k].hidden[p] for k in range(d))
            seen = tuple(a if is_shown else "hidden" for a, is_shown in zip(path, shown, strict=True))
            text.move(p + 1, names[p].setdefault((d, seen), len(names[p]) + 1), range(level.actions))
        for a in range(level.actions):
            walk((*path, a))

    walk(())
    return text.game()


def random_efg(
    seed: int, depth: int = 4, actions: int = 2, shown: float = 0.0, **options: Any
) -> pyspiel.Game:
    """Return a `level_game` whose turns come from the seed, too; the last is a player's.

    With the probability `shown` all that was done is shown at a depth: proper subgames begin there.
    """
    rng = np.random.default_rng(seed)
    movers = (rng.choice([0, 1, 1, 2, 2], size=depth) - 1).tolist()
    movers[-1] = int(rng.integers(1, 3)) - 1
    hidden = (rng.random((3, depth))[1:].T >= 0.5).tolist()
    opened = np.random.default_rng([seed, 1]).random(depth) < shown
    turns = zip(movers, hidden, opened.tolist(), strict=True)
    levels = [Level(p, actions, tuple(unseen), open=seen) for p, unseen, seen in turns]
    return level_game(rng, levels, **options)


def _name_of(state: Any, by: str) -> str:
    if by == "position":
        return str(state)
    return str(state.history_str() if by == "history" else state.information_state_string())


@functools.lru_cache(maxsize=32)  # the rows of a large game, drawn once for all tests that share its policies
def random_policy(seed: int, support: str = "full", by: str = "history") -> Any:
    """Return a random policy as a function of the state; its randomness comes from (seed, information state).

    support: "full", "partial" (a random subset of the actions) or "pure".
    by: "history", "infoset" or "position", what it depends on.
    """

    @functools.cache
    def row(name: str, actions: tuple[int, ...]) -> dict[int, float]:
        digest = [seed, *name.encode()]
        rng = np.random.default_rng(digest)
        weights = rng.dirichlet(np.ones(len(actions)))
        if support != "full":
            keep = 1 if support == "pure" else int(rng.integers(1, len(actions) + 1))
            weights[rng.permutation(len(actions))[keep:]] = 0.0
            weights /= weights.sum()
        return {a: float(w) for a, w in zip(actions, weights, strict=True)}

    def policy(state: Any) -> dict[int, float]:
        return row(_name_of(state, by), tuple(state.legal_actions()))

    return policy


def random_menu(seed: int, most: int = 3, by: str = "history", sparse: bool = False) -> Menu:
    """A menu of up to `most` entries, drawn by (seed, information state): actions, and mixtures of several.

    Some actions stand in no entry. by: see `random_policy`. sparse: some menus are empty.
    """

    @functools.cache
    def entries(name: str, actions: tuple[int, ...]) -> list[Any]:
        rng = np.random.default_rng([seed, 77, *name.encode()])
        parts = np.array_split(rng.permutation(actions), int(rng.integers(1, most + 1)) + 1)
        if sparse and rng.random() < 0.2:
            return []
        # The last part is left out, unless nothing else is there.
        chosen = [part.tolist() for part in parts[:-1] if len(part)] or [[actions[0]]]

        def mixed(part: list[int]) -> Any:
            return dict(zip(part, rng.dirichlet(np.ones(len(part))), strict=True))

        return [part[0] if len(part) == 1 else mixed(part) for part in chosen]

    def menu(state: Any) -> list[Any]:
        return entries(_name_of(state, by), tuple(state.legal_actions()))

    return Menu(menu)


# -- strategies ------------------------------------------------------------------------------------

SUPPORTS = ("full", "partial", "pure")

SEEDS = st.integers(0, 10**6)


def games(
    kind: str = "any",
    depth: int = 4,
    actions: int = 3,
    *,
    least: int = 1,
    chance: bool = True,
    repeated: bool = False,
    uneven: bool = True,
    subgames: bool = False,
    ties: bool = True,
    **fixed: Any,
) -> st.SearchStrategy[pyspiel.Game]:
    """Random games, half of them as deep as can be.

    A failure shrinks to the least depth, 2 actions, no chance, nothing hidden, and no ties.

    Args:
      kind: "perfect", "imperfect" or "any" information.
      depth: the most moves of a play.
      actions: the most actions at a state.
      least: the fewest turns.
      chance: chance may move.
      repeated: several histories of a game of perfect information may lead to one position.
      uneven: histories of an information state may be of several lengths.
      subgames: at some turns of a game of imperfect information all see what was done before.
      ties: utilities may be equal.
      fixed: arguments of `random_tree` or `level_game` that are the same for all games.
    """
    drawn = {"seed": SEEDS, "ties": st.booleans() if ties else st.just(False)}
    drawn |= {name: st.just(value) for name, value in fixed.items()}
    perfect = st.builds(
        random_tree,
        depth=st.integers(least, depth) | st.just(depth),
        actions=st.integers(2, actions),
        chance=st.sampled_from((0.0, 0.2, 0.5)) if chance else st.just(0.0),
        width=st.integers(2, 4) if repeated else st.just(0),
        **drawn,
    )
    level = st.builds(
        Level,
        mover=st.sampled_from((0, 1, -1) if chance else (0, 1)),
        actions=st.integers(2, actions),
        hidden=st.tuples(st.booleans(), st.booleans()),
        late=st.booleans() if uneven else st.just(False),
        open=st.booleans() if subgames else st.just(False),
    )
    some, all_of_them = (st.lists(level, min_size=size, max_size=depth) for size in (least, depth))
    imperfect = st.builds(level_game, levels=some | all_of_them, **drawn)
    return {"perfect": perfect, "imperfect": imperfect, "any": perfect | imperfect}[kind]


def kuhn_poker() -> pyspiel.Game:
    return pyspiel.load_game("kuhn_poker")


def named_by(game: pyspiel.Game) -> str:
    """Return what policies of a random game depend on, as `random_policy` takes it."""
    if game.get_type().information != pyspiel.GameType.Information.PERFECT_INFORMATION:
        return "infoset"
    return "position" if game.get_parameters().get("width") else "history"


def setting(
    game: pyspiel.Game,
    seed: int,
    pre: Sequence[str] = ("full", "full"),
    sigma: Sequence[str] = ("full", "full"),
) -> tuple[pyspiel.Game, tuple[Any, Any], tuple[Any, Any]]:
    """(game, sigma_pre, sigma), of a support for each player; `pre` may be "menu" or "sparse menu", too."""
    by = named_by(game)

    def drawn(k: int, kind: str) -> Any:
        if kind.endswith("menu"):
            return random_menu(4 * seed + k, by=by, sparse=kind != "menu")
        return random_policy(4 * seed + k, kind, by)

    return game, (drawn(0, pre[0]), drawn(1, pre[1])), (drawn(2, sigma[0]), drawn(3, sigma[1]))


def settings(
    game: st.SearchStrategy[pyspiel.Game] | None = None, menus: bool = False, **options: Any
) -> st.SearchStrategy[tuple[pyspiel.Game, tuple[Any, Any], tuple[Any, Any]]]:
    """(game, sigma_pre, sigma) with policies of any support; a failure shrinks to full support and no menus.

    Args:
      game: other games than `games(**options)`.
      menus: some of sigma_pre are menus.
      options: see `games`.
    """
    support = st.sampled_from(SUPPORTS)
    prepared = st.sampled_from((*SUPPORTS, "menu", "sparse menu")) if menus else support
    drawn = games(**options) if game is None else game
    pairs = {"pre": st.tuples(prepared, prepared), "sigma": st.tuples(support, support)}
    return st.builds(setting, game=drawn, seed=SEEDS, **pairs)


def penalties(*, infinite: bool = True) -> st.SearchStrategy[tuple[float, float]]:
    """Penalties of both players, of which one or both may be infinite; a failure shrinks to 0.05."""
    usual = (0.05, 0.01, 0.1, 0.3, 1.0)
    return st.tuples(*[st.sampled_from((*usual, math.inf) if infinite else usual)] * 2)


def uniform(state: Any) -> dict[int, float]:
    return dict.fromkeys(state.legal_actions(), 1.0 / len(state.legal_actions()))


def first(state: Any) -> dict[int, float]:
    return {state.legal_actions()[0]: 1.0}


def last(state: Any) -> dict[int, float]:
    return {state.legal_actions()[-1]: 1.0}


def policy_pairs(seed: int, support: str = "full", by: str = "history", sigma: str | None = None) -> Any:
    """Return (sigma_pre, sigma), a random policy of each player's; `sigma` is the support of the latter."""
    pre = tuple(random_policy(4 * seed + i, support, by) for i in (0, 1))
    return pre, tuple(random_policy(4 * seed + 2 + i, sigma or support, by) for i in (0, 1))


def expand(game: pyspiel.Game, sigma_pre: Any, sigma: Any, penalties: Any, **options: Any) -> HistoryTree:
    """Return the tree of what `setting` gives, at some penalties."""
    return HistoryTree.from_game(game, sigma_pre=sigma_pre, sigma=sigma, penalties=penalties, **options)


def sides(player: int, own: Any, other: Any) -> tuple[Any, Any]:
    """Return a pair: what is the player's, and what is the other one's."""
    return (own, other) if player == 0 else (other, own)


def random_evaluation(seed: int, low: float = -1.0, high: float = 2.0) -> Callable[[Any], float]:
    """A function of the history with values in [low, high], which nobody's play has as its expectation."""

    def evaluate(state: Any) -> float:
        history = state.history()
        return float(np.random.default_rng([seed, len(history), *history]).uniform(low, high))

    return evaluate
