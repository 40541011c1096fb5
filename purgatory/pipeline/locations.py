"""Where files are: in a file system of this machine, or in an object store.

No other module asks which of them an address is in.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from io import BufferedReader
from typing import IO, Final, NamedTuple

import pyarrow.parquet as pq
from pyarrow import fs

from purgatory.pipeline import stores
from purgatory.pipeline.addresses import in_store
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.faults import NO_BUCKET

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The number of files that this process asks a store about at a time.
_REQUESTS: Final = 16


class File(NamedTuple):
    """A file, as it was when its folder was listed."""

    address: str
    # In bytes.
    size: int
    # When it was last changed.
    modified: datetime


def real(address: str) -> str:
    """The address without symbolic links. A store has none."""
    return address if in_store(address) else os.path.realpath(address)


def file_system(address: str) -> tuple[fs.FileSystem, str]:
    """The file system of pyarrow, and the path in it."""
    store = in_store(address)
    if store is None:
        return fs.LocalFileSystem(), os.path.abspath(address)
    system, root = stores.client(store.scheme, store.place)
    return system, f"{root}/{store.key}" if store.key else root


def delta_options(address: str) -> Mapping[str, str]:
    """The options of deltalake for a table with this address."""
    store = in_store(address)
    return {} if store is None else stores.delta_options(store.scheme, store.place)


def info(address: str) -> fs.FileInfo:
    """The type, the size and the time of what is there, as pyarrow gives them."""
    system, path = file_system(address)
    return system.get_file_info(path)


def check_bucket(address: str) -> None:
    """Raise PipelineError if the address is in a bucket that is not there.

    A key may have rights to a part of the bucket only. Then nothing is known.
    """
    store = in_store(address)
    if store is not None:
        system, root = stores.client(store.scheme, store.place)
        with suppress(OSError):
            if system.get_file_info(root).type == fs.FileType.NotFound:
                raise PipelineError(f"{store.place}: the object store {NO_BUCKET}")


def is_folder(address: str) -> bool:
    """Whether it is a directory, or there are files in it in a store."""
    if not in_store(address):
        return os.path.isdir(address)
    return bool(info(address).type == fs.FileType.Directory)


def exists(address: str) -> bool:
    if not in_store(address):
        return os.path.exists(address)
    return bool(info(address).type != fs.FileType.NotFound)


def is_readable(address: str) -> bool:
    """Whether this process may read a file that it might not read before."""
    return not in_store(address) and os.access(address, os.R_OK)


def size(address: str) -> int:
    """The size of a file in bytes."""
    if not in_store(address):
        return os.path.getsize(address)
    return int(info(address).size)


def sizes(addresses: Iterable[str]) -> Mapping[str, int]:
    """The size of each file in bytes."""
    listed = list(addresses)
    with ThreadPoolExecutor(_REQUESTS) as threads:
        return dict(zip(listed, threads.map(size, listed), strict=True))


def opened(address: str) -> BufferedReader:
    """Open a file to read it."""
    if not in_store(address):
        # The names of pyarrow are UTF-8. The name of a segment need not be.
        return open(address, "rb")
    system, path = file_system(address)
    return system.open_input_file(path)  # type: ignore[no-any-return]  # pyarrow has no types


def parquet(address: str) -> pq.ParquetFile:
    """Open a Parquet file to read it."""
    system, path = file_system(address)
    # A request to a store takes long. So the parts of a file are read together.
    return pq.ParquetFile(path, filesystem=system, pre_buffer=bool(in_store(address)))


def created(address: str, content_type: str = "application/octet-stream") -> IO[bytes]:
    """Open a file to write it. Makes its directories.

    A store tells browsers the type of the content.
    """
    system, path = file_system(address)
    if not in_store(address):
        system.create_dir(os.path.dirname(path))
    return system.open_output_stream(path, metadata={"Content-Type": content_type})  # type: ignore[no-any-return]  # pyarrow has no types


def delete(address: str) -> None:
    """Delete a file. It may be gone already."""
    with suppress(FileNotFoundError):
        if in_store(address):
            system, path = file_system(address)
            system.delete_file(path)
        else:
            os.unlink(address)


def delete_folder(address: str) -> None:
    """Delete a folder and all that is in it, as far as possible. It may be gone already."""
    system, path = file_system(address)
    with suppress(OSError):
        system.delete_dir(path)


def names_in(address: str) -> list[str]:
    """The names of what is in a folder; none if there is no folder."""
    system, path = file_system(address)
    return [info.base_name for info in system.get_file_info(fs.FileSelector(path, allow_not_found=True))]


def folders(pattern: str) -> list[str]:
    """The folder with this address, or else the folders that it matches as a pattern, without links."""
    if is_folder(pattern):
        found: Iterable[str] = [pattern]
    elif in_store(pattern):
        found = _matches(pattern)
    else:
        found = sorted(glob.glob(pattern))
    return list(dict.fromkeys(real(each) for each in found if is_folder(each)))


def files_in(folder: str) -> Iterator[File]:
    """The files in a folder, by name. A file comes before the symbolic links that lead to it."""
    if not in_store(folder):
        yield from _local_files(folder)
        return
    system, path = file_system(folder)
    for info in sorted(system.get_file_info(fs.FileSelector(path)), key=lambda info: info.base_name):
        if info.is_file:
            yield File(f"{folder}/{info.base_name}", info.size, _modified(info.mtime_ns))


def sync(address: str) -> None:
    """Wait until what was written is on the disk. A store has it before it answers."""
    if not in_store(address):
        os.sync()


def _local_files(folder: str) -> Iterator[File]:
    for entry in sorted(os.scandir(folder), key=lambda entry: (entry.is_symlink(), entry.name)):
        try:
            status = entry.stat()
        except FileNotFoundError:
            # The file was moved meanwhile.
            continue
        except OSError:
            # To read the file fails, too, and says why.
            yield File(entry.path, 0, _EPOCH)
            continue
        if stat.S_ISREG(status.st_mode):
            yield File(entry.path, status.st_size, _modified(status.st_mtime_ns))


def _matches(pattern: str) -> list[str]:
    """The addresses in a store that match the pattern. A name that begins with a dot matches only itself."""
    root, *parts = re.split(r"(?<!/)/(?!/)", pattern)
    found = [root]
    for part in parts:
        if glob.has_magic(part):
            names = {each: sorted(names_in(each)) for each in found}
            found = [
                f"{each}/{name}"
                for each in found
                for name in names[each]
                if fnmatchcase(name, part) and not name.startswith(".")
            ]
        else:
            found = [f"{each}/{part}" for each in found]
    return found


def _modified(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
