"""Chunked storage of long texts: chunks with an equal number of characters, each compressed separately.

Reading a part of the text decompresses only the one or two chunks that contain it. The chunk of a character follows
from its offset, the chunk of a line from a small index of the line breaks before each chunk. Each chunk carries its own
checksum. A text may arrive in pieces; its chunks are written to a file that the caller provides and owns.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from typing import IO

from wellkept.compression import zstd, zstd_options
from wellkept.errors import StoreError
from wellkept.language.text import replace_half_pairs

CHUNK_CHARS = 128 * 1024
MAX_CHUNK_BYTES = 4 * CHUNK_CHARS
"""Maximum size of a chunk: a character takes at most four bytes in UTF-8."""

MISSING = "The text behind this key is missing from the store. Other details are whole; store this one again."
DAMAGED = "The text behind this key is damaged in the store. Other details are whole; store this one again."


def pack_numbers(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def unpack_numbers(packed: bytes) -> Sequence[int]:
    """Decode what `pack_numbers` returned. Raises: StoreError."""
    if len(packed) % 8:
        raise StoreError(DAMAGED)
    return struct.unpack(f"<{len(packed) // 8}Q", packed)


def decompress_chunk(frame: bytes, *, chars: int) -> str:
    """Decompress a chunk and check that it has `chars` characters. Raises: StoreError when it is damaged."""
    decompressor = zstd.ZstdDecompressor()
    try:
        # One byte more, so that the end of the frame is read after the largest chunk, too.
        text = decompressor.decompress(frame, max_length=MAX_CHUNK_BYTES + 1).decode()
    except (zstd.ZstdError, UnicodeDecodeError) as error:
        raise StoreError(DAMAGED) from error
    if len(text) != chars or not decompressor.eof:
        raise StoreError(DAMAGED)
    return str(text)


def chunk_length(position: int, chars: int) -> int:
    """Return the length of a chunk in a text of `chars` characters.

    >>> chunk_length(0, 10), chunk_length(1, CHUNK_CHARS + 10), chunk_length(2, CHUNK_CHARS + 10)
    (10, 10, 0)
    """
    return max(0, min(CHUNK_CHARS, chars - position * CHUNK_CHARS))


class ChunkFile:
    """Writer of a text to a file, chunk by chunk."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self._compressor = zstd.ZstdCompressor(options=zstd_options())
        self._hash = hashlib.sha256()
        self._buffer: list[str] = []
        self._buffered_chars = 0
        self.starts = [0]  # offset of each chunk, and the end of the last one
        self.newlines: list[int] = []  # line breaks before each chunk
        self._last = ""
        self.size = self.chars = self._breaks = 0

    @property
    def content_hash(self) -> str:
        return self._hash.hexdigest()

    @property
    def lines(self) -> int:
        """Number of lines; the last one counts even without a line break."""
        return self._breaks + (self.chars > 0 and self._last != "\n")

    def feed(self, text: str) -> None:
        for start in range(0, len(text), CHUNK_CHARS):
            self._buffer.append(replace_half_pairs(text[start : start + CHUNK_CHARS]))
            self._buffered_chars += len(self._buffer[-1])
            if self._buffered_chars >= CHUNK_CHARS:
                joined = "".join(self._buffer)
                self._add(joined[:CHUNK_CHARS])
                self._buffer, self._buffered_chars = [joined[CHUNK_CHARS:]], len(joined) - CHUNK_CHARS

    def finish(self) -> None:
        """Write the buffered rest."""
        if self._buffered_chars:
            self._add("".join(self._buffer))
        self._buffer, self._buffered_chars = [], 0

    def frames(self) -> Iterator[bytes]:
        """Yield every compressed chunk."""
        for begin, end in zip(self.starts, self.starts[1:], strict=False):
            self.file.seek(begin)
            yield self.file.read(end - begin)

    def _add(self, text: str) -> None:
        encoded = text.encode()
        frame = self._compressor.compress(encoded, zstd.ZstdCompressor.FLUSH_FRAME)
        self.file.write(frame)
        self._hash.update(encoded)
        self.starts.append(self.starts[-1] + len(frame))
        self.newlines.append(self._breaks)
        self._breaks += text.count("\n")
        self.size += len(encoded)
        self.chars += len(text)
        self._last = text[-1]
