"""Several processes that serve together. Each is a fork of this one."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Final

from uvicorn.config import STARTUP_FAILURE

from purgatory.web.shutdown import STOP_SIGNALS

_AWAITED: Final = {*STOP_SIGNALS, signal.SIGCHLD}

Serve = Callable[[int], None]


def run_workers(count: int, serve: Serve) -> int:
    """Run `serve` in `count` processes, numbered from 1, until SIGINT or SIGTERM. Returns the exit status.

    A worker that dies is replaced. One that cannot begin ends all: another one could not, either. `serve` has
    to call `accept_signals` when its signal handlers are in place. Signals that come before wait until then.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    workers = {number: _started(number, serve) for number in range(1, count + 1)}
    status = 0
    while not status and signal.sigwait(_AWAITED) not in STOP_SIGNALS:
        for number, worker in workers.items():
            if worker.is_alive():
                continue
            print(f"worker {number} has ended with status {worker.exitcode}", file=sys.stderr, flush=True)
            if worker.exitcode == STARTUP_FAILURE:
                status = STARTUP_FAILURE
            else:
                workers[number] = _started(number, serve)
    for worker in workers.values():
        worker.terminate()
    for worker in workers.values():
        worker.join()
    return status


def _started(number: int, serve: Serve) -> BaseProcess:
    worker = multiprocessing.get_context("fork").Process(target=serve, args=[number])
    worker.start()
    return worker


def accept_signals() -> None:
    """Let the handlers of this process have the signals that stop it."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
