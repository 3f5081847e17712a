"""Parsers of the records in files of labelled memories and questions, one for each form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from wellkept.evaluation.sets import LabelledMemory, LabelledQuestion, LabelledSet
from wellkept.model import Kind, Memory, Origin, Role

FIELDS = {each.name: "datetime" in str(each.type) for each in fields(Memory)}
"""Fields of a memory that a labelled line may set; True for times."""

LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = 5
"""Questions of LoCoMo whose answer is not in the conversation: not in the headline."""

ABSTENTION = "abstention"
"""Type of LongMemEval's questions without an answer, whose ids end with `_abs`: not in the headline."""

_LOCOMO_TURN = re.compile(r"D\d+:\d+")
_LOCOMO_SESSION = re.compile(r"session_(\d+)")


def parse_memory(line: Mapping[str, Any]) -> LabelledMemory:
    """Parse a labelled line with a memory."""
    given = line.keys() & FIELDS.keys() - {"id", "session_id", "created_at"}
    values = {name: _parse_time(line[name]) if FIELDS[name] else line[name] for name in given if line[name] is not None}
    return LabelledMemory(
        id=str(line["id"]),
        text=str(line["memory"]),
        session=None if line.get("session_id") is None else str(line["session_id"]),
        created_at=_find_time(line.get("created_at")),
        fields={"kind": Kind.EPISODE, **values},
    )


def parse_question(line: Mapping[str, Any]) -> LabelledQuestion:
    """Parse a labelled line with a question."""
    sessions = line.get("expected_sessions", [])
    expected = line.get("expected", [] if sessions else None)
    if not isinstance(expected, list) or not isinstance(sessions, list):
        raise ValueError("`expected` is a list of the ids that should be found, or [] if nothing should")
    return LabelledQuestion(
        text=str(line["question"]),
        expected=[str(id) for id in expected],
        sessions=[str(id) for id in sessions],
        type=str(line.get("type", "")),
        now=_find_time(line.get("now")),
        is_headline=bool(line.get("headline", True)),
        split=str(line.get("split", "")),
    )


def parse_pair(line: Mapping[str, Any], *, id: str) -> tuple[LabelledMemory, LabelledQuestion]:
    """Parse a fact, which is stored as a note, and the question that it answers."""
    fact = LabelledMemory(id=id, text=str(line["fact"]), fields={"kind": Kind.NOTE})
    question = LabelledQuestion(text=str(line["question"]), expected=[id], type=str(line.get("domain", "")))
    return fact, question


def parse_conversation(record: Mapping[str, Any]) -> LabelledSet:
    """Parse one conversation, or one collection of documents, with its questions.

    Blank turns are left out, and so are questions whose evidence is not in the conversation. What has neither a session
    nor a title is a fact, and stored as a note.
    """
    speakers = _assign_roles(each.get("speaker") for each in record["memories"])

    def describe(each: Mapping[str, Any]) -> Mapping[str, Any]:
        if each.get("session") is None and each.get("title") is None:
            return {"fields": {"kind": Kind.NOTE}}
        return speakers.get(each.get("speaker") or "", {})

    memories = [
        LabelledMemory(
            id=str(each["id"]),
            text=each["text"],
            session=None if each.get("session") is None else str(each["session"]),
            created_at=_find_time(each.get("ts")),
            title=each.get("title"),
            **describe(each),
        )
        for each in record["memories"]
        if each["text"].strip()
    ]
    known = {memory.id for memory in memories}
    questions = [
        LabelledQuestion(
            text=each["query"],
            expected=[str(id) for id in each["turns"] if str(id) in known],
            sessions=[str(id) for id in each.get("sessions") or ()],
            type=str(each.get("category") or ""),
            now=_find_time(each.get("now")),
            is_headline=bool(each.get("headline", True)),
            split=str(each.get("split") or ""),
        )
        for each in record["questions"]
        if not each["turns"] or not known.isdisjoint(map(str, each["turns"]))
    ]
    return LabelledSet(name=str(record["id"]), memories=memories, questions=questions)


def parse_locomo(sample: Mapping[str, Any]) -> LabelledSet:
    """Parse one conversation of LoCoMo. Questions without evidence are left out."""
    conversation = sample["conversation"]
    speakers = _assign_roles((conversation["speaker_a"], conversation["speaker_b"]))
    numbers = sorted(int(found[1]) for name in conversation if (found := _LOCOMO_SESSION.fullmatch(name)))
    memories = [
        LabelledMemory(
            id=turn["dia_id"],
            text=turn["text"],
            session=f"session_{number}",
            created_at=_read_time(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y"),
            **speakers[turn["speaker"]],
        )
        for number in numbers
        for turn in conversation[f"session_{number}"]
        if turn["text"].strip()
    ]
    known, questions = {memory.id for memory in memories}, []
    for asked in sample["qa"]:
        expected = sorted({turn for each in asked["evidence"] for turn in _LOCOMO_TURN.findall(each)} & known)
        if expected:
            category = asked["category"]
            questions.append(
                LabelledQuestion(
                    text=asked["question"],
                    expected=expected,
                    type=LOCOMO_CATEGORIES.get(category, f"category {category}"),
                    is_headline=category != ADVERSARIAL,
                )
            )
    return LabelledSet(name=str(sample["sample_id"]), memories=memories, questions=questions)


def parse_longmemeval(sample: Mapping[str, Any]) -> LabelledSet:
    """Parse one question of LongMemEval with every turn of its haystack."""
    memories, expected = [], []
    sessions = zip(sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True)
    speakers = _assign_roles(Role)
    for session, date, turns in sessions:
        for number, turn in enumerate(turns):
            id = f"{session}:{number}"
            if not turn["content"].strip():
                continue
            time = _parse_longmemeval_time(date)
            memories.append(
                LabelledMemory(id=id, text=turn["content"], session=session, created_at=time, **speakers[turn["role"]])
            )
            if turn.get("has_answer"):
                expected.append(id)
    is_answered = not sample["question_id"].endswith("_abs")
    question = LabelledQuestion(
        text=sample["question"],
        expected=expected,
        sessions=sample["answer_session_ids"],
        type=sample["question_type"] if is_answered else ABSTENTION,
        now=_parse_longmemeval_time(sample["question_date"]),
        is_headline=is_answered,
    )
    return LabelledSet(name=sample["question_id"], memories=memories, questions=[question])


def _assign_roles(speakers: Iterable[str | None]) -> dict[str, dict[str, Any]]:
    """Return how the turns of each speaker are stored.

    Between a user and an assistant, as `log_turn` does. Between people, the first one is the user, the others take the
    place of the assistant, and a text starts with the name.
    """
    names = list(dict.fromkeys(each for each in speakers if each))
    if set(names) <= set(Role):
        origins = {Role.ASSISTANT: Origin.AGENT}
        return {each: {"fields": {"role": each, "origin": origins.get(Role(each), Origin.USER)}} for each in names}
    roles = {each: Role.ASSISTANT if place else Role.USER for place, each in enumerate(names)}
    return {each: {"speaker": each, "fields": {"role": role}} for each, role in roles.items()}


def _find_time(value: str | None) -> datetime | None:
    return _parse_time(value) if value else None


def _parse_time(value: str) -> datetime:
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _parse_longmemeval_time(text: str) -> datetime:
    return _read_time(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M")


def _read_time(text: str, format: str) -> datetime:
    return datetime.strptime(text, format).replace(tzinfo=UTC)
