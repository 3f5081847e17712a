"""Store pieces that do not fit a prompt as details, and put a one-line reference in their place.

Equal pieces of a session are stored once, as long as this process runs and the detail exists.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence

from wellkept.details.details import Details
from wellkept.details.rules_keys import reference
from wellkept.errors import NotFound, ReadOnly
from wellkept.model import Owner, Role
from wellkept.prompt.rules_prompt_log import digest
from wellkept.prompt.rules_window import Form, Piece

MAX_REMEMBERED = 10_000
"""Number of stored texts remembered, so that they are not stored again."""

log = logging.getLogger("wellkept")

CONVERSATION, MESSAGE, TOOL_RESULT, MEMORIES = "conversation", "message", "tool_result", "memories"


class OffloadPieces:
    """Service that stores pieces as a detail and returns its reference."""

    def __init__(self, details: Details) -> None:
        self._details = details
        self._lock = threading.Lock()
        self._keys: OrderedDict[tuple[Owner, str, str], str] = OrderedDict()

    def __call__(self, owner: Owner, session_id: str, pieces: Sequence[Piece], what: str) -> str:
        """Return the placeholder of a detail that holds these pieces; empty if the store is read-only.

        Raises: StoreError.
        """
        text = _join_pieces(pieces)
        cache_key = owner, session_id, digest(text)
        with self._lock:
            key = self._keys.get(cache_key)
        if key is None or not self._has_detail(owner, key):
            type = _detail_type(pieces)
            try:
                key = self._details.store(owner, text, description=what, type=type, session_id=session_id or None).key
            except ReadOnly as error:
                log.warning("Pieces were left out of a prompt without a reference: %s", error)
                return ""
            with self._lock:
                self._keys[cache_key] = key
                if len(self._keys) > MAX_REMEMBERED:
                    self._keys.popitem(last=False)
        return reference(key, what)

    def forget(self, tenant: str) -> None:
        """Drop the remembered keys of a tenant; the details themselves stay."""
        with self._lock:
            for cache_key in [cache_key for cache_key in self._keys if cache_key[0].tenant == tenant]:
                del self._keys[cache_key]

    def _has_detail(self, owner: Owner, key: str) -> bool:
        try:
            return self._details.get(owner, key).is_active
        except NotFound:
            return False


def _join_pieces(pieces: Sequence[Piece]) -> str:
    """Join pieces to one text. A single tool result stays unchanged, so that JSON stays JSON; turns name the role."""
    if len(pieces) == 1 and pieces[0].form is not Form.TURN:
        return pieces[0].text
    return "\n\n".join(
        f"Turn {piece.turn}, {piece.role}:\n{piece.text}" if piece.form is Form.TURN else piece.text for piece in pieces
    )


def _detail_type(pieces: Sequence[Piece]) -> str:
    if pieces[0].form is not Form.ITEM:
        return CONVERSATION
    if pieces[0].role == Role.USER:
        return MESSAGE
    return MEMORIES if pieces[0].memory is not None and pieces[0].memory.role is not Role.TOOL_RESULT else TOOL_RESULT
