"""Lighthouse looks at the page, on a desktop and on a phone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.browser import ARGUMENTS, CHROMIUM
from tests.web.dashboard.host import Host

LIGHTHOUSE: Final = shutil.which("lighthouse")

CATEGORIES: Final = ("accessibility", "best-practices", "seo")
"""Those that do not depend on how busy the machine is."""

MOST_SHIFT: Final = 0.1
"""Lighthouse calls this layout shift good. It does not depend on the machine, either."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        LIGHTHOUSE is None or CHROMIUM is None,
        reason="needs chromium and Lighthouse (npm install --global lighthouse@12)",
    ),
]


@pytest.mark.parametrize("device", ["desktop", "mobile"])
def test_lighthouse_finds_no_fault(host: Host, tmp_path: Path, device: str) -> None:
    report = tmp_path / "report.json"
    subprocess.run(
        [
            str(LIGHTHOUSE),
            host.address,
            "--quiet",
            "--output=json",
            f"--output-path={report}",
            f"--only-categories={','.join(CATEGORIES)},performance",
            f"--chrome-flags=--headless=new {' '.join(ARGUMENTS)}",
            # A phone is the default.
            *(["--preset=desktop"] if device == "desktop" else []),
        ],
        env={**os.environ, "CHROME_PATH": str(CHROMIUM)},
        check=True,
    )
    found: dict[str, Any] = json.loads(report.read_text())
    assert {name: found["categories"][name]["score"] for name in CATEGORIES} == dict.fromkeys(CATEGORIES, 1)
    assert found["audits"]["cumulative-layout-shift"]["numericValue"] <= MOST_SHIFT
