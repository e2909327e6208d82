"""Engines that are hash functions: they answer as `StoredEngine` does, and search nothing."""

import dataclasses
import hashlib

import chess

from precomp_games.chess.engines.searches import Line, SearchResult


def _hash(text: str) -> float:
    """Return a number in [0, 1) that depends on nothing but the text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") / 2**32


class HashEngine:
    """Has scores that only depend on position, move and limit."""

    engine_id = "Stockfish 15.1"

    def __init__(self, spread: float = 120.0) -> None:
        self.asked: list[tuple[str, str, int]] = []
        self.spread = spread

    def search(self, epds, limit, multipv):
        self.asked += [(epd, str(limit), multipv) for epd in epds]
        return [self.result(epd, limit, multipv) for epd in epds]

    def result(self, epd, limit, multipv):
        board = chess.Board(epd + " 0 1")
        best = int(self.spread * (2 * _hash(f"{epd} {limit}") - 1))
        scored = [(best - int(60 * _hash(f"{epd} {m} {limit}")), m.uci()) for m in board.legal_moves]
        scored.sort(reverse=True)
        return SearchResult(self.lines(scored)[:multipv], 10, 1000)

    def lines(self, scored):
        return tuple(Line(move, cp, None) for cp, move in scored)


class DistinctEngine(HashEngine):
    """No two moves are equally good."""

    def lines(self, scored):
        return tuple(Line(move, cp - rank, None) for rank, (cp, move) in enumerate(scored))


class TyingEngine(HashEngine):
    """Its two best moves are equally good, everywhere."""

    def lines(self, scored):
        best, _ = scored[0]
        return tuple(Line(move, best if rank < 2 else cp - 1, None) for rank, (cp, move) in enumerate(scored))


class AnsweringEngine(HashEngine):
    """Plays as well: its third move three times of four, and the best one else."""

    def search(self, epds, limit, multipv, samples=0):
        self.asked += [(epd, str(limit), multipv, samples) for epd in epds]
        results = []
        for found in (self.result(epd, limit, 3) for epd in epds):
            best, *others = (line.move for line in found.lines)
            played = ((others[-1], 3), (best, 1)) if others else ((best, 4),)
            results.append(dataclasses.replace(found, lines=found.lines[:multipv], played=played))
        return results
