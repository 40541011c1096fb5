"""The API conforms to its OpenAPI document, and answers no request with a 5xx."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.longpoll.conftest import StartService

# One check is left out. positive_data_acceptance: a valid offset can be refused, because its records have
# been dropped.
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
]


@pytest.mark.real_time
@pytest.mark.long
@pytest.mark.timeout(600)
def test_schemathesis_finds_no_fault(start_service: StartService, tmp_path: Path) -> None:
    with start_service("--max-wait", "0.01") as service:
        command = [
            *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"),
            *("run", f"{service.url}/openapi.json", "--no-color", "--generation-deterministic"),
            *("--checks", ",".join(CHECKS), "--phases", "coverage,fuzzing", "--max-examples", "100"),
        ]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "6 selected" in run.stdout
