"""Actions that a player with limited lookahead can find best, by the other's realization plan.

At an information set I of the follower, an action a with a plan t for its own later moves inside the
lookahead has the value

    V_{I,a,t}(x) = sum over s' at k moves below I, through a and by t, of chance(s') h(s') x[sequence(s')]

unnormalized: divided by the weight of I, reach_I(x), it is what the follower expects. A leaf before depth k
counts with its own h. Where the follower does not move again inside its lookahead, t is empty.

An **option** is a class of plans that the follower may find best at I, and the actions that are then optimal:

- tie-breaking "favorable": one option for each (a, t), whose rivals (the options of other actions) must not
  be better;
- "static": likewise, but it must be strictly better than the options of actions that are preferred to a;
- "adversarial": one option for each class of (a, t) that tie whatever x is (structural ties), with all their
  actions, and strictly better than all other classes. All other ties are broken by arbitrarily small changes
  of x, which never lower the adversarial value: min over fewer actions is not less.

**Beside others.** Where the same x meets another type of the follower whose ties are not adversarial, that
type may be held at a tie, and x cannot be changed at will. Then the adversarial type has an option for each
class and each set of actions around it: those of the set need not be worse than the class, and the worst of
them counts. Whatever x is, what is optimal is within the set, so that no option promises too much; and the
set of what is optimal is one of them.

Options that never can be (strictly) best against one rival alone are left out.

**Fixed options.** The leader need not search where the follower's options are the same whatever it plays.

**Lookahead 1 without information sets.** At a history the follower compares h at its
successors. With a static rule its play is known, and the rational player's best response is optimal
(Proposition 3), and makes a Nash equilibrium (Proposition 2). If ties are broken against the rational player,
that is a zero-sum game in which the follower has only its optimal actions.

**All leaves of a zero-sum game in sight.** If utilities have a constant sum, h is the follower's utility at
each leaf, and no leaf is more than k moves below an information set of the follower, then all that it
compares are its own expected utilities. What it does later is what it planned, since it goes by the same
numbers there; so it plays a best response, every one of which leaves the leader with the same utility. The
leader's problem is then to maximize the least that it can be left with, and ties do not matter, but for
leads that are too small for the follower to see (`TIE_TOLERANCE`).

Both are one option at each information set, which has no rivals: the worst of its actions for the leader is
what counts, and that is one linear program.

Source: `limited_lookahead`, sections 4.1 and 4.2; section 5, equations (1) to (3).

Deviations: hypothetical play is enumerated (`MOST_PLANS` at most), not modeled by further binaries as in
(15), which charges branches that were not chosen where h < 0; structural ties take the place of epsilon.

Cost: the histories in each lookahead, times plans inside it; a pass over the sequences for each pair of
options.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from precomp_games._support.checks import ArgumentError
from precomp_games.tree.facts import TERMINAL

from ..sequence_form import PlayerSequences
from .follower import TIE_TOLERANCE, Follower
from .sequence_form import SequenceForm

MOST_PLANS = 2_000
"""The most plans for its own moves inside one lookahead that are enumerated."""

_SUM = 1e-12  # of the greatest payoff: how far sums of utilities may differ by rounding
_ZERO = 1e-14  # of the greatest coefficient: what rounding leaves of differences that are none


@dataclasses.dataclass(frozen=True)
class Rival:
    """An alternative that an option must hold its own against.

    Attributes:
      difference: float[leader's sequences], value of the option less the rival's, in the same units.
      strict: Must be positive; else at least zero.
      can_be_better: Whether `difference @ x` can fall below zero; else only a tie has to be avoided.
    """

    difference: np.ndarray
    strict: bool
    can_be_better: bool


@dataclasses.dataclass(frozen=True)
class Option:
    """Plans that the follower may find best at an information set.

    Attributes:
      sequences: The sequences of its optimal actions then.
      value: float[leader's sequences], V in units of the largest |h| that the follower sees there.
    """

    sequences: tuple[int, ...]
    value: np.ndarray
    rivals: tuple[Rival, ...]


@dataclasses.dataclass(frozen=True)
class InformationSet:
    """Options of the follower at an information set.

    Attributes:
      reach: float[leader's sequences], weight of the set.
    """

    reach: np.ndarray
    options: tuple[Option, ...]


def lookahead_options(
    form: SequenceForm, follower: Follower, h: np.ndarray, beside_others: bool = False
) -> dict[int, InformationSet]:
    """Return the options of every information set of the follower, by its number.

    Args:
      form: the game.
      follower: how far it looks, and how it breaks ties.
      h: float[histories], its evaluation function's values.
      beside_others: whether x also meets a type whose ties are not adversarial; see above.

    Raises:
      ValueError: more plans inside a lookahead than are enumerated.
    """
    leader, own = form.players[follower.rational_player], form.players[follower.player]
    sets = {}
    for infoset, members in form.members(follower.player).items():
        sequences = form.sequence[members, follower.rational_player]
        reach = np.bincount(sequences, form.chance[members], leader.num_sequences)
        seen = [0.0]
        values: list[np.ndarray] = []
        owner: list[int] = []
        for position, sequence in enumerate(own.sequences(infoset)):
            below = [(form.children[s][position], follower.lookahead - 1) for s in members]
            plans = _values_by_plan(form, follower, h, below, seen)
            values += plans
            owner += [sequence] * len(plans)
        held = beside_others and follower.tie_breaking == "adversarial"
        count = len(values) << (len(own.sequences(infoset)) - 1) * held
        _check_few(count, f"{own.keys[infoset]!r} with lookahead {follower.lookahead}")
        table = np.array(values) / (max(seen) or 1.0)
        legal = own.actions(infoset)
        ranked = follower.ranked(own.keys[infoset], legal)
        rank = {own.sequences(infoset)[k]: ranked.index(action) for k, action in enumerate(legal)}
        above = _greatest_lead(leader, table, reach)
        options = _options(table, owner, above, follower.tie_breaking, rank, held)
        sets[infoset] = InformationSet(reach, options)
    return sets


def _values_by_plan(
    form: SequenceForm,
    follower: Follower,
    h: np.ndarray,
    below: Sequence[tuple[int, int]],
    seen: list[float],
) -> list[np.ndarray]:
    """Return values by each of the follower's plans inside the lookahead.

    Args:
      form: the game.
      follower: how far it looks.
      h: as of `lookahead_options`.
      below: histories to go on from, with the moves still seen.
      seen: |h| of what is looked at is added here.
    """
    own, leader = form.players[follower.player], follower.rational_player
    base = np.zeros(form.players[leader].num_sequences)
    sets: dict[int, list[tuple[int, int]]] = {}
    stack = list(below)
    while stack:
        history, moves = stack.pop()
        mover = form.player[history]
        if moves == 0 or mover == TERMINAL:
            seen.append(abs(h[history]))
            base[form.sequence[history, leader]] += form.chance[history] * h[history]
        elif mover == follower.player:
            sets.setdefault(int(form.infoset[history]), []).append((history, moves))
        else:
            stack += [(child, moves - 1) for child in form.children[history]]
    values = [base]
    for infoset, members in sets.items():
        choices: list[np.ndarray] = []
        for position in range(len(own.sequences(infoset))):
            after = [(form.children[s][position], moves - 1) for s, moves in members]
            choices += _values_by_plan(form, follower, h, after, seen)
        _check_few(len(values) * len(choices), repr(own.keys[infoset]))
        values = [one + other for one in values for other in choices]
    return values


def _check_few(count: int, where: str) -> None:
    """Refuse more plans than are enumerated."""
    if count > MOST_PLANS:
        raise ArgumentError(
            f"expected at most {MOST_PLANS} plans inside a lookahead, got {count} at {where}; a smaller "
            "lookahead has fewer"
        )


def _greatest_lead(leader: PlayerSequences, table: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return, at [i, j], the most by which i can exceed j, less the tolerance of ties."""
    count = len(table)
    lead = np.zeros((count, count))
    several = max(1, 4_000_000 // (count * len(reach)))
    for i in range(0, count, several):
        differences = table[i : i + several, None, :] - table[None, :, :] - TIE_TOLERANCE * reach
        lead[i : i + several] = leader.extremes(differences.reshape(-1, len(reach)).T).reshape(-1, count)
    return lead


def _options(
    table: np.ndarray,
    owner: list[int],
    lead: np.ndarray,
    tie_breaking: str,
    rank: dict[int, int],
    held: bool,
) -> tuple[Option, ...]:
    """Return the options of an information set.

    Args:
      table: float[n, leader's sequences], the value under each pair of an action and a plan.
      owner: the follower's sequence of each action.
      lead: as `_greatest_lead` gives it.
      tie_breaking: the rule.
      rank: {follower's sequence: its place in the static order}.
      held: whether adversarial ties that are not structural count, as another type may hold x at one.
    """
    adversarial, static, count = tie_breaking == "adversarial", tie_breaking == "static", len(table)
    small = _ZERO * max(1.0, float(np.abs(table).sum(axis=1).max()))
    never = lead <= small  # [i, j]: i is never better than j
    ranks = np.array([rank[sequence] for sequence in owner])
    preferred = static & (ranks < ranks[:, None])  # [i, j]: j's action is, to that of i
    # By the first member of each class of structural ties, the actions of all of them.
    actions: dict[int, set[int]] = {}
    for i in range(count):
        same = [j for j in actions if never[i, j] and never[j, i]] if adversarial else []
        actions.setdefault(same[0] if same else i, set()).add(owner[i])
    classes = list(actions)
    if adversarial:
        kept = [i for i in classes if not any(never[i, j] and j != i for j in classes)]
    else:
        # Of two plans for the same action that are never apart, the first stays.
        alike = np.equal.outer(owner, owner) & never & (~never.T | np.tri(count, k=-1, dtype=bool))
        np.fill_diagonal(alike, False)
        kept = [i for i in classes if not (alike[i] | (never[i] & preferred[i])).any()]
    options: list[Option] = []
    for i in kept:
        for tied in _around(actions[i], owner, held):
            rivals = []
            # What can never be best can still tie with i at some x.
            for j in classes:
                strict = adversarial or bool(preferred[i, j])
                if actions[j] <= tied or (never[j, i] and not strict):  # which holds whatever x is
                    continue
                difference = table[i] - table[j]
                difference[np.abs(difference) <= small] = 0.0
                rivals.append(Rival(difference, strict, not never[j, i]))
            option = Option(tuple(sorted(tied)), table[i], tuple(rivals))
            if rivals or not any(o.sequences == option.sequences and not o.rivals for o in options):
                options.append(option)
    return tuple(options)


def _around(actions: set[int], owner: list[int], held: bool) -> list[set[int]]:
    """Return a class's actions; where others may be held at a tie, also these with each set of others."""
    others = sorted(set(owner) - actions) if held else []
    sizes = range(len(others) + 1)
    return [actions | set(more) for size in sizes for more in itertools.combinations(others, size)]


def fixed_options(form: SequenceForm, follower: Follower, h: np.ndarray) -> dict[int, InformationSet] | None:
    """Return one option for each information set where these describe all of the follower's play; else None.

    Args:
      form: the game.
      follower: how far it looks, and how it breaks ties.
      h: float[histories], its evaluation function's values.
    """
    if _sees_one_history(form, follower) and follower.tie_breaking != "favorable":
        actions = _best_actions(form, follower, h)
    elif _sees_all(form, follower, h):
        own = form.players[follower.player]
        actions = {infoset: own.sequences(infoset) for infoset in range(1, own.num_infosets)}
    else:
        return None
    leader = form.players[follower.rational_player]
    nothing = np.zeros(leader.num_sequences)
    sets = {}
    for infoset, members in form.members(follower.player).items():
        sequences = form.sequence[members, follower.rational_player]
        reach = np.bincount(sequences, form.chance[members], leader.num_sequences)
        sets[infoset] = InformationSet(reach, (Option(tuple(actions[infoset]), nothing, ()),))
    return sets


def _sees_one_history(form: SequenceForm, follower: Follower) -> bool:
    """Return whether the follower sees one move, and has no information sets of several histories."""
    alone = all(len(histories) == 1 for histories in form.members(follower.player).values())
    return follower.lookahead == 1 and alone


def _sees_all(form: SequenceForm, follower: Follower, h: np.ndarray) -> bool:
    """Return whether the follower sees every leaf below it, by its utility, in a game of constant sum."""
    leaves = form.leaves
    own, total = form.utility[leaves, follower.player], form.utility[leaves].sum(axis=1)
    if not np.array_equal(h[leaves], own) or np.ptp(total) > _SUM * np.abs(form.utility).max():
        return False
    height = np.zeros(form.num_histories, np.int64)  # moves to the farthest leaf
    for history in range(form.num_histories - 1, 0, -1):
        height[form.parent[history]] = max(height[form.parent[history]], height[history] + 1)
    return bool((height[form.player == follower.player] <= follower.lookahead).all())


def _best_actions(form: SequenceForm, follower: Follower, h: np.ndarray) -> dict[int, Sequence[int]]:
    """Return the sequences of the follower's optimal actions, or of the rule's pick, by history."""
    own = form.players[follower.player]
    actions: dict[int, Sequence[int]] = {}
    for infoset, (history,) in form.members(follower.player).items():
        values = h[list(form.children[history])]
        scale = float(np.abs(values).max())
        best = np.flatnonzero(values >= values.max() - TIE_TOLERANCE * scale).tolist()
        if follower.tie_breaking == "static":
            legal = own.actions(infoset)
            ranked = follower.ranked(own.keys[infoset], legal)
            best = [min(best, key=lambda k: ranked.index(legal[k]))]
        actions[infoset] = [own.sequences(infoset)[k] for k in best]
    return actions
