"""A user of an agent sees and changes nothing of another user, by no method of the store.

Every method is tried by another user twice, as in `test_isolation`: on something that belongs to u-7, and on something
that exists for nobody.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import (
    ALL_KINDS,
    DIMENSIONS,
    EMBEDDER,
    NOW,
    a_change,
    add_detail,
    call,
    detail,
    messages,
    note,
    owner,
    session,
    vector,
)
from tests.conformance.test_isolation import BY_AN_AGENT, NOBODYS, Target, answer, weighed
from wellkept.errors import Conflict, NotFound
from wellkept.model import NO_USER, Kind, Memory, Owner, Role, State
from wellkept.store.queries import FOR_USER, USER_TABLES, load_queries
from wellkept.store.sqlstore import SqlStore

pytestmark = pytest.mark.proves("E12")

OF_THE_AGENT = {
    "add_detail": "a key is unique for an agent; the service draws it at random",
    "add_context_calls": "the latest calls of an agent are kept, whoever they were for",
    "find_damaged_notes": "is about the file of the workspace",
}
INTRUDERS = {
    "another user": lambda ann: replace(ann, user="u-8"),
    "another user alone": lambda ann: replace(ann, user="u-8", with_shared=False),
    "nobody in particular": lambda ann: replace(ann, user=NO_USER),
}


def fill(store: SqlStore, ann: Owner) -> Target:
    """Something of every kind that belongs to the user u-7."""
    mine = {"user": "u-7"}
    store.add_memories([note("secret", ann, **mine) for _ in range(5)], [vector(1)] * 4 + [None])
    store.update_memory(store.get_memory(ann, "m-3"), vector(1), replaced_at=NOW)
    store.add_memory(note("secret", ann, held_at=NOW, flag="low trust", **mine))
    store.add_memory(note("secret", ann, kind=Kind.EPISODE, role=Role.TOOL_RESULT, session_id="s-3", **mine))
    store.add_context_calls(ann, [call(ann, id="c-3", session_id="s-3", **mine)], keep=5)
    store.add_session(session("s-3", ann, summary="secret", **mine))
    store.add_messages(ann, "s-3", messages("secret", "secret"))
    kept = add_detail(store, detail("secret-log", ann, summary="secret", **mine), "secret")
    store.add_changes(ann, [a_change(ann, f"m-{seq}", **mine) for seq in range(1, 4)])
    return Target(ann.agent, "m-3", 3, "plan", kept.key, kept.content_hash, (), "c-3", "s-3", "theirs", "p-3")


def everything(store: SqlStore, owner: Owner) -> list[object]:
    """All that a user can see."""
    return [
        store.list_memories(owner, state=None, now=NOW),
        store.list_for_review(owner),
        store.list_changes(owner),
        [store.list_versions(owner, f"m-{seq}") for seq in range(1, 6)],
        store.count_memories(owner),
        store.list_details(owner, is_active=None),
        store.search_details(owner, ["secret"]),
        store.open_content(owner, "secret-log").chunk(0),
        store.search_memories(owner, "secret changed mine", kinds=ALL_KINDS, now=NOW),
        store.nearest_memories(owner, vector(1), kinds=ALL_KINDS, now=NOW),
        weighed(store, owner),
        store.list_aging(owner),
        store.list_context_calls(owner),
        store.list_tool_results(owner, "s-3", now=NOW),
        store.list_sessions(owner),
        store.list_messages(owner, "s-3"),
    ]


@pytest.mark.parametrize("who", INTRUDERS)
def test_a_user_cannot_tell_another_users_from_nobodys(store: SqlStore, who: str) -> None:
    tells = {}
    for method in BY_AN_AGENT.keys() - OF_THE_AGENT:
        ann = owner("ann")  # a fresh agent: what one method has written would show in the answers of the next
        target, mine, intruder = fill(store, ann), replace(ann, user="u-7", with_shared=False), INTRUDERS[who](ann)
        before = everything(store, mine)
        assert "secret" in repr(before)

        answers = [answer(store, BY_AN_AGENT[method], intruder, each) for each in (target, NOBODYS)]

        # Numbers are given for the whole agent, and tell one attempt from the next.
        answers = [re.sub(r"\b([mp])-\d+|\bseq=\d+", r"\1-n", each).replace("c-3", "c-777") for each in answers]
        if answers[0] != answers[1] or "secret" in answers[0]:
            tells[method] = answers
        assert everything(store, mine) == before, method
    assert tells == {}


def test_a_user_reads_its_own_records_and_those_of_nobody(store: SqlStore, ann: Owner) -> None:
    for user in ("u-7", "u-8", None):
        store.add_memory(note(f"kept for {user}", ann, user=user), vector(1))
        store.add_session(session(f"s-{user}", ann, user=user))
        add_detail(store, detail(f"log-{user}", ann, user=user), f"text of {user}")
    views = {
        ann: {"u-7", "u-8", None},
        replace(ann, user="u-7"): {"u-7", None},
        replace(ann, user="u-7", with_shared=False): {"u-7"},
        replace(ann, user=NO_USER): {None},
        replace(ann, user="u-9"): {None},
        replace(ann, user="u-9", with_shared=False): set(),
    }
    for view, users in views.items():
        listed = store.list_memories(view, now=NOW)
        assert [each.id for each in listed] == sorted((each.id for each in listed), reverse=True)
        found = {match.seq for match in store.search_memories(view, "kept", kinds=ALL_KINDS, now=NOW)}
        near = {match.seq for match in store.nearest_memories(view, vector(1), kinds=ALL_KINDS, now=NOW)}
        evidence = store.weigh_memories(view, ["kept"], vector(1), kinds=ALL_KINDS, now=NOW)
        assert {each.user for each in listed} == users
        assert {each.user for each in store.list_memories(view, needle="kept for", now=NOW)} == users
        assert found == near == set(evidence.seqs.tolist()) == {int(each.id[2:]) for each in listed}
        assert [rows.tolist() for rows, _ in evidence.occurrences] == [[*range(len(users))]]
        assert {each.user for each in store.list_sessions(view)} == users
        assert {each.user for each in store.list_details(view)} == users
        assert store.count_memories(view)[Kind.NOTE] == len(users)
        assert all(each.owner == ann for each in listed)


def test_a_listing_of_two_users_continues_where_it_stopped(store: SqlStore, ann: Owner) -> None:
    mine = replace(ann, user="u-7")
    for number in range(9):
        store.add_memory(note(f"note {number}", ann, user="u-7" if number % 3 == 0 else None))
        store.add_memory(note(f"other {number}", ann, user="u-8"))
    seen: list[Memory] = []
    before = None
    while page := store.list_memories(mine, now=NOW, before=before, limit=2):
        seen += page
        before = int(page[-1].id[2:])
    assert [each.text for each in seen] == [f"note {number}" for number in reversed(range(9))]


def test_what_belongs_to_nobody_is_read_but_not_changed_by_a_user(store: SqlStore, ann: Owner) -> None:
    mine, kept = replace(ann, user="u-7"), store.add_memory(note("for all", ann, kind=Kind.EPISODE))
    store.add_session(session("s-all", ann))
    shared = add_detail(store, detail("log-all", ann), "text")
    assert store.get_memory(mine, kept.id) == kept
    for change in (
        lambda: store.delete_memory(mine, kept.id),
        lambda: store.delete_session(mine, "s-all"),
        lambda: store.add_messages(mine, "s-all", messages("mine")),
        lambda: store.delete_detail(mine, shared.key),
        lambda: store.set_detail_active(mine, shared.key, False),
        lambda: store.update_memory(replace(kept, user="u-7"), replaced_at=NOW),
    ):
        with pytest.raises((NotFound, Conflict)):
            change()
    assert store.archive_memories(mine, [1], now=NOW) == 0
    assert store.prune_memories(mine, Kind.EPISODE, keep=0) == []
    assert store.get_memory(ann, kept.id).state(NOW) is State.LIVE
    assert weighed(store, ann)[0] == weighed(store, mine)[0] == [1]


def test_a_session_claims_the_details_that_were_stored_before_it_began(store: SqlStore, ann: Owner) -> None:
    for key, session_id, user in (("early", "s-9", None), ("other", "s-10", None), ("taken", "s-9", "u-8")):
        add_detail(store, detail(key, ann, session_id=session_id, user=user))
    store.add_session(session("s-9", ann, user="u-7"), claims=True)
    store.add_session(session("s-10", ann), claims=True)

    users = {key: store.get_detail(ann, key).user for key in ("early", "other", "taken")}
    assert users == {"early": "u-7", "other": None, "taken": "u-8"}
    with pytest.raises(NotFound):
        store.get_detail(replace(ann, user="u-8"), "early")


def test_every_process_sees_what_another_added_for_a_user(lasting_place: Place, store: SqlStore, ann: Owner) -> None:
    other = lasting_place.open()
    other.use_embedder(EMBEDDER, DIMENSIONS)
    try:
        mine, theirs = replace(ann, user="u-7"), replace(ann, user="u-8")
        store.add_memory(note("tea", ann, user="u-7"), vector(1))
        for reader in (store, other):
            assert weighed(reader, mine)[0] == [1]
            assert weighed(reader, theirs)[0] == []
        other.add_memory(note("coffee", ann, user="u-8"), vector(1))
        other.add_memory(note("milk", ann), vector(1))
        assert weighed(store, mine)[0] == [1, 3]
        assert weighed(store, theirs)[0] == [2, 3]
        other.delete_memory(replace(ann, user="u-7"), "m-1")
        other.update_memory(replace(other.get_memory(ann, "m-3"), text="water"), vector(1), replaced_at=NOW)
        assert weighed(store, mine)[0] == [3]
        assert [match.seq for match in store.search_memories(mine, "water", kinds=ALL_KINDS, now=NOW)] == [3]
    finally:
        other.close()


def test_users_write_and_search_at_once(store: SqlStore, ann: Owner) -> None:
    def write(number: int) -> list[int]:
        user = f"u-{number}"
        added = [
            int(store.add_memory(note(f"secret {user} {each}", ann, user=user), vector(1)).id[2:]) for each in range(5)
        ]
        assert weighed(store, replace(ann, user=user))[0] == added
        return added

    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(write, range(16)))
    assert sorted(seq for each in added for seq in each) == [*range(1, 81)]


FOR_ALL_USERS = {
    "add_.*|import_.*|index_memory|keep_version|update_memory|decide_change": "by their fields",
    "remove_from_index|renew_entry": "by their fields",
    "export_.*|present_.*|raise_message_count|.*tenant_session.*": "of a whole tenant",
    "erase_.*|clear_.*|messages_of_sessions|traces_in_.*": "by keys that were looked up before",
    "count_memories|any_user": "of whole agents",
    ".*_by_day|count_for_review|count_proposed_changes|list_expiring": "of a whole tenant",
    "count_users|count_index_bytes": "of a whole tenant",
    "find_first_ends": "of a whole tenant",
    "find_item|claim_details": "names its user itself",
    "oldest_kept_context_call|prune_context_calls": "the latest calls of an agent are kept",
    "unembedded_.*|count_unembedded.*|drop_memory_vectors|.*unindexed_.*|.*surplus_.*|.*_words.*": "upkeep",
    "list_orphans|count_orphans|count_content_rows|list_known_contents": "by the hash of a text",
}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_statement_on_users_records_can_be_limited_to_one(engine: str) -> None:
    statements = load_queries(engine)
    on_table = re.compile(rf"\b(?:FROM|UPDATE|INTO|JOIN) (?:{'|'.join(USER_TABLES)})\b")
    free = [
        name
        for name, sql in statements.items()
        if on_table.search(sql) and name + FOR_USER not in statements and not name.endswith(FOR_USER)
    ]
    unexplained = [name for name in free if not any(re.fullmatch(each, name) for each in FOR_ALL_USERS)]
    assert unexplained == []
    for name in (each for each in statements if each.endswith(FOR_USER)):
        if on_table.search(statements[name]) and name.removesuffix(FOR_USER) not in ("list_versions", "last_change"):
            assert ":user" in statements[name]
