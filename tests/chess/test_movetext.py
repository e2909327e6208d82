"""Moves as strangers write them: languages, figurines, results, files that were joined."""

import re

import chess
import pytest

from precomp_games.chess import GameReport, read_repertoire
from precomp_games.chess.data import pgn_files
from precomp_games.chess.data.movetext import LANGUAGES, languages_of, result_of, standard
from precomp_games.chess.model.played import pgn_results
from tests.oracles.pgn import game, moves_of, read

_GAME = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. Qe2 Kf8 9. Nxe5 Qd7"
_FIGURINES = dict(zip("KQRBN", "♚♛♜♝♞", strict=True))


def translated(moves, letters):
    return "".join(letters.get(letter, letter) for letter in moves)


def replaced(*pairs):
    """Return the game with other words."""
    moves = _GAME
    for old, new in pairs:
        moves = moves.replace(old, new)
    return moves


def played(moves):
    """Return the moves of SAN in UCI notation."""
    board = chess.Board()
    return [board.push_san(san).uci() for san in moves.split() if not san[0].isdigit()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_languages_pieces(language, tmp_path):
    """A game of its own, and the same as one of a file whose other games show the language."""
    letters = {english: letter for letter, english in LANGUAGES[language].items() if english}
    (record,), report = read(tmp_path, game(translated(_GAME, letters)))
    assert moves_of(record) == played(_GAME) and not report.cut
    assert report.pieces == ({} if language == "English" else {language: 1})
    # A king's move alone is a rook's in English, and a knight's in Finnish.
    others = [game(translated(_GAME, letters), f"P{k}") for k in "abc"]
    records, report = read(tmp_path, *others, game(translated("1. e4 e5 2. Ke2", letters)))
    assert moves_of(records[-1]) == ["e2e4", "e7e5", "e1e2"] and not report.cut


def test_pieces_of_a_code_page(tmp_path):
    (record,), report = read(tmp_path, game("1. e4 e5 2. Кf3 Кc6 3. Сb5", "Иванов, Иван"), encoding="cp1251")
    assert moves_of(record)[2:] == ["g1f3", "b8c6", "f1b5"] and report.pieces == {"Russian": 1}


@pytest.mark.parametrize(
    "moves",
    [
        translated(_GAME, _FIGURINES),
        translated(_GAME, dict(zip("KQRBN", "♔♕♖♗♘", strict=True))),
        translated(_GAME, {letter: sign + "\ufe0e" for letter, sign in _FIGURINES.items()}),
        translated(_GAME, {letter: letter.lower() for letter in "KQRBN"}),
        replaced(("e4 e5", "♙e4 ♟e5")),
        replaced(("Nf3", "Ng1-f3"), ("e4", "e2-e4"), ("Nxe5", "N:e5"), ("Bb5", "Bf1b5")),
        replaced(("O-O", "0–0"), ("1. ", "1."), ("2. ", "2 ")),
        replaced(("O-O", "О-О"), ("Re1", "Re1±"), ("Bb3", "Bb3 N"), ("d6", "d6 +/=")),
        replaced(("Nf3", "Nf3!?"), ("Nc6", "Nc6‼"), ("2.", "2. [%clk 0:01] <x>")),
    ],
)
def test_ways_to_write_the_same_game(moves, tmp_path):
    (record,), report = read(tmp_path, game(moves))
    assert moves_of(record) == played(_GAME) and not report.cut and not report.left_out


@pytest.mark.parametrize(
    ("moves", "plies"),
    [
        ("1. e4 e5 2. Sf3 Nc6 3. Bb5", 2),  # no language has both
        ("1. e4 e5 2. Xf3 Nc6", 2),
        ("1. e4 e5 2. Pf3 Pc6", 2),  # pawns in English, knights in Dutch, and nothing decides which
        ("1. e4 e5 2. Re2", 2),  # a king in French, a knight in Finnish
        ("1. e4 e5 2. Nf3 ee6 3. Bb5", 3),
        ("1. d4 d5 2. c4 e6 3. cd ed 4. Nc3", 4),
        ("1. e4 e5 2. the best is Nf3 Nc6", 2),
        ("1. e4 e5 2. Nf3x Nc6", 2),
        ("1. e4 e5 2. Nf3e4 Nc6", 2),
        ("1. nf3 nf6 2. b3 b6 3. bb2 bb7 4. bb5", 6),  # no piece can go there
        ("1. nf3 c5 2. b4 d6 3. d3 a6 4. be3 nc6 5. bxc5 d5", 8),  # a bishop can, and a pawn
    ],
)
def test_a_game_ends_before_what_is_no_move(moves, plies, tmp_path):
    (record,), report = read(tmp_path, game(moves))
    assert len(record.actions) == plies and report.cut == {"a move that cannot be read": 1}


def test_the_file_says_which_language_it_is(tmp_path):
    """The letter of Czech bishops is that of German knights."""
    czech = {english: letter for letter, english in LANGUAGES["Czech"].items()}
    german = {"N": "S", "B": "L", "R": "T", "Q": "D"}
    unsure = game("1. e4 e5 2. d3 d6 3. Sd2")  # either can go there
    (record,), report = read(tmp_path, unsure)
    assert len(record.actions) == 4 and report.cut.total() == 1 and report.pieces == {"unknown": 1}
    for letters, last in ((czech, "c1d2"), (german, "b1d2")):
        records, _ = read(tmp_path, game(translated(_GAME, letters)), unsure)
        assert moves_of(records[1])[-1] == last
    # Languages that a file mixes are read where letters leave no doubt.
    english = [game(_GAME, f"P{k}") for k in "abc"]
    records, report = read(tmp_path, *english, game("1. e4 e5 2. Sf3 Sc6 3. Lb5"))
    assert moves_of(records[-1]) == ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5"]
    assert report.pieces == {"German": 1} and "1 with German letters of pieces" in str(report)


@pytest.mark.parametrize(
    ("moves", "last"),
    [
        ("1. nf3 d5 2. b4 c5 3. bxc5", "b4c5"),  # no bishop can
        ("1. e4 d5 2. nf3 c6 3. bb5", "f1b5"),
        ("1. e4 d5 2. nc3 c6 3. bc4", "f1c4"),
    ],
)
def test_small_letters_of_bishops_are_no_pawns(moves, last, tmp_path):
    (record,), report = read(tmp_path, game(moves))
    assert moves_of(record)[-1] == last and not report.cut and report.pieces == {"small": 1}


_RESULTS = {
    "1/2-1/2": ("1/2-1/2", "1/2", "½-½", "½", "0.5-0.5", "0,5-0,5", ".5-.5", "1/2 - 1/2"),
    "1-0": ("1-0", "1:0", "1 - 0", "1–0", "1.0-0.0"),
    "0-1": ("0-1", "0:1", " 0-1 "),
    "*": ("*", "", "?", "0-0", "1-1", "1/2-0", "+/-", "1", "0"),
}
_SCORES = {"1-0": [1.0, 0.0], "0-1": [0.0, 1.0], "1/2-1/2": [0.5, 0.5]}


@pytest.mark.parametrize(
    ("result", "text"), [(each, text) for each, texts in _RESULTS.items() for text in texts]
)
def test_results(result, text, tmp_path):
    """In a tag, behind the moves, or behind them where the tag has none."""
    assert result_of(text) == (None if result == "*" else result)
    names = '[White "A"]\n[Black "B"]\n'
    ways = [f'{names}[Result "{text}"]\n\n1. e4 e5 2. Nf3\n\n']
    if result != "*":
        ways += [f"{names}{tag}\n1. e4 e5 2. Nf3 {text}\n\n" for tag in ("", '[Result "*"]\n')]
    for way in ways:
        (record,), report = read(tmp_path, way)
        assert record.result == result and moves_of(record) == ["e2e4", "e7e5", "g1f3"] and not report.cut
        report = GameReport()
        if result == "*":
            with pytest.raises(ValueError, match="finished games"):
                pgn_results(tmp_path / "games.pgn", report=report)
        else:
            found = pgn_results(tmp_path / "games.pgn", report=report)
            assert [score for _, score in found] == _SCORES[result]
        assert report.left_out["games without a result"] == (result == "*")


_THREE = ["1. e4 e5 2. Nf3 Nc6", "1. d4 d5 2. c4", "1. c4 c5"]
_BARE = [re.sub("[0-9][.] ", "", moves) for moves in _THREE]


@pytest.mark.parametrize(
    "joined",
    [
        "\n".join(f"{moves} *" for moves in _THREE),
        "\n".join(f"{moves} 1-0" for moves in _THREE),
        " ".join(f"{moves} ½-½" for moves in _THREE),
        "\n".join(_THREE),
        "\n\n".join(f"{moves} *" for moves in _BARE),
        "\n".join(f"{moves} *" for moves in _BARE),
        "\n \n".join(_BARE),
        "\n\n".join(_THREE),
        "\n\n".join(f"{{a comment}} {moves} {{another}} 1-0 ; and one\n" for moves in _THREE),
        "\n".join(moves.replace("1. ", "1.") + "*" for moves in _THREE),
        "\n".join(f"{moves} 0-1 Black wins" for moves in _THREE),
        "\n".join(f"{moves} 1-0 1-0 $1" for moves in _THREE),
    ],
)
def test_what_follows_a_result_is_another_game(joined, tmp_path):
    assert len(list(standard(joined, languages_of(joined)))) == 3
    (record,), report = read(tmp_path, '[White "A"]\n[Black "B"]\n\n' + joined)
    assert moves_of(record) == played(_THREE[0]) and report.left_out == {"no tags": 2}
    path = tmp_path / "mine.pgn"
    path.write_text(joined)
    book = read_repertoire(path, chess.WHITE)
    assert book.report.lines == book.report.games == 3 and not book.report.cut
    assert {move.uci() for move in book.positions[chess.Board().epd()].moves} == {"e2e4", "d2d4", "c2c4"}


@pytest.mark.parametrize("behind", ["2. d4 d5", "(2. f4 exf4)", "12... Nf6", "2. d4 1-0", "1... c5 2. Nf3"])
def test_moves_behind_a_result_belong_to_no_position(behind, tmp_path):
    path = tmp_path / "mine.pgn"
    path.write_text(f"1. e4 e5 2. Nf3 1-0\n{behind}\n")
    book = read_repertoire(path, chess.WHITE)
    assert len(book) == 2 and book.report.cut.total() + book.report.left_out.total() >= 1


@pytest.mark.parametrize(
    ("text", "plies"),
    [
        (game("1. e4 e5\n\n2. Nf3 Nc6\n\n\n3. Bb5") + game("1. d4"), [5, 1]),
        (game('1. e4 {see [Event "x"] there} e5 2. Nf3'), [3]),
    ],
)
def test_an_empty_line_amid_moves_and_a_tag_in_a_comment_begin_no_game(text, plies, tmp_path):
    records, report = read(tmp_path, text)
    assert [len(record.actions) for record in records] == plies and not report.left_out


_TAGS = '[Event "?"]\n[White "{}"]\n[Black "B"]\n[Result "*"]\n\n'


@pytest.mark.parametrize(
    ("before", "end", "old", "new"),
    [
        ("\ufeff", " *\n", "", ""),
        ("\ufeff", " *\n\n", "", ""),
        ("\ufeff", "", "", ""),
        ("\ufeff", " *\n", "[Event", "[Annotator"),
        ("", " *\n", "Nf3", "Nf\ufeff3"),
        ("", " *\n", "", ""),
        ("", " *", "", ""),  # no end of the last line
        ("", " *\n", '"?"', '"Theme d4 exd4?"'),
        ("", " *\n", "\n\n", "\n"),
        ("", " *\n\n", "]\n[", "] ["),
        ("", " *\n\n", "]\n", "]\n\n\n"),
        ("", " *\n\n", "]\n\n", "] "),
    ],
)
def test_files_that_were_joined(before, end, old, new, tmp_path):
    """With marks of byte order, without empty lines, with tags on one line: each has its own."""
    texts = [before + _TAGS.format(k) + moves + end for k, moves in enumerate(_THREE)]
    records, report = read(tmp_path, *(text.replace(old, new) if old else text for text in texts))
    assert [(record.white, moves_of(record)) for record in records] == [
        (str(k), played(moves)) for k, moves in enumerate(_THREE)
    ]
    assert not report.left_out and not report.cut
    book = read_repertoire(tmp_path / "games.pgn", chess.WHITE)
    assert book.report.lines == 3 and not book.report.mistakes and len(book) == 3


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n\r"])
def test_ends_of_lines(end, tmp_path, monkeypatch):
    """Also where a piece of a file that is read at once ends amid a word."""
    monkeypatch.setattr(pgn_files, "MAX_LINE", 1000)
    text = "".join(_TAGS.format(k) + f"{_GAME} *\n\n" for k in range(50)).replace("\n", end)
    records, report = read(tmp_path, text, copies=True)
    assert not report.cut and not report.left_out
    assert [(record.white, len(record.actions)) for record in records] == [(str(k), 18) for k in range(50)]
