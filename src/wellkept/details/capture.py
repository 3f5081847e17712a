"""Capture of outputs: an output over the threshold is stored as a detail and replaced by a one-line reference."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, Any, TypedDict, Unpack

from wellkept.arguments import RawText
from wellkept.details.details import Details
from wellkept.details.rules_keys import MAX_METADATA_CHARS, format_replacement, is_reference, reference
from wellkept.extension import TokenCounter
from wellkept.language.numbers import check_seconds
from wellkept.language.text import replace_half_pairs
from wellkept.model import Captured, Owner
from wellkept.prompt.rules_escaping import to_one_line

COMMAND_OUTPUT = "command_output"
SURE_CHARS_PER_TOKEN = 100
"""A text with more characters than this per token of the threshold is over it; its tokens are not counted."""

MAX_SOURCE_CHARS = MAX_METADATA_CHARS // 4


class OutputFields(TypedDict, total=False):
    """Facts about an output that are stored with it."""

    source: RawText  # the command or tool
    status: RawText  # how it ended
    type: str
    session_id: str | None
    duration: float | None  # seconds
    metadata: Mapping[str, Any] | None


class Capture:
    """Service that returns an output, or stores it and returns its reference."""

    def __init__(self, details: Details, tokens: TokenCounter, *, threshold: int) -> None:
        self._details = details
        self._tokens = tokens
        self._threshold = threshold

    def __call__(self, owner: Owner, output: str, **fields: Unpack[OutputFields]) -> Captured:
        """Return a short output or a reference unchanged; store any other and return its reference. Raises: Invalid."""
        about = _check_fields(**fields)
        if not self.is_over(output):
            # Stored texts are cleaned in the same way.
            return Captured(text=replace_half_pairs(output))
        return self._store(owner, output, about)

    def file(self, owner: Owner, file: IO[bytes], **fields: Unpack[OutputFields]) -> Captured:
        """Capture the UTF-8 content of a seekable file; a long one is read in pieces. Raises: Invalid."""
        about = _check_fields(**fields)
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size <= self._sure_chars:
            output = file.read().decode("utf-8", "replace")
            file.seek(0)
            if not self.is_over(output):
                return Captured(text=output)
        return self._store(owner, file, about)

    def is_over(self, output: str) -> bool:
        """Return True if an output is too long for a prompt. A reference never is."""
        if len(output) > self._sure_chars:
            return True
        return self._tokens.count(output) > self._threshold and not is_reference(output)

    @property
    def _sure_chars(self) -> int:
        return self._threshold * SURE_CHARS_PER_TOKEN

    def _store(self, owner: Owner, output: str | IO[bytes], about: Mapping[str, Any]) -> Captured:
        detail = self._details.store(owner, output, **about)
        source, status = (str(detail.metadata.get(name, "")) for name in ("source", "status"))
        if detail.type == COMMAND_OUTPUT:
            line = format_replacement(reference(detail.key, detail.description), command=source, status=status)
        else:
            description = f"{to_one_line(source)}: {detail.description}" if source else detail.description
            line = format_replacement(reference(detail.key, description), status=status)
        return Captured(text=line, memory_key=detail.key)


def _check_fields(
    *,
    source: str = "",
    status: str = "",
    type: str = COMMAND_OUTPUT,
    session_id: str | None = None,
    duration: float | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Mapping[str, Any]:
    """Return the arguments of `Details.store`, with source, status and duration in the metadata. Raises: Invalid."""
    if duration is not None:
        check_seconds(duration, "The duration")
    known = {"source": _make_storable(source), "status": _make_storable(status), "duration": duration}
    whole = {**(metadata or {}), **{name: value for name, value in known.items() if value not in ("", None)}}
    return {"type": type, "session_id": session_id, "metadata": whole}


def _make_storable(text: str) -> str:
    """Cut a text and replace characters that no engine can store; a command line may contain anything."""
    return text[:MAX_SOURCE_CHARS].encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
