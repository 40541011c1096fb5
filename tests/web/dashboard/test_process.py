"""Which process serves the page."""

from __future__ import annotations

import os
import socket

import pytest

from purgatory.web.dashboard.process import this_process


def test_a_process_is_named_by_its_host_and_its_number() -> None:
    process = this_process()
    assert (process.host, process.pid) == (socket.gethostname(), os.getpid())
    assert this_process() == process


def test_after_a_fork_it_is_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    before = this_process()
    monkeypatch.setattr(os, "getpid", lambda: before.pid + 1)
    assert this_process().instance != before.instance
