"""Details: big texts that are stored completely, described in a few lines and read in parts.

A text is streamed to the store piece by piece and kept unchanged. Its description, summary and metadata may enter
prompts, so credentials in them are redacted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from secrets import choice
from typing import TYPE_CHECKING, Any

from wellkept.details import rules_keys as rules
from wellkept.details.describe import Describe, Description
from wellkept.details.grep import read_matches
from wellkept.details.json_path import read_json
from wellkept.details.parts import StoredText, read_lines, read_page
from wellkept.details.pieces import TextSource, iter_pieces
from wellkept.details.rules_digest import TextDigester
from wellkept.errors import Conflict, Invalid, NotFound
from wellkept.extension import Clock
from wellkept.language.text import fold
from wellkept.memory.drafts import check_own, find_session_user
from wellkept.model import AuditEvent, Detail, DetailPage, Owner
from wellkept.secrets.check import SecretGuard
from wellkept.store.content.rows import ContentDraft

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

NO_SUCH_DETAIL = "There is no such detail."
EMPTY = "The content is empty; there is nothing to store."
MAX_OFFSET = 1_000_000_000
MAX_WORDS = 20
KEY_ATTEMPTS = 5
NOT_A_CHARACTER = "\ufffd"


class Details:
    """Service that stores, finds, reads and deletes details."""

    def __init__(self, store: SqlStore, guard: SecretGuard, describe: Describe, now: Clock) -> None:
        self._store = store
        self._guard = guard
        self._describe = describe
        self._now = now

    def store(
        self,
        owner: Owner,
        content: TextSource,
        *,
        description: str = "",
        type: str = "text",
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Detail:
        """Store a text; it is on disk when this returns. A stream is read in pieces.

        Without a description, one is generated from the text.

        Raises: Invalid; SecretRejected when an id looks like one.
        """
        clean_metadata = self._redact(owner, rules.check_metadata(metadata))
        line = self._redact(owner, rules.check_description(description))
        type, session_id = rules.check_type(type), rules.check_detail_session(session_id)
        self._guard.check_names(owner.tenant, agent_id=owner.agent, session_id=session_id, type=type)
        draft, digest, chars = self._store.begin_content(owner.tenant), TextDigester(), 0
        try:
            for piece in iter_pieces(content):
                draft.feed(piece)
                digest.feed(piece)
                chars += len(piece)
            draft.seal()
            if not chars:
                raise Invalid(EMPTY)
            described = self._describe_text(owner, digest, _source(clean_metadata), is_named=bool(line))
            detail = Detail(
                key=rules.slug(line) or rules.slug(_source(clean_metadata)) or rules.slug(type),
                owner=owner.whole,
                user=owner.user or find_session_user(self._store, owner, session_id),
                type=type,
                description=line or described.brief,
                summary=described.summary,
                session_id=session_id,
                metadata=clean_metadata,
                created_at=self._now(),
            )
            return self._add_unique(detail, draft, failure=described.failure)
        finally:
            draft.close()

    def read(self, owner: Owner, key: str, part: rules.PartRequest) -> DetailPage:
        """Return a part of the text, and a note on the rest.

        Raises: NotFound; Invalid; StoreError when the text is missing or damaged.
        """
        if not self.get(owner, key).is_active:
            raise NotFound(NO_SUCH_DETAIL)
        text = StoredText(self._store.open_content(owner, key))
        if part.grep is not None:
            return read_matches(key, text, part)
        if part.json_path is not None:
            return read_json(owner.tenant, key, text, part)
        if part.lines is not None or part.head is not None or part.tail is not None:
            return read_lines(key, text, part)
        return read_page(key, text, part)

    def get(self, owner: Owner, key: str) -> Detail:
        """Return a detail by its key. Raises: NotFound."""
        if not rules.is_key(key):
            raise NotFound(NO_SUCH_DETAIL)
        return self._store.get_detail(owner, key)

    def search(
        self, owner: Owner, query: str = "", *, session_id: str | None = None, offset: int = 0, limit: int = 20
    ) -> Sequence[Detail]:
        """Return details by the number of words found in key, type, description, summary or source.

        Without words, return the newest.

        Raises: Invalid.
        """
        words = list(dict.fromkeys(fold(query).split()))[:MAX_WORDS]
        session = rules.check_detail_session(session_id)
        if type(offset) is not int or not 0 <= offset <= MAX_OFFSET:
            raise Invalid(f"offset must be a whole number from 0 to {MAX_OFFSET:,}.")
        if not words:
            if offset:
                raise Invalid("offset needs words to search for; list the details to see all of them.")
            return self._store.list_details(owner, session_id=session, limit=limit)
        return self._store.search_details(owner, words, session_id=session, offset=offset, limit=limit)

    def set_active(self, owner: Owner, key: str, is_active: bool) -> Detail:
        """Hide a detail, so that it is kept but not found or read, or show it again. Raises: NotFound, Forbidden."""
        check_own(owner, self.get(owner, key).user)
        now, done = self._now(), "shown again" if is_active else "hidden"

        def change() -> Detail:
            changed = self._store.set_detail_active(owner, key, is_active)
            self._record(changed, "detail.show" if is_active else "detail.hide", done, now)
            return changed

        return self._store.transaction(owner.tenant, change)

    def delete(self, owner: Owner, key: str) -> None:
        """Delete a detail, and its text unless another detail shares it. Raises: NotFound, Forbidden."""
        check_own(owner, self.get(owner, key).user)
        now = self._now()

        def delete() -> Detail:
            deleted = self._store.delete_detail(owner, key)
            self._record(deleted, "detail.delete", "deleted", now)
            return deleted

        deleted = self._store.transaction(owner.tenant, delete)
        self._store.drop_content(owner.tenant, deleted.content_hash)

    def _describe_text(self, owner: Owner, digest: TextDigester, source: str, *, is_named: bool) -> Description:
        """Return summary and description of a text, redacted and storable by every engine."""
        redact = partial(self._guard.redact, owner.tenant)
        described = self._describe(digest, source=source, redact=redact, is_named=is_named)
        summary, brief = (self._redact(owner, _make_storable(each)) for each in (described.summary, described.brief))
        return replace(described, summary=summary, brief=brief[: rules.MAX_DESCRIPTION_CHARS])

    def _add_unique(self, detail: Detail, draft: ContentDraft, *, failure: str) -> Detail:
        """Add a detail with a random suffix to its key, so that the key is unique."""
        for attempt in range(KEY_ATTEMPTS):
            suffix = "".join(choice(rules.SUFFIX_ALPHABET) for _ in range(rules.SUFFIX_CHARS))
            named = replace(detail, key=f"{detail.key}-{suffix}")
            try:
                return self._store.transaction(detail.owner.tenant, partial(self._add, named, draft, failure))
            # The agent already has a detail with this key.
            except Conflict:
                if attempt == KEY_ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _add(self, detail: Detail, draft: ContentDraft, failure: str) -> Detail:
        added = self._store.add_detail(detail, draft)
        self._record(added, "detail.add", "stored", added.created_at)
        if failure:
            done = f"described by rules alone, as the model could not: {failure.rstrip('.')}"
            self._record(added, "detail.describe", done, added.created_at)
        return added

    def _redact(self, owner: Owner, value: Any) -> Any:
        """Redact credentials in texts, lists and mappings."""
        if isinstance(value, str):
            return self._guard.redact(owner.tenant, value)
        if isinstance(value, list):
            return [self._redact(owner, each) for each in value]
        if isinstance(value, dict):
            return {name: self._redact(owner, each) for name, each in value.items()}
        return value

    def _record(self, detail: Detail, action: str, done: str, now: datetime) -> None:
        """Record an audit event that names only the random suffix of the key; its start quotes the description."""
        suffix = detail.key.rpartition("-")[2]
        message = f"Detail …-{suffix} ({detail.type}, {detail.chars:,} characters) was {done}."
        meta = {"key_suffix": suffix, "type": detail.type, "chars": detail.chars}
        owner = detail.owner
        event = AuditEvent(tenant=owner.tenant, at=now, action=action, agent_id=owner.agent, message=message, meta=meta)
        self._store.add_event(event)


def _make_storable(text: str) -> str:
    """Replace characters that not every engine can store."""
    return text.encode("utf-8", "replace").decode().replace("\x00", NOT_A_CHARACTER)


def _source(metadata: Mapping[str, Any]) -> str:
    source = metadata.get("source")
    return source if isinstance(source, str) else ""
