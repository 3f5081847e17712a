"""LangChain: middleware that shows an agent its memory before each model call, and stores each turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import takewhile
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import SystemMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime

from wellkept.integrations.langgraph import Memory, find_session, find_text, render_context
from wellkept.integrations.plans import log_turn, run_plan

__all__ = ["WellkeptMiddleware"]


class WellkeptMiddleware(AgentMiddleware):
    """Middleware of `create_agent`: recall before, remember after.

    The system message of each model call becomes that of `memory.context(…)`: the agent's own prompt, core memories,
    notes, recalled memories and passages for the last message. The messages of the thread stay as they are. At the end
    of a run, the message and the answer are stored by `log_turn` and remembered, so that other threads recall them;
    with `remember` False, only their transcript is kept (None: the setting `remember_turns` decides). The thread of the
    run is the session, and `user_id` in its configuration the end user.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        budget: int | None = None,
        min_relevance: float | None = None,
        remember: bool | None = None,
    ) -> None:
        super().__init__()
        self.memory = memory
        self._options = {"budget": budget, "min_relevance": min_relevance}
        self._remember = remember

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        """Call the model with the context as its system message."""
        return handler(self._add_context(request))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Call the model with the context as its system message."""
        return await handler(await asyncio.to_thread(self._add_context, request))

    def after_agent(self, state: AgentState, runtime: Runtime) -> dict[str, Any] | None:
        """Store the turn."""
        session_id, user = find_session(get_config())
        said = find_text(state["messages"], "human")
        # Not an answer to an earlier message, if this run ended without a text.
        turn = list(takewhile(lambda message: message.type != "human", reversed(state["messages"])))
        answered = find_text(turn[::-1], "ai")
        if said.strip() and answered.strip():
            run_plan(self.memory, log_turn(session_id, said, answered, remember=self._remember, user_id=user))
        return None

    async def aafter_agent(self, state: AgentState, runtime: Runtime) -> dict[str, Any] | None:
        """Store the turn."""
        return await asyncio.to_thread(self.after_agent, state, runtime)

    def _add_context(self, request: ModelRequest) -> ModelRequest:
        system_prompt = request.system_prompt
        text = render_context(self.memory, request.messages, get_config(), system_prompt=system_prompt, **self._options)
        return request.override(system_message=SystemMessage(text))
