"""What memorization sets are worth against each of several opponents of whom one is drawn for the game.

The drawn opponent plays as itself from the first move on, so that it is an opponent like any other: the tree
has what component k plays and what leaves are worth against it (`HistoryTree.mixture`), nobody is asked, and
`Decisions` sums up the tree for it. A set S is worth

    u_k(S) = u_k(no set) + sum over entries e of S of g_k(e),

so K utilities and K gains for each entry are all that there is to know, for mixtures in any shares q as well:
their gains are sum_k q_k g_k(e). These gains are the same decision problem as stop(I) and after(e), where
stopping is worth 0 and after(e) is g(e): memorize(e) - stop(I) is what it was. Algorithm 1 and all that
belongs to it take that as any other problem.

Source: docs/mixtures.md. Cost: for each component, what `Decisions` costs. Gains take 8 K bytes for each
entry, and 8 K for each history at which the tree keeps the player from memorizing further.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import public
from precomp_games._support.checks import ArgumentError
from precomp_games.tree.facts import TERMINAL
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.mixture import TreeMixture

from .best_precomputation import BestPrecomputation
from .decisions import Decisions


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
    memorize = np.zeros(tree.num_entries)
    memorize[book.memorization_set] = 1.0
    components = range(mixture_against(tree, player).num_components)
    return np.array(
        [Decisions.against(tree, player, component=k).value(memorize, 0.0).value for k in components]
    )


def mixture_against(tree: HistoryTree, player: int) -> TreeMixture:
    """The mixture that a player's opponent is.

    Raises:
      ValueError: it is none.
    """
    if tree.mixture is None or tree.mixture.player == player:
        raise ArgumentError(
            "expected a tree whose opponent is a MixturePolicy that is drawn once per game, got "
            f"{tree!r} and player {player}; trees that were loaded from files know no components"
        )
    return tree.mixture


@dataclasses.dataclass(frozen=True, eq=False)
class ComponentDecisions:
    """A player's decisions against K opponents; utilities are the player's.

    Attributes:
      mixture: The decisions against the mixture, with nothing known.
      keep: What is known already, see `best_precomputation`; None: nothing.
      alone: float64[K], u_k of no set.
      gain: float64[E, K], g_k(e).
      cut: float64[c, K], the probability of coming, by sigma_pre and against each, to the c places at which
        the tree keeps the player from memorizing further (`Decisions.cut_reach`).
    """

    mixture: Decisions
    keep: npt.ArrayLike | None
    alone: npt.NDArray[np.float64]
    gain: npt.NDArray[np.float64]
    cut: npt.NDArray[np.float64]

    @classmethod
    def of(cls, mixture: Decisions, keep: npt.ArrayLike | None) -> ComponentDecisions:
        """Sums up the tree of a mixture for each component.

        Raises:
          ValueError: the opponent is no mixture.
        """
        tree, player = mixture.tree, mixture.player
        count = mixture_against(tree, player).num_components
        own = tree.player == player
        stopped = np.where(own, tree.infoset < 0, (tree.num_children == 0) & (tree.player != TERMINAL))
        histories, menus = np.flatnonzero(stopped), np.zeros(0, np.int64)
        if len(tree.cut_menus):
            menus = np.flatnonzero(tree.cut_menus & (tree.infoset_player == player))
        alone, gain = np.zeros(count), np.zeros((tree.num_entries, count))
        cut = np.zeros((len(histories) + len(menus), count))
        for k in range(count):
            decisions = Decisions.against(tree, player, component=k)
            gain[:, k], alone[k] = decisions.gains()
            cut[: len(histories), k] = decisions.history_reach[histories]
            cut[len(histories) :, k] = decisions.reach[menus]
        return cls(mixture, keep, alone, gain, cut)

    def mixed(self, weights: npt.NDArray[np.float64]) -> Decisions:
        """The decisions against the mixture in other shares, float64[K]; its reaches are those of the old."""
        whole = dataclasses.replace(
            self.mixture,
            stop=np.zeros(self.mixture.forest.num_infosets),
            after=np.append(self.alone @ weights, self.gain @ weights),
        )
        return whole if self.keep is None else whole.without(self.keep)

    def utilities(self, members: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """float64[K], u_k of a set of entries."""
        return np.asarray(self.alone + self.gain[members].sum(axis=0))

    def truncation_loss(self, weights: npt.NDArray[np.float64], budget: int | None) -> float:
        """How much more a set of the whole game can be worth against the mixture in these shares, float64[K].

        What is memorized beyond a place that was cut gains at most its reach times the range of utilities.
        With perfect information it takes at least one information state more, which has a price.
        """
        tree = self.mixture.tree
        losses = tree.utility_range * (self.cut @ weights)
        if tree.infoset_keys is None and self.mixture.shared is None and not len(tree.weight):
            if budget is None:
                losses = np.maximum(losses - tree.penalties[self.mixture.player], 0.0)
            else:
                losses = np.sort(losses)[max(len(losses) - budget, 0) :]
        return float(losses.sum())
