"""Files of our own: stores of searches, and trees."""

from __future__ import annotations

import contextlib
import functools
import pathlib
import random
import tempfile
import zlib
from typing import Any

import chess
import numpy as np
import pyspiel

from precomp_games import HistoryTree, MetaPrecomputationGame, make_policy, write_efg
from precomp_games.algorithms import best_precomputation, meta_equilibrium
from precomp_games.chess import EngineError, EvaluationStore, SearchLimit, StoredEngine, StoreError
from precomp_games.chess.engines.searches import Line, SearchResult
from tools.fuzz import target
from tools.fuzz.mutate import bent_archive, bent_database

# -- stores ------------------------------------------------------------------------------------------------

_ENGINE, _LIMIT = "Fake 1.0", SearchLimit(nodes=100)


@functools.cache
def _positions() -> tuple[str, ...]:
    board = chess.Board()
    found = [board.epd()]
    for move in ("e2e4", "e7e5", "g1f3"):
        board.push_uci(move)
        found.append(board.epd())
    return tuple(found)


@functools.cache
def stores() -> tuple[bytes, ...]:
    """Stores with and without what was played and said."""
    files = []
    for samples in (0, 3):
        with tempfile.TemporaryDirectory() as name:
            with EvaluationStore(pathlib.Path(name, "store.sqlite")) as store:
                for number, epd in enumerate(_positions()):
                    moves = [move.uci() for move in chess.Board(f"{epd} 0 1").legal_moves][:2]
                    lines = (Line(moves[0], 30 - number, None), Line(moves[1], None, -3))
                    played = ((moves[0], 2), (moves[1], 1)) if samples else ()
                    result = SearchResult(lines, 10, 1234, played)
                    store.put(_ENGINE, _LIMIT, 2, epd, result)
                store.export(pathlib.Path(name, "copy.sqlite"))
            files.append(pathlib.Path(name, "copy.sqlite").read_bytes())
    return tuple(files)


def _make_store(rng: random.Random) -> bytes:
    texts = (
        "e2e4:31 d2d4:#-3",
        "e2e4:#0",
        "e2e4:1 e2e4:1",
        "e2e4:999999999",
        "9 700 e2e4:1 d2d4:2;10 900",
        "nodes=100",
        "movetime=0",
        "Fake 2",
    )
    return bent_database(rng, stores(), texts)


@target("store", _make_store, prepare=stores, refusals=(StoreError, EngineError))
def _(data: bytes, folder: pathlib.Path) -> object:
    path = folder / "store.sqlite"
    path.write_bytes(data)
    way = zlib.crc32(data)
    with EvaluationStore(path, read_only=way % 2 == 0) as store:
        if way % 3 == 0:
            return StoredEngine(store).search(_positions(), _LIMIT, 2)
        found = store.get_many(_ENGINE, _LIMIT, 2, _positions(), (0, 3)[way % 5 % 2])
        if way % 2:
            store.put(_ENGINE, "nodes=7", 2, _positions()[0], SearchResult((Line("e2e4", 1, None),), 1, 1))
        if way % 7 == 0:
            store.export(folder / "copy.sqlite")
        return found, store.engines(), len(store)


# -- trees -------------------------------------------------------------------------------------------------


@functools.cache
def sample_trees() -> tuple[HistoryTree, ...]:
    """Perfect and imperfect information, chance, menus, weights."""
    trees = []
    for name, penalties in (("kuhn_poker", (0.01, 0.02)), ("nim(pile_sizes=2;3)", (0.01, 0.3))):
        game = pyspiel.load_game(name)
        pre, own = make_policy(game, "random(seed=1)"), make_policy(game, "uniform")
        trees.append(HistoryTree.from_game(game, sigma_pre=pre, sigma=own, penalties=penalties))
        trees.append(
            HistoryTree.from_game(game, sigma_pre=pre, sigma=own, penalties=0.02, weight=lambda state: 0.5)
        )
    return tuple(trees)


@functools.cache
def _tree_files() -> tuple[bytes, ...]:
    files = []
    with tempfile.TemporaryDirectory() as folder:
        for tree in sample_trees():
            path = pathlib.Path(folder, "tree.npz")
            tree.save(path)
            files.append(path.read_bytes())
    return tuple(files)


def _with_fingerprint(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Makes a fingerprint fit, as whoever changes a file on purpose can."""
    with contextlib.suppress(Exception):
        fields = {
            name: header[name] for name in ("penalties", "utility_range", "utility_sum", "stop_value", "work")
        }
        keys = header["infoset_keys"]
        tree = HistoryTree(
            game_string=header["game"],
            infoset_keys=None if keys is None else tuple(map(str, keys)),
            **fields,
            **{name: np.asarray(array) for name, array in arrays.items()},
        )
        header["fingerprint"] = tree.fingerprint


def _make_tree(rng: random.Random) -> bytes:
    return bent_archive(rng, _tree_files(), _with_fingerprint)


def _use_tree(tree: HistoryTree, way: int, folder: pathlib.Path) -> object:
    if way == 0:
        best = best_precomputation(tree, 0)
        return best.value, len(list(best.states()))
    if way == 1:
        return meta_equilibrium(tree, iterations=3, check_every=3).value
    write_efg(MetaPrecomputationGame(tree, check_supports=False), folder / "meta.efg")
    game = pyspiel.load_efg_game((folder / "meta.efg").read_text(encoding="utf-8"))
    return tree.game, game.num_players()


def prepare_trees() -> None:
    """Compiled functions come out of numba's cache now, by pickles."""
    _tree_files()
    with tempfile.TemporaryDirectory() as folder:
        for way in range(3):
            _use_tree(sample_trees()[0], way, pathlib.Path(folder))


@target("tree", _make_tree, prepare=prepare_trees)
def _(data: bytes, folder: pathlib.Path) -> object:
    path = folder / "tree.npz"
    path.write_bytes(data)
    return _use_tree(HistoryTree.load(path), zlib.crc32(data) % 3, folder)
