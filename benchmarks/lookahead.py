"""Time that `commit_against_lookahead` takes.

Both players, lookahead 1 and 2, adversarial ties, evaluation functions from an equilibrium, without noise
(where ties abound) and with. Seconds are CPU time of this process, which is what a quiet machine takes: HiGHS
solves on one thread. Leduc poker has two bets a round and `suit_isomorphism=true`. Where a program does not
finish, the table has the bounds that it has reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyspiel

from benchmarks.measure import Row
from precomp_games.algorithms.lookahead import (
    commit_against_lookahead,
    equilibrium,
    equilibrium_values,
    independent_noise,
)
from precomp_games.games import kj_poker  # noqa: F401  (registers the game)

__all__ = ["rows"]

_SMALL = (("kuhn_poker", 0.05), ("python_kj_poker", 0.5))
_LARGE = "leduc_poker(suit_isomorphism=true)"
_LARGE_SECONDS = 60.0
_GAP = 1e-6


class _Timed(NamedTuple):
    seconds: float
    best: Any

    def text(self) -> str:
        if self.best.optimal:
            return f"{self.seconds:.3g} s"
        return f"unsolved in {self.seconds:.3g} s: [{self.best.supremum:.3f}, {self.best.bound:.3f}]"


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measure Kuhn, KJ and Leduc poker; Leduc gets 60 s times `scale` where that is below 1."""
    return [*_small(min(turns, 3), say), *_large(scale, say)]


def _solve(game: pyspiel.Game, player: int, lookahead: int, h: Any, limit: float | None) -> _Timed:
    start = time.process_time()
    best = commit_against_lookahead(game, player, lookahead, h, "adversarial", time_limit=limit)
    return _Timed(time.process_time() - start, best)


def _instances(game: pyspiel.Game, lexicographic: bool) -> Iterator[tuple[str, int, int, Any]]:
    policy = equilibrium(game, lexicographic)
    for player in (0, 1):
        exact = equilibrium_values(game, 1 - player, policy)
        for lookahead in (1, 2):
            for noise, h in (("no noise", exact), ("noise 0.5", independent_noise(exact, 0.5, 0))):
                yield f"player {player + 1}, k = {lookahead}, {noise}", player, lookahead, h


def _small(turns: int, say: Callable[[str], None]) -> list[Row]:
    result = []
    for name, most in _SMALL:
        game = pyspiel.load_game(name)
        ours = []
        for what, player, lookahead, h in _instances(game, True):
            say(f"{name}: {what}")
            mine = [_solve(game, player, lookahead, h, None) for _ in range(turns)]
            ours.append(min(mine, key=lambda timed: timed.seconds))
        slowest = max(timed.seconds for timed in ours)
        result += [
            Row(
                f"commitment, {name}: slowest of {len(ours)} instances, to a gap of {_GAP:g}",
                f"{slowest:.3f} s",
                f"< {most:g} s",
                slowest < most and all(timed.best.optimal for timed in ours),
            ),
        ]
    return result


def _large(scale: float, say: Callable[[str], None]) -> list[Row]:
    result = []
    game = pyspiel.load_game(_LARGE)
    for what, player, lookahead, h in _instances(game, False):
        if "no noise" not in what:
            continue
        say(f"Leduc poker: {what}")
        limit = None if scale >= 1.0 else _LARGE_SECONDS * scale
        ours = _solve(game, player, lookahead, h, limit)
        result.append(
            Row(
                f"commitment, Leduc poker, {what}",
                f"{ours.text()} ({ours.best.supremum:.4f})",
                f"< {_LARGE_SECONDS:g} s",
                ours.best.optimal and ours.seconds < _LARGE_SECONDS,
            )
        )
    return result
