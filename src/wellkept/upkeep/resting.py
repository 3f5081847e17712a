"""Circuit breaker for models and embedders: after a failure, skip calls for 30 seconds.

When the time is over, one caller tries again while the others still skip the call. A failure that concerns one text
only (a refusal, an invalid answer) blocks only calls about that text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime, timedelta

from wellkept.errors import ModelError, ModelRefused
from wellkept.extension import Clock, Model
from wellkept.model import Json

REST = timedelta(seconds=30)
"""Time to skip calls after a failure."""

ALL_CALLS = ""
"""Key of the failure that blocks every call."""

MAX_TEXTS = 1_000
"""Maximum number of remembered texts that failed; the oldest is dropped first."""


class ModelPaused(ModelError):
    """The model failed recently and was not called."""


class CircuitBreaker:
    """Record of recent failures that decides if a call may be tried."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._lock = threading.Lock()
        # Keys are hashes, so no names or texts are kept here.
        self._since: dict[int | str, datetime] = {}
        self._reason = ""

    @property
    def problem(self) -> str:
        """Reason why every call is skipped now; empty if calls are allowed."""
        return self._reason if self._is_open(ALL_CALLS) else ""

    def allows(self, about: Hashable = None) -> bool:
        """Return True if this caller should try. The caller then reports the result with `trip` or `reset`."""
        with self._lock:
            if self._is_open(ALL_CALLS) or self._is_open(hash(about)):
                return False
            if ALL_CALLS in self._since:
                # Only this caller tries; the others wait for another period.
                self._since[ALL_CALLS] = self._now()
            return True

    def trip(self, reason: str) -> None:
        """Block every call from now on."""
        with self._lock:
            self._reason = reason
            self._since[ALL_CALLS] = self._now()

    def trip_for(self, about: Hashable) -> None:
        """Block calls about this text from now on."""
        if about is None:
            return
        with self._lock:
            # Remove the entry first, so that the oldest stays at the front.
            self._since.pop(hash(about), None)
            self._since[hash(about)] = self._now()
            if len(self._since) > MAX_TEXTS:
                del self._since[next(each for each in self._since if each != ALL_CALLS)]

    def reset(self) -> None:
        """Allow all calls again."""
        with self._lock:
            self._since.pop(ALL_CALLS, None)

    def _is_open(self, about: int | str) -> bool:
        since = self._since.get(about)
        return since is not None and timedelta() <= self._now() - since < REST


class GuardedModel:
    """Model behind a circuit breaker."""

    def __init__(self, model: Model, now: Clock) -> None:
        self._model = model
        self._breaker = CircuitBreaker(now)

    @property
    def problem(self) -> str:
        """Reason why the model is skipped now; empty if it is not."""
        return self._breaker.problem

    def complete(
        self,
        messages: Sequence[Json],
        *,
        max_tokens: int,
        about: Hashable = None,
        find_problem: Callable[[str], str] = lambda answer: "",
    ) -> str:
        """Return the model's answer.

        `about` identifies the subject of the call, to block a repetition after a failure. `find_problem` returns a
        description of what is wrong with an answer, or an empty string.

        Raises: ModelPaused when the call was skipped; ModelError.
        """
        if not self._breaker.allows(about):
            raise ModelPaused(
                f"The model {self._model.name!r} failed recently and is skipped for now. {self.problem}".rstrip()
            )
        try:
            answer = self._model.complete(messages, max_tokens=max_tokens)
        except ModelRefused:
            self._breaker.reset()
            self._breaker.trip_for(about)
            raise
        except ModelError as error:
            self._breaker.trip(str(error))
            raise
        self._breaker.reset()
        if problem := find_problem(answer):
            self._breaker.trip_for(about)
            raise ModelError(f"the model {self._model.name!r} failed: {problem}.")
        return answer
