"""Wrong flags: one error line that names the flag, no traceback, and no folder left behind."""

import shlex

import pytest

from tests.commands.conftest import call
from tests.examples.launcher import fails
from tests.examples.test_chess_examples import MATED
from tests.examples.test_drill import write_book
from tests.oracles.pgn import game

_EXAMPLES = [
    ("best_precomputation", "--game=no_such_game", ("expected an OpenSpiel game", "no_such_game")),
    ("best_precomputation", "stray", ("flags only", "stray")),
    ("kuhn_exploitability", "--game='kuhn_poker(players=3)'", ("--game", "two-player")),
    ("kuhn_exploitability", "--penalty_values=0.1,0", ("--penalty_values", "positive", "'0.1,0'")),
    ("certified_preparation", "--game=kuhn_poker", "perfect information"),
    ("limited_lookahead", "--cluster=nowhere", ("--cluster: expected a scheduler's address", "'nowhere'")),
    ("efce_resolving", "--cluster=local:2 --workers=2", "--workers: expected none with --cluster"),
    ("clock_precomputation", "--times=0", ("--times", "at least 1")),
    ("efce_resolving", "--rows=5", ("--rows", "5")),
    ("efce_resolving", "--rows= --figure=", "something to do"),
    ("efce_resolving", "--rows=2 --seeds=0 --figure= --time_limit=0.01", ("ime limit", "--time_limit")),
    ("entropy_bounds", "--r_values=0", ("--r_values", "positive")),
    ("kuhn_exploitability", "--game='breakthrough(rows=4,columns=3)'", ("--game", "information state")),
    ("kuhn_exploitability", "--max_histories=50", ("--max_histories", "50 histories")),
    ("kuhn_exploitability", "--output_dir=prose.md", ("--output_dir", "prose.md")),
    ("limited_lookahead", "--gammas=-1", ("--gammas", "at least 0", "-1")),
    ("limited_lookahead", "--lookaheads=0", ("--lookaheads", "at least 1")),
    ("limited_lookahead", "--types=1,2 --lookaheads=1", ("--lookaheads", "none with --types")),
    ("limited_lookahead", "--players=3", ("--players", "0 or 1")),
    ("limited_lookahead", "--noise=loud", ("--noise", "loud")),
    ("limited_lookahead", "--games=leduc_poker --max_histories=100", "--max_histories"),
    ("mediator", "--game=sherif", "did you mean sheriff"),
    ("mediator", "--game=tic_tac_toe", "battleship, sheriff or turn-based goofspiel"),
    ("mediator", "--blueprint=equilibrium --notion=nfcce", ("--notion", "--resolve=none")),
    ("mediator", "--blueprint=equilibrium --objective=best", ("--objective", "smaller", "'best'")),
    ("payoff_frontier", "--objective=1,2,3", ("--objective", "two weights", "'1,2,3'")),
    ("payoff_frontier", "--game=kuhn_poker", "triangle"),
    ("opponent_model", "--games=games.pgn", "--player: expected"),
    ("opponent_model", "--games=games.pgn --player=Us --since=1980", ("--since", "within 1990 and 1990")),
    ("opponent_model", "--since=1991 --until=1990", "--since: expected"),
    ("opponent_model", "--population=games.pgn --since=1985", "--population: expected games before 1985"),
    ("people_check", "", "--games: expected rated games with clocks"),
    ("search_match", "--game=tic_tac_toe --opening_moves=9", ("--opening_moves", "9")),
    ("search_precomputation", "--sigma=uniform", "SearchPolicy"),
    ("search_precomputation", "--game='hex(board_size=3)' --leaf_value=evaluator", ("--leaf_value", "hex")),
    ("book_size", "", "expected an engine"),
    ("book_size", "--sizes=0", "--sizes"),
]
_COMMANDS = [
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
def folder(tmp_path_factory):
    """Return a folder with some files."""
    path = tmp_path_factory.mktemp("wrong")
    (path / "games.pgn").write_text(game("1. e4 e5 2. Nf3", "Us", "Them", Date="1990.??.??"))
    (path / "other.pgn").write_text(f'[FEN "{MATED}"]\n[SetUp "1"]\n\n*\n')
    (path / "empty.pgn").write_text("")
    (path / "prose.md").write_text("# Openings\n\nOf all moves e4 is best. Then e5, Nf3 and d4 d5 e5.\n")
    write_book(path / "book")
    return path


@pytest.mark.parametrize(("example", "flags", "words"), _EXAMPLES)
def test_wrong_flags_of_examples(example, flags, words, folder):
    more = [] if "--output_dir" in flags else ["--output_dir=some/out"]
    fails(example, *more, *shlex.split(flags), message=words, cwd=folder, has_engine=False)
    assert not (folder / "some").exists()


@pytest.mark.parametrize(
    ("command", "flags", "words", "has_engine"),
    [
        *((*row, False) for row in _COMMANDS),
        *(pytest.param(*row, True, marks=pytest.mark.engine) for row in _WITH_ENGINE),
    ],
)
def test_wrong_flags_of_commands(command, flags, words, has_engine, folder, monkeypatch):
    if not has_engine:
        monkeypatch.setattr("precomp_games.chess.engines.pool.DEFAULT_PATHS", ())
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.delenv("STOCKFISH", raising=False)
    more = [] if "--output_dir" in flags or command == "drill" else ["--output_dir=some/out"]
    more += ["--store=s.sqlite"] if has_engine else []
    status, _, error = call(folder, command, *more, *shlex.split(flags))
    assert status == 1 and error.startswith("error: ") and error.count("\n") == 1
    assert all(part in error for part in ([words] if isinstance(words, str) else words)), error
    assert not (folder / "some").exists()
