"""For programs: one JSON document on standard output, and nothing else there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.cli.chat.json_view import JsonChat
from recollect.cli.consolidation.json_view import JsonConsolidation
from recollect.cli.context.json_view import JsonContext
from recollect.cli.demo.json_view import JsonTour
from recollect.cli.details.json_view import JsonDetails
from recollect.cli.erasure.json_view import JsonErasure
from recollect.cli.history.json_view import JsonHistory
from recollect.cli.json_text import write_json as _write
from recollect.cli.knowledge.json_view import JsonKnowledge
from recollect.cli.transcripts.json_view import JsonTranscripts
from recollect.cli.transfer.json_view import JsonTransfer
from recollect.cli.view import AgentShown, Anchor, CaptureShown, SettingShown, Shown, json_record, json_value, key_state
from recollect.model import ApiKey, AuditReport, Check, Hit, IssuedKey, Json, Memory, MemoryVersion, Recalled

if TYPE_CHECKING:
    from recollect.evaluation import Evaluation
    from recollect.services.memories.secrets import Sighting
    from recollect.services.upkeep.maintain import MaintenanceReport


class JsonView(
    JsonDetails,
    JsonKnowledge,
    JsonHistory,
    JsonConsolidation,
    JsonContext,
    JsonTranscripts,
    JsonTour,
    JsonErasure,
    JsonChat,
    JsonTransfer,
):
    """`View` as JSON: snake_case, times in UTC with Z."""

    is_document = True

    def captured(self, shown: CaptureShown) -> None:
        said = {"text": shown.captured.text, "captured": shown.captured.is_captured}
        said |= {"memory_key": shown.captured.memory_key, "source": shown.source, "status": shown.status}
        _write(said | {"exit_code": shown.exit_code, "duration": shown.duration})

    def remembered(self, shown: Shown, similar: Sequence[Memory]) -> None:
        _write(_memory(shown) | {"similar": [{"id": each.id, "text": each.text} for each in similar]})

    def edited(self, shown: Shown) -> None:
        _write(_memory(shown))

    def forgotten(self, id: str) -> None:
        _write({"ok": True, "id": id})

    def memory(self, shown: Shown, history: Sequence[MemoryVersion]) -> None:
        _write(_memory(shown) | {"history": [json_record(each) for each in history]})

    def memories(self, found: Sequence[Shown], *, next_cursor: str | None, if_none: str) -> None:
        _write({"items": [_memory(each) for each in found], "next_cursor": next_cursor})

    def review(self, found: Sequence[Shown]) -> None:
        _write({"items": [_memory(each) for each in found], "next_cursor": None})

    def approved(self, shown: Shown) -> None:
        _write(_memory(shown))

    def approved_workspace(self, count: int) -> None:
        _write({"approved": count})

    def injected(self, block: str | None) -> None:
        _write({"text": block})

    def hits(self, hits: Recalled, *, is_explained: bool) -> None:
        missing = [asdict(each) for each in hits.unanswered]
        _write(
            {
                "hits": [_hit(each, is_explained=is_explained) for each in hits],
                "missing": missing,
                "heading": hits.heading,
            }
        )

    def agents(self, agents: Sequence[AgentShown], *, next_cursor: str | None) -> None:
        _write({"items": [_agent(each) for each in agents], "next_cursor": next_cursor})

    def verified(self, report: AuditReport) -> None:
        said = asdict(report)
        _write({"ok": said.pop("is_intact")} | said)

    def anchored(self, anchors: Sequence[Anchor], notes: Sequence[str]) -> None:
        _write({"heads": [each.as_json() for each in anchors], "notes": list(notes)})

    def settings(self, settings: Sequence[SettingShown]) -> None:
        _write({"items": [asdict(each) for each in settings]})

    def checks(self, checks: Sequence[Check]) -> None:
        items = [{"name": each.name, "ok": each.is_ok, "says": each.says, "advice": each.advice} for each in checks]
        _write({"ok": all(each.is_ok for each in checks), "checks": items})

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        yield lambda done: None

    def reembedded(self, count: int, embedder: str, *, mended: int) -> None:
        _write({"ok": True, "embedded": count, "embedder": embedder, "mended": mended})

    def maintained(self, report: MaintenanceReport) -> None:
        _write(asdict(report) | {"archived": report.archived})

    def evaluated(self, found: Evaluation) -> None:
        scores = {each.type: asdict(each) for each in found.scores}
        speed = {"stored": found.stored, "store_seconds": found.store_seconds}
        times = {"recall_p50_ms": found.recall_p50_ms, "recall_p95_ms": found.recall_p95_ms}
        _write({"scores": list(scores.values()), **speed, **times})

    def sightings(self, found: Iterable[Sighting]) -> None:
        items = [{"agent": each.owner.agent, "id": each.id, "rules": list(each.rules)} for each in found]
        _write({"items": items})

    def allowed(self, count: int) -> None:
        _write({"allowed": count})

    def key_made(self, issued: IssuedKey) -> None:
        _write({"key": issued.key} | json_record(issued.record))

    def keys(self, keys: Sequence[ApiKey], *, now: datetime) -> None:
        _write({"items": [json_record(each) | {"state": key_state(each, now)} for each in keys], "next_cursor": None})

    def key_revoked(self, id: str) -> None:
        _write({"ok": True, "id": id})

    def distributed(self, tables: Sequence[str]) -> None:
        _write({"ok": True, "tables": list(tables)})


def _memory(shown: Shown) -> Json:
    return json_record(shown.memory) | {"state": shown.state.value}


def _hit(hit: Hit, *, is_explained: bool) -> Json:
    found: Json = {
        "source": hit.source.value,
        "id": hit.id,
        "text": hit.text,
        "score": hit.score,
        "parts": dict(hit.parts),
        "created_at": json_value(hit.created_at),
        "agent_id": hit.agent_id,
    }
    if hit.memory is not None:
        found |= {"kind": hit.memory.kind.value, "tags": list(hit.memory.tags)}
    return found | {"weights": dict(hit.weights), "explain": hit.explain} if is_explained else found


def _agent(shown: AgentShown) -> Json:
    counts = {kind.value: count for kind, count in shown.counts.items()}
    return {"id": shown.agent.id} | json_record(shown.agent) | {"memories_count": counts}
