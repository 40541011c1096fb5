"""Ten thousand long polls on one server, beside the usual way.

One small ASGI application on uvicorn (`server`), in a process of its own, for every way of waiting (`ways`);
only the waiting differs. The usual way is an `asyncio.Condition` for each topic and `asyncio.wait_for`. The
clients are raw sockets in the process that measures (`wakes`). There are three benchmarks: one record wakes
all polls (`wake-all`), it wakes the one poll of its topic among as many topics (`wake-topic`), or the one
client it is for among all that poll the same topic (`wake-client`).

Each is measured with servers that do not notice that a client has left, and with servers that do.
"""

from benchmarks.harness.setting import Entry
from benchmarks.suites.longpoll.wakes import wake_all, wake_client, wake_topic

BENCHMARKS = {
    "wake-all": Entry(wake_all, (2_000,), (10_000,)),
    "wake-topic": Entry(wake_topic, (2_000,), (10_000,)),
    "wake-client": Entry(wake_client, (2_000,), (10_000,)),
}
