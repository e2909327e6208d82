"""All pairs of utilities that a notion's correlated equilibria reach: a polygon, corner by corner.

Equilibria of each notion are a polytope, and so both players' utilities fill a polygon. A linear program
finds the polygon's farthest point in any direction. First those to the right, at the top, to the left and at
the bottom are found, and then, for each edge between two neighbors, what is farthest beyond it: a new corner,
or nothing, and then the edge is the polygon's. So a polygon of n corners takes some 2 n programs, and each of
them also tells by its dual how far the polygon can reach at most (`PayoffFrontier.gap`).

Source: refinement between an inner and an outer polygon; the notions' as in `triggers`.

Cost: some 2 n programs of `equilibria`.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.arguments import PositiveFloat, public
from precomp_games._support.results import Result

from ..programs import Clock
from .equilibria import Equilibrium, EquilibriumProgram
from .refinement import MAX_MEMORY_GB, MemoryLimit
from .sequence_game import SequenceGame
from .triggers import Notion

_NEW = 1e-7
"""How far beyond an edge a new corner is, where each player's utilities lie within [-1, 1]."""
_FIRST = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))


@dataclasses.dataclass(frozen=True, eq=False)
class PayoffFrontier(Result):
    """A polygon of utilities.

    Attributes:
      notion: "efce", "efcce" or "nfcce".
      equilibria: One for each corner, counterclockwise; one where all equilibria have the same utilities, two
        where these are a segment. Their objectives are the directions in which they were found.
      gap: How far equilibria's utilities may lie beyond an edge, or beyond a single corner or a segment in
        the directions that were tried; in utility.
      seconds: Wall-clock.
    """

    notion: Notion
    equilibria: tuple[Equilibrium, ...]
    gap: float
    seconds: float

    @property
    def corners(self) -> npt.NDArray[np.float64]:
        """float64[n, 2], both players' utilities at each corner."""
        return np.array([each.utilities for each in self.equilibria])

    @property
    def exploitability(self) -> float:
        """The greatest of the corners'."""
        return max(each.exploitability for each in self.equilibria)


@public
def payoff_frontier(
    game: pyspiel.Game | SequenceGame,
    *,
    notion: Notion = "efce",
    time_limit: PositiveFloat | None = None,
    vertex: bool = True,
    max_memory_gb: MemoryLimit = MAX_MEMORY_GB,
) -> PayoffFrontier:
    """Finds the polygon of all pairs of utilities that a notion's equilibria reach.

    Args:
      game: as for `efce_lp`.
      notion: as for `efce_lp`.
      time_limit: seconds for all.
      vertex: as for `efce_lp`.
      max_memory_gb: as for `refine_lp`.

    Raises:
      ValueError: as `efce_lp`.
      LinearProgramError: out of time.
    """
    clock = Clock(time_limit)
    program = EquilibriumProgram(game, np.ones(2), notion, None, 0.0, clock, max_memory_gb)
    center, scale = program.units
    tried: list[tuple[np.ndarray, float]] = []  # a normal of length 1 in utility, and what it bounds

    def farthest(normal: np.ndarray) -> Equilibrium:
        found = program.solve(vertex, normal / np.hypot(*normal))
        tried.append((normal / np.hypot(*normal), found.bound))
        return found

    def place(found: Equilibrium) -> npt.NDArray[np.float64]:
        return np.asarray((np.array(found.utilities) - center) / scale)

    first = [farthest(np.array(normal)) for normal in _FIRST]
    corners: list[Equilibrium] = []
    # Edges still to be looked at, the next one last.
    edges = [(first[k], first[(k + 1) % 4]) for k in (3, 2, 1, 0)]
    while edges:
        one, two = edges.pop()
        along = place(two) - place(one)
        length = float(np.hypot(*along))
        if length > _NEW:
            outward = np.array([along[1], -along[0]]) / length
            beyond = farthest(outward / scale)
            if float(outward @ (place(beyond) - place(one))) > _NEW:
                edges += [(beyond, two), (one, beyond)]
                continue
        corners.append(one)
    corners = _corners_of(corners, [place(each) for each in corners])
    points = np.array([each.utilities for each in corners])
    return PayoffFrontier(
        notion=notion,
        equilibria=tuple(corners),
        gap=max(bound - float((points @ normal).max()) for normal, bound in tried),
        seconds=clock.elapsed(),
    )


def _corners_of(found: list[Equilibrium], places: list[npt.NDArray[np.float64]]) -> list[Equilibrium]:
    """Those of a convex polygon's points that are corners, in order: no repetitions, and none on an edge."""
    left, k = list(range(len(found))), 0
    while k < len(left) and len(left) > 1:
        before, here, after = (places[left[(k + d) % len(left)]] for d in (-1, 0, 1))
        come, go = here - before, after - here
        off = abs(float(come[0] * go[1] - come[1] * go[0]))
        # Who turns back is an end of a segment.
        passed = off <= _NEW * float(np.hypot(*(come + go))) and float(come @ go) > 0.0
        if passed or float(np.hypot(*come)) <= _NEW:
            del left[k]
            k = max(k - 1, 0)
        else:
            k += 1
    return [found[n] for n in left]
