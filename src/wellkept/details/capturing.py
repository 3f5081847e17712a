"""Middleware for agents: store long tool output and pass a reference to the prompt instead.

`captured` decorates one tool function; `capture_calls` wraps a function that calls tools by name, such as an MCP
client's `call_tool`. Both work with plain functions and coroutines, and with `AgentMemory` and `AsyncAgentMemory`.
Short answers pass unchanged. If the store fails, the whole answer is passed on and a warning is logged: a tool that
did its work must not fail because its answer could not be stored.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

from wellkept.arguments import RawText, checked
from wellkept.errors import Invalid, StoreError
from wellkept.tools import catalog

TOOL_OUTPUT = "tool_output"
PART_TYPES = frozenset(
    """
    text input_text output_text image image_url input_image audio input_audio resource resource_link document file
    """.split()
)
"""Types of content parts used by MCP, OpenAI and Anthropic."""

NOT_STORED = "The output of %s was not stored and is passed on whole: %s"

F = TypeVar("F", bound=Callable[..., Any])
log = logging.getLogger("wellkept")


@checked
def captured(
    memory: Any, *, source: RawText = "", type: str = TOOL_OUTPUT, session_id: str | None = None
) -> Callable[[F], F]:
    """Return a decorator for tool functions, sync or async, that stores long answers and returns references.

    `memory` is an agent's memory, or a function that returns one at each call. Name, signature and docstring of the
    tool are kept, so frameworks derive the same schema. A long answer that is not text is stored as JSON; a short one
    is returned unchanged.

    Raises: Invalid for an async memory on a function that cannot await it.
    """

    def decorate(function: F) -> F:
        capturer = _Capturer(memory, source or getattr(function, "__name__", ""), type, session_id)
        return _wrap(function, memory, lambda given: capturer)

    return decorate


@checked
def capture_calls(memory: Any, call: F, *, type: str = TOOL_OUTPUT, session_id: str | None = None) -> F:
    """Wrap `call(name, …)`, which calls a tool by its name, so that long answers are replaced by references.

    Handles text, JSON values and lists of content parts as MCP, OpenAI and Anthropic define them; in lists only text is
    replaced. Answers of wellkept's own tools pass unchanged.

    Raises: Invalid as `captured`.
    """

    def choose(given: Sequence[Any]) -> _Capturer | None:
        return None if given[0] in catalog.TOOLS else _Capturer(memory, str(given[0]), type, session_id)

    return _wrap(call, memory, choose)


def _wrap(function: F, memory: Any, choose: Callable[[Sequence[Any]], _Capturer | None]) -> F:
    """Wrap a function so that its answers are captured by what `choose` returns for its arguments. Raises: Invalid."""
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            answer = await function(*args, **kwargs)
            capturer = choose((*args, kwargs.get("name")))
            return answer if capturer is None else await capturer.call_async(answer)

        return awaited  # type: ignore[return-value]

    if hasattr(memory, "details") and inspect.iscoroutinefunction(memory.details.capture):
        raise Invalid("A plain function cannot await an async memory; make the tool async, or use Wellkept.")

    @wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        answer = function(*args, **kwargs)
        capturer = choose((*args, kwargs.get("name")))
        return answer if capturer is None else capturer(answer)

    return plain  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class _Capturer:
    """Captures the answers of one tool."""

    memory: Any
    source: str
    type: str
    session_id: str | None

    def __call__(self, answer: Any) -> Any:
        capture, kept = self._find_memory().details.capture, {}
        for text in _extract_texts(answer):
            try:
                kept[text] = capture(text, source=self.source, type=self.type, session_id=self.session_id)
            except StoreError as error:
                log.warning(NOT_STORED, self.source, error)
        return _replace_texts(answer, kept)

    async def call_async(self, answer: Any) -> Any:
        capture, kept = self._find_memory().details.capture, {}
        if not inspect.iscoroutinefunction(capture):
            return await import_module("asyncio").to_thread(self, answer)
        for text in _extract_texts(answer):
            try:
                kept[text] = await capture(text, source=self.source, type=self.type, session_id=self.session_id)
            except StoreError as error:
                log.warning(NOT_STORED, self.source, error)
        return _replace_texts(answer, kept)

    def _find_memory(self) -> Any:
        return self.memory if hasattr(self.memory, "details") else self.memory()


def _extract_texts(answer: Any) -> list[str]:
    """Return every text of an answer that may be too long for a prompt; encode other values as JSON."""
    if isinstance(answer, str):
        return [answer]
    parts = _get_parts(answer)
    if parts is not None:
        return list(dict.fromkeys(text for part in parts if (text := _get_text(part))))
    encoded = _encode_json(answer)
    return [] if encoded is None else [encoded]


def _replace_texts(answer: Any, kept: Mapping[str, str]) -> Any:
    """Return the answer with each long text replaced; the same object if nothing was too long."""
    changed = {text: line for text, line in kept.items() if line != text}
    if not changed:
        return answer
    parts = _get_parts(answer)
    if parts is None:
        return next(iter(changed.values()))
    new = [_set_text(part, changed[text]) if (text := _get_text(part)) in changed else part for part in parts]
    if isinstance(answer, list):
        return new
    # MCP's structured copy of the text is as long as the text was.
    copies = [name for name in ("structuredContent", "structured_content") if _get(answer, name) is not None]
    return _copy_with(answer, content=new, **dict.fromkeys(copies))


def _get_parts(answer: Any) -> Sequence[Any] | None:
    """Return the content parts of an answer; None if it is not a list of them."""
    parts = answer if isinstance(answer, list) else _get(answer, "content")
    is_parts = isinstance(parts, list) and bool(parts) and all(_get(each, "type") in PART_TYPES for each in parts)
    return parts if is_parts else None


def _get_text(part: Any) -> str:
    text = _get(_get(part, "resource") if _get(part, "type") == "resource" else part, "text")
    return text if isinstance(text, str) else ""


def _set_text(part: Any, text: str) -> Any:
    if _get(part, "type") == "resource":
        return _copy_with(part, resource=_copy_with(_get(part, "resource"), text=text))
    return _copy_with(part, text=text)


def _copy_with(record: Any, **fields: Any) -> Any:
    if isinstance(record, Mapping):
        return {**record, **fields}
    return record.model_copy(update=fields)


def _get(record: Any, name: str) -> Any:
    return record.get(name) if isinstance(record, Mapping) else getattr(record, name, None)


def _encode_json(value: Any) -> str | None:
    """Encode the value as JSON; None if it cannot be long or cannot be encoded."""
    if value is None or isinstance(value, bool | int | float | bytes):
        return None
    if hasattr(value, "model_dump_json"):
        return str(value.model_dump_json())
    try:
        return json.dumps(value, ensure_ascii=False, default=_encode_value)
    except (TypeError, ValueError, RecursionError):
        return None


def _encode_value(value: Any) -> Any:
    """Convert a nested value to one that JSON can represent."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(type(value).__name__)
