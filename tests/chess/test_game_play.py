"""Engines that play games: what they answer depends on the game so far, and on nothing else."""

import dataclasses
import random
import sys
from pathlib import Path

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
from precomp_games.chess.engines.searches import game_text
from precomp_games.chess.engines.uci import SearchCommand
from precomp_games.chess.game import move_of
from precomp_games.chess.model.model import preparation_policies
from precomp_games.policies.rows import is_of_history
from tests.chess import fake_engine

FAKE = [sys.executable, fake_engine.__file__, "--remembers"]
LIMIT = SearchLimit(nodes=1000)
ENDGAME = "8/5k2/8/8/8/8/3PK3/8 b - - 3 40"


def games(number: int, plies: int, fen: str = chess.STARTING_FEN, seed: int = 0) -> list[list[chess.Move]]:
    """Random games, several of which begin alike."""
    rng, found = random.Random(seed), []
    for k in range(number):
        board = chess.Board(fen)
        for move in found[-1][: plies // 2] if k % 2 else []:
            board.push(move)
        while board.ply() - chess.Board(fen).ply() < plies:
            board.push(rng.choice(list(board.legal_moves)))
        found.append(board.move_stack[:])
    return found


def turns(fen: str, moves: list[chess.Move]) -> list[str]:
    """Return the questions to an engine whose last turn is after these moves, the first one first."""
    return [game_text(chess.Board(fen), moves[:k]) for k in range(len(moves) % 2, len(moves) + 1, 2)]


def answer(fen: str, moves: list[chess.Move]) -> str:
    """Return the fake engine's move after these moves."""
    searched, board = [], chess.Board(fen)
    for k in range(len(moves) + 1):
        if k % 2 == len(moves) % 2:
            searched.append(board.fen())
        if k < len(moves):
            board.push(moves[k])
    return fake_engine.remembered(searched)


@pytest.mark.parametrize("fen", [chess.STARTING_FEN, ENDGAME])
@pytest.mark.parametrize("workers", [1, 3])
def test_what_is_played_depends_on_the_game_alone(tmp_path: Path, fen: str, workers: int) -> None:
    """In any order, by any number of engines, some of which die amid their games, beside other searches."""
    asked = [(text, moves[: len(text.split(" moves")[1].split())]) for moves in games(6, 7, fen)
             for text in turns(fen, moves)]  # fmt: skip
    random.Random(1).shuffle(asked)
    command = [*FAKE, "--fault=exit", "--times=2", f"--state={tmp_path / 'state'}"]
    with EnginePool(command, workers=workers, timeout_seconds=20) as pool:
        for first in range(0, len(asked), 5):
            some = asked[first : first + 5]
            results = pool.search([text for text, _ in some], LIMIT, 1, samples=1)
            assert [r.played for r in results] == [((answer(fen, moves), 1),) for _, moves in some]
            pool.search([chess.Board(fen).epd()], LIMIT, 2)


def test_a_game_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn by turn a game costs a search each, several of them beside each other and beside positions too."""
    searches: list[bool] = []

    class Counted(SearchCommand):
        def start(self) -> None:
            searches.append(self._question.turn is not None)
            super().start()

    monkeypatch.setattr(uci_module, "SearchCommand", Counted)
    fen = chess.STARTING_FEN
    lines = [turns(fen, moves) for moves in (games(3, 9, seed=2)[0], games(3, 9, seed=3)[0])]
    with EnginePool(FAKE, workers=2, timeout_seconds=20) as pool:
        for together in zip(*lines, strict=True):
            pool.search(together, LIMIT, 1, samples=1)
            pool.search([chess.Board().epd()], LIMIT, 2)
        assert sum(searches) == 10 and len(searches) == 15
        before = len(searches)
        again = pool.search([lines[0][-1]], LIMIT, 1, samples=2)[0]  # two new games of five turns each
        assert len(searches) - before == 10 and again.samples == 2 and len(again.played) == 1


def test_games_are_stored(tmp_path: Path) -> None:
    (moves,) = games(1, 6)
    path = str(tmp_path / "store.sqlite")
    with EnginePool(FAKE, workers=1, timeout_seconds=20) as pool, EvaluationStore(path) as store:
        policy = EnginePolicy(ChessGame(), StoredEngine(store, pool), LIMIT, 10.0, plays="game")
        state = ChessGame().new_initial_state()
        for move in moves:
            state = state.child(action_of(move))
        expected = {action_of(chess.Move.from_uci(answer(chess.STARTING_FEN, moves))): 1.0}
        assert policy.action_probabilities(state) == expected and policy.of_history
    with EvaluationStore(path, read_only=True) as store:
        stored = StoredEngine(store)
        policy = EnginePolicy(ChessGame(), stored, LIMIT, 10.0, plays="game")
        assert policy.action_probabilities(state) == expected
        with pytest.raises(EngineError, match=r"1 position\(s\) that are not, the first '.* moves"):
            policy.action_probabilities(state.child(state.legal_actions()[0]))


@pytest.mark.parametrize(
    "text",
    [
        f"{chess.STARTING_FEN} moves e2e5",
        f"{chess.STARTING_FEN} moves e2e4 e2e4",
        f"{chess.STARTING_FEN} moves f2f3 e7e5 g2g4 d8h4",  # mate
        "8/8/8/8/8/8/8/8 w - - 0 1 moves",
        "nonsense moves e2e4",
        f"{chess.STARTING_FEN} moves e2e4 e7e5 0000 d7d5",  # an engine stops to read there
        f"{chess.STARTING_FEN} movese2e4",
        f"{chess.STARTING_FEN} moves  e2e4",
        "4k3/8/8/8/8/8/8/4K2R w K - 0 1 moves e1h1",
        "4k3/8/8/8/8/8/8/4K2R moves e1g1",
        "4k3/8/8/8/8/8/8/4K2R w K - 0 99999 moves e1g1",
        " moves",
    ],
)
def test_what_is_no_game_is_refused(text: str) -> None:
    with (
        EnginePool(FAKE, workers=1, timeout_seconds=20) as pool,
        pytest.raises(ValueError, match="expected a game as FEN, 'moves' and legal moves as UCI"),
    ):
        pool.search([text], LIMIT, 1)


def test_trees_share_no_positions_against_it() -> None:
    """Two ways to one position are two games, and may be answered otherwise."""
    with EnginePool(FAKE, workers=1, timeout_seconds=20) as pool:
        engine = StoredEngine(EvaluationStore(":memory:"), pool)
        settings = PreparationSettings(opponent_plays="game", penalty=0.01, max_plies=3)
        assert len(preparation_tree(settings, engine).position) == 0
        assert len(
            preparation_tree(dataclasses.replace(settings, opponent_plays="bestmove"), engine).position
        )
        with pytest.raises(ValueError, match='expected price="infosets" with a policy that depends on how'):
            preparation_tree(dataclasses.replace(settings, price="positions"), engine)
        for spec in (
            "uci(plays=game)",
            "noisy(policy=uci(plays=game),epsilon=0.1)",
            "mixture(a=uci(plays=game),b=uci())",
        ):
            policies = preparation_policies(PreparationSettings(opponent=spec, trusted=True), engine)
            assert is_of_history(policies.sigma[1]) and not is_of_history(policies.sigma[0])
        ways = [["g1f3", "g8f6", "b1c3"], ["b1c3", "g8f6", "g1f3"]]
        played = []
        for way in ways:
            state = ChessGame().new_initial_state()
            for uci in way:
                state = state.child(action_of(chess.Move.from_uci(uci)))
            policy = opponent_policy(ChessGame(), "uci(plays=game)", engine)
            played.append(policy.action_probabilities(state))
        assert played[0] != played[1]


@pytest.mark.engine
@pytest.mark.parametrize(("side", "nodes"), [(0, 300), (1, 300), (0, 5000)])
def test_as_through_python_chess(side: int, nodes: int) -> None:
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


def test_a_longer_search_is_no_turn_of_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a turn needs more than the limit for all lines, the game before it is played at the limit."""
    limits: list[tuple[int, int]] = []

    class Counted(SearchCommand):
        def start(self) -> None:
            limits.append((len(self._question.turn.moves), self._question.limit.nodes))
            super().start()

    monkeypatch.setattr(uci_module, "SearchCommand", Counted)
    (moves,) = games(1, 2)
    _, second = turns(chess.STARTING_FEN, moves)
    with EnginePool([*FAKE, "--fault=few-lines"], workers=1, timeout_seconds=20) as pool:
        pool.search([second], LIMIT, 2)
    assert limits == [(0, 1000), (2, 1000)] * 2 + [(0, 1000), (2, 2000)]
