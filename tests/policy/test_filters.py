"""The language of filters: what it means, and where a mistake is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.errors import Invalid
from wellkept.memory.rules_filters import (
    DOCUMENT_FIELDS,
    MAX_CHARS,
    MAX_COMPARISONS,
    MAX_DEPTH,
    And,
    Comparison,
    Not,
    Or,
    parse_filter,
    render_filter,
)

FOOD = Comparison("tags", "=", "food")
OSLO = Comparison("metadata", "=", "Oslo", ("city",))


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("tags = food", FOOD),
        ("TAG = 'FOOD'", FOOD),
        ("tags != food", Not(FOOD)),
        ("not tags = food", Not(FOOD)),
        ("tags = food and metadata.city = 'Oslo'", And((FOOD, OSLO))),
        ("tags=food AND metadata.city=Oslo or tags=food", Or((And((FOOD, OSLO)), FOOD))),
        ("tags = food and (metadata.city = Oslo or tags = food)", And((FOOD, Or((OSLO, FOOD))))),
        ("not not tags = food", Not(Not(FOOD))),
        ("metadata.city in (Oslo)", OSLO),
        ("metadata.city in ('Oslo', 5)", Or((OSLO, Comparison("metadata", "=", 5, ("city",))))),
        ("metadata.city not in (Oslo)", Not(OSLO)),
        ("exists metadata.city", Comparison("metadata", "exists", None, ("city",))),
        ('metadata.a.\'b.c\'."say ""hi""" exists', Comparison("metadata", "exists", None, ("a", "b.c", 'say "hi"'))),
        ("metadata.note = 'it''s'", Comparison("metadata", "=", "it's", ("note",))),
        ("metadata.n = -2.5e1", Comparison("metadata", "=", -25.0, ("n",))),
        ("metadata.n = '5'", Comparison("metadata", "=", "5", ("n",))),
        ("metadata.is_open = true", Comparison("metadata", "=", True, ("is_open",))),
        ("metadata.gone = null", Comparison("metadata", "=", None, ("gone",))),
        ("metadata.due < 2026-10-01", Comparison("metadata", "<", "2026-10-01", ("due",))),
        ("session_id = 42", Comparison("session_id", "=", "42")),
        ("tags = 2024", Comparison("tags", "=", "2024")),
        ("created > 2026-10-01", Comparison("created_at", ">", datetime(2026, 10, 1, tzinfo=UTC))),
        ("created_at >= 2026-10-01T02:00+02:00", Comparison("created_at", ">=", datetime(2026, 10, 1, tzinfo=UTC))),
        ("  ", None),
    ],
)
def test_a_text_means(text: str, condition: Any) -> None:
    assert parse_filter(text) == condition


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("tags =", "character 7: expected a value after `=` instead of the end"),
        ("tags = and", "character 8: expected a value after `=` instead of `and`"),
        ("tags food", "character 6: expected one of =, !=, <, <=, >, >=, in, exists instead of `food`"),
        ("tags = food created > 2026", "character 13: expected `and`, `or` or the end instead of `created`"),
        ("(tags = food", "character 13: expected `and`, `or` or `)` instead of the end"),
        ("tags = food)", "character 12: expected `and`, `or` or the end instead of `)`"),
        ("tags = 'food", "character 8: this quotation mark is never closed"),
        ("tags ! food", "character 6: unexpected `!`"),
        ("= food", "character 1: expected a field such as `tags` instead of `=`"),
        ("colour = red", "character 1: there is no field `colour`; the fields are kind, tags"),
        ("tags.x = red", "character 1: only metadata has keys, not tags"),
        ("metadata = red", "character 1: name a key of the metadata"),
        ("tags < food", "character 8: `<` compares numbers, times and metadata"),
        ("kind = notes", "character 8: kind is one of core, journal, note, episode"),
        ("created > soon", "character 11: a time is written like 2026-10-01"),
        ("importance = high", "character 14: importance is a number"),
        ("metadata.x < true", "character 14: `<` needs a number, a text or a time"),
        ("metadata.x = 99999999999999999999", "character 14: a value is a text, true, false, null or a number"),
        ("metadata.x = 1e999", "character 14: a value is a text"),
        ("tags in (a, )", "character 13: expected a value instead of `)`"),
        ("tags in a", "character 9: expected `(` after `in` instead of `a`"),
        ('{"and": [{"=": ["tags", "food"]}, {"=": ["colour", 1]}]}', "and[1]: there is no field `colour`"),
        ('{"not": {"=": ["tags"]}}', "not: `=` needs a field and a value"),
        ('{"~": ["tags", "food"]}', "the top: there is no operator '~'"),
        ('{"and": []}', "the top: `and` needs a list of conditions"),
        ('{"in": ["tags", "food"]}', "the top: `in` needs a field and a list of values"),
        ('{"=": ["session_id", null]}', "the top: session_id is a text; to find records without one"),
        ('{"=": [', "character 8: it begins like JSON but is none"),
    ],
)
def test_a_mistake_is_placed(text: str, mistake: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_filter(text)
    assert f"The filter is wrong at {mistake}" in str(refused.value)


def test_long_words_are_not_quoted() -> None:
    with pytest.raises(Invalid) as refused:
        parse_filter(f"{'x' * 100} = 1")
    assert "x" * 30 not in str(refused.value)


def test_a_filter_is_bounded() -> None:
    with pytest.raises(Invalid, match="at most 8,000 characters"):
        parse_filter("tags = " + "x" * MAX_CHARS)
    with pytest.raises(Invalid, match="32 deep"):
        parse_filter("(" * 1_000 + "tags = a" + ")" * 1_000)
    with pytest.raises(Invalid, match="32 deep"):
        parse_filter("not " * 1_000 + "tags = a")
    deep: dict[str, Any] = {"=": ["tags", "a"]}
    for _ in range(MAX_DEPTH + 1):
        deep = {"not": deep}
    with pytest.raises(Invalid, match="32 deep"):
        parse_filter(deep)
    with pytest.raises(Invalid, match="at most 200 values"):
        parse_filter(f"metadata.n in ({', '.join(map(str, range(MAX_COMPARISONS + 1)))})")
    with pytest.raises(Invalid, match="at most 16 keys"):
        parse_filter(" or ".join(f"exists metadata.k{number}" for number in range(17)))
    with pytest.raises(Invalid, match="NUL"):
        parse_filter({"=": ["tags", "a\x00"]})
    with pytest.raises(Invalid, match="A filter is a text"):
        parse_filter(["tags"])


def test_other_records_have_other_fields() -> None:
    assert parse_filter("category = policy", DOCUMENT_FIELDS) == Comparison("category", "=", "policy")
    with pytest.raises(Invalid, match="the fields are title, category, source, created_at, updated_at, metadata"):
        parse_filter("tags = food", DOCUMENT_FIELDS)


@given(st.text(alphabet="tagsmetdin.and orx'\"()=<>!,0123456789-", max_size=60))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    condition, problem = None, "at character"
    try:
        condition = parse_filter(text)
    except Invalid as error:
        problem = str(error)
    assert "at character" in problem
    assert condition is None or parse_filter(render_filter(condition)) == condition
