"""What a round of the demo does with its plan."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from examples.delayed.demo.process import Brokers, Instance
from examples.delayed.demo.round import Plan, Round

# A round that is not run only wants to know where they are.
BROKERS = cast("Brokers", SimpleNamespace(bootstrap=""))


@pytest.mark.parametrize(
    ("most", "backlog", "levels"),
    [(4, 0, [1, 4]), (30, 0, [1, 4, 30]), (30, 5, [1, 4, 30, 7200])],
)
def test_a_delay_is_never_longer_than_the_longest_level(
    most: float, backlog: int, levels: list[float]
) -> None:
    assert Plan("levels", 10, 1.0, most, levels=(1, 4), backlog=backlog).all_levels == levels


@pytest.mark.parametrize(("design", "read"), [("requeue", 12), ("levels", 12), ("wheel", 2)])
def test_what_replicas_have_read_is_what_all_of_them_have_read(
    design: str, read: int, tmp_path: Path
) -> None:
    round = Round(Plan(design, 10, 1.0, 8), BROKERS, tmp_path)
    for name, count in {"a": 10, "b": 2}.items():
        round.instances[name] = Instance(cast("Any", None), name)
        round.instances[name].took(f'{{"read": {count}, "sent_bytes": 100, "disk_bytes": 5}}')
    assert round.read == read
    assert round.written_bytes == 210
