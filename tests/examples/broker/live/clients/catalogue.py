"""The Python clients there are."""

from typing import Final

from tests.examples.broker.live.clients.aio import Aiokafka
from tests.examples.broker.live.clients.confluent import Confluent
from tests.examples.broker.live.clients.face import Client
from tests.examples.broker.live.clients.kafka_python import KafkaPython

CLIENTS: Final[tuple[Client, ...]] = (Confluent(), Aiokafka(), KafkaPython())
