"""Answering while an agent is at work: at once as JSON, or piece by piece as server-sent events.

Whoever hangs up cancels the run. A run that fails before anything was sent is refused as any other request; once the
stream has begun, its last event says so instead.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from anyio import create_task_group
from fastapi.responses import JSONResponse
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from recollect.errors import RecollectError
from recollect.model import AgentQuestion, Delta, RunEvent
from recollect.runner import AgentRunner
from recollect.server.rest.run_shapes import AnswerBody

EVENT_STREAM = "text/event-stream"
HEADERS = {
    "Content-Type": f"{EVENT_STREAM}; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # a proxy that collected the events would take away their point
}
log = logging.getLogger("recollect.server")


class RunResponse(Response):
    """Runs an agent and answers with what it says."""

    def __init__(self, runner: AgentRunner, question: AgentQuestion, *, is_stream: bool) -> None:
        super().__init__()
        self._runner = runner
        self._question = question
        self._is_stream = is_stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        failure: RecollectError | None = None
        async with create_task_group() as tasks:

            async def wait_for_hanging_up() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait_for_hanging_up)
            try:
                await (self._stream(send) if self._is_stream else self._answer(scope, receive, send))
            except RecollectError as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure  # outside of the group, which would wrap it

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await self._runner.run(self._question)
        await JSONResponse(AnswerBody.of(answer).model_dump(mode="json"))(scope, receive, send)

    async def _stream(self, send: Send) -> None:
        events = _Events(send)
        try:
            answer = await self._runner.run(self._question, events.tell)
        except RecollectError as error:
            if not events.has_begun:
                raise
            log.error("A streamed answer failed: %s", error)
            await events.send("error", {"ok": False, "error": str(error), "code": error.code})
        else:
            await events.send("done", AnswerBody.of(answer).model_dump(mode="json"))
        await events.end()


class _Events:
    """Server-sent events, begun with the first of them."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def tell(self, event: RunEvent) -> None:
        if isinstance(event, Delta):
            await self.send("delta", {"text": event.text})
        else:
            await self.send("tool", {"name": event.name, "ok": event.is_ok})

    async def send(self, name: str, told: dict[str, Any]) -> None:
        if not self.has_begun:
            self.has_begun = True
            headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        line = f"event: {name}\ndata: {json.dumps(told)}\n\n"
        await self._send({"type": "http.response.body", "body": line.encode(), "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
