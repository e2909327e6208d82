"""The tree of Monte Carlo tree search as flat arrays, and its compiled inner loop.

Nodes are numbered in order of creation; the edges of a node stand side by side, one for each legal action (or
outcome). Game states stay outside: the kernel says which edge is followed out of the tree, is told what was
found there, and is called once a simulation. Simulations that end in a terminal node of the tree need none.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel
from precomp_games.tree.facts import CHANCE, TERMINAL

# A node of the tree.
NODE = np.dtype(
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
EDGE = np.dtype(
    [
        ("child", np.int32),  # -1: not in the tree yet
        ("index", np.int32),  # of the action among the node's legal actions
        ("probability", np.float64),  # of the outcome, at a chance node
    ]
)


@kernel
def next_leaf(
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
    """Ends the running simulation and leads the next one out of the tree.

    Args:
      nodes: array of `NODE`, with room for two more.
      edges: array of `EDGE`, with room for those of the pending node.
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
        add_node(nodes, edges, size, nodes[size].parent, player, first_edge, num_edges)
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
def add_node(
    nodes: np.ndarray, edges: np.ndarray, node: int, parent: int, player: int, first_edge: int, num_edges: int
) -> None:
    """Makes a node, the root (0) too, of a row of zeros. Nothing has been simulated from it yet."""
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
    """The edge of the greatest UCT, where all children have been visited."""
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
    """Uniform in [0, 1): splitmix64."""
    stream[0] += np.uint64(0x9E3779B97F4A7C15)
    z = stream[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)
