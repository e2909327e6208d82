"""Time that known moves save: by hand, and beside what a preparation promises."""

import math

import pytest

from precomp_games.chess import ChessGame
from precomp_games.chess.game import action_of
from precomp_games.chess.model.people_values import load_people
from precomp_games.chess.model.saved_time import SavedTime

PEOPLE = load_people()
TIMES, UTILITY = PEOPLE.times_at("blitz", 1500.0), PEOPLE.at("blitz", 1500.0)


def after(line):
    state = ChessGame({"max_plies": 100}).new_initial_state()
    for san in line.split():
        state.apply_action(action_of(state.board.parse_san(san)))
    return state


@pytest.mark.parametrize("player", [0, 1])
def test_all_known_moves_but_the_first_save_time(player):
    saved = SavedTime(TIMES, UTILITY, player)
    line = ["e4", "e5", "Nf3", "Nc6", "Bb5", "a6", "Ba4", "Nf6"]
    expected = 0.0
    for ply in range(len(line) + 1):
        here = after(" ".join(line[:ply]))
        assert saved.seconds(here) == pytest.approx(expected)
        if ply % 2 == player and ply >= 2:
            expected += TIMES.saved(ply, len(here.legal_actions()))
    assert SavedTime(TIMES, UTILITY, player).seconds(after(" ".join(line))) == saved.seconds(here) > 0.5


def test_time_adds_on_the_logit_and_ended_games_stay():
    saved, state = SavedTime(TIMES, UTILITY, 0), after("e4 e5 Nf3 Nc6 Bb5 a6")
    left, score = TIMES.clock(6), 0.53
    z = math.log(score / (1.0 - score)) + UTILITY.clock * math.log((left + saved.seconds(state)) / left)
    assert saved.with_time(score, state) == pytest.approx(1.0 / (1.0 + math.exp(-z)))
    assert saved.with_time(score, after("")) == pytest.approx(score)  # nothing was known
    assert [saved.with_time(each, state) for each in (0.0, 1.0)] == [0.0, 1.0]
