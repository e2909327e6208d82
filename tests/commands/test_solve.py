"""`precomp-games solve`: what it prints, writes and refuses."""

import pyspiel
import pytest

from precomp_games import HistoryTree
from precomp_games.algorithms import load_policy, nash_conv
from precomp_games.commands import main
from tests.examples.launcher import is_png, result_of
from tests.oracles.games import EfgText


def _solve(capsys, *flags, status=0):
    assert main(["precomp-games", "solve", *flags]) == status
    said = capsys.readouterr()
    return said.out if status == 0 else said.err


def test_by_default_kuhn_poker_is_solved(capsys):
    said = _solve(capsys)
    assert "kuhn_poker(): 58 histories, 12 information states\nValue to player 0: -0.05555555556\n" in said
    assert "(linear program, " in said and "Written" not in said
    assert "  Pass " in said or " Pass " in said  # actions have the game's names


def test_files(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = ("--game=leduc_poker", "--method=pcfr+", "--iterations=200", "--output_dir=out", "--efg")
    said = _solve(capsys, *flags, "--infosets=0")
    assert said.endswith("Written: out/policy.npz, result.json, game.efg, nash_conv.png\n")
    found = result_of(tmp_path / "out")
    assert found["iterations"] == 200 and found["trace"][-1] == [200, found["nash_conv"]]
    policy = load_policy(tmp_path / "out" / "policy.npz")
    assert nash_conv("leduc_poker", policy) == pytest.approx(found["nash_conv"])
    game = pyspiel.load_efg_game((tmp_path / "out" / "game.efg").read_text())
    assert game.num_distinct_actions() == 3 and is_png(tmp_path / "out" / "nash_conv.png")
    late = _solve(capsys, "--game=leduc_poker", "--method=cfr", "--iterations=10", "--target_nash_conv=1e-9")
    assert "That is more than was asked for" in late


def test_a_game_in_a_file_of_any_name(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _solve(capsys, "--output_dir=my games (1), a=b", "--efg")
    said = _solve(capsys, '--game=efg_game(filename="my games (1), a=b/game.efg")')
    assert "58 histories, 12 information states\nValue to player 0: -0.05555555556\n" in said


def test_perfect_information_and_moves_at_once(capsys):
    said = _solve(capsys, "--game=tic_tac_toe", "--infosets=3")
    assert "Value to player 0: 0\n" in said and "(backward induction, " in said and "x(" in said
    said = _solve(capsys, "--game=matrix_rps")
    assert "Value to player 0: 0\n" in said and said.count("0.333") == 6


def test_long_states_are_cut_in_the_middle(capsys):
    said = _solve(capsys, "--game=goofspiel(num_cards=3,imp_info=True)", "--infosets=40")
    rows = [line for line in said.splitlines() if " ... " in line]
    assert rows
    tree = HistoryTree.of_game("goofspiel(num_cards=3,imp_info=True)")
    whole = [" ".join(tree.key(k).split()) for k in range(tree.num_infosets)]
    for row in rows:
        first, last = row.split(" ... ")
        assert any(key.endswith(last) and first.endswith(key[:28]) for key in whole)
        assert len(last) == 27


def test_refined(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = _solve(capsys, "--game=coordinated_mp", "--refine", "--output_dir=out", "--infosets=0")
    assert "Proper subgames, with the whole: 1; NashConv of the worst: " in said
    report = result_of(tmp_path / "out")
    assert abs(report["gap"]) < 1e-12 and report["subgames"] == 1
    said = _solve(capsys, "--game=goofspiel(num_cards=3,imp_info=True)", "--refine", "--infosets=2")
    assert "Proper subgames, with the whole: 31; NashConv of the worst: " in said
    assert said.count("0.3333 ") == 2
    said = _solve(capsys, "--refine", "--method=cfr", status=1)
    assert said == "error: --refine: expected --method=exact, got cfr\n"


@pytest.mark.parametrize(
    ("flag", "error"),
    [
        ("--game=kuhn_pokr", "(did you mean kuhn_poker?)"),
        ("--game=kuhn_poker(x=1)", "expected an OpenSpiel game"),
        ("--game=kuhn_poker(players=3)", "expected a two-player game"),
        ("--game=matrix_pd", "expected a zero-sum or constant-sum game"),
        ("--game=liars_dice_ir(dice_sides=3)", "perfect recall"),
        ("--method=lp", "--method"),
        ("--efg", "--efg: expected --output_dir"),
        ("--iterations=0", "--iterations"),
    ],
)
def test_wrong_flags(flag, error, capsys):
    said = _solve(capsys, flag, status=1)
    assert error in said and said.startswith("error: ") and said.count("\n") == 1


def test_files_of_gambit(capsys, tmp_path):
    path = tmp_path / "file.efg"
    for labels, status, told in (
        (
            ("R", "R"),
            1,
            "error: solve(): expected the actions of a state to differ, got [0, 1, 1] at history ''",
        ),
        (("M", "R"), 0, "Value to player 0: 5\n"),
    ):
        text = EfgText()
        text.move(1, 1, ["L", *labels])
        for payoff in (0, 1, 5):
            text.leaf(payoff)
        path.write_text("\n".join(text.lines) + "\n")
        said = _solve(capsys, f"--game=efg_game(filename={path})", status=status)
        assert told in said
