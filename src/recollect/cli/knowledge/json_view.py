"""Knowledge for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from recollect.cli.json_text import write_json
from recollect.cli.view import json_record
from recollect.model import Chunk, Document, Json, Skill
from recollect.services.knowledge.report import Ingested


class JsonKnowledge:
    """The part of `View` that is about knowledge, as JSON."""

    def ingested(self, ingested: Ingested) -> None:
        items = [
            _document(each.document) | {"change": each.change.value, "passages": each.passages}
            for each in ingested.documents
        ]
        failures = [asdict(each) for each in ingested.failures]
        write_json({"items": items, "failures": failures, "removed": list(ingested.removed)})

    def documents(self, documents: Sequence[Document], *, next_cursor: str | None) -> None:
        write_json({"items": [_document(each) for each in documents], "next_cursor": next_cursor})

    def document(self, document: Document, passages: Sequence[Chunk]) -> None:
        told = [{"position": each.position, "text": each.text} for each in passages]
        write_json(_document(document) | {"passages": told})

    def skills(self, skills: Sequence[Skill], problems: Sequence[str], *, is_whole: bool) -> None:
        write_json({"items": [json_record(each) for each in skills], "next_cursor": None, "problems": list(problems)})


def _document(document: Document) -> Json:
    """Every field but whose it is."""
    return {name: value for name, value in json_record(document).items() if name != "tenant"}
