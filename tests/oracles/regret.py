"""Regret minimization as its papers write it."""

import collections

import numpy as np


class PlainRegrets:
    """All variants by recursion over the states of a game; plans are sums over own reaches.

    R^t = max(d(R^(t-1)) + r^t, floor), the next strategy is proportional to max(d(R^t) + r^t, 0), without r^t
    where nothing is predicted, and X^t = X^(t-1) ((t-1) / t)^g + x^t. d multiplies what is positive with
    t^a / (t^a + 1), or 1; DCFR alone keeps what is negative, half of it.
    """

    def __init__(self, game, variant, key=lambda state: state.information_state_string()):
        self.key, self.predicts = key, variant.startswith("p")
        self.power = {"cfr": 0, "cfr+": 1, "dcfr": 2, "pcfr+": 2, "pdcfr+": 5}[variant]
        self.alpha = {"dcfr": 1.5, "pdcfr+": 2.3}.get(variant)
        self.floor, self.half = (0.0 if variant[-1] == "+" else -np.inf), 0.5 if variant == "dcfr" else 1.0
        self.count = {}  # actions of each information state
        self.root = self._node(game.new_initial_state())
        self.strategy = {k: np.full(n, 1.0 / n) for k, n in self.count.items()}
        self.regret = {k: np.zeros(n) for k, n in self.count.items()}
        self.plan = {k: np.zeros(n) for k, n in self.count.items()}
        self.t, self.least = 0, np.inf  # how close to 0 a largest regret came where others come

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
        row = self.strategy[infoset] if odds is None else odds
        mine = mover == player
        below = np.zeros(len(children))
        for k, (child, p) in enumerate(zip(children, row, strict=True)):
            reaches = (own * p, others) if mine else (own, others * p)
            below[k] = self._values(child, player, *reaches, gain, reach)
        if mine:
            gain[infoset] = gain[infoset] + others * (below - row @ below)
            reach[infoset] = own
            if others > 0.0:
                self.came.add(infoset)
        return row @ below

    def _kept(self, regret, t):
        discount = 1.0 if self.alpha is None else t**self.alpha / (t**self.alpha + 1.0)
        return regret * np.where(regret > 0.0, discount, self.half)

    def iterate(self):
        self.t += 1
        t = self.t
        for player in (0, 1):
            gain, reach, self.came = collections.defaultdict(float), {}, set()
            self._values(self.root, player, 1.0, 1.0, gain, reach)
            for k, r in gain.items():
                self.regret[k] = np.maximum(self._kept(self.regret[k], t - 1) + r, self.floor)
                self.plan[k] = self.plan[k] * ((t - 1) / t) ** self.power + reach[k] * self.strategy[k]
                wish = self._kept(self.regret[k], t) + self.predicts * r
                if k in self.came:
                    self.least = min(self.least, abs(wish.max()))
                wish = np.maximum(wish, 0.0)
                self.strategy[k] = wish / wish.sum() if wish.any() else np.full(len(wish), 1.0 / len(wish))

    def average(self, infoset):
        """Return the average realization plan at an information state."""
        return self.plan[infoset] / sum((k / self.t) ** self.power for k in range(1, self.t + 1))
