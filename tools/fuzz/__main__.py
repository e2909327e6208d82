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
from tools.fuzz.runner import Report, fuzz


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description="Fuzzes what reads inputs.")
    parser.add_argument("--inputs", type=int, default=10_000, help="inputs a target")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same inputs")
    parser.add_argument("--only", default="", help=f"some of {','.join(TARGETS)}")
    parser.add_argument("--report", type=pathlib.Path, help="JSON file for what came out")
    parser.add_argument(
        "--keep", type=pathlib.Path, default=pathlib.Path("output/fuzz"), help="folder for inputs that fail"
    )
    given = parser.parse_args()
    unknown = set(filter(None, given.only.split(","))) - set(TARGETS)
    if unknown or given.inputs < 1:
        parser.error(
            f"no target {', '.join(sorted(unknown))}" if unknown else "expected --inputs of at least 1"
        )
    return given


def _told(report: Report, folder: pathlib.Path) -> dict[str, object]:
    """What JSON has of a report; inputs of findings are written beside it."""
    findings = []
    for number, found in enumerate(report.findings.values()):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{report.target}-{number}"
        path.write_bytes(found.data)
        told = {"kind": found.kind, "what": found.what, "told": found.told, "times": found.times}
        findings.append(told | {"number": found.number, "bytes": len(found.data), "input": str(path)})
    return dataclasses.asdict(report) | {"findings": findings}


def main() -> int:
    given = _arguments()
    # tqdm's own lock is shared with forked processes, of which one that is killed would hold it forever.
    tqdm.set_lock(threading.RLock())
    names = list(filter(None, given.only.split(","))) or list(TARGETS)
    told = []
    for name in names:
        with tqdm(desc=name, total=given.inputs, unit=" inputs", mininterval=1.0) as bar:
            report = fuzz(TARGETS[name], given.inputs, given.seed, bar.update)
        told.append(_told(report, given.keep))
        print(
            f"{name:14} {report.accepted:6} accepted {report.refused:6} refused {len(report.findings):3} "
            f"findings {report.seconds:7.1f} s {report.peak >> 20:5} MiB",
            flush=True,
        )
        for found in report.findings.values():
            print(
                f"  {found.times:5} times: {found.kind}: {found.what} ({len(found.data)} bytes)", flush=True
            )
        if given.report is not None:
            whole = {"seed": given.seed, "inputs": given.inputs, "targets": told}
            given.report.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return int(any(each["findings"] for each in told))


if __name__ == "__main__":
    sys.exit(main())
