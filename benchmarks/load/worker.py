"""One measurement of one design, in a process of its own, printed as JSON: what `contestant` starts.

python -m benchmarks.load.worker SUBJECT LOOP PLAN
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.load.kafka_subjects import Kafka08Subject, KafkaSubject
from benchmarks.load.plan import Plan
from benchmarks.load.purgatory_subject import PurgatorySubject
from benchmarks.load.subject import Subject
from benchmarks.load.trial import measure, measure_generator
from benchmarks.loops import run

SUBJECTS: dict[str, type[Subject[Any]]] = {
    "purgatory": PurgatorySubject,
    "kafka-now": KafkaSubject,
    "kafka-0.8": Kafka08Subject,
}
# In place of a subject.
GENERATOR = "generator"


def main(subject: str, loop: str, file: str) -> None:
    """Measure `subject`, or the generator, on a fresh event loop, by the plan in a file."""
    plan = Plan.read(Path(file))
    trial = measure_generator(plan) if subject == GENERATOR else measure(SUBJECTS[subject], plan)
    print(json.dumps(asdict(run(loop, trial))))


if __name__ == "__main__":
    main(*sys.argv[1:])
