"""Document files: find and load them, and pass each to the reader for its type."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NoReturn

from wellkept.errors import Invalid
from wellkept.knowledge.readers.html import declared_charset, read_html
from wellkept.knowledge.readers.pdf import read_pdf
from wellkept.knowledge.readers.text import read_markdown, read_text
from wellkept.knowledge.rules_chunking import Reading
from wellkept.program import advise_install

MAX_BYTES = 50_000_000
MAX_CHARS = 5_000_000

MARKDOWN = frozenset([".md", ".markdown", ".mdown", ".mkd"])
HTML = frozenset([".html", ".htm", ".xhtml"])
PDF = frozenset([".pdf"])
TEXT = frozenset([".txt", ".text", ".rst", ".adoc", ".org"])
KNOWN = MARKDOWN | HTML | PDF | TEXT
"""Endings searched for in a folder. A file that is named directly may have any ending."""

MAX_PATH_CHARS = 1024
PATH_PATTERN = re.compile(rf"(?:[~.]?/)?\S+(?:{'|'.join(map(re.escape, sorted(KNOWN)))})", re.IGNORECASE)
"""One word that ends like a file: it is taken as a path even if the file does not exist."""

PDF_MARK = b"%PDF-"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Files:
    """Document files on disk."""

    def locate(self, path_or_text: str | Path) -> Path | None:
        """Raises: Invalid."""
        text = path_or_text if isinstance(path_or_text, str) else ""
        looks_like_path = not isinstance(path_or_text, str) or bool(PATH_PATTERN.fullmatch(text))
        if not looks_like_path and (len(text) > MAX_PATH_CHARS or "\n" in text or not text.strip()):
            return None
        path = Path(os.path.expanduser(path_or_text))
        try:
            if path.exists():
                return path
        except (OSError, ValueError, RuntimeError) as error:
            # Too long or with a NUL: a text, not a path.
            if not isinstance(path_or_text, str):
                raise Invalid(f"{path_or_text}: cannot be read ({error}).") from error
            return None
        if looks_like_path:
            raise Invalid(f"There is no file or folder {str(path_or_text)!r}.")
        return None

    def is_folder(self, path: Path) -> bool:
        return path.is_dir()

    def load(self, path: Path) -> bytes:
        """Raises: Invalid."""
        try:
            with open(path, "rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error
        if len(content) > MAX_BYTES:
            _refuse(str(path), f"is larger than {MAX_BYTES // 1_000_000} MB; split it")
        return content

    def walk(self, folder: Path, *, include: Sequence[str], exclude: Sequence[str]) -> Sequence[Path]:
        """Raises: Invalid."""
        return sorted(
            path
            for path in (path.relative_to(folder) for path in _iter_files(folder))
            if (_matches(path, include) if include else path.suffix.lower() in KNOWN) and not _matches(path, exclude)
        )

    def read(self, content: bytes, *, name: str) -> Reading:
        """Raises: Invalid."""
        if len(content) > MAX_BYTES:
            _refuse(name, f"is larger than {MAX_BYTES // 1_000_000} MB; split it")
        suffix = Path(name).suffix.lower()
        try:
            if suffix in PDF or content.startswith(PDF_MARK):
                return read_pdf(content)
            text = _decode(content, declared_charset(content) if suffix in HTML else "utf-8")
            if suffix in HTML:
                return read_html(text)
            return read_markdown(text) if suffix in MARKDOWN or not name else read_text(text)
        except Invalid as error:
            raise Invalid(f"{name or 'The text'} {error}") from error
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("lxml", "pypdf"):
                raise
            kind = "PDF" if error.name == "pypdf" else "HTML"
            raise Invalid(f"{name} is {kind}, which needs more packages; {advise_install('documents')}") from error


def _decode(content: bytes, charset: str) -> str:
    """Decode the content of a text file. Raises: Invalid, without the name of the file."""
    if content.startswith(UTF_16):
        charset = "utf-16"
    elif b"\x00" in content:
        raise Invalid("is not text: it holds NUL bytes.")
    try:
        text = content.decode("utf-8-sig" if charset.lower() in ("utf-8", "utf8") else charset)
    except (UnicodeDecodeError, LookupError) as error:
        line = content.count(b"\n", 0, error.start) + 1 if isinstance(error, UnicodeDecodeError) else 1
        raise Invalid(f"is not {charset[:40]} text (at line {line}); save it as UTF-8.") from error
    if len(text) > MAX_CHARS:
        raise Invalid(f"has more than {MAX_CHARS:,} characters; split it.")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x00" in text:
        raise Invalid(f"holds a NUL character (at line {text.count(chr(10), 0, text.index(chr(0))) + 1}); remove it.")
    return text


def _iter_files(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder except hidden ones.

    Links to folders are followed once, so loops end. Links that lead out of the folder are not followed: a cloned
    repository could point them at any file of its user.

    Raises: Invalid.
    """
    top = os.path.realpath(folder)
    seen: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            status = current.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(current) as entries:
                inside = [entry for entry in entries if not entry.name.startswith(".") and _is_inside(entry, top)]
        except OSError as error:
            raise Invalid(f"{current}: cannot be read ({error.strerror}).") from error
        waiting += [Path(entry.path) for entry in inside if entry.is_dir()]
        yield from (Path(entry.path) for entry in inside if entry.is_file())


def _is_inside(entry: os.DirEntry[str], top: str) -> bool:
    return not entry.is_symlink() or Path(os.path.realpath(entry.path)).is_relative_to(top)


def _matches(path: Path, patterns: Sequence[str]) -> bool:
    """Return True if the path, its name or one of its folders matches one of the patterns."""
    names = [path.as_posix(), path.name, *(parent.as_posix() for parent in path.parents), *path.parts[:-1]]
    return any(fnmatch(name, pattern.rstrip("/")) for pattern in patterns for name in names if name != ".")


def _refuse(name: str, problem: str) -> NoReturn:
    raise Invalid(f"{name or 'The text'} {problem}.")
