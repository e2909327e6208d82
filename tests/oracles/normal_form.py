"""An oracle of equilibria: distributions over all pairs of reduced pure strategies, and what deviating gains.

It walks OpenSpiel's states, and knows nothing of sequences, pairs or plans.
"""

import itertools

import numpy as np
import scipy.optimize
import scipy.sparse

from tests.oracles.treeplex import OwnTree


def plans_of(game):
    """Return both players' reduced pure strategies, {information state: action}."""
    trees = [OwnTree(game, player) for player in (0, 1)]
    return [tree.plans(tree.first) for tree in trees]


def profiles_of(game):
    return list(itertools.product(*plans_of(game)))


def visited(state, plans):
    """[(probability, state)] of what two plans come to from a state, chance's nodes left out."""
    if state.is_chance_node():
        return [
            (p * q, below)
            for action, p in state.chance_outcomes()
            for q, below in visited(state.child(action), plans)
        ]
    if state.is_terminal():
        return [(1.0, state)]
    action = plans[state.current_player()][state.information_state_string()]
    return [(1.0, state), *visited(state.child(action), plans)]


def expected(state, plans):
    """Return both players' expected utilities from a state: float64[2]."""
    return sum(p * np.array(end.returns()) for p, end in visited(state, plans) if end.is_terminal())


class NormalForm:
    """The linear programs over a game's pairs of pure strategies.

    Attributes:
      utilities: float64[profiles, 2].
      gains: Sparse, deviations x profiles: what each gains.
    """

    def __init__(self, game, notion):
        trees = [OwnTree(game, player) for player in (0, 1)]
        root, everything = game.new_initial_state(), plans_of(game)
        profiles = list(itertools.product(*everything))
        self.utilities = np.array([expected(root, plans) for plans in profiles])
        rows, entries = {}, []
        for number, plans in enumerate(profiles):
            triggers = [(1.0, root, (player,), everything[player]) for player in (0, 1)]
            if notion != "nfcce":
                triggers = list(self._triggers(root, trees, plans, notion))
            for p, state, trigger, deviations in triggers:
                player = trigger[0]
                follow = expected(state, plans)[player]
                for n, deviation in enumerate(deviations):
                    both = (deviation, plans[1]) if player == 0 else (plans[0], deviation)
                    gain = p * (expected(state, both)[player] - follow)
                    entries.append((rows.setdefault((*trigger, n), len(rows)), number, gain))
        row, column, gain = np.array(entries or [(0, 0, 0.0)]).T
        shape = (max(len(rows), 1), len(profiles))
        self.gains = scipy.sparse.coo_array((gain, (row.astype(int), column.astype(int))), shape).tocsr()

    def _triggers(self, root, trees, plans, notion):
        """Yield (probability, state, trigger, plans to deviate by) of all triggers that two plans come to."""
        for p, state in visited(root, plans):
            if state.is_terminal():
                continue
            player, key = state.current_player(), state.information_state_string()
            action, actions = plans[player][key], trees[player].actions[key]
            if notion == "efce":
                others = [a for a in actions if a != action]
                yield p, state, (player, key, action), trees[player].plans_from(key, others)
            else:
                yield p, state, (player, key), trees[player].plans_from(key, actions)

    def greatest(self, weights, floors=(-np.inf, -np.inf), smaller=False):
        """Return the greatest weighted sum of utilities, or the greatest smaller one."""
        count = len(self.utilities)
        with_least = scipy.sparse.csr_array((self.gains.shape[0], 1))
        rows, limits = [scipy.sparse.hstack([self.gains, with_least])], [np.zeros(self.gains.shape[0])]
        for i in (0, 1):
            own = -self.utilities[:, i]
            if smaller:
                rows.append(np.append(own, 1.0)[None, :])
                limits.append([0.0])
            if floors[i] > -np.inf:
                rows.append(np.append(own, 0.0)[None, :])
                limits.append([-floors[i]])
        cost = np.append(np.zeros(count), 1.0) if smaller else np.append(self.utilities @ weights, 0.0)
        result = scipy.optimize.linprog(
            -cost,
            A_ub=scipy.sparse.vstack([scipy.sparse.csr_array(each) for each in rows]),
            b_ub=np.concatenate(limits),
            A_eq=np.append(np.ones(count), 0.0)[None, :],
            b_eq=[1.0],
            bounds=[(0, None)] * count + [(None, None) if smaller else (0, 0)],
        )
        assert result.status == 0, result.message
        return -result.fun
