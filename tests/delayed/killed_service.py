"""A service under load for `test_killed`: ``python -m tests.delayed.killed_service DIRECTORY``.

For each line of its input, a number, it forks a process that schedules, cancels and delivers messages until
that one is killed. Messages are numbered. It says what happens, a line for each event:

    pid PID             a process was forked
    ended               it is dead
    ready               the store is open
    put N, stored N     before and after a message is scheduled
    cancel N, cancelled N BOOL
    deliver N DUE NOW   a delivery begins
    delivered N         it has ended
    noted N             the log says that it was delivered
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random

from purgatory.delayed import DelayedMessages, Receipt, loader, messages, schedule
from purgatory.delayed.storage.frames import Kind
from purgatory.delayed.storage.requests import Answer, End, Request
from purgatory.delayed.storage.store import Store

WRITERS = 12
# A turn every 0.2 s instead of 10 s, so that messages take all ways in a short life.
schedule.TURN = 200  # type: ignore[misc]  # a constant
schedule.SOON = 400  # type: ignore[misc]  # a constant
schedule.AHEAD = 100  # type: ignore[misc]  # a constant
loader._PIECE = 50  # type: ignore[misc]  # a constant

numbers: dict[int, int] = {}


class SayingStore(Store):
    """Says what was noted in the log."""

    def commit(self, requests: Sequence[Request]) -> list[Answer]:
        answers = super().commit(requests)
        for request in requests:
            if isinstance(request, End) and request.kind is Kind.DELIVERED and request.token in numbers:
                say("noted", numbers[request.token])
        return answers


def say(*words: object) -> None:
    # One call, which the pipe keeps in one piece. What was written before a kill is still read.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def serve(directory: Path, number: int) -> None:
    random = Random(number)

    async def deliver(id: str, payload: bytes, due: float) -> None:
        if not id.startswith("id "):
            # An earlier process may have stored it.
            numbers[int(id, 16)] = int(payload)
        say("deliver", payload.decode(), due, time.time())
        await asyncio.sleep(random.random() * 0.01)
        if random.random() < 0.05:
            raise ValueError
        say("delivered", payload.decode())

    async def write() -> None:
        receipts: list[tuple[int, Receipt]] = []
        while True:
            mine = next(next_numbers)
            due = time.time() + random.choice([0.0, random.uniform(0, 0.3), random.uniform(0, 1.5)])
            id = f"id {mine}" if random.random() < 0.3 else None
            say("put", mine)
            receipt = await delayed.schedule(b"%d" % mine, at=due, id=id)
            numbers[receipt.token] = mine
            say("stored", mine)
            receipts.append((mine, receipt))
            if random.random() < 0.4:
                chosen, receipt = receipts.pop(random.randrange(len(receipts)))
                say("cancel", chosen)
                say("cancelled", chosen, await delayed.cancel(receipt))

    next_numbers = count(number * 1_000_000)
    async with DelayedMessages(
        directory, deliver, slot=0.05, workers=20, backoff=0.02, attempts=100
    ) as delayed:
        say("ready")
        if number:
            await asyncio.gather(*(write() for _ in range(WRITERS)))
        await asyncio.Event().wait()


def main() -> None:
    setattr(messages, "Store", SayingStore)  # noqa: B010  # no name that the module exports
    directory = Path(sys.argv[1])
    for line in sys.stdin:
        # Quicker than a new interpreter. There are no threads yet.
        pid = os.fork()
        if not pid:
            asyncio.run(serve(directory, int(line)))
        say("pid", pid)
        os.waitpid(pid, 0)
        say("ended")


if __name__ == "__main__":
    main()
