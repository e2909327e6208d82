"""A person's own book: the lines read from its files, and the report of the rest."""

import random
from pathlib import Path

import chess
import pytest

from precomp_games.chess import read_repertoire, write_pgn, write_polyglot
from precomp_games.chess.game import is_legal
from tests.oracles.chess_books import book_of
from tests.oracles.pgn import after, mutated
from tests.oracles.pgn import game as pgn
from tests.oracles.pgn import polyglot_entry as entry

_ELSEWHERE = "8/8/8/4k3/8/8/4P3/4K3 w - - 0 1"


def game(moves: str, fen: str = "") -> str:
    return pgn(moves, **({"FEN": fen, "SetUp": "1"} if fen else {}))


def read(tmp_path: Path, *texts: str, side: chess.Color = chess.WHITE, **options):
    path = tmp_path / "mine.pgn"
    path.write_text("".join(texts))
    return read_repertoire(path, side, **options)


def known(book) -> dict[str, list[str]]:
    """Return the moves of a book in UCI notation, by EPD; each is legal there."""
    for epd, position in book.positions.items():
        board = chess.Board(epd + " 0 1")
        assert board.turn == book.side and all(is_legal(board, move) for move in position.moves)
    return {epd: [move.uci() for move in position.moves] for epd, position in book.positions.items()}


def test_variations_marks_and_transpositions(tmp_path: Path) -> None:
    variations = "1. e4 {a} e5 $14 (1... c5! 2. Nf3 (2. c3 d5) 2... d6 3. d4) 2. Nf3 Nc6 3. Bb5 (3. Bc4? Nf6)"
    book = read(
        tmp_path,
        game(variations),
        game("1. Nf3 e5? 2. e4 Nc6 3. Bc4 ; the same position\n Bc5"),
        game("1. d4", fen=_ELSEWHERE),
        game("1. e4 e5 2. Nf3 (2. Nf3 Nc6) Nc6 (2... f5) 3. Bb5 a6"),  # the first two lines add nothing
    )
    open_game = after("e4 e5 Nf3 Nc6")
    assert known(book) == {
        after(""): ["e2e4", "g1f3"],
        after("e4 c5"): ["g1f3", "c2c3"],
        after("e4 c5 Nf3 d6"): ["d2d4"],
        after("e4 e5"): ["g1f3"],
        after("Nf3 e5"): ["e2e4"],
        open_game: ["f1b5", "f1c4"],
    }
    report = book.report
    assert (report.games, report.lines, report.mistakes, report.contradictions) == (3, 8, 1, 3)
    assert report.redundant == 2
    assert report.transpositions == 1 and report.left_out == {"another start position": 1} and not report.cut
    assert book.positions[open_game].source == "mine.pgn, game 1"
    assert book.playable == frozenset(known(book)) - {after("Nf3 e5")}  # 1. Nf3 is a second choice
    assert len(book) == 6 and book.longest == 5 and book.actions_at("nowhere") == ()


def test_black_and_several_files(tmp_path: Path) -> None:
    first, second = tmp_path / "one.pgn", tmp_path / "two.pgn"
    first.write_text(game("1. e4 e5 (1... c5) 2. Nf3 Nc6"))
    second.write_text(game("1. e4 c6") + game("1. d4 d5"))
    book = read_repertoire([first, second], chess.BLACK)
    assert known(book) == {
        after("e4"): ["e7e5", "c7c5", "c7c6"],
        after("e4 e5 Nf3"): ["b8c6"],
        after("d4"): ["d7d5"],
    }
    assert book.positions[after("d4")].source == "two.pgn, game 2" and book.player == 1


def test_another_start_position(tmp_path: Path) -> None:
    book = read(tmp_path, game("1. e4 e5 2. Nf3"), game("1. e4 Kd4", fen=_ELSEWHERE), fen=_ELSEWHERE)
    assert known(book) == {after("", _ELSEWHERE): ["e2e4"]} and book.start.fen() == _ELSEWHERE
    assert book.report.left_out == {"another start position": 1}
    begun = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq -"
    chapter = pgn("2. Nf3 Nc6 3. Bb5", Variant="From Position", FEN=f"{begun} 0 2", SetUp="1")
    usual = pgn("1. e4", Variant="From Position", FEN="rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -")
    for fen in (f"{begun} 0 2", begun, f"{begun} 7 30"):
        book = read(tmp_path, chapter, usual, fen=fen)
        assert known(book) == {after("e4 e5"): ["g1f3"], after("e4 e5 Nf3 Nc6"): ["f1b5"]}
    assert known(read(tmp_path, chapter, usual)) == {after(""): ["e2e4"]}
    with pytest.raises(ValueError, match=rf"got none .*; fen='{begun} 0 2' reads what begins there\)"):
        read(tmp_path, chapter)


@pytest.mark.parametrize(
    ("moves", "lines", "told"),
    [
        ("1. e4 e5 2. Ke4 Nc6", [""], "1 cut: a move that cannot be read"),
        ("1. e4 e5 (1... Ke4 2. d4 d5 3. c4) 2. Nf3", ["", "e4 e5"], "1 left out: a line without a move"),
        # What python-chess would read from the wrong position: after a variation that broke, and in one.
        ("1. e4 (1. d4 Ke4) 1... e5 2. Nf3", ["", "e4 e5"], "1 cut: a move that cannot be read"),
        ("1. e4 e5 2. Ke4 (2. Nf3 Nc6 3. Bb5) Nc6", ["", "e4 e5", "e4 e5 Nf3 Nc6"], "1 cut"),
        ("1. e4 e5 2. Ke4 Nc6 (2... d6 3. d4)", [""], "1 cut: a variation of what cannot be read"),
        ("1. e4 -- 2. d4 d5 3. c4", [""], "1 cut: a null move"),
        ("1. e4 e5 2. Nf3 (2. f4", ["", "e4 e5"], "4 lines"),
        ("(1. d4) 1. e4 ))) e5 2. Nf3", [""], "1 cut"),
        (f"1. e4 e5 2. Nf3 ${'9' * 5000} Nc6 3. Bb5", ["", "e4 e5"], "1 cut: a game that cannot be read"),
    ],
)
def test_broken_lines(tmp_path: Path, moves: str, lines: list[str], told: str) -> None:
    """Each between two good games, which are read all the same."""
    book = read(tmp_path, game("1. c4 c5 2. Nc3"), game(moves), game("1. d4 d5 2. c4"))
    assert set(known(book)) == {after("c4 c5"), after("d4 d5"), *map(after, lines)}
    assert told in str(book.report) and "\n" not in str(book.report)


def test_deep_and_long_ones_are_bounded(tmp_path: Path) -> None:
    book = read(tmp_path, game("1. e4 " + "(1. d4 " * 5000), game("Nf3 Nf6 Ng1 Ng8 " * 200))
    assert book.report.lines == 101 and book.report.cut["variations within too many others"] == 1
    assert book.report.cut["a line that is too long"] == 1 and len(book.positions) == 2
    few = read(tmp_path, game("1. e4 e5 2. Nf3"), game("1. d4"), max_games=1, max_plies=2)
    assert known(few) == {after(""): ["e2e4"]}
    assert few.report.left_out == {"games beyond the number that is read": 1}


def test_files_without_a_move(tmp_path: Path) -> None:
    for text in ("", "no game", game(""), game("1. Ke4"), "\x00" * 100, game("1. e4", fen="nonsense")):
        with pytest.raises(ValueError, match=r"^read_repertoire\(\): expected moves of white in .*got none"):
            read(tmp_path, text)
    with pytest.raises(OSError, match="none"):
        read_repertoire(tmp_path / "none.pgn", chess.WHITE)
    (tmp_path / "empty.bin").write_bytes(b"")
    with pytest.raises(ValueError, match="Polyglot"):
        read_repertoire(tmp_path / "empty.bin", chess.WHITE)


def test_prose_is_no_book(tmp_path: Path) -> None:
    """python-chess finds moves in it; moves without tags are a book all the same."""
    prose = "Of all moves e4 is best.\n\nThen e5 and Nf3, or e6 and d4 d5 e5, see [a page](docs/page.md).\n\n"
    for text in (prose, "# A book\n\n" + prose + "1. e4 e5 2. Nf3 Nc6\n\nThat is all - or not.\n"):
        with pytest.raises(ValueError, match=r"expected moves of white in .*got none: .* no PGN tags"):
            read(tmp_path, text)
    plain = "1. e4 e5 2. Nf3\n\n1. d4 d5 (1... Nf6 2. c4) 2. Ke4\n"
    assert set(known(read(tmp_path, plain))) == set(map(after, ("", "e4 e5", "d4 Nf6")))
    assert len(read(tmp_path, game(prose + "1. e4 e5 2. Nf3"))) > 0


@pytest.mark.parametrize(
    "moves, lines",
    [
        ("1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 *", ["", "e4 e5"]),
        ("1. e4 e5 2. Nf3 Nc6 3. Bb5 (3. Bc4 Bc5) (3. d4) a6 (3... Nf6) *", ["", "e4 e5"]),
        ("1. e4 -- 2. d4 d5", [""]),
        ("1. e4 " + "(1. d4 " * 101 + ")" * 101 + " *", [""]),
    ],
)
def test_lines_that_are_cut_short_are_no_prose(tmp_path: Path, moves: str, lines: list[str]) -> None:
    assert set(known(read(tmp_path, moves, max_plies=4))) == set(map(after, lines))


def test_what_the_library_writes_is_read_again(tmp_path: Path) -> None:
    lines = {"": "e2e4", "e4 e5": "g1f3", "e4 c5": "g1f3", "e4 e5 Nf3 Nc6": "f1b5"}
    written = book_of("| e2e4", "e2e4 e7e5 | g1f3", "e2e4 c7c5 | g1f3", "e2e4 e7e5 g1f3 b8c6 | f1b5")
    write_pgn(written, tmp_path / "book.pgn")
    write_polyglot(written, tmp_path / "book.bin")
    for name in ("book.pgn", "book.bin"):
        book = read_repertoire(tmp_path / name, chess.WHITE)
        assert known(book) == {after(line): [move] for line, move in lines.items()}
    assert book.report.entries == 4 and not book.report.left_out
    both = read_repertoire([tmp_path / "book.pgn", tmp_path / "book.bin"], chess.WHITE)
    assert known(both) == known(book) and both.report.contradictions == 0
    with pytest.raises(ValueError, match="4 left out: entries of the other side"):
        read_repertoire(tmp_path / "book.bin", chess.BLACK)


def test_what_is_wrong_with_a_polyglot_file_is_counted(tmp_path: Path) -> None:
    """Not sorted, with an entry twice, one of weight 0, one of the other side, and half of one."""
    path = tmp_path / "book.bin"
    write_polyglot(book_of("| e2e4", "e2e4 e7e5 | g1f3", "e2e4 c7c5 | b1c3"), path)
    data = path.read_bytes()
    entries = [data[place : place + 16] for place in range(0, len(data), 16)]
    board = chess.Board()
    unwanted = entry(board, "a2a3", 0)
    board.push_uci("e2e4")
    path.write_bytes(b"".join([*entries[::-1], entries[0], unwanted, entry(board, "g8f6", 3), b"half"]))
    book = read_repertoire(path, chess.WHITE)
    assert known(book) == {after(""): ["e2e4"], after("e4 e5"): ["g1f3"], after("e4 c5"): ["b1c3"]}
    assert book.report.entries == 3 and book.report.left_out == {
        "an entry that breaks off": 1,
        "entries of the other side, or that play does not reach": 1,
    }
    told = str(book.report)
    assert "entries not sorted" in told and "1 entries that repeat another" in told
    assert "1 moves of weight 0" in told and "\n" not in told
    path.write_bytes(unwanted)
    with pytest.raises(ValueError, match=r"expected moves of white .* got none .*1 moves of weight 0"):
        read_repertoire(path, chess.WHITE)


# -- a large book ------------------------------------------------------------------------------------------


class _Writer:
    """Writes a book of many lines at random, and notes what stands in it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.moves: dict[str, list[str]] = {}
        self.lines = self.broken = self.within = self.cut = self.mistakes = 0

    def _own(self, board: chess.Board) -> chess.Move:
        """Return the book's move, the same wherever a position comes up, but for a contradiction at times."""
        legal = sorted(board.legal_moves, key=chess.Move.uci)
        if self.rng.random() < 0.03:
            return self.rng.choice(legal)
        return legal[sum(board.epd().encode()) % len(legal)]

    def text(self, board: chess.Board, plies: int) -> str:
        """Return the rest of a line from here, with the variations that leave it."""
        rng, words = self.rng, []
        board = board.copy(stack=False)
        while plies and not board.is_game_over():
            own = board.turn == chess.WHITE
            move = self._own(board) if own else rng.choice(list(board.legal_moves))
            words.append(self._move(board, move))
            if not own and rng.random() < 0.4:
                other = rng.choice(list(board.legal_moves))
                then = board.copy(stack=False)
                then.push(other)
                words.append(f"({self._move(board, other)} {self.text(then, plies - 1)})")
            if rng.random() < 0.03:
                words.append("(Ka5 Kb6 (d4) Kc7)" if own else "(Ka4)")
                self.broken += 1
                self.within += own
            if own and rng.random() < 0.02:
                bad = next(m for m in board.legal_moves if m != move)
                words.append(f"({board.san(bad)} ?)")
                self.mistakes += 1
                self.lines += 1
            board.push(move)
            plies -= 1
        self.lines += 1
        if not board.is_game_over() and rng.random() < 0.05:
            words.append("Ka5 e4 (e5) d4" if board.turn == chess.WHITE else "Ka4 d5")
            self.cut += 1
            self.within += board.turn == chess.WHITE
        return " ".join(words)

    def _move(self, board: chess.Board, move: chess.Move) -> str:
        if board.turn == chess.WHITE:
            known = self.moves.setdefault(board.epd(), [])
            if move.uci() not in known:
                known.append(move.uci())
        return board.san(move) + self.rng.choice(
            ["", "", "", "", " {a comment (with e4)}", " $14", "!", " !?"]
        )


def test_many_lines(tmp_path: Path, cases) -> None:
    """Every line is read or refused, and reported; positions are those that were written, in order."""
    writer, texts = _Writer(3), []
    while writer.lines < cases(2000):
        texts.append(game(writer.text(chess.Board(), 14)))
        if len(texts) % 20 == 1:
            texts.append(game("1. e4 Kd4", fen=_ELSEWHERE))
    book = read(tmp_path, *texts)
    assert known(book) == writer.moves
    report = book.report
    assert report.lines == writer.lines and report.mistakes == writer.mistakes > 0
    assert report.left_out["a line without a move that can be read"] == writer.broken + writer.within
    assert report.cut["a variation of what cannot be read"] == writer.within > cases(50)
    assert report.cut["a move that cannot be read"] == writer.cut + writer.broken and writer.cut > cases(50)
    assert report.left_out["another start position"] == sum(_ELSEWHERE in text for text in texts) > 0
    assert report.games + report.left_out["another start position"] == len(texts)
    assert report.contradictions == sum(len(moves) > 1 for moves in writer.moves.values()) > 0
    assert report.transpositions > 0


def test_mutated_files(tmp_path: Path, cases) -> None:
    """All moves read are legal, and one line reports what was read, or why nothing was."""
    writer = _Writer(5)
    data = "".join(game(writer.text(chess.Board(), 8)) for _ in range(3)).encode()
    write_polyglot(book_of("| e2e4", "e2e4 e7e5 | g1f3"), tmp_path / "whole.bin")
    rng, read_some = random.Random(11), 0
    for k in range(cases(300)):
        path = tmp_path / ("mine.bin" if k % 3 == 0 else "mine.pgn")
        path.write_bytes(mutated(rng, (tmp_path / "whole.bin").read_bytes() if k % 3 == 0 else data))
        try:
            book = read_repertoire(path, chess.WHITE)
        except ValueError as error:
            assert "read_repertoire()" in str(error) or "PolyglotCounts.read()" in str(error)
            assert "\n" not in str(error)
        else:
            assert known(book) and "\n" not in str(book.report)
            read_some += 1
    assert read_some > cases(150)
