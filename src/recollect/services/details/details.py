"""Big texts behind references: stored whole, described in a few lines, read in parts.

The text goes to the store as it comes, piece by piece, and is kept as it is. What is said about it reaches prompts, so
description, summary and metadata lose whatever looks like a credential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from secrets import choice
from typing import Any

from recollect.errors import Conflict, Invalid, NotFound
from recollect.model import AuditEvent, Detail, DetailPage, Owner
from recollect.policy.details import keys as rules
from recollect.policy.details.digest import Digest
from recollect.policy.text import checked_text, fold
from recollect.ports import Clock, ContentDraft, Store
from recollect.services.details.describe import Describe, Described
from recollect.services.details.grep import read_matches
from recollect.services.details.json_path import read_json
from recollect.services.details.parts import Text, read_lines, read_page
from recollect.services.details.pieces import Text as GivenText
from recollect.services.details.pieces import pieces
from recollect.services.memories.secrets import SecretGuard

NO_SUCH_DETAIL = "There is no such detail."
EMPTY = "There is nothing to store: the content is empty."
MAX_OFFSET = 1_000_000_000
MAX_WORDS = 20
KEY_ATTEMPTS = 5
NOT_A_CHARACTER = "\ufffd"


class Details:
    """Everything that stores, finds and reads details."""

    def __init__(self, store: Store, guard: SecretGuard, describe: Describe, now: Clock) -> None:
        self._store = store
        self._guard = guard
        self._describe = describe
        self._now = now

    def store(
        self,
        owner: Owner,
        content: GivenText,
        *,
        description: str = "",
        type: str = "text",
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Detail:
        """Keep a text; when this returns, it is on disk. Of a stream, only the piece at hand is in memory. Without a
        description, what the text itself shows of its kind and size is its description.

        Raises: Invalid.
        """
        about = self._redacted(owner, rules.checked_metadata(metadata))
        line = self._redacted(owner, rules.checked_description(description))
        type, session_id = rules.checked_type(type), rules.checked_session(session_id)
        draft, digest, chars = self._store.begin_content(owner.tenant), Digest(), 0
        try:
            for piece in pieces(content):
                draft.feed(piece)
                digest.feed(piece)
                chars += len(piece)
            draft.seal()
            if not chars:
                raise Invalid(EMPTY)
            described = self._described(owner, digest, _source(about), is_named=bool(line))
            detail = Detail(
                key=rules.slug(line) or rules.slug(_source(about)) or rules.slug(type),
                owner=owner,
                type=type,
                description=line or described.brief,
                summary=described.summary,
                session_id=session_id,
                metadata=about,
                created_at=self._now(),
            )
            return self._added(detail, draft, failure=described.failure)
        finally:
            draft.close()

    def read(
        self,
        owner: Owner,
        key: str,
        *,
        offset: int = 0,
        limit: int | None = None,
        lines: str | None = None,
        head: int | None = None,
        tail: int | None = None,
        grep: str | None = None,
        context: int = 2,
        json_path: str | None = None,
    ) -> DetailPage:
        """A part of the text, and what remains of it.

        Raises: NotFound; Invalid; StoreError when the text is missing or damaged.
        """
        part = rules.checked_part(
            offset=offset,
            limit=limit,
            lines=lines,
            head=head,
            tail=tail,
            grep=grep,
            context=context,
            json_path=json_path,
        )
        if not self.get(owner, key).is_active:
            raise NotFound(NO_SUCH_DETAIL)
        text = Text(self._store.open_content(owner, key))
        if part.grep is not None:
            return read_matches(key, text, part)
        if part.json_path is not None:
            return read_json(owner.tenant, key, text, part)
        if part.lines is not None or part.head is not None or part.tail is not None:
            return read_lines(key, text, part)
        return read_page(key, text, part)

    def get(self, owner: Owner, key: str) -> Detail:
        """Raises: NotFound."""
        if not rules.is_key(key):
            raise NotFound(NO_SUCH_DETAIL)
        return self._store.get_detail(owner, key)

    def search(
        self, owner: Owner, query: str = "", *, session_id: str | None = None, offset: int = 0, limit: int = 20
    ) -> Sequence[Detail]:
        """Those in whose key, type, description, summary or source most of the words stand; without words the newest,
        from the first one on.

        Raises: Invalid.
        """
        words = list(dict.fromkeys(fold(checked_text(query, what="query")).split()))[:MAX_WORDS]
        session = rules.checked_session(session_id)
        if type(offset) is not int or not 0 <= offset <= MAX_OFFSET:
            raise Invalid(f"offset is a whole number from 0 to {MAX_OFFSET:,}.")
        if not words:
            if offset:
                raise Invalid("offset goes with words to look for; list the details to see all of them.")
            return self._store.list_details(owner, session_id=session, limit=limit)
        return self._store.search_details(owner, words, session_id=session, offset=offset, limit=limit)

    def set_active(self, owner: Owner, key: str, is_active: bool) -> Detail:
        """Hide a detail, which is then kept but neither found nor read, or show it again.

        Raises: NotFound.
        """
        self.get(owner, key)
        now, done = self._now(), "shown again" if is_active else "hidden"

        def change() -> Detail:
            changed = self._store.set_detail_active(owner, key, is_active)
            self._record(changed, "detail.show" if is_active else "detail.hide", done, now)
            return changed

        return self._store.transaction(owner.tenant, change)

    def delete(self, owner: Owner, key: str) -> None:
        """Delete a detail, and its text unless another detail has the same.

        Raises: NotFound.
        """
        self.get(owner, key)
        now = self._now()

        def delete() -> Detail:
            deleted = self._store.delete_detail(owner, key)
            self._record(deleted, "detail.delete", "deleted", now)
            return deleted

        deleted = self._store.transaction(owner.tenant, delete)
        self._store.drop_content(owner.tenant, deleted.content_hash)

    def _described(self, owner: Owner, digest: Digest, source: str, *, is_named: bool) -> Described:
        redacted = partial(self._guard.redacted, owner.tenant)
        described = self._describe(digest, source=source, redacted=redacted, is_named=is_named)
        summary, brief = (self._redacted(owner, _storable(each)) for each in (described.summary, described.brief))
        return replace(described, summary=summary, brief=brief[: rules.MAX_DESCRIPTION_CHARS])

    def _added(self, detail: Detail, draft: ContentDraft, *, failure: str) -> Detail:
        """Under the key it has, made unique."""
        for attempt in range(KEY_ATTEMPTS):
            suffix = "".join(choice(rules.SUFFIX_ALPHABET) for _ in range(rules.SUFFIX_CHARS))
            named = replace(detail, key=f"{detail.key}-{suffix}")
            try:
                return self._store.transaction(detail.owner.tenant, partial(self._add, named, draft, failure))
            except Conflict:  # the agent has a detail of that key
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

    def _redacted(self, owner: Owner, value: Any) -> Any:
        """The same without what looks like a credential, in texts, lists and mappings."""
        if isinstance(value, str):
            return self._guard.redacted(owner.tenant, value)
        if isinstance(value, list):
            return [self._redacted(owner, each) for each in value]
        if isinstance(value, dict):
            return {name: self._redacted(owner, each) for name, each in value.items()}
        return value

    def _record(self, detail: Detail, action: str, done: str, now: datetime) -> None:
        """By the random end of the key: its beginning are words of the description."""
        suffix = detail.key.rpartition("-")[2]
        message = f"Detail …-{suffix} ({detail.type}, {detail.chars:,} characters) was {done}."
        meta = {"key_suffix": suffix, "type": detail.type, "chars": detail.chars}
        owner = detail.owner
        event = AuditEvent(tenant=owner.tenant, at=now, action=action, agent_id=owner.agent, message=message, meta=meta)
        self._store.add_event(event)


def _storable(text: str) -> str:
    """Of what is quoted from any text, only what every engine can store."""
    return text.encode("utf-8", "replace").decode().replace("\x00", NOT_A_CHARACTER)


def _source(metadata: Mapping[str, Any]) -> str:
    source = metadata.get("source")
    return source if isinstance(source, str) else ""
