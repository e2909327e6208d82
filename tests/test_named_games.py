"""A game is its name, a Gambit file's path, or itself, and players take turns, wherever a game is taken."""

import math
import pathlib

import pyspiel
import pytest

from precomp_games import HistoryTree
from precomp_games.algorithms import best_precomputation, best_response, efce, lookahead, nash_conv, solve
from precomp_games.commands import main
from precomp_games.meta_game.gambit import to_efg
from tests.oracles.games import first, random_efg, uniform

_GOOFSPIEL = "goofspiel(num_cards=3,imp_info=True)"


def _tree(game):
    return HistoryTree.from_game(game, sigma_pre=first, sigma=uniform, penalties=(0.01, math.inf))


def _commitment(game):
    return lookahead.commit_against_lookahead(game, 0, 1, lambda state: 0.0).supremum


FUNCTIONS = {
    "from_game": lambda game: best_precomputation(_tree(game), 0).value,
    "of_game": lambda game: HistoryTree.of_game(game).num_histories,
    "solve": lambda game: solve(game).value,
    "best_response": lambda game: best_response(game, uniform, 1).value,
    "nash_conv": lambda game: nash_conv(game, uniform),
    "to_efg": to_efg,
    "efce_lp": lambda game: efce.efce_lp(game).welfare,
    "SequenceGame": lambda game: efce.SequenceGame.of(game).num_nodes,
    "commit_against_lookahead": _commitment,
}


@pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS)
def test_by_name_in_turns_and_by_a_gambit_files_path(call, tmp_path):
    assert call(_GOOFSPIEL) == call(pyspiel.load_game(_GOOFSPIEL))
    assert call(_GOOFSPIEL) == call(pyspiel.load_game_as_turn_based(_GOOFSPIEL))
    path, text = tmp_path / "a game, 1=(2).efg", to_efg(_GOOFSPIEL)
    path.write_text(text)
    wanted = call(pyspiel.load_game("efg_game", {"filename": str(path)}))
    assert call(path) == call(str(path)) == wanted
    unknown = r"^\w.*\(\): expected an OpenSpiel game .* \(did you mean kuhn_poker\?\)"
    with pytest.raises(ValueError, match=unknown):
        call("kuhn_pokr")
    missing = r"\(\): expected an \.efg file, got '.*none\.efg', where there is none"
    with pytest.raises(ValueError, match=missing):
        call(tmp_path / "none.efg")
    for data in ("", "EFG 2 R", text[:300], "\0" * 50, text.replace(" -1.0 }", " }")):
        path.write_text(data)
        odd = r"\(\): expected a game that OpenSpiel reads, got '.*\.efg' \(.*\)$"
        with pytest.raises(ValueError, match=odd):
            call(path)


def test_by_a_path_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for game, status, message in (
        ("kuhn_poker", 0, "12 information states\nValue to player 0: -0.05555555556\n"),
        (random_efg(1, general=True), 1, "expected a zero-sum or constant-sum game"),
    ):
        pathlib.Path("kuhn.efg").write_text(to_efg(game))
        assert main(["precomp-games", "solve", "--game=kuhn.efg"]) == status
        assert message in "".join(capsys.readouterr())
