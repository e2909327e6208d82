"""`commit_against_lookahead`, ours beside the paper's big-M program, in the same run.

Both players, lookahead 1 and 2, adversarial ties, evaluation functions from an equilibrium, without noise
(where ties abound) and with. Seconds are of this process's CPU, which is what a quiet machine takes: both
solve on one thread. Leduc poker has two bets a round and `suit_isomorphism=true`; the paper's program did not
solve it in two hours. Where one does not finish, the bounds stand that it has by then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple
from unittest import mock

import pyspiel

from benchmarks.measure import Row
from precomp_games.algorithms.lookahead import (
    Commitment,
    NodeValues,
    commit_against_lookahead,
    equilibrium,
    equilibrium_values,
    independent_noise,
)
from precomp_games.algorithms.lookahead.plan_programs import CorrelationProgram
from precomp_games.games import kj_poker  # noqa: F401  (registers the game)

__all__ = ["rows"]

_SMALL = (("kuhn_poker", 0.05), ("python_kj_poker", 0.5))
_LARGE = "leduc_poker(suit_isomorphism=true)"
_LARGE_SECONDS = 60.0
_GAP = 1e-6


class _Timed(NamedTuple):
    seconds: float
    best: Commitment

    def text(self) -> str:
        if self.best.optimal:
            return f"{self.seconds:.3g} s"
        return f"unsolved in {self.seconds:.3g} s: [{self.best.supremum:.3f}, {self.best.bound:.3f}]"


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measures Kuhn, KJ and Leduc poker; Leduc's big M gets 60 s times `scale`, below 1 ours does too."""
    return [*_small(min(turns, 3), say), *_large(scale, say)]


def _solve(
    game: pyspiel.Game, player: int, lookahead: int, h: NodeValues, method: str, limit: float | None
) -> _Timed:
    start = time.process_time()
    best = commit_against_lookahead(
        game, player, lookahead, h, "adversarial", method=method, time_limit=limit
    )
    return _Timed(time.process_time() - start, best)


def _instances(game: pyspiel.Game, lexicographic: bool) -> Iterator[tuple[str, int, int, NodeValues]]:
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
        ours, theirs = [], []
        for what, player, lookahead, h in _instances(game, True):
            say(f"{name}: {what}")
            mine = [_solve(game, player, lookahead, h, "correlation", None) for _ in range(turns)]
            ours.append(min(mine, key=lambda timed: timed.seconds))
            theirs.append(_solve(game, player, lookahead, h, "big_m", 60.0))
            assert not theirs[-1].best.optimal or (
                abs(theirs[-1].best.supremum - ours[-1].best.supremum) <= 1e-5
            )
        slowest = max(timed.seconds for timed in ours)
        ratios = sorted(b.seconds / a.seconds for a, b in zip(ours, theirs, strict=True))
        result += [
            Row(
                f"commitment, {name}: slowest of {len(ours)} instances, to a gap of {_GAP:g}",
                f"{slowest:.3f} s",
                f"< {most:g} s",
                slowest < most and all(timed.best.optimal for timed in ours),
            ),
            Row(
                f"commitment, {name}: big M / ours, median (least to greatest)",
                f"{ratios[len(ratios) // 2]:.1f} x ({ratios[0]:.1f} to {ratios[-1]:.1f})",
            ),
            Row(
                f"commitment, {name}: big M, slowest",
                max(theirs, key=lambda timed: timed.seconds).text(),
            ),
        ]
    return result


def _large(scale: float, say: Callable[[str], None]) -> list[Row]:
    result = []
    seconds = [0.0, 0.0]
    game = pyspiel.load_game(_LARGE)
    for what, player, lookahead, h in _instances(game, False):
        if "no noise" not in what:
            continue
        say(f"Leduc poker: {what}")
        limit = None if scale >= 1.0 else _LARGE_SECONDS * scale
        ours = _solve(game, player, lookahead, h, "correlation", limit)
        with mock.patch.object(CorrelationProgram, "heuristics", True):
            usual = _solve(game, player, lookahead, h, "correlation", limit)
        assert not usual.best.optimal or abs(usual.best.supremum - ours.best.supremum) <= 1e-5
        seconds = [seconds[0] + usual.seconds, seconds[1] + ours.seconds]
        theirs = _solve(game, player, lookahead, h, "big_m", _LARGE_SECONDS * scale)
        result.append(
            Row(
                f"commitment, Leduc poker, {what}: ours; big M",
                f"{ours.text()} ({ours.best.supremum:.4f}); {theirs.text()}",
                f"< {_LARGE_SECONDS:g} s",
                ours.best.optimal and ours.seconds < _LARGE_SECONDS,
            )
        )
    result.append(
        Row(
            "commitment, Leduc poker, all four: HiGHS with all that it does by default / ours",
            f"{seconds[0] / seconds[1]:.1f} x ({seconds[0]:.0f} s, {seconds[1]:.0f} s)",
            ">= 2 x" if limit is None else "",
            seconds[0] >= 2.0 * seconds[1] if limit is None else None,
        )
    )
    return result
