"""Files are written whole or not at all."""

import contextlib
import os
import signal
import stat
import sys

import pytest

from precomp_games._support.files import atomic_write, write_together
from tests.chess.test_engine import forked


@pytest.fixture
def old(tmp_path):
    """Return a file that is there."""
    path = tmp_path / "result.txt"
    path.write_text("old")
    return path


LONGEST = pytest.mark.skipif(sys.platform != "linux", reason="255 bytes for a name, as on Linux")


@pytest.mark.parametrize(
    ("name", "mode", "content"),
    [
        ("text.txt", "w", "λ = 0.001\nfertig\n"),
        ("book.bin", "wb", bytes(range(256))),
        pytest.param("a" * 255, "w", "as long as the file system allows", marks=LONGEST),
        pytest.param("λ" * 127, "w", "as long as the file system allows", marks=LONGEST),
    ],
)
def test_what_is_written_is_there_and_nothing_else(tmp_path, monkeypatch, name, mode, content):
    monkeypatch.chdir(tmp_path)  # a path without a folder is in the current one
    for path in (name, tmp_path / name):
        with atomic_write(path, mode) as file:
            file.write(content)
        assert (tmp_path / name).read_bytes() == (content if mode == "wb" else content.encode())
        assert os.listdir(tmp_path) == [name]


def test_the_old_file_stays_until_the_block_ends_and_keeps_its_permissions(old):
    old.chmod(0o640)
    with atomic_write(old) as file:
        file.write("new")
        file.flush()
        assert old.read_text() == "old"
    assert old.read_text() == "new"
    assert os.name != "posix" or stat.S_IMODE(old.stat().st_mode) == 0o640


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_nothing_behind(old, error):
    for path in (old, old.with_name("new.txt")):
        with pytest.raises(error), atomic_write(path) as file:
            file.write("half of it")
            raise error
    assert os.listdir(old.parent) == [old.name] and old.read_text() == "old"


def test_a_killed_process_leaves_the_old_file(old):
    def write(tell):
        with atomic_write(old) as file:
            file.write("half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    process, _ = forked(write)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert old.read_text() == "old"


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_are_those_of_open(tmp_path, mask):
    before = os.umask(mask)
    try:
        with atomic_write(tmp_path / "ours") as file:
            file.write("")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == 0o666 & ~mask


@pytest.mark.skipif(os.name != "posix", reason="symbolic links")
def test_a_symbolic_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    link, there = tmp_path / "link", tmp_path / "there" / "result.txt"
    link.symlink_to(there)
    with atomic_write(link) as file:
        file.write("new")
    assert link.is_symlink() and there.read_text() == "new" and os.listdir(there.parent) == [there.name]


def test_where_no_file_can_be_there_is_an_error(old):
    for path, error, words in (
        ("nowhere/result.txt", FileNotFoundError, "expected a file in a folder"),
        ("result.txt/result.txt", NotADirectoryError, "expected a file in a folder"),
        (".", ValueError, "expected the path of a plain"),
        (os.devnull, ValueError, "expected the path of a plain"),
    ):
        with pytest.raises(error, match=words):
            atomic_write(old.parent / path)
    assert os.listdir(old.parent) == [old.name]


@pytest.mark.parametrize("fails", [False, True])
def test_files_that_belong_together_come_all_or_none(old, fails):
    folder = old.parent
    ended = pytest.raises(RuntimeError) if fails else contextlib.nullcontext()
    with ended, write_together(folder) as drafts:
        (drafts / old.name).write_text("new")
        (drafts / "b").write_text("new")
        assert old.read_text() == "old" and not (folder / "b").exists()
        if fails:
            raise RuntimeError
    found = {path.name: path.read_text() for path in folder.iterdir()}
    assert found == ({old.name: "old"} if fails else {old.name: "new", "b": "new"})
    with pytest.raises(FileNotFoundError), write_together(folder / "nowhere"):
        pass
