"""Opening the library: its public names, and what `Wellkept` takes."""

from __future__ import annotations

import asyncio
import json
import stat
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args

import pytest

import wellkept
from wellkept import AsyncWellkept, Hit, Invalid, Memory, NotFound, Wellkept, acting_as, model
from wellkept.api.agent import AgentMemory
from wellkept.api.wellkept import TenantMemory
from wellkept.model import Kind, WorkingMemory

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_what_the_verbs_answer_with_can_be_named_in_annotations() -> None:
    assert set(wellkept.__all__) <= set(dir(wellkept))
    with Wellkept(":memory:") as store:
        atlas: AgentMemory = store.agent("atlas")
        kept: Memory = atlas.remember("Prefers tabs over spaces")
        hits: list[Hit] = list(atlas.recall("tabs"))
        made: WorkingMemory = atlas.context("tabs?", session="s-1")

        assert isinstance(atlas, AgentMemory)
        assert isinstance(store.tenant(), TenantMemory)
        assert (isinstance(kept, Memory), kept.kind) == (True, Kind.NOTE)
        assert isinstance(hits[0], Hit)
        assert isinstance(made, WorkingMemory)


def test_a_store_is_also_opened_by_its_path(tmp_path: Path) -> None:
    with Wellkept(tmp_path / "notes.db") as store:
        store.agent().remember("Prefers tabs over spaces")
    with Wellkept(f"sqlite:///{tmp_path}/notes.db") as store:
        assert len(store.agent().list()) == 1
    opened = AsyncWellkept(tmp_path / "notes.db")
    assert len(opened.sync.agent().list()) == 1
    opened.sync.close()


def test_a_folder_made_for_memories_is_its_owners_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Wellkept(tmp_path / "share" / "notes.db").close()
    assert stat.S_IMODE((tmp_path / "share").stat().st_mode) == 0o700

    Wellkept(tmp_path / "notes.db").close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755  # one that was there is left as it is


@pytest.mark.parametrize("told", [NOON.astimezone(timezone(timedelta(hours=5))), NOON.replace(tzinfo=None)])
def test_a_clock_may_be_set_to_any_zone_or_none(told: datetime) -> None:
    with Wellkept(":memory:", clock=lambda: told) as store:
        kept = store.agent().remember("Prefers tabs over spaces")
        assert (kept.created_at, kept.created_at.tzinfo) == (NOON, UTC)
        assert [hit.id for hit in store.agent().recall("tabs")] == [kept.id]


def test_what_tells_no_time_is_no_clock() -> None:
    clock: Any = lambda: "noon"  # noqa: E731
    with (
        pytest.raises(Invalid, match="a function that answers with the time"),
        Wellkept(":memory:", clock=clock) as store,
    ):
        store.agent().remember("Prefers tabs over spaces")


@pytest.mark.parametrize(("id", "error"), [(None, Invalid), (7, Invalid), (b"m-1", Invalid), ("m-01", NotFound)])
def test_what_can_be_no_id_is_refused_or_not_found(id: Any, error: type[Exception]) -> None:
    with Wellkept(":memory:") as store:
        store.agent().remember("Prefers tabs over spaces")
        for ask in (store.agent().get, store.agent().forget, store.agent().history, store.agent().review.approve):
            with pytest.raises(error):
                ask(id)


@pytest.mark.parametrize("form", ["openai", "anthropic", "mcp"])
def test_a_tool_is_described_in_plain_values(form: str) -> None:
    with Wellkept(":memory:") as store:
        tools = store.agent().tools(form=form)

    def kinds(value: Any) -> set[type]:
        if isinstance(value, dict):
            return set().union(*map(kinds, value.values()))
        return set().union(*map(kinds, value)) if isinstance(value, list) else {type(value)}

    assert kinds(tools) <= {str, bool}
    assert json.loads(json.dumps(tools)) == tools


def test_a_program_names_itself_in_the_audit_log() -> None:
    async def later() -> str:
        async with AsyncWellkept(":memory:") as store:
            with acting_as("import"):
                await store.agent("atlas").remember("said later")
            return (await store.tenant().audit.list())[0].actor

    with Wellkept(":memory:") as store:
        with acting_as("nightly-job"):
            store.agent("atlas").remember("said by a job")
        store.agent("atlas").remember("said by nobody")
        assert [each.actor for each in store.tenant().audit.list()] == ["", "nightly-job"]
        with pytest.raises(Invalid, match="'actor'"):
            store.tenant().audit.record("order.refund", "Refunded", meta={"actor": "somebody else"})
    for name in ("", "two\nlines", "x" * 101):
        with pytest.raises(Invalid, match="actor"), acting_as(name):
            pass
    assert asyncio.run(later()) == "import"


def test_erasing_a_word_leaves_the_actors_of_events_alone() -> None:
    with Wellkept(":memory:") as store:
        for actor in ("operator", "Anna Berg"):
            with acting_as(actor):
                store.tenant().audit.record("order.refund", f"Refunded {len(actor)}")
        assert store.tenant().data.erase("text:operator", dry_run=True).cleared == {}
        assert store.tenant().data.erase("text:Anna Berg", dry_run=True).cleared == {"audit_log": 1}


def test_reprs_name_the_store_the_tenant_and_the_agent_but_no_password() -> None:
    with Wellkept(":memory:") as store:
        assert repr(store) == "Wellkept(':memory:')"
        assert repr(store.tenant("acme")) == "TenantMemory('acme')"
        assert repr(store.agent("atlas", "acme")) == "AgentMemory('atlas', tenant='acme')"
    assert repr(store) == "Wellkept(':memory:', closed)"


def test_one_kind_in_place_of_a_list_is_refused_with_a_sentence() -> None:
    with Wellkept(":memory:") as store:
        with pytest.raises(Invalid, match=r"^`kinds` must be a list of strings, not str\.$"):
            store.agent().recall("tabs", kinds="note")  # type: ignore[arg-type]
        with pytest.raises(Invalid, match="`sources` must be a list of strings"):
            store.agent().explain("tabs", "m-1", sources="memory")  # type: ignore[arg-type]


@pytest.mark.parametrize("enum", ["Kind", "Scope", "Role", "Origin", "State", "Source"])
def test_annotations_name_the_members_of_their_enums(enum: str) -> None:
    members, names = getattr(model, enum), getattr(model, f"{enum}Name")
    (literal,) = (each for each in get_args(names) if each is not members)

    assert [*get_args(literal)] == [*members, *(["all"] if enum == "State" else [])]
