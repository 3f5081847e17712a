"""Leaving alone what failed: for 30 seconds nobody waits for a model or an embedder that did not answer.

When the time is over, one caller tries again while the others still do without it. Something that went wrong with one
text only (a refusal, an answer that makes no sense) keeps nobody but those who ask about that text from trying.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime, timedelta

from recollect.errors import ModelError, ModelRefused
from recollect.model import Json
from recollect.ports import Clock, Model

REST = timedelta(seconds=30)
EVERYBODY = ""
MAX_TEXTS = 1_000
"""How many texts that went wrong are remembered; the oldest is forgotten first."""


class ModelResting(ModelError):
    """The model failed a moment ago, and was not asked."""


class Rest:
    """Remembers what failed, and until when it is left alone."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._since: dict[int | str, datetime] = {}  # by a hash: nobody's names are kept here
        self._reason = ""

    @property
    def problem(self) -> str:
        """Why everybody does without it at the moment; empty if nobody has to."""
        return self._reason if self._is_resting(EVERYBODY) else ""

    def allows(self, about: Hashable = None) -> bool:
        """Return True if this caller should try. It then says how that went: `begin` or `end`."""
        with self._lock:
            if self._is_resting(EVERYBODY) or self._is_resting(hash(about)):
                return False
            if EVERYBODY in self._since:
                self._since[EVERYBODY] = self._now()  # one tries, the others rest on
            return True

    def begin(self, reason: str) -> None:
        """Leave it alone from now on."""
        with self._lock:
            self._reason = reason
            self._since[EVERYBODY] = self._now()

    def begin_for(self, about: Hashable) -> None:
        """Do not ask it about this text from now on."""
        if about is None:
            return
        with self._lock:
            self._since.pop(hash(about), None)  # so that the oldest stands first
            self._since[hash(about)] = self._now()
            if len(self._since) > MAX_TEXTS:
                del self._since[next(each for each in self._since if each != EVERYBODY)]

    def end(self) -> None:
        """Let everybody try: it answers."""
        with self._lock:
            self._since.pop(EVERYBODY, None)

    def _is_resting(self, about: int | str) -> bool:
        since = self._since.get(about)
        return since is not None and timedelta() <= self._now() - since < REST


class RestedModel:
    """A model that nobody waits for again right after it failed."""

    def __init__(self, model: Model, now: Clock) -> None:
        self._model = model
        self._rest = Rest(now)

    @property
    def problem(self) -> str:
        """Why it is left alone at the moment; empty if it is not."""
        return self._rest.problem

    def complete(
        self,
        messages: Sequence[Json],
        *,
        max_tokens: int,
        about: Hashable = None,
        find_problem: Callable[[str], str] = lambda answer: "",
    ) -> str:
        """Return the answer. `about` names what is asked about, if that may be asked again; `find_problem` says what is
        wrong with an answer.

        Raises: ModelResting, ModelError.
        """
        if not self._rest.allows(about):
            raise ModelResting(f"The model {self._model.name!r} is left alone for a moment. {self.problem}".rstrip())
        try:
            answer = self._model.complete(messages, max_tokens=max_tokens)
        except ModelRefused:
            self._rest.end()
            self._rest.begin_for(about)
            raise
        except ModelError as error:
            self._rest.begin(str(error))
            raise
        self._rest.end()
        if problem := find_problem(answer):
            self._rest.begin_for(about)
            raise ModelError(f"the model {self._model.name!r} failed: {problem}.")
        return answer
