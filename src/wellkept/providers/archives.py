"""Archive files: written under a temporary name until complete, read line by line, plain or compressed."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from wellkept.compression import zstd, zstd_options
from wellkept.errors import Invalid

GZIP_MARK = b"\x1f\x8b"
ZSTD_MARK = b"\x28\xb5\x2f\xfd"
GZIP_LEVEL = 6
PART = ".part"


@contextmanager
def create_archive(path: Path, *, compression: str | None = None) -> Iterator[IO[bytes]]:
    """Open a file for writing; it takes its name once it is complete. Raises: Invalid."""
    try:
        # A pipe or a device is written directly: it cannot be replaced.
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            with path.open("wb") as file:
                yield file
            return
        draft = path.with_name(f"{path.name}{PART}")
        fd = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Invalid(f"{path}: cannot be written ({error.strerror}).") from error
    try:
        with os.fdopen(fd, "wb") as file:
            with open_compressed(file, path.suffix if compression is None else compression) as content:
                yield content
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        raise Invalid(f"{path}: cannot be written ({error.strerror}).") from error
    finally:
        # The draft is left only after a failure; otherwise it was renamed.
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def open_archive(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file for reading; yield the decompressed stream and the file below it.

    Raises: Invalid.
    """
    # Loaded here, because a generator may be closed while the interpreter ends.
    broken = zstd.ZstdError
    try:
        with path.open("rb") as file:
            mark = file.read(4)
            file.seek(0)
            yield _open_decompressed(file, mark), file
    except (EOFError, zlib.error, gzip.BadGzipFile, broken) as error:
        raise Invalid(f"{path.name}: cannot be unpacked; it is cut off or damaged. Copy it again.") from error
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error


def read_lines(path: Path, *, max_bytes: int) -> Iterator[tuple[bytes, int]]:
    """Yield each line, and how many bytes of the file have been read. Raises: Invalid."""
    with open_archive(path) as (stream, file):
        while line := stream.readline(max_bytes + 1):
            if len(line) > max_bytes:
                raise Invalid(f"{path.name}: a line is longer than {max_bytes // 1024 // 1024} MiB.")
            yield line, file.tell()


def get_size(path: Path) -> int:
    """Return the size of a file in bytes. Raises: Invalid."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error


@contextmanager
def open_compressed(file: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    """Open a stream that compresses into `file` according to a suffix; `file` itself stays open."""
    if suffix == ".gz":
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=GZIP_LEVEL, filename="", mtime=0) as compressed:
            yield cast(IO[bytes], compressed)
    elif suffix == ".zst":
        with zstd.ZstdFile(file, mode="wb", options=zstd_options()) as compressed:
            yield cast(IO[bytes], compressed)
    else:
        yield file


def _open_decompressed(file: IO[bytes], mark: bytes) -> IO[bytes]:
    """Open a file for reading, decompressed according to its first bytes, not its name."""
    if mark.startswith(GZIP_MARK):
        return cast(IO[bytes], io.BufferedReader(gzip.GzipFile(fileobj=file, mode="rb")))
    if mark == ZSTD_MARK:
        return cast(IO[bytes], zstd.ZstdFile(file))
    return file
