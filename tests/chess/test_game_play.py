"""Engines that play games: what they answer depends on the game so far, and on nothing else."""

import dataclasses
import random

import chess
import chess.engine
import pytest

from precomp_games.chess import (
    ChessGame,
    EngineError,
    EnginePolicy,
    EnginePool,
    EvaluationStore,
    PreparationSettings,
    SearchLimit,
    StoredEngine,
    action_of,
    find_engine,
    opponent_policy,
    preparation_tree,
)
from precomp_games.chess.engines import uci as uci_module
from precomp_games.chess.engines.searches import check_position, game_text
from precomp_games.chess.engines.uci import SearchCommand
from precomp_games.chess.game import move_of
from precomp_games.chess.model.model import preparation_policies
from precomp_games.policies.rows import is_of_history
from tests.chess import fake_engine, test_engine

FAKE = [*test_engine.FAKE, "--remembers"]
LIMIT = SearchLimit(nodes=1000)
START = chess.STARTING_FEN
ENDGAME = "8/5k2/8/8/8/8/3PK3/8 b - - 3 40"


def games(number, plies, fen=START, seed=0):
    """Random games, several of which begin alike."""
    rng, found = random.Random(seed), []
    for k in range(number):
        board = chess.Board(fen)
        for move in found[-1][: plies // 2] if k % 2 else []:
            board.push(move)
        while len(board.move_stack) < plies:
            board.push(rng.choice(list(board.legal_moves)))
        found.append(board.move_stack[:])
    return found


def turns(fen, moves):
    """Return (question, the fake engine's answer) at each turn of one side, whose last is after the moves."""
    board, searched, found = chess.Board(fen), [], []
    for k in range(len(moves) + 1):
        if k % 2 == len(moves) % 2:
            searched.append(board.fen())
            found.append((game_text(chess.Board(fen), moves[:k]), fake_engine.remembered(searched)))
        if k < len(moves):
            board.push(moves[k])
    return found


def after(moves):
    state = ChessGame().new_initial_state()
    for move in moves:
        state = state.child(action_of(move))
    return state


@pytest.fixture
def counted(monkeypatch):
    """Return a list that gets (moves of the game so far, None for a position; nodes) of each search."""
    searches = []

    class Counted(SearchCommand):
        def start(self):
            turn, limit = self._question.turn, self._question.limit
            searches.append((None if turn is None else len(turn.moves), limit.nodes))
            super().start()

    monkeypatch.setattr(uci_module, "SearchCommand", Counted)
    return searches


@pytest.mark.parametrize(("fen", "workers"), [(START, 3), (ENDGAME, 1)])
def test_what_is_played_depends_on_the_game_alone(tmp_path, fen, workers):
    """In any order, by any number of engines, some of which die amid their games, beside other searches."""
    asked = [turn for moves in games(6, 7, fen) for turn in turns(fen, moves)]
    random.Random(1).shuffle(asked)
    command = [*FAKE, "--fault=exit", "--times=2", f"--state={tmp_path / 'state'}"]
    with EnginePool(command, workers=workers, timeout_seconds=20) as pool:
        for first in range(0, len(asked), 5):
            some = asked[first : first + 5]
            results = pool.search([text for text, _ in some], LIMIT, 1, samples=1)
            assert [r.played for r in results] == [((answer, 1),) for _, answer in some]
            pool.search([chess.Board(fen).epd()], LIMIT, 2)


def test_a_game_goes_on_where_it_was(counted):
    """Turn by turn a game costs a search each, several of them beside each other and beside positions too."""
    lines = [turns(START, games(3, 9, seed=seed)[0]) for seed in (2, 3)]
    with EnginePool(FAKE, workers=2, timeout_seconds=20) as pool:
        for together in zip(*lines, strict=True):
            pool.search([text for text, _ in together], LIMIT, 1, samples=1)
            pool.search([chess.Board().epd()], LIMIT, 2)
        assert sum(moves is not None for moves, _ in counted) == 10 and len(counted) == 15
        again = pool.search([lines[0][-1][0]], LIMIT, 1, samples=2)[0]  # two new games of five turns each
        assert len(counted) == 25 and again.samples == 2 and len(again.played) == 1


def test_a_longer_search_is_no_turn_of_the_game(counted):
    """If a turn needs more than the limit for all lines, the game before it is played at the limit."""
    _, (second, _) = turns(START, games(1, 2)[0])
    with EnginePool([*FAKE, "--fault=few-lines"], workers=1, timeout_seconds=20) as pool:
        pool.search([second], LIMIT, 2)
    assert counted == [(0, 1000), (2, 1000)] * 2 + [(0, 1000), (2, 2000)]


def test_games_are_stored(tmp_path):
    (moves,) = games(1, 6)
    path, state = tmp_path / "store.sqlite", after(moves)
    expected = {action_of(chess.Move.from_uci(turns(START, moves)[-1][1])): 1.0}
    with EnginePool(FAKE, workers=1) as pool:
        for how, engines in (({}, pool), ({"read_only": True}, None)):
            with EvaluationStore(path, **how) as store:
                engine = StoredEngine(store, engines)
                policy = EnginePolicy(ChessGame(), engine, LIMIT, 10.0, plays="game")
                assert policy.action_probabilities(state) == expected and policy.of_history
                if engines is None:
                    with pytest.raises(
                        EngineError, match=r"1 position\(s\) that are not, the first '.* moves"
                    ):
                        policy.action_probabilities(state.child(state.legal_actions()[0]))


@pytest.mark.parametrize(
    "text",
    [
        f"{START} moves e2e5",
        f"{START} moves e2e4 e2e4",
        f"{START} moves f2f3 e7e5 g2g4 d8h4",  # mate
        "8/8/8/8/8/8/8/8 w - - 0 1 moves",
        "nonsense moves e2e4",
        f"{START} moves e2e4 e7e5 0000 d7d5",  # an engine stops to read there
        f"{START} movese2e4",
        f"{START} moves  e2e4",
        "4k3/8/8/8/8/8/8/4K2R w K - 0 1 moves e1h1",
        "4k3/8/8/8/8/8/8/4K2R moves e1g1",
        "4k3/8/8/8/8/8/8/4K2R w K - 0 99999 moves e1g1",
        " moves",
    ],
)
def test_what_is_no_game_is_refused(text):
    with pytest.raises(ValueError, match="expected a game as FEN, 'moves' and legal moves as UCI"):
        check_position(text)


def test_trees_share_no_positions_against_it():
    """Two ways to one position are two games, and may be answered otherwise."""
    with EnginePool(FAKE, workers=1, timeout_seconds=20) as pool:
        engine = StoredEngine(EvaluationStore(":memory:"), pool)
        settings = PreparationSettings(opponent_plays="game", penalty=0.01, max_plies=3)
        assert len(preparation_tree(settings, engine).position) == 0
        plain = dataclasses.replace(settings, opponent_plays="bestmove")
        assert len(preparation_tree(plain, engine).position)
        with pytest.raises(ValueError, match='expected price="infosets" with a policy that depends on how'):
            preparation_tree(dataclasses.replace(settings, price="positions"), engine)
        for spec in (
            "uci(plays=game)",
            "noisy(policy=uci(plays=game),epsilon=0.1)",
            "mixture(a=uci(plays=game),b=uci())",
        ):
            policies = preparation_policies(PreparationSettings(opponent=spec, trusted=True), engine)
            assert is_of_history(policies.sigma[1]) and not is_of_history(policies.sigma[0])
        policy = opponent_policy(ChessGame(), "uci(plays=game)", engine)
        one, other = (
            policy.action_probabilities(after(map(chess.Move.from_uci, way.split())))
            for way in ("g1f3 g8f6 b1c3", "b1c3 g8f6 g1f3")
        )
        assert one != other


@pytest.mark.engine
@pytest.mark.parametrize(("side", "nodes"), [(0, 5000), (1, 300)])
def test_a_game_is_played_as_through_python_chess(side, nodes):
    """The model's move is the engine's in a game that python-chess plays with it."""
    rng = random.Random(nodes + side)
    with (
        EnginePool(find_engine(), workers=2) as pool,
        chess.engine.SimpleEngine.popen_uci(find_engine()) as engine,
    ):
        stored = StoredEngine(EvaluationStore(":memory:"), pool)
        policy = EnginePolicy(ChessGame(), stored, SearchLimit(nodes=nodes), 10.0, plays="game")
        state, board, turns_played = ChessGame().new_initial_state(), chess.Board(), 0
        while not state.is_terminal() and state.ply < 30:
            if state.current_player() == side:
                move = engine.play(board, chess.engine.Limit(nodes=nodes), game=0).move
                assert policy.action_probabilities(state) == {action_of(move): 1.0}
                turns_played += 1
            else:
                move = move_of(rng.choice(state.legal_actions()))
            state = state.child(action_of(move))
            board.push(move)
        assert stored.searches == turns_played > 8
