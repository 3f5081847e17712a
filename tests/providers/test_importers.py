"""Files of other programs: each format as its program writes it, and what is wrong with a file said, not thrown."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wellkept import Invalid, Settings, Wellkept
from wellkept.importers.files import CHUNK_CHARS, split_note
from wellkept.importers.formats import FORMATS, find_format, recognise
from wellkept.model import ForeignMemory, ForeignTurn, Kind, Origin, RefusedItem

pytestmark = pytest.mark.proves("X6")

MEM0: dict[str, Any] = {
    "results": [
        {
            "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
            "memory": "Likes to play cricket on weekends",
            "hash": "285d07801ae42054732314853e9eadd7",
            "metadata": {"category": "hobbies"},
            "categories": ["sports", "hobbies"],
            "created_at": "2024-07-26T08:43:41.039188-07:00",
            "updated_at": None,
            "user_id": "alice",
            "agent_id": "Travel agent",
            "run_id": "trip-2024",
        },
        {"id": "1", "memory": "Is allergic to nuts", "created_at": "2024-08-01T10:00:00Z"},
        {"id": "2", "memory": None, "user_id": "alice"},
        "no memory at all",
    ],
    "relations": [{"source": "alice", "relationship": "likes", "target": "pizza"}],
}
GRAPH = [
    {
        "type": "entity",
        "name": "John_Smith",
        "entityType": "person",
        "observations": ["Speaks Spanish", "Lives in Lund"],
    },
    {"type": "entity", "name": "Anthropic", "entityType": "organization", "observations": []},
    {"type": "relation", "from": "John_Smith", "to": "Anthropic", "relationType": "works_at"},
]
LANGGRAPH = {
    "items": [
        {
            "namespace": ["users", "alice", "memories"],
            "key": "a1",
            "value": {"kind": "Memory", "content": {"content": "Prefers dark mode"}},
            "created_at": "2025-01-02T03:04:05+00:00",
            "updated_at": "2025-01-02T03:04:05+00:00",
            "score": 0.7,
        },
        {"namespace": ["users", "alice"], "key": "profile", "value": {"name": "Alice", "age": 31, "pets": []}},
        {"prefix": "users.bob", "key": "b1", "value": '{"data": "Bob plays chess"}'},
        {"namespace": ["users"], "key": "empty", "value": {}},
        {"namespace": ["users"], "key": "lost"},
    ]
}


def message(role: str, *parts: Any, at: float | None = 1714560000.5, kind: str = "text", **more: Any) -> dict[str, Any]:
    content = {"content_type": kind, "parts": list(parts)}
    return {"author": {"role": role}, "create_time": at, "content": content, "metadata": {}, "recipient": "all", **more}


def tree(*messages: dict[str, Any] | None) -> dict[str, Any]:
    """Messages one below the other, as ChatGPT keeps them."""
    nodes: dict[str, Any] = {}
    for number, each in enumerate(messages):
        parent = f"n{number - 1}" if number else None
        children = [f"n{number + 1}"] if number + 1 < len(messages) else []
        nodes[f"n{number}"] = {"id": f"n{number}", "message": each, "parent": parent, "children": children}
    return nodes


def chatgpt() -> list[dict[str, Any]]:
    asked = tree(
        None,
        message("system", "", weight=0, metadata={"is_visually_hidden_from_conversation": True}),
        message("user", "What is the capital of France?"),
        message("assistant", "search('France')", recipient="browser", kind="code"),
        message("tool", "Paris is …"),
        message("assistant", "Let me look.", channel="analysis"),
        message("assistant", "Paris."),
        message(
            "user",
            {"content_type": "image_asset_pointer", "asset_pointer": "file-1"},
            "Is this it?",
            kind="multimodal_text",
        ),
        message("assistant", "Yes, the Louvre.", at=None),
        message("user", "Thanks"),
    )
    asked["n6"]["children"].append("x")
    asked["x"] = {"id": "x", "message": message("user", "Is this London?"), "parent": "n6", "children": []}
    return [
        {
            "title": "France",
            "create_time": 1714560000.0,
            "mapping": asked,
            "current_node": "n9",
            "conversation_id": "c-1",
        },
        {"title": "Broken", "mapping": "gone", "id": "c-2"},
        {"title": "Nameless", "mapping": {}},
    ]


CLAUDE = [
    {
        "uuid": "u-1",
        "name": "Tea",
        "created_at": "2025-03-01T08:00:00.000000Z",
        "updated_at": "2025-03-01T09:00:00.000000Z",
        "account": {"uuid": "a-1"},
        "chat_messages": [
            {
                "uuid": "m-1",
                "text": "Which tea is it?",
                "content": [{"type": "text", "text": "Which tea is it?"}],
                "sender": "human",
                "created_at": "2025-03-01T08:00:01Z",
                "attachments": [{"file_name": "tea.txt", "extracted_content": "Earl Grey"}],
                "files": [],
            },
            {
                "uuid": "m-2",
                "text": "",
                "content": [
                    {"type": "thinking", "thinking": "Hm."},
                    {"type": "tool_use", "name": "look", "input": {}},
                    {"type": "text", "text": "Earl Grey."},
                ],
                "sender": "assistant",
                "created_at": "2025-03-01T08:00:09Z",
            },
            {"uuid": "m-3", "text": "And this?", "sender": "human", "created_at": "2025-03-01T08:01:00Z"},
        ],
    },
    {"uuid": "u-2", "name": "Nothing"},
]
REMEMBERED = [
    {
        "conversations_memory": (
            "**Work context**\n\nMara runs a small bakery in Lund.\n\n**Personal context**\n\nLikes tea."
        ),
        "project_memories": {"p-1": "The shop opens at six."},
        "account_uuid": "a-1",
    }
]


def zipped(path: Path, **members: Any) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.json", json.dumps(content))
    return path


def written(path: Path, content: Any) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, "utf-8")
    return path


def lines(entries: list[Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in entries)


def read(path: Path, name: str) -> list[Any]:
    found = recognise(path)
    assert found.name == name
    return list(found.read(path))


def told(items: list[Any]) -> list[tuple[str, str]]:
    """Where, and what."""
    return [(each.place, each.reason if isinstance(each, RefusedItem) else each.text) for each in items]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "export.json"


@pytest.mark.parametrize("layout", ["object", "list", "lines"])
def test_mem0(path: Path, layout: str) -> None:
    every = [*MEM0["results"], *MEM0["relations"]]
    content = {"object": MEM0, "list": every, "lines": lines(every)}[layout]

    items = read(written(path, content), "mem0")

    first, nuts, *refused, relation = items
    assert isinstance(first, ForeignMemory)
    assert (first.text, first.agent, first.scope) == ("Likes to play cricket on weekends", "Travel-agent", "user")
    assert (first.tags, first.user, first.session_id) == (("sports", "hobbies"), "alice", "trip-2024")
    assert first.created_at == datetime(2024, 7, 26, 15, 43, 41, 39188, UTC)
    assert (nuts.text, nuts.agent, nuts.tags, nuts.scope) == ("Is allergic to nuts", None, (), None)
    assert [each.place for each in refused if isinstance(each, RefusedItem)] == ["memory 3", "memory 4"]
    assert relation.text == "alice likes pizza"


@pytest.mark.parametrize("layout", ["lines", "graph"])
def test_the_mcp_memory_server(tmp_path: Path, layout: str) -> None:
    graph = {"entities": GRAPH[:2], "relations": GRAPH[2:]}
    items = read(written(tmp_path / "memory.jsonl", lines(GRAPH) if layout == "lines" else graph), "mcp-memory")

    assert [(each.text, each.tags) for each in items] == [
        ("John_Smith (person): Speaks Spanish", ("person", "John_Smith")),
        ("John_Smith (person): Lives in Lund", ("person", "John_Smith")),
        ("Anthropic is known as organization", ("organization", "Anthropic")),
        ("John_Smith works_at Anthropic", ("relation",)),
    ]


def test_a_damaged_line_harms_no_other(tmp_path: Path) -> None:
    content = lines(GRAPH[:1]) + '{"type": "entity", "na\n' + '{"type": "entity"}\n' + lines(GRAPH[2:])

    items = read(written(tmp_path / "memory.jsonl", content), "mcp-memory")

    assert [each.place for each in items] == ["line 1", "line 1", "line 2", "line 3", "line 4"]
    assert [isinstance(each, RefusedItem) for each in items] == [False, False, True, True, False]


@pytest.mark.parametrize("layout", ["object", "list", "lines"])
def test_langgraph(path: Path, layout: str) -> None:
    every = LANGGRAPH["items"]
    items = read(written(path, {"object": LANGGRAPH, "list": every, "lines": lines(every)}[layout]), "langgraph")

    assert [(each.namespace, each.key, each.value) for each in items[:4]] == [
        (("users", "alice", "memories"), "a1", {"kind": "Memory", "content": {"content": "Prefers dark mode"}}),
        (("users", "alice"), "profile", {"name": "Alice", "age": 31, "pets": []}),
        (("users", "bob"), "b1", {"data": "Bob plays chess"}),
        (("users",), "empty", {}),
    ]
    assert told(items[4:]) == [("item 5", "It is not an item of a store: there is no `value`.")]
    assert items[0].created_at == datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize("is_zipped", [False, True])
def test_chatgpt(tmp_path: Path, is_zipped: bool) -> None:
    plain, archive = tmp_path / "conversations.json", tmp_path / "export.zip"
    file = zipped(archive, conversations=chatgpt(), user={"id": 1}) if is_zipped else written(plain, chatgpt())

    capital, louvre, *refused = read(file, "chatgpt")

    assert capital == ForeignTurn(
        place="conversation 1, turn 1",
        session_id="chatgpt-c-1",
        user="What is the capital of France?",
        assistant="Paris.",
        created_at=datetime(2024, 5, 1, 10, 40, 0, 500000, UTC),
    )
    assert (louvre.user, louvre.assistant) == ("[image]\n\nIs this it?", "Yes, the Louvre.")
    assert [each.place for each in refused] == ["conversation 1, turn 3", "conversation 2", "conversation 3"]
    assert "has no answer" in refused[0].reason


def test_a_conversation_without_its_last_message_is_followed_along_its_newest_branch(path: Path) -> None:
    conversation = {**chatgpt()[0], "current_node": None}
    circle = {"a": {"parent": "b", "children": ["b"]}, "b": {"parent": "a", "children": ["a"], "message": None}}
    looped = {"conversation_id": "c-9", "mapping": circle, "current_node": "a"}

    items = read(written(path, [conversation, looped]), "chatgpt")

    assert next(each.user for each in items if isinstance(each, ForeignTurn)) == "What is the capital of France?"


@pytest.mark.parametrize("form", ["file", "archive", "folder"])
def test_claude(tmp_path: Path, form: str) -> None:
    file, has_memories = written(tmp_path / "conversations.json", CLAUDE), form != "file"
    if form == "archive":
        file = zipped(tmp_path / "export.zip", conversations=CLAUDE, memories=REMEMBERED)
    elif form == "folder":
        file = tmp_path / "unpacked"
        file.mkdir()
        written(file / "conversations.json", CLAUDE)
        written(file / "memories.json", REMEMBERED)
        written(file / "users.json", [{"uuid": "u"}])

    items = read(file, "claude")

    turn, *refused = items[:3]
    assert (turn.session_id, turn.user) == ("claude-u-1", "Which tea is it?\n\n[file: tea.txt]")
    assert (turn.assistant, turn.created_at) == ("Earl Grey.", datetime(2025, 3, 1, 8, 0, 1, tzinfo=UTC))
    assert [type(each) for each in refused] == [RefusedItem, RefusedItem]
    remembered = read(written(tmp_path / "memories.json", REMEMBERED), "claude")
    assert [(each.text, each.tags) for each in remembered] == [
        ("Mara runs a small bakery in Lund.", ("Work context",)),
        ("Likes tea.", ("Personal context",)),
        ("The shop opens at six.", ("project:p-1",)),
    ]
    assert [each.text for each in items[3:]] == ([each.text for each in remembered] if has_memories else [])


def test_a_file_longer_than_what_is_read_at_once(path: Path) -> None:
    every = [{"memory": f"Fact {number} {'x' * 300}", "user_id": "alice"} for number in range(3 * CHUNK_CHARS // 300)]

    items = read(written(path, every), "mem0")

    assert [each.text for each in items] == [each["memory"] for each in every]


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.99])
def test_what_comes_before_the_cut_comes_in(path: Path, keep: float) -> None:
    whole = json.dumps(chatgpt()[:1] * 5)

    items = read(written(path, whole[: int(len(whole) * keep)]), "chatgpt")

    assert isinstance(items[-1], RefusedItem)
    assert "cut off" in items[-1].reason
    assert len(items) == 3 * int(5 * keep) + 1


def test_an_archive_that_cannot_be_unpacked_and_files_of_nobody(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "export.zip", conversations=chatgpt())
    archive.write_bytes(archive.read_bytes()[:200] + b"damaged!" * 9 + archive.read_bytes()[272:])
    with pytest.raises(Invalid, match="cannot be unpacked"):
        list(find_format("chatgpt").read(archive))
    for number, content in enumerate(["", "{}", "[]", "hello", '{"a": 1}', "\x00\xff"]):
        with pytest.raises(Invalid, match="can be imported"):
            recognise(written(tmp_path / f"{number}.json", content))
    with pytest.raises(Invalid, match="mem0"):
        find_format("evernote")


@pytest.mark.parametrize("reader", FORMATS, ids=lambda each: each.name)
@given(
    content=st.one_of(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(
                    st.sampled_from(
                        "results memory mapping message author content parts chat_messages sender text type name "
                        "observations value namespace items from to uuid id conversation_id current_node parent".split()
                    ),
                    inner,
                    max_size=5,
                )
            ),
            max_leaves=25,
        ).map(json.dumps),
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_file_makes_a_reader_fail(tmp_path: Path, reader: Any, content: str) -> None:
    path = tmp_path / "any.json"
    path.write_text(content, "utf-8", errors="replace")

    reader.recognises(path)
    for item in reader.read(path):
        assert item.place
        assert isinstance(item, RefusedItem) or (item.text if isinstance(item, ForeignMemory) else item.user)


def test_a_long_text_becomes_several_notes_and_loses_nothing() -> None:
    text = "First sentence. " * 40 + "x" * 1200 + " end."

    pieces = split_note(text)

    assert max(map(len, pieces)) <= 500
    assert "".join("".join(pieces).split()) == "".join(text.split())


class TestIntoAStore:
    """What becomes of it."""

    @pytest.fixture
    def wellkept(self) -> Iterator[Wellkept]:
        with Wellkept(":memory:", settings=Settings(embedder="off")) as opened:
            yield opened

    def test_memories_keep_their_time_and_say_where_they_come_from(self, wellkept: Wellkept, path: Path) -> None:
        acme, file = wellkept.tenant("acme"), written(path, MEM0)

        tried = acme.data.import_(file, agent="atlas", dry_run=True)
        assert acme.agents.list() == []
        done = acme.data.import_(file, agent="atlas")
        again = acme.data.import_(file, agent="atlas")

        assert (tried.format, tried.added, tried.refused_count) == ("mem0", {"memories": 3}, 2)
        assert (done.added, again.added, again.present) == (tried.added, {}, {"memories": 3})
        assert [(each.place, each.reason) for each in done.refused] == [
            ("memory 3", "It has no text under `memory`."),
            ("memory 4", "It is not a memory of mem0: not a JSON object."),
        ]
        (cricket,) = acme.agent("Travel-agent").list()
        assert (cricket.origin, cricket.kind) == (Origin.IMPORT, Kind.NOTE)
        assert cricket.created_at == datetime(2024, 7, 26, 15, 43, 41, 39188, UTC)
        assert {each.text for each in acme.agent("atlas").list()} == {"Is allergic to nuts", "alice likes pizza"}

    def test_conversations_become_sessions(self, wellkept: Wellkept, tmp_path: Path) -> None:
        atlas = wellkept.agent("atlas", "acme")
        for file in (
            zipped(tmp_path / "one.zip", conversations=chatgpt()),
            zipped(tmp_path / "two.zip", conversations=CLAUDE, memories=REMEMBERED),
        ):
            wellkept.tenant("acme").data.import_(file, agent="atlas")
            assert wellkept.tenant("acme").data.import_(file, agent="atlas").added == {}

        assert {session.id for session in atlas.sessions.list()} == {"chatgpt-c-1", "claude-u-1"}
        said = atlas.sessions.messages("chatgpt-c-1")
        assert [each.content for each in said[:2]] == ["What is the capital of France?", "Paris."]
        assert said[0].created_at == datetime(2024, 5, 1, 10, 40, 0, 500000, UTC)
        assert len(atlas.list()) == 3

    @pytest.mark.parametrize(
        ("name", "content"), [("mcp-memory", lines(GRAPH)), ("langgraph", LANGGRAPH)], ids=["mcp-memory", "langgraph"]
    )
    def test_a_format_can_be_named(self, wellkept: Wellkept, path: Path, name: str, content: Any) -> None:
        acme = wellkept.tenant("acme")

        done = acme.data.import_(written(path, content), format=name, agent="atlas")

        expected = {"mcp-memory": {"memories": 4}, "langgraph": {"items": 4}}
        assert (done.format, done.added) == (name, expected[name])
        assert acme.data.import_formats() == ("wellkept", "chatgpt", "claude", "mcp-memory", "langgraph", "mem0")


def test_metadata_comes_along(tmp_path: Path) -> None:
    entry = {"memory": "Likes cricket", "user_id": "alice", "metadata": {"city": "Oslo", "stars": 4}}

    (item,) = read(written(tmp_path / "mem0.json", [entry]), "mem0")

    assert item.metadata == {"city": "Oslo", "stars": 4}
