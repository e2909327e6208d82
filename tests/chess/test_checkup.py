"""Everything that an engine cannot do is reported at the start, at once, with the flags that help."""

import dataclasses
import shlex

import pytest

from precomp_games.chess import SearchLimit
from precomp_games.chess.engines import pool
from precomp_games.chess.engines.pool import Demand, engine_troubles
from precomp_games.commands import main
from tests.chess.test_engine import FAKE

NODES = Demand(SearchLimit(nodes=300), 2, "--analyst_movetime_ms=50", "--top_k=1 --menu=1")
DEPTH = Demand(SearchLimit(depth=3), 1, "another depth", "")
BOTH = [NODES, DEPTH]
ANSWERS = [dataclasses.replace(each, lines=0) for each in BOTH]
NO_OPTION = "has no option 'Contempt': leave out --engine_option=Contempt=9 (it has Hash, "
NO_MULTIPV = "has no MultiPV, and 2 lines are asked for: --top_k=1 --menu=1"
NO_SCORES = "gives no 1 exact line(s)"


@pytest.mark.parametrize(
    ("words", "options", "demands", "message"),
    [
        ("", {"Hash": "32"}, BOTH, []),  # it can do all of it
        (
            "--lacking=MultiPV --fault=no-nodes",
            {"Contempt": "9", "hash": "8"},
            BOTH,
            [NO_OPTION, NO_MULTIPV, "does not keep nodes=300, since it does not report nodes: --analyst_"],
        ),
        # A move alone suffices if no score is read, and is reported once if one is.
        ("--fault=move-alone --lacking=MultiPV", {}, ANSWERS, []),
        ("--fault=move-alone", {}, [*BOTH, *ANSWERS], [NO_SCORES]),
        # One that goes on, or hangs, is killed, and another process is asked for the next limit.
        ("--fault=no-limit", {}, [NODES], ["does not keep nodes=300, with "]),
        ("--fault=no-nodes-no-end", {}, [NODES], ["does not keep nodes=300, "]),
        ("--fault=hang", {}, [NODES], ["does not keep nodes=300, with no move in 0.5 s: --analyst_"]),
        ("--fault=exit-at-start", {}, [NODES], []),  # it fails when it is started for good
    ],
)
def test_what_an_engine_cannot_do_is_an_error_at_once(words, options, demands, message, monkeypatch):
    monkeypatch.setattr("precomp_games.chess.engines.uci.COUNT_SECONDS", 0.1)
    if words == "--fault=hang":
        monkeypatch.setattr(pool, "_PATIENCE", 0.5)
    found = engine_troubles([*FAKE, *words.split()], options, "engine_option", demands)
    assert len(found) == len(message) and all(map(str.startswith, found, message))
    assert message != [NO_SCORES] or "--opponent_plays=bestmove" in found[0]


def test_a_command_lists_it_before_any_work(tmp_path, monkeypatch, capsys):
    """Of an engine with arguments, for both sides; where its moves alone are read, they suffice."""
    monkeypatch.chdir(tmp_path)
    fake = shlex.join(FAKE)
    other = f"{fake} --fault=move-alone --lacking=MultiPV"
    words = ["precomp-games", "prepare", f"--engine={fake}", f"--opponent_engine={other}"]
    words += ["--max_plies=4", "--evaluation=linear", "--analyst_nodes=20", "--match_games=2"]
    assert main([*words, "--engine_option=Contempt=9"]) == 1
    printed_text = capsys.readouterr()
    message = printed_text.out.splitlines()
    assert message[0].startswith(f"{fake} has no option 'Contempt'")
    assert f"{other} has no MultiPV" in printed_text.out and "and no score" in printed_text.out
    assert "more stand above" in printed_text.err and "--opponent_plays=bestmove" in printed_text.out
    assert printed_text.err.count("\n") == 1 and not list((tmp_path / "output").glob("*.sqlite"))
    for plays in ("bestmove", "game"):
        assert main([*words, f"--opponent_plays={plays}"]) == 0
        printed_text = capsys.readouterr().out
        assert "Stockfish" not in printed_text and "Fake 1.0" in printed_text
