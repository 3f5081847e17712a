"""Tools for an agent's private memory: a journal that fades, and a core that stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from recollect.errors import Invalid, SecretRejected
from recollect.model import Json, Kind, Memory
from recollect.tools.spec import Parameter, Tool

if TYPE_CHECKING:
    from recollect.api.agent import AgentMemory

NO_AGENT = {"error": "This tool only works in group conversations, where it is clear which agent is speaking."}
SAVED = {"success": "boolean", "memory_type": "string", "content": "string"}


def save_to_journal(memory: AgentMemory | None, content: str) -> Json:
    return _save(memory, content, Kind.JOURNAL, lambda entry: {"expires_around": f"{entry.expires_at:%Y-%m-%d}"})


def save_to_core(memory: AgentMemory | None, content: str) -> Json:
    return _save(memory, content, Kind.CORE, lambda _: {"note": "This memory is now part of your permanent identity"})


def _save(memory: AgentMemory | None, content: str, kind: Kind, extra_fields: Callable[[Memory], Json]) -> Json:
    if memory is None:
        return NO_AGENT
    try:
        entry = memory.remember(content, kind=kind, origin="agent")
    except SecretRejected as refusal:
        return {"error": refusal.sentence}
    except Invalid as refusal:
        return {"error": str(refusal)}
    return {"success": True, "memory_type": entry.kind.value, "content": entry.text, **extra_fields(entry)}


TOOLS = (
    Tool(
        name="save_to_journal",
        set="journal",
        title="Write in the journal",
        description=(
            "Write down something you noticed or want to keep in mind for now. You see your journal in every "
            "conversation; an entry fades after about a week."
        ),
        parameters={"content": Parameter(description="What to write down, a paragraph at most.", is_required=True)},
        answer={**SAVED, "expires_around": "string"},
        call=save_to_journal,
    ),
    Tool(
        name="save_to_core",
        set="journal",
        title="Add to the core",
        description=(
            "Add something to the core of who you are: a conviction, a lasting lesson, an essential fact about "
            "yourself. It stays for good and you see it in every conversation, so use it sparingly."
        ),
        parameters={"content": Parameter(description="The core memory, short and meaningful.", is_required=True)},
        answer={**SAVED, "note": "string"},
        call=save_to_core,
    ),
)
