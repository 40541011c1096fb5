import sys

from benchmarks.harness import event_loop
from benchmarks.suites.longpoll.server import serve

way, loop, *framework = sys.argv[1:]
event_loop.run(loop, serve, way, *framework)
