"""Every verb of an agent gives through a server what it gives without one, on both engines."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wellkept import Client, Conflict, Forbidden, Invalid, NotFound, SecretRejected, Wellkept, captured
from wellkept.api.agent import AgentMemory
from wellkept.client.agent import AgentClient
from wellkept.memory.rules_filters import parse_filter
from wellkept.model import ACTOR, Conversation, Kind, Recalled, WorkingMemory

LONG = "".join(f"line {number}: added package\n" for number in range(2_000))
SECRET = "The key is AKIAIOSFODNN7EXAMPLQ"


def test_a_memory_is_stored_read_edited_and_deleted(atlas: AgentClient, library: AgentMemory) -> None:
    later = datetime.now(UTC) + timedelta(days=3)
    kept = atlas.remember("Prefers tabs over spaces", tags=["preference"], scope="user", importance=0.7)
    episode = atlas.remember("The build broke", kind=Kind.EPISODE, session_id="s-1", expires_at=later, role="assistant")

    assert kept == library.get(kept.id)
    assert episode == library.get(episode.id)
    assert (kept.owner, kept.tags, kept.importance) == (library.owner, ("preference",), 0.7)
    edited = atlas.update(kept.id, text="Prefers spaces", version=1)
    assert edited == library.get(kept.id) == atlas.get(kept.id)
    assert atlas.history(kept.id) == library.history(kept.id) != []
    with pytest.raises(Conflict):
        atlas.update(kept.id, text="Prefers both", version=1)
    atlas.forget(kept.id)
    with pytest.raises(NotFound) as missing:
        atlas.get(kept.id)
    with pytest.raises(NotFound) as missing_without:
        library.get(kept.id)
    assert str(missing.value) == str(missing_without.value)


def test_many_memories_are_stored_or_none(atlas: AgentClient, library: AgentMemory) -> None:
    stored = atlas.remember_many(["Likes tea", {"text": "Likes jam", "tags": ["food"]}])

    assert stored == [library.get(each.id) for each in stored]
    assert atlas.remember_many([]) == []
    with pytest.raises(SecretRejected) as refused:
        atlas.remember_many(["Likes milk", {"text": SECRET}])
    assert refused.value.item == 1
    assert len(library.list()) == 2


def test_facts_are_added_and_undone(atlas: AgentClient, library: AgentMemory) -> None:
    said = [{"role": "user", "content": "I am allergic to penicillin. I live in Oslo."}]
    dry = atlas.add(said, dry_run=True)
    assert dry.is_dry_run
    assert library.list() == []
    added = atlas.add(said, session_id="s-1")

    assert [each.memory for each in added.added] == [library.get(each.id) for each in added.added] != []
    assert [each.text for each in added.added] == [each.text for each in dry.added]
    added.undo()
    assert library.list(state="all") == []
    again = atlas.add(said)
    assert atlas.changes.undo(str(again.change)) == library.changes.get(str(again.change))


def test_refusals_are_the_librarys_own(atlas: AgentClient, library: AgentMemory) -> None:
    def refusal(memory: Any, *args: Any, **kwargs: Any) -> tuple[type, str, Any, Any]:
        with pytest.raises(Invalid) as caught:
            memory.remember(*args, **kwargs)
        error = caught.value
        return type(error), str(error), getattr(error, "rule", None), getattr(error, "sentence", None)

    wrong: list[tuple[str, dict[str, Any]]] = [(SECRET, {}), (" ", {}), ("x", {"kind": "poem"})]
    wrong.append(("x", {"importance": 7.0}))
    for text, options in wrong:
        assert refusal(atlas, text, **options) == refusal(library, text, **options)
    with pytest.raises(Invalid, match="`text` must be a string, not int"):
        atlas.remember(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="txt"):
        atlas.remember("x", txt="x")  # type: ignore[call-arg]
    with pytest.raises(Invalid, match="`tags` must be a list of strings, not a list of bytes"):
        atlas.remember("x", tags=[b"x"])  # type: ignore[list-item]


def test_listings_filter_and_continue(atlas: AgentClient, library: AgentMemory) -> None:
    for number in range(7):
        library.remember(f"Fact {number}", kind="journal", tags=["odd"] if number % 2 else [])
    library.remember("Über Tee & Kaffee?", tags=["a b"])

    assert atlas.list() == library.list()
    assert atlas.list(limit=3, before="m-6") == library.list(limit=3, before="m-6")
    assert atlas.list(tag="odd", kind="journal") == library.list(tag="odd", kind="journal")
    assert [each.text for each in atlas.search("tee & k")] == ["Über Tee & Kaffee?"]
    since = library.get("m-4").created_at
    assert atlas.list(since=since, until=datetime.now(UTC)) == library.list(since=since, until=datetime.now(UTC))


def test_filters_and_metadata(atlas: AgentClient, library: AgentMemory) -> None:
    oslo = atlas.remember("Lives in Oslo", metadata={"city": "Oslo", "n": 7})
    atlas.remember("Lives in Rome", metadata={"city": "Rome"})

    assert oslo == library.get(oslo.id)
    filters: list[Any] = ["metadata.city = 'Oslo'", {"=": ["metadata.city", "Oslo"]}, parse_filter("metadata.n > 6")]
    for where in filters:
        assert atlas.list(where=where) == library.list(where=where)
        assert [each.id for each in atlas.list(where=where)] == [oslo.id]
        assert [hit.id for hit in atlas.recall("who lives where?", where=where, min_relevance=0.0)] == [oslo.id]
    edited = atlas.update(oslo.id, metadata={"city": "Bergen"})
    assert edited.metadata == library.get(oslo.id).metadata == {"city": "Bergen"}
    assert atlas.history(oslo.id) == library.history(oslo.id)
    atlas.sessions.start(f"s-{oslo.owner.agent}", metadata={"topic": "tea"})
    found = atlas.sessions.list(where={"=": ["metadata.topic", "tea"]})
    assert found == library.sessions.list(where="metadata.topic = tea") != []


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 501}, {"before": "x"}, {"state": "gone"}, {"kind": "x"}])
def test_a_wrong_filter_is_refused_alike(atlas: AgentClient, library: AgentMemory, options: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        atlas.list(**options)
    with pytest.raises(Invalid) as refused_without:
        library.list(**options)
    assert str(refused.value) == str(refused_without.value)


def test_a_listing_of_many_bytes_takes_several_pages(atlas: AgentClient, library: AgentMemory) -> None:
    # Together more than a page of the server holds.
    library.remember_many({"text": f"{number} {'x' * 9_900}", "kind": "episode"} for number in range(450))

    found = atlas.list(limit=450)
    assert found == library.list(limit=450)
    assert len(found) == 450


def test_recall_answers_with_whole_hits(client: Client, atlas: AgentClient, library: AgentMemory) -> None:
    client.knowledge.ingest_text("# Refunds\n\nRefunds are paid within 14 days.", title="Refunds", category="policy")
    library.remember("Refunds go out on Tuesdays", tags=["refund"])
    moment = datetime.now(UTC)

    found, without = (each.recall("when are refunds paid?", as_of=moment) for each in (atlas, library))
    assert isinstance(found, Recalled)
    assert found == without
    assert {hit.source for hit in found} >= {"memory", "knowledge"}
    assert found.unanswered == without.unanswered == ()
    only = atlas.recall("refunds", sources=["memory"], tag="refund", limit=1, min_relevance=0.0)
    assert [hit.memory and hit.memory.tags for hit in only] == [("refund",)]
    purposeful = atlas.recall("refunds", purpose="task_intake")
    assert purposeful.heading == library.recall("refunds", purpose="task_intake").heading != ""
    assert atlas.prompts.recall_block("when are refunds paid?") == library.prompts.recall_block(
        "when are refunds paid?"
    )
    passages = atlas.knowledge.search("refunds", categories=["policy"])
    assert passages == library.knowledge.search("refunds", categories=["policy"])
    assert passages[0].title == "Refunds"


def test_a_recalled_item_names_its_place(atlas: AgentClient, library: AgentMemory) -> None:
    library.items.put(("users", "7"), "drink", {"text": "Lena drinks green tea"})

    (found,) = (hit.memory for hit in atlas.recall("what does Lena drink?") if hit.memory and hit.memory.item_key)
    assert (found.namespace, found.item_key) == ("users/7", "drink")


def test_a_recall_is_explained(atlas: AgentClient, library: AgentMemory) -> None:
    kept, moment = library.remember("The gate code changes in May"), datetime.now(UTC)

    explained = atlas.explain("gate code", kept.id, as_of=moment)
    assert explained == library.explain("gate code", kept.id, as_of=moment)
    assert atlas.explain("gate code", "m-99").outcome == "missing"


def test_prompts(atlas: AgentClient, library: AgentMemory) -> None:
    atlas.remember("Prefers tabs over spaces")
    atlas.remember("Speaks plainly", kind="core")
    atlas.log_turn("s-prompt", user="Hello", assistant="Hi")

    assert atlas.prompts.inject("tabs or spaces?") == library.prompts.inject("tabs or spaces?") != ""
    assert atlas.prompts.inject("tabs?", mode="off") is None
    assert atlas.private_memory() == library.private_memory() != ""
    made = atlas.context(
        "tabs or spaces?", session="s-prompt", system_prompt="Be kind.", tool_results=["ran", {"content": "x"}]
    )
    assert isinstance(made, WorkingMemory)
    assert [message["content"] for message in made.messages if message["role"] == "assistant"] == ["Hi"]
    assert atlas.context("tabs or spaces?").messages[1:] == library.context("tabs or spaces?").messages[1:]
    assert made.blocks[0].tokens > 0
    (call,) = atlas.prompts.list(session_id="s-prompt")
    assert call.id == made.id
    assert "Otto" in atlas.context("hello", participants=["Otto"]).messages[0]["content"]
    assert [each.session_id for each in atlas.prompts.list()] == ["", "", "", "s-prompt"]
    assert atlas.prompts.list() == library.prompts.list()
    assert atlas.prompts.get(made.id) == library.prompts.get(made.id)


def test_conversations(client: Client, atlas: AgentClient, library: AgentMemory) -> None:
    other = client.agent("somebody-else")
    session = f"s-{atlas.owner.agent}"
    logged = atlas.log_turn(session, user="Hello", assistant="Hi", remember=True)

    assert logged == library.sessions.messages(session) == atlas.sessions.messages(session)
    assert atlas.sessions.messages(session, after=1, limit=1) == logged[1:]
    assert atlas.sessions.conversation(session) == library.sessions.conversation(session)
    assert atlas.sessions.conversation(session).messages == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
    ]
    assert atlas.sessions.conversation(session, limit=1) == library.sessions.conversation(session, limit=1)
    assert atlas.sessions.conversation(session, limit=1).omitted_count == 1
    assert atlas.sessions.conversation("not yet") == Conversation(session_id="not yet")
    assert atlas.sessions.list() == library.sessions.list()
    added = atlas.sessions.start()
    assert added == library.sessions.get(added.id) == atlas.sessions.get(added.id)
    last = library.sessions.list(limit=1)[0]
    assert atlas.sessions.list(before=(last.updated_at, last.id)) == library.sessions.list(
        before=(last.updated_at, last.id)
    )
    # Another agent's conversation is answered like a missing one.
    assert other.sessions.conversation(session).turns == ()
    for verb in (other.sessions.get, other.sessions.messages, other.sessions.delete):
        with pytest.raises(NotFound):
            verb(session)
    with pytest.raises(Conflict):
        other.log_turn(session, user="x", assistant="y")
    atlas.sessions.delete(session)
    with pytest.raises(NotFound):
        library.sessions.get(session)


def test_long_texts(atlas: AgentClient, library: AgentMemory, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(LONG)
    stored = atlas.details.store(tmp_path / "log.txt", description="npm install", metadata={"status": "ok"})
    other = atlas.details.store(iter([b"second ", b"text"]), type="file_content", session_id="s-9")

    assert stored == library.details.get(stored.key) == atlas.details.get(stored.key)
    assert atlas.details.read(stored.key, lines="3-5") == library.details.read(stored.key, lines="3-5")
    assert atlas.details.read(stored.key, grep="line 77:", context=0).matches == 1
    assert atlas.details.list() == library.details.list() == [other, stored]
    assert atlas.details.list(before=other.key) == atlas.details.list(before=(other.created_at, other.key)) == [stored]
    assert atlas.details.search("npm") == library.details.search("npm") == [stored]
    assert atlas.details.search() == library.details.search() == [other, stored]
    with pytest.raises(Invalid):
        atlas.details.search(offset=1)
    assert atlas.details.search("npm", offset=1) == []
    hidden = atlas.details.hide(stored.key)
    assert not hidden.is_active
    assert (atlas.details.list(is_active=False), atlas.details.list(is_active=None)) == ([hidden], [other, hidden])
    assert atlas.details.hide(stored.key, is_hidden=False) == stored
    atlas.details.delete(stored.key)
    with pytest.raises(NotFound):
        atlas.details.read(stored.key)


def test_output_is_captured(atlas: AgentClient, library: AgentMemory) -> None:
    assert atlas.details.capture("short") == "short"
    kept = atlas.details.capture_output(io.BytesIO(LONG.encode()), source="npm install", metadata={"exit": 0})
    assert kept.is_captured
    assert kept.memory_key is not None
    assert library.details.get(kept.memory_key).metadata["exit"] == 0

    @captured(atlas, source="build")
    def build() -> str:
        return LONG

    assert build() != LONG
    assert "[MemoryRef:" in build()


def test_memories_are_reviewed_and_restored(client: Client, atlas: AgentClient, library: AgentMemory) -> None:
    held = library.remember("Rules are for others", kind="core", origin="tool")
    assert atlas.review.list() == library.review.list()
    assert atlas.review.approve(held.id) == library.get(held.id)
    past = datetime.now(UTC) - timedelta(days=1)
    gone = [library.remember(f"Old {n}", kind="episode", expires_at=past, created_at=past) for n in range(3)]

    assert [each.id for each in atlas.restore(gone[0].id)] == [gone[0].id]
    restored = atlas.restore(state="expired", kind="episode")
    assert {each.id for each in restored} == {each.id for each in gone[1:]}
    assert all(each == library.get(each.id) for each in restored)
    with pytest.raises(Invalid):
        atlas.restore()
    with pytest.raises(Invalid, match="workspace"):
        atlas.review.approve_workspace()


def test_memories_are_consolidated(atlas: AgentClient, library: AgentMemory) -> None:
    atlas.remember("Deploys go out on Tuesdays at noon")
    double = atlas.remember("Deploys go out on Tuesdays, at noon!")
    assert atlas.review.similar(double) == library.review.similar(double.id) == atlas.review.similar(double.id)

    (change,) = atlas.changes.consolidate()
    assert change.state == "applied"
    assert atlas.changes.list(state="applied") == library.changes.list(state="applied")
    assert atlas.changes.get(change.id) == library.changes.get(change.id)
    assert atlas.changes.undo(change.id).state == "undone"
    for decide in (atlas.changes.reject, atlas.changes.apply):
        with pytest.raises(Conflict):
            decide(change.id)


def test_tools_run_on_a_server(atlas: AgentClient, library: AgentMemory) -> None:
    assert atlas.tools(["notes"], form="anthropic") == library.tools(["notes"], form="anthropic")
    assert "tea" in [each.name for each in atlas.knowledge.skills()]
    answer = atlas.call_tool("memory_store", {"text": "Likes oolong"})
    assert library.get(answer["id"]).text == "Likes oolong"
    assert "error" in atlas.call_tool("memory_store", {"text": SECRET})


@pytest.mark.proves("E12")
def test_a_tool_acts_for_the_user_of_the_session(atlas: AgentClient, library: AgentMemory) -> None:
    library.remember("Anna likes sencha", user="u-7")
    library.log_turn("s-8", user="hello", assistant="hello", user_id="u-8")
    for memory in (atlas, library):
        found = memory.call_tool("memory_search", {"query": "sencha"}, session_id="s-8")
        assert "Anna" not in repr(found)
        assert "Anna" in repr(memory.call_tool("memory_search", {"query": "sencha"}, session_id="s-new"))
        made = memory.call_tool("memory_store", {"text": f"Likes {type(memory).__name__}"}, session_id="s-8")
        assert library.get(made["id"]).user == "u-8"


@pytest.mark.parametrize("id", ["..", ".", "", "a/b", "../../agents", "%2e%2e", "m-1?x=1", "m 1"])
def test_no_id_leads_to_another_route(atlas: AgentClient, library: AgentMemory, id: str) -> None:
    kept = atlas.remember("Stays")

    for verb in (atlas.forget, atlas.get, atlas.details.delete, atlas.sessions.delete):
        with pytest.raises((NotFound, Invalid)):
            verb(id)
    assert library.list() == [kept]


def test_a_user_is_named_by_a_header(atlas: AgentClient, library: AgentMemory) -> None:
    ours = atlas.remember("The office closes at six")
    view, other = atlas.for_user("jürgen"), atlas.for_user("u-8")
    kept = view.remember("Likes tea")

    assert kept.user == "jürgen"
    assert view.list() == library.for_user("jürgen").list() == [kept, ours]
    assert other.list() == [ours]
    with pytest.raises(NotFound):
        other.get(kept.id)
    assert view.prompts.recall_block("who likes tea?") == library.for_user("jürgen").prompts.recall_block(
        "who likes tea?"
    )
    assert atlas.prompts.recall_block("who likes tea?") == library.prompts.recall_block("who likes tea?")
    for wrong in ("", "a\nb"):
        with pytest.raises(Invalid):
            atlas.for_user(wrong)
    with pytest.raises(Invalid):
        atlas.for_user("u-7", shared=False)


def test_a_key_limits_what_a_client_may_do(wellkept: Wellkept, address: str) -> None:
    issued = wellkept.tenant("acme").keys.create("read")
    with Client(address, issued.key) as reader:
        assert reader.owner.tenant == "acme"
        with pytest.raises(Forbidden):
            reader.agent("atlas").remember("x")
    writer = wellkept.tenant("acme").keys.create("write")
    with Client(address, writer.key) as client:
        client.agent("acting").remember("Written over HTTP")
    event = wellkept.tenant("acme").audit.list(limit=1)[0]
    assert event.meta[ACTOR] == writer.record.id


def test_items_are_put_read_found_and_deleted(atlas: AgentClient, library: AgentMemory) -> None:
    odd = ("a/b", "100% é")
    for number in range(120):
        atlas.items.put("many", f"k{number}", number)
    kept = atlas.items.put(odd, "x/y %", {"name": "Lena", "age": None}, index=["name"], ttl=600, refresh=True)
    own = atlas.items.put(odd, "x/y %", ["hers"], user="lena")

    assert kept is not None
    assert own is not None
    assert (kept.namespace, kept.version, own.user) == (odd, 1, "lena")
    assert atlas.items.get(odd, "x/y %", refresh=False) == library.items.get(odd, "x/y %", refresh=False)
    assert atlas.items.get(odd, "x/y %", user="lena") == own == atlas.for_user("lena").items.get(odd, "x/y %")
    assert atlas.items.get_many([(odd, "x/y %"), (odd, "none")], user="lena") == [own, None]
    assert atlas.items.search(("many",), limit=120) == library.items.search(("many",), limit=120)
    assert atlas.items.search(("many",), limit=5, offset=98) == library.items.search(("many",), limit=5, offset=98)
    (found,) = atlas.items.search(odd, query="Lena", where="value.name = Lena", refresh=False)
    assert found.id == kept.id
    assert found.score == pytest.approx(library.items.search(odd, query="Lena")[0].score)
    assert atlas.items.namespaces(prefix=("a/b", "*")) == library.items.namespaces(prefix=("a/b", "*")) == [odd]
    with pytest.raises(Conflict):
        atlas.items.put(odd, "x/y %", 1, version=7)
    with pytest.raises(Invalid):
        atlas.items.search(query=5)  # type: ignore[arg-type]
    assert atlas.items.put("many", "k0", None) is None
    assert [atlas.items.delete(odd, "x/y %"), atlas.items.delete(odd, "x/y %")] == [True, False]
    assert library.items.get("many", "k0") is None
    assert library.items.get(odd, "x/y %", user="lena") == own
