"""Files are written whole or not at all."""

import contextlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from precomp_games.files import atomic_write, write_together


def test_text_is_utf8_with_line_feeds(tmp_path: Path) -> None:
    path = tmp_path / "result.txt"
    with atomic_write(path) as file:
        file.write("λ = 0.001\nfertig\n")
    assert path.read_bytes() == "λ = 0.001\nfertig\n".encode()
    assert os.listdir(tmp_path) == ["result.txt"]


def test_bytes(tmp_path: Path) -> None:
    path = tmp_path / "book.bin"
    with atomic_write(str(path), "wb") as file:
        file.write(bytes(range(256)))
    assert path.read_bytes() == bytes(range(256))


def test_the_old_file_stays_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "result.txt"
    path.write_text("old")
    with atomic_write(path) as file:
        file.write("new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("existing", [True, False])
def test_an_error_leaves_nothing_behind(tmp_path: Path, error: type[BaseException], existing: bool) -> None:
    path = tmp_path / "result.txt"
    if existing:
        path.write_text("old")
    with pytest.raises(error), atomic_write(path) as file:
        file.write("half of it")
        raise error
    assert os.listdir(tmp_path) == (["result.txt"] if existing else [])
    if existing:
        assert path.read_text() == "old"


def test_a_killed_process_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "result.txt"
    path.write_text("old")
    program = (
        "import os, signal, sys\n"
        "from precomp_games.files import atomic_write, write_together\n"
        "with atomic_write(sys.argv[1]) as file:\n"
        "    file.write('half')\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode != 0
    assert path.read_text() == "old"


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


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "result.txt"
    path.write_text("old")
    path.chmod(0o640)
    with atomic_write(path) as file:
        file.write("new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


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


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"atomic_write\(\): expected a file in a folder"):
        atomic_write(tmp_path / "nowhere" / "result.txt")


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"atomic_write\(\): expected a file in a folder"):
        atomic_write(tmp_path / "file" / "result.txt")


def test_no_plain_file(tmp_path: Path) -> None:
    for path in (tmp_path, Path(os.devnull)):
        with pytest.raises(ValueError, match=r"atomic_write\(\): expected the path of a plain"):
            atomic_write(path)


@pytest.mark.parametrize("mode", ["a", "r", "x", "r+", ""])
def test_another_mode(tmp_path: Path, mode: str) -> None:
    with pytest.raises(ValueError, match=r"atomic_write\(\): expected mode 'w' or 'wb', got"):
        atomic_write(tmp_path / "result.txt", mode)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("fails", [False, True])
def test_files_that_belong_together_come_all_or_none(tmp_path: Path, fails: bool) -> None:
    (tmp_path / "a").write_text("old")
    ended = pytest.raises(RuntimeError) if fails else contextlib.nullcontext()
    with ended, write_together(tmp_path) as drafts:
        (drafts / "a").write_text("new")
        (drafts / "b").write_text("new")
        assert (tmp_path / "a").read_text() == "old" and not (tmp_path / "b").exists()
        if fails:
            raise RuntimeError
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == ({"a": "old"} if fails else {"a": "new", "b": "new"})


def test_no_folder_for_files_that_belong_together(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"write_together\(\): expected folder to be a path, got 7"):
        write_together(7)
    with pytest.raises(FileNotFoundError), write_together(tmp_path / "nowhere"):
        pass
