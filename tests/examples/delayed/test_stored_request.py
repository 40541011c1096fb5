"""Requests as bytes."""

from hypothesis import given
from hypothesis import strategies as st

from examples.delayed.request import Request
from examples.delayed.wheel.stored_request import decode, encode

maybe_bytes = st.none() | st.binary()
headers = st.lists(st.tuples(st.text(), maybe_bytes)).map(tuple)


@given(
    st.builds(
        Request,
        id=st.text(),
        due=st.integers(0, 1 << 53),
        target=st.text(),
        key=maybe_bytes,
        value=maybe_bytes,
        headers=headers,
        reason=st.text(),
    )
)
def test_a_request_is_the_same_after_it_was_stored(request: Request) -> None:
    assert decode(encode(request)) == request
