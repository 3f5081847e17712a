"""The REST part of the corpus: recorded area by area, each on a server and a store of its own.

`scenarios/` has the good requests of each area, in their order. A line that begins with `*` opens a section: its
request is also made with every key, and in hundreds of bad forms (`spoiling.py`). With `-` it is only made with the
keys that are refused, because it must not be repeated. The lines below belong to the section. Who asks is `admin`
unless a line names somebody else. Ids that the store draws are written as the masks name them: `<detail.1>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.corpus.asking import REQUEST, asking
from tests.corpus.openapi import document
from tests.corpus.recording import Section, asked_again, grouped, in_a_row, load, replay, save
from tests.corpus.spoiling import keys_after, keys_before, operation_of, spoiled

SCENARIOS = Path(__file__).with_name("scenarios")
AREAS = tuple(sorted(path.stem for path in SCENARIOS.glob("*.txt")))
WHO = ("nobody", "wrong", "read", "write", "admin", "operator", "other", "bound")


def record(area: str) -> int:
    """Record an area, and return how many requests it has."""
    sections: list[Section] = []
    with asking(area) as ask:
        for title, good, bad in _planned(area):
            section = Section(title, in_a_row((each, ask(title, each)) for each in good))
            refused = [(each, ask(title, each)) for each in dict.fromkeys(bad)]
            section.exchanges += grouped(each for each in refused if each[1][0] in "45")
            section.exchanges += grouped(each for each in refused if each[1][0] not in "45")
            sections.append(section)
    with asking(area) as ask:  # in the order in which it was grouped
        sections = asked_again(sections, ask)
    save(f"rest_{area}", sections)
    return sum(len(each.asked) for section in sections for each in section.exchanges)


def compare(area: str) -> list[str]:
    """Ask what was recorded of an area once more, and describe what has changed."""
    with asking(area) as ask:
        return replay(load(f"rest_{area}"), ask)


def _planned(area: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each section: its title, its good requests and its bad ones."""
    described = document()
    title, good, bad = f"{area}: preparations", list[str](), list[str]()
    for line in (SCENARIOS / f"{area}.txt").read_text("utf-8").splitlines():
        asked = line.removeprefix("* ").removeprefix("- ")
        if asked.partition(" ")[0] not in WHO:
            asked = f"admin {asked}"
        if line.startswith(("* ", "- ")):
            if good:
                yield title, good, bad
            _, method, target, _, _ = REQUEST.fullmatch(asked).groups()  # type: ignore[union-attr]
            title = f"{method} {operation_of(described, method, target.partition('?')[0])[0]}"
            good = [*keys_before(asked), asked, *(keys_after(asked) if line.startswith("*") else ())]
            bad = list(spoiled(described, asked))
        else:
            good.append(asked)
    yield title, good, bad
