"""Vectors for texts, without ever standing in the way of a write.

A local embedder answers at once. One that fails, or lives across a network, does not hold a memory up: the memory is
stored without its vector, found by its words meanwhile, and a thread fills the vector in later.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import cast

from recollect.errors import ModelError, RecollectError
from recollect.ports import Embedder, EmbeddingStore, Vector

BATCH = 64
FIRST_RETRY = 1.0
LONGEST_RETRY = 300.0

log = logging.getLogger("recollect")


class Embedding:
    """One store's embedder, or none, and the queue of what waits for it."""

    def __init__(self, store: EmbeddingStore, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder
        self._is_remote = bool(getattr(embedder, "is_remote", False))
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def of_texts(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        """A vector for each text, or None for each if they have to come later."""
        if self._embedder is None:
            return [None] * len(texts)
        if not self._is_remote:
            try:
                return list(self._embedder.embed(texts))
            except ModelError as error:
                log.warning("Stored without vectors, to be embedded later: %s", error)
        self._wake()
        return [None] * len(texts)

    def of_query(self, text: str) -> Vector | None:
        """The vector to search with; None when there is no embedder or it fails, and words alone have to do."""
        if self._embedder is None:
            return None
        try:
            (vector,) = self._embedder.embed([text])
        except ModelError as error:
            log.warning("Searched by words alone: %s", error)
            return None
        return cast("Vector", vector)

    def embed_waiting(self) -> int:
        """Embed everything that waits, in every tenant; how many that were.

        Raises: ModelError.
        """
        return sum(self._embed_tenant(tenant) for tenant in self._store.list_tenants()) if self._embedder else 0

    def close(self) -> None:
        self._closed.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _embed_tenant(self, tenant: str) -> int:
        assert self._embedder is not None
        done = 0
        while not self._closed.is_set() and (waiting := self._store.list_unembedded(tenant, limit=BATCH)):
            vectors = self._embedder.embed([each.text for each in waiting])
            done += self._store.set_vectors(tenant, list(zip(waiting, vectors, strict=True)))
        return done

    def _wake(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="recollect-embedding", daemon=True)
                self._thread.start()
        self._wanted.set()

    def _serve(self) -> None:
        pause = FIRST_RETRY
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closed.is_set():
                return
            try:
                self.embed_waiting()
                pause = FIRST_RETRY
            except RecollectError as error:
                log.warning("Embedding will be tried again in %.0f s: %s", pause, error)
                self._closed.wait(pause)
                pause = min(2 * pause, LONGEST_RETRY)
                self._wanted.set()
