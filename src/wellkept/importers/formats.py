"""Formats of other memory programs, parsed to memories, items and turns.

- chatgpt: ChatGPT's data export, `conversations.json`, alone or in its ZIP archive, with messages as a tree.
- claude: Claude's data export, `conversations.json` and `memories.json`, alone or in its ZIP archive.
- mcp-memory: the MCP memory server's `memory.jsonl`, entities with observations, and relations between them.
- langgraph: LangGraph stores, items with a namespace, a key and a value, as a list, under `items`, or one per line.
- mem0: mem0's `get_all` or export as JSON, a list, or an object with `results` and perhaps `relations`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from wellkept.errors import Invalid
from wellkept.importers import files
from wellkept.importers.files import ChatMessage, ForeignFormat, pair_turns
from wellkept.model import ForeignItem, ForeignMemory, ForeignValue, RefusedItem, Scope

OWN = "wellkept"
"""Name of wellkept's own export format."""

SHOWN_TYPES = ("text", "multimodal_text")
"""Content types of ChatGPT that are shown to a person."""

GRAPH = ("entities", "relations")
NO_ID = "It has no id, so a second import would duplicate it."


def _parse_chatgpt(place: str, conversation: Any) -> Iterator[ForeignItem]:
    tree = conversation.get("mapping") if isinstance(conversation, dict) else None
    if not isinstance(tree, dict):
        yield RefusedItem(place=place, reason="It is not a conversation: there is no `mapping`.")
        return
    named = conversation.get("conversation_id") or conversation.get("id")
    session_id = files.make_session_id(named, by="chatgpt-")
    if session_id is None:
        yield RefusedItem(place=place, reason=NO_ID)
        return
    started = files.parse_time(conversation.get("create_time"))
    path = _find_path(tree, conversation.get("current_node"))
    messages = [message for node in path if (message := _parse_chatgpt_message(node.get("message"))) is not None]
    yield from pair_turns(
        place, session_id, (ChatMessage(each.is_user, each.text, each.at or started) for each in messages)
    )


def _find_path(tree: dict[str, Any], last: object) -> list[dict[str, Any]]:
    """Return the messages up to the last one shown; edited and regenerated ones are on other branches."""
    node = tree.get(last) if isinstance(last, str) else None
    if not isinstance(node, dict):
        node = _find_newest_leaf(tree)
    path: list[dict[str, Any]] = []
    # The length is bounded because a damaged tree may contain a cycle.
    while isinstance(node, dict) and len(path) <= len(tree):
        path.append(node)
        parent = node.get("parent")
        node = tree.get(parent) if isinstance(parent, str) else None
    return path[::-1]


def _find_newest_leaf(tree: dict[str, Any]) -> dict[str, Any] | None:
    """Return the end of the newest branch, for an export that does not name the current one."""
    leaves = [node for node in tree.values() if isinstance(node, dict) and not node.get("children")]
    times = [(_get_time(node), place) for place, node in enumerate(leaves)]
    return leaves[max(times)[1]] if times else None


def _get_time(node: dict[str, Any]) -> float:
    message = node.get("message")
    time = message.get("create_time") if isinstance(message, dict) else None
    return float(time) if isinstance(time, int | float) else 0.0


def _parse_chatgpt_message(message: Any) -> ChatMessage | None:
    """Return the message a person saw; None for messages between the program and its tools."""
    if not isinstance(message, dict):
        return None
    author, content, details = (_as_object(message.get(name)) for name in ("author", "content", "metadata"))
    role = author.get("role")
    if role not in ("user", "assistant") or content.get("content_type") not in SHOWN_TYPES:
        return None
    is_hidden = details.get("is_visually_hidden_from_conversation") or message.get("channel") == "analysis"
    if is_hidden or message.get("weight") == 0 or message.get("recipient") not in (None, "all"):
        return None
    parts = content.get("parts")
    text = "\n\n".join(_render_part(part) for part in parts).strip() if isinstance(parts, list) else ""
    return ChatMessage(role == "user", text, files.parse_time(message.get("create_time"))) if text else None


def _render_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    described = _as_object(part)
    kind = str(described.get("content_type") or "file").partition("_")[0]
    return files.first_text(described, "text") or f"[{kind}]"


def _as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _parse_claude(place: str, conversation: Any) -> Iterator[ForeignItem]:
    if (
        isinstance(conversation, dict)
        and "chat_messages" not in conversation
        and "conversations_memory" in conversation
    ):
        yield from _parse_memories(place, conversation)
        return
    messages = conversation.get("chat_messages") if isinstance(conversation, dict) else None
    if not isinstance(messages, list):
        yield RefusedItem(place=place, reason="It is not a conversation: there are no `chat_messages`.")
        return
    session_id = files.make_session_id(conversation.get("uuid"), by="claude-")
    if session_id is None:
        yield RefusedItem(place=place, reason=NO_ID)
        return
    yield from pair_turns(
        place, session_id, (parsed for each in messages if (parsed := _parse_claude_message(each)) is not None)
    )


def _parse_claude_message(message: Any) -> ChatMessage | None:
    if not isinstance(message, dict) or message.get("sender") not in ("human", "assistant"):
        return None
    listed = message.get("content")
    blocks = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    texts = [files.first_text(each, "text") for each in blocks if each.get("type") == "text"]
    text = "\n\n".join(filter(None, texts)) or files.first_text(message, "text")
    is_user = message["sender"] == "human"
    attached = [message.get(name) for name in ("attachments", "files")] if is_user else []
    text = "\n\n".join(filter(None, [text.strip(), *(name for each in attached for name in _render_attachments(each))]))
    return ChatMessage(is_user, text, files.parse_time(message.get("created_at"))) if text else None


def _render_attachments(listed: Any) -> list[str]:
    """Render files by name only: their content belongs among the documents."""
    described = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    names = [files.first_text(each, "file_name") for each in described]
    return [f"[file: {name}]" for name in names if name]


def _parse_memories(place: str, entry: dict[str, Any]) -> Iterator[ForeignItem]:
    """Yield Claude's memories of a person and their projects, one note per paragraph, tagged with its heading."""
    projects = entry.get("project_memories")
    texts = [("", entry.get("conversations_memory"))]
    texts += list(projects.items()) if isinstance(projects, dict) else []
    for project, text in texts:
        heading = ""
        for paragraph in re.split(r"\n\s*\n", text) if isinstance(text, str) else ():
            if found := _HEADING.fullmatch(paragraph.strip()):
                heading = found[1]
                continue
            for piece in files.split_note(paragraph) if paragraph.strip() else ():
                marks = files.make_tags(heading, f"project:{project}" if project else None)
                yield ForeignMemory(place=place, text=piece, tags=marks, scope=Scope.USER.value)


def _read_graph(stream: IO[str]) -> Iterator[ForeignItem]:
    """Read one entry per line, so that a damaged one affects no other; or the whole graph in one object."""
    text = stream.read(files.MAX_ENTRY_CHARS)
    graph = _decode(text)
    if isinstance(graph, dict) and any(isinstance(graph.get(name), list) for name in GRAPH):
        listed = [each for name in GRAPH for each in graph.get(name) or ()]
        for number, entry in enumerate(listed, 1):
            yield from _parse_entity(f"entry {number}", entry)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield from _parse_entity(f"line {number}", _decode(line))


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _parse_entity(place: str, entry: Any) -> Iterator[ForeignItem]:
    if not isinstance(entry, dict):
        yield RefusedItem(place=place, reason="It is not a JSON object.")
        return
    name, kind = files.first_text(entry, "name"), files.first_text(entry, "entityType")
    if files.first_text(entry, "from") and files.first_text(entry, "to"):
        texts = [" ".join(files.first_text(entry, each) for each in ("from", "relationType", "to"))]
        marks = files.make_tags("relation")
    elif name:
        about = f"{name} ({kind})" if kind else name
        observations = entry.get("observations")
        valid = (
            [each for each in observations if isinstance(each, str) and each.strip()]
            if isinstance(observations, list)
            else []
        )
        texts = [f"{about}: {each}" for each in valid] or [f"{name} is known as {kind}" if kind else name]
        marks = files.make_tags(kind, name)
        if isinstance(observations, list) and len(valid) < len(observations):
            yield RefusedItem(place=place, reason="One of its observations is not text.")
    else:
        yield RefusedItem(place=place, reason="It is neither an entity with a name nor a relation from one to another.")
        return
    for text in texts:
        for piece in files.split_note(text):
            yield ForeignMemory(
                place=place, text=piece, tags=marks, created_at=files.parse_time(entry.get("createdAt"))
            )


def _parse_langgraph(place: str, entry: Any) -> Iterator[ForeignItem]:
    if not isinstance(entry, dict) or "value" not in entry:
        yield RefusedItem(place=place, reason="It is not an item of a store: there is no `value`.")
        return
    where, key = entry.get("namespace", entry.get("prefix")), entry.get("key")
    names = where.split(".") if isinstance(where, str) else where if isinstance(where, list) else []
    value = _decode_value(entry["value"])
    if not names or not isinstance(key, str) or value is None:
        yield RefusedItem(place=place, reason="It has no namespace, no key or no value.")
        return
    minutes = entry.get("ttl_minutes")
    yield ForeignValue(
        place=place,
        namespace=tuple(names),
        key=key,
        value=value,
        created_at=files.parse_time(entry.get("created_at")),
        expires_at=files.parse_time(entry.get("expires_at")),
        # LangGraph starts a lifetime again with each reading.
        sliding_ttl=60.0 * minutes if isinstance(minutes, int | float) else None,
    )


def _decode_value(value: Any) -> Any:
    """Decode a value that a database returns as JSON text."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _parse_mem0(place: str, entry: Any) -> Iterator[ForeignItem]:
    if not isinstance(entry, dict):
        yield RefusedItem(place=place, reason="It is not a memory of mem0: not a JSON object.")
        return
    related = [files.first_text(entry, name) for name in ("source", "relationship", "target", "destination")]
    text = files.first_text(entry, "memory", "text", "content") or (
        " ".join(filter(None, related)) if related[1] else ""
    )
    if not text:
        yield RefusedItem(place=place, reason="It has no text under `memory`.")
        return
    details = entry["metadata"] if isinstance(entry.get("metadata"), dict) else {}
    # Unusable names are refused later: without its user, a memory would be everybody's.
    user = entry.get("user_id")
    for piece in files.split_note(text):
        yield ForeignMemory(
            place=place,
            text=piece,
            agent=files.make_agent_id(entry.get("agent_id")),
            tags=files.make_tags(entry.get("categories"), details.get("category"), details.get("categories")),
            scope=None if user is None else Scope.USER.value,
            user=None if user is None else str(user),
            session_id=files.make_session_id(entry.get("run_id")),
            created_at=files.parse_time(entry.get("created_at")),
            metadata=details,
        )


_HEADING = re.compile(r"(?:#+\s*|\*\*)(.+?)(?:\*\*)?:?")

FORMATS: Sequence[ForeignFormat] = (
    ForeignFormat(
        "chatgpt", r"conversations.*\.json", [r'"mapping"\s*:\s*\{'], "conversation", _parse_chatgpt, ["conversations"]
    ),
    ForeignFormat(
        "claude",
        r"(conversations|memories).*\.jsonl?",
        [r'"(chat_messages|conversations_memory)"\s*:'],
        "entry",
        _parse_claude,
        ["conversations"],
    ),
    ForeignFormat(
        "mcp-memory",
        r"memory.*\.jsonl?",
        [r'^\s*\{\s*"type"\s*:\s*"(entity|relation)"|"entityType".*"observations"|"observations".*"entityType"'],
        "line",
        _parse_entity,
        read_stream=_read_graph,
    ),
    ForeignFormat(
        "langgraph",
        r".*\.jsonl?",
        [r'"(namespace|prefix)"\s*:', r'"key"\s*:', r'"value"\s*:'],
        "item",
        _parse_langgraph,
        lists=("items", "results"),
    ),
    ForeignFormat(
        "mem0",
        r".*\.jsonl?",
        [r'"memory"\s*:', r'"(user_id|agent_id|run_id|app_id|hash|categories|score)"\s*:'],
        "memory",
        _parse_mem0,
        lists=("results", "memories", "relations"),
    ),
)
"""Formats in the order in which they are tried on a file, most specific first."""


def get_names() -> tuple[str, ...]:
    """Return the names of the formats of other programs."""
    return tuple(each.name for each in FORMATS)


def find_format(name: str) -> ForeignFormat:
    """Return the format of a name. Raises: Invalid."""
    for each in FORMATS:
        if each.name == name:
            return each
    raise Invalid(f"There is no format {name[:40]!r}; choose {', '.join([OWN, *get_names()])}.")


def recognise(path: Path) -> ForeignFormat:
    """Return the format of a file. Raises: Invalid."""
    try:
        for each in FORMATS:
            if each.recognises(path):
                return each
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error
    known = ", ".join([OWN, *get_names()])
    raise Invalid(f"{path.name}: is not in a format that can be imported; name the format: {known}.")
