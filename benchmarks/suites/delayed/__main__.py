"""What is killed, and what is opened again.

``python -m benchmarks.suites.delayed LOOP STEP STORE DIRECTORY N``
"""

import sys
from pathlib import Path

from benchmarks.harness.event_loop import run
from benchmarks.suites.delayed.pending import fill, reopen
from benchmarks.suites.delayed.stores import STORES

_, loop, step, name, directory, count = sys.argv
kind = next(each for each in STORES if each.name == name)
if step == "fill":
    run(loop, fill, kind, Path(directory), int(count))
else:
    run(loop, reopen, kind, Path(directory), step)
