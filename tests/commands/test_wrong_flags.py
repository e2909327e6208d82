"""Wrong flags of commands: one error line that says what was expected, and no folder left behind."""

import os
import shlex
import shutil

import pytest

from precomp_games.commands import COMMANDS
from tests.commands.conftest import ENGINE, GAMES, MATED, call, write_book
from tests.oracles.pgn import game

_LIST = ", ".join(COMMANDS)
_DAY = "expected a day, a month or a year, such as 2021-03-01"
_RATINGS = "--rating: expected ratings from and to, such as 1500-1900"
_ROWS = [
    ("perpare", [], f"expected one of {_LIST}, got 'perpare' (did you mean prepare?)\n"),
    ("x" * 5000, [], f"got {'x' * 100!r}\n"),
    ("judge", ["--hoziron=3"], "flag 'hoziron'. Did you mean: horizon ? (see --help)\n"),
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
    ("calibrate", [*ENGINE, f"--games={GAMES}", "--speeds=hyper"], "--speeds: expected"),
    ("calibrate", [*ENGINE, "--games=none.pgn"], "--games: expected"),
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
    ("solve", ["--iterations=0"], "--iterations"),
    ("solve", ["--efg"], "--efg: expected --output_dir"),
    ("solve", ["--refine", "--method=cfr"], "--refine: expected --method=exact, got cfr\n"),
    # Numbers, files and specs.
    ("equilibrium", "--penalty_factors=0.5", "at least 1"),
    ("drill", "", "--from: expected an output folder of precomp-games opponent or prepare, got none: run"),
    ("drill", "--from=book --from=book", "--from: expected one book a color, got book, book"),
    ("drill", "--from=book --progress=prose.md", "progress"),
    ("judge", "--book=prose.md", ("--book: expected moves of white in 'prose.md'", "no PGN tags")),
    ("judge", "--opponent=games(file=none.pgn)", "--opponent: expected a file, got 'none.pgn'"),
    ("judge", "--side=black", "--book: expected your book for Black"),
    ("judge", "--evaluation=rollouts", "--evaluation: expected an engine's evaluation"),
    ("opponent", "--population=none.pgn", "--population: expected a file, got 'none.pgn'"),
    ("review", "--games=games.pgn", "--player: expected"),
    ("review", "--games=games.pgn --player=Them", "--games: expected games of 'Them' as White"),
    ("match", "--from=book", "expected an engine"),
    ("calibrate", "", "expected an engine"),
    ("prepare", "--engine=/no/such/engine", ("find_engine()", "/no/such/engine")),
    ("prepare", "--fen=nonsense", "error: --fen: expected a FEN, got 'nonsense'"),
    ("prepare", "--r=0", "error: --r: expected positive numbers separated by commas, got '0'"),
    ("prepare", "--r=5,9 --r_weights=1", "error: --r_weights: expected 2 numbers, one for each"),
    ("prepare", "--penalty=-1", "error: --penalty: expected a positive, finite number, got -1.0"),
    ("prepare", "--store=/no/such/folder/s.sqlite", "/no/such/folder"),
    ("prepare", "--order=certified", "error: --order: expected --play_budget=0"),
    ("prepare", "--output_dir=/etc/passwd", ("--output_dir", "/etc/passwd")),
    ("prepare", "--evaluation=linear --plan=20,10", ("--plan", "numbers of positions that grow")),
    ("prepare", "--evaluation=linear --plan=10 --budget=5", ("--plan", "no --budget beside it")),
    ("prepare", "--evaluation=linear --keep=other.pgn", ("--keep", "start position")),
    ("prepare", "--evaluation=linear --keep=empty.pgn", ("--keep", "expected moves of white")),
    ("prepare", "--evaluation=linear --distrust=0.1 --menu=4", ("--menu", "expected 0 or 1 with")),
    ("prepare", "--evaluation=linear --check_nodes=9", ("--check_nodes", "expected --menu of 2")),
    ("calibrate", "--sides=left", ("--sides", "left")),
    ("calibrate", "--fens=8/8", ("fen", "8/8")),
    ("calibrate", "--evaluation=rollouts", ("--evaluation", "rollouts")),
    ("estimate", "--player=Us", "--player: expected --pgn"),
    ("estimate", "--top_k_values=1", "--top_k_values"),
    ("prepare", "--calibration=none.json", ("--calibration: expected a file", "'none.json'")),
]
_WITH_ENGINE = [
    ("prepare", "--opponent_option='Skill Level=5'", ("'Skill Level=5'", "scores", "'bestmove'")),
    ("prepare", "--engine_option=nonsense", ("--engine_option", "Name=value")),
    ("prepare", "--engine_option='No Such Option=1'", "No Such Option"),
    ("match", "--from=book --opponent=nobody", "nobody"),
    ("calibrate", "--menu=2 --calibration=prose.md", ("expected a calibration", "prose.md")),
    ("estimate", "--pgn=games.pgn --skip_plies=0 --confidence=1", "--confidence: expected"),
]


@pytest.fixture(scope="module")
def there(folder, tmp_path_factory):
    """Return a folder with some files, and no more."""
    path = tmp_path_factory.mktemp("wrong")
    for name in (GAMES, "mine.pgn", "engine.py"):
        shutil.copy(folder / name, path)
    (path / "odd.bin").write_bytes(bytes(range(40)))
    (path / "one.pgn").write_text("1. e4 e5 2. Nf3 *")
    (path / "games.pgn").write_text(game("1. e4 e5 2. Nf3", "Us", "Them", Date="1990.??.??"))
    (path / "other.pgn").write_text(f'[FEN "{MATED}"]\n[SetUp "1"]\n\n*\n')
    (path / "empty.pgn").write_text("")
    (path / "prose.md").write_text("# Openings\n\nOf all moves e4 is best. Then e5, Nf3 and d4 d5 e5.\n")
    write_book(path / "book")
    return path


@pytest.mark.parametrize(
    ("command", "words", "error", "has_engine"),
    [
        *((*row, False) for row in _ROWS),
        *(pytest.param(*row, True, marks=pytest.mark.engine) for row in _WITH_ENGINE),
    ],
    ids=lambda value: value[:9] if isinstance(value, str) else "",
)
def test_what_is_wrong_is_one_line(command, words, error, has_engine, there, request):
    if has_engine:
        words = f"{words} --store=:memory:"
    else:
        request.getfixturevalue("without_engine")
    before = set(there.iterdir())
    status, printed, message = call(
        there, command, *(shlex.split(words) if isinstance(words, str) else words)
    )
    assert status == 1 and message.startswith("error: ") and message.count("\n") == 1, printed + message
    assert all(part in message for part in ([error] if isinstance(error, str) else error)), message
    assert set(there.iterdir()) == before
