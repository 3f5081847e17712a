"""What belongs to one user of an agent is reached by no verb of another user's view, on either engine."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from wellkept import AsyncWellkept
from wellkept.api.agent import AgentMemory
from wellkept.api.views import Part
from wellkept.api.wellkept import Wellkept
from wellkept.caller import Caller, use_caller
from wellkept.errors import Conflict, Forbidden, Invalid, NotFound, Unauthorized, WellkeptError
from wellkept.model import NO_USER, ChangeState, Owner
from wellkept.settings import Settings

MARKER = "xylophone"
SECRET = f"The launch code is {MARKER}"
QUESTION = "what is the launch code"


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wellkept]:
    file = tmp_path_factory.mktemp("store") / "memory.db"
    url = f"sqlite:///{file}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with Wellkept(settings=Settings(url=url), embedder=None) as opened:
        yield opened


_fresh = iter(range(1_000_000))


@pytest.fixture
def agent(store: Wellkept) -> AgentMemory:
    return store.tenant(f"t-{next(_fresh)}").agent("atlas")


@dataclass(frozen=True)
class Target:
    """What the intruder is after."""

    memory: str
    gone: str
    held: str
    detail: str
    session: str
    call: str
    change: str


NOBODYS = Target("m-777", "m-778", "m-779", "mem_20260101000000_abcdef", "s-777", "c-777", "p-777")


def fill(agent: AgentMemory, user: str) -> Target:
    """Store something of every kind for a user."""
    mine = agent.for_user(user)
    memory = mine.remember(SECRET, kind="core", tags=["launch"])
    mine.update(memory.id, tags=["launch", "codes"])
    mine.remember_many([f"Launch note {MARKER}, prefers the colour blue", f"Launch note {MARKER} prefers colour blue"])
    held = mine.remember(f"Held: {SECRET}", kind="core", origin="tool")
    gone = mine.remember(f"{SECRET} again", kind="episode", session_id=f"s-{user}")
    agent._store.archive_memories(agent.owner, [int(gone.id[2:])], now=agent._services.now())
    mine.log_turn(f"s-{user}", user=SECRET, assistant="I see", remember=True)
    mine.items.put("codes", "launch", {"name": SECRET})
    mine.items.put(("codes", MARKER), "launch", {"name": SECRET})
    call = mine.context(QUESTION, session=f"s-{user}")
    mine.remember_many([{"text": f"Ships from {MARKER}", "kind": "episode"}] * 3)
    mine.changes.consolidate()
    detail = mine.details.store(f"{SECRET} " * 50, description=SECRET, session_id=f"s-{user}")
    changes = mine.changes.list()
    return Target(
        memory.id,
        gone.id,
        held.id,
        detail.key,
        f"s-{user}",
        call.id,
        changes[0].id if changes else NOBODYS.change,
    )


Attempt = Callable[[AgentMemory, Target], Any]
TURN: Any = {"user": "hello", "assistant": "hello"}

ATTEMPTS: dict[str, Attempt] = {
    "remember": lambda me, it: me.remember("mine", supersedes=it.memory),
    "remember_many": lambda me, it: me.remember_many([{"text": "mine", "supersedes": it.memory}]),
    "get": lambda me, it: me.get(it.memory),
    "list": lambda me, it: [me.list(state="all", where=each) for each in (None, "user = 'u-7'", "not user = 'u-8'")],
    "search": lambda me, it: me.search(MARKER),
    "recall": lambda me, it: me.recall(QUESTION, min_relevance=0, limit=50),
    "prompts.recall_block": lambda me, it: me.prompts.recall_block(QUESTION),
    "prompts.render_recalled": lambda me, it: me.prompts.render_recalled(me.recall(QUESTION, min_relevance=0)),
    "explain": lambda me, it: me.explain(QUESTION, it.memory),
    "update": lambda me, it: me.update(it.memory, text="changed"),
    "history": lambda me, it: me.history(it.memory),
    "forget": lambda me, it: me.forget(it.memory),
    "profile": lambda me, it: me.profile(),
    "review.similar": lambda me, it: me.review.similar(it.memory),
    "review.list": lambda me, it: me.review.list(),
    "review.approve": lambda me, it: me.review.approve(it.held),
    "restore": lambda me, it: [me.restore(it.gone), me.restore(state="archived")],
    "review.set_aside": lambda me, it: me.review.set_aside(it.memory, "archived", version=1),
    "review.approve_workspace": lambda me, it: me.review.approve_workspace(),
    "add": lambda me, it: me.add([{"role": "user", "content": SECRET}], session_id=it.session, dry_run=True).dropped,
    "details.store": lambda me, it: me.details.store("mine " * 50, session_id=it.session).chars,
    "details.read": lambda me, it: me.details.read(it.detail),
    "details.search": lambda me, it: me.details.search("launch"),
    "details.list": lambda me, it: [me.details.list(is_active=None), me.details.list(before=it.detail)],
    "details.get": lambda me, it: me.details.get(it.detail),
    "details.hide": lambda me, it: me.details.hide(it.detail),
    "details.delete": lambda me, it: me.details.delete(it.detail),
    "details.capture": lambda me, it: me.details.capture("short", session_id=it.session),
    "details.capture_output": lambda me, it: me.details.capture_output("short", session_id=it.session),
    "changes.consolidate": lambda me, it: me.changes.consolidate(),
    "changes.list": lambda me, it: me.changes.list(state="all"),
    "changes.get": lambda me, it: me.changes.get(it.change),
    "changes.apply": lambda me, it: me.changes.apply(it.change),
    "changes.reject": lambda me, it: me.changes.reject(it.change),
    "changes.undo": lambda me, it: me.changes.undo(it.change),
    "changes.edit": lambda me, it: me.changes.edit([it.memory], lambda memory: me.forget(memory.id), reason="mine"),
    "sessions.log_failure": lambda me, it: me.sessions.log_failure(it.session, "no model"),
    "sessions.conversation": lambda me, it: me.sessions.conversation(it.session).messages,
    "sessions.list": lambda me, it: me.sessions.list(),
    "sessions.get": lambda me, it: me.sessions.get(it.session),
    "sessions.messages": lambda me, it: me.sessions.messages(it.session),
    "sessions.delete": lambda me, it: me.sessions.delete(it.session),
    "prompts.inject": lambda me, it: me.prompts.inject(QUESTION),
    "private_memory": lambda me, it: me.private_memory(),
    "context": lambda me, it: re.sub(r"now: .*", "", repr(me.context(QUESTION, session=it.session).messages)),
    "prompts.preview": lambda me, it: re.sub(r"now: .*", "", repr(me.prompts.preview(QUESTION).messages)),
    "prompts.list": lambda me, it: me.prompts.list(session_id=it.session),
    "prompts.get": lambda me, it: me.prompts.get(it.call),
    "knowledge.search": lambda me, it: me.knowledge.search(QUESTION),
    "call_tool": lambda me, it: [
        me.call_tool(name, {"query": MARKER, "id": it.memory, "memory_key": it.detail}, session_id=it.session)
        for name in ("memory_search", "search_my_memories", "memory_delete", "retrieve_memory", "search_memory")
    ],
    "items.put": lambda me, it: me.items.put("codes", "launch", None),
    "items.put_many": lambda me, it: me.items.put_many(
        [{"namespace": "codes", "key": "launch", "value": 1, "version": 1}]
    ),
    "items.get": lambda me, it: me.items.get("codes", "launch"),
    "items.get_many": lambda me, it: me.items.get_many([("codes", "launch"), (("codes", MARKER), "launch")]),
    "items.delete": lambda me, it: me.items.delete("codes", "launch"),
    "items.search": lambda me, it: [
        me.items.search("codes", query=query, where=where)
        for query in (None, QUESTION)
        for where in (None, "user = 'u-7'", "not user = 'u-8'")
    ],
    "items.namespaces": lambda me, it: me.items.namespaces(),
    "sessions.reader": lambda me, it: me.sessions.reader(it.session).list(state="all"),
}
CREATING = {
    "sessions.start": lambda me, it: me.sessions.start(it.session),
    "log_turn": lambda me, it: me.log_turn(it.session, **TURN),
}
"""Verbs that make a session, whose ids are unique in a tenant: a taken one is refused, whoever has it."""

ABOUT_NOBODY = {"for_user", "prompts.count_tokens", "knowledge.skills", "tools"}


def test_every_verb_is_tried() -> None:
    def verbs(of: Any) -> set[str]:
        return {name for name, each in inspect.getmembers(of, callable) if not name.startswith("_")}

    parts = {name: each._view for name, each in vars(AgentMemory).items() if isinstance(each, Part)}
    grouped = {f"{part}.{name}" for part, view in parts.items() for name in verbs(view)}
    assert (verbs(AgentMemory) | grouped) - ABOUT_NOBODY == {*ATTEMPTS, *CREATING}


def everything(mine: AgentMemory, target: Target) -> list[object]:
    """All of a user's that somebody could have changed. Reading it marks items, a moment later."""
    return [
        mine.list(state="all"),
        [replace(each, last_retrieved_at=None) for each in mine.list(state="all", kind="item")],
        mine.history(target.memory),
        mine.items.search(),
        mine.sessions.list(),
        mine.sessions.messages(target.session),
        mine.details.list(is_active=None),
        mine.changes.list(state="all"),
        [call.id for call in mine.prompts.list()],
    ]


def answer(attempt: Attempt, me: AgentMemory, target: Target) -> str:
    try:
        said = repr(attempt(me, target))
    except WellkeptError as error:
        said = f"{type(error).__name__}: {error}"
    for known in (target.session, target.memory, target.detail, target.change, target.call):
        said = said.replace(known, "…")
    return said


INTRUDERS: dict[str, Callable[[AgentMemory], AgentMemory]] = {
    "another user": lambda agent: agent.for_user("u-8"),
    "another user alone": lambda agent: agent.for_user("u-8", shared=False),
    "nobody in particular": lambda agent: agent.sessions.reader("s-none"),
}


@pytest.mark.proves("E12")
@pytest.mark.parametrize("verb", ATTEMPTS)
def test_no_verb_reaches_another_user(agent: AgentMemory, verb: str) -> None:
    target, mine = fill(agent, "u-7"), agent.for_user("u-7", shared=False)
    before = everything(mine, target)
    assert MARKER in repr(before)

    answers = {
        who: [answer(ATTEMPTS[verb], view(agent), each) for each in (target, NOBODYS)]
        for who, view in INTRUDERS.items()
    }

    assert {who: told for who, told in answers.items() if told[0] != told[1]} == {}
    assert MARKER not in repr(answers).replace(SECRET if verb == "add" else "", "")
    assert everything(mine, target) == before


@pytest.mark.parametrize("verb", CREATING)
def test_a_session_of_another_user_is_taken(agent: AgentMemory, verb: str) -> None:
    target, mine = fill(agent, "u-7"), agent.for_user("u-7", shared=False)
    before = everything(mine, target)
    for me in (agent.for_user("u-8"), agent.for_user("u-8", shared=False)):
        with pytest.raises(Conflict, match="already exists"):
            CREATING[verb](me, target)
    assert everything(mine, target) == before


def test_a_user_has_its_own_and_what_is_nobodys(agent: AgentMemory) -> None:
    own, other, shared = agent.for_user("u-7"), agent.for_user("u-8"), agent.remember("The office opens at nine")
    tea, coffee = own.remember("Drinks green tea"), other.remember("Drinks black coffee")
    assert [each.user for each in (shared, tea, coffee)] == [None, "u-7", "u-8"]
    assert [each.id for each in own.list()] == [tea.id, shared.id]
    assert [each.id for each in agent.for_user("u-7", shared=False).list()] == [tea.id]
    assert [each.id for each in agent.list()] == [coffee.id, tea.id, shared.id]
    assert [each.id for each in agent.list(user="u-8")] == [coffee.id, shared.id]
    assert [each.id for each in agent.search("drinks", user="u-8")] == [coffee.id]
    assert {hit.id for hit in agent.recall("office drinks", user="u-7", min_relevance=0)} == {tea.id, shared.id}
    assert own.owner == Owner(agent.owner.tenant, "atlas", "u-7")
    assert all(each.owner == agent.owner for each in own.list())


@pytest.mark.parametrize("lost", [None, "", 7])
def test_a_lost_user_is_not_the_view_of_all(agent: AgentMemory, lost: Any) -> None:
    with pytest.raises(Invalid, match=r"A user is 1 to|`user` must be a string, not (None|int)"):
        agent.for_user(lost)


def test_what_is_nobodys_is_not_changed_through_a_user(agent: AgentMemory) -> None:
    own, shared = agent.for_user("u-7"), agent.remember("The office opens at nine")
    agent.log_turn("s-all", user="hello", assistant="hello")
    detail = agent.details.store("text " * 50)
    for change in (
        lambda: own.update(shared.id, text="changed"),
        lambda: own.forget(shared.id),
        lambda: own.remember("It opens at ten", supersedes=shared.id),
        lambda: own.log_turn("s-all", **TURN),
        lambda: own.sessions.delete("s-all"),
        lambda: own.details.delete(detail.key),
        lambda: own.details.hide(detail.key),
    ):
        with pytest.raises(Forbidden, match="belongs to no user"):
            change()
    assert own.get(shared.id) == shared
    assert own.sessions.messages("s-all") == agent.sessions.messages("s-all") != []


@pytest.mark.parametrize("begin", ["sessions.start", "log_turn"])
def test_a_user_who_guesses_a_session_takes_over_no_long_texts(agent: AgentMemory, begin: str) -> None:
    handbook = agent.details.store("Everybody reads this. " * 40, description="handbook", session_id="s-early")
    bob, said = agent.for_user("u-8"), {"user": "Hi", "assistant": "Hello."}
    attrgetter(begin)(bob)("s-early", **(said if begin == "log_turn" else {}))

    assert agent.for_user("u-7").details.get(handbook.key).user is None
    with pytest.raises(Forbidden):
        bob.details.delete(handbook.key)
    # The agent says whose conversation it is.
    mine = agent.details.store("Only mine. " * 40, description="mine", session_id="s-mine")
    extra = {**said, "user_id": "u-7"} if begin == "log_turn" else {"user": "u-7"}
    attrgetter(begin)(agent)("s-mine", **extra)
    assert agent.details.get(mine.key).user == "u-7"


def test_another_user_cannot_be_named(agent: AgentMemory) -> None:
    own = agent.for_user("u-7")
    assert own.remember("Drinks tea", user="u-7").user == "u-7"
    for call in (
        lambda: own.remember("Drinks tea", user="u-8"),
        lambda: own.list(user="u-8"),
        lambda: own.recall("tea", user="u-8"),
        lambda: own.for_user("u-8"),
        lambda: own.sessions.start(user="u-8"),
        lambda: own.context("hello", session="s-1", user="u-8"),
    ):
        with pytest.raises(Invalid, match="another user"):
            call()
    for wrong in ("", " ", "a\nb", "x" * 201, " u-7"):
        with pytest.raises(Invalid, match="A user is"):
            agent.for_user(wrong)


def test_duplicates_and_corrections_are_those_of_one_user(agent: AgentMemory) -> None:
    first, second, nobodys = (
        view.remember("Likes tea") for view in (agent.for_user("u-7"), agent.for_user("u-8"), agent)
    )
    assert len({first.id, second.id, nobodys.id}) == 3
    assert agent.for_user("u-7").remember("likes  TEA") == first
    assert agent.remember("likes tea", user="u-8") == second
    assert agent.for_user("u-7").review.similar(first.id) == []
    with pytest.raises(NotFound):
        agent.for_user("u-7").remember("Likes coffee", supersedes=second.id)
    with pytest.raises(Invalid, match="belongs to the user"):
        agent.remember("Likes coffee", supersedes=second.id)
    assert agent.remember("Likes coffee", supersedes=second.id, user="u-8").supersedes == second.id


def test_consolidation_folds_only_memories_of_one_user(agent: AgentMemory) -> None:
    text = "Prefers short answers with a list of the open points at the end"
    for view in (agent, agent.for_user("u-7"), agent.for_user("u-8")):
        view.remember(f"{text}.")
    assert agent.changes.consolidate() == []
    agent.for_user("u-7").remember(f"{text}, please.")
    agent.remember(f"{text}, please.", user="u-8")
    changes = agent.changes.consolidate()
    assert {each.user for each in changes} == {"u-7", "u-8"}
    for change in changes:
        assert (change.state, len(agent.list(user=change.user))) == (ChangeState.APPLIED, 2)


def test_a_session_keeps_its_user(agent: AgentMemory) -> None:
    agent.log_turn("s-1", user="I live in Oslo", assistant="I see", remember=True, user_id="u-7")
    agent.log_turn("s-1", user="I am a nurse", assistant="I see", remember=True)
    assert agent.sessions.get("s-1").user == "u-7"
    assert {each.user for each in agent.list()} == {"u-7"}
    # What is stored for its conversation belongs to the same user.
    assert agent.remember("Works at night", session_id="s-1").user == "u-7"
    assert agent.details.store("log " * 50, session_id="s-1").user == "u-7"
    assert agent.sessions.start("s-2", user="u-8").user == "u-8"
    with pytest.raises(Conflict):
        agent.log_turn("s-2", **TURN, user_id="u-7")


def test_a_prompt_has_one_reader(agent: AgentMemory) -> None:
    agent.remember("Speaks of the office", kind="core")
    agent.for_user("u-7").remember(f"Mine is {MARKER}", kind="core")
    agent.for_user("u-7").remember(f"note on {MARKER}")
    agent.log_turn("s-7", user="hello", assistant="hello", user_id="u-7")
    agent.log_turn("s-0", user="hello", assistant="hello")

    shown = {
        "session of the user": agent.context("what is mine", session="s-7").messages,
        "user": agent.context("what is mine", session="s-new", user="u-7").messages,
        "nobody": agent.context("what is mine", session="s-0").messages,
        "another user": agent.context("what is mine", session="s-7", user="u-8").messages,
        "private of nobody": agent.private_memory(),
        "inject of nobody": agent.prompts.inject(MARKER),
        "block of nobody": agent.prompts.recall_block(MARKER),
        "private of the user": agent.for_user("u-7").private_memory(),
        "inject of the user": agent.for_user("u-7").prompts.inject(MARKER),
    }
    assert {name for name, text in shown.items() if MARKER in repr(text)} == {
        "session of the user",
        "user",
        "private of the user",
        "inject of the user",
    }
    assert "office" in repr(shown["nobody"])
    assert [call.user for call in agent.prompts.list()] == ["u-8", None, "u-7", "u-7"]


def test_a_user_recalls_neither_events_nor_workflows(store: Wellkept, agent: AgentMemory) -> None:
    tenant = store.tenant(agent.owner.tenant)
    tenant.workflows.record(workflow="launch", step="one", output=SECRET, agent="atlas")
    tenant.audit.record("launch.done", SECRET)
    tenant.knowledge.ingest_text(f"All read about the {MARKER}.", title="Shared")
    sources = {hit.source.value for hit in agent.for_user("u-7").recall(MARKER, min_relevance=0)}
    assert sources == {"knowledge"}
    with pytest.raises(Forbidden, match="belong to no user"):
        agent.for_user("u-7").recall(MARKER, sources=["audit"])


def test_limits_count_for_each_user(tmp_path: Any) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path}/m.db", max_total=2, embedder="off")
    with Wellkept(settings=settings) as store:
        agent = store.agent("atlas")
        for number in range(5):
            for view in (agent, agent.for_user("u-7"), agent.for_user("u-8")):
                view.remember(f"note {number}")
        assert [each.text for each in agent.for_user("u-7", shared=False).list()] == ["note 4", "note 3"]
        assert [each.text for each in agent.list() if each.user is None] == ["note 4", "note 3"]


def test_the_quota_counts_for_each_user(tmp_path: Any) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path}/m.db", episode_quota=2, embedder="off")
    with Wellkept(settings=settings) as store:
        agent = store.agent("atlas")
        for number in range(6):
            for view in (agent, agent.for_user("u-7")):
                view.remember(f"I bought {number} apples in Oslo on Monday", kind="episode", category="fact")
        store.maintain()
        live = [each.user for each in agent.list()]
        assert (live.count(None), live.count("u-7")) == (2, 2)


def test_a_limited_caller_acts_as_its_user(store: Wellkept, agent: AgentMemory) -> None:
    tenant = store.tenant(agent.owner.tenant)
    target = fill(agent, "u-7")
    with use_caller(Caller(actor="key", user="u-8")):
        mine = tenant.agent("atlas")
        assert mine.owner.user == "u-8"
        assert mine.remember("Drinks tea").user == "u-8"
        assert MARKER not in repr(mine.list(state="all"))
        assert sum(tenant.agents.count_memories("atlas").values()) == 1
        assert sum(tenant.agents.count_memories_by_agent(["atlas"])["atlas"].values()) == 1
        for call in (
            lambda: mine.for_user("u-7"),
            lambda: mine.list(user="u-7"),
            lambda: mine.remember("x", user="u-7"),
            lambda: tenant.audit.list(),
            lambda: tenant.audit.verify(),
            lambda: tenant.audit.head(),
            lambda: tenant.audit.list(),
            lambda: tenant.audit.verify(),
            lambda: tenant.keys.list(),
            lambda: tenant.keys.create(),
            lambda: tenant.data.erase("user:u-7"),
            lambda: tenant.data.export("/nowhere"),
            lambda: tenant.upkeep.maintain(),
            lambda: tenant.agents.add("new"),
            lambda: tenant.agents.update("atlas", name="x"),
            lambda: tenant.agents.delete("atlas"),
            lambda: tenant.workflows.list(),
            lambda: tenant.workflows.record(workflow="w", step="s"),
            lambda: tenant.knowledge.ingest_text("text"),
            lambda: tenant.sessions.list(),
        ):
            with pytest.raises(Forbidden, match="user"):
                call()
        with pytest.raises(NotFound):
            tenant.sessions.get(target.session)


def test_erasing_a_user_leaves_nothing_of_it(store: Wellkept, agent: AgentMemory) -> None:
    tenant = store.tenant(agent.owner.tenant)
    fill(agent, "u-7")
    fill(agent, "u-8")
    fill(tenant.agent("boris"), "u-77")
    agent.remember("The office opens at nine")
    tenant.agent("boris").remember(SECRET, user="u-7")
    key, other = (tenant.keys.create("read", user=user) for user in ("u-7", "u-8"))
    kept = repr([agent.for_user("u-8").list(state="all"), agent.for_user("u-8").sessions.list()])

    planned = tenant.data.erase("user:u-7", dry_run=True)
    receipt = tenant.data.erase("user:u-7")

    assert receipt.subject == "user:u-7"
    for table in ("memories", "memory_versions", "chat_sessions", "chat_messages", "details", "context_calls"):
        assert receipt.removed[table] >= 1, table
    assert planned.removed["memories"] == receipt.removed["memories"]
    assert receipt.cleared["api_keys"] == 1
    assert agent.for_user("u-7", shared=False).list(state="all") == []
    assert agent.for_user("u-7", shared=False).sessions.list() == []
    assert tenant.agent("boris").for_user("u-7", shared=False).list() == []
    assert agent.for_user("u-7", shared=False).recall(QUESTION, min_relevance=0) == []
    records = {each.id: each for each in tenant.keys.list()}
    assert records[key.record.id].revoked_at is not None
    assert records[key.record.id].user not in (None, "u-7")
    assert records[other.record.id].revoked_at is None
    assert repr([agent.for_user("u-8").list(state="all"), agent.for_user("u-8").sessions.list()]) == kept
    assert len(agent.for_user("u-8").list()) > len(agent.for_user("u-9").list()) == 1
    assert not any("s-u-7 " in f"{each.message} " for each in tenant.audit.list(limit=500))
    assert tenant.audit.verify().is_intact
    with pytest.raises(NotFound, match="no such user"):
        tenant.data.erase("user:u-7")


def test_an_export_carries_users(store: Wellkept, agent: AgentMemory, tmp_path: Any) -> None:
    fill(agent, "u-7")
    store.tenant(agent.owner.tenant).data.export(tmp_path / "all.jsonl")
    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path}/copy.db"), embedder=None) as other:
        tenant = other.tenant(agent.owner.tenant)
        tenant.data.import_(tmp_path / "all.jsonl")
        copy, view = tenant.agent("atlas").for_user("u-7", shared=False), agent.for_user("u-7", shared=False)
        assert [(each.id, each.user, each.text) for each in copy.list(state="all")] == [
            (each.id, "u-7", each.text) for each in view.list(state="all")
        ]
        assert copy.sessions.list() == view.sessions.list()
        assert tenant.agent("atlas").for_user("u-8", shared=False).list(state="all") == []
        assert MARKER in repr(copy.recall(QUESTION, min_relevance=0))


def test_an_export_of_one_user_holds_nothing_else(store: Wellkept, agent: AgentMemory, tmp_path: Any) -> None:
    tenant, boris = store.tenant(agent.owner.tenant), store.tenant(agent.owner.tenant).agent("boris")
    for user, text in (("u-7", "apples"), ("u-8", "pears"), (None, "plums")):
        view = agent if user is None else agent.for_user(user)
        view.remember(f"Likes {text}")
        view.update(view.list()[0].id, text=f"Likes many {text}")
        view.log_turn(f"s-{text}", user=f"I like {text}", assistant="I see", remember=False)
        view.details.store(f"All about {text} " * 20, description=f"About {text}")
    boris.remember("Likes cherries", user="u-8")
    tenant.data.export(tmp_path / "one.jsonl", user="u-7")
    file = (tmp_path / "one.jsonl").read_text()
    assert [name for name in ("apples", "pears", "plums", "cherries", "boris") if name in file] == ["apples"]
    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path}/copy.db"), embedder=None) as other:
        copied = other.tenant(agent.owner.tenant)
        copied.data.import_(tmp_path / "one.jsonl")
        copy = copied.agent("atlas").for_user("u-7")
        assert [each.text for each in copy.list()] == ["Likes many apples"]
        assert [each.text for each in copy.history(copy.list()[0].id)] == ["Likes apples"]
        assert [each.content for each in copy.sessions.messages("s-apples")] == ["I like apples", "I see"]
        assert "All about apples" in copy.details.read(copy.details.list()[0].key).content


def test_an_import_from_mem0_keeps_users(tmp_path: Any) -> None:
    entries = [
        {"id": "1", "memory": "Likes tea", "user_id": "u-7"},
        {"id": "2", "memory": "Likes tea", "user_id": "u-8"},
        {"id": "3", "memory": "Likes milk", "user_id": 9},
        {"id": "4", "memory": "Likes rum", "user_id": "a\nb"},
        {"id": "5", "memory": "Opens at nine", "agent_id": "atlas"},
    ]
    (tmp_path / "mem0.json").write_text(json.dumps({"results": entries}))
    with Wellkept(f"sqlite:///{tmp_path}/m.db", embedder=None) as store:
        report = store.tenant().data.import_(tmp_path / "mem0.json", agent="atlas")
        assert (report.added, report.refused_count) == ({"memories": 4}, 1)
        found = {(each.user, each.text) for each in store.agent("atlas").list()}
        assert found == {("u-7", "Likes tea"), ("u-8", "Likes tea"), ("9", "Likes milk"), (None, "Opens at nine")}
        again = store.tenant().data.import_(tmp_path / "mem0.json", agent="atlas")
        assert again.present == {"memories": 4}


def test_no_note_of_a_user_is_in_the_file_of_the_workspace(tmp_path: Any) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path}/m.db", workspace=tmp_path, embedder="off")
    with Wellkept(settings=settings) as store:
        agent = store.agent("atlas")
        shared, own = agent.remember("For everybody"), agent.for_user("u-7").remember(f"Mine is {MARKER}")
        file = next(tmp_path.rglob("memories.jsonl")).read_text()
        assert "For everybody" in file
        assert MARKER not in file
        assert [each.id for each in agent.for_user("u-7").list()] == [own.id, shared.id]
        assert [each.id for each in agent.for_user("u-8").list()] == [shared.id]
        assert agent.for_user("u-7", shared=False).list() == [own]
        assert {hit.id for hit in agent.for_user("u-8").recall("who is it for?")} == {shared.id}
        with pytest.raises(Forbidden):
            agent.for_user("u-7").forget(shared.id)
        with pytest.raises(Forbidden):
            agent.for_user("u-7").review.approve_workspace()


def test_the_async_view_is_the_same(tmp_path: Any) -> None:
    asyncio.run(use_async_view(tmp_path))


async def use_async_view(tmp_path: Any) -> None:
    async with AsyncWellkept(f"sqlite:///{tmp_path}/m.db", embedder=None) as store:
        own = store.agent("atlas").for_user("u-7")
        tea = await own.remember("Drinks tea")
        assert tea.user == "u-7"
        assert await store.agent("atlas").for_user("u-8").list() == []
        await own.log_turn("s-1", user="hello", assistant="hello")
        assert (await store.agent("atlas").sessions.reader("s-1")).owner.user == "u-7"
        assert (await store.agent("atlas").sessions.reader("s-2")).owner.user == NO_USER


def test_an_erased_user_writes_nothing_by_a_key_that_another_process_knows(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with Wellkept(url) as one, Wellkept(url) as other:
        key = one.tenant("acme").keys.create("write", user="u-7").key
        one.agent("atlas", "acme").remember("Lives in Oslo", user="u-7")
        # Both processes have verified the key within the last second.
        assert other.keys.verify(key).user == one.keys.verify(key).user == "u-7"
        assert one.tenant("acme").data.erase("user:u-7").removed["memories"] == 1
        assert other.keys.recent(key) is None
        with pytest.raises(Unauthorized):
            other.keys.verify(key)
