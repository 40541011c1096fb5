"""The older designs of a purgatory that are compared, Kafka's first."""

from benchmarks.constructs.construct import RoundTripConstruct
from benchmarks.constructs.dict_waits import DictAndCallAt, DictAndLazyHeap, DictAndTickerWheel
from benchmarks.constructs.kafka_08_waits import Kafka08
from benchmarks.constructs.kafka_waits import KafkaToday

OLDER_DESIGNS: tuple[type[RoundTripConstruct], ...] = (
    Kafka08,
    KafkaToday,
    DictAndLazyHeap,
    DictAndTickerWheel,
    DictAndCallAt,
)

__all__ = [
    "OLDER_DESIGNS",
    "DictAndCallAt",
    "DictAndLazyHeap",
    "DictAndTickerWheel",
    "Kafka08",
    "KafkaToday",
]
