"""Images for the brokers: a broker that waits gets the latest one."""

import asyncio
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.broker.controller.controller import Controller
from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.metadata import MetadataImage
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import registration


async def test_an_existing_later_image_is_returned_at_once(virtual_time: VirtualTimeLoop) -> None:
    async with Controller.running(ClusterDefaults()) as controller:
        assert await controller.image_after(-1) == MetadataImage()
        controller.register(registration(0))
        assert await controller.image_after(0) is controller.image
        assert controller.image_purgatory.statistics().pending == 0


async def test_changes_in_one_loop_iteration_arrive_as_one_image(virtual_time: VirtualTimeLoop) -> None:
    async with Controller.running(ClusterDefaults()) as controller:
        waiting = asyncio.create_task(controller.image_after(0))
        await asyncio.sleep(0)
        for broker_id in range(3):
            controller.register(registration(broker_id))
        controller.create_topic(NewTopic("events"))
        image = await waiting
        assert image is controller.image
        assert (list(image.brokers), list(image.topics)) == ([0, 1, 2], ["events"])


async def test_a_broker_fenced_by_its_timeout_publishes_an_image(virtual_time: VirtualTimeLoop) -> None:
    async with Controller.running(ClusterDefaults(broker_session_timeout=9)) as controller:
        controller.register(registration(0))
        assert (await controller.image_after(controller.image.version)).brokers[0].fenced
        assert virtual_time.time() == pytest.approx(9, abs=0.001)


async def test_closing_withdraws_the_sessions_and_fences_nobody(virtual_time: VirtualTimeLoop) -> None:
    async with Controller.running(ClusterDefaults()) as controller:
        controller.register(registration(0))
        waiting = asyncio.create_task(controller.image_after(controller.image.version))
        await asyncio.sleep(0)
        image = controller.image
    assert controller.image is image
    assert controller.session_purgatory.statistics().pending == 0
    with pytest.raises(TimeoutError):
        await waiting


@given(turns=st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=10), sleeps=st.data())
@settings(max_examples=50, deadline=None)
def test_every_listener_gets_the_last_image_and_none_twice(
    turns: list[list[int]], sleeps: st.DataObject
) -> None:
    """In each iteration of the loop some brokers register. The listeners have different delays."""
    delays = sleeps.draw(st.lists(st.integers(0, 3), min_size=3, max_size=3))

    async def scenario() -> None:
        async with Controller.running(ClusterDefaults()) as controller:
            seen: list[list[MetadataImage]] = [[], [], []]

            async def listen(images: list[MetadataImage], delay: int) -> None:
                version = -1
                while True:
                    images.append(await controller.image_after(version))
                    version = images[-1].version
                    await asyncio.sleep(delay)

            listeners = [asyncio.create_task(listen(*pair)) for pair in zip(seen, delays, strict=True)]
            for turn in turns:
                for broker_id in turn:
                    controller.register(registration(broker_id))
                await asyncio.sleep(0)
            await asyncio.sleep(4)
            for images in seen:
                assert images[-1] is controller.image
                assert all(older.version < newer.version for older, newer in itertools.pairwise(images))
            for listener in listeners:
                listener.cancel()
            await asyncio.wait(listeners)
            assert controller.image_purgatory.statistics().pending == 0

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(scenario())
