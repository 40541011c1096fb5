"""The real disk: what it promises to the store, and its errors."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from purgatory.delayed.storage.disk import Disk, File
from purgatory.delayed.storage.requests import StoreFailed


def failing(number: int) -> Callable[..., NoReturn]:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.fixture
def disk() -> Disk:
    return Disk()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_file_grows_at_its_end(disk: Disk, tmp_path: Path) -> None:
    file = disk.open(tmp_path / "file")
    file.append(b"first ")
    file.append(b"second")
    file.sync()
    assert file.size == 12
    assert file.read(3, 5) == b"st se"
    assert file.read(10, 5) == b"nd"
    file.close()
    again = disk.open(tmp_path / "file")
    assert again.size == 12
    again.append(b"!")
    again.close()
    existing = disk.open_existing(tmp_path / "file")
    assert existing is not None
    assert existing.read(0, 99) == b"first second!"
    existing.close()
    assert disk.open_existing(tmp_path / "another") is None


def test_a_write_may_take_several_calls(disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: write(file, data[:3], at))
    file = disk.open(tmp_path / "file")
    file.append(b"0123456789")
    assert file.read(0, 99) == b"0123456789"
    file.close()


def test_a_part_of_what_does_not_fit_is_taken_back(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite
    file = disk.open(tmp_path / "file")
    file.append(b"kept")

    def write_a_part(descriptor: int, data: bytes, at: int) -> int:
        if at > 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:3], at)

    monkeypatch.setattr(os, "pwrite", write_a_part)
    with pytest.raises(OSError, match="No space"):
        file.append(b"refused")
    assert file.size == os.path.getsize(tmp_path / "file") == 4
    monkeypatch.setattr(os, "ftruncate", failing(errno.EIO))
    with pytest.raises(StoreFailed, match="keeps a part of what cannot be written"):
        file.append(b"refused")
    file.close()


def test_a_file_is_cut_off(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"kept, and cut off")
    disk.truncate(tmp_path / "file", 4)
    assert (tmp_path / "file").read_bytes() == b"kept"
    with pytest.raises(FileNotFoundError):
        disk.truncate(tmp_path / "another", 4)


def test_a_failed_sync_is_a_failure_of_the_store(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(tmp_path / "file")
    monkeypatch.setattr(os, "fdatasync", failing(errno.EIO))
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    before = open_files()
    with pytest.raises(StoreFailed, match="failed to sync a file"):
        file.sync()
    with pytest.raises(StoreFailed, match=f"failed to sync {tmp_path}"):
        disk.sync_directory(tmp_path)
    with pytest.raises(StoreFailed, match=f"failed to sync {tmp_path}"):
        disk.remove(tmp_path / "file")
    assert open_files() == before
    file.close()


def test_all_files_are_synced_and_a_failure_of_one_is_told(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [disk.open(tmp_path / str(number)) for number in range(20)]
    synced: list[File] = []
    monkeypatch.setattr(File, "sync", lambda file: synced.append(file))
    disk.sync_files(files)
    assert sorted(map(id, synced)) == sorted(map(id, files))

    def fail(file: File) -> None:
        if file is files[13]:
            raise StoreFailed("the disk failed to sync a file")

    monkeypatch.setattr(File, "sync", fail)
    with pytest.raises(StoreFailed, match="failed to sync a file"):
        disk.sync_files(files)
    for file in files:
        file.close()


def test_where_there_is_a_full_sync_it_is_used(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[int] = []
    monkeypatch.setattr("purgatory.delayed.storage.disk._FULL_SYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", lambda descriptor, command: commands.append(command))
    file = disk.open(tmp_path / "file")
    file.sync()
    file.close()
    assert commands == [51]


def test_a_file_is_removed_only_if_its_directory_can_be_synced(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", failing(errno.EMFILE))
        with pytest.raises(OSError, match="Too many open files"):
            disk.remove(tmp_path / "file")
    assert (tmp_path / "file").exists()
    disk.remove(tmp_path / "file")
    disk.remove(tmp_path / "file")
    disk.remove(tmp_path / "no directory" / "file")
    assert not (tmp_path / "file").exists()


def test_a_file_is_replaced_wholly_or_not_at_all(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.replace(tmp_path / "file", b"first, and longer")
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", failing(errno.ENOSPC))
        with pytest.raises(OSError, match="No space"):
            disk.replace(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first, and longer"
    (tmp_path / "file.new").write_bytes(b"what a crash has left of a longer file")
    disk.replace(tmp_path / "file", b"third")
    assert (tmp_path / "file").read_bytes() == b"third"
    assert disk.names(tmp_path) == ["file"]


def test_directories_are_made_with_those_above_and_removed_when_empty(disk: Disk, tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    disk.make_directory(inner)
    disk.make_directory(inner)
    assert disk.names(inner) == []
    (inner / "file").touch()
    disk.remove_directory(inner)
    assert disk.names(inner) == ["file"]
    disk.remove(inner / "file")
    disk.remove_directory(inner)
    disk.remove_directory(inner)
    assert disk.names(tmp_path / "a") == []
    assert disk.names(inner) == []


def test_a_directory_that_cannot_be_removed_raises(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "rmdir", failing(errno.EACCES))
    with pytest.raises(PermissionError):
        disk.remove_directory(tmp_path)


def test_a_lock_is_held_until_it_is_given_back(disk: Disk, tmp_path: Path) -> None:
    before = open_files()
    first, second = disk.hold(tmp_path / "lock"), disk.hold(tmp_path / "lock")
    disk.lock(first)
    with pytest.raises(BlockingIOError):
        disk.lock(second)
    disk.release([first])
    disk.lock(second)
    disk.release([second])
    assert open_files() == before


FORK = """
import os
import sys
from pathlib import Path

from purgatory.delayed.storage.disk import Disk

disk, path = Disk(), Path(sys.argv[1])
lock = disk.hold(path)
disk.lock(lock)
if not os.fork():
    # What the child opens gets the number that the lock had.
    file = os.open(path, os.O_RDONLY)
    print("forked", flush=True)
    sys.stdin.read()
    disk.release([lock])
    os.fstat(file)
    print("ended")
"""


def test_a_forked_child_does_not_keep_the_lock_of_its_parent(disk: Disk, tmp_path: Path) -> None:
    script = [sys.executable, "-c", FORK, str(tmp_path / "lock")]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "forked\n"
        assert parent.wait(60) == 0
        # The child still runs.
        lock = disk.hold(tmp_path / "lock")
        disk.lock(lock)
        disk.release([lock])
        assert parent.communicate(timeout=60)[0] == "ended\n"
