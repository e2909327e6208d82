"""A small part of each target's inputs, so that targets stay alive; `python -m tools.fuzz` runs them all."""

import json
import pathlib
import subprocess
import sys

import pytest

from tools.fuzz import TARGETS, targets

assert targets.__all__  # importing it registers the targets


# Costs seconds: all targets.
@pytest.mark.parametrize("inputs", [10, pytest.param(100, marks=pytest.mark.slow("more inputs"))])
def test_nothing_comes_out_but_results_and_refusals(inputs, tmp_path):
    path = tmp_path / "report.json"
    # In a process of its own: a child that is forked beside other tests' threads can wait for their locks.
    subprocess.run(
        [sys.executable, "-m", "tools.fuzz", f"--inputs={inputs}", f"--report={path}",
         f"--keep={tmp_path / 'kept'}"],
        cwd=pathlib.Path(__file__).parents[1],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=1200.0,
    )  # fmt: skip
    reports = json.loads(path.read_text())
    assert [report["target"] for report in reports] == [*TARGETS]
    assert [what for report in reports for what in report["findings"]] == []
    assert all(report["accepted"] + report["refused"] == report["inputs"] for report in reports)


def test_the_same_seed_gives_the_same_inputs():
    for target in TARGETS.values():
        first = [target.input(1, k) for k in range(5)]
        assert [target.input(1, k) for k in range(5)] == first
        assert target.input(2, 0) != first[0]
