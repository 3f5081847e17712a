"""One memory: its versions, corrections, near-duplicates and prompts; edit, approve, delete."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from difflib import SequenceMatcher
from typing import Annotated, Literal

from fastapi import Form, Path
from fastapi.responses import Response

from wellkept.api.views import PAGE
from wellkept.errors import Conflict, Invalid, NotFound
from wellkept.model import BlockItem, ContextCall, Memory, MemoryVersion
from wellkept.server.console.pages import AtAgent, page_router, render_value, split_words
from wellkept.server.console.prompts import MESSAGE, find_questions
from wellkept.server.http.auth import CurrentAgent
from wellkept.server.http.routing import ADMIN, READ, WRITE
from wellkept.server.paging import fit_page

MAX_CHAIN = 20
CALLS = 20
"""Latest prompts that are searched for a memory."""

NEAR = timedelta(seconds=2)
MAX_WORDS = 2_000
"""Words of a text that are compared; the comparison takes quadratic time in the worst case."""

Piece = tuple[Literal["same", "added", "removed"], str]
"""Part of a text that both versions have, or only the newer or the older one."""

router = page_router("/agents/{agent}/memories")
MemoryId = Annotated[str, Path()]


@router.get("/{id}", scope=READ)
def show_memory(visit: AtAgent, id: MemoryId) -> Response:
    """Show a memory with all of its fields, its previous versions and similar memories."""
    return _memory_page(visit, id)


@router.post("/{id}", scope=WRITE)
def edit_memory(
    visit: AtAgent,
    id: MemoryId,
    text: Annotated[str, Form()] = "",
    tags: Annotated[str, Form()] = "",
    importance: Annotated[float | None, Form()] = None,
    version: Annotated[int | None, Form()] = None,
) -> Response:
    """Edit a memory; the form shows a refusal and keeps the text."""
    try:
        visit.memory.update(id, text=_lines(text), tags=split_words(tags), importance=importance, version=version)
    except (Invalid, Conflict) as error:
        return _memory_page(visit, id, problem=str(error), text=text, tags=tags)
    return visit.go("memories", id)


@router.get("/{id}/delete", scope=WRITE)
def ask_to_delete(visit: AtAgent, id: MemoryId) -> Response:
    """Ask for confirmation."""
    return visit.page("delete.html", memory=visit.memory.get(id))


@router.post("/{id}/delete", scope=WRITE)
def delete_memory(visit: AtAgent, id: MemoryId) -> Response:
    """Delete a memory and its history permanently."""
    visit.memory.forget(id)
    return visit.go()


@router.post("/{id}/approve", scope=ADMIN)
def approve_memory(visit: AtAgent, id: MemoryId) -> Response:
    """Approve a memory that is held or flagged."""
    visit.memory.review.approve(id)
    return visit.go("memories", id)


@router.post("/{id}/restore", scope=WRITE)
def restore_memory(visit: AtAgent, id: MemoryId) -> Response:
    """Make an archived or expired memory live again."""
    try:
        visit.memory.restore(id)
    except Conflict as error:
        return _memory_page(visit, id, problem=str(error))
    return visit.go("memories", id)


def _memory_page(
    visit: AtAgent, id: str, *, problem: str = "", text: str | None = None, tags: str | None = None
) -> Response:
    record, prompts = visit.memory.get(id), _find_prompts(visit.memory, id)
    versions = fit_page(visit.memory.history(id, limit=PAGE))
    return visit.page(
        "memory.html",
        memory=record,
        changes=_compare_versions(record, versions),
        versions=versions,
        chain=_find_chain(visit.memory, record),
        similar=visit.memory.review.similar(id),
        prompts=prompts,
        questions=find_questions(visit.memory, visit.memory.prompts.list(limit=CALLS, item=MESSAGE)) if prompts else {},
        is_conversation=_is_conversation(visit.memory, record.session_id),
        problem=problem,
        text=record.text if text is None else text,
        tags=", ".join(record.tags) if tags is None else tags,
    )


def _find_chain(memory: CurrentAgent, record: Memory) -> list[Memory]:
    """Return the memories that corrected each other, oldest first, with the given one; empty if there are no others."""
    chain = [record]
    while chain[0].supersedes and len(chain) < MAX_CHAIN:
        try:
            chain.insert(0, memory.get(chain[0].supersedes))
        except NotFound:
            break
    while (ended := chain[-1].valid_to) is not None and len(chain) < MAX_CHAIN:
        # A correction is written when the corrected one ends, unless it says another time.
        near = memory.list(state="all", since=ended - NEAR, until=ended + NEAR, limit=PAGE)
        found = [each for each in near if each.supersedes == chain[-1].id]
        if not found:
            break
        chain.append(found[0])
    return chain if len(chain) > 1 else []


def _find_prompts(memory: CurrentAgent, id: str) -> list[tuple[ContextCall, str, BlockItem]]:
    """Return the latest prompts that considered a memory, with the block that showed it or left it out."""
    found = []
    for call in memory.prompts.list(limit=CALLS, item=id):
        places = [(call, block.name, item) for block in call.blocks for item in block.items]
        # Several blocks may consider it; the one that shows it counts.
        found += sorted(places, key=lambda place: bool(place[2].left_out))[:1]
    return found


def _compare_versions(record: Memory, versions: Sequence[MemoryVersion]) -> list[tuple[MemoryVersion, list[Piece]]]:
    """Return each former version with its changes to the next one, newest first."""
    is_item, found = record.item_key is not None, []
    later = render_value(record) if is_item else record.text
    for each in versions:
        text = render_value(each) if is_item else each.text
        found.append((each, compare_words(text, later)))
        later = text
    return found


def compare_words(older: str, newer: str) -> list[Piece]:
    """Return the differences of two texts, word by word.

    >>> compare_words("Tea at four", "Tea at five")
    [('same', 'Tea at '), ('removed', 'four'), ('added', 'five')]
    """
    before, after = (re.findall(r"\w+|\s+|[^\w\s]", text) for text in (older, newer))
    if max(len(before), len(after)) > MAX_WORDS:
        return [("removed", older), ("added", newer)]
    pieces: list[Piece] = []
    for tag, start, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            pieces.append(("same", "".join(before[start:end])))
            continue
        if end > start:
            pieces.append(("removed", "".join(before[start:end])))
        if last > first:
            pieces.append(("added", "".join(after[first:last])))
    return pieces


def _is_conversation(memory: CurrentAgent, id: str | None) -> bool:
    """Return True if the session exists: a memory may name one that was never logged, or was deleted."""
    try:
        return id is not None and memory.sessions.get(id) is not None
    except NotFound:
        return False


def _lines(text: str) -> str:
    """Convert the line ends of browsers (CR LF)."""
    return text.replace("\r\n", "\n")
