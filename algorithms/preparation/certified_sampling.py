"""Algorithm 1 by roll-outs with a certificate: an interval around the optimum, narrowed where it matters.

What is sampled. Both players' sigma play games on from where the player may stop: at a node, or behind an
entry where nothing can be memorized any more, which is one place for all of its histories ("rest"). For a
memorization set S, with its choice of entries, with its places P(S), their reaches pi and the means mu of
games from there,

    u(S) = known(S) + sum over p in P(S) of pi(p) mu(p).

One round. Fix, from what earlier rounds have seen: n(p) games per place, a number eta, and for each node the
behavioral probabilities of stopping and of each entry there; prior(S) is their product along S, and priors
add up to at most 1. Play the games afresh; m(p) are their means, R the range of utilities. Hoeffding's lemma
and Markov's inequality on the sum over S of prior(S) exp(eta (u(S) - m(S)) - eta^2 R^2 / 8 sum of pi^2 / n)
give, with probability 1 - delta' and for all S at once,

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
from typing import Annotated, Any

import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import public
from precomp_games._support.config import bar
from precomp_games.policies.playouts import Rollouts
from precomp_games.policies.rows import LeastProbability, as_batch_policies, as_batch_policy

from .partial_tree import Branch, CertifiedPrecomputation, Node, PartialTree, PerfectGame, PreparationProblem

_TRIAL = 4  # games from a place that is new
_GROWTH = 2.5  # of the number of games from round to round, at most
_LEAST = 64  # games of the first round
_LEAST_REACH = 0.05  # of all places of a set, for how many games a round takes
_MOST_DOUBT = 25.0  # log(1 / prior) of an option that looks hopeless


@public
def certified_precomputation(
    game: PerfectGame,
    sigma_pre: Any,
    sigma: Any,
    penalty: checks.PositiveFloat,
    player: checks.Player,
    *,
    epsilon: checks.PositiveFloat = 0.05,
    delta: Annotated[float, checks.Gt(0.0), checks.Lt(1.0)] = 0.05,
    max_rollouts: checks.NonNegativeInt | None = None,
    position_key: Callable[[Any], Hashable] | None = None,
    min_probability: LeastProbability = 1e-12,
    seed: checks.NonNegativeInt = 0,
    enough: Callable[[], bool] | None = None,
) -> CertifiedPrecomputation:
    """Prepare `player` against a fixed opponent, by roll-outs, until the value is known to within epsilon.

    With probability 1 - delta, whenever it ends: the result's set is worth at least
    `lower`, and no set is worth more than `upper`.

    Args:
      game: two players, zero or constant sum, perfect information.
      sigma_pre: the player's candidate moves, a policy or a `Menu`; one, or a pair.
      sigma: the policies during play, and of roll-outs; one, or a pair.
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
      enough: asked after each round whether to play no further.

    Raises:
      ValueError: an argument or a policy's answer is not as above.
    """
    problem = PreparationProblem.checked(
        game, sigma_pre, sigma, penalty, player, position_key, min_probability
    )
    as_batch_policy(problem.sigma[player], f"sigma[{player}]")
    search = _Certifier(problem, epsilon, delta, seed)
    limit = math.inf if max_rollouts is None else float(max_rollouts)
    with bar("Preparing", "games") as show:
        while search.upper - search.lower > epsilon and search.round(limit):
            search.tree.trace.append((search.rollouts, search.lower, search.upper))
            show(search.rollouts, f"worth {search.lower:.4f} to {search.upper:.4f}")
            if enough is not None and enough():
                break
    return search.tree.result(
        [(branch, search.gain(branch)) for branch in search.best],
        (search.lower, search.upper),
        1.0 - delta,
        search.upper - search.lower <= epsilon,
        {"rollouts": search.rollouts, "rounds": search.rounds},
        problem.penalty,
        search.worth,
    )


@dataclasses.dataclass(eq=False)
class _Place:
    """A place from which games are played on.

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
        """Return the mean so far, drawn a little to what was guessed before any game."""
        return (self.total + 2.0 * self.guess) / (self.games + 2.0)


@dataclasses.dataclass(eq=False)
class _Option:
    """An action at a node: stop, an entry of its menu, or, before that is known, memorize some entry.

    Attributes:
      place: Where games are played on from: at the node, or behind the entry where nothing can be memorized.
      branch: The entry.
      value: The estimate, penalty included, reach too; of a node that is not open, the most that it could be.
      doubt: Log(1 / prior) in this round.
    """

    place: _Place | None
    branch: Branch | None = None
    value: float = -math.inf
    doubt: float = 0.0


@dataclasses.dataclass(eq=False)
class _Decision:
    """A node's options: to stop, None at the root; and to memorize, one for each entry once it is open."""

    stop: _Option | None
    memorize: list[_Option] = dataclasses.field(default_factory=list)

    @property
    def options(self) -> list[_Option]:
        """To stop comes first."""
        return self.memorize if self.stop is None else [self.stop, *self.memorize]

    @property
    def best(self) -> _Option:
        """The option that looks best; of equals, to stop, and then the first entry."""
        return max(self.options, key=lambda option: option.value)


class _Certifier:
    """Rounds of games on an `PartialTree`."""

    def __init__(self, problem: PreparationProblem, epsilon: float, delta: float, seed: int) -> None:
        self.problem = problem
        self.tree = PartialTree(problem, lump=True)
        self.rounds = 0
        self.rollouts = 0
        self.lower, self.upper = problem.low, problem.high
        self.best: list[Branch] = []
        self._epsilon, self._delta = epsilon, delta
        sigma = as_batch_policies(problem.sigma, "sigma")
        self._rollouts = Rollouts(sigma, problem.played_position, problem.min_probability)
        self._stream = np.random.default_rng(seed)
        self._decisions: list[_Decision] = []
        self._games = 0  # of the last round
        self._full = False
        self._doubt = 4.0  # log(1 / prior) of the set that looked best
        self._reserve = 1.15  # how many more games than at best a round takes
        self._admit(0)

    def round(self, limit: float) -> bool:
        """Open nodes, plan, play and narrow the interval; False where `limit` games are not enough."""
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

    def worth(self, branch: Branch) -> float:
        """Return the value of memorizing an entry, by all games."""
        return self._decisions[branch.node.index].memorize[branch.place].value

    def gain(self, branch: Branch) -> float:
        """Return what memorizing an entry adds to memorizing those before it, by all games."""
        decision = self._decisions[branch.node.index]
        assert decision.stop is not None
        stops = (self._decisions[child.index].stop for child in branch.children)
        places = [decision.memorize[branch.place].place, *(stop.place for stop in stops if stop is not None)]
        below = sum(place.reach * place.estimate() for place in places if place is not None)
        return branch.known + below - decision.stop.value

    def _play(self, states: list[tuple[Any, float]], games: int) -> float:
        """Return the sum of the player's utilities of so many games from states with their probabilities."""
        draws = [games]
        if len(states) > 1:
            probability = np.array([p for _, p in states])
            draws = self._stream.multinomial(games, probability / probability.sum()).tolist()
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
        options = (option for decision in self._decisions for option in decision.options)
        return [option.place for option in options if option.place is not None]

    # -- opening -----------------------------------------------------------------------------------

    def _admit(self, first: int, opened: Sequence[Node] = ()) -> None:
        """Add the options of new nodes and of opened ones, with a few games from each of their places."""
        new: list[_Place] = []
        for node in self.tree.nodes[first:]:
            if node.before is None:
                self._decisions.append(_Decision(None))
                opened = [*opened, node]
                continue
            place = _Place(node.reach, [(node.state, 1.0)], self._guess(node.before.node))
            self._decisions.append(_Decision(_Option(place), [_Option(None)] if node.can_memorize else []))
            new.append(place)
        for node in opened:
            self._decisions[node.index].memorize = [_Option(None, branch) for branch in node.entries]
            for option, branch in zip(self._decisions[node.index].memorize, node.entries, strict=True):
                reach = sum(reach for _, reach in branch.rest)
                if reach > 0.0:
                    states = [(state, part / reach) for state, part in branch.rest]
                    option.place = _Place(reach, states, self._guess(node))
                    new.append(option.place)
        for place in new:
            place.total += self._play(place.states, _TRIAL)
            place.games += _TRIAL
            self.rollouts += _TRIAL

    def _guess(self, node: Node) -> float:
        stop = self._decisions[node.index].stop
        if stop is None or stop.place is None:
            return (self.problem.low + self.problem.high) / 2.0
        return stop.place.estimate()

    def _grow(self, limit: float) -> None:
        """Open nodes whose memorizing could pay by what is estimated, until little is left of that."""
        while True:
            self._estimate()
            excess: list[tuple[float, int, Node]] = []
            for node, _ in self.tree.walk(self._pays):
                decision = self._decisions[node.index]
                if node.can_memorize and not node.opened and decision.stop is not None:
                    gain = decision.best.value - decision.stop.value
                    if gain > 0.0:
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
        """Estimate the values of stopping and of memorizing at each node, by all games so far."""
        best = [0.0] * len(self.tree.nodes)
        for node in reversed(self.tree.nodes):
            decision = self._decisions[node.index]
            if decision.stop is not None and decision.stop.place is not None:
                decision.stop.value = node.reach * decision.stop.place.estimate()
            for option in decision.memorize:
                branch, place = option.branch, option.place
                if branch is None:
                    option.value = node.reach * self.problem.high - self.problem.penalty
                else:
                    below = sum(best[child.index] for child in branch.children)
                    below += place.reach * place.estimate() if place is not None else 0.0
                    option.value = branch.known + below - self.tree.price_of(branch)
            best[node.index] = decision.best.value

    # -- planning ----------------------------------------------------------------------------------

    def _plan(self, confidence: float) -> float:
        """Set priors and numbers of games of this round; return eta."""
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
        """Return the reach of all places of the set that looks best."""
        reach = 0.0
        for node, branch in self.tree.walk(self._pays):
            decision = self._decisions[node.index]
            option = decision.stop if branch is None else decision.memorize[branch.place]
            reach += option.place.reach if option is not None and option.place is not None else 0.0
        return reach

    def _pays(self, node: Node) -> Branch | None:
        """Return the entry that looks better than stopping, and than the others."""
        return self._decisions[node.index].best.branch

    def _allot(self, rate: float, eta: float) -> None:
        """Distribute games to places, and priors to options, from the root down.

        Along the set that looks best, games are `rate` times the reach. An option that looks worse by
        `margin` gets half of it as doubt, and games enough for the other half to cover their error.
        """
        spread = self.problem.range**2 * eta
        stack = [(self.tree.root, rate, True)]
        while stack:
            node, rate, main = stack.pop()
            decision = self._decisions[node.index]
            best = decision.best
            worse = [option for option in decision.options if option is not best]
            rates = {id(best): rate}
            spent = 0.0  # of a prior of 1, on what looks worse
            for option in worse:
                margin = best.value - option.value
                least = math.log(2.0 * len(worse))  # so that half is left for what looks best
                option.doubt = min(max(eta * margin / 2.0, least), max(_MOST_DOUBT, least))
                spent += math.exp(-option.doubt)
                enough = spread * node.reach / (2.0 * margin) if margin > 0.0 else rate
                rates[id(option)] = min(rate, enough)
            best.doubt = -math.log1p(-spent)
            self._doubt += best.doubt if main else 0.0
            for option in decision.options:
                rate = rates[id(option)]
                if option.place is not None:
                    option.place.planned = max(1, math.ceil(rate * option.place.reach))
                if option.branch is not None:
                    stack += [(child, rate, main and option is best) for child in option.branch.children]

    # -- the interval ------------------------------------------------------------------------------

    def _bound(self, eta: float, sign: float) -> tuple[float, list[Branch]]:
        """Return the best (value, set) by its upper (sign 1) or lower bound (-1), without slack for delta."""
        problem = self.problem
        spread = eta * problem.range**2 / 8.0

        def worth(option: _Option) -> float:
            """Of the option's own place."""
            place, bound = option.place, sign * option.doubt / eta
            if place is None:
                return bound
            return place.reach * place.mean + sign * spread * place.reach**2 / place.planned + bound

        best = [0.0] * len(self.tree.nodes)
        takes: list[Branch | None] = [None] * len(self.tree.nodes)
        for node in reversed(self.tree.nodes):
            decision = self._decisions[node.index]
            most = -math.inf if decision.stop is None else worth(decision.stop)
            for option in decision.memorize:
                branch = option.branch
                if branch is not None:
                    value = branch.known - self.tree.price_of(branch)
                    value += sum(best[child.index] for child in branch.children) + worth(option)
                elif sign > 0.0:
                    value = node.reach * problem.high - problem.penalty + worth(option)
                else:
                    continue
                if value > most:
                    most, takes[node.index] = value, branch
            best[node.index] = most
        walk = self.tree.walk(lambda node: takes[node.index])
        return best[0], [branch for node, branch in walk if branch is not None and node.before is not None]
