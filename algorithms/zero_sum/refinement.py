"""An equilibrium that is sensible off the path of play as well: quasi-perfect, as far as a certificate says.

An equilibrium says little of where play does not come. Where the opponent never comes, a player may give
away anything as long as coming there does not pay, and where its own play never comes, it may do whatever it
likes. A quasi-perfect equilibrium is sensible everywhere: it is a limit of strategies such that, from each
information state on, a player does what is best against an opponent whose hand trembles. So it is a
sequential equilibrium, and none of its strategies is weakly dominated.

1. Hands tremble. Plans must be at least l, with l(e) > 0 for each entry and l(entry before I) greater than
   the sum of l over the entries of I. With x = l + z and y = l + z', `sequence_form_lp`'s program becomes

       maximize    g_0(x) + sum over J of s(J) t(J) + sum over f of l(f) g_f(x)
       subject to  t(J) <= g_f(x) + sum over J' right after f of t(J')       for each entry f of J
                   sum of z(e) over the entries e of I = z(entry before I) + s(I),   z >= 0

   where s(I) = l(entry before I) - sum of l(e), with 1 in place of l where there is no entry before. The
   duals of the second line are z'. What a player has in mind at I is b(e), in proportion to z(e).

   Then b is best from every I on against the other's y, own later trembles not counted. For z is a best
   choice of what flows down freely, and it enters each I with at least s(I) > 0, so that no part of it may go
   to an entry that is worth less than another one.

2. On the path the game itself counts. Of all plans that guarantee the value, a second program takes one
   nearest to b: it minimizes the sum of w(I) max(0, x(e) - b(e) x(entry before I)), where w(I) is one over
   the probability with which the trembling hand comes to I. It has the rows of `sequence_form_lp`, and one
   that says what the plan guarantees. So the equilibrium stays exact.

3. Where a player's own plan never comes, it plays b, which changes neither its plan nor NashConv.

What comes out is measured by `conditional_regrets`, which knows nothing of these programs.

Source: van Damme, "A relation between perfect equilibria in extensive form games and proper equilibria in
normal form games", International Journal of Game Theory 13 (1984); Miltersen and Sorensen, "Computing a
quasi-perfect equilibrium of a two-player game", Economic Theory 42 (2010), for step 1.

Deviations: there, l is powers of a symbol, and steps 2 and 3 are not needed. Here, it is numbers that HiGHS
can tell from rounding, each entry's in proportion to the ways of playing on after it.

Cost: three programs of the size of the equilibrium's, two of them with twice its columns; up to four more
of the first kind where mistakes of mistakes are too rare for HiGHS.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from precomp_games._support.kernels import kernel
from precomp_games._support.results import Result
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy, adjusted

from ..preparation.decisions import Decisions
from ..programs import LinearProgramError, Program, unit
from .sequence_form_lp import EntryMatrices

# Shares of first mistakes and of later ones, tried in turn: the smaller, the nearer, but the harder to solve.
_TREMBLES = ((1e-3, 1e-3), (1e-3, 1e-2), (1e-3, 0.1), (1e-3, 0.3), (1e-2, 0.3))
_LEAST = 1e-11  # of l: beside less than that, HiGHS's tolerance is not small
_ENOUGH = 1e-7  # of the tree's scale: a greater regret against trembling hands, and HiGHS stopped too early
_HEAVIEST = 1e4  # the greatest w(I)
_NOTHING = 1e-13  # the probability of coming to where a plan never comes, but for rounding
_GIVEN_AWAY = 2e-13  # of the tree's scale: what rounding may take off what a plan guarantees
_FINER = (1.0, 2.0**17)  # times the payoffs' scale: HiGHS's tolerance may give more away than that

Profile = tuple[MetaStrategy, MetaStrategy]
"""Strategies of players 0 and 1."""


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement(Result):
    """What certifies that an equilibrium is sensible off the path as well.

    Attributes:
      gap: The most that another continuation gains at any information state of either player, in utility:
        given that play has come there, and against the other one's trembling strategy, which says as well
        what to believe there.
      trembling: Strategies of players 0 and 1 that play every action everywhere.
      distance: The greatest difference between the probabilities of an action in the equilibrium and in
        `trembling`. Equilibria whose gap and distance go to zero have a quasi-perfect limit.
    """

    gap: float
    trembling: Profile = dataclasses.field(repr=False)
    distance: float


def refined(tree: HistoryTree, strategies: Profile) -> tuple[Profile, Refinement]:
    """Strategies that guarantee what these do and are sensible off the path, and what certifies them.

    Args:
      tree: of a game alone.
      strategies: an exact equilibrium of it.

    Raises:
      LinearProgramError: HiGHS did not find what is best against trembling hands.
    """
    intended, trembling = _best_against_trembling(tree)
    first, second = (_nearest(tree, strategies[i], intended, trembling[i]) for i in (0, 1))
    return (first, second), certified(tree, (first, second), trembling)


def certified(tree: HistoryTree, strategies: Profile, trembling: Profile | None = None) -> Refinement:
    """What certifies strategies.

    Args:
      tree: of a game alone.
      strategies: on it.
      trembling: strategies that play every action. None: these, whose hands tremble alike everywhere.
    """
    if trembling is None:
        share, counts = _TREMBLES[0][0], np.diff(tree.first_entry)[tree.entry_infoset]
        trembling = _profile(tree, strategies[0].memorize + strategies[1].memorize + share / counts)
    gap = float(conditional_regrets(tree, strategies, trembling).max(initial=0.0))
    apart = [
        np.abs(s.memorize - t.memorize).max(initial=0.0) for s, t in zip(strategies, trembling, strict=True)
    ]
    return Refinement(gap, trembling, float(max(apart)))


def conditional_regrets(
    tree: HistoryTree, strategies: Profile, trembling: Profile
) -> npt.NDArray[np.float64]:
    """float64[m]: what a best continuation gains at each information state, given that play has come there.

    Args:
      tree: of a game alone.
      strategies: whose continuations are measured.
      trembling: what each plays as the other one's opponent, and what beliefs go by. 0 where it never comes.
    """
    regrets = np.zeros(tree.num_infosets)
    for i in (0, 1):
        against = Decisions.against(tree, i, trembling[1 - i], alone=True)
        gains, after = np.zeros(tree.num_infosets), against.after
        arrays = (tree.infoset_player, tree.first_entry, tree.previous, strategies[i].memorize)
        _compare(*arrays, i, after.copy(), after.copy(), gains)
        regrets += np.divide(gains, against.reach, out=np.zeros_like(gains), where=against.reach > 0.0)
    return regrets


@kernel
def _compare(
    owner: np.ndarray,
    first_entry: np.ndarray,
    previous: np.ndarray,
    memorize: np.ndarray,
    player: int,
    own: np.ndarray,
    best: np.ndarray,
    gains: np.ndarray,
) -> None:
    """Writes by how much best continuations are better; `own` and `best` begin as `Decisions.after`."""
    for k in range(len(owner) - 1, -1, -1):
        if owner[k] == player:
            mean, most = 0.0, -np.inf
            for e in range(first_entry[k], first_entry[k + 1]):
                mean += memorize[e] * own[e + 1]
                most = max(most, best[e + 1])
            gains[k] = most - mean
            own[previous[k] + 1] += mean
            best[previous[k] + 1] += most


# -- programs --------------------------------------------------------------------------------------


class _Plans(NamedTuple):
    """The game over realization plans, as one player sees it.

    own, others: int64, the player's entries and the other one's. mine, theirs: their treeplexes. payoff: the
    player's utility less `middle`, times `scale`, with a row for "nothing" and each of `own`, and columns of
    `others` likewise.
    """

    own: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    mine: EntryMatrices
    theirs: EntryMatrices
    payoff: scipy.sparse.csc_array
    scale: float
    middle: float

    @classmethod
    def of(cls, tree: HistoryTree, player: int) -> _Plans:
        entries = [np.flatnonzero(tree.entry_player == i) for i in (player, 1 - player)]
        leaves = np.flatnonzero(tree.num_children == 0)
        values = tree.value[leaves] if player == 0 else tree.utility_sum - tree.value[leaves]
        middle = 0.5 * float(values.min() + values.max())
        last = []
        for i, numbers in zip((player, 1 - player), entries, strict=True):
            column, edge = np.zeros(tree.num_entries + 1, np.int64), tree.own_edges[i][leaves]
            column[numbers] = np.arange(1, 1 + len(numbers))
            last.append(np.where(edge > 0, column[tree.edge_entry[edge]], 0))
        weight, shape = (
            tree.chance_reach[leaves] * (values - middle),
            [1 + len(numbers) for numbers in entries],
        )
        payoff = scipy.sparse.coo_array((weight, tuple(last)), shape=tuple(shape)).tocsc()
        scale = unit(one=np.abs(payoff.data).max(initial=0.0))
        mine, theirs = (EntryMatrices.of(tree, numbers) for numbers in entries)
        return cls(entries[0], entries[1], mine, theirs, payoff * scale, scale, middle)

    @property
    def rows(self) -> list[list[scipy.sparse.csr_array | None]]:
        """Blocks of t(J) <= g_f(x) + sum of t(J'), over the columns x and t, and of the own treeplex."""
        taken = [-self.payoff[1:, 1:].T, (self.theirs.members - self.theirs.after).T]
        return [taken, [self.mine.members - self.mine.after, None]]


def _begun(treeplex: EntryMatrices) -> npt.NDArray[np.float64]:
    """float64[k]: 1 where no entry comes before."""
    return (treeplex.previous < 0).astype(np.float64)


def _best_against_trembling(tree: HistoryTree) -> tuple[npt.NDArray[np.float64], Profile]:
    """What both have in mind, float64[E], and what their hands play; step 1 above."""
    found: list[tuple[float, npt.NDArray[np.float64], Profile]] = []
    for shares in _TREMBLES:
        least, last = np.zeros(tree.num_entries), shares == _TREMBLES[-1]
        _share_out(tree.first_entry, tree.previous, *shares, np.zeros(tree.num_entries), least)
        if least.min(initial=1.0) < _LEAST and not last:
            continue
        try:
            intended = _perturbed(tree, least)
        except LinearProgramError:
            if last and not found:
                raise
            continue
        trembling = np.zeros(tree.num_entries)
        _tremble(tree.first_entry, tree.previous, intended, least, np.zeros(tree.num_entries), trembling)
        profile = _profile(tree, trembling)
        regret = conditional_regrets(tree, _profile(tree, intended), profile).max(initial=0.0)
        found.append((float(regret), intended, profile))
        if regret <= _ENOUGH * tree.scale:
            break
    _, intended, profile = min(found, key=lambda each: each[0])
    return intended, profile


def _perturbed(tree: HistoryTree, least: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """float64[E]: b, where plans are at least `least`."""
    game = _Plans.of(tree, 0)
    own, others = least[game.own], least[game.others]
    inflow = [
        _begun(each) + (each.after - each.members) @ low
        for each, low in ((game.mine, own), (game.theirs, others))
    ]
    bound = game.payoff[[0], 1:].toarray().ravel() + game.payoff[1:, 1:].T @ own
    columns = len(own) + len(inflow[1])
    solution = Program(
        objective=np.concatenate([game.payoff[1:] @ np.append(1.0, others), inflow[1]]),
        matrix=scipy.sparse.block_array(game.rows, format="csr"),
        row_lower=np.concatenate([np.full(len(bound), -np.inf), inflow[0]]),
        row_upper=np.concatenate([bound, inflow[0]]),
        lower=np.concatenate([np.zeros(len(own)), np.full(len(inflow[1]), -np.inf)]),
        upper=np.full(columns, np.inf),
        least=1e-12,
    ).solve(crossover=True)
    flow = np.zeros(tree.num_entries)
    flow[game.own] = np.maximum(solution.x[: len(own)], 0.0)
    flow[game.others] = np.maximum(solution.duals[: len(others)], 0.0)
    return adjusted(tree, flow, 0) + adjusted(tree, flow, 1)


def _nearest(
    tree: HistoryTree, strategy: MetaStrategy, intended: npt.NDArray[np.float64], trembling: MetaStrategy
) -> MetaStrategy:
    """What guarantees as much as a strategy and is nearest to what its owner has in mind; steps 2 and 3."""
    player = strategy.player
    taken = Decisions.against(tree, 1 - player, strategy, alone=True).best().value
    game = _Plans.of(tree, player)
    come = np.append(trembling.plan(), 1.0)[game.mine.previous]
    weight = game.mine.members.T @ (1.0 / np.maximum(come, 1.0 / _HEAVIEST))
    for finer in _FINER:
        scaled = game._replace(payoff=game.payoff * finer, scale=game.scale * finer)
        guaranteed = scaled.scale * (tree.utility_sum - taken - game.middle)
        try:
            x = _nearest_plan(scaled, guaranteed, intended[game.own], weight)
        except LinearProgramError:
            continue
        plan = np.zeros(tree.num_entries)
        plan[game.own] = np.clip(x, 0.0, 1.0) + 0.0  # no -0.0
        nearest = _completed(strategy, plan, intended)
        worst = Decisions.against(tree, 1 - player, nearest, alone=True).best().value
        if worst - taken <= _GIVEN_AWAY * tree.scale:
            return nearest
    return _completed(strategy, strategy.plan(), intended)


def _nearest_plan(
    game: _Plans, guaranteed: float, wish: npt.NDArray[np.float64], weight: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """float64[own]: x of the program of step 2. wish, weight: float64[own], b and w."""
    own, first, begun = len(game.own), _begun(game.theirs), _begun(game.mine)
    # d(e) - x(e) + b(e) x(entry before) >= 0, with 1 in place of x where there is none.
    share = scipy.sparse.diags_array(wish) @ game.mine.members.T
    one = scipy.sparse.eye_array(own, format="csr")
    rows = [
        *([*row, None] for row in game.rows),
        [game.payoff[1:, [0]].T, first[np.newaxis], None],
        [share @ game.mine.after - one, None, one],
    ]
    bound = game.payoff[[0], 1:].toarray().ravel()
    floor = [guaranteed - game.payoff[0, 0]]
    solution = Program(
        objective=np.concatenate([np.zeros(own + len(first)), -weight]),
        matrix=scipy.sparse.block_array(rows, format="csr"),
        row_lower=np.concatenate([np.full(len(bound), -np.inf), begun, floor, -(share @ begun)]),
        row_upper=np.concatenate([bound, begun, np.full(1 + own, np.inf)]),
        lower=np.concatenate([np.zeros(own), np.full(len(first), -np.inf), np.zeros(own)]),
        upper=np.full(2 * own + len(first), np.inf),
        least=1e-12,
    ).solve(crossover=True)
    return solution.x[:own]


def _completed(
    strategy: MetaStrategy, plan: npt.NDArray[np.float64], intended: npt.NDArray[np.float64]
) -> MetaStrategy:
    """A plan of the owner of a strategy, and what it has in mind where the plan never comes."""
    tree = strategy.tree
    above = np.append(plan, 1.0)[tree.previous][tree.entry_infoset]
    memorize = np.divide(plan, above, out=intended.copy(), where=above > _NOTHING)
    return MetaStrategy(tree, strategy.player, adjusted(tree, memorize, strategy.player))


def _profile(tree: HistoryTree, memorize: npt.NDArray[np.float64]) -> Profile:
    """Strategies of both players, of numbers in proportion to their probabilities."""
    first, second = (MetaStrategy(tree, i, adjusted(tree, memorize, i)) for i in (0, 1))
    return first, second


@kernel
def _share_out(
    first_entry: np.ndarray,
    previous: np.ndarray,
    first: float,
    later: float,
    ways: np.ndarray,
    least: np.ndarray,
) -> None:
    """Writes l into `least`, and how many ways of playing on an entry has into `ways`; zeros before.

    The entries of I have a share of what comes before I, `first` of 1 or `later` of l, each by its ways.
    """
    for k in range(len(previous) - 1, -1, -1):
        total = 0.0
        for e in range(first_entry[k], first_entry[k + 1]):
            ways[e] = max(ways[e], 1.0)
            total += ways[e]
        if previous[k] >= 0:
            ways[previous[k]] = max(ways[previous[k]], total)
    for k in range(len(previous)):
        total = 0.0
        for e in range(first_entry[k], first_entry[k + 1]):
            total += ways[e]
        share = later * least[previous[k]] if previous[k] >= 0 else first
        for e in range(first_entry[k], first_entry[k + 1]):
            least[e] = share * ways[e] / total


@kernel
def _tremble(
    first_entry: np.ndarray,
    previous: np.ndarray,
    intended: np.ndarray,
    least: np.ndarray,
    plan: np.ndarray,
    trembling: np.ndarray,
) -> None:
    """Writes the plan l + z of what is intended into `plan`, and its probabilities into `trembling`."""
    for k in range(len(previous)):
        above = plan[previous[k]] if previous[k] >= 0 else 1.0
        free = above
        for e in range(first_entry[k], first_entry[k + 1]):
            free -= least[e]
        for e in range(first_entry[k], first_entry[k + 1]):
            plan[e] = least[e] + intended[e] * free
            trembling[e] = plan[e] / above
