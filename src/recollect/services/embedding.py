"""Vectors for texts, without ever standing in the way of a write.

A local embedder answers at once. One that fails, or lives across a network, does not hold a memory up: the memory is
stored without its vector, found by its words meanwhile, and a thread fills the vector in later. A remote embedder is
introduced to the store with its first vectors, so it may be out of reach when the store is opened.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import cast

from recollect.errors import ModelError, RecollectError
from recollect.ports import Embedder, EmbeddingStore, Vector

BATCH = 64
FIRST_RETRY = 1.0
LONGEST_RETRY = 300.0

QUERY_REST = 30.0
"""For so long after a remote embedder failed a search, searches do not wait for it again."""

CLOSE_PATIENCE = 1.0
"""How long closing waits for a vector that is on its way; without it, the memory waits for the next time."""

log = logging.getLogger("recollect")


class Embedding:
    """One store's embedder, or none, and the queue of what waits for it."""

    def __init__(self, store: EmbeddingStore, embedder: Embedder | None) -> None:
        """A local embedder is the one the store uses already; a remote one is made that with its first vectors."""
        self._store = store
        self._embedder = embedder
        self.is_remote = bool(getattr(embedder, "is_remote", False))
        self._is_used = not self.is_remote
        self._resting_until = 0.0
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._use_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.problem = ""  # why the embedder failed when it was last asked, as a sentence

    def of_texts(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        """A vector for each text, or None for each if they have to come later: store them, then `wake`."""
        if self._embedder is None:
            return [None] * len(texts)
        if not self.is_remote:
            try:
                return list(self._asked(texts))
            except ModelError as error:
                log.warning("Stored without vectors, to be embedded later: %s", error)
        return [None] * len(texts)

    def of_query(self, text: str) -> Vector | None:
        """The vector to search with; None when there is no embedder or it fails, and words alone have to do.

        Raises: SchemaMismatch when a remote embedder turns out not to be the one the stored vectors come from.
        """
        if self._embedder is None or time.monotonic() < self._resting_until:
            return None
        ask: Callable[[str], Vector] | None = getattr(self._embedder, "embed_query", None)
        try:
            vector = self._asked([text])[0] if ask is None else self._noted(lambda: ask(text))
            self._use()
        except ModelError as error:
            log.warning("Searched by words alone: %s", error)
            if self.is_remote:
                self._resting_until = time.monotonic() + QUERY_REST
            return None
        return cast("Vector", vector)

    def embed_waiting(self, tenant: str | None = None) -> int:
        """Embed everything that waits, in one tenant or in every one; how many that were.

        Raises: ModelError, SchemaMismatch.
        """
        if self._embedder is None:
            return 0
        return sum(self._embed_tenant(each) for each in ([tenant] if tenant else self._store.list_tenants()))

    def count_waiting(self) -> int:
        """How many texts have no vector yet, in every tenant."""
        return sum(self._store.count_unembedded(tenant) for tenant in self._store.list_tenants())

    def close(self) -> None:
        """Stop, without waiting long for an embedder that does not answer."""
        self._closed.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(CLOSE_PATIENCE)

    def _use(self) -> None:
        """Tell the store whose vectors these are, once. What waits since an earlier run is embedded now, too."""
        if self._is_used:
            return
        assert self._embedder is not None
        with self._use_lock:
            if not self._is_used:
                self._store.use_embedder(self._embedder.name, self._embedder.dimensions)
                self._is_used = True
                self.wake()

    def _embed_tenant(self, tenant: str) -> int:
        assert self._embedder is not None
        done = 0
        while not self._closed.is_set() and (waiting := self._store.list_unembedded(tenant, limit=BATCH)):
            vectors = self._asked([each.text for each in waiting])
            self._use()
            if self._closed.is_set():
                break
            done += self._store.set_vectors(tenant, list(zip(waiting, vectors, strict=True)))
        return done

    def _asked(self, texts: Sequence[str]) -> Vector:
        embedder = self._embedder
        assert embedder is not None
        return self._noted(lambda: embedder.embed(texts))

    def _noted(self, ask: Callable[[], Vector]) -> Vector:
        """Ask, and remember whether it went well."""
        try:
            vectors = ask()
        except ModelError as error:
            self.problem = str(error)
            raise
        self.problem = ""
        return vectors

    def wake(self) -> None:
        """Have what was stored without a vector embedded soon, in the background."""
        if self._embedder is None:
            return
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
                if self.embed_waiting():
                    self._resting_until = 0.0  # it answers again
                pause = FIRST_RETRY
            except RecollectError as error:
                if self._closed.is_set():
                    return
                log.warning("Embedding will be tried again in %.0f s: %s", pause, error)
                self._closed.wait(pause)
                pause = min(2 * pause, LONGEST_RETRY)
                self._wanted.set()
