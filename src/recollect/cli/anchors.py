"""Keeping the heads of audit logs outside the store, in a file or by another program, and comparing them later."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from recollect.cli.run import Run
from recollect.cli.view import Anchor
from recollect.errors import Conflict, Invalid
from recollect.model import AuditHead

NAMED = 5
"""Of what is wrong, so much is told."""

OWNER_ONLY = 0o600
COMMAND_SECONDS = 60


def anchor(run: Run, file: Path | None, command: str) -> None:
    """Check every log against its chain and the heads kept in `file`; then keep its head there, or hand it over.

    Raises: Conflict when a log does not fit, in which case nothing is kept; Invalid.
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
        more = f" And {len(problems) - NAMED:,} more." if len(problems) > NAMED else ""
        raise Conflict(f"{' '.join(problems[:NAMED])}{more} No head was kept.")
    lines = "".join(json.dumps(each.as_json()) + "\n" for each in anchors).encode()
    if file is not None:
        _append(file, lines)
    if command:
        _hand_over(command, lines)
    run.view.anchored(anchors, notes)


def _read(file: Path) -> Mapping[str, Sequence[AuditHead]]:
    """Return the heads a file holds, by tenant.

    Raises: Invalid.
    """
    heads = defaultdict[str, list[AuditHead]](list)
    try:
        lines = file.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return heads
    except (OSError, ValueError) as error:
        raise Invalid(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            tenant, head = _parsed(line, f"Line {number} of {file} is not a head; correct or remove it.")
            heads[tenant].append(head)
    return heads


def _parsed(line: str, refusal: str) -> tuple[str, AuditHead]:
    try:
        said = json.loads(line)
        tenant, head = said["tenant"], AuditHead(id=said["id"], hash=said["hash"])
        datetime.fromisoformat(said["at"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Invalid(refusal) from None
    if not isinstance(tenant, str):
        raise Invalid(refusal)
    return tenant, head


def _append(file: Path, lines: bytes) -> None:
    """Write the lines behind what is there; when this returns they are on the disk.

    Raises: Invalid.
    """
    try:
        is_new = not file.exists()
        with open(os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY), "rb+", 0) as out:
            size = os.fstat(out.fileno()).st_size
            if size and os.pread(out.fileno(), 1, size - 1) != b"\n":  # its last line was cut off, or typed
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


def _hand_over(command: str, lines: bytes) -> None:
    """Give the lines to a program's standard input.

    Raises: Invalid when it cannot be run or fails.
    """
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
