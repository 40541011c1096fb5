"""All Python clients. They have the same methods, except that aiokafka elects no leaders."""

from typing import Final

from tests.examples.broker.live.clients.aiokafka_client import Aiokafka, AiokafkaAdmin
from tests.examples.broker.live.clients.confluent_client import Confluent, ConfluentAdmin
from tests.examples.broker.live.clients.kafka_python_client import KafkaPython, KafkaPythonAdmin

Client = Confluent | Aiokafka | KafkaPython
Admin = ConfluentAdmin | AiokafkaAdmin | KafkaPythonAdmin

CLIENTS: Final[tuple[Client, ...]] = (Confluent(), Aiokafka(), KafkaPython())
