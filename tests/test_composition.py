"""OpenSpiel's algorithms run unchanged on the meta-game and agree with its exact value.

What is tested stands in the tables of docs/composition.md: the calls there are the text that is evaluated
here, with the numbers of iterations and of games, and within the tolerances. After a change of a row:

    python -m tests.test_composition            # measures again, and writes the last columns of the tables
    python -m tests.test_composition learners   # of that table alone
    python -m tests.test_composition --noise    # what SEEDS seeds of the rows with noise do

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyspiel
import pytest
from open_spiel.python import rl_environment, rl_tools
from open_spiel.python.algorithms import action_value, exploitability, get_all_states, ismcts, mcts
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
SEED, SEEDS = 1, 30
_ALGORITHMS = re.findall(
    r"\w+",
    "action_value action_value_vs_best_response best_response cfr cfr_br discounted_cfr efr evaluate_bots "
    "expected_game_score exploitability external_sampling_mccfr fictitious_play gambit get_all_states "
    "mmd_dilated outcome_sampling_mccfr random_agent tabular_qlearner",
)


# -- the tables of the document --------------------------------------------------------------------

Row = dict[str, str]  # by the heads of the columns


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def lines_of(table: str) -> list[str]:
    """Return the lines of a table: its head, what stands below that, and its rows."""
    match = re.search(rf"<!-- {table}: [^>]*-->\n(.*?)<!-- end -->", _DOC.read_text("utf-8"), re.DOTALL)
    assert match is not None, f"docs/composition.md has no place for {table}"
    return match[1].splitlines()


@functools.cache
def rows_of(table: str) -> list[Row]:
    head, _, *lines = lines_of(table)
    return [dict(zip(cells_of(head), cells_of(line), strict=True)) for line in lines]


def called(row: Row) -> str:
    """Return the call of a row, which is the first of its cells."""
    return next(iter(row.values())).strip("`")


def noise_of(row: Row) -> list[float]:
    """Mean and standard deviation of a row with noise."""
    return [float(number) for number in row["noise"].split(" ± ")] if row["noise"] else []


def of_table(table: str, count: int) -> pytest.MarkDecorator:
    """Tests a function with each row of a table, of which none may get lost."""
    rows = rows_of(table)
    assert len(rows) == count, f"docs/composition.md has {len(rows)} {table}"
    names = ["-".join([f"`{called(row)}`", *([row["game"]] if "game" in row else [])]) for row in rows]
    return pytest.mark.parametrize("row", rows, ids=names)


def algorithm(name: str) -> Any:
    return importlib.import_module(f"open_spiel.python.algorithms.{name}")


# -- the games -------------------------------------------------------------------------------------


def _two_moves(seed: int) -> Any:
    """Return a policy of tic-tac-toe: two moves on each board, which are the same for every seed."""

    @functools.cache
    def row(board: str, actions: tuple[int, ...]) -> dict[int, float]:
        if len(actions) == 1:
            return {actions[0]: 1.0}
        moves = sorted(np.random.default_rng([9, *board.encode()]).permutation(len(actions))[:2])
        first = float(np.random.default_rng([seed, *board.encode()]).uniform(0.1, 0.9))
        return {actions[moves[0]]: first, actions[moves[1]]: 1.0 - first}

    return lambda state: row(str(state), tuple(state.legal_actions()))


@functools.cache
def tree_of(name: str) -> HistoryTree:
    (row,) = (row for row in rows_of("games") if row["game"] == name)
    penalties = tuple(map(float, row["penalties"].split(", ")))
    if name == KUHN:
        text = (
            "python_meta_precomputation(game=kuhn_poker(),sigma=random(seed=9),sigma_pre=random(seed=5),"
            "penalty_0=0.03,penalty_1=0.02)"
        )
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
def exact(name: str) -> Any:
    return meta_sequence_form_lp(tree_of(name))


@functools.cache
def names_of(name: str, form: str) -> dict[str, Any]:
    """Return the names in calls that are evaluated: OpenSpiel's modules, the game, and things made of it."""
    game = MetaPrecomputationGame(tree_of(name), form)
    return {
        **{module: algorithm(module) for module in _ALGORITHMS},
        "policy_bot": policy_bot,
        "uniform_random": uniform_random,
        "rl_tools": rl_tools,
        "pyspiel": pyspiel,
        "np": np,
        "to_efg": to_efg,
        "game": game,
        "cached": pyspiel.convert_to_cached_tree(game),
        "efg": pyspiel.load_efg_game(to_efg(game)),
        "exported": pyspiel.load_efg_game(algorithm("gambit").export_gambit(game)),
        "seed": SEED,
    }


def _measured_game(row: Row) -> list[float]:
    name = row["game"]
    games = [names_of(name, form)["game"] for form in FORMS]
    return [exact(name).value, games[0].rules.branches[0], *(game.max_utility() for game in games)]


def test_the_games_are_those_of_the_document() -> None:
    assert [row["game"] for row in rows_of("games")] == list(GAMES)
    for row in rows_of("games"):
        tree = tree_of(row["game"])
        assert row["penalties"] == ", ".join(f"{penalty:g}" for penalty in tree.penalties)
        assert row["information states"] == str(tree.num_infosets)
        assert float(row["value"]) == pytest.approx(exact(row["game"]).value, rel=0.05)


# -- solvers ---------------------------------------------------------------------------------------


# What solvers call a step of theirs, and what they have found so far.
_STEPS = ("evaluate_and_update_policy", "run_iteration", "iteration", "update_sequences")
_AVERAGES = ("average_policy", "get_avg_policies")


def method(thing: Any, names: tuple[str, ...]) -> Callable[[], Any]:
    """Return the first of these methods that a thing has."""
    return next(getattr(thing, name) for name in names if hasattr(thing, name))


def solve(row: Row, form: str, seed: int = SEED) -> tuple[Any, Any]:
    """Return (average policy, what it measures as); the policy keeps its solver alive."""
    call, name = called(row), row["game"]
    names = names_of(name, form) | {"seed": seed}
    np.random.seed(seed)  # noqa: NPY002  (Python's MCCFR draws from it)
    made = eval(call, names)
    step = method(made, _STEPS)
    for _ in range(int(row["iterations"])):
        step()
    policy = method(made, _AVERAGES)()
    if "(efg" in call:  # whose information states have other names
        value = pyspiel.expected_returns(names["efg"].new_initial_state(), policy, -1, True)[0]
        found: Any = types.SimpleNamespace(
            value=value + names["game"].value_shift, nash_conv=pyspiel.nash_conv(names["efg"], policy)
        )
        return (policy, made), found
    strategies = strategies_from_policy(names["game"], policy)
    return (policy, made), meta_exploitability(tree_of(name), strategies)


def _measured_solver(row: Row) -> list[float]:
    measured, off = [], []
    for form in FORMS:
        kept, found = solve(row, form)
        made = names_of(row["game"], form)["efg" if "(efg" in called(row) else "cached"]
        openspiel = pyspiel.nash_conv if isinstance(kept[0], pyspiel.Policy) else exploitability.nash_conv
        assert openspiel(made, kept[0]) == pytest.approx(found.nash_conv, abs=1e-8)
        measured.append(found.nash_conv)
        off.append(abs(found.value - exact(row["game"]).value))
    if not row["noise"]:  # counterfactual values agree, so both forms take the same steps
        assert measured[0] == pytest.approx(measured[1], rel=1e-3)
    return [*measured, max(off)]


@of_table("solvers", 51)
def test_solvers_find_the_value(row: Row) -> None:
    assert max(_measured_solver(row)) <= float(row["tolerance"])


def test_sampling_has_room_for_its_noise() -> None:
    for row in filter(noise_of, [*rows_of("solvers"), *rows_of("learners")]):
        mean, deviation = noise_of(row)
        bound = mean + 4.0 * deviation
        assert bound <= float(row["tolerance"]) <= 1.1 * bound


# -- learners --------------------------------------------------------------------------------------


def play_episodes(environment: Any, agents: list[Any], episodes: int) -> None:
    """Lets agents learn; only those that moved receive the end, which is all that `QLearner` accepts."""
    for _ in range(episodes):
        step, moved = environment.reset(), set()
        while not step.last():
            player = step.observations["current_player"]
            moved.add(player)
            step = environment.step([agents[player].step(step).action])
        for player in moved:
            agents[player].step(step)


def learned_row(agents: list[Any], state: Any) -> dict[int, float]:
    """Return an agent's learned policy in a state; for NFSP, its average policy."""
    player, legal = state.current_player(), state.legal_actions()
    seen: dict[str, Any] = {
        "current_player": player,
        "info_state": [None, None],
        "legal_actions": [None, None],
    }
    seen["info_state"][player], seen["legal_actions"][player] = state.information_state_tensor(), legal
    step = rl_environment.TimeStep(seen, None, None, rl_environment.StepType.MID)
    agent = agents[player]
    average = getattr(agent, "temp_mode_as", None)
    with average(type(agent.mode).AVERAGE_POLICY) if average else contextlib.nullcontext():
        probabilities = agent.step(step, is_evaluation=True).probs
    return normalized({action: float(probabilities[action]) for action in legal})


def normalized(row: dict[int, float]) -> dict[int, float]:
    """Networks answer in single precision."""
    total = sum(row.values())
    return {action: p / total for action, p in row.items()}


def learn(row: Row, form: str, seed: int = SEED) -> Any:
    """Let agents learn by playing each other on the Kuhn meta-game, and measure the result on the tree."""
    call, names = called(row), names_of(KUHN, form) | {"seed": seed}
    if "nfsp" in call or "deep_cfr" in call:  # which the library does without
        pytest.importorskip("jax")
        from open_spiel.python.jax import deep_cfr, nfsp

        names |= {"deep_cfr": deep_cfr, "nfsp": nfsp}
    np.random.seed(seed)  # noqa: NPY002  (Q-learners draw from it)
    made, game = eval(call, names), names["game"]
    if isinstance(made, list):
        sampler = rl_environment.ChanceEventSampler(seed=seed)
        environment = rl_environment.Environment(game, chance_event_sampler=sampler)
        play_episodes(environment, made, int(row["episodes"] or 0))
        policy = functools.partial(learned_row, made)
    else:
        made.solve()

        def policy(state: Any) -> dict[int, float]:
            return normalized({a: float(p) for a, p in made.action_probabilities(state).items()})

    return meta_exploitability(tree_of(KUHN), strategies_from_policy(game, policy))


def _measured_learner(row: Row) -> list[float]:
    found = [learn(row, form) for form in FORMS]
    return [x.nash_conv for x in found] + [max(abs(x.value - exact(KUHN).value) for x in found)]


@of_table("learners", 4)
def test_learners_learn(row: Row) -> None:
    assert max(_measured_learner(row)) <= float(row["tolerance"])


# -- evaluators ------------------------------------------------------------------------------------


def profiles(name: str) -> list[Any]:
    """Return the equilibrium, and random strategies."""
    tree, rng = tree_of(name), np.random.default_rng(0)
    drawn = rng.uniform(size=(2, tree.num_entries)) / np.diff(tree.first_entry)[tree.entry_infoset]
    return [exact(name).strategies, tuple(MetaStrategy(tree, i, drawn[i]) for i in (0, 1))]


def evaluate(row: Row, name: str, form: str) -> float:
    """Return the largest difference from the tree's value, in base-game utility less c / 2."""
    names, difference = names_of(name, form), 0.0
    game = names["game"]
    for strategies in profiles(name):
        policy = MetaGamePolicy(game, strategies)
        found = meta_exploitability(tree_of(name), strategies)
        expected = {
            "value": found.value - game.value_shift,
            "best responses": np.array(found.best_responses) - game.value_shift,
            "NashConv": found.nash_conv,
            "NashConv / 2": found.exploitability,
        }[row["gives"]]
        given = names | {
            "state": game.new_initial_state(),
            "policy": policy,
            "cpp": policy.to_pyspiel(),
            "walked": action_value.TreeWalkCalculator(game),
        }
        difference = max(difference, float(np.abs(np.array(eval(called(row), given)) - expected).max()))
    return difference


def _measured_evaluator(row: Row) -> list[float]:
    return [max(evaluate(row, name, form) for name in GAMES) for form in FORMS]


@of_table("evaluators", 14)
def test_evaluators_agree(row: Row) -> None:
    assert max(_measured_evaluator(row)) <= float(row["tolerance"])


def test_the_equilibrium_is_one() -> None:
    """The reference of the evaluators is an equilibrium, and its value the game's."""
    for name in GAMES:
        found, measured = exact(name), meta_exploitability(tree_of(name), exact(name).strategies)
        assert measured.nash_conv <= 1e-9
        assert abs(measured.value - found.value) <= 1e-9
        assert any(0.0 < p < 1.0 for s in found.strategies for p in s.memorize)  # it has to mix


# -- exact solvers ---------------------------------------------------------------------------------


def with_cvxpy() -> dict[str, Any]:
    pytest.importorskip("cvxpy")
    pytest.importorskip("ecos")
    return {name: algorithm(name) for name in ("sequence_form_lp", "lp_solver")}


def _measured_exactly(row: Row) -> list[float]:
    found, name = [], row["game"]
    for form in FORMS:
        names = names_of(name, form) | with_cvxpy()
        value = float(eval(called(row), names)) + names["game"].value_shift
        found.append(abs(value - exact(name).value))
    return found


@of_table("exact", 5)
def test_exact_solvers_find_the_value(row: Row) -> None:
    assert max(_measured_exactly(row)) <= float(row["tolerance"])


def test_the_policies_of_the_sequence_form_lp() -> None:
    """They are quotients of the solver's weights, which can be slightly negative where nobody comes to."""
    solvers = with_cvxpy()

    def corrected(policy: Any) -> Any:
        def row(state: Any) -> dict[int, float]:
            weights = {action: max(p, 0.0) for action, p in policy.action_probabilities(state).items()}
            return {action: weight / sum(weights.values()) for action, weight in weights.items()}

        return row

    for name in GAMES:
        game = names_of(name, "audit")["game"]
        found = solvers["sequence_form_lp"].solve_zero_sum_game(game)
        strategies = strategies_from_policy(game, [corrected(policy) for policy in found[2:4]])
        assert meta_exploitability(tree_of(name), strategies).nash_conv <= 1e-5


# -- play ------------------------------------------------------------------------------------------

STANDARD_ERRORS = 4.5


def returns_of(call: str, given: dict[str, Any]) -> Callable[[], float]:
    """Play a game of bots and give what player 0 gets; bots of C++ play by C++."""
    bots, rng = eval(call, given), given["rng"]
    start = given["cached" if "cached" in call else "game"].new_initial_state
    if "pyspiel." in call:
        return lambda: pyspiel.evaluate_bots(start(), bots, int(rng.integers(2**31)))[0]
    return lambda: given["evaluate_bots"].evaluate_bots(start(), bots, rng)[0]


def play(row: Row, form: str) -> list[float]:
    """[what the difference of the mean from the value may be, what it is]"""
    name, games = row["game"], int(row["games"])
    names, tree = names_of(name, form), tree_of(name)
    game, equilibrium = names["game"], exact(name).strategies
    uniform = [MetaStrategy(tree, i, np.full(tree.num_infosets, 0.5)) for i in (0, 1)]
    kinds = {"equilibrium": equilibrium, "uniform": uniform}
    profile = tuple(kinds[kind][i] for i, kind in enumerate(row["profile"].split(" against ")))
    expected = meta_exploitability(tree, profile).value - game.value_shift
    start, played = game.new_initial_state(), [MetaGamePolicy(game, profile).action_probabilities] * 2
    variance = books.play_value(start, played, power=2) - books.play_value(start, played) ** 2
    policy = MetaGamePolicy(game, equilibrium)
    given = names | {"policy": policy, "cpp": policy.to_pyspiel(), "rng": np.random.default_rng(SEED)}
    one = returns_of(called(row), given)
    won = sum(one() for _ in range(games))
    return [STANDARD_ERRORS * math.sqrt(variance / games), abs(won / games - expected)]


def _measured_play(row: Row) -> list[float]:
    return [part for form in FORMS for part in play(row, form)]


@of_table("play", 10)
def test_bots_earn_the_value(row: Row) -> None:
    allowed, off, allowed_too, off_too = _measured_play(row)
    assert off <= allowed and off_too <= allowed_too


# -- walks and transformations ---------------------------------------------------------------------


def test_walks_see_the_whole_game() -> None:
    for name in GAMES:
        for form in FORMS:
            names = names_of(name, form)
            game = names["game"]
            expected = sum(not state.is_chance_node() for state in books.states(game))
            for made in ("game", "cached"):
                states = get_all_states.get_all_states(
                    names[made], include_terminals=True, to_string=lambda state: state.history_str()
                )
                assert len(states) == expected
            information = {}
            for made in ("game", "cached", "efg", "exported"):
                found = get_all_states.get_all_states(
                    names[made], include_terminals=False, to_string=lambda state: state.history_str()
                )
                information[made] = {state.information_state_string() for state in found.values()}
            assert information["game"] == information["cached"]
            assert {len(found) for found in information.values()} == {game.tree.num_infosets}


def test_openspiel_s_own_export_has_the_value() -> None:
    """It has 16 decimals."""
    for name in GAMES:
        for form in FORMS:
            names = names_of(name, form)
            solver = pyspiel.CFRPlusSolver(names["exported"])
            for _ in range(200):
                solver.evaluate_and_update_policy()
            average = solver.average_policy()
            nash_conv = pyspiel.nash_conv(names["exported"], average)
            value = pyspiel.expected_returns(names["exported"].new_initial_state(), average, -1, True)[0]
            assert nash_conv <= 1e-3
            assert abs(value + names["game"].value_shift - exact(name).value) <= nash_conv + 1e-9


# -- what does not run -----------------------------------------------------------------------------


def test_what_does_not_run() -> None:
    """As docs/composition.md lists them; calls that crash the process are listed there alone."""
    names = names_of(KUHN, "audit")
    game = names["game"]
    decision = game.new_initial_state().child(1).child(0)
    bot = ismcts.ISMCTSBot(game, mcts.RandomRolloutEvaluator(1), uct_c=1.0, max_simulations=5)
    with pytest.raises(pyspiel.SpielError, match="ResampleFromInfostate"):
        bot.step(decision)
    with pytest.raises(pyspiel.SpielError, match="UndoAction"):
        decision.undo_action(0, 0)
    pytest.importorskip("cvxpy")  # which value_iteration imports, and which nothing above needs
    from open_spiel.python.algorithms import value_iteration

    with pytest.raises(AssertionError):
        value_iteration.value_iteration(game, depth_limit=-1, threshold=1e-3)


# -- docs/composition.md ---------------------------------------------------------------------------

MEASURES = {
    "games": _measured_game,
    "solvers": _measured_solver,
    "learners": _measured_learner,
    "exact": _measured_exactly,
    "evaluators": _measured_evaluator,
    "play": _measured_play,
}


def test_what_the_document_shows_as_measured_is_within_its_tolerances() -> None:
    for table in MEASURES.keys() - {"games"}:
        for row in rows_of(table):
            for form in FORMS:
                shown = [row[head] for head in (f"NashConv, {form}", f"off by, {form}") if head in row]
                tolerance = row.get("tolerance") or row[f"tolerance, {form}"]
                shown.append(row.get("value off by", "0"))
                assert all(float(number) <= float(tolerance) for number in shown)


def _write(only: list[str]) -> None:
    for table in only or MEASURES:
        for line, row in zip(lines_of(table)[2:], rows_of(table), strict=True):
            style = ".4g" if table == "games" else ".1e"
            numbers = [format(value, style) for value in MEASURES[table](row)]
            new = f"| {' | '.join([*cells_of(line)[: -len(numbers)], *numbers])} |"
            print(new, flush=True)
            _DOC.write_text(_DOC.read_text("utf-8").replace(line, new), "utf-8")


def _print_noise() -> None:
    for table, one in (("solvers", lambda *run: solve(*run)[1]), ("learners", learn)):
        for row in filter(noise_of, rows_of(table)):
            for form in FORMS:
                found = [one(row, form, seed).nash_conv for seed in range(SEEDS)]
                told = f"{called(row)}, {row.get('game', KUHN)}, {form}"
                print(f"{told}: {np.mean(found):.4f} {np.std(found):.4f}", flush=True)


if __name__ == "__main__":
    if "--noise" in sys.argv[1:]:
        _print_noise()
    else:
        _write(sys.argv[1:])
