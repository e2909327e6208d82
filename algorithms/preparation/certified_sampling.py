"""Algorithm 1 by roll-outs with a certificate: an interval around the optimum, narrowed where it matters.

What is sampled. Both players' sigma play games on from where the player may stop: at a node, or behind an
opened node where nothing can be memorized any more, which is one place for all of its histories ("rest").
For a memorization set S with its places P(S), their reaches pi and the means mu of games from there,

    u(S) = known(S) + sum over p in P(S) of pi(p) mu(p).

One round. Fix, from what earlier rounds have seen: n(p) games per place, a number eta, and for each node the
odds of stopping and of memorizing there; prior(S) is the product of the odds along S, and priors add up to at
most 1. Play the games afresh; m(p) are their means, R the range of utilities. Hoeffding's lemma and Markov's
inequality on the sum over S of prior(S) exp(eta (u(S) - m(S)) - eta^2 R^2 / 8 sum of pi^2 / n) give, with
probability 1 - delta' and for all S at once,

    u(S) <= known(S) + sum over P(S) of (pi m + eta R^2 pi^2 / (8 n)) + (log 1/prior(S) + log 1/delta') / eta,

and the same downwards. Every term is a sum over the nodes of S, so the set that is best by the upper bound,
or by the lower one, comes from the recursion of Algorithm 1. Errors of places add up as variances do, not as
intervals do: the number of games grows with how many decisions are in doubt, not with how many histories
there are. What lies below a node that is not open is worth at most pi u_max.

Valid at all times. Round k has delta_k = delta / (k (k + 1)), half of it for either direction; so with
probability 1 - delta the intervals of all rounds hold, and with them their intersection, whenever one looks.

Adaptive. Places of the set that looks best get games in proportion to their reach, others as many as it takes
to see that they are not worth it. Nodes are opened where memorizing could still pay. A place is tried with a
few games when it is found; these only steer, and no interval is made of them.

Source: `precomputation`, Algorithm 1 and Theorem 3, whose K = 16 log(|W| / delta) / epsilon^2 games at each
of |W| histories this replaces. Priors over what is compared: PAC-Bayes bounds (McAllester 1999).

Cost: games, each of at most L calls to a policy; a state's row is asked for once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pyspiel

from precomp_games.checks import check_function, check_integer, check_number
from precomp_games.policies import PolicyLike, as_batch_policies, as_batch_policy
from precomp_games.rollouts import Rollouts

from .partial_tree import (
    CertifiedPrecomputation,
    Node,
    PartialTree,
    PreparationProblem,
)

__all__ = ["certified_precomputation"]

Progress = Callable[[int, float, float], Any]
"""Called with (games played so far, lower, upper) after each round; False stops."""

_TRIAL = 4  # games from a place that is new
_GROWTH = 2.5  # of the number of games from round to round, at most
_LEAST = 64  # games of the first round
_LEAST_REACH = 0.05  # of all places of a set, for how many games a round takes
_MOST_DOUBT = 25.0  # log(1 / prior) of an option that looks hopeless


def certified_precomputation(
    game: pyspiel.Game,
    sigma_pre: PolicyLike,
    sigma: Any,
    penalty: float,
    player: int,
    *,
    epsilon: float = 0.05,
    delta: float = 0.05,
    max_rollouts: int | None = None,
    position_key: Callable[[Any], Hashable] | None = None,
    min_probability: float = 1e-12,
    seed: int = 0,
    progress: Progress | None = None,
) -> CertifiedPrecomputation:
    """Prepares `player` against a fixed opponent, by roll-outs, until the value is known to within epsilon.

    With probability 1 - delta, at every call of `progress` and in the end: the result's set is worth at least
    `lower`, and no set is worth more than `upper`.

    Args:
      game: two players, zero or constant sum, perfect information.
      sigma_pre: what the player can memorize; one policy, or a pair.
      sigma: what is computed during play, and what roll-outs are played with; one policy, or a pair.
      penalty: lambda.
      player: 0 or 1.
      epsilon: stop when upper - lower is at most this, in utility.
      delta: the probability with which the interval may be wrong.
      max_rollouts: begin no round that would go beyond so many games, and return the interval that has been
        reached by then. Where this is less than some ten games per node, trials alone may take more.
      position_key: a function from a state to a key; states of one level with equal keys have the same
        policies, in all that may follow too.
      min_probability: probabilities below this are set to zero and the rest renormalized.
      seed: the seed of all games.
      progress: called with (games so far, lower, upper) after each round; the work ends
        if it returns False.

    Raises:
      ValueError: an argument or a policy's answer is not as above.
    """
    caller = "certified_precomputation()"
    problem = PreparationProblem.checked(
        caller, game, sigma_pre, sigma, penalty, player, position_key, min_probability
    )
    epsilon = check_number(epsilon, "epsilon", caller, above=0.0)
    delta = check_number(delta, "delta", caller, above=0.0, below=1.0)
    if max_rollouts is not None:
        max_rollouts = check_integer(max_rollouts, "max_rollouts", caller, least=0)
    seed = check_integer(seed, "seed", caller, least=0)
    check_function(progress, "progress", caller, optional=True)
    player = problem.player
    as_batch_policy(problem.sigma[player], f"sigma[{player}]", caller)
    search = _Certifier(problem, epsilon, delta, seed)
    limit = math.inf if max_rollouts is None else float(max_rollouts)
    while search.upper - search.lower > epsilon and search.round(limit):
        if progress is not None and progress(search.rollouts, search.lower, search.upper) is False:
            break
    return search.tree.result(
        [(node, search.gain(node)) for node in search.best],
        (search.lower, search.upper),
        1.0 - delta,
        search.upper - search.lower <= epsilon,
        {"rollouts": search.rollouts, "rounds": search.rounds},
    )


@dataclasses.dataclass(eq=False)
class _Place:
    """Where games are played on from.

    Attributes:
      states: With their probabilities, given that play comes here.
      reach: Pi.
      games, total: Of all games so far, to steer by; utilities are the player's.
      planned: n of this round.
      mean: m of this round.
    """

    reach: float
    states: list[tuple[Any, float]]
    guess: float
    games: int = 0
    total: float = 0.0
    planned: int = 0
    mean: float = 0.0

    def estimate(self) -> float:
        """The mean so far, drawn a little to what was guessed before any game."""
        return (self.total + 2.0 * self.guess) / (self.games + 2.0)


@dataclasses.dataclass(eq=False)
class _Decision:
    """A node's place for stopping, its place for the rest, and the plan of this round.

    Attributes:
      value_stop, value_memorize: Estimates, penalties included, reach too; of memorizing a node that is not
        open, the most that it could be.
      doubt_stop, doubt_memorize: Log(1 / prior) of either option.
    """

    stop: _Place | None
    rest: _Place | None = None
    value_stop: float = 0.0
    value_memorize: float = -math.inf
    doubt_stop: float = 0.0
    doubt_memorize: float = 0.0


class _Certifier:
    """Rounds of games on an `PartialTree`."""

    def __init__(self, problem: PreparationProblem, epsilon: float, delta: float, seed: int) -> None:
        self.problem = problem
        self.tree = PartialTree(problem, lump=True)
        self.rounds = 0
        self.rollouts = 0
        self.lower, self.upper = problem.low, problem.high
        self.best: list[Node] = []
        self._epsilon, self._delta = epsilon, delta
        sigma = as_batch_policies(problem.sigma, "sigma", problem.caller)
        self._rollouts = Rollouts(sigma, problem.position, problem.min_probability, problem.caller)
        self._stream = np.random.default_rng(seed)
        self._decisions: list[_Decision] = []
        self._games = 0  # of the last round
        self._full = False
        self._doubt = 4.0  # log(1 / prior) of the set that looked best
        self._reserve = 1.15  # how many more games than at best a round takes
        self._admit(0)

    def round(self, limit: float) -> bool:
        """Opens nodes, plans, plays and narrows the interval; False where `limit` games are not enough."""
        if self.rollouts + 3 * _TRIAL > limit:
            return False
        self._grow(limit)
        confidence = math.log(2.0 * (self.rounds + 1) * (self.rounds + 2) / self._delta)
        eta = self._plan(confidence)
        places = self._places()
        if self.rollouts + sum(place.planned for place in places) > limit:
            return False
        self.rounds += 1
        for place in places:
            total = self._play(place.states, place.planned)
            place.mean = total / place.planned
            place.games += place.planned
            place.total += total
            self.rollouts += place.planned
        slack = confidence / eta if places else 0.0  # otherwise all is known exactly
        lower, best = self._bound(eta, -1.0)
        upper, _ = self._bound(eta, 1.0)
        if self._full:
            width = upper - lower + 2.0 * slack
            self._reserve *= min(max((width / self._epsilon) ** 2, 1.1), 3.0)
        if lower - slack > self.lower:
            self.lower, self.best = lower - slack, best
        self.upper = min(self.upper, upper + slack)
        return True

    def gain(self, node: Node) -> float:
        """What memorizing a node adds to memorizing those before it, by all games."""
        decision = self._decisions[node.index]
        places = [decision.rest, *(self._decisions[child.index].stop for child in node.children)]
        below = sum(place.reach * place.estimate() for place in places if place is not None)
        return node.known + below - decision.value_stop

    def _play(self, states: list[tuple[Any, float]], games: int) -> float:
        """The sum of the player's utilities of so many games from states with their probabilities."""
        draws = [games]
        if len(states) > 1:
            odds = np.array([p for _, p in states])
            draws = self._stream.multinomial(games, odds / odds.sum()).tolist()
        total = 0.0
        stack = [(self._rollouts.at(state), n) for (state, _), n in zip(states, draws, strict=True) if n]
        while stack:
            here, n = stack.pop()
            if here.returns is None:
                stack += self._rollouts.step(here, n, self._stream)
            else:
                total += n * here.returns[self.problem.player]
        return total

    def _places(self) -> list[_Place]:
        return [
            place
            for decision in self._decisions
            for place in (decision.stop, decision.rest)
            if place is not None
        ]

    # -- opening -----------------------------------------------------------------------------------

    def _admit(self, first: int, opened: Sequence[Node] = ()) -> None:
        """Places of new nodes and of the rests behind opened ones; a few games from each."""
        new: list[_Place] = []
        for node in self.tree.nodes[first:]:
            if node.parent is None:
                self._decisions.append(_Decision(None))
                opened = [*opened, node]
                continue
            place = _Place(node.reach, [(node.state, 1.0)], self._guess(node.parent))
            self._decisions.append(_Decision(place))
            new.append(place)
        for node in opened:
            reach = sum(reach for _, reach in node.rest)
            if reach > 0.0:
                states = [(state, part / reach) for state, part in node.rest]
                place = _Place(reach, states, self._guess(node))
                self._decisions[node.index].rest = place
                new.append(place)
        for place in new:
            place.total += self._play(place.states, _TRIAL)
            place.games += _TRIAL
            self.rollouts += _TRIAL

    def _guess(self, node: Node) -> float:
        place = self._decisions[node.index].stop
        return (self.problem.low + self.problem.high) / 2.0 if place is None else place.estimate()

    def _grow(self, limit: float) -> None:
        """Opens nodes whose memorizing could pay by what is estimated, until little is left of that."""
        while True:
            self._estimate()
            excess: list[tuple[float, int, Node]] = []
            for node, _ in self.tree.walk(self._pays):
                decision = self._decisions[node.index]
                gain = decision.value_memorize - decision.value_stop
                if node.can_memorize and not node.opened and gain > 0.0:
                    excess.append((-gain, node.index, node))
            excess.sort(key=lambda entry: entry[:2])
            left = -sum(gain for gain, _, _ in excess)
            chosen = []
            for gain, _, node in excess:
                if left <= self._epsilon / 8.0:
                    break
                chosen.append(node)
                left += gain
            if not chosen or self.rollouts + 8 * _TRIAL * len(chosen) > limit:
                return
            before = len(self.tree.nodes)
            self.tree.open(chosen)
            self._admit(before, chosen)

    def _estimate(self) -> None:
        """Values of stopping and of memorizing at each node, by all games so far."""
        problem = self.problem
        best = [0.0] * len(self.tree.nodes)
        for node in reversed(self.tree.nodes):
            decision = self._decisions[node.index]
            if decision.stop is not None:
                decision.value_stop = node.reach * decision.stop.estimate()
            if node.opened:
                rest = decision.rest
                below = sum(best[child.index] for child in node.children)
                below += rest.reach * rest.estimate() if rest is not None else 0.0
                price = problem.penalty if node.parent is not None else 0.0
                decision.value_memorize = node.known + below - price
            elif node.can_memorize:
                decision.value_memorize = node.reach * problem.high - problem.penalty
            best[node.index] = decision.value_memorize
            if decision.stop is not None:
                best[node.index] = max(decision.value_memorize, decision.value_stop)

    # -- planning ----------------------------------------------------------------------------------

    def _plan(self, confidence: float) -> float:
        """Sets priors and numbers of games of this round; returns eta."""
        self._estimate()
        # A set whose lines all end in the game has nothing to sample; what it is compared with has.
        reach = max(self._cut_reach(), _LEAST_REACH)
        # With n games the width is, at best, 2 R reach sqrt((confidence + doubt) / (2 n)).
        scale = self.problem.range * reach / self._epsilon
        needed = 2.0 * (confidence + self._doubt) * scale**2 * self._reserve
        least = max(_LEAST, 2 * len(self.tree.nodes))
        games = max(1.0, min(needed, max(least, _GROWTH * self._games)))
        self._full = games >= needed  # this round was to be the last
        self._games = math.ceil(games)
        eta = math.sqrt(8.0 * games * (confidence + self._doubt)) / (self.problem.range * reach)
        self._doubt = 0.0
        self._allot(games / reach, eta)
        return eta

    def _cut_reach(self) -> float:
        """The reach of all places of the set that looks best."""
        reach = 0.0
        for node, goes_on in self.tree.walk(self._pays):
            rest = self._decisions[node.index].rest
            reach += node.reach if not goes_on else 0.0 if rest is None else rest.reach
        return reach

    def _pays(self, node: Node) -> bool:
        """Whether memorizing an opened node looks better than stopping there."""
        decision = self._decisions[node.index]
        return node.opened and decision.value_memorize > decision.value_stop

    def _allot(self, rate: float, eta: float) -> None:
        """Games to places, and priors to options, from the root down.

        Along the set that looks best, games are `rate` times the reach. An option that looks worse by
        `margin` gets half of it as doubt, and games enough for the other half to cover their error.
        """
        spread = self.problem.range**2 * eta
        stack = [(self.tree.root, rate, True)]
        while stack:
            node, rate, main = stack.pop()
            decision = self._decisions[node.index]
            stop_rate = memorize_rate = rate
            takes = decision.stop is None
            if decision.stop is not None:
                margin = decision.value_memorize - decision.value_stop
                takes = margin > 0.0
                decision.doubt_stop = decision.doubt_memorize = 0.0
                if node.can_memorize:
                    worse = min(max(eta * abs(margin) / 2.0, math.log(2.0)), _MOST_DOUBT)
                    better = -math.log1p(-math.exp(-worse))
                    doubts = (worse, better) if takes else (better, worse)
                    decision.doubt_stop, decision.doubt_memorize = doubts
                    self._doubt += better if main else 0.0
                if abs(margin) > 0.0:
                    enough = spread * node.reach / (2.0 * abs(margin))
                    stop_rate = min(rate, enough) if takes else rate
                    memorize_rate = rate if takes else min(rate, enough)
                decision.stop.planned = max(1, math.ceil(stop_rate * node.reach))
            if node.opened:
                if decision.rest is not None:
                    decision.rest.planned = max(1, math.ceil(memorize_rate * decision.rest.reach))
                stack += [(child, memorize_rate, main and takes) for child in node.children]

    # -- the interval ------------------------------------------------------------------------------

    def _bound(self, eta: float, sign: float) -> tuple[float, list[Node]]:
        """(value, set) that is best by its upper (sign 1) or lower bound (-1), slack for delta aside."""
        problem = self.problem
        spread = eta * problem.range**2 / 8.0

        def worth(place: _Place) -> float:
            return place.reach * place.mean + sign * spread * place.reach**2 / place.planned

        best = [0.0] * len(self.tree.nodes)
        takes = [False] * len(self.tree.nodes)
        for node in reversed(self.tree.nodes):
            decision = self._decisions[node.index]
            memorize = -math.inf
            price = problem.penalty if node.parent is not None else 0.0
            if node.opened:
                memorize = node.known - price + sum(best[child.index] for child in node.children)
                memorize += worth(decision.rest) if decision.rest is not None else 0.0
                memorize += sign * decision.doubt_memorize / eta
            elif node.can_memorize and sign > 0.0:
                memorize = node.reach * problem.high - price + decision.doubt_memorize / eta
            if decision.stop is None:
                best[node.index] = memorize
                continue
            stop = worth(decision.stop) + sign * decision.doubt_stop / eta
            takes[node.index] = memorize > stop
            best[node.index] = max(memorize, stop)
        walk = self.tree.walk(lambda node: takes[node.index])
        return best[0], [node for node, goes_on in walk if goes_on and node.parent is not None]
