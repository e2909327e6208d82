"""The rules of the meta-game G' on a history tree, in two forms of charging for memory.

A player decides at each of its information states that it may memorize, until it stops. It memorizes an
entry of its menu (action 1 + k for entry k, so 1 where the menu has one entry), or it stops for good
(action 0). A chance move then draws the base game's action: from the entry, or from sigma once the player
has stopped. Positions are indices into the tree. Charges are in utility of the base game. Returns are
utilities less c / 2, where c is their constant sum.

Either form charges a player in such a manner that its expected cost is lambda_i x_i(I), summed over its
information states I, whatever the opponent does. Here x_i(I) is player i's own realization weight of
memorizing I, by any entry.

**The reweighted form** (Lemma 4). Let h' be a history of G' that stands for a history h of the tree, and
let h be in information state I of player i. Memorizing at h' costs lambda_i q(h) / pi_c(h'), where pi_c(h')
is the product of all chance probabilities on the path to h', and q is a distribution over the histories of
I. Write y(h') for the opponent's realization weight of its choices on that path. The expected cost of
memorizing I is

    sum over h in I, h' over h:  x_i(I) y(h') pi_c(h') lambda_i q(h) / pi_c(h')
        = lambda_i x_i(I) sum over h of q(h) sum over h' of y(h'),

where the inner sum is over those h' that chance can reach. The h' of one h differ in when the opponent has
stopped, so y sums to 1 over all of them. Hence the cost is lambda_i x_i(I), whatever the opponent does, if
and only if q(h) > 0 implies that chance reaches h for every stop time of the opponent. Where the opponent
chose among several entries on the path to h, the sum of y falls short of 1 by the weight of the entries
that do not lead to h. So a history is called *safe* if every stop time of the opponent has positive chance,
and if the opponent chose among several entries nowhere on the path. The form is wrong at an information
state that has no safe history, and such a tree is refused. Among safe histories, q is proportional to the
smallest pi_c(h') over the stop times, since no other q has a smaller largest charge.

**The audit form.** A chance move at the root, which neither player observes, chooses "play" or "audit i".
Under "play", the base game is played for its utility divided by the probability of this branch. Under
"audit i", which has probability p_i, chance alone visits information states of player i. Memorizing I costs
lambda_i / (p_i a(I)), where a(I) is the probability that the audit visits I if the player memorizes
everything before it. Stopping ends the game. The expected cost is p_i a(I) x_i(I) lambda_i / (p_i a(I)) =
lambda_i x_i(I), which is exact for all policies.

The audit draws information states so that returns stay small. Let N(J) be the largest number of information
states that a player can memorize among J and those after it: 1 plus the largest sum of N over the
information states right after an entry, over the entries of J. After an entry, chance goes to one of the
information states right after it in proportion to N, and likewise at the start, where the N sum to m_i, the
size of the largest memorization set. It follows by induction from the end that a line which memorizes
entries with the largest sums to its end costs lambda_i m_i / p_i, and that any other line costs less. No
other draw has a smaller maximum, because a largest set costs lambda_i m_i in expectation. Let U = max |u -
c / 2|. If p is proportional to U and p_i to lambda_i m_i, then no return is larger than U + lambda_0 m_0 +
lambda_1 m_1, and every branch attains this bound. Without menus, N(J) counts J and all information states
after it, m_i counts all of player i's, and all lines cost the same.

Source: `precomputation`, section 4.1 and Lemma 4 of the appendix; audits are ours.

Deviations: menus, q and safe histories are ours. The paper has information states of one history, and
assumes pi_c(h') > 0 without saying so. An audit goes from one information state straight to the next, at
one history of each, and leaves out the moves in between, from which no player would learn anything.

Cost: numpy passes over the tree's levels, and lists of its arrays, about 270 bytes per history.
"""

from __future__ import annotations

import bisect
import contextlib
from typing import Annotated, NamedTuple

import numpy as np
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games.policies.rows import action_words
from precomp_games.tree.facts import CHANCE, TERMINAL
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import check_constant_sum

FORMS = ("audit", "reweighted")
"""The forms of charging for memory."""
Form = Annotated[str, checks.one_of(FORMS)]
"""One of `FORMS`."""

STOP = 0
"""The action of stopping for good: sigma is played from here on."""

MEMORIZE = 1
"""The action of memorizing the information state: sigma_pre is played here. With a menu, its first entry;
the actions of the others follow."""

_BRANCH, _HERE, _PRE, _SIGMA, _FIRST, _OVER = range(6)  # MetaPosition.phase
_PLAY = -1  # MetaPosition.audited
_SLACK = 1.0 + 1e-9  # returns are sums of rounded numbers


class MetaPosition(NamedTuple):
    """A position of a meta-game; immutable.

    Attributes:
      phase: The next step: the audit's root, the history itself (a decision, a chance move by sigma or the
        end), a chance move by sigma_pre or sigma, an audit's first information state, or nothing.
      history: Index into the tree; of an audit, the first history of the information state.
      audited: The player that is audited, or -1.
      stopped: The histories at which players 0 and 1 have stopped, -1 for one that has not.
      chance: Pi_c, the product of chance probabilities (reweighted form; else 1).
      cost: The charges to player 0 so far, less those to player 1.
      entry: The entry of its menu that the mover has memorized, where that comes next.
    """

    phase: int
    history: int = 0
    audited: int = _PLAY
    stopped: tuple[int, int] = (-1, -1)
    chance: float = 1.0
    cost: float = 0.0
    entry: int = 0

    def __deepcopy__(self, memo: object) -> MetaPosition:
        return self


class MetaRules:
    """The rules and tables of one meta-game. They do not change: states and games share them.

    Attributes:
      tree: the history tree.
      form: "reweighted" or "audit".
      shift: c / 2, what player 0's returns lack to be utilities of the base game.
      branches: probabilities of play, audit 0 and audit 1; (1, 0, 0) in the reweighted form.
      max_utility: no return is larger; the smallest is its negative.
      max_decisions, max_chance_nodes: the most that any line of play has.
      max_chance_outcomes: no chance move has an id as large as this.
      num_actions: 1 + the size of the largest menu of a player who decides.
    """

    @public
    def __init__(self, tree: HistoryTree, form: Form, check_supports: bool) -> None:
        """Build the tables.

        Raises:
          ValueError: the tree cannot be played out, or the reweighted form would be wrong on it.
        """
        check_constant_sum(tree)
        if tree.stop_value != "backup":
            wanted = 'a tree with stop_value="backup", where sigma is known after stops'
            raise ArgumentError(f"expected {wanted}, got {tree.stop_value!r}")
        self.tree, self.form, self.check_supports = tree, form, check_supports
        self.shift = tree.utility_sum / 2.0
        leaf = tree.num_children == 0
        finite = np.isfinite(tree.penalties)
        decides = (tree.infoset >= 0) & finite[np.clip(tree.player, 0, 1)]
        self._decides = decides
        self._mover = np.where(leaf, TERMINAL, np.where(decides, tree.player, CHANCE)).tolist()
        self._first_child, self._num_children = tree.first_child.tolist(), tree.num_children.tolist()
        self._action, self._infoset = tree.action.tolist(), tree.infoset.tolist()
        self._sigma, self._sigma_pre = tree.sigma.tolist(), tree.sigma_pre.tolist()
        self._entry = tree.entry.tolist()
        self._utility = np.where(leaf, tree.value - self.shift, 0.0).tolist()
        self._views: dict[int, str] = {}
        self._names: dict[int, list[str]] = {}
        # Each player's last history before h with an information state, -1 for none.
        self._last = [np.where(edge > 0, tree.parent[edge], -1).tolist() for edge in tree.own_edges]
        self._representative = tree.infoset_history.tolist()
        self._infoset_tables()

        self.branches = (1.0, 0.0, 0.0)
        decisions = np.zeros(tree.num_histories, np.int64)  # of the ancestors of h
        for level in tree.levels[1:]:
            parent = tree.parent[level]
            decisions[level] = decisions[parent] + decides[parent]
        self.max_decisions, self.max_chance_nodes = int(decisions.max()), len(tree.levels) - 1
        self.max_chance_outcomes = int(tree.action.max(initial=0)) + 1
        largest = float(np.abs(tree.value - self.shift)[leaf].max())
        if form == "audit":
            self._audit_tables(largest)
        else:
            self._reweighted_tables()

    # -- tables ------------------------------------------------------------------------------------

    def _infoset_tables(self) -> None:
        """Build each player's treeplex: the information states before and after each, and their numbers.

        _first_entry: the entries of I are _first_entry[I]:_first_entry[I + 1]. By entry: _owner, the
        information state; _following, the information states that come right after it; _after, the sum of
        their _below, which is N.
        """
        tree, m = self.tree, self.tree.num_infosets
        self._previous, self._first_entry = tree.previous.tolist(), tree.first_entry.tolist()
        self._owner: list[int] = tree.entry_infoset.tolist()
        self._rank, self._below, self._after = [0] * m, [1] * m, [0] * tree.num_entries
        self._following: list[list[int]] = [[] for _ in range(tree.num_entries)]
        self._starts: tuple[list[int], list[int]] = ([], [])  # each player's first information states
        for k, (player, before) in enumerate(zip(tree.infoset_player.tolist(), self._previous, strict=True)):
            if before < 0:
                self._starts[player].append(k)
            else:
                self._rank[k] = self._rank[self._owner[before]] + 1
                self._following[before].append(k)
        for k in range(m - 1, -1, -1):
            self._below[k] += max(self._after[self._first_entry[k] : self._first_entry[k + 1]])
            if self._previous[k] >= 0:
                self._after[self._previous[k]] += self._below[k]
        sizes = np.diff(tree.first_entry)[np.isfinite(tree.penalties)[tree.infoset_player]]
        self.num_actions = 1 + int(sizes.max(initial=1))

    def _audit_tables(self, largest: float) -> None:
        """Build the branches' probabilities, and the price of each information state in its audit."""
        tree = self.tree
        prices: list[float] = tree.infoset_penalty.tolist()
        charge, full, depth = [0.0] * len(prices), [0.0, 0.0], 0
        for i in (0, 1):
            if not (self._starts[i] and np.isfinite(tree.penalties[i])):
                continue
            size = sum(self._below[k] for k in self._starts[i])  # of the largest set
            # (I, 1 / a(I), what the audit has charged before)
            lines = [(k, size / self._below[k], 0.0) for k in self._starts[i]]
            while lines:
                k, inverse, paid = lines.pop()
                charge[k] = prices[k] * inverse
                paid += charge[k]
                full[i] = max(full[i], paid)
                for e in range(self._first_entry[k], self._first_entry[k + 1]):
                    after = inverse * self._after[e]
                    lines += [(j, after / self._below[j], paid) for j in self._following[e]]
                depth = max(depth, self._rank[k] + 1)
            full[i] = full[i] or 1.0  # where all is free, it is audited all the same
            self.max_chance_outcomes = max(self.max_chance_outcomes, len(self._starts[i]))
        play = largest or sum(full) or 1.0  # utilities that are all c / 2 need some branch all the same
        total = play + sum(full)
        self.branches = (play / total, full[0] / total, full[1] / total)
        self.max_utility = total * _SLACK
        branch = np.array(self.branches)[1 + tree.infoset_player]
        self._charge = np.divide(charge, branch, out=np.zeros(len(charge)), where=branch > 0.0).tolist()
        self.max_chance_outcomes = max(3, self.max_chance_outcomes, *map(len, self._following), 0)
        self.max_chance_nodes = 1 + max(self.max_chance_nodes, depth)

    def _stop_reaches(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (going, least, safe): each player's reach of the histories over its stop times, [2, n] each.

        A player's stop times at h are the ancestors of h at which it may have stopped, and never. `going` is
        the player's reach if it has not stopped, and `least` the smallest positive reach over its stop times,
        inf where none is positive. `safe` marks that all are positive, and that the player chose among
        several entries nowhere.
        """
        tree, n = self.tree, self.tree.num_histories
        going, least = np.ones((2, n)), np.full((2, n), np.inf)
        goes, safe = np.ones((2, n), bool), np.ones((2, n), bool)
        several = (tree.infoset >= 0) & (np.diff(tree.first_entry, append=0)[tree.infoset] > 1)
        for level in tree.levels[1:]:
            parent = tree.parent[level]
            sigma, pre, mover = tree.sigma[level], tree.sigma_pre[level], tree.player[parent]
            for j in (0, 1):
                own = mover == j
                chooses = own & self._decides[parent]
                edge = np.where(chooses, pre, np.where(own, sigma, 1.0))
                going[j, level] = going[j, parent] * edge
                goes[j, level] = goes[j, parent] & (edge > 0.0)
                here = np.where(chooses & goes[j, parent], going[j, parent], np.inf)
                stopped = np.minimum(least[j, parent], here)
                step = np.where(own, sigma, 1.0)
                least[j, level] = np.where(step > 0.0, stopped * np.where(step > 0.0, step, 1.0), np.inf)
                alike = (edge > 0.0) & (step > 0.0) & ~(chooses & several[parent])
                safe[j, level] = safe[j, parent] & alike
        return going, np.minimum(least, np.where(goes, going, np.inf)), safe

    def _reweighted_tables(self) -> None:
        """Build lambda_i q(h) of each history, and the bound on returns."""
        tree, n, chance = self.tree, self.tree.num_histories, self.tree.chance_reach
        going, least, safe = self._stop_reaches()
        weight, charge, wrong = np.zeros(n), np.zeros(n), np.zeros(n, bool)
        for i in (0, 1):
            own = np.flatnonzero(self._decides & (tree.player == i))
            infoset, m = tree.infoset[own], tree.num_infosets
            reached = np.isfinite(least[1 - i, own])
            good = reached & safe[1 - i, own]
            without = reached & (np.bincount(infoset[good], minlength=m)[infoset] == 0)
            wrong[own[without]] = True
            # Without a safe history, and if that is allowed: the paper's game, over what can be reached.
            share = np.where(good | without, chance[own] * least[1 - i, own], 0.0)
            total = np.bincount(infoset, share, minlength=m)[infoset]
            with np.errstate(divide="ignore", invalid="ignore"):
                weight[own] = np.where(share > 0.0, tree.infoset_penalty[infoset] * share / total, 0.0)
                largest = weight[own] / (chance[own] * going[i, own] * least[1 - i, own])
            charge[own] = np.where(reached, largest, 0.0)
        if self.check_supports and wrong.any():
            history = int(np.argmax(wrong))
            i, actions = int(tree.player[history]), tree.actions(history)
            words = " ".join(map(str, actions))
            with contextlib.suppress(pyspiel.SpielError, RuntimeError, ValueError):  # no game may load
                words = " ".join(action_words(tree.game, actions))
            raise ArgumentError(
                "expected policies under which whatever a player may memorize can be reached whenever its "
                f'opponent stops (form="reweighted"), got player {i} at history {words!r}, which some times '
                f"of stopping of player {1 - i} rule out, so that memorizing it would go uncharged; use "
                'form="audit", or check_supports=False for the paper\'s game all the same'
            )
        if not np.isfinite(charge).all():
            wanted = 'probabilities that form="reweighted" can divide by'
            raise ArgumentError(f'expected {wanted}, got some too small for floating point; use form="audit"')
        costs = np.zeros((2, n))
        for level in tree.levels[1:]:
            parent = tree.parent[level]
            for i in (0, 1):
                paid = self._decides[parent] & (tree.player[parent] == i) & (tree.sigma_pre[level] > 0.0)
                costs[i, level] = costs[i, parent] + np.where(paid, charge[parent], 0.0)
        ends = (tree.num_children == 0) & np.isfinite(least).all(axis=0)
        utility = tree.value[ends] - self.shift
        returns = np.maximum(utility + costs[1, ends], costs[0, ends] - utility)
        self.max_utility = float(returns.max()) * _SLACK
        self._weight = weight.tolist()

    # -- the rules ---------------------------------------------------------------------------------

    def start(self) -> MetaPosition:
        """Return the first position."""
        return MetaPosition(_BRANCH if self.form == "audit" else _HERE)

    def player(self, at: MetaPosition) -> int:
        """Return the mover: 0, 1, CHANCE or TERMINAL."""
        if at.phase != _HERE:
            return TERMINAL if at.phase == _OVER else CHANCE
        mover: int = self._mover[at.history]
        return CHANCE if mover >= 0 and at.stopped[mover] >= 0 else mover

    def infoset(self, at: MetaPosition) -> int:
        """Return the tree's information state that the mover decides on, -1 at other positions."""
        return self._infoset[at.history] if self.player(at) >= 0 else -1

    def choices(self, at: MetaPosition) -> range:
        """Return the actions of a decision: stop, and each entry of the menu."""
        infoset = self._infoset[at.history]
        return range(1 + self._first_entry[infoset + 1] - self._first_entry[infoset])

    def outcomes(self, at: MetaPosition) -> list[tuple[int, float]]:
        """Return a chance move's (id, probability): base-game actions, branches, or places."""
        if at.phase == _BRANCH:
            return [(k, p) for k, p in enumerate(self.branches) if p > 0.0]
        if at.audited >= 0:
            following = self._next(at)
            total = sum(self._below[k] for k in following)
            return [(place, self._below[k] / total) for place, k in enumerate(following)]
        first = self._first_child[at.history]
        last = first + self._num_children[at.history]
        row = self._played(at, first, last)
        return [(a, p) for a, p in zip(self._action[first:last], row, strict=True) if p > 0.0]

    def _played(self, at: MetaPosition, first: int, last: int) -> list[float]:
        """Return the probabilities with which a chance move leads to some of the children of a history."""
        row: list[float] = (self._sigma_pre if at.phase == _PRE else self._sigma)[first:last]
        if at.phase != _PRE or not self._entry:
            return row
        return [p if e == at.entry else 0.0 for e, p in zip(self._entry[first:last], row, strict=True)]

    def _next(self, at: MetaPosition) -> list[int]:
        """Return the information states that an audit may visit next."""
        if at.phase == _FIRST:
            return self._starts[at.audited]
        return self._following[self._first_entry[self._infoset[at.history]] + at.entry]

    def step(self, at: MetaPosition, action: int) -> MetaPosition:
        """Return the position after an action.

        Raises:
          ValueError: the action is not possible there.
        """
        mover = self.player(at)
        if mover >= 0 and action in self.choices(at):
            return self._decide(at, mover, action)
        if mover == CHANCE and at.phase == _BRANCH:
            if 0 <= action < 3 and self.branches[action] > 0.0:
                return MetaPosition(_FIRST, audited=action - 1) if action else MetaPosition(_HERE)
        elif mover == CHANCE and at.audited >= 0:
            following = self._next(at)
            if 0 <= action < len(following):
                history = self._representative[following[action]]
                return at._replace(phase=_HERE, history=history, entry=0)
        elif mover == CHANCE:
            first = self._first_child[at.history]
            last = first + self._num_children[at.history]
            child = bisect.bisect_left(self._action, action, first, last)
            p = self._played(at, child, child + 1)[0] if child < last else 0.0
            if p > 0.0 and self._action[child] == action:
                chance = 1.0 if self.form == "audit" else at.chance * p
                return MetaPosition(_HERE, child, _PLAY, at.stopped, chance, at.cost)
        raise ArgumentError(f"expected a legal action, got {action} at {self.describe(at)}")

    def _decide(self, at: MetaPosition, mover: int, action: int) -> MetaPosition:
        if action == STOP:
            phase = _SIGMA if at.audited < 0 else _OVER
            stopped = (at.history, at.stopped[1]) if mover == 0 else (at.stopped[0], at.history)
            return at._replace(phase=phase, stopped=stopped)
        cost, phase, entry = 0.0, _PRE, action - MEMORIZE
        if at.audited >= 0:
            infoset = self._infoset[at.history]
            cost = self._charge[infoset]
            phase = _PRE if self._following[self._first_entry[infoset] + entry] else _OVER
        elif self.form == "reweighted":
            cost = self._weight[at.history] / at.chance
        return at._replace(phase=phase, cost=at.cost + (cost if mover == 0 else -cost), entry=entry)

    def returns(self, at: MetaPosition) -> float:
        """Return player 0's return; 0 before the end."""
        if self.player(at) != TERMINAL:
            return 0.0
        utility = 0.0 if at.audited >= 0 else self._utility[at.history] / self.branches[0]
        return float(utility - at.cost) + 0.0  # never -0.0

    # -- names -------------------------------------------------------------------------------------

    def view(self, at: MetaPosition, player: int) -> str:
        """Return a player's view: base-game actions, or its last information state; and its own choices.

        Where the player decides this is its information state in G', equal in play and under audit.
        """
        if self.player(at) == player:
            return self.infoset_view(self._infoset[at.history])
        last, made = self.known(at, player)
        return self._view(player, at.history if self.tree.infoset_keys is None else last, made)

    def known(self, at: MetaPosition, player: int) -> tuple[int, list[tuple[int, int]]]:
        """Return a player's last history with an own information state, or -1; its (infoset, action)s."""
        h, stopped = at.history, at.stopped[player]
        if at.phase in (_BRANCH, _FIRST):  # where information is perfect, seen as the root is
            return (0 if self._mover[0] == player and self.tree.infoset_keys is None else -1), []
        last = h if self._mover[h] == player else self._last[player][h]
        decided = stopped if stopped >= 0 else last
        if decided < 0 or not self._decides[decided]:
            return last, []
        made = self._choices_before(self._infoset[decided])
        if self.player(at) != player:
            action = STOP if stopped >= 0 else MEMORIZE + self._entry_at(at, player)
            made.append((self._infoset[decided], action))
        return last, made

    def infoset_view(self, infoset: int) -> str:
        """Return the information state string of G' at an information state of the tree."""
        if infoset not in self._views:
            player = int(self.tree.infoset_player[infoset])
            made = self._choices_before(infoset)
            self._views[infoset] = self._view(player, self._representative[infoset], made)
        return self._views[infoset]

    def _choices_before(self, infoset: int) -> list[tuple[int, int]]:
        """Return the mover's choices in G' before an information state: each memorizes what leads there."""
        made: list[tuple[int, int]] = []
        while (before := self._previous[infoset]) >= 0:
            infoset = self._owner[before]
            made.append((infoset, MEMORIZE + before - self._first_entry[infoset]))
        return made[::-1]

    def _entry_at(self, at: MetaPosition, player: int) -> int:
        """Return the entry that a player who has not stopped has memorized last."""
        if self._mover[at.history] == player:
            return at.entry
        return self._entry[int(self.tree.own_edges[player][at.history])] if self._entry else 0

    def _view(self, player: int, history: int, made: list[tuple[int, int]]) -> str:
        keys = self.tree.infoset_keys
        choices = ("" if self.num_actions <= 10 else ".").join(str(action) for _, action in made)
        if keys is None:
            return f"{player}|{' '.join(map(str, self.tree.actions(history)))}|{choices}"
        # Choices come first: nothing is known of what a base game's strings contain.
        return f"{player}|{choices}" + (f"|{keys[self._infoset[history]]}" if history >= 0 else "")

    def action_name(self, at: MetaPosition, action: int) -> str:
        """Return an action in words."""
        if self.player(at) >= 0:
            return self.choice_names(self._infoset[at.history])[action]
        if at.phase == _BRANCH:
            return "play" if action == 0 else f"audit player {action - 1}"
        if at.audited >= 0:
            return f"information state {self._next(at)[action]}"
        try:
            state = self.tree.state(at.history)
            return str(state.action_to_string(state.current_player(), action))
        except (pyspiel.SpielError, RuntimeError, ValueError):
            return str(action)  # a tree from a file whose base game no string loads

    def choice_names(self, infoset: int) -> list[str]:
        """Return the actions of a decision in words; of several entries, each is named by its moves."""
        if infoset not in self._names:
            names, size = ["stop"], self._first_entry[infoset + 1] - self._first_entry[infoset]
            for entry in range(size if size > 1 else 0):
                at = MetaPosition(_PRE, self._representative[infoset], entry=entry)
                moves = "/".join(self.action_name(at, action) for action, _ in self.outcomes(at))
                names.append(f"memorize {moves}")
            self._names[infoset] = names if size > 1 else ["stop", "memorize"]
        return self._names[infoset]

    def describe(self, at: MetaPosition) -> str:
        """Return a position in words."""
        if at.phase == _BRANCH:
            return "start"
        where = "play" if at.audited < 0 else f"audit of player {at.audited}"
        path = " ".join(map(str, self.tree.actions(at.history)))
        phases = {_PRE: "memorized", _SIGMA: "stopped", _FIRST: "begins", _OVER: "over"}
        ends = [f"player {i} stopped" for i in (0, 1) if at.stopped[i] >= 0 and at.phase != _SIGMA]
        now = [phases[at.phase]] if at.phase in phases else []
        return ", ".join([f"{where} at [{path}]", *now, *ends])
