"""Claude's data export: `conversations.json` and `memories.json`, alone or in its ZIP archive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from wellkept.importers import files
from wellkept.importers.files import ChatMessage, pair_turns
from wellkept.model import ForeignItem, ForeignMemory, RefusedItem, Scope

_MEMBER = re.compile(r"(conversations|memories).*\.jsonl?", re.IGNORECASE)
_HEADING = re.compile(r"(?:#+\s*|\*\*)(.+?)(?:\*\*)?:?")


class Claude:
    """`importers.format.ForeignFormat` of Claude."""

    name = "claude"

    def recognises(self, path: Path) -> bool:
        start = files.read_head(path, _MEMBER)
        return re.search(r'"(chat_messages|conversations_memory)"\s*:', start) is not None

    def read(self, path: Path) -> Iterator[ForeignItem]:
        """Raises: Invalid, OSError."""
        with files.open_members(path, _MEMBER) as streams:
            for name, stream in streams:
                yield from _read_file(stream, "" if len(streams) == 1 else f"{name}, ")


def _read_file(stream: IO[str], where: str) -> Iterator[ForeignItem]:
    number = 0
    try:
        for entry in files.iter_entries(stream, ["conversations"]):
            number += 1
            if isinstance(entry, dict) and "chat_messages" not in entry and "conversations_memory" in entry:
                yield from _parse_memories(f"{where}entry {number}", entry)
            else:
                yield from _parse_conversation(f"{where}conversation {number}", entry)
    except files.DamagedFile as error:
        yield RefusedItem(place=f"{where}after entry {number}", reason=f"{error}.")


def _parse_conversation(place: str, conversation: Any) -> Iterator[ForeignItem]:
    messages = conversation.get("chat_messages") if isinstance(conversation, dict) else None
    if not isinstance(messages, list):
        yield RefusedItem(place=place, reason="It is not a conversation: there are no `chat_messages`.")
        return
    session_id = files.make_session_id(conversation.get("uuid"), by="claude-")
    if session_id is None:
        yield RefusedItem(place=place, reason="It has no id, so a second import would duplicate it.")
        return
    yield from pair_turns(
        place, session_id, (parsed for each in messages if (parsed := _parse_message(each)) is not None)
    )


def _parse_message(message: Any) -> ChatMessage | None:
    if not isinstance(message, dict) or message.get("sender") not in ("human", "assistant"):
        return None
    listed = message.get("content")
    blocks = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    texts = [files.first_text(each, "text") for each in blocks if each.get("type") == "text"]
    text = "\n\n".join(filter(None, texts)) or files.first_text(message, "text")
    is_user = message["sender"] == "human"
    attachments = (
        [*_render_attachments(message.get("attachments")), *_render_attachments(message.get("files"))]
        if is_user
        else []
    )
    text = "\n\n".join(filter(None, [text.strip(), *attachments]))
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
