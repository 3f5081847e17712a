"""Working memory: assemble the prompt of one model call, fit it into the token budget and record it.

Pieces that do not fit are stored as details, with a one-line reference in their place. Equal pieces of a session are
stored once, as long as this process runs and the detail exists.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING

from wellkept.details.details import Details
from wellkept.details.rules_keys import reference
from wellkept.errors import NotFound, ReadOnly
from wellkept.extension import TokenCounter
from wellkept.history.workflows import record_event
from wellkept.language.names import check_session, memory_seq
from wellkept.language.values import check_min_relevance
from wellkept.memory.rules_filters import Where, parse_filter
from wellkept.memory.rules_importance import is_small_talk
from wellkept.meter import METER
from wellkept.model import NO_USER, AuditEvent, ContextCall, Owner, Role, Truncation, WorkingMemory
from wellkept.model.stored import ToolResult
from wellkept.prompt.gather import Gather, PromptRequest
from wellkept.prompt.prompt_log import ContextCalls
from wellkept.prompt.rules_fitting import FitCallbacks, check_budget, fit_window
from wellkept.prompt.rules_window import (
    REMEMBERED,
    Form,
    Piece,
    PromptPart,
    Renderer,
    Window,
    build_blocks,
    check_participants,
    parse_layout,
    stable_messages,
    text_digest,
)
from wellkept.prompt.summaries import FoldTurns
from wellkept.shared import Shared

if TYPE_CHECKING:
    pass

MAX_REMEMBERED = 10_000
"""Number of stored texts remembered, so that they are not stored again."""

log = logging.getLogger("wellkept")

CONVERSATION, MESSAGE, TOOL_RESULT, MEMORIES = "conversation", "message", "tool_result", "memories"


class OffloadPieces:
    """Service that stores pieces as a detail and returns its reference."""

    def __init__(self, details: Details) -> None:
        self._details = details
        self._lock = threading.Lock()
        self._keys: OrderedDict[tuple[Owner, str, str], str] = OrderedDict()

    def __call__(self, owner: Owner, session_id: str, pieces: Sequence[Piece], what: str) -> str:
        """Return the placeholder of a detail that holds these pieces; empty if the store is read-only.

        Raises: StoreError.
        """
        text = _join_pieces(pieces)
        cache_key = owner, session_id, text_digest(text)
        with self._lock:
            key = self._keys.get(cache_key)
        if key is None or not self._has_detail(owner, key):
            type = _detail_type(pieces)
            try:
                key = self._details.store(owner, text, description=what, type=type, session_id=session_id or None).key
            except ReadOnly as error:
                log.warning("Pieces were left out of a prompt without a reference: %s", error)
                return ""
            with self._lock:
                self._keys[cache_key] = key
                if len(self._keys) > MAX_REMEMBERED:
                    self._keys.popitem(last=False)
        return reference(key, what)

    def forget(self, tenant: str) -> None:
        """Drop the remembered keys of a tenant; the details themselves stay."""
        with self._lock:
            for cache_key in [cache_key for cache_key in self._keys if cache_key[0].tenant == tenant]:
                del self._keys[cache_key]

    def _has_detail(self, owner: Owner, key: str) -> bool:
        try:
            return self._details.get(owner, key).is_active
        except NotFound:
            return False


def _join_pieces(pieces: Sequence[Piece]) -> str:
    """Join pieces to one text. A single tool result stays unchanged, so that JSON stays JSON; turns name the role."""
    if len(pieces) == 1 and pieces[0].form is not Form.TURN:
        return pieces[0].text
    return "\n\n".join(
        f"Turn {piece.turn}, {piece.role}:\n{piece.text}" if piece.form is Form.TURN else piece.text for piece in pieces
    )


def _detail_type(pieces: Sequence[Piece]) -> str:
    if pieces[0].form is not Form.ITEM:
        return CONVERSATION
    if pieces[0].role == Role.USER:
        return MESSAGE
    return MEMORIES if pieces[0].memory is not None and pieces[0].memory.role is not Role.TOOL_RESULT else TOOL_RESULT


class Assemble:
    """Service that assembles working memory."""

    def __init__(
        self,
        shared: Shared,
        gather: Gather,
        fold: FoldTurns,
        move: OffloadPieces,
        calls: ContextCalls,
        tokens: TokenCounter,
        *,
        settle: Callable[[Owner], None],
    ) -> None:
        """Set up; `settle` waits for what a turn of this moment ends."""
        self._store, self._now, self._settings = shared.store, shared.now, shared.settings
        self._loop_guard, self._retrieval_marks = shared.loop_guard, shared.retrieval_marks
        self._gather, self._fold, self._move, self._calls = gather, fold, move, calls
        self._tokens, self._settle = tokens, settle

    def __call__(
        self,
        owner: Owner,
        message: str,
        *,
        session: str | None = None,
        participants: Sequence[str] | None = None,
        system_prompt: str | None = None,
        budget: int | None = None,
        layout: str | None = None,
        tool_results: Sequence[ToolResult] | None = None,
        min_relevance: float | None = None,
        where: Where = None,
        is_preview: bool = False,
    ) -> WorkingMemory:
        """Assemble working memory for a message, the next one of a session if it is given; a preview records nothing.

        Raises: Invalid; OverBudget when the parts that are never cut do not fit.
        """
        check_min_relevance(min_relevance)
        session_id = "" if session is None else check_session(session)
        if owner.user is None:
            # A prompt has one reader: the user of the session or, if it has none, nobody in particular.
            found = self._store.find_session(owner, session_id) if session_id else None
            owner = Owner(owner.tenant, owner.agent, (found and found.user) or NO_USER)
        # What a turn of this moment ended must not be shown.
        self._settle(owner)
        request = PromptRequest(
            owner=owner,
            session_id=session_id,
            message=message,
            is_asking=bool(message.strip()) and not is_small_talk(message),
            system_prompt=system_prompt,
            tool_results=tool_results,
            participants=check_participants([] if participants is None else participants),
            layout=parse_layout(self._settings.context_layout if layout is None else layout),
            budget=check_budget(self._settings.context_budget if budget is None else budget),
            now=self._now(),
            min_relevance=min_relevance,
            where=parse_filter(where),
        )
        return self._assemble(request, is_preview=is_preview)

    def forget(self, tenant: str) -> None:
        """Drop cached folds and references of a tenant's prompts."""
        self._fold.forget(tenant)
        self._move.forget(tenant)

    def _assemble(self, request: PromptRequest, *, is_preview: bool) -> WorkingMemory:
        drawing, budget = Renderer(self._tokens.count), request.budget
        # A preview stores no text, so its placeholder leads nowhere.
        move = _refer_nowhere if is_preview else partial(self._move, request.owner, request.session_id)
        ways = FitCallbacks(
            drawing=drawing,
            fold=partial(self._fold, request.owner, request.session_id, budget),
            refer=move,
            rate=partial(self._gather.rate, request),
        )
        window, truncations = fit_window(self._gather(request), budget, ways)
        made = WorkingMemory(
            id=_call_id(request.now),
            messages=tuple(drawing.prompt(window)),
            tokens=drawing.tokens(window),
            budget=budget,
            layout=request.layout.value,
            blocks=build_blocks(window, drawing),
            truncations=tuple(truncations),
            stable_messages=stable_messages(window, drawing),
        )
        if not is_preview:
            self._record(request, window, made)
        return made

    def _record(self, request: PromptRequest, window: Window, made: WorkingMemory) -> None:
        self._register_shown(request, window)
        METER.get().count_prompt(made.tokens, sum(each.tokens_removed for each in made.truncations))
        for each in made.truncations:
            METER.get().count_truncation(each.step)
        if made.truncations:
            self._record_truncation(request, made)
        self._calls.add(
            ContextCall(
                id=made.id,
                owner=request.owner.whole,
                user=request.owner.user or None,
                session_id=request.session_id,
                at=request.now,
                layout=made.layout,
                budget=made.budget,
                tokens=made.tokens,
                blocks=made.blocks,
                truncations=made.truncations,
            )
        )

    def _register_shown(self, request: PromptRequest, window: Window) -> None:
        """Register the shown texts with the loop guard and mark recalled memories as retrieved."""
        self._loop_guard.note_shown(request.owner, [piece.text for part in REMEMBERED for piece in window.of(part)])
        recalled = [piece.memory for piece in window.of(PromptPart.MEMORIES) if piece.memory is not None]
        self._retrieval_marks.mark(request.owner, [memory_seq(memory.id) or 0 for memory in recalled], request.now)

    def _record_truncation(self, request: PromptRequest, made: WorkingMemory) -> None:
        removed = sum(each.tokens_removed for each in made.truncations)
        blocks = ", ".join(dict.fromkeys(each.block for each in made.truncations))
        record_event(
            self._store,
            AuditEvent(
                tenant=request.owner.tenant,
                at=request.now,
                action="context.truncate",
                agent_id=request.owner.agent,
                message=f"Working memory {made.id} was truncated by {removed:,} tokens: {blocks}.",
                meta={
                    "level": "warning",
                    "call": made.id,
                    "session_id": request.session_id,
                    "budget": made.budget,
                    "tokens_removed": removed,
                    "steps": [_step_meta(each) for each in made.truncations],
                },
            ),
        )


def _step_meta(truncation: Truncation) -> dict[str, object]:
    """Describe a truncation for the audit log, without any text."""
    meta = {
        "step": truncation.step,
        "block": truncation.block,
        "tokens_removed": truncation.tokens_removed,
        "sources": list(truncation.sources),
    }
    dropped = {"dropped_references": list(truncation.dropped_references)} if truncation.dropped_references else {}
    return meta | dropped


def _refer_nowhere(pieces: Sequence[Piece], what: str) -> str:
    return reference("preview", what)


def _call_id(now: datetime) -> str:
    """Return an id that sorts by time, with a random suffix for calls at the same microsecond."""
    return f"c-{int(now.timestamp() * 1_000_000):014x}{token_hex(4)}"
