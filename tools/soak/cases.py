"""Runs that suffer faults, and their files that must be the same after all."""

from __future__ import annotations

import csv
import dataclasses
import io
import pathlib

from precomp_games.chess import EvaluationStore

STORE = "evaluations.sqlite"
OUT = "out"


@dataclasses.dataclass(frozen=True)
class Case:
    """A run of an example, of some seconds.

    Attributes:
      name: the example's, and what is special.
      flags: without those that all runs have.
      searches: whether it has an engine and a store.
      timed: files that show seconds, which no two runs have alike: not compared.
      weight: how often it is drawn.
    """

    name: str
    flags: str
    searches: bool = True
    timed: tuple[str, ...] = ()
    weight: int = 2

    @property
    def command(self) -> tuple[str, ...]:
        """Return the example's name and its flags."""
        name, flags = self.name.partition(",")[0], f"{self.flags} --output_dir={OUT}"
        if self.searches:
            flags += f" --opponent_nodes=300 --analyst_nodes=1500 --store={STORE}"
        return (name, *flags.split())


_LINEAR = "--penalty=0.002 --evaluation=linear --r=20"
CASES = (
    Case("chess_preparation", f"{_LINEAR} --max_plies=8 --match_games=2 --report --export=lichess,pgn,csv"),
    Case(
        "chess_preparation, calibrated",
        "--penalty=0.002 --max_plies=12 --r=20 --match_games=2 --play_budget=8 --max_evaluations=60",
        weight=1,
    ),
    Case("chess_equilibrium", "--penalty=0.02 --max_plies=8"),
    Case(
        "chess_preparation, certified",
        f"{_LINEAR} --max_plies=12 --menu=2 --budget=8 --order=certified --max_evaluations=100"
        " --match_games=0 --report",
    ),
    Case("randomness_vs_precomputation", "--penalty=0.005 --max_plies=8 --r_values=5,20"),
    Case(
        "efce_resolving",
        "--rows=1 --seeds=1 --figure=row2 --iterations=50 --workers=1",
        searches=False,
        timed=("figure_2.csv", "figure_2.png"),
    ),
    Case("limited_lookahead", "--games=kuhn_poker --gammas=0,0.5 --draws=1 --workers=1", searches=False),
    Case(
        "limited_lookahead, two processes",
        "--games=kuhn_poker --gammas=0,0.5 --draws=2 --workers=2",
        searches=False,
        weight=1,
    ),
)


def outcome(case: Case, folder: pathlib.Path) -> dict[str, bytes]:
    """Return a finished run's files, and its store as `EvaluationStore.export` writes it."""
    found = {}
    for path in sorted((folder / OUT).rglob("*")):
        name = path.relative_to(folder / OUT).as_posix()
        hidden = name.startswith(".") or "/." in name  # what killed runs leave beside their files
        if path.is_file() and name not in case.timed and not hidden:
            found[name] = _without_seconds(path.read_bytes()) if name.endswith(".csv") else path.read_bytes()
    if case.searches:
        exported = folder / "exported.sqlite"
        exported.unlink(missing_ok=True)
        with EvaluationStore(folder / STORE, read_only=True) as store:
            store.export(exported)
        found[STORE] = exported.read_bytes()
    return found


def difference(expected: dict[str, bytes], found: dict[str, bytes]) -> str:
    """Return the names of files that differ; "" where none does."""
    names = sorted(expected.keys() | found.keys())
    return ", ".join(name for name in names if expected.get(name) != found.get(name))


def _without_seconds(data: bytes) -> bytes:
    """Return a table without its column of seconds."""
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    return repr([{k: v for k, v in row.items() if k != "seconds"} for row in rows]).encode()
