"""How often a member of a family answers as an engine with its limit does, and what a family costs.

    python -m tools.family_equality --games=games.pgn --positions=1000

A search to N nodes passes through what searches to fewer nodes say (`SearchResult.before`). Here positions of
games are searched to N, and to each n < N by itself, for each MultiPV. "Other lines" counts positions in
which the two say something else; "other moves" those in which the moves differ, or their order; "by a deeper
report" those in which an `EnginePolicy` of n nodes has other lines, which counts an iteration only when a
deeper one has been reported; "nothing yet" those in which nothing was said before n nodes. Then come the
searches and the time that families take, beside one opponent with the largest limit.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import chess
import chess.pgn
from absl import app, flags

from precomp_games.chess import (
    ChessGame,
    EngineFamily,
    EnginePolicy,
    EnginePool,
    EvaluationStore,
    SearchLimit,
    StoredEngine,
    find_engine,
)
from precomp_games.commands._files import print_table

_GAMES = flags.DEFINE_string("games", None, "PGN file that positions come from.", required=True)
_POSITIONS = flags.DEFINE_integer("positions", 1000, "How many positions.", lower_bound=1)
_NODES = flags.DEFINE_list("nodes", ["300", "700", "1000", "1700"], "The limits n.")
_MOST = flags.DEFINE_integer("most", 3000, "The limit N.", lower_bound=1)
_LINES = flags.DEFINE_list("lines", ["1", "2", "4"], "Each MultiPV.")
_SEED = flags.DEFINE_integer("seed", 0, "Of the positions that are chosen.")
_PLIES = 80
_HUNDRED = {"num_limits": 10, "num_temperatures": 10}


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


def equality(pool: EnginePool, epds: list[str]) -> None:
    """Prints how often members and engines of their own differ."""
    rows, most = [], SearchLimit(nodes=_MOST.value)
    for multipv in map(int, _LINES.value):
        whole = pool.search(epds, most, multipv, iterations=True)
        for nodes in map(int, _NODES.value):
            alone = pool.search(epds, SearchLimit(nodes=nodes), multipv, iterations=True)
            counts = [0, 0, 0, 0]
            for long, short in zip(whole, alone, strict=True):
                member, itself = long.before(nodes), short.before(nodes)
                counts[0] += member.lines != itself.lines
                counts[1] += [line.move for line in member.lines] != [line.move for line in itself.lines]
                counts[2] += member.lines != short.lines
                counts[3] += itself.nodes >= nodes
            rows.append((multipv, nodes, len(epds), *counts))
    titles = ("MultiPV", "n", "positions", "other lines", "other moves", "by a deeper report", "nothing yet")
    print_table(rows, titles)


def cost(pool: EnginePool, epds: list[str]) -> None:
    """Prints searches and seconds of families, and of one opponent with the largest limit."""
    game, most = ChessGame(), _MOST.value
    states = [ChessGame({"fen": f"{epd} 0 1"}).new_initial_state() for epd in epds]
    for state in states:
        state.legal_actions()
    rows = []
    for name, make in (
        ("one opponent, k = 2", lambda engine: EnginePolicy(game, engine, SearchLimit(nodes=most), 10.0, 2)),
        ("a hundred, k = 2", lambda engine: EngineFamily(game, engine, (300, most), top_k=2, **_HUNDRED)),
        ("96, k = 2, 3, 4", lambda engine: EngineFamily(game, engine, (300, most))),
    ):
        with EvaluationStore(":memory:") as store:
            engine = StoredEngine(store, pool)
            policy, seconds = make(engine), []
            ask = getattr(policy, "component_rows", policy.action_probabilities_batch)
            for _ in range(2):
                began = time.monotonic()
                ask(states)
                seconds.append(time.monotonic() - began)
            rows.append((name, engine.searches, *seconds, 1000.0 * seconds[1] / len(states)))
    print_table(rows, ("", "searches", "seconds", "again, from memory", "ms a position"))


def main(argv: list[str]) -> None:
    """Searches, and prints tables."""
    del argv
    epds = positions(_GAMES.value, _POSITIONS.value, _SEED.value)
    with EnginePool(find_engine()) as pool:
        equality(pool, epds)
        cost(pool, epds)


if __name__ == "__main__":
    app.run(main)
