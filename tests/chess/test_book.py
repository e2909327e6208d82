"""Books as chess programs read them: python-chess reads back what was written."""

import math
import random
import struct
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chess
import chess.pgn
import chess.polyglot
import pytest

from precomp_games.chess.data.book import Book, BookExit, BookMove, BookPosition, write_pgn, write_polyglot
from tests.oracles.chess_books import ITALIAN, RANDOM_BOOKS, entry, random_book, small_book, uci
from tests.oracles.pgn import nodes_of, read_back, read_moves


def board_after(book: Book, history: Sequence[chess.Move]) -> chess.Board:
    board = book.start.copy()
    for move in history:
        board.push(move)
    return board


# -- the book itself ---------------------------------------------------------------------------------------


def test_lines_by_falling_worth() -> None:
    book = small_book()
    text = "     30%  1. e4 e5 2. Nf3 Nc6 3. Bb5\n     25%  1. e4 c5 2. Nf3"
    assert [book.first_lines(n) for n in (5, 1, 0)] == [text, text.splitlines()[0], ""]


@pytest.mark.parametrize("drawn", RANDOM_BOOKS)
def test_every_position_is_on_a_line(drawn: Any) -> None:
    book = random_book(*drawn)
    passed = set()
    for line in book.first_lines(len(book)).splitlines():
        board = book.start.copy()
        for word in line[10:].split():
            san = word.rpartition(".")[2]
            if san:
                passed.add(tuple(board.move_stack))
                board.push_san(san)
    assert {position.history for position in book.positions} <= passed
    assert [board.fen() for board in book.boards] == [
        board_after(book, position.history).fen() for position in book.positions
    ]
    assert not any(board.move_stack for board in book.boards)


def test_the_lines_that_carry_most_come_first() -> None:
    """The position that most of the worth hangs on is on the first line, though others come up more often."""
    often = ("c7c5", "c7c6", "e7e6", "d7d5", "g8f6", "b8c6")
    book = Book(
        chess.Board(),
        chess.WHITE,
        [
            entry("", {"e2e4": 1.0}, 1.0, 0.2),
            *(entry(f"e2e4 {reply}", {"b1c3": 1.0}, 0.12, 0.01) for reply in often),
            entry("e2e4 e7e5", {"g1f3": 1.0}, 0.2, 0.13),
            entry("e2e4 e7e5 g1f3 b8c6", {"f1b5": 1.0}, 0.02, 0.06),
            entry("e2e4 e7e5 g1f3 g8f6", {"f3e5": 1.0}, 0.03, 0.08),  # its own worth is behind it
            entry("e2e4 e7e5 g1f3 g8f6 f3e5 d7d6", {"e5f3": 1.0}, 0.01, 0.09),
        ],
    )
    lines = book.first_lines(3).splitlines()
    assert lines[0] == "      1%  1. e4 e5 2. Nf3 Nf6 3. Nxe5 d6 4. Nf3"
    assert lines[1] == "      2%  1. e4 e5 2. Nf3 Nc6 3. Bb5" and lines[2].startswith("     12%  1. e4 ")
    shown = {line[10:] for line in book.first_lines(99).splitlines()}
    played = {(*each.history, each.moves[0].move) for each in book.positions}
    ends = {line for line in played if not any(other[: len(line)] == line != other for other in played)}
    assert shown == {chess.Board().variation_san(line) for line in ends}


def test_lines_of_black_from_another_start() -> None:
    start = chess.Board(ITALIAN)
    book = Book(start, chess.BLACK, [entry("e1g1", {"g8f6": 1.0}, 0.4567)])
    start.push_san("O-O")  # the book keeps its own
    assert book.start == chess.Board(ITALIAN) and book.first_lines(3) == "   45.7%  4. O-O Nf6"
    book = Book(start, chess.BLACK, [entry("", {"g8f6": 1.0}), entry("g8f6 d2d3", {"d7d6": 1.0})])
    assert book.first_lines(3) == "    100%  4...Nf6 5. d3 d6"


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([entry("e2e4 e7e5 e4e5", {"g1f3": 1.0})], "legal moves, got e4e5 as move 3"),
        ([entry("e2e4 0000", {"g1f3": 1.0})], "legal moves, got 0000 as move 2"),
        ([entry("e2e4", {"e7e5": 1.0})], "white to move after each history, got e2e4"),
        ([entry("", {"e2e4": 1.0}), entry("", {"d2d4": 1.0})], r"each history once, got \(start\) twice"),
        ([entry("", {"e2e5": 1.0})], "different legal moves to play, got e2e5"),
        ([BookPosition((), (BookMove(*uci("e2e4"), 0.5),) * 2, 1.0, 0.0)], "different legal moves .* e2e4"),
    ],
)
def test_bad_positions(positions: list[BookPosition], message: str) -> None:
    with pytest.raises(ValueError, match=rf"Book\(\): expected {message}"):
        Book(chess.Board(), chess.WHITE, positions)


def test_castling_as_king_takes_rook_is_refused() -> None:
    start = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")
    for position in (entry("e1h1 e8d8", {"a1a2": 1.0}), entry("", {"e1g1": 0.5, "e1h1": 0.5})):
        with pytest.raises(ValueError, match=r"legal moves.*, got e1h1"):
            Book(start, chess.WHITE, [position])
    with pytest.raises(ValueError, match=r"Book\(\): expected a valid start position"):
        Book(chess.Board.from_chess960_pos(0), chess.WHITE, [])


@pytest.mark.parametrize(
    ("moves", "message"),
    [
        ({"e2e4": 0.5}, r"that sum to 1, got \[0.5\]"),
        ({"e2e4": 0.7, "d2d4": 0.7}, r"that sum to 1, got \[0.7, 0.7\]"),
        ({"e2e4": 1.5, "d2d4": -0.5}, "probability .* from 0 to 1, got 1.5"),
    ],
)
def test_bad_probabilities(moves: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entry("", moves)


# -- Polyglot ----------------------------------------------------------------------------------------------


def raw_entries(path: Path) -> list[tuple[int, int, int, int]]:
    return list(struct.iter_unpack(">QHHI", path.read_bytes()))


def test_polyglot_bytes(tmp_path: Path) -> None:
    path = tmp_path / "book.bin"
    write_polyglot(Book(chess.Board(), chess.WHITE, [entry("", {"e2e4": 1.0})]), path)
    # The key of the start position and the layout of a move are in the format's description
    # (http://hgm.nubati.net/book_format.html): to file, to row, from file, from row, in octal.
    move = 4 | 3 << 3 | 4 << 6 | 1 << 9
    assert path.read_bytes() == struct.pack(">QHHI", 0x463B96181691FC9C, move, 32767, 0)


@pytest.mark.parametrize("drawn", RANDOM_BOOKS)
def test_polyglot_round_trip(tmp_path: Path, drawn: Any) -> None:
    book = random_book(*drawn)
    path = tmp_path / "book.bin"
    write_polyglot(book, path)
    expected: dict[int, dict[chess.Move, float]] = defaultdict(lambda: defaultdict(float))
    total: dict[int, float] = defaultdict(float)
    boards: dict[int, chess.Board] = {}
    for position in book.positions:
        board = board_after(book, position.history)
        key = chess.polyglot.zobrist_hash(board)
        boards[key] = board
        total[key] += position.reach
        for played in position.moves:
            expected[key][played.move] += position.reach * played.probability
    entries = raw_entries(path)
    assert {key for key, *_ in entries} == set(boards)
    assert entries == sorted(entries, key=lambda item: (item[0], -item[2], item[1]))
    assert all(weight >= 1 and learn == 0 for _, _, weight, learn in entries)
    for key, board in boards.items():
        found = read_moves(path, board)
        assert set(found) == set(expected[key]) and sum(found.values()) <= 32767
        for move, weight in found.items():
            assert weight == pytest.approx(32767 * expected[key][move] / total[key], abs=2.0)


@pytest.mark.parametrize(
    ("fen", "moves", "bits"),
    [
        # Castling is king takes rook; a rook that goes from e1 to g1 does not castle.
        ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8g8 e8c8", ["e8h8", "e8a8"]),
        ("7k/8/8/8/8/8/8/2K1R3 w - - 0 1", "e1g1", ["e1g1"]),
        ("1r5k/P7/8/8/8/8/8/K7 w - - 0 1", "a7b8q a7b8n a7a8r a7a8b", ["a7b8", "a7b8", "a7a8", "a7a8"]),
    ],
)
def test_polyglot_castling_and_promotion(tmp_path: Path, fen: str, moves: str, bits: list[str]) -> None:
    path, board, played = tmp_path / "book.bin", chess.Board(fen), moves.split()
    chances = [(len(played) - k) / math.comb(len(played) + 1, 2) for k in range(len(played))]
    write_polyglot(Book(board, board.turn, [entry("", dict(zip(played, chances, strict=True)))]), path)
    squares = [chess.Move.from_uci(text) for text in bits]
    promotions = ["nbrq".index(move[4]) + 1 if move[4:] else 0 for move in played]
    assert [item[1] for item in raw_entries(path)] == [
        move.to_square | move.from_square << 6 | promotion << 12
        for move, promotion in zip(squares, promotions, strict=True)
    ]
    assert [move.uci() for move in read_moves(path, board)] == played


@pytest.mark.parametrize(
    ("reaches", "first"),
    [((0.3, 0.1), 0.8), ((0.0, 0.0), 0.6)],  # nothing to weigh by: each history counts the same
)
def test_polyglot_merges_transpositions_by_reach(
    tmp_path: Path, reaches: tuple[float, float], first: float
) -> None:
    positions = [
        entry("d2d4 g8f6 c2c4 e7e6", {"b1c3": 1.0}, reaches[0]),
        entry("d2d4 e7e6 c2c4 g8f6", {"b1c3": 0.2, "g1f3": 0.8}, reaches[1]),
    ]
    book = Book(chess.Board(), chess.WHITE, positions)
    assert (len(book), book.distinct_positions) == (2, 1)
    write_polyglot(book, tmp_path / "book.bin")
    knight, other = uci("b1c3 g1f3")
    assert read_moves(tmp_path / "book.bin", book.boards[0]) == {
        knight: int(32767 * first),
        other: int(32767 * (1.0 - first)),
    }


def test_polyglot_keeps_rare_moves_and_drops_moves_never_played(tmp_path: Path) -> None:
    legal = sorted(chess.Board().legal_moves, key=chess.Move.uci)
    rare = 1e-9
    moves = {move.uci(): rare for move in legal[2:]}
    moves |= {legal[0].uci(): 1.0 - rare * len(moves), legal[1].uci(): 0.0}
    write_polyglot(Book(chess.Board(), chess.WHITE, [entry("", moves)]), tmp_path / "book.bin")
    assert [item[2] for item in raw_entries(tmp_path / "book.bin")] == [32767 - 18] + [1] * 18


def test_polyglot_keys_differ_where_an_epd_does_not(tmp_path: Path) -> None:
    # The pawn on e4 is pinned by the queen: en passant is not legal, and the EPD leaves it out. For
    # Polyglot a pawn that stands beside is enough.
    with_square = chess.Board("8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1")
    start = chess.Board("8/8/8/8/k3p2Q/8/3P4/3K4 w - - 0 1")
    path = tmp_path / "book.bin"
    write_polyglot(Book(start, chess.BLACK, [entry("d2d4", {"a4b3": 1.0})]), path)
    assert [item[0] for item in raw_entries(path)] == [chess.polyglot.zobrist_hash(with_square)]


# -- PGN ---------------------------------------------------------------------------------------------------


def test_pgn_text(tmp_path: Path) -> None:
    path = tmp_path / "book.pgn"
    headers = {"Event": "Against an engine", "White": 'Joe "Hawk" \\ Müller', "Annotator": "me"}
    write_pgn(small_book(), path, headers)
    text = path.read_text(encoding="utf-8")
    told, moves = text.split("\n\n", 1)
    assert told.splitlines() == [
        '[Event "Against an engine"]',
        '[Site "?"]',
        '[Date "????.??.??"]',
        '[Round "?"]',
        '[White "Joe \\"Hawk\\" \\\\ Müller"]',
        '[Black "?"]',
        '[Result "*"]',
        '[Annotator "me"]',
    ]
    assert " ".join(moves.split()) == (
        "1. e4 { in 100% of games, forgetting it costs 5.0 points in 100 games, played 75% } "
        "( 1. d4 { in 100% of games, forgetting it costs 5.0 points in 100 games, played 25% } ) "
        "1... e5 ( 1... c5 2. Nf3 { in 25% of games, forgetting it costs 1.2 points in 100 games } ) "
        "2. Nf3 { in 50% of games, forgetting it costs 2.1 points in 100 games } 2... Nc6 "
        "3. Bb5 { in 30% of games, forgetting it costs 0.71 points in 100 games, played 60% } "
        "( 3. Bc4 { in 30% of games, forgetting it costs 0.71 points in 100 games, played 40% } ) *"
    )
    assert text.endswith("*\n\n") and max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("drawn", RANDOM_BOOKS)
def test_pgn_round_trip(tmp_path: Path, drawn: Any) -> None:
    book = random_book(*drawn)
    side = book.side
    write_pgn(book, tmp_path / "book.pgn")
    game = read_back(tmp_path / "book.pgn")
    assert game.board() == book.start and game.headers["Result"] == "*"
    standard = book.start.fen() == chess.STARTING_FEN
    assert game.headers.get("SetUp") == (None if standard else "1")
    assert game.headers.get("FEN") == (None if standard else book.start.fen())
    assert {
        moves: {child.move for child in node.variations}
        for moves, node in nodes_of(game).items()
        if node.turn() == side and node.variations
    } == {position.history: {played.move for played in position.moves} for position in book.positions}
    # The main line goes where most games go.
    reach = {position.history: position.reach for position in book.positions}
    history: tuple[chess.Move, ...] = ()
    for node in game.mainline():
        others = [(*history, child.move) for child in node.parent.variations]
        if node.parent.turn() != side:
            assert reach[(*history, node.move)] == max(reach[other] for other in others)
        history = (*history, node.move)


def test_files_do_not_depend_on_the_order_of_positions(tmp_path: Path) -> None:
    book = random_book(6, chess.WHITE, chess.Board(), 100)
    shuffled = random.Random(1).sample(book.positions, len(book))
    again = Book(book.start, book.side, shuffled)
    for write in (write_pgn, write_polyglot):
        for name, each in (("one", book), ("two", again)):
            write(each, tmp_path / name)
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert again.first_lines(99) == book.first_lines(99)


@pytest.mark.parametrize(
    ("position", "comments"),
    [
        # Positions on the way that are not in the book have no comment.
        (
            entry("e2e4 e7e5", {"g1f3": 1.0}, 0.5),
            ["", "", "in 50% of games, forgetting it costs less than 0.01 points in 100 games"],
        ),
        (
            entry("", {"e2e4": 1.0}, worth=-0.013),
            ["in 100% of games, forgetting it saves 1.3 points in 100 games"],
        ),
    ],
)
def test_comments_of_a_line(tmp_path: Path, position: BookPosition, comments: list[str]) -> None:
    write_pgn(Book(chess.Board(), chess.WHITE, [position]), tmp_path / "book.pgn")
    assert [node.comment for node in read_back(tmp_path / "book.pgn").mainline()] == comments


def test_a_long_line(tmp_path: Path) -> None:
    # Longer than Python's recursion limit would allow for.
    moves = ["g1f3", "g8f6", "f3g1", "f6g8"] * 300
    positions = [entry(" ".join(moves[:ply]), {moves[ply]: 1.0}) for ply in (1194, 1196, 1198)]
    book = Book(chess.Board(), chess.WHITE, positions)
    write_pgn(book, tmp_path / "book.pgn")
    assert len(list(read_back(tmp_path / "book.pgn").mainline())) == len(moves) - 1
    assert book.first_lines(1).endswith(" 599. Nf3 Nf6 600. Ng1")


@pytest.mark.parametrize("start", [chess.Board(), chess.Board(ITALIAN)])
def test_an_empty_book_gives_valid_empty_files(tmp_path: Path, start: chess.Board) -> None:
    book = Book(start, chess.WHITE, [])
    write_polyglot(book, tmp_path / "book.bin")
    write_pgn(book, tmp_path / "book.pgn")
    assert (tmp_path / "book.bin").read_bytes() == b"" and read_moves(tmp_path / "book.bin", start) == {}
    game = read_back(tmp_path / "book.pgn")
    assert game.board() == start and not game.variations
    assert (len(book), book.distinct_positions, book.first_lines(3)) == (0, 0, "")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="expected a file in a folder that exists"):
        write_pgn(small_book(), tmp_path / "nowhere" / "book.pgn")


def test_pgn_says_how_likely_replies_are_and_what_lines_end_in(tmp_path: Path) -> None:
    """Of `small_book`: 1. e4 in three games of four, of whose replies a sixth leave the book at once."""
    exits = [
        BookExit(uci("d2d4 d7d5"), False, 0.25, 0.5),
        BookExit(uci("e2e4 c7c5 g1f3 d7d6"), False, 0.1875, 0.625),
        BookExit(uci("e2e4 e7e6"), False, 0.125, None),
        BookExit(uci("e2e4 e7e5 g1f3 g8f6"), False, 0.1375, 0.75),
        BookExit(uci("e2e4 e7e5 g1f3 b8c6 f1b5 a7a6"), True, 0.3, 1.0),
    ]
    write_pgn(small_book(), tmp_path / "book.pgn", exits=exits)
    nodes = nodes_of(read_back(tmp_path / "book.pgn"))
    for moves, comment in (
        ("e2e4 e7e5", "58.3% of replies"),
        ("e2e4 c7c5", "25% of replies"),
        ("e2e4 e7e6", "16.7% of replies"),
        ("d2d4 d7d5", "100% of replies; the book ends, expected 50 points in 100 games"),
        (
            "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6",
            "100% of replies; the game is over, expected 100 points in 100 games",
        ),
    ):
        assert nodes[uci(moves)].comment == comment
    assert "expected" not in nodes[uci("e2e4")].comment
    write_pgn(small_book(), tmp_path / "plain.pgn")
    assert "replies" not in (tmp_path / "plain.pgn").read_text()  # exits are not kept in the book


def test_exits_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^write_pgn\(\): expected exits with legal moves, got e2e5"):
        write_pgn(small_book(), tmp_path / "book.pgn", exits=[BookExit(uci("e2e5"), False, 0.1, None)])
    assert not list(tmp_path.iterdir())
