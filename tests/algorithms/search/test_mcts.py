"""Monte Carlo tree search: converges, has logarithmic regret on bandits, and reproduces from its seed."""

import hashlib
import math
import time

import numpy as np
import pyspiel
import pytest

from precomp_games.algorithms.search import (
    SearchBudget,
    SimulationBudget,
    mcts,
    minimax,
    principal_variation_search,
)
from precomp_games.algorithms.search.mcts import RandomRollouts
from tests.oracles.games import EfgText, random_tree, sides
from tests.oracles.graphs import after, random_game, without_time

# -- it finds what is best ---------------------------------------------------------------------------

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


class PlainMCTS:
    """The slides' loop over dictionaries keyed by history, with the same random numbers."""

    def __init__(self, root, c, evaluator, seed):
        self.root, self.c, self.evaluator = root, c, evaluator
        digest = hashlib.blake2b(repr((seed, root.current_player(), str(root))).encode(), digest_size=16)
        self.stream = int.from_bytes(digest.digest()[:8], "little")
        self.visits: dict[tuple[int, ...], int] = {(): 0}
        self.total: dict[tuple[int, ...], float] = {(): 0.0}
        self.untried: dict[tuple[int, ...], list[int]] = {(): list(root.legal_actions())}

    def draw(self):
        self.stream = (self.stream + 0x9E3779B97F4A7C15) % 2**64
        z = self.stream
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        return ((z ^ (z >> 31)) >> 11) / 2**53

    def uct(self, parent, child, player):
        mean = self.total[child] / self.visits[child]
        width = math.sqrt(math.log(self.visits[parent] + 1) / (self.visits[child] + 1))
        return (mean if player == 0 else -mean) + self.c * width

    def simulate(self):
        state, path = self.root.clone(), [()]
        while True:
            here = path[-1]
            if state.is_terminal():
                break
            if state.is_chance_node():
                draw = self.draw()
                for outcome, probability in state.chance_outcomes():
                    action = outcome
                    draw -= probability
                    if draw < 0.0:
                        break
            elif self.untried[here]:
                untried = self.untried[here]
                k = int(self.draw() * len(untried))
                # The first untried one takes the place of the one tried.
                action, untried[k] = untried[k], untried[0]
                del untried[0]
            else:
                action = max(
                    self.tried[here], key=lambda a: self.uct(here, (*here, a), state.current_player())
                )
            child = (*here, action)
            state.apply_action(action)
            path.append(child)
            if child not in self.visits:
                self.visits[child], self.total[child] = 0, 0.0
                self.untried[child] = list(state.legal_actions())
                break
        value = state.returns()[0] if state.is_terminal() else self.evaluator(state)
        for node in path:
            self.visits[node] += 1
            self.total[node] += value

    @property
    def tried(self):
        """{node: the actions whose children are there, in order of creation}."""
        found = {}
        for node in self.visits:
            if node:
                found.setdefault(node[:-1], []).append(node[-1])
        return found


@pytest.mark.parametrize("chance", [0.0, 0.3])
def test_against_a_plain_implementation(chance):
    for seed in range(20):
        random = random_game(seed, levels=6, chance=chance, ties=seed % 2 == 0, utility_sum=float(seed % 3))
        root = random.game.new_initial_state()
        c = (0.7, 0.0, 1000.0)[seed % 3]
        plain = PlainMCTS(root, c, random.evaluator, seed)
        for _ in range(200):
            plain.simulate()
        found = mcts(root, SimulationBudget(200), c=c, seed=seed, evaluator=random.evaluator)
        assert found.nodes == len(plain.visits)
        assert found.visits == {a: plain.visits.get((a,), 0) for a in root.legal_actions()}
        mean = plain.total[()] / 200
        own = mean if found.player == 0 else random.game.utility_sum() - mean
        assert found.value == pytest.approx(own, abs=1e-12)


# -- bandits -----------------------------------------------------------------------------------------


def bandit(means, player):
    """One choice among arms that pay 1 with a known probability, and 0 otherwise."""
    text = EfgText()
    text.move(player + 1, 1, range(len(means)))
    for mean in means:
        text.chance({"win": mean, "lose": 1 - mean})
        for won in (1, 0):
            text.leaf(*sides(player, won, 1 - won))
    return text.game().new_initial_state()


def regret(root, means, simulations):
    """Return the regret of playing worse arms, on average over seeds."""
    total = 0.0
    for seed in range(20):
        visits = mcts(root, SimulationBudget(simulations), c=1.0, seed=seed).visits
        total += sum((max(means) - mean) * visits[k] for k, mean in zip(sorted(visits), means, strict=True))
    return total / 20


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("means", [(0.5, 0.25), (0.6, 0.2, 0.4), (0.9, 0.6, 0.5, 0.3)])
def test_regret_grows_as_log_n(means, player):
    # delta = sqrt(ln t / N) is c = 1 for rewards in [0, 1]. An arm of gap d is played until 2 delta < d, that
    # is 4 ln n / d^2 times, and a constant more: regret is at most the sum of 4 ln n / d + O(1).
    counts = [1_000, 4_000, 16_000, 64_000]
    seen = [regret(bandit(means, player), means, n) for n in counts]
    gaps = [max(means) - mean for mean in means if mean < max(means)]
    for n, total in zip(counts, seen, strict=True):
        assert total <= sum(4.0 * math.log(n) / gap + 4.0 * gap for gap in gaps)
    # A straight line in log n: every factor of 4 adds about the same. (Linear growth would add four times as
    # much, sqrt(n) twice as much.)
    added = np.diff(seen)
    assert (added > 0.0).all()
    assert added.max() < 1.7 * added.min()


# -- roll-outs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game_string", "moves"),
    [("tic_tac_toe", []), ("tic_tac_toe", [4]), ("pig(winscore=15)", []), ("pig(winscore=15)", [0])],
)
def test_rollouts_are_uniform(game_string, moves):
    state = after(game_string, moves)
    game = state.get_game()
    cpp = RandomRollouts(game, 1)
    assert cpp.search is not None
    python = RandomRollouts(game, 2)
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
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    values = [play(state) for _ in range(50)]
    assert all(-1.0 <= value <= 2.0 for value in values) and len(set(values)) > 1
    found = mcts(state, SimulationBudget(3_000), c=2.0, seed=1)
    exact = minimax(state, SearchBudget(depth=9))
    assert exact.scores[found.action] == pytest.approx(exact.value, abs=0.2)
    assert RandomRollouts(pyspiel.load_game("misere(game=tic_tac_toe())"), 1).search is None


# -- seeds and budgets -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "game_string", ["connect_four", "pig(winscore=20)", "breakthrough(rows=5,columns=5)"]
)
def test_reproducible_from_a_seed(game_string):
    state = after(game_string, [])
    first, second, other = (
        mcts(state, SimulationBudget(2_000), seed=seed, evaluator=None) for seed in (7, 7, 8)
    )
    assert without_time(first) == without_time(second) != without_time(other)
    # Streams derive from the position, however it was reached.
    assert without_time(mcts(state.clone(), SimulationBudget(2_000), seed=7)) == without_time(first)


def test_streams_derive_from_the_position():
    one, two = after("connect_four", [3, 2, 4]), after("connect_four", [4, 2, 3])
    assert one.history() != two.history()
    results = [mcts(state, SimulationBudget(500), seed=1) for state in (one, two)]
    assert without_time(results[0]) == without_time(results[1])


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


def test_a_search_has_a_limit():
    with pytest.raises(ValueError, match="expected a limit, simulations or seconds, got none"):
        SimulationBudget()
