"""A long text as chunks of equally many characters, each compressed by itself.

So any part of it is read by unpacking the one or two chunks it lies in: the chunk of a character follows from its
number, the chunk of a line from a small index of the line breaks before each chunk. A chunk carries its own checksum.
While a text comes in, piece by piece, its chunks are written to a file; what becomes of that file is for others to say.

    file:   chunk, chunk, …, index, footer; a chunk is a Zstandard frame, the rest one that decoders skip, so that
            `zstdcat` shows the text
    index:  where each chunk begins (and the last one ends), then the line breaks before each chunk
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import IO

from recollect.errors import StoreError
from recollect.policy.text import without_half_pairs

CHUNK_CHARS = 128 * 1024
MAX_CHUNK_BYTES = 4 * CHUNK_CHARS
"""No character takes more than four bytes in UTF-8."""

MAGIC = b"rcl-txt1"
_SKIPPED = struct.Struct("<II")  # how a frame begins that decoders skip: its mark and its length
_SKIPPED_MARK = 0x184D2A5E
_FOOTER = struct.Struct("<QQQQI8s")  # where the index begins, chunks, bytes, characters, checksum of all this, MAGIC

MISSING = "The text behind this key is missing from the store. Other details are whole; store this one again."
DAMAGED = "The text behind this key is damaged in the store. Other details are whole; store this one again."


@dataclass(frozen=True, slots=True)
class Index:
    """Where in a file which chunk lies."""

    starts: Sequence[int]  # of each chunk, and where the last one ends
    newlines: Sequence[int]  # line breaks before each chunk
    size: int
    chars: int

    def packed(self) -> bytes:
        """The index and the footer, as they end a file."""
        index = packed_numbers([*self.starts, *self.newlines])
        head = _FOOTER.pack(self.starts[-1], len(self.newlines), self.size, self.chars, 0, MAGIC)
        footer = _FOOTER.pack(*_FOOTER.unpack(head)[:4], zlib.crc32(index + head), MAGIC)
        return _SKIPPED.pack(_SKIPPED_MARK, len(index) + len(footer)) + index + footer


def packed_numbers(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def unpacked_numbers(packed: bytes) -> Sequence[int]:
    """Raises: StoreError."""
    if len(packed) % 8:
        raise StoreError(DAMAGED)
    return struct.unpack(f"<{len(packed) // 8}Q", packed)


def read_index(fd: int) -> Index:
    """The index of a file.

    Raises: StoreError when it is not whole.
    """
    end = os.fstat(fd).st_size - _FOOTER.size
    if end < 0:
        raise StoreError(DAMAGED)
    begin, count, size, chars, checksum, magic = _FOOTER.unpack(os.pread(fd, _FOOTER.size, end))
    length = 8 * (2 * count + 1)
    if magic != MAGIC or begin + _SKIPPED.size + length != end:
        raise StoreError(DAMAGED)
    packed = os.pread(fd, length, end - length)
    if zlib.crc32(packed + _FOOTER.pack(begin, count, size, chars, 0, MAGIC)) != checksum:
        raise StoreError(DAMAGED)
    numbers = unpacked_numbers(packed)
    return Index(numbers[: count + 1], numbers[count + 1 :], size, chars)


def expanded(frame: bytes, *, chars: int) -> str:
    """The text of a chunk, which has so many characters.

    Raises: StoreError when it is damaged.
    """
    zstd = import_module("zstandard")
    try:
        text = zstd.ZstdDecompressor().decompress(frame, max_output_size=MAX_CHUNK_BYTES).decode()
    except (zstd.ZstdError, UnicodeDecodeError) as error:
        raise StoreError(DAMAGED) from error
    if len(text) != chars:
        raise StoreError(DAMAGED)
    return str(text)


def chunk_length(position: int, chars: int) -> int:
    """How many characters a chunk has in a text of so many.

    >>> chunk_length(0, 10), chunk_length(1, CHUNK_CHARS + 10), chunk_length(2, CHUNK_CHARS + 10)
    (10, 10, 0)
    """
    return max(0, min(CHUNK_CHARS, chars - position * CHUNK_CHARS))


class ChunkFile:
    """A text that is being written, chunk by chunk, to a file of its own."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self._compressor = import_module("zstandard").ZstdCompressor(write_checksum=True, write_content_size=True)
        self._hash = hashlib.sha256()
        self._waiting: list[str] = []
        self._waiting_chars = 0
        self._starts = [0]
        self._newlines: list[int] = []
        self._last = ""
        self.size = self.chars = self._breaks = 0

    @property
    def content_hash(self) -> str:
        return self._hash.hexdigest()

    @property
    def lines(self) -> int:
        """A last line counts also without a line break."""
        return self._breaks + (self.chars > 0 and self._last != "\n")

    @property
    def index(self) -> Index:
        return Index(tuple(self._starts), tuple(self._newlines), self.size, self.chars)

    def feed(self, text: str) -> None:
        for start in range(0, len(text), CHUNK_CHARS):
            self._waiting.append(without_half_pairs(text[start : start + CHUNK_CHARS]))
            self._waiting_chars += len(self._waiting[-1])
            if self._waiting_chars >= CHUNK_CHARS:
                joined = "".join(self._waiting)
                self._add(joined[:CHUNK_CHARS])
                self._waiting, self._waiting_chars = [joined[CHUNK_CHARS:]], len(joined) - CHUNK_CHARS

    def finish(self) -> None:
        """Write what waits, then the index."""
        if self._waiting_chars:
            self._add("".join(self._waiting))
        self._waiting, self._waiting_chars = [], 0
        self.file.write(self.index.packed())
        self.file.flush()

    def frames(self) -> Iterator[bytes]:
        """Every chunk as it was compressed."""
        for begin, end in zip(self._starts, self._starts[1:], strict=False):
            self.file.seek(begin)
            yield self.file.read(end - begin)

    def _add(self, text: str) -> None:
        encoded = text.encode()
        frame = self._compressor.compress(encoded)
        self.file.write(frame)
        self._hash.update(encoded)
        self._starts.append(self._starts[-1] + len(frame))
        self._newlines.append(self._breaks)
        self._breaks += text.count("\n")
        self.size += len(encoded)
        self.chars += len(text)
        self._last = text[-1]
