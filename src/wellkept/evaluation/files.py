"""Files of labelled memories and questions, recognised by their content, gzipped or not.

- Labelled lines: JSONL, a line is a memory (`memory`, `id`, …) or a question (`question`, `expected`, …).
- Pairs: a JSON list, or JSONL, of facts with a question about each (`fact`, `question`).
- Conversations: JSONL, a line is a conversation or a collection of documents (`memories`, `questions`).
- LoCoMo: a JSON list of conversations (`conversation`, `qa`).
- LongMemEval: a JSON list of questions, each with its haystack (`haystack_sessions`, …).
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from wellkept.errors import Invalid
from wellkept.evaluation.forms import (
    parse_conversation,
    parse_locomo,
    parse_longmemeval,
    parse_memory,
    parse_pair,
    parse_question,
)
from wellkept.evaluation.sets import LabelledMemory, LabelledQuestion, LabelledSet

T = TypeVar("T")

GZIP_MAGIC = b"\x1f\x8b"
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
FORMS = (
    "JSONL with `memory` or `question`, or with `fact` and `question`, on each line, JSONL with `memories` and "
    "`questions` on each line, or the JSON of LoCoMo or LongMemEval"
)


def read_sets(path: Path) -> Iterator[LabelledSet]:
    """Read the sets of a file, or of all files in a folder.

    Raises: Invalid, naming the line or the entry.
    """
    if not path.is_dir():
        yield from _read_file(path)
        return
    files = sorted(each for each in path.iterdir() if each.name.endswith(SUFFIXES))
    if not files:
        raise Invalid(f"{path} has no file that ends with {', '.join(SUFFIXES)}.")
    for each in files:
        yield from _read_file(each)


def _read_file(path: Path) -> Iterator[LabelledSet]:
    try:
        with path.open("rb") as raw:
            is_packed = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
            with io.TextIOWrapper(gzip.GzipFile(fileobj=raw) if is_packed else raw, "utf-8") as text:
                yield from _parse_text(text, path.name)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def _parse_text(text: Iterable[str], name: str) -> Iterator[LabelledSet]:
    lines = ((number, line) for number, line in enumerate(text, 1) if line.strip())
    first = next(lines, None)
    if first is None:
        raise Invalid(f"{name} is empty; it should be {FORMS}.")
    if first[1].lstrip().startswith("["):
        yield from _parse_list(first[1] + "".join(line for _, line in lines), name)
        return
    start = _parse_line(*first, name)
    records = _parse_lines(first[0], start, lines, name)
    if {"memories", "questions"} <= start.keys():
        yield from (_guard(parse_conversation, each, f"Line {number} of {name}") for number, each in records)
    else:
        yield from _group_lines(records, name)


def _parse_lines(
    number: int, start: Mapping[str, Any], lines: Iterable[tuple[int, str]], name: str
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    yield number, start
    for later, line in lines:
        yield later, _parse_line(later, line, name)


def _parse_line(number: int, line: str, name: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(line)
    except ValueError:
        parsed = None
    is_known = isinstance(parsed, dict) and (
        {"memory", "question"} & parsed.keys() or {"memories", "questions"} <= parsed.keys()
    )
    if not is_known:
        raise Invalid(f"Line {number} of {name} is of no known form; it should be {FORMS}.")
    return dict(parsed)


def _parse_list(text: str, name: str) -> Iterator[LabelledSet]:
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise Invalid(f"{name} is no valid JSON: {error}.") from None
    if isinstance(entries, list) and entries and all(isinstance(each, dict) and "fact" in each for each in entries):
        yield from _group_lines(enumerate(entries, 1), name)
        return
    for number, entry in enumerate(entries, 1):
        keys = entry.keys() if isinstance(entry, dict) else ()
        if "haystack_sessions" in keys:
            yield _guard(parse_longmemeval, entry, f"Entry {number} of {name}")
        elif "conversation" in keys:
            yield _guard(parse_locomo, entry, f"Entry {number} of {name}")
        else:
            raise Invalid(f"Entry {number} of {name} is of no known form; the file should be {FORMS}.")


def _group_lines(records: Iterable[tuple[int, Mapping[str, Any]]], name: str) -> list[LabelledSet]:
    memories: dict[str, list[LabelledMemory]] = {}
    questions: dict[str, list[LabelledQuestion]] = {}
    for number, line in records:
        group, place = str(line.get("set", "")), f"Line {number} of {name}"
        memories.setdefault(group, [])
        questions.setdefault(group, [])
        if "fact" in line:
            fact, question = _guard(partial(parse_pair, id=f"line {number}"), line, place)
            memories[group].append(fact)
            questions[group].append(question)
        elif "memory" in line:
            memories[group].append(_guard(parse_memory, line, place))
        else:
            questions[group].append(_guard(parse_question, line, place))
    for group, entries in questions.items():
        known = {memory.id for memory in memories[group]}
        for question in entries:
            if not known.issuperset(question.expected):
                raise Invalid(f"The question {question.text[:60]!r} expects a memory its set does not have.")
    if not any(questions.values()):
        raise Invalid(f"{name} has no question; add a line with `question` and `expected`.")
    return [LabelledSet(name=group, memories=memories[group], questions=questions[group]) for group in memories]


def _guard(parse: Callable[[Mapping[str, Any]], T], record: Mapping[str, Any], place: str) -> T:
    """Parse a record and turn what it lacks into a sentence.

    Raises: Invalid.
    """
    try:
        return parse(record)
    except KeyError as error:
        raise Invalid(f"{place}: it has no {error}.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise Invalid(f"{place}: {error}.") from None
