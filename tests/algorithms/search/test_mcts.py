"""Monte Carlo tree search: converges, has logarithmic regret on bandits, and reproduces from its seed."""

import dataclasses
import hashlib
import math
import time
from typing import Any

import numpy as np
import pyspiel
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from precomp_games.algorithms.search import (
    SearchBudget,
    SimulationBudget,
    mcts,
    minimax,
    principal_variation_search,
)
from precomp_games.algorithms.search.mcts import RandomRollouts
from tests.oracles.games import SEEDS, EfgText, games, random_tree, sides
from tests.oracles.graphs import after, by_position, first_decision, without_time
from tests.properties import examples

# (game, moves so far, moves until the win, the only move that wins within 9, simulations enough for it)
ONE_WINNING_MOVE = [
    ("tic_tac_toe", [5, 4, 2, 1], 1, 8, 500),
    ("tic_tac_toe", [6, 8, 1, 2, 4], 1, 5, 500),
    ("tic_tac_toe", [0, 3, 6, 8], 3, 2, 1_000),
    ("tic_tac_toe", [3, 8, 2, 1, 5], 3, 4, 1_000),
    ("tic_tac_toe", [8, 0, 1, 3], 5, 6, 2_000),
    ("tic_tac_toe", [3, 7, 0], 5, 6, 2_000),
    ("connect_four", [1, 6, 3, 5, 0, 3], 1, 2, 1_000),
    ("connect_four", [3, 5, 0, 5, 4, 5, 2], 1, 5, 1_000),
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
@given(
    games("perfect", depth=6, least=2),
    SEEDS,
    st.booleans(),
    st.sampled_from((0.7, 0.0, 1000.0)),
)
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
    text = EfgText()
    text.move(player + 1, 1, range(len(means)))
    for mean in means:
        text.chance({"win": mean, "lose": 1 - mean})
        for won in (1, 0):
            text.leaf(*sides(player, won, 1 - won))
    root, gaps, regrets = text.game().new_initial_state(), max(means) - np.array(means), []
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
    [
        ("connect_four", [3, 2, 4], [4, 2, 3]),
        ("pig(winscore=20)", [], []),
        ("breakthrough(rows=5,columns=5)", [], []),
    ],
)
def test_reproducible_from_a_seed_and_the_position(game_string, moves, transposed):
    state, same = after(game_string, moves), after(game_string, transposed)
    first, again, other = (
        without_time(mcts(start, SimulationBudget(1_000), seed=seed))
        for start, seed in ((state, 7), (same, 7), (state, 8))
    )
    assert first == again != other


def test_budgets():
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
