"""Credentials stay out of memory, whichever way they come, and out of everything that is written about it.

Tests that do store one (as flagging and allowing mean to) use a database of their own: the others look for traces.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.services.conftest import Clock, Place, on_one_engine
from wellkept import Invalid, SecretRejected
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.model import Memory, State

REFUSAL = "text appears to contain a secret — not stored"
HINT = (
    "It matches the rule github-token. Store the text without the secret. If there is none in it, tell the user, who "
    "can allow it."
)
KEY = (
    "gh" + "p_" + "16C7e42F292c6912E7710c838347Ae178B4a"
)  # made up, and in pieces, so that no scanner stumbles over it
LEAK = f"The deploy token is {KEY}, keep it safe"
HARMLESS = ("token: economics", "password: see the vault", "commit 3f786850e387550fdab836ed7e6dc881de23001b")

WRITES: dict[str, Callable[[AgentMemory, Memory], Any]] = {
    "note": lambda ann, _: ann.remember(LEAK),
    "core": lambda ann, _: ann.remember(LEAK, kind="core"),
    "journal": lambda ann, _: ann.remember(LEAK, kind="journal"),
    "episode": lambda ann, _: ann.remember(LEAK, kind="episode", role="tool_result", origin="tool"),
    "import": lambda ann, _: ann.remember(LEAK, origin="import"),
    "held": lambda ann, _: ann.remember(LEAK, kind="core", origin="model"),
    "tag": lambda ann, _: ann.remember("harmless", tags=["fine", KEY]),
    "correction": lambda ann, old: ann.remember(LEAK, supersedes=old.id),
    "batch": lambda ann, _: ann.remember_many(["good", "also good", LEAK]),
    "batch of fields": lambda ann, _: ann.remember_many([{"text": "good"}, {"text": "x", "tags": [KEY]}]),
    "edit": lambda ann, old: ann.update(old.id, text=LEAK),
    "edit of tags": lambda ann, old: ann.update(old.id, tags=[KEY]),
    "edit of both": lambda ann, old: ann.update(old.id, text="changed", tags=["a", KEY], importance=1.0),
}

TOOLS: dict[str, tuple[Any, Any]] = {
    "memory_store": ({"text": LEAK}, {"ok": False, "error": REFUSAL, "hint": HINT}),
    "memory_store with a tag": ({"text": "harmless", "tags": [KEY]}, {"ok": False, "error": REFUSAL, "hint": HINT}),
    "save_to_journal": ({"content": LEAK}, {"error": REFUSAL, "hint": HINT}),
    "save_to_core": ({"content": LEAK}, {"error": REFUSAL, "hint": HINT}),
}


def everything_written(place: Place) -> bytes:
    """All that is on disk: SQLite's files as they lie there, or every row of every table."""
    if place.engine == "sqlite":
        return b"".join(path.read_bytes() for path in sorted(place.files.iterdir()))
    tables = place.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    rows = [place.sql(f'SELECT string_agg(each::text, chr(10)) FROM "{table}" each') for (table,) in tables]
    return "\n".join(row[0] or "" for (row,) in rows).encode()


def assert_nothing_leaked(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    written = everything_written(place)
    assert b"an ordinary note" in written  # so the looking itself works
    for trace in (KEY, KEY.lower(), KEY[4:], KEY[:20]):
        assert trace.encode() not in written
        assert trace not in caplog.text


@pytest.mark.proves("N3")
@pytest.mark.parametrize("way", WRITES)
@on_one_engine
def test_every_way_in_is_refused_before_anything_is_written(
    place: Place,
    tenant: TenantMemory,
    ann: AgentMemory,
    way: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    old = ann.remember("an ordinary note")
    events = tenant.audit.list()

    with pytest.raises(SecretRejected) as refusal:
        WRITES[way](ann, old)

    assert refusal.value.sentence == REFUSAL
    assert str(refusal.value).startswith(f"{REFUSAL}. It matches the rule github-token. ")
    assert "--secrets redact" in str(refusal.value)
    assert "wellkept admin secrets allow" in str(refusal.value)
    assert refusal.value.code == "secret_rejected"
    assert refusal.value.__cause__ is None
    assert ann.list(state="all") == [old]
    assert ann.history(old.id) == []
    refused, *earlier = tenant.audit.list()
    assert earlier == events
    assert (refused.action, refused.agent_id) == ("memory.refuse", "ann")
    assert refused.message.endswith(" was refused: it seems to hold a secret.")
    assert ann.remember("the next one").id == "m-2"  # not even a number was taken
    assert_nothing_leaked(place, caplog)


@pytest.mark.proves("N3")
@pytest.mark.parametrize("case", TOOLS)
@on_one_engine
def test_a_tool_says_so_and_stores_nothing(
    place: Place, tenant: TenantMemory, ann: AgentMemory, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    old = ann.remember("an ordinary note")
    arguments, answer = TOOLS[case]

    assert ann.call_tool(case.split()[0], arguments) == answer

    assert ann.list(state="all") == [old]
    assert [event.action for event in tenant.audit.list()] == ["memory.refuse", "memory.add"]
    assert_nothing_leaked(place, caplog)


@pytest.mark.proves("N3")
@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_one_is_stored(ann: AgentMemory, text: str) -> None:
    assert ann.call_tool("memory_store", {"text": text}) == {"ok": True, "id": "m-1"}


@pytest.mark.proves("N3")
def test_redacting_stores_the_text_without_it(
    place: Place, clock: Clock, tenant_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with place.open(clock, secrets="redact") as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        note = ann.remember(LEAK)
        plain = ann.remember("an ordinary note")
        edited = ann.update(plain.id, text=f"before {LEAK} after")

        assert note.text.startswith("The deploy token is [secret removed: ")
        assert note.text.endswith("], keep it safe")
        assert (note.flag, note.state(clock())) == (None, State.LIVE)
        assert edited.text.startswith("before The deploy token is [secret removed: ")
        with pytest.raises(SecretRejected):  # a tag is a word to search by: half of one is of no use
            ann.remember("harmless", tags=[KEY])
        block = ann.prompts.inject("deploy token")
        assert block is not None
        assert KEY not in block
        assert_nothing_leaked(place, caplog)


@pytest.mark.proves("N3", "N1")
def test_a_redacted_note_is_still_no_longer_than_a_note(place: Place, clock: Clock, tenant_id: str) -> None:
    with place.open(clock, secrets="redact") as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        short = "x " * 237 + "my password is hunter2"  # the mark is longer than what it stands for

        with pytest.raises(Invalid, match=r"Content too long \(max 500 characters\)"):
            ann.remember(short)
        note = ann.remember("short")
        with pytest.raises(Invalid, match="too long"):
            ann.update(note.id, text=short)

        assert ann.list(state="all") == [note]


@pytest.mark.proves("N3")
def test_flagging_stores_it_and_puts_it_up_for_review(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, secrets="flag") as wellkept:
        ann, tenant = wellkept.agent("ann"), wellkept.tenant()
        plain = ann.remember("an ordinary note")
        note = ann.remember(LEAK)
        edited = ann.update(plain.id, text=f"changed: {LEAK}")

        assert note.text == LEAK
        assert note.flag is not None
        assert note.flag.startswith("secret: ")
        assert KEY not in note.flag
        assert [memory.id for memory in ann.review.list()] == [note.id, edited.id]
        assert ann.review.approve(note.id).flag is None
        assert [memory.id for memory in ann.review.list()] == [edited.id]
        assert all(KEY not in f"{event.message} {event.meta}" for event in tenant.audit.list())


@pytest.mark.proves("N3")
def test_what_a_tenant_allows_is_stored_for_it_alone(
    fresh_place: Place, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with fresh_place.open(clock) as wellkept:
        tenant, other = wellkept.tenant(), wellkept.tenant("other").agent("ann")
        ann = tenant.agent("ann")
        with pytest.raises(Invalid, match="nothing to allow"):
            tenant.secrets.allow("an ordinary sentence")

        assert tenant.secrets.allow(f"This key is public: {KEY}") == 1

        ann.remember("an ordinary note")
        assert_nothing_leaked(fresh_place, caplog)  # only a hash is kept
        assert ann.remember(LEAK, tags=[KEY]).text == LEAK
        assert list(tenant.secrets.scan()) == []
        with pytest.raises(SecretRejected):
            other.remember(LEAK)
        with pytest.raises(SecretRejected):
            ann.remember(LEAK.replace(KEY[-4:], "9999"))  # another key is another secret


@pytest.mark.proves("N3")
def test_a_scan_finds_what_is_there_already(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, secrets="flag") as wellkept:
        tenant = wellkept.tenant()
        ann, bob = tenant.agent("ann"), tenant.agent("bob")
        ann.remember_many([f"ordinary {number}" for number in range(3)])
        ann.remember(LEAK)
        bob.remember("my password is hunter2", kind="journal")
        wellkept.tenant("other").agent("eve").remember(LEAK)
        clock.forward(days=8)  # the journal entry has expired, and is still there

    with fresh_place.open(clock) as wellkept:
        found = list(wellkept.tenant().secrets.scan())

    assert [(each.agent, each.id) for each in found if each.shelf == "memories"] == [("ann", "m-4"), ("bob", "m-1")]
    assert all(sighting.rules for sighting in found)
    assert KEY not in repr(found)
    assert "hunter2" not in repr(found)


NAMES: dict[str, Callable[[TenantMemory], Any]] = {
    "agent id appears": lambda tenant: tenant.agent(KEY).remember("harmless"),
    "session id appears": lambda tenant: tenant.agent("ann").remember("harmless", session_id=KEY),
    "category appears": lambda tenant: tenant.agent("ann").remember("harmless", kind="episode", category=KEY),
    "session id appears ": lambda tenant: tenant.agent("ann").sessions.start(KEY),
    "session id appears  ": lambda tenant: tenant.agent("ann").log_turn(KEY, user="hello", assistant="hi"),
    "session id appears   ": lambda tenant: tenant.agent("ann").details.store("a long text", session_id=KEY),
    "name appears": lambda tenant: tenant.agents.add("bob", name=f"Bob {KEY}"),
    "tools appears": lambda tenant: tenant.agents.add("bob", tools=["search", KEY]),
    "text appears": lambda tenant: tenant.agents.add("bob", system_prompt=LEAK),
    "text appears ": lambda tenant: tenant.agents.update("ann", system_prompt=LEAK),
    "name appears ": lambda tenant: tenant.keys.create("read", name=KEY),
    "name appears  ": lambda tenant: tenant.workflows.create(f"deploy with {KEY}"),
    "name appears   ": lambda tenant: tenant.workflows.record(workflow="deploy", step=KEY),
    "text appears  ": lambda tenant: tenant.workflows.record(workflow="deploy", step="one", output=LEAK),
    "The category appears": lambda tenant: tenant.knowledge.ingest_text("harmless", category=KEY),
}


@pytest.mark.proves("N3")
@pytest.mark.parametrize("case", NAMES)
@on_one_engine
def test_names_ids_and_prompts_are_looked_at(
    place: Place, tenant: TenantMemory, ann: AgentMemory, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    ann.remember("an ordinary note")

    with pytest.raises(
        SecretRejected, match=f"^{case.strip()} to contain a secret — not stored[.] It matches the rule"
    ):
        NAMES[case](tenant)

    assert_nothing_leaked(place, caplog)


@pytest.mark.proves("N3")
def test_a_prompt_is_redacted_and_a_random_id_is_no_secret(place: Place, clock: Clock, tenant_id: str) -> None:
    with place.open(clock, secrets="redact") as wellkept:
        tenant = wellkept.tenant(tenant_id)
        agent = tenant.agents.add("bob", system_prompt=f"Use {KEY} for deploys.")
        assert agent.system_prompt == "Use [secret removed: github-token] for deploys."
        assert tenant.agent("bob").log_turn("aB3xY9" * 8 + "q7Z", user="hello", assistant="hi")


@pytest.mark.proves("N3")
def test_a_scan_looks_at_every_shelf(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, secrets="flag") as wellkept:
        tenant = wellkept.tenant()
        ann = tenant.agent("ann")
        note = ann.remember("harmless")
        ann.update(note.id, text=LEAK)
        ann.update(note.id, text="harmless again")
        ann.log_turn("s1", user=LEAK, assistant="I see.", remember=False)
        detail = ann.details.store("x " * 40_000 + LEAK)
        document = tenant.knowledge.ingest_text(f"# Set-up\n\n{LEAK}").document
        tenant.workflows.record(workflow="deploy", step="one", output=LEAK)
        tenant.agents.update("ann", system_prompt=LEAK)
        tenant.knowledge.ingest_text("# Nothing\n\nharmless")

        found = [(each.shelf, each.agent, each.id) for each in tenant.secrets.scan()]

    assert [each for each in found if each[0] not in ("prompts", "audit")] == [
        ("agents", "ann", "ann"),
        ("memories", "ann", note.id),
        ("transcripts", None, "s1/1"),
        ("details", "ann", detail.key),
        ("documents", None, document.id),
        ("workflows", None, "deploy/1"),
    ]
