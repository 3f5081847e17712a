"""Validate ids and names.

A tenant id is used in a `SET LOCAL` literal and in shard names, so it is a plain slug. An agent id is part of a URL
(`/api/agents/{agent}`), so it has no slash and no white space.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from datetime import datetime

from wellkept.errors import Invalid
from wellkept.model import Owner

DEFAULT_TENANT = "default"

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_AGENT = re.compile(r"\w[\w.@:+-]{0,127}")
MAX_SESSION_CHARS = 200
MAX_USER_CHARS = 200
_CHANGE_ID = re.compile(r"c-([1-9][0-9]{0,17})", re.ASCII)
_MEMORY_ID = re.compile(r"m-([1-9][0-9]{0,17})")


def check_tenant(tenant: object) -> str:
    """Validate a tenant id. Raises: Invalid."""
    if not isinstance(tenant, str) or not _TENANT.fullmatch(tenant):
        raise Invalid("A tenant id is 1 to 63 ASCII letters, digits or . _ - and begins with a letter or digit.")
    return tenant


def check_agent(agent: object) -> str:
    """Validate an agent id and return it in NFC. Raises: Invalid."""
    if isinstance(agent, str):
        agent = unicodedata.normalize("NFC", agent)
        if _AGENT.fullmatch(agent):
            return agent
    raise Invalid("An agent id is 1 to 128 letters, digits or . _ - @ : + and begins with a letter, digit or _.")


def check_user(user: object) -> str:
    """Validate the id of an end user and return it in NFC. Raises: Invalid."""
    if isinstance(user, str):
        user = unicodedata.normalize("NFC", user)
        # Lone surrogates are not printable. U+FFFD stands for bytes that are not UTF-8: many users would become one.
        if 0 < len(user) <= MAX_USER_CHARS and user.isprintable() and user == user.strip() and "\ufffd" not in user:
            return user
    raise Invalid(
        f"A user is 1 to {MAX_USER_CHARS} printable characters on one line, in UTF-8 and without spaces around them."
    )


def check_owner(
    agent: str, tenant: str = DEFAULT_TENANT, *, user: str | None = None, with_shared: bool = True
) -> Owner:
    """Validate a tenant, an agent id and possibly a user. Raises: Invalid."""
    return Owner(
        check_tenant(tenant), check_agent(agent), None if user is None else check_user(user), with_shared=with_shared
    )


def is_session_id(id: object) -> bool:
    """Return True if a session can have this id."""
    return (
        isinstance(id, str)
        and 0 < len(id) <= MAX_SESSION_CHARS
        and id.isprintable()
        and id == id.strip()
        and "/" not in id
        and id not in (".", "..")
    )


def check_session(id: object) -> str:
    """Validate a session id. Raises: Invalid."""
    if isinstance(id, str) and is_session_id(id):
        return id
    raise Invalid(f"A session id is 1 to {MAX_SESSION_CHARS} printable characters on one line, without a slash.")


def memory_id(seq: int) -> str:
    """Return the public id of an agent's memory number `seq`.

    >>> memory_id(7)
    'm-7'
    """
    return f"m-{seq}"


def memory_seq(id: object) -> int | None:
    """Parse a memory id; return None for anything else, which is then simply not found.

    >>> memory_seq("m-7"), memory_seq("m-07"), memory_seq("robert'); --"), memory_seq(None)
    (7, None, None, None)
    """
    match = _MEMORY_ID.fullmatch(id) if isinstance(id, str) else None
    return int(match.group(1)) if match else None


def is_step_reached(first: str, last: str, step: int) -> bool:
    """Return True if memories with these ids and those between reach the next multiple of `step`.

    >>> is_step_reached("m-8", "m-10", 10), is_step_reached("m-11", "m-19", 10)
    (True, False)
    """
    return (memory_seq(last) or 0) // step > ((memory_seq(first) or 0) - 1) // step


def change_id(seq: int) -> str:
    """Return the public id of an agent's change number `seq`."""
    return f"c-{seq}"


def change_seq(id: str) -> int | None:
    """Parse the id of a change; return None for anything else.

    >>> change_seq("c-3"), change_seq("m-3")
    (3, None)
    """
    match = _CHANGE_ID.fullmatch(id)
    return int(match.group(1)) if match else None


def encode_cursor(listing: str, end: tuple[datetime, str] | str | int) -> str:
    """Return the cursor that continues a listing after this item; one by time stays valid when the item is deleted.

    >>> encode_cursor("agents", "atlas")
    'YWdlbnRzOmF0bGFz'
    """
    last = f"{end[0].isoformat()} {end[1]}" if isinstance(end, tuple) else end
    return base64.urlsafe_b64encode(f"{listing}:{last}".encode()).decode().rstrip("=")
