"""Files of games: what is read, what is left out, and the report of it."""

import bz2
import gzip
import lzma
import random
from pathlib import Path

import chess
import pytest

from precomp_games.chess import GameReport, action_of, move_of, read_games, read_repertoire
from precomp_games.chess.data import pgn_files
from precomp_games.chess.data.game_records import position_hash
from precomp_games.chess.data.pgn_files import pgn_names
from precomp_games.chess.game import is_legal
from tests.oracles.pgn import LINE, game, mutated


def read(tmp_path: Path, *texts: str, encoding: str = "utf-8", player: str | None = None, **options):
    path = tmp_path / "games.pgn"
    path.write_bytes("".join(texts).encode(encoding))
    report = GameReport()
    return list(read_games(path, player, report=report, **options)), report


def uci(record) -> list[str]:
    board, moves = chess.Board(), []
    for key, action in zip(record.keys, record.actions, strict=True):
        assert key == position_hash(board)
        move = next(move for move in board.legal_moves if action_of(move) == action)
        moves.append(move.uci())
        board.push(move)
    return moves


def test_clocks_behind_what_is_read_are_no_ones(tmp_path):
    moves = " ".join(
        f"{san} {{[%clk 0:00:{59 - k}]}}" for k, san in enumerate(["Nf3", "Nf6", "Ng1", "Ng8"] * 12)
    )
    path = tmp_path / "long.pgn"
    path.write_text(game(moves, "A", "B"))
    (record,) = read_games(path, max_plies=40, clocks=True)
    assert record.clocks[-2:] == (21.0, 20.0)


def test_position_hash_is_the_epds(cases) -> None:
    """Equal where the EPD is, over games that transpose and where en passant and castling come and go."""
    rng, seen = random.Random(1), {}
    for _ in range(cases(60)):
        board = chess.Board()
        for _ in range(40):
            if board.is_game_over():
                break
            seen.setdefault(board.epd(), set()).add(position_hash(board))
            board.push(rng.choice(list(board.legal_moves)))
    assert all(len(keys) == 1 for keys in seen.values())
    assert len({key for keys in seen.values() for key in keys}) == len(seen)


def test_main_lines_alone(tmp_path: Path) -> None:
    records, report = read(
        tmp_path,
        game("1. e4 {best (by test)} e5 $1 (1... c5 2. Nf3 (2. c3 d5)) 2. Nf3! ; a comment\nNc6"),
        game("1. d4 d5", Date="1984.03.??", WhiteElo="2700", BlackElo="?", TimeControl="180+2"),
    )
    assert [uci(record) for record in records] == [["e2e4", "e7e5", "g1f3", "b8c6"], ["d2d4", "d7d5"]]
    assert report.games == 2 and report.plies == 6 and report.undated == 1 and not report.left_out
    assert records[1].year == pytest.approx(1984 + 2.5 / 12)
    assert records[1].ratings == (2700, None) and records[1].speed == "blitz"
    cut, _ = read(tmp_path, game("1. e4 e5 2. Nf3 Nc6"), max_plies=3)
    assert uci(cut[0]) == ["e2e4", "e7e5", "g1f3"]


@pytest.mark.parametrize(
    ("text", "plies", "reason"),
    [
        (game("1. e4 Ke4 2. Nf3"), 1, "a move that cannot be read"),
        (game("1. e4 -- 2. d4"), 1, "a null move"),
        (game("1. e4 e5", Variant="Atomic"), None, "other rules"),
        (game("1. e4 e5", Variant="Chess960"), None, "other rules"),
        (game("1. e4", FEN="8/8/8/4k3/8/8/4P3/4K3 w - - 0 1", SetUp="1"), None, "another start position"),
        (game("1. e4", FEN="nonsense"), None, "another start position"),
        (game("1. e4", FEN=chess.STARTING_FEN), 1, None),
        (game("1. e4", FEN=chess.STARTING_FEN, Variant="From Position", SetUp="1"), 1, None),
        *(
            (game("1. e4", FEN=f"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR {rest}"), 1, None)
            for rest in ("w KQkq -", "w KQkq", "w KQkq - 0", "w KQkq - 0 0", "w KQkq - 5 9")
        ),
        (
            game("1. e4", FEN="rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w Qkq -"),
            None,
            "another start position",
        ),
        (game(""), None, "no moves"),
        ("1. e4 e5 *\n\n", None, "no tags"),
        (game("1. e4 $" + "9" * 5000 + " e5"), 1, "a game that cannot be read"),
        (game("1. e4 {no end"), 1, None),
        (game("1. e4 " + "(" * 100_000 + " e5"), 1, None),
    ],
)
def test_odd_games(tmp_path: Path, text: str, plies: int | None, reason: str | None) -> None:
    """Each between two good games, which are read all the same; what is left of it counts as cut."""
    records, report = read(tmp_path, game("1. c4 c5"), text, game("1. d4 d5"))
    assert uci(records[0]) == ["c2c4", "c7c5"] and uci(records[-1]) == ["d2d4", "d7d5"]
    assert [len(record.actions) for record in records[1:-1]] == ([] if plies is None else [plies])
    told = {} if reason is None else {reason: 1}
    assert (dict(report.left_out), dict(report.cut)) == ((told, {}) if plies is None else ({}, told))
    assert reason is None or reason in str(report)


def test_a_game_that_stands_there_twice(tmp_path: Path) -> None:
    longer = (
        LINE + " 11. Nbd2 Bb7 12. Bc2 Re8 13. Nf1 Bf8 14. Ng3 g6 15. Bg5 h6 16. Bd2 Bg7 17. a4 c5 18. d5 c4"
    )
    ends = (" 19. b4 Nh7 20. Be3 h5 21. Qd2 Rf8", " 19. b4 Nh7 20. Be3 h5 21. Ra3 Rf8")
    records, report = read(
        tmp_path,
        game(LINE, Date="1990.??.??"),
        game(LINE.replace("Nbd7", "Nbd7!"), white="A, Other Spelling", Date="1991.??.??"),
        *(game(longer + end) for end in ends),
        game("1. e4"),
        game("1. e4"),
    )
    assert report.left_out == {"a game that stands there twice": 2} and report.dates_differ == 1
    assert [len(record.actions) for record in records] == [20, 42, 1, 1]
    assert records[0].year == 1990.5
    few, _ = read(tmp_path, *(game(longer + end) for end in ends), max_plies=4)
    assert len(few) == 1  # known by moves that are not read
    assert len(read(tmp_path, game(LINE), game(LINE + " 11. c4"))[0]) == 2


def test_names(tmp_path: Path) -> None:
    games = [
        game("1. e4", "Karpov, A.", "Other"),
        game("1. d4", "Other", "Karpov, Anatoly"),
        game("1. c4", "Karpova, Anna", "Polgar, Judit"),
        game("1. b3", "KARPOV,Anatoly", "Polgar, Sofia"),
    ]
    path = tmp_path / "games.pgn"
    assert len(read(tmp_path, *games, player="karpov anatoly")[0]) == 2
    assert pgn_names(path)["Other"] == 2
    records, report = read(tmp_path, *games, player="Karpov, A.")
    assert len(records) == 1 and report.names == ("Karpov, A.",) and str(report).startswith("1 game; ")
    assert report.alike == {"Karpov, Anatoly": 1, "KARPOV,Anatoly": 1} and "Karpov, Anatoly" in str(report)
    assert len(read(tmp_path, *games, player="Karpov, A.; Karpov, Anatoly")[0]) == 3
    assert len(read(tmp_path, *games, player="Karpova")[0]) == 1
    assert len(read(tmp_path, *games, without="Karpov")[0]) == 1
    assert len(read(tmp_path, *games, without="Karpov Anatoli")[0]) == 1  # spelled otherwise than in the file
    assert len(read(tmp_path, *games, without="Karpov, B.; Nobody")[0]) == 4
    with pytest.raises(ValueError, match=r"fits 2 names in .*: Polgar, Judit; Polgar, Sofia"):
        read_games(path, "Polgar")
    with pytest.raises(ValueError, match=r"expected moves of 'Karpof' .*games of 'Karpov, A\.'"):
        read_games(path, "Karpof")
    with pytest.raises(ValueError, match="games of"):
        read_games(path, " ; ")
    with pytest.raises(ValueError, match=r"fits 2 names in .*: A, B; A, C\[2J \("):  # no terminal is cleared
        read(tmp_path, game("1. e4", "A, B"), game("1. d4", "A, C\x1b[2J"), player="A")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    records, report = read(tmp_path, game("1. e4", "Müller, Jürgen"), encoding=encoding, player="müller")
    assert records[0].white == "Müller, Jürgen" and uci(records[0]) == ["e2e4"]
    assert (report.recoded > 0) == (encoding == "latin-1")


@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        ("cp1251", ["Карпов, Анатолий", "Каспаров, Гарри"]),
        ("cp1251", ["Ботвинник, Михаил", "Smith, J"]),
        ("koi8_r", ["Карпов, Анатолий", "Таль, Михаил"]),
        ("cp1250", ["Wojtaszek, Radosław", "Świercz, Dariusz"]),
        ("cp1250", ["Příbyl, Zbyněk", "Hráček, Zbyněk"]),
        ("cp1250", ["Đorđević, Željko", "Šarić, Ivan"]),
        ("cp1252", ["Muñoz, José", "Pérez, Íñigo"]),
        ("cp1252", ["Åkesson, Ralf", "Grönroos, Mika"]),
        ("cp1252", ["O’Kelly de Galway, Albéric", "Noël, F"]),
    ],
)
def test_code_pages(tmp_path: Path, encoding: str, names: list[str]) -> None:
    """Recognized by the lines that are not UTF-8, and reported."""
    records, report = read(tmp_path, *(game("1. e4", name) for name in names), encoding=encoding)
    assert [record.white for record in records] == names
    assert report.encoding == encoding and f"read as {encoding}" in str(report)
    assert pgn_names(tmp_path / "games.pgn").keys() == {*names, "B"}


def test_pieces_of_another_code_page(tmp_path: Path) -> None:
    records, report = read(tmp_path, game("1. e4 e5 2. Кf3 Кc6 3. Сb5", "Иванов, Иван"), encoding="cp1251")
    assert uci(records[0])[2:] == ["g1f3", "b8c6", "f1b5"] and report.pieces == {"Russian": 1}


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, lambda data: b"PK\3\4" + data])
def test_compressed_files_are_told(pack, tmp_path: Path) -> None:
    path = tmp_path / "games.pgn"
    path.write_bytes(pack(game("1. e4").encode()))
    for read_it in (pgn_names, lambda path: list(read_games(path)), lambda path: read_repertoire(path, True)):
        with pytest.raises(
            ValueError, match=r"expected a PGN file, got .* compressed by (gzip|bzip2|xz|zip): unpack it"
        ):
            read_it(path)


@pytest.mark.parametrize(
    ("tags", "year"),
    [
        *(
            ({"Date": text}, 2024 + (2 + 3.5 / 31) / 12)
            for text in ("2024.03.04", "2024-03-04", "2024/3/4", "20240304", "2024-03-04T9:40")
        ),
        *(({"Date": text}, 2024 + (2 + 3.5 / 31) / 12) for text in ("04.03.2024", "4.3.2024")),
        *(
            ({"Date": text}, 2024 + (2 + 24.5 / 31) / 12)
            for text in ("25/03/2024", "03/25/2024", "25-3-2024")
        ),
        *(
            ({"Date": text}, 2024.5)
            for text in ("2024", "2024.??.??", "2024.13.41", "04/03/2024", "??.??.2024", "March 2024")
        ),
        *(
            ({"Date": text}, 2024 + 2.5 / 12)
            for text in ("2024.03", "2024.03.??", "2024.03.32", "03.2024", "??.03.2024")
        ),
        *(({"Date": text}, None) for text in ("????.??.??", "", "?", "04.03.24", "today")),
        ({"Date": "????.??.??", "UTCDate": "2024.03.04"}, 2024 + (2 + 3.5 / 31) / 12),
        ({"UTCDate": "2024.03.04"}, 2024 + (2 + 3.5 / 31) / 12),
        ({"Date": "2024.??.??", "UTCDate": "2024.03.04"}, 2024 + (2 + 3.5 / 31) / 12),
        ({"Date": "2023.12.31", "UTCDate": "2024.01.01"}, 2023 + (11 + 30.5 / 31) / 12),
        ({"EventDate": "2024.03.04"}, 2024 + (2 + 3.5 / 31) / 12),
    ],
)
def test_dates(tags: dict[str, str], year: float | None, tmp_path: Path) -> None:
    records, report = read(tmp_path, game("1. e4", **tags))
    assert records[0].year == (None if year is None else pytest.approx(year))
    assert report.undated == (year is None)


def test_games_from_other_positions(tmp_path: Path) -> None:
    """As Lichess writes them: "From Position" is a variant of its, and the rules are the usual ones."""
    fen = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2"
    elsewhere = game("2. Nf3 Nc6", Variant="From Position", FEN=fen, SetUp="1")
    records, report = read(tmp_path, elsewhere, game("1. e4 e5 2. Nf3", Variant="From Position"), setups=True)
    assert [len(record.actions) for record in records] == [2, 3] and not report.left_out
    assert records[0].keys[0] == records[1].keys[2]
    records, report = read(tmp_path, elsewhere)
    assert not records and report.left_out == {"another start position": 1}


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgn_files, "MAX_TEXT", 2000)
    tags = "".join(f'[Tag{k} "{"x" * 50}"]\n' for k in range(2000))
    records, report = read(
        tmp_path,
        game("1. e4 {" + "y" * 10_000 + "} e5"),
        tags + game("1. c4"),
        "[" * 100_000 + "\n\n",
        game("1. d4 d5"),
    )
    assert [uci(record) for record in records] == [["e2e4"], ["d2d4", "d7d5"]]
    assert report.cut == {"too much text": 1} and report.left_out == {"no tags": 1}


def test_limits(tmp_path: Path) -> None:
    records, _ = read(tmp_path, game("1. e4") * 5, max_games=3)
    assert len(records) == 3


def test_a_report_of_several_files_limits_none_of_them(tmp_path: Path) -> None:
    path, report = tmp_path / "games.pgn", GameReport()
    path.write_text(game("1. e4") * 5)
    counts = [len(list(read_games(path, max_games=most, report=report))) for most in (1, 3, 1, 2)]
    assert counts == [1, 3, 1, 2] and report.games == 7


def test_a_thousand_damaged_files(tmp_path: Path, cases) -> None:
    """Whatever is left of a file, each game is legal moves, and everything else is counted."""
    text = game("1. e4 {x} e5 (1... c5 2. Nf3) 2. Nf3 $1 Nc6", Date="1990.01.02") + game("1. d4 d5 2. c4 e6")
    path, rng, games, counted = tmp_path / "games.pgn", random.Random(7), 0, 0
    for _ in range(cases(1000)):
        path.write_bytes(mutated(rng, text.encode()))
        report = GameReport()
        for record in read_games(path, report=report, setups=True, key=chess.Board.fen):
            assert len(record.actions) == len(record.keys) >= 1
            for fen, action in zip(record.keys, record.actions, strict=True):
                assert is_legal(chess.Board(fen), move_of(action))
        games += report.games
        counted += report.left_out.total() + report.cut.total()
    assert games and counted


def test_clocks_are_read_where_they_are_times(tmp_path: Path) -> None:
    """Only clocks of the main line count, and no comment ends the reading."""
    told = {
        "e4": "[%clk 0:02:59]",
        "e5": "[%eval 0.2] [%clk 1:00:00.5]",
        "Nf3": "no clock",
        "Nc6": "[%clk -0:01:00]",
        "Bb5": "[%clk 99999:00:00]",
        "a6": "[%clk 0:61:00]",
        "Ba4": "[%clk nan:00:00] [%clk",
        "Nf6": "[%clk ٠:٠٢:٥٩]",
        "O-O": "[%clk 0:00:00] book",
    }
    moves = " ".join(f"{move} {{{comment}}} ({move} {{[%clk 0:00:09]}})" for move, comment in told.items())
    (record,), _ = read(tmp_path, game(moves, TimeControl="180+2"), clocks=True)
    assert record.clocks == (179.0, 3600.5, *[None] * 6, 0.0)
    assert record.control == (180, 2) and record.speed == "blitz"
    (without,), _ = read(tmp_path, game(moves, TimeControl="-"))
    assert without.clocks == () and without.control is None and without.actions == record.actions
