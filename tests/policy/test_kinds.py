"""The four kinds of memory and what each allows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wellkept.errors import Invalid
from wellkept.memory.rules_kinds import (
    RULES,
    check_content,
    check_importance,
    check_kind,
    check_tags,
    expires_at,
)
from wellkept.model import Kind

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_every_kind_has_a_rule() -> None:
    assert set(RULES) == set(Kind)


@pytest.mark.parametrize(
    ("kind", "max_chars", "days", "importance"),
    [
        (Kind.CORE, 10_000, None, 1.0),
        (Kind.JOURNAL, 10_000, 7, 0.5),
        (Kind.NOTE, 500, None, 0.5),
        (Kind.EPISODE, 10_000, None, 0.5),
    ],
)
def test_the_rules_are_these(kind: Kind, max_chars: int, days: int | None, importance: float) -> None:
    rule = RULES[kind]

    assert (rule.max_chars, rule.importance) == (max_chars, importance)
    assert expires_at(kind, NOW) == (None if days is None else NOW + timedelta(days=days))


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_is_known_by_its_name(kind: Kind) -> None:
    assert check_kind(kind.value) is check_kind(kind) is kind


@pytest.mark.parametrize("kind", ["", "Note", "notes", "core "])
def test_an_unknown_kind_is_refused_with_those_there_are(kind: str) -> None:
    with pytest.raises(Invalid, match="the kinds are core, journal, note, episode"):
        check_kind(kind)


@pytest.mark.parametrize("kind", [each for each in Kind if each is not Kind.ITEM])
def test_content_is_trimmed_and_has_a_longest_length(kind: Kind) -> None:
    longest = "x" * RULES[kind].max_chars

    assert check_content(f" \n{longest}\t ", kind) == longest
    with pytest.raises(Invalid, match=rf"^Content too long \(max {RULES[kind].max_chars:,} characters\)$"):
        check_content(longest + "x", kind)


def test_what_only_a_program_sees_is_no_blank() -> None:
    """Exported conversations hold such turns; refusing one would refuse the batch it came with."""
    assert check_content(" \u200b ", Kind.EPISODE) == "\u200b"


@pytest.mark.parametrize("text", ["", " ", "\n\t\u2003"])
def test_blank_content_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match=r"^Content cannot be blank$"):
        check_content(text, Kind.NOTE)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ([], ()),
        (["a", " b ", "a"], ("a", "b")),
        (["A", "a"], ("A", "a")),
        (["two words", "ünï", "東京", "x" * 64], ("two words", "ünï", "東京", "x" * 64)),
        (list("abcdea"), tuple("abcde")),
    ],
)
def test_tags_are_trimmed_and_not_repeated(tags: list[str], expected: tuple[str, ...]) -> None:
    assert check_tags(tags) == expected


@pytest.mark.parametrize(
    "tags", ["one string", list("abcdef"), [""], [" "], ["x" * 65], ["a\nb"], ["a\x00"], [7], ["\ud800"]]
)
def test_other_tags_are_refused(tags: Any) -> None:
    with pytest.raises(Invalid, match=r"[Tt]ag"):
        check_tags(tags)


@pytest.mark.parametrize("importance", [0, 1, 0.5, 0.0, 1.0])
def test_importance_goes_from_0_to_1(importance: float) -> None:
    checked = check_importance(importance)

    assert checked == importance
    assert type(checked) is float


@pytest.mark.parametrize("importance", [-0.1, 1.1, float("nan"), float("inf"), True, "0.5", None])
def test_any_other_importance_is_refused(importance: object) -> None:
    with pytest.raises(Invalid, match="from 0 to 1"):
        check_importance(importance)
