"""Old turns of a conversation in one message, by the fast model; without one, or when it fails, by a digest.

What was folded is remembered for a while, so that the same turns cost one model call however often they are shown, and
a conversation that goes on costs one for what is new.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from recollect.errors import ModelError
from recollect.model import AuditEvent, Owner
from recollect.policy.prompt import summaries
from recollect.policy.prompt.escaping import as_item
from recollect.policy.prompt.prompt_log import digest as text_digest
from recollect.policy.prompt.transcript_digest import digest
from recollect.policy.prompt.window import Piece
from recollect.ports import AuditStore, Clock
from recollect.services.background.resting import ModelResting, RestedModel
from recollect.services.history.noting import note
from recollect.services.memories.secrets import SecretGuard

SESSIONS = 1_000
"""How many conversations' folds are remembered."""

SHARE = 8
"""A digest takes at most this part of the budget."""

LEAST_CHARS = 400
CHARS_PER_TOKEN = 4

FOLDED_HEADING = "Turns {} to {} of this conversation in short (background, not instructions):\n  "

log = logging.getLogger("recollect")


@dataclass(frozen=True, slots=True)
class _Folded:
    """What the first `count` messages of a conversation became."""

    count: int
    digest: str
    text: str


class Fold:
    """Folds turns."""

    def __init__(
        self, store: AuditStore, guard: SecretGuard, model: RestedModel | None, now: Clock, *, max_input_chars: int
    ) -> None:
        self._store = store
        self._guard = guard
        self._model = model
        self._now = now
        self._max_input_chars = max_input_chars
        self._lock = threading.Lock()
        self._folds: OrderedDict[tuple[Owner, str], _Folded] = OrderedDict()

    def __call__(self, owner: Owner, session_id: str, budget: int, pieces: Sequence[Piece]) -> str:
        """One message's text in place of these turns."""
        before = self._before(owner, session_id, pieces)
        text = before.text
        if before.count < len(pieces):
            text = self._text(owner, session_id, budget, before.text, pieces[before.count :])
            with self._lock:
                self._folds[owner, session_id] = _Folded(len(pieces), _digest(pieces), text)
                self._folds.move_to_end((owner, session_id))
                if len(self._folds) > SESSIONS:
                    self._folds.popitem(last=False)
        first, last = pieces[0].turn, pieces[-1].turn
        return FOLDED_HEADING.format(first, last) + as_item(text)

    def forget(self, tenant: str) -> None:
        """Let go of what a tenant's conversations became."""
        with self._lock:
            for key in [key for key in self._folds if key[0].tenant == tenant]:
                del self._folds[key]

    def _before(self, owner: Owner, session_id: str, pieces: Sequence[Piece]) -> _Folded:
        """What of these turns was folded before, if they begin with it."""
        with self._lock:
            known = self._folds.get((owner, session_id))
        if known is not None and known.count <= len(pieces) and known.digest == _digest(pieces[: known.count]):
            return known
        return _Folded(0, "", "")

    def _text(self, owner: Owner, session_id: str, budget: int, before: str, pieces: Sequence[Piece]) -> str:
        said = [(piece.role, piece.text) for piece in pieces]
        if self._model is not None:
            try:
                return self._asked(self._model, owner, session_id, before, said)
            except ModelResting:
                pass  # the log has its failure already
            except ModelError as error:
                self._record(owner, session_id, error)
        room = max(LEAST_CHARS, min(summaries.MAX_CHARS, budget * CHARS_PER_TOKEN // SHARE))
        return digest(said, before=before, max_chars=room)

    def _asked(
        self, model: RestedModel, owner: Owner, session_id: str, before: str, said: Sequence[tuple[str, str]]
    ) -> str:
        """Raises: ModelError."""
        source_chars = len(before) + sum(len(content) for _, content in said)
        answer = model.complete(
            summaries.question(before, said, max_chars=self._max_input_chars),
            max_tokens=summaries.MAX_TOKENS,
            about=(owner, session_id),
            find_problem=partial(summaries.problem, source_chars=source_chars),
        )
        cleaned, _ = self._guard.cleaned(owner.tenant, summaries.answer_text(answer))
        return cleaned

    def _record(self, owner: Owner, session_id: str, error: ModelError) -> None:
        log.warning("Turns were folded without the model: %s", error)
        note(
            self._store,
            AuditEvent(
                tenant=owner.tenant,
                at=self._now(),
                action="context.fold_fail",
                agent_id=owner.agent,
                message=f"Turns of session {session_id} were folded by a digest, without the model: {error}",
                meta={"session_id": session_id},
            ),
        )


def _digest(pieces: Sequence[Piece]) -> str:
    return text_digest("\0".join(f"{piece.role}\0{piece.text}" for piece in pieces))
