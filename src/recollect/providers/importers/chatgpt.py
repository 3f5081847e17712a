"""ChatGPT's data export: `conversations.json`, alone or in its ZIP archive; a conversation is a tree of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recollect.model import ForeignItem, Refused
from recollect.providers.importers import files
from recollect.providers.importers.turns import Said, turns

SHOWN = ("text", "multimodal_text")
_MEMBER = re.compile(r"conversations.*\.json", re.IGNORECASE)
_SIGNS = re.compile(r'"mapping"\s*:\s*\{')


class ChatGpt:
    """`ports.ForeignFormat`."""

    name = "chatgpt"

    def recognises(self, path: Path) -> bool:
        return _SIGNS.search(files.head(path, _MEMBER)) is not None

    def read(self, path: Path) -> Iterator[ForeignItem]:
        """Raises: Invalid, OSError."""
        return files.items(path, _MEMBER, ["conversations"], what="conversation", made=_conversation)


def _conversation(place: str, conversation: Any) -> Iterator[ForeignItem]:
    tree = conversation.get("mapping") if isinstance(conversation, dict) else None
    if not isinstance(tree, dict):
        yield Refused(place=place, reason="It is no conversation: there is no `mapping`.")
        return
    named = conversation.get("conversation_id") or conversation.get("id")
    session_id = files.session_named(named, by="chatgpt-")
    if session_id is None:
        yield Refused(place=place, reason="It has no id, so that a second import would double it.")
        return
    began = files.moment(conversation.get("create_time"))
    path = _path(tree, conversation.get("current_node"))
    said = [message for node in path if (message := _said(node.get("message"))) is not None]
    yield from turns(place, session_id, (Said(each.is_user, each.text, each.at or began) for each in said))


def _path(tree: dict[str, Any], last: object) -> list[dict[str, Any]]:
    """The messages up to the one shown last: what was edited or regenerated lies on other branches."""
    node = tree.get(last) if isinstance(last, str) else None
    if not isinstance(node, dict):
        node = _deepest(tree)
    path: list[dict[str, Any]] = []
    while isinstance(node, dict) and len(path) <= len(tree):  # a circle would have no end
        path.append(node)
        parent = node.get("parent")
        node = tree.get(parent) if isinstance(parent, str) else None
    return path[::-1]


def _deepest(tree: dict[str, Any]) -> dict[str, Any] | None:
    """Where the newest branch ends, in an export that does not say."""
    leaves = [node for node in tree.values() if isinstance(node, dict) and not node.get("children")]
    times = [(_time(node), place) for place, node in enumerate(leaves)]
    return leaves[max(times)[1]] if times else None


def _time(node: dict[str, Any]) -> float:
    message = node.get("message")
    time = message.get("create_time") if isinstance(message, dict) else None
    return float(time) if isinstance(time, int | float) else 0.0


def _said(message: Any) -> Said | None:
    """What a person saw of a message; None for all that is between the program and its tools."""
    if not isinstance(message, dict):
        return None
    author, content, details = (_object(message.get(name)) for name in ("author", "content", "metadata"))
    role = author.get("role")
    if role not in ("user", "assistant") or content.get("content_type") not in SHOWN:
        return None
    is_hidden = details.get("is_visually_hidden_from_conversation") or message.get("channel") == "analysis"
    if is_hidden or message.get("weight") == 0 or message.get("recipient") not in (None, "all"):
        return None
    parts = content.get("parts")
    text = "\n\n".join(_part(part) for part in parts).strip() if isinstance(parts, list) else ""
    return Said(role == "user", text, files.moment(message.get("create_time"))) if text else None


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    described = _object(part)
    kind = str(described.get("content_type") or "file").partition("_")[0]
    return files.text_of(described, "text") or f"[{kind}]"


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
