"""Files of games: what is read, in which languages and spellings, what is left out, and the report of it."""

import contextlib
import dataclasses
import functools
import random
import re

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.chess import GameReport, move_of, read_games, read_repertoire
from precomp_games.chess.data import pgn_files
from precomp_games.chess.data.game_records import position_hash
from precomp_games.chess.data.movetext import LANGUAGES, languages_of, result_of, standard
from precomp_games.chess.data.pgn_files import pgn_names
from precomp_games.chess.data.replays import replay
from precomp_games.chess.game import action_of, is_legal
from precomp_games.chess.model.played import pgn_results
from tests.oracles.games import SEEDS
from tests.oracles.pgn import LINE, game, moves_of, mutated, read
from tests.properties import examples


def random_game(rng, plies):
    """Return a position, and the words, keys and actions that lead to it; rare moves are often drawn."""
    board, words, keys, actions = chess.Board(), [], [], []
    for _ in range(plies):
        legal = sorted(board.legal_moves, key=chess.Move.uci)
        if not legal:
            break
        rare = [move for move in legal if board.is_castling(move) or board.is_en_passant(move)]
        pawns = [move for move in legal if board.piece_type_at(move.from_square) == chess.PAWN]
        rare += [each for each in pawns if each.promotion or abs(each.from_square - each.to_square) == 16]
        move = rng.choice(rare if rare and rng.random() < 0.4 else legal)
        words.append(board.san(move).rstrip("+#"))
        keys.append(position_hash(board))
        actions.append(action_of(move))
        board.push(move)
    return board, words, keys, actions


_ODD = "O-O O-O-O e8=Q e8 e1=N exd6 dxe3 bxc3 Ke2 Rfe1 R1e1 Nbd2 e5 Zz9 0-0 e2e4"


@examples(100)
@given(SEEDS, st.sampled_from([0, 30, 80, 200]))
def test_keys_and_moves_are_those_of_python_chess_from_their_text(seed, plies):
    """But for long notation, which is left to it."""
    rng = random.Random(seed)
    board, words, keys, actions = random_game(rng, plies)
    assert replay(words) == (keys, actions)
    back, by_epd = board.copy(), {board.epd(): position_hash(board)}
    for key in reversed(keys):  # a function of the EPD, and another for each
        back.pop()
        assert by_epd.setdefault(back.epd(), key) == key == position_hash(chess.Board(f"{back.epd()} 0 1"))
    assert len(set(by_epd.values())) == len(by_epd)
    pieces = [f"{rng.choice('KQRBN')}{chess.square_name(rng.randrange(64))}" for _ in range(8)]
    for word in [*_ODD.split(), *pieces]:
        try:
            expected = None if word in ("0-0", "e2e4") else action_of(board.parse_san(word))
        except ValueError:
            expected = None
        found = replay([*words, word])
        assert (found and found[1][-1]) == expected, (board.fen(), word)


@pytest.mark.parametrize(
    ("moves", "illegal", "legal"), [("e4 e5 Qh5 Nc6 Qxe5", "d6", "Be7"), ("e4 f6 Qh5", "a6", "g6")]
)
def test_a_king_in_check_from_afar_is_not_left_there(moves, illegal, legal):
    assert replay([*moves.split(), illegal]) is None and replay([*moves.split(), legal]) is not None


@functools.cache
def _files():
    """Return a file of games of all kinds."""
    rng = random.Random(5)
    clocks = (
        "1. e4 {[%clk 0:05:00]} e5 {[%clk 0:04:59]} 2. Nf3 $1 Nc6! {book} 3. Bb5+ a6 4. O-O {a\nb} Nf6 1-0"
    )
    lines = [" ".join(random_game(rng, plies)[1]) for plies in (1, 25, 45, 70)]
    lines += [clocks, clocks.replace("book", ""), "1.e4 e5 (1... c5) 2.Ke3 Nf6", "1. d4 *\n\n1. c4"]
    return "".join(game(line, Date=f"{1980 + k}.01.02") for k, line in enumerate(lines)).encode()


@examples(600)
@given(
    st.one_of(st.none(), SEEDS),
    st.sampled_from([{}, {"setups": True, "copies": True}, {"max_plies": 30}, {"clocks": True}]),
)
def test_games_of_damaged_files_are_legal_moves_with_python_chess_and_without(tmp_path_factory, seed, how):
    """Only where keys are `position_hash` itself are games read without it."""
    path = tmp_path_factory.getbasetemp() / "damaged.pgn"
    path.write_bytes(_files() if seed is None else mutated(random.Random(seed), _files()))
    reports = GameReport(), GameReport()
    fast = list(read_games(path, report=reports[0], **how))
    both = lambda board: (position_hash(board), board.fen())  # noqa: E731
    slow = list(read_games(path, key=both, report=reports[1], **how))
    assert dataclasses.asdict(reports[0]) == dataclasses.asdict(reports[1])
    for one, other in zip(fast, slow, strict=True):
        assert one == dataclasses.replace(other, keys=tuple(key for key, _ in other.keys))
        assert len(one.actions) == len(one.keys) >= 1
        for (_, fen), action in zip(other.keys, other.actions, strict=True):
            assert is_legal(chess.Board(fen), move_of(action))
    assert seed is not None or len(fast) == 8


def test_main_lines_alone(tmp_path):
    records, report = read(
        tmp_path,
        game("1. e4 {best (by test)} e5 $1 (1... c5 2. Nf3 (2. c3 d5)) 2. Nf3! ; a comment\nNc6"),
        game("1. d4 d5", Date="1984.03.??", WhiteElo="2700", BlackElo="?", TimeControl="180+2"),
    )
    assert [moves_of(record) for record in records] == [["e2e4", "e7e5", "g1f3", "b8c6"], ["d2d4", "d7d5"]]
    assert report.games == 2 and report.plies == 6 and report.undated == 1 and not report.left_out
    assert records[1].year == pytest.approx(1984 + 2.5 / 12)
    assert records[1].ratings == (2700, None) and records[1].speed == "blitz"
    (cut,), _ = read(tmp_path, game("1. e4 e5 2. Nf3 Nc6"), max_plies=3)
    assert moves_of(cut) == ["e2e4", "e7e5", "g1f3"]


_START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR"
_NO_POSITIONS = [
    "nonsense",
    "8/8/8/8/8/8/8/8 w - - 0 1",
    "k7/8/8/8/8/8/8/9 b",
    "8/8/8/4k3/8/8/4P3/8 w - - 0 1",
]


@pytest.mark.parametrize(
    ("text", "plies", "reason"),
    [
        (game("1. e4 Ke4 2. Nf3"), 1, "a move that cannot be read"),
        (game("1. e4 -- 2. d4"), 1, "a null move"),
        *((game("1. e4 e5", Variant=name), None, "other rules") for name in ("Atomic", "Chess960")),
        *(
            (game("1. e4", FEN=fen, SetUp="1"), None, "another start position")
            for fen in (*_NO_POSITIONS, "8/8/8/4k3/8/8/4P3/4K3 w - - 0 1", f"{_START} w Qkq -")
        ),
        (game("1. e4", FEN=chess.STARTING_FEN, Variant="From Position", SetUp="1"), 1, None),
        *(
            (game("1. e4", FEN=f"{_START} {rest}"), 1, None)
            for rest in ("w KQkq - 0 1", "w KQkq -", "w KQkq", "w KQkq - 0", "w KQkq - 0 0", "w KQkq - 5 9")
        ),
        (game(""), None, "no moves"),
        ("1. e4 e5 *\n\n", None, "no tags"),
        (game("1. e4 $" + "9" * 5000 + " e5"), 1, "a game that cannot be read"),
        (game("1. e4 {no end"), 1, None),
        (game("1. e4 " + "(" * 100_000 + " e5"), 1, None),
    ],
)
def test_odd_games(tmp_path, text, plies, reason):
    """Each between two good games, which are read all the same; what is left of it counts as cut."""
    records, report = read(tmp_path, game("1. c4 c5"), text, game("1. d4 d5"))
    assert moves_of(records[0]) == ["c2c4", "c7c5"] and moves_of(records[-1]) == ["d2d4", "d7d5"]
    assert [len(record.actions) for record in records[1:-1]] == ([] if plies is None else [plies])
    message = {} if reason is None else {reason: 1}
    assert (dict(report.left_out), dict(report.cut)) == ((message, {}) if plies is None else ({}, message))
    assert reason is None or reason in str(report)


def test_a_game_that_stands_there_twice_is_read_once(tmp_path):
    longer = (
        f"{LINE} 11. Nbd2 Bb7 12. Bc2 Re8 13. Nf1 Bf8 14. Ng3 g6 15. Bg5 h6 16. Bd2 Bg7 17. a4 c5 18. d5 c4"
    )
    ends = [game(f"{longer} 19. b4 Nh7 20. Be3 h5 21. {end}") for end in ("Qd2 Rf8", "Ra3 Rf8")]
    again = game(LINE.replace("Nbd7", "Nbd7!"), white="A, Other Spelling", Date="1991.??.??")
    records, report = read(
        tmp_path, game(LINE, Date="1990.??.??"), again, *ends, game("1. e4"), game("1. e4")
    )
    assert report.left_out == {"a game that stands there twice": 2} and report.dates_differ == 1
    assert [len(record.actions) for record in records] == [20, 42, 1, 1]
    assert records[0].year == 1990.5
    assert len(read(tmp_path, *ends, max_plies=4)[0]) == 1  # known by moves that are not read
    assert len(read(tmp_path, game(LINE), game(LINE + " 11. c4"))[0]) == 2


@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        *((encoding, ["Müller, Jürgen", "Noël, F"]) for encoding in ("utf-8", "utf-8-sig", "utf-16")),
        ("cp1251", ["Ботвинник, Михаил", "Smith, J"]),
        ("koi8_r", ["Карпов, Анатолий", "Таль, Михаил"]),
        ("cp1250", ["Wojtaszek, Radosław", "Świercz, Dariusz"]),
        ("cp1250", ["Đorđević, Željko", "Šarić, Ivan"]),
        ("cp1252", ["Müller, Jürgen", "Grönroos, Mika"]),
        ("cp1252", ["O’Kelly de Galway, Albéric", "Noël, F"]),
    ],
)
def test_code_pages_are_recognized_by_lines_that_are_not_unicode(tmp_path, encoding, names):
    records, report = read(tmp_path, *(game("1. e4", name) for name in names), encoding=encoding)
    assert [record.white for record in records] == names and moves_of(records[0]) == ["e2e4"]
    assert pgn_names(tmp_path / "games.pgn").keys() == {*names, "B"}
    unicode = encoding.startswith("utf")
    assert report.encoding == ("" if unicode else encoding) and (report.recoded == 0) == unicode
    assert unicode or f"read as {encoding}" in str(report)


_MARCH, _THE_4TH, _THE_25TH = 2024 + 2.5 / 12, 2024 + (2 + 3.5 / 31) / 12, 2024 + (2 + 24.5 / 31) / 12
_DATES = {
    _THE_4TH: "2024.03.04 2024-03-04 2024/3/4 20240304 2024-03-04T9:40 04.03.2024 4.3.2024",
    _THE_25TH: "25/03/2024 03/25/2024 25-3-2024",
    2024.5: "2024 2024.??.?? 2024.13.41 04/03/2024 ??.??.2024 March_2024",
    _MARCH: "2024.03 2024.03.?? 2024.03.32 03.2024 ??.03.2024",
    None: "????.??.?? _ ? 04.03.24 today",
}
_OTHER_TAGS = [
    ({"Date": "????.??.??", "UTCDate": "2024.03.04"}, _THE_4TH),
    ({"UTCDate": "2024.03.04"}, _THE_4TH),
    ({"Date": "2024.??.??", "UTCDate": "2024.03.04"}, _THE_4TH),
    ({"Date": "2023.12.31", "UTCDate": "2024.01.01"}, 2023 + (11 + 30.5 / 31) / 12),
    ({"EventDate": "2024.03.04"}, _THE_4TH),
]


def test_dates(tmp_path):
    dates = [
        ({"Date": text.replace("_", " ")}, year) for year, all_of in _DATES.items() for text in all_of.split()
    ]
    for tags, year in dates + _OTHER_TAGS:
        (record,), report = read(tmp_path, game("1. e4", **tags))
        assert record.year == (None if year is None else pytest.approx(year)), tags
        assert report.undated == (year is None)


def test_games_from_other_positions_as_lichess_writes_them(tmp_path):
    """ "From Position" is a variant of its, and the rules are the usual ones."""
    fen = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2"
    elsewhere = game("2. Nf3 Nc6", Variant="From Position", FEN=fen, SetUp="1")
    records, report = read(tmp_path, elsewhere, game("1. e4 e5 2. Nf3", Variant="From Position"), setups=True)
    assert [len(record.actions) for record in records] == [2, 3] and not report.left_out
    assert records[0].keys[0] == records[1].keys[2]
    nowhere = [game("1. e4", FEN=fen, SetUp="1") for fen in _NO_POSITIONS]
    records, report = read(tmp_path, *nowhere, setups=True)
    assert not records and report.left_out == {"another start position": 4}


def test_memory_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(pgn_files, "MAX_TEXT", 2000)
    tags = "".join(f'[Tag{k} "{"x" * 50}"]\n' for k in range(2000))
    long = game("1. e4 {" + "y" * 10_000 + "} e5")
    records, report = read(tmp_path, long, tags + game("1. c4"), "[" * 100_000 + "\n\n", game("1. d4 d5"))
    assert [moves_of(record) for record in records] == [["e2e4"], ["d2d4", "d7d5"]]
    assert report.cut == {"too much text": 1} and report.left_out == {"no tags": 1}


def test_a_report_of_several_files_limits_none_of_them(tmp_path):
    path, report = tmp_path / "games.pgn", GameReport()
    path.write_text(game("1. e4") * 5)
    counts = [len(list(read_games(path, max_games=most, report=report))) for most in (1, 3, 1, 2)]
    assert counts == [1, 3, 1, 2] and report.games == 7


def test_clocks_are_read_where_they_are_times(tmp_path):
    """Only clocks of the main line count, and no comment ends the reading."""
    message = {
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
    moves = " ".join(f"{move} {{{comment}}} ({move} {{[%clk 0:00:09]}})" for move, comment in message.items())
    (record,), _ = read(tmp_path, game(moves, TimeControl="180+2"), clocks=True)
    assert record.clocks == (179.0, 3600.5, *[None] * 6, 0.0)
    assert record.control == (180, 2) and record.speed == "blitz"
    (without,), _ = read(tmp_path, game(moves, TimeControl="-"))
    assert without.clocks == () and without.control is None and without.actions == record.actions
    # Those behind what is read are no one's.
    shuffle = ["Nf3", "Nf6", "Ng1", "Ng8"] * 12
    moves = " ".join(f"{san} {{[%clk 0:00:{59 - k}]}}" for k, san in enumerate(shuffle))
    (record,), _ = read(tmp_path, game(moves), max_plies=40, clocks=True)
    assert record.clocks[-2:] == (21.0, 20.0)


# -- moves as strangers write them -------------------------------------------------------------------------

_GAME = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. Qe2 Kf8 9. Nxe5 Qd7"


def translated(moves, letters):
    """Return moves with other letters of pieces, by those in English."""
    return moves.translate(str.maketrans(letters))


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
        translated(_GAME, dict(zip("KQRBN", "♚♛♜♝♞", strict=True))),
        translated(_GAME, dict(zip("KQRBN", ["♔\ufe0e", *"♕♖♗♘"], strict=True))),
        _GAME.replace("O-O", "0-0").lower(),
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


def test_small_letters_of_bishops_are_no_pawns(tmp_path):
    no_bishop_can = {"1. nf3 d5 2. b4 c5 3. bxc5": "b4c5"}
    bishops = {"1. e4 d5 2. nf3 c6 3. bb5": "f1b5", "1. e4 d5 2. nc3 c6 3. bc4": "f1c4"}
    for moves, last in (no_bishop_can | bishops).items():
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
        with contextlib.nullcontext() if result != "*" else pytest.raises(ValueError, match="finished games"):
            found = pgn_results(tmp_path / "games.pgn", report=report)
            assert [score for _, score in found] == _SCORES[result]
        assert report.left_out["games without a result"] == (result == "*")


_THREE = ["1. e4 e5 2. Nf3 Nc6", "1. d4 d5 2. c4", "1. c4 c5"]
_BARE = [re.sub("[0-9][.] ", "", moves) for moves in _THREE]


@pytest.mark.parametrize(
    "joined",
    [
        "\n".join(f"{moves} *" for moves in _THREE),
        " ".join(f"{moves} ½-½" for moves in _THREE),
        "\n".join(_THREE),
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


def test_an_empty_line_amid_moves_and_a_tag_in_a_comment_begin_no_game(tmp_path):
    apart, commented = "1. e4 e5\n\n2. Nf3 Nc6\n\n\n3. Bb5", '1. e4 {see [Event "x"] there} e5 2. Nf3'
    records, report = read(tmp_path, *map(game, (apart, "1. d4", commented)))
    assert [len(record.actions) for record in records] == [5, 1, 3] and not report.left_out


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
