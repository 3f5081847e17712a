"""Knowledge for pipes and files."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from recollect.cli.view import one_line, plain_time, safe
from recollect.model import Chunk, Document, Skill
from recollect.services.knowledge.report import Ingested, IngestFailure

EVERYBODY = NONE = "-"


class PlainKnowledge:
    """The part of `View` that is about knowledge, as lines."""

    def ingested(self, ingested: Ingested) -> None:
        for each in ingested.documents:
            document = each.document
            count = f"{each.passages} passage{'' if each.passages == 1 else 's'}"
            print("\t".join([each.change.value, document.id, count, one_line(document.source or document.title)]))
        for id in ingested.removed:
            print(f"removed\t{id}")
        for failure in ingested.failures:
            print(one_line(failed(failure)), file=sys.stderr)

    def documents(self, documents: Sequence[Document], *, next_cursor: str | None) -> None:
        for each in documents:
            print("\t".join([each.id, state(each), one_line(each.category) or NONE, one_line(each.title)]))

    def document(self, document: Document, passages: Sequence[Chunk]) -> None:
        for name, value in about(document).items():
            print(f"{name}: {one_line(value)}")
        for passage in passages:
            print(f"\n[{passage.position}]\n{safe(passage.text)}")

    def skills(self, skills: Sequence[Skill], problems: Sequence[str], *, is_whole: bool) -> None:
        for skill in skills:
            if is_whole:
                print(safe(skill.body))
            else:
                agents = ",".join(skill.agents) or EVERYBODY
                print("\t".join([safe(skill.name), safe(agents), one_line(skill.description)]))
        for problem in problems:
            print(one_line(problem), file=sys.stderr)


def failed(failure: IngestFailure) -> str:
    """Why a file is not in, with its path."""
    return failure.reason if failure.source in failure.reason else f"{failure.source}: {failure.reason}"


def state(document: Document) -> str:
    """Whether a document is found."""
    return "published" if document.is_published else "hidden"


def about(document: Document) -> dict[str, str]:
    """What there is to say about a document besides its text; the empty ones are left out."""
    told = {
        "id": document.id,
        "title": document.title,
        "category": document.category,
        "source": document.source,
        "state": state(document),
        "created_at": plain_time(document.created_at),
        "updated_at": plain_time(document.updated_at),
        "flag": document.flag or "",
    }
    return {name: value for name, value in told.items() if value}
