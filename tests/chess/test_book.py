"""Books as chess programs read them: python-chess reads back what was written."""

import os
import random
import struct
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import chess
import chess.pgn
import chess.polyglot
import pytest

from precomp_games.chess.book import (
    Book,
    BookExit,
    BookLine,
    BookMove,
    BookPosition,
    write_polyglot,
)
from precomp_games.chess.book_pgn import write_pgn

ITALIAN = "r1bqk1nr/pppp1ppp/2n5/2b1p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4"


def uci(moves: str) -> tuple[chess.Move, ...]:
    return tuple(chess.Move.from_uci(move) for move in moves.split())


def entry(history: str, moves: dict[str, float], reach: float = 1.0, worth: float = 0.0) -> BookPosition:
    played = tuple(BookMove(chess.Move.from_uci(m), p) for m, p in moves.items())
    return BookPosition(uci(history), played, reach, worth)


def small_book() -> Book:
    """White's: two replies to 1. e4 are known, one of them deeper."""
    return Book(
        chess.Board(),
        chess.WHITE,
        [
            entry("", {"e2e4": 0.75, "d2d4": 0.25}, 1.0, 0.05),
            entry("e2e4 c7c5", {"g1f3": 1.0}, 0.25, 0.0123),
            entry("e2e4 e7e5", {"g1f3": 1.0}, 0.5, 0.021),
            entry("e2e4 e7e5 g1f3 b8c6", {"f1b5": 0.6, "f1c4": 0.4}, 0.3, 0.0071234),
        ],
    )


def random_book(seed: int, side: chess.Color, start: chess.Board, size: int) -> Book:
    """A book closed under predecessors: up to two moves of ours, up to three replies."""
    rng = random.Random(seed)
    board = start.copy()
    frontier: list[tuple[chess.Board, tuple[chess.Move, ...], float]] = [(board, (), 1.0)]
    positions: list[BookPosition] = []
    while frontier and len(positions) < size:
        board, history, reach = frontier.pop(0)
        legal = sorted(board.legal_moves, key=chess.Move.uci)
        if not legal:
            continue
        if board.turn == side:
            moves = rng.sample(legal, min(len(legal), rng.choice([1, 1, 2])))
            first = 1.0 if len(moves) == 1 else rng.uniform(0.5, 1.0)
            chances = [first, 1.0 - first][: len(moves)]
            played = tuple(BookMove(m, p) for m, p in zip(moves, chances, strict=True))
            positions.append(BookPosition(history, played, reach, rng.random() / 10))
        else:
            moves = rng.sample(legal, min(len(legal), 3))
            chances = [1.0 / len(moves)] * len(moves)
        for move, chance in zip(moves, chances, strict=True):
            child = board.copy()
            child.push(move)
            frontier.append((child, (*history, move), reach * chance))
    return Book(start, side, positions)


def board_after(book: Book, history: Sequence[chess.Move]) -> chess.Board:
    board = book.start.copy()
    for move in history:
        board.push(move)
    return board


RANDOM_BOOKS = [
    (1, chess.WHITE, chess.Board(), 150),
    (2, chess.BLACK, chess.Board(), 150),
    (3, chess.WHITE, chess.Board(ITALIAN), 80),
    (4, chess.BLACK, chess.Board("8/P5k1/8/8/3pP3/8/p5K1/8 b - e3 0 40"), 120),
    (5, chess.WHITE, chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"), 120),
]


# The book itself.


def test_counts() -> None:
    book = Book(
        chess.Board(),
        chess.WHITE,
        [
            entry("d2d4 g8f6 c2c4 e7e6", {"b1c3": 1.0}, 0.2),
            entry("d2d4 e7e6 c2c4 g8f6", {"b1c3": 1.0}, 0.1),
            entry("", {"d2d4": 1.0}),
        ],
    )
    assert (len(book), book.distinct_positions) == (3, 2)


def test_lines_by_falling_reach() -> None:
    book = small_book()
    assert book.lines() == [
        BookLine(("e4", "e5", "Nf3", "Nc6", "Bb5"), 0.3),
        BookLine(("e4", "c5", "Nf3"), 0.25),
    ]
    assert book.first_lines(5) == "     30%  1. e4 e5 2. Nf3 Nc6 3. Bb5\n     25%  1. e4 c5 2. Nf3"
    assert book.first_lines(1).count("\n") == 0
    assert book.first_lines(0) == ""
    for position, board in zip(book.positions, book.boards, strict=True):
        expected = book.start.copy()
        for move in position.history:
            expected.push(move)
        assert board.fen() == expected.fen() and not board.move_stack


def test_a_line_ends_where_the_best_move_leaves_the_book() -> None:
    book = Book(
        chess.Board(),
        chess.WHITE,
        [
            entry("", {"d2d4": 0.0, "e2e4": 0.6, "c2c4": 0.4}),
            entry("c2c4 e7e5", {"b1c3": 1.0}, 0.4),
        ],
    )
    assert book.lines() == [BookLine(("e4",), 1.0), BookLine(("c4", "e5", "Nc3"), 0.4)]


@pytest.mark.parametrize(("seed", "side", "start", "size"), RANDOM_BOOKS)
def test_every_position_is_on_a_line(seed: int, side: chess.Color, start: chess.Board, size: int) -> None:
    book = random_book(seed, side, start, size)
    passed = set()
    reaches = []
    for line in book.lines():
        board = book.start.copy()
        for san in line.moves:
            passed.add(tuple(board.move_stack))
            board.push_san(san)
        reaches.append(line.reach)
    assert {position.history for position in book.positions} <= passed
    assert reaches == sorted(reaches, reverse=True)


def test_lines_of_black_from_another_start() -> None:
    start = chess.Board(ITALIAN)
    book = Book(start, chess.BLACK, [entry("e1g1", {"g8f6": 1.0}, 0.4567)])
    assert book.first_lines(3) == "   45.7%  4. O-O Nf6"
    start.push_san("O-O")
    book = Book(start, chess.BLACK, [entry("", {"g8f6": 1.0}), entry("g8f6 d2d3", {"d7d6": 1.0})])
    assert book.first_lines(3) == "    100%  4...Nf6 5. d3 d6"


def test_the_book_keeps_its_own_start() -> None:
    start = chess.Board()
    book = Book(start, chess.WHITE, [entry("", {"e2e4": 1.0})])
    start.push_san("d4")
    assert book.start == chess.Board()
    assert book.lines() == [BookLine(("e4",), 1.0)]


# Polyglot.


def raw_entries(path: Path) -> list[tuple[int, int, int, int]]:
    return list(struct.iter_unpack(">QHHI", path.read_bytes()))


def test_polyglot_bytes(tmp_path: Path) -> None:
    path = tmp_path / "book.bin"
    write_polyglot(Book(chess.Board(), chess.WHITE, [entry("", {"e2e4": 1.0})]), path)
    # The key of the start position and the layout of a move are in the format's description
    # (http://hgm.nubati.net/book_format.html): to file, to row, from file, from row, in octal.
    move = 4 | 3 << 3 | 4 << 6 | 1 << 9
    assert path.read_bytes() == struct.pack(">QHHI", 0x463B96181691FC9C, move, 32767, 0)


@pytest.mark.parametrize(("seed", "side", "start", "size"), RANDOM_BOOKS)
def test_polyglot_round_trip(
    tmp_path: Path, seed: int, side: chess.Color, start: chess.Board, size: int
) -> None:
    book = random_book(seed, side, start, size)
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
    with chess.polyglot.open_reader(path) as reader:
        assert {item.key for item in reader} == set(boards)
        for key, board in boards.items():
            assert board.turn == side
            found = {item.move: item.weight for item in reader.find_all(board)}
            assert set(found) == set(expected[key])
            assert sum(found.values()) <= 32767
            for move, weight in found.items():
                share = expected[key][move] / total[key]
                assert weight == pytest.approx(32767 * share, abs=2.0)
    entries = raw_entries(path)
    assert entries == sorted(entries, key=lambda item: (item[0], -item[2], item[1]))
    assert all(weight >= 1 and learn == 0 for _, _, weight, learn in entries)


def test_polyglot_castling_and_promotion(tmp_path: Path) -> None:
    path = tmp_path / "book.bin"
    board = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1")
    write_polyglot(Book(board, chess.BLACK, [entry("", {"e8g8": 0.7, "e8c8": 0.3})]), path)
    e8, h8, a8 = chess.E8, chess.H8, chess.A8
    assert [item[1] for item in raw_entries(path)] == [h8 | e8 << 6, a8 | e8 << 6]
    with chess.polyglot.open_reader(path) as reader:
        assert [item.move for item in reader.find_all(board)] == list(uci("e8g8 e8c8"))

    board = chess.Board("1r5k/P7/8/8/8/8/8/K7 w - - 0 1")
    moves = {"a7b8q": 0.4, "a7b8n": 0.3, "a7a8r": 0.2, "a7a8b": 0.1}
    write_polyglot(Book(board, chess.WHITE, [entry("", moves)]), path)
    assert [item[1] >> 12 for item in raw_entries(path)] == [4, 1, 3, 2]
    with chess.polyglot.open_reader(path) as reader:
        assert [item.move.uci() for item in reader.find_all(board)] == list(moves)


def test_polyglot_castling_that_is_no_castling(tmp_path: Path) -> None:
    # A rook that goes from e1 to g1.
    path = tmp_path / "book.bin"
    board = chess.Board("7k/8/8/8/8/8/8/2K1R3 w - - 0 1")
    write_polyglot(Book(board, chess.WHITE, [entry("", {"e1g1": 1.0})]), path)
    assert raw_entries(path)[0][1] == chess.G1 | chess.E1 << 6
    with chess.polyglot.open_reader(path) as reader:
        assert next(reader.find_all(board)).move == chess.Move.from_uci("e1g1")


def test_polyglot_merges_transpositions_by_reach(tmp_path: Path) -> None:
    def merged(reach: tuple[float, float]) -> dict[str, int]:
        book = Book(
            chess.Board(),
            chess.WHITE,
            [
                entry("d2d4 g8f6 c2c4 e7e6", {"b1c3": 1.0}, reach[0]),
                entry("d2d4 e7e6 c2c4 g8f6", {"b1c3": 0.2, "g1f3": 0.8}, reach[1]),
            ],
        )
        write_polyglot(book, tmp_path / "book.bin")
        with chess.polyglot.open_reader(tmp_path / "book.bin") as reader:
            assert len(reader) == 2
            board = board_after(book, book.positions[0].history)
            return {item.move.uci(): item.weight for item in reader.find_all(board)}

    assert merged((0.3, 0.1)) == {"b1c3": int(32767 * 0.8), "g1f3": int(32767 * 0.2)}
    # Nothing to weigh by: each history counts the same.
    assert merged((0.0, 0.0)) == {"b1c3": int(32767 * 0.6), "g1f3": int(32767 * 0.4)}


def test_polyglot_keeps_rare_moves_and_drops_moves_never_played(tmp_path: Path) -> None:
    path = tmp_path / "book.bin"
    legal = sorted(chess.Board().legal_moves, key=chess.Move.uci)
    rare = 1e-9
    moves = {move.uci(): rare for move in legal[2:]}
    moves |= {legal[0].uci(): 1.0 - rare * len(moves), legal[1].uci(): 0.0}
    write_polyglot(Book(chess.Board(), chess.WHITE, [entry("", moves)]), path)
    weights = [item[2] for item in raw_entries(path)]
    assert weights == [32767 - 18] + [1] * 18


def test_polyglot_keys_differ_where_an_epd_does_not(tmp_path: Path) -> None:
    # The pawn on e4 is pinned by the queen: en passant is not legal, and the EPD leaves it out. For
    # Polyglot a pawn that stands beside is enough.
    with_square = chess.Board("8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1")
    without = chess.Board("8/8/8/8/k2Pp2Q/8/8/3K4 b - - 0 1")
    assert with_square.epd() == without.epd()
    assert chess.polyglot.zobrist_hash(with_square) != chess.polyglot.zobrist_hash(without)
    start = chess.Board("8/8/8/8/k3p2Q/8/3P4/3K4 w - - 0 1")
    path = tmp_path / "book.bin"
    write_polyglot(Book(start, chess.BLACK, [entry("d2d4", {"a4b3": 1.0})]), path)
    assert [item[0] for item in raw_entries(path)] == [chess.polyglot.zobrist_hash(with_square)]


def test_keys_do_not_depend_on_the_clocks() -> None:
    boards = [chess.Board(f"{ITALIAN[:-4]} {clocks}") for clocks in ("0 1", "4 4", "99 80")]
    assert len({chess.polyglot.zobrist_hash(board) for board in boards}) == 1


# PGN.


def read_back(path: Path) -> chess.pgn.Game:
    with path.open(encoding="utf-8") as file:
        game = chess.pgn.read_game(file)
        assert game is not None
        assert game.errors == []
        assert chess.pgn.read_game(file) is None
    return game


def histories(game: chess.pgn.Game, side: chess.Color) -> dict[tuple[chess.Move, ...], set[str]]:
    """What `side` plays after which moves, over all variations."""
    found: dict[tuple[chess.Move, ...], set[str]] = {}
    stack: list[tuple[chess.pgn.GameNode, tuple[chess.Move, ...]]] = [(game, ())]
    while stack:
        node, moves = stack.pop()
        if node.turn() == side and node.variations:
            found[moves] = {child.move.uci() for child in node.variations}
        stack.extend((child, (*moves, child.move)) for child in node.variations)
    return found


def test_pgn_text(tmp_path: Path) -> None:
    path = tmp_path / "book.pgn"
    write_pgn(small_book(), path, {"Event": "Against an engine", "White": "Us", "Annotator": "me"})
    headers, moves = path.read_text().split("\n\n", 1)
    assert headers.splitlines() == [
        '[Event "Against an engine"]',
        '[Site "?"]',
        '[Date "????.??.??"]',
        '[Round "?"]',
        '[White "Us"]',
        '[Black "?"]',
        '[Result "*"]',
        '[Annotator "me"]',
    ]
    assert " ".join(moves.split()) == (
        "1. e4 { in 100% of games, forgetting it costs 0.0500, played 75% } "
        "( 1. d4 { in 100% of games, forgetting it costs 0.0500, played 25% } ) "
        "1... e5 ( 1... c5 2. Nf3 { in 25% of games, forgetting it costs 0.0123 } ) "
        "2. Nf3 { in 50% of games, forgetting it costs 0.0210 } 2... Nc6 "
        "3. Bb5 { in 30% of games, forgetting it costs 0.0071, played 60% } "
        "( 3. Bc4 { in 30% of games, forgetting it costs 0.0071, played 40% } ) *"
    )
    assert path.read_text().endswith("*\n\n")
    assert max(map(len, path.read_text().splitlines())) <= 80


@pytest.mark.parametrize(("seed", "side", "start", "size"), RANDOM_BOOKS)
def test_pgn_round_trip(tmp_path: Path, seed: int, side: chess.Color, start: chess.Board, size: int) -> None:
    book = random_book(seed, side, start, size)
    path = tmp_path / "book.pgn"
    write_pgn(book, path)
    game = read_back(path)
    assert game.board() == book.start
    assert game.headers["Result"] == "*"
    standard = book.start.fen() == chess.STARTING_FEN
    assert game.headers.get("SetUp") == (None if standard else "1")
    assert game.headers.get("FEN") == (None if standard else book.start.fen())
    assert histories(game, side) == {
        position.history: {played.move.uci() for played in position.moves} for position in book.positions
    }
    # The main line goes where most games go.
    reach = {position.history: position.reach for position in book.positions}
    history: tuple[chess.Move, ...] = ()
    for node in game.mainline():
        others = [(*history, child.move) for child in node.parent.variations]
        if node.parent.turn() != side:
            assert reach[(*history, node.move)] == max(reach[other] for other in others)
        history = (*history, node.move)


def test_pgn_does_not_depend_on_the_order_of_positions(tmp_path: Path) -> None:
    book = random_book(6, chess.WHITE, chess.Board(), 100)
    write_pgn(book, tmp_path / "one.pgn")
    write_polyglot(book, tmp_path / "one.bin")
    shuffled = list(book.positions)
    random.Random(1).shuffle(shuffled)
    again = Book(book.start, book.side, shuffled)
    write_pgn(again, tmp_path / "two.pgn")
    write_polyglot(again, tmp_path / "two.bin")
    for suffix in ("pgn", "bin"):
        first, second = (tmp_path / f"{name}.{suffix}" for name in ("one", "two"))
        assert first.read_bytes() == second.read_bytes()
    assert again.lines() == book.lines()


def test_pgn_shows_the_way_through_positions_not_in_the_book(tmp_path: Path) -> None:
    book = Book(chess.Board(), chess.WHITE, [entry("e2e4 e7e5", {"g1f3": 1.0}, 0.5)])
    path = tmp_path / "book.pgn"
    write_pgn(book, path)
    game = read_back(path)
    assert [(node.san(), node.comment) for node in game.mainline()] == [
        ("e4", ""),
        ("e5", ""),
        ("Nf3", "in 50% of games, forgetting it costs less than 0.0001"),
    ]


def test_a_worth_below_nothing_is_told_as_such(tmp_path: Path) -> None:
    book = Book(chess.Board(), chess.WHITE, [entry("", {"e2e4": 1.0}, worth=-0.013)])
    write_pgn(book, tmp_path / "book.pgn")
    (move,) = read_back(tmp_path / "book.pgn").mainline()
    assert move.comment == "in 100% of games, forgetting it saves 0.0130"


def test_a_long_line(tmp_path: Path) -> None:
    # Longer than Python's recursion limit would allow for.
    start = chess.Board()
    moves = ["g1f3", "g8f6", "f3g1", "f6g8"] * 400
    positions = [entry(" ".join(moves[:ply]), {moves[ply]: 1.0}) for ply in range(0, len(moves), 2)]
    book = Book(start, chess.WHITE, positions[-3:])
    write_pgn(book, tmp_path / "book.pgn")
    assert len(list(read_back(tmp_path / "book.pgn").mainline())) == len(moves) - 1
    assert len(book.lines()[0].moves) == len(moves) - 1


def test_pgn_header_values_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "book.pgn"
    write_pgn(small_book(), path, {"White": 'Joe "Hawk" \\ Müller', "Date": "2024.02.29"})
    text = path.read_text(encoding="utf-8")
    assert '[White "Joe \\"Hawk\\" \\\\ Müller"]' in text
    assert '[Date "2024.02.29"]' in text
    assert len(histories(read_back(path), chess.WHITE)) == 4


# Empty books.


@pytest.mark.parametrize("start", [chess.Board(), chess.Board(ITALIAN)])
def test_an_empty_book_gives_valid_empty_files(tmp_path: Path, start: chess.Board) -> None:
    book = Book(start, chess.WHITE, [])
    write_polyglot(book, tmp_path / "book.bin")
    write_pgn(book, tmp_path / "book.pgn")
    assert (tmp_path / "book.bin").read_bytes() == b""
    with chess.polyglot.open_reader(tmp_path / "book.bin") as reader:
        assert reader.get(start) is None
    game = read_back(tmp_path / "book.pgn")
    assert game.board() == start
    assert list(game.mainline()) == []
    assert (len(book), book.distinct_positions, book.lines(), book.first_lines(3)) == (0, 0, [], "")


# Bad input.


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([entry("e2e5", {"g1f3": 1.0})], "expected legal moves, got e2e5 as move 1 of e2e5"),
        ([entry("e2e4 e7e5 e4e5", {"g1f3": 1.0})], "expected legal moves, got e4e5 as move 3"),
        ([entry("e2e4 0000", {"g1f3": 1.0})], "expected legal moves, got 0000 as move 2"),
        ([entry("e2e4", {"e7e5": 1.0})], "expected white to move after each history, got e2e4"),
        (
            [entry("", {"e2e4": 1.0}), entry("", {"d2d4": 1.0})],
            r"expected each history once, got \(start\) twice",
        ),
        ([entry("", {"e2e5": 1.0})], "expected different legal moves to play, got e2e5"),
        ([entry("", {"e1h1": 1.0})], "expected different legal moves to play, got e1h1"),
    ],
)
def test_bad_positions(positions: list[BookPosition], message: str) -> None:
    with pytest.raises(ValueError, match=r"Book\(\): .*" + message):
        Book(chess.Board(), chess.WHITE, positions)


@pytest.mark.parametrize(
    ("moves", "numbers", "message"),
    [
        ({}, {}, r"BookPosition\(\): .* that sum to 1, got \[\] after \(start\)"),
        ({"e2e4": 0.5}, {}, r"BookPosition\(\): .* that sum to 1, got \[0.5\]"),
        ({"e2e4": 0.7, "d2d4": 0.7}, {}, r"BookPosition\(\): .* that sum to 1, got \[0.7, 0.7\]"),
        ({"e2e4": 1.5, "d2d4": -0.5}, {}, r"BookMove\(\): expected probability .* from 0 to 1, got 1.5"),
        ({"e2e4": -0.5, "d2d4": 1.5}, {}, r"BookMove\(\): expected probability .* from 0 to 1, got -0.5"),
        ({"e2e4": float("nan")}, {}, r"BookMove\(\): expected probability .* from 0 to 1, got nan"),
        ({"e2e4": 1.0}, {"reach": 1.1}, r"BookPosition\(\): expected reach .* from 0 to 1, got 1.1"),
        ({"e2e4": 1.0}, {"reach": -0.1}, r"BookPosition\(\): expected reach .* from 0 to 1, got -0.1"),
        ({"e2e4": 1.0}, {"reach": float("nan")}, r"BookPosition\(\): expected reach .* from 0 to 1, got nan"),
        (
            {"e2e4": 1.0},
            {"worth": float("inf")},
            r"BookPosition\(\): expected worth .* finite number, got inf",
        ),
    ],
)
def test_bad_numbers(moves: dict[str, float], numbers: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entry("", moves, **numbers)


def test_a_move_given_twice() -> None:
    move = BookMove(chess.Move.from_uci("e2e4"), 0.5)
    with pytest.raises(ValueError, match="expected different legal moves to play, got e2e4"):
        Book(chess.Board(), chess.WHITE, [BookPosition((), (move, move), 1.0, 0.0)])


def test_castling_as_king_takes_rook_is_refused() -> None:
    start = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")
    with pytest.raises(ValueError, match="expected legal moves, got e1h1"):
        Book(start, chess.WHITE, [entry("e1h1 e8d8", {"a1a2": 1.0})])
    with pytest.raises(ValueError, match="expected different legal moves to play, got e1h1"):
        Book(start, chess.WHITE, [entry("", {"e1g1": 0.5, "e1h1": 0.5})])


@pytest.mark.parametrize("start", [chess.Board(None), chess.Board.from_chess960_pos(0)])
def test_bad_start(start: chess.Board) -> None:
    with pytest.raises(ValueError, match=r"Book\(\): expected a valid start position"):
        Book(start, chess.WHITE, [])


def test_bad_side() -> None:
    with pytest.raises(ValueError, match=r"Book\(\): expected side chess.WHITE or chess.BLACK"):
        Book(chess.Board(), 2, [])


def test_a_negative_number_of_lines() -> None:
    with pytest.raises(
        ValueError, match=r"first_lines\(\): expected n to be an integer of at least 0, got -1"
    ):
        small_book().first_lines(-1)


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"Result": "1-0"}, "other than FEN, SetUp, Result and Variant, got Result='1-0'"),
        ({"FEN": chess.STARTING_FEN}, "other than FEN, SetUp"),
        ({"White": "two\nlines"}, "expected headers of one line, got White="),
        ({"Source": "a\x00b"}, "expected headers of one line, got Source="),
        ({"no name": "x"}, "expected PGN tag names, got 'no name'"),
        ({"Round": 3}, "expected headers as text"),
    ],
)
def test_bad_headers(tmp_path: Path, headers: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=r"write_pgn\(\): .*" + message):
        write_pgn(small_book(), tmp_path / "book.pgn", headers)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    for write in (write_polyglot, write_pgn):
        with pytest.raises(FileNotFoundError, match="expected a file in a folder that exists"):
            write(small_book(), tmp_path / "nowhere" / "book")


# -- exits in PGN ----------------------------------------------------------------------------------------


def exits() -> list[BookExit]:
    """Of `small_book`: 1. e4 in three games of four, of whose replies a sixth leave the book at once."""
    return [
        BookExit(uci("d2d4 d7d5"), False, 0.25, 0.5),
        BookExit(uci("e2e4 c7c5 g1f3 d7d6"), False, 0.1875, 0.625),
        BookExit(uci("e2e4 e7e6"), False, 0.125, None),
        BookExit(uci("e2e4 e7e5 g1f3 g8f6"), False, 0.1375, 0.75),
        BookExit(uci("e2e4 e7e5 g1f3 b8c6 f1b5 a7a6"), True, 0.3, 1.0),
    ]


def test_pgn_says_how_likely_replies_are_and_what_lines_end_in(tmp_path: Path) -> None:
    write_pgn(small_book(), tmp_path / "book.pgn", exits=exits())
    game = read_back(tmp_path / "book.pgn")
    comments = {
        tuple(move.uci() for move in node.board().move_stack): node.comment
        for node in [game, *_descendants(game)]
    }
    assert comments["e2e4", "e7e5"] == "58.3% of replies"
    assert comments["e2e4", "c7c5"] == "25% of replies"
    assert comments["e2e4", "e7e6"] == "16.7% of replies"
    assert comments["d2d4", "d7d5"] == "100% of replies; the book ends, expected score 0.500"
    last = comments["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6"]
    assert last == "100% of replies; the game is over, expected score 1.000"
    assert "expected score" not in comments["e2e4",]
    plain = tmp_path / "plain.pgn"
    write_pgn(small_book(), plain)
    assert "replies" not in plain.read_text()  # exits are not kept in the book


def _descendants(node: chess.pgn.GameNode) -> list[chess.pgn.GameNode]:
    return [each for child in node.variations for each in [child, *_descendants(child)]]


@pytest.mark.parametrize("wrong", [3, [3], [BookExit(uci("e2e5"), False, 0.1, None)]])
def test_exits_that_are_none(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(ValueError, match=r"^write_pgn\(\): expected exits "):
        write_pgn(small_book(), tmp_path / "book.pgn", exits=wrong)
    assert not list(tmp_path.iterdir())
