"""All Python clients."""

from collections.abc import Mapping
from typing import Final

from tests.examples.broker.live.clients.aiokafka_client import Aiokafka
from tests.examples.broker.live.clients.client_interface import Client
from tests.examples.broker.live.clients.confluent_client import Confluent
from tests.examples.broker.live.clients.kafka_python_client import KafkaPython

CLIENTS: Final[tuple[Client, ...]] = (Confluent(), Aiokafka(), KafkaPython())
NAMED: Final[Mapping[str, Client]] = {client.name: client for client in CLIENTS}
