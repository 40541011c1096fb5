"""Spans of waits, each in the trace of the task that offered the operation."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Any

from opentelemetry.context import get_current
from opentelemetry.trace import Link, StatusCode, TracerProvider, get_current_span, get_tracer

from purgatory import DelayedOperation, OperationState, __version__
from purgatory.errors import safe_text
from purgatory.observer import Timing, exception_of
from purgatory.otel.attributes import ERROR_TYPE, NAME, OPERATION_TYPE, OUTCOME, SCOPE, TRIES


class WaitSpans:
    """An observer that records a span for each operation, from its offer until its hooks had run.

    ``Purgatory("polls", observers=[WaitSpans()])``. One serves all purgatories of a process. Without a
    `tracer_provider`, it records for the global one, whose sampler decides which spans are kept.

    The parent of a span is the span in which the operation was offered. A link of a completed operation leads
    to the span in which it was completed: the change that ended the wait. A span has the name of the
    purgatory, the outcome, the class of the operation and the number of its tries; and of an operation that
    failed, the error. It has no keys, because these may be secret.
    """

    needs_context = True

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        self._tracer = get_tracer(SCOPE, __version__, tracer_provider)

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        """Record its span."""
        ended = time.time_ns()
        name = safe_text(purgatory)
        state = operation.state
        ending = get_current_span().get_span_context()
        span = self._tracer.start_span(
            f"wait {name}",
            timing.context.run(get_current),
            attributes={
                NAME: name,
                OUTCOME: state.value,
                OPERATION_TYPE: type(operation).__name__,
                TRIES: timing.tries,
            },
            links=[Link(ending)] if state is OperationState.COMPLETED and ending.is_valid else None,
            start_time=ended - int((timing.ended - timing.offered) * 1e9),
        )
        error = exception_of(operation)
        if error is not None:
            span.set_attribute(ERROR_TYPE, type(error).__qualname__)
            span.set_status(StatusCode.ERROR, safe_text(error))
        span.end(ended)

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """A check is no wait."""
