"""Faults at random, for hours: `make soak`, or `python -m tools.soak --minutes=120 --seed=0`.

Each trial runs an example of some seconds, does something to it, and sees that the next run ends with the
same files as one that nothing happened to, and that nothing finished was lost. What trials came to is one
line each of OUTPUT_DIR/trials.jsonl, and in OUTPUT_DIR/report.md; the folder of a trial that found something
stays.
"""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
import json
import math
import os
import pathlib
import random
import signal
import time
import traceback
from collections.abc import Sequence
from contextlib import closing
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
_LANES = flags.DEFINE_integer("lanes", None, "Trials at once. Default: cores, and one.", lower_bound=1)
_ONLY = flags.DEFINE_multi_enum("only", list(KINDS), list(KINDS), "Which faults; may be repeated.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/soak", "Where the report and folders of findings go.")


def run_trial(
    number: int, server: RunServer, expected: dict[str, Any], folder: pathlib.Path, engine: str
) -> dict[str, Any]:
    """Do one trial; return its row."""
    rng = random.Random(f"{_SEED.value} {number}")
    kind, case = drawn(rng, _ONLY.value)
    row: dict[str, Any] = {"trial": number, "kind": kind, "case": case.name}
    begin = time.monotonic()
    try:
        with trial_folder(folder / f"trial-{number}") as own:
            trial = Trial(server, case, *expected[case.name], engine, own, rng)
            row["counts"] = KINDS[kind][0](trial)
            expected[case.name] = (trial.expected, trial.seconds)
    except Finding as finding:
        row["finding"] = str(finding)
    except Exception:  # the trial's own: reported as well, and the next one goes on
        row["finding"] = traceback.format_exc()
        server.close()
    return row | {"seconds": round(time.monotonic() - begin, 1)}


def report(rows: Sequence[dict[str, Any]]) -> str:
    """Make a table by fault, and a list of findings."""
    lines = ["| fault | trials | counted | findings |", "|---|---|---|---|"]
    for kind in KINDS:
        mine = [row for row in rows if row["kind"] == kind]
        counts = sum((collections.Counter(row.get("counts", {})) for row in mine), collections.Counter())
        kinds = ", ".join(f"{count:,} {what}" for what, count in counts.items())
        lines.append(f"| {kind} | {len(mine):,} | {kinds} | {sum('finding' in row for row in mine)} |")
    found = (row for row in rows if "finding" in row)
    lines += [f"- Trial {row['trial']}, {row['kind']}, {row['case']}: {row['finding']}" for row in found]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str]) -> None:
    del argv
    folder, engine = pathlib.Path(_OUTPUT_DIR.value).absolute(), find_engine()
    folder.mkdir(parents=True, exist_ok=True)
    lanes = _LANES.value or 1 + (os.cpu_count() or 1)
    # In the background of a shell SIGINT is ignored, and runs would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rows: list[dict[str, Any]] = []

    def without_faults(case: Case) -> tuple[dict[str, bytes], float]:
        with trial_folder(folder / f"reference-{CASES.index(case)}") as own, closing(RunServer()) as server:
            return reference(Trial(server, case, {}, 0.0, engine, own, random.Random(_SEED.value)))

    with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
        found = tqdm(pool.map(without_faults, CASES), total=len(CASES), desc="Without faults", unit=" runs")
        expected = {case.name: each for case, each in zip(CASES, found, strict=True)}
        end, numbers, bar = time.monotonic() + 60.0 * _MINUTES.value, itertools.count(), tqdm(unit=" trials")

        def lane(_: int) -> None:
            with closing(RunServer()) as server:
                for number in numbers:  # which all lanes share
                    if time.monotonic() > end or number >= (_TRIALS.value or math.inf):
                        return
                    row = run_trial(number, server, expected, folder, engine)
                    rows.append(row)
                    bar.update()
                    with open(folder / "trials.jsonl", "a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                    if "finding" in row:
                        tqdm.write(f"FOUND in trial {number}, {row['kind']}, {row['case']}: {row['finding']}")

        list(pool.map(lane, range(lanes)))
    (folder / "report.md").write_text(report(rows), encoding="utf-8")
    print(f"\n{report(rows)}\nWritten: {folder}/report.md, trials.jsonl")
    if findings := sum("finding" in row for row in rows):
        raise SystemExit(f"{findings} of {len(rows)} trials found something")


if __name__ == "__main__":
    app.run(main)
