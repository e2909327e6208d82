"""The command: python -m tools.fuzz."""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
import threading

from tqdm import tqdm

from tools.fuzz import TARGETS, targets  # noqa: F401  (which registers them)
from tools.fuzz.runner import fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description="Fuzzes what reads inputs.")
    parser.add_argument("--inputs", type=int, default=10_000, help="inputs a target")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same inputs")
    parser.add_argument("--only", default="", help=f"some of {','.join(TARGETS)}")
    parser.add_argument("--report", type=pathlib.Path, help="JSON file for what came out")
    parser.add_argument(
        "--keep", type=pathlib.Path, default=pathlib.Path("output/fuzz"), help="folder for inputs that fail"
    )
    given = parser.parse_args()
    names = list(filter(None, given.only.split(","))) or list(TARGETS)
    if unknown := set(names) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}")
    # tqdm's own lock is shared with forked processes, of which one that is killed would hold it forever.
    tqdm.set_lock(threading.RLock())
    reports = []
    for name in names:
        with tqdm(desc=name, total=given.inputs, unit=" inputs", mininterval=1.0) as bar:
            report = fuzz(TARGETS[name], given.inputs, given.seed, bar.update)
        reports.append(report)
        print(
            f"{name:14} {report.accepted:6} accepted {report.refused:6} refused {len(report.findings):3} "
            f"findings {report.seconds:7.1f} s",
            flush=True,
        )
        for number, (what, found) in enumerate(report.findings.items()):
            given.keep.mkdir(parents=True, exist_ok=True)
            (given.keep / f"{name}-{number}").write_bytes(bytes.fromhex(found["data"]))
            print(f"  {found['times']:5} times: {what} ({len(found['data']) // 2} bytes)", flush=True)
        if given.report is not None:
            told = {"seed": given.seed, "targets": [dataclasses.asdict(each) for each in reports]}
            given.report.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return int(any(report.findings for report in reports))


if __name__ == "__main__":
    sys.exit(main())
