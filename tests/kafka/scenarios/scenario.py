"""A scenario: what a client asks a cluster, and all that it can see of the answers."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.answers import comparable
from tests.kafka.scenarios.brokers import Brokers, RunningCluster

# What stands in a topic's name. Names that differ in dots and underscores alone would collide.
_LABEL: Final = re.compile(r"[a-zA-Z0-9 -]{1,60}")

SCENARIOS: Final[dict[str, "Scenario"]] = {}
"""Every scenario by its name."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """``act`` returns the answers. Both clusters are asked the same."""

    subject: str
    name: str
    act: Callable[[Brokers], Plain]

    def answers(self, cluster: RunningCluster) -> Plain:
        """Return what a client sees, without what differs between any two clusters."""
        with Brokers.connected(cluster, self.name) as brokers:
            return comparable(self.act(brokers))


def scenario(*cases: Any) -> Callable[[Callable[..., Plain]], Callable[..., Plain]]:
    """Register a function from brokers to answers; with cases, once for each case, which is its argument.

    A case that is a tuple is several arguments. The name of a scenario is that of the subject, which is the
    module, of the function and of the case.
    """

    def register(function: Callable[..., Plain]) -> Callable[..., Plain]:
        subject = function.__module__.rpartition(".")[2].replace("_", "-")
        for number, case in enumerate(cases or ((),)):
            arguments = case if isinstance(case, tuple) else (case,)
            labels = [str(argument) for argument in arguments]
            if not all(map(_LABEL.fullmatch, labels)):
                labels = [f"number {number}"]
            name = re.sub(r"[ ._]", "-", "-".join([subject, function.__name__, *labels]))
            assert name not in SCENARIOS, name
            SCENARIOS[name] = Scenario(subject, name, partial(_act, function, arguments))
        return function

    return register


def _act(function: Callable[..., Plain], arguments: tuple[Any, ...], brokers: Brokers) -> Plain:
    return function(brokers, *arguments)
