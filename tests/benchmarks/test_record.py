"""A run as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import record
from benchmarks.question import Contender
from benchmarks.setting import Setting
from tests.benchmarks import fakes


def test_a_run_is_written_with_what_is_needed_to_judge_it(tmp_path: Path) -> None:
    never = fakes.contender("other").measure
    compiled = Contender("callbacks", "purgatory", never, "compiled")
    other = Contender("callbacks", "other", never)
    answer = fakes.answer({compiled: [{"us": 1.0}, {"us": 2.0}], other: [{"us": 3.0}]})
    file = tmp_path / "run.json"

    record.write(file, [answer], Setting("uvloop", full=True), repetitions=2)

    written = json.loads(file.read_text())
    questions = written.pop("questions")
    assert written.keys() == {
        *("written", "commit", "command", "build", "builds", "full", "loop", "repetitions"),
        *("machine", "python", "packages"),
    }
    assert (written["loop"], written["repetitions"], written["full"]) == ("uvloop", 2, True)
    assert (written["build"], written["builds"]) == ("compiled", ["compiled", "interpreted"])
    assert written["machine"].keys() == {"processor", "cores", "memory_bytes", "system"}
    assert questions == [
        {
            "name": "cost",
            "summary": "what it costs",
            "tables": [
                {
                    "title": "Microseconds",
                    "columns": [
                        {"metric": "us", "heading": "n = 10", "spread": True},
                        {"metric": "held", "heading": "entries", "spread": False},
                    ],
                    "note": "Of n.",
                }
            ],
            "contenders": [
                {
                    "section": "callbacks",
                    "name": "purgatory",
                    "build": "compiled",
                    "reference": "purgatory",
                    "samples": [{"us": 1.0}, {"us": 2.0}],
                },
                {
                    "section": "callbacks",
                    "name": "other",
                    "build": None,
                    "reference": "purgatory",
                    "samples": [{"us": 3.0}],
                },
            ],
        }
    ]
