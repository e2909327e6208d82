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
from tests.examples.launcher import files, is_png, printed, result_of, table


@pytest.fixture
def ran(tmp_path):
    """Return a function that runs an example and returns its output; its files are in the test's folder."""

    def ran(example, flags=""):
        output = printed(example, *flags.split(), f"--output_dir={tmp_path}")
        assert all(map(is_png, tmp_path.glob("*.png")))
        return output

    return ran


def as_expected(output, begin=""):
    """Return the pairs of numbers that lines with such a begin expected and obtained."""
    number = r"[^,\s]+"
    found = re.findall(rf"^{begin}.*expected ({number}).* obtained ({number})", output, re.MULTILINE)
    return [(float(expected), float(obtained)) for expected, obtained in found]


def numbers(path):
    """Return the rows of a CSV file of numbers."""
    return [{key: float(text) for key, text in row.items()} for row in table(path)]


def test_best_precomputation(ran, tmp_path):
    for menu in ("support", "all"):
        played = as_expected(ran("best_precomputation", f"--menu={menu} --penalty=1e-6"), "Played out")
        assert len(played) == 2 and all(both[0] == pytest.approx(both[1], abs=2e-6) for both in played)
        # Pure moves, and with all of them the best response to a uniform opponent.
        answers = result_of(tmp_path)
        memorized = [state for answer in answers for state in answer["memorized"]]
        assert all(list(state["plays"].values()) == [1.0] for state in memorized)
        assert [(answer["menu"], answer["utility"]) for answer in answers] == [
            (menu, pytest.approx(utility)) for utility in (0.5, 5 / 12)
        ]
    # A game without strings of information states.
    game = "--game=breakthrough(rows=4,columns=2) --sigma_pre=random(seed=1,concentration=0.2)"
    ran("best_precomputation", f"{game} --leaf_value=rollouts --penalty=0.05 --player=0")
    (answer,) = result_of(tmp_path)
    assert answer["size"] == len(answer["memorized"])


def test_meta_equilibrium(ran, tmp_path):
    output, answer = ran("meta_equilibrium"), result_of(tmp_path)
    assert abs(answer["value"] - answer["exact_value"]) <= answer["nash_conv"] + 1e-9
    assert answer["nash_conv"] <= 1e-6 and answer["converged"] and answer["solver"] == "double_oracle"
    assert "Not converged" not in output and "only because the other prepares" in output
    assert "2: Bet" in ran("meta_equilibrium", "--menu --penalty_0=0.05")
    short = ran("meta_equilibrium", "--iterations=10 --penalty_1=inf")
    assert "Not converged: --target_nash_conv=1e-06 takes more --iterations" in short


# -- Kuhn poker, where both prepare ------------------------------------------------------------------


def test_kuhn_exploitability(ran, tmp_path):
    output, rows = ran("kuhn_exploitability"), numbers(tmp_path / "exploitability.csv")
    for row in rows:
        assert row["nash_conv"] <= 1e-6
        assert abs(row["value"] - row["exact_value"]) <= row["nash_conv"] + 1e-9
        costs = row["penalty"] * (row["size_0"] - row["size_1"])
        assert row["value"] == pytest.approx(row["utility"] - costs, abs=1e-9)
        assert row["exploitability"] == pytest.approx(-(row["guaranteed_0"] + row["guaranteed_1"]) / 2)
    # Memory for nothing: about sigma_pre, which is nearly an equilibrium of Kuhn poker, whose value is -1/18.
    assert rows[0]["value"] == pytest.approx(-1 / 18, abs=1e-4) and rows[0]["exploitability"] < 2e-3
    # Memory too dear: uniform play, whose NashConv is 11/12.
    assert (rows[-1]["value"], rows[-1]["exploitability"]) == pytest.approx((1 / 8, 11 / 24), abs=1e-5)
    assert as_expected(output, "Values within") == [(len(rows), len(rows))] * 2
    assert as_expected(output, "Exploitability at an infinite penalty") == [(0.458333, 0.458333)]
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
            memorized = played.policy_for_key(state.information_state_string())
            for action, p in pre.action_probabilities(state).items():
                memorized[action] = p
            utility = exploitability.best_response(game, played, 0)["on_policy_values"][0]
            found.append((utility, exploitability.exploitability(game, played)))
    assert (row["utility"], row["exploitability"]) == pytest.approx(min(found), abs=1e-4)


def test_kuhn_exploitability_where_one_player_prepares(ran, tmp_path):
    output = ran("kuhn_exploitability", "--player=1 --penalty_values=0.2,0.02,0.02 --exact_infosets=0")
    rows = numbers(tmp_path / "exploitability.csv")
    assert [row["penalty"] for row in rows] == [0.02, 0.2]
    assert all(row["size_0"] == 0.0 < row["size_1"] and math.isnan(row["exact_value"]) for row in rows)
    assert as_expected(output, "Values within NashConv") == [(0.0, 0.0)]


def test_kuhn_exploitability_of_another_game(ran, tmp_path):
    """Turn-based Goofspiel with three cards, pure policies, and too few iterations."""
    game = "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=3,points_order=descending))"
    flags = f"--game={game} --sigma=random(seed=1) --sigma_pre=best_response(to=uniform)"
    output = ran("kuhn_exploitability", f"{flags} --penalty_values=0.0001,0.01,1 --iterations=3")
    assert "NashConv is above --target_nash_conv" in output and "Kuhn" not in output
    assert as_expected(output, "Values within NashConv") == [(3.0, 3.0)]
    ((expected, obtained),) = as_expected(output, "Exploitability at an infinite penalty")
    sigma = result_of(tmp_path, "settings.json")["prepared"]["nobody"]
    assert expected == obtained == pytest.approx(sigma["exploitability"], abs=1e-6)


def test_a_game_has_a_folder_named_after_its_string(tmp_path):
    """The policies are such that exploitability is not bounded by that of either one."""
    flags = ("--sigma=random(seed=1)", "--sigma_pre=random(seed=2)", "--penalty_values=0.01,1")
    for game in ("kuhn_poker", "kuhn_poker(players=2)"):
        output = printed("kuhn_exploitability", f"--game={game}", *flags, cwd=tmp_path)
    assert "At 1 of 2 penalties less exploitable than sigma and sigma_pre alike" in output
    one = tmp_path / "output" / "kuhn_exploitability"
    other = one.with_name("kuhn_exploitability_kuhn_poker_players_2")
    assert table(one / "exploitability.csv") == table(other / "exploitability.csv")
    assert [result_of(each, "settings.json")["game"] for each in (one, other)] == ["kuhn_poker", game]
    names = {"exploitability.png", "iterations.png", "exploitability.csv", "settings.json"}
    assert files(one).keys() == files(other).keys() == names
    prepared = result_of(one, "settings.json")["prepared"]
    mixed = numbers(one / "exploitability.csv")[0]["exploitability"]
    assert mixed < min(prepared[who]["exploitability"] for who in ("nobody", "both")) - 0.01


# -- search ------------------------------------------------------------------------------------------


# Costs seconds: a run of the example.
def test_search_precomputation(ran, tmp_path):
    output = ran("search_precomputation", "--r_values=0.01,5 --check_games=200")
    rows = table(tmp_path / "search_precomputation.csv")
    assert [(row["prepares"], row["r"]) for row in rows] == [
        (side, r) for r in ("0.01", "5.0") for side in ("player 0", "player 1", "both")
    ]
    for row in rows:
        penalty, sign = (0.05, -1.0) if row["prepares"] == "both" else (0.02, 1.0)
        cost = penalty * (float(row["size_0"]) + sign * float(row["size_1"]))
        assert float(row["value"]) == pytest.approx(float(row["utility"]) - cost, abs=1e-9)
    # Against an opponent who hardly varies, a book of a few positions wins.
    assert float(rows[0]["utility"]) > 0.99 and float(rows[0]["unprepared"]) < 0.7
    errors = re.findall(r"^Played out.*error ([^,]+),", output, re.MULTILINE)
    assert len(errors) == 2
    for (expected, obtained), error in zip(as_expected(output, "Played out"), errors, strict=True):
        assert obtained == pytest.approx(expected, abs=4 * float(error) + 1e-9)
    settings = result_of(tmp_path, "settings.json")
    assert settings["r_values"] == [0.01, 5.0] and settings["sigma_pre"] == "pvs(depth=6)"
    small = "--r_values=0.2 --rollout_games=20 --sigma_pre=mcts(simulations=200) --check_games=0"
    for other in (
        "--game=connect_four(rows=4,columns=4) --leaf_value=evaluator",
        "--game=breakthrough(rows=4,columns=3) --leaf_value=rollouts",
    ):
        ran("search_precomputation", f"{other} {small}")
        assert len(table(tmp_path / "search_precomputation.csv")) == 3


def test_search_match(ran, tmp_path):
    flags = "--game=tic_tac_toe --first=pvs(depth=9) --second=uniform --games=7 --seed=3"
    output, rows = ran("search_match", flags), table(tmp_path / "games.csv")
    again = files(tmp_path)
    assert ran("search_match", flags) and files(tmp_path) == again
    assert [row["seat_of_first"] for row in rows] == ["0", "1", "0", "1", "0", "1", "0"]
    openings = [row["moves"].split()[:2] for row in rows]
    assert openings[0] == openings[1] and openings[2] == openings[3]
    mean = sum(float(row["utility_of_first"]) for row in rows) / 7
    assert f"{mean:.4f}" in output and mean > 0.4
    ran(
        "search_match",
        "--game=pig(winscore=15) --first=alpha_beta(depth=2) --second=mcts(simulations=50) --games=2",
    )


# -- bounds, clocks and certificates -----------------------------------------------------------------


def bounds_are_bounds(rows):
    for row in rows:
        assert float(row["bound"]) <= float(row["construction"]) + 1e-9 <= float(row["optimum"]) + 2e-9


def test_entropy_bounds(ran, tmp_path):
    assert "so it is." in ran("entropy_bounds", "--r_values=0.02,5 --position_price=0.01")
    rows = table(tmp_path / "entropy_bounds.csv")
    bounds_are_bounds(rows)
    assert all(float(row["equilibrium_entropy"]) >= float(row["demanded"]) for row in rows)
    assert [row["r"] for row in rows] == ["0.02", "5.0"] and (tmp_path / "entropy_bounds.png").exists()


def test_clock_precomputation(ran, tmp_path):
    ran("clock_precomputation", "--times=3,6")
    short, long = table(tmp_path / "clock_precomputation.csv")
    assert (tmp_path / "clock_precomputation.png").exists()
    assert float(short["both: value"]) > float(short["moves only: value"])
    # Moves that the search would have found are learnt for the time that they save.
    assert int(short["time only: size"]) == int(short["time only: same moves"]) > 0
    assert float(short["time only: value"]) > float(short["unprepared"])
    assert float(long["unprepared"]) > float(short["unprepared"])


# Costs seconds: runs of the example.
def test_certified_preparation(ran, tmp_path):
    output, found = ran("certified_preparation", "--epsilon=0.3"), result_of(tmp_path)
    assert found["reached"] and found["upper"] - found["lower"] <= 0.3 and found["confidence"] == 0.95
    assert "Theorem 3" in output and "by dynamic programming" in output
    assert found["lower"] <= float(output.split("Expected")[1].split()[0]) <= found["upper"]
    limited = ran("certified_preparation", "--epsilon=0.1 --limit=3000 --nocompare")
    assert "Stopped at --limit" in limited and "Theorem 3" not in limited
    assert (tmp_path / "interval.png").exists()
    # Of connect four, exact values would look at every game.
    flags = "--game=connect_four --sigma=uniform --sigma_pre=alpha_beta(depth=1) --epsilon=0.6"
    ran("certified_preparation", f"{flags} --position_price=0.05 --nocompare")
    assert result_of(tmp_path)["reached"]


# -- correlated equilibria ---------------------------------------------------------------------------


@pytest.mark.slow("all of the paper's table")
def test_table_1_and_figure_2(ran, tmp_path):
    output = ran("efce_resolving", "--rows=1,2 --seeds=1 --stitch=1 --figure=row2 --iterations=500")
    rows = table(tmp_path / "table_1.csv")
    assert len(rows) == 8 and all(row["pairs"] == row["pairs_printed"] for row in rows)
    for row in rows:
        for value, paper in (("welfare_1e-2", "welfare_printed"), ("refined_1e-2", "refined_printed")):
            rounding = 0.5000001 * 10.0 ** -len(row[paper].partition(".")[2])
            assert not row[paper] or float(row[value]) == pytest.approx(float(row[paper]), abs=rounding)
    violations = {"paper": [], "others": []}
    for row in table(tmp_path / "stitched.csv"):
        violations["paper" if row["bounds"] == "paper" else "others"].append(float(row["violation"]))
    assert max(violations["paper"]) > 1e-2 and max(violations["others"]) < 1e-6
    curve = [float(row["violation"]) for row in table(tmp_path / "figure_2.csv")]
    assert curve[-1] < 1e-4 < curve[0] and (tmp_path / "figure_2.png").exists()
    assert "expected 4, obtained 4.000000" in output


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
def test_mediator(flags, ran, tmp_path):
    output = ran("mediator", flags)
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
            assert f"expected welfare from here {entry['blueprint_welfare']:.5f} -> " in output


def test_mediator_draws_what_chance_does_by_its_seed(ran, tmp_path):
    found = []
    for _ in range(2):
        assert "chance draws 'Deal" in ran("mediator", "--game=goofspiel --plays=4")
        found.append(result_of(tmp_path, "plays.json")["plays"])
    plays, again = found
    assert [play["moves"] for play in plays] == [play["moves"] for play in again]
    for play in plays:
        assert [move["player"] for move in play["moves"]] == [-1, 0, 1, -1, 0, 1]
        (entry,) = play["refinements"]
        assert (entry["rounds"], len(entry["subgame"])) == (1, 3)
        # Of three prizes, 6 in all, none is lost in the rounds that are refined.
        assert entry["blueprint_welfare"] < entry["welfare"] <= sum(play["returns"]) + 1e-6
        assert entry["violation"] < 1e-7


def test_payoff_frontier(ran, tmp_path):
    assert "Best by smaller" in ran("payoff_frontier", "--game=matrix_sh --objective=smaller")
    corners = collections.defaultdict(list)
    for row in table(tmp_path / "frontier.csv"):
        corners[row["notion"]].append((float(row["utility_0"]), float(row["utility_1"])))
        assert not row["gap"] or float(row["gap"]) < 1e-9
    assert np.allclose(corners["efce"], [(2, 2), (1, 4 / 3), (1, 1), (4 / 3, 1)])
    assert len(corners["nfcce"]) == 4 and np.allclose(corners["nash"], [(1, 1), (2, 2)])
    assert (tmp_path / "frontier.png").exists()


# -- limited lookahead; test_parallel.py has its tasks in several processes --------------------------


def test_limited_lookahead_of_types(ran, tmp_path):
    flags = "--games=kuhn_poker --noise=independent --gammas=0,0.5 --types=2,1 --draws=2 --workers=1"
    found = as_expected(ran("limited_lookahead", flags))
    assert set(files(tmp_path)) == {"types.csv", "draws.csv", "independent.png", "settings.json"}
    assert len(found) == 4 and all(expected == obtained for expected, obtained in found)
    rows = table(tmp_path / "types.csv")
    assert len(rows) == 2 * 2 * 4  # players, gammas, what commitments are made for
    # The values of Kuhn poker without noise on the page on limited lookahead.
    earned = {row["made_for"]: (float(row["against_1"]), float(row["against_2"])) for row in rows[:4]}
    assert earned["1"] == pytest.approx((1 / 6, -1 / 6), abs=1e-3)
    for kind in ("2", "worst"):
        assert earned[kind] == pytest.approx((-1 / 18, -1 / 18), abs=1e-3)
    for row in table(tmp_path / "draws.csv"):
        pair = float(row["against_1"]), float(row["against_2"])
        assert float(row["mean"]) == pytest.approx(sum(pair) / 2) and float(row["worst"]) == min(pair)


def test_limited_lookahead_with_favorable_ties(ran, tmp_path):
    flags = "--games=python_kj_poker --noise=cumulative --gammas=0.5 --lookaheads=1 --players=1 --draws=1"
    ran("limited_lookahead", f"{flags} --tie_breaking=favorable")
    names = {"limited_lookahead.csv", "draws.csv", "cumulative.png", "settings.json"}
    assert set(files(tmp_path)) == names
    for row in table(tmp_path / "draws.csv"):
        assert row["optimal"] == "True"
        assert float(row["value"]) == pytest.approx(float(row["supremum"]), abs=1e-6)
