"""Results of a run's finished tasks, kept until it is over: a run that is killed loses none of them.

with kept_work(folder / "draws.unfinished") as kept:
    rows = list(kept.each_done(solve, tasks, workers, "draws"))
    ...  # write what came out
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import common


class _Named(NamedTuple):
    """A solver that says which task its result is of: results come in any order."""

    solve: Callable[[Any], Any]

    def __call__(self, task: tuple[str, Any]) -> tuple[str, Any]:
        name, given = task
        return name, self.solve(given)


@dataclasses.dataclass(frozen=True)
class KeptWork:
    """A file with one result a line. Two runs at once may share it: what both write is the same.

    Attributes:
      path: the file, which need not exist.
    """

    path: pathlib.Path

    def each_done(
        self, solve: Callable[[Any], Any], tasks: Sequence[Any], workers: int | None, unit: str
    ) -> Iterator[Any]:
        """As `common.each_done`, but what the file has comes from there, first.

        Args:
          solve: its results are made of what JSON has: they come as JSON gives them back.
          tasks: dataclasses, which their `repr` says all of.
          workers: processes.
          unit: what the bar counts.
        """
        program = f"{importlib.metadata.version('precomp-games')} {solve.__name__}"
        named = {f"{program} {task!r}": task for task in tasks}
        found = {name: result for name, result in self._read() if name in named}
        if found:
            print(f"{len(found)} of {len(named)} {unit} are of a run that did not end", flush=True)
        yield from found.values()
        left = [task for task in named.items() if task[0] not in found]
        if not left:
            return
        with open(self.path, "ab", buffering=0) as file:
            for name, result in common.each_done(_Named(solve), left, workers, unit):
                # The line break comes first: it ends a line that a killed run did not.
                line = json.dumps([name, result])
                file.write(f"\n{line}".encode())
                yield json.loads(line)[1]

    def _read(self) -> Iterator[tuple[str, Any]]:
        """The results in the file; what is no whole line of them is passed over."""
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError, TypeError):
                name, result = json.loads(line)
                yield str(name), result


@contextlib.contextmanager
def kept_work(path: pathlib.Path) -> Iterator[KeptWork]:
    """Keeps results in a file, which is removed when the block ends without an error."""
    yield KeptWork(path)
    path.unlink(missing_ok=True)
