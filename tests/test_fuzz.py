"""A small part of each target's inputs, so that targets stay alive; `python -m tools.fuzz` runs them all."""

import importlib.util
import json
import pathlib
import subprocess
import sys

from tools.fuzz import TARGETS, targets

assert targets.__all__  # importing it registers the targets


# Costs seconds: all targets.
def test_nothing_comes_out_but_results_and_refusals(tmp_path, cases):
    names = sorted(TARGETS)
    if importlib.util.find_spec("fsrs") is None:  # which drills need
        names.remove("drill")
    path = tmp_path / "report.json"
    # In a process of its own: a child that is forked beside other tests' threads can wait for their locks.
    subprocess.run(
        [sys.executable, "-m", "tools.fuzz", f"--only={','.join(names)}", f"--inputs={cases(100)}",
         f"--report={path}", f"--keep={tmp_path / 'kept'}"],
        cwd=pathlib.Path(__file__).parents[1],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=1200.0,
    )  # fmt: skip
    reports = json.loads(path.read_text())
    assert [report["target"] for report in reports] == names
    assert [what for report in reports for what in report["findings"]] == []
    assert all(report["accepted"] + report["refused"] == report["inputs"] for report in reports)


def test_the_same_seed_gives_the_same_inputs():
    for target in TARGETS.values():
        assert [target.input(1, k) for k in range(5)] == [target.input(1, k) for k in range(5)]
        assert target.input(1, 0) != target.input(2, 0)
