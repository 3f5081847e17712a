"""`AgentRunner`: everything around the agent loop, shared by the server and the command line.

A run is stored when it is finished: the turn is logged, and remembered as episodes, in one transaction. A run that
fails or is cancelled stores no turn; the failure is recorded in the audit log, and the caller can send the prompt
again. What the agent stored by its tools meanwhile stays.
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

from wellkept.agent.prompt import RunPrompt
from wellkept.api.wellkept import AgentMemory, Wellkept
from wellkept.errors import Conflict, Invalid, NotFound, WellkeptError
from wellkept.language.names import check_session
from wellkept.language.text import check_text
from wellkept.model import Agent, AgentAnswer, AgentQuestion, Owner, RunEvent
from wellkept.program import advise_install
from wellkept.prompt.rules_tokens import check_images
from wellkept.prompt.transcripts import MAX_MESSAGE_CHARS
from wellkept.tools import catalog
from wellkept.tools.spec import Tool

TOOL_SETS = ("memory", "journal")
"""Sets of tools for an agent that does not name its own."""

if TYPE_CHECKING:
    from wellkept.agent.loop import FinishedRun

MISSING_PACKAGES = f"Running an agent needs more packages; {advise_install('agent')}"
NO_MODEL = (
    "No model is configured. Set OPENAI_MODEL, and OPENAI_BASE_URL and OPENAI_API_KEY for its endpoint; or set the "
    "agent's own model."
)
NO_IMAGES = "The model passed to this store completes text and cannot see images."
"""Refusal of images by a model that was passed in."""
FOREIGN_SESSION = "The session belongs to another agent or user."
log = logging.getLogger("wellkept")
OnEvent = Callable[[RunEvent], Awaitable[None]]
T = TypeVar("T")


class AgentRunner:
    """Runs the agents of one store. Keeps no state between runs, so one runner serves many at once."""

    def __init__(self, wellkept: Wellkept, *, tools: Sequence[Callable[..., Any]] = ()) -> None:
        """Create a runner for the agents of `wellkept`.

        `tools` are functions the agents may call besides their memory; long answers are captured.
        """
        self._wellkept = wellkept
        self._tools = tuple(tools)

    def model_for(self, owner: Owner) -> str:
        """Return the name of the model of an agent: its own, or that of the settings.

        Raises: Invalid when there is none, or the agent is not active.
        """
        return self._model_of(self._get_agent(owner))

    async def run(self, question: AgentQuestion, on_event: OnEvent | None = None) -> AgentAnswer:
        """Run an agent and return the whole answer; `on_event` receives pieces of it and tool uses as they come.

        Raises: Invalid, Conflict, OverBudget, ModelError, StoreError.
        """
        checked = _check_question(question)
        session_id = f"s-{uuid.uuid4().hex}" if checked.session_id is None else checked.session_id
        agent = await _in_thread(self._find_agent, checked, session_id)
        memory = await _in_thread(self._find_memory, checked.owner, session_id)
        model = self._model_of(agent)
        if checked.images and self._wellkept.model is not None:
            raise Invalid(NO_IMAGES)
        loop = await _in_thread(_import_loop)
        try:
            finished: FinishedRun = await loop.run_agent(
                prompt=RunPrompt(memory, agent, checked, session_id, self._wellkept.settings),
                memory=memory,
                tools=self._memory_tools(agent),
                functions=self._functions(agent),
                question=checked,
                session_id=session_id,
                settings=self._wellkept.settings,
                model=self._wellkept.model or model,
                on_event=on_event,
            )
            await _run_to_end(_in_thread(_store_run, memory, session_id, checked, finished))
        except (WellkeptError, get_cancelled_exc_class()) as error:
            with CancelScope(shield=True):
                reason = str(error) if isinstance(error, WellkeptError) else "It was cancelled."
                await _in_thread(memory.sessions.log_failure, session_id, reason)
            raise
        return finished.answer

    def _find_memory(self, owner: Owner, session_id: str) -> AgentMemory:
        """Return the memory of the agent as the reader of this conversation has it."""
        memory = self._wellkept.tenant(owner.tenant).agent(owner.agent)
        if owner.user:
            return memory.for_user(owner.user, shared=owner.with_shared)
        return memory.sessions.reader(session_id)

    def _find_agent(self, question: AgentQuestion, session_id: str) -> Agent | None:
        """Return the stored agent; None if it has no settings.

        Raises: Invalid; Conflict when the session is another agent's or user's.
        """
        tenant, owner = self._wellkept.tenant(question.owner.tenant), question.owner
        try:
            session = tenant.sessions.get(session_id)
            if session.owner != owner.whole or (owner.user and session.user != owner.user):
                raise Conflict(FOREIGN_SESSION)
        except NotFound:
            pass  # the first turn creates it
        return self._get_agent(question.owner)

    def _get_agent(self, owner: Owner) -> Agent | None:
        """Raises: Invalid."""
        try:
            agent = self._wellkept.tenant(owner.tenant).agents.get(owner.agent)
        except NotFound:
            return None
        if not agent.is_active:
            raise Invalid(f"The agent {agent.id} is not active; set is_active to true to ask it something.")
        return agent

    def _model_of(self, agent: Agent | None) -> str:
        """Raises: Invalid."""
        if self._wellkept.model is not None:
            return self._wellkept.model.name
        name = (agent.model if agent is not None else "") or self._wellkept.settings.openai_model
        if not name:
            raise Invalid(NO_MODEL)
        return name

    def _functions(self, agent: Agent | None) -> Sequence[Callable[..., Any]]:
        if self._wellkept.model is not None:
            return []
        return [each for each in self._tools if _is_allowed(agent, each.__name__)]

    def _memory_tools(self, agent: Agent | None) -> Sequence[Tool]:
        # A model that was passed in cannot call tools.
        if self._wellkept.model is not None:
            return []
        if agent is None or not agent.tools:
            return catalog.select_tools(TOOL_SETS)
        sets = {tool.set for tool in catalog.TOOLS.values() if _is_allowed(agent, tool.name, tool.set)}
        return [tool for tool in catalog.select_tools(sets) if _is_allowed(agent, tool.name, tool.set)]


def _is_allowed(agent: Agent | None, *names: str) -> bool:
    """Return True if an agent may use a tool with one of these names: its own or that of its set."""
    return agent is None or not agent.tools or any(name in agent.tools for name in names)


def _check_question(question: AgentQuestion) -> AgentQuestion:
    """Check the prompt, the images and the session id.

    Raises: Invalid.
    """
    if not check_text(question.prompt, what="prompt").strip():
        raise Invalid("The prompt is blank; say what the agent should answer.")
    if len(question.prompt) > MAX_MESSAGE_CHARS:
        raise Invalid(
            f"The prompt has {len(question.prompt):,} characters, at most {MAX_MESSAGE_CHARS:,} fit; capture the long "
            "part and send its reference."
        )
    check_images(question.images)
    if question.session_id is not None:
        check_session(question.session_id)
    return question


def _store_run(memory: AgentMemory, session_id: str, question: AgentQuestion, finished: FinishedRun) -> None:
    """Store the turn, and tool results as episodes, which are recalled when a tool is to be chosen again."""
    response = finished.answer.response
    if len(response) > MAX_MESSAGE_CHARS:
        response = memory.details.capture(response, source="answer", session_id=session_id)
    memory.log_turn(session_id, user=question.prompt, assistant=response, remember=True)
    for text in finished.results:
        try:
            memory.remember(text, kind="episode", role="tool_result", origin="tool", session_id=session_id)
        except WellkeptError as error:
            # It holds a secret, or repeats a memory. The turn is complete without it.
            log.warning("A tool result of session %s was not remembered: %s", session_id, error)


def _import_loop() -> Any:
    """Raises: Invalid."""
    try:
        return import_module("wellkept.agent.loop")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "wellkept":
            raise
        raise Invalid(MISSING_PACKAGES) from error


async def _run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait for work that can no longer be undone: a cancellation comes too late, and the caller gets the answer."""
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
