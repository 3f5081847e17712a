"""Receipts for programs."""

from __future__ import annotations

from recollect.cli.json_text import write_json
from recollect.cli.view import json_record
from recollect.model import Receipt


class JsonErasure:
    """The part of `View` that is about erasure, as JSON."""

    def erasure(self, receipt: Receipt) -> None:
        write_json(json_record(receipt) | {"found": [json_record(each) for each in receipt.found]})
