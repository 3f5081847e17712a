"""Requests to read facts out of a conversation, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wellkept.errors import Invalid
from wellkept.language.names import check_session
from wellkept.language.text import check_text
from wellkept.memory.rules_kinds import check_metadata
from wellkept.model import Role

MAX_MESSAGES = 500
MAX_MESSAGE_CHARS = 100_000
MAX_FACTS = 100
"""Facts that one call stores."""

MESSAGE = 'A message is a mapping such as {"role": "user", "content": "I live in Oslo"}.'

ROLES: Mapping[str, Role] = {
    **{role.value: role for role in Role},
    "tool": Role.TOOL_RESULT,
    "function": Role.TOOL_RESULT,
    "developer": Role.SYSTEM,
    "human": Role.USER,
    "ai": Role.ASSISTANT,
}
"""Speakers by the names that programs give them. Only what users and assistants say is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsRequest:
    """Parameters of `add`."""

    messages: Sequence[tuple[Role, str]]
    session_id: str | None = None
    dry_run: bool = False
    metadata: Mapping[str, Any] | None = None


def check_messages(messages: Sequence[Mapping[str, Any]]) -> list[tuple[Role, str]]:
    """Validate the messages of a conversation, in the form that chat models take.

    Raises: Invalid.
    """
    if len(messages) > MAX_MESSAGES:
        raise Invalid(f"There are {len(messages):,} messages; send at most {MAX_MESSAGES} at a time.")
    return [_check_message(each, number) for number, each in enumerate(messages)]


def join_parts(content: object) -> object:
    """Return the text of a message's parts, as chat models take them; other contents unchanged."""
    if not isinstance(content, list | tuple):
        return content
    texts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _check_message(message: Mapping[str, Any], number: int) -> tuple[Role, str]:
    role, content = message.get("role"), join_parts(message.get("content"))
    if not isinstance(role, str) or role not in ROLES:
        raise Invalid(f"Message {number} has no role; choose user, assistant, system or tool. {MESSAGE}")
    if content is None:
        content = ""
    if not isinstance(content, str):
        raise Invalid(f"The content of message {number} is no text. {MESSAGE}")
    if len(content) > MAX_MESSAGE_CHARS:
        raise Invalid(f"Message {number} has {len(content):,} characters; at most {MAX_MESSAGE_CHARS:,} are read.")
    return ROLES[role], check_text(content, what=f"message {number}")


def parse_conversation(text: str) -> list[dict[str, str]]:
    """Read messages from lines such as `user: I live in Oslo`; a line without a speaker continues the message.

    Text before the first speaker is the user's.

    >>> parse_conversation("user: Hi\\nassistant: Hello,\\nhow are you?")
    [{'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Hello,\\nhow are you?'}]
    """
    found: list[dict[str, str]] = []
    for line in text.splitlines():
        label, colon, rest = line.partition(":")
        role = label.strip().lower()
        if colon and role in ROLES:
            found.append({"role": ROLES[role].value, "content": rest.strip()})
        elif found:
            found[-1]["content"] += f"\n{line}"
        elif line.strip():
            found.append({"role": Role.USER.value, "content": line})
    return found


def make_request(
    messages: Sequence[Mapping[str, Any]],
    *,
    session_id: str | None = None,
    dry_run: bool = False,
    metadata: Mapping[str, Any] | None = None,
) -> FactsRequest:
    """Validate the parameters of `add`. Raises: Invalid."""
    session = None if session_id is None else check_session(session_id)
    return FactsRequest(
        messages=check_messages(messages),
        session_id=session,
        dry_run=dry_run,
        metadata=check_metadata(metadata),
    )
