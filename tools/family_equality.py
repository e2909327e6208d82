"""How often a member of a family answers as an engine with its limit does, and what a family costs.

    python -m tools.family_equality --games=shared/karpov.pgn --positions=1000

A search to N nodes passes through what searches to fewer nodes say (`SearchResult.before`). Here positions of
games are searched to N, and to each n < N by itself, for each MultiPV. "Other lines" counts positions in
which the two say something else; "other moves" those in which the moves differ, in their order; "by a
deeper report" those in which an `EnginePolicy` of n nodes has other lines, which counts an iteration only when
a deeper one has been reported. Then come the numbers of searches and the time of a family's answers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import chess
import chess.pgn
from absl import app, flags

from precomp_games.chess import EnginePool, EvaluationStore, SearchLimit, StoredEngine, find_engine
from precomp_games.commands._files import print_table

_GAMES = flags.DEFINE_string("games", None, "PGN file that positions come from.", required=True)
_POSITIONS = flags.DEFINE_integer("positions", 1000, "How many positions.", lower_bound=1)
_NODES = flags.DEFINE_list("nodes", ["300", "700", "1000", "1700"], "The limits n.")
_MOST = flags.DEFINE_integer("most", 3000, "The limit N.", lower_bound=1)
_LINES = flags.DEFINE_list("lines", ["1", "2", "4"], "Each MultiPV.")
_SEED = flags.DEFINE_integer("seed", 0, "Of the positions that are chosen.")
_PLIES = 80


def positions(path: str, count: int, seed: int) -> list[str]:
    """Different positions of games, up to ten of each, as EPD."""
    rng, epds = random.Random(seed), dict[str, None]()
    for game in _games(path):
        boards = []
        board = game.board()
        for move in list(game.mainline_moves())[:_PLIES]:
            boards.append(board.epd())
            board.push(move)
        epds |= dict.fromkeys(rng.sample(boards, min(10, len(boards))))
        if len(epds) >= count:
            break
    return list(epds)[:count]


def _games(path: str) -> Iterator[chess.pgn.Game]:
    with open(path, encoding="utf-8", errors="replace") as file:
        while (game := chess.pgn.read_game(file)) is not None:
            yield game


def main(argv: list[str]) -> None:
    """Searches, and prints tables."""
    del argv
    epds = positions(_GAMES.value, _POSITIONS.value, _SEED.value)
    rows = []
    with EnginePool(find_engine()) as pool, EvaluationStore(":memory:") as store:
        engine = StoredEngine(store, pool)
        for multipv in map(int, _LINES.value):
            began = time.monotonic()
            whole = engine.search(epds, SearchLimit(nodes=_MOST.value), multipv, iterations=True)
            print(f"MultiPV {multipv}: {time.monotonic() - began:.1f} s for {_MOST.value} nodes", flush=True)
            for nodes in map(int, _NODES.value):
                began = time.monotonic()
                alone = pool.search(epds, SearchLimit(nodes=nodes), multipv, iterations=True)
                seconds = time.monotonic() - began
                other = moves = deeper = longer = 0
                for epd, long, short in zip(epds, whole, alone, strict=True):
                    member, itself = long.before(nodes), short.before(nodes)
                    differs = member.lines != itself.lines
                    other += differs
                    moves += [x.move for x in member.lines] != [x.move for x in itself.lines]
                    deeper += member.lines != short.lines
                    longer += itself.nodes >= nodes
                    if differs:
                        print(epd, nodes, multipv, member, itself, short.nodes, sep="\n  ")
                rows.append((multipv, nodes, len(epds), other, moves, deeper, longer, f"{seconds:.1f}"))
    titles = ("MultiPV", "n", "positions", "other lines", "other moves", "by a deeper report", "longer", "s")
    print_table(rows, titles)


if __name__ == "__main__":
    app.run(main)
