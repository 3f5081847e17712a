"""Answers have the fields of the records they are made of, as the records describe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from wellkept.model.records import INSIDE
from wellkept.server.rest.shapes import RecordBody, describes


@dataclass(frozen=True, kw_only=True)
class Cup:
    """Part of a record."""

    size: int


@dataclass(frozen=True, kw_only=True)
class Tea:
    """A record."""

    name: str = field(metadata={"description": "As on the tin.", "examples": ["Assam"]})
    tin: str = field(default="", metadata=INSIDE)
    is_hot: bool = field(default=True, metadata={"alias": "hot"})
    notes: Mapping[str, str] = field(default_factory=dict)
    cups: tuple[Cup, ...] = ()
    price: float | None = None


@describes(Cup)
class CupBody(RecordBody):
    """Part of an answer."""


@describes(Tea)
class TeaBody(RecordBody):
    """An answer, with a field that the record has not."""

    is_ready: bool


@describes(Tea, without=("cups", "notes"))
class TinBody(RecordBody):
    """A shorter answer."""


TEA = Tea(name="Assam", tin="secret", is_hot=False, notes={"by": "Lena"}, cups=(Cup(size=2),))


def test_an_answer_has_the_fields_of_its_record_and_its_own() -> None:
    told = TeaBody.of(TEA, is_ready=True).model_dump()

    assert [*told] == ["name", "hot", "notes", "cups", "price", "is_ready"]
    assert told == {
        "name": "Assam",
        "hot": False,
        "notes": {"by": "Lena"},
        "cups": ({"size": 2},),
        "price": None,
        "is_ready": True,
    }


def test_fields_may_be_left_out() -> None:
    assert TinBody.of(TEA).model_dump_json() == '{"name":"Assam","hot":false,"price":null}'


def test_the_schema_says_what_the_record_says() -> None:
    schema = TeaBody.model_json_schema()

    assert schema["required"] == ["name", "hot", "notes", "cups", "price", "is_ready"]
    assert schema["properties"]["name"] == {
        "title": "Name",
        "type": "string",
        "description": "As on the tin.",
        "examples": ["Assam"],
    }
    assert schema["properties"]["cups"]["items"] == {"$ref": "#/$defs/CupBody"}


def test_a_field_of_its_own_must_be_given() -> None:
    with pytest.raises(AttributeError, match="is_ready"):
        TeaBody.of(TEA)
