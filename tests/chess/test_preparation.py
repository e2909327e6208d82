"""From scores to policies, evaluations, trees and books, with an engine that is a hash function."""

import dataclasses
import itertools
import json
import math
import random

import chess
import chess.engine
import numpy as np
import pyspiel
import pytest
from hypothesis import example, given

from precomp_games.algorithms import best_precomputation, value_against_components
from precomp_games.chess import (
    Book,
    EnginePolicy,
    PreparationSettings,
    SearchLimit,
    action_of,
    move_of,
    preparation_book,
    preparation_tree,
    write_pgn,
)
from precomp_games.chess.data.book import points
from precomp_games.chess.engines.searches import MATE_CP, MAX_CP, MAX_MATE, Line
from precomp_games.chess.game import RULES_OF_CHESS
from precomp_games.chess.model.engine_policies import WdlUtility, centipawns, score_utility, softmax
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.plan.preparation import best_parts
from precomp_games.chess.study.words import OpponentWords
from tests.oracles.chess_books import book_of, random_books
from tests.oracles.engines import AnsweringEngine, HashEngine
from tests.oracles.games import SEEDS
from tests.properties import examples

PENALTY = 0.002
DEEP, SHALLOW = SearchLimit(nodes=5000), SearchLimit(nodes=1000)
_SHUFFLING = "4k2r/8/8/8/8/8/8/R3K3 w - - 0 1"
BLACK_FIRST = "4k3/4p3/8/8/8/8/4P3/4K3 b - - 0 1"


def settings_of(**changes):
    """Settings of a small preparation against an engine that errs."""
    return PreparationSettings(
        **{"penalty": PENALTY, "max_plies": 7, "opponent_temperature_cp": 80.0} | changes
    )


def test_centipawns_put_every_mate_beyond_every_score():
    scores = [(None, 1), (None, MAX_MATE), (MAX_CP, None), (0, None), (-MAX_CP, None), (None, -MAX_MATE)]
    values = [centipawns(Line("e2e4", cp, mate)) for cp, mate in [*scores, (None, -1)]]
    assert values == sorted(set(values), reverse=True)
    assert values[0] == MATE_CP - 1 and values[-1] == 1 - MATE_CP


@pytest.mark.parametrize(
    ("name", "scale", "values"),
    [
        ("threshold", 400, {399: 0.5, 400: 1.0, -399: 0.5, -400: 0.0}),
        ("linear", 400, {0: 0.5, 100: 0.625, -1000: 0.0, 1000: 1.0}),
        ("linear", 200, {100: 0.75}),
        ("wdl", 200, {0: 0.5}),
    ],
)
def test_score_utilities(name, scale, values):
    utility, board = score_utility(name, scale, "Stockfish 15.1"), chess.Board()
    for cp, expected in values.items():
        assert utility.mover_utility(Line("e2e4", cp, None), board) == pytest.approx(expected)
    for mate in (2, -2):  # which decides
        assert utility.mover_utility(Line("e2e4", None, mate), board) == float(mate > 0)


def test_wdl_is_the_model_of_the_engines_version():
    late, line = chess.Board("4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 60"), Line("e2e4", 80, None)
    versions = {"Stockfish 15.1": "sf15.1", "Stockfish 16": "sf16", "Stockfish 15 [Hash=64]": "sf15"}
    for name, model in versions.items():
        utility = score_utility("wdl", 400.0, name)
        assert isinstance(utility, WdlUtility) and utility.model == model
        expected = chess.engine.Cp(80).wdl(model=model, ply=late.ply()).expectation()
        assert utility.mover_utility(line, late) == expected != utility.mover_utility(line, chess.Board())
    for name in ("stockfish", "Stockfish dev-20240101"):
        with pytest.raises(ValueError, match=r"score_utility\(\): expected Stockfish .* got"):
            score_utility("wdl", 400.0, name)


def test_softmax():
    assert softmax([30, 30], 1e-6) == pytest.approx([0.5, 0.5])
    assert softmax([31, 30], 1e-6).tolist() == [1.0, 0.0]
    assert softmax([100, 0], 100)[0] == pytest.approx(1 / (1 + math.exp(-1)))
    assert softmax([MATE_CP - 1, -MATE_CP + 1, 5], 0.1).tolist() == [1.0, 0.0, 0.0]
    assert softmax([3, 2, 1], 1e9) == pytest.approx(np.full(3, 1 / 3))
    for temperature in (0.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"softmax\(\): expected temperature_cp"):
            softmax([1.0], temperature)


@examples(24)
@given(SEEDS)
@example(1)
def test_who_remembers_the_game_repeats_nothing_while_ahead(seed):
    """By python-chess's own board, over games in which rooks and kings go back and forth."""
    game = pyspiel.load_game("python_chess", {**RULES_OF_CHESS, "fen": _SHUFFLING})
    engine, rng = HashEngine(200.0 + seed % 50), random.Random(seed)
    plain, policy = (EnginePolicy(game, engine, SHALLOW, 30.0, 3, repeats=which) for which in (True, False))
    state, board, left_out = game.new_initial_state(), chess.Board(_SHUFFLING), 0
    while not state.is_terminal() and len(board.move_stack) < 30:
        lines, allowed = engine.result(state.epd, SHALLOW, 3).lines, set()
        for line in lines:
            board.push_uci(line.move)
            if line.cp > 0 and not board.is_repetition(2):
                allowed.add(line.move)
            board.pop()
        row, others = policy.action_probabilities(state), plain.action_probabilities(state)
        if lines[0].cp <= 0 or not allowed:
            assert row == others
        else:
            assert {move_of(action).uci() for action in row} == allowed
            left_out += len(others) - len(row)
        back = [action for action in state.legal_actions() if state.repeats(move_of(action))]
        action = rng.choice(back or list(row))
        state.apply_action(action)
        board.push(move_of(action))
    assert left_out > 0 or seed != 1


def test_where_no_rule_counts_nothing_is_remembered():
    state = pyspiel.load_game("python_chess", {"fen": _SHUFFLING}).new_initial_state()
    for move in ("a1a2", "h8h7", "a2a1"):
        state.apply_action(action_of(chess.Move.from_uci(move)))
    assert not state.repeats(chess.Move.from_uci("h7h8"))


def test_how_an_engine_plays():
    game, engine = pyspiel.load_game("python_chess"), AnsweringEngine()
    state = game.new_initial_state()
    best, _, third = (
        action_of(chess.Move.from_uci(x.move)) for x in engine.result(state.epd, SHALLOW, 3).lines
    )

    def row(**how):
        return EnginePolicy(game, engine, SHALLOW, 100.0, 2, **how).action_probabilities(state)

    assert row(plays="bestmove") == {third: 0.75, best: 0.25}
    assert row() == row(plays="softmax")
    engine.engine_id = "Stockfish 15.1 [Hash=32, UCI_Elo=1800, UCI_LimitStrength=true]"
    assert row(plays="bestmove", samples=50) == row(plays="bestmove")
    searches = [(multipv, samples) for _, _, multipv, samples in engine.asked]
    assert searches == [(1, 1), (2, 0), (2, 0), (1, 50), (1, 20)]


def test_a_preparation_against_what_is_played():
    """The tree has the opponent's edges as its policy has them, and asks as ever for our side."""
    settings = settings_of(
        player=1, opponent_plays="bestmove", opponent_samples=30, opponent_temperature_cp=100.0
    )
    analyst, opponent = HashEngine(spread=400.0), AnsweringEngine()
    opponent.engine_id = "Stockfish 15.1 [Skill Level=5]"
    tree = preparation_tree(settings, analyst, opponent)
    assert {limit for _, limit, _ in analyst.asked} == {"nodes=5000"}
    assert {asked[1:] for asked in opponent.asked} == {("nodes=1000", 1, 30)}
    best = best_precomputation(tree, 1)
    assert sorted(s.reach for s in best.states() if len(s.actions) == 1) == pytest.approx([0.25, 0.75])
    assert OpponentWords(settings, "").play == "the move it answers"
    with pytest.raises(ValueError, match=r"preparation_tree\(\): expected options of opponent"):
        preparation_tree(dataclasses.replace(settings, opponent_plays="softmax"), analyst, opponent)


def test_several_opponents_are_a_mixture_that_shares_its_searches():
    engine = HashEngine(spread=400.0)
    settings = settings_of(opponent_temperature_cp=[20, 80.0], opponent_weights=[1, 3])
    assert settings.opponent_temperature_cp == (20.0, 80.0)
    assert OpponentWords(settings, "").play == "r = 20, 80 cp, drawn as 1, 3"
    read = json.loads(json.dumps(settings.as_dict())) | {"analyst_limit": DEEP, "opponent_limit": SHALLOW}
    assert PreparationSettings(**read) == settings
    best = best_precomputation(preparation_tree(settings, engine), 0)
    assert value_against_components(best) @ [0.25, 0.75] == pytest.approx(best.utility, abs=1e-12)
    mixture = preparation_policies(settings, engine).sigma[1]
    state = settings.game().new_initial_state()
    state.apply_action(state.legal_actions()[0])
    lines = engine.result(state.epd, SHALLOW, 2).lines
    odds = [softmax([line.cp for line in lines], r)[0] for r in (20.0, 80.0)]
    likelier = action_of(chess.Move.from_uci(lines[0].move))
    assert mixture.action_probabilities(state)[likelier] == pytest.approx(0.25 * odds[0] + 0.75 * odds[1])
    state.apply_action(likelier)
    both = 0.25 * odds[0] + 0.75 * odds[1]
    assert mixture.posterior(state, 1)[0] == pytest.approx(0.25 * odds[0] / both)
    for wrong, words in (({"opponent_weights": (1,)}, "2 numbers"), ({"opponent_plays": "bestmove"}, "one")):
        with pytest.raises(ValueError, match=rf"PreparationSettings\(\): expected .*{words}"):
            settings_of(opponent_temperature_cp=(5, 9), **wrong)


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("fen", ["", BLACK_FIRST])
def test_a_preparation_is_algorithm_1(player, fen):
    """Against a recursion over boards that shares nothing with the tree."""
    engine = HashEngine(spread=400.0)
    settings = settings_of(player=player, fen=fen)
    tree = preparation_tree(settings, engine)
    best = best_precomputation(tree, player)
    side = chess.WHITE if player == 0 else chess.BLACK

    def odds(board, limit, r):
        lines = engine.result(board.epd(), limit, 2).lines
        return zip([line.move for line in lines], softmax([line.cp for line in lines], r), strict=True)

    def worth(board, ply, reach):
        """Return (value, histories memorized) from here on, weighted with the reach."""
        if board.is_checkmate():
            return reach * float(board.turn != side), 0
        if ply == 7 or board.is_stalemate() or board.is_insufficient_material():
            return reach * 0.5, 0
        ours = board.turn == side
        limit, r = (DEEP, 1e-6) if ours else (SHALLOW, 80.0)
        total, size = 0.0, 0
        stop = 0.0
        if ours:
            stop = reach * (0.5 + engine.result(board.epd(), DEEP, 2).lines[0].cp / 800)
            if reach < PENALTY:
                return stop, 0
        for move, p in odds(board, limit, r):
            if p > 1e-9:
                board.push_uci(move)
                value, count = worth(board, ply + 1, reach * p)
                board.pop()
                total, size = total + value, size + count
        if ours and total - PENALTY <= stop:
            return stop, 0
        return (total - PENALTY, size + 1) if ours else (total, size)

    board = chess.Board(fen) if fen else chess.Board()
    value, size = worth(board, 0, 1.0)
    assert best.value == pytest.approx(value, abs=1e-12)
    assert best.size == size > 0
    # Each search once; our own shallow play is not asked; the analyst serves policy and evaluation.
    ours = {epd for epd, limit, _ in engine.asked if limit == "nodes=5000"}
    theirs = {epd for epd, limit, _ in engine.asked if limit == "nodes=1000"}
    assert all(chess.Board(epd + " 0 1").turn == side for epd in ours)
    assert all(chess.Board(epd + " 0 1").turn != side for epd in theirs)

    book = preparation_book(tree, player, best.states())
    assert book.side == side and len(book) == best.size and book.distinct_positions == best.num_positions
    assert [position.worth for position in book.positions] == [s.net_gain for s in best.states()]
    assert all(position.worth >= 0.0 for position in book.positions)  # no move reads like a blunder
    for position, board in zip(book.positions, book.boards, strict=True):
        lines = engine.result(board.epd(), DEEP, 2).lines
        assert position.moves[0].move.uci() in {line.move for line in lines if line.cp == lines[0].cp}


def test_the_pgn_says_what_forgetting_costs(tmp_path):
    """Knowing the first move alone may lose, where all its worth lies in what follows."""
    best = best_precomputation(preparation_tree(settings_of(), HashEngine(spread=400.0)), 0)
    states = list(best.states())
    assert min(state.gain for state in states) < 0.0
    write_pgn(preparation_book(best.tree, 0, states), tmp_path / "book.pgn")
    text = " ".join((tmp_path / "book.pgn").read_text().split())
    worth = best.value - best.unprepared  # of all there is
    assert f"{{ in 100% of games, forgetting it costs {points(worth)} points in 100 games" in text
    assert "gain" not in text and " -" not in text


# -- the best parts of books, against all parts of small ones -----------------------------------------------


def closed_parts(book):
    """Return all parts that have the nearest memorized position before each of their positions."""
    histories = [each.history for each in book.positions]
    parents = []
    for own in histories:
        before = [k for k, other in enumerate(histories) if other == own[: len(other)] and other != own]
        parents.append(max(before, key=lambda k: len(histories[k]), default=None))
    parts = itertools.product([False, True], repeat=len(book))
    pairs = [(k, parent) for k, parent in enumerate(parents) if parent is not None]
    return [part for part in parts if all(part[parent] or not part[k] for k, parent in pairs)]


@examples(80)
@given(random_books(9), SEEDS)
def test_no_part_within_the_budget_is_worth_more(book, seed):
    rng = random.Random(seed)
    gains = np.array([rng.choice([-0.2, 0.0, 0.1, rng.uniform(-0.3, 1.0)]) for _ in book.positions])
    allowed = closed_parts(book)
    parts = best_parts(book, gains)
    assert parts.shape == (len(book) + 1, len(book)) and parts[-1].all()
    for budget, part in enumerate(parts[:-1]):
        assert tuple(part) in allowed and part.sum() <= budget
        best = max((gains @ each, -sum(each)) for each in allowed if sum(each) <= budget)
        assert gains @ part == pytest.approx(best[0], abs=1e-12)
        # Of equally good parts the smallest.
        assert all(sum(each) >= part.sum() or gains @ each < gains @ part - 1e-12 for each in allowed)


def test_a_book_that_is_not_closed_and_one_that_is_empty():
    book = book_of("e2e4 e7e5 | g1f3", "d2d4 d7d5 | c2c4")
    assert best_parts(book, [0.1, 0.2]).tolist() == [[False, False], [False, True], [True, True]]
    assert best_parts(Book(chess.Board(), chess.WHITE, []), []).shape == (1, 0)
