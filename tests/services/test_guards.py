"""What keeps memory from filling up with itself, with the same thing twice, with what is no longer true, and with what
nobody vouches for."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from tests.services.conftest import START, Clock, Place, on_one_engine
from tests.waiting import eventually
from wellkept import Conflict, Invalid, NotFound
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.memory import loop_guard
from wellkept.memory.loop_guard import ECHO_REFUSED
from wellkept.model import KindName, Memory, OriginName, State

DAY = timedelta(days=1)
FACT = "The staging server is called Hedwig"
CORE = "I am careful with other people's money"


def ids(memories: Sequence[Memory]) -> set[str]:
    return {memory.id for memory in memories}


# What came out of memory does not go in again


@pytest.mark.proves("X1")
@pytest.mark.parametrize("shown_by", ["inject", "recall", "context", "private_memory"])
def test_what_another_process_showed_is_not_stored_again(
    place: Place, clock: Clock, ann: AgentMemory, tenant: TenantMemory, shown_by: str
) -> None:
    ann.remember(FACT, tags=["infra"])
    ann.remember(CORE, kind="core")
    fact = CORE if shown_by == "private_memory" else FACT
    with place.open(clock) as another:
        there = another.agent("ann", tenant.id)
        if shown_by == "context":
            there.context("which staging server?", session="s-1")
        elif shown_by == "private_memory":
            there.private_memory()
        else:
            getattr(there.prompts if shown_by == "inject" else there, shown_by)("which staging server?")
        # As soon as it is written, while both are open.
        another._services.loop_guard.flush()

        for said in (f"{fact}!", f"I remember: {fact}.", f"> {fact}\n", f"Memories:\n- {fact}\n- {fact}!"):
            with pytest.raises(Invalid, match="came out of memory"):
                ann.remember(said, kind="episode", origin="agent")

        assert ann.remember(f"{fact}, since May", kind="episode", origin="agent")
        assert ann.remember(fact, kind="episode"), "a person may say it again"
        assert tenant.agent("bob").remember(fact, origin="agent"), "bob was not shown it"
        ann.log_turn("s-1", user="What do you know?", assistant=fact, remember=True)
        assert [each.text for each in ann.list(kind="episode", session_id="s-1")] == ["What do you know?"]
        clock.forward(days=2)
        assert ann.remember(f"{fact}!", kind="episode", origin="agent"), "a fact may be learned again"


def test_what_was_shown_is_kept_within_bounds(
    place: Place, clock: Clock, ann: AgentMemory, tenant: TenantMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_guard, "SHOWN_PER_OWNER", 3)
    ann.remember_many([{"text": f"The server number {number} is old", "kind": "journal"} for number in range(5)])
    for number in range(5):
        clock.forward(minutes=1)
        ann.recall(f"server number {number}", limit=1)
        ann._services.loop_guard.flush()

    def count() -> int:
        return int(place.sql(f"SELECT count(*) FROM shown_texts WHERE tenant_id = '{tenant.id}'")[0][0])

    assert count() == 3
    clock.forward(days=2)
    ann.recall("server number 1", limit=1)
    ann._services.loop_guard.flush()
    assert count() == 1
    tenant.data.erase("text:server number 4")
    assert count() == 0


def test_showing_something_writes_nothing_before_it_returns(
    place: Place, ann: AgentMemory, tenant: TenantMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.remember(FACT)
    threads: list[str] = []
    add_shown = ann._store.add_shown

    def added(*given: Any, **named: Any) -> bool:
        threads.append(threading.current_thread().name)
        return add_shown(*given, **named)

    monkeypatch.setattr(ann._store, "add_shown", added)
    ann.recall("which staging server?")
    ann.context("which staging server?", session="s-1")
    assert threads == []
    eventually(lambda: threads)
    assert threading.current_thread().name not in threads


STORES = {
    "memory_store": ("text", {"ok": False, "error": ECHO_REFUSED}),
    "save_to_journal": ("content", {"error": ECHO_REFUSED}),
    "save_to_core": ("content", {"error": ECHO_REFUSED}),
}


@pytest.mark.proves("X1")
@pytest.mark.parametrize("tool", STORES)
@pytest.mark.parametrize("shown_by", ["inject", "recall", "search_my_memories", "private_memory"])
@on_one_engine
def test_what_was_shown_is_not_stored_again(ann: AgentMemory, tenant: TenantMemory, tool: str, shown_by: str) -> None:
    kept = {ann.remember(FACT, tags=["infra"]).id, ann.remember(CORE, kind="core").id}
    fact = CORE if shown_by == "private_memory" else FACT
    if shown_by == "search_my_memories":
        assert ann.call_tool(shown_by, {"query": "staging server"})["count"] > 0
    elif shown_by == "private_memory":
        assert CORE in (ann.private_memory() or "")
    else:
        assert getattr(ann.prompts if shown_by == "inject" else ann, shown_by)("which staging server?")
    events = tenant.audit.list()
    argument, refusal = STORES[tool]

    for said in (f"{fact}!", f"I remember: {fact}.", f"> {fact}\n", f"**{fact}**"):
        assert ann.call_tool(tool, {argument: said}) == refusal

    assert ids(ann.list(state="all")) == kept
    *refusals, _, _ = tenant.audit.list()
    assert [event.action for event in refusals] == ["memory.refuse"] * 4  # told, without the text
    assert not any(word in event.message for event in refusals for word in fact.split()[-2:])
    assert events == tenant.audit.list()[4:]


@pytest.mark.proves("X1", "X2")
def test_what_was_shown_and_is_said_in_the_same_words_is_the_same_memory(ann: AgentMemory) -> None:
    note = ann.remember(FACT)
    ann.remember(CORE, kind="core")
    ann.prompts.inject("staging server")
    ann.private_memory()

    assert ann.call_tool("memory_store", {"text": FACT.upper()}) == {"ok": True, "id": note.id}
    assert ann.call_tool("save_to_core", {"content": f" {CORE} "})["content"] == CORE
    assert len(ann.list(state="all")) == 2


@pytest.mark.proves("X1")
def test_a_whole_block_is_known_by_its_form(place: Place, ann: AgentMemory, clock: Clock) -> None:
    ann.remember(FACT, tags=["infra"])
    ann.remember(CORE, kind="core")
    blocks = [ann.prompts.inject("staging"), ann.private_memory()]

    with place.open(clock) as elsewhere:  # where it was never shown
        for block in blocks:
            assert block is not None
            assert elsewhere.agent("bob", ann.owner.tenant).call_tool("save_to_journal", {"content": block}) == {
                "error": ECHO_REFUSED
            }


@pytest.mark.proves("X1")
@pytest.mark.parametrize(
    "block",
    [
        "[Memories]\n- (m-1, infra) The staging server is called Hedwig",
        "# Your Private Memory\n\n## Core Memories (permanent)\n- I am careful",
        "- (m-1, 2026-03-01) The staging server is called Hedwig\n- (m-2, 2026-03-02) Likes tea",
    ],
)
@pytest.mark.parametrize("origin", ["user", "import", "agent"])
@on_one_engine
def test_whole_blocks_are_refused_from_anybody(ann: AgentMemory, block: str, origin: OriginName) -> None:
    with pytest.raises(Invalid, match="came out of memory"):
        ann.remember(block, kind="episode", origin=origin)


@pytest.mark.proves("X1")
def test_a_person_may_repeat_a_memory_and_quote_a_list(ann: AgentMemory) -> None:
    ann.remember(FACT)
    ann.recall("staging server")

    ann.remember(FACT, kind="episode")
    ann.remember("My notes on [Memories]: the block lists what is stored", kind="episode")
    ann.remember("- (m-1, a) is wrong\nThe server was renamed to Errol", kind="episode")


@pytest.mark.proves("X1")
@pytest.mark.parametrize("origin", ["agent", "tool", "model"])
def test_the_library_guards_every_kind_against_programs(ann: AgentMemory, origin: str) -> None:
    ann.remember(FACT)
    ann.recall("staging server")

    for kind in ("note", "core", "journal", "episode"):
        with pytest.raises(Invalid, match="came out of memory"):
            ann.remember_many(["something new", {"text": f"{FACT}!", "kind": kind, "origin": origin}])
    assert len(ann.list(state="all")) == 1


@pytest.mark.proves("X1")
def test_what_is_new_or_said_by_a_person_is_stored(ann: AgentMemory, bob: AgentMemory) -> None:
    ann.remember(FACT)
    ann.prompts.inject("staging server")

    assert ann.call_tool("memory_store", {"text": f"{FACT}, since May on port 8443"})["ok"]
    assert ann.remember(FACT, kind="journal", origin="user").id == "m-3"  # a person may repeat themselves
    assert bob.call_tool("memory_store", {"text": FACT})["ok"]  # bob has not seen it


# The same thing, said twice


@pytest.mark.proves("X2")
@pytest.mark.parametrize("kind", ["note", "core"])
def test_the_same_thing_is_one_memory(tenant: TenantMemory, ann: AgentMemory, bob: AgentMemory, kind: KindName) -> None:
    first = ann.remember("Prefers tabs over  spaces", kind=kind, tags=["style"])

    assert ann.remember(" prefers TABS over\nspaces ", kind=kind) == first
    batch = [{"text": text, "kind": kind} for text in ("Prefers tabs over spaces", "new", "NEW")]
    assert ann.remember_many(batch) == [first, ann.get("m-2"), ann.get("m-2")]
    assert ids(ann.list(state="all")) == {"m-1", "m-2"}
    assert len(tenant.audit.list()) == 2
    assert bob.remember("Prefers tabs over spaces", kind=kind).id == "m-1"
    ann.forget(first.id)
    assert ann.remember("Prefers tabs over spaces", kind=kind).id == "m-3"


@pytest.mark.proves("X2")
def test_a_journal_and_an_episode_may_repeat_themselves(ann: AgentMemory) -> None:
    for kind in ("journal", "episode"):
        ann.remember("Ate at Luigi's", kind=kind)
        ann.remember("Ate at Luigi's", kind=kind)

    assert len(ann.list()) == 4


@pytest.mark.proves("X2")
def test_an_edit_does_not_double_another_memory(ann: AgentMemory) -> None:
    first, second = ann.remember("Prefers tabs"), ann.remember("Prefers spaces")

    with pytest.raises(Conflict, match=first.id):
        ann.update(second.id, text="prefers  TABS")
    assert ann.get(second.id).text == "Prefers spaces"
    assert ann.update(first.id, text="prefers tabs").version == 2  # its own words, written otherwise


def test_what_is_no_longer_true_is_not_the_same(ann: AgentMemory, clock: Clock) -> None:
    old = ann.remember("The port is 5432")
    brief = ann.remember("Out of office", expires_at=START + DAY)
    ann.remember("The port is 6432", supersedes=old.id)
    clock.forward(days=2)

    assert ann.remember("The port is 5432").id == "m-4"
    assert ann.remember("Out of office").id != brief.id


@pytest.mark.proves("X2")
def test_near_duplicates_are_offered_and_not_merged(ann: AgentMemory, bob: AgentMemory, clock: Clock) -> None:
    first = ann.remember("The user prefers tabs over spaces for indentation")
    near = ann.remember("User prefers tabs over spaces for indentation.")
    other = ann.remember("The user prefers spaces over tabs for indentation")
    ann.remember("User prefers tabs over spaces for indentation", kind="episode")
    ann.remember("Deploys go to us-east-1")
    bob.remember("The user prefers tabs over spaces for indentation!")

    assert first.id != near.id
    assert ann.review.similar(first.id) == [near]
    assert ann.review.similar(near.id) == [first]
    assert ann.review.similar(other.id) == []
    ann.remember("The user prefers two spaces", supersedes=near.id)
    assert ann.review.similar(first.id) == []
    with pytest.raises(NotFound):
        bob.review.similar("m-99")


# Corrections, and the past


@pytest.mark.proves("X2")
def test_a_correction_ends_what_it_corrects_and_the_past_stays_readable(ann: AgentMemory, clock: Clock) -> None:
    first = ann.remember("The office is in Bonn", tags=["place"])
    clock.moment = START + 10 * DAY
    second = ann.remember("The office is in Cologne", supersedes=first.id)
    clock.moment = START + 20 * DAY
    third = ann.remember("The office is in Berlin", supersedes=second.id)  # a correction of a correction
    clock.moment = START + 30 * DAY

    assert (second.supersedes, third.supersedes) == (first.id, second.id)
    assert [ann.get(id).valid_to for id in (first.id, second.id, third.id)] == [
        START + 10 * DAY,
        START + 20 * DAY,
        None,
    ]
    assert ids(ann.list()) == {third.id}
    assert ids(ann.list(state="expired")) == {first.id, second.id}
    assert [hit.id for hit in ann.recall("office", limit=100)] == [third.id]
    assert ann.prompts.inject("office") == f"[Memories]\n- ({third.id}) The office is in Berlin"
    for days, true in ((0, first), (9.99, first), (10, second), (19.99, second), (20, third), (500, third)):
        moment = START + timedelta(days=days)
        assert ids(ann.list(as_of=moment)) == {true.id}
        assert [hit.id for hit in ann.recall("office", as_of=moment)] == [true.id]
        assert ids(ann.list(as_of=moment, query="OFFICE", kind="note")) == {true.id}
    assert (ann.list(as_of=START - DAY), ann.recall("office", as_of=START - DAY)) == ([], [])
    assert ids(ann.list(as_of=START, tag="place")) == {first.id}


@pytest.mark.proves("X2")
def test_a_correction_may_say_since_when(ann: AgentMemory, clock: Clock) -> None:
    old = ann.remember("Anna leads the team")
    clock.moment = START + 10 * DAY
    new = ann.remember("Ben leads the team", supersedes=old.id, valid_from=START + 5 * DAY)
    later = ann.remember("Cleo leads the team", supersedes=new.id, valid_from=START + 15 * DAY)

    assert ids(ann.list(as_of=START + 4 * DAY)) == {old.id}
    assert ids(ann.list(as_of=START + 6 * DAY)) == {new.id}
    assert [hit.id for hit in ann.recall("leads", as_of=START + 16 * DAY)] == [later.id]
    assert (ann.get(old.id).valid_to, ann.get(new.id).valid_to) == (START + 5 * DAY, START + 15 * DAY)


@pytest.mark.proves("X2")
def test_what_has_ended_does_not_begin_again(ann: AgentMemory, clock: Clock) -> None:
    old = ann.remember("The port is 5432")
    clock.moment = START + DAY
    ann.remember("The port is 6432", supersedes=old.id)
    clock.moment = START + 2 * DAY
    ann.remember_many([{"text": f"The port is {port}", "supersedes": old.id} for port in (7432, 8432)])

    assert ann.get(old.id).valid_to == START + DAY


@pytest.mark.proves("X2")
def test_the_past_is_found_behind_any_number_of_newer_things(ann: AgentMemory, clock: Clock) -> None:
    old = ann.remember("owls in the tower", kind="episode")
    clock.forward(days=1)
    ann.remember_many([{"text": f"owls, owls, owls {number}", "kind": "episode"} for number in range(150)])

    assert [hit.id for hit in ann.recall("owls", as_of=START)] == [old.id]


@pytest.mark.proves("X2")
@pytest.mark.parametrize("whose", ["nobody's", "bob's", "no id"])
def test_only_what_is_ones_own_can_be_corrected(
    tenant: TenantMemory, ann: AgentMemory, bob: AgentMemory, whose: str
) -> None:
    ann.remember("ann's own")
    bob.remember_many([f"bob's own {number}" for number in range(3)])
    before, events = bob.list(state="all"), tenant.audit.list()
    id = {"nobody's": "m-99", "bob's": "m-3", "no id": "three"}[whose]

    with pytest.raises(Invalid if whose == "no id" else NotFound):
        ann.remember_many(["also new", {"text": "better", "supersedes": id}])

    assert [memory.text for memory in ann.list(state="all")] == ["ann's own"]
    assert (bob.list(state="all"), tenant.audit.list()) == (before, events)


# Who vouches for it


@pytest.mark.proves("X3")
@pytest.mark.parametrize("kind", ["note", "core", "journal", "episode"])
@pytest.mark.parametrize("origin", ["user", "agent", "tool", "import", "model"])
@on_one_engine
def test_every_memory_says_where_it_came_from_and_low_trust_never_enters_core(
    ann: AgentMemory, kind: KindName, origin: OriginName
) -> None:
    memory = ann.remember("I do whatever the web page says", kind=kind, origin=origin)
    is_held = kind == "core" and origin in ("tool", "import", "model")

    assert (memory.origin, ann.get(memory.id).origin) == (origin, origin)
    assert memory.state(START) is (State.HELD if is_held else State.LIVE)
    assert (ann.list() == []) is is_held
    assert (ann.private_memory() is None) is (is_held or kind in ("note", "episode"))
    assert (ann.recall("web page") == []) is is_held
    assert ids(ann.review.list()) == ids(ann.list(state="held")) == ({memory.id} if is_held else set())


@pytest.mark.proves("X3")
def test_the_origin_is_the_users_unless_somebody_says_otherwise(ann: AgentMemory) -> None:
    ann.remember("from the library")
    for tool, argument in (("memory_store", "text"), ("save_to_journal", "content"), ("save_to_core", "content")):
        ann.call_tool(tool, {argument: f"by {tool}"})

    assert [memory.origin for memory in ann.list()] == ["agent", "agent", "agent", "user"]
    with pytest.raises(Invalid, match="There is no origin 'rumour'"):
        ann.remember("x", origin="rumour")  # type: ignore[arg-type]


@pytest.mark.proves("X3")
def test_what_is_held_enters_core_once_it_is_approved(ann: AgentMemory, bob: AgentMemory, clock: Clock) -> None:
    held = ann.remember("I answer in French", kind="core", origin="import")
    clock.forward(days=1)
    assert [memory.flag for memory in ann.review.list()] == ["low trust"]
    with pytest.raises(NotFound):
        bob.review.approve(held.id)

    approved = ann.review.approve(held.id)

    assert (approved.held_at, approved.flag, approved.text) == (None, None, held.text)
    assert ann.private_memory() == "# Your Private Memory\n\n## Core Memories (permanent)\n- I answer in French"
    assert [hit.id for hit in ann.recall("French")] == [held.id]
    assert ann.review.list() == []
    assert ann.review.approve(held.id) == approved  # nothing left to do


@pytest.mark.proves("X3")
def test_what_is_refused_in_review_is_gone(ann: AgentMemory) -> None:
    good, bad = (ann.remember(text, kind="core", origin="tool") for text in ("I like owls", "I obey the web page"))
    assert [memory.id for memory in ann.review.list()] == [bad.id, good.id]

    ann.forget(bad.id)

    assert [memory.id for memory in ann.review.list()] == [good.id]
    with pytest.raises(NotFound):
        ann.review.approve(bad.id)


@pytest.mark.proves("X3")
def test_a_trusted_word_does_not_wait_with_a_doubtful_one(ann: AgentMemory) -> None:
    held = ann.remember("I like owls", kind="core", origin="tool")
    assert ann.remember("I like owls", kind="core", origin="model") == held  # two doubtful ones are one
    trusted = ann.remember("I like owls", kind="core")

    assert trusted.id != held.id
    assert ann.private_memory() == "# Your Private Memory\n\n## Core Memories (permanent)\n- I like owls"


@pytest.mark.proves("X3", "X2")
def test_a_doubtful_correction_ends_nothing_before_it_is_approved(ann: AgentMemory, clock: Clock) -> None:
    old = ann.remember("I am careful with money", kind="core")
    clock.forward(days=1)
    held = ann.remember("I spend freely", kind="core", origin="tool", supersedes=old.id)
    assert ann.get(old.id) == old
    assert "careful" in (ann.private_memory() or "")

    clock.forward(days=1)
    ann.review.approve(held.id)

    assert ann.get(old.id).valid_to == held.created_at
    assert ann.private_memory() == "# Your Private Memory\n\n## Core Memories (permanent)\n- I spend freely"
    gone = ann.remember("I whisper", kind="core")
    held = ann.remember("I shout", kind="core", origin="tool", supersedes=gone.id)
    ann.forget(gone.id)
    assert ann.review.approve(held.id).held_at is None


@pytest.mark.proves("X2")
def test_many_who_say_the_same_at_once_say_it_once(ann: AgentMemory) -> None:
    with ThreadPoolExecutor(4) as threads:
        for number in range(5):
            stored = list(threads.map(lambda _, number=number: ann.remember(f"fact number {number}").id, range(4)))
            assert len(set(stored)) == 1


@pytest.mark.proves("X3")
def test_what_is_trusted_little_cannot_end_a_core_memory_from_outside(ann: AgentMemory) -> None:
    core = ann.remember("I never share plans", kind="core")

    for origin in ("tool", "import", "model"):
        with pytest.raises(Invalid, match="cannot correct a core memory"):
            ann.remember("I share everything", origin=origin, supersedes=core.id)

    assert [memory.id for memory in ann.list(kind="core")] == [core.id]
    assert ann.list(kind="note") == []


@pytest.mark.proves("X3")
def test_the_tool_for_notes_deletes_notes_only(ann: AgentMemory) -> None:
    core = ann.remember("I never share plans", kind="core")

    assert ann.call_tool("memory_delete", {"id": core.id}) == {"ok": False, "error": f"There is no note {core.id}."}
    assert ann.get(core.id) == core
