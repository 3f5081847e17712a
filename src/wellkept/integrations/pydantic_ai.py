"""Memory as a capability of a pydantic-ai agent: recall before a run, tools during it, the turn remembered after it.

Needs the package `pydantic-ai-slim`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import AgentRunResult, FunctionToolset, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models import ModelRequestContext

from wellkept.integrations.plans import call_verb, log_turn, open_tools, run_plan_async
from wellkept.language.text import clean_text
from wellkept.tools.catalog import select_tools
from wellkept.tools.guidance import guidance

if TYPE_CHECKING:
    from wellkept.integrations.plans import AnyMemory


@dataclass
class WellkeptCapability(AbstractCapability[Any]):
    """Memory of an agent, for `Agent(capabilities=[WellkeptCapability(atlas)])`.

    `memory` is an agent's memory, or a function that returns it for a run: `lambda ctx: atlas.for_user(ctx.deps.user)`.
    Before a run, up to `recall_limit` memories about the prompt are added in front of it (0: none). During the run, the
    model has the tools of `sets` (None: `memory`; an empty list: none). After it, prompt and answer
    are remembered if `remember` is set, as a turn of the conversation `session_id` or that of the run.
    """

    memory: AnyMemory | Callable[[RunContext[Any]], AnyMemory]
    sets: Sequence[str] | None = None
    session_id: str | None = None
    recall_limit: int = 5
    remember: bool = True
    _recalled: str | None = field(default=None, init=False, repr=False)

    async def for_run(self, ctx: RunContext[Any]) -> WellkeptCapability:
        """Return the capability of one run, which has the memory and the conversation of that run."""
        memory = self.memory(ctx) if callable(self.memory) else self.memory
        return replace(self, memory=memory, session_id=self.session_id or ctx.conversation_id)

    def get_instructions(self) -> str | None:
        """Return instructions for the tools. Raises: Invalid."""
        sets = {tool.set for tool in select_tools(self.sets)}
        return guidance(sets) if sets else None

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """Return the tools, if the memory of the run is known. Raises: Invalid."""
        return None if callable(self.memory) else make_toolset(self.memory, self.sets, session_id=self.session_id)

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Recall what is known about the prompt."""
        prompt = clean_text(_find_text(ctx.prompt))
        if prompt.strip() and self.recall_limit and not callable(self.memory):
            self._recalled = await call_verb(self.memory, "prompts.recall_block", prompt, limit=self.recall_limit)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Add what was recalled in front of the latest prompt. The history of the run does not keep it."""
        if not self._recalled:
            return request_context
        return replace(request_context, messages=_add_block(request_context.messages, self._recalled))

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Remember the prompt and the answer."""
        if self.remember and self.session_id and not callable(self.memory):
            turn = log_turn(self.session_id, _find_text(ctx.prompt), str(result.output))
            await run_plan_async(self.memory, turn)
        return result


def make_toolset(
    memory: AnyMemory, sets: Iterable[str] | None = None, *, session_id: str | None = None
) -> FunctionToolset[Any]:
    """Return the tools of these sets; `sets` defaults to `memory`.

    `session_id` is the conversation in which the model calls them. Raises: Invalid.
    """
    tools, call = open_tools(memory, sets, session_id)

    def define(name: str) -> Callable[..., Any]:
        async def called(**arguments: Any) -> Any:
            return await call(name, arguments)

        return called

    return FunctionToolset(
        [Tool.from_schema(define(tool.name), tool.name, tool.description, tool.schema()) for tool in tools]
    )


def _add_block(messages: Sequence[ModelMessage], block: str) -> list[ModelMessage]:
    """Return the messages with a text in front of the latest prompt."""
    added = list(messages)
    for place in reversed(range(len(added))):
        message = added[place]
        prompts = [part for part in message.parts if isinstance(part, UserPromptPart)]
        if isinstance(message, ModelRequest) and prompts:
            at = next(number for number, part in enumerate(message.parts) if part is prompts[0])
            parts = [*message.parts[:at], UserPromptPart(content=block), *message.parts[at:]]
            added[place] = replace(message, parts=parts)
            break
    return added


def _find_text(prompt: object) -> str:
    """Return the texts of a prompt, which may also have images and files."""
    parts = prompt if isinstance(prompt, list | tuple) else [prompt]
    texts = (part if isinstance(part, str) else getattr(part, "content", None) for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str))
