"""Reads a topic with one client, and prints when each record came, by the clock that all processes share.

A process of its own, lest the broker and the consumer wait for each other's interpreter lock.
"""

import sys
import time

from tests.examples.broker.live.clients.client_interface import PATIENCE, ConsumerSettings
from tests.examples.broker.live.clients.python_clients import CLIENTS

# Longer than any test takes, but less than what clients allow a request.
MAX_WAIT = 20.0


def print_arrival_times(client_name: str, bootstrap_servers: str, topic: str) -> None:
    """Until standard output is closed, or nothing has come for a while."""
    (client,) = (client for client in CLIENTS if client.name == client_name)
    with client.consumer(bootstrap_servers, ConsumerSettings(fetch_max_wait=MAX_WAIT)) as consumer:
        consumer.read(topic, 0)
        while consumer.take(PATIENCE) is not None:
            print(time.monotonic(), flush=True)


if __name__ == "__main__":
    print_arrival_times(*sys.argv[1:])
