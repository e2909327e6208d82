"""The command: python -m tools.fuzz."""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import pathlib
import signal
import sys
import tempfile
import threading
import time
from typing import Any

from tqdm import tqdm

from tools.fuzz import TARGETS
from tools.fuzz.child import register_targets, run

_CONTEXT = multiprocessing.get_context("fork")


def fuzz(name: str, inputs: int, seed: int) -> dict[str, Any]:
    """Run inputs of a target in child processes: one that dies is a finding, and the next one goes on.

    Returns:
      counts of "accepted" and "refused" inputs and "findings", by what came out and where in our code:
      {"message": the message or stack, "times": how many did it, "data": the shortest in hexadecimal}.
    """
    began, findings = time.monotonic(), dict[str, dict[str, Any]]()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as where, tqdm(desc=name, total=inputs) as bar:
        notes, ended = pathlib.Path(where, "notes"), pathlib.Path(where, "ended")
        notes.touch()
        while True:
            lines = [json.loads(line) for line in notes.read_text("utf-8").splitlines()]
            bar.update(len(lines) - bar.n)
            if len(lines) >= inputs:
                break
            child = _CONTEXT.Process(target=run, args=(TARGETS[name], pathlib.Path(where), inputs, seed))
            child.start()
            child.join()
            if child.exitcode:  # at the input after the last one of which there is a note
                stack = ended.read_text("utf-8", errors="replace")
                late = "Timeout" in stack or child.exitcode == -signal.SIGXCPU
                what = "more time than an input may take" if late else f"ended with status {child.exitcode}"
                frame = next((line.strip() for line in stack.splitlines() if "/precomp_games/" in line), "")
                data = pathlib.Path(where, "input").read_bytes().hex()
                with open(notes, "a", encoding="utf-8") as file:
                    file.write(json.dumps([f"{what} {frame}".strip(), stack[-3000:], data]) + "\n")
    counts = collections.Counter(what for what, message, _ in lines if message is None)
    for what, message, data in (line for line in lines if line[1] is not None):
        known = findings.setdefault(what, {"message": message, "times": 0, "data": data})
        known["times"] += 1
        known["data"] = min(known["data"], data, key=len)
    seconds = round(time.monotonic() - began, 1)
    both = {what: counts[what] for what in ("accepted", "refused")}
    return {"target": name, "inputs": inputs, **both, "seconds": seconds, "findings": findings}


def main() -> int:
    register_targets()
    # tqdm's own lock is shared with forked processes, of which one that is killed would hold it forever.
    tqdm.set_lock(threading.RLock())
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
    reports = []
    for name in names:
        reports.append(fuzz(name, given.inputs, given.seed))
        print({**reports[-1], "findings": len(reports[-1]["findings"])}, flush=True)
        for number, (what, found) in enumerate(reports[-1]["findings"].items()):
            given.keep.mkdir(parents=True, exist_ok=True)
            (given.keep / f"{name}-{number}").write_bytes(bytes.fromhex(found["data"]))
            print(f"  {found['times']:5} times: {what} ({len(found['data']) // 2} bytes)", flush=True)
        if given.report is not None:
            given.report.write_text(json.dumps(reports, indent=1) + "\n", encoding="utf-8")
    return int(any(report["findings"] for report in reports))


if __name__ == "__main__":
    sys.exit(main())
