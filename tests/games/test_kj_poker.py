"""KJ poker: rules, and the value of uniform play."""

import pyspiel
import pytest
from open_spiel.python.algorithms import expected_game_score
from open_spiel.python.policy import UniformRandomPolicy

GAME = pyspiel.load_game("python_kj_poker")


def _play(*names):
    state = GAME.new_initial_state()
    for name in names:
        state.apply_action(state.string_to_action(name))
    return state


@pytest.mark.parametrize(
    ("names", "won"),
    [
        (["Deal:JK", "Bet", "Pass"], 1.0),
        (["Deal:JK", "Pass", "Bet", "Pass"], -1.0),
        (["Deal:JK", "Pass", "Pass", "Public:J", "Pass", "Pass"], 1.0),
        (["Deal:JK", "Pass", "Pass", "Public:K", "Pass", "Pass"], -1.0),
        (["Deal:KJ", "Bet", "Bet", "Public:K", "Bet", "Bet"], 7.0),
        (["Deal:KJ", "Bet", "Bet", "Public:J", "Bet", "Bet"], -7.0),
        (["Deal:KJ", "Pass", "Bet", "Bet", "Public:J", "Bet", "Pass"], 3.0),
        (["Deal:KK", "Bet", "Bet", "Public:J", "Bet", "Bet"], 0.0),
        (["Deal:JJ", "Pass", "Pass", "Public:K", "Pass", "Bet", "Pass"], -1.0),
    ],
)
def test_returns(names, won):
    state = _play(*names)
    assert state.is_terminal() and state.returns() == [won, -won]


def test_chance_and_strings():
    state = _play()
    assert state.chance_outcomes() == [(0, 2 / 12), (1, 4 / 12), (2, 4 / 12), (3, 2 / 12)]
    state = _play("Deal:KK", "Bet", "Bet")
    assert state.is_chance_node() and state.chance_outcomes() == [(0, 1.0)]
    state.apply_action(0)
    assert str(state) == "KK bb J"
    assert state.information_state_string(1) == "p1 K bb J"
    assert state.observation_string(1) == "p1 K J 3-3"


def test_uniform_play_is_worth_what_folds_are():
    # Showdowns even out. In a round, player 1 folds to a bet with probability 1/4, player 0 with 1/8, and the
    # pot goes on unraised with 1/4 and raised with 3/8: 1/8 * 1 + (1/4 * 1 + 3/8 * 3) * 1/8.
    values = expected_game_score.policy_value(GAME.new_initial_state(), [UniformRandomPolicy(GAME)] * 2)
    assert values == pytest.approx([19 / 64, -19 / 64], abs=1e-12)
