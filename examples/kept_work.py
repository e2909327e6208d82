"""Results of a run's finished tasks, kept until it is over: a run that is killed loses none of them.

with kept_work(folder / "draws.unfinished") as kept:
    rows = dict(kept.each_done(solve, tasks, "draws", workers=2))
    ...  # write what came out
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import common
import parallel


@dataclasses.dataclass(frozen=True)
class KeptWork:
    """A file with one result a line. Two runs at once may share it: what both write is the same.

    Attributes:
      path: the file, which need not exist.
      at_end: ends what solves tasks when the block does. An error keeps generators alive until it is told.
    """

    path: pathlib.Path
    at_end: contextlib.ExitStack

    def each_done(
        self,
        solve: Callable[[Any], Any],
        tasks: Sequence[Any],
        unit: str,
        *,
        names: Sequence[str] | None = None,
        workers: int | None = None,
        cluster: str | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """As `parallel.each_done`, with a bar; what the file has comes from there, first.

        Args:
          solve: its results are made of what JSON has: they come as JSON gives them back.
          tasks: what it takes.
          unit: what the bar counts.
          names: what sets each task apart from all others, of other runs too. None: its `repr`.
          workers: see there, as for `cluster`.
        """
        program = f"{importlib.metadata.version('precomp-games')} {solve.__name__}"
        keys = [f"{program} {name}" for name in (map(repr, tasks) if names is None else names)]
        known = dict(self._read())
        left = [number for number, key in enumerate(keys) if key not in known]
        if len(left) < len(keys):
            print(f"{len(keys) - len(left)} of {len(keys)} {unit} are of a run that did not end", flush=True)
        with common.progress_bar(total=len(keys), initial=len(keys) - len(left), unit=f" {unit}") as bar:
            yield from ((number, known[key]) for number, key in enumerate(keys) if key in known)
            if not left:
                return
            solved = parallel.each_done(solve, [tasks[k] for k in left], workers=workers, cluster=cluster)
            self.at_end.callback(solved.close)
            for number, result in solved:
                # The line break comes first: it ends a line that a killed run did not.
                line = json.dumps([keys[left[number]], result])
                with open(self.path, "ab", buffering=0) as file:
                    file.write(f"\n{line}".encode())
                bar.update()
                yield left[number], json.loads(line)[1]

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
    with contextlib.ExitStack() as at_end:
        yield KeptWork(path, at_end)
    path.unlink(missing_ok=True)
