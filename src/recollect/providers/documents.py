"""Documents as files: finding them, loading them, and handing each to the reader for its kind."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NoReturn

from recollect.errors import Invalid
from recollect.ports import Reading
from recollect.providers.readers.html import declared_charset, read_html
from recollect.providers.readers.pdf import read_pdf
from recollect.providers.readers.text import read_markdown, read_text

MAX_BYTES = 50_000_000
MAX_CHARS = 5_000_000

MARKDOWN = frozenset([".md", ".markdown", ".mdown", ".mkd"])
HTML = frozenset([".html", ".htm", ".xhtml"])
PDF = frozenset([".pdf"])
TEXT = frozenset([".txt", ".text", ".rst", ".adoc", ".org"])
KNOWN = MARKDOWN | HTML | PDF | TEXT
"""What a folder is searched for, by the file's ending. A file that is named itself may have any."""

MAX_PATH_CHARS = 1024
ONLY_A_PATH = re.compile(rf"(?:[~.]?/)?\S+(?:{'|'.join(map(re.escape, sorted(KNOWN)))})", re.IGNORECASE)
"""One word that ends like a file: whoever says that means the file, also when it is not there."""

INSTALL = "pip install 'recollect[documents]'"
PDF_MARK = b"%PDF-"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Files:
    """`ports.DocumentFiles` on this machine."""

    def locate(self, given: str | Path) -> Path | None:
        """Raises: Invalid."""
        text = given if isinstance(given, str) else ""
        looks_like_path = not isinstance(given, str) or bool(ONLY_A_PATH.fullmatch(text))
        if not looks_like_path and (len(text) > MAX_PATH_CHARS or "\n" in text or not text.strip()):
            return None
        path = Path(given).expanduser()
        try:
            if path.exists():
                return path
        except (OSError, ValueError, RuntimeError) as error:  # too long, or holds a NUL: not a path after all
            if not isinstance(given, str):
                raise Invalid(f"{given}: cannot be read ({error}).") from error
            return None
        if looks_like_path:
            raise Invalid(f"There is no file or folder {str(given)!r}.")
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
            for path in (path.relative_to(folder) for path in _files(folder))
            if (_fits(path, include) if include else path.suffix.lower() in KNOWN) and not _fits(path, exclude)
        )

    def read(self, content: bytes, *, name: str) -> Reading:
        """Raises: Invalid."""
        if len(content) > MAX_BYTES:
            _refuse(name, f"is larger than {MAX_BYTES // 1_000_000} MB; split it")
        suffix = Path(name).suffix.lower()
        try:
            if suffix in PDF or content.startswith(PDF_MARK):
                return read_pdf(content)
            text = _decoded(content, declared_charset(content) if suffix in HTML else "utf-8")
            if suffix in HTML:
                return read_html(text)
            return read_markdown(text) if suffix in MARKDOWN or not name else read_text(text)
        except Invalid as error:
            raise Invalid(f"{name or 'The text'} {error}") from error
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("lxml", "pypdf"):
                raise
            kind = "PDF" if error.name == "pypdf" else "HTML"
            raise Invalid(f"{name} is {kind}, which needs more packages; run: {INSTALL}") from error


def _decoded(content: bytes, charset: str) -> str:
    """Raises: Invalid, without the name of the file."""
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


def _files(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder but hidden ones. Links to folders are followed once, so a loop ends, and links
    that lead out of the folder are not: a cloned repository could point them at any file of its user.

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
                inside = [entry for entry in entries if not entry.name.startswith(".") and _leads_inside(entry, top)]
        except OSError as error:
            raise Invalid(f"{current}: cannot be read ({error.strerror}).") from error
        waiting += [Path(entry.path) for entry in inside if entry.is_dir()]
        yield from (Path(entry.path) for entry in inside if entry.is_file())


def _leads_inside(entry: os.DirEntry[str], top: str) -> bool:
    return not entry.is_symlink() or Path(os.path.realpath(entry.path)).is_relative_to(top)


def _fits(path: Path, patterns: Sequence[str]) -> bool:
    """Whether the path, its name or a folder it lies in fits one of the patterns."""
    names = [path.as_posix(), path.name, *(parent.as_posix() for parent in path.parents), *path.parts[:-1]]
    return any(fnmatch(name, pattern.rstrip("/")) for pattern in patterns for name in names if name != ".")


def _refuse(name: str, problem: str) -> NoReturn:
    raise Invalid(f"{name or 'The text'} {problem}.")
