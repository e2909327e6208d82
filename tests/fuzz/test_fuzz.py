"""A small part of each target's inputs, so that targets stay alive; `python -m tests.fuzz` runs them all."""

import pytest

from tests.fuzz import TARGETS, targets
from tests.fuzz.runner import fuzz

_INPUTS = {"flags": 25}

assert targets.__all__  # importing it registers the targets


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_nothing_comes_out_but_results_and_refusals(name):
    if name == "drill":
        pytest.importorskip("fsrs", reason="drills need fsrs")
    report = fuzz(TARGETS[name], _INPUTS.get(name, 100), 0)
    told = "\n\n".join(f"{each.what}, {each.data[:500]!r}:\n{each.told}" for each in report.findings.values())
    assert not report.findings, told
    assert report.accepted + report.refused == report.inputs


def test_the_same_seed_gives_the_same_inputs():
    for target in TARGETS.values():
        target.prepare()
        assert [target.input(1, k) for k in range(5)] == [target.input(1, k) for k in range(5)]
        assert target.input(1, 0) != target.input(2, 0)
