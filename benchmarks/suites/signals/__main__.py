"""A worker of the benchmark.

``python -m benchmarks.suites.signals LOOP CARRIER URL NUMBER WORKERS TOPICS RATE``
"""

import sys

from benchmarks.harness.event_loop import run
from benchmarks.suites.signals.carriers import carrier
from benchmarks.suites.signals.worker import Plan, serve

_, loop, name, url, number, workers, topics, rate = sys.argv
run(loop, serve, carrier(name), url, Plan(int(workers), int(topics), float(rate)), int(number))
