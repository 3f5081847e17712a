"""The MCP memory server's `memory.jsonl`: entities with what was observed of them, and relations between them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recollect.model import ForeignItem, ForeignMemory, Refused
from recollect.providers.importers import files

_MEMBER = re.compile(r"memory.*\.jsonl?", re.IGNORECASE)
_LINE = re.compile(r'^\s*\{\s*"type"\s*:\s*"(entity|relation)"', re.MULTILINE)
GRAPH = ("entities", "relations")


class McpMemory:
    """`ports.ForeignFormat`."""

    name = "mcp-memory"

    def recognises(self, path: Path) -> bool:
        start = files.head(path, _MEMBER)
        return _LINE.search(start) is not None or ('"entityType"' in start and '"observations"' in start)

    def read(self, path: Path) -> Iterator[ForeignItem]:
        """Raises: Invalid, OSError."""
        with files.opened(path, _MEMBER) as streams:
            for _, stream in streams:
                yield from _lines(stream.read(files.MAX_ENTRY_CHARS))


def _lines(text: str) -> Iterator[ForeignItem]:
    """A line for each, so that a damaged one harms no other; or the whole graph in one object, as a tool answers it."""
    graph = _loaded(text)
    if isinstance(graph, dict) and any(isinstance(graph.get(name), list) for name in GRAPH):
        listed = [each for name in GRAPH for each in graph.get(name) or ()]
        for number, entry in enumerate(listed, 1):
            yield from _items(f"entry {number}", entry)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield from _items(f"line {number}", _loaded(line))


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _items(place: str, entry: Any) -> Iterator[ForeignItem]:
    if not isinstance(entry, dict):
        yield Refused(place=place, reason="It is not a JSON object.")
        return
    name, kind = files.text_of(entry, "name"), files.text_of(entry, "entityType")
    if files.text_of(entry, "from") and files.text_of(entry, "to"):
        said = [" ".join(files.text_of(entry, each) for each in ("from", "relationType", "to"))]
        marks = files.tags("relation")
    elif name:
        about = f"{name} ({kind})" if kind else name
        seen = entry.get("observations")
        noticed = [each for each in seen if isinstance(each, str) and each.strip()] if isinstance(seen, list) else []
        said = [f"{about}: {each}" for each in noticed] or [f"{name} is known as {kind}" if kind else name]
        marks = files.tags(kind, name)
        if isinstance(seen, list) and len(noticed) < len(seen):
            yield Refused(place=place, reason="One of its observations is no text.")
    else:
        yield Refused(place=place, reason="It is neither an entity with a name nor a relation from one to another.")
        return
    for text in said:
        for piece in files.note_pieces(text):
            yield ForeignMemory(place=place, text=piece, tags=marks, created_at=files.moment(entry.get("createdAt")))
