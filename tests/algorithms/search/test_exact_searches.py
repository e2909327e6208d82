"""Every exact search gives plain minimax's value, with fewer positions, within its budget."""

import functools
import sys
import time

import pyspiel
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from open_spiel.python.algorithms import minimax as openspiel_minimax
from open_spiel.python.algorithms import minimax_solver

from precomp_games.algorithms.search import (
    SearchBudget,
    SimulationBudget,
    alpha_beta,
    known_of,
    minimax,
    principal_variation_search,
)
from tests.oracles.games import SEEDS, games
from tests.oracles.graphs import Oracle, after, by_position, first_decision, follow, without_time
from tests.properties import examples

CONNECT_FOUR = "connect_four"
BREAKTHROUGH = "breakthrough(rows=5,columns=5)"
LARGER = pytest.mark.slow("larger boards")


def searches(evaluator, ordering, key):
    """{name: search(state, budget)}: all variants and combinations, plain ones first."""
    options = {
        "plain": {},
        "ordered": {"ordering": ordering},
        "badly ordered": {"ordering": ordering and (lambda state, moves: ordering(state, moves)[::-1])},
        "table": {"position_key": key},
        "deepening": {"iterative_deepening": True, "position_key": key, "ordering": ordering},
        "backwards": {
            "iterative_deepening": True,
            "position_key": key,
            "ordering": lambda state, moves: moves[::-1],
        },
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
            if action in found.upper_bounds:
                assert expected[action] <= score <= found.value, name
            else:
                assert score == expected[action], name
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
    ("game_string", "solver"),
    [
        ("tic_tac_toe", "table"),
        pytest.param("connect_four(rows=4,columns=4)", "table", marks=LARGER),
        ("connect_four(rows=4,columns=4,x_in_row=3)", "alpha-beta"),
        # For OpenSpiel's it takes too long.
        pytest.param("connect_four(rows=5,columns=4)", "John Tromp's", marks=LARGER),
        ("breakthrough(rows=4,columns=3)", "alpha-beta"),
        pytest.param("breakthrough(rows=4,columns=4)", "alpha-beta", marks=LARGER),
    ],
)
def test_solves(game_string, solver):
    game = pyspiel.load_game(game_string)
    root = game.new_initial_state()
    if solver == "table":  # of boards without the player to move, which breakthrough's strings lack
        their = minimax_solver.MinimaxSolver(game_string)
        their.solve()
        expected = float(their.values_from_string(str(root)))
    elif solver == "alpha-beta":
        expected = openspiel_minimax.alpha_beta_search(game, maximum_depth=1000)[0]
    else:
        expected = 0.0
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
    lines = ['EFG 2 R "chain" { "one" "two" }']
    lines += [f'p "" {1 + k % 2} {1 + k // 2} "" {{ "go" }} 0' for k in range(plies)]
    game = pyspiel.load_efg_game("\n".join([*lines, 't "" 1 "" { 1 -1 }']) + "\n")
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
    root = after(CONNECT_FOUR, [])
    found = alpha_beta(root, SearchBudget(nodes=100, seconds=100.0))
    assert found.nodes <= 100 and found.stopped == "nodes"
    start = time.thread_time()
    found = alpha_beta(root, SearchBudget(nodes=10**9, seconds=0.05))
    assert time.thread_time() - start < 2.0 and found.stopped == "seconds"
    found = alpha_beta(root, SearchBudget(nodes=10**9, seconds=100.0, depth=2))
    assert found.depth == 2 and found.stopped == "depth"


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


def test_searches_are_reproducible():
    root, options = after(BREAKTHROUGH, []), known(BREAKTHROUGH)
    one, two = (principal_variation_search(root, SearchBudget(nodes=5000), **options) for _ in range(2))
    assert without_time(one) == without_time(two)


@pytest.mark.parametrize("search", [minimax, alpha_beta, principal_variation_search])
def test_at_depth_0_a_chance_node_itself_is_evaluated(search):
    start, seen = pyspiel.load_game("pig").new_initial_state(), []

    def evaluator(state):
        seen.append(state.is_chance_node())
        return 0.25 if state.is_chance_node() else -0.5

    found = search(start, SearchBudget(depth=1), evaluator=evaluator)
    assert (found.action, found.value) == (0, 0.25)  # to roll, and not to stop
    assert sorted(seen) == [False, True]


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "limits"),
    [(SearchBudget, "depth or nodes or seconds"), (SimulationBudget, "simulations or seconds")],
)
def test_a_search_has_a_limit(budget, limits):
    with pytest.raises(ValueError, match=f"expected a limit, {limits}, got none"):
        budget()


def test_players_of_a_search_are_opponents():
    root = first_decision(pyspiel.convert_to_turn_based(pyspiel.load_game("matrix_pd")))
    with pytest.raises(ValueError, match="zero-sum or constant-sum"):
        alpha_beta(root, SearchBudget(depth=2))


@pytest.mark.parametrize("search", [alpha_beta, principal_variation_search])
def test_states_of_one_key_have_the_same_moves(search):
    root = after("tic_tac_toe", [])
    with pytest.raises(ValueError, match="expected states with equal position_key"):
        search(root, SearchBudget(depth=4), position_key=lambda state: 0, iterative_deepening=True)
