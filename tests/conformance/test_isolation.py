"""Nobody sees, changes or can even guess at what belongs to somebody else.

Every method of the store is tried by an intruder twice: on something that exists for somebody else, and on something
that exists for nobody. The two must be answered alike, and the owner must notice nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.conformance.conftest import Place, hold_indexes, set_tenant
from tests.conformance.examples import (
    ALL_KINDS,
    LATER,
    NOW,
    a_change,
    add_detail,
    agent,
    api_key,
    call,
    detail,
    document,
    event,
    messages,
    nearest_chunks,
    note,
    owner,
    search_chunks,
    session,
    step,
    vector,
    workflow,
)
from tests.conformance.test_idempotency import claim_of
from tests.postgres_server import PostgresServer
from wellkept.errors import StoreError, WellkeptError
from wellkept.model import AuditHead, ChangeState, Kind, Owner, Role, Trace, WrongWords
from wellkept.model.stored import ConsoleLogin, KeptAnswer, Unembedded
from wellkept.store.migrations import TENANT_SETTING
from wellkept.store.sqlstore import SqlStore
from wellkept.store.tables.erasure import TABLES

pytestmark = pytest.mark.proves("E12")


@dataclass(frozen=True)
class Target:
    """What the intruder is after."""

    agent: str
    memory_id: str
    seq: int
    document_id: str
    key: str
    content_hash: str
    unembedded: tuple[Unembedded, ...]
    call_id: str = "c-777"
    session_id: str = "s-777"
    key_id: str = "nokey"
    change_id: str = "c-777"


NOBODYS = Target(
    "nobody",
    "m-777",
    777,
    "no-such-document",
    "no-such-detail",
    "0" * 64,
    (Unembedded(Owner("nowhere", "nobody"), 777, 1, "secret"),),
)

Attempt = Callable[[SqlStore, Owner, Target], Any]

LONG_AGO = NOW - timedelta(days=1)

BY_AN_AGENT: dict[str, Attempt] = {
    "add_memory": lambda store, me, it: store.add_memory(note("mine", me, id=it.memory_id)),
    "add_memories": lambda store, me, it: store.add_memories([note("mine", me, id=it.memory_id)] * 2, [None] * 2),
    "get_memory": lambda store, me, it: store.get_memory(me, it.memory_id),
    "find_memories": lambda store, me, it: store.find_memories(me, [it.seq]),
    "find_summaries": lambda store, me, it: store.find_summaries(me, [it.seq]),
    "list_told": lambda store, me, it: store.list_told(me, now=NOW, limit=9),
    "list_told_texts": lambda store, me, it: store.list_told_texts(me, now=NOW, limit=9),
    "find_compared": lambda store, me, it: store.find_compared(me),
    "keep_compared": lambda store, me, it: store.keep_compared(me, it.seq),
    "can_hide": lambda store, me, it: store.can_hide(note("mine", me, id=it.memory_id)),
    "delete_forgotten": lambda store, me, it: store.delete_forgotten(me, before=LATER, limit=9),
    "list_memories": lambda store, me, it: store.list_memories(me, needle="secret", state=None, now=NOW),
    "list_for_review": lambda store, me, it: store.list_for_review(me),
    "approve_notes": lambda store, me, it: store.approve_notes(me),
    "find_last_episode": lambda store, me, it: store.find_last_episode(me, it.session_id),
    "find_same_memory": lambda store, me, it: store.find_same_memory(me, Kind.NOTE, "secret", now=NOW),
    "update_memory": lambda store, me, it: store.update_memory(
        note("changed", me, id=it.memory_id), vector(1), replaced_at=NOW
    ),
    "list_versions": lambda store, me, it: store.list_versions(me, it.memory_id),
    "delete_memory": lambda store, me, it: store.delete_memory(me, it.memory_id),
    "prune_memories": lambda store, me, it: [store.prune_memories(me, kind, keep=0) for kind in ALL_KINDS],
    "find_item": lambda store, me, it: store.find_item(me, "secret", "secret"),
    "hold_items": lambda store, me, it: store.hold_items(me, now=NOW),
    "set_item_end": lambda store, me, it: store.set_item_end(note("mine", me, id=it.memory_id, expires_at=NOW)),
    "find_item_numbers": lambda store, me, it: store.find_item_numbers(me, None, now=NOW, limit=9),
    "list_item_paths": lambda store, me, it: store.list_item_paths(me, "", "z", now=NOW, limit=9),
    "archive_expired_items": lambda store, me, it: store.archive_expired_items(me, now=LATER, limit=9),
    "delete_ended_items": lambda store, me, it: store.delete_ended_items(me, before=LATER, limit=9),
    "add_changes": lambda store, me, it: bool(store.add_changes(me, [a_change(me, it.memory_id)])),
    "get_change": lambda store, me, it: store.get_change(me, it.change_id),
    "list_changes": lambda store, me, it: store.list_changes(me),
    "decide_change": lambda store, me, it: store.decide_change(
        a_change(me, it.memory_id, id=it.change_id), was=ChangeState.PROPOSED
    ),
    "delete_old_changes": lambda store, me, it: store.delete_old_changes(me, before=LATER, proposed_before=LATER),
    "find_consolidated": lambda store, me, it: store.find_consolidated(me),
    "keep_consolidated": lambda store, me, it: store.keep_consolidated(me, it.seq),
    "list_aging": lambda store, me, it: store.list_aging(me),
    "count_aging": lambda store, me, it: store.count_aging(me, now=NOW),
    "count_states": lambda store, me, it: store.count_states(me, now=NOW),
    "archive_memories": lambda store, me, it: store.archive_memories(me, [it.seq], now=NOW),
    "mark_retrieved": lambda store, me, it: store.mark_retrieved(me, [it.seq], at=NOW),
    "count_recalls": lambda store, me, it: store.count_recalls(me, {NOW.date(): 1}),
    "count_memories": lambda store, me, it: store.count_memories(me),
    "add_context_calls": lambda store, me, it: store.add_context_calls(me, [call(me, id=it.call_id)], keep=1),
    "get_context_call": lambda store, me, it: store.get_context_call(me, it.call_id),
    "add_shown": lambda store, me, it: store.add_shown(me, ["mine"], at=NOW, since=LONG_AGO, keep=9),
    "find_shown": lambda store, me, it: store.find_shown(me, ["theirs"], since=LONG_AGO),
    "list_context_calls": lambda store, me, it: store.list_context_calls(me, session_id=it.session_id),
    "get_session": lambda store, me, it: store.get_session(me, it.session_id),
    "find_session": lambda store, me, it: store.find_session(me, it.session_id),
    "list_sessions": lambda store, me, it: store.list_sessions(me),
    "delete_session": lambda store, me, it: store.delete_session(me, it.session_id),
    "add_messages": lambda store, me, it: store.add_messages(me, it.session_id, messages("mine")),
    "list_messages": lambda store, me, it: store.list_messages(me, it.session_id),
    "update_summary": lambda store, me, it: store.update_summary(me, it.session_id, "mine", covers=1, instead_of=0),
    "list_tool_results": lambda store, me, it: store.list_tool_results(me, it.session_id, now=NOW),
    "search_memories": lambda store, me, it: store.search_memories(me, "secret", kinds=ALL_KINDS, now=NOW),
    "nearest_memories": lambda store, me, it: store.nearest_memories(me, vector(1), kinds=ALL_KINDS, now=NOW),
    "weigh_memories": lambda store, me, it: weighed(store, me),
    "add_detail": lambda store, me, it: add_detail(store, detail(it.key, me), "mine").content_hash,
    "get_detail": lambda store, me, it: store.get_detail(me, it.key),
    "list_details": lambda store, me, it: store.list_details(me, is_active=None),
    "search_details": lambda store, me, it: store.search_details(me, ["secret"]),
    "set_detail_active": lambda store, me, it: store.set_detail_active(me, it.key, False),
    "delete_detail": lambda store, me, it: store.delete_detail(me, it.key),
    "open_content": lambda store, me, it: store.open_content(me, it.key),
    "find_damaged_notes": lambda store, me, it: store.find_damaged_notes(Owner(me.tenant, it.agent)),
    "transaction": lambda store, me, it: store.transaction(me.tenant, lambda: store.delete_memory(me, it.memory_id)),
    "read_together": lambda store, me, it: store.read_together(me.tenant, lambda: store.get_memory(me, it.memory_id)),
}

BY_A_TENANT: dict[str, Attempt] = {
    "add_agent": lambda store, me, it: store.add_agent(agent(Owner(me.tenant, it.agent))),
    "get_agent": lambda store, me, it: store.get_agent(Owner(me.tenant, it.agent)),
    "find_agent": lambda store, me, it: store.find_agent(Owner(me.tenant, it.agent)),
    "list_agents": lambda store, me, it: store.list_agents(me.tenant),
    "iter_owners": lambda store, me, it: list(store.iter_owners(me.tenant)),
    "update_agent": lambda store, me, it: store.update_agent(agent(Owner(me.tenant, it.agent), name="changed")),
    "delete_agent": lambda store, me, it: store.delete_agent(Owner(me.tenant, it.agent)),
    "count_memories_by_agent": lambda store, me, it: [
        {**each} for each in store.count_memories_by_agent(me.tenant, [it.agent]).values()
    ],
    "count_days": lambda store, me, it: store.count_days(me.tenant, since=LONG_AGO, now=NOW, expiring=9),
    "count_users": lambda store, me, it: store.count_users(me.tenant),
    "list_documents_by_title": lambda store, me, it: store.list_documents_by_title(me.tenant),
    "count_categories": lambda store, me, it: store.count_categories(me.tenant),
    "put_document": lambda store, me, it: store.put_document(document(it.document_id, me.tenant), ["mine"], [None]),
    "prepare_document": lambda store, me, it: store.prepare_document(
        document(it.document_id, me.tenant), ["mine"], [None]
    )(),
    "get_document": lambda store, me, it: store.get_document(me.tenant, it.document_id),
    "hold_document": lambda store, me, it: store.hold_document(me.tenant, it.document_id, now=NOW),
    "find_documents": lambda store, me, it: store.find_documents(me.tenant, [it.document_id]),
    "list_documents": lambda store, me, it: store.list_documents(me.tenant),
    "delete_document": lambda store, me, it: store.delete_document(me.tenant, it.document_id),
    "list_chunks": lambda store, me, it: store.list_chunks(me.tenant, it.document_id),
    "find_chunks": lambda store, me, it: store.find_chunks(me.tenant, [it.seq]),
    "weigh_chunks": lambda store, me, it: [
        search_chunks(store, me.tenant, "secret"),
        nearest_chunks(store, me.tenant, vector(1)),
    ],
    "add_session": lambda store, me, it: replace(store.add_session(session(it.session_id, me)), id=""),
    "find_tenant_session": lambda store, me, it: store.find_tenant_session(me.tenant, it.session_id),
    "list_tenant_sessions": lambda store, me, it: store.list_tenant_sessions(me.tenant),
    "add_event": lambda store, me, it: replace(store.add_event(event("mine", me.tenant)), hash="", previous_hash=""),
    "list_events": lambda store, me, it: store.list_events(me.tenant),
    "find_events": lambda store, me, it: store.find_events(me.tenant, [it.seq]),
    "search_events": lambda store, me, it: store.search_events(me.tenant, "secret"),
    "verify_events": lambda store, me, it: store.verify_events(me.tenant),
    "audit_head": lambda store, me, it: store.audit_head(me.tenant),
    "check_heads": lambda store, me, it: [
        each.is_ok for each in store.check_heads(me.tenant, [AuditHead(id=it.seq, hash="")])
    ],
    "add_workflow": lambda store, me, it: store.add_workflow(workflow(it.document_id, me.tenant)),
    "get_workflow": lambda store, me, it: store.get_workflow(me.tenant, it.document_id),
    "find_workflow": lambda store, me, it: store.find_workflow(me.tenant, it.document_id),
    "list_workflows": lambda store, me, it: store.list_workflows(me.tenant),
    "add_step": lambda store, me, it: store.add_step(step("mine", me.tenant, it.document_id)),
    "list_steps": lambda store, me, it: store.list_steps(me.tenant, it.document_id),
    "find_steps": lambda store, me, it: store.find_steps(me.tenant, [it.seq]),
    "search_steps": lambda store, me, it: store.search_steps(me.tenant, "secret"),
    "add_allowance": lambda store, me, it: store.add_allowance(me.tenant, "mine", now=NOW),
    "list_allowances": lambda store, me, it: "theirs" in store.list_allowances(me.tenant),
    "delete_allowance": lambda store, me, it: store.delete_allowance(me.tenant, "theirs"),
    "remove_files": lambda store, me, it: store.remove_files(me.tenant),
    "sweep_contents": lambda store, me, it: store.sweep_contents(me.tenant, stored_before=LATER),
    "count_orphans": lambda store, me, it: store.count_orphans(me.tenant, stored_before=LATER),
    "find_answer": lambda store, me, it: store.find_answer(claim_of(me, "intruder", key=it.key)),
    "keep_answer": lambda store, me, it: store.keep_answer(
        claim_of(me, "intruder", key=it.key), KeptAnswer(at=NOW, status=200, body=b"mine")
    ),
    "prune_answers": lambda store, me, it: store.prune_answers(me.tenant, created_until=LATER, max_bytes=0),
    "erase_answers": lambda store, me, it: store.erase_answers(me.tenant, with_keys=True),
    "count_index_gaps": lambda store, me, it: store.count_index_gaps(me.tenant),
    "find_wrong_words": lambda store, me, it: list(store.find_wrong_words(me.tenant)),
    "mend_words": lambda store, me, it: store.mend_words(
        me.tenant, [WrongWords(shelf="memory", agent=it.agent, seq=1, name="theirs")]
    ),
    "mend_index": lambda store, me, it: store.mend_index(me.tenant),
    "drop_content": lambda store, me, it: store.drop_content(me.tenant, it.content_hash),
    "list_traces": lambda store, me, it: [
        store.list_traces(me.tenant, table, agent=it.agent, session_id=it.session_id) for table in TABLES
    ],
    "list_hanging": lambda store, me, it: store.list_hanging(me.tenant, traces_of(it)),
    "plan_sealing": lambda store, me, it: store.plan_sealing(me.tenant, traces_of(it)),
    "erase_traces": lambda store, me, it: store.erase_traces(me.tenant, traces_of(it), []),
    "keep_erased": lambda store, me, it: store.keep_erased(me.tenant, ["text mine"], now=NOW),
    "find_erased": lambda store, me, it: store.find_erased(me.tenant, ["text theirs"]),
    "forget_shown": lambda store, me, it: store.forget_shown(me.tenant),
    "forget_cached": lambda store, me, it: store.forget_cached(me.tenant),
    "add_key": lambda store, me, it: replace(store.add_key(api_key(it.key_id, me.tenant), "mine"), tenant=""),
    "find_key": lambda store, me, it: store.find_key(me.tenant, it.key_id),
    "list_keys": lambda store, me, it: store.list_keys(me.tenant),
    "revoke_key": lambda store, me, it: store.revoke_key(me.tenant, it.key_id, at=NOW),
    "mark_used": lambda store, me, it: store.mark_used(me.tenant, [it.key_id], at=NOW),
    "add_login": lambda store, me, it: store.add_login(login(me.tenant), at=NOW, most=1),
    "find_login": lambda store, me, it: store.find_login(me.tenant, "login"),
    "take_link": lambda store, me, it: store.take_link(me.tenant, "link"),
    "delete_logins": lambda store, me, it: store.delete_logins(me.tenant),
    "export_rows": lambda store, me, it: exported(store, me.tenant),
    "has_rows": lambda store, me, it: store.has_rows(me.tenant, "kb_documents"),
    "find_rows": lambda store, me, it: store.find_rows(me.tenant, "kb_chunks", [chunk_row(it)]),
    "import_rows": lambda store, me, it: store.import_rows(
        me.tenant, "secret_allowances", [{"hash": it.key, "created_at": NOW.isoformat()}], now=NOW
    ),
    "raise_counter": lambda store, me, it: store.raise_counter(Owner(me.tenant, it.agent), 1, now=NOW) and None,
    "last_imported": lambda store, me, it: store.last_imported(me.tenant, it.content_hash),
    "count_events": lambda store, me, it: store.count_events(me.tenant),
    "list_unembedded": lambda store, me, it: store.list_unembedded(me.tenant),
    "list_unembedded_of": lambda store, me, it: store.list_unembedded_of(me, limit=9),
    "count_unembedded": lambda store, me, it: store.count_unembedded(me.tenant),
    "list_queue": lambda store, me, it: store.list_queue(me.tenant),
    "settle_queue": lambda store, me, it: store.settle_queue(me.tenant, store.list_queue(me.tenant)),
    "begin_visit": lambda store, me, it: store.begin_visit(me.tenant)[0] and None,
    "end_visit": lambda store, me, it: store.end_visit(me.tenant, NOW, due_at=LATER, counts={}),
    "find_first_ends": lambda store, me, it: store.find_first_ends(me.tenant),
    "note_no_key": lambda store, me, it: store.note_no_key(me.tenant),
    "set_vectors": lambda store, me, it: store.set_vectors(me.tenant, [(each, vector(1)) for each in it.unembedded]),
}

OF_THE_WHOLE_DATABASE = {
    "problems": "tells whether the database can be written, and nothing about anybody",
    "embed_notes_with": "sets a function, and touches no record",
    "use_embedder": "names the one embedder of all tenants",
    "change_embedder": "is for the person who runs the database",
    "list_tenants": "is for the person who runs the database",
    "list_waiting_tenants": "lists ids, as list_tenants does",
    "list_due_tenants": "lists ids, as list_tenants does",
    "list_tenants_with_keys": "lists ids, as list_tenants does",
    "mark_all_due": "moves due dates, and touches no record",
    "sum_counts": "adds up counts, and tells nothing about anybody",
    "read_totals": "is for the person who runs the database",
    "check_nodes": "is for the person who runs the database",
    "end_old_leases": "says which process does a thing, and nothing about anybody",
    "take_lease": "says which process does a thing, and nothing about anybody",
    "end_lease": "says which process does a thing, and nothing about anybody",
    "put_record": "is about the whole store, and nothing about anybody",
    "find_record": "is about the whole store, and nothing about anybody",
    "scrub": "frees bytes nobody can read any more, and tells nothing about anybody",
    "count_bytes": "is for the person who runs the database",
    "check_row": "touches no record",
    "encode_memories": "computes the values of columns, and touches no record",
    "back_up": "is for the person who runs the database",
    "describe_store": "is for the person who runs the database",
    "find_damage": "is for the person who runs the database",
    "close": "touches no record",
    "read": "runs a function in a transaction of one tenant",
    "write": "runs a function in a transaction of one tenant",
    "is_in_transaction": "touches no record",
    "forget_counts": "drops cached numbers of one tenant",
}


def traces_of(it: Target) -> list[Trace]:
    """What an intruder would have erased."""
    keys = {
        "memories": it.seq,
        "details": it.key,
        "chat_sessions": it.session_id,
        "kb_documents": it.document_id,
        "kb_chunks": it.seq,
        "workflows": it.document_id,
        "context_calls": it.call_id,
        "changes": it.seq,
        "agents": it.agent,
        "secret_allowances": "theirs",
    }
    return [Trace(table=table, key=(str(key),), agent=it.agent) for table, key in keys.items()]


def weighed(store: SqlStore, owner: Owner) -> list[object]:
    evidence = store.weigh_memories(owner, ["secret"], vector(1), kinds=ALL_KINDS, now=NOW)
    return [evidence.seqs.tolist(), *(rows.tolist() for rows, _ in evidence.occurrences)]


def exported(store: SqlStore, tenant: str) -> list[object]:
    rows: list[object] = []
    store.export_rows(tenant, lambda table, row: rows.append((table, row)))
    return rows


def chunk_row(target: Target) -> dict[str, object]:
    return {"id": target.seq, "document_id": target.document_id, "position": 0, "text": "secret"}


def store_methods() -> set[str]:
    """Every public method of the store."""
    return {name for name, _ in inspect.getmembers(SqlStore, inspect.isfunction) if name[0] != "_"}


def login(tenant: str, *, is_link: bool = False) -> ConsoleLogin:
    hash = "link" if is_link else "login"
    return ConsoleLogin(tenant=tenant, hash=hash, key_id="k1", expires_at=LATER, is_link=is_link)


def test_every_method_of_the_store_is_tried() -> None:
    assert store_methods() == {*BY_AN_AGENT, *BY_A_TENANT, *OF_THE_WHOLE_DATABASE}


@pytest.fixture
def target(store: SqlStore, ann: Owner) -> Target:
    """Something of every kind that belongs to ann; her m-3 is a number no intruder has reached."""
    store.add_memories([note("secret", ann) for _ in range(5)], [vector(1), vector(1), vector(1), None, None])
    store.add_memory(note("secret", ann, kind=Kind.ITEM, namespace="secret", item_key="secret", expires_at=LATER))
    store.update_memory(store.get_memory(ann, "m-3"), vector(1), replaced_at=NOW)
    store.put_document(document("plan", ann.tenant), ["secret"] * 5, [vector(1)] * 3 + [None] * 2)
    store.add_event(event("secret", ann.tenant))
    for is_link in (False, True):
        store.add_login(login(ann.tenant, is_link=is_link), at=NOW, most=2)
    store.add_workflow(workflow("plan", ann.tenant))
    for _ in range(3):
        store.add_step(step("secret", ann.tenant, "plan", output="secret"))
    store.add_memory(note("secret", ann, held_at=NOW, flag="low trust"))
    store.add_allowance(ann.tenant, "theirs", now=NOW)
    store.keep_erased(ann.tenant, ["text theirs"], now=NOW)
    store.add_shown(ann, ["theirs"], at=NOW, since=LONG_AGO, keep=9)
    store.add_context_calls(ann, [call(ann, id="c-3", session_id="s-3")], keep=5)
    store.add_memory(note("secret", ann, kind=Kind.EPISODE, role=Role.TOOL_RESULT, session_id="s-3"))
    store.add_session(session("s-3", ann, summary="secret"))
    store.add_messages(ann, "s-3", messages("secret", "secret"))
    kept = add_detail(store, detail("secret-log", ann, summary="secret"), "secret")
    missing = tuple(store.list_unembedded(ann.tenant))
    store.add_key(api_key("theirs", ann.tenant), "hash of their secret")
    store.add_changes(ann, [a_change(ann, f"m-{seq}") for seq in range(1, 4)])
    store.keep_answer(claim_of(ann, key=kept.key), KeptAnswer(at=NOW, status=200, body=b"secret"))
    return Target(ann.agent, "m-3", 3, "plan", kept.key, kept.content_hash, missing, "c-3", "s-3", "theirs", "c-3")


def everything(store: SqlStore, owner: Owner) -> list[object]:
    """All that its owner can see."""
    return [
        store.list_agents(owner.tenant)[:1],
        store.list_memories(owner, state=None, now=NOW),
        store.list_for_review(owner),
        store.list_changes(owner),
        "theirs" in store.list_allowances(owner.tenant),
        [store.list_versions(owner, f"m-{seq}") for seq in range(1, 6)],
        store.count_memories(owner),
        store.list_details(owner, is_active=None),
        store.search_details(owner, ["secret"]),
        store.open_content(owner, "secret-log").chunk(0),
        store.list_keys(owner.tenant),
        store.find_answer(claim_of(owner, key="secret-log")),
        store.search_memories(owner, "secret changed mine", kinds=ALL_KINDS, now=NOW),
        store.nearest_memories(owner, vector(1), kinds=ALL_KINDS, now=NOW),
        weighed(store, owner),
        store.list_events(owner.tenant),
        store.search_events(owner.tenant, "secret mine"),
        store.verify_events(owner.tenant),
        store.list_workflows(owner.tenant),
        store.list_steps(owner.tenant, "plan"),
        store.search_steps(owner.tenant, "secret mine"),
        store.list_aging(owner),
        store.list_context_calls(owner),
        store.list_tool_results(owner, "s-3", now=NOW),
        store.list_tenant_sessions(owner.tenant),
        store.list_messages(owner, "s-3"),
        store.list_documents(owner.tenant),
        store.find_chunks(owner.tenant, range(20)),
        search_chunks(store, owner.tenant, "secret mine"),
        nearest_chunks(store, owner.tenant, vector(1)),
        [each for each in exported(store, owner.tenant) if owner.agent in repr(each)],
        [
            missing
            for missing in store.list_unembedded(owner.tenant, limit=9_999)
            if missing.owner.agent in ("", owner.agent)
        ],
    ]


def answer(store: SqlStore, attempt: Attempt, intruder: Owner, target: Target) -> str:
    """What the intruder learns, with the names it brought along itself left out."""
    try:
        said = repr(attempt(store, intruder, target))
    except WellkeptError as error:
        said = f"{type(error).__name__}: {error}"
    for known in (
        intruder.tenant,
        intruder.agent,
        intruder.agent.title(),
        target.document_id,
        target.key,
        target.agent,
        target.agent,
        target.key_id,
    ):
        said = said.replace(f"'{known}'", "…")
    return said.replace(target.document_id.title(), "…").replace(target.document_id, "…").replace("Nobody", "Ann")


def try_all(
    store: SqlStore, victim: Owner, target: Target, attempts: dict[str, Attempt], pair: Callable[[int], list[Owner]]
) -> None:
    """Try every method with a pair of intruders of its own; what the owner sees is compared now and then."""
    hold_indexes(store)  # what the database and the index compute differs in the last digits
    before, unseen, tells = everything(store, victim), [], {}
    for number, (method, attempt) in enumerate(attempts.items()):
        intruders = pair(number)
        answers = [answer(store, attempt, *each) for each in zip(intruders, (target, NOBODYS), strict=True)]
        if answers[0] != answers[1] or "secret" in answers[0]:
            tells[method] = answers
        unseen.append(method)
        if len(unseen) == 10 or number == len(attempts) - 1:
            assert everything(store, victim) == before, f"one of {unseen} changed something"
            unseen = []
    assert tells == {}


@pytest.mark.parametrize("is_neighbour", [True, False], ids=["another agent", "another tenant"])
def test_another_agent_cannot_tell_somebody_elses_from_nobodys(
    store: SqlStore, ann: Owner, target: Target, is_neighbour: bool
) -> None:
    def pair(number: int) -> list[Owner]:
        names = (f"bob{number}x{n}" for n in range(2))
        intruders = [Owner(ann.tenant, name) if is_neighbour else owner() for name in names]
        for each in intruders:
            store.add_memory(note("mine", each))
        return intruders

    try_all(store, ann, target, BY_AN_AGENT, pair)


def test_another_tenant_cannot_tell_somebody_elses_from_nobodys(store: SqlStore, ann: Owner, target: Target) -> None:
    def pair(number: int) -> list[Owner]:
        intruders = [owner("eve"), owner("eve")]
        for each in intruders:
            store.add_memory(note("mine", each), vector(1))
            store.put_document(document("own", each.tenant), ["mine"], [vector(1)])
        return intruders

    try_all(store, ann, target, BY_A_TENANT, pair)


# --- below the program: what PostgreSQL itself shows


@pytest.fixture(scope="module")
def guarded(postgres_url: str) -> Iterator[SqlStore]:
    store = Place("postgres-18", postgres_url).open(pool_size=1)
    yield store
    store.close()


@pytest.fixture
def secret(guarded: SqlStore, ann: Owner) -> Owner:
    """Whose rows nobody may see."""
    guarded.add_memory(note("secret", ann))
    guarded.update_memory(guarded.get_memory(ann, "m-1"), replaced_at=NOW)
    guarded.put_document(document("plan", ann.tenant), ["secret"], [None])
    return ann


def tenant_tables(connection: psycopg.Connection[Any], kinds: str = "rpv") -> list[str]:
    rows = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' "
        "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = ANY(%s) "
        "AND c.relname NOT IN ('tenants', 'vector_queue') ORDER BY 1",
        [list(kinds)],
    )
    return [name for (name,) in rows]


def visible(connection: psycopg.Connection[Any]) -> dict[str, int]:
    counts = {}
    for table in tenant_tables(connection):
        row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
        counts[table] = row[0] if row else -1
    return counts


def test_without_a_tenant_no_row_is_visible(secret: Owner, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        counts = visible(connection)

    assert len(counts) > 10
    assert set(counts.values()) == {0}


@pytest.mark.parametrize("setting", ["somebody-else", "", "%", "' OR true --"])
def test_with_another_tenant_no_row_is_visible(secret: Owner, postgres_url: str, setting: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        set_tenant(connection, setting)
        assert set(visible(connection).values()) == {0}


def test_with_the_right_tenant_the_rows_are_visible(secret: Owner, postgres_url: str) -> None:
    """Otherwise the tests above would prove nothing."""
    with psycopg.connect(postgres_url) as connection:
        set_tenant(connection, secret.tenant)
        counts = visible(connection)

    filled = {"agents", "memories", "memory_versions", "memory_index", "kb_documents", "kb_chunks", "chunk_index"}
    assert {table for table, count in counts.items() if count == 1} >= filled


def test_no_row_can_be_written_for_another_tenant(secret: Owner, postgres_url: str) -> None:
    insert = "INSERT INTO agents (tenant_id, id, name, created_at, updated_at) VALUES (%s, 'spy', 'Spy', now(), now())"
    for setting in ("", "somebody-else"):
        with psycopg.connect(postgres_url) as connection:
            set_tenant(connection, setting)
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                connection.execute(insert, [secret.tenant])


def test_no_row_of_another_tenant_can_be_changed_or_moved(secret: Owner, postgres_url: str, guarded: SqlStore) -> None:
    guarded.add_memory(note("mine", Owner("somebody-else", "eve")))
    with psycopg.connect(postgres_url) as connection:
        set_tenant(connection, "somebody-else")
        for table in tenant_tables(connection, "rp"):
            name = sql.Identifier(table)
            where = sql.Literal(secret.tenant)
            assert connection.execute(sql.SQL("DELETE FROM {} WHERE tenant_id = {}").format(name, where)).rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            connection.execute("UPDATE agents SET tenant_id = %s", [secret.tenant])


def test_the_tenant_is_forgotten_when_the_transaction_ends(guarded: SqlStore, secret: Owner) -> None:
    seen: list[int] = []

    def work() -> None:
        unit = guarded._current.unit
        seen.append(unit._connection.info.backend_pid)
        assert unit._connection.execute(f"SHOW {TENANT_SETTING}").fetchone() == (secret.tenant,)

    guarded.transaction(secret.tenant, work)
    with pytest.raises(LookupError):
        guarded.transaction(secret.tenant, lambda: [][0])

    with guarded._engine._link.connection() as connection:  # type: ignore[attr-defined]
        assert connection.info.backend_pid == seen[0]
        assert connection.execute(f"SELECT current_setting('{TENANT_SETTING}', true)").fetchone() == ("",)
        assert set(visible(connection).values()) == {0}


def test_a_tenant_that_is_no_slug_never_reaches_the_database(guarded: SqlStore) -> None:
    with pytest.raises(WellkeptError, match="A tenant id is"):
        guarded.list_memories(Owner("x'; RESET ALL; --", "ann"), now=NOW)


def test_a_role_above_the_wall_is_refused(
    postgres_server: PostgresServer, postgres_url: str, guarded: SqlStore
) -> None:
    superuser = Place("postgres-18", postgres_server.admin_url(postgres_url))
    with pytest.raises(StoreError, match="'postgres' is a superuser or has BYPASSRLS"):
        superuser.open()

    with psycopg.connect(superuser.url, autocommit=True) as admin:
        admin.execute("CREATE ROLE climber LOGIN BYPASSRLS PASSWORD 'climber'")
        try:
            with pytest.raises(StoreError, match="'climber' is a superuser or has BYPASSRLS"):
                Place("postgres-18", postgres_url.replace("app:app@", "climber:climber@")).open()
        finally:
            admin.execute("DROP ROLE climber")


@pytest.mark.parametrize("hole", ["DISABLE ROW LEVEL SECURITY", "NO FORCE ROW LEVEL SECURITY"])
def test_a_table_without_the_wall_is_refused_at_start(postgres_server: PostgresServer, hole: str) -> None:
    url = postgres_server.create_database()
    Place("postgres-18", url).open().close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER TABLE memories {hole}")

    with pytest.raises(StoreError, match="Row-level security is off on memories"):
        Place("postgres-18", url).open()
    postgres_server.drop_database(url)
