"""LiteEFG's CFR+ on a zero-sum game, which is written in LiteEFG's own format."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from precomp_games.tree.facts import CHANCE, TERMINAL

__all__ = ["NOT_MEASURED", "CFRPlus", "Node", "cfr_plus"]

NOT_MEASURED = "not measured: pip install LiteEFG"


class Node(NamedTuple):
    """A node of the game tree.

    Attributes:
      player: 0, 1, CHANCE or TERMINAL.
      children: In the order of actions.
      infoset: The number of a player's information set.
      odds: The probabilities of a chance node's children.
      payoff: Player 0's at a terminal node; the game is zero-sum.
    """

    player: int
    children: Sequence[Any] = ()
    infoset: int = -1
    odds: Sequence[float] = ()
    payoff: float = 0.0


class CFRPlus:
    """LiteEFG's solver of a game. nodes: the number of the game's nodes."""

    def __init__(self, path: Path, nodes: int) -> None:
        import LiteEFG
        from LiteEFG.baselines import CFRplus

        self.nodes = nodes
        self._environment, self._graph = LiteEFG.FileEnv(os.fspath(path)), CFRplus.graph()
        self._environment.set_graph(self._graph)

    def iterate(self) -> None:
        self._graph.update_graph(self._environment)
        self._environment.update_strategy(self._graph.current_strategy())

    def value(self) -> float:
        """Return player 0's value of the average strategies."""
        return float(self._environment.utility(self._graph.current_strategy(), "linear-avg-iterate")[0])


def cfr_plus(root: Any, node: Callable[[Any], Node]) -> CFRPlus | None:
    """Return the solver of a game from `root` on; None where LiteEFG is not installed.

    Args:
      root: whatever `node` takes, as all children are.
      node: what is there.
    """
    if importlib.util.find_spec("LiteEFG") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "written.game")
        return CFRPlus(path, _write(path, root, node))


def _write(path: Path, root: Any, node: Callable[[Any], Node]) -> int:
    """Write a game; the number of its nodes."""
    members: dict[tuple[int, int], list[int]] = {}
    stack, count = [(0, root)], 1
    with open(path, "w", encoding="ascii") as file:
        file.write("# Opt {\n#     openspiel,\n#     players: 2,\n# }\n")
        while stack:
            number, at = stack.pop()
            player, children, infoset, odds, payoff = node(at)
            names = [f"n{count + k}" for k in range(len(children))]
            if player == TERMINAL:
                file.write(f"node n{number} leaf payoffs 1={payoff:.17g} 2={-payoff:.17g}\n")
            elif player == CHANCE:
                text = " ".join(f"{name}={p:.17g}" for name, p in zip(names, odds, strict=True))
                file.write(f"node n{number} chance actions {text}\n")
            else:
                members.setdefault((player + 1, infoset), []).append(number)
                file.write(f"node n{number} player {player + 1} actions {' '.join(names)}\n")
            stack += [(count + k, child) for k, child in enumerate(children)]
            count += len(children)
        for (player, infoset), nodes in members.items():
            file.write(f"infoset pl{player}_{infoset} nodes {' '.join(f'n{k}' for k in nodes)}\n")
    return count
