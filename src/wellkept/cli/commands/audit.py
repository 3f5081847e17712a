"""The audit log of a tenant, with its heads kept outside the store."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import click

from wellkept.cli.options import Limit
from wellkept.cli.output import Column, Output, list_records, say
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import REFUSED, Run
from wellkept.cli.text import count, json_record, one_line
from wellkept.errors import Conflict, Invalid
from wellkept.model import AuditEvent, AuditHead, AuditReport, Json

MAX_NAMED = 5
"""Problems named in an error."""

OWNER_ONLY = 0o600
COMMAND_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The head of a tenant's audit log at a time."""

    tenant: str
    id: int
    hash: str
    at: datetime

    def as_json(self) -> dict[str, str | int]:
        return {"tenant": self.tenant, "id": self.id, "hash": self.hash, "at": self.at.isoformat()}


def audit(
    run: Run,
    query: Annotated[str, Argument(help="Text the message must contain, ignoring case.")] = "",
    verify: Annotated[bool, Option("--verify", help="Check that the log is intact instead of showing it.")] = False,
    anchor: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Check every tenant's log (or --tenant's), also against the heads in this file; add the current ones.",
        ),
    ] = None,
    anchor_command: Annotated[
        str, Option(metavar="COMMAND", help="Write the heads to this program's standard input instead.")
    ] = "",
    where: Annotated[str, Option(help="A filter by action, agent, actor and at (docs/filters.md).")] = "",
    limit: Limit = 20,
    before: Annotated[int | None, Option(metavar="EVENT", help="Continue after this one.")] = None,
) -> None:
    """Show what was done in the tenant, newest first.

    Example: wellkept data audit m-1 --limit 5"""
    is_anchored = anchor is not None or bool(anchor_command)
    if not verify and not is_anchored:
        found = run.tenant.audit.search(query, where=where, before=before, limit=limit)
        page = ("--before", lambda each: each.id)
        none = "Nothing of that kind was done." if query or where else "Nothing has been done yet."
        run.show(list_records(EVENT_COLUMNS, found, json=event_json, limit=limit, page=page, if_empty=none))
        return
    if query or where:
        raise click.BadParameter("--verify and --anchor check the whole log and take no query.")
    if is_anchored:
        _anchor_logs(run, anchor, anchor_command)
        return
    report = run.tenant.audit.verify()
    run.show(say(_verdict(report), json_record(report), is_ok=report.is_intact))
    if not report.is_intact:
        raise click.exceptions.Exit(REFUSED)


def _anchor_logs(run: Run, file: Path | None, command: str) -> None:
    """Check every log against its chain and the heads in `file`; then add its head to the file, or pass it on.

    Raises: Conflict when a log does not match, in which case nothing is kept; Invalid.
    """
    earlier = {} if file is None else _read(file)
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
            anchors.append(Anchor(tenant=tenant, id=report.head.id, hash=report.head.hash, at=run.store.now()))
    if problems:
        more = f" And {len(problems) - MAX_NAMED:,} more." if len(problems) > MAX_NAMED else ""
        raise Conflict(f"{' '.join(problems[:MAX_NAMED])}{more} No head was kept.")
    lines = "".join(json.dumps(each.as_json()) + "\n" for each in anchors).encode()
    if file is not None:
        _append(file, lines)
    if command:
        _pass_on(command, lines)
    listed = list_records(ANCHOR_COLUMNS, anchors, json=Anchor.as_json, notes=notes)
    heads = [each.as_json() for each in anchors]
    run.show(Output(json={"heads": heads, "notes": notes}, lines=listed.lines, blocks=listed.blocks))


def _read(file: Path) -> Mapping[str, Sequence[AuditHead]]:
    """Return the heads a file holds, by tenant. Raises: Invalid."""
    heads = defaultdict[str, list[AuditHead]](list)
    try:
        lines = file.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return heads
    except (OSError, ValueError) as error:
        raise Invalid(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            tenant, head = _parse_head(line, f"Line {number} of {file} is not a head; correct or remove it.")
            heads[tenant].append(head)
    return heads


def _parse_head(line: str, refusal: str) -> tuple[str, AuditHead]:
    try:
        found = json.loads(line)
        tenant, head = found["tenant"], AuditHead(id=found["id"], hash=found["hash"])
        datetime.fromisoformat(found["at"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Invalid(refusal) from None
    if not isinstance(tenant, str):
        raise Invalid(refusal)
    return tenant, head


def _append(file: Path, lines: bytes) -> None:
    """Append the lines and sync them to disk. Raises: Invalid."""
    try:
        is_new = not file.exists()
        with open(os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY), "rb+", 0) as out:
            size = os.fstat(out.fileno()).st_size
            # The last line was cut off, or typed by hand.
            if size and os.pread(out.fileno(), 1, size - 1) != b"\n":
                lines = b"\n" + lines
            written = out.write(lines)
            os.fsync(out.fileno())
        if is_new:
            _sync_folder(file.absolute().parent)
    except OSError as error:
        raise Invalid(f"{file} cannot be written: {error.strerror}.") from error
    if written != len(lines):
        raise Invalid(f"{file} took only a part of the heads; free some space and remove its last line.")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _pass_on(command: str, lines: bytes) -> None:
    """Write the lines to a program's standard input. Raises: Invalid when it cannot be run or fails."""
    try:
        words = shlex.split(command)
        done = subprocess.run(words, input=lines, stdout=subprocess.DEVNULL, timeout=COMMAND_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Invalid(f"{words[0]} did not end within {COMMAND_SECONDS} seconds; the heads may not be kept.") from None
    except (OSError, ValueError, IndexError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Invalid(f"--anchor-command cannot be run: {reason}.") from error
    if done.returncode:
        raise Invalid(f"{words[0]} ended with exit code {done.returncode}; the heads are not kept.")


EVENT_COLUMNS = (
    Column("Event", lambda each: each.id),
    Column("When", lambda each: each.at, "dim", only="wide"),
    Column("", lambda each: each.at, only="pipe"),
    Column("", lambda each: each.action, only="pipe"),
    Column("Agent", lambda each: each.agent_id, "cyan", only="wide"),
    Column("", lambda each: each.agent_id, only="pipe"),
    Column("By", lambda each: each.actor, "dim", only="wide"),
    Column("Done", lambda each: f"[damaged] {each.message}" if each.is_damaged else each.message),
    Column("", lambda each: each.actor, only="pipe"),
)
ANCHOR_COLUMNS = (
    Column("Tenant", lambda each: each.tenant, "cyan", is_whole=True),
    Column("Event", lambda each: str(each.id), is_whole=True),
    Column("Hash", lambda each: each.hash, is_whole=True),
)


def event_json(event: AuditEvent) -> Json:
    """Return an event in JSON, with who caused it."""
    return json_record(event) | {"actor": event.actor}


def _verdict(report: AuditReport) -> str:
    """Say in a few sentences whether the log is intact."""
    sentences = [f"The log is whole: {count(report.events, 'event')}."]
    if not report.is_intact:
        sentences = [one_line(report.problem)]
        sentences += [f"Broken: {', '.join(map(str, report.broken))}."] if len(report.broken) > 1 else []
    if report.keyed_from:
        sentences.append(f"Keyed from event {report.keyed_from} on.")
    if report.head.id:
        sentences.append(f"Head: {report.head.id} {one_line(report.head.hash)}")
    return " ".join(sentences)
