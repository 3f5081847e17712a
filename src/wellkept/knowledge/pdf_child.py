"""Program that extracts the text of one PDF: the document on standard input, JSON on standard output.

It runs as a process of its own, so that a document that never ends or unpacks without end takes nothing else along. It
imports nothing of ours, to start quickly. Arguments: the most bytes of memory, the most seconds of the processor, and
the folders of modules. The answer has `title` and `parts`, or `refused` or `exceeded`.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from itertools import islice
from typing import Any

MAX_PAGES = 5_000
MAX_CHARS = 5_000_000
MAX_PARAGRAPHS = 250_000
MAX_BOOKMARKS = 5_000
MAX_DEPTH = 6


def main() -> None:
    """Read a document and print the answer."""
    memory, seconds, sys.path[:] = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    limit_process(memory, seconds)
    try:
        answer = extract_text(sys.stdin.buffer.read())
    except MemoryError:
        answer = {"exceeded": f"{memory // 1_000_000} MB"}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode())


def limit_process(memory: int, seconds: int) -> None:
    """Limit this process, where the system can; a process that takes too long is also stopped from outside."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    for kind, limit in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory)):
        # macOS refuses to limit the address space; a lower limit from outside stays.
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit, limit))


def extract_text(content: bytes) -> dict[str, Any]:
    """Return the title and the parts (level, text, page; level 0 is a paragraph) of a PDF, or why it is not read."""
    pypdf, errors = import_module("pypdf"), import_module("pypdf.errors")
    try:
        reader = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"refused": "is encrypted; save it without a password."}
        if len(reader.pages) > MAX_PAGES:
            return {"refused": f"has more than {MAX_PAGES:,} pages; split it."}
        parts: list[tuple[int, str, int]] = []
        chars = 0
        for part in _iter_parts(reader):
            parts.append(part)
            chars += len(part[1])
            if chars > MAX_CHARS:
                return {"exceeded": f"{MAX_CHARS:,} characters"}
            if len(parts) > MAX_PARAGRAPHS:
                return {"refused": f"has more than {MAX_PARAGRAPHS:,} paragraphs; split it."}
        title = " ".join(_clean(str((reader.metadata or {}).get("/Title") or "")).split())
        return {"title": title[:MAX_CHARS], "parts": parts}
    except errors.DependencyError:
        return {"refused": "is encrypted in a way that cannot be read here; save it without a password."}
    except errors.LimitReachedError:
        return {"exceeded": "the allowed work"}
    except RecursionError:
        return {"refused": "is broken: it refers to itself without end."}


def _iter_parts(reader: Any) -> Iterator[tuple[int, str, int]]:
    """Yield the bookmarks and paragraphs of each page; a bookmark is at its line, or at the top of the page."""
    bookmarks: dict[int, list[tuple[int, str]]] = {}
    for page, level, name in islice(_iter_bookmarks(reader, reader.outline, 1), MAX_BOOKMARKS):
        bookmarks.setdefault(page, []).append((level, name))
    for index, page in enumerate(reader.pages):
        lines = _clean(page.extract_text()).split("\n")
        headings: dict[int, list[tuple[int, str]]] = {}
        plain = ["".join(line.split()).casefold() for line in lines] if index in bookmarks else []
        reached = 0
        for level, name in bookmarks.get(index, ()):
            needle = "".join(name.split()).casefold()
            reached = next((at for at in range(reached, len(plain)) if plain[at].endswith(needle)), reached)
            headings.setdefault(reached, []).append((level, name))
        held: list[str] = []
        for at, line in enumerate([*lines, ""]):
            if at in headings or not line.strip():
                if text := "\n".join(held).strip():
                    yield 0, text, index + 1
                held = []
            for level, name in headings.get(at, ()):
                yield level, name, index + 1
            held.append(line.rstrip())


def _iter_bookmarks(reader: Any, outline: Any, level: int) -> Iterator[tuple[int, int, str]]:
    """Yield page, level and name of each bookmark."""
    for each in outline:
        if isinstance(each, list):
            if level < MAX_DEPTH:
                yield from _iter_bookmarks(reader, each, level + 1)
        else:
            page = reader.get_destination_page_number(each)
            name = " ".join(_clean(str(each.title)).split())
            if page is not None and page >= 0 and name:
                yield page, level, name


def _clean(text: str) -> str:
    """Remove characters that cannot be stored."""
    return text.replace("\x00", "").encode(errors="replace").decode()


if __name__ == "__main__":
    main()
