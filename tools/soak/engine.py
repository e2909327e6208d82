"""An engine in front of another: it records which searches end, and misbehaves now and then.

    python engine.py ENGINE LOG SHARE SEED

A search is in the log before its answer is sent on: what is there twice was finished, and made again.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from typing import BinaryIO

FAULTS = ("exit", "hang", "stop", "nonsense", "absurd", "illegal", "one-line", "slow", "endless")
ABSURD = (
    b"score cp 99999999999999",
    b"score cp -1e309",
    b"score mate 0x7f nodes -5",
    b"score cp 5 wdl 9 9 99999",
    b"depth 99999999999999999999 score cp 1",
)


def append(path: str, text: str) -> None:
    """Append text in one write, which other processes' writes do not tear."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, text.encode())
    os.close(file)


class Relay:
    """A relay between the engine's user and the engine."""

    def __init__(self, engine: str, log: str, share: float, seed: str) -> None:
        self.log, self.share, self.rng = log, share, random.Random(seed)
        self.engine = subprocess.Popen([engine], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.out = sys.stdout.buffer
        self.asked, self.position, self.lines, self.fault = "", "", "1", ""

    def say(self, line: bytes) -> None:
        self.out.write(line)
        self.out.flush()

    def answers(self) -> None:
        """Pass on the engine's output."""
        answers: BinaryIO = self.engine.stdout  # type: ignore[assignment]
        for line in answers:
            if line.startswith(b"bestmove"):
                if self.fault == "illegal":
                    line = b"bestmove a1h8\n"
                if self.fault not in ("illegal", "one-line"):
                    append(self.log, self.asked)
            elif self.fault == "illegal" and b" pv " in line:
                line = line.partition(b" pv ")[0] + b" pv a1h8\n"
            elif self.fault == "one-line" and b" multipv 1 " not in line and b" multipv " in line:
                continue
            self.say(line)
        os._exit(0)

    def misbehave(self, kind: str) -> bool:
        """Misbehave before a search; return whether the search is left out."""
        append(self.log, f"fault {kind}\n")
        if kind == "exit":
            self.engine.kill()
            os._exit(1)
        elif kind == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif kind == "nonsense":
            self.say(b"\xff\xfe info depth x\ninfo depth nine score cp\n\x00\nbestmove e9e4\n")
            return True
        elif kind == "absurd":
            self.say(b"info depth 1 multipv 1 nodes 5 " + self.rng.choice(ABSURD) + b" pv e2e4\n")
        elif kind == "slow":
            time.sleep(self.rng.uniform(0.0, 2.0))
        elif kind == "endless":
            for _ in range(256):
                self.say(b"x" * 65536)
            return True
        return kind == "hang"

    def run(self) -> None:
        threading.Thread(target=self.answers, daemon=True).start()
        orders: BinaryIO = self.engine.stdin  # type: ignore[assignment]
        for line in sys.stdin.buffer:
            text = line.decode().strip()
            if text.startswith("position"):
                self.position = text
            elif text.startswith("setoption name MultiPV value "):
                self.lines = text.rpartition(" ")[2]
            elif text.startswith("go"):
                self.asked = f"{self.position} {text} multipv {self.lines}\n"
                self.fault = self.rng.choice(FAULTS) if self.rng.random() < self.share else ""
                if self.fault and self.misbehave(self.fault):
                    continue
            orders.write(line)
            orders.flush()
            if text == "quit":
                break
        self.engine.kill()


if __name__ == "__main__":
    Relay(sys.argv[1], sys.argv[2], float(sys.argv[3]), f"{sys.argv[4]} {os.getpid()}").run()
