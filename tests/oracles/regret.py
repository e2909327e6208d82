"""Predictive regret minimization as its papers write it."""

import collections

import numpy as np


class PlainPredictive:
    """PDCFR+ and PCFR+ by recursion over the states of a game; plans are sums over own reaches.

    R^t = max(R^(t-1) d(t-1) + r^t, 0), the next strategy is proportional to max(R^t d(t) + r^t, 0), and
    X^t = X^(t-1) ((t-1) / t)^g + x^t. PDCFR+ has d(t) = t^2.3 / (t^2.3 + 1) and g = 5, PCFR+ 1 and 2.
    """

    def __init__(self, game, key=lambda state: state.information_state_string(), discounted=True):
        self.key, self.power = key, 5 if discounted else 2
        self.discount = (lambda t: t**2.3 / (t**2.3 + 1.0)) if discounted else (lambda t: 1.0)
        self.count = {}  # actions of each information state
        self.root = self._node(game.new_initial_state())
        self.strategy = {k: np.full(n, 1.0 / n) for k, n in self.count.items()}
        self.regret = {k: np.zeros(n) for k, n in self.count.items()}
        self.plan = {k: np.zeros(n) for k, n in self.count.items()}
        self.t = 0

    def _node(self, state):
        """Return (player, information state, chance's odds, children), or a utility."""
        if state.is_terminal():
            return state.returns()[0]
        player, infoset, odds = state.current_player(), None, None
        if state.is_chance_node():
            odds = [p for _, p in state.chance_outcomes()]
        else:
            infoset = self.key(state)
            self.count[infoset] = len(state.legal_actions())
        return player, infoset, odds, [self._node(state.child(a)) for a in state.legal_actions()]

    def _values(self, node, player, own, others, gain, reach):
        """Return the player's value of a node; add to `gain`, and write the player's own reach."""
        if isinstance(node, float):
            return node if player == 0 else -node
        mover, infoset, odds, children = node
        if mover != player:
            odds = self.strategy[infoset] if odds is None else odds
            return sum(
                p * self._values(c, player, own, others * p, gain, reach)
                for c, p in zip(children, odds, strict=True)
            )
        mix = self.strategy[infoset]
        below = np.array(
            [
                self._values(c, player, own * p, others, gain, reach)
                for c, p in zip(children, mix, strict=True)
            ]
        )
        gain[infoset] = gain[infoset] + others * (below - mix @ below)
        reach[infoset] = own
        return mix @ below

    def iterate(self):
        self.t += 1
        t, before = self.t, self.discount(self.t - 1)
        for player in (0, 1):
            gain, reach = collections.defaultdict(float), {}
            self._values(self.root, player, 1.0, 1.0, gain, reach)
            for k, r in gain.items():
                self.regret[k] = np.maximum(self.regret[k] * before + r, 0.0)
                self.plan[k] = self.plan[k] * ((t - 1) / t) ** self.power + reach[k] * self.strategy[k]
                wish = np.maximum(self.regret[k] * self.discount(t) + r, 0.0)
                self.strategy[k] = wish / wish.sum() if wish.any() else np.full(len(wish), 1.0 / len(wish))

    def average(self, infoset):
        """Return the average realization plan at an information state."""
        return self.plan[infoset] / sum((k / self.t) ** self.power for k in range(1, self.t + 1))
