"""Wrong flags of commands: one error line that says what was expected, and no folder left behind."""

import os

import pytest

from precomp_games.commands import COMMANDS
from tests.commands.conftest import ENGINE, GAMES, call

_LIST = ", ".join(COMMANDS)
_DAY = "expected a day, a month or a year, such as 2021-03-01"
_RATINGS = "--rating: expected ratings from and to, such as 1500-1900"


@pytest.mark.parametrize(
    ("command", "words", "error"),
    [
        ("perpare", [], f"expected one of {_LIST}, got 'perpare' (did you mean prepare?)\n"),
        ("x" * 5000, [], f"got {'x' * 100!r}\n"),
        ("judge", ["--hoziron=3"], "flag 'hoziron'. Did you mean: horizon ? (see --help)\n"),
        ("judge", ["--rows=0"], "(see --help)\n"),
        ("judge", ["mine.pgn"], "expected flags only, got 'mine.pgn' (see --help)\n"),
        ("judge", ["--menu=0"], "--menu: expected at least 1 for a book to be judged, got 0\n"),
        ("judge", ["--" + "x" * 3000], "x... of 3002 characters (see --help)\n"),
        ("judge", ["--from=."], "with no preparation in it"),
        ("prepare", ["--minutes=1", "--evaluation=linear"], "--minutes: expected --menu of 2 or more"),
        # Whose games.
        ("opponent", [GAMES], "--player: expected whose games in --games are meant, such as 'Us', 'Karpov"),
        ("opponent", [GAMES, "Nobody"], f"expected moves of 'Nobody' in '{GAMES}', got none"),
        ("scout", [GAMES, "Nobody"], f"expected moves of 'Nobody' in '{GAMES}', got none"),
        ("opponent", ["none.pgn", "Us"], "--games: expected a PGN file, got 'none.pgn'"),
        ("opponent", ["a\x1b[2J.pgn", "Us"], r"--games: expected a PGN file, got 'a\x1b[2J.pgn'"),
        ("opponent", [os.devnull], "--games: expected a PGN file with games, got"),
        ("opponent", [GAMES, "Us", "more"], "expected flags only, got 'more'"),
        ("opponent", [GAMES, "Us", f"--games={GAMES}"], f"--games: expected it once, got '{GAMES}' and"),
        ("opponent", [GAMES, "Us", "--opponent=uniform"], "--opponent: expected none"),
        ("scout", [GAMES, "Karpov"], "expected one person, got 'Karpov', which fits Karpov, A"),
        ("scout", [GAMES, "Us", "--since=2021-13"], f"--since: {_DAY}, got '2021-13'"),
        ("scout", [GAMES, "Us", "--until=soon"], f"--until: {_DAY}, got 'soon'"),
        ("scout", [GAMES, "Us", "--speed=blits"], "some of bullet, blitz, rapid, classical, got 'bl"),
        ("scout", [GAMES, "Us", "--rating=1900-1500"], f"{_RATINGS}, got '1900-1500'"),
        ("scout", [GAMES, "Us", "--rating=1900"], f"{_RATINGS}, got '1900'"),
        ("scout", [GAMES, "Us", "--known=0"], "flag --known=0"),
        ("scout", [GAMES, "Us", "--output_dir=/dev/null/x"], "--output_dir: expected a folder, got '/dev/nu"),
        ("calibrate", [f"--games={GAMES}", "--speeds=hyper"], "--speeds: expected"),
        ("calibrate", ["--games=none.pgn"], "--games: expected"),
        # A book of one's own.
        ("drill", ["--book=mine.pgn", "--from=x"], "--from: expected none beside --book"),
        ("drill", ["--book=none.pgn"], "expected PGN or Polyglot files, got 'none.pgn'"),
        ("drill", ["--book=one.pgn"], "--book: expected files that tell whose book it is where no side is"),
        ("drill", ["--book=odd.bin", "--side=white"], "expected moves of white in 'odd.bin', got none"),
        ("match", ["--book=mine.pgn"], "--opponent: expected whom to play with --book"),
        ("report", ["--book=mine.pgn", "--export=anki"], "--export: expected lichess with --book (precomp"),
        # A game to be solved.
        ("solve", ["--game=kuhn_pokr"], "(did you mean kuhn_poker?)"),
        ("solve", ["--game=kuhn_poker(x=1)"], "expected an OpenSpiel game"),
        ("solve", ["--game=kuhn_poker(players=3)"], "expected a two-player game"),
        ("solve", ["--game=matrix_pd"], "expected a zero-sum or constant-sum game"),
        ("solve", ["--game=liars_dice_ir(dice_sides=3)"], "perfect recall"),
        ("solve", ["--method=lp"], "--method"),
        ("solve", ["--efg"], "--efg: expected --output_dir"),
        ("solve", ["--iterations=0"], "--iterations"),
        ("solve", ["--refine", "--method=cfr"], "--refine: expected --method=exact, got cfr\n"),
    ],
    ids=lambda value: value[:9] if isinstance(value, str) else "",
)
def test_what_is_wrong_is_one_line(command, words, error, folder):
    (folder / "odd.bin").write_bytes(bytes(range(40)))
    (folder / "one.pgn").write_text("1. e4 e5 2. Nf3 *")
    engine = ENGINE if command == "calibrate" else []
    there = set(folder.iterdir())
    status, printed, message = call(folder, command, *words, *engine)
    assert (status, printed) == (1, "") and message.startswith("error: ") and message.count("\n") == 1, (
        printed + message
    )
    assert error in message
    assert set(folder.iterdir()) == there
