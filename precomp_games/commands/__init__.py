"""The command `precomp-games`: what the library does, without a line of Python.

Each command is a module with its flags and its work, which is imported when the command is called.
"""

from __future__ import annotations

import importlib
import os
import resource
import sys
import time
from collections.abc import Sequence

COMMANDS = {
    "prepare": "the positions that are worth knowing by heart against an opponent, as a book",
    "match": "what a book scores in games against that opponent, beside other books and none",
    "spar": "prepares against an engine by playing against it, and learns from the games",
    "judge": "what a book of your own is worth: what to learn, what to mend, what to drop",
    "review": "where games left your book, what that cost, and what it teaches",
    "drill": "asks you the positions of a book, what costs most first",
    "report": "books as a page to look at, and as files to study with",
    "scout": "what a player plays, by its games: lines, scores, form, what is new, in seconds",
    "opponent": "White and Black against a person, by its games: a page, studies, cards, what to expect",
    "estimate": "how random an opponent is: the r and the number of moves that fit its moves",
    "calibrate": "what an analyst's score is worth in games",
    "equilibrium": "what both sides learn when both prepare",
    "solve": "an equilibrium of any two-player zero-sum game of OpenSpiel's",
}
"""Each command's name and what it gives."""

process_began: float | None = None
"""When the process began, by `time.monotonic`, where it is there for one command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the first word names and return the exit status.

    Args:
      argv: the command line; by default the process's.
    """
    if argv is None:
        global process_began
        process_began = time.monotonic() - time.process_time()  # imports take seconds
    program, *words = sys.argv if argv is None else argv
    if not words or words[0] in ("--help", "-h", "help"):
        try:
            print(_overview(), flush=True)
        except BrokenPipeError:  # nobody reads on: what is left goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    name, *rest = words
    if name not in COMMANDS:
        from precomp_games._support.checks import did_you_mean  # with numpy, which a list does without

        hint = did_you_mean(name, COMMANDS)
        print(f"error: expected one of {', '.join(COMMANDS)}, got {name[:100]!r}{hint}", file=sys.stderr)
        return 1
    try:
        app = importlib.import_module("precomp_games.commands._app")
        command = importlib.import_module(f"precomp_games.commands.{name}")
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    except (ImportError, MemoryError, OSError, RuntimeError, SystemError) as error:
        if not (message := of_address_space(error)):
            raise
        print(f"error: {message}", file=sys.stderr)
        return 1
    status: int = app.run_command(command, [f"{program} {name}", *rest])
    return status


def of_address_space(error: BaseException) -> str:
    """Explain an error that a limit on address space may have caused; "" if there is no such limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return ""
    text = " ".join(str(error).split())[:300] or repr(error)
    return f"expected more address space than {limit >> 20} MiB: raise ulimit -v ({text})"


def _overview() -> str:
    """Return the usage text: a line for each command."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]
    parts = ("usage: precomp-games COMMAND [--flags]", "\n".join(lines), "COMMAND --help shows its flags.")
    return "\n\n".join(parts)
