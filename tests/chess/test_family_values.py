"""Values against a family: sums over members by hand, and fits that find what games were drawn by."""

import dataclasses
import math
import types

import chess
import numpy as np
import pytest

from precomp_games.chess import PreparationSettings, SearchLimit, load_calibration
from precomp_games.chess.engines.searches import Line, SearchResult
from precomp_games.chess.evaluation.calibration import material
from precomp_games.chess.game import action_of
from precomp_games.chess.opponents.family_values import FamilyEvaluation
from precomp_games.chess.preparation.model import preparation_policies
from tests.chess.test_family import Iterating, family
from tests.chess.test_preparation import HashEngine

LIMIT = SearchLimit(nodes=9)
CALIBRATION = load_calibration()


def evaluation(player, **changes):
    """A family of sixteen, and an analyst with scores of either sign, over the usual start."""
    made = family(Iterating(300.0), "", 40, top_k=(2, 3))
    return FamilyEvaluation(HashEngine(500.0), LIMIT, 2, CALIBRATION, made, player, 100, **changes)


class _Certain:
    """A family whose posterior is the same everywhere."""

    def __init__(self, made, posterior):
        self.members, self._posterior = made.members, posterior

    def posteriors(self, states, player):
        return np.array([self._posterior for _ in states])


def _turned(line):
    """A line as the other side sees it."""
    return Line(line.move, None if line.cp is None else -line.cp, None if line.mate is None else -line.mate)


def own_turns(made, count, seed):
    """States in which the preparing side is to move, after moves that members play."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        state = made.family.game.new_initial_state()
        for _ in range(12):
            if state.current_player() == made.player:
                found.append(state.clone())
                state.apply_action(int(rng.choice(state.legal_actions())))
            else:
                state.apply_action(int(rng.choice(list(made.family.action_probabilities(state)))))
    return found[:count]


@pytest.mark.parametrize("player", [0, 1])
def test_values_are_sums_over_members(player):
    made = evaluation(player, coefficients=(0.1, 0.7, 0.3, 1.2, 0.4, -0.2))
    states = own_turns(made, 12, 1)
    for state, value in zip(states, made.evaluate_batch(states).tolist(), strict=True):
        line, lead = made.engine.result(state.epd, LIMIT, 2).lines[0], material(state.board)
        base = 0.1 + 0.7 * line.cp / 400 + 0.3 * math.copysign(math.log1p(abs(lead)), lead)
        posterior, expected = made.family.posterior(state, 1 - player), 0.0
        for p, member in zip(posterior, made.family.members, strict=True):
            z = base + 1.2 * math.log(100 / member.nodes) + 0.4 * math.log(member.temperature_cp / 10)
            expected += p * (0.005 + 0.99 / (1 + math.exp(-z + 0.2 * (member.top_k - 2))))
        assert value == pytest.approx(expected if player == 0 else 1 - expected)
    # Where the opponent is to move, the score is still the preparing side's.
    after = states[0].child(states[0].legal_actions()[0])
    better = dataclasses.replace(made, coefficients=(0.1, 0.9, 0.3, 1.2, 0.4, -0.2))
    line = made.engine.result(after.epd, LIMIT, 2).lines[0]
    rises = better.evaluate_batch([after])[0] - made.evaluate_batch([after])[0]
    assert (rises if player == 0 else -rises) * -line.cp > 0.0


@pytest.mark.parametrize("player", [0, 1])
def test_moves_promise_what_their_scores_are_worth(player):
    made = evaluation(player)
    states = own_turns(made, 6, 4)
    for state, value, promised in zip(
        states, made.evaluate_batch(states).tolist(), made.promised_batch(states), strict=True
    ):
        lines = made.engine.result(state.epd, LIMIT, 2).lines
        assert list(promised) == [action_of(chess.Move.from_uci(line.move)) for line in lines]
        first, second = promised.values()
        assert first == pytest.approx(value)
        assert (first - second) * (lines[0].cp - lines[1].cp) * (1 - 2 * player) >= 0.0
    assert made.promised_batch([]) == []
    # Replies: what the family's largest search says of each, with the material that there is after it.
    state = states[0].child(states[0].legal_actions()[0])
    (promised,) = made.promised_batch([state])
    result = made.family.engine.search([state.epd], SearchLimit(nodes=400), 3, 0, True)[0]
    assert list(promised) == [action_of(chess.Move.from_uci(line.move)) for line in result.lines]
    for line, value in zip(result.lines, promised.values(), strict=True):
        after = state.child(action_of(chess.Move.from_uci(line.move)))
        by_hand = dataclasses.replace(
            made,
            engine=types.SimpleNamespace(search=lambda *_, line=line: [SearchResult((_turned(line),), 1, 1)]),
        )
        posterior = made.family.posterior(state, 1 - player)
        by_hand = dataclasses.replace(by_hand, family=_Certain(made.family, posterior))
        assert by_hand.evaluate_batch([after])[0] == pytest.approx(value)


def test_a_fit_finds_what_games_were_drawn_by(cases):
    made = evaluation(1)
    truth = dataclasses.replace(made, coefficients=(0.3, 1.0, 0.3, 1.9, 0.3, 0.1))
    rng, states = np.random.default_rng(3), own_turns(made, 300, 2)
    black = 1.0 - truth.evaluate_batch(states)
    games = [([s], 1.0 - float(rng.random() < p)) for s, p in zip(states, black.tolist(), strict=True)]
    fitted = made.learned(games * 4)
    before, after = (np.abs(1.0 - each.evaluate_batch(states) - black).mean() for each in (made, fitted))
    assert after < 0.6 * before
    assert made.learned([]) is made and made.learned([([], 1.0)]) is made
    # A game counts once, however many turns it passed: twice the same turn, half each.
    twice = made.learned([(passed * 2, score) for passed, score in games])
    assert twice.coefficients == pytest.approx(made.learned(games).coefficients, abs=1e-3)


def test_a_family_is_valued_so_where_games_correct_the_evaluation():
    settings = PreparationSettings(
        player=1, evaluation="calibrated", opponent="family(nodes=20:400)", own_limit=SearchLimit(nodes=77)
    )
    value = preparation_policies(settings, Iterating()).leaf_value
    assert isinstance(value, FamilyEvaluation) and value.own_nodes == 77 and value.player == 1
    plain = preparation_policies(dataclasses.replace(settings, evaluation="linear"), Iterating()).leaf_value
    assert not isinstance(plain, FamilyEvaluation)
