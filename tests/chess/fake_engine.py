"""A UCI engine of no strength that misbehaves on demand.

    python fake_engine.py [--fault NAME] [--times N --state FILE] [--only TEXT] [--lacking NAME] [--remembers]

A fault happens in every search whose position contains TEXT, or only in the first N of them, which
are counted in FILE, over all processes. Its scores are a function of position and move. It reports
depths 1 to 3, then, as an engine does that is interrupted, depth 4 with scores worth nothing; with a limit
of depth, all depths up to that. It plays the best move of depth 3; with a Skill Level below 20 one of the
best three, drawn anew each time. One that remembers plays by what it has searched since the game began
(`remembered`), as a hash table makes engines do.
"""

import argparse
import itertools
import os
import random
import sys
import time
import zlib

import chess

OPTIONS = (
    "Threads type spin default 1 min 1 max 8",
    "Hash type spin default 32 min 1 max 64",
    "MultiPV type spin default 1 min 1 max 10",
    "Style type combo default Solid var Solid var Wild",
    "Own Book type check default false",
    "Skill Level type spin default 20 min 0 max 20",
    "UCI_LimitStrength type check default false",
    "UCI_Elo type spin default 1350 min 1350 max 2850",
)


def score(board: chess.Board, move: chess.Move, depth: int) -> int:
    """Centipawns from the side to move's viewpoint; different for different moves."""
    text = f"{board.epd()} {move.uci()} {depth}"
    return zlib.crc32(text.encode()) % 1000 - 500


def ranked(board: chess.Board, depth: int) -> list[chess.Move]:
    return sorted(board.legal_moves, key=lambda m: (-score(board, m, depth), m.uci()))


def remembered(searched: list[str]) -> str:
    """Return the engine's move, by a list of FENs of which the last is to be searched now."""
    moves = sorted(m.uci() for m in chess.Board(searched[-1]).legal_moves)
    return moves[zlib.crc32(" ".join(searched).encode()) % len(moves)]


def say(text: str) -> None:
    print(text, flush=True)


def hang() -> None:
    while True:
        time.sleep(60)


def use_up(path: str, times: int) -> bool:
    """Return whether a fault is still due: the file has one byte for each that happened."""
    with open(path, "ab") as file:
        if file.tell() >= times:
            return False
        file.write(b"x")
    return True


def report(board: chess.Board, depth: int, multipv: int, nodes: int | None) -> None:
    counted = "" if nodes is None else f" nodes {nodes} nps 1000"
    for index, move in enumerate(ranked(board, depth)[:multipv], start=1):
        say(
            f"info depth {depth} seldepth {depth} multipv {index} score cp "
            f"{score(board, move, depth)}{counted} time 1 pv {move.uci()}"
        )


def search(board: chess.Board, multipv: int, nodes: int, depth: int, best: str, fault: str) -> None:
    """Write what a search gives; `depth` is 0 where nodes are the limit."""
    best = ranked(board, depth)[0].uci() if depth else best
    last = {"shallow": min(depth, 2), "no-limit": 99}.get(fault, depth)
    if fault in ("exit", "hang"):
        report(board, 1, multipv, 10)
        sys.exit(1) if fault == "exit" else hang()
    elif fault == "slow":
        time.sleep(0.3)
    elif fault == "nonsense":
        sys.stdout.buffer.write(b"\xff\xfe info depth x\ninfo depth nine score cp\n\n bestmove?\n")
        say("info depth 1 multipv 1 score cp ten pv e2e4\nbestmove e2e4e5")
        return
    elif fault == "endless":
        say("x" * (1 << 22))
    elif fault == "illegal":
        for number, index in itertools.product((1, 2), range(1, multipv + 1)):
            say(f"info depth {number} multipv {index} score cp 5 nodes {nodes} pv a1h{index}")
    elif fault == "no-limit" and not depth:
        report(board, 5, multipv, 2_000_000)
        hang()
    elif fault == "no-move":
        best = "(none)"
    elif fault == "no-nodes-no-end":
        for number in itertools.count(1):
            report(board, number, multipv, None)
            time.sleep(0.2)
    elif fault == "move-alone":
        say("info string thinking\ninfo depth 3 nodes 30")
    elif fault == "few-lines" and nodes < 1200 and multipv > 1:  # amid its first iteration
        report(board, 1, multipv - 1, nodes)
        last = -1
    if fault not in ("illegal", "move-alone") and last >= 0:
        for number in range(1, (last or 3) + 1):
            report(board, number, multipv, None if fault == "no-nodes" else 10 * number)
        if not depth:
            report(board, 4, multipv, None if fault == "no-nodes" else nodes)
    say(f"bestmove {best}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--times", type=int, default=1 << 30)
    parser.add_argument("--state", default=os.devnull)
    parser.add_argument("--only", default="")
    parser.add_argument("--lacking", default="", help="an option, or 'name'")
    parser.add_argument("--remembers", action="store_true")
    args = parser.parse_args()
    if args.fault.endswith("-at-start") and not use_up(args.state, args.times):
        args.fault = ""
    if args.fault == "exit-at-start":
        print("cannot load the network", file=sys.stderr, flush=True)
        sys.exit(3)
    board, multipv, choices, searched = chess.Board(), 1, 1, []
    for line in sys.stdin:
        words = line.split()
        if words == ["uci"]:
            if args.fault == "hang-at-start":
                hang()
            if args.lacking != "name":
                say("id name Fake 1.0")
            for option in OPTIONS:
                if not args.lacking or not option.startswith(args.lacking):
                    say(f"option name {option}")
            say("uciok" if args.fault != "no-uciok" else "hello")
        elif words == ["isready"]:
            say("readyok")
        elif words[:4] == ["setoption", "name", "MultiPV", "value"]:
            multipv = int(words[4])
        elif words[:5] == ["setoption", "name", "Skill", "Level", "value"]:
            choices = 3 if int(words[5]) < 20 else 1
        elif words[:1] == ["position"]:
            fen, _, moves = " ".join(words[1:]).partition(" moves")
            board = chess.Board() if fen == "startpos" else chess.Board(fen.removeprefix("fen "))
            for move in moves.split():
                board.push_uci(move)
        elif words == ["ucinewgame"]:
            searched = []
        elif words[:1] == ["go"]:
            due = args.only in board.fen() and (args.state == os.devnull or use_up(args.state, args.times))
            nodes = int(words[2]) if words[1] == "nodes" else 1000
            depth = int(words[2]) if words[1] == "depth" else 0
            searched.append(board.fen())
            best = random.SystemRandom().choice(ranked(board, 3)[:choices]).uci()
            best = remembered(searched) if args.remembers else best
            search(board, multipv, nodes, depth, best, args.fault if due else "")
        elif words == ["quit"]:
            return


if __name__ == "__main__":
    main()
