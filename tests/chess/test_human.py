"""Policies of people: networks beside a plain implementation, ratings between them, engines, wrong files."""

import gzip
import os
import pathlib
import pickle
import random
import sys

import chess
import numpy as np
import pytest

from precomp_games import config, make_policy
from precomp_games.chess import ChessGame, EngineError
from precomp_games.chess.engines.move_stats import StatsEngine
from precomp_games.chess.game import action_of, move_of
from precomp_games.chess.model.human import HumanPolicy
from precomp_games.chess.model.opponents import opponent_policy
from tests.oracles.network import PlainNetwork, random_network

GAME = ChessGame({"max_plies": 1000})
REAL = os.environ.get("PRECOMP_MAIA")
_AHEAD = "7k/PP3P2/8/8/4p3/8/3P1pp1/K6N w - - 0 1"  # promotions of both sides, an en passant capture


@pytest.fixture
def folder(tmp_path):
    """Random networks for two ratings."""
    for seed, rating in enumerate((1200, 1600)):
        (tmp_path / f"random-{rating}.pb.gz").write_bytes(random_network(seed))
    return tmp_path


def played(fen=chess.STARTING_FEN, seed=0, most=60, back=0.3):
    """States of a random game, beside boards with their stacks; moves are often taken back at once."""
    game = ChessGame({"fen": "" if fen == chess.STARTING_FEN else fen, "max_plies": 1000})
    state, board, rng = game.new_initial_state(), chess.Board(fen), random.Random(seed)
    while len(board.move_stack) < most and not state.is_terminal():
        yield state.clone(), board.copy()
        legal = list(board.legal_moves)
        castling = [move for move in legal if board.is_castling(move) or move.promotion]
        undo = [
            move
            for move in legal
            if len(board.move_stack) > 1
            and (board.move_stack[-2].from_square, board.move_stack[-2].to_square)
            == (move.to_square, move.from_square)
        ]
        some = (
            undo if undo and rng.random() < back else castling if castling and rng.random() < 0.7 else legal
        )
        move = rng.choice(some)
        state.apply_action(action_of(move))
        board.push(move)


def differences(policy, network, states_and_boards):
    """Return the largest difference between the policy and a plain network, in moves and in scores."""
    states, boards = zip(*states_and_boards, strict=True)
    rows, scores, apart = policy.action_probabilities_batch(states), policy.evaluate_batch(states), [0.0]
    for row, score, board in zip(rows, scores, boards, strict=True):
        plain, (win, draw, _) = network(board)
        assert {move_of(action) for action in row} == set(plain)
        apart += [abs(row[action_of(move)] - p) for move, p in plain.items()]
        expected = win + 0.5 * draw
        apart.append(abs(score - (expected if board.turn == chess.WHITE else 1.0 - expected)))
    return max(apart)


@pytest.mark.parametrize("fen", [chess.STARTING_FEN, _AHEAD, "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 3 9"])
def test_a_network_says_what_a_plain_one_says(folder, fen):
    file = folder / "random-1200.pb.gz"
    policy = HumanPolicy(GAME, 1200, file)
    games = [pair for seed in range(3) for pair in played(fen, seed, 40)]
    assert differences(policy, PlainNetwork(file.read_bytes()), games) < 1e-5


@pytest.mark.skipif(not REAL, reason="no PRECOMP_MAIA names real networks")
@pytest.mark.slow("the same with real networks, where there are some")
def test_real_networks_say_what_plain_ones_say():
    policy = HumanPolicy(GAME, 1500)
    (file,) = policy.networks
    network = PlainNetwork(pathlib.Path(file).read_bytes())
    games = [pair for seed in range(12) for pair in played(seed=seed)][:500]
    assert differences(policy, network, games) < 1e-5


def test_between_ratings_networks_are_averaged_and_beyond_them_the_last_one_stands(folder):
    states = [state for state, _ in played(seed=5, most=9)]
    rows = {
        rating: [
            np.array(list(row.values()))
            for row in HumanPolicy(GAME, rating, folder).action_probabilities_batch(states)
        ]
        for rating in (800, 1200, 1300, 1600, 2400)
    }
    for low, between, high, below, above in zip(
        *(rows[r] for r in (1200, 1300, 1600, 800, 2400)), strict=True
    ):
        np.testing.assert_allclose(between, 0.75 * low + 0.25 * high, atol=1e-12)
        np.testing.assert_array_equal(below, low)
        np.testing.assert_array_equal(above, high)


def test_with_a_spread_all_networks_are_averaged(folder):
    state = GAME.new_initial_state()
    low, high = (HumanPolicy(GAME, each, folder).action_probabilities(state) for each in (1200, 1600))
    odds = np.exp([-0.5 * 0.5**2, -0.5 * 1.5**2])  # 1300 is 100 and 300 from them
    share, _ = odds / odds.sum()
    assert sum(HumanPolicy(GAME, 1200, folder, spread=100.0).networks.values()) == pytest.approx(1.0)
    row = HumanPolicy(GAME, 1300, folder, spread=200.0).action_probabilities(state)
    assert row == pytest.approx({a: share * p + (1.0 - share) * high[a] for a, p in low.items()}, abs=1e-12)


def test_answers_do_not_depend_on_what_was_asked_before(folder):
    states = [state for state, _ in played(seed=1)]
    policy = HumanPolicy(GAME, 1600, folder)
    at_once = policy.action_probabilities_batch(states)
    backwards = [HumanPolicy(GAME, 1600, folder).action_probabilities(state) for state in states[::7]]
    for one, other in zip(at_once[::7], backwards, strict=True):
        np.testing.assert_allclose(list(one.values()), list(other.values()), atol=1e-6)
    again = pickle.loads(pickle.dumps(policy)).action_probabilities_batch(states)
    assert again == at_once


def test_a_spec_names_people_where_networks_are_named(folder, monkeypatch):
    monkeypatch.delenv("PRECOMP_MAIA", raising=False)
    with pytest.raises(ValueError, match=r"get maia-1100\.pb\.gz .* --maia.*PRECOMP_MAIA"):
        make_policy(GAME, "human(rating=1500)")
    state = GAME.new_initial_state()
    with config(networks=folder):
        named = make_policy(GAME, "human(rating=1300)").action_probabilities(state)
    monkeypatch.setenv("PRECOMP_MAIA", str(folder))
    assert make_policy(GAME, "human(rating=1300)").action_probabilities(state) == named
    file = folder / "random-1200.pb.gz"
    with pytest.raises(ValueError, match="trusted"):
        make_policy(GAME, f"human(rating=1300,maia={file})")
    mixed = opponent_policy(
        GAME, f"mixture(a=human(rating=1200),b=human(rating=1600,maia={folder}))", trusted=True
    )
    assert mixed.of_history
    with pytest.raises(ValueError, match="rating"):
        make_policy(GAME, "human(rating=-5)")


def test_files_that_are_no_such_networks_are_refused_in_a_line(tmp_path):
    whole = random_network()
    wrong = {
        "empty": b"",
        "text": b"no network",
        "cut": whole[:-500],
        "inner": gzip.compress(gzip.decompress(whole)[:-500]),
        "format": random_network(kinds=(1, 4, 1, 2)),
        "attention": random_network(kinds=(1, 6, 2, 2)),
        "weights": gzip.compress(gzip.decompress(whole)[:1200]),
        "zeros": gzip.compress(bytes(5000)),
    }
    for name, data in wrong.items():
        file = tmp_path / f"{name}.pb.gz"
        file.write_bytes(data)
        with pytest.raises(ValueError, match=r"expected a network of people's moves.*\n?$") as told:
            HumanPolicy(GAME, 1500, file)
        assert "\n" not in str(told.value)
    with pytest.raises(FileNotFoundError):
        HumanPolicy(GAME, 1500, tmp_path / "nowhere.pb.gz")
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="expected a folder with networks"):
        HumanPolicy(GAME, 1500, tmp_path / "none")


_LC0 = """
import chess, sys
board, verbose = chess.Board(), False
for line in sys.stdin:
    words = line.split()
    if words[:1] == ["uci"]:
        print("id name script\\noption name VerboseMoveStats type check default false\\nuciok")
    elif words[:2] == ["setoption", "name"]:
        verbose = words[-1] == "true"
    elif words[:1] == ["isready"]:
        print("readyok")
    elif words[:2] == ["position", "fen"]:
        board = chess.Board(" ".join(words[2:8]))
        for move in words[9:]:
            board.push_uci(move)
    elif words[:1] == ["go"]:
        legal = sorted(board.legal_moves, key=chess.Move.uci)
        {fault}
        for k, move in enumerate(legal) if verbose else ():
            share = 100.0 * (k + 1) / (len(legal) * (len(legal) + 1) / 2)
            print(f"info string {move}  (322 ) N:       0 (+ 0) (P: {share:5.2f}%) (WL: -.-----) (D: -.---)")
        print("info string node  (  20) N:       1 (+ 0) (P: 100.00%)")
        print("bestmove", legal[0])
    elif words[:1] == ["quit"]:
        break
    sys.stdout.flush()
"""


def script(tmp_path, fault="pass"):
    file = tmp_path / "lc0"
    file.write_text(f"#!{sys.executable}\n" + _LC0.replace("{fault}", fault))
    file.chmod(0o755)
    return file


def test_an_engine_says_how_likely_it_finds_each_move(tmp_path):
    policy = make_policy(GAME, f"human(engine={script(tmp_path)})", trusted=True)
    for state, board in played(seed=3, most=6):
        row = policy.action_probabilities(state)
        legal = sorted(board.legal_moves, key=chess.Move.uci)
        total = len(legal) * (len(legal) + 1) / 2
        for k, move in enumerate(legal):
            assert row[action_of(move)] == pytest.approx((k + 1) / total, abs=2e-4)
        assert sum(row.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("sys.exit()", "lc0"),
        ("verbose = False", "info string <move>"),
        ('print("info string a1a5 (1 ) N: 1 (P: 50.00%)")', "a1a5"),
    ],
)
def test_an_engine_that_says_nothing_of_the_kind_is_told(tmp_path, fault, said):
    engine = StatsEngine(script(tmp_path, fault))
    with pytest.raises(EngineError, match=said):
        engine.ask([chess.STARTING_FEN + " moves"])
    engine.close()
