"""Files are written whole or not at all."""

import contextlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from precomp_games._support.files import atomic_write, write_together


def test_text_and_bytes(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "result.txt") as text:
        text.write("λ = 0.001\nfertig\n")
    with atomic_write(str(tmp_path / "book.bin"), "wb") as binary:
        binary.write(bytes(range(256)))
    assert (tmp_path / "result.txt").read_bytes() == "λ = 0.001\nfertig\n".encode()
    assert (tmp_path / "book.bin").read_bytes() == bytes(range(256))
    assert sorted(os.listdir(tmp_path)) == ["book.bin", "result.txt"]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a file that is there."""
    path = tmp_path / "result.txt"
    path.write_text("old")
    return path


def test_the_old_file_stays_until_the_block_ends(old: Path) -> None:
    old.chmod(0o640)
    with atomic_write(old) as file:
        file.write("new")
        file.flush()
        assert old.read_text() == "old"
    assert old.read_text() == "new"
    assert os.name != "posix" or stat.S_IMODE(old.stat().st_mode) == 0o640


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_nothing_behind(old: Path, error: type[BaseException]) -> None:
    for path in (old, old.with_name("new.txt")):
        with pytest.raises(error), atomic_write(path) as file:
            file.write("half of it")
            raise error
    assert os.listdir(old.parent) == [old.name]
    assert old.read_text() == "old"


def test_a_killed_process_leaves_the_old_file(old: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from precomp_games._support.files import atomic_write\n"
        "with atomic_write(sys.argv[1]) as file:\n"
        "    file.write('half')\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(old)], check=False)
    assert done.returncode != 0
    assert old.read_text() == "old"


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_are_those_of_open(tmp_path: Path, mask: int) -> None:
    old = os.umask(mask)
    try:
        with atomic_write(tmp_path / "ours") as file:
            file.write("")
        (tmp_path / "theirs").write_text("")
    finally:
        os.umask(old)
    ours, theirs = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "theirs"))
    assert ours == theirs == 0o666 & ~mask


@pytest.mark.skipif(os.name != "posix", reason="symbolic links")
def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "there" / "result.txt")
    with atomic_write(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert (tmp_path / "there" / "result.txt").read_text() == "new"
    assert os.listdir(tmp_path / "there") == ["result.txt"]


def test_a_path_without_a_folder_is_in_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with atomic_write("result.txt") as file:
        file.write("new")
    assert (tmp_path / "result.txt").read_text() == "new"


@pytest.mark.skipif(sys.platform != "linux", reason="255 bytes for a name, as on Linux")
@pytest.mark.parametrize("name", ["a" * 255, "λ" * 127])
def test_a_name_as_long_as_the_file_system_allows(tmp_path: Path, name: str) -> None:
    with atomic_write(tmp_path / name) as file:
        file.write("new")
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(
    ("path", "error", "words"),
    [
        ("nowhere/result.txt", FileNotFoundError, "expected a file in a folder"),
        ("result.txt/result.txt", NotADirectoryError, "expected a file in a folder"),
        (".", ValueError, "expected the path of a plain"),
        (os.devnull, ValueError, "expected the path of a plain"),
    ],
)
def test_where_no_file_can_be(old: Path, path: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        atomic_write(old.parent / path)
    assert os.listdir(old.parent) == [old.name]


@pytest.mark.parametrize("fails", [False, True])
def test_files_that_belong_together_come_all_or_none(old: Path, fails: bool) -> None:
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
