"""LoCoMo and LongMemEval as labelled sets."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recollect.evaluation import LabelledMemory, LabelledQuestion, LabelledSet

ADVERSARIAL = 5
"""Questions of LoCoMo whose answer is not in the conversation; there is nothing to find."""

_TURN = re.compile(r"D\d+:\d+")


def read_json(path: Path) -> Any:
    """A file of JSON, gzipped or not."""
    raw = path.read_bytes()
    return json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)


def locomo(path: Path) -> Iterator[LabelledSet]:
    """One set for each conversation; a turn says who speaks."""
    for sample in read_json(path):
        conversation = sample["conversation"]
        memories = [
            _locomo_turn(turn, f"session_{number}", conversation, number)
            for number in _sessions(conversation)
            for turn in conversation[f"session_{number}"]
        ]
        known = {memory.id for memory in memories}
        questions = []
        for asked in sample["qa"]:
            expected = sorted({turn for said in asked["evidence"] for turn in _TURN.findall(said)} & known)
            if expected and asked["category"] != ADVERSARIAL:
                category = f"category {asked['category']}"
                questions.append(LabelledQuestion(text=asked["question"], expected=expected, type=category))
        yield LabelledSet(name=sample["sample_id"], memories=memories, questions=questions)


def _sessions(conversation: Mapping[str, Any]) -> list[int]:
    numbers = (re.fullmatch(r"session_(\d+)", name) for name in conversation)
    return sorted(int(found[1]) for found in numbers if found and isinstance(conversation[found[0]], list))


def _locomo_turn(turn: Mapping[str, Any], session: str, conversation: Mapping[str, Any], number: int) -> LabelledMemory:
    said_at = _time(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
    is_first = turn["speaker"] == conversation["speaker_a"]
    return LabelledMemory(
        id=turn["dia_id"],
        text=f"{turn['speaker']}: {turn['text']}",
        session=session,
        fields={"role": "user" if is_first else "assistant", "created_at": said_at},
    )


def longmemeval(path: Path) -> Iterator[LabelledSet]:
    """One set for each question, with every turn of its haystack."""
    for sample in read_json(path):
        memories, expected = [], []
        sessions = zip(
            sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True
        )
        for session, date, turns in sessions:
            for number, turn in enumerate(turns):
                id = f"{session}:{number}"
                if not turn["content"].strip():
                    continue
                fields = {"role": turn["role"], "created_at": _longmemeval_time(date)}
                memories.append(LabelledMemory(id=id, text=turn["content"], session=session, fields=fields))
                if turn.get("has_answer"):
                    expected.append(id)
        question = LabelledQuestion(
            text=sample["question"],
            expected=expected,
            sessions=sample["answer_session_ids"],
            type=sample["question_type"],
            now=max(_longmemeval_time(date) for date in (sample["question_date"], *sample["haystack_dates"])),
        )
        yield LabelledSet(name=sample["question_id"], memories=memories, questions=[question])


def _longmemeval_time(text: str) -> datetime:
    return _time(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M")


def _time(text: str, format: str) -> datetime:
    return datetime.strptime(text, format).replace(tzinfo=UTC)
