"""`precomp-games report`: the page and exports of a book by the shipped searches, and of a repertoire."""

import io
import json
import math
import re

import chess.pgn
import pytest

from precomp_games.chess.study.words import points
from tests.commands.conftest import ends, hide_engine
from tests.examples.launcher import files, result_of, table
from tests.oracles.pages import PLOT, data_of
from tests.oracles.pgn import game


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """Return (folder, what is printed, result) of the default book and its page, without an engine."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        hide_engine(patch)
        exports = ("--report", "--export=lichess,pgn,anki,csv", "--min_share=0")
        printed = ends(folder, "prepare", "--output_dir=book", *exports)
    return folder, printed, result_of(folder / "book")


# Costs seconds: the first preparation, at its defaults.
def test_without_an_engine_the_shipped_searches_serve(first_run):
    folder, output, answer = first_run
    (notice,) = [line for line in output.splitlines() if "No engine found" in line]
    assert "apt-get install stockfish" in notice
    exports = {"arrows.pgn", "book.csv", "cards.apkg", "lichess-1.pgn"}
    assert files(folder / "book").keys() == {"book.bin", "book.pgn", "result.json", "report.html", *exports}
    assert f"For study: {', '.join(f'book/{name}' for name in sorted(exports))}" in output
    assert "Page: book/report.html" in output and 20 < answer["size"] <= 150
    # A score by games is called so, with its error, and the value is the sum that it is.
    message = {name: points(answer[name]) for name in ("unprepared", "utility", "standard_error", "value")}
    found = f"{message['unprepared']} unprepared, {message['utility']} +- {message['standard_error']}"
    assert f"Expected score      {found} with the book" in output and "nalyst's score" not in output
    sums = f"{message['value']} = {message['utility']} - {answer['size']} x 0.01 "
    assert f"Value               {sums}" in output
    assert not re.search(r"(?<![\d.])-?[01]\.\d{3,}(?![\d%])", output)  # all are points in 100 games
    # The match is in the store as well, and keeps the promise.
    pattern = r"^Match +promised (.*), scored (.*) \+- (.*) in 100 games; .* \(from stored searches\)$"
    promised, scored, error = map(float, re.search(pattern, output, re.MULTILINE).groups())
    assert abs(promised - scored) <= 4.0 * math.hypot(error, 100.0 * answer["standard_error"]) + 1.0
    costs = re.findall(r"forgetting\s+it\s+(costs|saves)", (folder / "book" / "book.pgn").read_text())
    assert len(costs) >= answer["size"] and set(costs) == {"costs"}
    (data,) = data_of((folder / "book" / "report.html").read_text())
    assert len(data["positions"]) == answer["size"]
    for name in ("utility", "unprepared"):
        assert data[name] == pytest.approx(answer[name], abs=1e-4)
    # What lines end in, by the means that the book was chosen by, is what its gains come to.
    gains = sum(each["gain"] for each in answer["memorized"])
    assert sum(each["reach"] for each in answer["exits"]) == pytest.approx(1.0, abs=1e-6)
    expected = sum(each["reach"] * each["promised"] for each in answer["exits"])
    assert expected == pytest.approx(answer["unprepared"] + gains, abs=1e-6)
    for row, each in zip(table(folder / "book" / "book.csv"), answer["memorized"], strict=True):
        assert row["after_uci"].split() == each["after"] and row["play_uci"].split() == list(each["play"])
        for column, name in (("reach", "reach"), ("gain", "gain"), ("forgetting_costs", "net_gain")):
            assert float(row[column]) == each[name]
        ((unit, value),) = each["evaluation"].items()
        assert row["evaluation_pawns_white"] == (f"{value / 100:.2f}" if unit == "cp" else f"#{value}")


def test_games_plots_notes_and_a_match_beside_a_book_that_is_there(first_run):
    prepared, _, answer = first_run
    games = [game("1. e4 {} Nc6", "Us", "Ann", Date="1999.??.??", Result="1-0")]
    games += [game("1. e4 Nc6 2. Nf3", "Us", "Dave", Date="2001.??.??", Result="0-1")]
    (prepared / "games.pgn").write_text("".join(games))
    (prepared / "sizes.svg").write_text(PLOT)
    notes = "{From here.} 1. e4 {Best by test.} Nc6 (1... d5 {Scandinavian.}) *\n"
    (prepared / "notes.pgn").write_text(notes)
    match = {"side": "white", "player": "the book", "positions": 58, "promised": 0.98, "games": 50}
    match |= {"score": 0.97, "low": 0.9, "high": 0.99}
    match["exits"] = [{"after": answer["exits"][0]["after"], "games": 9, "score": 0.94}]
    (prepared / "match").mkdir()
    (prepared / "match" / "result.json").write_text(json.dumps({"matches": [match]}))
    flags = ["--from=book", "--plot=sizes.svg", "--games=games.pgn", "--player=Ann", "--match_dir=match"]
    flags += ["--notes=notes.pgn", "--export=pgn,csv", "--min_share=0", "--output_dir=more"]
    output = ends(prepared, "report", *flags)
    assert output.startswith("Games behind replies: 1 game; 1 left out: games of others\n")
    made = files(prepared / "more")
    assert made.keys() == {"report.html", "arrows.pgn", "book.csv"}
    # With the games, the exports give for each reply in how many of them it was seen.
    alone = (prepared / "book" / "arrows.pgn").read_text()
    assert made["arrows.pgn"].decode().count("[%cal") == alone.count("[%cal")
    rows = table(prepared / "more" / "book.csv")
    for row, before in zip(rows, table(prepared / "book" / "book.csv"), strict=True):
        assert before | {name: row[name] for name in ("reply", "note")} == row
    message = {"", "seen in 1 of their games", "not in their games", "a guess: never seen"}
    assert {row["reply"] for row in rows} <= message and len({row["reply"] for row in rows}) > 2
    page = made["report.html"].decode()
    (data,) = data_of(page)
    nodes = data["nodes"]
    assert data["games"] == [["Us", "Ann", 1999, "1-0", "e4 Nc6", "Mc5q"]]
    assert list(nodes["games"].values()) == [[1, 0]] and list(nodes["played"].values()) == [[9, 0.94]]
    assert set(nodes["note"].values()) == {"From here.", "Best by test.", "Scandinavian."}
    assert "Stockfish" in page and "with Black: 1 game, 1999" in page and "90 to 99" in page
    assert "<bdi>sizes</bdi>" in page and 'alt="sizes"' in page


def test_wrong_input(first_run, tmp_path):
    prepared, _, answer = first_run

    def refused(*flags, message):
        error = ends(tmp_path, "report", *flags, "--output_dir=out", status=1)
        assert all(words in error for words in message), error

    bad = tmp_path / "bad"
    bad.mkdir()
    evaluated = [answer["memorized"][0] | {"evaluation": {"cp": 0.5}}]
    for words in ("nonsense", "[" * 100_000, json.dumps(answer | {"memorized": evaluated})):
        (bad / "result.json").write_text(words)
        refused("--from=bad", message=["bad"])
    (bad / "result.json").write_text("{}")
    (tmp_path / "bad.svg").write_text("<svg")
    (tmp_path / "empty.pgn").write_text("")
    book = f"--from={prepared / 'book'}"
    for flags, *message in (
        ([book, "--match_dir=bad"], "--match_dir"),
        ([book, book], "--from", "one book a color"),
        ([book, "--export=pgn,pdf"], "--export", "'pdf'"),
        ([book, "--plot=bad.svg"], "plots as SVG"),
        ([book, "--plot=none.svg"], "none.svg"),
        ([book, "--games=none.pgn"], "none.pgn"),
        ([book, "--notes=none.pgn"], "none.pgn"),
        ([book, "--notes=empty.pgn"], "--notes"),
        (["--plot=bad.svg"], "--from: expected an output folder"),
    ):
        refused(*flags, message=message)
    whole = {name: value for name, value in answer.items() if name != "games"}
    whole |= {"budget": 9, "learned": 1, "truncation_loss": 0.0}
    whole["tree"] = {"expanded": 3, "histories": 3, "positions": 3, "fingerprint": "x"}
    (bad / "result.json").write_text(json.dumps(whole))
    for words in ("a,b\n1,2\n", f"positions,utility\n{'x' * 200_000},1\n"):
        (bad / "memory.csv").write_text(words)
        refused("--from=bad", message=["a table of precomp-games prepare", "memory.csv"])
    assert not (tmp_path / "out").exists()


def test_studies_of_any_repertoire(folder, run):
    printed = run("report", "--book=mine.pgn", "--side=white", "--output_dir=studies")
    assert "For study: studies/lichess-1.pgn" in printed
    text = (folder / "studies" / "lichess-1.pgn").read_text(encoding="utf-8")
    game = chess.pgn.read_game(io.StringIO(text))
    sicilian = next(each for each in game.variations[0].variations if each.san() == "c5")
    assert (sicilian.comment, sicilian.nags) == ("the Sicilian", {chess.pgn.NAG_GOOD_MOVE})
    assert "My book" in text and "cxd4 { no answer yet }" in text and "of games" not in text
