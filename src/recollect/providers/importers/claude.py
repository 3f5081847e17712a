"""Claude's data export: `conversations.json` and, of what it remembers, `memories.json`; alone or in the ZIP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from recollect.model import ForeignItem, ForeignMemory, Refused, Scope
from recollect.providers.importers import files
from recollect.providers.importers.turns import Said, turns

_MEMBER = re.compile(r"(conversations|memories).*\.jsonl?", re.IGNORECASE)
_HEADING = re.compile(r"(?:#+\s*|\*\*)(.+?)(?:\*\*)?:?")


class Claude:
    """`ports.ForeignFormat`."""

    name = "claude"

    def recognises(self, path: Path) -> bool:
        start = files.head(path, _MEMBER)
        return re.search(r'"(chat_messages|conversations_memory)"\s*:', start) is not None

    def read(self, path: Path) -> Iterator[ForeignItem]:
        """Raises: Invalid, OSError."""
        with files.opened(path, _MEMBER) as streams:
            for name, stream in streams:
                yield from _file(stream, "" if len(streams) == 1 else f"{name}, ")


def _file(stream: IO[str], where: str) -> Iterator[ForeignItem]:
    number = 0
    try:
        for entry in files.entries(stream, ["conversations"]):
            number += 1
            if isinstance(entry, dict) and "chat_messages" not in entry and "conversations_memory" in entry:
                yield from _remembered(f"{where}entry {number}", entry)
            else:
                yield from _conversation(f"{where}conversation {number}", entry)
    except files.Damaged as error:
        yield Refused(place=f"{where}after entry {number}", reason=f"{error}.")


def _conversation(place: str, conversation: Any) -> Iterator[ForeignItem]:
    messages = conversation.get("chat_messages") if isinstance(conversation, dict) else None
    if not isinstance(messages, list):
        yield Refused(place=place, reason="It is no conversation: there are no `chat_messages`.")
        return
    session_id = files.session_named(conversation.get("uuid"), by="claude-")
    if session_id is None:
        yield Refused(place=place, reason="It has no id, so that a second import would double it.")
        return
    yield from turns(place, session_id, (said for each in messages if (said := _said(each)) is not None))


def _said(message: Any) -> Said | None:
    if not isinstance(message, dict) or message.get("sender") not in ("human", "assistant"):
        return None
    listed = message.get("content")
    blocks = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    shown = [files.text_of(each, "text") for each in blocks if each.get("type") == "text"]
    text = "\n\n".join(filter(None, shown)) or files.text_of(message, "text")
    is_user = message["sender"] == "human"
    given = [*_attached(message.get("attachments")), *_attached(message.get("files"))] if is_user else []
    text = "\n\n".join(filter(None, [text.strip(), *given]))
    return Said(is_user, text, files.moment(message.get("created_at"))) if text else None


def _attached(listed: Any) -> list[str]:
    """A file by its name: what is in it belongs among the documents."""
    described = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    names = [files.text_of(each, "file_name") for each in described]
    return [f"[file: {name}]" for name in names if name]


def _remembered(place: str, entry: dict[str, Any]) -> Iterator[ForeignItem]:
    """What Claude keeps about a person and their projects, a note for each paragraph, with its heading as a tag."""
    projects = entry.get("project_memories")
    texts = [("", entry.get("conversations_memory"))]
    texts += list(projects.items()) if isinstance(projects, dict) else []
    for project, text in texts:
        heading = ""
        for paragraph in re.split(r"\n\s*\n", text) if isinstance(text, str) else ():
            if found := _HEADING.fullmatch(paragraph.strip()):
                heading = found[1]
                continue
            for piece in files.note_pieces(paragraph) if paragraph.strip() else ():
                marks = files.tags(heading, f"project:{project}" if project else None)
                yield ForeignMemory(place=place, text=piece, tags=marks, scope=Scope.USER.value)
