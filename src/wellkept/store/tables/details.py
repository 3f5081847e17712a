"""Rows of details and of their contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from wellkept.errors import NotFound
from wellkept.language.text import fold
from wellkept.model import Agent, BackupReport, Detail, Owner
from wellkept.model.stored import Place
from wellkept.store.contents import Content, ContentDraft, ContentRows
from wellkept.store.engine import Engine, Progress, Unit, Units
from wellkept.store.tables.agents import make_agent
from wellkept.store.tables.rows import detail_from, detail_values, merge_parts, owner_params

NO_SUCH_DETAIL = "There is no such detail."
AFTER_ALL = datetime(9999, 1, 1, tzinfo=UTC)
"""Start of a listing without a cursor."""


class DetailRows(Units):
    """Details of an agent."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._contents = ContentRows(engine)

    def begin_content(self, tenant: str) -> ContentDraft:
        """Start a new text for `add_detail`. The caller must close it."""
        return self._contents.begin(tenant)

    def add_detail(self, detail: Detail, draft: ContentDraft) -> Detail:
        """Store the detail with the sealed draft as its content; equal contents are stored once per tenant.

        Raises: Conflict when the agent has a detail with that key.
        """
        owner, now = detail.owner, detail.created_at
        draft.seal()
        chunks = draft.chunks
        stored = replace(
            detail, content_hash=chunks.content_hash, size=chunks.size, chars=chunks.chars, lines=chunks.lines
        )

        def add(unit: Unit) -> Detail:
            make_agent(unit, Agent(owner=owner, name=owner.agent, created_at=now, updated_at=now))
            self._contents.keep(unit, draft, now=now)
            unit.put("add_detail", **detail_values(stored), folded=search_text(stored))
            return stored

        return self.write(owner.tenant, add)

    def get_detail(self, owner: Owner, key: str) -> Detail:
        """Return one detail. Raises: NotFound."""
        row = self.read(owner.tenant, lambda unit: unit.one("find_detail", **owner_params(owner), key=key))
        if row is None:
            raise NotFound(NO_SUCH_DETAIL)
        return detail_from(row)

    def list_details(
        self,
        owner: Owner,
        *,
        session_id: str | None = None,
        is_active: bool | None = True,
        before: Place | None = None,
        limit: int = 100,
    ) -> Sequence[Detail]:
        """List details, newest first, starting after `before` (its time and key); `is_active` None lists all."""
        values = {
            "session": session_id,
            "is_active": is_active,
            "before_at": AFTER_ALL if before is None else before[0],
            "before_key": "" if before is None else before[1],
            "limit": limit,
        }

        def read(unit: Unit) -> list[list[Detail]]:
            parts = (unit.all("list_details", **owner_params(part), **values) for part in owner.parts)
            return [[*map(detail_from, rows)] for rows in parts]

        return merge_parts(self.read(owner.tenant, read), limit, lambda detail: (detail.created_at, detail.key))

    def search_details(
        self, owner: Owner, words: Sequence[str], *, session_id: str | None = None, offset: int = 0, limit: int = 20
    ) -> Sequence[Detail]:
        """Search active details for words in key, type, description, summary or source, ignoring case.

        Details with most of the words come first, then the newest; the first `offset` are skipped.
        """
        values = {
            "words": self._engine.texts([fold(word) for word in words]),
            "session": session_id,
            "offset": offset,
            "limit": limit,
        }
        rows = self.read(owner.tenant, lambda unit: unit.all("search_details", **owner_params(owner), **values))
        return [detail_from(row) for row in rows]

    def set_detail_active(self, owner: Owner, key: str, is_active: bool) -> Detail:
        """Show or hide a detail. Raises: NotFound."""

        def change(unit: Unit) -> Detail:
            if not unit.run("set_detail_active", **owner_params(owner), key=key, is_active=is_active):
                raise NotFound(NO_SUCH_DETAIL)
            return _get_detail(unit, owner, key)

        return self.write(owner.tenant, change)

    def delete_detail(self, owner: Owner, key: str) -> Detail:
        """Delete a detail and return it. Its content stays until `sweep_contents`. Raises: NotFound."""

        def delete(unit: Unit) -> Detail:
            detail = _get_detail(unit, owner, key)
            if not unit.run("delete_detail", **owner_params(owner), key=key):
                raise NotFound(NO_SUCH_DETAIL)
            return detail

        return self.write(owner.tenant, delete)

    def open_content(self, owner: Owner, key: str) -> Content:
        """Open the text of a detail. Raises: NotFound; StoreError when the content is missing or damaged."""
        return self._contents.open(self.get_detail(owner, key))

    def sweep_contents(self, tenant: str, *, stored_before: datetime, unknown_too: bool = False) -> int:
        """Remove contents without a detail, and move contents in files of version 0.2 into rows; return how many went.

        Contents stored after `stored_before` stay, because their detail may not be committed yet. Files this database
        never recorded stay too, unless `unknown_too`.
        """
        return self._contents.sweep(tenant, stored_before=stored_before, unknown_too=unknown_too)

    def count_orphans(self, tenant: str, *, stored_before: datetime) -> int:
        """Count the contents `sweep_contents` would remove."""
        return self._contents.count_orphans(tenant, stored_before=stored_before)

    def drop_content(self, tenant: str, content_hash: str) -> bool:
        """Remove one content at once unless a detail uses it; return True if it was removed."""
        return self._contents.drop(tenant, content_hash)

    def back_up(
        self, file: IO[bytes], *, scratch: Path, now: datetime, progress: Progress | None = None
    ) -> BackupReport:
        """Write a backup of one moment to `file`, with temporary files in `scratch`.

        Raises: Invalid when the engine has its own backups; StoreError.
        """
        self._contents.move(now=now)
        return self._engine.back_up(file, scratch=scratch, now=now, progress=progress)


def _get_detail(unit: Unit, owner: Owner, key: str) -> Detail:
    row = unit.one("find_detail", **owner_params(owner), key=key)
    if row is None:
        raise NotFound(NO_SUCH_DETAIL)
    return detail_from(row)


def search_text(detail: Detail) -> str:
    """Return the folded text in which details are searched."""
    source = detail.metadata.get("source", "")
    return fold("\n".join([detail.key, detail.type, detail.description, detail.summary, str(source)]))
