"""Reads a topic with one client, and prints the arrival of each record by the clock that all processes share.

It is a process of its own, so that the broker and the consumer do not share an interpreter lock.
"""

import sys
import time

from tests.examples.broker.live.clients.client_interface import PATIENCE, ConsumerSettings
from tests.examples.broker.live.clients.python_clients import CLIENTS

# Seconds. Longer than any test, but shorter than the clients' request timeouts.
MAX_WAIT = 20.0


def print_arrival_times(client_name: str, bootstrap_servers: str, topic: str) -> None:
    """Print the time of each record until standard output is closed or no more records come."""
    (client,) = (client for client in CLIENTS if client.name == client_name)
    with client.consumer(bootstrap_servers, ConsumerSettings(fetch_max_wait=MAX_WAIT)) as consumer:
        consumer.read(topic, 0)
        while consumer.take(PATIENCE) is not None:
            print(time.monotonic(), flush=True)


if __name__ == "__main__":
    print_arrival_times(*sys.argv[1:])
