"""Wrong flags of examples: one error line that names the flag, no traceback, and no folder left behind."""

import shlex

import pytest

from tests.examples.launcher import fails
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


@pytest.mark.parametrize(("example", "flags", "words"), _EXAMPLES)
def test_wrong_flags_of_examples(example, flags, words, tmp_path):
    (tmp_path / "games.pgn").write_text(game("1. e4 e5 2. Nf3", "Us", "Them", Date="1990.??.??"))
    (tmp_path / "prose.md").touch()
    more = [] if "--output_dir" in flags else ["--output_dir=some/out"]
    fails(example, *more, *shlex.split(flags), message=words, cwd=tmp_path, has_engine=False)
    assert not (tmp_path / "some").exists()
