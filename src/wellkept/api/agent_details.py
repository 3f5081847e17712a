"""Methods for an agent's long texts and captured output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Unpack

from wellkept.api.agent_records import AgentView
from wellkept.arguments import RawText
from wellkept.caller import current_caller
from wellkept.details import details as outputs
from wellkept.details import parts as pieces
from wellkept.details.rules_keys import parse_part
from wellkept.language.values import check_limit, check_whole
from wellkept.memory.rules_trust import check_removal
from wellkept.model import Captured, Detail, DetailPage
from wellkept.model.stored import Place

MAX_PAGE = 500


class AgentDetails(AgentView):
    """Long texts of an agent, and captured output of its tools."""

    def store(
        self,
        content: pieces.TextSource,
        *,
        description: str = "",
        type: str = "text",
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Detail:
        """Store a long text under a generated key. When this returns, it is on disk.

        `content` is a string, a `Path`, an open file or an iterable of parts; files and iterables are streamed. The
        content is stored unchanged. Description, summary and metadata can reach prompts, so anything that looks like a
        credential is removed from them.

        Raises: Invalid.
        """
        return self._services.details.store(
            self.owner, content, description=description, type=type, session_id=session_id, metadata=metadata
        )

    def read(
        self,
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
        """Read part of a long text: `limit` characters starting at `offset`, or one of the selections below.

        `lines` is a range such as "120-180"; `head` and `tail` are numbers of lines; `grep` returns the lines that
        contain a string or match a `/pattern/`, with `context` lines around them; `json_path` selects a value. `limit`
        (4,000 characters by default for a page, 50,000 otherwise) bounds every answer; `remaining` says how to
        continue.

        Raises: NotFound; Invalid; StoreError when the text is missing or damaged.
        """
        part = parse_part(
            offset=offset,
            limit=limit,
            lines=lines,
            head=head,
            tail=tail,
            grep=grep,
            context=context,
            json_path=json_path,
        )
        return self._services.details.read(self.owner, key, part)

    def search(
        self, query: str = "", *, session_id: str | None = None, offset: int = 0, limit: int = 20
    ) -> Sequence[Detail]:
        """Search details by words in their key, type, description, summary or source.

        Details matching most words come first, then the newest; `offset` skips that many. An empty query lists the
        newest.

        Raises: Invalid.
        """
        return self._services.details.search(
            self.owner,
            query,
            session_id=session_id,
            offset=check_whole(offset, "offset"),
            limit=check_limit(limit, most=MAX_PAGE),
        )

    def list(
        self,
        *,
        session_id: str | None = None,
        is_active: bool | None = True,
        before: str | Place | None = None,
        limit: int = 100,
    ) -> Sequence[Detail]:
        """List details, newest first.

        `is_active=False` lists hidden ones, None all. `before` continues a listing: a key, or `(created_at, key)`,
        which works even if that detail has been deleted.

        Raises: Invalid; NotFound when `before` is a key that no longer exists.
        """
        if isinstance(before, str):
            last = self.get(before)
            before = last.created_at, last.key
        return self._store.list_details(
            self.owner,
            session_id=session_id,
            is_active=is_active,
            before=before,
            limit=check_limit(limit, most=MAX_PAGE),
        )

    def get(self, key: str) -> Detail:
        """Return the metadata of a long text, including a hidden one. Raises: NotFound."""
        return self._services.details.get(self.owner, key)

    def hide(self, key: str, *, is_hidden: bool = True) -> Detail:
        """Hide a long text from search and reading without deleting it.

        `is_hidden=False` shows it again.

        Raises: NotFound, Forbidden.
        """
        check_removal(current_caller().trust)
        return self._services.details.set_active(self.owner, key, not is_hidden)

    def delete(self, key: str) -> None:
        """Delete a long text permanently. Raises: NotFound, Forbidden."""
        check_removal(current_caller().trust)
        self._services.details.delete(self.owner, key)

    def capture(self, output: RawText, **fields: Unpack[outputs.OutputFields]) -> str:
        """Return the text to put into the prompt for a tool's output: the output itself, or a reference to it.

        Short output is returned unchanged. Long output is stored whole and replaced by a one-line reference;
        `read` reads it in parts. The fields are `source` (the command or tool), `status`, `type`
        ("command_output"), `session_id`, `duration` in seconds and `metadata`.

        Raises: Invalid.
        """
        return self.capture_output(output, **fields).text

    def capture_output(self, output: RawText | IO[bytes], **fields: Unpack[outputs.OutputFields]) -> Captured:
        """Capture like `capture`, but return the key along with the text.

        `output` may also be a seekable binary file, which is streamed.

        Raises: Invalid.
        """
        capture = self._services.capture
        keep: Callable[..., Captured] = capture.file if hasattr(output, "read") else capture
        return keep(self.owner, output, **fields)
