"""Big texts behind references: a row for each, and its content in chunks that are read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from recollect.model import Detail, Owner
from recollect.ports.transcripts import Place


class ContentDraft(Protocol):
    """A text on its way into the store, piece by piece: only the piece at hand is in memory."""

    def feed(self, text: str) -> None:
        """Append to the text.

        Raises: StoreError.
        """

    def seal(self) -> None:
        """End the text and make it last. To be called outside of any transaction.

        Raises: StoreError.
        """

    def close(self) -> None:
        """Let go of what was not added. Calling it again does nothing."""


class Content(Protocol):
    """A stored text in chunks of equally many characters, each of which can be read without the others."""

    chars: int
    lines: int
    chunk_chars: int
    newlines: Sequence[int]  # line breaks before each chunk

    def chunk(self, position: int) -> str:
        """One chunk of the text; 0 is the first.

        Raises: StoreError when it is missing or damaged.
        """


class DetailStore(Protocol):
    """An agent's details."""

    def begin_content(self, tenant: str) -> ContentDraft:
        """A new text for `add_detail`; whoever begins one closes it."""

    def add_detail(self, detail: Detail, draft: ContentDraft) -> Detail:
        """Keep the detail with the sealed draft as its content; the same content is kept once for a tenant.

        Raises: Conflict when the agent has a detail of that key.
        """

    def get_detail(self, owner: Owner, key: str) -> Detail:
        """Raises: NotFound."""

    def list_details(
        self,
        owner: Owner,
        *,
        session_id: str | None = None,
        is_active: bool | None = True,
        before: Place | None = None,
        limit: int = 100,
    ) -> Sequence[Detail]:
        """Newest first, beginning behind `before` (when one was stored, and its key); `is_active` None lists all."""

    def search_details(
        self, owner: Owner, words: Sequence[str], *, session_id: str | None = None, offset: int = 0, limit: int = 20
    ) -> Sequence[Detail]:
        """Active ones in whose key, type, description, summary or source any of the words stands, ignoring case: those
        with most of the words first, then the newest, without the first `offset`."""

    def set_detail_active(self, owner: Owner, key: str, is_active: bool) -> Detail:
        """Raises: NotFound."""

    def delete_detail(self, owner: Owner, key: str) -> Detail:
        """The detail as it was. Its content stays until it is swept.

        Raises: NotFound.
        """

    def open_content(self, owner: Owner, key: str) -> Content:
        """The text of a detail.

        Raises: NotFound; StoreError when the content is missing or damaged.
        """

    def sweep_contents(self, tenant: str, *, stored_before: datetime, unknown_too: bool = False) -> int:
        """Remove contents no detail has, and temporary files of dead writers; return how many. Younger ones stay: a
        detail may be on its way to them. Contents this database never knew stay too, unless `unknown_too`."""

    def drop_content(self, tenant: str, content_hash: str) -> bool:
        """Remove one content at once, unless a detail has it; whether it was removed."""
