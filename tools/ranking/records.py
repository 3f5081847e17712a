"""Read labelled conversations and compute the features of their memories through the package's own index."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from wellkept.language.text import index_terms, terms
from wellkept.memory.rules_importance import is_small_talk
from wellkept.providers.minilm import MiniLMEmbedder, move_to_answer
from wellkept.recall.rules_features import Evidence, compute_features, shortness
from wellkept.recall.rules_question import ParsedQuery
from wellkept.store.engine import IndexQuery, RegisteredEmbedder
from wellkept.store.search.encoding import encode_terms, encode_vector
from wellkept.store.search.index import OwnerIndex

MAX_CHARS = 10_000
ADVERSARIAL = 5  # category of LoCoMo whose questions have no answer
MIN_WORDS = 5
ANSWERABLE = "answerable"
BESIDE = ("locomo", "realtalk")
"""Families whose turns are put beside facts."""

KEYWORDS = 400
"""Searches for a memory by some of its words."""

FOREIGN = {"locomo": 120, "realtalk": 90, "beam": 30, "longmemeval": 2, "small": 1, "relevance": 70}
FOREIGN |= {"facts": 120, "pairs 20": 20, "pairs": 60, "pairs 200": 60, "beside turns": 60}
"""Questions of others that each store of a family is asked, so that all families have about as many."""

FEW, MANY = 20, 200
"""Sizes of the stores of pairs, beside one with all of them."""

SMALLEST, LARGEST = 3, 80
"""Sizes of the small stores that are cut out of conversations."""

SMALL_TALK = Path(__file__).with_name("small_talk.txt")

FOLDS = 4

WORDS = frozenset({"own", "near", "around", "around_held", "cover", "near_cover"})
MEANING = frozenset({"cosine", "meaning", "near_meaning", "talk_meaning"})
"""Features of words and of meaning, which never count against a memory."""

EMBEDDER = MiniLMEmbedder()
REGISTERED = RegisteredEmbedder(1, EMBEDDER.name, EMBEDDER.dimensions)


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a conversation, and the memories that answer it."""

    query: str
    turns: Sequence[str]
    kind: str
    now: datetime | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """Memories as they are stored, and the questions about them that have an answer."""

    family: str
    id: str
    memories: Sequence[dict[str, Any]]
    questions: Sequence[Question]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, the features of every memory, and which memories answer it."""

    family: str
    conversation: str
    kind: str  # "answerable", or the kind of question without an answer
    is_headline: bool
    question: ParsedQuery
    evidence: Evidence
    features: dict[str, NDArray[np.float32]]
    short: float
    relevant: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The indexed memories of one conversation."""

    family: str
    name: str
    ids: dict[str, int]
    end: datetime
    index: OwnerIndex
    words: Sequence[Sequence[str]]  # of each memory
    holds: frozenset[str]  # names of the conversations and files that its memories are from

    def ask(
        self, query: str, *, kind: str, now: datetime | None = None, turns: Sequence[object] = (), of: str = ""
    ) -> Asked:
        """Ask a question with the map that was fitted without its conversation; `of` names it, if it is another one."""
        now = max(now or self.end, self.end)
        question = ParsedQuery.read(query, now)
        vector = move_to_answer(embed([query])[0], answer_maps[fold_of(of or self.name)])
        evidence = self.index.evidence(IndexQuery(terms=question.lookups, vector=vector, now=now.timestamp()))
        return Asked(
            family=self.family,
            conversation=self.name,
            kind=kind,
            is_headline=kind == ANSWERABLE,
            question=question,
            evidence=evidence,
            features=compute_features(evidence, question),
            short=shortness(evidence),
            relevant=np.isin(evidence.seqs - 1, [self.ids[str(turn)] for turn in turns if str(turn) in self.ids]),
        )


answer_maps: dict[int | None, NDArray[np.floating]] = {}
"""Maps of questions, by the fold of conversations that was left out; None: of all. See `answer_map`."""


def fold_of(conversation: str) -> int:
    """Return the fold of a conversation; all its questions are in the same."""
    return crc32(conversation.encode()) % FOLDS


_vectors: dict[str, NDArray[np.floating]] = {}


def read_vectors(path: Path) -> None:
    """Read the vectors that an earlier run wrote: embedding long turns takes most of the time."""
    if path.exists():
        with np.load(path) as read:
            _vectors.update(zip(read["keys"].tolist(), read["vectors"], strict=True))


def write_vectors(path: Path) -> None:
    np.savez(path, keys=np.array([*_vectors]), vectors=np.array([*_vectors.values()], np.float16))


def embed(texts: Sequence[str]) -> Sequence[NDArray[np.float32]]:
    """Embed texts, each one once: most are part of several stores."""
    keys = [sha1(text.encode(), usedforsecurity=False).hexdigest() for text in texts]
    new = {key: text for key, text in zip(keys, texts, strict=True) if key not in _vectors}
    _vectors.update(zip(new, EMBEDDER.embed([*new.values()]), strict=True))
    return [_vectors[key].astype(np.float32) for key in keys]


def build_store(family: str, name: str, memories: Sequence[dict[str, Any]], others: Iterable[str] = ()) -> Store:
    """Index memories: turns with role and session, or facts."""
    memories = [each for each in memories if each["text"].strip()]
    texts = [each["text"].strip()[:MAX_CHARS] for each in memories]
    times = [_parse_time(each["ts"]) for each in memories]
    rows = []
    for number, (each, text, vector, at) in enumerate(zip(memories, texts, embed(texts), times, strict=True)):
        session = each.get("session")
        kind = each.get("kind", "episode" if session else "note")
        words, at_second = encode_terms(index_terms(text)), int(at.timestamp())
        role = each.get("role", "user")
        rows.append((number + 1, 1, kind, None, words, 1, encode_vector(vector), session, role, at_second))
    index = OwnerIndex(REGISTERED)
    index.append(rows)
    return Store(
        family=family,
        name=name,
        ids={str(each["id"]): number for number, each in enumerate(memories)},
        end=max(times),
        index=index,
        words=[terms(text) for text in texts],
        holds=frozenset({name, *others}),
    )


def read_families(paths: Sequence[Path]) -> Iterator[Conversation]:
    """Read the conversations of all families, with the questions that have an answer."""
    for path in paths:
        family = "facts" if "facts" in path.name else path.name.partition("_")[0]
        for read in read_conversations(path):
            memories = [*map(_name_speakers(read), read["memories"])]
            if family == "facts":
                memories = [{**each, "role": "user"} for each in read["memories"]]
            memories = [each for each in memories if each["text"].strip()]
            ids = {str(each["id"]) for each in memories}
            questions = [
                Question(
                    query=each["query"],
                    turns=[str(turn) for turn in each["turns"] if str(turn) in ids],
                    kind=ANSWERABLE if each.get("headline", True) else "broad",
                    now=_parse_time(each["now"]) if each.get("now") else None,
                )
                for each in read["questions"]
            ]
            yield Conversation(family, read["id"], memories, [each for each in questions if each.turns])


def read_all(
    conversations: Sequence[Conversation], pairs: Sequence[Path], relevance: Sequence[Path]
) -> Iterator[Asked]:
    """Ask every question where it belongs and in a small store, then ask the stores what they cannot know."""
    stores, asked = list[Store](), list[tuple[str, str, str]]()
    choose = random.Random(1)
    for each in conversations:
        own = build_store(each.family, each.id, each.memories)
        stores.append(own)
        for question in each.questions:
            asked.append((each.family, own.name, question.query))
            yield own.ask(question.query, kind=question.kind, now=question.now, turns=question.turns)
            if question.kind == ANSWERABLE:
                stores.append(build_store("small", own.name, _cut(each.memories, question.turns, choose)))
                yield stores[-1].ask(question.query, kind=ANSWERABLE, now=question.now, turns=question.turns)
    for path in pairs:
        yield from _ask_pairs(path, conversations, stores, asked)
    yield from read_keywords(stores, KEYWORDS)
    for path in relevance:
        store, questions = _read_relevance(path)
        stores.append(store)
        asked += [("relevance", store.name, each["question"]) for each in questions if each["split"] == "dev"]
    yield from ask_foreign(stores, asked)


def read_pairs(path: Path) -> list[dict[str, str]]:
    """Read facts, each with a question in other words."""
    text = path.read_text("utf-8")
    read: list[dict[str, str]] = (
        json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.split("\n") if line]
    )
    return read


def _ask_pairs(
    path: Path,
    conversations: Sequence[Conversation],
    stores: list[Store],
    asked: list[tuple[str, str, str]],
) -> Iterator[Asked]:
    """Ask for facts in other words: among few of them, among all, among many others, and beside logged turns."""
    choose, name, pairs = random.Random(4), path.stem, read_pairs(path)
    choose.shuffle(pairs)
    facts = [(of.id, each["text"]) for of in conversations if of.family == "facts" for each in of.memories]
    talks = [each for each in conversations if each.family in BESIDE]
    parts: list[tuple[str, Sequence[dict[str, str]], Sequence[tuple[str, str]], int]] = [
        ("pairs 20", pairs[start : start + FEW], (), -1) for start in range(0, len(pairs) - FEW + 1, FEW)
    ]
    parts.append(("pairs", pairs, (), -1))
    parts.append(("pairs 200", pairs, choose.sample(facts, min(len(facts), max(0, MANY - len(pairs)))), -1))
    parts += [("beside turns", pairs, (), number) for number in range(len(talks))]
    for family, some, others, talk in parts:
        day = datetime(2026, 1, 1, tzinfo=UTC)
        times = [(day + timedelta(minutes=choose.randrange(200 * 1440))).isoformat() for _ in (*some, *others)]
        if choose.random() < 0.5:
            # Many stores are filled in one go.
            times = [day.isoformat()] * len(times)
        texts = [*(each["fact"] for each in some), *(text for _, text in others)]
        holds = {of for of, _ in others}
        memories = [
            {"id": f"p{n}", "text": text, "ts": at} for n, (text, at) in enumerate(zip(texts, times, strict=True))
        ]
        questions: Sequence[tuple[str, Sequence[object]]] = [
            (each["question"], [f"p{number}"]) for number, each in enumerate(some)
        ]
        if talk >= 0:
            # As many turns as facts, and questions for both.
            holds.add(talks[talk].id)
            kept = talks[talk].memories[: max(len(memories), MANY // 2)]
            held = {str(each["id"]) for each in kept}
            memories += kept
            more = [(each.query, each.turns) for each in talks[talk].questions if held.issuperset(each.turns)]
            questions = [*questions, *more[: len(questions)]]
        stores.append(build_store(family, name, sorted(memories, key=lambda each: _parse_time(each["ts"])), holds))
        for query, expected in questions:
            asked.append(("pairs", stores[-1].name, query))
            yield stores[-1].ask(query, kind=ANSWERABLE, turns=expected)


def ask_foreign(stores: Sequence[Store], asked: Sequence[tuple[str, str, str]]) -> Iterator[Asked]:
    """Ask each store questions of other conversations, of all families alike, and what nobody remembers."""
    choose = random.Random(3)
    general = [line for line in SMALL_TALK.read_text("utf-8").splitlines() if line and not is_small_talk(line)]
    families = sorted({family for family, _, _ in asked})
    pools = {family: [each for each in asked if each[0] == family] for family in families}
    for number, store in enumerate(stores):
        for place in range(FOREIGN.get(store.family, FOREIGN["small"])):
            pool = [each for each in pools[families[(number + place) % len(families)]] if each[1] not in store.holds]
            if pool:
                _, of, query = choose.choice(pool)
                yield store.ask(query, kind="foreign", of=of)
            if place % 3 == 0:
                yield store.ask(choose.choice(general), kind="general")


def _cut(memories: Sequence[dict[str, Any]], turns: Sequence[object], choose: random.Random) -> list[dict[str, Any]]:
    """Return a few memories around those that answer, so that the fit knows small stores, too."""
    ids, size = {str(turn) for turn in turns}, int(SMALLEST * (LARGEST / SMALLEST) ** choose.random())
    places = [place for place, memory in enumerate(memories) if str(memory["id"]) in ids]
    each = max(1, size // len(places))
    starts = [max(0, place - choose.randrange(each)) for place in places]
    kept = sorted({place for start in starts for place in range(start, min(start + each, len(memories)))} | {*places})
    return [memories[place] for place in kept]


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
        {"query": each["question"], "turns": re.findall(r"D\d+:\d+", " ".join(each["evidence"]))}
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
    question = {"query": sample["question"], "now": _read_date(sample["question_date"]), "turns": turns}
    is_answered = not sample["question_id"].endswith("_abs")
    return {"id": sample["question_id"], "memories": memories, "questions": [question] if is_answered else []}


def _read_date(text: str, form: str = "%Y/%m/%d %H:%M") -> str:
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), form).replace(tzinfo=UTC).isoformat()


def read_keywords(stores: Sequence[Store], number: int) -> Iterator[Asked]:
    """Ask for memories by up to four of their rarest words, as people do who know what they are looking for."""
    choose = random.Random(2)
    families = {
        family: [each for each in stores if each.family == family] for family in {each.family for each in stores}
    }
    while number:
        store = choose.choice(families[choose.choice(sorted(families))])
        counts = Counter(word for words in store.words for word in set(words))
        words = sorted(set(choose.choice(store.words)), key=lambda word: (counts[word], word))
        if len(words) > MIN_WORDS:
            query = words[: choose.randint(1, 4)]
            holders = [row for row, held in enumerate(store.words) if set(query) <= set(held)]
            turns = [id for id, row in store.ids.items() if row in holders]
            other = choose.choice(families[store.family])
            yield replace(store, family="keywords").ask(" ".join(query), kind=ANSWERABLE, turns=turns)
            if other.name != store.name:
                yield replace(other, family="keywords").ask(" ".join(query), kind="foreign")
            number -= 1


def read_relevance(paths: Sequence[Path], *, split: str) -> Iterator[Asked]:
    """Ask the questions of files with and without an answer; recognised small talk needs no rating."""
    for path in paths:
        store, questions = _read_relevance(path)
        for each in questions:
            if each["split"] == split and not is_small_talk(each["question"]):
                yield store.ask(each["question"], kind=each["type"], turns=each["expected"])


def _read_relevance(path: Path) -> tuple[Store, list[dict[str, Any]]]:
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
    return build_store("relevance", path.stem, memories), [each for each in lines if "question" in each]


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
