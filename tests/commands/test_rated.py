"""precomp-games calibrate --games, on an engine that answers at once."""

from precomp_games.chess.model.people_values import load_people
from tests.commands.conftest import ENGINE
from tests.oracles.pgn import rated_game


# Costs seconds: games are read and fitted to.
def test_fits_of_a_file_are_written_and_checked_on_its_last_games(folder, run):
    games = [rated_game(k, TimeControl="180+2", plies=40) for k in range(160)]
    (folder / "rated.pgn").write_text("".join(games))
    words = ["--games=rated.pgn", "--positions=150", "--analyst_nodes=20", "--output_dir=fits", *ENGINE]
    printed = run("calibrate", *words)
    fit = load_people(folder / "fits" / "people_games.json")
    (whole, *_) = fit.rows
    assert (whole.speed, whole.band, whole.positions) == ("blitz", None, 150)
    assert fit.source == "136 rated games" and fit.analyst == "nodes=20"
    assert fit.evidence["kept_out_games"] == 24
    assert [each["by"] for each in fit.evidence["values"]][-2:] == ["the move as well", "bands"]
    assert "Kept out, the last games by date" in printed and len(fit.evidence["seconds"]) == 10
