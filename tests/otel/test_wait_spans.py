"""A span for each wait, in the trace of who waits."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode, Tracer

from purgatory import Purgatory
from purgatory.observer import ContextObserver
from purgatory.otel import WaitSpans
from purgatory.testing import ManualClock, VirtualTimeLoop
from tests.operations import Gate, raising


class Traces:
    """A tracer provider of its own, and the spans that it has exported."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.spans: ContextObserver = WaitSpans(self.provider)

    @property
    def service(self) -> Tracer:
        """The tracer of the service that uses the library."""
        return self.provider.get_tracer("service")

    def exported(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


@pytest.fixture
def traces() -> Traces:
    return Traces()


async def test_a_wait_is_in_the_trace_of_who_waits_and_has_a_link_to_what_completed_it(
    traces: Traces, virtual_time: VirtualTimeLoop
) -> None:
    async with Purgatory("polls", observers=[traces.spans]) as polls:
        gate = Gate(60)

        async def poll() -> None:
            with traces.service.start_as_current_span("GET /polls"):
                await polls.try_complete_else_watch(gate, ["a"])

        polling = asyncio.create_task(poll())
        await asyncio.sleep(2)
        with traces.service.start_as_current_span("POST /polls"):
            gate.opened = True
            polls.check_and_complete("a")
        await polling

    [wait], [get], [post] = map(traces.exported, ("wait polls", "GET /polls", "POST /polls"))
    assert wait.context is not None
    assert get.context is not None
    assert wait.parent is not None
    assert wait.parent.span_id == get.context.span_id
    assert wait.context.trace_id == get.context.trace_id
    assert [link.context for link in wait.links] == [post.context]
    assert wait.start_time is not None
    assert wait.end_time is not None
    assert (wait.end_time - wait.start_time) / 1e9 == pytest.approx(2)
    assert wait.attributes == {
        "purgatory.name": "polls",
        "purgatory.operation.outcome": "completed",
        "purgatory.operation.type": "Gate",
        "purgatory.operation.tries": 2,
    }
    assert wait.status.status_code is StatusCode.UNSET
    assert wait.instrumentation_scope is not None
    assert wait.instrumentation_scope.name == "purgatory"


def test_an_operation_that_is_offered_outside_of_any_span_begins_a_trace(
    traces: Traces, clock: ManualClock
) -> None:
    polls = clock.purgatory("polls", observers=[traces.spans])
    polls.try_complete_else_watch(Gate(1), ["a"])
    clock.advance(1)
    [wait] = traces.exported("wait polls")
    assert wait.parent is None
    assert wait.links == ()
    assert wait.attributes is not None
    assert wait.attributes["purgatory.operation.outcome"] == "expired"


def test_only_what_was_completed_has_a_link(traces: Traces, clock: ManualClock) -> None:
    polls = clock.purgatory("polls", observers=[traces.spans])
    withdrawn, completed = (polls.try_complete_else_watch(Gate(1), ["a"]) for _ in range(2))
    with traces.service.start_as_current_span("DELETE /polls"):
        withdrawn.cancel()
        completed.force_complete()
    assert [len(wait.links) for wait in traces.exported("wait polls")] == [0, 1]


def test_a_failure_is_an_error_of_its_span(traces: Traces, clock: ManualClock) -> None:
    class Unprintable(ValueError):
        def __str__(self) -> str:
            raise OSError

    polls = clock.purgatory("caf\udce9", observers=[traces.spans])
    for error in (ValueError("caf\udce9"), Unprintable()):
        gate = polls.try_complete_else_watch(Gate(1), ["a"])
        gate.completing = raising(error)
        gate.force_complete()
        assert gate.exception() is error

    first, second = traces.exported(r"wait caf\udce9")
    assert first.attributes is not None
    assert first.attributes["error.type"] == "ValueError"
    assert (first.status.status_code, first.status.description) == (StatusCode.ERROR, r"caf\udce9")
    assert second.status.description == "<Unprintable whose str() raised OSError>"


def test_a_span_does_not_count_as_having_seen_the_failure(traces: Traces, clock: ManualClock) -> None:
    polls = clock.purgatory("polls", observers=[traces.spans])
    gate = polls.try_complete_else_watch(Gate(1), ["a"])
    gate.completing = raising(ValueError("bad"))
    gate.force_complete()
    with pytest.raises(ExceptionGroup):
        clock.advance(1)


def test_there_are_no_spans_where_no_observer_asks_for_them(traces: Traces, clock: ManualClock) -> None:
    polls = clock.purgatory("polls")
    polls.try_complete_else_watch(Gate(opened=True), ["a"])
    polls.add_observer(traces.spans)
    polls.try_complete_else_watch(Gate(opened=True), ["a"])
    polls.remove_observer(traces.spans)
    polls.try_complete_else_watch(Gate(opened=True), ["a"])
    assert len(traces.exported("wait polls")) == 1


def test_the_sampler_of_the_service_decides(traces: Traces, clock: ManualClock) -> None:
    silent = WaitSpans(TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False))
    polls = clock.purgatory("polls", observers=[silent, WaitSpans()])
    polls.try_complete_else_watch(Gate(opened=True), ["a"])
    assert traces.exported("wait polls") == []
