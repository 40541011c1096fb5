"""librdkafka's mock cluster, in a process of its own: ``python -m benchmarks.broker.mock_cluster BROKERS``.

It lives in a client that is not used for anything else.
"""

from __future__ import annotations

import signal
import sys

from confluent_kafka import Producer

# Seconds to find out where its own brokers listen.
PATIENCE = 30.0
# Warnings and worse: not that it is a mock cluster.
LOG_LEVEL = 4


def main(brokers: str) -> None:
    """Say where it listens, as the example broker does, and serve until terminated."""
    host = Producer({"test.mock.num.brokers": int(brokers), "log_level": LOG_LEVEL})
    found = host.list_topics(timeout=PATIENCE).brokers.values()
    print(f"bootstrap.servers={','.join(f'{broker.host}:{broker.port}' for broker in found)}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
