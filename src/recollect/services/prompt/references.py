"""Pieces that do not fit a prompt, stored as details, so that a line of reference is all they take.

The same pieces of the same session are stored once, as long as this program runs and the detail is there.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence

from recollect.errors import NotFound, ReadOnly
from recollect.model import Owner, Role
from recollect.policy.details.references import reference
from recollect.policy.prompt.prompt_log import digest
from recollect.policy.prompt.window import Form, Piece
from recollect.services.details.details import Details

REMEMBERED = 10_000
"""How many stored texts are recognised when they are to be stored again."""

log = logging.getLogger("recollect")

CONVERSATION, TOOL_RESULT, MEMORIES = "conversation", "tool_result", "memories"


class Move:
    """Stores pieces and answers with their reference."""

    def __init__(self, details: Details) -> None:
        self._details = details
        self._lock = threading.Lock()
        self._keys: OrderedDict[tuple[Owner, str, str], str] = OrderedDict()

    def __call__(self, owner: Owner, session_id: str, pieces: Sequence[Piece], what: str) -> str:
        """The placeholder of a detail that holds these pieces; empty where nothing can be written.

        Raises: StoreError.
        """
        text = _text(pieces)
        place = owner, session_id, digest(text)
        with self._lock:
            key = self._keys.get(place)
        if key is None or not self._is_there(owner, key):
            type = _type(pieces)
            try:
                key = self._details.store(owner, text, description=what, type=type, session_id=session_id).key
            except ReadOnly as error:
                log.warning("Left out of a prompt without a reference: %s", error)
                return ""
            with self._lock:
                self._keys[place] = key
                if len(self._keys) > REMEMBERED:
                    self._keys.popitem(last=False)
        return reference(key, what)

    def forget(self, tenant: str) -> None:
        """Let go of what was stored for a tenant's prompts; the details themselves stay."""
        with self._lock:
            for place in [place for place in self._keys if place[0].tenant == tenant]:
                del self._keys[place]

    def _is_there(self, owner: Owner, key: str) -> bool:
        try:
            return self._details.get(owner, key).is_active
        except NotFound:
            return False


def _text(pieces: Sequence[Piece]) -> str:
    """What a tool said is kept as it is, so that JSON stays JSON; turns have who said them in front."""
    if len(pieces) == 1 and pieces[0].form is not Form.TURN:
        return pieces[0].text
    return "\n\n".join(
        f"Turn {piece.turn}, {piece.role}:\n{piece.text}" if piece.form is Form.TURN else piece.text for piece in pieces
    )


def _type(pieces: Sequence[Piece]) -> str:
    if pieces[0].form is not Form.ITEM:
        return CONVERSATION
    return MEMORIES if pieces[0].memory is not None and pieces[0].memory.role is not Role.TOOL_RESULT else TOOL_RESULT
