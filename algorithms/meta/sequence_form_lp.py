"""The exact equilibrium of the meta-game, as a linear program over realization plans.

With x(I) the probability that player 0 memorizes I, and y(J) the same for player 1, the payoff is bilinear:
r_0(z) and r_1(z) are linear in x and y. So

    maximize    g_0(x) + sum over first J of t(J) - lambda_0 sum x
    subject to  t(J) <= 0
                t(J) <= g_J(x) + lambda_1 + sum over J' right after J of t(J')
                0 <= x(I) <= x(previous I) <= 1

where g(x) = G' x is the coefficient of y(J), and t(J) is what player 1 takes off by memorizing J or more. The
duals of the second line are player 1's realization plan.

Source: von Stengel's sequence form, for `precomputation` Definition 2.

Deviations: sequences are "memorized up to I"; the stops in between need no variables.

Cost: one entry for each pair of a leaf and an information state on its way, to set up; HiGHS to solve.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt
import scipy.sparse

from precomp_games.history_tree import HistoryTree
from precomp_games.meta_strategy import MetaStrategy, check_meta_tree
from precomp_games.tree_facts import edge_product

from ..programs import Program
from .equilibrium import MetaEquilibrium, measured

__all__ = ["meta_sequence_form_lp"]


def meta_sequence_form_lp(tree: HistoryTree) -> MetaEquilibrium:
    """Solves the meta-game of a tree exactly; `nash_conv` is measured by what knows nothing of the program.

    Raises:
      ValueError: not a tree of a meta-game.
      LinearProgramError: HiGHS did not find an optimum.
    """
    check_meta_tree(tree, "meta_sequence_form_lp()")
    own = [np.flatnonzero((tree.infoset_player == i) & np.isfinite(tree.penalties[i])) for i in (0, 1)]
    leaves = np.flatnonzero(tree.num_children == 0)
    plans = [_contributions(tree, i, own[i], leaves) for i in (0, 1)]
    weight = scipy.sparse.diags_array(tree.chance_reach[leaves] * tree.value[leaves])
    payoff = (plans[0].T @ weight @ plans[1]).tocsc()  # (1 + own 0) x (1 + own 1)
    m_0, m_1 = len(own[0]), len(own[1])
    column = [_index(own[i], tree.num_infosets) for i in (0, 1)]
    above = [_edges(tree.previous[own[i]], column[i]) for i in (0, 1)]

    # Variables: x, t. Maximized: payoff[1:, 0] x + t of the first J - lambda_0 x, plus payoff[0, 0].
    first = tree.previous[own[1]] < 0
    gain = payoff[1:, [0]].toarray().ravel() - (tree.penalties[0] if m_0 else 0.0)
    # t(J) - sum over J' after J of t(J') - (payoff[1:, J])' x <= payoff[0, J] + lambda_1.
    chain_1 = scipy.sparse.identity(m_1, format="csr") - above[1].T
    respond = scipy.sparse.hstack([-payoff[1:, 1:].T, chain_1])
    bound = payoff[[0], 1:].toarray().ravel() + (tree.penalties[1] if m_1 else 0.0)
    # x(I) - x(previous I) <= 0, where there is a previous one.
    has_previous = np.flatnonzero(tree.previous[own[0]] >= 0)
    chain_0 = (scipy.sparse.identity(m_0, format="csr") - above[0])[has_previous]
    closed = scipy.sparse.hstack([chain_0, scipy.sparse.csr_array((len(has_previous), m_1))])
    plan = np.zeros((2, tree.num_infosets))
    if m_0 + m_1:
        rows = m_1 + len(has_previous)
        solution = Program(
            objective=np.concatenate([gain, first.astype(float)]),
            matrix=scipy.sparse.vstack([respond, closed]),
            row_lower=np.full(rows, -np.inf),
            row_upper=np.concatenate([bound, np.zeros(len(has_previous))]),
            lower=np.concatenate([np.zeros(m_0), np.full(m_1, -np.inf)]),
            upper=np.concatenate([np.ones(m_0), np.zeros(m_1)]),
        ).solve("meta_sequence_form_lp()")
        plan[0, own[0]] = np.clip(solution.x[:m_0], 0.0, 1.0)
        plan[1, own[1]] = np.clip(solution.duals[:m_1], 0.0, 1.0)
    return measured((MetaStrategy.of_plan(tree, 0, plan[0]), MetaStrategy.of_plan(tree, 1, plan[1])))


def _contributions(
    tree: HistoryTree, player: int, own: npt.NDArray[np.int64], leaves: npt.NDArray[np.int64]
) -> scipy.sparse.csr_array:
    """The matrix B with r_i = B (1, x): a row per leaf, a column "nothing", then one per information state.

    A leaf reached by stopping at I_k counts x(I_k-1) - x(I_k) times sigma_pre up to I_k and sigma from there,
    and x(I_K) times sigma_pre throughout where I_K is the last.
    """
    if not len(own):
        never = edge_product(tree, np.where(tree.player[tree.parent] == player, tree.sigma, 1.0))
        return scipy.sparse.csr_array(never[leaves, np.newaxis])
    column = 1 + _index(own, tree.num_infosets)
    edge = tree.own_edges[player]
    last = np.where(edge > 0, column[tree.infoset[tree.parent[edge]]], 0)
    row, stop, coefficient = _stops(
        tree.parent,
        tree.player,
        tree.infoset,
        tree.sigma,
        tree.own_reaches[player],
        column,
        last,
        player,
        leaves,
    )
    matrix = scipy.sparse.coo_array((coefficient, (row, stop)), shape=(len(leaves), 1 + len(own)))
    return matrix.tocsr()  # which adds up what stands in one place


@numba.njit(cache=True)
def _stops(
    parent: np.ndarray,
    mover: np.ndarray,
    infoset: np.ndarray,
    sigma: np.ndarray,
    own_reach: np.ndarray,
    column: np.ndarray,
    last: np.ndarray,
    player: int,
    leaves: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row, column, coefficient) of each time at which the player may stop before a leaf, and of never.

    `last`: int64[n], the column of the player's last information state before h, 0 for none.
    """
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
                    rows.append(row)
                    columns.append(column[infoset[p]])
                    coefficients.append(-own_reach[p] * below)
            h = p
    return np.array(rows), np.array(columns), np.array(coefficients)


def _index(own: np.ndarray, count: int) -> npt.NDArray[np.int64]:
    """int64[m]: where an information state stands among `own`, -1 for others."""
    index = np.full(count, -1, np.int64)
    index[own] = np.arange(len(own))
    return index


def _edges(previous: np.ndarray, column: np.ndarray) -> scipy.sparse.csr_array:
    """Square matrix with a 1 at (I, previous I)."""
    rows = np.flatnonzero(previous >= 0)
    size = len(previous)
    ones = np.ones(len(rows))
    return scipy.sparse.csr_array((ones, (rows, column[previous[rows]])), shape=(size, size))
