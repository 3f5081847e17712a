"""The single write path for a tenant's documents.

Before the transaction, a file is read into parts, scanned for credentials, and split into passages.
The document is stored without vectors, which a thread adds a moment later. Ingesting the same content
again changes nothing. New content from the same source replaces the document, which keeps its id and creation time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypedDict

from wellkept.caller import current_caller
from wellkept.deadline import check_deadline, iter_with_deadline
from wellkept.errors import Conflict, Invalid
from wellkept.extension import Clock, Progress
from wellkept.knowledge import files
from wellkept.knowledge.rules_chunking import (
    MAX_PASSAGES,
    MAX_SOURCE_CHARS,
    WHITEBOARD,
    DocumentPart,
    Reading,
    check_category,
    check_title,
    choose_title,
    document_hash,
    document_id,
    retitle_passage,
    split_passages,
)
from wellkept.language.text import check_text
from wellkept.memory.rules_kinds import check_metadata
from wellkept.memory.rules_trust import check_decision, check_document_change
from wellkept.meter import METER
from wellkept.model import AuditEvent, Chunk, Document
from wellkept.secrets.check import FLAG, SecretGuard
from wellkept.upkeep.embedding import Embedding

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore


class DocumentChange(StrEnum):
    """Effect of ingesting a document."""

    ADDED = "added"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedSecret:
    """Secret that was removed from a document: its place, such as `line 6`, and the rule that matched."""

    place: str = field(metadata={"examples": ["line 6"]})
    rule: str = field(metadata={"examples": ["aws-access-key"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedDocument:
    """Result for one ingested document."""

    document: Document
    change: DocumentChange
    passages: int
    removed_secrets: tuple[RemovedSecret, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestFailure:
    """File that could not be ingested, with the reason."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """Result of ingesting a text, a file or a folder."""

    documents: tuple[IngestedDocument, ...] = ()
    failures: tuple[IngestFailure, ...] = ()
    removed: tuple[str, ...] = ()  # ids of documents with a deleted file

    @property
    def document(self) -> Document:
        """Document of a text or a file; of a folder, the first."""
        return self.documents[0].document

    @property
    def id(self) -> str:
        """Id of `document`."""
        return self.document.id


PAGE = 500
REDACT, REJECT = "redact", "reject"
CHANGES = {DocumentChange.ADDED: ("document.add", "added"), DocumentChange.UPDATED: ("document.update", "updated")}
NO_TEXT = "has no text; if it contains images of text, run OCR first"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOptions:
    """Attributes of a document besides its text; None keeps the stored value or takes it from the document."""

    title: str | None = None
    category: str | None = None
    is_published: bool | None = None
    metadata: Mapping[str, Any] | None = None
    secrets: str | None = None  # redact or reject; None: flag if the setting says so, else redact


class DocumentFields(TypedDict, total=False):
    """Arguments for `DocumentOptions`."""

    title: str | None
    category: str | None
    is_published: bool | None
    metadata: Mapping[str, Any] | None
    secrets: Literal["redact", "reject"] | None


class Ingest:
    """Service for every change to a tenant's documents."""

    def __init__(self, store: SqlStore, embedding: Embedding, guard: SecretGuard, now: Clock) -> None:
        self._store = store
        self._embedding = embedding
        self._guard = guard
        self._now = now

    def __call__(self, tenant: str, path_or_text: str | Path, options: DocumentOptions) -> IngestedDocument:
        """Ingest a text, or the file at a path.

        Raises: Invalid, SecretRejected.
        """
        path = files.locate_file(path_or_text)
        if path is None:
            text = check_text(str(path_or_text))
            return self.content(tenant, text.encode(), options, name="", source="")
        return self.content(
            tenant, files.load_file(path), options, name=path.name, source=_normalize_source(path_or_text)
        )

    def is_folder(self, path_or_text: str | Path) -> bool:
        """Return True if `path_or_text` names a folder.

        Raises: Invalid when it can only be a path and does not exist.
        """
        path = files.locate_file(path_or_text)
        return path is not None and path.is_dir()

    def folder(
        self,
        tenant: str,
        folder: Path,
        options: DocumentOptions,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        is_pruned: bool = False,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Ingest every file below a folder. Files that fail are reported and do not stop the others.

        Raises: Invalid when the folder cannot be read.
        """
        root, place = _normalize_source(folder), Path(os.path.expanduser(folder))
        found = files.walk_folder(place, include=include, exclude=exclude)
        documents, failures = [], []
        for count, path in enumerate(found, start=1):
            source = f"{root}/{path.as_posix()}"
            try:
                content = files.load_file(place / path)
                documents.append(self.content(tenant, content, options, name=path.name, source=source))
            except Invalid as error:
                failures.append(IngestFailure(source=source, reason=str(error)))
            if progress is not None:
                progress(count, len(found))
        removed = self._prune(tenant, root, place) if is_pruned else ()
        return IngestReport(documents=tuple(documents), failures=tuple(failures), removed=tuple(removed))

    def content(
        self, tenant: str, content: bytes, options: DocumentOptions, *, name: str, source: str
    ) -> IngestedDocument:
        """Ingest the content of a file; a text has no name and is read as Markdown.

        Raises: Invalid, SecretRejected.
        """
        if len(check_text(source, what="path")) > MAX_SOURCE_CHARS:
            raise Invalid(f"The path of a document is too long (max {MAX_SOURCE_CHARS:,} characters).")
        file_name = name or "text.md"
        digest = document_hash(content, suffix=Path(file_name).suffix.lower())
        known = self._store.find_documents(tenant, [document_id(source=source, title="")]) if source else {}
        old = next(iter(known.values()), None)
        if old is not None and old.content_hash == digest:
            return self._update(old, options)
        reading = files.read_document(content, name=file_name if name else "")
        title = choose_title(options.title, reading.title, Path(name).stem, reading.parts)
        name_of_text = title
        if options.title is None:
            title = self._guard.redact(tenant, title)
            # Two texts whose titles are secrets are two documents, although both titles now read the same.
            name_of_text = title if title == name_of_text else f"{title} {digest}"
        if not any(part.text.strip() for part in reading.parts):
            raise Invalid(f"{name or 'The text'} {NO_TEXT}.")
        id = document_id(source=source, title=name_of_text)
        old = old or self._store.find_documents(tenant, [id]).get(id)
        if old is not None and old.content_hash == digest:
            return self._update(old, options)
        now = self._now()
        document = Document(
            id=id,
            tenant=tenant,
            title=title,
            category=_choose_category(options, old),
            source=source,
            content_hash=digest,
            is_published=options.is_published if options.is_published is not None else old is None or old.is_published,
            created_at=now,
            updated_at=now,
            metadata=_choose_metadata(options, old),
        )
        document, reading, removed = self._check_secrets(document, reading, name, options.secrets)
        ingested = self._put(document, split_passages(document.title, reading.parts))
        if removed and ingested.change is not DocumentChange.UNCHANGED:
            message = f"What seems to be a secret was removed from document {id} ({len(removed)} times)."
            self._record(tenant, "document.secret", message, id)
        return replace(ingested, removed_secrets=removed)

    def update(self, tenant: str, id: str, options: DocumentOptions) -> Document:
        """Change a document's title or category, publish or unpublish it.

        Raises: NotFound, Invalid, SecretRejected.
        """
        return self._update(self._store.get_document(tenant, id), options).document

    def delete(self, tenant: str, id: str) -> None:
        """Delete a document.

        Raises: NotFound, Forbidden.
        """

        def delete() -> None:
            existing = self._store.get_document(tenant, id)
            _check_change(existing, existing)
            self._store.delete_document(tenant, id)
            self._record(tenant, "document.delete", f"Document {id} was deleted.", id)

        self._store.transaction(tenant, delete)

    def _update(self, old: Document, options: DocumentOptions) -> IngestedDocument:
        """Change a document's attributes without changing its text."""
        new = replace(
            old,
            title=old.title if options.title is None else check_title(options.title),
            category=_choose_category(options, old),
            is_published=old.is_published if options.is_published is None else options.is_published,
            metadata=_choose_metadata(options, old),
        )
        if new.metadata != old.metadata:
            new = self._check_metadata(new)
        chunks = self._store.list_chunks(old.tenant, old.id)
        if new == old:
            return IngestedDocument(document=old, change=DocumentChange.UNCHANGED, passages=len(chunks))
        if new.title != old.title or new.category != old.category:
            self._check_names(new)
        texts = [retitle_passage(chunk.text, old.title, new.title) for chunk in chunks]
        return self._put(replace(new, updated_at=self._now()), texts, was=chunks)

    def _put(self, document: Document, texts: Sequence[str], *, was: Sequence[Chunk] | None = None) -> IngestedDocument:
        """Store the document. Everything is computed before the transaction, because that blocks other writers.

        With `was`, the passages that `texts` were made of, store it only if the document still has them.

        Raises: Invalid, Conflict.
        """
        if len(texts) > MAX_PASSAGES:
            raise Invalid(
                f"The document has {len(texts):,} passages (max {MAX_PASSAGES:,}); split it into several documents."
            )
        write = self._store.prepare_document(document, texts)
        tenant, id = document.tenant, document.id
        count = f"{len(texts)} passage{'' if len(texts) == 1 else 's'}"

        def put() -> tuple[Document, DocumentChange]:
            check_deadline()
            existing = self._store.hold_document(tenant, id, now=document.updated_at)
            if was is not None and self._store.list_chunks(tenant, id) != was:
                # Raises NotFound if the document was deleted.
                self._store.get_document(tenant, id)
                raise Conflict("This document was changed in the meantime; try again.")
            if (
                existing is not None
                and replace(document, created_at=existing.created_at, updated_at=existing.updated_at) == existing
            ):
                # A concurrent call stored the same content first.
                return existing, DocumentChange.UNCHANGED
            _check_change(document, existing)
            stored = write()
            change = DocumentChange.ADDED if existing is None else DocumentChange.UPDATED
            action, done = CHANGES[change]
            self._record(tenant, action, f"Document {id} was {done} ({count}).", id)
            return stored, change

        stored, change = self._store.transaction(tenant, put)
        self._embedding.wake()
        return IngestedDocument(document=stored, change=change, passages=len(texts))

    def _prune(self, tenant: str, root: str, place: Path) -> Sequence[str]:
        """Delete documents with a file that no longer exists in the folder; return their ids."""
        existing = {f"{root}/{path.as_posix()}" for path in files.walk_folder(place, include=("*",), exclude=())}
        removed = []
        after = ""
        while documents := self._store.list_documents(tenant, after=after, limit=PAGE):
            after = documents[-1].id
            gone = (each for each in documents if each.source.startswith(f"{root}/") and each.source not in existing)
            for document in gone:
                self.delete(tenant, document.id)
                removed.append(document.id)
        return removed

    def _check_secrets(
        self, document: Document, reading: Reading, name: str, mode: str | None
    ) -> tuple[Document, Reading, tuple[RemovedSecret, ...]]:
        """Return the document without its secrets, which are listed, or flagged with the matching rule.

        Raises: SecretRejected, with the place but not the secret; Invalid.
        """
        if mode not in (None, REDACT, REJECT):
            raise Invalid(f"secrets must be {REDACT} or {REJECT}.")
        self._check_names(document)
        document = self._check_metadata(document)
        mode = mode or ("flag" if self._guard.is_flagging else REDACT)
        parts: list[DocumentPart] = []
        removed: list[RemovedSecret] = []
        for part in iter_with_deadline(reading.parts):
            found = self._guard.findings(document.tenant, part.text)
            if found and mode == REJECT:
                self._refuse(
                    document, f"{_describe_place(part, found[0].start)} of {name or 'the text'}", found[0].rule
                )
            if found:
                METER.get().count_secret(mode)
            if found and mode == "flag":
                document = replace(document, flag=document.flag or f"{FLAG}: {found[0].rule}")
            if found and mode == REDACT:
                removed += [RemovedSecret(place=_describe_place(part, each.start), rule=each.rule) for each in found]
                part = replace(part, text=self._guard.redact(document.tenant, part.text))
            parts.append(part)
        return document, replace(reading, parts=parts), tuple(removed)

    def _check_names(self, document: Document) -> None:
        """Check title, category and path, which cannot be redacted.

        Raises: SecretRejected in every mode.
        """
        for what, name in (("title", document.title), ("category", document.category), ("path", document.source)):
            if found := self._guard.findings(document.tenant, name):
                self._refuse(document, f"the {what}", found[0].rule)

    def _check_metadata(self, document: Document) -> Document:
        """Return the document with redacted or flagged metadata. Raises: SecretRejected."""
        metadata, rule = self._guard.check_metadata(document.tenant, document.metadata)
        flag = f"{FLAG}: {rule}" if rule and self._guard.is_flagging else None
        return replace(document, metadata=metadata, flag=document.flag or flag)

    def _refuse(self, document: Document, place: str, rule: str) -> NoReturn:
        self._record(document.tenant, "document.refuse", "A document was refused: it seems to hold a secret.", None)
        raise self._guard.refuse(f"{place[:1].upper()}{place[1:]} appears to contain a secret — not stored", rule=rule)

    def _record(self, tenant: str, action: str, message: str, id: str | None) -> None:
        meta = {} if id is None else {"id": id}
        self._store.add_event(AuditEvent(tenant=tenant, at=self._now(), action=action, message=message, meta=meta))


def _check_change(document: Document, existing: Document | None) -> None:
    """Check that the caller may store `document`, or replace `existing` by it.

    Raises: Forbidden.
    """
    caller = current_caller()
    caller.check_all_users()
    # The whiteboard is in every agent's prompt.
    if WHITEBOARD in (document.category, existing and existing.category):
        caller.check_whole_tenant()
        check_decision(caller.trust)
    if existing is not None:
        check_document_change(caller.trust)


def _choose_category(options: DocumentOptions, old: Document | None) -> str:
    if options.category is not None:
        return check_category(options.category)
    return "" if old is None else old.category


def _choose_metadata(options: DocumentOptions, old: Document | None) -> Mapping[str, Any]:
    if options.metadata is not None:
        return check_metadata(options.metadata)
    return {} if old is None else old.metadata


def _normalize_source(path: str | Path) -> str:
    """Return the normalized path that identifies a document; absolute if it leads out of the working directory."""
    normal = os.path.normpath(os.path.expanduser(path))
    outside = normal == os.curdir or normal.split(os.sep)[0] == os.pardir
    return Path(os.path.abspath(normal) if outside else normal).as_posix()


def _describe_place(part: DocumentPart, start: int) -> str:
    """Describe a position in a file, as far as it is known."""
    if not part.number:
        return f"the part that begins with {' '.join(part.text.split())[:30]!r}" if start > 30 else "a part"
    below = part.text.count("\n", 0, start) if part.place == "line" else 0
    return f"{part.place} {part.number + below}"
