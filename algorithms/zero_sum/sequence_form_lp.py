"""The exact equilibrium of the meta-game, as a linear program over realization plans.

With x(e) the probability that player 0 memorizes entry e of a menu, and y(f) the same for player 1, the
payoff is bilinear: r_0(z) and r_1(z) are linear in x and y. So

    maximize    g_0(x) + sum over first J of t(J) - lambda_0 sum w(I) x
    subject to  t(J) <= 0
                t(J) <= g_f(x) + w(J) lambda_1 + sum over J' right after f of t(J')      for each entry f of J
                sum of x(e) over the entries e of I <= x(entry before I), or 1
                0 <= x(e) <= 1

where w(I) is how many penalties I costs, mostly 1, g(x) = G' x is the coefficient of y(f), and t(J) is what
player 1 takes off by memorizing J or more. The duals of the second line are player 1's realization plan.

In a base game alone nobody can stop: sums of entries are what comes before and no less, t(J) has either
sign, and a leaf's payoff depends on each player's last entry alone.

A player who prepares in a share of the games only, and otherwise memorizes nothing, has that share in place
of the 1 in which its plan begins: of player 0 as a bound, of player 1 as what the first t(J) count.

Source: von Stengel's sequence form, for `precomputation` Definition 2.

Deviations: sequences are "memorized up to e"; the stops in between need no variables.

Cost: a number for each pair of a leaf and an entry on the path to it, to set up; HiGHS to solve.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy  # which imports `sparse` when that is used: a third of a second

from precomp_games._support.checks import public
from precomp_games._support.kernels import kernel
from precomp_games.tree.facts import TreeArrays, edge_product
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy

from ..programs import AT_LOWER, AT_UPPER, BASIC, Program, unit
from .exploitability import MetaEquilibrium, MetaTree, measured

_LEAST, _LEAST_OF_GAME = 1e-9, 1e-12  # of coefficients; HiGHS leaves out what is smaller
_DEAREST = 4.0  # times the tree's scale: what costs more than that is not memorized either


class PlanBasis(NamedTuple):
    """A basis of the simplex method on a tree, by HiGHS's numbers: see `algorithms.programs`.

    Attributes:
      entries: int8[E]. Of player 0's entries x(e), of player 1's their constraint.
      infosets: int8[m]. Of player 0's the constraint on the sum of their entries, of player 1's t(J).
    """

    entries: npt.NDArray[np.int8]
    infosets: npt.NDArray[np.int8]

    @classmethod
    def of_sets(cls, tree: HistoryTree, members: npt.NDArray[np.bool_]) -> PlanBasis:
        """Return the basis at which each player memorizes a set. members: bool[E], the entries in them.

        Then each x(e) in the set is as large as what bounds it, the sum of its menu or 1, and player 1's
        constraints hold as equations in its set, which say what t(J) is there.
        """
        first, met = tree.entry_player == 0, np.zeros(tree.num_infosets, bool)
        met[tree.entry_infoset[members]] = True
        summed = (tree.previous >= 0) | (np.diff(tree.first_entry) > 1)
        inside = np.where(first & summed[tree.entry_infoset], BASIC, AT_UPPER)
        entries = np.where(members, inside, np.where(first, AT_LOWER, BASIC))
        infosets = np.where(met == (tree.infoset_player == 0), AT_UPPER, BASIC)
        return cls(entries.astype(np.int8), infosets.astype(np.int8))


@public
def meta_sequence_form_lp(tree: MetaTree) -> MetaEquilibrium:
    """Solve the meta-game of a tree exactly; `nash_conv` is measured by what knows nothing of the program.

    Raises:
      ValueError: not a tree of a meta-game.
      LinearProgramError: HiGHS did not find an optimum.
    """
    return measured(tree, strategies_of(tree, equilibrium_plans(tree)[0]))


def strategies_of(tree: HistoryTree, plan: npt.NDArray[np.float64]) -> tuple[MetaStrategy, MetaStrategy]:
    """Return both players' strategies, of their plans in one array."""
    first, second = (np.where(tree.entry_player == i, plan, 0.0) for i in (0, 1))
    return MetaStrategy.of_plan(tree, 0, first), MetaStrategy.of_plan(tree, 1, second)


def equilibrium_plans(
    tree: HistoryTree,
    basis: PlanBasis | None = None,
    shares: tuple[float, float] = (1.0, 1.0),
) -> tuple[npt.NDArray[np.float64], PlanBasis]:
    """Solve the program of a tree.

    Args:
      tree: of a meta-game.
      basis: where to begin. None: HiGHS's presolve decides.
      shares: the most probability with which each player memorizes anything.

    Returns:
      float64[E], both players' realization plans, each at its own entries; where the simplex method ended.

    Raises:
      LinearProgramError: HiGHS did not find an optimum.
    """
    own = [np.flatnonzero((tree.entry_player == i) & np.isfinite(tree.penalties[i])) for i in (0, 1)]
    leaves = np.flatnonzero(tree.num_children == 0)
    plans = [contributions(tree, i, own[i], leaves) for i in (0, 1)]
    values = tree.value[leaves]
    # Whatever is memorized, some leaf is reached: a constant that is taken off all of them changes no plan.
    worth = values - (0.5 * values.min() + 0.5 * values.max())
    weight = scipy.sparse.diags_array(tree.chance_reach[leaves] * worth)
    payoff = (plans[0].T @ weight @ plans[1]).tocsc()  # (1 + own 0) x (1 + own 1)
    # Where nothing has a price, coefficients above the plans' own 1 only make the simplex method stall.
    scale = unit(tree.scale) if tree.may_stop else unit(one=np.abs(payoff.data).max(initial=0.0))
    payoff *= scale
    price = scale * np.minimum(tree.infoset_penalty, _DEAREST * tree.scale)
    prices = [price[tree.entry_infoset[entries]] for entries in own]
    m_0, m_1 = len(own[0]), len(own[1])
    treeplexes = [EntryMatrices.of(tree, entries) for entries in own]

    # Variables: x, t. Maximized: payoff[1:, 0] x + t of the first J - lambda_0 x, plus payoff[0, 0].
    first = shares[1] * (treeplexes[1].previous < 0)
    gain = payoff[1:, [0]].toarray().ravel() - prices[0]
    # t(J) - sum over J' after f of t(J') - (payoff[1:, f])' x <= payoff[0, f] + w(J) lambda_1.
    after = (treeplexes[1].members - treeplexes[1].after).T
    bound = payoff[[0], 1:].toarray().ravel() + prices[1]
    # sum of x(e) - x(entry before) <= 0, or player 0's share where there is none; a single x(e) has a bound.
    several = treeplexes[0].members.sum(axis=1) > 1
    chained = np.flatnonzero((treeplexes[0].previous >= 0) | several | (not tree.may_stop))
    chain = (treeplexes[0].members - treeplexes[0].after)[chained]
    begun = shares[0] * (treeplexes[0].previous[chained] < 0)
    upper = np.concatenate([bound, begun])
    lower, most_taken = np.full(len(upper), -np.inf), 0.0
    if not tree.may_stop:
        lower[len(bound) :], most_taken = begun, np.inf
    plan = np.zeros(tree.num_entries)
    ended = PlanBasis.of_sets(tree, plan > 0.0)
    if m_0 + m_1:
        # What a basis has for columns and for rows: entries, then information states.
        places = ((own[0], treeplexes[1].infosets), (own[1], treeplexes[0].infosets[chained]))
        begun_at = None
        if basis is not None:
            columns, rows = (np.concatenate([basis.entries[e], basis.infosets[k]]) for e, k in places)
            begun_at = columns, rows
        solution = Program(
            objective=np.concatenate([gain, first]),
            matrix=scipy.sparse.block_array([[-payoff[1:, 1:].T, after], [chain, None]], format="csr"),
            row_lower=lower,
            row_upper=upper,
            lower=np.repeat([0.0, -np.inf], [m_0, len(first)]),
            upper=np.repeat([shares[0], most_taken], [m_0, len(first)]),
            least=_LEAST if tree.may_stop else _LEAST_OF_GAME,
        ).solve(basis=begun_at, crossover=not tree.may_stop)
        plan[own[0]] = np.clip(solution.x[:m_0], 0.0, shares[0])
        plan[own[1]] = np.clip(solution.duals[:m_1], 0.0, shares[1])
        for (e, k), statuses in zip(places, solution.basis, strict=True):
            ended.entries[e], ended.infosets[k] = np.split(statuses, [len(e)])
    return plan, ended


class EntryMatrices(NamedTuple):
    """A player's treeplex: its k information states and c entries, numbered as they come.

    infosets: int[k], the tree's. previous: int[k], the tree's entry before, -1 for none. members: k x c, 1
    where the entry is one of the state's. after: the same, 1 where it is the one before it.
    """

    infosets: npt.NDArray[np.int32]
    previous: npt.NDArray[np.int32]
    members: scipy.sparse.csr_array
    after: scipy.sparse.csr_array

    @classmethod
    def of(cls, tree: HistoryTree, entries: npt.NDArray[np.int64]) -> EntryMatrices:
        """Build the matrices of a player's entries, increasing."""
        infosets, row = np.unique(tree.entry_infoset[entries], return_inverse=True)
        previous = tree.previous[infosets]
        shape, column = (len(infosets), len(entries)), _index(entries, tree.num_entries)
        later = np.flatnonzero(previous >= 0)
        return cls(
            infosets,
            previous,
            scipy.sparse.csr_array((np.ones(len(entries)), (row, np.arange(len(entries)))), shape=shape),
            scipy.sparse.csr_array((np.ones(len(later)), (later, column[previous[later]])), shape=shape),
        )


def contributions(
    tree: HistoryTree, player: int, own: npt.NDArray[np.int64], leaves: npt.NDArray[np.int64]
) -> scipy.sparse.csr_array:
    """Return the matrix B with r_i = B (1, x): a row per leaf, a column "nothing", then one per entry.

    Let I_1, ..., I_K be the player's information states on the path to a leaf, and e_k the entry of I_k that
    leads on. With probability x(e_k-1) less the sum of x over all entries of I_k, the player stops at I_k: it
    plays sigma_pre up to there, and sigma from there on. With probability x(e_K) it never stops, and plays
    sigma_pre throughout.
    """
    if not len(own):
        never = edge_product(tree, np.where(tree.player[tree.parent] == player, tree.sigma, 1.0))
        return scipy.sparse.csr_array(never[leaves, np.newaxis])
    column = 1 + _index(own, tree.num_entries)
    edge = tree.own_edges[player]
    last = np.where(edge > 0, column[tree.edge_entry[edge]], 0)
    if not tree.may_stop:
        matrix = (tree.own_reaches[player][leaves], (np.arange(len(leaves)), last[leaves]))
        return scipy.sparse.csr_array(matrix, shape=(len(leaves), 1 + len(own)))
    row, stop, coefficient = _stops(tree.arrays, tree.own_reaches[player], column, last, player, leaves)
    matrix = scipy.sparse.coo_array((coefficient, (row, stop)), shape=(len(leaves), 1 + len(own)))
    return matrix.tocsr()  # which adds up what stands in one place


@kernel
def _stops(
    tree: TreeArrays,
    own_reach: np.ndarray,
    column: np.ndarray,
    last: np.ndarray,
    player: int,
    leaves: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (row, column, coefficient) of each chance of the player to stop before a leaf, and of never.

    own_reach: float64[n], the product of the player's sigma_pre. column: int64[E], where each of its entries
    stands in the matrix. last: int64[n], the column of its last entry before h, 0 for none.
    """
    parent, mover, infoset = tree.parent, tree.mover, tree.infoset
    sigma, first_entry = tree.sigma, tree.first_entry
    rows, columns, coefficients = [0][:0], [0][:0], [0.0][:0]
    for row, leaf in enumerate(leaves):
        rows.append(row)
        columns.append(last[leaf])
        coefficients.append(own_reach[leaf])
        h, below = leaf, 1.0  # the product of sigma from h on
        while h > 0 and below > 0.0:
            p = parent[h]
            if mover[p] == player:
                below *= sigma[h]
                rows.append(row)
                columns.append(last[p])
                coefficients.append(own_reach[p] * below)
                if infoset[p] >= 0:
                    for e in range(first_entry[infoset[p]], first_entry[infoset[p] + 1]):
                        rows.append(row)
                        columns.append(column[e])
                        coefficients.append(-own_reach[p] * below)
            h = p
    return np.array(rows), np.array(columns), np.array(coefficients)


def _index(own: np.ndarray, count: int) -> npt.NDArray[np.int64]:
    """Return int64[count]: where an entry stands among `own`, -1 for others."""
    index = np.full(count, -1, np.int64)
    index[own] = np.arange(len(own))
    return index
