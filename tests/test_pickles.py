"""Users' objects come back the same in other processes: trees, books, policies, engines and stores."""

import copy
import math
import multiprocessing
import pickle

import chess
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

from precomp_games import ClockGame, HistoryTree, RolloutValues, make_policy
from precomp_games import chess as play
from precomp_games.algorithms import best_precomputation, meta_equilibrium
from precomp_games.chess import EnginePolicy, StoredEngine, action_of
from precomp_games.chess.model.engine_policies import LinearUtility
from precomp_games.policies.leaf_values import EvaluatedValues, ExactValues
from tests.chess.test_engine import EPDS, FAKE, LIMIT, expected
from tests.oracles.books import states
from tests.oracles.chess_books import entry, small_book
from tests.oracles.engines import HashEngine
from tests.oracles.games import expand, kuhn_poker, last

EFG = """EFG 2 R "coin" { "0" "1" }
c "" 1 "" { "h" 0.5 "t" 0.5 } 0
p "" 1 1 "sees" { "a" "b" } 0
t "" 1 "" { 1 -1 }
t "" 2 "" { -1 1 }
p "" 1 2 "sees too" { "a" "b" } 0
t "" 3 "" { -1 1 }
t "" 4 "" { 1 -1 }
"""


@pytest.fixture(scope="module", params=["spawn", "fork"])
def pool(request):
    with multiprocessing.get_context(request.param).Pool(1) as pool:
        yield pool


def kuhn_tree(sigma="uniform"):
    game = kuhn_poker()
    sigma = make_policy(game, sigma) if isinstance(sigma, str) else sigma
    return expand(game, make_policy(game, "best_response"), sigma, (0.01, 0.3))


def played(*moves):
    state = pyspiel.load_game("python_chess(max_plies=9,threefold=true)").new_initial_state()
    for move in moves:
        state.apply_action(action_of(chess.Move.from_uci(move)))
    return state


def prepared_book():
    settings = play.PreparationSettings(penalty=0.002, opponent_temperature_cp=80.0, max_plies=7)
    tree = play.preparation_tree(settings, HashEngine(spread=400.0))
    return play.preparation_book(tree, 0, best_precomputation(tree, 0).states())


def clock_policy():
    game = ClockGame({"game": {"name": "tic_tac_toe"}, "time_0": 3, "time_1": 3})
    return game.policy(make_policy(game.base, "uniform"), 1), game.position_key(str), game.new_initial_state()


# -- what the other process does ---------------------------------------------------------------------------


def same(value):
    return value


def rows(policy):
    """Return all rows of a policy of Kuhn poker."""
    turns = (state for state in states(kuhn_poker()) if state.current_player() >= 0)
    return {state.information_state_string(): policy.action_probabilities(state) for state in turns}


def solved(tree):
    best = best_precomputation(tree, 0)
    return tree.fingerprint, str(tree.game), best.value, rows(best.policy())


def position(state):
    return state.epd, state.ply, state.moves(), state.legal_actions(), str(state.get_game())


def contents(book):
    return book.start, book.side, book.positions, book.first_lines(9)


def clock_row(given):
    policy, key, state = given
    return policy.action_probabilities(state), key(state)


def with_sigma(tree, sigma=last):
    try:
        return rows(best_precomputation(tree, 0).policy(sigma=sigma))
    except ValueError as error:
        return str(error)


def state_of(tree, history, text=None):
    try:
        return str((tree.with_game(pyspiel.load_efg_game(text)) if text else tree).state(history))
    except ValueError as error:
        return str(error)


SPEC = "noisy(policy=best_response(to=cfr(iterations=5)),epsilon=0.1)"
SHUFFLE = " ".join(["g1f3", "g8f6", "f3g1", "f6g8"] * 400)  # longer than pickle would follow node by node


@pytest.mark.parametrize(
    ("make", "look"),
    [
        *((lambda sigma=sigma: kuhn_tree(sigma), solved) for sigma in ("uniform", SPEC, last)),
        (lambda: kuhn_tree(openspiel_policy.TabularPolicy(kuhn_poker())), solved),
        *((lambda spec=spec: make_policy(kuhn_poker(), spec), rows) for spec in ("random(seed=3)", SPEC)),
        (lambda: best_precomputation(kuhn_tree(), 0).policy(), rows),
        (lambda: meta_equilibrium(kuhn_tree(), iterations=50).strategies[0].policy(), rows),
        (lambda: played("e2e4", "e7e5", "g1f3"), position),
        (small_book, contents),
        (prepared_book, contents),
        (lambda: play.Book(chess.Board(), chess.WHITE, [entry(SHUFFLE, {"e2e4": 1.0})]), contents),
        (clock_policy, clock_row),
        (lambda: (ExactValues(), RolloutValues(games=3), EvaluatedValues(math.sqrt)), same),
    ],
)
def test_what_users_hold_is_the_same_there(pool, make, look):
    value = make()
    assert pool.apply(look, (value,)) == look(pickle.loads(pickle.dumps(value))) == look(value)


# -- trees ---------------------------------------------------------------------------------------------------


def test_what_cannot_be_pickled_is_left_behind_and_missed(pool):
    tree = kuhn_tree(sigma=lambda state: last(state))
    best = best_precomputation(tree, 0)
    message = pool.apply(with_sigma, (tree, None))
    assert message.startswith("PrecomputationPolicy.action_probabilities(): expected a state on the book")
    assert "give policy(sigma=...)" in message and "files do not have it" in message
    assert pool.apply(with_sigma, (tree,)) == with_sigma(tree) == rows(best.policy())
    book = pickle.loads(pickle.dumps(best.policy()))
    for state in best.states():
        on_book = best.tree.state(state.history)
        assert book.action_probabilities(on_book) == best.policy().action_probabilities(on_book)
    for other in (copy.copy(tree), copy.deepcopy(tree)):  # which keep it
        assert other.policies == tree.policies and other.game is tree.game and other.same_as(tree)
    assert other.sigma is not tree.sigma


@pytest.fixture
def coin():
    """Return the tree of a game that no string loads."""
    game = pyspiel.load_efg_game(EFG)
    return expand(game, last, openspiel_policy.UniformRandomPolicy(game), 0.1)


def test_a_game_that_no_string_loads_has_to_be_given(pool, coin, tmp_path):
    message = pool.apply(state_of, (coin, 1))
    assert message.startswith("HistoryTree.state(): expected a game that its string loads, got 'efg_game()'")
    assert "tree.with_game(game)" in message
    assert pool.apply(state_of, (coin, 1, EFG)) == str(coin.state(1))
    coin.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz")
    assert loaded.same_as(coin)
    for use in (
        lambda: loaded.game,
        lambda: loaded.state(1),
        lambda: best_precomputation(loaded, 0).policy(),
    ):
        with pytest.raises(ValueError, match=r"got 'efg_game\(\)' .* give the tree its game with tree.with_"):
            use()
    whole = loaded.with_game(pyspiel.load_efg_game(EFG))
    assert [str(whole.state(h)) for h in range(5)] == [str(coin.state(h)) for h in range(5)]


def test_a_file_that_a_trees_file_names_is_not_opened(tmp_path, coin):
    (tmp_path / "coin.efg").write_text(EFG)
    named = pyspiel.load_game("efg_game", {"filename": str(tmp_path / "coin.efg")})
    expand(named, last, last, 0.1).save(tmp_path / "named.npz")
    loaded = HistoryTree.load(tmp_path / "named.npz")
    with pytest.raises(ValueError, match="filename= names a file, which it may not open"):
        loaded.state(1)
    assert str(loaded.with_game(named).state(1)) == str(coin.state(1))


def test_the_game_of_another_tree_is_refused(coin):
    for game, what in (
        (pyspiel.load_efg_game(EFG.replace("{ 1 -1 }", "{ 0.5 -0.5 }")), "that the tree was .*, got another"),
        (pyspiel.load_efg_game(EFG.replace('1 2 "sees too"', '1 1 "sees"')), "that .* from, got another"),
        (kuhn_poker(), r"'efg_game\(\)', got 'kuhn_poker"),
    ):
        with pytest.raises(ValueError, match=rf"^HistoryTree.with_game\(\): expected the game {what}"):
            coin.with_game(game)


# -- engines -------------------------------------------------------------------------------------------------


def test_engines_and_their_policies(pool, tmp_path):
    first = pyspiel.load_game("python_chess").new_initial_state()
    asked = [first, first.child(action_of(chess.Move.from_uci("d2d4")))]
    with (
        play.EvaluationStore(tmp_path / "s.sqlite") as store,
        play.EnginePool(FAKE, workers=1, options={"Style": "Wild"}) as engines,
    ):
        engine = StoredEngine(store, engines)
        policy = EnginePolicy(first.get_game(), engine, LIMIT, 30.0)
        evaluation = play.EngineEvaluation(engine, LIMIT, 2, LinearUtility())
        # Searched over there, kept in the same store, and so not searched here.
        there = pool.apply(EnginePolicy.action_probabilities_batch, (policy, asked))
        assert len(store) == 2 and policy.action_probabilities_batch(asked) == there
        worth = pool.apply(play.EngineEvaluation.evaluate_batch, (evaluation, asked))
        assert worth.tolist() == evaluation.evaluate_batch(asked).tolist()
        assert engine.searches == 0
        copied = pickle.loads(pickle.dumps(engine))
        with copied.store, copied.pool:
            assert copied.engine_id == engine.engine_id == "Fake 1.0 [Style=Wild]"
            assert copied.search(EPDS[:3], LIMIT, 2) == [expected(epd, 2) for epd in EPDS[:3]]
        stored = StoredEngine(store, engine_id=engine.engine_id)
        policy = EnginePolicy(first.get_game(), stored, LIMIT, 30.0)
        assert pool.apply(EnginePolicy.action_probabilities_batch, (policy, asked)) == there
    for gone in (store, engines):
        with pytest.raises(TypeError, match=r"expected an open .*, got a closed one"):
            pickle.dumps(gone)
    with play.EvaluationStore(":memory:") as memory, pytest.raises(TypeError, match="in a file"):
        pickle.dumps(memory)
