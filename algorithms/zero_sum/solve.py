"""Equilibria of any two-player zero-sum game, by the solvers of the meta-game, and best responses in it.

    result = solve("leduc_poker")                        # exact: value, NashConv, and a policy for OpenSpiel
    result = solve("oshi_zumo(horizon=4)", refine=True)  # of every proper subgame as well
    result = solve("leduc_poker", method="dcfr", target_nash_conv=1e-3)
    nash_conv("leduc_poker", policy)                     # as OpenSpiel's exploitability.nash_conv
    best_response(tree, policy, player=0).value

A player who chooses among all actions, each at no price, is a player of the game alone. So the solvers of the
meta-game are its solvers: the linear program over realization plans, and counterfactual regret minimization
in several variants (`CFR_VARIANTS`). Where information is perfect, the exact method is backward induction.

The exact method's program has one column for each action of player 0, one row for each of player 1's, and one
number for each pair of actions that some leaf comes right after. It is thin, and HiGHS goes through with
hundreds of thousands of rows: by the simplex method, or where that takes long by interior points and a
crossover. Beyond that, or where HiGHS fails, regret minimization takes over, and `method` of the result shows
so.

Whichever method it is, NashConv is measured by best responses in passes over the tree
(`preparation.decisions`), which know nothing of how strategies were found.

The policy of `nash_conv` and `best_response` is any that OpenSpiel's Python has (a table, a solver's average,
a bot's), one of its C++ policies, a function, or what answers batches, such as a neural network; it is asked
once about each information state. Whoever measures often expands the game once, `HistoryTree.of_game(game)`,
and gives the tree.

Source: von Stengel 1996; for the variants of regret minimization see `zero_sum.regret_minimization`.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Annotated

import numpy as np
import scipy
from open_spiel.python import policy as openspiel_policy

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.kernels import kernel
from precomp_games._support.results import Result
from precomp_games.tree.facts import CHANCE, TreeArrays
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy

from ..preparation.decisions import Decisions
from .double_oracle import MOST_OF_GAME
from .equilibrium import meta_equilibrium
from .exploitability import MetaExploitability, Solved, answered
from .refinement import Refinement, certified, profile_of, refined
from .regret_minimization import CFR_VARIANTS
from .tables import AnyGame, ConstantSumGame, Policies, strategy_by, table_of, tree_of

METHODS = ("exact", *CFR_VARIANTS)
"""Names of the methods that `solve` knows."""
_Method = Annotated[str, checks.one_of(METHODS)]

BACKWARD_INDUCTION = "backward induction"
"""The `Equilibrium.method` of games with perfect information."""
_PROGRAM = "linear program"
_EXACT = 1e-12  # of the range of utilities: the most NashConv of an exact equilibrium


@dataclasses.dataclass(frozen=True, eq=False)
class Equilibrium(Solved):
    """A strategy profile, its distance from equilibrium by best responses, and how it was computed.

    Attributes:
      tree: The game's.
      strategies: The strategies of players 0 and 1 on it.
      value: Player 0's expected utility.
      best_responses: The value of each player's best response, in its own utility.
      nash_conv: Both players' gains by best responses, added up; at least 0 but for rounding.
      method: The method that computed it: "linear program", "backward induction", or a variant of regret
        minimization.
      iterations: Iterations of regret minimization; 0 for exact methods.
      converged: Whether nash_conv is at most the target; of the exact method without one, at most 1e-12 of
        the range of utilities.
      seconds: The time that it took, without the expansion of the tree.
      trace: (iterations, nash_conv) each time it was measured.
      refinement: The certificate that it is one of every proper subgame, with refine=True; else None.
    """

    tree: HistoryTree
    strategies: tuple[MetaStrategy, MetaStrategy] = dataclasses.field(repr=False)
    value: float
    best_responses: tuple[float, float]
    nash_conv: float
    method: str
    iterations: int
    converged: bool
    seconds: float
    trace: tuple[tuple[int, float], ...] = dataclasses.field(repr=False)
    refinement: Refinement | None = dataclasses.field(default=None, repr=False)

    def __repr__(self) -> str:
        """Return one line: game, value, NashConv, and how it was found."""
        value, nash_conv = round(self.value, 12) + 0.0, max(self.nash_conv, 0.0)  # no -1e-17
        return (
            f"Equilibrium({self.tree.game_string}, value={value:.10g}, nash_conv={nash_conv:.2g}, "
            f"method={self.method!r}, iterations={self.iterations}, seconds={self.seconds:.3g})"
        )

    def policy(self) -> openspiel_policy.TabularPolicy:
        """Return both players' strategies for OpenSpiel.

        Where a player's own play never comes, all its actions are alike. Backward induction plays what is
        best there too, and refine=True an equilibrium of each proper subgame.
        """
        return table_of(self.tree, self.strategies)

    @public
    def realization_plan(self, player: checks.Player) -> scipy.sparse.coo_array:
        """Return a player's realization plan: sparse, 1 x E over the tree's entries, 0 at the other's.

        Entry e is action `tree.entry_action[e]` at information state `tree.entry_infoset[e]`.
        """
        return scipy.sparse.coo_array(self.strategies[player].realization_plan()[np.newaxis])


@public
def solve(
    game: ConstantSumGame,
    *,
    method: _Method = "exact",
    refine: bool = False,
    iterations: checks.PositiveInt | None = None,
    target_nash_conv: checks.NonNegativeFloat | None = None,
    seconds: checks.Seconds | None = None,
    check_every: checks.PositiveInt = 50,
) -> Equilibrium:
    """Compute an equilibrium of a two-player zero-sum (or constant-sum) game with perfect recall.

    Args:
      game: its name, as `pyspiel.load_game` takes it; an .efg file's path; the game; or its tree,
        `HistoryTree.of_game(game)`, which saves expanding it again. Games in which players move at once are
        solved as OpenSpiel's `turn_based_simultaneous_game` of them.
      method: "exact", or a variant of regret minimization: one of `METHODS`.
      refine: whether it is to be an equilibrium of every proper subgame, also of those to which play does not
        come: see `zero_sum.refinement`. `refinement` of the result certifies it. Of method="exact" only.
      iterations: of regret minimization; see `meta_equilibrium`, as for the next ones.
      target_nash_conv: stop as soon as NashConv is at most this.
      seconds: stop regret minimization at the first measurement after so many.
      check_every: the iterations between measurements.

    Raises:
      ValueError: an argument or the game is not as above; with refine=True, also a game whose linear program
        is too large or too hard for HiGHS.
    """
    if refine and method != "exact":
        raise ArgumentError(f'expected method="exact" with refine=True, got {method!r}')
    if method == "exact":
        for name, value in (("iterations", iterations), ("seconds", seconds)):
            if value is not None:
                raise ArgumentError(f'expected no {name} with method="exact", got {value!r}')
    tree = tree_of(game)
    if refine and tree.infoset_keys is not None and tree.num_entries > MOST_OF_GAME:
        raise ArgumentError(
            f"expected a game of at most {MOST_OF_GAME} actions with refine=True, got {tree.num_entries}"
        )
    started = time.perf_counter()
    exact, perfect = method == "exact", tree.infoset_keys is None
    name, done = BACKWARD_INDUCTION if perfect else _PROGRAM, 0
    trace: tuple[tuple[int, float], ...] = ()
    profile: MetaExploitability
    if exact and (refine or perfect):
        strategies = backward_induction(tree) if perfect else refined(tree)
        profile = answered(tree, strategies)[0]
    else:
        profile = result = meta_equilibrium(
            tree,
            solver="double_oracle" if exact else "regret_minimization",
            variant=None if exact else method,
            iterations=iterations,
            target_nash_conv=target_nash_conv,
            check_every=check_every,
            seconds=seconds,
        )
        strategies = result.strategies
        if result.solver != "double_oracle":
            name, done, trace = result.solver, result.iterations, result.trace
    target = _EXACT * tree.utility_range if exact and target_nash_conv is None else target_nash_conv
    return Equilibrium(
        tree=tree,
        strategies=strategies,
        value=profile.utility,
        best_responses=profile.best_responses,
        nash_conv=profile.nash_conv,
        converged=target is None or profile.nash_conv <= target,
        method=name,
        iterations=done,
        trace=trace,
        refinement=certified(tree, strategies) if refine else None,
        seconds=time.perf_counter() - started,
    )


def backward_induction(tree: HistoryTree) -> tuple[MetaStrategy, MetaStrategy]:
    """Return a subgame-perfect equilibrium of a game of perfect information; of ties, the first action.

    Args:
      tree: of the game alone.
    """
    best = np.zeros(tree.num_histories, np.int64)
    _induce(tree.arrays, best)
    memorize = np.zeros(tree.num_entries)
    memorize[tree.edge_entry[best[tree.infoset >= 0]]] = 1.0
    return profile_of(tree, memorize)


@kernel
def _induce(tree: TreeArrays, best: np.ndarray) -> None:
    """Write the best child of each history at which a player moves."""
    parent, num_children, mover, _, sigma, _, value, _, _ = tree
    worth = np.zeros(len(parent))
    for h in range(len(parent) - 1, -1, -1):
        if num_children[h] == 0:
            worth[h] = value[h]
        if h == 0:
            continue
        p = parent[h]
        if mover[p] == CHANCE:
            worth[p] += sigma[h] * worth[h]
        elif best[p] == 0 or (worth[h] >= worth[p] if mover[p] == 0 else worth[h] <= worth[p]):
            best[p], worth[p] = h, worth[h]


@dataclasses.dataclass(frozen=True, eq=False)
class BestResponse(Result):
    """A best response.

    Attributes:
      player: The player who responds.
      value: Its utility, the player's own.
      strategies: Those of players 0 and 1: the response, and what it responds to. Of actions that are alike
        it chooses the first.
      tree: The game's.
    """

    player: int
    value: float
    strategies: tuple[MetaStrategy, MetaStrategy] = dataclasses.field(repr=False)
    tree: HistoryTree

    def policy(self) -> openspiel_policy.TabularPolicy:
        """Return the response, and what it responds to, as one policy of both players for OpenSpiel."""
        return table_of(self.tree, self.strategies)


@public
def best_response(game: AnyGame, policy: Policies, player: checks.Player) -> BestResponse:
    """Return a player's best response to the other's policy.

    Args:
      game: as for `solve`, of any sum.
      policy: of both players, or a pair; the player's own is not asked.
      player: 0 or 1.

    Raises:
      ValueError: an answer is no distribution over legal actions.
    """
    tree = tree_of(game)
    other = strategy_by(tree, policy[1 - player], 1 - player)
    best = Decisions.against(tree, player, other, alone=True).best()
    own = MetaStrategy(tree, player, np.where(tree.entry_player == player, best.memorize, 0.0))
    return BestResponse(player, best.value, (own, other) if player == 0 else (other, own), tree)


@public
def nash_conv(game: AnyGame, policy: Policies) -> float:
    """Return both players' gains by best responses to a policy, added up; twice its exploitability.

    Args:
      game: as for `solve`, of any sum.
      policy: of both players, or a pair.

    Raises:
      ValueError: an answer is no distribution over legal actions.
    """
    tree = tree_of(game)
    strategies = [strategy_by(tree, each, i) for i, each in enumerate(policy)]
    decisions = [Decisions.against(tree, i, strategies[1 - i], alone=True) for i in (0, 1)]
    best = sum(each.best().value for each in decisions)
    if tree.of_constant_sum:
        return best - tree.utility_sum
    return best - sum(each.value(own.memorize).value for each, own in zip(decisions, strategies, strict=True))
