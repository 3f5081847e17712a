"""Lazy dataclasses and patterns behave like those of the standard library."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import re
import threading
from copy import copy, deepcopy
from dataclasses import FrozenInstanceError, asdict, astuple, field, fields, replace

import pytest

from wellkept.lazy import dataclass, lazy_class, lazy_pattern
from wellkept.model import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Lazy:
    """A record."""

    name: str
    tags: list[str] = field(default_factory=list, hash=False)
    weight: float = field(default=1.0, repr=False)
    note: str = field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Eager:
    """A record."""

    name: str
    tags: list[str] = field(default_factory=list, hash=False)
    weight: float = field(default=1.0, repr=False)
    note: str = field(default="", compare=False)


@dataclass(slots=True)
class Mutable:
    count: int = 0


def test_methods_are_those_of_the_standard_library() -> None:
    lazy, eager = Lazy(name="a", tags=["x"]), Eager(name="a", tags=["x"])

    assert repr(lazy) == repr(eager).replace("Eager", "Lazy")
    assert hash(lazy) == hash(eager)
    assert lazy == Lazy(name="a", tags=["x"], note="not compared")
    assert lazy != Lazy(name="b")
    assert lazy != eager
    assert asdict(lazy) == asdict(eager)
    assert astuple(lazy) == astuple(eager)
    assert replace(lazy, weight=2.0).weight == 2.0
    assert [each.name for each in fields(lazy)] == [each.name for each in fields(eager)]
    assert str(inspect.signature(Lazy)) == str(inspect.signature(Eager))
    assert Lazy(name="a").tags is not Lazy(name="a").tags


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="name"):
        Lazy()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Lazy("a")  # type: ignore[call-arg]


def test_a_frozen_record_cannot_be_changed() -> None:
    record = Lazy(name="a")

    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        record.name = "b"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
        del record.name
    assert not hasattr(record, "__dict__")


def test_copies_and_pickles_are_equal() -> None:
    record = Owner("home", "atlas")

    assert copy(record) == deepcopy(record) == pickle.loads(pickle.dumps(record)) == record


def test_a_mutable_record_can_be_changed_and_has_no_hash() -> None:
    record = Mutable()
    record.count += 1

    assert record == Mutable(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(record)


def test_a_subclass_can_be_a_dataclass_of_the_standard_library() -> None:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Sub(Lazy):
        more: int = 0

    assert Sub(name="a", more=1) == Sub(name="a", more=1) != Sub(name="a")


def test_many_threads_may_be_the_first_to_use_a_class() -> None:
    for _ in range(20):

        @dataclass(frozen=True, slots=True)
        class Fresh:
            value: int

        made: list[object] = []
        start = threading.Barrier(8)

        def use(cls: type[Fresh] = Fresh, start: threading.Barrier = start, made: list[object] = made) -> None:
            start.wait()
            made.append((cls(1), hash(cls(1)), repr(cls(1)), cls(1) == cls(1)))

        threads = [threading.Thread(target=use) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(made) == 8
        assert len(set(made)) == 1


def test_a_lazy_pattern_matches_like_a_compiled_one() -> None:
    lazy, eager = lazy_pattern(r"\b(a+)b", re.IGNORECASE), re.compile(r"\b(a+)b", re.IGNORECASE)

    assert lazy.pattern == eager.pattern
    assert lazy.groups == eager.groups
    assert lazy.findall("aab AB") == eager.findall("aab AB")
    assert lazy.sub(r"<\1>", "aab") == eager.sub(r"<\1>", "aab")


def test_an_object_of_a_lazy_class_is_built_once_on_first_use() -> None:
    counter = lazy_class("collections.Counter")("aab")
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(id(counter.elements.__self__))) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(set(found)) == 1
    assert counter.most_common(1) == [("a", 2)]
    assert lazy_class("functools.partial")(max, 3)(4) == 4
    with pytest.raises(AttributeError):
        counter.missing  # noqa: B018


def test_a_lazy_object_that_could_not_be_built_is_tried_again() -> None:
    broken = lazy_class("fractions.Fraction")("no number")

    for _ in range(2):
        with pytest.raises(ValueError, match="no number"):
            broken.limit_denominator()
