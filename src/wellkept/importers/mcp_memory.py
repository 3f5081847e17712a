"""The MCP memory server's `memory.jsonl`: entities with observations, and relations between them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wellkept.importers import files
from wellkept.model import ForeignItem, ForeignMemory, RefusedItem

_MEMBER = re.compile(r"memory.*\.jsonl?", re.IGNORECASE)
_LINE = re.compile(r'^\s*\{\s*"type"\s*:\s*"(entity|relation)"', re.MULTILINE)
GRAPH = ("entities", "relations")


class McpMemory:
    """`importers.format.ForeignFormat` of the MCP memory server."""

    name = "mcp-memory"

    def recognises(self, path: Path) -> bool:
        start = files.read_head(path, _MEMBER)
        return _LINE.search(start) is not None or ('"entityType"' in start and '"observations"' in start)

    def read(self, path: Path) -> Iterator[ForeignItem]:
        """Raises: Invalid, OSError."""
        with files.open_members(path, _MEMBER) as streams:
            for _, stream in streams:
                yield from _read_entries(stream.read(files.MAX_ENTRY_CHARS))


def _read_entries(text: str) -> Iterator[ForeignItem]:
    """Read one entry per line, so that a damaged one affects no other; or the whole graph in one object."""
    graph = _decode(text)
    if isinstance(graph, dict) and any(isinstance(graph.get(name), list) for name in GRAPH):
        listed = [each for name in GRAPH for each in graph.get(name) or ()]
        for number, entry in enumerate(listed, 1):
            yield from _parse_entry(f"entry {number}", entry)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield from _parse_entry(f"line {number}", _decode(line))


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _parse_entry(place: str, entry: Any) -> Iterator[ForeignItem]:
    if not isinstance(entry, dict):
        yield RefusedItem(place=place, reason="It is not a JSON object.")
        return
    name, kind = files.first_text(entry, "name"), files.first_text(entry, "entityType")
    if files.first_text(entry, "from") and files.first_text(entry, "to"):
        texts = [" ".join(files.first_text(entry, each) for each in ("from", "relationType", "to"))]
        marks = files.make_tags("relation")
    elif name:
        about = f"{name} ({kind})" if kind else name
        observations = entry.get("observations")
        valid = (
            [each for each in observations if isinstance(each, str) and each.strip()]
            if isinstance(observations, list)
            else []
        )
        texts = [f"{about}: {each}" for each in valid] or [f"{name} is known as {kind}" if kind else name]
        marks = files.make_tags(kind, name)
        if isinstance(observations, list) and len(valid) < len(observations):
            yield RefusedItem(place=place, reason="One of its observations is not text.")
    else:
        yield RefusedItem(place=place, reason="It is neither an entity with a name nor a relation from one to another.")
        return
    for text in texts:
        for piece in files.split_note(text):
            yield ForeignMemory(
                place=place, text=piece, tags=marks, created_at=files.parse_time(entry.get("createdAt"))
            )
