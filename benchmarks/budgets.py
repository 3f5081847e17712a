"""`python -m benchmarks budgets FILE …`: how often a prompt of a given budget holds the answer.

A store holds at least ten times the largest budget. A quarter of the turns are notes and the rest episodes. Beside them
stand what competes for the room: core memories, journal entries, a conversation and documents about something else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import cycle, islice
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any
from zlib import crc32

from wellkept import Settings, Wellkept
from wellkept.api.wellkept import AgentMemory
from wellkept.evaluation import LabelledMemory, LabelledQuestion, LabelledSet, read_sets
from wellkept.evaluation.sets import START
from wellkept.model import WorkingMemory

BUDGETS = (500, 1_000, 2_000, 4_000)
TIMES = 10
"""Size of a store, as a multiple of the largest budget."""

QUESTIONS = 50
"""Questions of each file."""

NOTE_CHARS, NOTES = 500, 4
"""Longest turn that is stored as a note, and the share of turns that are: one in four."""

JOURNAL, TURNS, DOCUMENTS, CLIPPED = 12, 6, 8, 200
"""Journal entries, turns of the conversation and documents about something else, and their length in characters."""

CORE = (
    "I keep my answers short and name my sources.",
    "I was set up in spring and report to the office in Turin.",
    "I never promise a date that nobody has confirmed.",
)
SESSION = "running"
FOREVER = timedelta(days=36_500)
BATCH = 200
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompted:
    """One prompt: the share of the evidence it shows, the share of the budget it uses, and the seconds it took."""

    evidence: float
    used: float
    seconds: float


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks budgets", description=__doc__)
    parser.add_argument("files", type=Path, metavar="FILE", nargs="+", help="a file that `wellkept admin eval` reads")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="questions of each file")
    parser.add_argument("--set", metavar="NAME=NUMBER", action="append", default=[], help="another value of a setting")
    given = parser.parse_args(arguments)
    changed: dict[str, Any] = {name: int(value) for name, _, value in (each.partition("=") for each in given.set)}
    print(f"{'file':24} {'budget':>6} {'n':>4} {'all':>6} {'any':>6} {'share':>6} {'used':>6} {'ms':>6}")
    every: dict[int, list[Prompted]] = {budget: [] for budget in BUDGETS}
    for path in given.files:
        found = measure(list(read_sets(path)), given.questions, replace(Settings(), **changed))
        for budget, prompts in found.items():
            print(_line(path.name.partition(".")[0], budget, prompts), flush=True)
            every[budget] += prompts
    for budget, prompts in every.items():
        print(_line("all files", budget, prompts))
    return 0


def _line(name: str, budget: int, prompts: Sequence[Prompted]) -> str:
    shares = [each.evidence for each in prompts]
    whole, some = mean(share == 1 for share in shares), mean(share > 0 for share in shares)
    used, took = mean(each.used for each in prompts), 1000 * median(each.seconds for each in prompts)
    return f"{name:24} {budget:6} {len(shares):4} {whole:6.3f} {some:6.3f} {mean(shares):6.3f} {used:6.3f} {took:6.1f}"


def measure(sets: Sequence[LabelledSet], questions: int, settings: Settings) -> Mapping[int, Sequence[Prompted]]:
    """Ask evenly spaced questions of all sets at every budget."""
    asked = [
        (place, each) for place, one in enumerate(sets) for each in one.questions if each.expected and each.is_headline
    ]
    step = max(1, len(asked) // questions)
    chosen = asked[::step][:questions]
    found: dict[int, list[Prompted]] = {budget: [] for budget in BUDGETS}
    for place in dict.fromkeys(place for place, _ in chosen):
        print(".", end="", file=sys.stderr, flush=True)
        others = list(islice(cycle(sets), place + 1, place + len(sets)))
        for budget, each in _ask(sets[place], others, [each for at, each in chosen if at == place], settings):
            found[budget].append(each)
    print(file=sys.stderr)
    return found


def _ask(
    one: LabelledSet, others: Sequence[LabelledSet], questions: Iterable[LabelledQuestion], settings: Settings
) -> Iterator[tuple[int, Prompted]]:
    stored = _pad(one, others)
    end = max(memory.created_at or START for memory in stored)
    end = max([end, *(question.now for question in questions if question.now is not None)])
    moment = [end]
    plain = replace(settings, url=":memory:", workspace=None, secrets="flag", max_total=len(stored) + 1)
    with Wellkept(settings=plain, clock=lambda: moment[0]) as store:
        agent = store.agent("measured")
        labels = _store(agent, stored, end)
        _store_rest(store, agent, others[0].memories if others else (), end)
        for question in questions:
            moment[0] = question.now or end
            agent.context(question.text, session=SESSION, budget=BUDGETS[-1])  # loads the index
            for budget in BUDGETS:
                started = perf_counter()
                made = agent.context(
                    question.text, session=SESSION, system_prompt="You help one person.", budget=budget
                )
                seconds = perf_counter() - started
                shown = {labels.get(id) for id in _shown(made)}
                evidence = mean(id in shown for id in question.expected)
                yield budget, Prompted(evidence=evidence, used=made.tokens / budget, seconds=seconds)


def _pad(one: LabelledSet, others: Sequence[LabelledSet]) -> list[LabelledMemory]:
    """Return the memories of a set, and those of others until there is enough."""
    stored = list(one.memories)
    for number, other in enumerate(others[1:]):
        if sum(len(memory.text) for memory in stored) >= TIMES * BUDGETS[-1] * CHARS_PER_TOKEN:
            break
        stored += [
            replace(each, id=f"other {number} {each.id}", session=f"{number} {each.session}") for each in other.memories
        ]
    return stored


def _store(agent: AgentMemory, stored: Sequence[LabelledMemory], end: datetime) -> dict[str, str]:
    labels: dict[str, str] = {}
    for start in range(0, len(stored), BATCH):
        batch = [memory for memory in stored[start : start + BATCH] if memory.text.strip()]
        drafts = [
            {**memory.fields, "text": memory.spoken[:4_000], "kind": _kind(memory), "session_id": memory.session}
            | {"created_at": memory.created_at or START, "expires_at": end + FOREVER}
            for memory in batch
        ]
        for memory, kept in zip(batch, agent.remember_many(drafts), strict=True):
            labels.setdefault(kept.id, memory.id)
    return labels


def _kind(memory: LabelledMemory) -> str:
    # A checksum, so that every run stores the same turns as notes.
    is_note = len(memory.spoken) <= NOTE_CHARS and crc32(memory.id.encode()) % NOTES == 0
    return "note" if is_note else "episode"


def _store_rest(store: Wellkept, agent: AgentMemory, foreign: Sequence[LabelledMemory], end: datetime) -> None:
    """Store what competes with the answer; its text is that of another set."""
    texts = iter([memory.text[:CLIPPED] for memory in foreign if len(memory.text) >= CLIPPED // 2])
    for text in CORE:
        agent.remember(text, kind="core")
    for text in islice(texts, JOURNAL):
        agent.remember(text, kind="journal", expires_at=end + FOREVER)
    for user, assistant in zip(islice(texts, TURNS), islice(texts, TURNS), strict=False):
        agent.log_turn(SESSION, user=user, assistant=assistant, remember=False)
    for number, text in enumerate(islice(texts, DOCUMENTS)):
        store.tenant(agent.owner.tenant).knowledge.ingest(f"{text}\n", title=f"Page {number}")


def _shown(made: WorkingMemory) -> Iterator[str]:
    return (item.id for block in made.blocks for item in block.items if not item.left_out)
