"""Calls of one embedder, with bounds and memory: what failed last, when to skip it, the latest questions."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import cast

from wellkept.errors import ModelError, ModelRefused
from wellkept.extension import Clock, Embedder
from wellkept.model.stored import Vector
from wellkept.upkeep.resting import CircuitBreaker

MAX_AT_ONCE, STEP = 64, 8
"""Texts that a recall embeds first, at most, and how many of them together."""

SECONDS_AT_ONCE = 0.3
"""Seconds after which no more of them are begun."""

MAX_RECENT = 64
PROBE = "wellkept"
"""Text that no embedder has a reason to refuse."""

log = logging.getLogger("wellkept")


class EmbedderCalls:
    """Calls of the embedder of one store, if any."""

    def __init__(self, embedder: Embedder | None, now: Clock, *, on_answer: Callable[[], None]) -> None:
        """Set up; `on_answer` is called after a question got its vector."""
        self._embedder = embedder
        self.is_remote = bool(getattr(embedder, "is_remote", False))
        # Searches skip a remote embedder that failed recently.
        self.breaker = CircuitBreaker(now)
        # Sentence that describes the failure of the last call; empty after a success.
        self.problem = ""
        self._on_answer = on_answer
        # Vectors of the latest questions: a prompt asks for the same one several times.
        self._recent: OrderedDict[str, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def of_query(self, text: str) -> Vector | None:
        """Return the vector of a query; None, for a search by words alone, without an embedder or when it fails.

        Raises: SchemaMismatch when a remote embedder turns out not to be the one the stored vectors come from.
        """
        if (known := self._recent.get(text)) is not None:
            return known
        if self._embedder is None or not self.breaker.allows():
            return None
        embed_query: Callable[[str], Vector] | None = getattr(self._embedder, "embed_query", None)
        try:
            vector = self.embed([text])[0] if embed_query is None else self._track(lambda: embed_query(text))
            self._on_answer()
        except ModelRefused as error:
            log.warning("Searched by words alone: %s", error)
            self.breaker.reset()
            return None
        except ModelError as error:
            log.warning("Searched by words alone: %s", error)
            if self.is_remote:
                self.breaker.trip(str(error))
            return None
        self.breaker.reset()
        if not self.is_remote:
            with self._lock:
                self._recent[text] = vector
                if len(self._recent) > MAX_RECENT:
                    self._recent.popitem(last=False)
        return cast("Vector", vector)

    def of_local(self, text: str) -> Vector | None:
        """Return the vector of a text; None if only a remote embedder could compute it."""
        return None if self.is_remote else self.of_query(text)

    def of_notes(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        """Return the vectors of the first texts, as many as a recall may compute, and None for the others.

        For texts that are not in the database.
        """
        vectors: list[Vector | None] = []
        if self._embedder is not None and not self.is_remote:
            try:
                vectors += self.embed_within(texts[:MAX_AT_ONCE], SECONDS_AT_ONCE)
            except ModelError as error:
                log.warning("Notes are found by their words: %s", error)
        return vectors + [None] * (len(texts) - len(vectors))

    def embed_within(self, texts: Sequence[str], seconds: float) -> list[Vector]:
        """Return the vectors of the first texts, as many as are begun within the seconds. Raises: ModelError."""
        until, vectors = time.monotonic() + seconds, list[Vector]()
        while len(vectors) < len(texts) and time.monotonic() < until:
            vectors.extend(self.embed(texts[len(vectors) : len(vectors) + STEP]))
        return vectors

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return the vectors of texts. Raises: ModelError."""
        embed = cast("Embedder", self._embedder).embed
        return self._track(lambda: embed(texts))

    def probe(self) -> None:
        """Probe the embedder with a short text. Raises: ModelError when it fails."""
        embedder = self._embedder
        assert embedder is not None
        embed_query: Callable[[str], Vector] | None = getattr(embedder, "embed_query", None)
        try:
            self._track(lambda: embedder.embed([PROBE]) if embed_query is None else embed_query(PROBE))
        except ModelError as error:
            if self.is_remote:
                self.breaker.trip(str(error))
            raise

    def load(self) -> None:
        """Have the embedder load what it needs."""
        try:
            self.embed([PROBE])
        except ModelError as error:
            log.warning("Recall works by words alone: %s", error)

    def forget(self) -> None:
        """Drop the latest questions and their vectors."""
        with self._lock:
            self._recent.clear()

    def _track(self, call: Callable[[], Vector]) -> Vector:
        """Call the embedder and update `problem`."""
        try:
            vectors = call()
        except ModelError as error:
            self.problem = str(error)
            raise
        self.problem = ""
        return vectors
