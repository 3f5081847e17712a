"""Small enters the prompt, big is referred to: an output over the threshold is stored, and a line stands for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, Any

from recollect.errors import Invalid
from recollect.model import Captured, Owner
from recollect.policy.details.keys import MAX_METADATA_CHARS
from recollect.policy.details.references import is_reference, reference, replacement
from recollect.policy.numbers import checked_seconds
from recollect.policy.prompt.escaping import one_line
from recollect.policy.text import without_half_pairs
from recollect.ports import TokenCounter
from recollect.services.details.details import Details

COMMAND_OUTPUT = "command_output"
SURE_CHARS_PER_TOKEN = 100
"""A text with more characters for each token of the threshold is over it, and is not counted first."""

MAX_SOURCE_CHARS = MAX_METADATA_CHARS // 4


class Capture:
    """Decides what of an output enters the prompt."""

    def __init__(self, details: Details, tokens: TokenCounter, *, threshold: int) -> None:
        self._details = details
        self._tokens = tokens
        self._threshold = threshold

    def __call__(
        self,
        owner: Owner,
        output: str,
        *,
        source: str = "",
        status: str = "",
        type: str = COMMAND_OUTPUT,
        session_id: str | None = None,
        duration: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Captured:
        """The output itself if it is short or a reference already; else it is on disk, and a line stands for it.

        Raises: Invalid.
        """
        if not isinstance(output, str):
            raise Invalid(f"An output is a text, not {output.__class__.__name__}; write it as JSON first.")
        said = _metadata(source, status, duration, metadata)
        if not self.is_over(output):
            return Captured(text=without_half_pairs(output))  # as a stored one is kept
        return self._stored(owner, output, said, type=type, session_id=session_id)

    def file(
        self,
        owner: Owner,
        file: IO[bytes],
        *,
        source: str = "",
        status: str = "",
        type: str = COMMAND_OUTPUT,
        session_id: str | None = None,
        duration: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Captured:
        """The same for what a seekable file holds as UTF-8; of a long one only a piece at a time is in memory.

        Raises: Invalid.
        """
        said = _metadata(source, status, duration, metadata)
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size <= self._sure_chars:
            output = file.read().decode("utf-8", "replace")
            file.seek(0)
            if not self.is_over(output):
                return Captured(text=output)
        return self._stored(owner, file, said, type=type, session_id=session_id)

    def is_over(self, output: str) -> bool:
        """Whether an output is too long for a prompt. What stands for another one never is."""
        if len(output) > self._sure_chars:
            return True
        return self._tokens.count(output) > self._threshold and not is_reference(output)

    @property
    def _sure_chars(self) -> int:
        return self._threshold * SURE_CHARS_PER_TOKEN

    def _stored(
        self, owner: Owner, output: str | IO[bytes], said: Mapping[str, Any], *, type: str, session_id: str | None
    ) -> Captured:
        detail = self._details.store(owner, output, type=type, session_id=session_id, metadata=said)
        source, status = (str(detail.metadata.get(name, "")) for name in ("source", "status"))
        if type == COMMAND_OUTPUT:
            line = replacement(reference(detail.key, detail.description), command=source, status=status)
        else:
            named = f"{one_line(source)}: {detail.description}" if source else detail.description
            line = replacement(reference(detail.key, named), status=status)
        return Captured(text=line, memory_key=detail.key)


def _metadata(
    source: str, status: str, duration: float | None, metadata: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    """What was done, how it ended and how long it took, beside what else is known. Raises: Invalid."""
    for name, value in (("source", source), ("status", status)):
        if not isinstance(value, str):
            raise Invalid(f"The {name} must be a string, not {type(value).__name__}.")
    if duration is not None:
        checked_seconds(duration, "The duration")
    known = {"source": _storable(source), "status": _storable(status), "duration": duration}
    return {**(metadata or {}), **{name: value for name, value in known.items() if value not in ("", None)}}


def _storable(text: str) -> str:
    """A command line may hold anything; what no engine can store of it is marked as such."""
    return text[:MAX_SOURCE_CHARS].encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
