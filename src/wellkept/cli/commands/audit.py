"""The audit log of a tenant: events are listed and recorded, and its heads kept outside the store."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import click

from wellkept.cli import output as out
from wellkept.cli.options import read_text
from wellkept.cli.run import REFUSED, Run
from wellkept.errors import Conflict, Invalid
from wellkept.model import AuditEvent, AuditHead, AuditReport, Json

MAX_NAMED = 5
"""Problems named in an error."""

OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The head of a tenant's audit log at a time."""

    tenant: str
    id: int
    hash: str
    at: str


def audit(
    run: Run,
    query: str = "",
    verify: bool = False,
    anchor: Path | None = None,
    where: str = "",
    limit: int = 20,
    before: int | None = None,
) -> None:
    """Show what was done in the tenant, newest first.

    query: Text the message must contain, ignoring case.
    --verify: Check that the log is intact instead of showing it.
    --anchor FILE: Check every tenant's log (or --tenant's), also against the heads in this file; add the current ones.
    --where: A filter by action, agent, actor and at (docs/filters.md).
    --before EVENT: Continue after this one.

    Example: wellkept data audit m-1 --limit 5"""
    if not verify and anchor is None:
        found = run.tenant.audit.search(query, where=where, before=before, limit=limit)
        page = ("--before", lambda each: each.id)
        none = "Nothing of that kind was done." if query or where else "Nothing has been done yet."
        run.show(out.list_records(EVENT_COLUMNS, found, json=event_json, limit=limit, page=page, if_empty=none))
        return
    if query or where:
        raise click.BadParameter("--verify and --anchor check the whole log and take no query.")
    if anchor is not None:
        _anchor_logs(run, anchor)
        return
    report = run.tenant.audit.verify()
    run.show(out.say(_describe_report(report), out.json_record(report), is_ok=report.is_intact))
    if not report.is_intact:
        raise click.exceptions.Exit(REFUSED)


def record(run: Run, action: str, message: str) -> None:
    """Add an event to the audit log, for good; --agent says who did it.

    action: A stable word with a dot, such as order.refund.
    message: What was done; - reads standard input.

    Example: wellkept data record order.refund 'Refund of 30 euro approved' --agent billing"""
    event = run.tenant.audit.record(action, read_text(message), agent=run.named_agent)
    done: list[out.Cell] = [out.tick(True), f"Recorded as event {event.id}"]
    run.show(out.Output(event_json(event), [out.Table(EVENT_COLUMNS, [event], only="pipe"), done]))


def _anchor_logs(run: Run, file: Path) -> None:
    """Check every log against its chain and the heads in `file`; then add its head to the file.

    Raises: Conflict when a log does not match, in which case nothing is kept; Invalid.
    """
    earlier = _read_heads(file)
    chosen = run.flags.get("tenant")
    tenants = [str(chosen)] if chosen else sorted({*run.store.list_tenants(), *earlier})
    anchors, notes, problems = list[Anchor](), list[str](), list[str]()
    for tenant in tenants:
        audit = run.store.tenant(tenant).audit
        report = audit.verify()
        if not report.is_intact:
            problems.append(f"{tenant}: {report.problem}")
        for each in audit.check_heads(earlier.get(tenant, ())):
            if each.says:
                (notes if each.is_ok else problems).append(f"{tenant}: {each.says}")
        if report.head.id:
            at = run.store.now().isoformat()
            anchors.append(Anchor(tenant=tenant, id=report.head.id, hash=report.head.hash, at=at))
    if problems:
        more = f" And {len(problems) - MAX_NAMED:,} more." if len(problems) > MAX_NAMED else ""
        raise Conflict(f"{' '.join(problems[:MAX_NAMED])}{more} No head was kept.")
    heads = [asdict(each) for each in anchors]
    _append(file, "".join(json.dumps(each) + "\n" for each in heads).encode())
    document = {"heads": heads, "notes": notes}
    run.show(out.list_records(ANCHOR_COLUMNS, anchors, document=document, notes=map(out.Remark, notes)))


def _read_heads(file: Path) -> Mapping[str, Sequence[AuditHead]]:
    """Return the heads a file holds, by tenant. Raises: Invalid."""
    heads = defaultdict[str, list[AuditHead]](list)
    try:
        lines = file.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return heads
    except (OSError, ValueError) as error:
        raise Invalid(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            datetime.fromisoformat(found["at"])
            heads[found["tenant"] + ""].append(AuditHead(id=found["id"], hash=found["hash"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            raise Invalid(f"Line {number} of {file} is not a head; correct or remove it.") from None
    return heads


def _append(file: Path, lines: bytes) -> None:
    """Append the lines and sync them to disk. Raises: Invalid."""
    try:
        with open(os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY), "rb+", 0) as anchors:
            size = os.fstat(anchors.fileno()).st_size
            # The last line was cut off, or typed by hand.
            if size and os.pread(anchors.fileno(), 1, size - 1) != b"\n":
                lines = b"\n" + lines
            written = anchors.write(lines)
            os.fsync(anchors.fileno())
    except OSError as error:
        raise Invalid(f"{file} cannot be written: {error.strerror}.") from error
    if written != len(lines):
        raise Invalid(f"{file} took only a part of the heads; free some space and remove its last line.")


EVENT_COLUMNS = (
    out.Column("Event", lambda each: each.id),
    out.Column("When", lambda each: each.at, "dim", is_wide=True),
    out.Column("", lambda each: each.action, only="pipe"),
    out.Column("Agent", lambda each: each.agent_id, "cyan", is_wide=True),
    out.Column("By", lambda each: each.actor, "dim", only="terminal", is_wide=True),
    out.Column("Done", lambda each: f"[damaged] {each.message}" if each.is_damaged else each.message),
    out.Column("", lambda each: each.actor, only="pipe"),
)
ANCHOR_COLUMNS = (
    out.Column("Tenant", lambda each: each.tenant, "cyan", is_whole=True),
    out.Column("Event", lambda each: str(each.id), is_whole=True),
    out.Column("Hash", lambda each: each.hash, is_whole=True),
)


def event_json(event: AuditEvent) -> Json:
    """Return an event in JSON, with who caused it."""
    return out.json_record(event) | {"actor": event.actor}


def _describe_report(report: AuditReport) -> str:
    """Say in a few sentences whether the log is intact."""
    sentences = [f"The log is whole: {out.count(report.events, 'event')}."]
    if not report.is_intact:
        sentences = [out.one_line(report.problem)]
        sentences += [f"Broken: {', '.join(map(str, report.broken))}."] if len(report.broken) > 1 else []
    if report.keyed_from:
        sentences.append(f"Keyed from event {report.keyed_from} on.")
    if report.head.id:
        sentences.append(f"Head: {report.head.id} {out.one_line(report.head.hash)}")
    return " ".join(sentences)
