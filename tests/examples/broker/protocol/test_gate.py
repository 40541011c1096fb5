"""The gate, open and closed."""

import asyncio

from examples.broker.protocol.gate import Gate


async def test_an_open_gate_returns_without_a_checkpoint() -> None:
    others = asyncio.create_task(asyncio.sleep(0))
    await Gate().passed()
    assert not others.done()
    await others


async def test_a_closed_gate_holds_everyone_until_it_opens() -> None:
    gate = Gate()
    gate.close()
    gate.close()
    waiting = [asyncio.create_task(gate.passed()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    assert (gate.is_open, repr(gate)) == (False, "<Gate closed>")
    gate.open()
    gate.open()
    await asyncio.gather(*waiting)
    assert (gate.is_open, repr(gate)) == (True, "<Gate open>")


async def test_a_gate_that_closes_again_at_once_holds_everyone() -> None:
    gate = Gate()
    gate.close()
    waiting = asyncio.create_task(gate.passed())
    await asyncio.sleep(0)
    gate.open()
    gate.close()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    gate.open()
    await waiting
