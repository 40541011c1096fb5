"""Topics over HTTP: appending, reading by long poll, following a topic, and refusals."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from examples.longpoll.application import application
from examples.longpoll.limits import Limits
from examples.longpoll.service import Service
from purgatory.testing import VirtualTimeLoop


async def post(client: httpx.AsyncClient, topic: str, *records: Any) -> None:
    for record in records:
        assert (await client.post(f"/topics/{topic}", json=record)).status_code == 201


def request(client: httpx.AsyncClient, url: str, **headers: str) -> asyncio.Task[httpx.Response]:
    return asyncio.create_task(client.get(url, headers=headers))


async def until_pending(service: Service, count: int = 1) -> None:
    """Let the loop run until `count` polls are pending."""
    for _ in range(1_000):
        if service.polls.statistics().pending == count:
            return
        await asyncio.sleep(0)
    raise AssertionError(service.polls)


async def test_records_are_read_as_they_were_sent(client: httpx.AsyncClient) -> None:
    records = [{"text": "Zoë & \u2028"}, False, [1.5, None]]
    await post(client, "t", *records)
    answer = (await client.get("/topics/t")).json()
    assert answer["records"] == records
    assert (answer["topic"], answer["offset"], answer["next"]) == ("t", 0, 3)


async def test_the_answer_to_an_append_is_the_offset_of_the_record(client: httpx.AsyncClient) -> None:
    await post(client, "t", 0)
    answer = await client.post("/topics/t", json=1)
    assert (answer.status_code, answer.json()) == (201, {"topic": "t", "offset": 1})


async def test_a_topic_without_records_reads_as_empty(client: httpx.AsyncClient, service: Service) -> None:
    answer = await client.get("/topics/t")
    assert (answer.status_code, answer.json()["records"], answer.json()["next"]) == (200, [], 0)


async def test_the_next_record_answers_the_polls_of_its_topic_only(
    client: httpx.AsyncClient, service: Service
) -> None:
    poll = request(client, "/topics/t?wait=60")
    other = request(client, "/topics/other?wait=60")
    await until_pending(service, 2)
    await post(client, "t", "news")
    assert (await poll).json()["records"] == ["news"]
    await until_pending(service, 1)
    other.cancel()


async def test_a_poll_waits_for_the_number_of_records_it_asks_for(
    client: httpx.AsyncClient, service: Service
) -> None:
    await post(client, "t", 0)
    poll = request(client, "/topics/t?wait=60&min=3")
    await until_pending(service)
    await post(client, "t", 1)
    await until_pending(service)
    await post(client, "t", 2)
    assert (await poll).json()["records"] == [0, 1, 2]


async def test_after_its_wait_a_poll_gets_the_records_there_are(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient
) -> None:
    await post(client, "t", 0)
    answer = await client.get("/topics/t?wait=20&min=3")
    assert answer.json()["records"] == [0]
    assert virtual_time.time() == pytest.approx(20, abs=0.01)
    answer = await client.get("/topics/t?offset=1&wait=20")
    assert (answer.status_code, answer.json()["records"], answer.json()["next"]) == (200, [], 1)


async def test_following_the_link_gives_every_record_once(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient
) -> None:
    await post(client, "t", 0, 1, 2, 3)
    url, seen = httpx.URL("http://localhost/topics/t?wait=1"), []
    for step in range(4):
        if step == 2:
            await post(client, "t", 4, 5)
        answer = await client.get(url)
        seen += answer.json()["records"]
        url = url.join(answer.links["next"]["url"])
    assert seen == [0, 1, 2, 3, 4, 5]
    assert url.params["wait"] == "1"


async def test_a_client_that_names_its_entity_tag_gets_a_304_when_nothing_changes(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient
) -> None:
    await post(client, "t", 0)
    first = await client.get("/topics/t")
    for named in (first.headers["ETag"], f'"other", W/{first.headers["ETag"]}', "*"):
        again = await client.get("/topics/t?offset=0&wait=5", headers={"If-None-Match": named})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert virtual_time.time() == pytest.approx(15, abs=0.1)


async def test_a_client_that_names_its_entity_tag_waits_for_more_records(
    client: httpx.AsyncClient, service: Service
) -> None:
    await post(client, "t", 0)
    tag = (await client.get("/topics/t")).headers["ETag"]
    poll = request(client, "/topics/t?offset=0&wait=60", **{"If-None-Match": tag})
    await until_pending(service)
    await post(client, "t", 1)
    answer = await poll
    assert (answer.status_code, answer.json()["records"]) == (200, [0, 1])


async def test_dropped_records_are_a_410_and_offsets_beyond_the_end_a_404(client: httpx.AsyncClient) -> None:
    await post(client, "t", *range(6))
    gone = await client.get("/topics/t?offset=1&wait=9")
    assert (gone.status_code, gone.json()["detail"]) == (
        410,
        "these records are gone; the log has offsets 2 to 6; ask again without an offset",
    )
    assert (await client.get("/topics/t")).json()["records"] == [2, 3, 4]
    absent = await client.get("/topics/t?offset=7&wait=9")
    assert (absent.status_code, absent.json()["detail"]) == (
        404,
        "there is no offset 7 yet; the next record gets 6",
    )


async def test_a_poll_whose_records_are_dropped_while_it_waits_gets_a_410_at_once(
    client: httpx.AsyncClient, service: Service
) -> None:
    await post(client, "t", *range(4))
    tag = (await client.get("/topics/t?offset=0")).headers["ETag"]
    poll = request(client, "/topics/t?offset=0&min=3&wait=60", **{"If-None-Match": tag})
    await until_pending(service)
    # The poll waits for three more records, but a log holds four, so this one drops the first.
    await post(client, "t", 4)
    assert (await poll).status_code == 410


async def test_the_log_of_an_earlier_run_is_a_410(client: httpx.AsyncClient) -> None:
    log = (await client.get("/topics/t")).json()["log"]
    assert (await client.get(f"/topics/t?log={log}")).status_code == 200
    assert (await client.get("/topics/t?log=of-another-run")).status_code == 410


async def test_values_out_of_range_are_a_422(client: httpx.AsyncClient, service: Service) -> None:
    queries = [
        *(f"offset={offset}" for offset in ("-1", "1e3", "x", "", str(2**53), "9" * 5000)),
        *(f"min={least}" for least in ("0", "-1", "4", "1.5")),
        *(f"wait={wait}" for wait in ("-1", "1e308", "1e999", "nan", "inf", "-inf", "60.1", "x", "")),
        f"log={'x' * 65}",
    ]
    for query in queries:
        assert (await client.get(f"/topics/t?{query}")).status_code == 422, query
    assert service.polls.statistics().completed == 0


async def test_a_topic_name_with_other_characters_is_a_422(client: httpx.AsyncClient) -> None:
    for topic in ("%00", "-", "a b", "<script>", "x" * 65, "t%0A", "%F0%9F%98%80", "a%ED%A0%80"):
        assert (await client.get(f"/topics/{topic}")).status_code == 422, topic
        assert (await client.post(f"/topics/{topic}", json=1)).status_code == 422, topic


async def test_a_body_that_is_not_json_is_a_400(client: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/json"}
    texts = ["", "{", "NaN", "1e999", "[-Infinity]", '"\\ud800"', "[" * 60, "1 2", '"\n"']
    for body in [*map(str.encode, texts), b'"\xff"', b"\xff\xfe"]:
        assert (await client.post("/topics/t", content=body, headers=headers)).status_code == 400, body
    assert (await client.get("/topics/t")).json()["next"] == 0


async def test_a_record_that_is_nested_too_deeply_is_a_400() -> None:
    service = Service(Limits(record_bytes=1_000_000))
    async with service.running():
        transport = httpx.ASGITransport(application(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            headers = {"Content-Type": "application/json"}
            body = b"[" * 200_000 + b"]" * 200_000
            assert (await client.post("/topics/t", content=body, headers=headers)).status_code == 400


async def test_another_content_type_than_json_is_a_415(client: httpx.AsyncClient) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = await client.post("/topics/t", content=b"1", headers={"Content-Type": content_type})
        assert answer.status_code == 415
    named = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert (await client.post("/topics/t", content=b"1", headers=named)).status_code == 201


async def test_a_record_that_is_too_long_is_a_413(client: httpx.AsyncClient) -> None:
    await post(client, "t", "x" * 62)
    assert (await client.post("/topics/t", json="x" * 63)).status_code == 413


async def test_a_record_for_one_topic_too_many_is_a_403(client: httpx.AsyncClient, service: Service) -> None:
    await post(client, "a", 1)
    await post(client, "b", 1)
    refused = await client.post("/topics/c", json=1)
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "there are 2 topics already, which is the limit, and all of them are used",
    )
    await post(client, "a", 2)
    # Reading creates no topic.
    assert (await client.get("/topics/d")).status_code == 200


async def test_a_new_topic_takes_the_place_of_the_one_that_was_unused_for_longest(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient, service: Service
) -> None:
    await post(client, "a", 1)
    await asyncio.sleep(1)
    await post(client, "b", 1)
    await asyncio.sleep(1)
    assert (await client.get("/topics/a")).json()["records"] == [1]
    await asyncio.sleep(59.5)
    # Now b has been unused for more than a minute, and a for less.
    await post(client, "c", 1)
    assert service.topics.names.names == ("a", "c")
    assert (await client.get("/topics/b")).json()["records"] == []
    assert (await client.post("/topics/d", json=1)).status_code == 403


async def test_a_topic_with_a_reader_keeps_its_place(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient, service: Service
) -> None:
    await post(client, "a", 1)
    await post(client, "b", 1)
    await asyncio.sleep(50)
    polls = [request(client, f"/topics/{topic}?offset=1&wait=60") for topic in ("a", "b")]
    await asyncio.sleep(59)
    assert (await client.post("/topics/c", json=1)).status_code == 403
    await asyncio.gather(*polls)
    await asyncio.sleep(61)
    await post(client, "c", 1)


async def test_records_of_strangers_do_not_end_the_service_for_new_topics(
    virtual_time: VirtualTimeLoop,
) -> None:
    service = Service(Limits())
    async with service.running():
        transport = httpx.ASGITransport(application(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for number in range(256):
                await post(client, f"flood-{number}", number)
            await asyncio.sleep(61)
            for number in range(256):
                await post(client, f"another-{number}", number)


async def test_a_topic_that_was_dropped_and_is_there_again_does_not_have_the_old_offsets(
    virtual_time: VirtualTimeLoop, client: httpx.AsyncClient, service: Service
) -> None:
    """Otherwise a client that goes on where it was would miss the first records, and not hear of it."""
    await post(client, "a", 1, 2, 3)
    old = (await client.get("/topics/a")).links["next"]["url"]
    await asyncio.sleep(61)
    await post(client, "b", 1)
    await post(client, "c", 1)
    await asyncio.sleep(61)
    await post(client, "a", "new")
    assert (await client.get(f"/topics/{old}")).status_code == 410
    assert (await client.get("/topics/a")).json()["records"] == ["new"]


async def test_one_poll_too_many_is_a_503(client: httpx.AsyncClient, service: Service) -> None:
    polls = [request(client, "/topics/t?wait=60") for _ in range(5)]
    await until_pending(service, 5)
    refused = await client.get("/topics/t?wait=60")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    # A request that does not wait is answered.
    assert (await client.get("/topics/t")).status_code == 200
    await post(client, "t", "news")
    assert {answer.status_code for answer in await asyncio.gather(*polls)} == {200}


async def test_a_service_that_stops_answers_pending_polls_with_the_records_there_are(
    client: httpx.AsyncClient, service: Service
) -> None:
    poll, presence = request(client, "/topics/t?wait=60"), request(client, "/presence?wait=60&version=")
    await until_pending(service, 1)
    await service.polls.aclose()
    assert ((await poll).status_code, (await poll).json()["records"]) == (200, [])
    assert (await presence).status_code == 200
    assert (await client.get("/topics/t?wait=60")).status_code == 503
