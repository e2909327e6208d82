"""A player's games out of a file that is larger than the memory they may take.

The file is the shipped sample of World Championship games over and over: with another year each time, other
names but for every sixteenth time, and other moves before the first, knights that go out and come back, so
that no game stands there twice. Memory is what reading and counting takes at its peak, in a process of its
own.
"""

from __future__ import annotations

import itertools
import pathlib
import re
import tempfile
from collections.abc import Callable

from benchmarks.measure import Row, fresh_process, peak_memory
from precomp_games.chess import ChessGame, games_policy
from precomp_games.commands._flags import DATA

__all__ = ["rows", "write_games"]

_SAMPLE = DATA / "championship_sample.pgn"
_PLAYER = "Somebody"
_EVERY = 16
_KNIGHTS = [f"{out} {answer} {back} {home}" for out, back in (("Nf3", "Ng1"), ("Nc3", "Nb1"), ("Nh3", "Ng1"))
            for answer, home in (("Nf6", "Ng8"), ("Nc6", "Nb8"), ("Nh6", "Ng8"))]  # fmt: skip
_TARGET = 500  # MB


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Count a player's moves in a file of 500 MB times `scale`, and measure the memory."""
    del turns
    megabytes = max(1, round(500 * scale))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "games.pgn"
        say(f"writing {megabytes} MB of games")
        written = write_games(path, megabytes * 1_000_000)
        say(f"reading {written} games")
        peak, games, moves = fresh_process(_count, path)
    memory = peak / 1e6
    what = f"{megabytes} MB of PGN, {games} of {written} games a player's, {moves} moves counted"
    return [Row(what, f"{memory:.0f} MB", f"< {_TARGET} MB", memory < _TARGET)]


def write_games(path: pathlib.Path, size: int) -> int:
    """Write a file of at least `size` bytes; how many games it has."""
    texts = re.split(r"(?m)^(?=\[Event )", _SAMPLE.read_text(encoding="utf-8"))[1:]
    lines = itertools.product(_KNIGHTS, repeat=4)
    written = games = 0
    with open(path, "w", encoding="utf-8") as file:
        for number in range(len(_KNIGHTS) ** 4):
            first = " ".join(next(lines))
            name = _PLAYER if number % _EVERY == 0 else f"Other {number}"
            for text in texts:
                tags, moves = text.split("\n\n", 1)
                tags = re.sub(r'\[Date "\d{4}', f'[Date "{1000 + number % 1000}', tags)
                tags = re.sub(r'\[White ".*?"', f'[White "{name}"', tags)
                written += file.write(f"{tags}\n\n{first} {moves}")
                games += 1
            if written >= size:
                break
    return games


def _count(path: pathlib.Path) -> tuple[int, int, int]:
    """Return the peak bytes, the games and the entries."""
    peak, policy = peak_memory(lambda: games_policy(ChessGame(), path, _PLAYER, max_plies=40))
    return peak, policy.report.games, len(policy.counts)
