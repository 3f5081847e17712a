"""Turns texts of a SQLite store into files beside it, as version 0.2 kept them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import apsw

from wellkept.store.tables.details import pack_numbers, tenant_folder, unpack_numbers


def put_into_files(database: Path) -> list[Path]:
    """Move every text from rows into a file; return the files."""
    connection = apsw.Connection(str(database))
    connection.set_busy_timeout(100_000)
    folder, files = Path(f"{database}.blobs"), []
    texts: list[Any] = connection.execute(
        "SELECT tenant_id, content_hash, size, chars, line_index FROM detail_contents"
    ).fetchall()
    for tenant, content_hash, size, chars, line_index in texts:
        rows: Any = connection.execute(
            "SELECT frame FROM detail_chunks WHERE tenant_id = ? AND content_hash = ? ORDER BY position",
            (tenant, content_hash),
        )
        frames = [frame for (frame,) in rows]
        path = folder / tenant_folder(tenant) / f"{content_hash}.zst"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_file(frames, [*unpack_numbers(line_index)], size, chars))
        files.append(path)
    with connection:
        connection.execute("DELETE FROM detail_chunks")
        connection.execute("UPDATE detail_contents SET line_index = x''")
    connection.close()
    if folder.is_dir():
        (folder / "store-id").write_text("1\n")
    return files


def encode_file(frames: list[bytes], newlines: list[int], size: int, chars: int) -> bytes:
    """Encode chunks with their index and the footer, which version 0.2 read from the end of a file."""
    starts = [0]
    for frame in frames:
        starts.append(starts[-1] + len(frame))
    index = pack_numbers([*starts, *newlines])
    footer = struct.Struct("<QQQQI8s")
    head = footer.pack(starts[-1], len(newlines), size, chars, 0, b"rcl-txt1")
    end = footer.pack(starts[-1], len(newlines), size, chars, zlib.crc32(index + head), b"rcl-txt1")
    return b"".join(frames) + struct.pack("<II", 0x184D2A5E, len(index) + len(end)) + index + end
