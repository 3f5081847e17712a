"""For pipes and files: one record on a line, fields set apart by tabs, the text last and whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.cli.chat.plain import PlainChat
from recollect.cli.consolidation.plain import PlainConsolidation
from recollect.cli.context.plain import PlainContext
from recollect.cli.demo.plain import PlainTour
from recollect.cli.details.plain import PlainDetails
from recollect.cli.erasure.plain import PlainErasure
from recollect.cli.history.plain import PlainHistory
from recollect.cli.knowledge.plain import PlainKnowledge
from recollect.cli.transcripts.plain import PlainTranscripts
from recollect.cli.transfer.plain import PlainTransfer
from recollect.cli.view import (
    AgentShown,
    Anchor,
    CaptureShown,
    SettingShown,
    Shown,
    key_limits,
    key_state,
    mark,
    missing_hint,
    one_line,
    plain_time,
    safe,
    show_captured,
    similar_hint,
)
from recollect.model import ApiKey, AuditReport, Check, IssuedKey, Memory, MemoryVersion, Recalled
from recollect.policy.recall.evaluation import METRICS

if TYPE_CHECKING:
    from recollect.evaluation import Evaluation
    from recollect.services.memories.secrets import Sighting
    from recollect.services.upkeep.maintain import MaintenanceReport

EMPTY = "-"
REPORT_EVERY = 1000


class PlainView(
    PlainDetails,
    PlainKnowledge,
    PlainHistory,
    PlainConsolidation,
    PlainContext,
    PlainTranscripts,
    PlainTour,
    PlainErasure,
    PlainChat,
    PlainTransfer,
):
    """`View` as lines without colours or frames."""

    is_document = False

    def captured(self, shown: CaptureShown) -> None:
        show_captured(shown)

    def remembered(self, shown: Shown, similar: Sequence[Memory]) -> None:
        print(_line(shown))
        for each in similar:
            print(similar_hint(each), file=sys.stderr)  # for whoever looks on; the next program gets the record alone

    def edited(self, shown: Shown) -> None:
        print(_line(shown))

    def forgotten(self, id: str) -> None:
        print(f"Forgotten: {id}")

    def memory(self, shown: Shown, history: Sequence[MemoryVersion]) -> None:
        for name, value in details(shown).items():
            print(f"{name}: {value}")
        print("text: " + safe(shown.memory.text).replace("\n", "\n  "))
        for each in history:
            print(f"version {each.version}, until {plain_time(each.replaced_at)}: {one_line(each.text)}")

    def memories(self, found: Sequence[Shown], *, next_cursor: str | None, if_none: str) -> None:
        for shown in found:
            print(_line(shown))

    def review(self, found: Sequence[Shown]) -> None:
        for shown in found:
            print(_line(shown, shown.memory.flag or EMPTY))

    def approved(self, shown: Shown) -> None:
        print(_line(shown))

    def approved_workspace(self, count: int) -> None:
        print(f"Approved: {count}")

    def injected(self, block: str | None) -> None:
        if block is not None:
            print(safe(block))

    def hits(self, hits: Recalled, *, is_explained: bool) -> None:
        if hits.heading:
            print(hits.heading, file=sys.stderr)
        for hit in hits:
            print("\t".join([f"{hit.score:.3f}", hit.id, one_line(hit.text)]))
            if is_explained:
                print(f"\t{hit.explain}")
        for each in hits.unanswered:
            print(missing_hint(each), file=sys.stderr)

    def agents(self, agents: Sequence[AgentShown], *, next_cursor: str | None) -> None:
        for each in agents:
            counts = ", ".join(f"{count} {kind}" for kind, count in each.counts.items())
            print("\t".join([safe(each.agent.id), counts, one_line(each.agent.name)]))

    def verified(self, report: AuditReport) -> None:
        print(verdict(report))

    def anchored(self, anchors: Sequence[Anchor], notes: Sequence[str]) -> None:
        for each in anchors:
            print("\t".join([safe(each.tenant), str(each.id), one_line(each.hash)]))
        for note in notes:
            print(one_line(note), file=sys.stderr)

    def settings(self, settings: Sequence[SettingShown]) -> None:
        for each in settings:
            print("\t".join([each.name, one_line(as_text(each.value)) or EMPTY, one_line(each.source)]))

    def checks(self, checks: Sequence[Check]) -> None:
        for each in checks:
            print(f"{mark(each.is_ok)} {each.name}: {one_line(each.says)}")
            if each.advice:
                print(f"  {one_line(each.advice)}")

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        done = 0

        def report(more: int) -> None:
            nonlocal done
            done += more
            if done // REPORT_EVERY > (done - more) // REPORT_EVERY:
                print(f"{what}: {done:,} of {total:,}" if total else f"{what}: {done:,}", file=sys.stderr)

        yield report

    def reembedded(self, count: int, embedder: str, *, mended: int) -> None:
        if mended:
            print(f"Mended {mended:,} {'entry' if mended == 1 else 'entries'} of the search index")
        if count or not mended:
            print(f"Embedded {count:,} with {embedder}")

    def maintained(self, report: MaintenanceReport) -> None:
        for name, value in asdict(report).items():
            print(f"{name}: {one_line(str(value)) or EMPTY}")

    def evaluated(self, found: Evaluation) -> None:
        print("\t".join(["type", "level", "questions", *METRICS]))
        for each in found.scores:
            for level, values in (("memory", each.memories), ("session", each.sessions)):
                if values:
                    measured = [f"{values[name]:.3f}" for name in METRICS]
                    print("\t".join([safe(each.type), level, str(each.questions), *measured]))
        print(f"recall: p50 {found.recall_p50_ms:.1f} ms, p95 {found.recall_p95_ms:.1f} ms")

    def sightings(self, found: Iterable[Sighting]) -> None:
        for each in found:
            print("\t".join([safe(each.owner.agent), each.id, ", ".join(each.rules)]))

    def allowed(self, count: int) -> None:
        print(f"Allowed: {count}")

    def key_made(self, issued: IssuedKey) -> None:
        print(issued.key)

    def keys(self, keys: Sequence[ApiKey], *, now: datetime) -> None:
        for each in keys:
            used = EMPTY if each.last_used_at is None else plain_time(each.last_used_at)
            state = key_state(each, now)
            made = plain_time(each.created_at)
            limits = key_limits(each) or EMPTY
            print("\t".join([each.id, each.scope.value, state, made, used, safe(each.name) or EMPTY, limits]))

    def key_revoked(self, id: str) -> None:
        print(f"Revoked: {safe(id)}")

    def distributed(self, tables: Sequence[str]) -> None:
        for name in tables:
            print(safe(name))


def as_text(value: str | float | list[str] | None) -> str:
    """A setting's value as it would be written in a variable."""
    return ",".join(value) if isinstance(value, list) else "" if value is None else str(value)


def verdict(report: AuditReport) -> str:
    """Whether the audit log is whole, as a sentence."""
    told = [f"The log is whole: {report.events:,} {'event' if report.events == 1 else 'events'}."]
    if not report.is_intact:
        told = [one_line(report.problem)]
        told += [f"Broken: {', '.join(map(str, report.broken))}."] if len(report.broken) > 1 else []
    if report.keyed_from:
        told.append(f"Keyed from event {report.keyed_from} on.")
    if report.head.id:
        told.append(f"Head: {report.head.id} {one_line(report.head.hash)}")
    return " ".join(told)


def details(shown: Shown) -> dict[str, str]:
    """What there is to say about a memory besides its text, by the names of its fields; the empty ones are left out."""
    memory = shown.memory
    names = [each.name for each in fields(memory) if each.name not in ("owner", "text")]
    values = {name: getattr(memory, name) for name in names} | {"state": shown.state}
    return {name: one_line(_as_words(value)) for name, value in values.items() if value not in (None, "", ())}


def _as_words(value: object) -> str:
    if isinstance(value, datetime):
        return plain_time(value)
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _line(shown: Shown, instead_of_tags: str = "") -> str:
    memory = shown.memory
    tags = instead_of_tags or ",".join(memory.tags) or EMPTY
    return "\t".join([memory.id, memory.kind.value, plain_time(memory.created_at), safe(tags), one_line(memory.text)])
