"""Moves as strangers write them: languages, figurines, results, files that were joined."""

import contextlib
import re
from pathlib import Path

import chess
import pytest

from precomp_games.chess import GameReport, read_repertoire
from precomp_games.chess.data import pgn_files
from precomp_games.chess.data.movetext import LANGUAGES, languages_of, result_of, standard
from precomp_games.chess.model.played import pgn_results
from tests.chess.test_game_records import read, uci
from tests.oracles.pgn import game

_SPANISH = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. Qe2 Kf8 9. Nxe5 Qd7"
_FIGURINES = dict(zip("KQRBN", "♚♛♜♝♞", strict=True))


def translated(moves: str, letters: dict[str, str]) -> str:
    return "".join(letters.get(letter, letter) for letter in moves)


def played(moves: str) -> list[str]:
    """Return the moves of SAN in UCI notation."""
    board = chess.Board()
    return [board.push_san(san).uci() for san in moves.split() if not san[0].isdigit()]


def standard_moves(text: str) -> list[str]:
    """Return the standard text of each game, without tags."""
    return [each.text.strip() for each in standard(text, languages_of(text))]


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_languages_pieces(language: str, tmp_path: Path) -> None:
    """A game of its own, and the same as one of a file whose other games show the language."""
    letters = {english: letter for letter, english in LANGUAGES[language].items() if english}
    records, report = read(tmp_path, game(translated(_SPANISH, letters)))
    assert uci(records[0]) == played(_SPANISH) and not report.cut
    assert report.pieces == ({} if language == "English" else {language: 1})
    # A king's move alone is a rook's in English, and a knight's in Finnish.
    king = translated("1. e4 e5 2. Ke2", letters)
    records, report = read(
        tmp_path, *[game(translated(_SPANISH, letters), f"P{k}") for k in "abc"], game(king)
    )
    assert uci(records[-1]) == ["e2e4", "e7e5", "e1e2"] and not report.cut


@pytest.mark.parametrize(
    "moves",
    [
        translated(_SPANISH, _FIGURINES),
        translated(_SPANISH, {"N": "♘", "B": "♗", "Q": "♕", "K": "♔", "R": "♖"}),
        translated(_SPANISH, {letter: sign + "\ufe0e" for letter, sign in _FIGURINES.items()}),
        _SPANISH.replace("N", "n").replace("B", "b").replace("R", "r").replace("Q", "q").replace("K", "k"),
        _SPANISH.replace("e4 e5", "♙e4 ♟e5"),
        _SPANISH.replace("Nf3", "Ng1-f3")
        .replace("e4", "e2-e4")
        .replace("Nxe5", "N:e5")
        .replace("Bb5", "Bf1b5"),
        _SPANISH.replace("O-O", "0–0").replace("1. ", "1.").replace("2. ", "2 "),
        _SPANISH.replace("O-O", "О-О").replace("Re1", "Re1±").replace("Bb3", "Bb3 N").replace("d6", "d6 +/="),
        _SPANISH.replace("Nf3", "Nf3!?").replace("Nc6", "Nc6‼").replace("2.", "2. [%clk 0:01] <x>"),
    ],
)
def test_ways_to_write_the_same_game(moves: str, tmp_path: Path) -> None:
    records, report = read(tmp_path, game(moves))
    assert uci(records[0]) == played(_SPANISH) and not report.cut and not report.left_out


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
    ],
)
def test_a_game_ends_before_what_is_no_move(moves: str, plies: int, tmp_path: Path) -> None:
    records, report = read(tmp_path, game(moves))
    assert [len(record.actions) for record in records] == [plies]
    assert report.cut == {"a move that cannot be read": 1}


def test_the_file_says_which_language_it_is(tmp_path: Path) -> None:
    """The letter of Czech bishops is that of German knights."""
    czech = {english: letter for letter, english in LANGUAGES["Czech"].items()}
    unsure = game("1. e4 e5 2. d3 d6 3. Sd2")  # either can go there
    records, report = read(tmp_path, unsure)
    assert len(records[0].actions) == 4 and report.cut.total() == 1 and report.pieces == {"unknown": 1}
    records, _ = read(tmp_path, game(translated(_SPANISH, czech)), unsure)
    assert uci(records[1])[-1] == "c1d2"
    records, _ = read(tmp_path, game(translated(_SPANISH, {"N": "S", "B": "L", "R": "T", "Q": "D"})), unsure)
    assert uci(records[1])[-1] == "b1d2"
    # Languages that a file mixes are read where letters leave no doubt.
    records, report = read(
        tmp_path, *[game(_SPANISH, f"P{k}") for k in "abc"], game("1. e4 e5 2. Sf3 Sc6 3. Lb5")
    )
    assert uci(records[-1]) == ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5"] and report.pieces == {"German": 1}
    assert "1 with German letters of pieces" in str(report)


def test_small_letters_of_bishops_are_no_pawns(tmp_path: Path) -> None:
    for moves, expected in (
        ("1. nf3 d5 2. b4 c5 3. bxc5", "b4c5"),  # no bishop can
        ("1. e4 d5 2. nf3 c6 3. bb5", "f1b5"),
        ("1. e4 d5 2. nc3 c6 3. bc4", "f1c4"),
    ):
        records, report = read(tmp_path, game(moves))
        assert uci(records[0])[-1] == expected and not report.cut and report.pieces == {"small": 1}
    # Here both can, and nobody knows.
    records, report = read(tmp_path, game("1. nf3 c5 2. b4 d6 3. d3 a6 4. be3 nc6 5. bxc5 d5"))
    assert uci(records[0])[-2:] == ["c1e3", "b8c6"] and report.cut.total() == 1


@pytest.mark.parametrize(
    ("text", "result"),
    [
        *(
            (text, "1/2-1/2")
            for text in ("1/2-1/2", "1/2", "½-½", "½", "0.5-0.5", "0,5-0,5", ".5-.5", "1/2 - 1/2")
        ),
        *((text, "1-0") for text in ("1-0", "1:0", "1 - 0", "1–0", "1.0-0.0")),
        *((text, "0-1") for text in ("0-1", "0:1", " 0-1 ")),
        *((text, None) for text in ("*", "", "?", "0-0", "1-1", "1/2-0", "+/-", "1", "0")),
    ],
)
def test_results(text: str, result: str | None, tmp_path: Path) -> None:
    assert result_of(text) == result
    moves = "1. e4 e5 2. Nf3"
    tagged = f'[White "A"]\n[Black "B"]\n[Result "{text}"]\n\n{moves}\n\n'
    told = f'[White "A"]\n[Black "B"]\n\n{moves} {text}\n\n'
    unknown = f'[White "A"]\n[Black "B"]\n[Result "*"]\n\n{moves} {text}\n\n'
    for game_text in (tagged, told, unknown) if result else (tagged,):
        records, report = read(tmp_path, game_text)
        assert [record.result for record in records] == [result or "*"]
        scores = {"1-0": [1.0, 0.0], "0-1": [0.0, 1.0], "1/2-1/2": [0.5, 0.5]}.get(result)
        with contextlib.nullcontext() if scores else pytest.raises(ValueError, match="finished games"):
            report = GameReport()
            assert [score for _, score in pgn_results(tmp_path / "games.pgn", report=report)] == scores
        assert report.left_out["games without a result"] == (scores is None)
        assert uci(records[0]) == ["e2e4", "e7e5", "g1f3"] and not report.cut


_THREE = ["1. e4 e5 2. Nf3 Nc6", "1. d4 d5 2. c4", "1. c4 c5"]


@pytest.mark.parametrize(
    "joined",
    [
        "\n".join(f"{moves} *" for moves in _THREE),
        "\n".join(f"{moves} 1-0" for moves in _THREE),
        " ".join(f"{moves} ½-½" for moves in _THREE),
        "\n".join(_THREE),
        "\n\n".join(f"{re.sub('[0-9][.] ', '', moves)} *" for moves in _THREE),
        "\n".join(f"{re.sub('[0-9][.] ', '', moves)} *" for moves in _THREE),
        "\n \n".join(re.sub("[0-9][.] ", "", moves) for moves in _THREE),
        "\n\n".join(_THREE),
        "\n\n".join(f"{{a comment}} {moves} {{another}} 1-0 ; and one\n" for moves in _THREE),
        "\n".join(moves.replace("1. ", "1.") + "*" for moves in _THREE),
        "\n".join(f"{moves} 0-1 Black wins" for moves in _THREE),
        "\n".join(f"{moves} 1-0 1-0 $1" for moves in _THREE),
    ],
)
def test_what_follows_a_result_is_another_game(joined: str, tmp_path: Path) -> None:
    texts = standard_moves(joined)
    assert len(texts) == 3
    path = tmp_path / "mine.pgn"
    path.write_text(joined)
    book = read_repertoire(path, chess.WHITE)
    assert book.report.lines == book.report.games == 3 and not book.report.cut
    assert {move.uci() for move in book.positions[chess.Board().epd()].moves} == {"e2e4", "d2d4", "c2c4"}
    records, report = read(tmp_path, '[White "A"]\n[Black "B"]\n\n' + joined)
    assert [uci(record) for record in records] == [played(_THREE[0])] and report.left_out == {"no tags": 2}


@pytest.mark.parametrize("behind", ["2. d4 d5", "(2. f4 exf4)", "12... Nf6", "2. d4 1-0", "1... c5 2. Nf3"])
def test_moves_behind_a_result_belong_to_no_position(behind: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.pgn"
    path.write_text(f"1. e4 e5 2. Nf3 1-0\n{behind}\n")
    book = read_repertoire(path, chess.WHITE)
    assert len(book) == 2 and book.report.cut.total() + book.report.left_out.total() >= 1


def test_an_empty_line_amid_moves_ends_no_game(tmp_path: Path) -> None:
    records, report = read(tmp_path, game("1. e4 e5\n\n2. Nf3 Nc6\n\n\n3. Bb5"), game("1. d4"))
    assert [len(record.actions) for record in records] == [5, 1] and not report.left_out


_TAGS = '[Event "?"]\n[White "{}"]\n[Black "B"]\n[Result "*"]\n\n'


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"\ufeff{_TAGS.format(k)}{moves} *\n" for k, moves in enumerate(_THREE)),
        "".join(f"\ufeff{_TAGS.format(k)}{moves} *\n\n" for k, moves in enumerate(_THREE)),
        "".join(f"{_TAGS.format(k)}{moves} *\n" for k, moves in enumerate(_THREE)),
        "".join(f"{_TAGS.format(k)}{moves} *" for k, moves in enumerate(_THREE)),  # no end of the last line
        "".join(f"\ufeff{_TAGS.format(k)}{moves}" for k, moves in enumerate(_THREE)),
        "".join(
            f"{_TAGS.format(k)}{moves} *\n".replace('"?"', '"Theme d4 exd4?"')
            for k, moves in enumerate(_THREE)
        ),
        "".join(f"{_TAGS.format(k)}{moves} *\n".replace("\n\n", "\n") for k, moves in enumerate(_THREE)),
        "".join(f"{_TAGS.format(k)}{moves} *\n\n".replace("]\n[", "] [") for k, moves in enumerate(_THREE)),
        "".join(
            f"{_TAGS.format(k)}{moves} *\n\n".replace("]\n", "]\n\n\n") for k, moves in enumerate(_THREE)
        ),
        "".join(f"{_TAGS.format(k)}{moves} *\n\n".replace("]\n\n", "] ") for k, moves in enumerate(_THREE)),
    ],
)
def test_files_that_were_joined(text: str, tmp_path: Path) -> None:
    """With marks of byte order, without empty lines, with tags on one line: each has its own."""
    records, report = read(tmp_path, text)
    assert [(record.white, uci(record)) for record in records] == [
        (str(k), played(moves)) for k, moves in enumerate(_THREE)
    ]
    assert not report.left_out and not report.cut
    path = tmp_path / "games.pgn"
    book = read_repertoire(path, chess.WHITE)
    assert book.report.lines == 3 and not book.report.mistakes and len(book) == 3


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n\r"])
def test_ends_of_lines(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a piece of a file that is read at once ends amid a word."""
    monkeypatch.setattr(pgn_files, "MAX_LINE", 1000)
    text = "".join(_TAGS.format(k) + f"{_SPANISH} *\n\n" for k in range(50)).replace("\n", end)
    records, report = read(tmp_path, text, copies=True)
    assert not report.cut and not report.left_out
    assert [record.white for record in records] == [str(k) for k in range(50)]
    assert {len(record.actions) for record in records} == {18}


def test_a_tag_in_a_comment_begins_no_game_on_its_line(tmp_path: Path) -> None:
    records, _ = read(tmp_path, game('1. e4 {see [Event "x"] there} e5 2. Nf3'))
    assert len(records) == 1 and len(records[0].actions) == 3
