"""The faults of brokers in a round, one after the other, as a seed decides them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from threading import Event
from typing import Final

from tests.examples.broker.live.live_cluster import LiveCluster

# Seconds. The longest fault outlasts a broker's session and the time that a replica may lag.
LONGEST_FAULT: Final = 3.0
LONGEST_REST: Final = 5.0


class Fault(Enum):
    KILL = "killed"
    PAUSE = "paused"
    CUT_OFF = "cut off"


@dataclass(frozen=True, slots=True)
class BrokerFault:
    """``rest`` is the time before the fault, and ``lasts`` the time until it ends, in seconds."""

    rest: float
    fault: Fault
    broker_id: int
    lasts: float


def faults_of(seed: int, broker_ids: range) -> Iterator[BrokerFault]:
    """Return faults without end."""
    random = Random(seed)
    while True:
        yield BrokerFault(
            random.uniform(1.0, LONGEST_REST),
            random.choice([*Fault]),
            random.choice(broker_ids),
            random.uniform(0.1, LONGEST_FAULT),
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
        begin[fault.fault](fault.broker_id)
        injected[fault.fault.value] += 1
        ended.wait(fault.lasts)
        (cluster.start if fault.fault is Fault.KILL else cluster.resume)(fault.broker_id)
    return injected
