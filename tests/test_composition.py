"""OpenSpiel's algorithms run unchanged on the meta-game and agree with its exact value.

The tables below are what is tested, and what docs/composition.md shows: each call there is the text that is
evaluated here. After a change of a row:

    python -m tests.test_composition            # measures again, writes the tables into docs/composition.md
    python -m tests.test_composition learners   # that table alone
    python -m tests.test_composition --noise    # what SEEDS seeds of the sampling rows do, for Solver.noise

A solver's row holds if its average policy has a NashConv of at most `tolerance`, by our passes over the tree
and by OpenSpiel, and a value that is no further off the linear program's. The second follows from the first
in any zero-sum game, so sampled policies need no margin there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyspiel
import pytest
from open_spiel.python import rl_environment, rl_tools
from open_spiel.python.algorithms import action_value, exploitability, get_all_states, ismcts, mcts
from open_spiel.python.bots import policy as policy_bot
from open_spiel.python.bots import uniform_random

from precomp_games import HistoryTree, Menu, MetaPrecomputationGame, to_efg
from precomp_games.algorithms import meta_exploitability, meta_sequence_form_lp
from precomp_games.algorithms.meta.policies import meta_game_policy, strategies_from_policy
from precomp_games.meta_strategy import MetaStrategy
from tests import reference
from tests.random_games import random_policy, random_tree

_DOC = Path(__file__).resolve().parents[1] / "docs" / "composition.md"
FORMS = ("audit", "reweighted")
KUHN, BOARD, TREE, MENU = GAMES = "Kuhn poker", "tic-tac-toe", "random tree", "rock, paper, scissors"
PENALTIES = {KUHN: (0.03, 0.02), BOARD: (0.3, 0.3), TREE: (0.05, 0.04), MENU: (0.02, 0.02)}
SEED, SEEDS = 1, 30
_ALGORITHMS = re.findall(
    r"\w+",
    "action_value action_value_vs_best_response best_response cfr cfr_br discounted_cfr efr evaluate_bots "
    "expected_game_score exploitability external_sampling_mccfr fictitious_play gambit get_all_states "
    "mmd_dilated outcome_sampling_mccfr random_agent tabular_qlearner",
)


class Row(NamedTuple):
    """A line of a table of the document: the cells that are compared, and what measures the others."""

    cells: list[str]
    measure: Callable[[], list[float]]

    def check(self, tolerance: float) -> None:
        assert max(self.measure()) <= tolerance


def of_table(rows: list[Row]) -> pytest.MarkDecorator:
    """Tests a function with each row of a table."""
    names = ["-".join([row.cells[0], *(cell for cell in row.cells if cell in GAMES)]) for row in rows]
    return pytest.mark.parametrize("row", rows, ids=names)


def penalties(name: str) -> str:
    return ", ".join(f"{penalty:g}" for penalty in PENALTIES[name])


def algorithm(name: str) -> Any:
    return importlib.import_module(f"open_spiel.python.algorithms.{name}")


# -- the games -------------------------------------------------------------------------------------


def _two_moves(seed: int) -> Any:
    """A policy of tic-tac-toe: two moves on each board, which are the same for every seed."""

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
    return HistoryTree.from_game(game, sigma_pre=policies[:2], sigma=policies[2:], penalties=PENALTIES[name])


@functools.cache
def exact(name: str) -> Any:
    return meta_sequence_form_lp(tree_of(name))


@functools.cache
def names_of(name: str, form: str) -> dict[str, Any]:
    """What calls are evaluated with: OpenSpiel's modules, the game, and what is made of it."""
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


def _measured_game(name: str) -> list[float]:
    games = [names_of(name, form)["game"] for form in FORMS]
    return [exact(name).value, games[0].rules.branches[0], *(game.max_utility() for game in games)]


_POLICIES = {
    KUHN: "random, as above",
    BOARD: "random over two moves on each board, the same two for all",
    TREE: "random",
    MENU: "random; player 1 has a menu of all moves",
}


def game_rows() -> list[Row]:
    return [
        Row(
            [name, text, penalties(name), str(tree_of(name).num_infosets)],
            functools.partial(_measured_game, name),
        )
        for name, text in _POLICIES.items()
    ]


# -- solvers ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Solver:
    """A solver as text.

    runs: {game: (iterations, the NashConv that is not exceeded)}.
    noise: of a solver that samples, {game: (mean, standard deviation)} of the NashConv over SEEDS seeds, in
      the form in which it is larger; the tolerance is the mean and four standard deviations, rounded up.
    """

    make: str
    runs: dict[str, tuple[int, float]]
    step: str = "solver.evaluate_and_update_policy()"
    average: str = "solver.average_policy()"
    noise: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)


_ITERATE = "solver.iteration()"
_RUN = "solver.run_iteration()"

SOLVERS = [
    Solver(
        "pyspiel.CFRSolver(game)",
        {KUHN: (30, 0.01), BOARD: (30, 0.04), TREE: (30, 0.02), MENU: (30, 0.01)},
    ),
    Solver(
        "pyspiel.CFRPlusSolver(game)",
        {KUHN: (30, 0.001), BOARD: (30, 0.005), TREE: (30, 0.005), MENU: (30, 0.002)},
    ),
    Solver("pyspiel.CFRBRSolver(game)", {KUHN: (20, 0.02), BOARD: (10, 0.12)}),
    Solver("cfr.CFRSolver(game)", {KUHN: (30, 0.01), BOARD: (20, 0.08)}),
    Solver(
        "cfr.CFRPlusSolver(game)",
        {KUHN: (30, 0.001), BOARD: (20, 0.01), TREE: (20, 0.01), MENU: (20, 0.003)},
    ),
    Solver("cfr_br.CFRBRSolver(game)", {KUHN: (12, 0.03)}),
    Solver("discounted_cfr.DCFRSolver(game)", {KUHN: (30, 0.001), BOARD: (20, 0.01), TREE: (20, 0.01)}),
    Solver("discounted_cfr.LCFRSolver(game)", {KUHN: (20, 0.002), BOARD: (20, 0.006)}),
    Solver("efr.EFRSolver(game, 'blind cf')", {KUHN: (20, 0.03), MENU: (60, 0.03)}),
    Solver("fictitious_play.XFPSolver(game)", {KUHN: (12, 0.03), MENU: (30, 0.05)}, _ITERATE),
    Solver(
        "mmd_dilated.MMDDilatedEnt(game, alpha=0.0, stepsize=3.0)",
        {KUHN: (30, 0.06), BOARD: (20, 0.07), MENU: (30, 0.03)},
        "solver.update_sequences()",
        "solver.get_avg_policies()",
    ),
    Solver(
        "pyspiel.ExternalSamplingMCCFRSolver(game, seed)",
        {KUHN: (1000, 0.11), BOARD: (1000, 0.17)},
        _RUN,
        noise={KUHN: (0.041, 0.016), BOARD: (0.063, 0.025)},
    ),
    Solver(
        "pyspiel.OutcomeSamplingMCCFRSolver(game, 0.6, seed)",
        {KUHN: (2000, 0.22), BOARD: (2000, 0.22)},
        _RUN,
        noise={KUHN: (0.080, 0.033), BOARD: (0.075, 0.036)},
    ),
    Solver(
        "external_sampling_mccfr.ExternalSamplingSolver(game)",
        {KUHN: (600, 0.14)},
        _ITERATE,
        noise={KUHN: (0.053, 0.02)},
    ),
    Solver(
        "outcome_sampling_mccfr.OutcomeSamplingSolver(game)",
        {KUHN: (1000, 0.23)},
        _ITERATE,
        noise={KUHN: (0.092, 0.033)},
    ),
    # What is made of the game runs at the speed of OpenSpiel's C++.
    Solver("pyspiel.CFRSolver(cached)", {KUHN: (1000, 5e-4), BOARD: (1000, 2e-3)}),
    Solver(
        "pyspiel.CFRPlusSolver(cached)",
        {KUHN: (1000, 2e-5), BOARD: (1000, 2e-4), TREE: (1000, 2e-4), MENU: (1000, 1e-4)},
    ),
    Solver("pyspiel.CFRBRSolver(cached)", {KUHN: (300, 4e-3), BOARD: (300, 1e-2)}),
    Solver(
        "pyspiel.ExternalSamplingMCCFRSolver(cached, seed)",
        {KUHN: (50_000, 0.012), BOARD: (50_000, 0.03)},
        _RUN,
        noise={KUHN: (0.0039, 0.0019), BOARD: (0.0104, 0.0047)},
    ),
    Solver(
        "pyspiel.OutcomeSamplingMCCFRSolver(cached, 0.6, seed)",
        {KUHN: (50_000, 0.04), BOARD: (50_000, 0.058)},
        _RUN,
        noise={KUHN: (0.016, 0.0057), BOARD: (0.0165, 0.0097)},
    ),
    Solver(
        "pyspiel.CFRPlusSolver(efg)",
        {KUHN: (1000, 2e-5), BOARD: (1000, 2e-4), TREE: (1000, 2e-4), MENU: (1000, 1e-4)},
    ),
]


def solve(solver: Solver, name: str, form: str, seed: int = SEED) -> tuple[Any, Any]:
    """(average policy, what it measures as); the policy keeps its solver alive."""
    names = names_of(name, form) | {"seed": seed}
    np.random.seed(seed)  # noqa: NPY002  (Python's MCCFR draws from it)
    names["solver"] = made = eval(solver.make, names)
    step = compile(solver.step, "step", "eval")
    for _ in range(solver.runs[name][0]):
        eval(step, names)
    policy = eval(solver.average, names)
    played_on = names["efg"] if "(efg" in solver.make else None
    found = meta_exploitability(
        tree_of(name), strategies_from_policy(names["game"], policy, played_on=played_on)
    )
    return (policy, made), found


def _measured_solver(solver: Solver, name: str) -> list[float]:
    measured, off = [], []
    for form in FORMS:
        kept, found = solve(solver, name, form)
        made = names_of(name, form)["efg" if "(efg" in solver.make else "cached"]
        openspiel = pyspiel.nash_conv if isinstance(kept[0], pyspiel.Policy) else exploitability.nash_conv
        assert openspiel(made, kept[0]) == pytest.approx(found.nash_conv, abs=1e-8)
        measured.append(found.nash_conv)
        off.append(abs(found.value - exact(name).value))
    if not solver.noise:  # counterfactual values agree, so both forms take the same steps
        assert measured[0] == pytest.approx(measured[1], rel=1e-3)
    return [*measured, max(off)]


def _told(noise: tuple[float, float] | None) -> str:
    return f"{noise[0]:g} ± {noise[1]:g}" if noise else ""


SOLVER_ROWS = [
    Row(
        [
            f"`{solver.make}`",
            name,
            penalties(name),
            str(iterations),
            f"{tolerance:g}",
            _told(solver.noise.get(name)),
        ],
        functools.partial(_measured_solver, solver, name),
    )
    for solver in SOLVERS
    for name, (iterations, tolerance) in solver.runs.items()
]


@of_table(SOLVER_ROWS)
def test_solvers_find_the_value(row: Row) -> None:
    row.check(float(row.cells[4]))


def test_sampling_has_room_for_its_noise() -> None:
    """What Solver.noise says of tolerances."""
    for solver in SOLVERS:
        for name, (mean, deviation) in solver.noise.items():
            bound = mean + 4.0 * deviation
            assert bound <= solver.runs[name][1] <= 1.1 * bound


# -- learners --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Learner:
    """Agents that learn from tensors by playing against each other on the Kuhn meta-game, as text.

    episodes: how many they play; 0 of a solver that plays by itself.
    tolerance: the NashConv that is not exceeded: over SEEDS seeds, the mean and four standard deviations of
      `noise`, rounded up. None where that takes too long: then one seed is measured, and what the table shows
      may be twice as much on another machine.
    module: what OpenSpiel's module needs, which the library does not.
    """

    make: str
    episodes: int
    tolerance: float
    noise: tuple[float, float] | None = None
    module: str = ""


_NETWORK = (
    "optimizer_str='adam', batch_size=64, learn_every=32, min_buffer_size_to_learn=200, "
    "update_target_network_every=300, epsilon_start=0.2, epsilon_end=0.01, epsilon_decay_duration=8000, "
    "seed=seed + i, allow_checkpointing=False"
)
LEARNERS = [
    Learner("[random_agent.RandomAgent(i, 2) for i in (0, 1)]", 0, 0.29),
    Learner(
        "[tabular_qlearner.QLearner(i, 2, 0.01, rl_tools.LinearSchedule(1.0, 0.05, 8000)) for i in (0, 1)]",
        3000,
        0.23,
        (0.0693, 0.0378),
    ),
    Learner(
        f"[nfsp.NFSP(i, 20, 2, [32], 20_000, 0.2, {_NETWORK}) for i in (0, 1)]",
        4000,
        0.25,
        module="jax",
    ),
    Learner(
        "deep_cfr.DeepCFRSolver(cached, (32, 32), (32, 32), 10, 40, 3e-3, 128, 256, 20_000, 500, 100, "
        "seed=seed)",
        0,
        0.16,
        module="jax",
    ),
]


def play_episodes(environment: Any, agents: list[Any], episodes: int) -> None:
    """Lets agents learn; only those that moved are told of the end, which is what `QLearner` can bear."""
    for _ in range(episodes):
        step, moved = environment.reset(), set()
        while not step.last():
            player = step.observations["current_player"]
            moved.add(player)
            step = environment.step([agents[player].step(step).action])
        for player in moved:
            agents[player].step(step)


def learned_row(agents: list[Any], state: Any) -> dict[int, float]:
    """What an agent has learned to play; of NFSP, its average policy."""
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


def learn(learner: Learner, form: str, seed: int = SEED) -> Any:
    """What is learned measures as this on the tree."""
    names = names_of(KUHN, form) | {"seed": seed}
    if learner.module:
        pytest.importorskip(learner.module)
        from open_spiel.python.jax import deep_cfr, nfsp

        names |= {"deep_cfr": deep_cfr, "nfsp": nfsp}
    np.random.seed(seed)  # noqa: NPY002  (Q-learners draw from it)
    made, game = eval(learner.make, names), names["game"]
    if isinstance(made, list):
        sampler = rl_environment.ChanceEventSampler(seed=seed)
        environment = rl_environment.Environment(game, chance_event_sampler=sampler)
        play_episodes(environment, made, learner.episodes)
        policy = functools.partial(learned_row, made)
    else:
        made.solve()

        def policy(state: Any) -> dict[int, float]:
            return normalized({a: float(p) for a, p in made.action_probabilities(state).items()})

    return meta_exploitability(tree_of(KUHN), strategies_from_policy(game, policy))


def _measured_learner(learner: Learner) -> list[float]:
    found = [learn(learner, form) for form in FORMS]
    return [x.nash_conv for x in found] + [max(abs(x.value - exact(KUHN).value) for x in found)]


LEARNER_ROWS = [
    Row(
        [f"`{learner.make}`", str(learner.episodes or ""), f"{learner.tolerance:g}", _told(learner.noise)],
        functools.partial(_measured_learner, learner),
    )
    for learner in LEARNERS
]


@of_table(LEARNER_ROWS)
def test_learners_learn(row: Row) -> None:
    row.check(float(row.cells[2]))


# -- evaluators ------------------------------------------------------------------------------------

# What a call gives, as text with the names of `MetaExploitability`, base-game utility less c / 2.
_VALUE = "value"
_BEST = "best responses"
EVALUATORS = [
    ("expected_game_score.policy_value(state, [policy, policy])[0]", _VALUE),
    ("pyspiel.expected_returns(state, cpp, -1, True)[0]", _VALUE),
    ("walked.compute_all_states_action_values([policy, policy]) or walked.root_values[0]", _VALUE),
    ("[best_response.BestResponsePolicy(game, i, policy).value(state) for i in (0, 1)]", _BEST),
    ("[best_response.CPPBestResponsePolicy(game, i, policy).value(state) for i in (0, 1)]", _BEST),
    ("[pyspiel.TabularBestResponse(game, i, cpp).value_from_state(state) for i in (0, 1)]", _BEST),
    ("[exploitability.best_response(game, policy, i)['best_response_value'] for i in (0, 1)]", _BEST),
    ("[action_value_vs_best_response.Calculator(game)(1 - i, policy, [])[0] for i in (0, 1)]", _BEST),
    ("exploitability.nash_conv(game, policy)", "NashConv"),
    ("exploitability.nash_conv(game, policy, use_cpp_br=True)", "NashConv"),
    ("exploitability.exploitability(game, policy)", "NashConv / 2"),
    ("pyspiel.nash_conv(game, cpp)", "NashConv"),
    ("pyspiel.exploitability(game, cpp)", "NashConv / 2"),
    ("pyspiel.nash_conv(cached, cpp)", "NashConv"),
    ("exploitability.nash_conv(efg, policy)", "NashConv"),
]
_EXACT = 1e-9


def profiles(name: str) -> list[Any]:
    """The equilibrium, and anything."""
    tree, rng = tree_of(name), np.random.default_rng(0)
    drawn = rng.uniform(size=(2, tree.num_entries)) / np.diff(tree.first_entry)[tree.entry_infoset]
    return [exact(name).strategies, tuple(MetaStrategy(tree, i, drawn[i]) for i in (0, 1))]


def evaluate(call: str, quantity: str, name: str, form: str) -> float:
    """The largest difference from what the tree says."""
    names, difference = names_of(name, form), 0.0
    game = names["game"]
    for strategies in profiles(name):
        policy = meta_game_policy(game, strategies)
        found = meta_exploitability(tree_of(name), strategies)
        expected = {
            _VALUE: found.value - game.value_shift,
            _BEST: np.array(found.best_responses) - game.value_shift,
            "NashConv": found.nash_conv,
            "NashConv / 2": found.exploitability,
        }[quantity]
        given = names | {
            "state": game.new_initial_state(),
            "policy": policy,
            "cpp": policy.to_pyspiel(),
            "walked": action_value.TreeWalkCalculator(game),
        }
        difference = max(difference, float(np.abs(np.array(eval(call, given)) - expected).max()))
    return difference


def _measured_evaluator(call: str, quantity: str) -> list[float]:
    return [max(evaluate(call, quantity, name, form) for name in GAMES) for form in FORMS]


EVALUATOR_ROWS = [
    Row([f"`{call}`", quantity, f"{_EXACT:g}"], functools.partial(_measured_evaluator, call, quantity))
    for call, quantity in EVALUATORS
]


@of_table(EVALUATOR_ROWS)
def test_evaluators_agree(row: Row) -> None:
    row.check(_EXACT)


def test_the_equilibrium_is_one() -> None:
    """What the evaluators are held against is the value, where the equilibrium plays."""
    for name in GAMES:
        found, measured = exact(name), meta_exploitability(tree_of(name), exact(name).strategies)
        assert measured.nash_conv <= _EXACT
        assert abs(measured.value - found.value) <= _EXACT
        assert any(0.0 < p < 1.0 for s in found.strategies for p in s.memorize)  # it has to mix


# -- exact solvers ---------------------------------------------------------------------------------

# The value that each call finds. They need cvxpy with ECOS.
EXACT_SOLVERS = [
    ("sequence_form_lp.solve_zero_sum_game(game)[0]", GAMES, 1e-6),
    ("lp_solver.solve_zero_sum_matrix_game(pyspiel.extensive_to_matrix_game(cached))[2]", (KUHN,), 1e-6),
]


def with_cvxpy() -> dict[str, Any]:
    pytest.importorskip("cvxpy")
    pytest.importorskip("ecos")
    return {name: algorithm(name) for name in ("sequence_form_lp", "lp_solver")}


def _measured_exactly(call: str, name: str) -> list[float]:
    found = []
    for form in FORMS:
        names = names_of(name, form) | with_cvxpy()
        found.append(abs(float(eval(call, names)) + names["game"].value_shift - exact(name).value))
    return found


EXACT_ROWS = [
    Row(
        [f"`{call}`", name, penalties(name), f"{tolerance:g}"],
        functools.partial(_measured_exactly, call, name),
    )
    for call, of, tolerance in EXACT_SOLVERS
    for name in of
]


@of_table(EXACT_ROWS)
def test_exact_solvers_find_the_value(row: Row) -> None:
    row.check(float(row.cells[3]))


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

_PLAYED = "pyspiel.evaluate_bots({}.new_initial_state(), bots, int(rng.integers(2**31)))"
_PLAYED_IN_PYTHON = "evaluate_bots.evaluate_bots(game.new_initial_state(), bots, rng)"
_EQUILIBRIUM, _UNIFORM = "equilibrium", "uniform"


@dataclasses.dataclass(frozen=True)
class Play:
    """Bots as text, the text that one game is, how many are played, and what each bot plays.

    Player 0's mean return is the value of the profile within STANDARD_ERRORS standard errors, whose size is
    computed from the game.
    """

    bots: str
    call: str
    games: int
    profile: tuple[str, str] = (_EQUILIBRIUM, _EQUILIBRIUM)


STANDARD_ERRORS = 4.5
PLAY = [
    Play("[pyspiel.make_policy_bot(game, i, seed + i, cpp) for i in (0, 1)]", _PLAYED.format("game"), 1000),
    Play(
        "[pyspiel.make_policy_bot(cached, i, seed + i, cpp) for i in (0, 1)]",
        _PLAYED.format("cached"),
        20_000,
    ),
    Play("[policy_bot.PolicyBot(i, rng, policy) for i in (0, 1)]", _PLAYED_IN_PYTHON, 500),
    Play(
        "[pyspiel.make_uniform_random_bot(i, seed + i) for i in (0, 1)]",
        _PLAYED.format("game"),
        1000,
        (_UNIFORM, _UNIFORM),
    ),
    Play(
        "[uniform_random.UniformRandomBot(0, rng), policy_bot.PolicyBot(1, rng, policy)]",
        _PLAYED_IN_PYTHON,
        500,
        (_UNIFORM, _EQUILIBRIUM),
    ),
]


def play(bots: Play, name: str, form: str) -> list[float]:
    """[what the difference of the mean from the value may be, what it is]"""
    names, tree = names_of(name, form), tree_of(name)
    game, equilibrium = names["game"], exact(name).strategies
    uniform = [MetaStrategy(tree, i, np.full(tree.num_infosets, 0.5)) for i in (0, 1)]
    profile = tuple(equilibrium[i] if bots.profile[i] == _EQUILIBRIUM else uniform[i] for i in (0, 1))
    expected = meta_exploitability(tree, profile).value - game.value_shift
    start, played = game.new_initial_state(), [meta_game_policy(game, profile).action_probabilities] * 2
    variance = reference.play_value(start, played, power=2) - reference.play_value(start, played) ** 2
    policy = meta_game_policy(game, equilibrium)
    given = names | {"policy": policy, "cpp": policy.to_pyspiel(), "rng": np.random.default_rng(SEED)}
    given["bots"] = eval(bots.bots, given)
    one = compile(bots.call, "game", "eval")
    won = sum(eval(one, given)[0] for _ in range(bots.games))
    return [STANDARD_ERRORS * math.sqrt(variance / bots.games), abs(won / bots.games - expected)]


def _measured_play(bots: Play, name: str) -> list[float]:
    return [part for form in FORMS for part in play(bots, name, form)]


PLAY_ROWS = [
    Row(
        [f"`{bots.bots}`", " against ".join(bots.profile), name, penalties(name), str(bots.games)],
        functools.partial(_measured_play, bots, name),
    )
    for bots in PLAY
    for name in GAMES[:2]
]


@of_table(PLAY_ROWS)
def test_bots_earn_the_value(row: Row) -> None:
    allowed, off, allowed_too, off_too = row.measure()
    assert off <= allowed and off_too <= allowed_too


# -- walks and transformations ---------------------------------------------------------------------


def test_walks_see_the_whole_game() -> None:
    for name in GAMES:
        for form in FORMS:
            names = names_of(name, form)
            game = names["game"]
            expected = sum(not state.is_chance_node() for state in reference.states(game))
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
    """As docs/composition.md says; what crashes the process is only told there."""
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

_OFF = ["off by, audit", "off by, reweighted"]
TABLES = {
    "games": (
        ["game", "sigma, sigma_pre", "penalties", "information states"],
        ["value", "probability of play, audit", "largest return, audit", "largest return, reweighted"],
        game_rows,
    ),
    "solvers": (
        ["solver", "game", "penalties", "iterations", "tolerance", "noise"],
        ["NashConv, audit", "NashConv, reweighted", "value off by"],
        lambda: SOLVER_ROWS,
    ),
    "learners": (
        ["agents", "episodes", "tolerance", "noise"],
        ["NashConv, audit", "NashConv, reweighted", "value off by"],
        lambda: LEARNER_ROWS,
    ),
    "exact": (["call", "game", "penalties", "tolerance"], _OFF, lambda: EXACT_ROWS),
    "evaluators": (["call", "gives", "tolerance"], _OFF, lambda: EVALUATOR_ROWS),
    "play": (
        ["bots", "profile", "game", "penalties", "games"],
        ["tolerance, audit", "off by, audit", "tolerance, reweighted", "off by, reweighted"],
        lambda: PLAY_ROWS,
    ),
}


def _part(text: str, table: str) -> tuple[int, int]:
    """Where a table stands in the document."""
    match = re.search(rf"<!-- {table}: [^>]*-->\n(.*?)<!-- end -->", text, re.DOTALL)
    assert match is not None, f"docs/composition.md has no place for {table}"
    return match.span(1)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


@pytest.mark.parametrize("table", TABLES)
def test_the_document_shows_these_tables(table: str) -> None:
    head, measured, rows = TABLES[table]
    text = _DOC.read_text(encoding="utf-8")
    start, end = _part(text, table)
    lines = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text[start:end].splitlines()]
    assert lines[0] == [*head, *measured]
    shown = [line[: len(head)] for line in lines[2:]]
    assert shown == [cells for cells, _ in rows()], "python -m tests.test_composition"
    for line in lines[2:]:
        values = [float(cell) for cell in line[len(head) :]]
        assert len(values) == len(measured)
        if table == "games":
            assert values[0] == pytest.approx(exact(line[0]).value, rel=0.05)
        elif table == "play":
            assert values[1] <= values[0] and values[3] <= values[2]
        else:
            assert max(values) <= float(line[head.index("tolerance")])


def test_the_document_s_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = _DOC.read_text(encoding="utf-8")
    program, output = re.findall(r"```(?:python|text)\n(.*?)```", text, re.DOTALL)[:2]
    exec(program, {})
    assert capsys.readouterr().out == output


def _write(only: list[str]) -> None:
    text = _DOC.read_text(encoding="utf-8")
    for table, (head, measured, rows) in TABLES.items():
        if only and table not in only:
            continue
        lines = [_line([*head, *measured]), _line(["---"] * (len(head) + len(measured)))]
        for cells, measure in rows():
            numbers = [f"{value:.4g}" if table == "games" else f"{value:.1e}" for value in measure()]
            lines.append(_line([*cells, *numbers]))
            print(lines[-1], end="", flush=True)
        start, end = _part(text, table)
        text = text[:start] + "".join(lines) + text[end:]
    _DOC.write_text(text, encoding="utf-8")


def _print_noise() -> None:
    for solver in SOLVERS:
        for name in solver.noise:
            for form in FORMS:
                found = [solve(solver, name, form, seed)[1].nash_conv for seed in range(SEEDS)]
                print(f"{solver.make}, {name}, {form}: {np.mean(found):.4f} {np.std(found):.4f}", flush=True)
    for learner in LEARNERS:
        for form in FORMS if learner.noise else ():
            found = [learn(learner, form, seed).nash_conv for seed in range(SEEDS)]
            print(f"{learner.make}, {form}: {np.mean(found):.4f} {np.std(found):.4f}", flush=True)


if __name__ == "__main__":
    if "--noise" in sys.argv[1:]:
        _print_noise()
    else:
        _write(sys.argv[1:])
