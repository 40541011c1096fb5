"""All samples of a run as JSON, with what is needed to judge them."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import purgatory
from benchmarks.question import Answer
from benchmarks.setting import Setting

PACKAGES = ("anyio", "confluent-kafka", "duckdb", "kio", "pyarrow", "pyspark", "uvicorn", "uvloop")


def write(
    path: Path, answers: Sequence[Answer], setting: Setting, repetitions: int, *, command: str | None = None
) -> None:
    """Write the run, as far as it has come, to `path`; with the command if it was not the usual one."""
    record = {
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "command": command,
        "build": setting.builds[0],
        "builds": setting.builds,
        "full": setting.full,
        "loop": setting.loop,
        "repetitions": repetitions,
        "machine": machine(),
        "python": sys.version,
        "packages": {name: _version(name) for name in PACKAGES} | {"purgatory": purgatory.__version__},
        "questions": [_question(answer) for answer in answers],
    }
    path.write_text(json.dumps(record, indent=1) + "\n")


def commit() -> str | None:
    """The commit that is checked out, marked when the tree differs from it; None outside of a checkout."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or None


def machine() -> Mapping[str, str | int | None]:
    """The processor, how many of them, the memory, the operating system."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _question(answer: Answer) -> Mapping[str, object]:
    question = answer.question
    return {
        "name": question.name,
        "summary": question.summary,
        "tables": [asdict(table) for table in question.tables],
        "contenders": [
            {
                "section": contender.section,
                "name": contender.name,
                # Of the core; null where it is not what is measured.
                "build": contender.build,
                "reference": answer.reference(contender).name,
                "samples": answer.samples[contender],
            }
            for contender in question.contenders
        ],
    }
