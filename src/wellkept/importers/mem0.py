"""mem0's `get_all` or export as JSON: a list, or an object with `results` and perhaps `relations`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wellkept.importers import files
from wellkept.model import ForeignItem, ForeignMemory, RefusedItem, Scope

LISTS = ("results", "memories", "relations")
_MEMBER = re.compile(r".*\.jsonl?", re.IGNORECASE)
_MEMORY = re.compile(r'"memory"\s*:')
_SIGNS = re.compile(r'"(user_id|agent_id|run_id|app_id|hash|categories|score)"\s*:')


class Mem0:
    """`importers.format.ForeignFormat` of mem0."""

    name = "mem0"

    def recognises(self, path: Path) -> bool:
        start = files.read_head(path, _MEMBER)
        return _MEMORY.search(start) is not None and _SIGNS.search(start) is not None

    def read(self, path: Path) -> Iterator[ForeignItem]:
        """Raises: Invalid, OSError."""
        return files.read_items(path, _MEMBER, LISTS, what="memory", parse=_parse_memory)


def _parse_memory(place: str, entry: Any) -> Iterator[ForeignItem]:
    if not isinstance(entry, dict):
        yield RefusedItem(place=place, reason="It is not a memory of mem0: not a JSON object.")
        return
    related = [files.first_text(entry, name) for name in ("source", "relationship", "target", "destination")]
    text = files.first_text(entry, "memory", "text", "content") or (
        " ".join(filter(None, related)) if related[1] else ""
    )
    if not text:
        yield RefusedItem(place=place, reason="It has no text under `memory`.")
        return
    details = entry["metadata"] if isinstance(entry.get("metadata"), dict) else {}
    # Unusable names are refused later: without its user, a memory would be everybody's.
    user = entry.get("user_id")
    for piece in files.split_note(text):
        yield ForeignMemory(
            place=place,
            text=piece,
            agent=files.make_agent_id(entry.get("agent_id")),
            tags=files.make_tags(
                entry.get("categories"),
                details.get("category"),
                details.get("categories"),
            ),
            scope=None if user is None else Scope.USER.value,
            user=None if user is None else str(user),
            session_id=files.make_session_id(entry.get("run_id")),
            created_at=files.parse_time(entry.get("created_at")),
            metadata=details,
        )
