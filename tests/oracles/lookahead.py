"""Limited lookahead: games, evaluations, and the best commitment by trying the follower's every optimal set.

The leader mixes over all of its reduced pure strategies, with weights mu. Everything that the follower looks
at, and every payoff, is linear in mu, and is read off by walking OpenSpiel's states with pure strategies. For
each choice of what is optimal at every information set (of the follower, the actions, and by which plans
inside the lookahead) linear programs decide whether some mu brings just that about, and its value. Of several
types of the follower, each has its own information sets, and the same mu meets them all. Nothing here uses
the sequence form, and no case is left out but those that some of their information sets already rule out.
"""

import itertools
import math

import numpy as np
import scipy.optimize

from tests.oracles.games import EfgText
from tests.oracles.treeplex import OwnTree, key_of

# -- evaluations and games ---------------------------------------------------------------------------------


def utility_of(player):
    """Return a player's utility at leaves, zero elsewhere."""
    return lambda state: state.returns()[player] if state.is_terminal() else 0.0


def random_evaluation(seed, coarse):
    """Numbers by history; coarse ones are 0, 1 or 2, so that there are ties of every kind."""

    def h(state):
        rng = np.random.default_rng([seed, *(action + 1 for action in state.history())])
        return float(rng.integers(0, 3)) if coarse else float(rng.normal())

    return h


def figure_1(a, b):
    """Return the paper's Figure 1, with numbers of our own: one information set of the follower, at depth 1.

    Player 0 goes left or right; player 1, who does not see which, stops (a leaf: 1 or 0 to it) or goes on, to
    nodes of player 0, which the evaluation gives the values a and b.
    """
    text = EfgText()
    text.move(1, 1, ["l", "r"])
    for infoset, stopped, ends in ((2, 1, [(5, 0), (1, 9)]), (3, 0, [(4, 2), (2, 3)])):
        text.move(2, 1, ["stop", "on"])
        text.leaf(0, stopped)
        text.move(1, infoset, "xy")
        for end in ends:
            text.leaf(*end)
    guess = {(0, 3): a, (1, 3): b}  # actions are numbered by label: l, r, stop, on, x, y
    worth = utility_of(1)
    return text.game(), lambda state: guess.get(tuple(state.history()), worth(state))


def narrow(height):
    """A game whose follower has to be moved by small differences between evaluations of about `height`.

    Player 1 goes left or right, and player 0 sees it and answers. After left it earns 1, 2 or, where player 1
    looks forward to 2 more, -2; so the second answer is worth most, with as little of the third as it takes.
    """
    text = EfgText()
    text.move(2, 1, ["left", "right"])
    for number, earned in ((1, (1, 2, -2)), (2, (0, 1, 0))):
        text.move(1, number, "xyz")
        for utility in earned:
            text.leaf(utility, 0)
    hopes = {(0, 4): 2.0, (1, 3): 2.0}  # actions are numbered by label: left, right, x, y, z
    return text.game(), lambda state: height + hopes.get(tuple(state.history()), 0.0)


def held_at_a_tie():
    """Return a game with two evaluations: the first has "still" for best only where the second has a tie.

    Player 0 goes left or right, and player 1, who does not see it, follows, evades, or stays still. That is
    worth 2, 0 and 10 to player 0, wherever it has gone.
    """
    text = EfgText()
    text.move(1, 1, ["left", "right"])
    for _ in range(2):
        text.move(2, 1, ["follow", "evade", "still"])
        for earned in (2, 0, 10):
            text.leaf(earned, 0)

    def evaluation(still):
        # Actions are numbered by label: left, right, follow, evade, still.
        hopes = {(0, 2): 1.0, (1, 2): -1.0, (0, 3): -1.0, (1, 3): 1.0, (0, 4): still, (1, 4): still}
        return lambda state: hopes.get(tuple(state.history()), 0.0)

    return text.game(), evaluation(0.0), evaluation(-5.0)


def maxsat(clauses):
    """Return the most clauses that an assignment satisfies, by trying all.

    Clauses have literals: v + 1 for variable v, -(v + 1) for its negation.
    """
    variables = max(abs(literal) for clause in clauses for literal in clause)

    def satisfied(values):
        return sum(any(values[abs(literal) - 1] == (literal > 0) for literal in each) for each in clauses)

    return max(map(satisfied, itertools.product([False, True], repeat=variables)))


def _numbers(clauses):
    """Information sets of the variables that occur, numbered without gaps."""
    used = sorted({abs(literal) for clause in clauses for literal in clause})
    return {variable: k + 1 for k, variable in enumerate(used)}


def clauses_first(clauses, unsatisfied):
    """Clause nodes of the follower, then variables of the leader.

    Theorem 1's game, for a constant evaluation; and Theorem 2's, where an action "unsatisfied" is added, for
    lookahead 2 and utilities as evaluation.
    """
    text, number = EfgText(), _numbers(clauses)
    text.chance(dict.fromkeys(range(len(clauses)), f"1/{len(clauses)}"))
    for c, clause in enumerate(clauses):
        literals = [f"literal {literal}" for literal in clause]
        text.move(2, c + 1, ["unsatisfied", *literals] if unsatisfied else literals)
        if unsatisfied:
            text.leaf(0.0, 2 / 3)
        for literal in clause:
            text.move(1, number[abs(literal)], ["false", "true"])
            for value in (False, True):
                hit = float(value == (literal > 0))
                text.leaf(*((1.0, hit) if unsatisfied else (hit, 0.0)))
    return text.game()


def variables_first(clauses):
    """Theorem 3's game: variables of the leader, then information sets of six nodes; for lookahead 1."""
    text, number = EfgText(), _numbers(clauses)
    text.chance(dict.fromkeys(range(3 * len(clauses)), f"1/{3 * len(clauses)}"))
    for c, clause in enumerate(clauses):
        for literal in clause:
            text.move(1, number[abs(literal)], ["false", "true"])
            for value in (False, True):
                text.move(2, c + 1, ["unsatisfied", *(f"variable {abs(other)}" for other in clause)])
                text.leaf(0.0, 2 / 3)
                for other in clause:
                    text.leaf(1.0, 3.0 * (other == literal and value == (literal > 0)))
    return text.game()


# -- the oracle --------------------------------------------------------------------------------------------


class Oracle:
    """All that is linear in mu: float64[p], by the leader's pure strategies.

    Attributes:
      values: [information set of the follower][action]: distinct vectors, one for each plan inside the
        lookahead, of what it expects times the probability of coming there.
      payoff: float64[p, follower's plans], the leader's utility.
    """

    def __init__(self, game, rational, lookahead, h):
        follower = OwnTree(game, 1 - rational)
        self.rational, self.plans, self.actions = rational, follower.plans(), follower.actions
        self._leads, self._members, known = OwnTree(game, rational).plans(), {}, {}

        def remembered(state):
            history = tuple(state.history())
            if history not in known:
                known[history] = h(state)
            return known[history]

        root = game.new_initial_state()
        self._collect(root, np.ones(len(self._leads)))
        earned = [self._worth(root, plan, lambda end: end.returns()[rational]) for plan in self.plans]
        self.payoff, self.values = np.array(earned).T, {}
        for key, members in self._members.items():
            rows = self.values[key] = []
            for action in self.actions[key]:
                seen = []
                for plan in follower.plans_from(key, [action]):
                    worth = (r * self._worth(state, plan, remembered, lookahead) for state, r in members)
                    seen.append(sum(worth))
                rows.append(np.unique(np.round(seen, 13), axis=0))

    def _takes(self, state, action):
        key = key_of(state)
        return np.array([float(plan.get(key) == action) for plan in self._leads])

    def _collect(self, state, reach):
        if state.is_terminal():
            return
        if state.is_chance_node():
            for action, p in state.chance_outcomes():
                self._collect(state.child(action), p * reach)
            return
        own = state.current_player() == self.rational
        if not own:
            self._members.setdefault(key_of(state), []).append((state, reach))
        for action in state.legal_actions():
            self._collect(state.child(action), reach * self._takes(state, action) if own else reach)

    def _worth(self, state, plan, of, moves=math.inf):
        """Return what `of` gives after so many moves, or where the game ends before; Nature's moves count."""
        if moves == 0 or state.is_terminal():
            return np.full(len(self._leads), of(state))
        if state.current_player() == 1 - self.rational:
            return self._worth(state.child(plan[key_of(state)]), plan, of, moves - 1)
        if state.is_chance_node():
            odds = state.chance_outcomes()
        else:
            odds = [(action, self._takes(state, action)) for action in state.legal_actions()]
        return sum(p * self._worth(state.child(action), plan, of, moves - 1) for action, p in odds)

    def cases(self, key, tie_breaking):
        """Yield sets of actions that may be optimal at an information set, with rows "=", ">=", ">" zero."""
        table = self.values[key]
        count = len(table)
        sizes = range(1, count + 1) if tie_breaking == "adversarial" else [1]
        for chosen in (c for size in sizes for c in itertools.combinations(range(count), size)):
            for plans in itertools.product(*(range(len(table[a])) for a in chosen)):
                first = table[chosen[0]][plans[0]]
                rows = [(table[a][plan] - first, "=") for a, plan in zip(chosen, plans, strict=True)][1:]
                for a in range(count):
                    wins = tie_breaking == "adversarial" or (tie_breaking == "static" and a < chosen[0])
                    kind = ">" if wins and a not in chosen else ">="
                    rows += [(first - other, kind) for other in table[a]]
                yield [self.actions[key][a] for a in chosen], rows

    def replies(self, optimal):
        """Return the leader's payoff by each reply of pure optimal actions: float[replies, p]."""
        fits = []
        for plan in self.plans:
            fits.append(all(key not in plan or plan[key] in actions for key, actions in optimal.items()))
        return np.unique(self.payoff[:, fits].T, axis=0)


def best_of_types(types, weights):
    """Return the suprema against types with their rules for ties: on average, and of the worst.

    types: [(oracle, rule)], of the same game and player.
    """
    mean = worst = -np.inf
    at = [(number, key) for number, (oracle, _) in enumerate(types) for key in oracle.values]
    p = len(types[0][0].payoff)

    def go(depth, rows, mu, optimal):
        nonlocal mean, worst
        if depth == len(at):
            replies = [oracle.replies(each) for (oracle, _), each in zip(types, optimal, strict=True)]
            rules = zip(types, replies, strict=True)
            assert all(rule == "adversarial" or len(own) == 1 for (_, rule), own in rules)
            mean = max(mean, _worth_of(rows, replies, weights))
            worst = max(worst, _worth_of(rows, replies, None)) if len(types) > 1 else mean
            return
        number, key = at[depth]
        oracle, rule = types[number]
        for actions, more in oracle.cases(key, rule):
            # Most of them need no linear program: no mu at all satisfies a row, or this one all of them.
            if not all(_may_hold(*row) for row in more):
                continue
            witness = mu if all(_holds(*row, mu) for row in more) else _witness(rows + more, p)
            if witness is not None:
                now = [each | {key: actions} if k == number else each for k, each in enumerate(optimal)]
                go(depth + 1, rows + more, witness, now)

    go(0, [], np.full(p, 1.0 / p), [{} for _ in types])
    return mean, worst


def _may_hold(row, kind):
    """Return whether a row alone can be satisfied, by more than a linear program's tolerance."""
    if kind == ">":
        return row.max() > 0.0
    return row.max() > -1e-6 and (kind == ">=" or row.min() < 1e-6)


def _holds(row, kind, mu):
    """Return whether mu satisfies a row, a strict one clearly."""
    found = row @ mu
    if kind == "=":
        return abs(found) < 1e-12
    return found >= (1e-6 * np.abs(row).max() + 1e-12 if kind == ">" else 0.0)


def _witness(rows, p):
    """Return a mu that satisfies all rows, the strict ones strictly; None if there is none."""
    strict = [np.abs(row).max() if kind == ">" else 0.0 for row, kind in rows]
    if any(kind == ">" and size < 1e-12 for (_, kind), size in zip(rows, strict, strict=True)):
        return None
    result = _greatest(rows, np.array(strict)[:, None], [1.0], (-1.0, 1.0))
    return result.x[:p] if result.status == 0 and (not any(strict) or -result.fun > 1e-9) else None


def _worth_of(rows, replies, weights):
    """Return the greatest mean, or least, over the types of the least over their replies."""
    costs = [1.0] if weights is None else list(weights)
    slack = np.zeros((len(rows), len(costs)))
    for number, own in enumerate(replies):
        column = np.zeros((len(own), len(costs)))
        column[:, 0 if weights is None else number] = 1.0
        slack = np.vstack([slack, column])
        rows = rows + [(reply, ">=") for reply in own]
    result = _greatest(rows, slack, costs, (None, None))
    assert result.status == 0, result.message
    return -result.fun


def _greatest(rows, slack, costs, bounds):
    """Return the greatest costs @ z, within bounds, where row @ mu is 0, or at least slack @ z."""
    values, zero = np.array([row for row, _ in rows]), np.array([kind == "=" for _, kind in rows])
    p = values.shape[1]
    equal = np.vstack([np.hstack([values[zero], 0.0 * slack[zero]]), [1.0] * p + [0.0] * len(costs)])
    return scipy.optimize.linprog(
        np.append(np.zeros(p), -np.array(costs)),
        A_ub=np.hstack([-values[~zero], slack[~zero]]),
        b_ub=np.zeros((~zero).sum()),
        A_eq=equal,
        b_eq=np.append(np.zeros(len(equal) - 1), 1.0),
        bounds=[(0.0, 1.0)] * p + [bounds] * len(costs),
    )
