"""Faults at random, for hours: `make soak`, or `python -m tools.soak --minutes=120 --seed=0`.

Each trial runs an example of some seconds, does something to it, and sees that the next run ends with the
same files as one that nothing happened to, and that nothing finished was lost. What trials came to is one
line each of OUTPUT_DIR/trials.jsonl, and in OUTPUT_DIR/report.md; the folder of a trial that found something
stays.
"""

from __future__ import annotations

import collections
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

from absl import app, flags
from tqdm import tqdm

from precomp_games.chess import find_engine
from tools.forked_runs import RunServer
from tools.soak.cases import CASES, Case
from tools.soak.trials import KINDS, Finding, Trial, drawn, reference, trial_folder

_MINUTES = flags.DEFINE_float(
    "minutes", 120.0, "How long, after runs without faults; trials under way end.", lower_bound=0.0
)
_TRIALS = flags.DEFINE_integer("trials", None, "Stop after so many trials.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "Draws what happens when.")
_LANES = flags.DEFINE_integer("lanes", None, "Trials at once. Default: one for each core.", lower_bound=1)
_ONLY = flags.DEFINE_multi_enum("only", list(KINDS), list(KINDS), "Which faults; may be repeated.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/soak", "Where the report and folders of findings go.")


class Campaign:
    """Lanes of trials, and what they found."""

    def __init__(self, folder: pathlib.Path, engine: str) -> None:
        self.folder, self.engine = folder, engine
        self.expected: dict[str, tuple[dict[str, bytes], float]] = {}
        self.rows: list[dict[str, Any]] = []
        self._lock, self._next = threading.Lock(), 0
        self._end = 0.0
        self._bar: tqdm[Any] | None = None

    def references(self, lanes: int) -> None:
        """What each case's run leaves when nothing happens to it."""

        def run(case: Case) -> None:
            server = RunServer()
            with trial_folder(self.folder / f"reference-{CASES.index(case)}") as folder:
                rng = random.Random(f"{_SEED.value} {case.name}")
                trial = Trial(server, case, {}, 0.0, self.engine, folder, rng)
                self.expected[case.name] = reference(trial)
            server.close()

        with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
            list(tqdm(pool.map(run, CASES), total=len(CASES), desc="Without faults", unit=" runs"))
        self._end = time.monotonic() + 60.0 * _MINUTES.value

    def lane(self, waiting: bool) -> None:
        """One trial after the other."""
        server = RunServer()
        while (number := self._number()) is not None:
            rng = random.Random(f"{_SEED.value} {number}")
            kind, case = drawn(rng, waiting, set(_ONLY.value))
            row: dict[str, Any] = {"trial": number, "kind": kind, "case": case.name}
            begin = time.monotonic()
            try:
                with trial_folder(self.folder / f"trial-{number}") as folder:
                    trial = Trial(server, case, *self.expected[case.name], self.engine, folder, rng)
                    row["counts"] = KINDS[kind][0](trial)
                    self.expected[case.name] = (trial.expected, trial.seconds)
            except Finding as finding:
                row["finding"] = str(finding)
            except Exception:  # the trial's own: told as well, and the next one goes on
                row["finding"] = traceback.format_exc()
                server = RunServer()
            self._told(row | {"seconds": round(time.monotonic() - begin, 1)})
        server.close()

    def _number(self) -> int | None:
        with self._lock:
            if time.monotonic() > self._end or self._next == _TRIALS.value:
                return None
            self._next += 1
            return self._next - 1

    def _told(self, row: dict[str, Any]) -> None:
        with self._lock:
            self.rows.append(row)
            with open(self.folder / "trials.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            if "finding" in row:
                tqdm.write(f"FOUND in trial {row['trial']}, {row['kind']}, {row['case']}: {row['finding']}")
            if self._bar is None:
                self._bar = tqdm(unit=" trials", mininterval=5.0)
            self._bar.update()
            (self.folder / "report.md").write_text(report(self.rows), encoding="utf-8")


def report(rows: Sequence[dict[str, Any]]) -> str:
    """A table of kinds, and one of cases."""
    lines = ["| fault | trials | counted | findings |", "|---|---|---|---|"]
    for kind in KINDS:
        mine = [row for row in rows if row["kind"] == kind]
        counts: collections.Counter[str] = collections.Counter()
        for row in mine:
            counts.update(row.get("counts", {}))
        told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        lines.append(f"| {kind} | {len(mine):,} | {told} | {sum('finding' in row for row in mine)} |")
    lines += ["", "| run | trials | findings |", "|---|---|---|"]
    for case in CASES:
        mine = [row for row in rows if row["case"] == case.name]
        lines.append(f"| {case.name} | {len(mine):,} | {sum('finding' in row for row in mine)} |")
    lines += [""] + [
        f"- Trial {row['trial']}, {row['kind']}, {row['case']}: {row['finding']}"
        for row in rows
        if "finding" in row
    ]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str]) -> None:
    del argv
    folder = pathlib.Path(_OUTPUT_DIR.value).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(folder, find_engine())
    only = {kind for kind in _ONLY.value if KINDS[kind][1]}
    lanes = [False] * (_LANES.value or os.cpu_count() or 1) if only else []
    if len(only) < len(_ONLY.value):
        lanes.append(True)
    # In the background of a shell SIGINT is ignored, and runs would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    campaign.references(len(lanes))
    threads = [threading.Thread(target=campaign.lane, args=(waiting,)) for waiting in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [row for row in campaign.rows if "finding" in row]
    print(f"\n{report(campaign.rows)}\nWritten: {folder}/report.md, trials.jsonl")
    if found:
        raise SystemExit(f"{len(found)} of {len(campaign.rows)} trials found something")


if __name__ == "__main__":
    app.run(main)
