"""Spans for whoever traces their agents with OpenTelemetry, by its conventions for GenAI memory.

They say which operation, on whose memory, on how many records, and whether it failed: never a text, a question or an
error's words. Nothing is imported for it. Only where the program around us has loaded OpenTelemetry and given it
somewhere to send spans to are there any.
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


def traced(operation: str) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], T]]:
    """Make a verb of an agent's memory an operation of the conventions, such as `search_memory`."""

    def decorated(verb: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        @wraps(verb)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            tracer = _tracer()
            if tracer is None:
                return verb(self, *args, **kwargs)
            begun = tracer.start_as_current_span(
                operation,
                attributes=_attributes(operation, self.owner),
                record_exception=False,  # its words may quote what was to be stored
                set_status_on_exception=False,
            )
            with begun as span:
                try:
                    result = verb(self, *args, **kwargs)
                except RecollectError as error:
                    span.set_attribute("error.type", error.code)
                    span.set_status(sys.modules["opentelemetry.trace"].StatusCode.ERROR)
                    raise
                _describe(span, result, args)
                return result

        return call

    return decorated


def _tracer() -> Any:
    """None unless somebody wants spans."""
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
    """How many records it was about, and which if it was one."""
    if isinstance(result, Memory):
        span.set_attribute("gen_ai.memory.record.id", result.id)
    elif result is None and args:  # a deletion, whose first argument is the id
        span.set_attribute("gen_ai.memory.record.id", str(args[0]))
    count = len(result) if isinstance(result, Sequence) else 1
    span.set_attribute("gen_ai.memory.record.count", count)
