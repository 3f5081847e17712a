"""Details for programs."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.cli.json_text import write_json
from recollect.cli.view import json_record
from recollect.model import Detail, DetailPage, Json
from recollect.policy.details.references import reference


class JsonDetails:
    """The part of `View` that is about details, as JSON."""

    def detail_stored(self, detail: Detail) -> None:
        write_json(_told(detail))

    def detail_list(self, found: Sequence[Detail]) -> None:
        write_json({"items": [_told(each) for each in found], "next_cursor": None})

    def detail_part(self, page: DetailPage) -> None:
        write_json(_with_key(json_record(page)))

    def detail_changed(self, key: str, done: str) -> None:
        write_json({"ok": True, "memory_key": key})


def _told(detail: Detail) -> Json:
    record = _with_key(json_record(detail))
    del record["content_hash"]
    return record | {"reference": reference(detail.key, detail.description)}


def _with_key(record: Json) -> Json:
    return {"memory_key": record.pop("key"), **record}
