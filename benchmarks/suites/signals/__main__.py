"""A worker of the benchmark.

``python -m benchmarks.suites.signals LOOP CARRIER URLS NUMBER WORKERS TOPICS RATE``
"""

import json
import sys

from benchmarks.harness.event_loop import run
from benchmarks.suites.signals import CARRIERS
from benchmarks.suites.signals.worker import Plan, serve

_, loop, name, urls, number, workers, topics, rate = sys.argv
run(
    loop,
    serve,
    CARRIERS[name][0],
    json.loads(urls),
    Plan(int(workers), int(topics), float(rate)),
    int(number),
)
