"""librdkafka's own tests in C and C++, built from Debian's source package."""

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

# Where Debian and Ubuntu say where their packages are. Other repositories may have no sources.
SOURCES: Final = (
    Path("/etc/apt/sources.list.d/debian.sources"),
    Path("/etc/apt/sources.list.d/ubuntu.sources"),
    Path("/etc/apt/sources.list"),
)
PROGRAMS: Final = ("apt-get", "gcc", "g++", "make", "python3")
REPOSITORY: Final = Path(__file__).parents[5]
# Seconds, for a download and for a build on a busy machine.
PATIENCE: Final = 1800.0


class Unavailable(Exception):
    """Raised when the suite cannot be built here. The message says what is missing."""


@dataclass(frozen=True, slots=True)
class LibrdkafkaSuite:
    """The suite, which is built in a directory once."""

    version: str
    directory: Path

    @classmethod
    def built(cls, directory: Path) -> Self:
        """Download and build the suite, unless it is there. Raises Unavailable."""
        missing = [program for program in PROGRAMS if shutil.which(program) is None]
        if missing:
            raise Unavailable(f"librdkafka's tests need {', '.join(missing)}")
        directory.mkdir(parents=True, exist_ok=True)
        if not [*directory.glob("librdkafka_*.orig.tar.gz")]:
            _download(directory)
        (archive,) = directory.glob("librdkafka_*.orig.tar.gz")
        version = archive.name.removeprefix("librdkafka_").removesuffix(".orig.tar.gz")
        suite = cls(version, directory / f"librdkafka-{version}")
        if not suite.directory.exists():
            with tarfile.open(archive) as opened, TemporaryDirectory(dir=directory) as unpacked:
                opened.extractall(unpacked, filter="data")
                Path(unpacked, suite.directory.name).rename(suite.directory)
        if not (suite.directory / "tests" / "test-runner").exists():
            suite._build()
        return suite

    @property
    def numbers(self) -> set[str]:
        """The numbers of the tests that need a broker, and that run without being asked for."""
        text = (self.directory / "tests" / "test.c").read_text()
        listed = re.findall(r"^    _TEST\((\d{4})\w*,\s*([^,)]+)", text, flags=re.MULTILINE)
        return {number for number, flags in listed if not re.search("LOCAL|MANUAL|KNOWN_ISSUE\\b", flags)}

    def run(
        self,
        directory: Path,
        bootstrap_servers: str,
        number: str,
        environment: Mapping[str, str],
        *,
        quick: bool = True,
    ) -> str:
        """Run the tests of one number, and return their output without colours. Its end has the results."""
        settings = {
            "metadata.broker.list": bootstrap_servers,
            "test.topic.random": "true",
            # Other tests may run beside it.
            "test.timeout.multiplier": "3",
        }
        lines = [f"{name}={value}" for name, value in settings.items()]
        (directory / "test.conf").write_text("\n".join(lines) + "\n")
        libraries = [str(self.directory / part) for part in ("src", "src-cpp")]
        done = subprocess.run(
            [str(self.directory / "tests" / "test-runner"), "-L", "-p1", *(["-Q"] if quick else [])],
            cwd=directory,
            env={
                **os.environ,
                "LD_LIBRARY_PATH": ":".join(libraries),
                "TESTS": number,
                "TEST_KAFKA_VERSION": "3.1.0",
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
        )
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout.decode(errors="replace"))

    def _build(self) -> None:
        for command in (
            ["./configure", "--disable-gssapi"],
            ["make", "-j2", "-C", "src"],
            ["make", "-j2", "-C", "src-cpp"],
            ["make", "-j2", "-C", "tests", "build"],
        ):
            _call(command, self.directory)


def results(output: str) -> dict[str, str]:
    """Return PASSED, FAILED or SKIPPED for each test that was started."""
    return dict(re.findall(r"=+ Test (\w+) (PASSED|FAILED|SKIPPED) =+", output))


def _download(directory: Path) -> None:
    """Download the source package by apt, with lists of its own, so that nothing of the system changes."""
    sources = directory / "apt" / "suite.sources"
    lists = directory / "apt" / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    found = [path for path in SOURCES if path.exists()]
    if not found:
        raise Unavailable("librdkafka's tests come from Debian's source packages, and this is no Debian")
    text = found[0].read_text()
    if found[0].suffix == ".sources":
        text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
    else:
        sources = sources.with_suffix(".list")
        text = re.sub(r"^deb ", "deb-src ", text, flags=re.MULTILINE)
    sources.write_text(text)
    apt = [
        *("apt-get", "-q", "-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=/dev/null"),
        *("-o", f"Dir::State::lists={lists}"),
    ]
    _call([*apt, "update"], directory)
    _call([*apt, "source", "--download-only", "librdkafka"], directory)


def _call(command: list[str], directory: Path) -> None:
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired as late:
        raise Unavailable(f"{' '.join(command)} took more than {PATIENCE:g} s") from late
    if done.returncode:
        raise Unavailable(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
