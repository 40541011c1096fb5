"""Each design, against the brokers of this project."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from examples.delayed.clients import create_topics
from examples.delayed.service import DESIGNS
from examples.delayed.settings import Settings, Topics
from tests.examples.delayed.running import PATIENCE, instance, read, sender

pytestmark = pytest.mark.slow

each_design = pytest.mark.parametrize("design", DESIGNS)


@each_design
async def test_records_reach_their_target_once_with_their_content_and_never_early(
    design: str, settings: Settings
) -> None:
    delays = [0.3 * (index % 10) / 10 for index in range(60)]
    async with sender(settings) as service, instance(design, settings) as statistics:
        ids = await service.send_all(delays)
        arrived = await read(settings, service.target, len(ids))
    assert sorted(record.id for record in arrived) == sorted(ids)
    assert all(record.at >= record.due for record in arrived)
    for record in arrived:
        index = b"%d" % ids.index(record.id)
        assert (record.key, record.value, record.headers["index"]) == (index, index, index)
        assert set(record.headers) == {"index", "delayed-id", "delayed-due"}
    assert (statistics.forwarded, statistics.rejected) == (60, 0)


@each_design
async def test_a_record_without_its_headers_is_set_aside_with_the_reason(
    design: str, settings: Settings
) -> None:
    topics = settings.topics
    async with sender(settings) as service, instance(design, settings) as statistics:
        id = await service.send(("x", b"y"), ("delay-ms", b"soon"), ("target", b"orders"))
        (record,) = await read(settings, topics.rejected, 1)
    assert (record.id, record.value, record.headers["x"]) == (id, b"value", b"y")
    assert b"delay-ms must be milliseconds" in record.headers["delayed-reason"]
    assert (statistics.forwarded, statistics.rejected) == (0, 1)


@pytest.mark.long
@each_design
async def test_a_record_whose_cancel_is_acknowledged_before_it_is_due_is_not_forwarded(
    design: str, settings: Settings
) -> None:
    async with sender(settings) as service:
        (while_down,) = await service.send_all([0.2])
        await service.cancel(while_down)
        async with instance(design, settings) as statistics:
            cancelled, kept = await service.send_all([0.4, 0.5])
            await service.cancel(cancelled)
            (record,) = await read(settings, service.target, 1)
            with anyio.fail_after(PATIENCE):
                while statistics.cancelled < 2:
                    await anyio.lowlevel.checkpoint()
    assert record.id == kept
    assert (statistics.forwarded, statistics.cancelled) == (1, 2)


@each_design
async def test_what_was_due_while_no_instance_ran_is_forwarded_by_the_next_one(
    design: str, settings: Settings
) -> None:
    async with sender(settings) as service:
        async with instance(design, settings):
            waiting = await service.send_all([0.5] * 20)
            first = f"{service.target}.first"
            await service.send_all([0.0], target=first)
            await read(settings, first, 1)
        while_down = await service.send_all([0.0] * 20)
        async with instance(design, settings):
            arrived = await read(settings, service.target, 40)
    assert sorted(record.id for record in arrived) == sorted(waiting + while_down)
    assert all(record.at >= record.due for record in arrived)


@each_design
async def test_two_instances_share_the_work_and_forward_nothing_twice(
    design: str, settings: Settings
) -> None:
    """They join and leave while records are forwarded."""
    other = replace(settings, directory=settings.directory / "other")
    async with sender(settings) as service, instance(design, settings):
        ids = await service.send_all([index / 100 for index in range(100)])
        async with instance(design, other):
            ids += await service.send_all([index / 200 for index in range(100)])
            await read(settings, service.target, 150)
        arrived = await read(settings, service.target, 200)
    assert {record.id for record in arrived} == set(ids)
    assert all(record.at >= record.due for record in arrived)
    assert len(arrived) == 200


async def test_a_delay_beyond_the_longest_level_waits_for_it_several_times(settings: Settings) -> None:
    async with sender(settings) as service, instance("levels", settings) as statistics:
        before = time.time()
        await service.send_all([2.0])
        (record,) = await read(settings, service.target, 1)
    assert record.at >= record.due >= before * 1000 + 1999
    # To the longest level, back, to levels again where the machine is fast enough, and to the target.
    assert statistics.sent >= 3


@pytest.mark.parametrize("due", [b"soon", b"9" * 5_000])
async def test_a_foreign_record_in_a_level_does_not_stop_the_others(settings: Settings, due: bytes) -> None:
    topics = settings.topics
    async with sender(settings) as service, instance("levels", settings):
        level = topics.level(settings.levels[0])
        await service.send(("delayed-level-due", due), topic=level)
        await service.send_all([0.05])
        assert len(await read(settings, service.target, 1)) == 1
        (record,) = await read(settings, topics.rejected, 1)
    assert b"missing" in record.headers["delayed-reason"]


async def test_the_levels_merge_their_partitions_by_due_time(settings: Settings) -> None:
    async with sender(settings) as service, instance("levels", settings):
        # The first one waits for a longer level than the second one. A busy machine holds up either one.
        slow, fast = await service.send_all([3.0, 0.03])
        arrived = await read(settings, service.target, 2)
    by_time = sorted(arrived, key=lambda record: record.at)
    assert [record.id for record in by_time] == [fast, slow]


async def test_the_directory_of_a_topic_that_was_deleted_and_created_again_is_refused(
    settings: Settings,
) -> None:
    async with sender(settings) as service, instance("wheel", settings):
        await service.send_all([0.0] * 4)
        await read(settings, service.target, 4)
    again = replace(settings, topics=Topics(f"{settings.topics.requests}b"))
    await is_refused(again, "start with another directory")


async def test_a_session_that_is_too_short_for_the_lease_is_refused(settings: Settings) -> None:
    await is_refused(replace(settings, session_timeout=0.3), r"session timeout must be 0\.4 s or more")


async def test_ids_and_records_need_equally_many_partitions(settings: Settings) -> None:
    topics = settings.topics
    await create_topics(settings.bootstrap, [topics.requests], 2, 1)
    await create_topics(settings.bootstrap, [topics.done], 1, 1)
    await is_refused(settings, "as many partitions")


async def is_refused(settings: Settings, message: str) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match=message), flatten_subgroups=True):
        async with instance("wheel", settings):
            pass


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mounted = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path)]
    try:
        subprocess.run(mounted, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount a file system")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.long
async def test_a_sole_instance_whose_disk_is_full_forwards_what_it_has_and_goes_on_when_there_is_room(
    settings: Settings, small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with sender(settings) as service:
        ids = await service.send_all([0.0] * 400, padding=bytes(5_000))
        async with instance("wheel", replace(settings, directory=small_disk)):
            some = await read(settings, service.target, 50)
            assert "waits for the disk" in caplog.text
            remount = ["mount", "-o", "remount,size=16m", str(small_disk)]
            await anyio.run_process(remount)
            arrived = await read(settings, service.target, len(ids))
    assert {record.id for record in some} < {record.id for record in arrived} == set(ids)
