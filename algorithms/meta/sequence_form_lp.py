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

import dataclasses

import numpy as np
import scipy.optimize
import scipy.sparse

from precomp_games.history_tree import HistoryTree

from .exploitability import measure
from .passes import TreePasses
from .strategies import MetaStrategy

__all__ = ["MetaLinearProgram", "meta_sequence_form_lp"]


@dataclasses.dataclass(frozen=True)
class MetaLinearProgram:
    """The solution.

    value: player 0's meta-game utility in equilibrium.
    strategies: an equilibrium.
    nash_conv: of these strategies, by best responses that know nothing of the program.
    """

    value: float
    strategies: tuple[MetaStrategy, MetaStrategy]
    nash_conv: float


def meta_sequence_form_lp(tree: HistoryTree) -> MetaLinearProgram:
    """Solves the meta-game of a tree exactly.

    Raises:
      ValueError: not a tree of a meta-game.
      RuntimeError: HiGHS did not find an optimum.
    """
    passes = TreePasses(tree, "meta_sequence_form_lp()")
    own = [np.flatnonzero((tree.infoset_player == i) & np.isfinite(tree.penalties[i])) for i in (0, 1)]
    leaves = np.flatnonzero(tree.num_children == 0)
    plans = [_contributions(passes, i, own[i], leaves) for i in (0, 1)]
    weight = scipy.sparse.diags_array(passes.players[0].value[leaves])
    payoff = (plans[0].T @ weight @ plans[1]).tocsc()  # (1 + own 0) x (1 + own 1)
    m_0, m_1 = len(own[0]), len(own[1])
    column = [_index(own[i], tree.num_infosets) for i in (0, 1)]
    above = [_edges(passes.players[i].previous[own[i]], column[i]) for i in (0, 1)]

    # Variables: x, t. Maximized: payoff[1:, 0] x + t of the first J - lambda_0 x, plus payoff[0, 0].
    first = passes.players[1].previous[own[1]] < 0
    gain = payoff[1:, [0]].toarray().ravel() - (tree.penalties[0] if m_0 else 0.0)
    objective = -np.concatenate([gain, first.astype(float)])
    # t(J) - sum over J' after J of t(J') - (payoff[1:, J])' x <= payoff[0, J] + lambda_1.
    chain_1 = scipy.sparse.identity(m_1, format="csr") - above[1].T
    respond = scipy.sparse.hstack([-payoff[1:, 1:].T, chain_1])
    bound = payoff[[0], 1:].toarray().ravel() + (tree.penalties[1] if m_1 else 0.0)
    # x(I) - x(previous I) <= 0, where there is a previous one.
    has_previous = np.flatnonzero(passes.players[0].previous[own[0]] >= 0)
    chain_0 = (scipy.sparse.identity(m_0, format="csr") - above[0])[has_previous]
    closed = scipy.sparse.hstack([chain_0, scipy.sparse.csr_array((len(has_previous), m_1))])
    if m_0 + m_1:
        result = scipy.optimize.linprog(
            objective,
            A_ub=scipy.sparse.vstack([respond, closed]).tocsr(),
            b_ub=np.concatenate([bound, np.zeros(len(has_previous))]),
            bounds=[(0.0, 1.0)] * m_0 + [(None, 0.0)] * m_1,
            method="highs",
        )
        if result.status != 0:
            raise RuntimeError(f"meta_sequence_form_lp(): HiGHS found no optimum: {result.message}")
        optimum, x, y = -result.fun, result.x[:m_0], -result.ineqlin.marginals[:m_1]
    else:
        optimum, x, y = 0.0, np.zeros(0), np.zeros(0)
    wholes = np.zeros((2, tree.num_infosets))
    wholes[0, own[0]], wholes[1, own[1]] = np.clip(x, 0.0, 1.0), np.clip(y, 0.0, 1.0)
    strategies = (
        MetaStrategy(tree, 0, passes.behavior(0, wholes[0])),
        MetaStrategy(tree, 1, passes.behavior(1, wholes[1])),
    )
    return MetaLinearProgram(
        value=float(optimum + payoff[0, 0]),
        strategies=strategies,
        nash_conv=measure(passes, (strategies[0].memorize, strategies[1].memorize)).nash_conv,
    )


def _contributions(
    passes: TreePasses, player: int, own: np.ndarray, leaves: np.ndarray
) -> scipy.sparse.csr_array:
    """The matrix B with r_i = B (1, x): a row a leaf, a column "nothing", then one an information state.

    A leaf reached by stopping after I_k counts x(I_k) - x(I_k+1) times sigma_pre up to I_k, sigma from there.
    """
    tree = passes.tree
    n = tree.num_histories
    column = _index(own, tree.num_infosets) + 1
    parent, mover = tree.parent, tree.player
    # Weights by column of what has stopped at h; what memorizes still stands apart, at column last[h].
    rows: list[dict[int, float]] = [{} for _ in range(n)]
    memorizing = np.ones(n)
    last = np.zeros(n, np.int64)
    for h in range(1, n):
        p = int(parent[h])
        if mover[p] != player:
            rows[h], memorizing[h], last[h] = rows[p], memorizing[p], last[p]
            continue
        terms = {k: w * tree.sigma[h] for k, w in rows[p].items()} if tree.sigma[h] > 0.0 else {}
        infoset = int(tree.infoset[p])
        stops = memorizing[p] * tree.sigma[h]
        if stops > 0.0:
            terms[int(last[p])] = terms.get(int(last[p]), 0.0) + stops
        if infoset >= 0 and column[infoset] > 0:
            here = int(column[infoset])
            if stops > 0.0:
                terms[here] = terms.get(here, 0.0) - stops
            memorizing[h], last[h] = memorizing[p] * tree.sigma_pre[h], here
        else:
            memorizing[h], last[h] = 0.0, last[p]
        rows[h] = terms
    data: list[float] = []
    where: list[int] = []
    starts = [0]
    for z in leaves.tolist():
        terms = dict(rows[z])
        if memorizing[z] > 0.0:
            terms[int(last[z])] = terms.get(int(last[z]), 0.0) + memorizing[z]
        where += terms.keys()
        data += terms.values()
        starts.append(len(data))
    return scipy.sparse.csr_array((data, where, starts), shape=(len(leaves), 1 + len(own)))


def _index(own: np.ndarray, count: int) -> np.ndarray:
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
