"""Working memory: what a model is shown at one call, put together, fitted into its budget, and accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from secrets import token_hex

from recollect.errors import Invalid
from recollect.model import AuditEvent, ContextCall, Owner, Truncation, WorkingMemory
from recollect.policy.names import checked_session, memory_seq
from recollect.policy.prompt.budget import Ways, checked_budget, fitted
from recollect.policy.prompt.prompt_log import blocks_of, stable_messages
from recollect.policy.prompt.rendering import Drawing
from recollect.policy.prompt.window import Part, Window, checked_layout
from recollect.policy.text import checked_text
from recollect.ports import AuditStore, Clock, TokenCounter
from recollect.services.history.noting import note
from recollect.services.memories.loop_guard import Echoes
from recollect.services.prompt.fold import Fold
from recollect.services.prompt.gather import Asked, Gather, ToolResult
from recollect.services.prompt.prompt_log import ContextCalls
from recollect.services.prompt.references import Move
from recollect.services.recall.marks import Retrieved

REMEMBERED = (Part.CORE, Part.JOURNAL, Part.NOTES, Part.MEMORIES, Part.KNOWLEDGE)
"""Parts that came out of memory: when they come back, they are an echo."""


class Assemble:
    """Puts working memory together."""

    def __init__(
        self,
        store: AuditStore,
        now: Clock,
        *,
        gather: Gather,
        fold: Fold,
        move: Move,
        tokens: TokenCounter,
        echoes: Echoes,
        retrieved: Retrieved,
        calls: ContextCalls,
        budget: int,
        layout: str,
    ) -> None:
        self._store = store
        self._now = now
        self._gather = gather
        self._fold = fold
        self._move = move
        self._tokens = tokens
        self._echoes = echoes
        self._retrieved = retrieved
        self._calls = calls
        self._budget = budget
        self._layout = layout

    def __call__(
        self,
        owner: Owner,
        session_id: str,
        message: str,
        *,
        system_prompt: str | None = None,
        budget: int | None = None,
        layout: str | None = None,
        tool_results: Sequence[ToolResult] | None = None,
    ) -> WorkingMemory:
        """Raises: Invalid; OverBudget when what may never be cut does not fit."""
        if isinstance(tool_results, str):
            raise Invalid("The tool results are a list, one entry for each.")
        asked = Asked(
            owner=owner,
            session_id=checked_session(session_id),
            message=checked_text(message, what="message"),
            system_prompt=None if system_prompt is None else checked_text(system_prompt, what="system prompt"),
            tool_results=tool_results,
            layout=checked_layout(self._layout if layout is None else layout),
            now=self._now(),
        )
        return self._assembled(asked, checked_budget(self._budget if budget is None else budget))

    def forget(self, tenant: str) -> None:
        """Let go of what a tenant's prompts left behind in memory."""
        self._fold.forget(tenant)
        self._move.forget(tenant)

    def _assembled(self, asked: Asked, budget: int) -> WorkingMemory:
        drawing = Drawing(self._tokens.count)
        ways = Ways(
            drawing=drawing,
            fold=partial(self._fold, asked.owner, asked.session_id, budget),
            refer=partial(self._move, asked.owner, asked.session_id),
        )
        window, truncations = fitted(self._gather(asked), budget, ways)
        made = WorkingMemory(
            id=_call_id(asked.now),
            messages=tuple(drawing.prompt(window)),
            tokens=drawing.tokens(window),
            budget=budget,
            layout=asked.layout.value,
            blocks=blocks_of(window, drawing),
            truncations=tuple(truncations),
            stable_messages=stable_messages(window, drawing),
        )
        self._tell(asked, window)
        if truncations:
            self._warn(asked, made)
        self._calls.add(
            ContextCall(
                id=made.id,
                owner=asked.owner,
                session_id=asked.session_id,
                at=asked.now,
                layout=made.layout,
                budget=budget,
                tokens=made.tokens,
                blocks=made.blocks,
                truncations=made.truncations,
            )
        )
        return made

    def _tell(self, asked: Asked, window: Window) -> None:
        """What is shown is known when it comes back, and what was recalled is marked as retrieved."""
        self._echoes.shown(asked.owner, [piece.text for part in REMEMBERED for piece in window.of(part)])
        recalled = [piece.memory for piece in window.of(Part.MEMORIES) if piece.memory is not None]
        self._retrieved.mark(asked.owner, [memory_seq(memory.id) or 0 for memory in recalled], asked.now)

    def _warn(self, asked: Asked, made: WorkingMemory) -> None:
        removed = sum(each.tokens_removed for each in made.truncations)
        blocks = ", ".join(dict.fromkeys(each.block for each in made.truncations))
        note(
            self._store,
            AuditEvent(
                tenant=asked.owner.tenant,
                at=asked.now,
                action="context.truncate",
                agent_id=asked.owner.agent,
                message=f"Working memory {made.id} was truncated by {removed:,} tokens: {blocks}.",
                meta={
                    "level": "warning",
                    "call": made.id,
                    "session_id": asked.session_id,
                    "budget": made.budget,
                    "tokens_removed": removed,
                    "steps": [_step(each) for each in made.truncations],
                },
            ),
        )


def _step(truncation: Truncation) -> dict[str, object]:
    """For the audit log: what was touched, not what it said."""
    said = {
        "step": truncation.step,
        "block": truncation.block,
        "tokens_removed": truncation.tokens_removed,
        "sources": list(truncation.sources),
    }
    dropped = {"dropped_references": list(truncation.dropped_references)} if truncation.dropped_references else {}
    return said | dropped


def _call_id(now: datetime) -> str:
    """Sorts by time; the rest tells calls of the same moment apart."""
    return f"c-{int(now.timestamp() * 1_000_000):014x}{token_hex(4)}"
