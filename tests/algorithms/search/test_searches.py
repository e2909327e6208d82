"""Exact searches give plain minimax's values, and Monte Carlo tree search grows the slides' tree."""

import dataclasses
import functools
import hashlib
import math
import sys
import time
from typing import Any

import numpy as np
import pyspiel
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from open_spiel.python.algorithms import minimax as openspiel_minimax

from precomp_games.algorithms.search import (
    SearchBudget,
    SimulationBudget,
    alpha_beta,
    known_of,
    mcts,
    minimax,
    principal_variation_search,
)
from precomp_games.algorithms.search.mcts import RandomRollouts
from tests.oracles.games import SEEDS, games, random_tree, sides, written
from tests.oracles.graphs import Oracle, after, by_position, first_decision, follow, without_time
from tests.properties import examples

CONNECT_FOUR = "connect_four"
BREAKTHROUGH = "breakthrough(rows=5,columns=5)"
LARGER = pytest.mark.slow("larger boards")


def searches(evaluator, ordering, key):
    """{name: search(state, budget)}: all variants and combinations, plain ones first."""
    deepening = {"iterative_deepening": True, "position_key": key}
    options = {
        "plain": {},
        "ordered": {"ordering": ordering},
        "badly ordered": {"ordering": ordering and (lambda state, moves: ordering(state, moves)[::-1])},
        "table": {"position_key": key},
        "deepening": {**deepening, "ordering": ordering},
        "backwards": {**deepening, "ordering": lambda state, moves: moves[::-1]},
        "all scores": {"all_scores": True, "position_key": key},
    }
    found = {"minimax": functools.partial(minimax, evaluator=evaluator)}
    for name, search in (("alpha-beta", alpha_beta), ("PVS", principal_variation_search)):
        for option, arguments in options.items():
            arguments = {"evaluator": evaluator, "iterative_deepening": False} | arguments
            found[f"{name}, {option}"] = functools.partial(search, **arguments)
    return found


def check(root, depth, oracle, searches):
    """Values, scores and best play are plain minimax's; return how many positions each search visits."""
    player, total = root.current_player(), root.get_game().utility_sum()

    def own(state, depth):
        value = oracle.value(state, depth)
        return value if player == 0 else total - value

    expected, nodes = oracle.scores(root, depth), {}
    for name, search in searches.items():
        found = search(root, SearchBudget(depth=depth))
        assert found.value == max(expected.values()) == own(root, depth), name
        assert expected[found.action] == found.value == found.scores[found.action], name
        assert found.player == player and found.depth <= depth, name
        assert found.depth == depth or found.stopped == "solved", name
        # Scores are exact, or marked as bounds.
        assert set(found.scores) == set(expected), name
        for action, score in found.scores.items():
            bound = action in found.upper_bounds
            assert score == expected[action] or (bound and expected[action] <= score <= found.value), name
        if name == "minimax" or "all scores" in name:
            assert not found.upper_bounds, name
            # The first of the best ones, as player 0 counts: 1 less that may round two values to one.
            below = {action: oracle.value(root.child(action), depth - 1) for action in expected}
            best = (max if player == 0 else min)(below.values())
            assert found.action == min(action for action, value in below.items() if value == best), name
        # Best play leads to a position of that value.
        line = found.principal_variation
        end = follow(root, line)
        assert line[0] == found.action and len(line) <= depth, name
        assert own(end, depth - len(line)) == found.value, name
        assert end.current_player() < 0 or len(line) == depth, name
        nodes[name] = found.nodes
    for option in ("plain", "ordered", "badly ordered", "table"):
        most = nodes.get("minimax", nodes["alpha-beta, plain"])
        assert nodes.get(f"alpha-beta, {option}", 0) <= most, option
    return nodes


@examples(320)
@given(
    games("perfect", least=2, actions=5) | games("perfect", depth=6, least=2, repeated=True),
    st.builds(by_position, SEEDS, st.booleans()),
    st.integers(1, 7),
)
def test_every_variant_has_minimax_values(game, evaluator, depth):
    def by_what_follows(state, actions):
        sign = -1.0 if state.current_player() == 0 else 1.0
        return sorted(actions, key=lambda action: sign * evaluator(state.child(action)))

    root = first_decision(game)
    assume(not root.is_terminal())
    # The oracle looks at the tree itself: transpositions are for the searches to get right.
    oracle = Oracle(evaluator, lambda state: tuple(state.history()))
    check(root, depth, oracle, searches(evaluator, by_what_follows, str))


def known(game_string):
    game = pyspiel.load_game(game_string)
    return {"ordering": known_of(game).ordering, "position_key": known_of(game).position_key or str}


def pig_evaluator(state):
    """Return the difference of scores, the turn's included, as a share of 100."""
    words = str(state).replace(",", " ").split()
    scores = [int(words[1]), int(words[2])]
    if state.current_player() >= 0:
        scores[state.current_player()] += int(words[5])
    return (scores[0] - scores[1]) / 100.0


@pytest.mark.parametrize(
    ("game_string", "line", "depth"),
    [
        ("tic_tac_toe", [], 9),
        (CONNECT_FOUR, [], 6),
        (BREAKTHROUGH, [], 5),
        ("pig", [], 4),
        ("pig", [0, 3, 0, 5, 1, 0, 0], 4),
    ],
)
def test_named_games(game_string, line, depth):
    root, options = after(game_string, line), known(game_string)
    player = root.current_player()
    sign = 1.0 if player == 0 else -1.0
    evaluator = known_of(root.get_game()).evaluator or pig_evaluator
    oracle = Oracle(evaluator, str)
    variants = searches(evaluator, options["ordering"], options["position_key"])
    for at in range(1, depth + 1):
        if at < 4:
            theirs, _ = openspiel_minimax.expectiminimax(root, at, lambda s: sign * evaluator(s), player)
            assert sign * oracle.value(root, at) == pytest.approx(theirs, abs=1e-12)
        if at == 5:
            slow = [name for name in variants if name.endswith(("minimax", "badly ordered", "backwards"))]
            for name in (*slow, "PVS, plain"):
                del variants[name]
        nodes = check(root, at, oracle, variants)
    assert nodes["alpha-beta, ordered"] <= nodes["alpha-beta, plain"]
    assert nodes["PVS, deepening"] <= nodes["alpha-beta, deepening"] < nodes["alpha-beta, plain"]


@pytest.mark.parametrize(
    ("game_string", "expected"),
    [
        ("tic_tac_toe", None),
        ("connect_four(rows=4,columns=4,x_in_row=3)", None),
        pytest.param("connect_four(rows=5,columns=4)", 0.0, marks=LARGER),  # as John Tromp found
        ("breakthrough(rows=4,columns=3)", None),
        pytest.param("breakthrough(rows=4,columns=4)", None, marks=LARGER),
    ],
)
def test_solves(game_string, expected):
    """None: as OpenSpiel finds, which takes too long for some."""
    game = pyspiel.load_game(game_string)
    root = game.new_initial_state()
    if expected is None:
        expected = openspiel_minimax.alpha_beta_search(game, maximum_depth=1000)[0]
    # Without a limit in depth, a search deepens.
    for search, budget in (
        (alpha_beta, SearchBudget(depth=1000)),
        (principal_variation_search, SearchBudget(seconds=300.0)),
    ):
        found = search(root, budget, iterative_deepening=False, **known(game_string))
        assert found.stopped == "solved"
        assert found.value == expected
        end = follow(root, found.principal_variation)
        assert end.is_terminal() and end.returns()[0] == expected


def test_a_line_deeper_than_the_recursion_limit():
    plies = 2000
    game = written(*((1 + k % 2, 1 + k // 2, ["go"]) for k in range(plies)), 1)
    before = sys.getrecursionlimit()
    for search in (minimax, alpha_beta, principal_variation_search):
        options = {"iterative_deepening": False} if search is principal_variation_search else {}
        found = search(game.new_initial_state(), SearchBudget(depth=plies + 1), **options)
        assert (found.value, found.nodes, len(found.principal_variation)) == (1.0, plies + 1, plies)
    assert sys.getrecursionlimit() == before


# -- budgets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", [minimax, alpha_beta, principal_variation_search])
def test_node_budgets_hold(search):
    game = pyspiel.load_game(CONNECT_FOUR)
    root, evaluator = game.new_initial_state(), known_of(game).evaluator
    oracle = Oracle(evaluator, str)
    arguments = {} if search is minimax else known(CONNECT_FOUR)
    finished = set()
    for nodes in (1, 2, 7, 8, 9, 60, 500, 3000):
        for depth in (None, 2):
            found = search(root, SearchBudget(depth=depth, nodes=nodes), evaluator=evaluator, **arguments)
            assert found.nodes <= nodes
            finished.add(found.depth)
            if found.depth == 0:
                assert (found.value, found.scores, found.stopped) == (evaluator(root), {}, "nodes")
                assert found.action in root.legal_actions() and found.principal_variation == ()
            else:
                alone = search(root, SearchBudget(depth=found.depth), evaluator=evaluator, **arguments)
                assert found.value == alone.value == oracle.value(root, found.depth)
                assert found.action in oracle.scores(root, found.depth)
            assert found.stopped == ("depth" if found.depth == depth else "nodes")
    assert {0, 1, 2} < finished and max(finished) >= 3


def test_the_first_limit_ends_the_search():
    root, start = after(CONNECT_FOUR, []), time.thread_time()
    for limits, stopped in (
        ({"nodes": 100, "seconds": 100.0}, "nodes"),
        ({"nodes": 10**9, "seconds": 0.05}, "seconds"),
        ({"nodes": 10**9, "seconds": 100.0, "depth": 2}, "depth"),
    ):
        found = alpha_beta(root, SearchBudget(**limits))
        assert found.stopped == stopped and found.nodes <= limits["nodes"]
    assert found.depth == 2 and time.thread_time() - start < 2.0


def test_time_budgets_hold():
    game = pyspiel.load_game(CONNECT_FOUR)
    root, evaluator = game.new_initial_state(), known_of(game).evaluator
    last = 0.0

    def slow(state):
        nonlocal last
        time.sleep(2e-3)
        last = time.perf_counter()
        return evaluator(state)

    start = time.perf_counter()
    found = alpha_beta(root, SearchBudget(seconds=0.2), evaluator=slow)
    took = last - start
    assert found.stopped == "seconds" and found.depth >= 1
    # One batch of 16 positions at 2 ms each beyond the limit, and what a busy machine adds to sleep.
    assert 0.15 < took < 0.2 + 16 * 10e-3
    alone = alpha_beta(root, SearchBudget(depth=found.depth), evaluator=evaluator)
    assert found.value == alone.value
    assert alpha_beta(root, SearchBudget(seconds=1e-9), evaluator=evaluator).depth == 0


@pytest.mark.parametrize("search", [minimax, alpha_beta, principal_variation_search])
def test_at_depth_0_a_chance_node_itself_is_evaluated(search):
    start, seen = pyspiel.load_game("pig").new_initial_state(), []

    def evaluator(state):
        seen.append(state.is_chance_node())
        return 0.25 if state.is_chance_node() else -0.5

    found = search(start, SearchBudget(depth=1), evaluator=evaluator)
    assert (found.action, found.value) == (0, 0.25)  # to roll, and not to stop
    assert sorted(seen) == [False, True]


def test_what_no_search_takes():
    tic_tac_toe, dilemma = (
        first_decision(pyspiel.load_game_as_turn_based(name)) for name in ("tic_tac_toe", "matrix_pd")
    )
    limit, alike = SearchBudget(depth=4), {"position_key": lambda state: 0, "iterative_deepening": True}
    for call, words in (
        (SearchBudget, "expected a limit, depth or nodes or seconds, got none"),
        (SimulationBudget, "expected a limit, simulations or seconds, got none"),
        (lambda: alpha_beta(dilemma, limit), "zero-sum or constant-sum"),
        (lambda: alpha_beta(tic_tac_toe, limit, **alike), "expected states with equal position_key"),
        (
            lambda: principal_variation_search(tic_tac_toe, limit, **alike),
            "expected states with equal position_key",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()


# -- Monte Carlo tree search -------------------------------------------------------------------------

# (game, moves so far, moves until the win, the only move that wins within 9, simulations enough for it)
ONE_WINNING_MOVE = [
    ("tic_tac_toe", [5, 4, 2, 1], 1, 8, 500),
    ("tic_tac_toe", [0, 3, 6, 8], 3, 2, 1_000),
    ("tic_tac_toe", [3, 7, 0], 5, 6, 2_000),
    ("connect_four", [1, 6, 3, 5, 0, 3], 1, 2, 1_000),
    ("connect_four", [1, 1, 3, 1, 5, 0], 3, 4, 5_000),
    ("connect_four", [5, 3, 2, 3, 1, 2, 2, 4, 3], 3, 4, 5_000),
]


@pytest.mark.parametrize(("game_string", "moves", "distance", "best", "simulations"), ONE_WINNING_MOVE)
def test_finds_the_only_winning_move(game_string, moves, distance, best, simulations):
    state = after(game_string, moves)
    # That it is the only one is seen by search, not taken on trust.
    exact = principal_variation_search(
        state, SearchBudget(depth=distance), position_key=str, all_scores=True, iterative_deepening=False
    )
    assert [a for a, score in exact.scores.items() if score == 1.0] == [best]
    for seed in range(5):
        found = mcts(state, SimulationBudget(simulations), seed=seed)
        assert found.player == state.current_player()
        assert found.action == best == found.principal_variation[0]
        assert found.visits[best] == max(found.visits.values())
        assert found.scores[best] == max(found.scores.values()) > 0.0


@dataclasses.dataclass
class Node:
    """A node of the slides' tree; `total` is player 0's utility, and `children` are in order of creation."""

    state: Any
    visits: int = 0
    total: float = 0.0
    children: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self.untried = list(self.state.legal_actions())


def plain_mcts(root, simulations, c, evaluator, seed):
    """Return the root of the slides' tree, grown with the same random numbers."""
    digest = hashlib.blake2b(repr((seed, root.current_player(), str(root))).encode(), digest_size=16)
    stream = int.from_bytes(digest.digest()[:8], "little")

    def draw():
        nonlocal stream
        z = stream = (stream + 0x9E3779B97F4A7C15) % 2**64
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        return ((z ^ (z >> 31)) >> 11) / 2**53

    def chosen(node):
        if node.state.is_chance_node():
            left = draw()
            for outcome, probability in node.state.chance_outcomes():
                left -= probability
                last = outcome
                if left < 0.0:
                    break
            return last
        if node.untried:
            k = int(draw() * len(node.untried))
            # The first untried one takes the place of the one tried.
            action, node.untried[k] = node.untried[k], node.untried[0]
            del node.untried[0]
            return action
        sign = 1.0 if node.state.current_player() == 0 else -1.0

        def uct(child):
            width = math.sqrt(math.log(node.visits + 1) / (child.visits + 1))
            return sign * child.total / child.visits + c * width

        return max(node.children, key=lambda action: uct(node.children[action]))

    top = Node(root)
    for _ in range(simulations):
        path = [top]
        while not path[-1].state.is_terminal():
            here, action = path[-1], chosen(path[-1])
            new = action not in here.children
            if new:
                here.children[action] = Node(here.state.child(action))
            path.append(here.children[action])
            if new:
                break
        end = path[-1].state
        value = end.returns()[0] if end.is_terminal() else evaluator(end)
        for node in path:
            node.visits += 1
            node.total += value
    return top


def size(node):
    return 1 + sum(map(size, node.children.values()))


@examples(160)
@given(games("perfect", depth=6, least=2), SEEDS, st.booleans(), st.sampled_from((0.7, 0.0, 1000.0)))
def test_against_a_plain_implementation(game, seed, ties, c):
    root, evaluator = first_decision(game), by_position(seed, ties)
    assume(not root.is_terminal())
    plain = plain_mcts(root, 200, c, evaluator, seed)
    found = mcts(root, SimulationBudget(200), c=c, seed=seed, evaluator=evaluator)
    assert found.nodes == size(plain)
    visits = {action: child.visits for action, child in plain.children.items()}
    assert found.visits == dict.fromkeys(root.legal_actions(), 0) | visits
    mean = plain.total / 200
    own = mean if found.player == 0 else game.utility_sum() - mean
    assert found.value == pytest.approx(own, abs=1e-12)


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("means", [(0.5, 0.25), (0.6, 0.2, 0.4), (0.9, 0.6, 0.5, 0.3)])
def test_regret_of_a_bandit_grows_as_log_n(means, player):
    """One choice among arms that pay 1 with a known probability, and 0 otherwise; means of 20 seeds.

    delta = sqrt(ln t / N) is c = 1 for rewards in [0, 1]. An arm of gap d is played until 2 delta < d, that
    is 4 ln n / d^2 times, and a constant more: regret is at most the sum of 4 ln n / d + O(1).
    """
    nodes: list[Any] = [(player + 1, 1, range(len(means)))]
    for mean in means:
        nodes += [{"win": mean, "lose": 1 - mean}, sides(player, 1, 0), sides(player, 0, 1)]
    root, gaps, regrets = written(*nodes).new_initial_state(), max(means) - np.array(means), []
    for n in (1_000, 4_000, 16_000, 64_000):
        found = [mcts(root, SimulationBudget(n), c=1.0, seed=seed).visits for seed in range(20)]
        regrets.append(np.mean([gaps @ [visits[arm] for arm in sorted(visits)] for visits in found]))
        assert regrets[-1] <= sum(4.0 * math.log(n) / gap + 4.0 * gap for gap in gaps if gap > 0.0)
    # A straight line in log n: every factor of 4 adds about the same. (Linear growth would add four times as
    # much, sqrt(n) twice as much.)
    added = np.diff(regrets)
    assert (added > 0.0).all()
    assert added.max() < 1.7 * added.min()


# -- roll-outs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game_string", "moves"),
    [("tic_tac_toe", []), ("tic_tac_toe", [4]), ("pig(winscore=15)", []), ("pig(winscore=15)", [0])],
)
def test_rollouts_are_uniform(game_string, moves):
    state = after(game_string, moves)
    cpp, python = (RandomRollouts(state.get_game(), seed) for seed in (1, 2))
    assert cpp.search is not None
    python.search = None
    before = str(state), state.history()
    means = [np.mean([play(state) for _ in range(5_000)]) for play in (cpp, python)]
    assert (str(state), state.history()) == before
    # Each has a standard deviation below 0.0142.
    assert means[0] == pytest.approx(means[1], abs=0.06)


def test_rollouts_of_python_games():
    game = random_tree(3, depth=5)
    play = RandomRollouts(game, 1)
    assert play.search is None
    state = first_decision(game)
    values = [play(state) for _ in range(50)]
    assert all(-1.0 <= value <= 2.0 for value in values) and len(set(values)) > 1
    found = mcts(state, SimulationBudget(3_000), c=2.0, seed=1)
    exact = minimax(state, SearchBudget(depth=9))
    assert exact.scores[found.action] == pytest.approx(exact.value, abs=0.2)
    assert RandomRollouts(pyspiel.load_game("misere(game=tic_tac_toe())"), 1).search is None


# -- seeds and budgets -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game_string", "moves", "transposed"),
    [(CONNECT_FOUR, [3, 2, 4], [4, 2, 3]), ("pig(winscore=20)", [], []), (BREAKTHROUGH, [], [])],
)
def test_reproducible_from_a_seed_and_the_position(game_string, moves, transposed):
    state, same = after(game_string, moves), after(game_string, transposed)
    first, again, other = (
        without_time(mcts(start, SimulationBudget(1_000), seed=seed))
        for start, seed in ((state, 7), (same, 7), (state, 8))
    )
    assert first == again != other


def test_exact_searches_are_reproducible():
    root, options = after(BREAKTHROUGH, []), known(BREAKTHROUGH)
    one, two = (principal_variation_search(root, SearchBudget(nodes=5000), **options) for _ in range(2))
    assert without_time(one) == without_time(two)


def test_simulation_budgets_hold():
    state = after("connect_four", [])
    for n in (1, 2, 7, 8, 1023, 1024, 1025, 9000):  # arrays grow on the way
        found = mcts(state, SimulationBudget(n))
        assert (found.simulations, found.stopped) == (n, "simulations")
    start = time.thread_time()
    found = mcts(state, SimulationBudget(seconds=0.1))
    assert time.thread_time() - start < 1.0 and found.stopped == "seconds" and found.simulations > 10
    assert mcts(state, SimulationBudget(seconds=1e-9)).simulations == 1
    assert mcts(state, SimulationBudget(simulations=50, seconds=60.0)).stopped == "simulations"
    # A tree that is finished leaves nothing to do but to play in it, which still takes time.
    over = mcts(after("tic_tac_toe", [0, 3, 1, 4, 5, 8, 6]), SimulationBudget(seconds=0.1))
    assert over.stopped == "seconds" and over.nodes <= 7 and over.simulations > 4096
