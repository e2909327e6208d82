"""Objects of chess that users hold are pickled to other processes and come back the same."""

import multiprocessing
import pickle
from collections.abc import Iterator
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import chess
import pyspiel
import pytest

from precomp_games.algorithms import best_precomputation
from precomp_games.chess import (
    Book,
    EngineEvaluation,
    EnginePolicy,
    EnginePool,
    EvaluationStore,
    PreparationSettings,
    StoredEngine,
    action_of,
    preparation_book,
    preparation_tree,
)
from precomp_games.chess.model.engine_policies import LinearUtility
from tests.chess.test_engine import EPDS, FAKE, LIMIT, expected
from tests.chess.test_preparation import HashEngine
from tests.oracles.chess_books import entry, small_book


def same(value: Any) -> Any:
    return value


def rows(policy: EnginePolicy, states: list[Any]) -> list[dict[int, float]]:
    return policy.action_probabilities_batch(states)


def values(evaluation: EngineEvaluation, states: list[Any]) -> list[float]:
    found: list[float] = evaluation.evaluate_batch(states).tolist()
    return found


@pytest.fixture(scope="module", params=["spawn", "fork"])
def process(request: pytest.FixtureRequest) -> Iterator[Pool]:
    with multiprocessing.get_context(request.param).Pool(1) as it:
        yield it


def through(process: Pool, value: Any) -> Any:
    return process.apply(same, (value,))


def test_games_and_states(process: Pool) -> None:
    for text in ("python_chess", "python_chess(max_plies=9,threefold=true)"):
        game = pyspiel.load_game(text)
        assert str(through(process, game)) == str(game)
        state = game.new_initial_state()
        for move in ("e2e4", "e7e5", "g1f3"):
            state.apply_action(action_of(chess.Move.from_uci(move)))
        again = through(process, state)
        assert (again.epd, again.ply, again.moves()) == (state.epd, 3, state.moves())
        assert again.legal_actions() == state.legal_actions() and str(again.get_game()) == str(game)


def same_book(again: Book, book: Book) -> bool:
    found = (again.start, again.side, again.positions, again.first_lines(9))
    return found == (book.start, book.side, book.positions, book.first_lines(9))


def test_books(process: Pool) -> None:
    book = small_book()
    assert same_book(through(process, book), book)
    settings = PreparationSettings(penalty=0.002, opponent_temperature_cp=80.0, max_plies=7)
    tree = preparation_tree(settings, HashEngine(spread=400.0))
    found = preparation_book(tree, 0, best_precomputation(tree, 0).states())
    assert len(found) and same_book(through(process, found), found)
    # Longer than pickle would follow node by node.
    moves = ["g1f3", "g8f6", "f3g1", "f6g8"] * 400
    history = " ".join(moves)
    long = Book(chess.Board(), chess.WHITE, [entry(history, {"e2e4": 1.0})])
    assert same_book(through(process, long), long)


def test_engines_and_their_policies(process: Pool, tmp_path: Path) -> None:
    game = pyspiel.load_game("python_chess")
    first = game.new_initial_state()
    states = [first, first.child(action_of(chess.Move.from_uci("d2d4")))]
    with (
        EvaluationStore(tmp_path / "s.sqlite") as store,
        EnginePool(FAKE, workers=1, options={"Style": "Wild"}) as pool,
    ):
        engine = StoredEngine(store, pool)
        policy = EnginePolicy(game, engine, LIMIT, 30.0)
        evaluation = EngineEvaluation(engine, LIMIT, 2, LinearUtility())
        # Searched over there, kept in the same store, and so not searched here.
        there = process.apply(rows, (policy, states))
        assert len(store) == 2
        assert policy.action_probabilities_batch(states) == there
        assert process.apply(values, (evaluation, states)) == evaluation.evaluate_batch(states).tolist()
        assert engine.searches == 0
        copy = pickle.loads(pickle.dumps(engine))
        with copy.store, copy.pool:
            assert copy.engine_id == engine.engine_id == "Fake 1.0 [Style=Wild]"
            assert copy.search(EPDS[:3], LIMIT, 2) == [expected(epd, 2) for epd in EPDS[:3]]
        stored = StoredEngine(store, engine_id=engine.engine_id)
        assert process.apply(rows, (EnginePolicy(game, stored, LIMIT, 30.0), states)) == there
    for gone in (store, pool):
        with pytest.raises(TypeError, match=r"expected an open .*, got a closed one"):
            pickle.dumps(gone)
    with EvaluationStore(":memory:") as memory, pytest.raises(TypeError, match="in a file"):
        pickle.dumps(memory)
