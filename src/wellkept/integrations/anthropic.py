"""Anthropic's memory tool (`memory_20250818`) on an agent's memory, wellkept's own tools, and context editing.

Needs the package `anthropic`. The tools are for `client.beta.messages.tool_runner(tools=[…])`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    ToolError,
    beta_async_tool,
    beta_tool,
)

from wellkept.errors import Invalid, SecretRejected, WellkeptError
from wellkept.integrations.memory_files import FileRefused, MemoryFiles
from wellkept.integrations.plans import Plan, ask, is_async, open_tools, run_plan, run_plan_async
from wellkept.model import Json

if TYPE_CHECKING:
    from wellkept.api.wellkept import AgentMemory
    from wellkept.client.agent import AgentClient
    from wellkept.integrations.plans import AnyMemory

NAMESPACE = ("memories",)
"""Namespace of the items that hold the files."""
CONTEXT_EDITING = "context-management-2025-06-27"
"""Name of the beta feature that `edit_context` needs."""
MEMORY_TOOL = "memory"


def _define(command: Callable[..., Plan[str]], *fields: str) -> Any:
    """Return the method of a tool that carries out a command with these fields."""

    def carry_out(self: Any, given: Any = None) -> Any:
        return self._run(command(self._files, *(_read_field(given, field) for field in fields)))

    carry_out.__doc__ = command.__doc__
    return carry_out


def _read_field(given: Any, field: str) -> Any:
    """Return a field of a command as the model wrote it, which nobody has checked. Raises: ToolError."""
    value = getattr(given, field, None)
    match field:
        case "view_range":
            if value is None or (isinstance(value, list) and all(type(each) is int for each in value)):
                return value
            raise ToolError(f"`{field}` is a list of two whole numbers: the first and the last line.")
        case "insert_line":
            if type(value) is int:
                return value
            raise ToolError(f"`{field}` is missing or no whole number.")
        case "new_str" if value is None:
            # As in Anthropic's editor tool, nothing takes the place of the text.
            return ""
    if not isinstance(value, str):
        raise ToolError(f"`{field}` is missing or no text.")
    return value


class _Commands:
    """Commands of both tools; `_run` of the async one returns a coroutine."""

    view = _define(MemoryFiles.view, "path", "view_range")
    create = _define(MemoryFiles.create, "path", "file_text")
    str_replace = _define(MemoryFiles.str_replace, "path", "old_str", "new_str")
    insert = _define(MemoryFiles.insert, "path", "insert_line", "insert_text")
    delete = _define(MemoryFiles.delete, "path")
    rename = _define(MemoryFiles.rename, "old_path", "new_path")
    clear_all_memory = _define(MemoryFiles.clear)


class WellkeptMemoryTool(_Commands, BetaAbstractMemoryTool):
    """Memory tool whose files are items of an agent's memory, or of that of one of its users (`for_user`)."""

    def __init__(
        self, memory: AgentMemory | AgentClient, *, namespace: Sequence[str] = NAMESPACE, cache_control: Any = None
    ) -> None:
        """Keep the files in a namespace of items. Raises: Invalid."""
        super().__init__(cache_control=cache_control)
        if is_async(memory):
            raise Invalid("The memory of this tool has methods to await; use AsyncWellkeptMemoryTool.")
        self._memory = memory
        self._files = MemoryFiles(memory, namespace)

    def _run(self, plan: Plan[str]) -> str:
        with _tell_model():
            return run_plan(self._memory, plan)


class AsyncWellkeptMemoryTool(_Commands, BetaAsyncAbstractMemoryTool):
    """Memory tool for an async client, on a memory of any kind."""

    def __init__(self, memory: AnyMemory, *, namespace: Sequence[str] = NAMESPACE, cache_control: Any = None) -> None:
        """Keep the files in a namespace of items."""
        super().__init__(cache_control=cache_control)
        self._memory = memory
        self._files = MemoryFiles(memory, namespace)

    async def _run(self, plan: Plan[str]) -> str:
        with _tell_model():
            return await run_plan_async(self._memory, plan)


@contextmanager
def _tell_model() -> Iterator[None]:
    """Turn refusals into errors that the tool runner shows to the model."""
    try:
        yield
    except FileRefused as refusal:
        raise ToolError(str(refusal)) from None
    except SecretRejected as refusal:
        raise ToolError(refusal.sentence) from None
    except WellkeptError as error:
        raise ToolError(str(error)) from error


def make_tools(memory: AnyMemory, sets: Iterable[str] | None = None, *, session_id: str | None = None) -> list[Any]:
    """Return wellkept's own tools for a tool runner: for an async one if the memory is async.

    `sets` defaults to `memory`. `session_id` is the conversation in which the model calls them.

    Raises: Invalid.
    """
    tools, call = open_tools(memory, sets, session_id)
    offered = {tool.set for tool in tools}

    def define(name: str) -> Callable[..., Any]:
        def called(**arguments: Any) -> str:
            answer = ask("call_tool", name, arguments, session_id=session_id, sets=offered)
            return json.dumps(run_plan(memory, answer), ensure_ascii=False)

        async def called_async(**arguments: Any) -> str:
            return json.dumps(await call(name, arguments), ensure_ascii=False)

        return called_async if is_async(memory) else called

    wrap: Any = beta_async_tool if is_async(memory) else beta_tool
    return [
        wrap(define(tool.name), name=tool.name, description=tool.description, input_schema=tool.schema())
        for tool in tools
    ]


def edit_context(*, trigger: int = 100_000, keep: int = 3, exclude_tools: Iterable[str] = ()) -> Json:
    """Return the arguments of a request that clears old tool results when the prompt has `trigger` tokens.

    The latest `keep` stay, and all results of the memory tool and of `exclude_tools`: what Claude reads again from
    memory is not cleared. Pass them to `client.beta.messages.tool_runner(**edit_context(), …)`.
    """
    edit = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": trigger},
        "keep": {"type": "tool_uses", "value": keep},
        "exclude_tools": [MEMORY_TOOL, *exclude_tools],
    }
    return {"betas": [CONTEXT_EDITING], "context_management": {"edits": [edit]}}
