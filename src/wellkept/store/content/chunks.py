"""Chunked storage of long texts: chunks with an equal number of characters, each compressed separately.

Reading a part of the text decompresses only the one or two chunks that contain it. The chunk of a character follows
from its offset, the chunk of a line from a small index of the line breaks before each chunk. Each chunk carries its own
checksum. A text may arrive in pieces; its chunks are written to a file that the caller provides and owns.

    file:   chunk, chunk, …, index, footer; a chunk is a Zstandard frame, the rest a skippable frame, so that `zstdcat`
            prints the text
    index:  offset of each chunk (and the end of the last one), then the line breaks before each chunk
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from wellkept.compression import zstd, zstd_options
from wellkept.errors import StoreError
from wellkept.language.text import replace_half_pairs

CHUNK_CHARS = 128 * 1024
MAX_CHUNK_BYTES = 4 * CHUNK_CHARS
"""Maximum size of a chunk: a character takes at most four bytes in UTF-8."""

MAGIC = b"rcl-txt1"
_SKIPPED = struct.Struct("<II")  # header of a skippable frame: magic number and length
_SKIPPED_MARK = 0x184D2A5E
_FOOTER = struct.Struct("<QQQQI8s")  # index offset, chunks, bytes, characters, checksum, MAGIC

MISSING = "The text behind this key is missing from the store. Other details are whole; store this one again."
DAMAGED = "The text behind this key is damaged in the store. Other details are whole; store this one again."


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """Positions of the chunks in a file."""

    starts: Sequence[int]  # offset of each chunk, and the end of the last one
    newlines: Sequence[int]  # line breaks before each chunk
    size: int
    chars: int

    def pack(self) -> bytes:
        """Encode the index and the footer, which end a file."""
        index = pack_numbers([*self.starts, *self.newlines])
        head = _FOOTER.pack(self.starts[-1], len(self.newlines), self.size, self.chars, 0, MAGIC)
        footer = _FOOTER.pack(*_FOOTER.unpack(head)[:4], zlib.crc32(index + head), MAGIC)
        return _SKIPPED.pack(_SKIPPED_MARK, len(index) + len(footer)) + index + footer


def pack_numbers(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def unpack_numbers(packed: bytes) -> Sequence[int]:
    """Decode what `pack_numbers` returned. Raises: StoreError."""
    if len(packed) % 8:
        raise StoreError(DAMAGED)
    return struct.unpack(f"<{len(packed) // 8}Q", packed)


def read_index(fd: int) -> ChunkIndex:
    """Read the index of a file. Raises: StoreError when it is damaged."""
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
    numbers = unpack_numbers(packed)
    return ChunkIndex(numbers[: count + 1], numbers[count + 1 :], size, chars)


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
        self._starts = [0]
        self._newlines: list[int] = []
        self._last = ""
        self.size = self.chars = self._breaks = 0

    @property
    def content_hash(self) -> str:
        return self._hash.hexdigest()

    @property
    def lines(self) -> int:
        """Number of lines; the last one counts even without a line break."""
        return self._breaks + (self.chars > 0 and self._last != "\n")

    @property
    def index(self) -> ChunkIndex:
        return ChunkIndex(tuple(self._starts), tuple(self._newlines), self.size, self.chars)

    def feed(self, text: str) -> None:
        for start in range(0, len(text), CHUNK_CHARS):
            self._buffer.append(replace_half_pairs(text[start : start + CHUNK_CHARS]))
            self._buffered_chars += len(self._buffer[-1])
            if self._buffered_chars >= CHUNK_CHARS:
                joined = "".join(self._buffer)
                self._add(joined[:CHUNK_CHARS])
                self._buffer, self._buffered_chars = [joined[CHUNK_CHARS:]], len(joined) - CHUNK_CHARS

    def finish(self) -> None:
        """Write the buffered rest, then the index."""
        if self._buffered_chars:
            self._add("".join(self._buffer))
        self._buffer, self._buffered_chars = [], 0
        self.file.write(self.index.pack())
        self.file.flush()

    def frames(self) -> Iterator[bytes]:
        """Yield every compressed chunk."""
        for begin, end in zip(self._starts, self._starts[1:], strict=False):
            self.file.seek(begin)
            yield self.file.read(end - begin)

    def _add(self, text: str) -> None:
        encoded = text.encode()
        frame = self._compressor.compress(encoded, zstd.ZstdCompressor.FLUSH_FRAME)
        self.file.write(frame)
        self._hash.update(encoded)
        self._starts.append(self._starts[-1] + len(frame))
        self._newlines.append(self._breaks)
        self._breaks += text.count("\n")
        self.size += len(encoded)
        self.chars += len(text)
        self._last = text[-1]
