"""A book that answers wherever one of its positions comes up.

A memorization set is a set of histories (information states): off its lines, a player plays sigma to the end,
even if play comes back to a position that it knows. A file that looks positions up, such as a Polyglot book,
answers there too. That is another policy. It is not bounded by the best set: the game may come to a position
by a move of sigma's that no line has, and the answer is worth something there as well. Nor need it be better
than the set, since an answer that prepares a line may lose where what follows is not known.

Cost of the value: a walk through all positions that the policies can reach, as of exact leaf values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from precomp_games.checks import check_function, check_instance
from precomp_games.history_tree import HistoryTree
from precomp_games.leaf_values import as_leaf_values
from precomp_games.policies import PolicyLike, PrecomputationPolicy, check_policies

from .best_precomputation import BestPrecomputation

__all__ = ["every_visit_policy", "every_visit_utility"]


class _Lookup:
    """What is memorized, by position."""

    def __init__(self, rows: dict[Hashable, dict[int, float]], key: Callable[[Any], Hashable]) -> None:
        self._rows, self._key = rows, key

    def __call__(self, state: Any) -> dict[int, float] | None:
        return self._rows.get(self._key(state))


def every_visit_policy(
    book: BestPrecomputation,
    position_key: Callable[[Any], Hashable],
    *,
    sigma: PolicyLike | Sequence[PolicyLike | None] | None = None,
) -> PrecomputationPolicy:
    """The policy that plays a book's move wherever its position comes up, and sigma elsewhere.

    Args:
      book: of `best_precomputation`. Where it has several entries of one position, which a price per
        information state allows, the one that is reached most often is played.
      position_key: a function from a state to a key: which states are one position.
      sigma: what the players compute during play, one or a pair; by default what the tree was expanded with
        (a tree that was loaded from a file has none).

    Raises:
      ValueError: an argument is not as above.
    """
    return _policy(book, position_key, sigma, "every_visit_policy()")


def every_visit_utility(
    book: BestPrecomputation,
    position_key: Callable[[Any], Hashable],
    *,
    sigma: PolicyLike | Sequence[PolicyLike | None] | None = None,
    leaf_value: Any = "exact",
) -> float:
    """What a book is worth to its player when every visit to its positions is answered.

    Compare it with the book's `utility`, which is what its lines are worth, as far as the tree's values are
    those of play by sigma.

    Args:
      book: see `every_visit_policy`.
      position_key: see there. States of one level with equal keys must be the same for both players' sigma
        and for the game from there on.
      sigma: see there; both players' are needed.
      leaf_value: as of `HistoryTree.from_game`: "exact" looks at all of the game that can come up,
        `RolloutValues` plays games.

    Raises:
      ValueError: an argument is not as above.
    """
    caller = "every_visit_utility()"
    policy = _policy(book, position_key, sigma, caller)
    as_leaf_values(leaf_value, caller)
    play = book.tree.policies if sigma is None else check_policies(sigma, "sigma", caller)
    if None in play:
        raise ValueError(f"{caller}: expected the sigma of both players, got {play}")
    tree = HistoryTree.from_game(
        book.tree.game,
        sigma_pre=None,
        sigma=(policy, play[1]) if book.player == 0 else (play[0], policy),
        penalties=math.inf,
        leaf_value=leaf_value,
        position_key=position_key,
    )
    value = float(tree.value[0])
    return value if book.player == 0 else tree.utility_sum - value


def _policy(
    book: BestPrecomputation,
    position_key: Callable[[Any], Hashable],
    sigma: Any,
    caller: str,
) -> PrecomputationPolicy:
    """`every_visit_policy`, for a public function that errors name."""
    check_instance(book, BestPrecomputation, "book", caller)
    key = check_function(position_key, "position_key", caller)
    tree = book.tree
    play = tree.policies if sigma is None else check_policies(sigma, "sigma", caller)
    reached: dict[Hashable, dict[int, float]] = {}  # of each entry, by its number in the menu
    rows: dict[tuple[Hashable, int], dict[int, float]] = {}
    for entry, reach in zip(book.memorization_set.tolist(), book.reach.tolist(), strict=True):
        infoset = int(tree.entry_infoset[entry])
        position = key(tree.state(int(tree.infoset_history[infoset])))
        number = entry - int(tree.first_entry[infoset])
        sums = reached.setdefault(position, {})
        sums[number] = sums.get(number, 0.0) + reach
        rows.setdefault((position, number), tree.memorized_row(entry))
    best = {position: rows[position, max(sums, key=sums.__getitem__)] for position, sums in reached.items()}
    return PrecomputationPolicy(tree.game, book.player, _Lookup(best, key), play)
