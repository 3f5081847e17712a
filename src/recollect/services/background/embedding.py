"""Vectors for texts, without ever standing in the way of a write.

A local embedder answers at once. One that fails, or lives across a network, does not hold a memory up: the memory is
stored without its vector, found by its words meanwhile, and a thread fills the vector in later. A remote embedder is
introduced to the store with its first vectors, so it may be out of reach when the store is opened.

When a batch fails, a short question tells a failing embedder, which is left alone for a while, from a text it refuses:
that one is searched for by halves and skipped, and all others get their vectors.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import cast

from recollect.errors import ModelError, ModelRefused, RecollectError, SchemaMismatch, StoreError
from recollect.model import BackgroundStatus, RefusedText
from recollect.ports import Clock, Embedder, EmbeddingStore, Unembedded, Vector
from recollect.services.background.refusals import Key, Refusals, key_of
from recollect.services.background.resting import Rest

BATCH = 64
FIRST_RETRY = 1.0
LONGEST_RETRY = 300.0

PATIENCE = 30.0
"""Seconds without any progress after which maintenance leaves what waits to the thread."""

PROBE = "recollect"
"""A text no embedder has a reason to refuse."""

EXAMINED = 20
"""Texts that are looked at to name those that are refused."""

STORE_FAILURES = 2
"""Tenants that may meet a failing store before a pass ends: each may have waited for a timeout."""

HANGS = "The embedder has not answered for a while; what waits is embedded in the background as soon as it does."

CLOSE_PATIENCE = 1.0
"""How long closing waits for a vector that is on its way; without it, the memory waits for the next time."""

log = logging.getLogger("recollect")


class Embedding:
    """One store's embedder, or none, and the queue of what waits for it."""

    def __init__(self, store: EmbeddingStore, embedder: Embedder | None, now: Clock) -> None:
        """A local embedder is the one the store uses already; a remote one is made that with its first vectors."""
        self._store = store
        self._embedder = embedder
        self.is_remote = bool(getattr(embedder, "is_remote", False))
        self.may_hang = embedder is not None and not getattr(embedder, "is_builtin", False)
        self._is_used = not self.is_remote
        self._rest = Rest(now)  # searches do not wait again for a remote one that failed
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._use_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._hurry = threading.Event()  # ends a pause after a failure
        self._pid = os.getpid()
        self._refusals = Refusals()
        self._failed: set[str] = set()  # tenants whose store failed at the last pass
        self._changed = threading.Condition()  # notified at each batch and at the end of a pass
        self._begun = self._ended = 0  # passes of the thread
        self._error: Exception | None = None  # of the last pass
        self._behind_since: float | None = None  # since when nothing has moved though something waits
        self._in_hand = 0
        self._failures = 0
        self._last_error = ""
        self._success_at: float | None = None
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
        if self._embedder is None or not self._rest.allows():
            return None
        ask: Callable[[str], Vector] | None = getattr(self._embedder, "embed_query", None)
        try:
            vector = self._asked([text])[0] if ask is None else self._noted(lambda: ask(text))
            self._use()
        except ModelRefused as error:
            log.warning("Searched by words alone: %s", error)
            self._rest.end()
            return None
        except ModelError as error:
            log.warning("Searched by words alone: %s", error)
            if self.is_remote:
                self._rest.begin(str(error))
            return None
        self._rest.end()
        return cast("Vector", vector)

    def embed_waiting(self, tenant: str | None = None) -> int:
        """Embed everything that waits, in one tenant or in every one, also what was refused before; return how many
        got their vector.

        Raises: ModelError when the embedder fails altogether; StoreError.
        """
        return 0 if self._embedder is None else self._embed_all([tenant] if tenant else None, is_eager=True)

    def catch_up(self, tenant: str | None = None) -> int:
        """Have the thread embed what waits, and return how many got their vector. An embedder that hangs is not waited
        for beyond `PATIENCE`.

        Raises: ModelError; StoreError.
        """
        if self._embedder is None:
            return 0
        if problem := self._rest.problem:
            raise ModelError(problem)
        before = self._count(tenant)
        with self._changed:
            wanted = self._begun + 1
        self.wake()
        self._hurry.set()
        with self._changed:
            while self._ended < wanted and self._changed.wait(PATIENCE):
                pass
            error = self._error if self._ended >= wanted else ModelError(HANGS)
        if isinstance(error, ModelError | StoreError):
            raise error
        return max(0, before - self._count(tenant))

    def find_refused(self) -> Sequence[RefusedText]:
        """Ask for the vectors of some texts that wait, store none, and return those that are refused.

        Raises: ModelError; StoreError.
        """
        left = 0 if self._embedder is None else EXAMINED
        for tenant in self._store.list_tenants():
            texts = self._store.list_unembedded(tenant, limit=left) if left else ()
            self._try_each(texts, lambda texts, vectors: 0)
            left -= len(texts)
        return self._refusals.list()

    def refused(self, tenant: str | None = None) -> Sequence[RefusedText]:
        """Return the texts the embedder has refused so far."""
        return self._refusals.list(tenant)

    def status(self) -> BackgroundStatus:
        """Return the state of the thread; restart it if it died."""
        with self._lock:
            if self._thread is not None and not self._thread.is_alive() and not self._closed.is_set():
                self._start()
        now, refused = time.monotonic(), len(self._refusals)
        return BackgroundStatus(
            name="embedding",
            is_running=self._thread is None or self._thread.is_alive() or self._closed.is_set(),
            waiting=refused + self._in_hand,
            oldest_seconds=0.0 if self._behind_since is None else now - self._behind_since,
            set_aside=refused,
            failures=self._failures,
            given_up=0,
            last_error=self._last_error,
            idle_seconds=None if self._success_at is None else now - self._success_at,
        )

    def count_waiting(self) -> int:
        """How many texts have no vector yet, in every tenant."""
        return self._count(None)

    def close(self) -> None:
        """Stop, without waiting long for an embedder that does not answer."""
        self._closed.set()
        self._wanted.set()
        self._hurry.set()
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

    def _count(self, tenant: str | None) -> int:
        return sum(map(self._store.count_unembedded, [tenant] if tenant else self._store.list_tenants()))

    def _embed_all(self, tenants: Sequence[str] | None, *, is_eager: bool) -> int:
        """Embed what waits in each tenant, whatever happens in another. `is_eager`: also what rests after a refusal."""
        done, errors = 0, list[Exception]()
        if tenants is None:
            tenants = self._store.list_tenants()
            self._refusals.keep_tenants(tenants)
        # Those that failed last time come last, so that they cannot end every pass before the others.
        for tenant in sorted(tenants, key=self._failed.__contains__):
            self._failed.discard(tenant)
            try:
                done += self._embed_tenant(tenant, is_eager=is_eager)
            except (ModelError, SchemaMismatch):
                raise
            except Exception as error:  # noqa: BLE001  raised again when the other tenants have had their turn
                errors.append(error)
                self._failed.add(tenant)
                if sum(isinstance(each, StoreError) for each in errors) == STORE_FAILURES:
                    break
        if errors:
            raise errors[0]
        return done

    def _embed_tenant(self, tenant: str, *, is_eager: bool) -> int:
        done, before, seen = 0, self._refusals.keys(tenant), set[Key]()

        def store(texts: Sequence[Unembedded], vectors: Vector) -> int:
            self._use()
            is_closed = self._closed.is_set()
            return 0 if is_closed else self._store.set_vectors(tenant, list(zip(texts, vectors, strict=True)))

        for page in self._pages(tenant):
            done += self._try_each([text for text in page if key_of(text) not in before], store)
            seen.update(before.intersection(map(key_of, page)))
        if self._closed.is_set():
            return done
        self._refusals.remove(before - seen)
        # Last and one by one: what was refused once must not cost others anything again.
        for text in (text for page in (self._pages(tenant) if seen else ()) for text in page):
            if key_of(text) in seen and (is_eager or not self._refusals.is_resting(text)):
                done += self._try_each([text], store)
        return done

    def _pages(self, tenant: str) -> Iterator[Sequence[Unembedded]]:
        """Walk over what waits in a tenant, a batch at a time, until this is closed."""
        after = None
        while not self._closed.is_set() and (page := self._store.list_unembedded(tenant, after=after, limit=BATCH)):
            yield page
            after = page[-1]

    def _try_each(self, texts: Sequence[Unembedded], store: Callable[[Sequence[Unembedded], Vector], int]) -> int:
        """Embed texts; if that fails though the embedder works, find out by halves for which of them.

        Raises: ModelError when the embedder fails altogether; StoreError.
        """
        if not texts or self._closed.is_set():
            return 0
        self._in_hand = len(texts)
        try:
            done = store(texts, self._asked([text.text for text in texts]))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  an answer of somebody else's program may be wrong in any way
            if self._closed.is_set():
                return 0
            self._check_works()
            if len(texts) == 1:
                problem = str(error) if isinstance(error, RecollectError) else f"a fault ({type(error).__name__})"
                if self._refusals.add(texts[0], problem) == 1 and len(self._refusals) <= EXAMINED:
                    log.warning("A text is refused by the embedder, and is tried again later: %s", problem)
                return 0
            middle = len(texts) // 2
            return self._try_each(texts[:middle], store) + self._try_each(texts[middle:], store)
        finally:
            self._in_hand = 0
            with self._changed:
                self._changed.notify_all()
        self._refusals.remove(map(key_of, texts))
        self._success_at = time.monotonic()
        self._behind_since = None if self._behind_since is None else self._success_at
        return done

    def _check_works(self) -> None:
        """Raises: ModelError when the embedder does not even answer a short question."""
        embedder = self._embedder
        assert embedder is not None
        ask: Callable[[str], Vector] | None = getattr(embedder, "embed_query", None)
        try:
            self._noted(lambda: embedder.embed([PROBE]) if ask is None else ask(PROBE))
        except ModelError as error:
            if self.is_remote:
                self._rest.begin(str(error))
            raise

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
            if self._thread is None or not self._thread.is_alive():
                self._start()
        if self._behind_since is None:
            self._behind_since = time.monotonic()
        self._wanted.set()

    def _start(self) -> None:
        """The lock must be held. A forked child cannot use the store, so it gets no thread."""
        if os.getpid() == self._pid:
            self._wanted.set()
            self._thread = threading.Thread(target=self._serve, name="recollect-embedding", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        pause = FIRST_RETRY
        while True:
            self._wanted.wait(self._refusals.seconds_to_next())
            self._wanted.clear()
            if self._closed.is_set():
                return
            error = self._pass()
            if error is None:
                pause = FIRST_RETRY
                continue
            if self._closed.is_set():
                return
            self._last_error = str(error) if isinstance(error, RecollectError) else f"a fault ({type(error).__name__})"
            log.warning("Embedding will be tried again in %.0f s: %s", pause, self._last_error)
            self._hurry.wait(pause)
            pause = min(2 * pause, LONGEST_RETRY)
            self._wanted.set()

    def _pass(self) -> Exception | None:
        """Embed all that waits and is due; return what went wrong."""
        error: Exception | None = None
        self._hurry.clear()
        with self._changed:
            self._begun += 1
        try:
            if self._embed_all(None, is_eager=False):
                self._rest.end()  # it answers again
        except Exception as failure:  # noqa: BLE001  a thread that ends would leave everybody without vectors
            self._failures += 1
            error = failure
        with self._changed:
            self._ended, self._error = self._begun, error
            if error is None:
                self._last_error = ""
                self._behind_since = time.monotonic() if self._wanted.is_set() else None
            self._changed.notify_all()
        return error
