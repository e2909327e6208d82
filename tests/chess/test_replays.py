"""Moves from their text: the same as python-chess reads, or none."""

import dataclasses
import random
from pathlib import Path

import chess

from precomp_games.chess import GameReport, action_of, read_games
from precomp_games.chess.data.game_records import position_hash
from precomp_games.chess.data.replays import replay
from tests.oracles.pgn import game, mutated

_ODD = (
    "O-O",
    "O-O-O",
    "e8=Q",
    "e8",
    "e1=N",
    "exd6",
    "dxe3",
    "bxc3",
    "Ke2",
    "Rfe1",
    "R1e1",
    "Nbd2",
    "e5",
    "Zz9",
)


def random_game(rng: random.Random, plies: int) -> tuple[chess.Board, list[str], list[int], list[int]]:
    """A position, the words, keys and actions that lead to it; rare kinds of moves are played often."""
    board, words, keys, actions = chess.Board(), list[str](), list[int](), list[int]()
    for _ in range(plies):
        legal = list(board.legal_moves)
        rare = [
            move
            for move in legal
            if board.is_castling(move)
            or move.promotion
            or board.is_en_passant(move)
            or (
                board.piece_type_at(move.from_square) == chess.PAWN
                and abs(move.from_square - move.to_square) == 16
            )
        ]
        if not legal:
            break
        move = rng.choice(rare if rare and rng.random() < 0.4 else legal)
        words.append(board.san(move).rstrip("+#"))
        keys.append(position_hash(board))
        actions.append(action_of(move))
        board.push(move)
    return board, words, keys, actions


def test_random_games_are_python_chess_s(cases) -> None:
    rng = random.Random(3)
    for _ in range(cases(100)):
        board, words, keys, actions = random_game(rng, rng.choice((30, 80, 200)))
        assert replay(words) == (keys, actions)
        pieces = [f"{rng.choice('KQRBN')}{chess.square_name(rng.randrange(64))}" for _ in range(8)]
        for word in (*_ODD, *pieces):
            try:
                expected = action_of(board.parse_san(word))
            except ValueError:
                expected = None
            found = replay([*words, word])
            assert (found and found[1][-1]) == expected, (board.fen(), word)


def test_long_notation_is_left_to_python_chess() -> None:
    assert replay(["e2e4"]) is None and replay(["0-0"]) is None


def test_files_say_the_same_without_it(cases, tmp_path: Path) -> None:
    """Only where keys are `position_hash` itself are games read without python-chess."""
    rng = random.Random(5)
    clocks = (
        "1. e4 {[%clk 0:05:00]} e5 {[%clk 0:04:59]} 2. Nf3 $1 Nc6! {book} 3. Bb5+ a6 4. O-O {a\nb} Nf6 1-0"
    )
    text = "".join(
        game(" ".join(random_game(rng, plies)[1]), Date=f"{1980 + plies}.01.02") for plies in (1, 25, 45, 70)
    ) + "".join(
        map(game, (clocks, clocks.replace("book", ""), "1.e4 e5 (1... c5) 2.Ke3 Nf6", "1. d4 *\n\n1. c4"))
    )
    path = tmp_path / "games.pgn"
    for k in range(cases(60)):
        path.write_bytes(mutated(rng, text.encode()) if k else text.encode())
        for how in ({}, {"setups": True, "copies": True}, {"max_plies": 30}, {"clocks": True}):
            told = []
            for key in (position_hash, lambda board: position_hash(board)):
                report = GameReport()
                records = list(read_games(path, key=key, report=report, **how))
                told.append((records, dataclasses.asdict(report)))
            assert told[0] == told[1]
