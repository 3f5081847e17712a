"""Read a text from any source in pieces, so that a big one is never in memory as a whole."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from wellkept.arguments import RawText
from wellkept.errors import Invalid
from wellkept.language.text import replace_half_pairs

PIECE = 128 * 1024
"""Characters or bytes read at a time."""

Bytes = bytes | bytearray | memoryview
TextSource = RawText | Bytes | os.PathLike[str] | IO[str] | IO[bytes] | Iterable[str] | Iterable[Bytes]
"""Text, path, open file or iterable of parts. Bytes are decoded as UTF-8."""


def iter_pieces(content: TextSource) -> Iterator[str]:
    """Yield the text in pieces. Invalid UTF-8 and halves of surrogate pairs become U+FFFD. Raises: Invalid."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in _raw_parts(content):
        if isinstance(piece, str):
            yield replace_half_pairs(piece)
        elif isinstance(piece, bytes | bytearray | memoryview):
            yield decoder.decode(bytes(piece))
        else:
            raise Invalid(f"A detail's content must be text or bytes, not {type(piece).__name__}.")
    if rest := decoder.decode(b"", True):
        yield rest


def _raw_parts(content: Any) -> Iterable[Any]:
    if isinstance(content, str):
        return (content[start : start + PIECE] for start in range(0, len(content), PIECE))
    if isinstance(content, bytes | bytearray | memoryview):
        return (content[start : start + PIECE] for start in range(0, len(content), PIECE))
    if isinstance(content, os.PathLike):
        return _read_file(Path(content))
    if hasattr(content, "read"):
        return iter(lambda: content.read(PIECE) or None, None)
    if isinstance(content, Iterable) and not isinstance(content, dict):
        return content
    raise Invalid(
        f"A detail's content must be a text, a path, an open file or parts of a text, not {type(content).__name__}."
    )


def _read_file(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while part := file.read(PIECE):
                yield part
    except OSError as error:
        raise Invalid(f"The file {path} cannot be read: {error.strerror or error}.") from error
