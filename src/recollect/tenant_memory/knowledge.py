"""What a tenant's agents know in common: documents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from recollect.agent_memory import MAX_PAGE, PAGE
from recollect.model import Chunk, Document, Hit
from recollect.policy.documents import checked_category
from recollect.policy.text import checked_text
from recollect.services.ingest import Progress, Wishes
from recollect.services.ingested import Ingested
from recollect.services.recall import checked_limit
from recollect.tenant_memory.view import TenantView


class Knowledge(TenantView):
    """The verbs that work on documents."""

    def ingest(
        self,
        path_or_text: str | Path,
        *,
        title: str | None = None,
        category: str | None = None,
        is_published: bool | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        prune: bool = False,
        progress: Progress | None = None,
    ) -> Ingested:
        """Take in a text, a file (Markdown, text, HTML, PDF) or every such file of a folder and below it. What is there
        already is left alone; what has changed takes the place of its old self. Of a folder: `include` and `exclude`
        are patterns such as `*.md`, `prune` removes documents whose file is gone, failures are in the answer.

        Raises: Invalid, SecretRejected; for a folder only when it cannot be read.
        """
        wishes = Wishes(title=title, category=category, is_published=is_published)
        ingest = self._services.ingest
        if not ingest.is_folder(path_or_text):
            return Ingested(documents=(ingest(self.id, path_or_text, wishes),))
        return ingest.folder(
            self.id,
            Path(path_or_text),
            wishes,
            include=include,
            exclude=exclude,
            is_pruned=prune,
            progress=progress,
        )

    def ingest_text(
        self,
        text: str,
        *,
        title: str | None = None,
        category: str | None = None,
        is_published: bool | None = None,
    ) -> Ingested:
        """Take in a text, also one that could be a path: for texts that come from elsewhere.

        Raises: Invalid, SecretRejected.
        """
        wishes = Wishes(title=title, category=category, is_published=is_published)
        content = checked_text(text).encode()
        return Ingested(documents=(self._services.ingest.content(self.id, content, wishes, name="", source=""),))

    def ingest_bytes(
        self,
        content: bytes,
        name: str,
        *,
        title: str | None = None,
        category: str | None = None,
        is_published: bool | None = None,
    ) -> Ingested:
        """Take in the content of a file that is not on this machine; its name tells what it is, and is what it is
        known by.

        Raises: Invalid, SecretRejected.
        """
        wishes = Wishes(title=title, category=category, is_published=is_published)
        base = Path(checked_text(name, what="name").replace("\\", "/")).name
        return Ingested(documents=(self._services.ingest.content(self.id, content, wishes, name=base, source=base),))

    def get_document(self, id: str) -> Document:
        """Raises: NotFound."""
        return self._store.get_document(self.id, id)

    def list_passages(self, id: str) -> Sequence[Chunk]:
        """What a document was cut into, in order.

        Raises: NotFound.
        """
        return self._store.list_chunks(self.id, self._store.get_document(self.id, id).id)

    def list_documents(self, *, category: str = "", after: str = "", limit: int = PAGE) -> Sequence[Document]:
        """By id, beginning behind `after`; only those of a category if one is named.

        Raises: Invalid.
        """
        return self._store.list_documents(
            self.id,
            category=checked_category(category),
            after=checked_text(after, what="after"),
            limit=checked_limit(limit, most=MAX_PAGE),
        )

    def update_document(
        self, id: str, *, title: str | None = None, category: str | None = None, is_published: bool | None = None
    ) -> Document:
        """Say something else about a document; only a published one is found.

        Raises: NotFound, Invalid, SecretRejected, Conflict.
        """
        wishes = Wishes(title=title, category=category, is_published=is_published)
        return self._services.ingest.update(self.id, id, wishes)

    def delete_document(self, id: str) -> None:
        """Delete a document and its passages for good.

        Raises: NotFound.
        """
        self._services.ingest.delete(self.id, id)

    def search_knowledge(self, query: str, *, categories: Collection[str] = (), limit: int = 5) -> Sequence[Hit]:
        """The passages of published documents that fit a question best, by words and by meaning; no category means all.

        Raises: Invalid.
        """
        return self._services.search_knowledge(self.id, query, categories=categories, limit=limit)
