"""Conversations of an agent as threads: each turn with its prompt and its memories; and chat with the agent."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Form, Path, Query
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from wellkept.access.rules_keys import is_allowed
from wellkept.agent import AgentRunner
from wellkept.errors import Forbidden, Invalid, NotFound, WellkeptError
from wellkept.memory.rules_filters import EXISTS, Comparison, Not
from wellkept.model import AgentQuestion, ContextCall, KeyScope, Memory, Message, Role, Session
from wellkept.prompt.prompt_log import GONE
from wellkept.prompt.transcripts import MAX_MESSAGE_CHARS
from wellkept.server.console.pages import AtAgent, clip, fit_bytes, page_router, parse_place, place
from wellkept.server.http.auth import CurrentAgent
from wellkept.server.http.routing import READ, WRITE

SESSIONS = 50
MESSAGES = 50
CALLS = 200
"""Latest prompts of a conversation that are assigned to its turns."""

WORDS_BYTES = 140
"""Bytes of the first message that name a conversation."""

MEMORIES = 500
AFTERWARDS = timedelta(seconds=2)
"""Time after a turn in which what is written still belongs to it."""

SHOWN_BEFORE = 20
"""Latest messages that the page shows after an answer."""

router = page_router("/agents/{agent}/sessions")


@dataclass(slots=True)
class Turn:
    """A message, and around an answer: the prompts that made it, the memories in them, and those it wrote."""

    message: Message
    calls: list[ContextCall] = field(default_factory=list)
    written: list[Memory] = field(default_factory=list)

    used: dict[str, str] = field(default_factory=dict)  # texts of the memories and passages in a prompt, by id

    def add_call(self, call: ContextCall) -> None:
        """Add a prompt, with what it showed of memory."""
        self.calls.append(call)
        items = [item for block in call.blocks for item in block.items if item.id.startswith(("m-", "d-"))]
        self.used |= {item.id: item.text or item.id for item in items if not item.left_out and item.since != GONE}


@router.get("", scope=READ)
def list_sessions(visit: AtAgent, at: Annotated[str, Query()] = "", id: Annotated[str, Query()] = "") -> Response:
    """Show the most recently used first; `at` and `id` are the end of the previous page."""
    found = visit.memory.sessions.list(before=parse_place(at, id), limit=SESSIONS + 1)
    listed = found[:SESSIONS]
    older = listed[-1] if len(found) > SESSIONS else None
    shown = [(each, find_first_words(visit.memory, each)) for each in listed]
    return visit.page("sessions.html", sessions=shown, older=older, chat=find_chat(visit))


@router.get("/{id}", scope=READ)
def show_session(
    visit: AtAgent, id: Annotated[str, Path()], after: Annotated[int, Query(ge=0, le=10**9)] = 0
) -> Response:
    """Show the summary of a conversation and its messages, in order."""
    return _session_page(visit, visit.memory.sessions.get(id), after=after)


@router.post("", scope=WRITE)
async def begin_chat(visit: AtAgent, prompt: Annotated[str, Form()] = "") -> Response:
    """Ask the agent something in a new conversation."""
    return await _ask(visit, f"s-{uuid.uuid4().hex}", prompt)


@router.post("/{id}", scope=WRITE)
async def continue_chat(visit: AtAgent, id: Annotated[str, Path()], prompt: Annotated[str, Form()] = "") -> Response:
    """Ask the agent something in this conversation; a failed answer keeps what was typed."""
    return await _ask(visit, id, prompt)


def find_first_words(memory: CurrentAgent, session: Session) -> str:
    """Return the beginning of a conversation, by which people know it; empty if it has no messages."""
    first = memory.sessions.messages(session.id, limit=1) if session.message_count else ()
    return clip(" ".join(first[0].content.split()), WORDS_BYTES) if first else ""


def find_chat(visit: AtAgent) -> str:
    """Return the model that answers in the console; empty if there is none, or the key may not write."""
    if not is_allowed(visit.access.scope, KeyScope.WRITE):
        return ""
    try:
        return _runner(visit).model_for(visit.memory.owner)
    except Invalid:
        return ""


def _runner(visit: AtAgent) -> AgentRunner:
    runner: AgentRunner = visit.request.app.state.runner
    return runner


async def _ask(visit: AtAgent, id: str, prompt: str) -> Response:
    said = prompt.replace("\r\n", "\n")
    try:
        answer = await _runner(visit).run(AgentQuestion(owner=visit.memory.owner, prompt=said, session_id=id))
    except Forbidden:
        raise
    except WellkeptError as error:
        problem = str(error)
        return await run_in_threadpool(_refused_page, visit, id, said, problem)
    session = await run_in_threadpool(visit.memory.sessions.get, id)
    # The page of a long conversation begins a few turns before the answer.
    begin = max(0, session.message_count - SHOWN_BEFORE)
    address = place("agents", visit.id, "sessions", answer.session_id, after=begin or None)
    return RedirectResponse(f"{address}#turn-{session.message_count - 1}", status_code=303)


def _refused_page(visit: AtAgent, id: str, prompt: str, problem: str) -> Response:
    try:
        session = visit.memory.sessions.get(id)
    except NotFound:
        now = visit.wellkept.now()
        session = Session(id=id, owner=visit.memory.owner, created_at=now, updated_at=now)
    return _session_page(visit, session, problem=problem, prompt=prompt)


def _session_page(visit: AtAgent, session: Session, *, after: int = 0, problem: str = "", prompt: str = "") -> Response:
    # One more than shown, and the one before them, whose time separates earlier prompts.
    found = (
        visit.memory.sessions.messages(session.id, after=max(0, after - 1), limit=MESSAGES + 2)
        if session.message_count
        else ()
    )
    since = found[0].created_at if after and found else None
    listed = fit_bytes(found[1 if after else 0 :][:MESSAGES], lambda each: each.content)
    behind = found[len(listed) + bool(after) :]
    until = behind[0].created_at if behind else None
    more = listed[-1].position if listed and listed[-1].position < session.message_count else 0
    return visit.page(
        "session.html",
        session=session,
        first_words=find_first_words(visit.memory, session),
        turns=find_turns(visit.memory, session.id, listed, since=since, until=until),
        more=more,
        after=after,
        chat=find_chat(visit),
        longest=MAX_MESSAGE_CHARS,
        problem=problem,
        prompt=prompt,
    )


def find_turns(
    memory: CurrentAgent, id: str, messages: Sequence[Message], *, since: datetime | None, until: datetime | None
) -> list[Turn]:
    """Return the messages with the prompts and memories that belong to each answer, by their times.

    `since` and `until` are the times of the messages before and behind them.
    """
    turns = [Turn(each) for each in messages]
    answers = [each for each in turns if each.message.role is Role.ASSISTANT]
    if not answers:
        return turns
    last, logged = answers[-1].message.created_at, {each.message.created_at: each for each in answers}

    def find_answer(at: datetime) -> Turn | None:
        is_here = since is None or at > since
        return next((each for each in answers if at <= each.message.created_at), None) if is_here else None

    # Items are large, so only those of the page are read.
    for call in reversed(memory.prompts.list(session_id=id, limit=CALLS, item="")):
        # A prompt precedes its answer.
        if turn := find_answer(call.at):
            turn.add_call(memory.prompts.get(call.id))
    for each in reversed(memory.list(session_id=id, state="all", until=last + AFTERWARDS, limit=MEMORIES)):
        if until is not None and each.created_at >= until:
            continue
        # A turn and what is logged of it have one time; what follows within a moment belongs to it, too.
        if turn := logged.get(each.created_at) or find_answer(each.created_at - AFTERWARDS):
            turn.written.append(each)
    _add_unnamed(memory, [turn for turn in answers if turn.calls])
    return turns


def _add_unnamed(memory: CurrentAgent, answers: Sequence[Turn]) -> None:
    """Add memories that name no conversation and were written between a prompt and its answer: those of tools."""
    if not answers:
        return
    since, until = answers[0].calls[0].at, answers[-1].message.created_at
    unnamed = Not(Comparison("session_id", EXISTS))
    for each in reversed(memory.list(where=unnamed, state="all", since=since, until=until, limit=MEMORIES)):
        for turn in answers:
            if turn.calls[0].at <= each.created_at <= turn.message.created_at:
                turn.written.append(each)
                break
