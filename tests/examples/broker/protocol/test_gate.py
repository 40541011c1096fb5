"""The gate, open and closed."""

import asyncio

from examples.broker.protocol.gate import Gate


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_an_open_gate_returns_without_a_checkpoint() -> None:
    others = asyncio.create_task(asyncio.sleep(0))
    await Gate().passed()
    assert not others.done()
    await others


async def test_a_closed_gate_holds_everyone_until_it_stays_open() -> None:
    gate = Gate()
    gate.close()
    gate.close()
    assert (gate.is_open, repr(gate)) == (False, "<Gate closed>")
    waiting = [asyncio.create_task(gate.passed()) for _ in range(3)]
    await turns()
    gate.open()
    gate.close()
    await turns()
    assert not any(task.done() for task in waiting)
    gate.open()
    gate.open()
    await asyncio.gather(*waiting)
    assert (gate.is_open, repr(gate)) == (True, "<Gate open>")
