"""OpenTelemetry spans, by the semantic conventions for GenAI memory.

A span contains the operation, the owner of the memory, the number of records and the error type, but never a text, a
query or an error message. OpenTelemetry is not imported here; spans are only made if the host program has loaded and
configured it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from recollect.errors import RecollectError
from recollect.model import Memory, Owner

NAME = "recollect"

P = ParamSpec("P")
S = TypeVar("S", bound=Any)
T = TypeVar("T")


def trace_operation(operation: str) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], T]]:
    """Decorate a method of an agent's memory with a span for an operation such as `search_memory`."""

    def decorate(verb: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        @wraps(verb)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            tracer = _get_tracer()
            if tracer is None:
                return verb(self, *args, **kwargs)
            # The message of an exception may quote the text to be stored, so it is not recorded.
            context = tracer.start_as_current_span(
                operation,
                attributes=_attributes(operation, self.owner),
                record_exception=False,
                set_status_on_exception=False,
            )
            with context as span:
                try:
                    result = verb(self, *args, **kwargs)
                except RecollectError as error:
                    span.set_attribute("error.type", error.code)
                    span.set_status(sys.modules["opentelemetry.trace"].StatusCode.ERROR)
                    raise
                _describe(span, result, args)
                return result

        return call

    return decorate


def _get_tracer() -> Any:
    """Return a tracer; None unless OpenTelemetry is configured."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    return None if isinstance(provider, trace.ProxyTracerProvider) else provider.get_tracer(NAME)


def _attributes(operation: str, owner: Owner) -> dict[str, str]:
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": NAME,
        "gen_ai.memory.store.id": f"{owner.tenant}/{owner.agent}",
        "gen_ai.agent.id": owner.agent,
    }


def _describe(span: Any, result: object, args: Sequence[object]) -> None:
    """Set the number of records and, for a single one, its id."""
    if isinstance(result, Memory):
        span.set_attribute("gen_ai.memory.record.id", result.id)
    # The first argument of a deletion is the id.
    elif result is None and args:
        span.set_attribute("gen_ai.memory.record.id", str(args[0]))
    count = len(result) if isinstance(result, Sequence) else 1
    span.set_attribute("gen_ai.memory.record.count", count)
