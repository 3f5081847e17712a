"""Asking an agent: everything around the model's own loop, for every face that does it.

Nothing of a run is stored before it is finished: then the turn is logged, and remembered as episodes, in one
transaction. A run that fails or is cancelled leaves no turn; that it did is in the audit log, and whoever asked has the
prompt and is told to send it again. What the agent stored by its tools meanwhile stays.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import CancelScope, get_cancelled_exc_class
from anyio.to_thread import run_sync

from recollect.api.recollect import AgentMemory, Recollect
from recollect.errors import Conflict, Invalid, NotFound, RecollectError
from recollect.model import Agent, AgentAnswer, AgentQuestion, Owner, RunEvent
from recollect.policy.names import checked_session
from recollect.policy.prompt.images import checked_images
from recollect.policy.text import checked_text
from recollect.runner.prompt import RunPrompt
from recollect.services.prompt.transcripts import MAX_MESSAGE_CHARS
from recollect.tools import catalog
from recollect.tools.spec import Tool

if TYPE_CHECKING:
    from recollect.runner.loop import Finished

NEEDS = "Running an agent needs more packages; run: pip install 'recollect[agent]'"
NO_MODEL = (
    "No model is configured. Set OPENAI_MODEL, and OPENAI_BASE_URL and OPENAI_API_KEY for its endpoint; or give the "
    "agent a model of its own."
)
NO_EYES = "The model that was given to this store completes texts and sees no images."
ANOTHERS = "The session is another agent's."
log = logging.getLogger("recollect")
OnEvent = Callable[[RunEvent], Awaitable[None]]
T = TypeVar("T")


class AgentRunner:
    """Runs the agents of one store. It keeps nothing between runs, so one serves any number of them at once."""

    def __init__(self, recollect: Recollect, *, tools: Sequence[Callable[..., Any]] = ()) -> None:
        """`tools` are functions the agents may call besides those of their memory; a long answer is captured."""
        self._recollect = recollect
        self._tools = tuple(tools)

    def model_for(self, owner: Owner) -> str:
        """The name of the model an agent is asked by: its own, or that of the settings.

        Raises: Invalid when there is none, or the agent is not active.
        """
        return self._model_of(self._agent(owner))

    async def run(self, question: AgentQuestion, on_event: OnEvent | None = None) -> AgentAnswer:
        """Ask an agent and wait for the whole answer; `on_event` hears of its pieces and of tools as they come.

        Raises: Invalid, Conflict, OverBudget, ModelError, StoreError.
        """
        checked = _checked(question)
        memory = self._recollect.tenant(question.owner.tenant).agent(question.owner.agent)
        session_id = f"s-{uuid.uuid4().hex}" if checked.session_id is None else checked.session_id
        agent = await _in_thread(self._found_agent, checked, session_id)
        model = self._model_of(agent)
        if checked.images and self._recollect.model is not None:
            raise Invalid(NO_EYES)
        loop = await _in_thread(_framework)
        try:
            finished: Finished = await loop.finished(
                prompt=RunPrompt(memory, agent, checked, session_id, self._recollect.settings),
                memory=memory,
                tools=self._memory_tools(agent),
                functions=self._functions(agent),
                question=checked,
                session_id=session_id,
                settings=self._recollect.settings,
                model=self._recollect.model or model,
                on_event=on_event,
            )
            await _to_the_end(_in_thread(_keep, memory, session_id, checked, finished))
        except (RecollectError, get_cancelled_exc_class()) as error:
            with CancelScope(shield=True):
                why = str(error) if isinstance(error, RecollectError) else "It was cancelled."
                await _in_thread(memory.log_failure, session_id, why)
            raise
        return finished.answer

    def _found_agent(self, question: AgentQuestion, session_id: str) -> Agent | None:
        """The agent as it was set up; None: it has not been.

        Raises: Invalid, Conflict.
        """
        tenant = self._recollect.tenant(question.owner.tenant)
        try:
            if tenant.session(session_id).owner != question.owner:
                raise Conflict(ANOTHERS)
        except NotFound:
            pass  # its first turn begins it
        return self._agent(question.owner)

    def _agent(self, owner: Owner) -> Agent | None:
        """Raises: Invalid."""
        try:
            agent = self._recollect.tenant(owner.tenant).get_agent(owner.agent)
        except NotFound:
            return None
        if not agent.is_active:
            raise Invalid(f"The agent {agent.id} is not active; set is_active to true to ask it something.")
        return agent

    def _model_of(self, agent: Agent | None) -> str:
        """Raises: Invalid."""
        if self._recollect.model is not None:
            return self._recollect.model.name
        chosen = (agent.model if agent is not None else "") or self._recollect.settings.openai_model
        if not chosen:
            raise Invalid(NO_MODEL)
        return chosen

    def _functions(self, agent: Agent | None) -> Sequence[Callable[..., Any]]:
        if self._recollect.model is not None:
            return []
        return [each for each in self._tools if _is_allowed(agent, each.__name__)]

    def _memory_tools(self, agent: Agent | None) -> Sequence[Tool]:
        if self._recollect.model is not None:  # which can only talk
            return []
        offered = catalog.in_sets(self._recollect.settings.tool_sets)
        return [tool for tool in offered if _is_allowed(agent, tool.name, tool.set)]


def _is_allowed(agent: Agent | None, *names: str) -> bool:
    """Whether an agent may use what has these names: its own, and that of the set it is in."""
    return agent is None or not agent.tools or any(name in agent.tools for name in names)


def _checked(question: AgentQuestion) -> AgentQuestion:
    """Raises: Invalid."""
    if not checked_text(question.prompt, what="prompt").strip():
        raise Invalid("The prompt is blank; say what the agent should answer.")
    if len(question.prompt) > MAX_MESSAGE_CHARS:
        raise Invalid(
            f"The prompt has {len(question.prompt):,} characters, at most {MAX_MESSAGE_CHARS:,} fit; capture the long "
            "part and send its reference."
        )
    checked_images(question.images)
    if question.session_id is not None:
        checked_session(question.session_id)
    return question


def _keep(memory: AgentMemory, session_id: str, question: AgentQuestion, finished: Finished) -> None:
    """The turn, and what tools said in it as episodes: they are found when a tool is to be chosen again."""
    response = finished.answer.response
    if len(response) > MAX_MESSAGE_CHARS:
        response = memory.capture(response, source="answer", session_id=session_id)
    memory.log_turn(session_id, user=question.prompt, assistant=response, remember=True)
    for text in finished.results:
        try:
            memory.remember(text, kind="episode", role="tool_result", origin="tool", session_id=session_id)
        except RecollectError as error:  # it holds a secret, or only what memory said: the turn stands without it
            log.warning("What a tool said in session %s was not remembered: %s", session_id, error)


def _framework() -> Any:
    """Raises: Invalid."""
    try:
        return import_module("recollect.runner.loop")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "recollect":
            raise
        raise Invalid(NEEDS) from error


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait for what can no longer be taken back: who cancels now is too late, and gets the answer."""
    task = asyncio.ensure_future(work)
    with CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                current = asyncio.current_task()
                if current is not None:
                    current.uncancel()
    await task


async def _in_thread(function: Callable[..., T], *arguments: Any) -> T:
    return await run_sync(partial(function, *arguments))
