"""ChatGPT's data export: `conversations.json`, alone or in its ZIP archive. A conversation is a tree of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wellkept.importers import files
from wellkept.importers.files import ChatMessage, pair_turns
from wellkept.model import ForeignItem, RefusedItem

SHOWN_TYPES = ("text", "multimodal_text")
"""Content types that are shown to a person."""
_MEMBER = re.compile(r"conversations.*\.json", re.IGNORECASE)
_SIGNS = re.compile(r'"mapping"\s*:\s*\{')


class ChatGpt:
    """`importers.format.ForeignFormat` of ChatGPT."""

    name = "chatgpt"

    def recognises(self, path: Path) -> bool:
        return _SIGNS.search(files.read_head(path, _MEMBER)) is not None

    def read(self, path: Path) -> Iterator[ForeignItem]:
        """Raises: Invalid, OSError."""
        return files.read_items(path, _MEMBER, ["conversations"], what="conversation", parse=_parse_conversation)


def _parse_conversation(place: str, conversation: Any) -> Iterator[ForeignItem]:
    tree = conversation.get("mapping") if isinstance(conversation, dict) else None
    if not isinstance(tree, dict):
        yield RefusedItem(place=place, reason="It is not a conversation: there is no `mapping`.")
        return
    named = conversation.get("conversation_id") or conversation.get("id")
    session_id = files.make_session_id(named, by="chatgpt-")
    if session_id is None:
        yield RefusedItem(place=place, reason="It has no id, so a second import would duplicate it.")
        return
    started = files.parse_time(conversation.get("create_time"))
    path = _find_path(tree, conversation.get("current_node"))
    messages = [message for node in path if (message := _parse_message(node.get("message"))) is not None]
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


def _parse_message(message: Any) -> ChatMessage | None:
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
