"""The connections of aiokafka's clients, and a way around two faults of aiokafka 0.14 when they break."""

from __future__ import annotations

from typing import Any

from aiokafka.client import AIOKafkaClient  # type: ignore[import-untyped]  # has no types
from aiokafka.conn import CloseReason  # type: ignore[import-untyped]  # has no types


def close_broken_connections(client: AIOKafkaClient) -> None:
    """Let a client close its broken connections, from now on, whenever it looks for one.

    aiokafka does so itself, but some turns of the event loop after a connection breaks. These are the faults
    when another task looks for a connection in between:

    - `AIOKafkaClient._get_conn` drops a connection whose end has come. Its requests do not fail, but wait
      until `request_timeout_ms`, 40 s. Then `AIOKafkaClient.send` closes the connection that has taken its
      place, which fails other requests. If there is none, it raises KeyError. That ends the task which reads
      for a consumer, and the consumer gets no record any more, and no error.
    - `AIOKafkaConnection.send` writes to a connection that was reset. uvloop raises RuntimeError for that
      (issue 1038 of aiokafka). If it ends the task that asks for metadata, whoever waits for the next
      metadata waits for ever, such as a producer that sends a batch again.
    """
    connect = client._get_conn

    async def get_conn(*arguments: Any, **options: Any) -> Any:
        _close_broken(client)
        connection = await connect(*arguments, **options)
        # It can break while it is made.
        _close_broken(client)
        return connection

    client._get_conn = get_conn


def _close_broken(client: AIOKafkaClient) -> None:
    for connection in client._conns.values():
        is_open = connection._reader is not None
        if is_open and (connection._reader.at_eof() or connection._writer.is_closing()):
            connection.close(CloseReason.CONNECTION_BROKEN)
