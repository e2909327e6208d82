"""Files that are no tree, or a damaged one; what was saved and loaded is in test_tree.py."""

import io
import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games import HistoryTree
from precomp_games.tree.facts import ARRAYS
from tests.oracles.games import expand, policy_pairs, random_tree
from tests.oracles.trees import tree_of
from tests.properties import examples


def test_where_there_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        tree_of("kuhn").save(tmp_path / "missing" / "tree.npz")
    with pytest.raises(ValueError, match="plain file"):
        tree_of("kuhn").save(tmp_path)
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        HistoryTree.load(tmp_path / "none.npz")
    with pytest.raises(OSError, match="directory"):
        HistoryTree.load(tmp_path)


_WORDS = r"^HistoryTree.load\(\): expected (a file written by HistoryTree.save|fingerprint).* got "


@pytest.fixture
def saved(tmp_path):
    """Return (path, its bytes) of a small tree."""
    path = tmp_path / "tree.npz"
    expand(random_tree(3, depth=2), *policy_pairs(3), 0.3).save(path)
    return path, path.read_bytes()


def test_flipped_bytes_are_noticed_where_they_count(saved):
    path, data = saved
    tree, refused = HistoryTree.load(path), []

    @examples(800)
    @given(st.integers(0, len(data) - 1), st.integers(1, 255))
    def holds(k, mask):
        path.write_bytes(data[:k] + bytes([data[k] ^ mask]) + data[k + 1 :])
        try:
            loaded = HistoryTree.load(path)
        except ValueError as error:
            assert str(error).startswith("HistoryTree.load(): expected ")
            refused.append(k)
        else:  # a time stamp, say
            assert loaded.fingerprint == tree.fingerprint
            assert (loaded.penalties, loaded.work) == (tree.penalties, tree.work)

    holds()
    assert len(refused) > 30


def test_truncated_files(saved):
    path, data = saved
    for size in [0, 1, 2, 3, 4, *range(5, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(ValueError, match=_WORDS):
            HistoryTree.load(path)


def _written(save, *arguments, **named):
    """Return the bytes that numpy writes for what is no tree."""
    file = io.BytesIO()
    save(file, *arguments, **named)
    return file.getvalue()


_OTHER_FILES = {
    "nothing": lambda data: b"",
    "text": lambda data: b"once upon a time\n" * 100,
    "zeros": lambda data: b"\x00" * 1000,
    "a broken archive": lambda data: b"PK\x03\x04" + b"\xff" * 500,
    "another archive": lambda data: _written(np.savez, a=np.zeros(3)),
    "an array": lambda data: _written(np.save, np.zeros(3)),
    "an array of objects": lambda data: _written(np.save, np.array([{"a": 1}], object), allow_pickle=True),
    "a pickle of {}": lambda data: b"\x80\x04}\x94.",
    "a tree without its first byte": lambda data: data[1:],
}


@pytest.mark.parametrize("kind", _OTHER_FILES)
def test_files_of_other_kinds(saved, kind):
    path, data = saved
    path.write_bytes(_OTHER_FILES[kind](data))
    with pytest.raises(ValueError, match=_WORDS):
        HistoryTree.load(path)


def _rewrite(path, header=None, raw_header=None, drop=(), **arrays):
    """Write a sound archive whose contents were changed."""
    with np.load(path) as archive:
        parts = {name: archive[name] for name in archive.files}
    if header is not None:
        raw_header = json.dumps(json.loads(bytes(parts["header"])) | header).encode()
    if raw_header is not None:
        parts["header"] = np.frombuffer(raw_header, np.uint8)
    parts |= arrays
    np.savez(path, **{name: part for name, part in parts.items() if name not in drop})


@pytest.mark.parametrize(
    "change",
    [
        {"header": {"fingerprint": "0" * 64}},
        {"header": {"format": "precomp-games history tree 0"}},
        {"header": {"game": "tic_tac_toe"}},
        {"header": {"utility_sum": 0.0}},
        {"header": {"utility_sum": None}},
        {"header": {"utility_range": "wide"}},
        {"header": {"stop_value": "both"}},
        {"header": {"penalties": [0.3]}},
        {"header": {"penalties": [0.3, -1.0]}},
        {"header": {"penalties": [0.3, "inf"]}},
        {"header": {"penalties": None}},
        {"header": {"infoset_keys": ["x"]}},
        {"header": {"work": 3}},
        {"raw_header": b"[]"},
        {"raw_header": b"{}"},
        {"raw_header": b"not json"},
        {"raw_header": b"\xff\xfe"},
        {"raw_header": b"[" * 100_000},
        {"drop": ["header"]},
        *({"drop": [name]} for name in ARRAYS),
        *({name: np.zeros(0, kind)} for name, kind in ARRAYS.items() if name != "position"),
        *({name: np.full(9, 77, kind)} for name, kind in ARRAYS.items()),
        {"sigma": np.array([None] * 9, object)},  # pickled
        {"parent": np.array("x")},
    ],
    ids=lambda change: str(change)[:50],
)
def test_files_that_are_no_tree(saved, change):
    path, _ = saved
    _rewrite(path, **change)
    with pytest.raises(ValueError, match=_WORDS):
        HistoryTree.load(path)


def test_pickles_are_not_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "ran"),))

    path = tmp_path / "bomb.npz"
    bomb = np.empty(1, object)
    bomb[0] = Bomb()
    np.savez(path, header=bomb, **{name: bomb for name in ARRAYS})
    with pytest.raises(ValueError, match=_WORDS):
        HistoryTree.load(path)
    assert not (tmp_path / "ran").exists()
