"""An object store on loopback: a server of moto, which answers as S3 does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import Request, urlopen
from uuid import uuid4

from pyarrow import fs

from purgatory.pipeline import locations

# It must be nowhere but in requests, and there only as a signature.
SECRET: Final = "a-secret-that-nobody-may-see"
KEY: Final = "the-name-of-a-key"
# Seconds.
_TIMEOUT: Final = 60.0


def environment(endpoint: str) -> dict[str, str]:
    """The variables with which programs find the store."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        # Nothing may be asked of the machine's cloud.
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@contextmanager
def served(**settings: str) -> Iterator[str]:
    """A server until the block ends. Gives its address. `settings` are variables of its environment."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)],
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        endpoint = f"http://127.0.0.1:{port}"
        _wait_for(endpoint, server)
        yield endpoint
    finally:
        server.kill()
        server.wait(_TIMEOUT)


def new_bucket(endpoint: str) -> str:
    """The address of a new bucket."""
    name = f"bucket-{uuid4().hex}"
    urlopen(Request(f"{endpoint}/{name}", method="PUT")).close()
    return f"s3://{name}"


def ship(directory: Path, address: str) -> None:
    """Make the folder in the store a copy of the directory, as `aws s3 sync --delete` does.

    A file that has been there before stays as it is.
    """
    found = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    there = set(names(address))
    for name in there - found.keys():
        locations.delete(f"{address}/{name}")
    for name in found.keys() - there:
        with locations.created(f"{address}/{name}") as file:
            file.write(found[name].read_bytes())


def names(address: str) -> list[str]:
    """The paths of all files in a folder, or in a bucket."""
    system, root = locations.file_system(address)
    files = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    return [info.path.removeprefix(f"{root}/") for info in files if info.is_file]


def contents(address: str) -> Mapping[str, bytes]:
    """All files in a folder, or in a bucket, by their paths."""
    return {name: locations.opened(f"{address}/{name}").read() for name in names(address)}


def _wait_for(endpoint: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urlopen(f"{endpoint}/moto-api/").close()
        except URLError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the server of moto did not start")
