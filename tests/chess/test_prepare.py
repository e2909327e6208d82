"""Preparations: trees and books of engines that are hash functions; each way to prepare is its solver's."""

import dataclasses
import importlib
import itertools
import json
import math
import random
import types
from typing import Any

import chess
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from precomp_games import algorithms
from precomp_games import chess as prep
from precomp_games.algorithms import best_precomputation
from precomp_games.chess.data.book import points
from precomp_games.chess.data.move_counts import CountsPolicy
from precomp_games.chess.model.engine_policies import softmax
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.model.played import Person, PlayedGame, ReplyGames
from precomp_games.chess.plan.controls import neighbors, play_neighbors
from precomp_games.chess.plan.preparation import AtWorst, best_parts
from precomp_games.chess.plan.prepare import distrusted_shares
from precomp_games.chess.plan.trees import equilibrium_tree, kept_entries
from precomp_games.chess.study.words import OpponentWords
from tests.chess.test_engine import FAKE
from tests.oracles.chess_books import book_of, random_books
from tests.oracles.engines import AnsweringEngine, HashEngine
from tests.oracles.games import SEEDS
from tests.properties import examples

SETTINGS = prep.PreparationSettings(
    penalty=0.002,
    opponent_temperature_cp=80.0,
    max_plies=5,
    analyst_limit=prep.SearchLimit(nodes=40),
    opponent_limit=prep.SearchLimit(nodes=20),
)
BLACK_FIRST = "4k3/4p3/8/8/8/8/4P3/4K3 b - - 0 1"
WIDE = dataclasses.replace(SETTINGS, max_plies=7)


# -- trees and books -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("fen", ["", BLACK_FIRST])
def test_a_preparation_is_algorithm_1(player, fen):
    """Against a recursion over boards that shares nothing with the tree."""
    engine, settings = HashEngine(spread=400.0), dataclasses.replace(WIDE, player=player, fen=fen)
    deep, shallow = settings.analyst_limit, settings.opponent_limit
    tree = prep.preparation_tree(settings, engine)
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
        limit, r = (deep, 1e-6) if ours else (shallow, 80.0)
        total, size, stop = 0.0, 0, 0.0
        if ours:
            stop = reach * (0.5 + engine.result(board.epd(), deep, 2).lines[0].cp / 800)
            if reach < settings.penalty:
                return stop, 0
        for move, p in odds(board, limit, r):
            if p > 1e-9:
                board.push_uci(move)
                value, count = worth(board, ply + 1, reach * p)
                board.pop()
                total, size = total + value, size + count
        if ours and total - settings.penalty <= stop:
            return stop, 0
        return (total - settings.penalty, size + 1) if ours else (total, size)

    board = chess.Board(fen) if fen else chess.Board()
    value, size = worth(board, 0, 1.0)
    assert best.value == pytest.approx(value, abs=1e-12)
    assert best.size == size > 0
    # Our own shallow play is not asked; the analyst serves policy and evaluation.
    for epd, limit, _ in engine.asked:
        assert (chess.Board(epd + " 0 1").turn == side) == (limit == str(deep))

    book = prep.preparation_book(tree, player, best.states())
    assert book.side == side and len(book) == best.size and book.distinct_positions == best.num_positions
    assert [position.worth for position in book.positions] == [s.net_gain for s in best.states()]
    assert all(position.worth >= 0.0 for position in book.positions)  # no move reads like a blunder
    for position, board in zip(book.positions, book.boards, strict=True):
        lines = engine.result(board.epd(), deep, 2).lines
        assert position.moves[0].move.uci() in {line.move for line in lines if line.cp == lines[0].cp}


def test_a_preparation_against_what_is_played():
    """The tree has the opponent's edges as its policy has them, and asks as ever for our side."""
    settings = dataclasses.replace(WIDE, player=1, opponent_plays="bestmove", opponent_samples=30)
    analyst, opponent = HashEngine(spread=400.0), AnsweringEngine()
    opponent.engine_id = "Stockfish 15.1 [Skill Level=5]"
    best = best_precomputation(prep.preparation_tree(settings, analyst, opponent), 1)
    assert {limit for _, limit, _ in analyst.asked} == {"nodes=40"}
    assert {asked[1:] for asked in opponent.asked} == {("nodes=20", 1, 30)}
    assert sorted(s.reach for s in best.states() if len(s.actions) == 1) == pytest.approx([0.25, 0.75])
    assert OpponentWords(settings, "").play == "the move it answers"
    with pytest.raises(ValueError, match=r"preparation_tree\(\): expected options of opponent"):
        prep.preparation_tree(dataclasses.replace(settings, opponent_plays="softmax"), analyst, opponent)


def test_several_opponents_are_a_mixture_that_shares_its_searches():
    engine, several = HashEngine(spread=400.0), {"opponent_temperature_cp": [20, 80.0]}
    settings = dataclasses.replace(WIDE, **several, opponent_weights=[1, 3])
    assert settings.opponent_temperature_cp == (20.0, 80.0)
    assert OpponentWords(settings, "").play == "r = 20, 80 cp, drawn as 1, 3"
    limits = {"analyst_limit": settings.analyst_limit, "opponent_limit": settings.opponent_limit}
    assert prep.PreparationSettings(**json.loads(json.dumps(settings.as_dict())) | limits) == settings
    best = best_precomputation(prep.preparation_tree(settings, engine), 0)
    assert algorithms.value_against_components(best) @ [0.25, 0.75] == pytest.approx(best.utility, abs=1e-12)
    mixture, state = preparation_policies(settings, engine).sigma[1], settings.game().new_initial_state()
    state.apply_action(state.legal_actions()[0])
    lines = engine.result(state.epd, settings.opponent_limit, 2).lines
    odds = [softmax([line.cp for line in lines], r)[0] for r in (20.0, 80.0)]
    both, likelier = 0.25 * odds[0] + 0.75 * odds[1], prep.action_of(chess.Move.from_uci(lines[0].move))
    assert mixture.action_probabilities(state)[likelier] == pytest.approx(both)
    state.apply_action(likelier)
    assert mixture.posterior(state, 1)[0] == pytest.approx(0.25 * odds[0] / both)
    for wrong, words in (({"opponent_weights": (1,)}, "2 numbers"), ({"opponent_plays": "bestmove"}, "one")):
        with pytest.raises(ValueError, match=rf"PreparationSettings\(\): expected .*{words}"):
            prep.PreparationSettings(**several, **wrong)


def test_a_tree_takes_policies_that_are_there_and_no_named_opponent_where_both_prepare():
    engine = HashEngine()
    tree = prep.preparation_tree(SETTINGS, engine, policies=preparation_policies(SETTINGS, engine))
    assert tree.fingerprint == prep.preparation_tree(SETTINGS, engine).fingerprint
    named = dataclasses.replace(SETTINGS, opponent="uci(r=5)")
    assert OpponentWords(named, "engine").name == "uci(r=5)"
    with pytest.raises(ValueError, match="without an opponent of its own"):
        equilibrium_tree(named, engine)


def test_the_pgn_says_what_forgetting_costs(tmp_path):
    """Knowing the first move alone may lose, where all its worth lies in what follows."""
    best = best_precomputation(prep.preparation_tree(WIDE, HashEngine(spread=400.0)), 0)
    states = list(best.states())
    assert min(state.gain for state in states) < 0.0
    prep.write_pgn(prep.preparation_book(best.tree, 0, states), tmp_path / "book.pgn")
    text = " ".join((tmp_path / "book.pgn").read_text().split())
    worth = best.value - best.unprepared  # of all there is
    assert f"{{ in 100% of games, forgetting it costs {points(worth)} points in 100 games" in text
    assert "gain" not in text and " -" not in text


# -- moves that stay -----------------------------------------------------------------------------------------


def keep_of(san, *before):
    """Return a move to keep, by its position."""
    board = chess.Board()
    for move in before:
        board.push(move)
    return {board.epd(): board.parse_san(san)}


@pytest.mark.parametrize("menu", [0, 1, 3])
@pytest.mark.parametrize("player", [0, 1])
def test_what_is_kept_is_played_and_costs_nothing(player, menu):
    settings = dataclasses.replace(WIDE, player=player, menu=menu)
    tree = prep.preparation_tree(dataclasses.replace(settings, penalty=1e-4), HashEngine())  # without a book
    if player == 0:  # a rare first move, and a rare reply to a likely answer
        keep = keep_of("a3") | keep_of("h4", chess.Move.from_uci("a2a3"), chess.Move.from_uci("g8h6"))
    else:
        replies = sorted(tree.children(0), key=lambda h: -tree.sigma[h])[:2]
        first, second = (prep.move_of(int(tree.action[h])) for h in replies)
        keep = keep_of("h5", first) | keep_of("h5", second)
    assert prep.preparation_tree(settings, HashEngine(), keep={}).same_as(
        prep.preparation_tree(settings, HashEngine())
    )
    tree = prep.preparation_tree(settings, HashEngine(), keep=keep)
    tree.check()
    known = kept_entries(tree, player)
    assert len(known)
    for entry in known.tolist():
        state = tree.state(int(tree.infoset_history[tree.entry_infoset[entry]]))
        assert {prep.move_of(a) for a in tree.memorized_row(entry)} == {keep[prep.board_key(state)]}
    best = best_precomputation(tree, player, keep=known)
    book = prep.preparation_book(tree, player, best.states())
    played = [(b.epd(), p.moves[0].move) for b, p in zip(book.boards, book.positions, strict=True)]
    assert any(epd in keep for epd, _ in played)
    assert all(keep.get(epd, move) == move for epd, move in played)
    assert best.paid == sum(epd not in keep for epd, _ in played)
    assert best.value == pytest.approx(best.utility - settings.penalty * best.paid, abs=1e-12)
    if menu < 3:  # the whole tree gives the same
        whole = prep.preparation_tree(settings, HashEngine(), keep=keep, truncate="reach")
        same = best_precomputation(whole, player, keep=kept_entries(whole, player))
        assert same.value == pytest.approx(best.value, abs=1e-12)


def test_positions_share_their_price():
    settings = dataclasses.replace(WIDE, menu=1, price="positions", opponent_temperature_cp=200.0)
    tree = prep.preparation_tree(settings, HashEngine())
    assert tree.cut_for == "positions" and not tree.has_menus
    epds = {int(tree.position[h]): tree.state(h).epd for h in range(tree.num_histories)}
    assert len(set(epds.values())) == len(epds)
    best = best_precomputation(tree, 0, price="positions")
    uncut = prep.preparation_tree(settings, HashEngine(), truncate="reach")
    assert best_precomputation(uncut, 0, price="positions").value == pytest.approx(best.value, abs=1e-12)


def test_books_that_cannot_be_kept_are_refused():
    move = chess.Move.from_uci("e2e4")
    for keep, words in (
        ({chess.Board().epd(): "e2e4"}, "a legal move"),
        (keep_of("e5", move), "positions of White's"),
        ({"nonsense": move}, "positions of White's"),
        ({7: move}, "positions of White's"),
    ):
        with pytest.raises(ValueError, match=rf"^preparation_tree\(\): expected keep to have {words}"):
            prep.preparation_tree(SETTINGS, HashEngine(), keep=keep)


# -- the best parts of books, against all parts of small ones ------------------------------------------------


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
    assert best_parts(prep.Book(chess.Board(), chess.WHITE, []), []).shape == (1, 0)


# -- prepare -------------------------------------------------------------------------------------------------

_BY_POSITION = dataclasses.replace(SETTINGS, menu=3, price="positions", max_plies=7)
_THOROUGH = dataclasses.replace(_BY_POSITION, check_limit=prep.SearchLimit(nodes=80))
_CHECKED = {"check_limit": prep.SearchLimit(nodes=9)}
_SEARCH = {"max_evaluations": 60, "budget": 6}
_ENDGAME = "8/8/8/3k4/8/8/1Q6/K7 w - - 0 1"  # of short games
_PLAYED = dataclasses.replace(SETTINGS, evaluation="calibrated", menu=2, max_plies=4, fen=_ENDGAME)
_SMALL = {"max_evaluations": 40, "budget": 4}


class Analyst(AnsweringEngine):
    """A hash function that counts as an engine with its searches."""

    searches, pool, record = 0, None, None


@pytest.fixture(scope="module")
def engines():
    analyst = Analyst(spread=400.0)
    both: Any = object.__new__(prep.Engines)  # past the check of types: these are no StoredEngines
    both.analyst = both.opponent = analyst
    both._policies, both.known = {}, {}
    return both


@pytest.fixture(scope="module")
def plain(engines):
    """The best book against the settings' opponent; of a whole tree none is known before its end."""
    return prep.prepare(SETTINGS, engines, improved=lambda _: pytest.fail("not the end"))


def search_of(made) -> Any:
    """Return a book's search, of whichever type."""
    return made.search


def read_of(data, folder):
    """Return the preparation that JSON has."""
    (folder / "result.json").write_text(json.dumps(data))
    return prep.Preparation.read(folder)


def json_of(made):
    return json.loads(json.dumps(made.to_json()))


def test_peoples_scores_are_checked_with_as_many_nodes_as_each_line_of_a_menu(engines):
    engines.analyst.asked.clear()
    prep.prepare(dataclasses.replace(_THOROUGH, evaluation="people"), engines, **_SEARCH)
    assert {("nodes=80", 3, 0), ("nodes=27", 1, 0)} <= {asked[1:] for asked in engines.analyst.asked}


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    ("settings", "how"),
    [
        (SETTINGS, {}),
        (SETTINGS, {"budget": 5}),
        (SETTINGS, {"plan": (2, 4)}),
        (dataclasses.replace(SETTINGS, price="positions", penalty=0.01), {}),
        (dataclasses.replace(SETTINGS, distrust=0.2), {"budget": 4}),
        (dataclasses.replace(SETTINGS, menu=3), _SEARCH),
        (_BY_POSITION, {"max_evaluations": 60}),
        (_THOROUGH, _SEARCH),
        (_PLAYED, {"games": 18, **_SMALL}),
        (dataclasses.replace(_PLAYED, price="positions"), _SMALL),  # without games
    ],
)
def test_what_is_written_is_read_again(settings, how, player, engines, tmp_path):
    settings, by_games = dataclasses.replace(settings, player=player), "games" in how
    made = prep.prepare(settings, engines, **how)
    assert (made.player, made.budget) == (player, how.get("budget"))
    assert len(made.gains) == len(made.book)
    if not by_games:  # whose values are not those of the games that make the promise
        assert sum(made.gains) == pytest.approx(made.utility - made.unprepared, abs=1e-9)
    paid = 0.0 if {"budget", "plan"} & how.keys() and not by_games else settings.penalty * made.learned
    assert made.value == pytest.approx(made.utility - paid)
    assert sum(each.reach for each in made.exits) == pytest.approx(1.0)
    assert (made.standard_error is not None) == (made.score_note == "") == by_games
    without_games = "Fitted score" if settings.evaluation == "calibrated" else "Analyst's score"
    assert made.score_name == ("Expected score" if by_games else without_games)
    made.write(tmp_path, {"more": 1})
    read = prep.Preparation.read(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"book.bin", "book.pgn", "result.json"}
    assert json.loads((tmp_path / "result.json").read_text()) == json_of(made) | {"more": 1}
    assert json_of(read) == json_of(made) and not read.settings.trusted
    assert type(read.search) is type(made.search)
    for name in {field.name for field in dataclasses.fields(made)} - {"book", "frontier", "exits", "gains"}:
        assert getattr(read, name) == getattr(made, name), name
    assert read.book.positions == made.book.positions
    assert (tuple(read.exits), tuple(read.gains)) == (tuple(made.exits), tuple(made.gains))


def test_what_games_put_no_higher_than_no_book_is_no_advice(engines, monkeypatch):
    settings = dataclasses.replace(_PLAYED, fen="7k/8/6K1/8/8/8/8/R7 w - - 0 1", penalty=0.01)
    without = types.SimpleNamespace(games=range(9), score=1.0, interval=(0.9, 1.0), standard_error=0.01)
    monkeypatch.setattr(prep.Engines, "match", lambda *_, **__: without)
    monkeypatch.setattr(importlib.import_module("precomp_games.chess.plan.prepare"), "_TELLING", 2)
    made = prep.prepare(settings, engines, games=12, **_SMALL)
    refused = search_of(made).refused
    assert refused.positions > 0 and refused.utility <= 1.0
    assert len(made.book) == 0 and made.gains == ()
    assert made.utility == made.unprepared == made.value == 1.0 and made.standard_error == 0.01
    without.score = 0.0
    made = prep.prepare(settings, engines, games=12, **_SMALL)
    assert search_of(made).refused is None and len(made.book) == refused.positions
    assert made.utility == refused.utility


def test_the_whole_tree_gives_what_the_solvers_do(engines, plain):
    tree = prep.preparation_tree(SETTINGS, engines.analyst)
    best = algorithms.best_precomputation(tree, 0)
    assert plain.book.positions == prep.preparation_book(tree, 0, best.states()).positions
    assert (plain.utility, plain.unprepared, plain.value) == (best.utility, best.unprepared, best.value)
    frontier = algorithms.memory_frontier(tree, 0)
    made = prep.prepare(SETTINGS, engines, budget=5)
    assert made.utility == algorithms.best_of_frontier(frontier, 5).utility
    assert made.frontier.sizes.tolist() == frontier.sizes.tolist()
    assert search_of(made).tree.fingerprint == tree.fingerprint


def test_neighbors_of_the_model_are_tried_with_the_book_and_without(engines, tmp_path):
    settings = dataclasses.replace(SETTINGS, fen="4k3/8/8/8/8/8/4P3/R3K3 w - - 0 1")
    made = prep.prepare(settings, engines, budget=5)
    made = dataclasses.replace(made, neighbors=play_neighbors(made, engines, 2, seed=3))
    near = neighbors(settings)
    assert list(near) == [each.name for each in made.neighbors]
    limits = [str(each.opponent_limit) for each in near.values()]
    assert limits[:5] == ["nodes=20", "nodes=10", "nodes=21", "nodes=24", "nodes=40"]
    assert [each.opponent_temperature_cp for each in near.values()][5:7] == [40.0, 160.0]
    assert near["a move more"].top_k == 3 and near["the engine as it answers"].opponent_plays == "bestmove"
    for each in made.neighbors[::4]:
        books = (made.book, prep.Book(made.book.start, made.book.side, ()))
        scores = [engines.match(book, settings, 2, seed=3, against=near[each.name]).scores for book in books]
        assert [each.score, each.unprepared] == [score.mean() for score in scores]
        assert each.gain == each.score - each.unprepared
        assert each.standard_error == pytest.approx(math.hypot(*(stats.sem(score) for score in scores)))
    made.write(tmp_path)
    assert prep.Preparation.read(tmp_path).neighbors == made.neighbors
    several = neighbors(
        dataclasses.replace(SETTINGS, opponent_temperature_cp=(5.0, 20.0), opponent_weights=(1, 2))
    )
    assert several["twice the r"].opponent_temperature_cp == (10.0, 40.0)
    assert several["r = 5 alone"].opponent_temperature_cp == 5.0
    assert list(neighbors(dataclasses.replace(SETTINGS, opponent_plays="bestmove"))) == list(near)[:5]
    assert neighbors(dataclasses.replace(SETTINGS, opponent="uci(nodes=10)")) == {}


def test_who_distrusts_the_model_prepares_for_the_worst_around_it(engines, plain):
    settings = dataclasses.replace(SETTINGS, distrust=0.3)
    best = algorithms.robust_precomputation(prep.preparation_tree(settings, engines.analyst), 0, 0.3)
    made = prep.prepare(settings, engines)
    assert search_of(made).robust == AtWorst(best.utility, best.unprepared)
    assert (made.utility, made.learned) == (best.nominal, best.paid)
    assert made.utility - made.unprepared == pytest.approx(sum(made.gains))
    assert made.unprepared == pytest.approx(plain.unprepared) and made.utility < plain.utility


def test_games_of_a_person_take_distrust_back(engines):
    settings = dataclasses.replace(SETTINGS, player=1, distrust=0.8)
    tree = prep.preparation_tree(settings, engines.analyst)
    known = types.SimpleNamespace(at=lambda board: {7: 3.0} if board.fullmove_number == 1 else {})
    shares = distrusted_shares(tree, settings, CountsPolicy(prep.ChessGame(), known, 1.5))
    for history in range(tree.num_histories):
        if tree.player[history] == 0 and tree.num_children[history]:
            games = 0 if history else 3
            assert shares[history] == pytest.approx(0.8 * 1.5 / (1.5 + games))
    assert set(distrusted_shares(tree, settings, engines.policies(settings).sigma[0])) == {0.8}


@pytest.mark.parametrize("by_games", [False, True])
def test_a_search_ends_when_it_is_enough_and_its_best_book_can_be_written_before(by_games, engines, tmp_path):
    """The best book so far is taken, and games measure it."""
    settings, how = dataclasses.replace(SETTINGS, menu=3), _SEARCH
    if by_games:
        settings, how = _PLAYED, {"games": 12, **_SEARCH}
    whole = prep.prepare(settings, engines, **how)
    for asked in (0,) if by_games else (0, 1, 3):
        left = iter(range(asked))
        made = prep.prepare(settings, engines, enough=lambda left=left: next(left, None) is None, **how)
        assert search_of(made).work["evaluations"] < search_of(whole).work["evaluations"]
        assert len(made.book) <= 6
        if by_games:
            assert search_of(made).games["promise"] == search_of(whole).games["promise"] == 10
            assert search_of(made).games["taught"] == 0
    found = []
    made = prep.prepare(settings, engines, improved=found.append, enough=lambda: False, **how)
    assert made.to_json() == whole.to_json() and not made.unfinished
    assert max(len(each.book) for each in found) > 0
    for each in found:
        assert each.unfinished and each.budget == 6 and len(each.book) <= 6
        assert each.standard_error is None  # no games have measured it
        assert sum(each.gains) == pytest.approx(each.utility - each.unprepared)
        each.write(tmp_path)
        assert prep.Preparation.read(tmp_path).book.positions == each.book.positions
    if by_games and made.book.positions:  # which is reported before its games
        assert found[-1].book.positions[0].history == made.book.positions[0].history


def test_what_does_not_go_together_is_refused(engines):
    for changes, how, error in (
        ({}, {"enough": lambda: False}, "a choice of moves, or games, where enough is given"),
        ({"menu": 2}, {"plan": (1, 2)}, r"prepare\(\): expected settings.menu to be 0 or 1 with a plan"),
        ({"distrust": 0.3}, {"plan": (1, 2)}, r"no distrust with these .* got menu=0 and distrust=0\.3"),
        ({"menu": 2, "price": "positions", "distrust": 0.1}, {}, r"got menu=2 and distrust=0\.1"),
        (_CHECKED, {}, r"menu of 2 or more, and no games, where settings\.check"),
        (_CHECKED | {"menu": 2, "evaluation": "calibrated"}, {}, r"and no games, where settings\.check"),
    ):
        with pytest.raises(ValueError, match=error):
            prep.prepare(dataclasses.replace(SETTINGS, **changes), engines, **how)


def test_json_that_is_no_preparation(plain, tmp_path):
    data, played = json_of(plain), {"games": {"played": 1}, "work": {}, "stops": []}
    assert read_of(data, tmp_path).utility == data["utility"]
    near = {"name": "near", "games": 0, "score": 0.5, "unprepared": 0.5, "standard_error": 0.0}
    for wrong in (
        {"utility": "high"},
        {"unprepared": None},
        played | {"standard_error": -1.0},
        played | {"stops": [{"after": "e2e4"}]},
        played | {"games": {"played": "1"}},
        {"learned": "x"},
        {"budget": -1},
        {"neighbors": [near]},
        {"memorized": [{}]},
        {"person": 7},
        {"person": {"name": "Ann", "games": -1, "first": None, "last": None}},
        {"played_games": [7]},
        *({"replies": [{"after": ["e2e4"], "count": 1, "games": [k]}]} for k in (3, -1)),
        {"settings": {"trusted": True}},
    ):
        with pytest.raises(ValueError, match=r"Preparation\.read\(\): expected a result\.json of precomp"):
            read_of(data | wrong, tmp_path)
    data["memorized"][0]["evaluation"] = {"cp": 10**400}
    with pytest.raises(ValueError, match="expected cp to be an integer from -1000000 to 1000000"):
        read_of(data, tmp_path)


def test_games_of_a_person_are_written_once_and_read_again(plain, tmp_path):
    move = chess.Move.from_uci
    game = PlayedGame("Ann", "Bob", 1999, "1-0", (move("e2e4"), move("c7c5")))
    other = PlayedGame("Carol", "Bob", None, "*")
    behind = {(move("e2e4"),): ReplyGames(4, (game, other)), (move("d2d4"),): ReplyGames(1, (game,))}
    person = Person("Bob", 5, 1990, 1999)
    data = json_of(dataclasses.replace(plain, games=behind, person=person))
    assert len(data["played_games"]) == 2 and data["played_games"][0]["moves"] == "e2e4 c7c5"
    read = read_of(data, tmp_path)
    assert (read.games, read.person) == (behind, person)
    # Results of before have each reply's games as they are, and none of their moves.
    old = {"white": "Ann", "black": "Bob", "year": 1999, "result": "1-0"}
    replies = [{"after": ["e2e4"], "count": 1, "games": [old]}]
    without = {name: value for name, value in data.items() if name not in ("played_games", "person")}
    read = read_of(without | {"replies": replies}, tmp_path)
    assert read.person is None
    assert read.games == {(move("e2e4"),): ReplyGames(1, (dataclasses.replace(game, moves=()),))}


# Costs seconds: a preparation with an engine.
def test_searches_of_real_engines_are_counted(tmp_path):
    small = dataclasses.replace(SETTINGS, max_plies=3)
    with prep.EvaluationStore(":memory:") as store, prep.EnginePool(FAKE, workers=1) as pool:
        engine = prep.StoredEngine(store, pool)
        engines = prep.Engines(engine, engine)
        record = engines.start_record()
        made = prep.prepare(small, engines)
        assert engines.searches > 0 and engines.can_search and made.engines == (engine.engine_id,) * 2
        assert len(engines.match(made.book, small, 2, seed=1).games) == 2
        engines.export(tmp_path / "kept.sqlite", record)
    with prep.EvaluationStore(tmp_path / "kept.sqlite", read_only=True) as kept:
        stored = prep.StoredEngine(kept)
        alone = prep.Engines(stored, stored)
        assert prep.prepare(small, alone).to_json() == made.to_json()
        assert not alone.can_search and alone.searches == 0
        assert chess.COLOR_NAMES[made.book.side] == made.side == "white"
