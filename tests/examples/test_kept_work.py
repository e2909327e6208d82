"""Finished tasks of runs that do not end."""

import dataclasses
import math

import pytest

from tests.examples.launcher import imported


@pytest.fixture(scope="module")
def kept_work():
    with imported("kept_work") as module:
        yield module


@dataclasses.dataclass(frozen=True)
class Task:
    number: int


SOLVED = []


def solve(task):
    SOLVED.append(task.number)
    return {"number": task.number, "root": math.sqrt(task.number), "none": None, "inf": math.inf}


@pytest.fixture
def run(kept_work):
    """Return a function that returns a run's results; with `stop` it ends after so many, as if killed."""

    def run(path, numbers, stop=None):
        SOLVED.clear()
        found = {}
        with kept_work.kept_work(path) as kept:
            solved = kept.each_done(solve, [Task(n) for n in numbers], "tasks", workers=1)
            for number, result in solved:
                found[number] = result
                if len(found) == stop:
                    raise InterruptedError
        return [found[number] for number in range(len(numbers))]

    return run


def test_finished_tasks_are_not_solved_again(run, tmp_path, capsys):
    path = tmp_path / "tasks.unfinished"
    whole = run(path, range(6))
    assert list(range(6)) == SOLVED and not list(tmp_path.iterdir())
    with pytest.raises(InterruptedError):
        run(path, range(6), stop=2)
    (kept,) = tmp_path.iterdir()
    with open(kept, "ab") as file:
        file.write(b'\n["0.1.0 solve Task(number=2)", {"num')  # a kill in the middle of a line
    with pytest.raises(InterruptedError):
        run(path, range(6), stop=4)
    assert SOLVED == [2, 3]
    assert run(path, range(6)) == whole and SOLVED == [4, 5] and not kept.exists()
    assert "4 of 6 tasks are of a run that did not end" in capsys.readouterr().out


def test_other_tasks_and_nonsense_are_passed_over(run, tmp_path):
    path = tmp_path / "tasks.unfinished"
    (tmp_path / "tasks.0.unfinished").write_bytes(b'\xff\n1\n[]\n[1, 2, 3]\n["x", 1]\nnull\n{"a": 1}\n')
    with pytest.raises(InterruptedError):
        run(path, [1, 2], stop=1)
    assert [row["number"] for row in run(path, [2, 3])] == [2, 3] and SOLVED == [2, 3]


def test_a_run_of_other_tasks_leaves_what_is_kept(run, tmp_path):
    path = tmp_path / "tasks.unfinished"
    with pytest.raises(InterruptedError):
        run(path, range(6), stop=3)
    run(path, range(7, 9))
    run(path, [2, 3])
    assert SOLVED == [3]
    run(path, range(6))
    assert SOLVED == [3, 4, 5] and not list(tmp_path.iterdir())


@pytest.mark.parametrize("stop, folder", [(1, ""), (None, "missing")])
def test_an_error_ends_what_solves_the_other_tasks(run, kept_work, tmp_path, monkeypatch, stop, folder):
    ended = []

    def each_done(solve, tasks, **_):
        try:
            yield from enumerate(map(solve, tasks))
        finally:
            ended.append(True)

    monkeypatch.setattr(kept_work.parallel, "each_done", each_done)
    # Of the loop over results, or of the file that they are kept in; pytest holds the error as `told` does.
    with pytest.raises((InterruptedError, FileNotFoundError)) as told:
        run(tmp_path / folder / "tasks.unfinished", range(3), stop)
    assert ended and SOLVED == [0], told
