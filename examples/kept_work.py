"""Results of a run's finished tasks, kept until it is over: a run that is killed loses none of them.

with kept_work(folder / "draws.unfinished") as kept:
    rows = dict(kept.each_done(solve, tasks, "draws", workers=2))
    ...  # write what came out
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import common
import parallel


@dataclasses.dataclass(frozen=True)
class KeptWork:
    """Files with one result a line, one for each list of tasks.

    Runs of the same tasks share a file, at once too: what they write is the same. Runs of others read it.

    Attributes:
      path: the files' name, in which the tasks' is put before the suffix.
      used: the files of tasks of this run.
      at_end: ends what solves tasks when the block does. An error keeps generators alive until it is printed.
    """

    path: pathlib.Path
    used: set[pathlib.Path] = dataclasses.field(default_factory=set)
    at_end: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)

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
        """Yield what `parallel.each_done` does, with a bar; results in files come first.

        Args:
          solve: its results are made of what JSON has: they come as JSON gives them back.
          tasks: what it takes.
          unit: what the bar counts.
          names: what sets each task apart from all others, of other runs too. None: its `repr`.
          workers: see there, as for `cluster`.
        """
        program = f"{importlib.metadata.version('precomp-games')} {solve.__name__}"
        keys = [f"{program} {name}" for name in (map(repr, tasks) if names is None else names)]
        digest = hashlib.blake2b("\n".join(sorted(keys)).encode(), digest_size=6).hexdigest()
        path = self.path.with_name(f"{self.path.stem}.{digest}{self.path.suffix}")
        self.used.add(path)
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
                with open(path, "ab", buffering=0) as file:
                    file.write(f"\n{line}".encode())
                bar.update()
                yield left[number], json.loads(line)[1]

    def _read(self) -> Iterator[tuple[str, Any]]:
        """Yield the results in all files; incomplete lines are skipped."""
        for path in sorted(self.path.parent.glob(f"{self.path.stem}.*{self.path.suffix}")):
            with contextlib.suppress(FileNotFoundError):  # another run has ended
                for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                    with contextlib.suppress(ValueError, TypeError):
                        name, result = json.loads(line)
                        yield str(name), result


@contextlib.contextmanager
def kept_work(path: pathlib.Path) -> Iterator[KeptWork]:
    """Keep results in files, of which those of this run's tasks go when the block ends without an error."""
    kept = KeptWork(path)
    with kept.at_end:
        yield kept
    for used in kept.used:
        used.unlink(missing_ok=True)
