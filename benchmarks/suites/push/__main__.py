import sys

from benchmarks.harness import event_loop
from benchmarks.suites.push.server import serve

event_loop.run(sys.argv[1], serve)
