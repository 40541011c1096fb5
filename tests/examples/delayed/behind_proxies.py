"""``python -m examples.delayed`` on a machine that reaches the brokers by other ports.

The first argument is a JSON object: the port that is reached for each port of a broker.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from aiokafka.conn import AIOKafkaConnection  # type: ignore[import-untyped]  # has no types

from examples.delayed.command import main

if __name__ == "__main__":
    ports = {int(port): proxy for port, proxy in json.loads(sys.argv[1]).items()}
    connect = AIOKafkaConnection.connect

    async def connect_to_proxy(connection: Any) -> object:
        connection._port = ports[connection._port]
        return await connect(connection)

    AIOKafkaConnection.connect = connect_to_proxy
    sys.exit(main(sys.argv[2:]))
