"""LangGraph stores: items with a namespace, a key and a value, as a list, under `items`, or one per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wellkept.importers import files
from wellkept.model import ForeignItem, ForeignValue, RefusedItem

LISTS = ("items", "results")

_MEMBER = re.compile(r".*\.jsonl?", re.IGNORECASE)


class LangGraph:
    """`importers.format.ForeignFormat` of LangGraph."""

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
    where, key = entry.get("namespace", entry.get("prefix")), entry.get("key")
    names = where.split(".") if isinstance(where, str) else where if isinstance(where, list) else []
    value = _decode_value(entry["value"])
    if not names or not isinstance(key, str) or value is None:
        yield RefusedItem(place=place, reason="It has no namespace, no key or no value.")
        return
    minutes = entry.get("ttl_minutes")
    yield ForeignValue(
        place=place,
        namespace=tuple(names),
        key=key,
        value=value,
        created_at=files.parse_time(entry.get("created_at")),
        expires_at=files.parse_time(entry.get("expires_at")),
        # LangGraph starts a lifetime again with each reading.
        sliding_ttl=60.0 * minutes if isinstance(minutes, int | float) else None,
    )


def _decode_value(value: Any) -> Any:
    """Decode a value that a database returns as JSON text."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
