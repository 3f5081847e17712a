"""Working memory for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from recollect.cli.json_text import write_json
from recollect.cli.view import json_value
from recollect.model import ContextCall, Json, WorkingMemory


class JsonContext:
    """The part of `View` that is about working memory, as JSON."""

    def context(self, made: WorkingMemory, *, is_summary: bool, see: Callable[[], str]) -> None:
        write_json(asdict(made))

    def context_calls(self, calls: Sequence[ContextCall]) -> None:
        write_json({"items": [_call(call) for call in calls], "next_cursor": None})

    def context_call(self, call: ContextCall) -> None:
        write_json(_call(call))


def _call(call: ContextCall) -> Json:
    said = asdict(call)
    del said["owner"]
    return said | {"at": json_value(call.at)}
