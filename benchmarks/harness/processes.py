"""Other processes: the build of purgatory that they import, servers, and what Linux says they use."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from benchmarks.harness.benchmark import Build

ROOT = Path(__file__).resolve().parents[2]
# `make` puts the compiled core here, with a copy of the rest of the package.
COMPILED = ROOT / "build" / "compiled"

AVAILABLE = Path("/proc/self/stat").exists()


def available_builds() -> tuple[Build, ...]:
    """The interpreted build, after the compiled one where `make` has built it for this Python."""
    compiled = any(COMPILED.glob(f"*{EXTENSION_SUFFIXES[0]}"))
    return ("compiled", "interpreted") if compiled else ("interpreted",)


def environment(build: Build) -> Mapping[str, str]:
    """The environment variables of a process that imports this build: the first of the path counts."""
    first = [str(COMPILED), str(ROOT)] if build == "compiled" else [str(ROOT)]
    return {
        **os.environ,
        "PURGATORY_REQUIRE_COMPILED": "1" if build == "compiled" else "0",
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [*first, os.environ.get("PYTHONPATH")])),
    }


def resident_bytes(process_id: int | str) -> int:
    """The bytes of the process that are in memory. OSError where there is no /proc, as on macOS."""
    return int(Path(f"/proc/{process_id}/statm").read_bytes().split()[1]) * resource.getpagesize()


def processor_seconds(process_id: int) -> float:
    """The processor time of the process, with its threads that have ended. Linux alone tells it."""
    # Linux numbers the processor clock of a process so: see clock_getcpuclockid(3).
    return time.clock_gettime(~process_id << 3 | 2)


def written_bytes(process_id: int) -> int:
    """What the process has sent to the disk, in whole pages. OSError where there is no /proc, as on macOS."""
    text = Path(f"/proc/{process_id}/io").read_text()
    return int(text.partition("\nwrite_bytes:")[2].split()[0])


@contextmanager
def core_of_its_own(process_id: int) -> Iterator[None]:
    """Within the block, that process has one core, and this one the others, where there are others."""
    cores = os.sched_getaffinity(0)
    first = {min(cores)}
    os.sched_setaffinity(process_id, first)
    os.sched_setaffinity(0, cores - first or first)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def output_of(command: Sequence[str], name: str, *, env: Mapping[str, str] | None = None) -> str:
    """What a command prints. RuntimeError, with what it wrote to stderr, when it fails."""
    finished = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise RuntimeError(f"{name} failed:\n{finished.stderr}")
    return finished.stdout


@contextmanager
def started(module: str, *arguments: str, kill: bool = False) -> Iterator[tuple[str, int]]:
    """The first line that a server prints, and its process id. The server ends with the block.

    It is terminated; or killed, where it would first wait for its clients. Raises RuntimeError when it ends
    without a line; the reason is then on stderr, which it shares with this process.
    """
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline().strip()
            if not line:
                raise RuntimeError(f"{module} {' '.join(arguments)} did not start")
            yield line, process.pid
        finally:
            process.kill() if kill else process.terminate()
            # It may print until it has ended.
            process.communicate()


def allow_open_files(needed: int) -> None:
    """Let this process and those it starts open so many files. ValueError where that is forbidden."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
