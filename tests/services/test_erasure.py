"""Erasure removes every trace: from every table and every file, down to the bytes, and says so in a receipt."""

from __future__ import annotations

import functools
import gc
import json
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

import apsw
import psycopg
import pytest

from tests.postgres_server import PostgresServer
from tests.services.conftest import Clock, Place, on_one_engine
from wellkept import Conflict, Invalid, NotFound, Settings, Wellkept, acting_as
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.history.rules_history import OWN_AREAS, event_hash
from wellkept.language.text import content_hash
from wellkept.model import Origin, Receipt
from wellkept.store.tables.erasure import DEPENDENT_TABLES, TABLES
from wellkept.upkeep.rules_erasure import foreign_words, receipt_hash

pytestmark = pytest.mark.proves("X5")

NAME = "Zoë Qvarnström"
HANDLE = "qvarnstrom"
REGISTRIES = {"tenants", "token_buckets", "embedders", "leases", "schema_migrations"}
NOT_WORDS = {
    *(
        "tenant_id",
        "agent_id",
        "kind",
        "scope",
        "role",
        "origin",
        "state",
        "cause",
        "content_hash",
        "hash",
        "previous_hash",
    ),
    "secret_hash",
    *(
        "created_at",
        "updated_at",
        "expires_at",
        "last_retrieved_at",
        "archived_at",
        "valid_from",
        "valid_to",
        "held_at",
    ),
    *("replaced_at", "decided_at", "completed_at", "at", "last_used_at", "revoked_at", "action", "folds", "trust"),
    *("ended_as", "forgotten_at"),
}
"""Columns that hold ids of agents, times, hashes and our own words, but nothing anybody said."""

KEYS = {
    ("agents", "id"),
    ("context_calls", "id"),
    ("api_keys", "id"),
    ("api_keys", "agents"),
    ("api_keys", "user_id"),
    ("chat_messages", "session_id"),
    ("kb_chunks", "document_id"),
    ("workflow_steps", "workflow_id"),
}
"""Ids we make, or those of another row, which is searched itself."""

COPIES = {("memories", "folded"), ("memories", "folded_tags"), ("details", "folded"), ("audit_log", "folded_message")}
"""Made from what stands beside them."""


def columns(place: Place) -> dict[str, set[str]]:
    """Every column that could hold words, by table."""
    if place.engine == "sqlite":
        rows = place.sql(
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c "
            "WHERE t.type = 'table' AND c.type = 'TEXT'"
        )
    else:
        rows = place.sql(
            "SELECT table_name, column_name FROM information_schema.columns JOIN pg_tables ON tablename = table_name "
            "WHERE table_schema = 'public' AND data_type IN ('text', 'jsonb', 'json', 'character varying')"
        )
    found: dict[str, set[str]] = {}
    for table, column in rows:
        found.setdefault(table, set()).add(column)
    return {table: names for table, names in found.items() if table not in REGISTRIES}


def dump(place: Place) -> dict[str, str]:
    """Everything in every table."""
    return {table: repr(place.sql(f"SELECT * FROM {table}")) for table in (*TABLES, *DEPENDENT_TABLES)}


def forms(text: str) -> Iterator[bytes]:
    """A text as it may stand in a file."""
    for each in (text, text.lower(), text.upper(), text.casefold()):
        yield each.encode()
        yield each.encode("utf-16-le")
        yield each.encode("utf-16-be")
        yield json.dumps(each)[1:-1].encode()


def found_in_files(folder: Path, *texts: str) -> list[str]:
    """The files that hold one of these texts."""
    wanted = {form for text in texts for form in forms(text)}
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "pg_wal" not in path.parts:
            content = path.read_bytes()
            found += [path.name] if any(form in content for form in wanted) else []
    return found


def fill(tenant: TenantMemory, ann: AgentMemory) -> None:
    """Somebody's name in every table, beside somebody else's."""
    tenant.agents.add(ann.owner.agent, name=f"{NAME}'s helper", system_prompt=f"You help {NAME}.", icon=HANDLE)
    for text in (f"{NAME} likes tea", "Bob likes coffee"):
        ann.remember(text, tags=[HANDLE] if "tea" in text else [])
        ann.remember(f"{text} a lot", kind="core")
        ann.remember(f"{text} in the morning", kind="episode", session_id="s-1", category="preference")
    ann.remember("Lives in Lund", kind="journal")
    ann.update(ann.list(kind="journal")[0].id, text=f"{NAME} lives in Lund")
    ann.update(ann.list(kind="journal")[0].id, text="Somebody lives in Lund")
    for _ in range(3):
        ann.remember(f"{NAME} was late on Monday", kind="episode")
    assert ann.changes.consolidate()
    for user in (f"I am {NAME.upper()}", "What is new?", f"{HANDLE} asks", "And now?"):
        ann.log_turn("s-1", user=user, assistant="Well.")
    ann.log_turn(f"chat-{HANDLE}", user="Hello", assistant="Hi.")
    ann.details.store("line\n" * 60_000 + f"owner: {NAME}\n" + "line\n" * 60_000, description="A log", session_id="s-1")
    ann.details.store("short", description=f"About {NAME}", metadata={"source": f"mail from {HANDLE}"})
    ann.details.store("nobody", description="Nothing")
    for session_id in ("s-1", f"chat-{HANDLE}"):
        ann.context(f"what does {NAME} like?", session=session_id, system_prompt="Help.")
    assert len(ann.prompts.list()) == 2
    tenant.knowledge.ingest_text(f"Refunds are decided by {NAME}.", title="Refunds", category="money")
    tenant.knowledge.ingest_text("Bob decides about holidays.", title="Holidays")
    tenant.knowledge.ingest_text("Her address.", title=f"About {NAME}")
    tenant.workflows.record(workflow="hiring", step="call", output=f"{NAME} said yes", agent=ann.owner.agent)
    tenant.workflows.record(workflow="hiring", step="wait", output="Bob said no")
    tenant.workflows.record(workflow=f"for {NAME}", step="greet", output="done")
    tenant.audit.record("crm.call", f"Called {NAME}", meta={"who": HANDLE})
    tenant.audit.record("crm.call", "Called Bob")
    tenant.keys.create("read", name=f"{NAME}'s laptop")
    tenant.secrets.allow("AKIAQYLPMN5HIEXAMP42")


@pytest.fixture
def wellkept(own_store: Wellkept) -> Wellkept:
    return own_store


@pytest.fixture
def opened(fresh_place: Place, clock: Clock) -> Iterator[Wellkept]:
    with fresh_place.open(clock, consolidation="propose") as opened:
        yield opened


@pytest.fixture
def alone(opened: Wellkept) -> TenantMemory:
    """A tenant that has its database to itself."""
    return opened.tenant("acme")


@pytest.fixture
def acme(tenant: TenantMemory) -> TenantMemory:
    return tenant


@pytest.fixture
def atlas(acme: TenantMemory) -> AgentMemory:
    return acme.agent("atlas")


def data_folder(place: Place) -> Path:
    """Where the engine keeps its files."""
    if place.engine == "sqlite":
        return place.files
    with psycopg.connect(place.admin_url) as admin:
        admin.execute("CHECKPOINT")
        (folder,) = admin.execute("SHOW data_directory").fetchone() or ("",)
        (number,) = admin.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone() or (0,)
    return Path(folder) / "base" / str(number)


def test_every_table_and_every_text_of_the_schema_is_covered(fresh_place: Place, opened: Wellkept) -> None:
    schema = columns(fresh_place)

    assert set(schema) - {"leases"} == {*TABLES, *DEPENDENT_TABLES}
    for table, names in schema.items():
        if table in TABLES:
            searched = {*TABLES[table].texts, *TABLES[table].json}
            left = {name for name in names - searched - NOT_WORDS if {(table, name)}.isdisjoint(KEYS | COPIES)}
            assert not left, f"{table}: are these anybody's words? {left}"
            assert searched <= names


def test_whoever_is_mentioned_is_nowhere_afterwards(fresh_place: Place, alone: TenantMemory) -> None:
    fill(alone, alone.agent("atlas"))
    alone.upkeep.maintain()  # what was recalled is marked now, and not in between
    alone._services.loop_guard.flush()
    before = dump(fresh_place)
    named = {table for table, rows in before.items() if NAME in rows or HANDLE in rows}
    assert named >= {*TABLES} - {"secret_allowances"}, "a table that is never filled here could be forgotten"

    shown = alone.data.erase(NAME, dry_run=True)
    assert dump(fresh_place) == before
    receipts = [alone.data.erase(NAME, compact=True), alone.data.erase(f"text:{HANDLE}", compact=True)]

    assert not [table for table, rows in dump(fresh_place).items() if NAME in rows or HANDLE in rows]
    assert found_in_files(data_folder(fresh_place), NAME, HANDLE, "Qvarnström") == []
    assert {each.id for each in shown.found if each.table == "memories"} >= {"m-1", "m-2", "m-3"}
    assert receipts[0].removed["memories"] == shown.removed["memories"]
    assert {*receipts[0].removed} >= {"memories", "memory_index", "memory_versions", "details", "detail_contents"}
    assert {*receipts[0].removed} >= {"kb_chunks", "kb_documents", "workflow_steps", "workflows", "changes"}
    assert {*receipts[0].cleared} >= {"chat_messages", "audit_log", "api_keys", "agents"}


def test_what_others_said_stays_and_goes_on_working(acme: TenantMemory, atlas: AgentMemory) -> None:
    fill(acme, atlas)

    for subject in (NAME, HANDLE):
        acme.data.erase(subject)

    assert {memory.text for memory in atlas.list(limit=50)} == {
        "Bob likes coffee",
        "Bob likes coffee a lot",
        "Bob likes coffee in the morning",
        "Somebody lives in Lund",
        *("What is new?", "And now?", "Well."),
    }
    assert acme.agents.get("atlas").system_prompt == "You help [erased]."
    assert [message.content for message in atlas.sessions.messages("s-1")] == [
        *("[erased]", "Well.", "What is new?", "Well.", "[erased]", "Well.", "And now?", "Well.")
    ]
    assert [document.title for document in acme.knowledge.list()] == ["Holidays"]
    assert [step.name for step in acme.workflows.steps("hiring")] == ["wait"]
    assert [detail.description for detail in atlas.details.list()] == ["Nothing"]
    assert "Bob likes coffee" in [hit.text for hit in atlas.recall("coffee")]
    assert acme.audit.verify().is_intact
    atlas.log_turn("s-1", user="Still there?", assistant="Yes.")
    atlas.remember("Bob likes cake")
    acme.workflows.record(workflow="hiring", step="end", output="done")
    assert NAME not in repr([atlas.recall(NAME), acme.knowledge.search(NAME), acme.audit.search(NAME)])


def test_a_tenant_leaves_the_audit_log_and_its_keys(fresh_place: Place, opened: Wellkept, alone: TenantMemory) -> None:
    atlas = alone.agent("atlas")
    fill(alone, atlas)
    empty_before = [table for table in TABLES if not fresh_place.sql(f"SELECT 1 FROM {table} LIMIT 1")]
    assert empty_before == [], "a table that is never filled here could be forgotten"
    opened.agent("bob", "other").remember("Stays")

    with pytest.raises(Invalid, match="use tenant:acme"):
        alone.data.erase("tenant:other")
    receipt = alone.data.erase("tenant:acme", compact=True)

    kept = {"audit_log", "audit_lanes", "shelves", "api_keys", "erased_texts"}
    for table in {*TABLES, *DEPENDENT_TABLES} - kept:
        assert fresh_place.sql(f"SELECT 1 FROM {table} WHERE tenant_id = 'acme'") == [], table
    assert found_in_files(data_folder(fresh_place), NAME, "in Lund", "coffee", "likes tea") == []
    assert alone.audit.verify().is_intact
    assert alone.audit.search("crm") == []
    assert opened.agent("bob", "other").list()[0].text == "Stays"
    assert receipt.removed["agents"] == 1
    atlas.remember("A new beginning")


def test_an_agent_goes_with_all_it_owns_and_no_other_does(acme: TenantMemory, atlas: AgentMemory) -> None:
    fill(acme, atlas)
    bob = acme.agent("bob")
    bob.remember(f"{NAME} is my friend")
    bob.details.store("nobody", description="The same text as another agent's")
    acme.audit.record("crm.note", "About something", agent="atlas")

    receipt = acme.data.erase("atlas")

    assert receipt.subject == "agent:atlas"
    with pytest.raises(NotFound):
        acme.agents.get("atlas")
    with pytest.raises(NotFound):
        acme.data.erase("agent:atlas")
    assert (atlas.list(), atlas.details.list(), atlas.sessions.list()) == ([], [], [])
    assert acme.audit.search("About something") == []
    assert acme.audit.search("Called Bob")
    assert bob.list()[0].text == f"{NAME} is my friend"
    assert bob.details.read(bob.details.list()[0].key).content == "nobody"


def test_a_session_goes_with_what_was_remembered_of_it(acme: TenantMemory, atlas: AgentMemory) -> None:
    fill(acme, atlas)

    receipt = acme.data.erase("session:s-1")

    assert receipt.removed["chat_messages"] == 8
    assert {memory.session_id for memory in atlas.list(limit=50)} == {None, f"chat-{HANDLE}"}
    assert [detail.session_id for detail in atlas.details.list()] == [None, None]
    assert atlas.prompts.list(session_id="s-1") == []
    with pytest.raises(NotFound):
        acme.data.erase("session:s-1")
    assert [session.id for session in atlas.sessions.list()] == [f"chat-{HANDLE}"]


def test_a_memory_goes_with_its_history_and_what_was_made_of_it(acme: TenantMemory, atlas: AgentMemory) -> None:
    said = [atlas.remember("The door code is odd", kind="episode") for _ in range(3)]
    (change,) = atlas.changes.consolidate()
    made = next(each.id for each in atlas.changes.apply(change.id).memories if each.action == "add")
    acme.agent("bob").remember("Another m-1")

    with pytest.raises(Invalid, match="2 agents have a memory m-1; name the agent: memory:atlas/m-1"):
        acme.data.erase("m-1")
    shown = acme.data.erase("memory:atlas/m-1", dry_run=True)
    receipt = acme.data.erase("memory:atlas/m-1")

    assert {each.id for each in shown.found} == {"m-1", made, change.id}
    assert receipt.removed["changes"] == 1
    assert [memory.id for memory in atlas.list()] == [said[2].id, said[1].id], "the others count again"
    assert acme.agent("bob").list()[0].text == "Another m-1"
    with pytest.raises(NotFound):
        atlas.get("m-1")


def test_a_turn_goes_with_the_facts_that_were_read_out_of_it(acme: TenantMemory, atlas: AgentMemory) -> None:
    atlas.log_turn("s-1", user="My sister Ulla lives in Ystad.", assistant="I see.")
    atlas.log_turn("s-1", user="I am allergic to peanuts.", assistant="Noted.")
    facts = [memory for memory in atlas.list() if memory.sources]
    assert [fact.text for fact in facts] == ["I am allergic to peanuts.", "My sister Ulla lives in Ystad."]

    receipt = acme.data.erase(f"memory:atlas/{facts[1].sources[0]}")

    assert receipt.removed["memories"] == 2
    assert [memory.id for memory in atlas.list() if memory.sources] == [facts[0].id]


def test_the_parts_of_a_fact_go_with_its_words(fresh_place: Place, opened: Wellkept, alone: TenantMemory) -> None:
    atlas = alone.agent("atlas")
    atlas.log_turn("s-1", user="My sister Ulla lives in Ystad.", assistant="I see.")
    (fact,) = [memory for memory in atlas.list() if memory.sources]
    atlas.update(fact.id, text="She lives by the sea.")
    atlas.log_turn("s-1", user="My brother Nils lives in Lund.", assistant="I see.")

    for name in ("Ulla", "Nils"):
        assert any(name in rows or name.lower() in rows for rows in dump(fresh_place).values())
        alone.data.erase(name)
        assert [table for table, rows in dump(fresh_place).items() if name in rows or name.lower() in rows] == []

    gc.collect()
    texts = [each for each in reached_from([opened]) if isinstance(each, str)]
    assert [text for text in texts if "Ulla lives" in text or "Nils lives" in text] == []


def test_the_receipt_can_be_checked_and_the_audit_log_tells_of_it(acme: TenantMemory, atlas: AgentMemory) -> None:
    atlas.remember(f"{NAME} likes tea")

    receipt = acme.data.erase(NAME)

    (event,) = [event for event in acme.audit.list() if event.action == "erase.run"]
    assert receipt.events == (event.id,)
    assert (
        event.meta["subject_hash"]
        == receipt.subject_hash
        == acme.data.erase(f" {NAME.upper()}", dry_run=True).subject_hash
    )
    assert event.meta["removed"] == {"memories": 1, "memory_index": 1}
    assert receipt.hash == receipt_hash(receipt) != receipt_hash(replace(receipt, removed={"memories": 9}))
    assert acme.data.erase(NAME).hash != receipt.hash
    assert Wellkept.verify_receipt(receipt)
    assert not Wellkept.verify_receipt(replace(receipt, removed={}))
    assert NAME not in repr(asdict(receipt))
    assert any("audit log" in each for each in receipt.remains)


def test_a_log_that_somebody_changed_is_not_made_whole_again(fresh_place: Place, alone: TenantMemory) -> None:
    alone.audit.record("crm.call", "Called Bob")
    alone.audit.record("crm.call", f"Called {NAME}")
    fresh_place.sql("UPDATE audit_log SET message = 'Called nobody' WHERE id = 1")

    alone.data.erase(NAME)

    assert NAME not in dump(fresh_place)["audit_log"]
    report = alone.audit.verify()
    assert (report.is_intact, report.broken_at) == (False, 1)


def test_our_own_events_say_nothing_but_ids_and_words_of_ours(acme: TenantMemory, atlas: AgentMemory) -> None:
    """Otherwise erasing a common word would empty the log."""
    fill(acme, atlas)
    own = [event for event in acme.audit.list(limit=100) if event.action.partition(".")[0] in {*OWN_AREAS, "turn"}]

    left = {
        word for event in own for word in foreign_words([event.message]).split() if word.isalpha() and len(word) > 2
    }

    assert len(own) > 20
    ids = {key.id for key in acme.keys.list()} | {each.key[-8:] for each in atlas.details.list()}
    assert left - ids <= {"atlas", "hiring"}  # the names of an agent and a workflow


def test_nothing_of_it_comes_back_from_memory(place: Place, clock: Clock, acme: TenantMemory) -> None:
    atlas = acme.agent("atlas")
    atlas.remember(f"{NAME} likes tea")
    assert atlas.recall(f"{NAME} tea")
    with place.open(clock) as another:
        elsewhere = another.agent("atlas", acme.id)
        assert elsewhere.recall("tea")

        acme.data.erase(NAME)

        assert [hit for hit in elsewhere.recall("tea") if hit.source == "memory"] == []
    assert [hit for hit in atlas.recall("tea") if hit.source == "memory"] == []
    atlas.remember(f"{NAME} likes tea", origin=Origin.AGENT)  # no echo any more: nobody remembers that it was shown


@pytest.mark.parametrize("user", ["", "ann"])
def test_every_process_forgets_what_it_showed(place: Place, clock: Clock, acme: TenantMemory, user: str) -> None:
    said = f"{NAME} likes tea"
    (acme.agent("atlas").for_user(user) if user else acme.agent("atlas")).remember(said)
    with place.open(clock) as another:
        whole = another.agent("atlas", acme.id)
        elsewhere = whole.for_user(user) if user else whole
        assert elsewhere.recall("tea")
        with pytest.raises(Invalid, match="came out of memory"):
            elsewhere.remember(f"I recall: {said}", origin=Origin.AGENT)

        clock.forward(minutes=1)
        acme.data.erase(NAME)
        another._services.loop_guard.flush()

        assert place.sql(f"SELECT hash FROM shown_texts WHERE tenant_id = '{acme.id}'") == []
        clock.forward(minutes=1)
        elsewhere.remember(said, origin=Origin.AGENT)
        assert elsewhere.recall("tea")
        with pytest.raises(Invalid, match="came out of memory"):
            elsewhere.remember(f"I recall: {said}", origin=Origin.AGENT)


def test_what_is_written_while_it_is_forgotten_does_not_stay(
    place: Place, clock: Clock, acme: TenantMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme.agent("atlas").remember(f"{NAME} likes tea")
    with place.open(clock) as another:
        add_shown = another._store.add_shown

        def add_late(*given: Any, **named: Any) -> bool:
            acme.data.erase(NAME)
            return add_shown(*given, **named)

        monkeypatch.setattr(another._store, "add_shown", add_late)
        assert another.agent("atlas", acme.id).recall("tea")
        another._services.loop_guard.flush()

        assert place.sql(f"SELECT hash FROM shown_texts WHERE tenant_id = '{acme.id}'") == []


def reached_from(root: object) -> Iterator[object]:
    """Everything a program holds on to through `root`; not the code itself."""
    waiting, seen = [root], {id(root)}
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, FunctionType):
            inner: list[Any] = [*(each.__closure__ or ()), each.__defaults__]
        elif isinstance(each, ModuleType | type | FrameType):
            inner = []
        else:
            inner = gc.get_referents(each)
        for one in inner:
            if id(one) not in seen:
                seen.add(id(one))
                waiting.append(one)


def find_memoised() -> list[object]:
    """Return the memoised functions of the package."""
    modules = [module for name, module in sys.modules.items() if name.startswith("wellkept.")]
    values = {id(value): value for module in modules for value in vars(module).values()}
    return [value for value in values.values() if isinstance(value, functools._lru_cache_wrapper)]


def test_no_cache_of_the_process_holds_on_to_it(wellkept: Wellkept, acme: TenantMemory, atlas: AgentMemory) -> None:
    fill(acme, atlas)
    wellkept.keys.verify(acme.keys.create("read", name=f"{NAME}'s phone").key)
    for _ in range(3):
        asked: list[object] = [atlas.recall(NAME), atlas.search("qvarnström")]
        asked += [atlas.prompts.inject(NAME), atlas.private_memory()]
        asked += [atlas.context(NAME, session="s-1", budget=500), acme.knowledge.search(NAME), acme.audit.search(NAME)]
        assert NAME in repr(asked)
    del asked

    for subject in (NAME, HANDLE):
        acme.data.erase(subject)

    gc.collect()
    memoised = find_memoised()
    assert len(memoised) > 5
    texts = [each for each in reached_from([wellkept, memoised]) if isinstance(each, str)]
    assert len(texts) > 100
    long = [text for text in texts if len(text) > len("qvarnström")]
    assert [text for text in long if NAME.casefold() in text.casefold() or HANDLE in text.casefold()] == []
    words = [each for each in reached_from(memoised) if isinstance(each, str)]
    assert [word for word in words if "qvarnstr" in word.casefold()] == []


def test_what_is_written_meanwhile_goes_too(acme: TenantMemory, atlas: AgentMemory) -> None:
    atlas.remember(f"{NAME} was here")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            atlas.remember(f"{NAME} was here at {time.monotonic_ns()}", kind="episode")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        acme.data.erase(NAME)
    finally:
        stop.set()
        writer.join()
    receipt = acme.data.erase(NAME)

    assert atlas.list(limit=200) == []
    assert not [each for each in receipt.remnants if "during every round" in each]


def add_parents(tenant: TenantMemory, agent: AgentMemory) -> dict[str, int]:
    """Add a document, a session and a workflow with several rows each; return how many an erasure removes."""
    paragraphs = [f"Paragraph {each}. " + "A sentence that fills it. " * 30 for each in range(30)]
    passages = tenant.knowledge.ingest_text("\n\n".join(paragraphs), title="Qvarnstrom handbook").documents[0].passages
    for each in range(6):
        agent.log_turn("qvarnstrom-chat", user=f"question {each}", assistant=f"answer {each}", remember=False)
    workflow = tenant.workflows.create("Qvarnstrom onboarding")
    for each in range(11):
        tenant.workflows.record(workflow=workflow.id, step=f"s{each}", output=f"output {each}", agent="atlas")
    return {
        "kb_documents": 1,
        "kb_chunks": passages,
        "chunk_index": passages,
        "chat_sessions": 1,
        "chat_messages": 12,
        "workflows": 1,
        "workflow_steps": 11,
        "step_index": 11,
    }


@pytest.mark.parametrize("kind", ["text", "tenant"])
def test_erase_completes_after_a_failure_between_steps(
    acme: TenantMemory, atlas: AgentMemory, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("wellkept.upkeep.erase.STEP", 5)
    expected, erase_traces = add_parents(acme, atlas), acme._store.erase_traces
    sizes: list[int] = []
    removed: Counter[str] = Counter()

    def failing(tenant: str, gone: Any, cleared: Any, **options: Any) -> Any:
        sizes.append(len(gone))
        if len(sizes) == 4:
            raise OSError("The machine stopped.")
        erased = erase_traces(tenant, gone, cleared, **options)
        removed.update(erased.removed)
        return erased

    monkeypatch.setattr(acme._store, "erase_traces", failing)
    subject = f"tenant:{acme.id}" if kind == "tenant" else f"text:{HANDLE}"
    with pytest.raises(OSError, match="stopped"):
        acme.data.erase(subject)
    acme.data.erase(subject)
    assert max(sizes) == 5
    assert {table: removed[table] for table in expected} == expected
    assert [*acme.knowledge.list(), *acme.workflows.list(), *acme.sessions.list()] == []


def test_receipt_counts_rows_removed_in_steps(
    acme: TenantMemory, atlas: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wellkept.upkeep.erase.STEP", 5)
    monkeypatch.setattr("wellkept.upkeep.erase.STEP_CHARS", 3_000)
    expected = add_parents(acme, atlas)
    removed = acme.data.erase(f"text:{HANDLE}").removed
    assert {table: removed[table] for table in expected} == expected


def test_log_is_sealed_again_before_writers_have_to_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()

    def hashed(*given: Any) -> str:
        threads.add(threading.current_thread().name)
        return event_hash(*given)

    monkeypatch.setattr("wellkept.store.tables.erasure.event_hash", hashed)
    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path / 'memory.db'}")) as store:
        store.tenant().audit.record("crm.call", f"Called {NAME}")
        store.tenant().audit.record("crm.call", "Called Bob")

        store.tenant().data.erase(NAME)

        assert store.tenant().audit.verify().is_intact
    # Whatever is written to SQLite is written by a thread of its own, one transaction after the other.
    assert threads == {threading.current_thread().name}


def test_messages_lose_their_words_in_steps(
    acme: TenantMemory, atlas: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wellkept.upkeep.erase.STEP", 5)
    for number in range(12):
        atlas.log_turn("s-1", user=f"{NAME} asks {number}", assistant="Hello.")
    sizes, erase_traces = list[int](), acme._store.erase_traces

    def counted(tenant: str, gone: Any, cleared: Any, **options: Any) -> Any:
        sizes.append(len(cleared))
        return erase_traces(tenant, gone, cleared, **options)

    monkeypatch.setattr(acme._store, "erase_traces", counted)
    assert acme.data.erase(NAME).cleared["chat_messages"] == 12
    assert max(sizes) == 5


@pytest.mark.parametrize("subject", ["", "  ", "agent:", "x", "memory:m-1", "memory:atlas/7", "é" * 501])
@on_one_engine
def test_a_subject_that_cannot_be_one_is_refused(acme: TenantMemory, subject: str) -> None:
    with pytest.raises(Invalid):
        acme.data.erase(subject)


def test_white_space_case_and_accents_do_not_hide_a_mention(acme: TenantMemory, atlas: AgentMemory) -> None:
    atlas.remember("Zoe\u0308\n  QVARNSTRO\u0308M likes tea")
    atlas.details.store("x" * 131_068 + NAME + "y" * 10, description="Cut between two pieces")
    atlas.remember("Zoë likes tea")

    receipt = acme.data.erase(NAME)

    assert (receipt.removed["memories"], receipt.removed["details"]) == (1, 1)
    assert [memory.text for memory in atlas.list()] == ["Zoë likes tea"]


HIDDEN = {
    "zero-width": "Mara Lind\u200bqvist\u00ad",
    "Cyrillic": "M\u0430r\u0430 Lindqvist",
    "full-width": "ＭＡＲＡ　ＬＩＮＤＱＶＩＳＴ",
    "mathematical": "𝐌𝐚𝐫𝐚 𝐋𝐢𝐧𝐝𝐪𝐯𝐢𝐬𝐭",
    "overlaid": "M\u0337ara Lindqvist",
    "a directional mark": "Mara\u202e Lindqvist",
    "an address": "mara.lindqvist@example.org",
    "a handle": "@MaraLindqvist",
}


def test_text_that_only_looks_like_the_name_is_found(acme: TenantMemory, atlas: AgentMemory) -> None:
    for text in HIDDEN.values():
        atlas.remember(f"{text} likes tea", kind="episode")
        atlas.details.store("x" * 131_060 + text + "y" * 10, description="Cut between two pieces")
    atlas.details.store("x" * 131_064 + "Mara L" + "\u200b" * 3_000 + "indqvist", description="Filled up")
    atlas.remember("Marianne Lindqvist likes coffee", kind="episode")

    receipt = acme.data.erase("Mara Lindqvist")

    assert (receipt.removed["memories"], receipt.removed["details"]) == (len(HIDDEN), len(HIDDEN) + 1)
    assert [memory.text for memory in atlas.list()] == ["Marianne Lindqvist likes coffee"]


def test_ids_made_from_a_name_go_and_recall_does_not_say_it(fresh_place: Place, alone: TenantMemory) -> None:
    atlas, named = alone.agent("atlas"), alone.agent("zoe-qvarnstrom")
    named.remember("Likes tea", kind="core")
    named.log_turn("s-2", user="Hello", assistant="Hi.")
    named.details.store("a list", description="Shopping")
    alone.workflows.record(workflow="hiring", step="call", output="fine", agent="zoe-qvarnstrom")
    alone.workflows.record(workflow=f"Onboarding of {NAME}", step="greet", output="done", agent="atlas")
    atlas.log_turn("chat_zoe_qvarnstrom_1", user="Hello", assistant="Hi.")
    atlas.details.store("a log", description=f"Mail from {NAME}")
    alone.keys.create("read", name="for her", agents=["zoe-qvarnstrom"])
    with acting_as("zoe.qvarnstrom"):
        atlas.remember("Coffee is out")
    alone.audit.record("crm.call", "Called", agent="zoe-qvarnstrom")
    with acting_as("zoe.qvarnstrom"):
        alone.data.erase("text:nobody at all")
    alone.agent("annual").remember("Stays")
    before = dump(fresh_place)
    assert "zo-qvarnstr-m" in before["workflows"], "the id of a workflow leaves out what is not ASCII"

    shown = alone.data.erase(NAME, dry_run=True)
    receipt = alone.data.erase(NAME, compact=True)

    raw = (NAME, "zoe-qvarnstrom", "zoe_qvarnstrom", "zoe.qvarnstrom", "zo-qvarnstr-m", "Qvarnström")
    left = {table: text for table, text in dump(fresh_place).items() if any(each in text for each in raw)}
    assert left == {}
    assert found_in_files(data_folder(fresh_place), *raw) == []
    assert receipt.removed["agents"] == shown.removed["agents"] == 1
    assert not [each for each in (*receipt.remains, *receipt.remnants) if "qvarnstr" in each]
    assert alone.audit.verify().is_intact
    said = repr([atlas.recall(f"{NAME} onboarding hiring"), alone.audit.search("qvarnstrom"), alone.keys.list()])
    assert "qvarnstr" not in said.casefold()
    assert [key.agents for key in alone.keys.list()] == [("[erased]",)], "a limit is not lifted"
    assert atlas.list()[0].text == "Coffee is out"
    assert alone.data.erase("text:ann", dry_run=True).remains[1].startswith("The id of agent annual")


def test_a_single_word_deletes_no_agent_unasked(acme: TenantMemory) -> None:
    acme.agent("ann-bot").remember("Opens at nine")
    acme.agent("ann-bot").remember("Ann likes tea")

    with pytest.raises(Conflict, match=r"ann-bot.*with_agents"):
        acme.data.erase("text:Ann")
    assert len(acme.agent("ann-bot").list()) == 2
    assert acme.data.erase("text:Ann", dry_run=True).removed["agents"] == 1

    kept = acme.data.erase("text:Ann", with_agents=False)
    assert "agents" not in kept.removed
    assert any("The id of agent ann-bot" in each for each in kept.remains)
    assert [each.text for each in acme.agent("ann-bot").list()] == ["Opens at nine"]

    assert acme.data.erase("text:Ann", with_agents=True).removed["agents"] == 1


def test_a_name_with_words_of_ours_is_found_in_our_own_events(acme: TenantMemory, atlas: AgentMemory) -> None:
    acme.workflows.record(workflow="Room Review", step="greet", output="done")
    atlas.log_turn("Summer Read", user="Hello", assistant="Hi.", remember=False)

    acme.data.erase("text:Summer Read")

    assert "summer" not in repr(acme.audit.list(limit=100)).casefold()
    assert "room-review" in repr(acme.audit.list(limit=100))


def test_an_import_says_what_was_erased_and_leaves_it_out(
    acme: TenantMemory, atlas: AgentMemory, tmp_path: Path, clock: Clock
) -> None:
    fill(acme, atlas)
    atlas.remember("Purple.", kind="episode", session_id="s-2")
    acme.data.export(tmp_path / "before.jsonl")
    for subject in (NAME, HANDLE, "session:s-2"):
        acme.data.erase(subject)
    kept = [memory.text for memory in atlas.list(state="all", limit=100)]
    clock.forward(minutes=1)
    atlas.remember("Purple.", kind="episode")

    told = acme.data.import_(tmp_path / "before.jsonl", trusted=True, merge=True, dry_run=True)
    imported = acme.data.import_(tmp_path / "before.jsonl", trusted=True, merge=True)

    assert replace(told, is_dry_run=False) == imported
    reasons = Counter(each.place.partition("(")[2].split()[0] for each in imported.refused if "erased" in each.reason)
    assert {*reasons} >= {"memories", "details", "kb_documents", "workflows", "chat_sessions", "audit_log"}
    assert "Zo" not in repr(imported)
    assert NAME not in repr(
        [atlas.list(state="all", limit=100), atlas.sessions.messages("s-1"), acme.audit.list(limit=500)]
    )
    assert NAME not in repr([acme.knowledge.list(), acme.workflows.list(), atlas.sessions.list(), atlas.details.list()])
    assert [memory.text for memory in atlas.list(state="all", limit=100)] == ["Purple.", *kept]
    assert acme.audit.verify().is_intact

    acme.data.import_(tmp_path / "before.jsonl", trusted=True, merge=True, with_erased=True)
    assert f"{NAME} likes tea" in [memory.text for memory in atlas.list(state="all", limit=100)]


def test_the_text_of_an_erased_detail_stays_out(
    fresh_place: Place, alone: TenantMemory, tmp_path_factory: pytest.TempPathFactory
) -> None:
    exported = tmp_path_factory.mktemp("exports") / "before.jsonl"
    atlas = alone.agent("atlas")
    for text in ("Coffee is out", f"{NAME} called"):
        atlas.details.store(text, description="A log")
    forgotten = atlas.remember("Tea is out")
    alone.data.export(exported)
    alone.data.erase(NAME)
    atlas.forget(forgotten.id)

    imported = alone.data.import_(exported, trusted=True, merge=True)
    assert (imported.added.get("memories"), imported.refused_count) == (1, 1)

    assert [each.content_hash for each in atlas.details.list()] == [
        *(row[0] for row in fresh_place.sql("SELECT content_hash FROM detail_contents"))
    ]
    if fresh_place.engine == "sqlite":
        assert found_in_files(data_folder(fresh_place), NAME) == []


def test_hashes_of_what_was_erased_travel_with_an_export(
    place: Place, acme: TenantMemory, atlas: AgentMemory, tmp_path: Path, clock: Clock
) -> None:
    atlas.remember("Her number is 17 and a half")
    acme.data.export(tmp_path / "before.jsonl")
    acme.data.erase("memory:atlas/m-1")
    acme.data.export(tmp_path / "after.jsonl")
    with place.open(clock) as there:
        tenant = there.tenant(f"{acme.id}-b")
        tenant.data.import_(tmp_path / "after.jsonl")
        assert [each.reason for each in tenant.data.import_(tmp_path / "before.jsonl", merge=True).refused] == [
            "it was erased here; import it with what was erased to bring it back"
        ]
        other = tmp_path / "memory.json"
        other.write_text(json.dumps({"results": [{"id": "1", "memory": "her NUMBER is 17 and a half"}]}))
        foreign = tenant.data.import_(other, format="mem0", agent="atlas")
        assert (foreign.added, foreign.refused_count) == ({}, 1)
        assert tenant.data.import_(other, format="mem0", agent="atlas", with_erased=True).added == {"memories": 1}
    stored = [row[0] for row in place.sql(f"SELECT hash FROM erased_texts WHERE tenant_id = '{acme.id}'")]
    assert stored
    assert not [each for each in stored if content_hash("Her number is 17 and a half") in each]


@pytest.mark.parametrize("name", ['O"Neil', "back\\slash", "100%_sure!", "日本 太郎", "a'b; --", "straße"])
def test_what_is_quoted_or_escaped_on_its_way_into_the_database_is_found(
    place: Place, acme: TenantMemory, atlas: AgentMemory, name: str
) -> None:
    atlas.remember("A tag of it", tags=[name])
    memory = atlas.remember("A plain text", tags=[f"was {name}"])
    atlas.update(memory.id, tags=["is not"])
    atlas.details.store("short", description="A log", metadata={"deep": {"inside": [name]}})
    acme.audit.record("crm.call", "Called", meta={name: 1})

    receipt = acme.data.erase(f"text:{name}")

    assert (receipt.removed["memories"], receipt.removed["memory_versions"], receipt.removed["details"]) == (1, 1, 1)
    assert receipt.cleared == {"audit_log": 1}
    assert [each.text for each in atlas.list()] == ["A plain text"]


class TestSqlite:
    """What is special about a file."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "memory.db"

    def test_copies_the_index_left_behind_are_gone(self, path: Path, clock: Clock) -> None:
        """Names of sessions and workflows stand in indexes, whose pages keep copies of entries that moved on."""
        with Wellkept(f"sqlite:///{path}", settings=Settings(embedder="off"), clock=clock) as opened:
            acme = opened.tenant("acme")
            for number in range(600):
                who = HANDLE if number % 3 else "bob"
                acme.workflows.create(f"{number * 7919 % 10_000} {who} {'x' * (number % 90)}")
            plain = acme.data.erase(HANDLE, compact=False)
            receipt = acme.data.erase(HANDLE)

            assert found_in_files(path.parent, HANDLE) == []
        assert plain.removed["workflows"] == 400
        assert "were not overwritten" in plain.remnants[0]
        assert receipt.remnants == ()

    def test_a_reader_keeps_the_log_from_being_emptied_and_the_receipt_says_so(self, path: Path, clock: Clock) -> None:
        settings = Settings(embedder="off", busy_timeout=0.2)
        with Wellkept(f"sqlite:///{path}", settings=settings, clock=clock) as opened:
            opened.agent("atlas").remember(f"{NAME} likes tea")
            reader = apsw.Connection(str(path))
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM memories").fetchall()

            receipt = opened.tenant().data.erase(NAME)
            reader.execute("ROLLBACK")
            reader.close()

            assert any("write-ahead log" in each for each in receipt.remnants)
            assert opened.tenant().data.erase(NAME).remnants == ()
            assert found_in_files(path.parent, NAME) == []

    def test_notes_in_a_file_go_and_damaged_lines_that_mention_it(
        self, path: Path, tmp_path: Path, clock: Clock
    ) -> None:
        workspace = tmp_path / "work"
        workspace.mkdir()
        settings = Settings(workspace=workspace)
        with Wellkept(f"sqlite:///{path}", settings=settings, clock=clock) as opened:
            atlas = opened.agent()
            atlas.remember(f"{NAME} likes tea")
            atlas.remember("Bob likes coffee")
            notes = workspace / ".aegis" / "memory" / "memories.jsonl"
            with notes.open("a") as file:
                file.write(f'{{"id": "m-90", "tekst": {json.dumps(NAME)}}}\n')
                file.write('{"id": "m-91", "tekst": "Bob"}\n')
                file.write(f'{{"id":"m-92","text":"Tea","ts":"2026-01-01T00:00:00Z","by":{json.dumps(NAME)}}}\n')
            assert atlas.recall("tea")

            receipt = opened.tenant().data.erase(NAME)

            assert (receipt.removed["memories"], receipt.removed["notes_file"]) == (2, 1)
            assert [memory.text for memory in atlas.list()] == ["Bob likes coffee"]
            assert "m-91" in notes.read_text()
            assert found_in_files(tmp_path, NAME) == []
            opened.tenant().data.erase("agent:default")
            assert notes.read_text().strip() == ""

    def test_a_database_in_memory_is_erased_too(self, clock: Clock) -> None:
        with Wellkept(":memory:", settings=Settings(embedder="off"), clock=clock) as opened:
            atlas = opened.agent("atlas")
            fill(opened.tenant(), atlas)

            receipt: Receipt = opened.tenant().data.erase(NAME)

            assert receipt.removed["details"] == 2
            assert receipt.remnants == ()


class TestPostgres:
    """What is special about a server."""

    def test_without_compact_the_receipt_says_where_bytes_are_left(
        self, postgres_server: PostgresServer, clock: Clock
    ) -> None:
        url = postgres_server.create_database(has_tables=True)
        with Wellkept(url, settings=Settings(embedder="off"), clock=clock) as opened:
            opened.agent("atlas").remember(f"{NAME} likes tea")

            told: Any = opened.tenant().data.erase(NAME).remnants

            assert any("compact" in each for each in told)
            assert any("write-ahead log" in each for each in told)
        postgres_server.drop_database(url)

    def test_a_transaction_that_still_sees_the_rows_is_told_of(
        self, postgres_server: PostgresServer, clock: Clock
    ) -> None:
        url = postgres_server.create_database(has_tables=True)
        with Wellkept(url, settings=Settings(embedder="off"), clock=clock) as opened:
            opened.agent("atlas").remember(f"{NAME} likes tea")
            with psycopg.connect(url) as reader:
                reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                reader.execute("SELECT count(*) FROM memories")
                told = opened.tenant().data.erase(NAME).remnants

            assert any("still sees removed rows of" in each and "memories" in each for each in told)
        postgres_server.drop_database(url)

    def test_a_role_that_may_not_vacuum_erases_all_the_same_and_says_so(
        self, postgres_server: PostgresServer, clock: Clock
    ) -> None:
        url = postgres_server.create_database(has_tables=True)
        with Wellkept(url, settings=Settings(embedder="off"), clock=clock):
            pass  # the owner makes the tables
        clerk = f"clerk_{uuid.uuid4().hex[:8]}"
        with psycopg.connect(postgres_server.admin_url(url), autocommit=True) as admin:
            admin.execute(f"CREATE ROLE {clerk} LOGIN PASSWORD 'clerk'")
            admin.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {clerk}")
            for (table,) in admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall():
                admin.execute(f"REVOKE MAINTAIN ON {table} FROM {clerk}")
        theirs = url.replace("app:app@", f"{clerk}:clerk@")
        with Wellkept(theirs, settings=Settings(embedder="off"), clock=clock) as opened:
            opened.agent("atlas").remember(f"{NAME} likes tea")

            receipt = opened.tenant().data.erase(NAME, compact=True)

            assert receipt.removed["memories"] == 1
            assert any("memories" in each and "could not be vacuumed" in each for each in receipt.remnants)
        postgres_server.drop_database(url)
        with psycopg.connect(postgres_server.admin_url("postgres"), autocommit=True) as admin:
            admin.execute(f"DROP ROLE {clerk}")
