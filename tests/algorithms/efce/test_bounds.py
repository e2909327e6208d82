"""The proof that bounds are safe (docs/efce.md), step by step, and which kind has more welfare."""

import numpy as np
import pytest
from hypothesis import given

from precomp_games.algorithms import efce
from precomp_games.algorithms.efce.triggers import Deviations, deviation_values, following_values
from tests.oracles.efce import all_refined, blueprint, random_subgames, resolving, stitched
from tests.oracles.games import SEEDS, EfgText
from tests.properties import examples


class Trunk:
    """Values for one player under a plan of the whole game, by names: an oracle of the shares.

    Children of a trunk's sequence are ("set", I), ("head", I), ("bundle", s, j) or ("part", s, j).
    """

    def __init__(self, plan, player, kind):
        self.game, self.form = plan.game, plan.game.players[player]
        self.deviations = Deviations.of(plan.pairs, player)
        self.sets = deviation_values(self.deviations, plan.xi)[1]
        self.v, self.of_infoset = following_values(plan, player)
        self.plan, self.player, self.kind = plan, player, kind
        self.inside = [s for s in range(self.form.num_sequences) if self.form.sequence_label[s] < 0]

    def actions(self, infoset):
        return range(self.form.first[infoset], self.form.first[infoset + 1])

    def children(self, s):
        """{child: its information sets and the labels of its leaves}."""
        found = {}
        for infoset in np.flatnonzero(self.form.parent == s):
            j = self.form.label[infoset]
            name = (
                ("set", infoset)
                if j < 0
                else ("head", infoset)
                if self.kind == "separate"
                else ("part", s, j)
            )
            found.setdefault(name, ([], set()))[0].append(infoset)
        own, label = self.game.leaf_sequence[self.player], self.game.leaf_label
        for j in np.unique(label[(own == s) & (label >= 0)]):
            name = ("bundle", s, j) if self.kind == "separate" else ("part", s, j)
            found.setdefault(name, ([], set()))[1].add(j)
        return found

    def leaves(self, s, labels, trigger=None):
        """Return the value of leaves right after s in these subgames (-1: settled), or after a trigger."""
        total = 0.0
        for k in np.flatnonzero(self.game.leaf_sequence[self.player] == s):
            if self.game.leaf_label[k] in labels:
                one = s if trigger is None else trigger
                tau = self.game.leaf_sequence[1 - self.player][k]
                pair = (one, tau) if self.player == 0 else (tau, one)
                xi = self.plan.entries(self.game, *(np.array([x]) for x in pair))[0]
                total += self.game.leaf_utility[self.player][k] * xi
        return total

    def set_after(self, infoset, trigger):
        """beta(I; s+)."""
        top = self.form.infoset[trigger]
        group = self.deviations.group(np.array([top]), np.array([infoset]))[0]
        return self.sets[self.deviations.set_[group] + trigger - self.form.first[top]]

    def child(self, s, members, trigger=None):
        """Return the value of a child of s by following, or by deviating after a trigger."""
        sets, labels = members
        below = (self.of_infoset[k] if trigger is None else self.set_after(k, trigger) for k in sets)
        return sum(below) + self.leaves(s, labels, trigger)


def shares(trunk, gains):
    """Return the page's shares: slack by sequence and by child, upper bounds by (trigger, child), targets."""
    form, slack, rows, upper = trunk.form, {}, {}, {}
    trigger_slack, target = {}, {}
    for s in trunk.inside:
        if np.isfinite(gains[s]):
            best = trunk.v[s] + gains[s]
            middle = (trunk.v[s] + best) / 2
            trigger_slack[s], target[s] = (trunk.v[s] - middle, middle) if gains[s] <= 0 else (0.0, best)

    def down(s, inherited):
        slack[s] = min(inherited, trigger_slack.get(s, np.inf))
        children = trunk.children(s)
        for name in children:
            rows[name] = slack[s] / len(children)
            if name[0] == "set":
                for after in trunk.actions(name[1]):
                    down(after, rows[name] / len(trunk.actions(name[1])))

    def deviate(trigger, infoset, most, skip=-1):
        for s in trunk.actions(infoset):
            if s != skip:
                children = trunk.children(s)
                worth = {name: trunk.child(s, members, trigger) for name, members in children.items()}
                room = most - trunk.leaves(s, {-1}, trigger) - sum(worth.values())
                for name in children:
                    upper[trigger, name] = worth[name] + room / len(children)
                    if name[0] == "set":
                        deviate(trigger, name[1], upper[trigger, name])

    down(0, np.inf)
    for s in target:
        deviate(s, form.infoset[s], target[s], skip=s)
    return slack, rows, upper, target


@pytest.mark.parametrize("kind", ["separate", "aggregate"])
@examples(64)
@given(random_subgames() | random_subgames("public"), SEEDS)
def test_every_inequality_of_the_proof_holds(kind, subgames, seed):
    """At every trunk node, for both players; and bounds are those of an oracle that knows no arrays."""
    whole, start = subgames[0], blueprint(seed, 0.9)
    level = resolving(whole, start, kind)
    plan = efce.stitch(whole, start, all_refined(level))
    before = efce.CorrelationPlan.of(plan.game, start)
    for player in (0, 1):
        old, new = Trunk(before, player, kind), Trunk(plan, player, kind)
        gains, after = (efce.exploitability(p).delta[player] for p in (before, plan))
        slack, rows, upper, target = shares(old, gains)
        for s in old.inside:
            assert new.v[s] >= old.v[s] - slack[s] - 1e-7
            for name, members in old.children(s).items():
                assert new.child(s, members) >= old.child(s, members) - rows[name] - 1e-7
                for trigger in target:
                    if (trigger, name) in upper:
                        assert new.child(s, members, trigger) <= upper[trigger, name] + 1e-7
        for s, most in target.items():
            assert new.v[s] + after[s] <= most + 1e-7
            assert after[s] <= max(0.0, gains[s]) + 1e-7
            assert gains[s] > 0 or new.v[s] >= most - 1e-7
        finite = sorted(
            old.child(s, m) - rows[c]
            for s in old.inside
            for c, m in old.children(s).items()
            if c[0] != "set" and rows[c] < np.inf
        )
        sides = [level.bounds(name).players[player] for name in level.names]
        lower = np.concatenate([side.lower for side in sides])
        np.testing.assert_allclose(sorted(lower[np.isfinite(lower)]), finite, atol=1e-12)
        caps = np.concatenate([side.upper for side in sides])
        theirs = sorted(most for (_, name), most in upper.items() if name[0] != "set")
        np.testing.assert_allclose(sorted(caps[np.isfinite(caps)]), theirs, atol=1e-12)


def six_heads():
    """Player 0 goes in, player 1 to A, with six information sets of player 0's, or to B, with one."""
    text = EfgText()
    text.move(1, 1, ["out", "in"])
    text.leaf("-1/3", 0)
    text.move(2, 1, "AB")
    text.move(2, 2, range(6))
    for k in range(6):
        text.move(1, k + 2, ["see"])
        text.move(2, k + 3, ["take", "leave"])
        text.leaf(0, 5)
        text.leaf(2, 0)
    text.move(1, 8, ["see"])
    text.leaf(1, 0)
    return text.game()


@pytest.mark.parametrize(("kind", "welfare"), [("separate", 1.25 + 0.25), ("aggregate", 1.125 + 0.25)])
def test_neither_kind_has_more_welfare_in_every_game(kind, welfare):
    """Six heads get six sevenths of the slack, or one half; in Table 1 it is the other way round."""
    whole = efce.finest_subgames(efce.SequenceGame.of(six_heads()), 2)
    level = resolving(whole, blueprint(None), kind)
    assert sum(found.welfare for found in all_refined(level)) == pytest.approx(welfare, abs=1e-7)
    assert stitched(level, blueprint(None), all_refined(level)).violation < 1e-7
