"""Measure single statements: pairs that replace or keep each other, sentences, and requests to forget."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.truth.data import MARK, Row
from benchmarks.truth.people import prompt_lines
from benchmarks.truth.stores import has_ended, list_all, open_bed
from wellkept import Memory, Settings, Wellkept
from wellkept.api.agent import AgentMemory

START = datetime(2026, 9, 7, 9, tzinfo=UTC)
LATER = timedelta(days=3)
ANSWER = "All right."
MIN_WORDS = 3
"""Shorter sentences say nothing by themselves: "Juni." of "am 4. Juni."."""

Line = tuple[str, str]
"""What was measured, and the figure."""


@dataclass
class Bed:
    """A store in which every case has a tenant of its own."""

    store: Wellkept
    now: list[datetime]
    cases: int = 0

    def take_agent(self) -> AgentMemory:
        self.cases += 1
        self.now[0] = START
        return self.store.agent("bed", f"case-{self.cases}")

    def wait(self) -> None:
        self.now[0] += LATER


def measure_statements(rows: Mapping[str, Sequence[Row]], settings: Settings, misses: list[str]) -> Iterator[Line]:
    """Yield the figures of every file of `rows`, and add what went wrong to `misses`."""
    now = [START]
    with open_bed(settings, lambda: now[0]) as store:
        bed = Bed(store, now)
        for name, found in rows.items():
            if name.startswith("pairs"):
                yield from _measure_pairs(bed, name, found, misses)
        yield from _measure_keeps(bed, rows["keep"], misses)
        yield from _measure_sentences(bed, rows["sentences"], misses)
        yield from _measure_requests(bed, rows["forget"], misses)
        yield from _measure_verb(bed, rows["forget"], misses)
        yield from _measure_never(bed, rows["never"], rows["forget"], misses)


def _measure_pairs(bed: Bed, name: str, pairs: Sequence[Row], misses: list[str]) -> Iterator[Line]:
    """Count the pairs whose old statement ended while the new one lives, and the prompts that show only the new."""
    ended = shown = 0
    for pair in pairs:
        agent = bed.take_agent()
        _say(agent, "first", pair["old"])
        bed.wait()
        _say(agent, "second", pair["new"])
        memories = list_all(agent)
        is_right = any(has_ended(each) for each in memories if _holds(each.text, pair["old"])) and any(
            _is_live(each) for each in memories if _holds(each.text, pair["new"])
        )
        lines = prompt_lines(agent, pair["ask"], "third")
        old = [line for line in lines if _holds(line, pair["old"]) and MARK not in line]
        ended += is_right
        shown += any(_holds(line, pair["new"]) for line in lines) and not old
        if not is_right:
            misses.append(f"{name}: {pair['old']} → {pair['new']}")
    yield f"{name}: the old one ended, the new one lives", f"{ended} of {len(pairs)}"
    yield f"{name}: the prompt shows only the new one", f"{shown} of {len(pairs)}"


def _measure_keeps(bed: Bed, pairs: Sequence[Row], misses: list[str]) -> Iterator[Line]:
    """Tell both statements in both orders: neither may end the other."""
    wrong = kept = 0
    for pair in pairs:
        for first, second in ((pair["first"], pair["second"]), (pair["second"], pair["first"])):
            agent = bed.take_agent()
            _say(agent, "first", first)
            bed.wait()
            _say(agent, "second", second)
            memories = list_all(agent)
            live = [each for each in memories if _is_live(each)]
            if any(has_ended(each) for each in memories):
                wrong += 1
                misses.append(f"keep: {first} → {second}")
            kept += all(any(_holds(each.text, said) for each in live) for said in (first, second))
    yield "keep (both orders): one wrongly ended", f"{wrong} of {2 * len(pairs)}"
    yield "keep (both orders): both live", f"{kept} of {2 * len(pairs)}"


def _measure_sentences(bed: Bed, rows: Sequence[Row], misses: list[str]) -> Iterator[Line]:
    """Tell each sentence to an agent of its own, and look whether a fact was kept, and of whom."""
    found = {"user": 0, "other": 0, "nothing": 0}
    about_right_one = 0
    for row in rows:
        agent = bed.take_agent()
        _say(agent, "first", row["text"])
        subjects = [each.fact.subject for each in list_all(agent) if each.fact is not None]
        label = row["label"]
        found[label] += bool(subjects)
        about_right_one += label == "other" and any(re.search(row["who"], each, re.IGNORECASE) for each in subjects)
        if bool(subjects) == (label == "nothing"):
            misses.append(f"sentences: {'kept' if subjects else 'not kept'}, {label}: {row['text']}")
    facts = found["user"] + found["other"]
    labels = [row["label"] for row in rows]
    others, all_facts = labels.count("other"), len(labels) - labels.count("nothing")
    yield "sentences: precision", _share(facts, facts + found["nothing"])
    yield "sentences: recall", _share(facts, all_facts)
    yield "sentences: facts of others kept", f"{found['other']} of {others}"
    yield "sentences: facts of others with the right subject", f"{about_right_one} of {others}"


def _measure_requests(bed: Bed, rows: Sequence[Row], misses: list[str]) -> Iterator[Line]:
    """Say each request to forget in a turn: what is meant goes, the rest stays, and unclear ones change nothing."""
    clear = unclear = 0
    for row in rows:
        agent, is_told = _tell_notes(bed, row)
        _say(agent, "request", row["said"])
        is_right = is_told and _is_forgotten_rightly(agent, row)
        clear += is_right and bool(row["go"])
        unclear += is_right and not row["go"]
        if not is_right:
            misses.append(f"forget, said: {row['said']}")
    count = sum(bool(row["go"]) for row in rows)
    yield "forget, said: what was meant is gone, the rest is there", f"{clear} of {count}"
    yield "forget, said: unclear, nothing is gone", f"{unclear} of {len(rows) - count}"


def _measure_verb(bed: Bed, rows: Sequence[Row], misses: list[str]) -> Iterator[Line]:
    """Do the same by `forget(about=…)`, which names the candidates where it is not clear."""
    clear = unclear = 0
    for row in rows:
        agent, is_told = _tell_notes(bed, row)
        if "about" not in inspect.signature(agent.forget).parameters:
            continue
        answer = agent.forget(about=row["about"])  # type: ignore[call-arg, unused-ignore]
        candidates = getattr(answer, "candidates", ())
        is_right = is_told and _is_forgotten_rightly(agent, row) and bool(row["maybe"]) <= bool(candidates)
        clear += is_right and bool(row["go"])
        unclear += is_right and not row["go"]
        if not is_right:
            misses.append(f"forget(about={row['about']!r})")
    count = sum(bool(row["go"]) for row in rows)
    yield "forget(about=…): what was meant is gone, the rest is there", f"{clear} of {count}"
    yield "forget(about=…): unclear, candidates named and nothing gone", f"{unclear} of {len(rows) - count}"


def _tell_notes(bed: Bed, row: Row) -> tuple[AgentMemory, bool]:
    """Tell what stands beside a request; also return whether all of it is shown, or else nothing could be forgotten."""
    agent, notes = bed.take_agent(), _notes_of(row)
    for note in notes:
        _say(agent, "notes", note)
    bed.wait()
    return agent, all(_is_shown(agent, note) for note in notes)


def _is_forgotten_rightly(agent: AgentMemory, row: Row) -> bool:
    left = [note for note in _notes_of(row) if _is_shown(agent, note)]
    return left == [*row["maybe"], *row["stay"]]


def _notes_of(row: Row) -> list[str]:
    return [*row["go"], *row["maybe"], *row["stay"]]


def _measure_never(bed: Bed, rows: Sequence[Row], requests: Sequence[Row], misses: list[str]) -> Iterator[Line]:
    """Say sentences that only sound like a request, one by one, beside everything that requests are about."""
    agent, gone = bed.take_agent(), 0
    notes = list(dict.fromkeys(note for row in requests for note in _notes_of(row)))
    for note in notes:
        _say(agent, "notes", note)
    bed.wait()
    live = _live_ids(agent)
    kept = len(live)
    for row in rows:
        if row["by"] == "tool":
            agent.log_turn("never", user="Run it, please.", assistant=row["said"])
        else:
            _say(agent, "never", row["said"])
        memories = {each.id: each for each in list_all(agent)}
        left = _live_ids(agent)
        # A sentence may well end a note ("we're going to Rome only"); what vanishes without an ending was forgotten.
        if any(id not in memories or not has_ended(memories[id]) for id in live - left):
            gone += 1
            misses.append(f"never: {row['said']}")
        live &= left
    yield "never: something was forgotten", f"{gone} of {len(rows)} (beside {kept} memories of {len(notes)} notes)"


def _live_ids(agent: AgentMemory) -> set[str]:
    return {each.id for each in list_all(agent, state="live")}


def _say(agent: AgentMemory, session: str, text: str) -> None:
    agent.log_turn(session, user=text, assistant=ANSWER)


def _is_shown(agent: AgentMemory, text: str) -> bool:
    return any(_holds(line, text) for line in prompt_lines(agent, text, "new"))


def _is_live(memory: Memory) -> bool:
    return memory.archived_at is None and not has_ended(memory)


def _holds(text: str, said: str) -> bool:
    """Tell whether a text holds what was said, or a whole sentence of it."""
    parts = [each for each in re.split(r"(?<=[.!?])\s+", said) if len(each.split()) >= MIN_WORDS]
    return any(each.strip(" .!").casefold() in text.casefold() for each in (said, *parts))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f} ({part} of {whole})" if whole else f"none ({part} of 0)"
