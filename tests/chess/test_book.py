"""Books as chess programs read them: python-chess reads back what was written."""

import collections
import math
import random
import struct

import chess
import chess.polyglot
import pytest
from hypothesis import given

from precomp_games.chess.data.book import Book, BookExit, BookMove, BookPosition, write_pgn, write_polyglot
from tests.oracles.chess_books import ITALIAN, entry, random_books, small_book, uci
from tests.oracles.pgn import nodes_of, read_back, read_moves
from tests.properties import examples

BOARD = chess.Board()


def book_with(*positions, start=BOARD, side=chess.WHITE):
    return Book(start, side, positions)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("books") / "book"


# -- the book itself ---------------------------------------------------------------------------------------


def test_lines_by_falling_worth():
    text = "     30%  1. e4 e5 2. Nf3 Nc6 3. Bb5\n     25%  1. e4 c5 2. Nf3"
    assert [small_book().first_lines(n) for n in (5, 1, 0)] == [text, text.splitlines()[0], ""]
    start = chess.Board(ITALIAN)
    book = book_with(entry("e1g1", {"g8f6": 1.0}, 0.4567), start=start, side=chess.BLACK)
    start.push_san("O-O")  # the book keeps its own
    assert book.start == chess.Board(ITALIAN) and book.first_lines(3) == "   45.7%  4. O-O Nf6"
    positions = entry("", {"g8f6": 1.0}), entry("g8f6 d2d3", {"d7d6": 1.0})
    assert book_with(*positions, start=start, side=chess.BLACK).first_lines(3) == "    100%  4...Nf6 5. d3 d6"


def test_the_lines_that_carry_most_come_first():
    """The position that most of the worth hangs on is on the first line, though others come up more often."""
    book = book_with(
        entry("", {"e2e4": 1.0}, 1.0, 0.2),
        *(entry(f"e2e4 {reply}", {"b1c3": 1.0}, 0.12, 0.01) for reply in ("c7c5", "c7c6", "e7e6")),
        entry("e2e4 e7e5", {"g1f3": 1.0}, 0.2, 0.13),
        entry("e2e4 e7e5 g1f3 b8c6", {"f1b5": 1.0}, 0.02, 0.06),
        entry("e2e4 e7e5 g1f3 g8f6", {"f3e5": 1.0}, 0.03, 0.08),  # its own worth is behind it
        entry("e2e4 e7e5 g1f3 g8f6 f3e5 d7d6", {"e5f3": 1.0}, 0.01, 0.09),
    )
    assert book.first_lines(99).splitlines() == [
        "      1%  1. e4 e5 2. Nf3 Nf6 3. Nxe5 d6 4. Nf3",
        "      2%  1. e4 e5 2. Nf3 Nc6 3. Bb5",
        *(f"     12%  1. e4 {reply} 2. Nc3" for reply in ("c5", "c6", "e6")),
    ]


@examples(40)
@given(random_books())
def test_every_position_is_on_a_line(book):
    passed = {}
    for line in book.first_lines(len(book)).splitlines():
        board = book.start.copy()
        for word in line[10:].split():
            if san := word.rpartition(".")[2]:
                passed[tuple(board.move_stack)] = board.fen()
                board.push_san(san)
    for position, board in zip(book.positions, book.boards, strict=True):
        assert passed[position.history] == board.fen() and not board.move_stack


E4, HALF = entry("", {"e2e4": 1.0}), BookMove(*uci("e2e4"), 0.5)
ROOKS = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: book_with(entry("e2e4 e7e5 e4e5", {"g1f3": 1.0})), "legal moves, got e4e5 as move 3"),
        (lambda: book_with(entry("e2e4 0000", {"g1f3": 1.0})), "legal moves, got 0000 as move 2"),
        (lambda: book_with(entry("e2e4", {"e7e5": 1.0})), "white to move after each history, got e2e4"),
        (lambda: book_with(entry("", {"e2e5": 1.0})), "different legal moves to play, got e2e5"),
        (lambda: book_with(BookPosition((), (HALF, HALF), 1.0, 0.0)), "different legal moves .* e2e4"),
        (lambda: entry("", {"e2e4": 0.5}), r"that sum to 1, got \[0.5\]"),
        (lambda: entry("", {"e2e4": 0.7, "d2d4": 0.7}), r"that sum to 1, got \[0.7, 0.7\]"),
        (lambda: entry("", {"e2e4": 1.5, "d2d4": -0.5}), "probability .* from 0 to 1, got 1.5"),
        (lambda: book_with(E4, entry("", {"d2d4": 1.0})), r"each history once, got \(start\) twice"),
        # Castling is no move of the king onto its rook.
        (lambda: book_with(entry("e1h1 e8d8", {"a1a2": 1.0}), start=ROOKS), "legal moves, got e1h1"),
        (lambda: book_with(entry("", {"e1g1": 0.5, "e1h1": 0.5}), start=ROOKS), "legal moves .* e1h1"),
        (lambda: book_with(start=chess.Board.from_chess960_pos(0)), "a valid start position"),
    ],
)
def test_books_that_cannot_be(make, message):
    with pytest.raises(ValueError, match=rf"\(\): expected .*{message}"):
        make()


# -- Polyglot ----------------------------------------------------------------------------------------------


def polyglot(path, *positions, **how):
    """Return the entries of a Polyglot file: key, move, weight and learn."""
    write_polyglot(book_with(*positions, **how), path)
    return list(struct.iter_unpack(">QHHI", path.read_bytes()))


@examples(40)
@given(random_books())
def test_polyglot_round_trip(path, book):
    boards = {chess.polyglot.zobrist_hash(board): board for board in book.boards}
    expected = {key: collections.Counter() for key in boards}
    for position, board in zip(book.positions, book.boards, strict=True):
        weights = {play.move: position.reach * play.probability for play in position.moves}
        expected[chess.polyglot.zobrist_hash(board)].update(weights)
    entries = polyglot(path, *book.positions, start=book.start, side=book.side)
    assert {key for key, *_ in entries} == set(boards)
    assert entries == sorted(entries, key=lambda item: (item[0], -item[2], item[1]))
    assert all(weight >= 1 and learn == 0 for _, _, weight, learn in entries)
    for key, board in boards.items():
        found, total = read_moves(path, board), expected[key].total()
        assert sum(found.values()) <= 32767
        shares = {move: 32767 * weight / total for move, weight in expected[key].items()}
        assert found == pytest.approx(shares, abs=2.0)


@pytest.mark.parametrize(
    ("fen", "moves", "bits"),
    [
        (chess.STARTING_FEN, "e2e4", "e2e4"),
        # Castling is king takes rook; a rook that goes from e1 to g1 does not castle.
        ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8g8 e8c8", "e8h8 e8a8"),
        ("7k/8/8/8/8/8/8/2K1R3 w - - 0 1", "e1g1", "e1g1"),
        ("1r5k/P7/8/8/8/8/8/K7 w - - 0 1", "a7b8q a7b8n a7a8r a7a8b", "a7b8 a7b8 a7a8 a7a8"),
    ],
)
def test_a_move_is_to_from_and_promotion(path, fen, moves, bits):
    """In octal, to file, to row, from file, from row (http://hgm.nubati.net/book_format.html)."""
    board, played = chess.Board(fen), moves.split()
    chances = [(len(played) - k) / math.comb(len(played) + 1, 2) for k in range(len(played))]
    entries = polyglot(path, entry("", dict(zip(played, chances, strict=True))), start=board, side=board.turn)
    promotions = ["nbrq".index(move[4]) + 1 if move[4:] else 0 for move in played]
    assert [move for _, move, _, _ in entries] == [
        move.to_square | move.from_square << 6 | promotion << 12
        for move, promotion in zip(uci(bits), promotions, strict=True)
    ]
    assert [move.uci() for move in read_moves(path, board)] == played
    if fen == chess.STARTING_FEN:  # whose key is in the format's description
        assert entries == [(0x463B96181691FC9C, 4 | 3 << 3 | 4 << 6 | 1 << 9, 32767, 0)]


@pytest.mark.parametrize(
    ("reaches", "first"),
    [((0.3, 0.1), 0.8), ((0.0, 0.0), 0.6)],  # nothing to weigh by: each history counts the same
)
def test_polyglot_merges_transpositions_by_reach(path, reaches, first):
    book = book_with(
        entry("d2d4 g8f6 c2c4 e7e6", {"b1c3": 1.0}, reaches[0]),
        entry("d2d4 e7e6 c2c4 g8f6", {"b1c3": 0.2, "g1f3": 0.8}, reaches[1]),
    )
    assert (len(book), book.distinct_positions) == (2, 1)
    write_polyglot(book, path)
    weights = int(32767 * first), int(32767 * (1.0 - first))
    assert read_moves(path, book.boards[0]) == dict(zip(uci("b1c3 g1f3"), weights, strict=True))


def test_polyglot_keeps_rare_moves_and_drops_moves_never_played(path):
    first, never, *rare = sorted(move.uci() for move in BOARD.legal_moves)
    moves = dict.fromkeys(rare, 1e-9) | {first: 1.0 - 1e-9 * len(rare), never: 0.0}
    assert [weight for _, _, weight, _ in polyglot(path, entry("", moves))] == [32767 - 18] + [1] * 18


def test_polyglot_keys_differ_where_an_epd_does_not(path):
    # The pawn on e4 is pinned by the queen: en passant is not legal, and the EPD leaves it out. For
    # Polyglot a pawn that stands beside is enough.
    with_square = chess.Board("8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1")
    start = chess.Board("8/8/8/8/k3p2Q/8/3P4/3K4 w - - 0 1")
    ((key, *_),) = polyglot(path, entry("d2d4", {"a4b3": 1.0}), start=start, side=chess.BLACK)
    assert key == chess.polyglot.zobrist_hash(with_square)


# -- PGN ---------------------------------------------------------------------------------------------------


def comments(path, *positions):
    """Return the comments of a book's main line."""
    write_pgn(book_with(*positions), path)
    return [node.comment for node in read_back(path).mainline()]


def test_the_text_of_a_pgn_file(path):
    headers = {"Event": "Against an engine", "White": 'Joe "Hawk" \\ Müller', "Annotator": "me"}
    write_pgn(small_book(), path, headers)
    text = path.read_text(encoding="utf-8")
    tags, moves = text.split("\n\n", 1)
    assert tags == (
        '[Event "Against an engine"]\n[Site "?"]\n[Date "????.??.??"]\n[Round "?"]\n'
        '[White "Joe \\"Hawk\\" \\\\ Müller"]\n[Black "?"]\n[Result "*"]\n[Annotator "me"]'
    )
    assert " ".join(moves.split()) == (
        "1. e4 { in 100% of games, forgetting it costs 5.0 points in 100 games, played 75% } "
        "( 1. d4 { in 100% of games, forgetting it costs 5.0 points in 100 games, played 25% } ) "
        "1... e5 ( 1... c5 2. Nf3 { in 25% of games, forgetting it costs 1.2 points in 100 games } ) "
        "2. Nf3 { in 50% of games, forgetting it costs 2.1 points in 100 games } 2... Nc6 "
        "3. Bb5 { in 30% of games, forgetting it costs 0.71 points in 100 games, played 60% } "
        "( 3. Bc4 { in 30% of games, forgetting it costs 0.71 points in 100 games, played 40% } ) *"
    )
    assert text.endswith("*\n\n") and max(map(len, text.splitlines())) <= 80
    # Positions on the way that are not in the book have no comment.
    nothing = "in 50% of games, forgetting it costs less than 0.01 points in 100 games"
    assert comments(path, entry("e2e4 e7e5", {"g1f3": 1.0}, 0.5)) == ["", "", nothing]
    saves = "in 100% of games, forgetting it saves 1.3 points in 100 games"
    assert comments(path, entry("", {"e2e4": 1.0}, worth=-0.013)) == [saves]


@examples(40)
@given(random_books())
def test_pgn_round_trip(path, book):
    write_pgn(book, path)
    game, standard = read_back(path), book.start.fen() == chess.STARTING_FEN
    assert game.board() == book.start and game.headers["Result"] == "*"
    tags = (None, None) if standard else ("1", book.start.fen())
    assert (game.headers.get("SetUp"), game.headers.get("FEN")) == tags
    assert {
        moves: {child.move for child in node.variations}
        for moves, node in nodes_of(game).items()
        if node.turn() == book.side and node.variations
    } == {position.history: {played.move for played in position.moves} for position in book.positions}
    # The main line goes where most games go.
    reach = {position.history: position.reach for position in book.positions}
    history: tuple[chess.Move, ...] = ()
    for node in game.mainline():
        others = [(*history, child.move) for child in node.parent.variations]
        history = (*history, node.move)
        if node.parent.turn() != book.side:
            assert reach[history] == max(reach[other] for other in others)
    # The order of positions is none of the file's.
    again = Book(book.start, book.side, random.Random(1).sample(book.positions, len(book)))
    assert again.first_lines(99) == book.first_lines(99)
    for write in (write_pgn, write_polyglot):
        files = []
        for each in (book, again):
            write(each, path)
            files.append(path.read_bytes())
        assert files[0] == files[1]


def test_a_line_may_be_longer_than_pythons_recursion(path):
    moves = ["g1f3", "g8f6", "f3g1", "f6g8"] * 300
    positions = [entry(" ".join(moves[:ply]), {moves[ply]: 1.0}) for ply in (1194, 1196, 1198)]
    assert len(comments(path, *positions)) == len(moves) - 1
    assert book_with(*positions).first_lines(1).endswith(" 599. Nf3 Nf6 600. Ng1")


def test_pgn_says_how_likely_replies_are_and_what_lines_end_in(path):
    """Of `small_book`: 1. e4 in three games of four, of whose replies a sixth leave the book at once."""
    exits = [
        BookExit(uci("d2d4 d7d5"), False, 0.25, 0.5),
        BookExit(uci("e2e4 c7c5 g1f3 d7d6"), False, 0.1875, 0.625),
        BookExit(uci("e2e4 e7e6"), False, 0.125, None),
        BookExit(uci("e2e4 e7e5 g1f3 g8f6"), False, 0.1375, 0.75),
        BookExit(uci("e2e4 e7e5 g1f3 b8c6 f1b5 a7a6"), True, 0.3, 1.0),
    ]
    write_pgn(small_book(), path, exits=exits)
    nodes, all_of_them = nodes_of(read_back(path)), "100% of replies"
    for moves, comment in {
        "e2e4 e7e5": "58.3% of replies",
        "e2e4 c7c5": "25% of replies",
        "e2e4 e7e6": "16.7% of replies",
        "d2d4 d7d5": f"{all_of_them}; the book ends, expected 50 points in 100 games",
        "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6": f"{all_of_them}; the game is over, expected 100 points in 100 games",
    }.items():
        assert nodes[uci(moves)].comment == comment
    assert "expected" not in nodes[uci("e2e4")].comment
    write_pgn(small_book(), path)
    assert "replies" not in path.read_text()  # exits are not kept in the book


def test_what_cannot_be_written_leaves_no_file(tmp_path):
    path = tmp_path / "book"
    with pytest.raises(ValueError, match=r"^write_pgn\(\): expected exits with legal moves, got e2e5"):
        write_pgn(small_book(), path, exits=[BookExit(uci("e2e5"), False, 0.1, None)])
    assert not path.exists()
    with pytest.raises(FileNotFoundError, match="expected a file in a folder that exists"):
        write_pgn(small_book(), path / "book.pgn")
