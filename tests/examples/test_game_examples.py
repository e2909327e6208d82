"""The examples on small games as a user runs them: what they find, print and write."""

import collections
import math
import re

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability

from precomp_games import make_policy
from precomp_games.algorithms import best_precomputation
from tests.examples.launcher import files, is_png, printed, result_of, table
from tests.oracles.games import expand


def as_expected(printed_text, begin=""):
    """Return the pairs of numbers that lines with such a begin expected and obtained."""
    number = r"[^,\s]+"
    found = re.findall(rf"^{begin}.*expected ({number}).* obtained ({number})", printed_text, re.MULTILINE)
    return [(float(expected), float(obtained)) for expected, obtained in found]


def test_best_precomputation(tmp_path):
    for menu in ("support", "all"):
        own = (f"--menu={menu}", "--penalty=1e-6", f"--output_dir={tmp_path}")
        played = as_expected(printed("best_precomputation", *own), "Played out")
        answers = result_of(tmp_path)
        assert len(played) == 2 and all(both[0] == pytest.approx(both[1], abs=2e-6) for both in played)
        assert [answer["menu"] for answer in answers] == [menu, menu]
        # Pure moves, and with all of them the best response to a uniform opponent.
        memorized = [state for answer in answers for state in answer["memorized"]]
        assert all(list(state["plays"].values()) == [1.0] for state in memorized)
        assert [answer["utility"] for answer in answers] == pytest.approx([0.5, 5 / 12])
    # A game without strings of information states.
    flags = ["--game=breakthrough(rows=4,columns=2)", "--sigma_pre=random(seed=1,concentration=0.2)"]
    flags += ["--leaf_value=rollouts", "--penalty=0.05", "--player=0", f"--output_dir={tmp_path}"]
    printed("best_precomputation", *flags)
    (answer,) = result_of(tmp_path)
    assert answer["size"] == len(answer["memorized"])


def test_meta_equilibrium(tmp_path):
    printed_text = printed("meta_equilibrium", f"--output_dir={tmp_path}")
    answer = result_of(tmp_path)
    assert abs(answer["value"] - answer["exact_value"]) <= answer["nash_conv"] + 1e-9
    assert answer["nash_conv"] <= 1e-6 and answer["converged"] and answer["solver"] == "double_oracle"
    assert "Not converged" not in printed_text and "only because the other prepares" in printed_text
    assert "2: Bet" in printed("meta_equilibrium", "--menu", "--penalty_0=0.05")
    short = printed("meta_equilibrium", "--iterations=10", "--penalty_1=inf")
    assert "Not converged: --target_nash_conv=1e-06 takes more --iterations" in short


# -- Kuhn poker, where both prepare ------------------------------------------------------------------


def exploited(folder):
    """Return the table of exploitability as numbers."""
    rows = table(folder / "exploitability.csv")
    return [{key: float(text) for key, text in row.items()} for row in rows]


def test_kuhn_exploitability(tmp_path):
    printed_text = printed("kuhn_exploitability", f"--output_dir={tmp_path}")
    rows = exploited(tmp_path)
    for row in rows:
        assert row["nash_conv"] <= 1e-6
        assert abs(row["value"] - row["exact_value"]) <= row["nash_conv"] + 1e-9
        costs = row["penalty"] * (row["size_0"] - row["size_1"])
        assert row["value"] == pytest.approx(row["utility"] - costs, abs=1e-9)
        assert row["exploitability"] == pytest.approx(-(row["guaranteed_0"] + row["guaranteed_1"]) / 2)
    # Memory for nothing: about sigma_pre, which is nearly an equilibrium of Kuhn poker, whose value is -1/18.
    assert rows[0]["value"] == pytest.approx(-1 / 18, abs=1e-4) and rows[0]["exploitability"] < 2e-3
    # Memory too dear: uniform play, whose NashConv is 11/12.
    assert rows[-1]["value"] == pytest.approx(1 / 8, abs=1e-5)
    assert rows[-1]["exploitability"] == pytest.approx(11 / 24, abs=1e-5)
    assert as_expected(printed_text, "Values within") == [(len(rows), len(rows))] * 2
    assert as_expected(printed_text, "Exploitability at an infinite penalty") == [(0.458333, 0.458333)]
    settings = result_of(tmp_path, "settings.json")
    assert settings["infosets"] == [6, 6]
    assert settings["prepared"]["nobody"]["exploitability"] == pytest.approx(11 / 24)
    assert settings["prepared"]["both"]["utility"] == pytest.approx(-1 / 18, abs=1e-3)
    # At 0.1, player 1 memorizes one information state and player 0 none: the one that helps player 1 most,
    # among policies of the base game that are made by hand, by OpenSpiel.
    (row,) = [row for row in rows if row["penalty"] == 0.1]
    assert (row["size_0"], row["size_1"]) == pytest.approx((0.0, 1.0), abs=1e-4)
    game = pyspiel.load_game("kuhn_poker")
    pre, found = make_policy(game, "cfr(iterations=300)"), []
    for state in openspiel_policy.TabularPolicy(game).states:
        if state.current_player() == 1:
            played = openspiel_policy.TabularPolicy(game)
            row_there = played.policy_for_key(state.information_state_string())
            for action, p in pre.action_probabilities(state).items():
                row_there[action] = p
            utility = exploitability.best_response(game, played, 0)["on_policy_values"][0]
            found.append((utility, exploitability.exploitability(game, played)))
    assert (row["utility"], row["exploitability"]) == pytest.approx(min(found), abs=1e-4)


def test_kuhn_exploitability_where_one_player_prepares(tmp_path):
    flags = ("--player=1", "--penalty_values=0.2,0.02,0.02", "--exact_infosets=0")
    printed_text = printed("kuhn_exploitability", *flags, f"--output_dir={tmp_path}")
    rows = exploited(tmp_path)
    assert [row["penalty"] for row in rows] == [0.02, 0.2]
    game = pyspiel.load_game("kuhn_poker")
    pre, sigma = make_policy(game, "cfr(iterations=300)"), make_policy(game, "uniform")
    for row in rows:
        best = best_precomputation(expand(game, pre, sigma, (math.inf, row["penalty"])), 1)
        assert row["size_0"] == 0.0 and math.isnan(row["exact_value"])
        assert -row["value"] == pytest.approx(best.value, abs=2e-6)
    assert as_expected(printed_text, "Values within NashConv") == [(0.0, 0.0)]


def test_kuhn_exploitability_of_another_game(tmp_path):
    """Turn-based Goofspiel with three cards, pure policies, and too few iterations."""
    game = "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=3,points_order=descending))"
    flags = [f"--game={game}", "--sigma=random(seed=1)", "--sigma_pre=best_response(to=uniform)"]
    flags += ["--penalty_values=0.0001,0.01,1", "--iterations=3", f"--output_dir={tmp_path}"]
    printed_text = printed("kuhn_exploitability", *flags)
    assert "NashConv is above --target_nash_conv" in printed_text and "Kuhn" not in printed_text
    assert as_expected(printed_text, "Values within NashConv") == [(3.0, 3.0)]
    ((expected, obtained),) = as_expected(printed_text, "Exploitability at an infinite penalty")
    sigma = result_of(tmp_path, "settings.json")["prepared"]["nobody"]
    assert expected == obtained == pytest.approx(sigma["exploitability"], abs=1e-6)


def test_a_game_has_a_folder_named_after_its_string(tmp_path):
    """The policies are such that exploitability is not bounded by that of either one."""
    flags = ("--sigma=random(seed=1)", "--sigma_pre=random(seed=2)", "--penalty_values=0.01,1")
    for game in ("kuhn_poker", "kuhn_poker(players=2)"):
        printed_text = printed("kuhn_exploitability", f"--game={game}", *flags, cwd=tmp_path)
    assert "At 1 of 2 penalties less exploitable than sigma and sigma_pre alike" in printed_text
    one = tmp_path / "output" / "kuhn_exploitability"
    other = one.with_name("kuhn_exploitability_kuhn_poker_players_2")
    assert exploited(one) == exploited(other)
    assert [result_of(each, "settings.json")["game"] for each in (one, other)] == ["kuhn_poker", game]
    pictures = {"exploitability.png", "iterations.png"}
    assert files(one).keys() == files(other).keys() == pictures | {"exploitability.csv", "settings.json"}
    assert all(is_png(one / name) for name in pictures)
    prepared, mixed = result_of(one, "settings.json")["prepared"], exploited(one)[0]["exploitability"]
    assert mixed < min(prepared[who]["exploitability"] for who in ("nobody", "both")) - 0.01


# -- search ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "flags"),
    [
        ("", "--r_values=0.01,5 --check_games=200"),
        ("connect_four(rows=4,columns=4)", "--leaf_value=evaluator --sigma_pre=mcts(simulations=200)"),
        ("breakthrough(rows=4,columns=3)", "--leaf_value=rollouts --sigma_pre=mcts(simulations=200)"),
    ],
)
# Costs seconds: a run of the example.
def test_search_precomputation(game, flags, tmp_path):
    small = [f"--game={game}", "--r_values=0.2", "--rollout_games=20", "--check_games=0"] if game else []
    printed_text = printed("search_precomputation", *small, *flags.split(), f"--output_dir={tmp_path}")
    rows, settings = table(tmp_path / "search_precomputation.csv"), result_of(tmp_path, "settings.json")
    assert [(row["prepares"], float(row["r"])) for row in rows] == [
        (side, r) for r in settings["r_values"] for side in ("player 0", "player 1", "both")
    ]
    assert is_png(tmp_path / "search_precomputation.png")
    if game:
        return
    for row in rows:
        penalty, sign = (0.05, -1.0) if row["prepares"] == "both" else (0.02, 1.0)
        cost = penalty * (float(row["size_0"]) + sign * float(row["size_1"]))
        assert float(row["value"]) == pytest.approx(float(row["utility"]) - cost, abs=1e-9)
    # Against an opponent who hardly varies, a book of a few positions wins.
    assert float(rows[0]["utility"]) > 0.99 and float(rows[0]["unprepared"]) < 0.7
    errors = re.findall(r"^Played out.*error ([^,]+),", printed_text, re.MULTILINE)
    for (expected, obtained), error in zip(as_expected(printed_text, "Played out"), errors, strict=True):
        assert obtained == pytest.approx(expected, abs=4 * float(error) + 1e-9)
    assert len(errors) == 2 and settings["sigma_pre"] == "pvs(depth=6)"


def test_search_match(tmp_path):
    flags = ("--game=tic_tac_toe", "--first=pvs(depth=9)", "--second=uniform", "--games=7", "--seed=3")
    for name in "ab":
        printed_text = printed("search_match", *flags, f"--output_dir={tmp_path / name}")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    rows = table(tmp_path / "a" / "games.csv")
    assert [row["seat_of_first"] for row in rows] == ["0", "1", "0", "1", "0", "1", "0"]
    openings = [row["moves"].split()[:2] for row in rows]
    assert openings[0] == openings[1] and openings[2] == openings[3]
    mean = sum(float(row["utility_of_first"]) for row in rows) / 7
    assert f"{mean:.4f}" in printed_text and mean > 0.4
    with_chance = ("--first=alpha_beta(depth=2)", "--second=mcts(simulations=50)", "--games=2")
    printed("search_match", "--game=pig(winscore=15)", *with_chance)


# -- bounds, clocks and certificates -----------------------------------------------------------------


def bounds_are_bounds(rows):
    for row in rows:
        assert float(row["bound"]) <= float(row["construction"]) + 1e-9 <= float(row["optimum"]) + 2e-9


def test_entropy_bounds(tmp_path):
    flags = ["--r_values=0.02,5", "--position_price=0.01", f"--output_dir={tmp_path}"]
    assert "so it is." in printed("entropy_bounds", *flags)
    rows = table(tmp_path / "entropy_bounds.csv")
    bounds_are_bounds(rows)
    assert all(float(row["equilibrium_entropy"]) >= float(row["demanded"]) for row in rows)
    assert [row["r"] for row in rows] == ["0.02", "5.0"] and is_png(tmp_path / "entropy_bounds.png")


def test_clock_precomputation(tmp_path):
    printed("clock_precomputation", "--times=3,6", f"--output_dir={tmp_path}")
    short, long = table(tmp_path / "clock_precomputation.csv")
    assert is_png(tmp_path / "clock_precomputation.png")
    assert float(short["both: value"]) > float(short["moves only: value"])
    # Moves that the search would have found are learnt for the time that they save.
    assert int(short["time only: size"]) == int(short["time only: same moves"]) > 0
    assert float(short["time only: value"]) > float(short["unprepared"])
    assert float(long["unprepared"]) > float(short["unprepared"])


# Costs seconds: runs of the example.
def test_certified_preparation(tmp_path):
    printed_text = printed("certified_preparation", "--epsilon=0.3", f"--output_dir={tmp_path}")
    found = result_of(tmp_path)
    assert found["reached"] and found["upper"] - found["lower"] <= 0.3 and found["confidence"] == 0.95
    assert "Theorem 3" in printed_text and "by dynamic programming" in printed_text
    assert found["lower"] <= float(printed_text.split("Expected")[1].split()[0]) <= found["upper"]
    flags = ("--epsilon=0.1", "--limit=3000", "--nocompare", f"--output_dir={tmp_path}")
    limited = printed("certified_preparation", *flags)
    assert "Stopped at --limit" in limited and "Theorem 3" not in limited
    assert is_png(tmp_path / "interval.png")
    # Of connect four, exact values would look at every game.
    own = ["--game=connect_four", "--sigma=uniform", "--sigma_pre=alpha_beta(depth=1)", "--epsilon=0.6"]
    own += ["--position_price=0.05", "--nocompare", f"--output_dir={tmp_path}"]
    printed("certified_preparation", *own)
    assert result_of(tmp_path)["reached"]


# -- correlated equilibria ---------------------------------------------------------------------------


@pytest.mark.slow("all of the paper's table")
def test_table_1_and_figure_2(tmp_path):
    flags = ("--rows=1,2", "--seeds=1", "--stitch=1", "--figure=row2", "--iterations=500")
    printed_text = printed("efce_resolving", *flags, f"--output_dir={tmp_path}")
    rows = table(tmp_path / "table_1.csv")
    assert len(rows) == 8 and all(row["pairs"] == row["pairs_printed"] for row in rows)
    for row in rows:
        for value, paper in (("welfare_1e-2", "welfare_printed"), ("refined_1e-2", "refined_printed")):
            digits = len(row[paper].partition(".")[2])
            assert not row[paper] or float(row[value]) == pytest.approx(
                float(row[paper]), abs=0.5000001 * 10.0**-digits
            )
    violations = {"paper": [], "others": []}
    for row in table(tmp_path / "stitched.csv"):
        violations["paper" if row["bounds"] == "paper" else "others"].append(float(row["violation"]))
    assert max(violations["paper"]) > 1e-2 and max(violations["others"]) < 1e-6
    curve = [float(row["violation"]) for row in table(tmp_path / "figure_2.csv")]
    assert curve[-1] < 1e-4 < curve[0] and is_png(tmp_path / "figure_2.png")
    assert "expected 4, obtained 4.000000" in printed_text


@pytest.mark.parametrize(
    "flags",
    [
        "--resolve=lp",
        "--game=sheriff --resolve=regret --deviate=0.5 --seed=3",
        "--resolve=none --plays=3",
        "--game=sheriff(max_items=1,max_bribe=1,num_rounds=1) --blueprint=equilibrium --resolve=none "
        "--objective=0,1 --notion=efcce",
    ],
)
def test_mediator(flags, tmp_path):
    printed_text = printed("mediator", *flags.split(), f"--output_dir={tmp_path}")
    for play in result_of(tmp_path, "plays.json")["plays"]:
        gone = [False, False]
        for move in play["moves"]:
            assert not gone[move["player"]] or move["recommended"] is None
            gone[move["player"]] |= move["recommended"] != move["action"]
        assert len(play["refinements"]) >= ("--resolve=none" not in flags and len(play["moves"]) > 4)
        for entry in play["refinements"] if "--resolve=regret" not in flags else []:
            # In the units of what the players get: somebody may sink the other, for 1 and -2.
            assert entry["blueprint_welfare"] - 1e-7 < entry["welfare"] < -0.1 and entry["welfare"] >= -1.0
            assert entry["violation"] < 1e-7 and 0.0 < entry["probability"] < 1.0
            assert f"expected welfare from here {entry['blueprint_welfare']:.5f} -> " in printed_text


def test_mediator_draws_what_chance_does_by_its_seed(tmp_path):
    for name in "ab":
        printed_text = printed("mediator", "--game=goofspiel", "--plays=4", f"--output_dir={tmp_path / name}")
    assert "chance draws 'Deal" in printed_text
    plays, again = (result_of(tmp_path / name, "plays.json")["plays"] for name in "ab")
    assert [play["moves"] for play in plays] == [play["moves"] for play in again]
    for play in plays:
        assert [move["player"] for move in play["moves"]] == [-1, 0, 1, -1, 0, 1]
        (entry,) = play["refinements"]
        assert (entry["rounds"], len(entry["subgame"])) == (1, 3)
        # Of three prizes, 6 in all, none is lost in the rounds that are refined.
        assert entry["blueprint_welfare"] < entry["welfare"] <= sum(play["returns"]) + 1e-6
        assert entry["violation"] < 1e-7


def test_payoff_frontier(tmp_path):
    flags = ("--game=matrix_sh", "--objective=smaller", f"--output_dir={tmp_path}")
    assert "Best by smaller" in printed("payoff_frontier", *flags)
    corners = collections.defaultdict(list)
    for row in table(tmp_path / "frontier.csv"):
        corners[row["notion"]].append((float(row["utility_0"]), float(row["utility_1"])))
        assert not row["gap"] or float(row["gap"]) < 1e-9
    assert np.allclose(corners["efce"], [(2, 2), (1, 4 / 3), (1, 1), (4 / 3, 1)])
    assert len(corners["nfcce"]) == 4 and np.allclose(corners["nash"], [(1, 1), (2, 2)])
    assert is_png(tmp_path / "frontier.png")


# -- limited lookahead; test_parallel.py has its tasks in several processes --------------------------


def test_limited_lookahead_of_types(tmp_path):
    flags = ("--games=kuhn_poker", "--noise=independent", "--gammas=0,0.5", "--types=2,1", "--draws=2")
    printed_text = printed("limited_lookahead", *flags, "--workers=1", f"--output_dir={tmp_path}")
    assert set(files(tmp_path)) == {"types.csv", "draws.csv", "independent.png", "settings.json"}
    found = as_expected(printed_text)
    assert len(found) == 4 and all(expected == obtained for expected, obtained in found)
    rows = table(tmp_path / "types.csv")
    assert len(rows) == 2 * 2 * 4  # players, gammas, what commitments are made for
    # The values of Kuhn poker without noise on the page on limited lookahead.
    earned = {row["made_for"]: (float(row["against_1"]), float(row["against_2"])) for row in rows[:4]}
    assert earned["1"] == pytest.approx((1 / 6, -1 / 6), abs=1e-3)
    assert earned["2"] == pytest.approx((-1 / 18, -1 / 18), abs=1e-3)
    assert earned["worst"] == pytest.approx((-1 / 18, -1 / 18), abs=1e-3)
    for row in table(tmp_path / "draws.csv"):
        pair = float(row["against_1"]), float(row["against_2"])
        assert float(row["mean"]) == pytest.approx(sum(pair) / 2) and float(row["worst"]) == min(pair)


def test_limited_lookahead_with_favorable_ties(tmp_path):
    flags = ("--games=python_kj_poker", "--noise=cumulative", "--gammas=0.5", "--lookaheads=1", "--players=1")
    printed("limited_lookahead", *flags, "--draws=1", "--tie_breaking=favorable", f"--output_dir={tmp_path}")
    names = {"limited_lookahead.csv", "draws.csv", "cumulative.png", "settings.json"}
    assert set(files(tmp_path)) == names
    for row in table(tmp_path / "draws.csv"):
        assert row["optimal"] == "True"
        assert float(row["value"]) == pytest.approx(float(row["supremum"]), abs=1e-6)
