"""LangGraph stores: items with a namespace, a key and a value, as a list, under `items`, or one per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recollect.model import ForeignItem, ForeignMemory, RefusedItem
from recollect.providers.importers import files

LISTS = ("items", "results")
TEXTS = ("content", "memory", "text", "data", "fact", "note", "value", "summary")
"""Fields of a value that hold the text, in the programs seen so far."""

_MEMBER = re.compile(r".*\.jsonl?", re.IGNORECASE)


class LangGraph:
    """`ports.ForeignFormat` of LangGraph."""

    name = "langgraph"

    def recognises(self, path: Path) -> bool:
        start = files.read_head(path, _MEMBER)
        has_place = re.search(r'"(namespace|prefix)"\s*:', start) is not None
        return has_place and all(re.search(rf'"{name}"\s*:', start) for name in ("key", "value"))

    def read(self, path: Path) -> Iterator[ForeignItem]:
        """Raises: Invalid, OSError."""
        return files.read_items(path, _MEMBER, LISTS, what="item", parse=_parse_item)


def _parse_item(place: str, entry: Any) -> Iterator[ForeignItem]:
    if not isinstance(entry, dict) or "value" not in entry:
        yield RefusedItem(place=place, reason="It is not an item of a store: there is no `value`.")
        return
    where = entry.get("namespace", entry.get("prefix"))
    parts = where.split(".") if isinstance(where, str) else where if isinstance(where, list) else []
    value = _decode_value(entry["value"])
    text = _render_value(value)
    if not text:
        yield RefusedItem(place=place, reason="Its value holds no text.")
        return
    for piece in files.split_note(text):
        yield ForeignMemory(
            place=place,
            text=piece,
            tags=files.make_tags([part for part in parts if isinstance(part, str)]),
            created_at=files.parse_time(entry.get("created_at")),
            metadata=_find_other_fields(value, text),
        )


def _decode_value(value: Any) -> Any:
    """Decode a value that a database returns as JSON text."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _find_other_fields(value: Any, text: str) -> dict[str, Any]:
    """Return the fields of a value besides its text; none if the text renders all of them."""
    if not isinstance(value, dict) or not any(_render_value(value.get(name)) == text for name in TEXTS):
        return {}
    return {name: inner for name, inner in value.items() if name not in TEXTS}


def _render_value(value: Any) -> str:
    """Render a value: its text, or else its fields on a line each."""
    if isinstance(value, str):
        return value.strip()
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if value not in (None, [], {}) else ""
    for name in TEXTS:
        inner = value.get(name)
        if isinstance(inner, str | dict) and (text := _render_value(inner)):
            return text
    fields = {name: inner for name, inner in value.items() if inner not in (None, "", [], {})}
    return "\n".join(
        f"{name}: {inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)}"
        for name, inner in fields.items()
    )
