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
from hypothesis import example, given
from hypothesis import strategies as st

from precomp_games import config, make_policy
from precomp_games.chess import ChessGame, EngineError
from precomp_games.chess.engines.move_stats import StatsEngine
from precomp_games.chess.game import action_of, move_of
from precomp_games.chess.model.human import HumanPolicy
from precomp_games.chess.model.opponents import opponent_policy
from tests.oracles.games import SEEDS
from tests.oracles.network import PlainNetwork, random_network
from tests.properties import examples

GAME = ChessGame({"max_plies": 1000})
REAL = os.environ.get("PRECOMP_MAIA")
_AHEAD = "7k/PP3P2/8/8/4p3/8/3P1pp1/K6N w - - 0 1"  # promotions of both sides, an en passant capture
_STARTS = ["", _AHEAD, "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 3 9"]
_NETWORKS = {rating: random_network(seed) for seed, rating in enumerate((1200, 1600))}
_PLAIN = [PlainNetwork(data) for data in _NETWORKS.values()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Random networks for two ratings."""
    folder = tmp_path_factory.mktemp("networks")
    for rating, data in _NETWORKS.items():
        (folder / f"random-{rating}.pb.gz").write_bytes(data)
    return folder


def played(fen="", seed=0, most=60):
    """Return states of a random game, beside boards with their stacks; moves are often taken back at once."""
    state, rng = ChessGame({"fen": fen, "max_plies": 1000}).new_initial_state(), random.Random(seed)
    board, found = chess.Board(fen) if fen else chess.Board(), []
    while len(board.move_stack) < most and not state.is_terminal():
        found.append((state.clone(), board.copy()))
        moves = legal = list(board.legal_moves)
        last = board.move_stack[-2] if len(board.move_stack) > 1 else chess.Move.null()
        back = chess.Move(last.to_square, last.from_square)
        special = [move for move in legal if board.is_castling(move) or move.promotion]
        if back in legal and rng.random() < 0.3:
            moves = [back]
        elif special and rng.random() < 0.7:
            moves = special
        move = rng.choice(moves)
        state.apply_action(action_of(move))
        board.push(move)
    return found


def difference(policy, networks, states_and_boards):
    """Return the largest difference between the policy and plain networks, in moves and in scores."""
    states, boards = zip(*states_and_boards, strict=True)
    rows, scores, apart = policy.action_probabilities_batch(states), policy.evaluate_batch(states), [0.0]
    for row, score, board in zip(rows, scores, boards, strict=True):
        answers = [(weight, *network(board)) for network, weight in networks]
        assert {move_of(action) for action in row} == set(board.legal_moves)
        plain = {move: sum(weight * of[move] for weight, of, _ in answers) for move in board.legal_moves}
        apart += [abs(p - plain[move_of(action)]) for action, p in row.items()]
        expected = sum(weight * (win + 0.5 * draw) for weight, _, (win, draw, _) in answers)
        apart.append(abs(score - (expected if board.turn == chess.WHITE else 1.0 - expected)))
    return max(apart)


@examples(24)
@given(
    seed=SEEDS,
    fen=st.sampled_from(_STARTS),
    rating=st.sampled_from([800, 1200, 1300, 1600, 2400]) | st.integers(1200, 1600),
    spread=st.sampled_from([0.0, 200.0]),
)
@example(seed=1, fen="", rating=1300, spread=0.0)
@example(seed=1, fen=_AHEAD, rating=800, spread=200.0)
def test_networks_say_what_plain_ones_say(folder, seed, fen, rating, spread):
    """Averaged between two ratings; beyond, the last alone. With a spread, all by a normal distribution."""
    policy = HumanPolicy(GAME, rating, folder, spread=spread)
    near = min(max(rating, 1200), 1600)
    high = (near - 1200) / 400
    if spread:
        odds = np.exp([-0.5 * ((near - each) / spread) ** 2 for each in _NETWORKS])
        high = odds[1] / odds.sum()
    pairs = played(fen, seed, 12)
    assert difference(policy, [(_PLAIN[0], 1.0 - high), (_PLAIN[1], high)], pairs) < 1e-5
    # Answers do not depend on what was asked before.
    states = [state for state, _ in pairs]
    at_once = policy.action_probabilities_batch(states)
    other = HumanPolicy(GAME, rating, folder, spread=spread).action_probabilities(states[-1])
    assert other == pytest.approx(at_once[-1], abs=1e-6)
    assert pickle.loads(pickle.dumps(policy)).action_probabilities_batch(states) == at_once


@pytest.mark.skipif(not REAL, reason="no PRECOMP_MAIA names real networks")
@pytest.mark.slow("the same with real networks, where there are some")
def test_real_networks_say_what_plain_ones_say():
    policy = HumanPolicy(GAME, 1500)
    (file,) = policy.networks
    network = PlainNetwork(pathlib.Path(file).read_bytes())
    pairs = [pair for seed in range(6) for pair in played(seed=seed)]
    assert difference(policy, [(network, 1.0)], pairs) < 1e-5


def test_a_spec_names_people_where_networks_are_named(folder, monkeypatch):
    monkeypatch.delenv("PRECOMP_MAIA", raising=False)
    with pytest.raises(ValueError, match=r"get maia-1100\.pb\.gz .* --maia.*PRECOMP_MAIA"):
        make_policy(GAME, "human(rating=1500)")
    state = GAME.new_initial_state()
    with config(networks=folder):
        named = make_policy(GAME, "human(rating=1300)").action_probabilities(state)
    monkeypatch.setenv("PRECOMP_MAIA", str(folder))
    assert make_policy(GAME, "human(rating=1300)").action_probabilities(state) == named
    for spec, message in ((f"human(maia={folder})", "trusted"), ("human(rating=-5)", "rating")):
        with pytest.raises(ValueError, match=message):
            make_policy(GAME, spec)
    both = f"mixture(a=human(rating=1200),b=human(rating=1600,maia={folder}))"
    assert opponent_policy(GAME, both, trusted=True).of_history


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
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match="expected a network of people's moves") as message:
            HumanPolicy(GAME, 1500, tmp_path / name)
        assert "\n" not in str(message.value)
    with pytest.raises(FileNotFoundError):
        HumanPolicy(GAME, 1500, tmp_path / "nowhere.pb.gz")
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="expected a folder with networks"):
        HumanPolicy(GAME, 1500, tmp_path / "none")


_LC0 = """
import chess, sys
board, verbose, answers = chess.Board(), False, {"isready": "readyok"}
answers["uci"] = "id name script\\noption name VerboseMoveStats type check default false\\nuciok"
for line in sys.stdin:
    words = line.split()
    if line.strip() in answers:
        print(answers[line.strip()])
    elif words[:2] == ["setoption", "name"]:
        verbose = words[-1] == "true"
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
        legal = [action_of(move) for move in sorted(board.legal_moves, key=chess.Move.uci)]
        shares = {action: 2 * (k + 1) / (len(legal) * (len(legal) + 1)) for k, action in enumerate(legal)}
        row = policy.action_probabilities(state)
        assert row == pytest.approx(shares, abs=2e-4) and sum(row.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("sys.exit()", "lc0"),
        ("verbose = False", "info string <move>"),
        ('print("info string a1a5 (1 ) N: 1 (P: 50.00%)")', "a1a5"),
    ],
)
def test_an_engine_that_reports_nothing_of_the_kind_is_an_error(tmp_path, fault, message):
    engine = StatsEngine(script(tmp_path, fault))
    with pytest.raises(EngineError, match=message):
        engine.ask([chess.STARTING_FEN + " moves"])
    engine.close()
