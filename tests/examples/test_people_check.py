"""The example that checks models of people: on small games that were made up, by networks drawn at random."""

import json
import random
import sys

import chess
import pytest

from tests.chess import fake_engine
from tests.examples.launcher import fails, printed
from tests.oracles.network import random_network

pytest.importorskip("onnxruntime")


def played(number):
    """Return a game of Us: two moves are played at each of the first positions."""
    rng, board, words = random.Random(number), chess.Board(), []
    for ply in range(16):
        moves = sorted(board.legal_moves, key=chess.Move.uci)
        move = rng.choice(moves[:2] if ply < 4 else moves)
        words.append(f"{board.san(move)} {{[%clk 0:02:{59 - ply:02}]}}")
        board.push(move)
    sides = ("Us", f"Other {number}")[:: 1 if number % 2 else -1]
    told = {"White": sides[0], "Black": sides[1], "Date": f"{2000 + number // 12}.{number % 12 + 1:02}.01"}
    told |= {"Result": ("1-0", "0-1", "1/2-1/2")[number % 3], "TimeControl": "180+0"}
    told |= {"WhiteElo": "1500", "BlackElo": "1600"}
    head = "".join(f'[{name} "{value}"]\n' for name, value in told.items())
    return f"{head}\n{' '.join(words)} {told['Result']}\n\n"


@pytest.mark.slow("each part, in one run")
def test_all_parts_are_checked(tmp_path):
    (tmp_path / "games.pgn").write_text("".join(map(played, range(300))))
    (tmp_path / "maia-1500.pb.gz").write_bytes(random_network())
    engine = f"{sys.executable} {fake_engine.__file__}"
    flags = (
        "--games=games.pgn",
        "--player=Us",
        "--maia=maia-1500.pb.gz",
        f"--engine={engine}",
        "--workers=1",
    )
    few = ("--moves=100", "--engine_moves=60", "--positions=100", "--output_dir=out", "--least_games=25")
    errs = "--errs=noisy(policy=uci(nodes=1000,r=40,top_k=5),epsilon=0.2)"
    said = printed("people_check", *flags, *few, errs, cwd=tmp_path)
    assert "300 games, of which the last 45 are predicted, from 2021" in said
    found = json.loads((tmp_path / "out" / "people_check.json").read_text())
    by = {(row["whose"], row["by"]): row for row in found["replies"] if row["speed"] == "all"}
    assert by["strangers", "any legal move"]["moves"] == 100 == by["player", "games before human"]["moves"]
    assert by["player", "games before human"]["bits"] < by["player", "human(rating)"]["bits"]
    assert by["player", "games before the engine"]["moves"] == 60
    assert sum(row["moves"] for row in found["reply_classes"] if row["whose"] == "player") == 100
    # The clock loses two seconds in a move of each side: one for the mover's, one for the other's.
    assert {row["spent"] for row in found["seconds"]} == {2.0} == {row["spent"] for row in found["known"]}
    told = [(row["half-moves"], row["met"]) for row in found["known"]]
    assert told[:2] == [("2 to 5", often) for often in ("under 20", "20 or more")]
    assert told[-1] == ("12 to 17", "never")
    assert [row["by"] for row in found["values"]][-1] == "bands" and len(found["value_classes"]) == 10
    best, white, black = found["off_policy"]
    assert best["positions"] == len(best["points"]) == 5
    assert min(white["positions"], black["positions"]) >= 2
    assert min(found["speed"].values()) > 0.0
    for name in ("replies", "values", "seconds", "off_policy"):
        assert (tmp_path / "out" / f"{name}.png").stat().st_size > 10_000


def test_games_must_be_named(tmp_path):
    fails("people_check", cwd=tmp_path, told=("--games: expected rated games with clocks",))
