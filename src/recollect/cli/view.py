"""What commands have to show, and to whom: a person at a terminal, the next program in a pipe, or a JSON reader.

A command hands records to its `View` and does not know which of the three it is. Text from a store may come from
anywhere, so nothing of it reaches a terminal before `safe` has made control characters visible.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from recollect.model import (
    Agent,
    AgentAnswer,
    ApiKey,
    AuditEvent,
    AuditReport,
    Captured,
    Check,
    Chunk,
    ContextCall,
    Conversation,
    Detail,
    DetailPage,
    Document,
    Explanation,
    Exported,
    Imported,
    IssuedKey,
    Json,
    Kind,
    Memory,
    MemoryVersion,
    Message,
    Proposal,
    ProposalState,
    Recalled,
    Receipt,
    Session,
    Skill,
    State,
    ToolUse,
    Unanswered,
    Workflow,
    WorkflowStep,
    WorkingMemory,
)
from recollect.policy.keys import is_valid

if TYPE_CHECKING:
    from recollect.cli.demo.script import Seen, Stop
    from recollect.evaluation import Evaluation
    from recollect.services.knowledge.report import Ingested
    from recollect.services.memories.secrets import Sighting
    from recollect.services.upkeep.maintain import MaintenanceReport

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, change colours or turn the direction of writing."""

HINT_CHARS = 80
"""Of a text that is only named; `show` has all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A memory, and whether it can be recalled at the moment."""

    memory: Memory
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentShown:
    """An agent, and how many memories of each kind it has."""

    agent: Agent
    counts: Mapping[Kind, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The head of a tenant's audit log at a time."""

    tenant: str
    id: int
    hash: str
    at: datetime

    def as_json(self) -> dict[str, str | int]:
        return {"tenant": self.tenant, "id": self.id, "hash": self.hash, "at": self.at.isoformat()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingShown:
    """A setting as it is now, without secrets."""

    name: str
    value: str | float | list[str]
    source: str
    default: str
    environment: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureShown:
    """An output, and what stands for it if it is long."""

    captured: Captured
    file: IO[bytes]  # all of it
    source: str
    status: str
    exit_code: int | None = None  # None: it came by a pipe
    duration: float | None = None
    is_seen: bool = False  # it was shown as it came


class View(Protocol):
    """Everything a command can show."""

    is_document: bool
    """Whether standard output is one document, and nothing else may be written there."""

    def captured(self, shown: CaptureShown) -> None: ...

    def remembered(self, shown: Shown, similar: Sequence[Memory]) -> None:
        """Also names those it may double, so that they can be merged."""

    def edited(self, shown: Shown) -> None: ...

    def forgotten(self, id: str) -> None: ...

    def memory(self, shown: Shown, history: Sequence[MemoryVersion]) -> None: ...

    def memories(self, found: Sequence[Shown], *, next_cursor: str | None, if_none: str) -> None: ...

    def review(self, found: Sequence[Shown]) -> None: ...

    def approved(self, shown: Shown) -> None: ...

    def approved_workspace(self, count: int) -> None: ...

    def injected(self, block: str | None) -> None: ...

    def hits(self, hits: Recalled, *, is_explained: bool) -> None: ...

    def explained(self, explanation: Explanation) -> None: ...

    def agents(self, agents: Sequence[AgentShown], *, next_cursor: str | None) -> None: ...

    def events(self, events: Sequence[AuditEvent], *, next_cursor: int | None) -> None: ...

    def recorded(self, event: AuditEvent) -> None: ...

    def workflows(self, workflows: Sequence[Workflow], *, next_cursor: str | None) -> None: ...

    def steps(self, steps: Sequence[WorkflowStep], *, next_cursor: str | None) -> None: ...

    def verified(self, report: AuditReport) -> None: ...

    def anchored(self, anchors: Sequence[Anchor], notes: Sequence[str]) -> None: ...

    def settings(self, settings: Sequence[SettingShown]) -> None: ...

    def checks(self, checks: Sequence[Check]) -> None: ...

    def progress(self, what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        """Shows how far long work has come; it is told of each piece done. A total of 0: nobody knows."""

    def reembedded(self, count: int, embedder: str, *, mended: int) -> None: ...

    def maintained(self, report: MaintenanceReport) -> None: ...

    def evaluated(self, found: Evaluation) -> None: ...

    def sightings(self, found: Iterable[Sighting]) -> None:
        """Shown one by one as they are found, where that is possible."""

    def allowed(self, count: int) -> None: ...

    def erasure(self, receipt: Receipt) -> None: ...

    def exported(self, exported: Exported, path: Path) -> None: ...

    def imported(self, imported: Imported) -> None: ...

    def proposals(self, proposals: Sequence[Proposal], *, if_none: str) -> None: ...

    def proposal_decided(self, proposal: Proposal) -> None: ...

    def key_made(self, issued: IssuedKey) -> None:
        """The only time the key is shown."""

    def keys(self, keys: Sequence[ApiKey], *, now: datetime) -> None: ...

    def key_revoked(self, id: str) -> None: ...

    def detail_stored(self, detail: Detail) -> None: ...

    def detail_list(self, found: Sequence[Detail]) -> None: ...

    def detail_part(self, page: DetailPage) -> None: ...

    def detail_changed(self, key: str, done: str) -> None: ...

    def tour_stop(self, number: int, stop: Stop) -> None: ...

    def tour_line(self, line: str) -> None:
        """A command the tour runs next."""

    def tour_ended(self, seen: Sequence[Seen]) -> None:
        """`seen` is for those who could not be shown anything before."""

    def distributed(self, tables: Sequence[str]) -> None: ...

    def context(self, made: WorkingMemory, *, is_summary: bool, see: Callable[[], str]) -> None:
        """`see` looks up the command that shows it again later; empty: none does."""

    def context_calls(self, calls: Sequence[ContextCall]) -> None: ...

    def context_call(self, call: ContextCall) -> None: ...
    def ingested(self, ingested: Ingested) -> None:
        """What failed goes to whoever looks on."""

    def documents(self, documents: Sequence[Document], *, next_cursor: str | None) -> None: ...

    def document(self, document: Document, passages: Sequence[Chunk]) -> None: ...

    def sessions(self, sessions: Sequence[Session], *, next_cursor: str | None) -> None: ...

    def messages(self, messages: Sequence[Message], *, next_cursor: int | None) -> None: ...

    def conversation(self, conversation: Conversation) -> None: ...

    def chat_begun(self, agent: str, model: str, session_id: str | None) -> None: ...

    def answer_piece(self, text: str) -> None:
        """A piece of an answer, as it comes."""

    def tool_used(self, use: ToolUse) -> None: ...

    def answered(self, answer: AgentAnswer) -> None:
        """All of an answer, whose pieces were shown already."""

    def chat_note(self, text: str) -> None:
        """What is said about a conversation, not in it."""

    def session_deleted(self, id: str) -> None: ...

    def skills(self, skills: Sequence[Skill], problems: Sequence[str], *, is_whole: bool) -> None:
        """What is wrong with the files goes to whoever looks on."""


def pick_view(*, as_json: bool) -> View:
    """The view for whoever reads our output; only that one is imported."""
    if as_json:
        name = "json_view.JsonView"
    elif sys.stdout is not None and sys.stdout.isatty():
        name = "terminal.TerminalView"
    else:
        name = "plain.PlainView"
    module, _, view = name.partition(".")
    return cast(View, getattr(import_module(f"recollect.cli.{module}"), view)())


def show_captured(shown: CaptureShown) -> None:
    """The output as it is or, if it is long, the line that stands for it; on standard error where it was seen before,
    so that the next program in a pipe reads what the command wrote, and nothing else."""
    if shown.captured.is_captured:
        print(safe(shown.captured.text), file=sys.stderr if shown.is_seen else sys.stdout)
    elif not shown.is_seen:
        sys.stdout.flush()
        shown.file.seek(0)
        sys.stdout.buffer.write(shown.file.read())


def json_record(record: Any) -> Json:
    """Every field by its name, except whose it is."""
    names = (each.name for each in fields(record))
    return {name: json_value(getattr(record, name)) for name in names if name != "owner"}


def json_value(value: Any) -> Any:
    """A field's value as JSON has it: times in UTC with Z."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, StrEnum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def plain_time(time: datetime) -> str:
    """A time for a line of text: to the second, in UTC with Z."""
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def safe(text: str) -> str:
    """`text` with control characters made visible; line breaks and tabs stay.

    >>> safe("red \\x1b[31malert")
    'red \\\\x1b[31malert'
    """
    return UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """`text` on one line, safe to print.

    >>> one_line("one\\n\\n  two\\tthree")
    'one two three'
    """
    return safe(" ".join(text.split()))


def proposal_outcome(proposal: Proposal) -> str:
    """What came of a decision."""
    made = f": {proposal.memory_id} stands for {', '.join(fold.id for fold in proposal.folds)}"
    return f"{proposal.state.value.capitalize()} {proposal.id}{made if proposal.state is ProposalState.APPLIED else ''}"


def similar_hint(memory: Memory) -> str:
    """What to do about a memory that says nearly the same as the one just kept."""
    text = one_line(memory.text)
    shown = text if len(text) <= HINT_CHARS else f"{text[: HINT_CHARS - 1]}…"
    return f"similar: {memory.id} {shown}; to replace it use --supersedes {memory.id}"


def missing_hint(unanswered: Unanswered) -> str:
    """That an answer is not complete, and why."""
    return f"missing: {unanswered.source}. {one_line(unanswered.reason)}"


def key_state(key: ApiKey, now: datetime) -> str:
    """Whether a key opens anything, in a word."""
    return "valid" if is_valid(key, now) else "expired" if key.revoked_at is None else "revoked"


def key_limits(key: ApiKey) -> str:
    """What a key is limited to besides its scope; empty: nothing."""
    named = [f"agent {each}" for each in key.agents]
    return ", ".join([*named, *([] if key.trust is None else [f"trust {key.trust.value}"])])


def mark(is_ok: bool) -> str:
    """✓ or ✗, or words where the output cannot show them."""
    try:
        "✓✗".encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return "ok" if is_ok else "!!"
    return "✓" if is_ok else "✗"
