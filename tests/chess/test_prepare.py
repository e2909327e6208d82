"""Preparations as one type: what is written is read again, and each way to prepare is its solver's."""

import dataclasses
import importlib
import json
import math
import sys
import types
from typing import Any

import chess
import pytest
from scipy import stats

from precomp_games.algorithms import (
    best_of_frontier,
    best_precomputation,
    memory_frontier,
    robust_precomputation,
)
from precomp_games.chess import (
    Book,
    ChessGame,
    EnginePool,
    Engines,
    EvaluationStore,
    Preparation,
    PreparationSettings,
    SearchLimit,
    StoredEngine,
    preparation_book,
    preparation_tree,
    prepare,
)
from precomp_games.chess.data.move_counts import CountsPolicy
from precomp_games.chess.model.played import Person, PlayedGame, ReplyGames
from precomp_games.chess.plan.controls import neighbors, play_neighbors
from precomp_games.chess.plan.preparation import AtWorst
from precomp_games.chess.plan.prepare import distrusted_shares
from tests.chess import fake_engine
from tests.chess.test_preparation import AnsweringEngine

SETTINGS = PreparationSettings(
    penalty=0.002,
    opponent_temperature_cp=80.0,
    max_plies=5,
    analyst_limit=SearchLimit(nodes=40),
    opponent_limit=SearchLimit(nodes=20),
)


class Analyst(AnsweringEngine):
    """A hash function that counts as an engine with its searches."""

    searches, pool, record = 0, None, None


@pytest.fixture(scope="module")
def engines():
    analyst = Analyst(spread=400.0)
    both: Any = object.__new__(Engines)  # past the check of types: these are no StoredEngines
    both.analyst = both.opponent = analyst
    both._policies, both.known = {}, {}
    return both


def search_of(made) -> Any:
    """Return a book's search, of whichever type."""
    return made.search


def ways():
    """Settings and arguments for each way to prepare, for both sides."""
    for player in (0, 1):
        settings = dataclasses.replace(SETTINGS, player=player)
        yield settings, {}
        yield settings, {"budget": 5}
        yield settings, {"plan": (2, 4)}
        yield dataclasses.replace(settings, price="positions", penalty=0.01), {}
        yield dataclasses.replace(settings, distrust=0.2), {"budget": 4}
        several = dataclasses.replace(settings, menu=3)
        yield several, {"max_evaluations": 60, "budget": 6}
        by_position = dataclasses.replace(several, price="positions", max_plies=7)
        yield by_position, {"max_evaluations": 60}
        checked = dataclasses.replace(by_position, check_limit=SearchLimit(nodes=80))
        yield checked, {"max_evaluations": 60, "budget": 6}
        played = dataclasses.replace(settings, evaluation="calibrated", menu=2, max_plies=4, penalty=0.01)
        yield played, {"games": 18, "max_evaluations": 40, "budget": 4}


@pytest.mark.parametrize(("settings", "how"), list(ways()))
def test_what_is_written_is_read_again(settings, how, engines, tmp_path):
    made = prepare(settings, engines, **how)
    assert (made.player, made.budget) == (settings.player, how.get("budget"))
    assert len(made.gains) == len(made.book)
    if "games" not in how:  # whose values are not those of the games that make the promise
        assert sum(made.gains) == pytest.approx(made.utility - made.unprepared, abs=1e-9)
    paid = 0.0 if {"budget", "plan"} & how.keys() and "games" not in how else settings.penalty * made.learned
    assert made.value == pytest.approx(made.utility - paid)
    assert sum(each.reach for each in made.exits) == pytest.approx(1.0)
    assert (made.standard_error is not None) == ("games" in how)
    assert made.score_name == ("Expected score" if "games" in how else "Analyst's score")
    assert (made.score_note == "") == ("games" in how)
    made.write(tmp_path, {"more": 1})
    read = Preparation.read(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"book.bin", "book.pgn", "result.json"}
    data = json.loads((tmp_path / "result.json").read_text())
    assert data == json.loads(json.dumps(made.to_json())) | {"more": 1}
    assert json.loads(json.dumps(read.to_json())) | {"more": 1} == data
    assert not read.settings.trusted and type(read.search) is type(made.search)
    fields = (dataclasses.replace(each, frontier=None) for each in (read, made))
    one, other = (
        {field.name: getattr(each, field.name) for field in dataclasses.fields(each)} for each in fields
    )
    for name in ("exits", "gains"):
        assert tuple(one.pop(name)) == tuple(other.pop(name))
    for book in (one.pop("book"), other.pop("book")):
        assert book.positions == made.book.positions
    assert one == other
    assert read.stops == made.stops and read.learned == made.learned


def test_what_games_put_no_higher_than_no_book_is_no_advice(engines, monkeypatch):
    settings = dataclasses.replace(
        SETTINGS, evaluation="calibrated", menu=2, fen="7k/8/6K1/8/8/8/8/R7 w - - 0 1", penalty=0.01
    )
    without = types.SimpleNamespace(games=range(9), score=1.0, interval=(0.9, 1.0), standard_error=0.01)
    monkeypatch.setattr(Engines, "match", lambda *_, **__: without)
    monkeypatch.setattr(importlib.import_module("precomp_games.chess.plan.prepare"), "_TELLING", 2)
    made = prepare(settings, engines, games=12, budget=4, max_evaluations=40)
    refused = search_of(made).refused
    assert refused.positions > 0 and refused.utility <= 1.0
    assert len(made.book) == 0 and made.gains == ()
    assert made.utility == made.unprepared == made.value == 1.0 and made.standard_error == 0.01
    without.score = 0.0
    made = prepare(settings, engines, games=12, budget=4, max_evaluations=40)
    assert search_of(made).refused is None and len(made.book) == refused.positions
    assert made.utility == refused.utility


def test_the_whole_tree_gives_what_the_solvers_do(engines):
    tree = preparation_tree(SETTINGS, engines.analyst)
    best = best_precomputation(tree, 0)
    made = prepare(SETTINGS, engines)
    assert made.book.positions == preparation_book(tree, 0, best.states()).positions
    assert (made.utility, made.unprepared, made.value) == (best.utility, best.unprepared, best.value)
    frontier = memory_frontier(tree, 0)
    within = best_of_frontier(frontier, 5)
    made = prepare(SETTINGS, engines, budget=5)
    assert made.utility == within.utility and made.frontier.sizes.tolist() == frontier.sizes.tolist()
    assert search_of(made).tree.fingerprint == tree.fingerprint


def test_neighbors_of_the_model_are_tried_with_the_book_and_without(engines, tmp_path):
    settings = dataclasses.replace(SETTINGS, fen="4k3/8/8/8/8/8/4P3/R3K3 w - - 0 1")
    made = prepare(settings, engines, budget=5)
    made = dataclasses.replace(made, neighbors=play_neighbors(made, engines, 2, seed=3))
    near = neighbors(settings)
    assert list(near) == [each.name for each in made.neighbors]
    limits = [str(each.opponent_limit) for each in near.values()]
    assert limits[:5] == ["nodes=20", "nodes=10", "nodes=21", "nodes=24", "nodes=40"]
    assert [each.opponent_temperature_cp for each in near.values()][5:7] == [40.0, 160.0]
    assert near["a move more"].top_k == 3 and near["the engine as it answers"].opponent_plays == "bestmove"
    for each in made.neighbors[::4]:
        books = (made.book, Book(made.book.start, made.book.side, ()))
        scores = [engines.match(book, settings, 2, seed=3, against=near[each.name]).scores for book in books]
        assert [each.score, each.unprepared] == [score.mean() for score in scores]
        assert each.gain == each.score - each.unprepared
        assert each.standard_error == pytest.approx(math.hypot(*(stats.sem(score) for score in scores)))
    made.write(tmp_path)
    assert Preparation.read(tmp_path).neighbors == made.neighbors
    several = dataclasses.replace(SETTINGS, opponent_temperature_cp=(5.0, 20.0), opponent_weights=(1, 2))
    assert neighbors(several)["twice the r"].opponent_temperature_cp == (10.0, 40.0)
    assert neighbors(several)["r = 5 alone"].opponent_temperature_cp == 5.0
    assert list(neighbors(dataclasses.replace(SETTINGS, opponent_plays="bestmove"))) == list(near)[:5]
    assert neighbors(dataclasses.replace(SETTINGS, opponent="uci(nodes=10)")) == {}


def test_who_distrusts_the_model_prepares_for_the_worst_around_it(engines):
    settings = dataclasses.replace(SETTINGS, distrust=0.3)
    tree = preparation_tree(settings, engines.analyst)
    best = robust_precomputation(tree, 0, 0.3)
    made = prepare(settings, engines)
    assert search_of(made).robust == AtWorst(best.utility, best.unprepared)
    assert (made.utility, made.learned) == (best.nominal, best.paid)
    assert made.utility - made.unprepared == pytest.approx(sum(made.gains))
    assert made.unprepared == pytest.approx(prepare(SETTINGS, engines).unprepared)
    assert made.utility < prepare(SETTINGS, engines).utility
    with pytest.raises(
        ValueError, match=r"no distrust with these or a price per position, got menu=0 and distrust=0\.3"
    ):
        prepare(settings, engines, plan=(1, 2))


def test_games_of_a_person_take_distrust_back(engines):
    settings = dataclasses.replace(SETTINGS, player=1, distrust=0.8)
    tree = preparation_tree(settings, engines.analyst)
    known = types.SimpleNamespace(at=lambda board: {7: 3.0} if board.fullmove_number == 1 else {})
    shares = distrusted_shares(tree, settings, CountsPolicy(ChessGame(), known, 1.5))
    for history in range(tree.num_histories):
        if tree.player[history] == 0 and tree.num_children[history]:
            games = 0 if history else 3
            assert shares[history] == pytest.approx(0.8 * 1.5 / (1.5 + games))
    assert set(distrusted_shares(tree, settings, engines.policies(settings).sigma[0])) == {0.8}


@pytest.mark.parametrize("by_games", [False, True])
def test_a_search_ends_when_it_is_enough(by_games, engines):
    """The best book so far is taken, and games measure it."""
    settings, how = dataclasses.replace(SETTINGS, menu=3), {"max_evaluations": 60, "budget": 6}
    if by_games:
        fen = "8/8/8/3k4/8/8/1Q6/K7 w - - 0 1"  # of short games
        settings = dataclasses.replace(settings, evaluation="calibrated", menu=2, max_plies=4, fen=fen)
        how |= {"games": 12}
    whole = prepare(settings, engines, **how)
    for asked in (0,) if by_games else (0, 1, 3):
        left = iter(range(asked))
        made = prepare(settings, engines, enough=lambda left=left: next(left, None) is None, **how)
        assert search_of(made).work["evaluations"] < search_of(whole).work["evaluations"]
        assert len(made.book) <= 6
        if by_games:
            assert search_of(made).games["promise"] == search_of(whole).games["promise"] > 0
            assert search_of(made).games["taught"] == 0
    never = prepare(settings, engines, enough=lambda: False, **how)
    assert (never.book.positions, never.utility) == (whole.book.positions, whole.utility)
    with pytest.raises(ValueError, match="a choice of moves, or games, where enough is given"):
        prepare(SETTINGS, engines, enough=lambda: False)


@pytest.mark.parametrize("by_games", [False, True])
def test_the_best_book_so_far_can_be_written_at_any_time(by_games, engines, tmp_path):
    settings, how = dataclasses.replace(SETTINGS, menu=3), {"max_evaluations": 60, "budget": 6}
    if by_games:
        fen = "8/8/8/3k4/8/8/1Q6/K7 w - - 0 1"  # of short games
        settings = dataclasses.replace(settings, evaluation="calibrated", menu=2, max_plies=4, fen=fen)
        how |= {"games": 12}
    told = []
    made = prepare(settings, engines, improved=told.append, **how)
    assert made.to_json() == prepare(settings, engines, **how).to_json()
    assert not made.unfinished
    assert max(len(each.book) for each in told) > 0
    for each in told:
        assert each.unfinished and each.budget == 6 and len(each.book) <= 6
        assert each.standard_error is None  # no games have measured it
        assert sum(each.gains) == pytest.approx(each.utility - each.unprepared)
        each.write(tmp_path)
        assert Preparation.read(tmp_path).book.positions == each.book.positions
    if by_games and made.book.positions:  # which is reported before its games
        assert told[-1].book.positions[0].history == made.book.positions[0].history
    prepare(SETTINGS, engines, improved=lambda _: pytest.fail("of a whole tree nothing is known before"))


def test_a_choice_needs_no_plan(engines):
    with pytest.raises(ValueError, match=r"prepare\(\): expected settings.menu to be 0 or 1 with a plan"):
        prepare(dataclasses.replace(SETTINGS, menu=2), engines, plan=(1, 2))
    with pytest.raises(ValueError, match=r"or a price per position, got menu=2 and distrust=0\.1"):
        prepare(dataclasses.replace(SETTINGS, menu=2, price="positions", distrust=0.1), engines)
    for settings in (SETTINGS, dataclasses.replace(SETTINGS, menu=2, evaluation="calibrated")):
        with pytest.raises(ValueError, match=r"menu of 2 or more, and no games, where settings\.check"):
            prepare(dataclasses.replace(settings, check_limit=SearchLimit(nodes=9)), engines)


@pytest.mark.parametrize(
    "wrong",
    [
        {"utility": "high"},
        {"unprepared": None},
        {"games": {"played": 1}, "work": {}, "stops": [], "standard_error": -1.0},
        {"games": {"played": 1}, "work": {}, "stops": [{"after": "e2e4"}]},
        {"games": {"played": "1"}, "work": {}, "stops": []},
        {"learned": "x"},
        {"budget": -1},
        {"neighbors": [{"name": "near", "games": 0, "score": 0.5, "unprepared": 0.5, "standard_error": 0.0}]},
        {"budget": "9"},
        {"memorized": [{}]},
        {"person": 7},
        {"person": {"name": "Ann", "games": -1, "first": None, "last": None}},
        {"played_games": [7]},
        {"replies": [{"after": ["e2e4"], "count": 1, "games": [3]}]},
        {"replies": [{"after": ["e2e4"], "count": 1, "games": [-1]}]},
        {"settings": {"trusted": True}},
    ],
)
def test_json_that_is_no_preparation(wrong, engines, tmp_path):
    data = json.loads(json.dumps(prepare(SETTINGS, engines).to_json()))
    assert read_of(data, tmp_path).utility == data["utility"]
    with pytest.raises(ValueError, match=r"Preparation\.read\(\): expected a result\.json of precomp"):
        read_of(data | wrong, tmp_path)


def test_an_evaluation_is_one_that_files_can_tell(engines, tmp_path):
    data = json.loads(json.dumps(prepare(SETTINGS, engines).to_json()))
    data["memorized"][0]["evaluation"] = {"cp": 10**400}
    with pytest.raises(ValueError, match="expected cp to be an integer from -1000000 to 1000000"):
        read_of(data, tmp_path)


def read_of(data, folder):
    """Return the preparation that JSON has."""
    (folder / "result.json").write_text(json.dumps(data))
    return Preparation.read(folder)


def test_games_of_a_person_are_told_once_and_read_again(engines, tmp_path):
    move = chess.Move.from_uci
    game = PlayedGame("Ann", "Bob", 1999, "1-0", (move("e2e4"), move("c7c5")))
    other = PlayedGame("Carol", "Bob", None, "*")
    behind = {(move("e2e4"),): ReplyGames(4, (game, other)), (move("d2d4"),): ReplyGames(1, (game,))}
    person = Person("Bob", 5, 1990, 1999)
    made = dataclasses.replace(prepare(SETTINGS, engines), games=behind, person=person)
    data = json.loads(json.dumps(made.to_json()))
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
    with EvaluationStore(":memory:") as store:
        with EnginePool([sys.executable, fake_engine.__file__], workers=1) as pool:
            engine = StoredEngine(store, pool)
            engines = Engines(engine, engine)
            record = engines.start_record()
            small = dataclasses.replace(SETTINGS, max_plies=3)
            made = prepare(small, engines)
            assert engines.searches > 0 and engines.can_search and made.engines == (engine.engine_id,) * 2
            result = engines.match(made.book, small, 2, seed=1)
            assert len(result.games) == 2
            engines.export(tmp_path / "kept.sqlite", record)
        with EvaluationStore(tmp_path / "kept.sqlite", read_only=True) as kept:
            stored = StoredEngine(kept)
            alone = Engines(stored, stored)
            assert prepare(small, alone).to_json() == made.to_json()
            assert not alone.can_search and alone.searches == 0
            assert chess.COLOR_NAMES[made.book.side] == made.side == "white"
