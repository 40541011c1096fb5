"""What is measured: the alternatives, behind the interfaces of `alternative` and `timers`.

`purgatory_waits`, `callbacks` and `tasks` are waits for keys as a user writes them. The others are older
designs, to compare with this library's core: `timers`, `kafka_today`, Kafka's present timer and purgatory,
and `kafka_08`, the purgatory before.

The older designs are written as one would write them in Python for use: slots, no locks, and no unnecessary
layers. They leave out what a library adds, such as checks of arguments or containing the errors of user code.
"""

from benchmarks.designs.callbacks import DictAndTickerWheel
from benchmarks.designs.kafka_08 import Kafka08
from benchmarks.designs.kafka_today import KafkaToday

KAFKAS = (KafkaToday, Kafka08)
OLDER_DESIGNS = (*KAFKAS, DictAndTickerWheel)
