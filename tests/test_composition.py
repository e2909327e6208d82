"""OpenSpiel's algorithms run unchanged on the meta-game and agree with its exact value.

What is tested stands in the tables of docs/composition.md: the calls there are the text that is evaluated
here, with the numbers of iterations and of games, and within the tolerances. After a change of a row:

    python -m tests.test_composition            # measures again, and writes the last columns of the tables
    python -m tests.test_composition learners   # of that table alone
    python -m tests.test_composition --noise    # what 30 seeds of the rows with noise do

A solver's row holds if its average policy has a NashConv of at most the tolerance, by our passes over the
tree and by OpenSpiel, and a value that is no further off the linear program's. The second follows from the
first in any zero-sum game, so sampled policies need no margin there. The tolerance of a row with noise is the
mean over the seeds and four standard deviations, in the form in which it is larger, rounded up; of learners
without noise one seed is measured, and another machine may show twice as much.
"""

import contextlib
import functools
import importlib
import math
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pyspiel
import pytest
from open_spiel.python import rl_agent_policy, rl_environment, rl_tools
from open_spiel.python.algorithms import exploitability, get_all_states, ismcts, mcts
from open_spiel.python.bots import policy as policy_bot
from open_spiel.python.bots import uniform_random

from precomp_games import HistoryTree, Menu, MetaPrecomputationGame, to_efg
from precomp_games.algorithms import meta_exploitability
from precomp_games.algorithms.meta.policies import MetaGamePolicy, strategies_from_policy
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from precomp_games.tree.meta_strategy import MetaStrategy
from tests.oracles import books
from tests.oracles.games import random_policy, random_tree

_DOC = Path(__file__).resolve().parents[1] / "docs" / "composition.md"
FORMS = ("audit", "reweighted")
KUHN, BOARD, TREE, MENU = GAMES = "Kuhn poker", "tic-tac-toe", "random tree", "rock, paper, scissors"
SEED = 1
_ALGORITHMS = re.findall(
    r"\w+",
    "action_value action_value_vs_best_response best_response cfr cfr_br discounted_cfr efr evaluate_bots "
    "expected_game_score exploitability external_sampling_mccfr fictitious_play gambit get_all_states "
    "mmd_dilated outcome_sampling_mccfr random_agent tabular_qlearner",
)


# -- the tables of the document ----------------------------------------------------------------------


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def lines_of(table):
    """Return the lines of a table: its head, what stands below that, and its rows."""
    match = re.search(rf"<!-- {table}: [^>]*-->\n(.*?)<!-- end -->", _DOC.read_text("utf-8"), re.DOTALL)
    return match[1].splitlines()


@functools.cache
def rows_of(table):
    """Return the rows of a table, each by the heads of its columns, with its call."""
    head, _, *lines = map(cells_of, lines_of(table))
    return [dict(zip(head, cells, strict=True)) | {"call": cells[0].strip("`")} for cells in lines]


def noise_of(row):
    """Return the mean and standard deviation of a row with noise; [] without."""
    return [float(number) for number in row["noise"].split(" ± ")] if row["noise"] else []


def algorithm(name):
    return importlib.import_module(f"open_spiel.python.algorithms.{name}")


# -- the games ---------------------------------------------------------------------------------------


def _two_moves(seed):
    """Return a policy of tic-tac-toe: two moves on each board, which are the same for every seed."""

    @functools.cache
    def row(board, actions):
        if len(actions) == 1:
            return {actions[0]: 1.0}
        moves = sorted(np.random.default_rng([9, *board.encode()]).permutation(len(actions))[:2])
        first = float(np.random.default_rng([seed, *board.encode()]).uniform(0.1, 0.9))
        return {actions[moves[0]]: first, actions[moves[1]]: 1.0 - first}

    return lambda state: row(str(state), tuple(state.legal_actions()))


@functools.cache
def tree_of(name):
    (row,) = (row for row in rows_of("games") if row["game"] == name)
    penalties = tuple(map(float, row["penalties"].split(", ")))
    if name == KUHN:
        spec = "game=kuhn_poker(),sigma=random(seed=9),sigma_pre=random(seed=5)"
        text = f"python_meta_precomputation({spec},penalty_0={penalties[0]},penalty_1={penalties[1]})"
        return pyspiel.load_game(text).tree
    if name == TREE:  # perfect information, chance, utilities of sum 1
        game = random_tree(18, depth=4, actions=2)
        policies = [random_policy(72 + k) for k in range(4)]
    elif name == MENU:  # player 1 moves without seeing player 0's move, and chooses which one to memorize
        game = pyspiel.load_game("turn_based_simultaneous_game(game=matrix_rps())")
        policies = [random_policy(124 + k, by="infoset") for k in range(4)]
        policies[1] = Menu.of_actions()
    else:
        game = pyspiel.load_game("tic_tac_toe")
        policies = [_two_moves(336 + k) for k in range(4)]
    return HistoryTree.from_game(game, sigma_pre=policies[:2], sigma=policies[2:], penalties=penalties)


@functools.cache
def exact(name):
    return meta_sequence_form_lp(tree_of(name))


@functools.cache
def names_of(name, form):
    """Return the names in calls that are evaluated: OpenSpiel's modules, the game, and things made of it."""
    game = MetaPrecomputationGame(tree_of(name), form)
    return {
        **{module: algorithm(module) for module in _ALGORITHMS},
        **{"policy_bot": policy_bot, "uniform_random": uniform_random, "rl_tools": rl_tools},
        **{"pyspiel": pyspiel, "np": np, "to_efg": to_efg, "game": game, "seed": SEED},
        "cached": pyspiel.convert_to_cached_tree(game),
        "efg": pyspiel.load_efg_game(to_efg(game)),
        "exported": pyspiel.load_efg_game(algorithm("gambit").export_gambit(game)),
    }


def measured_game(row):
    games = [names_of(row["game"], form)["game"] for form in FORMS]
    return [exact(row["game"]).value, games[0].rules.branches[0], *(game.max_utility() for game in games)]


@pytest.mark.parametrize("name", GAMES)
def test_the_games_are_those_of_the_document_and_their_equilibria_mix(name):
    (row,) = (row for row in rows_of("games") if row["game"] == name)
    found, tree = exact(name), tree_of(name)
    assert row["penalties"] == ", ".join(f"{penalty:g}" for penalty in tree.penalties)
    assert row["information states"] == str(tree.num_infosets)
    assert float(row["value"]) == pytest.approx(found.value, rel=0.05)
    measured = meta_exploitability(tree, found.strategies)
    assert measured.nash_conv <= 1e-9 and abs(measured.value - found.value) <= 1e-9
    assert any(0.0 < p < 1.0 for strategy in found.strategies for p in strategy.memorize)


# -- solvers -----------------------------------------------------------------------------------------


# What solvers call a step of theirs, and what they have found so far.
_STEPS = ("evaluate_and_update_policy", "run_iteration", "iteration", "update_sequences")
_AVERAGES = ("average_policy", "get_avg_policies")


def method(thing, names):
    """Return the first of these methods that a thing has."""
    return next(getattr(thing, name) for name in names if hasattr(thing, name))


def solve(row, form, seed=SEED):
    """Return (what the average policy measures as, that policy); the solver is kept for its policy."""
    name, names = row["game"], names_of(row["game"], form) | {"seed": seed}
    np.random.seed(seed)  # noqa: NPY002  (Python's MCCFR draws from it)
    made = eval(row["call"], names)
    for _ in range(int(row["iterations"])):
        method(made, _STEPS)()
    policy = method(made, _AVERAGES)()
    if "(efg" in row["call"]:  # whose information states have other names
        value = pyspiel.expected_returns(names["efg"].new_initial_state(), policy, -1, True)[0]
        found: Any = types.SimpleNamespace(
            value=value + names["game"].value_shift, nash_conv=pyspiel.nash_conv(names["efg"], policy)
        )
    else:
        strategies = strategies_from_policy(names["game"], policy)
        found = meta_exploitability(tree_of(name), strategies)
    return found, policy, made


def measured_solver(row):
    measured, off = [], []
    for form in FORMS:
        found, policy, _kept = solve(row, form)
        game = names_of(row["game"], form)["efg" if "(efg" in row["call"] else "cached"]
        openspiel = pyspiel if isinstance(policy, pyspiel.Policy) else exploitability
        assert openspiel.nash_conv(game, policy) == pytest.approx(found.nash_conv, abs=1e-8)
        measured.append(found.nash_conv)
        off.append(abs(found.value - exact(row["game"]).value))
    if not row["noise"]:  # counterfactual values agree, so both forms take the same steps
        assert measured[0] == pytest.approx(measured[1], rel=1e-3)
    return [*measured, max(off)]


# -- learners ----------------------------------------------------------------------------------------


def play_episodes(environment, agents, episodes):
    """Lets agents learn; only those that moved receive the end, which is all that `QLearner` accepts."""
    for _ in range(episodes):
        step, moved = environment.reset(), set()
        while not step.last():
            player = step.observations["current_player"]
            moved.add(player)
            step = environment.step([agents[player].step(step).action])
        for player in moved:
            agents[player].step(step)


def normalized(row):
    """Networks answer in single precision."""
    total = sum(map(float, row.values()))
    return {action: float(p) / total for action, p in row.items()}


def learn(row, form, seed=SEED):
    """Let agents learn by playing each other on the Kuhn meta-game, and measure the result on the tree."""
    names = names_of(KUHN, form) | {"seed": seed}
    if "nfsp" in row["call"] or "deep_cfr" in row["call"]:  # which the library does without
        pytest.importorskip("jax")
        from open_spiel.python.jax import deep_cfr, nfsp

        names |= {"deep_cfr": deep_cfr, "nfsp": nfsp}
    np.random.seed(seed)  # noqa: NPY002  (Q-learners draw from it)
    made, game = eval(row["call"], names), names["game"]
    with contextlib.ExitStack() as modes:
        if isinstance(made, list):
            sampler = rl_environment.ChanceEventSampler(seed=seed)
            environment = rl_environment.Environment(game, chance_event_sampler=sampler)
            play_episodes(environment, made, int(row["episodes"] or 0))
            for agent in made:  # what NFSP has learned is its average policy
                if hasattr(agent, "temp_mode_as"):
                    modes.enter_context(agent.temp_mode_as(type(agent.mode).AVERAGE_POLICY))
            policy: Any = rl_agent_policy.JointRLAgentPolicy(game, dict(enumerate(made)), False)
        else:
            policy = made
            made.solve()
        learned = policy.action_probabilities
        strategies = strategies_from_policy(game, lambda state: normalized(learned(state)))
    return meta_exploitability(tree_of(KUHN), strategies), made


def measured_learner(row):
    found = [learn(row, form)[0] for form in FORMS]
    return [x.nash_conv for x in found] + [max(abs(x.value - exact(KUHN).value) for x in found)]


# -- evaluators and exact solvers --------------------------------------------------------------------


def evaluate(row, name, form):
    """Return the largest difference from the tree's value, at the equilibrium and at random strategies."""
    tree, rng, names, differences = tree_of(name), np.random.default_rng(0), names_of(name, form), []
    drawn = rng.uniform(size=(2, tree.num_entries)) / np.diff(tree.first_entry)[tree.entry_infoset]
    game = names["game"]
    for strategies in (exact(name).strategies, tuple(MetaStrategy(tree, i, drawn[i]) for i in (0, 1))):
        policy = MetaGamePolicy(game, strategies)
        found = meta_exploitability(tree, strategies)
        expected = {
            "value": found.value - game.value_shift,
            "best responses": np.array(found.best_responses) - game.value_shift,
            "NashConv": found.nash_conv,
            "NashConv / 2": found.exploitability,
        }[row["gives"]]
        given = {"state": game.new_initial_state(), "policy": policy, "cpp": policy.to_pyspiel()}
        given["walked"] = names["action_value"].TreeWalkCalculator(game)
        differences.append(np.abs(np.array(eval(row["call"], names | given)) - expected).max())
    return float(max(differences))


def measured_evaluator(row):
    return [max(evaluate(row, name, form) for name in GAMES) for form in FORMS]


def with_cvxpy():
    pytest.importorskip("cvxpy")
    pytest.importorskip("ecos")
    return {name: algorithm(name) for name in ("sequence_form_lp", "lp_solver")}


def measured_exactly(row):
    found = []
    for form in FORMS:
        names = names_of(row["game"], form) | with_cvxpy()
        value = float(eval(row["call"], names)) + names["game"].value_shift
        found.append(abs(value - exact(row["game"]).value))
    return found


@pytest.mark.parametrize("name", GAMES)
def test_the_policies_of_the_sequence_form_lp(name):
    """They are quotients of the solver's weights, which can be slightly negative where nobody comes to."""

    def corrected(policy):
        def row(state):
            return normalized({a: max(p, 0.0) for a, p in policy.action_probabilities(state).items()})

        return row

    game = names_of(name, "audit")["game"]
    found = with_cvxpy()["sequence_form_lp"].solve_zero_sum_game(game)
    strategies = strategies_from_policy(game, [corrected(policy) for policy in found[2:4]])
    assert meta_exploitability(tree_of(name), strategies).nash_conv <= 1e-5


# -- play --------------------------------------------------------------------------------------------


def play(row, form):
    """[what the difference of the mean from the value may be, 4.5 standard errors, and what it is]"""
    name, games = row["game"], int(row["games"])
    names, tree, equilibrium = names_of(name, form), tree_of(name), exact(name).strategies
    game, rng = names["game"], np.random.default_rng(SEED)
    uniform = [MetaStrategy(tree, i, np.full(tree.num_infosets, 0.5)) for i in (0, 1)]
    kinds = {"equilibrium": equilibrium, "uniform": uniform}
    profile = tuple(kinds[kind][i] for i, kind in enumerate(row["profile"].split(" against ")))
    expected = meta_exploitability(tree, profile).value - game.value_shift
    start, played = game.new_initial_state(), [MetaGamePolicy(game, profile).action_probabilities] * 2
    variance = books.play_value(start, played, power=2) - books.play_value(start, played) ** 2
    policy = MetaGamePolicy(game, equilibrium)
    bots = eval(row["call"], names | {"policy": policy, "cpp": policy.to_pyspiel(), "rng": rng})
    start = names["cached" if "cached" in row["call"] else "game"].new_initial_state
    if "pyspiel." in row["call"]:  # bots of C++ play by C++
        won = sum(pyspiel.evaluate_bots(start(), bots, int(rng.integers(2**31)))[0] for _ in range(games))
    else:
        won = sum(names["evaluate_bots"].evaluate_bots(start(), bots, rng)[0] for _ in range(games))
    return [4.5 * math.sqrt(variance / games), abs(won / games - expected)]


def measured_play(row):
    return [part for form in FORMS for part in play(row, form)]


# -- walks, and what does not run --------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", GAMES)
def test_walks_see_the_whole_game_and_openspiel_s_own_export_has_the_value(name, form):
    names = names_of(name, form)
    game, information = names["game"], {}
    expected = sum(not state.is_chance_node() for state in books.states(game))
    for made in ("game", "cached", "efg", "exported"):
        found = get_all_states.get_all_states(
            names[made], include_terminals=True, to_string=lambda state: state.history_str()
        )
        if made in ("game", "cached"):
            assert len(found) == expected
        information[made] = {s.information_state_string() for s in found.values() if not s.is_terminal()}
        assert len(information[made]) == game.tree.num_infosets
    assert information["game"] == information["cached"]
    # The export has 16 decimals.
    solver = pyspiel.CFRPlusSolver(names["exported"])
    for _ in range(200):
        solver.evaluate_and_update_policy()
    average = solver.average_policy()
    nash_conv = pyspiel.nash_conv(names["exported"], average)
    value = pyspiel.expected_returns(names["exported"].new_initial_state(), average, -1, True)[0]
    assert nash_conv <= 1e-3
    assert abs(value + game.value_shift - exact(name).value) <= nash_conv + 1e-9


def test_what_does_not_run():
    """As docs/composition.md lists them; calls that crash the process are listed there alone."""
    game = names_of(KUHN, "audit")["game"]
    decision = game.new_initial_state().child(1).child(0)
    bot = ismcts.ISMCTSBot(game, mcts.RandomRolloutEvaluator(1), uct_c=1.0, max_simulations=5)
    with pytest.raises(pyspiel.SpielError, match="ResampleFromInfostate"):
        bot.step(decision)
    with pytest.raises(pyspiel.SpielError, match="UndoAction"):
        decision.undo_action(0, 0)
    pytest.importorskip("cvxpy")  # which value_iteration imports, and which nothing above needs
    with pytest.raises(AssertionError):
        algorithm("value_iteration").value_iteration(game, depth_limit=-1, threshold=1e-3)


# -- the rows ----------------------------------------------------------------------------------------

# By table: what measures a row, and how many rows there are, of which none may get lost.
MEASURES = {
    "games": (measured_game, 4),
    "solvers": (measured_solver, 51),
    "learners": (measured_learner, 4),
    "exact": (measured_exactly, 5),
    "evaluators": (measured_evaluator, 14),
    "play": (measured_play, 10),
}
ROWS = [(table, row) for table in list(MEASURES)[1:] for row in rows_of(table)]
NAMES = [f"{table}: `{row['call']}` {row.get('game', '')}" for table, row in ROWS]


def within(row, measured):
    """Return whether what was measured is within the tolerances; for play, every other number is one."""
    if "tolerance" in row:
        return max(measured) <= float(row["tolerance"])
    return measured[1] <= measured[0] and measured[3] <= measured[2]


@pytest.mark.parametrize(("table", "row"), ROWS, ids=NAMES)
def test_each_row_holds(table, row):
    assert within(row, MEASURES[table][0](row))


def test_what_the_document_shows_as_measured_is_within_its_tolerances():
    for table, (_, count) in MEASURES.items():
        assert len(rows_of(table)) == count
    for _, row in ROWS:
        heads = [f"{what}, {form}" for form in FORMS for what in ("tolerance", "NashConv", "off by")]
        assert within(row, [float(row[head]) for head in [*heads, "value off by"] if head in row])
        if row.get("noise"):  # sampling has room for its noise
            mean, deviation = noise_of(row)
            assert mean + 4.0 * deviation <= float(row["tolerance"]) <= 1.1 * (mean + 4.0 * deviation)


def write(only):
    for table in only or MEASURES:
        for line, row in zip(lines_of(table)[2:], rows_of(table), strict=True):
            style = ".4g" if table == "games" else ".1e"
            numbers = [format(value, style) for value in MEASURES[table][0](row)]
            new = f"| {' | '.join([*cells_of(line)[: -len(numbers)], *numbers])} |"
            print(new, flush=True)
            _DOC.write_text(_DOC.read_text("utf-8").replace(line, new), "utf-8")


def print_noise():
    for one, row, form in (
        (one, row, form)
        for table, one in (("solvers", solve), ("learners", learn))
        for row in filter(noise_of, rows_of(table))
        for form in FORMS
    ):
        found = [one(row, form, seed)[0].nash_conv for seed in range(30)]
        print(f"{row['call']}, {form}: {np.mean(found):.4f} {np.std(found):.4f}", flush=True)


if __name__ == "__main__":
    print_noise() if "--noise" in sys.argv[1:] else write(sys.argv[1:])
