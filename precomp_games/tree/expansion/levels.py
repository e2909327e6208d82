"""Expands a base game into the arrays of a `HistoryTree`, a level at a time.

Each history is kept or cut when it is reached, by Lemma 3, whose slips are repaired here. Information state I
of player i is worth memorizing only if some preparation of the opponent lets i reach it, under its own
sigma_pre, so often that this reach times the range of utilities R is at least lambda_i. Three numbers per
history carry the bound forward: c is the reach by chance; m_i is the reach by player i while it memorizes,
and 0 once i has left W_i; b_i is the best reach by player i over all the times at which it may have stopped.
The bound of I is the smaller of two numbers: the bound of i's information state before I, and the sum of c
m_i max(m_j, b_j) over the histories of I, where j is the opponent. A fixed opponent has m_j = 0 from the
start, and then the bound is the reach at which Algorithm 1 cuts. A history at which neither player can
memorize any more is a leaf, and worth u^sigma(h).

Source: `precomputation`, section 4, observation 1, Algorithm 1 and Lemma 3.

Deviations: utilities need not lie in [0, 1] (the paper's R is 1); opponents are those that stop inside
their own W_j, which is enough, since no best response leaves it; information states with several
histories; the tree also ends where a player's own sigma_pre never goes, whoever is to move there; where
stopping is evaluated on the spot, `bounds` cuts more.

Cost: each policy is called once per level, with each distinct position of the level once; and a handful of
numpy passes over the level's edges. Histories hold no OpenSpiel state: positions do, for one level.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, at_history, utility_sum
from precomp_games._support.config import bar, memory_limit
from precomp_games._support.game_facts import check_infoset_keys
from precomp_games._support.memory import BLOCK, MemoryMeter, give_back
from precomp_games.tree.expansion.options import ExpansionOptions
from precomp_games.tree.expansion.positions import AlikeRows, Edges, LevelPositions
from precomp_games.tree.expansion.pruning import InformationStates, KeptPositions, Level, Reopened, StopBounds
from precomp_games.tree.expansion.values import TreeValues
from precomp_games.tree.facts import ARRAYS, CHANCE, GOES_WITHOUT_SAYING, OPTIONAL
from precomp_games.tree.mixture import MixedOpponent

# What the arrays of a level take per history while it is made, and those of the tree while it is finished:
# measured, the most of trees with and without menus, bounds and information states (tests/test_memory.py).
_BYTES_AN_EDGE, _BYTES_AT_THE_END = 250, 45
_LEAST = np.finfo(np.float64).tiny  # for a range of utilities that is 0
_SLACK = 1.0 - 1e-9  # a bound that equals its penalty up to rounding is kept

# The arrays of a tree in the making, those of a mixed opponent as well.
_KINDS = ARRAYS | OPTIONAL | {"edge_row": np.int32, "value_row": np.int32}
_OF_INFOSETS = ("infoset_player", "weight", "cut_menus")  # the others have a number for each history


class LevelEdges(NamedTuple):
    """The tree's edges out of one level, in the order of the next level's histories.

    Attributes:
      source: The history that an edge leaves, index into the level.
      kind: Its entry in `distinct`.
      sigma_pre, sigma: 0 where the mover cannot, or need not, play that policy there.
      row: `TreeMixture.edge_row`; None without a mixed opponent.
    """

    source: np.ndarray
    kind: np.ndarray
    distinct: Edges
    sigma_pre: np.ndarray
    sigma: np.ndarray
    row: np.ndarray | None


def expand(game: pyspiel.Game, options: ExpansionOptions) -> dict[str, Any]:
    """Return the fields of the `HistoryTree` of a game, but for `policies`; see the module docstring.

    Raises:
      ValueError: a policy's answer is wrong, the game has imperfect recall, `position_key` joins states
        that differ, or there are more than `max_histories` histories, or more than fit into memory.
    """
    never_cut: set[Hashable] = set()
    with bar("Expanding", "histories", leave=False) as show:
        while True:
            try:
                return _Expander(game, options, never_cut, show).run()
            except Reopened as reopened:
                never_cut.update(reopened.keys)


class _Expander:
    """One expansion from the root. Lives for one `run()`."""

    def __init__(
        self, game: pyspiel.Game, options: ExpansionOptions, never_cut: set[Hashable], show: Any
    ) -> None:
        self.game = game
        self.options = options
        self.show = show
        self.memory = MemoryMeter(memory_limit(), options.advice())
        kind = game.get_type()
        self.perfect_information = kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
        alike = None if self.perfect_information else AlikeRows()
        self.positions = LevelPositions(game.new_initial_state(), options, alike, self.memory)
        self.information = InformationStates(kind.short_name, self.positions, never_cut)
        self.by_position = options.price == "positions"
        self.kept = KeptPositions(self.positions, never_cut)
        self.infosets = 0
        self.opponent: MixedOpponent | None = None
        if options.mixture is not None:
            self.opponent = MixedOpponent(*options.mixture, options.min_probability)
        self.values = TreeValues(game, options, self.opponent, self.positions)
        self.utility_sum = utility_sum(game)
        self.bounds = self._bounds()
        self.chunks: dict[str, list[np.ndarray]] = {name: [] for name in _KINDS}
        self.size = 0  # histories before the current level

    def run(self) -> dict[str, Any]:
        """Expand level after level until none is left."""
        level, depth = self._root(), 0
        self._append(parent=[-1], action=[-1], sigma=[1.0], sigma_pre=[1.0], entry=[0], edge_row=[-1])
        while len(level.position):
            count = len(level.position)
            self.memory.begin(f"at level {depth}, with {self.size + count} histories")
            if count > 4 * BLOCK:
                give_back()  # what the states of the level before took, in pieces that arrays do not fit into
            level.weight = self._weights(level)
            level.infoset = self._memorizable(level)
            needed = level.leaves() | self._evaluated(level)
            level.value, value_row, value_1 = self.values.of_level(level, needed, self.size)
            self._rule_out(level)
            if self.perfect_information:  # every history that may be memorized is an information state
                kept = np.flatnonzero(level.infoset >= 0)
                level.infoset[kept] = self.infosets + np.arange(len(kept))
                self._append(infoset_player=level.player[kept], weight=level.weight[kept])
                self.infosets += len(kept)
            edges = self._edges(level)
            ids = self.positions.ids()
            self._append(
                player=level.player,
                infoset=level.infoset,
                value=level.value,
                value_row=value_row,
                value_1=value_1,
                position=None if ids is None else ids[level.position],
            )
            if self.size + count + len(edges.source) > self.options.max_histories:
                most, advice = f"max_histories={self.options.max_histories} histories", self.options.advice()
                got = f"more at level {depth + 1}; {advice}raise max_histories"
                raise ArgumentError(f"expected at most {most}, got {got}")
            self._append(
                parent=self.size + edges.source,
                action=edges.distinct.action[edges.kind],
                sigma=edges.sigma,
                sigma_pre=edges.sigma_pre,
                entry=edges.distinct.entry[edges.kind],
                edge_row=edges.row,
            )
            distinct, kind = edges.distinct, edges.kind
            level = self._next(level, edges)
            del edges  # as the level before: states take what there is
            level.position = self.positions.advance(distinct, kind)
            level.player = self.positions.mover[level.position]
            self.size += count
            self.show(self.size, f"level {depth}")
            depth += 1
        return self._finish()

    def _root(self) -> Level:
        stopped = np.isinf(self.options.penalties).astype(np.float64)  # who never memorizes, before the start
        root = Level(
            parent=np.zeros(1, np.int32),
            entry=np.zeros(1, np.int16),
            played=np.ones(1, bool),
            chance=np.ones(1),
            memorizing=[1.0 - stopped[:1], 1.0 - stopped[1:]],
            stopped=[stopped[:1], stopped[1:]],
            past=None if self.perfect_information else [(np.full(1, -1, np.int32),) * 2] * 2,
        )
        root.position, root.player = np.zeros(1, np.int32), self.positions.mover
        return root

    def _append(self, **columns: Any) -> None:
        for name, column in columns.items():
            if column is not None:
                self.chunks[name].append(np.asarray(column, _KINDS[name]))

    # -- what is worth memorizing ------------------------------------------------------------------

    def _weights(self, level: Level) -> np.ndarray:
        """Return float64[n]: how many penalties it costs the mover to memorize; 1 where it cannot."""
        weight = np.ones(len(self.positions.states))
        if (ask := self.options.weight) is not None:
            may = level.may_memorize(0) | level.may_memorize(1)
            for k in np.unique(level.position[may]).tolist():
                state = self.positions.states[k]
                weight[k] = checks.check_evaluation(ask(state), state, "weight")
                if weight[k] < 0.0:
                    got = f"{weight[k]} {at_history(state)}"
                    raise ArgumentError(f"expected weight to give numbers of at least 0, got {got}")
        return np.asarray(weight[level.position])

    def _memorizable(self, level: Level) -> np.ndarray:
        """Return each history's information state where its mover may memorize it, -1 elsewhere.

        Sets the mover's `memorizing` to 0 where it may not: from there on it has stopped. Where
        information is perfect, information states get their numbers in `run`.
        """
        infoset = np.full(len(level.player), -1, np.int32)
        for i in (0, 1):
            own = np.flatnonzero(level.may_memorize(i))
            bound = level.reach(i, level.memorizing[i], own)
            threshold, spread = 0.0, self.options.utility_range
            if self.options.truncate != "none":  # finite: what costs nothing stays
                threshold = min(self.options.penalties[i] / max(spread, _LEAST) * _SLACK, 1.0 / _LEAST)
            prices = threshold * level.weight[own]
            if self.by_position:
                infoset[own[self.kept.keep(level.position[own], bound, prices)]] = 0
            elif level.past is None:
                infoset[own[bound >= prices]] = 0
            else:
                infoset[own] = self.information.group(i, level, own, bound, threshold)
            level.stop_memorizing(i, own[infoset[own] < 0])
            falls = not self.by_position and self.options.weight is None
            if level.past is None and self.options.stop_value != "evaluate" and falls:
                # Where information is perfect, the bound falls along a path: where it fails between two turns
                # of i's, it fails at those that follow. That of a position does not fall, and with weights,
                # what follows may cost less.
                other = np.flatnonzero((level.player != i) & (level.memorizing[i] > 0.0))
                bound = level.reach(i, level.memorizing[i], other)
                level.stop_memorizing(i, other[bound < threshold])
        return infoset

    def _bounds(self) -> dict[int, StopBounds]:
        """Return bounds from evaluated stops by player, if values are known at once."""
        options = self.options
        deferred = any(values.deferred for values in options.leaf_values)
        if options.truncate != "values" or deferred or not self.perfect_information:
            return {}
        most = [self.game.max_utility()] * 2
        if options.value_of is None:
            most[1] = self.utility_sum - self.game.min_utility()
        finite = [i for i in (0, 1) if np.isfinite(options.penalties[i])]
        return {i: StopBounds(i, options.penalties[i], most[i]) for i in finite}

    def _evaluated(self, level: Level) -> np.ndarray:
        """Return where stopping has to be evaluated: nothing but sigma follows it, for either player."""
        decides = level.infoset >= 0
        if self.options.stop_value == "evaluate":
            return decides
        if not self.bounds:
            return np.zeros(len(decides), bool)
        rival = np.where(level.player == 0, level.memorizing[1], level.memorizing[0])
        return decides & (rival <= 0.0)

    def _rule_out(self, level: Level) -> None:
        """End a player's memorizing where `StopBounds` shows that going on cannot pay.

        That is seen where the opponent has stopped for certain, and as far as it can have let that be
        reached: then Algorithm 1 is what is left to do. Elsewhere stopping has no value yet.
        """
        evaluated, leaf = self._evaluated(level), level.leaves()
        for i, bounds in self.bounds.items():
            own = (level.player == i) & (level.infoset >= 0)
            shared = self.kept.shared(level.position, own, bounds) if self.by_position else None
            value = level.value if i == 0 else self.utility_sum - level.value
            value = np.where(own & ~evaluated, -np.inf, value)
            decides, gone = bounds.add_level(level, value, own, leaf, shared)
            ended = gone | (own & ~decides)
            level.infoset[ended] = -1
            level.forget(i, ended)

    # -- edges and the next level ------------------------------------------------------------------

    def _edges(self, level: Level) -> LevelEdges:
        """Ask the policies where somebody goes on, and multiply positions' edges to histories'."""
        player, goes_on = level.player, np.flatnonzero(~level.leaves())
        decides = level.infoset[goes_on] >= 0
        where = level.position[goes_on]
        sigma_here = np.ones(len(goes_on), bool)
        if self.options.stop_value != "backup":
            sigma_here = ~decides  # stopping is worth its value, or there is none: nobody plays on from here
        wants_pre, wants_sigma = np.zeros((2, len(self.positions.states)), bool)
        wants_pre[where[decides]] = True
        wants_sigma[where[sigma_here]] = True
        distinct = self.positions.ask(wants_pre, wants_sigma)

        counts = np.diff(distinct.start)[where]
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        self.memory.check(total * _BYTES_AN_EDGE + (self.size + len(player) + total) * _BYTES_AT_THE_END)
        kind = np.arange(total, dtype=np.int32)
        kind += np.repeat((distinct.start[:-1][where] - (ends - counts)).astype(np.int32), counts)
        pre_here = decides | (player[goes_on] == CHANCE)
        pre = np.where(np.repeat(pre_here, counts), distinct.sigma_pre[kind], 0.0)
        sigma = np.where(np.repeat(sigma_here, counts), distinct.sigma[kind], 0.0)
        source, edge_row = np.repeat(goes_on.astype(np.int32), counts), None
        if self.opponent is not None:
            own = player[source] == self.opponent.player
            edge_row = self.opponent.step(own, source, kind, distinct.components, sigma, pre)
        used = (pre > 0.0) | (sigma > 0.0)
        if not used.all():
            source, kind, pre, sigma = source[used], kind[used], pre[used], sigma[used]
        return LevelEdges(source, kind, distinct, pre, sigma, edge_row)

    def _next(self, level: Level, edges: LevelEdges) -> Level:
        """Carry the reaches over the edges; the positions behind them are not there yet."""
        source, mover = edges.source, level.player[edges.source]
        chance, by_chance = level.chance[source], mover == CHANCE
        chance[by_chance] *= edges.sigma[by_chance]
        memorizing = [level.memorizing[i][source] for i in (0, 1)]
        stopped = [level.stopped[i][source] for i in (0, 1)]
        here, did = level.infoset[source], edges.distinct.action[edges.kind].astype(np.int32)
        past = []
        for i in (0, 1):
            own = mover == i
            # Whoever must stop at a history had still memorized everything before it.
            best = np.maximum(stopped[i][own], level.before[i][source[own]])
            memorizing[i][own] *= edges.sigma_pre[own]
            stopped[i][own] = best * edges.sigma[own]
            if level.past is not None:
                decided, (previous, choice) = own & (here >= 0), level.past[i]
                last = np.where(decided, here, previous[source]), np.where(decided, did, choice[source])
                past.append(last)
        return Level(
            parent=source,
            entry=edges.distinct.entry[edges.kind],
            played=edges.sigma > 0.0,
            chance=chance,
            memorizing=memorizing,
            stopped=stopped,
            past=past or None,
        )

    def _finish(self) -> dict[str, Any]:
        keys = None
        if not self.perfect_information:
            keys = self.information.keys
            check_infoset_keys(self.game, keys)
            self._append(infoset_player=self.information.players, weight=self.information.weights)
        give_back()  # what the states took
        arrays = {
            name: np.concatenate([np.zeros(0, kind), *self.chunks.pop(name)]) for name, kind in _KINDS.items()
        }
        arrays["cut_menus"] = np.zeros(len(arrays["infoset_player"]), bool)
        self.values.fill_in(arrays["value"], arrays["value_row"])
        if self.opponent is None:
            del arrays["edge_row"], arrays["value_row"]
        work = {
            "expanded": len(arrays["parent"]),
            "policy_queries": self.positions.policy_queries,
            "leaf_evaluations": self.values.evaluations,
            "games_sampled": self.values.games,
        }
        if self.bounds:
            decides, gone = zip(*(bounds.result() for bounds in self.bounds.values()), strict=True)
            _drop_histories(arrays, np.any(decides, axis=0), np.any(gone, axis=0))
        if any(hasattr(policy, "entries_batch") for policy in self.options.sigma_pre):
            keys = _settle_menus(arrays, keys)
        children = np.bincount(arrays["parent"][1:], minlength=len(arrays["parent"]))
        first = np.where(children > 0, 1 + np.cumsum(children) - children, -1)
        arrays |= {"num_children": children.astype(np.int32), "first_child": first.astype(np.int32)}
        for name, usual in GOES_WITHOUT_SAYING.items():
            if (arrays[name] == usual).all():
                arrays[name] = arrays[name][:0]
        work["histories"] = len(arrays["parent"])
        mixture = None
        if self.opponent is not None:
            mixture = self.opponent.result(arrays.pop("edge_row"), arrays.pop("value_row"))
        options = self.options
        return arrays | {
            "game_string": str(self.game),
            "penalties": options.penalties,
            "utility_range": options.utility_range,
            "utility_sum": self.utility_sum,
            "stop_value": options.stop_value,
            "value_of": options.value_of,
            "cut_for": "nothing" if options.truncate == "none" else options.price,
            "infoset_keys": None if keys is None else tuple(keys),
            "work": work,
            "base_game": self.game,
            "mixture": mixture,
        }


def _drop_histories(arrays: dict[str, np.ndarray], decides: np.ndarray, gone: np.ndarray) -> None:
    """Take histories out of a perfect-information tree; those that decide no more become leaves.

    What menus lose by that is noted in `cut_menus`.
    """
    kept = ~gone
    # Where the mover goes on to decide, what is gone behind a memorized move is an entry that cannot pay.
    behind = 1 + np.flatnonzero(gone[1:] & (arrays["sigma_pre"][1:] > 0.0))
    lost = np.zeros(len(gone), bool)
    lost[arrays["parent"][behind]] = True
    arrays["cut_menus"][arrays["infoset"][lost & kept & decides]] = True
    index = np.cumsum(kept, dtype=np.int32) - 1
    stays = np.zeros(len(arrays["infoset_player"]), bool)
    stays[arrays["infoset"][kept & decides]] = True
    _keep_infosets(arrays, stays)
    for name, column in arrays.items():
        if name not in _OF_INFOSETS and len(column):
            arrays[name] = column[kept]
    parent = arrays["parent"]
    parent[1:] = index[parent[1:]]


def _keep_infosets(arrays: dict[str, np.ndarray], kept: np.ndarray) -> None:
    """Take the other information states out; the histories stay."""
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.int32)  # of -1, too
    arrays["infoset"] = number[arrays["infoset"]]
    for name in _OF_INFOSETS:
        arrays[name] = arrays[name][kept]


def _settle_menus(arrays: dict[str, np.ndarray], keys: list[str] | None) -> list[str] | None:
    """Number the entries that are left from 0 on; where there are none, nothing can be memorized.

    Returns:
      `keys`, those of the information states that are left.
    """
    parent, infoset = arrays["parent"], arrays["infoset"]
    edges = 1 + np.flatnonzero((infoset[parent[1:]] >= 0) & (arrays["sigma_pre"][1:] > 0.0))
    most = int(arrays["entry"].max(initial=0)) + 1
    menus, place = np.unique(
        parent[edges].astype(np.int64) * most + arrays["entry"][edges], return_inverse=True
    )
    owner = menus // most
    arrays["entry"][:] = 0
    arrays["entry"][edges] = (np.arange(len(menus)) - np.searchsorted(owner, owner))[place]
    has_entries = np.zeros(len(parent), bool)
    has_entries[owner] = True
    kept = np.zeros(len(arrays["infoset_player"]), bool)
    kept[infoset[has_entries]] = True
    _keep_infosets(arrays, kept)
    return keys if keys is None else [key for key, stays in zip(keys, kept.tolist(), strict=True) if stays]
