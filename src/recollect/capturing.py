"""Middleware for agents: what a tool answers is put through an agent's memory before it reaches the prompt.

`captured` decorates one tool function; `capture_calls` wraps whatever calls tools by name, such as an MCP client's
`call_tool`. Both work with plain functions and coroutines, and with `AgentMemory` and `AsyncAgentMemory`. Short answers
pass untouched. If memory itself fails, the tool's answer is passed on whole and a warning logged: a tool that did its
work does not fail because its answer could not be stored.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

from recollect.errors import Invalid, StoreError
from recollect.tools.catalog import TOOLS

TOOL_OUTPUT = "tool_output"
PART_TYPES = frozenset(
    """
    text input_text output_text image image_url input_image audio input_audio resource resource_link document file
    """.split()
)
"""Of which a list of content parts is made, as MCP, OpenAI and Anthropic name them."""

NOT_STORED = "The output of %s was not stored and is passed on whole: %s"

F = TypeVar("F", bound=Callable[..., Any])
log = logging.getLogger("recollect")


def captured(
    memory: Any, *, source: str = "", type: str = TOOL_OUTPUT, session_id: str | None = None
) -> Callable[[F], F]:
    """A decorator for tool functions, sync or async: a long answer is stored, and its reference returned instead.

    `memory` is an agent's memory, or a function that says whose it is at each call. Name, signature and docstring stay,
    so that frameworks still derive the same schema. What is no text is written as JSON if it is long, else returned as
    it is. Raises: Invalid for an async memory on a function that cannot await it.
    """

    def decorate(function: F) -> F:
        name = source or getattr(function, "__name__", "")
        keep = _Keep(memory, source=name, type=type, session_id=session_id)
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                return await keep.awaited(await function(*args, **kwargs))

            return awaited  # type: ignore[return-value]

        keep.check_plain()

        @wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            return keep(function(*args, **kwargs))

        return plain  # type: ignore[return-value]

    return decorate


def capture_calls(memory: Any, call: F, *, type: str = TOOL_OUTPUT, session_id: str | None = None) -> F:
    """Wrap `call(name, …)`, which calls a tool by its name: long answers are replaced by references.

    Understands what tools answer with: text, JSON values, and lists of content parts as MCP, OpenAI and Anthropic have
    them; in those only text is replaced, images and the rest stay. Memory's own tools answer as they are.
    Raises: Invalid as `captured`.
    """

    def keeper(name: object) -> _Keep:
        return _Keep(memory, source=str(name), type=type, session_id=session_id)

    if inspect.iscoroutinefunction(call):

        @wraps(call)
        async def awaited(name: str, *args: Any, **kwargs: Any) -> Any:
            answer = await call(name, *args, **kwargs)
            return answer if name in TOOLS else await keeper(name).awaited(answer)

        return awaited  # type: ignore[return-value]

    keeper("").check_plain()

    @wraps(call)
    def plain(name: str, *args: Any, **kwargs: Any) -> Any:
        answer = call(name, *args, **kwargs)
        return answer if name in TOOLS else keeper(name)(answer)

    return plain  # type: ignore[return-value]


class _Keep:
    """Puts one tool's answers through a memory."""

    def __init__(self, memory: Any, *, source: str, type: str, session_id: str | None) -> None:
        self._memory = memory
        self._said = {"source": source, "type": type, "session_id": session_id}

    def check_plain(self) -> None:
        if hasattr(self._memory, "capture") and inspect.iscoroutinefunction(self._memory.capture):
            raise Invalid("A plain function cannot await an async memory; make the tool async, or use Recollect.")

    def __call__(self, answer: Any) -> Any:
        memory, kept = self._whose(), {}
        for text in _texts(answer):
            try:
                kept[text] = memory.capture(text, **self._said)
            except StoreError as error:
                log.warning(NOT_STORED, self._said["source"], error)
        return _replaced(answer, kept)

    async def awaited(self, answer: Any) -> Any:
        memory, kept = self._whose(), {}
        if not inspect.iscoroutinefunction(memory.capture):
            return await import_module("asyncio").to_thread(self, answer)
        for text in _texts(answer):
            try:
                kept[text] = await memory.capture(text, **self._said)
            except StoreError as error:
                log.warning(NOT_STORED, self._said["source"], error)
        return _replaced(answer, kept)

    def _whose(self) -> Any:
        return self._memory if hasattr(self._memory, "capture") else self._memory()


def _texts(answer: Any) -> list[str]:
    """Every text of an answer that may be too long for a prompt; a value that is no text as JSON."""
    if isinstance(answer, str):
        return [answer]
    parts = _parts(answer)
    if parts is not None:
        return list(dict.fromkeys(text for part in parts if (text := _text_of(part))))
    written = _as_json(answer)
    return [] if written is None else [written]


def _replaced(answer: Any, kept: Mapping[str, str]) -> Any:
    """The answer with each text as it was kept; the very same object if nothing is too long."""
    changed = {text: line for text, line in kept.items() if line != text}
    if not changed:
        return answer
    parts = _parts(answer)
    if parts is None:
        return next(iter(changed.values()))
    new = [_with_text(part, changed[text]) if (text := _text_of(part)) in changed else part for part in parts]
    return new if isinstance(answer, list) else _with(answer, content=new, **_without_copies(answer))


def _parts(answer: Any) -> Sequence[Any] | None:
    """The content parts of an answer; None if it is no list of them."""
    parts = answer if isinstance(answer, list) else _get(answer, "content")
    is_parts = isinstance(parts, list) and bool(parts) and all(_get(each, "type") in PART_TYPES for each in parts)
    return parts if is_parts else None


def _text_of(part: Any) -> str:
    text = _get(_get(part, "resource") if _get(part, "type") == "resource" else part, "text")
    return text if isinstance(text, str) else ""


def _with_text(part: Any, text: str) -> Any:
    if _get(part, "type") == "resource":
        return _with(part, resource=_with(_get(part, "resource"), text=text))
    return _with(part, text=text)


def _without_copies(answer: Any) -> dict[str, None]:
    """MCP gives a structured answer twice, as text and as a value: what was too long once is too long twice."""
    return {name: None for name in ("structuredContent", "structured_content") if _get(answer, name) is not None}


def _with(record: Any, **fields: Any) -> Any:
    if isinstance(record, Mapping):
        return {**record, **fields}
    return record.model_copy(update=fields)


def _get(record: Any, name: str) -> Any:
    return record.get(name) if isinstance(record, Mapping) else getattr(record, name, None)


def _as_json(value: Any) -> str | None:
    """The value as JSON; None if it is nothing that could be long, or nothing that JSON has."""
    if value is None or isinstance(value, bool | int | float | bytes):
        return None
    if hasattr(value, "model_dump_json"):
        return str(value.model_dump_json())
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    try:
        return json.dumps(plain, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """What JSON can hold of a value inside another."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(type(value).__name__)
