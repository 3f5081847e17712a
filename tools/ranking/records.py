"""Read labelled conversations and compute the features of their memories through the package's own index."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.policy.recall.calibration import MatchFeatures
from recollect.policy.recall.features import compute_features, shortness
from recollect.policy.recall.matching import describe_match
from recollect.policy.recall.question import ParsedQuery
from recollect.policy.recall.similarity import Evidence
from recollect.policy.text import index_terms, terms
from recollect.providers.static import StaticEmbedder
from recollect.store.engine import RegisteredEmbedder
from recollect.store.search.encoding import encode_terms, encode_vector
from recollect.store.search.index import OwnerIndex, RowFilter

MAX_CHARS = 10_000
ADVERSARIAL = 5  # category of LoCoMo whose questions have no answer
MIN_WORDS = 5
KEYWORDS = 400
"""Searches for a memory by some of its words."""

CROSSED = 600
"""Questions that are also asked in a conversation that knows nothing about them."""

EMBEDDER = StaticEmbedder()
REGISTERED = RegisteredEmbedder(1, EMBEDDER.name, EMBEDDER.dimensions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, the features of every memory, and which memories answer it."""

    family: str
    conversation: str
    is_headline: bool
    question: ParsedQuery
    evidence: Evidence
    features: dict[str, NDArray[np.float32]]
    short: float
    relevant: NDArray[np.bool_]
    sessions: Sequence[str]  # of each memory
    expected_sessions: Sequence[str]

    def describe(self, scores: NDArray[np.float32]) -> MatchFeatures:
        """Describe the best match by these ranking scores."""
        return describe_match(self.evidence, self.question, self.features, scores, int(scores.argmax()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The indexed memories of one conversation."""

    family: str
    name: str
    ids: dict[str, int]
    sessions: Sequence[str]
    end: datetime
    index: OwnerIndex
    words: Sequence[Sequence[str]]  # of each memory

    def ask(self, query: str, *, now: datetime | None = None, turns: Sequence[object] = (), **more: Any) -> Asked:
        now = now or self.end
        question = ParsedQuery.read(query, now)
        vector = EMBEDDER.embed([query])[0]
        evidence = self.index.evidence(question.lookups, vector, RowFilter((), now.timestamp()))
        rows = evidence.seqs - 1
        return Asked(
            family=self.family,
            conversation=self.name,
            is_headline=more.get("headline", True),
            question=question,
            evidence=evidence,
            features=compute_features(evidence, question),
            short=shortness(evidence),
            relevant=np.isin(rows, [self.ids[str(turn)] for turn in turns if str(turn) in self.ids]),
            sessions=[self.sessions[row] for row in rows],
            expected_sessions=more.get("sessions") or (),
        )


def build_store(family: str, name: str, memories: Sequence[dict[str, Any]], *, as_notes: bool = False) -> Store:
    """Index memories: with role and session, or as bare notes."""
    memories = [each for each in memories if each["text"].strip()]
    texts = [each["text"].strip()[:MAX_CHARS] for each in memories]
    times = [_parse_time(each["ts"]) for each in memories]
    rows = []
    for number, (each, text, vector, at) in enumerate(zip(memories, texts, EMBEDDER.embed(texts), times, strict=True)):
        kind, session, role = (
            ("note", None, "user") if as_notes else (each.get("kind", "episode"), each.get("session"), each["role"])
        )
        words, at_second = encode_terms(index_terms(text)), int(at.timestamp())
        rows.append((number + 1, 1, kind, None, words, 1, encode_vector(vector), session, role, at_second))
    index = OwnerIndex(REGISTERED)
    index.append(rows)
    return Store(
        family=family,
        name=name,
        ids={str(each["id"]): number for number, each in enumerate(memories)},
        sessions=[str(each.get("session") or each["id"]) for each in memories],
        end=max(times),
        index=index,
        words=[terms(text) for text in texts],
    )


def read_families(paths: Sequence[Path]) -> Iterator[Asked]:
    """Ask every question of every family where it belongs, once with roles and sessions and once among bare notes."""
    stores, crossed = list[Store](), list[str]()
    for path in paths:
        family = path.name.partition("_")[0]
        for conversation in read_conversations(path):
            memories = [*map(_name_speakers(conversation), conversation["memories"])]
            own = build_store(family, conversation["id"], memories)
            notes = build_store(f"{family} as notes", conversation["id"], memories, as_notes=True)
            stores.append(own)
            for question in conversation["questions"]:
                now = _parse_time(question["now"]) if question.get("now") else own.end
                labels = {key: question.get(key) for key in ("turns", "sessions", "headline")}
                crossed.append(question["query"])
                for store in (own, notes):
                    yield store.ask(question["query"], now=max(now, own.end), **labels)
    yield from read_keywords(stores, KEYWORDS)
    choose = random.Random(1)
    for query in choose.sample(crossed, min(CROSSED, len(crossed))):
        yield _cross(query, choose.choice(stores))


def read_conversations(path: Path) -> Iterator[dict[str, Any]]:
    """Read a file of conversations; LoCoMo and LongMemEval are also read as they are published."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    if not text.startswith("["):
        # Not splitlines: a JSON string may hold other line separators.
        yield from map(json.loads, filter(None, text.split("\n")))
        return
    for sample in json.loads(text):
        yield _read_locomo(sample) if "qa" in sample else _read_longmemeval(sample)


def _read_locomo(sample: dict[str, Any]) -> dict[str, Any]:
    spoken = sample["conversation"]
    numbers = sorted(int(name[8:]) for name in spoken if re.fullmatch(r"session_\d+", name))
    times = {n: _read_date(spoken[f"session_{n}_date_time"], "%I:%M %p on %d %B, %Y") for n in numbers}
    memories = [
        {**turn, "id": turn["dia_id"], "ts": times[n], "session": f"session_{n}"}
        for n in numbers
        for turn in spoken[f"session_{n}"]
    ]
    questions = [
        {"query": each["question"], "turns": re.findall(r"D\d+:\d+", " ".join(each["evidence"])), "headline": True}
        for each in sample["qa"]
        if each["category"] != ADVERSARIAL and each["evidence"]
    ]
    return {"id": sample["sample_id"], "memories": memories, "questions": questions}


def _read_longmemeval(sample: dict[str, Any]) -> dict[str, Any]:
    memories, turns = list[dict[str, Any]](), list[str]()
    parts = zip(sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True)
    for session, date, spoken in parts:
        for number, turn in enumerate(spoken):
            id = f"{session}:{number}"
            said = {"id": id, "speaker": turn["role"], "text": turn["content"], "session": session}
            memories.append({**said, "ts": _read_date(date)})
            turns += [id] if turn.get("has_answer") else []
    labels = {"turns": turns, "sessions": sample["answer_session_ids"], "headline": True}
    question = {"query": sample["question"], "now": _read_date(sample["question_date"]), **labels}
    return {"id": sample["question_id"], "memories": memories, "questions": [question]}


def _read_date(text: str, form: str = "%Y/%m/%d %H:%M") -> str:
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), form).replace(tzinfo=UTC).isoformat()


def _cross(query: str, store: Store) -> Asked:
    # By chance it may be the question's own conversation; with many conversations that is rare.
    return store.ask(query, headline=False)


def read_keywords(stores: Sequence[Store], number: int) -> Iterator[Asked]:
    """Ask for memories by two to four of their rarest words, as people do who know what they are looking for."""
    choose = random.Random(2)
    counts = {store.name: Counter(word for words in store.words for word in set(words)) for store in stores}
    while number:
        store = choose.choice(stores)
        words = sorted(set(choose.choice(store.words)), key=lambda word: (counts[store.name][word], word))
        if len(words) > MIN_WORDS:
            query = words[: choose.randint(2, 4)]
            holders = [row for row, held in enumerate(store.words) if set(query) <= set(held)]
            turns = [id for id, row in store.ids.items() if row in holders]
            yield replace(store, family="keywords").ask(" ".join(query), turns=turns)
            number -= 1


def read_relevance(paths: Sequence[Path], *, split: str) -> Iterator[Asked]:
    """Ask the questions of files with and without an answer."""
    for path in paths:
        lines = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
        memories = [
            {
                "id": each["id"],
                "text": each["memory"],
                "ts": each["created_at"],
                "kind": each["kind"],
                "session": each.get("session_id"),
                "role": each.get("role") or "user",
            }
            for each in lines
            if "memory" in each
        ]
        store = build_store("relevance", path.stem, memories)
        for each in lines:
            if "question" in each and each["split"] == split:
                yield store.ask(each["question"], turns=each["expected"])


def _name_speakers(conversation: dict[str, Any]) -> Any:
    """Return a function that gives a memory a role; people other than user and assistant are named in the text."""
    first = conversation["memories"][0]["speaker"]

    def convert(memory: dict[str, Any]) -> dict[str, Any]:
        speaker = memory["speaker"]
        if speaker in ("user", "assistant"):
            return {**memory, "role": speaker}
        role = "user" if speaker == first else "assistant"
        return {**memory, "role": role, "text": f"{speaker}: {memory['text']}" if memory["text"].strip() else ""}

    return convert


def _parse_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
