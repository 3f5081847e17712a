"""An export made before an erasure brings nothing of it back, from any table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock, Place
from tests.services.test_erasure import HANDLE, NAME, fill
from wellkept import Settings, Wellkept, acting_as
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.store.tables.transfer import TABLES
from wellkept.transfer.rules import KEYS
from wellkept.upkeep.rules_erasure import ERASED, MARKED, UNMARKED, Needle

pytestmark = pytest.mark.proves("X5")

BOT = "mara-lindqvist-bot"
MARA = "Mara Lindqvist"

Rows = dict[str, dict[tuple[str, ...], dict[str, Any]]]


@pytest.fixture
def opened(fresh_place: Place, clock: Clock) -> Iterator[Wellkept]:
    with fresh_place.open(clock, consolidation="propose") as opened:
        yield opened


@pytest.fixture
def acme(opened: Wellkept) -> TenantMemory:
    return opened.tenant("acme")


def fill_more(tenant: TenantMemory, clock: Clock) -> None:
    """Rows of an agent, a session and a user that are named after somebody, and some that were deleted since."""
    fill(tenant, tenant.agent("atlas"))
    bot = tenant.agent(BOT)
    bot.remember("Likes tea", kind="core")
    bot.log_turn("mara-lindqvist-chat", user="Hello", assistant="Hi.")
    bot.context("Is there any tea?", session="mara-lindqvist-chat", system_prompt="Help.")
    tenant.agents.update(BOT, name="Bot", system_prompt="You are Mara's own bot, and nobody else's.")
    theirs = tenant.agent("atlas").for_user("u-7")
    theirs.remember("Prefers green tea", kind="episode")
    theirs.log_turn("s-7", user="Hello", assistant="Hi.")
    theirs.context("Which tea?", session="s-7", system_prompt="Help.")
    with acting_as("mara.lindqvist"):
        tenant.audit.record("crm.call", f"Called {MARA}", agent=BOT)
    tenant.audit.record("crm.mara_lindqvist", "Called")
    assert bot.prompts.list()
    assert theirs.prompts.list()
    clock.forward(minutes=1)


def export(tenant: TenantMemory, path: Path) -> Rows:
    """Export a tenant; return its rows by table and key."""
    tenant.data.export(path)
    rows: Rows = {table: {} for table in KEYS}
    for line in map(json.loads, path.read_text().splitlines()):
        if line.get("table") in KEYS:
            key = tuple(str(line["row"][column]) for column in KEYS[line["table"]])
            rows[line["table"]][key] = line["row"]
    return rows


def test_every_table_of_an_export_has_a_rule() -> None:
    assert {*MARKED} | {*UNMARKED} == {*KEYS} == {table.name for table in TABLES}
    assert not {*MARKED} & {*UNMARKED}


@pytest.mark.parametrize(
    "subject",
    ["agent:atlas", f"text:{MARA}", f"text:{NAME}", "user:u-7", "session:s-1", "memory:atlas/m-1", "tenant:acme"],
)
def test_no_row_that_was_erased_comes_back(acme: TenantMemory, clock: Clock, tmp_path: Path, subject: str) -> None:
    fill_more(acme, clock)
    before = export(acme, tmp_path / "before.jsonl")
    assert not [table for table, rows in before.items() if not rows and table not in UNMARKED]
    acme.data.erase(subject)
    erased = export(acme, tmp_path / "erased.jsonl")

    acme.data.import_(tmp_path / "before.jsonl", trusted=True, merge=True)

    after = export(acme, tmp_path / "after.jsonl")
    # Events keep their number and time.
    for table in before.keys() - {"audit_log"}:
        returned = {*before[table]} & {*after[table]} - {*erased[table]}
        assert not returned, table
    if subject.startswith("text:"):
        needle = Needle(subject.removeprefix("text:"))
        assert not [line for line in (tmp_path / "after.jsonl").read_text().splitlines() if needle.is_in(line)]
    assert acme.audit.verify().is_intact
    if subject == "tenant:acme":
        assert not [table for table in MARKED if after[table] and table != "audit_log"]


def test_what_was_deleted_before_the_erasure_stays_out(acme: TenantMemory, clock: Clock, tmp_path: Path) -> None:
    """Deleted rows leave no mark of their own; they are known by whom they belonged to, and until when."""
    fill_more(acme, clock)
    atlas = acme.agent("atlas")
    theirs = [memory for memory in atlas.for_user("u-7").list() if memory.user == "u-7"]
    acme.data.export(tmp_path / "before.jsonl")
    for memory in theirs:
        atlas.for_user("u-7").forget(memory.id)
    acme.data.erase("user:u-7")
    clock.forward(minutes=1)
    new = atlas.for_user("u-7").remember("Is a customer again", kind="episode")
    acme.data.export(tmp_path / "later.jsonl")
    atlas.for_user("u-7").forget(new.id)

    acme.data.import_(tmp_path / "before.jsonl", trusted=True, merge=True)
    assert [each.text for each in atlas.for_user("u-7").list() if each.user] == []

    acme.data.import_(tmp_path / "later.jsonl", trusted=True, merge=True)
    assert [each.text for each in atlas.for_user("u-7").list() if each.user] == ["Is a customer again"]


def test_an_agent_that_lost_words_comes_back_without_them(acme: TenantMemory, clock: Clock, tmp_path: Path) -> None:
    fill_more(acme, clock)
    acme.data.export(tmp_path / "before.jsonl")
    for subject in (NAME, HANDLE):
        acme.data.erase(f"text:{subject}")
    acme.agents.delete("atlas")

    acme.data.import_(tmp_path / "before.jsonl", trusted=True, merge=True)

    agent = acme.agents.get("atlas")
    assert (agent.name, agent.system_prompt, agent.icon) == (ERASED, ERASED, "")
    assert "Bob likes coffee" in [memory.text for memory in acme.agent("atlas").list(limit=50)]
    assert {NAME, HANDLE}.isdisjoint(repr([acme.agent("atlas").sessions.list(), acme.sessions.list()]).split())


def test_notes_of_a_file_stay_out(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "work").mkdir()
    settings = Settings(workspace=tmp_path / "work")
    with Wellkept(f"sqlite:///{tmp_path / 'memory.db'}", settings=settings, clock=clock) as opened:
        atlas: AgentMemory = opened.agent()
        for text in (f"{MARA} likes tea", "Her name is Mara Lindqvist, and she lives in Lund"):
            atlas.remember(text)
        atlas.remember("Bob likes coffee")
        opened.tenant().data.export(tmp_path / "before.jsonl")
        opened.tenant().data.erase(f"text:{MARA}")

        opened.tenant().data.import_(tmp_path / "before.jsonl", trusted=True, merge=True)

        assert [memory.text for memory in atlas.list()] == ["Bob likes coffee"]


NAMED = (
    *("Quillembrandt, Zyphora", "**Zyphora** Quillembrandt", "Zyphora L. Quillembrandt", "Zyphora J.R. Quillembrandt"),
    *("Zyphora&nbsp;Quillembrandt", "Zyphora\\ Quillembrandt", "Zyphora\\u0020Quillembrandt"),
    *("Zyphora Quil-\nlembrandt", "Zy-\n> phora Quillembrandt", "Zypho&shy;ra Quillembrandt"),
    *("<b>Zyphora</b> <i>Quillembrandt</i>", "zyphora%20quillembrandt", "Zyphora=20Quillembrandt"),
    *("QUILLEMBRANDT ZYPHORA", "quillembrandt_zyphora.pdf", "|Quillembrandt|Zyphora|", "Zyphora (Quillembrandt)"),
)
NOT_NAMED = (
    *("Zyphora met Quillembrandt", "Ask Quillembrandt. Zyphora is out.", "Quillembrandt\n\nZyphora wrote"),
    *("Zyphora a Quillembrandt", "Quillembrandters Zyphora", "Zyphora Louise Quillembrandt", "Z. Quillembrandt"),
)


def test_a_name_is_found_however_its_words_stand_together(acme: TenantMemory) -> None:
    atlas = acme.agent("atlas")
    for text in (*NAMED, *NOT_NAMED):
        atlas.remember(f"It says: {text} - so it does", kind="episode")
    acme.audit.record("crm.zyphora_quillembrandt.called", "Called")
    acme.audit.record("crm.called", "Called")

    acme.data.erase("text:Zyphora Quillembrandt")

    assert [memory.text for memory in atlas.list(limit=50)] == [
        f"It says: {text} - so it does" for text in reversed(NOT_NAMED)
    ]
    assert [each.action for each in acme.audit.list(limit=100) if each.action.startswith(("crm", "event"))] == [
        *("crm.called", "event.erased")
    ]
    assert acme.audit.verify().is_intact


def test_the_id_of_an_agent_that_was_deleted_before_goes_too(acme: TenantMemory) -> None:
    acme.agent(BOT).remember("Likes tea")
    acme.audit.record("crm.call", "Called", agent=BOT)
    acme.workflows.record(workflow="hiring", step="call", output="fine", agent=BOT)
    acme.agents.delete(BOT)

    acme.data.erase(f"text:{MARA}")

    assert not [event for event in acme.audit.list(limit=100) if event.agent_id == BOT]
    assert acme.workflows.steps("hiring") == []


@pytest.mark.parametrize(
    ("needle", "text"),
    [
        ("not available", "Tea is available, not coffee"),
        ("555 1234", "Rooms 1234, 555"),
        ("राम शर्मा", "रामी शर्मा"),
        ("Ann Lee", "We must flee annoyed"),
    ],
)
def test_ordinary_words_and_numbers_do_not_change_places(needle: str, text: str) -> None:
    assert not Needle(needle).is_in(text)
