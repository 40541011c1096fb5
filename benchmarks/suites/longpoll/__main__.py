import sys

from benchmarks.harness import event_loop
from benchmarks.suites.longpoll.server import serve

event_loop.run(sys.argv[2], serve, sys.argv[1])
