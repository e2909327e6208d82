"""Preparation with games in chess: what is played, by which rules, and that promises are kept."""

import math

import chess
import pytest

from precomp_games.algorithms import confirmed_precomputation
from precomp_games.chess import PreparationSettings, SearchLimit, board_key, book_exits
from precomp_games.chess.game import RULES_OF_CHESS
from precomp_games.chess.model.engine_policies import EngineMenu
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.plan.trees import certified_book
from precomp_games.chess.play.match import play_match
from tests.chess.test_preparation import HashEngine

_ENDGAME = "8/8/8/3k4/8/8/1Q6/K7 w - - 0 1"  # games are short, and end in all ways


def _prepared(player, **options):
    settings = PreparationSettings(
        player=player, penalty=0.001, fen=_ENDGAME, menu=4, max_plies=20, opponent_temperature_cp=30.0
    )
    policies = preparation_policies(settings, HashEngine())
    known = {"games": 20, "promise_games": 60, "precision": 0.0, "max_evaluations": 60} | options
    found = confirmed_precomputation(
        settings.played_game(), policies.sigma_pre, policies.sigma, settings.penalty, player,
        policies.leaf_value, position_key=board_key, min_probability=settings.min_probability, **known,
    )  # fmt: skip
    return settings, policies, found


@pytest.mark.parametrize("player", [0, 1])
def test_a_match_keeps_the_promise(player):
    _, policies, found = _prepared(player)
    book = certified_book(found.preparation)
    assert book.positions and book.side == (chess.WHITE if player == 0 else chess.BLACK)
    result = play_match(book, policies.sigma[1 - player], policies.sigma[player], 60, seed=9)
    error = math.hypot(found.standard_error, result.standard_error)
    assert abs(found.promise - result.score) < 4.0 * error
    # Lines leave the set where a match's games leave the book, and as often.
    exits = book_exits(book, policies.sigma[1 - player])
    left = {tuple(move.uci() for move in each.history): each.reach for each in exits if not each.over}
    game = found.preparation.game
    for stop in found.stops:
        state = game.new_initial_state()
        for action in stop.history:
            state.apply_action(action)
        assert left.pop(tuple(move.uci() for move in state.moves())) == pytest.approx(stop.reach)
    assert not left


def test_a_book_looks_only_so_far():
    settings, _, found = _prepared(0, games=0, promise_games=2)
    assert found.preparation.size
    assert max(map(len, found.preparation.histories)) < settings.max_plies
    menu = EngineMenu(HashEngine(), SearchLimit(nodes=5000), 4, 4, 100.0, max_plies=2)
    state = settings.played_game().new_initial_state()
    later = state.child(state.legal_actions()[0])
    latest = later.child(later.legal_actions()[0])
    here, there, beyond = menu.entries_batch([state, later, latest])
    assert here and there and beyond == []


def test_games_are_played_by_the_rules_of_chess():
    game = PreparationSettings(max_plies=7).played_game()
    parameters = game.get_parameters()
    assert {name: parameters[name] for name in RULES_OF_CHESS} == dict(RULES_OF_CHESS)
    assert game.max_game_length() == 300
