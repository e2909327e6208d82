"""Wrong flags of examples: one error line that names the flag, no traceback, and no folder left behind."""

import shlex

import pytest

from tests.examples.launcher import fails
from tests.examples.test_drill import write_book
from tests.examples.test_examples import MATED
from tests.oracles.pgn import game

# By what the examples share (examples/common.py).
_SHARED = [
    ("best_precomputation", "--game=no_such_game", ("expected an OpenSpiel game", "no_such_game")),
    ("best_precomputation", "--game=kuhn_pokr", "did you mean kuhn_poker?"),
    ("best_precomputation", "--game='kuhn_poker(players=3)' --sigma_pre=uniform", "two-player"),
    ("best_precomputation", "--penalty=0", ("penalties", "positive")),
    ("best_precomputation", "stray", ("flags only", "stray")),
    ("kuhn_exploitability", "--game='kuhn_poker(players=3)'", ("--game", "two-player")),
    ("kuhn_exploitability", "--penalty_values=0.1,0", ("--penalty_values", "positive", "'0.1,0'")),
    ("certified_preparation", "--game=kuhn_poker", "perfect information"),
    ("clock_precomputation", "--times=a", ("--times", "integers")),
    ("limited_lookahead", "--cluster=nowhere", ("--cluster: expected a scheduler's address", "'nowhere'")),
    ("efce_resolving", "--cluster=local:2 --workers=2", "--workers: expected none with --cluster"),
]
# By each example itself.
_OWN = [
    ("chess_equilibrium", "--penalty_factors=0.5", "at least 1"),
    ("chess_equilibrium", "--penalty_factors=x", "penalty_factors"),
    ("clock_precomputation", "--times=0", ("--times", "at least 1")),
    ("drill", "--from=none", "--from: expected an output folder of precomp-games opponent or prepare, got"),
    ("drill", "--from=book --from=book", "--from: expected one book a color, got book, book"),
    *(
        (example, "", "--from: expected an output folder of precomp-games opponent or prepare, got none: run")
        for example in ("drill", "book_match", "book_report")
    ),
    ("book_match", "--from=book", "expected an engine"),
    ("drill", "--from=book --progress=prose.md", "progress"),
    ("efce_resolving", "--rows=5", ("--rows", "5")),
    ("efce_resolving", "--figure=tiny", ("--figure", "tiny")),
    ("efce_resolving", "--stitch_bounds=loose", ("--stitch_bounds", "loose")),
    ("efce_resolving", "--rows= --figure=", "something to do"),
    ("efce_resolving", "--rows=2 --seeds=0 --figure= --time_limit=0.01", ("ime limit", "--time_limit")),
    ("entropy_bounds", "--r_values=0", ("--r_values", "positive")),
    ("judge_book", "--book=none.pgn", "--book: expected PGN or Polyglot files, got 'none.pgn'"),
    ("judge_book", "--book=prose.md", ("--book: expected moves of white in 'prose.md'", "no PGN tags")),
    ("judge_book", "--book=illegal.pgn", "--book: expected moves of white in 'illegal.pgn', got none"),
    ("judge_book", "--opponent=games(file=none.pgn)", "--opponent: expected a file, got 'none.pgn'"),
    ("judge_book", "--side=black", "--book: expected your book for Black"),
    ("judge_book", "--evaluation=rollouts", "--evaluation: expected an engine's evaluation"),
    ("judge_book", "--menu=0", "--menu: expected at least 1"),
    ("judge_book", "--fen=nonsense", "fen"),
    ("kuhn_exploitability", "--game='breakthrough(rows=4,columns=3)'", ("--game", "information state")),
    ("kuhn_exploitability", "--max_histories=50", ("--max_histories", "50 histories")),
    ("kuhn_exploitability", "--target_nash_conv=nan", ("target_nash_conv", "nan")),
    ("kuhn_exploitability", "--output_dir=prose.md", ("--output_dir", "prose.md")),
    ("limited_lookahead", "--gammas=-1", ("--gammas", "at least 0", "-1")),
    ("limited_lookahead", "--lookaheads=0", ("--lookaheads", "at least 1")),
    ("limited_lookahead", "--time_limit=nan", ("--time_limit", "nan")),
    ("limited_lookahead", "--types=1,0", ("--types", "at least 1")),
    ("limited_lookahead", "--types=1,2 --lookaheads=1", ("--lookaheads", "none with --types")),
    ("limited_lookahead", "--players=3", ("--players", "0 or 1")),
    ("limited_lookahead", "--noise=loud", ("--noise", "loud")),
    ("limited_lookahead", "--games=leduc_poker --max_histories=100", "--max_histories"),
    ("mediator", "--game=sherif", "did you mean sheriff"),
    ("mediator", "--game=tic_tac_toe", "battleship, sheriff or turn-based goofspiel"),
    ("mediator", "--blueprint=equilibrium --notion=nfcce", ("--notion", "--resolve=none")),
    ("mediator", "--blueprint=equilibrium --objective=best", ("--objective", "smaller", "'best'")),
    ("payoff_frontier", "--objective=1,2,3", ("--objective", "two weights", "'1,2,3'")),
    ("payoff_frontier", "--notions=efce,cce", ("--notions", "nfcce", "'cce'")),
    ("payoff_frontier", "--game=kuhn_poker", "triangle"),
    ("opponent_model", "--games=games.pgn --player=Us --since=1980", ("--since", "within 1990 and 1990")),
    ("opponent_model", "--since=1991 --until=1990", "--since: expected"),
    ("opponent_model", "--population=games.pgn --since=1985", "--population: expected games before 1985"),
    ("opponent_preparation", "--population=none.pgn", "--population: expected a file, got 'none.pgn'"),
    ("review_games", "--games=games.pgn --player=Them", "--games: expected games of 'Them' as White"),
    ("search_match", "--game=kuhn_poker", ("perfect information", "kuhn_poker")),
    ("search_match", "--game=tic_tac_toe --opening_moves=9", ("--opening_moves", "9")),
    ("search_precomputation", "--sigma=uniform", "SearchPolicy"),
    ("search_precomputation", "--r_values=1,x", ("--r_values", "1,x")),
    ("search_precomputation", "--game='hex(board_size=3)' --leaf_value=evaluator", ("--leaf_value", "hex")),
    # Whose games need an engine.
    *((example, "", "expected an engine") for example in ("book_size", "calibrate_evaluation")),
]
_OF_PERSONS = [
    (example, flags, words)
    for example in ("opponent_model", "opponent_preparation", "review_games")
    for flags, words in (
        ("--games=none.pgn --player=Us", "none.pgn"),
        ("--games=games.pgn", "--player: expected"),
        ("--games=games.pgn --player=Nobody", ("'Nobody'", "games of 'Us', 'Them'")),
    )
]
# Where the engine that is there is looked at first.
_CHESS = [
    ("--engine=/no/such/engine", ("find_engine()", "/no/such/engine")),
    ("--fen=nonsense", "error: --fen: expected a FEN, got 'nonsense'"),
    ("--r=0", "error: --r: expected positive numbers separated by commas, got '0'"),
    ("--r=5,nan", "error: --r: expected positive numbers separated by commas, got '5,nan'"),
    ("--r=5,9 --r_weights=1", "error: --r_weights: expected 2 numbers, one for each --r, got '1'"),
    ("--penalty=-1", "error: --penalty: expected a positive, finite number, got -1.0"),
    ("--opponent_option=UCI_LimitStrength=true --opponent_option=UCI_Elo=1400", ("got 'UCI_", "scores")),
    ("--opponent_option='Skill Level=5'", ("'Skill Level=5'", "scores", "'bestmove'")),
    ("--engine_option=nonsense", ("--engine_option", "Name=value")),
    ("--engine_option='No Such Option=1'", "No Such Option"),
    ("--store=/no/such/folder/s.sqlite", "/no/such/folder"),
    ("--store=prose.md", "prose.md"),
    ("--menu=501", "error: --menu: expected an integer from 0 to 500, got 501"),
    ("--menu=2 --evaluation=rollouts", "error: --evaluation: expected an engine's evaluation"),
    ("--calibration=none.json", ("error: --calibration: expected a file", "'none.json'")),
    ("--order=certified", "error: --order: expected --play_budget=0"),
    ("--output_dir=/etc/passwd", ("--output_dir", "/etc/passwd")),
    ("--evaluation=linear --plan=20,10", ("--plan", "numbers of positions that grow")),
    ("--evaluation=linear --plan=10 --budget=5", ("--plan", "no --budget beside it")),
    ("--evaluation=linear --keep=missing.pgn", ("--keep", "expected PGN or Polyglot files")),
    ("--evaluation=linear --keep=other.pgn", ("--keep", "start position")),
    ("--evaluation=linear --keep=empty.pgn", ("--keep", "expected moves of white")),
    ("--evaluation=linear --distrust=0.1 --menu=4", ("--menu", "expected 0 or 1 with --distrust")),
    ("--evaluation=linear --check_nodes=9", ("--check_nodes", "expected --menu of 2 or more")),
]
_OTHER_CHESS = [
    ("book_match", "--from=none", ("--from", "'none'")),
    ("book_match", "--from=book --opponent=nobody", "nobody"),
    ("book_match", "--games=0", "--games=0"),
    ("book_size", "--sizes=0", "--sizes"),
    ("calibrate_evaluation", "--sides=left", ("--sides", "left")),
    ("calibrate_evaluation", "--fens=8/8", ("fen", "8/8")),
    ("calibrate_evaluation", "--evaluation=rollouts", ("--evaluation", "rollouts")),
    ("calibrate_evaluation", "--menu=2 --calibration=prose.md", ("expected a calibration", "prose.md")),
    *((each, "--pgn=none.pgn", "none.pgn") for each in ("calibrate_evaluation", "estimate_opponent")),
    *(
        (each, "--pgn=games.pgn --player=Nobody", ("'Nobody'", "games of 'Us', 'Them'"))
        for each in ("calibrate_evaluation", "estimate_opponent")
    ),
    ("estimate_opponent", "--player=Us", "--player: expected --pgn"),
    ("estimate_opponent", "--top_k_values=1", "--top_k_values"),
    ("estimate_opponent", "--pgn=games.pgn --skip_plies=0 --confidence=1", "--confidence: expected"),
]


@pytest.fixture
def refused(tmp_path):
    """Sees that an example refuses flags, in a folder with some files."""
    (tmp_path / "games.pgn").write_text(game("1. e4 e5 2. Nf3", "Us", "Them", Date="1990.??.??"))
    (tmp_path / "illegal.pgn").write_text(game("1. Ke4"))
    (tmp_path / "other.pgn").write_text(f'[FEN "{MATED}"]\n[SetUp "1"]\n\n*\n')
    (tmp_path / "empty.pgn").write_text("")
    (tmp_path / "prose.md").write_text("# Openings\n\nOf all moves e4 is best. Then e5, Nf3 and d4 d5 e5.\n")
    write_book(tmp_path / "book")

    def check(example, flags, words, has_engine):
        out = [] if "--output_dir" in flags or example == "drill" else ["--output_dir=some/out"]
        fails(example, *out, *shlex.split(flags), told=words, cwd=tmp_path, has_engine=has_engine)
        assert not (tmp_path / "some").exists()

    return check


def test_what_all_examples_refuse_alike(refused):
    for example, flags, words in _SHARED:
        refused(example, flags, words, has_engine=False)


@pytest.mark.parametrize(("example", "flags", "words"), [*_OWN, *_OF_PERSONS])
def test_examples_refuse(example, flags, words, refused):
    refused(example, flags, words, has_engine=False)


@pytest.mark.engine
@pytest.mark.parametrize(("flags", "words"), _CHESS)
def test_chess_preparation_refuses(flags, words, refused):
    store = "" if "--store" in flags else "--store=s.sqlite "
    refused("chess_preparation", store + flags, words, has_engine=True)


@pytest.mark.engine
@pytest.mark.parametrize(("example", "flags", "words"), _OTHER_CHESS)
def test_other_examples_on_chess_refuse(example, flags, words, refused):
    refused(example, f"--store=s.sqlite {flags}", words, has_engine=True)
