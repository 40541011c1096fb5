"""The faults of brokers in a round, one after the other, as a seed decides them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from threading import Event
from typing import Final

from examples.broker.controller.election import ElectionType
from tests.examples.broker.live.live_cluster import LiveCluster

BROKER_IDS: Final = (1, 2, 3)
# Seconds in which a leader that is about to fail appends what no follower fetches.
SEVERED: Final = 0.05


class Fault(Enum):
    KILL = "killed"
    PAUSE = "paused"
    CUT_OFF = "cut off"


@dataclass(frozen=True, slots=True)
class BrokerFault:
    """``rest`` is the time before the fault, and ``lasts`` the time until it ends, in seconds.

    Before a ``severing`` fault no other broker replicates, so that a leader has records to truncate.
    """

    rest: float
    fault: Fault
    severing: bool
    broker_id: int
    lasts: float


def faults_of(seed: int, longest_rest: float, longest_fault: float) -> Iterator[BrokerFault]:
    """Return faults without end."""
    random = Random(seed)
    while True:
        yield BrokerFault(
            random.uniform(0.2 * longest_rest, longest_rest),
            random.choice([*Fault]),
            random.choice((True, False)),
            random.choice(BROKER_IDS),
            random.uniform(0.03 * longest_fault, longest_fault),
        )


def harm(cluster: LiveCluster, faults: Iterator[BrokerFault], ended: Event) -> Counter[str]:
    """Inject the faults until ``ended`` is set; return how many there were. Then all brokers are well."""
    begin: Mapping[Fault, Callable[[int], None]] = {
        Fault.KILL: cluster.kill,
        Fault.PAUSE: cluster.pause,
        Fault.CUT_OFF: cluster.cut_off,
    }
    injected: Counter[str] = Counter()
    for fault in faults:
        if ended.wait(fault.rest):
            break
        severed = [*({*BROKER_IDS} - {fault.broker_id})] if fault.severing else []
        cluster.pause_followers(*severed)
        if severed:
            ended.wait(SEVERED)
        begin[fault.fault](fault.broker_id)
        cluster.resume_followers(*severed)
        injected[fault.fault.value] += 1
        ended.wait(fault.lasts)
        (cluster.start if fault.fault is Fault.KILL else cluster.resume)(fault.broker_id)
        # Otherwise one broker would soon lead everything.
        cluster.look(lambda running: running.controller.elect_leaders(ElectionType.PREFERRED, None))
    return injected
