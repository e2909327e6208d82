"""`precomp-games solve`: what it prints and writes."""

import pyspiel
import pytest

from precomp_games import HistoryTree
from precomp_games.algorithms import load_policy, nash_conv
from tests.examples.launcher import is_png, result_of
from tests.oracles.games import EfgText

_GOOFSPIEL = "goofspiel(num_cards=3,imp_info=True)"


def test_by_default_kuhn_poker_is_solved_and_written_to_a_file_of_any_name(run):
    printed = run("solve", "--output_dir=my games (1), a=b", "--efg")
    solved = "58 histories, 12 information states\nValue to player 0: -0.05555555556\n"
    assert f"kuhn_poker(): {solved}" in printed and "(linear program, " in printed
    assert " Pass " in printed  # actions have the game's names
    again = run("solve", '--game=efg_game(filename="my games (1), a=b/game.efg")')
    assert solved in again and "Written" not in again


def test_files(folder, run):
    flags = ("--game=leduc_poker", "--method=pcfr+", "--iterations=200", "--output_dir=leduc", "--efg")
    printed = run("solve", *flags, "--infosets=0")
    assert printed.endswith("Written: leduc/policy.npz, result.json, game.efg, nash_conv.png\n")
    found = result_of(folder / "leduc")
    assert found["iterations"] == 200 and found["trace"][-1] == [200, found["nash_conv"]]
    policy = load_policy(folder / "leduc" / "policy.npz")
    assert nash_conv("leduc_poker", policy) == pytest.approx(found["nash_conv"])
    game = pyspiel.load_efg_game((folder / "leduc" / "game.efg").read_text())
    assert game.num_distinct_actions() == 3 and is_png(folder / "leduc" / "nash_conv.png")
    late = run("solve", "--game=leduc_poker", "--method=cfr", "--iterations=10", "--target_nash_conv=1e-9")
    assert "That is more than was asked for" in late


def test_perfect_information_and_moves_at_once(run):
    printed = run("solve", "--game=breakthrough(rows=4,columns=2)", "--infosets=3")
    assert "(backward induction, " in printed and "\nValue to player 0: -1\n" in printed
    assert " a4a3 " in printed
    printed = run("solve", "--game=matrix_rps")
    assert "Value to player 0: 0\n" in printed and printed.count("0.333") == 6


def test_long_states_are_cut_in_the_middle(run):
    printed = run("solve", f"--game={_GOOFSPIEL}", "--infosets=40")
    rows = [line for line in printed.splitlines() if " ... " in line]
    assert rows
    tree = HistoryTree.of_game(_GOOFSPIEL)
    whole = [" ".join(tree.key(k).split()) for k in range(tree.num_infosets)]
    for row in rows:
        first, last = row.split(" ... ")
        assert any(key.endswith(last) and first.endswith(key[:28]) for key in whole)
        assert len(last) == 27


def test_refined(folder, run):
    printed = run("solve", "--game=coordinated_mp", "--refine", "--output_dir=refined", "--infosets=0")
    assert "Proper subgames, with the whole: 1; NashConv of the worst: " in printed
    report = result_of(folder / "refined")
    assert abs(report["gap"]) < 1e-12 and report["subgames"] == 1
    printed = run("solve", f"--game={_GOOFSPIEL}", "--refine", "--infosets=2")
    assert "Proper subgames, with the whole: 31; NashConv of the worst: " in printed
    assert printed.count("0.3333 ") == 2


@pytest.mark.parametrize(
    ("labels", "status", "message"),
    [
        ("LRR", 1, "error: solve(): expected the actions of a state to differ, got [0, 1, 1] at history ''"),
        ("LMR", 0, "Value to player 0: 5\n"),
    ],
)
def test_files_of_gambit(labels, status, message, folder, run):
    text = EfgText()
    text.move(1, 1, list(labels))
    for payoff in (0, 1, 5):
        text.leaf(payoff)
    (folder / "file.efg").write_text("\n".join(text.lines) + "\n")
    assert message in run("solve", "--game=file.efg", status=status)
