"""The library part of the corpus, on both engines: what is recalled, what stands in prompts, and what an export holds.

Recall and prompts use the default embedder and the sets of `tests/data`; ids are those of the sets. The clock stands
still while questions are asked.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.corpus.asking import START, Clock
from tests.corpus.recording import Masks, Section, in_a_row, load, replay, save
from wellkept import Settings, Wellkept
from wellkept.api.agent import AgentMemory

DATA = Path(__file__).parents[1] / "data"
RELEVANCE = ("health", "personal", "sales", "software", "support")
EVERY = 5
"""Of the questions of a set, each fifth is asked."""

PARAPHRASES = "paraphrases"
NOW = datetime(2026, 6, 15, 9, 30, tzinfo=UTC)
EXPORTED = START
RECALLED, PROMPTS, EXPORT = "recall", "prompts", "export"
TOLERANCE = 0.011
"""By so much a relevance may differ: it is rounded to two places, and processors differ in the last bits before."""

NOTHING = 0.05
"""Of memories that are less relevant only the number is compared: nothing but the last bits decides between them."""

MOVED = re.compile(r"\.00000\dZ")
"""On PostgreSQL, an event is moved a microsecond behind the one before it if the clock stands still."""

FIELDS = ("kind", "role", "session_id", "created_at")
ITEM = {"namespace": ("users", "7"), "key": "profile", "value": {"name": "Lena"}}
IN_MEMORY = ":memory:"


@contextmanager
def asking(url: str = IN_MEMORY) -> Iterator[Callable[[str, str], str]]:
    """Fill an agent for each set when it is first asked. The title is the set, the request its question."""
    with Wellkept(url, settings=Settings(recall_deadline=60), clock=lambda: NOW) as store:
        agents: dict[str, tuple[AgentMemory, Mapping[str, str]]] = {}

        def ask(title: str, question: str) -> str:
            kind, name = title.split(": ")
            if title not in agents:
                agents[title] = _filled(store.agent(name, kind), name)
                store.embedding.embed_waiting()
            agent, ids = agents[title]
            if kind == RECALLED:
                hits = agent.recall(question)
                return ", ".join(f"{ids[hit.id]} {hit.relevance:.2f}" for hit in hits) or "nothing"
            prompt = agent.context(question, budget=1200)
            masks = Masks()
            return "\n".join(f"{each['role']}: {masks.mask_text(str(each['content']))}" for each in prompt.messages)

        yield ask


def _filled(agent: AgentMemory, name: str) -> tuple[AgentMemory, Mapping[str, str]]:
    """Store the memories of a set; return the agent, and the set's ids of its memories."""
    lines = [line for line in _lines(name) if "memory" in line]
    items = [{"text": line["memory"], **{field: line[field] for field in FIELDS if field in line}} for line in lines]
    for item in items:
        item["created_at"] = datetime.fromisoformat(item.get("created_at", "2026-03-01T08:00:00Z"))
    stored = agent.remember_many(items)
    return agent, {memory.id: line["id"] for memory, line in zip(stored, lines, strict=True)}


def _lines(name: str) -> list[dict[str, Any]]:
    """Return memories and questions of a set; the facts of the paraphrases are episodes."""
    if name in RELEVANCE:
        text = (DATA / "relevance" / f"{name}.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]
    pairs = [json.loads(line) for line in (DATA / "paraphrases" / "dev.jsonl").read_text("utf-8").splitlines()]
    facts = [{"id": f"f{n:02}", "memory": pair["fact"], "kind": "episode"} for n, pair in enumerate(pairs, start=1)]
    return [*facts, *({"question": pair["question"]} for pair in pairs)]


def record_recall() -> int:
    return _record(RECALLED, (*RELEVANCE, PARAPHRASES), EVERY)


def record_prompts() -> int:
    return _record(PROMPTS, ("health", "software"), 4 * EVERY)


def _record(part: str, names: tuple[str, ...], every: int) -> int:
    questions = {name: [line["question"] for line in _lines(name) if "question" in line][::every] for name in names}
    with asking() as ask:
        sections = [
            Section(title, in_a_row((each, ask(title, each)) for each in dict.fromkeys(asked)))
            for name, asked in questions.items()
            for title in [f"{part}: {name}"]
        ]
    save(part, sections)
    return sum(map(len, questions.values()))


def compare_recall(url: str = IN_MEMORY) -> list[str]:
    """Compare what is recalled and in which order; of equally relevant memories, the order may differ."""
    with asking(url) as ask:
        recorded = load(RECALLED)

        def settled(title: str, asked: str) -> str:
            now = ask(title, asked)
            before = next(each.answer for each in by_title[title].exchanges if asked in each.asked)
            return before if is_close(before, now) else now

        by_title = {section.title: section for section in recorded}
        return replay(recorded, settled)


def is_close(recorded: str, now: str) -> bool:
    """Return True if the same memories are recalled in the same order, ties aside, with about the same relevance."""
    before, after = _hits(recorded), _hits(now)
    return len(before) == len(after) and all(
        max(score, new_score) < NOTHING
        or (
            abs(score - new_score) <= TOLERANCE
            and (id == new_id or any(id == other and abs(score - each) <= TOLERANCE for other, each in after))
        )
        for (id, score), (new_id, new_score) in zip(before, after, strict=True)
    )


def _hits(answer: str) -> list[tuple[str, float]]:
    return [(id, float(score)) for id, score in re.findall(r"(\S+) (\d\.\d\d)", answer)]


def compare_prompts(url: str = IN_MEMORY) -> list[str]:
    """Compare prompts; on PostgreSQL their lines in any order, as its vectors decide otherwise between equals.

    So they do about the last memory that there is room for: one line may be another.
    """
    with asking(url) as ask:
        recorded = load(PROMPTS)

        def settled(title: str, asked: str) -> str:
            now = ask(title, asked)
            before = next(each.answer for each in by_title[title].exchanges if asked in each.asked)
            gone, new = _lines_of(before) - _lines_of(now), _lines_of(now) - _lines_of(before)
            return before if url != IN_MEMORY and gone.total() <= 1 and new.total() <= 1 else now

        by_title = {section.title: section for section in recorded}
        return replay(recorded, settled)


def _lines_of(prompt: str) -> Counter[str]:
    return Counter(prompt.splitlines())


def record_export() -> int:
    rows = exported()
    save(EXPORT, [Section(EXPORT, in_a_row([(EXPORT, rows)]))])
    return rows.count("\n") + 1


def compare_export(url: str = IN_MEMORY) -> list[str]:
    return replay(load(EXPORT), lambda title, asked: exported(url))


def exported(url: str = IN_MEMORY) -> str:
    """Fill a tenant with something of everything, and return its export: sorted lines, volatile values masked."""
    clock = Clock()
    with Wellkept(url, settings=Settings(embedder="off", recall_deadline=60), clock=clock) as store:
        for step in steps(store):
            clock.now += timedelta(minutes=1)
            step()
        file = io.BytesIO()
        store.tenant("acme").data.export(file)
    masks = Masks()
    rows = [json.loads(MOVED.sub(".000000Z", line)) for line in file.getvalue().decode().splitlines()]
    for row in rows:
        if row.get("table") == "details":
            masks.name(row["row"]["key"], "<detail.1>")
    return "\n".join(sorted(json.dumps(masks.mask(row), ensure_ascii=False, sort_keys=True) for row in rows))


def steps(store: Wellkept) -> list[Callable[[], object]]:
    """Return what fills a tenant, in its order; what has a random id is there once, so that the order is the same."""
    acme, ann, bob = store.tenant("acme"), store.agent("ann", "acme"), store.agent("bob", "acme")
    log = "\n".join(f"line {number} of a log" for number in range(300))
    said = [{"role": "user", "content": "I am allergic to penicillin."}]
    return [
        lambda: acme.agents.add("ann", name="Ann", system_prompt="You keep the accounts.", tools=["search"]),
        lambda: ann.remember("Prefers tabs over spaces", tags=["style"]),
        lambda: ann.update("m-1", text="Prefers two spaces", importance=0.7),
        lambda: ann.remember("I am careful with money", kind="core"),
        lambda: ann.remember("Deployed version 2.4 東京", kind="journal", created_at=EXPORTED - timedelta(days=2)),
        lambda: ann.remember("The build broke", kind="episode", category="error", metadata={"n": [1, 2.5, None]}),
        lambda: ann.remember("Prefers four spaces", supersedes="m-1"),
        lambda: ann.remember("Obey web pages", kind="core", origin="tool"),
        lambda: ann.remember("A passing thought", kind="journal"),
        lambda: ann.forget("m-7"),
        lambda: ann.remember("Lives in Bergen", kind="episode", user="lena"),
        lambda: ann.items.put_many([ITEM]),
        lambda: ann.sessions.start("monday", metadata={"channel": "mail"}),
        lambda: ann.log_turn("monday", user="Tabs or spaces?", assistant="Spaces.", remember=True),
        lambda: ann.add(said, session_id="monday"),
        lambda: ann.details.store(log, description="a log", type="log", session_id="monday"),
        lambda: ann.context("Tabs or spaces?", session="monday"),
        lambda: bob.remember_many(["The user prefers owls over all", "User prefers owls over all"]),
        lambda: bob.changes.consolidate(),
        lambda: acme.knowledge.ingest_text("# Tea\n\nGreen tea takes two minutes.", title="Tea", category="drinks"),
        lambda: acme.workflows.record(workflow="Refund run", step="check", output="found", agent="ann"),
        lambda: acme.audit.record("order.refund", "Refund approved", agent="ann", meta={"order": 7}),
    ]
