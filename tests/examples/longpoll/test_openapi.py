"""The API does what its OpenAPI document says, whatever it is asked, and never answers with a 5xx."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.longpoll.process import live_service

# Not among them: that all that fits the document is accepted, for the records at an offset may be gone; and
# that Allow names all methods of a path, where FastAPI names those of one route.
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
]


@pytest.mark.real_time
def test_schemathesis_finds_no_fault(tmp_path: Path) -> None:
    with live_service("--max-wait", "0.01") as service:
        command = [
            *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"),
            *("run", f"{service.url}/openapi.json", "--no-color", "--generation-deterministic"),
            *("--checks", ",".join(CHECKS), "--phases", "coverage,fuzzing", "--max-examples", "10"),
        ]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "5 selected" in run.stdout
