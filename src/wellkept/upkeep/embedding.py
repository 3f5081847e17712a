"""Vectors for texts, computed without delaying writes.

A text is stored without its vector and found by its words, and a job adds the vector a moment later. A recall first
embeds what is still missing for its owner, within bounds, so that a text is found by its meaning at once, also by a
program that did not store it. A remote embedder is registered in the store with its first vectors, so it may be
unreachable when the store is opened.

When a batch fails, a short probe distinguishes a failing embedder, which is paused, from a text it refuses. A refused
text is located by bisection and skipped; all others get their vectors.

The queue of tenants with waiting texts is in the store, shared by all processes. One embeds the texts of a tenant under
a lease, so that no other asks the embedder for the same; if it dies, another takes over when the lease ends. A row of
the queue is removed by who read it before the texts, so a text that is stored meanwhile stays in the queue.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from wellkept.errors import ModelError, ModelRefused, SchemaMismatch, StoreError, WellkeptError
from wellkept.extension import Clock, Embedder, Progress
from wellkept.language.names import memory_id
from wellkept.model import BackgroundStatus, Owner, RefusedText
from wellkept.model.stored import Unembedded, Vector
from wellkept.upkeep.background import STORE_FAILURES, Job
from wellkept.upkeep.resting import CircuitBreaker

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore


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

    def __init__(self, embedder: Embedder | None, now: Clock) -> None:
        self._embedder = embedder
        self.is_remote = bool(getattr(embedder, "is_remote", False))
        # Searches skip a remote embedder that failed recently.
        self.breaker = CircuitBreaker(now)
        # Sentence that describes the failure of the last call; empty after a success.
        self.problem = ""
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

    def _on_answer(self) -> None:
        """Do what is due after a question got its vector."""

    def _track(self, call: Callable[[], Vector]) -> Vector:
        """Call the embedder and update `problem`."""
        try:
            vectors = call()
        except ModelError as error:
            self.problem = str(error)
            raise
        self.problem = ""
        return vectors


FIRST_REST = 60.0
LONGEST_REST = 3600.0
"""Seconds until the first retry of a refused text, and the longest delay between retries."""

MAX_KNOWN = 10_000
"""Maximum number of remembered refusals; the oldest is dropped first and will be refused again."""

Key = tuple[str, str, int, int]
"""Tenant, agent, sequence number and version; an edited text has another key."""


@dataclass(slots=True)
class _Refusal:
    tries: int
    due_at: float
    problem: str


class Refusals:
    """Refused texts of this process, by id. The texts themselves are not kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Key, _Refusal] = {}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, text: Unembedded, problem: str) -> int:
        """Record a refusal and return the number of refusals of this text."""
        with self._lock:
            before = self._known.pop(text_key(text), None)
            tries = 1 if before is None else before.tries + 1
            # The delay doubles with each refusal; the cap on the exponent avoids huge numbers after many tries.
            rest = min(FIRST_REST * 2 ** min(tries - 1, 10), LONGEST_REST)
            self._known[text_key(text)] = _Refusal(tries, time.monotonic() + rest, problem)
            if len(self._known) > MAX_KNOWN:
                del self._known[next(iter(self._known))]
            return tries

    def remove(self, keys: Iterable[Key]) -> None:
        """Forget texts that were embedded, edited or deleted."""
        with self._lock:
            for key in keys:
                self._known.pop(key, None)

    def list_due_tenants(self) -> set[str]:
        """Return the tenants with texts that are due for a retry."""
        now = time.monotonic()
        with self._lock:
            return {key[0] for key, each in self._known.items() if each.due_at <= now}

    def keys(self, tenant: str) -> set[Key]:
        """Return the keys of a tenant's refused texts."""
        with self._lock:
            return {key for key in self._known if key[0] == tenant}

    def is_resting(self, text: Unembedded) -> bool:
        """Return True if the text is not yet due for a retry."""
        known = self._known.get(text_key(text))
        return known is not None and time.monotonic() < known.due_at

    def seconds_to_next(self) -> float | None:
        """Return the seconds until the next retry is due; None if there is none."""
        with self._lock:
            due = min((each.due_at for each in self._known.values()), default=None)
        return None if due is None else max(0.0, due - time.monotonic())

    def list(self, tenant: str | None = None) -> Sequence[RefusedText]:
        """Return the refused texts of a tenant, or of all tenants."""
        with self._lock:
            known = [(key, each) for key, each in self._known.items() if tenant in (None, key[0])]
        return [
            RefusedText(
                tenant=tenant_id,
                agent=agent,
                id=memory_id(seq) if agent else f"passage {seq}",
                tries=each.tries,
                problem=each.problem,
            )
            for (tenant_id, agent, seq, _), each in known
        ]


def text_key(text: Unembedded) -> Key:
    """Return the key of a text."""
    return (text.owner.tenant, text.owner.agent, text.seq, text.version)


LEASE, LEASE_TIME = "embed", timedelta(minutes=1)
"""Right to embed the texts of a tenant, which each batch renews."""

SHARED_RETRY = 2.0
"""Seconds after which texts are looked for again that another process was about to embed."""

EVER = datetime.max.replace(tzinfo=UTC)

BATCH = 64
"""Number of texts per call of the embedder."""

GATHER = 0.3
"""Seconds between a write and its vectors: texts stored together are embedded together, and a command that stores one
ends before it loads the embedder."""

PATIENCE = 30.0
"""Seconds without progress after which maintenance stops waiting for the thread."""

MAX_EXAMINED = 20
"""Number of waiting texts that `find_refused` tries, and of refused texts that are logged."""

EMBEDDER_HANGS = "The embedder has not answered for a while; waiting texts are embedded in the background once it does."

CLOSE_PATIENCE = 1.0
"""Seconds that `close` waits for a running batch; unfinished texts are embedded in the next run."""


class Embedding(EmbedderCalls):
    """Embedder of one store, if any, and the background job that fills in missing vectors."""

    def __init__(self, store: SqlStore, embedder: Embedder | None, now: Clock) -> None:
        """Set up; a local embedder is already registered in the store, a remote one is with its first vectors."""
        super().__init__(embedder, now)
        self._store = store
        self._now = now
        self.is_on = embedder is not None
        self.may_hang = embedder is not None and not getattr(embedder, "is_builtin", False)
        self._is_registered = not self.is_remote
        self._register_lock = threading.Lock()
        self._job = Job("embedding", self._run, failed="Embedding failed")
        # Held while texts are embedded, so that a recall and the job do not embed the same ones.
        self._batch_lock = threading.Lock()
        self._is_cold = False
        self._refusals = Refusals()
        self._holder = uuid.uuid4().hex
        # Tenant whose lease this process has.
        self._held = ""
        # Tenants that failed in the last run.
        self._failed: set[str] = set()
        # Time of the last progress while texts are waiting; None when none are.
        self._behind_since: float | None = None
        self._in_hand = 0

    def move_to_answer(self, vector: Vector | None) -> Vector | None:
        """Return a question's vector as memories are compared with it; unchanged with most embedders."""
        move = getattr(self._embedder, "move_to_answer", None)
        return vector if vector is None or move is None else cast("Vector", move(vector))

    def forget(self, tenant: str) -> None:
        """Drop the latest questions of all tenants, and what is known of a tenant's refused texts."""
        with self._lock:
            self._recent.clear()
        self._refusals.remove(self._refusals.keys(tenant))

    def is_missing(self, owner: Owner) -> bool:
        """Return True if a recall of the owner's should first call `embed_missing`."""
        if self._embedder is None or self.is_remote:
            return False
        try:
            return bool(self._store.list_unembedded_of(owner, limit=1))
        except StoreError as error:
            log.debug("Texts without a vector cannot be listed: %s", error)
            return False

    def prepare(self, owner: Owner) -> None:
        """Embed the owner's latest texts, if any have no vector, before they are searched by meaning. Never raises."""
        if self.is_missing(owner):
            self.embed_missing(owner)

    def embed_missing(self, owner: Owner, seconds: float = SECONDS_AT_ONCE) -> None:
        """Embed the owner's newest texts without a vector, and passages, within bounds; leave the rest to the job.

        Never raises: texts without a vector are found by their words.
        """
        if not self._batch_lock.acquire(timeout=seconds):
            return
        try:
            queued = self._store.list_queue(owner.tenant)
            refused = self._refusals.keys(owner.tenant)
            found = self._store.list_unembedded_of(owner, limit=MAX_AT_ONCE)
            texts = [each for each in found if text_key(each) not in refused]
            vectors = self.embed_within([each.text for each in texts], seconds)
            self._store.set_vectors(owner.tenant, list(zip(texts, vectors, strict=False)))
            if len(vectors) == len(found) < MAX_AT_ONCE:
                self._store.settle_queue(owner.tenant, queued)
            else:
                self.wake()
        except (ModelError, StoreError) as error:
            log.debug("The latest texts have no vectors yet: %s", error)
        finally:
            self._batch_lock.release()

    def embed_waiting(self, *, progress: Progress | None = None) -> int:
        """Embed all waiting texts, also those refused before; return the number embedded.

        `progress` is called with the number embedded and the total.

        Raises: ModelError when the embedder itself fails; StoreError.
        """
        if self._embedder is None:
            return 0
        total, done = 0 if progress is None else self.count_waiting(), 0

        def report(more: int) -> None:
            nonlocal done
            done += more
            if progress is not None:
                # Others may store more meanwhile.
                progress(done, max(done, total))

        self._embed_all(self.list_tenants(), is_eager=True, report=report)
        return done

    def catch_up(self, tenant: str | None = None) -> int:
        """Have the job embed the waiting texts, and return the number embedded.

        Stops waiting after `PATIENCE` seconds without progress.

        Raises: ModelError; StoreError.
        """
        if self._embedder is None:
            return 0
        if problem := self.breaker.problem:
            raise ModelError(problem)
        before = self.count_waiting(tenant)
        if not self._job.run_soon(PATIENCE):
            raise ModelError(EMBEDDER_HANGS)
        if self._job.last_error:
            raise ModelError(self._job.last_error)
        return max(0, before - self.count_waiting(tenant))

    def list_tenants(self, until: datetime = EVER) -> Sequence[str]:
        """List the tenants with texts that wait for a vector and are due at this time."""
        return sorted({*self._store.list_waiting_tenants(until), *self._refusals.list_due_tenants()})

    def count_waiting(self, tenant: str | None = None) -> int:
        """Return the number of texts without a vector, of one tenant or of all."""
        return sum(map(self._store.count_unembedded, [tenant] if tenant else self.list_tenants()))

    def find_refused(self) -> Sequence[RefusedText]:
        """Embed some waiting texts without storing the vectors, and return all refused texts.

        Raises: ModelError; StoreError.
        """
        left = 0 if self._embedder is None else MAX_EXAMINED
        for tenant in self.list_tenants() if left else ():
            texts = self._store.list_unembedded(tenant, limit=left) if left else ()
            self._try_each(texts, lambda texts, vectors: 0)
            left -= len(texts)
        return self._refusals.list()

    def refused(self, tenant: str | None = None) -> Sequence[RefusedText]:
        """Return the texts that the embedder has refused so far."""
        return self._refusals.list(tenant)

    def status(self) -> BackgroundStatus:
        """Return the state of the job."""
        refused, behind = len(self._refusals), self._behind_since
        return self._job.status(
            waiting=refused + self._in_hand,
            oldest_seconds=0.0 if behind is None else time.monotonic() - behind,
            set_aside=refused,
        )

    def warm_up(self) -> None:
        """Have the job load a local embedder, and embed what an earlier run left."""
        self._is_cold = not self.is_remote
        self.wake()

    def wake(self) -> None:
        """Have the job embed texts that were stored without a vector."""
        if self._embedder is not None:
            if self._behind_since is None:
                self._behind_since = time.monotonic()
            self._job.wake(GATHER)

    def close(self) -> None:
        """Stop the job, without waiting long for an embedder that does not answer."""
        self._job.close(CLOSE_PATIENCE)
        self._release()

    def _on_answer(self) -> None:
        """Register the embedder in the store, once, and wake the job for texts of an earlier run."""
        if self._is_registered:
            return
        embedder = cast("Embedder", self._embedder)
        with self._register_lock:
            if not self._is_registered:
                self._store.use_embedder(embedder.name, embedder.dimensions)
                self._is_registered = True
                self.wake()

    def _run(self) -> float | None:
        """Embed all waiting texts that are due; return the seconds until texts are looked for again."""
        if self._is_cold:
            self._is_cold = False
            try:
                self.embed([PROBE])
            except ModelError as error:
                log.warning("Recall works by words alone: %s", error)
        is_shared = self._embed_all(self.list_tenants(self._now()), is_eager=False)
        # Texts that were stored meanwhile have woken the job.
        if not self._job.is_due:
            self._behind_since = None
        return SHARED_RETRY if is_shared else self._refusals.seconds_to_next()

    def _embed_all(
        self, tenants: Sequence[str], *, is_eager: bool, report: Callable[[int], None] = lambda more: None
    ) -> bool:
        """Embed the waiting texts of each tenant; a failure in one does not stop the others.

        With `is_eager`, also embed texts that are not yet due, or that another process is about to embed; otherwise
        return True if there are some of the latter.
        """
        is_shared, errors = False, list[Exception]()
        # Tenants that failed last time come last, so that they cannot end every run before the others.
        for tenant in sorted(tenants, key=self._failed.__contains__):
            self._failed.discard(tenant)
            try:
                if is_eager or self._renew(tenant):
                    self._held = self._held if is_eager else tenant
                    self._embed_tenant(tenant, is_eager=is_eager, report=report)
                else:
                    is_shared = True
            except (ModelError, SchemaMismatch):
                raise
            except Exception as error:  # noqa: BLE001  raised again after the other tenants
                errors.append(error)
                self._failed.add(tenant)
                if sum(isinstance(each, StoreError) for each in errors) == STORE_FAILURES:
                    break
            finally:
                if not is_eager:
                    self._release()
        if errors:
            raise errors[0]
        return is_shared

    def _embed_tenant(self, tenant: str, *, is_eager: bool, report: Callable[[int], None]) -> None:
        """Embed a tenant's texts, and take them off the queue."""
        queued, refused, seen = self._store.list_queue(tenant), self._refusals.keys(tenant), set[Key]()

        def store(texts: Sequence[Unembedded], vectors: Vector) -> int:
            self._on_answer()
            pairs = list(zip(texts, vectors, strict=True))
            return 0 if self._job.is_closed else self._store.set_vectors(tenant, pairs)

        after: Unembedded | None = None
        while not self._job.is_closed:
            # A recall embeds none of the texts that are read here.
            with self._batch_lock:
                page = self._store.list_unembedded(tenant, after=after, limit=BATCH)
                if not page:
                    break
                report(self._try_each([text for text in page if text_key(text) not in refused], store))
                # Those refused before, one by one, so that they cannot make a batch fail again.
                for text in (each for each in page if text_key(each) in refused):
                    seen.add(text_key(text))
                    if is_eager or not self._refusals.is_resting(text):
                        report(self._try_each([text], store))
            after = page[-1]
            if not is_eager:
                self._renew(tenant)
        if not self._job.is_closed:
            self._refusals.remove(refused - seen)
        due_at = self._now() + timedelta(seconds=self._refusals.seconds_to_next() or 0.0)
        self._store.settle_queue(tenant, queued, due_at=due_at)

    def _try_each(self, texts: Sequence[Unembedded], store: Callable[[Sequence[Unembedded], Vector], int]) -> int:
        """Embed texts; if that fails though the embedder works, bisect to find the refused ones.

        Raises: ModelError when the embedder itself fails; StoreError.
        """
        if not texts or self._job.is_closed:
            return 0
        self._in_hand = len(texts)
        try:
            done = store(texts, self.embed([text.text for text in texts]))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  a foreign embedder may fail in any way
            if self._job.is_closed:
                return 0
            self.probe()
            if len(texts) == 1:
                problem = str(error) if isinstance(error, WellkeptError) else f"a fault ({type(error).__name__})"
                if self._refusals.add(texts[0], problem) == 1 and len(self._refusals) <= MAX_EXAMINED:
                    log.warning("The embedder refused a text; it is retried later: %s", problem)
                return 0
            middle = len(texts) // 2
            return self._try_each(texts[:middle], store) + self._try_each(texts[middle:], store)
        finally:
            self._in_hand = 0
            self._job.note_progress()
        self.breaker.reset()
        self._refusals.remove(map(text_key, texts))
        self._behind_since = None if self._behind_since is None else time.monotonic()
        return done

    def _renew(self, tenant: str) -> bool:
        """Take or renew the lease of a tenant's texts; return False while another process has it."""
        now = self._now()
        return self._store.take_lease(f"{LEASE} {tenant}", self._holder, now=now, until=now + LEASE_TIME)

    def _release(self) -> None:
        """End the lease, if this process has one; otherwise others would wait for its end."""
        held, self._held = self._held, ""
        if held:
            self._store.end_lease(f"{LEASE} {held}", self._holder)
