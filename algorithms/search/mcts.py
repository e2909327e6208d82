"""Monte Carlo tree search: a tree that grows by one node a simulation, where UCT directs it.

Each simulation goes down the tree by the greatest

    UCT = mean + c sqrt(log(N_p + 1) / (N + 1))

where `mean` is the child's mean utility to the player who chooses, N its visits and N_p its parent's; takes
a random move that has not been tried at the first position that has one; plays on from the new position at
random; and adds the result to every node on the way. Chance nodes are nodes like others, whose edges are
drawn with their probabilities. Source: `game_search`, "Monte Carlo Tree Search" to "UCT".

The slides keep each node's sum from the viewpoint of the player who moves there, and read it with the
opposite sign. Here every sum is player 0's utility, read with the sign of the player who chooses, which is
right whoever moves. What slips in the slides:

  * `prior = -valueSum / visitCount` takes the child's mover for the opponent of its parent's. Where a player
    moves twice in a row it chooses what is worst for itself;
  * a terminal node has no mover, and a chance node's is chance: `simulate` returns the value "w.r.t.
    node.player", which means nothing there, and `backpropagate` compares players with it;
  * `backpropagate` compares `node.player`, where the node just popped is called `child`; the text adds -1 to
    the other player's nodes, where it should be -value;
  * `mcts` selects "while node is fully expanded": a terminal node is, and has nothing to select;
  * the prior of 0 for an unvisited child is never used: all children of a fully expanded node are visited;
  * in "UCB", the mean is written as a sum, without 1 / n; and its bound is for rewards in [0, 1], where c = 1
    fits. Utilities in [-1, 1] have twice the range: c = 2 gives the same guarantee (less often plays better).

The tree stands in flat arrays. Nodes are numbered in order of creation; the edges of a node stand side by
side, one for each legal action (or outcome). Game states stay outside of the compiled loop: it says which
edge is followed out of the tree, gets what was found there, and is called once a simulation. Simulations
that end in a terminal node of the tree need none.

Cost: a simulation takes one compiled pass over the tree, one new state, and one roll-out, which is what most
of the time goes to. One state is kept for each node.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import random
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import public, utility_sum
from precomp_games._support.game_facts import GameFacts, chance_outcomes, legal_actions
from precomp_games._support.kernels import kernel
from precomp_games._support.results import Result
from precomp_games.tree.facts import CHANCE, TERMINAL

from .depth_first import Evaluator, Limits, SearchState

_BATCH = 4096  # simulations that end inside the tree between two looks at the clock


@public
@dataclasses.dataclass(frozen=True)
class SimulationBudget(Limits):
    """Limits of Monte Carlo tree search; the first one that is reached ends it.

    Attributes:
      simulations: Games played from the root, in the tree and beyond.
      seconds: Wall-clock time. Results are not reproducible then.
    """

    simulations: checks.PositiveInt | None = None
    seconds: checks.PositiveFloat | None = None


@dataclasses.dataclass(frozen=True)
class MCTSResult(Result):
    """Result of the simulations at the root. Utilities are those of `player`.

    Attributes:
      player: The player to move at the root.
      action: The most visited move (then the better, then the least).
      value: Mean utility of all simulations.
      scores: {action: mean utility}, of the moves that were visited.
      visits: {action: simulations}, of all moves.
      principal_variation: The most visited moves from the root on, to the first chance node.
      simulations: Games played.
      nodes: nodes of the tree, the root included.
      seconds: Wall-clock time.
      stopped: "simulations" or "seconds", the limit that ended the search.
    """

    player: int
    action: int
    value: float
    scores: dict[int, float]
    visits: dict[int, int]
    principal_variation: tuple[int, ...]
    simulations: int
    nodes: int
    seconds: float
    stopped: str


@public
def mcts(
    state: SearchState,
    budget: SimulationBudget,
    *,
    c: checks.NonNegativeFloat = 1.4,
    evaluator: Evaluator | None = None,
    seed: int = 0,
) -> MCTSResult:
    """Search from a state by simulation.

    Args:
      state: of a two-player game of zero or constant sum and perfect information, a player to move.
      budget: at least one simulation is made.
      c: exploration constant, in the game's utility; 0 takes what has been best so far.
      evaluator: player 0's utility of a new position, in place of a game played out at random.
      seed: with the position (its player to move and its text), the source of all random numbers.

    Raises:
      ValueError: an argument is not as above, or the evaluator's answer is not finite.
    """
    game = state.get_game()
    start = time.perf_counter()
    digest = hashlib.blake2b(repr((seed, state.current_player(), str(state))).encode(), digest_size=16)
    words = np.frombuffer(digest.digest(), np.uint64)
    rollout = evaluator or RandomRollouts(game, int(words[1]))
    tree = _Tree(state, words[:1].copy())
    stopped = tree.grow(budget, c, rollout, start)
    return tree.result(start, stopped)


# A node of the tree.
_NODE = np.dtype(
    [
        ("parent", np.int32),  # -1 at the root
        ("player", np.int32),  # who moves: 0, 1, chance or terminal, as in OpenSpiel
        ("first_edge", np.int32),
        ("num_edges", np.int32),
        ("opened", np.int32),  # at a decision node, edges first_edge .. first_edge + opened have children
        ("visits", np.int64),
        ("total", np.float64),  # sum of player 0's utility over the visits
        ("utility", np.float64),  # player 0's, of a terminal node
    ]
)

# A move or an outcome from a node.
_EDGE = np.dtype(
    [
        ("child", np.int32),  # -1: not in the tree yet
        ("index", np.int32),  # of the action among the node's legal actions
        ("probability", np.float64),  # of the outcome, at a chance node
    ]
)


class _Tree:
    """The arrays, and the states that belong to them."""

    def __init__(self, state: Any, stream: np.ndarray) -> None:
        self._stream, self._sum = stream, utility_sum(state.get_game())
        self._facts = GameFacts(state.get_game(), bounded=False)
        self._nodes = np.zeros(1024, _NODE)
        self._states = [state.clone()]
        self._actions = [legal_actions(state)]
        self._used = len(self._actions[0])
        self._edges = np.zeros(max(8192, self._used), _EDGE)
        _add_node(self._nodes, self._edges, 0, -1, state.current_player(), 0, self._used)

    def grow(self, budget: SimulationBudget, c: float, value_of: Evaluator, start: float) -> str:
        """Simulate until the budget ends; return the limit that ended it."""
        last = sys.maxsize if budget.simulations is None else min(int(budget.simulations), sys.maxsize)
        deadline = math.inf if budget.seconds is None else start + budget.seconds
        timed = budget.seconds is not None
        nodes, edges, stream = self._nodes, self._edges, self._stream
        states, actions = self._states, self._actions
        known: dict[tuple[int, ...], tuple[int, ...]] = {}
        size, used, pending = 1, self._used, False
        player, first, count, value = 0, 0, 0, 0.0
        limit = min(last, _BATCH) if timed else last
        node_room, edge_room = len(nodes), len(edges)
        while True:
            if timed and size + pending > 1 and time.perf_counter() >= deadline:
                limit = 0  # the simulation that is running is the last one
            parent, index = _next_leaf(
                nodes, edges, stream, c, size, pending, player, first, count, value, limit
            )
            size += pending
            if parent < 0:
                if (done := int(nodes[0]["visits"])) >= last:
                    return "simulations"
                if time.perf_counter() >= deadline:
                    return "seconds"
                pending, limit = False, min(last, done + _BATCH)
                continue
            state = states[parent].child(actions[parent][index])
            player = self._facts.mover(state)
            first = used
            if player == TERMINAL:
                legal: Any = ()
                value = self._facts.utilities(state)[0]
            else:
                if player == CHANCE:
                    legal, chances = zip(*chance_outcomes(state), strict=True)
                else:
                    legal = legal_actions(state)
                value = checks.check_evaluation(value_of(state), state, "evaluator")
            # One tuple for each set of moves: a list a node would keep the garbage collector busy.
            legal = tuple(legal)
            legal = known.setdefault(legal, legal)
            count = len(legal)
            used += count
            states.append(state)
            actions.append(legal)
            pending = True
            if size + 2 > node_room:
                nodes = self._nodes = _doubled(nodes)
                node_room = len(nodes)
            while used > edge_room:
                edges = self._edges = _doubled(edges)
                edge_room = len(edges)
            if player == CHANCE:
                edges["probability"][first:used] = chances

    def result(self, start: float, stopped: str) -> MCTSResult:
        """Return the statistics of the root."""
        nodes = self._nodes
        player = int(nodes[0]["player"])

        def mean(node: int) -> float:
            utility = float(nodes[node]["total"] / nodes[node]["visits"])
            return utility if player == 0 else self._sum - utility

        children = self._children(0)
        visits = {action: int(nodes[node]["visits"]) for action, node in children.items()}
        scores = {action: mean(node) for action, node in children.items()}
        line, node = [], 0
        while nodes[node]["player"] >= 0 and (below := self._children(node)):
            sign = 1.0 if nodes[node]["player"] == 0 else -1.0
            best = max(below, key=lambda a: (nodes[below[a]]["visits"], sign * nodes[below[a]]["total"], -a))
            line.append(best)
            node = below[best]
        return MCTSResult(
            player=player,
            action=line[0],
            value=mean(0),
            scores=scores,
            visits={action: visits.get(action, 0) for action in self._actions[0]},
            principal_variation=tuple(line),
            simulations=int(nodes[0]["visits"]),
            nodes=len(self._states),
            seconds=time.perf_counter() - start,
            stopped=stopped,
        )

    def _children(self, node: int) -> dict[int, int]:
        """Return {action: node} of the children that are there, by action."""
        first, count = int(self._nodes[node]["first_edge"]), int(self._nodes[node]["num_edges"])
        edges = self._edges[first : first + count]
        children = {self._actions[node][edge["index"]]: int(edge["child"]) for edge in edges}
        return {action: child for action, child in sorted(children.items()) if child >= 0}


def _doubled(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, np.zeros_like(array)])


class RandomRollouts:
    """An evaluator: player 0's utility in a game that is played on at random, drawn anew at each call.

    Games of OpenSpiel's C++ are played out by its own `RandomRolloutEvaluator`. Python reaches it only
    through a tree search of a single simulation, which evaluates its root and stops; that is about 4 times
    faster than playing move by move from Python. Games written in Python, and C++ games around them, are
    played move by move: C++'s tree search does not survive them.

    search: where C++ plays, what does it: from a state where a player is to move to a node whose
      `total_reward` is that player's utility in the game; else None.
    """

    def __init__(self, game: pyspiel.Game, seed: int) -> None:
        """Initialize the roll-outs.

        Args:
          game: whose states they are asked about: two players, sequential, zero or constant sum.
          seed: of the stream that all calls draw from, any integer; the lowest 64 bits count.
        """
        self._random = random.Random(seed % 2**64)
        self._sum, self._facts = utility_sum(game), GameFacts(game, bounded=False)
        self.search: Any = None
        in_cpp = type(game.new_initial_state()).__module__.partition(".")[0] == "pyspiel"
        around_another = any(isinstance(value, dict) for value in game.get_parameters().values())
        if in_cpp and not around_another:
            evaluator = pyspiel.RandomRolloutEvaluator(1, self._random.getrandbits(31))
            # (game, evaluator, uct_c, simulations, MB of nodes, solve, seed, verbose)
            bot = pyspiel.MCTSBot(game, evaluator, 1.0, 1, 1, False, 0, False)
            self.search = bot.mcts_search
            self._keep = (bot, evaluator)

    def __call__(self, state: Any) -> float:
        """Play one game on from `state`, which stays as it is."""
        mover = state.current_player()
        if mover < 0:  # the single simulation needs a player's viewpoint
            state = state.clone()
            while mover == CHANCE:
                self._draw(state)
                mover = state.current_player()
            if mover == TERMINAL:
                return self._facts.utilities(state)[0]
        if self.search is not None:
            utility = float(self.search(state).total_reward)
            return utility if mover == 0 else self._sum - utility
        return self._play(state.clone())

    def _play(self, state: Any) -> float:
        draw = self._random.random
        while (mover := self._facts.mover(state)) != TERMINAL:
            if mover == CHANCE:
                self._draw(state)
            else:
                actions = legal_actions(state)
                state.apply_action(actions[int(draw() * len(actions))])
        return self._facts.utilities(state)[0]

    def _draw(self, state: Any) -> None:
        outcomes, probabilities = zip(*chance_outcomes(state), strict=True)
        state.apply_action(self._random.choices(outcomes, probabilities)[0])


@kernel
def _next_leaf(
    nodes: np.ndarray,
    edges: np.ndarray,
    stream: np.ndarray,
    c: float,
    size: int,
    pending: bool,
    player: int,
    first_edge: int,
    num_edges: int,
    value: float,
    limit: int,
) -> tuple[int, int]:
    """End the running simulation and lead the next one out of the tree.

    Args:
      nodes: array of `_NODE`, with room for two more.
      edges: array of `_EDGE`, with room for those of the pending node.
      stream: uint64[1], state of the random numbers.
      c: exploration constant, in utility.
      size: nodes in the tree.
      pending: whether the last call led out of the tree: to node `size`, which is added now.
      player: who moves there.
      first_edge: where its edges begin.
      num_edges: how many it has.
      value: player 0's utility in that simulation.
      limit: go on until the root has so many visits.

    Returns (parent, index of the action) of the next node to add, or (-1, 0) at the limit.
    """
    if pending:
        _add_node(nodes, edges, size, nodes[size].parent, player, first_edge, num_edges)
        if player == TERMINAL:
            nodes[size].utility = value
        _back_up(nodes, size, value)
        size += 1
    while nodes[0].visits < limit:
        node = 0
        while True:
            at = nodes[node]
            if at.player == TERMINAL:
                _back_up(nodes, node, at.utility)
                break
            if at.player == CHANCE:
                edge = _outcome(edges, at.first_edge, at.num_edges, _draw(stream))
                if edges[edge].child < 0:
                    edges[edge].child = size
                    nodes[size].parent = node
                    return node, edges[edge].index
            elif at.opened < at.num_edges:
                # A random edge among those that are left takes the next place.
                edge = at.first_edge + at.opened
                other = edge + int(_draw(stream) * (at.num_edges - at.opened))
                index = edges[other].index
                edges[other].index = edges[edge].index
                edges[edge].index = index
                edges[edge].child = size
                nodes[node].opened += 1
                nodes[size].parent = node
                return node, index
            else:
                edge = _select(nodes, edges, node, c)
            node = edges[edge].child
    return -1, 0


@kernel
def _add_node(
    nodes: np.ndarray, edges: np.ndarray, node: int, parent: int, player: int, first_edge: int, num_edges: int
) -> None:
    """Make a node, the root (0) too, of a row of zeros. Nothing has been simulated from it yet."""
    nodes[node].parent = parent
    nodes[node].player = player
    nodes[node].first_edge = first_edge
    nodes[node].num_edges = num_edges
    for k in range(num_edges):
        edges[first_edge + k].child = -1
        edges[first_edge + k].index = k


@kernel
def _back_up(nodes: np.ndarray, node: int, value: float) -> None:
    while node >= 0:
        nodes[node].visits += 1
        nodes[node].total += value
        node = nodes[node].parent


@kernel
def _select(nodes: np.ndarray, edges: np.ndarray, node: int, c: float) -> int:
    """Return the edge of the greatest UCT, where all children have been visited."""
    at = nodes[node]
    sign = 1.0 if at.player == 0 else -1.0
    width = c * math.sqrt(math.log(at.visits + 1.0))
    best = -math.inf
    best_edge: int = at.first_edge
    for edge in range(at.first_edge, at.first_edge + at.num_edges):
        child = nodes[edges[edge].child]
        score = sign * child.total / child.visits + width / math.sqrt(child.visits + 1.0)
        if score > best:
            best, best_edge = score, edge
    return best_edge


@kernel
def _outcome(edges: np.ndarray, first: int, count: int, draw: float) -> int:
    for edge in range(first, first + count - 1):
        draw -= edges[edge].probability
        if draw < 0.0:
            return edge
    return first + count - 1


@kernel
def _draw(stream: npt.NDArray[np.uint64]) -> float:
    """Return a number uniform in [0, 1), by splitmix64."""
    stream[0] += np.uint64(0x9E3779B97F4A7C15)
    z = stream[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)
