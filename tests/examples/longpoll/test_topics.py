"""Clients append records to topics, and read them by long poll."""

from __future__ import annotations

import httpx
import pytest

from examples.longpoll.application import LARGEST_BODY
from examples.longpoll.store import KEPT, TOPICS
from purgatory.testing import VirtualTimeLoop
from purgatory.web import Position
from tests.examples.longpoll.conftest import FaultyStore, Worker


def texts(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [record["text"] for record in answer.json()["records"]]


def positions(answer: httpx.Response) -> str:
    after: str = answer.json()["after"]
    return after


async def test_a_record_answers_the_poll_that_waits_for_it(
    worker: Worker, virtual_time: VirtualTimeLoop
) -> None:
    poll = await worker.poll("/topics/t?wait=20")
    other = await worker.poll("/topics/other?wait=20")
    await worker.say("t", "news")
    (record,) = (await poll).json()["records"]
    assert (record["name"], record["text"]) == ("ada", "news")
    assert virtual_time.time() < 1
    # After its wait, a poll gets what there is.
    assert texts(await other) == []
    assert virtual_time.time() == pytest.approx(20, abs=0.1)


async def test_a_position_of_a_topic_without_records_is_that_before_its_first_record(worker: Worker) -> None:
    nothing = await worker.client.get("/topics/t")
    assert positions(nothing) == "none:0"
    poll = await worker.poll("/topics/t?after=none:0&wait=20")
    await worker.say("t", "first")
    assert texts(await poll) == ["first"]


async def test_following_the_link_gives_every_record_once(worker: Worker) -> None:
    url, seen = httpx.URL("http://localhost/topics/t?wait=1&people="), []
    for batch in (["0", "1"], [], ["2"], ["3", "4"]):
        await worker.say("t", *batch)
        answer = await worker.client.get(url)
        seen += texts(answer)
        # The same request again, after a lost answer.
        assert texts(await worker.client.get(url)) == texts(answer)
        url = url.join(answer.links["next"]["url"])
    assert seen == ["0", "1", "2", "3", "4"]
    assert (url.path, url.params["wait"]) == ("/topics/t", "1")


async def test_a_cache_that_names_its_entity_tag_gets_a_304(worker: Worker) -> None:
    await worker.say("t", "0")
    tag = (await worker.client.get("/topics/t")).headers["ETag"]
    again = await worker.client.get("/topics/t", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    await worker.say("t", "1")
    assert texts(await worker.client.get("/topics/t", headers={"If-None-Match": tag})) == ["0", "1"]


async def test_a_position_whose_records_are_gone_is_a_410(worker: Worker) -> None:
    await worker.say("t", "0")
    first = positions(await worker.client.get("/topics/t"))
    log = Position.parse(first).log
    await worker.say("t", *map(str, range(1, KEPT + 2)))
    gone = [first, f"{log}:{KEPT + 3}", f"another:{KEPT}"]
    for position in gone:
        answer = await worker.client.get(f"/topics/t?after={position}&wait=9")
        assert (answer.status_code, answer.json()["detail"]) == (
            410,
            "these records are gone; ask again without a position",
        )
    assert texts(await worker.client.get("/topics/t")) == [str(offset) for offset in range(2, KEPT + 2)]
    assert texts(await worker.client.get(f"/topics/t?after={log}:2")) == [str(n) for n in range(2, KEPT + 2)]


async def test_a_topic_too_many_is_a_403(worker: Worker) -> None:
    for number in range(TOPICS):
        await worker.say(f"t{number}", "news")
    message = {"name": "ada", "text": "news"}
    refused = await worker.client.post("/topics/more", json=message)
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "there are 100 topics already, which is the limit",
    )
    assert (await worker.client.post("/topics/t0", json=message)).json() == 1


JSON, MESSAGE = "application/json", b'{"name": "ada", "text": "news"}'
# What a browser asks with before it sends a request for a page of another site.
ASKED = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (422, JSON, b"not JSON"),
        (422, JSON, b'{"name": "ada"}'),
        (422, JSON, b'{"name": "ada", "text": ""}'),
        (422, JSON, b'{"name": "ada", "text": "\\ud800"}'),
        (422, JSON, b'{"name": "\\u0000", "text": "news"}'),
        (422, JSON, b'{"name": "ada", "text": NaN}'),
        (413, JSON, b" " * (LARGEST_BODY + 1)),
        # The page of another site. A browser sends its requests without asking with such content types only.
        (422, "", MESSAGE),
        (422, "text/plain", MESSAGE),
        (422, "application/x-www-form-urlencoded", MESSAGE),
    ],
)
async def test_a_body_that_is_no_message_is_refused(
    worker: Worker, status: int, kind: str, body: bytes
) -> None:
    headers = {"Content-Type": kind} if kind else {}
    assert (await worker.client.post("/topics/t", content=body, headers=headers)).status_code == status
    assert texts(await worker.client.get("/topics/t")) == []


@pytest.mark.parametrize(
    ("method", "url", "statuses"),
    [
        *[("GET", f"/topics/t?{query}", {422}) for query in ("wait=26", "wait=nan", "wait=-1")],
        *[("GET", f"/topics/t?{query}", {400}) for query in ("after=1", "after=%00:1")],
        ("GET", f"/topics/t?people={65 * 'x'}", {422}),
        ("OPTIONS", "/topics/t", {405}),
        *[
            ("POST", f"/presence/{name}", {404, 405, 422})
            for name in ("", "%00", " ada", "a" * 33, "%ed%a0%80", "<b>")
        ],
    ],
)
async def test_a_request_out_of_bounds_is_refused(
    worker: Worker, method: str, url: str, statuses: set[int]
) -> None:
    assert (await worker.client.request(method, url, headers=ASKED)).status_code in statuses


async def test_a_poll_whose_records_vanish_while_it_waits_is_a_410(
    worker: Worker, store: FaultyStore
) -> None:
    await worker.say("t", "0")
    after = positions(await worker.client.get("/topics/t"))
    poll = await worker.poll(f"/topics/t?after={after}&wait=20")
    # Without a signal, so that nothing is answered before all of them are there.
    for _ in range(KEPT + 1):
        await store.append("t", b"{}")
    worker.service.relay.signal("t")
    assert (await poll).status_code == 410


async def test_a_service_that_stops_answers_the_polls_with_what_there_is(worker: Worker) -> None:
    poll = await worker.poll("/topics/t?wait=20")
    await worker.service.polls.aclose()
    assert texts(await poll) == []
    later = await worker.client.get("/topics/t?wait=20")
    assert (later.status_code, later.headers["Retry-After"]) == (503, "1")
