"""An answer tells its client how to go on, and is empty for a client that has it already."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from purgatory.web import Position, client_has, resumable


def request_with(*if_none_match: str, query: str = "") -> Request:
    headers = [(b"if-none-match", value.encode()) for value in if_none_match]
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "server": ("test", 80),
        "path": "/topics/t",
        "query_string": query.encode(),
        "headers": headers,
    }
    return Request(scope)


@pytest.mark.parametrize(
    ("if_none_match", "has"),
    [
        pytest.param([], False, id="no header"),
        pytest.param(['"7"'], True, id="the tag"),
        pytest.param(['"8"'], False, id="another tag"),
        pytest.param(['W/"7"'], True, id="a weak tag"),
        pytest.param(['"1", W/"7" ,"8"'], True, id="one of several tags"),
        pytest.param(['"1"', '"7"'], True, id="one of several headers"),
        pytest.param(["*"], True, id="any"),
        pytest.param(["* "], True, id="any, as uvicorn hands it over, with the space behind it"),
        pytest.param(["7"], False, id="no quotes"),
        pytest.param(['"17"'], False, id="a tag that ends alike"),
        pytest.param(['"a,"7",b"'], False, id="no list of tags"),
        pytest.param(['"","7"'], True, id="after an empty tag"),
        pytest.param(['"\u00e9","7"'], True, id="after a tag that is not ASCII"),
    ],
)
def test_a_client_names_the_answers_that_it_has(if_none_match: list[str], has: bool) -> None:
    assert client_has(request_with(*if_none_match), '"7"') is has


def test_a_tag_may_contain_a_comma() -> None:
    assert client_has(request_with('"a,b"'), '"a,b"')
    assert not client_has(request_with('"a,b"'), '"b"')


def test_an_answer_has_its_tag_and_the_link_of_the_next_request() -> None:
    request = request_with('"6"', query="wait=30&offset=6&name=a%26b&empty=")
    response = resumable(request, JSONResponse(["x"]), '"7"', offset=7)
    assert (response.status_code, response.body) == (200, b'["x"]')
    assert response.headers["ETag"] == '"7"'
    assert response.headers["Cache-Control"] == "no-cache"
    link = response.headers["Link"]
    assert link == '<?wait=30&name=a%26b&empty=&offset=7>; rel="next"'
    following = urljoin("https://outside/api/topics/t?offset=6", link[1 : link.index(">")])
    assert following == "https://outside/api/topics/t?wait=30&name=a%26b&empty=&offset=7"


def test_the_link_keeps_each_value_of_a_parameter_that_is_there_several_times() -> None:
    request = request_with(query="follow=a&offset=6&follow=b&offset=5")
    response = resumable(request, Response(), '"7"', offset=7)
    assert response.headers["Link"] == '<?follow=a&follow=b&offset=7>; rel="next"'


def test_the_link_has_the_text_of_a_position_as_it_is() -> None:
    response = resumable(request_with(), Response(), '"7"', after=Position("log", 7))
    assert response.headers["Link"] == '<?after=log:7>; rel="next"'


def test_a_client_that_has_the_answer_gets_an_empty_304_with_the_same_headers() -> None:
    unchanged = JSONResponse(
        ["x"], headers={"Vary": "Cookie", "Cache-Control": "private", "Content-Encoding": "br"}
    )
    response = resumable(request_with('"7"', query="offset=7"), unchanged, '"7"', offset=7)
    assert (response.status_code, response.body) == (304, b"")
    assert dict(response.headers) == {
        "vary": "Cookie",
        "cache-control": "private",
        "etag": '"7"',
        "link": '<?offset=7>; rel="next"',
    }


def test_the_background_tasks_of_the_answer_run_after_its_304_too() -> None:
    task = BackgroundTask(list)
    response = resumable(request_with('"7"'), JSONResponse(["x"], background=task), '"7"')
    assert (response.status_code, response.background) == (304, task)


def test_without_parameters_there_is_no_link() -> None:
    assert "link" not in resumable(request_with(), Response(), '"7"').headers


@pytest.mark.parametrize("tag", ["7", 'W/"7"', '"a b"', '"a"b"', ""])
def test_what_is_no_strong_entity_tag_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="entity tag is text in double quotes"):
        resumable(request_with(), Response(), tag)
    # No client would ever have it, so none would wait.
    with pytest.raises(ValueError, match="entity tag is text in double quotes"):
        client_has(request_with(), tag)
