"""What a memorization set is worth against each of several opponents of whom one is drawn for the game.

The set is fixed, and the drawn opponent plays as itself from the first move on:

    u_k = sum over h where play by the set ends of  pi_own(h) pi_chance(h) r_k(h) v_k(h),

with r_k(h) the product of component k's probabilities at the ancestors of h. So sum_k w_k u_k is the set's
utility against the mixture. The tree has what is needed (`HistoryTree.mixture`), and nobody is asked.

Source: docs/mixtures.md. Cost: a pass down the part of the tree that the set reaches (where stopping is not
evaluated on the spot, that is nearly all of it), with K multiplications and 8 K bytes for each of the
opponent's edges there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import public
from precomp_games._support.checks import ArgumentError
from precomp_games._support.kernels import kernel
from precomp_games.tree.facts import TreeArrays
from precomp_games.tree.mixture import TreeMixture

from .best_precomputation import BestPrecomputation


@public
def value_against_components(book: BestPrecomputation) -> npt.NDArray[np.float64]:
    """The utility of a memorization set against each component of the mixture that it was made for.

    Args:
      book: of `best_precomputation` on a tree whose opponent's sigma is a `MixturePolicy`, drawn once per
        game. The set is taken as it is, also where it was made against a strategy.

    Returns:
      float64[K], the player's base-game utility, without penalties. Its mean by the mixture's weights is
      `book.utility`.

    Raises:
      ValueError: `book` is no such result; files of trees do not hold the components.
    """
    tree, player = book.tree, book.player
    mixture = tree.mixture
    if mixture is None or mixture.player == player:
        raise ArgumentError(
            "expected a tree whose opponent is a MixturePolicy that is drawn once per game, got "
            f"{tree!r}; trees that were loaded from files know no components"
        )
    chosen = np.zeros(tree.num_entries, bool)
    chosen[book.memorization_set] = True
    memorized = np.zeros(tree.num_infosets, bool)
    memorized[tree.entry_infoset[book.memorization_set]] = True
    own, evaluates = np.zeros(tree.num_histories), tree.stop_value == "evaluate"
    total = np.zeros(mixture.num_components)
    edges = _reach(tree.arrays, tree.edge_entry, mixture, chosen, memorized, player, evaluates, own)
    rival, at = np.empty((edges + 1, len(total))), np.zeros(tree.num_histories, np.int32)
    _values(tree.arrays, mixture, memorized, player, evaluates, own, rival, at, total)
    return total if player == 0 else tree.utility_sum - total


@kernel
def _reach(
    tree: TreeArrays,
    edge_entry: np.ndarray,
    mixture: TreeMixture,
    chosen: np.ndarray,
    memorized: np.ndarray,
    player: int,
    evaluates: bool,
    own: np.ndarray,
) -> int:
    """Writes the reach by the player and chance alone into `own`; how many edges of the opponent's it has."""
    own[0], edges = 1.0, 0
    for h in range(1, len(tree.parent)):
        p = tree.parent[h]
        infoset = tree.infoset[p]
        if own[p] == 0.0:
            continue
        if mixture.edge_row[h] >= 0:
            own[h] = own[p]
            edges += 1
        elif tree.mover[p] != player:
            own[h] = own[p] * tree.sigma[h]
        elif infoset >= 0 and memorized[infoset]:
            own[h] = own[p] * tree.sigma_pre[h] if chosen[edge_entry[h]] else 0.0
        elif not evaluates:
            own[h] = own[p] * tree.sigma[h]
    return edges


@kernel
def _values(
    tree: TreeArrays,
    mixture: TreeMixture,
    memorized: np.ndarray,
    player: int,
    evaluates: bool,
    own: np.ndarray,
    rival: np.ndarray,
    at: np.ndarray,
    total: np.ndarray,
) -> None:
    """Adds up player 0's utility against each component in `total`.

    `rival` takes r_k after each of the opponent's edges, `at` which of its rows a history has.
    """
    rival[0, :], filled = 1.0, 1
    for h in range(len(tree.parent)):
        if own[h] == 0.0:
            continue
        if h > 0:
            at[h] = at[tree.parent[h]]
            edge = mixture.edge_row[h]
            if edge >= 0:
                for k in range(len(total)):
                    rival[filled, k] = rival[at[h], k] * mixture.sigma[edge, k]
                at[h] = filled
                filled += 1
        infoset = tree.infoset[h]
        stops = evaluates and tree.mover[h] == player and infoset >= 0 and not memorized[infoset]
        if tree.num_children[h] == 0 or stops:
            row = mixture.value_row[h]
            for k in range(len(total)):
                worth = mixture.value[row, k] if row >= 0 else tree.value[h]
                total[k] += own[h] * rival[at[h], k] * worth
