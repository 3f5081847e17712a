"""`Wellkept`: opens a store and returns the views of its tenants and agents.

It keeps no state between calls apart from the store, so one `Wellkept` serves many threads at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from wellkept import store
from wellkept.access.keys import Logins
from wellkept.api import tenant as tenants
from wellkept.api.agent import AgentMemory
from wellkept.api.views import Part, TenantView, find_owner
from wellkept.arguments import CheckedMethods, checked
from wellkept.caller import current_caller
from wellkept.errors import Invalid
from wellkept.extension import Clock, Embedder, Progress, TokenCounter
from wellkept.knowledge.skills import Skills
from wellkept.language.names import check_tenant
from wellkept.model import BackgroundStatus, BackupReport, CheckResult, Receipt, Skill
from wellkept.providers import archives
from wellkept.providers.checked import CheckedEmbedder, GivenModel, open_embedder, open_models
from wellkept.providers.tokenizers import open_tokenizer
from wellkept.settings import Settings, masked
from wellkept.settings.sources import warn_of_former_store
from wellkept.upkeep.embedding import Embedding
from wellkept.upkeep.maintain import MaintenanceReport
from wellkept.upkeep.rules_erasure import is_as_issued

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

__all__ = ["AgentMemory", "TenantMemory", "Wellkept"]

BACKUP_COMPRESSION = ".zst"
MEGABYTE = 1024 * 1024


class TenantMemory(TenantView):
    """Memory shared by a tenant's agents, and the agents themselves."""

    agents = Part(tenants.TenantAgents)
    knowledge = Part(tenants.TenantKnowledge)
    audit = Part(tenants.AuditLog)
    workflows = Part(tenants.TenantWorkflows)
    sessions = Part(tenants.TenantSessions)
    keys = Part(tenants.TenantKeys)
    users = Part(tenants.TenantUsers)
    secrets = Part(tenants.TenantSecrets)
    data = Part(tenants.TenantData)
    upkeep = Part(tenants.TenantUpkeep)

    def agent(self, id: str) -> AgentMemory:
        """Return the memory of one agent. Raises: Invalid, Forbidden."""
        return AgentMemory(self._services, find_owner(id, self.id))


class Wellkept(CheckedMethods):
    """A store of memories. Open it once, share it between threads, and close it at the end (or use `with`)."""

    @checked
    def __init__(
        self,
        url: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        embedder: Embedder | None = None,
        tokenizer: TokenCounter | Callable[[str], int] | None = None,
        model: GivenModel | None = None,
        replace_embedder: bool = False,
    ) -> None:
        """Open the store at `url`: `sqlite:///file.db`, `:memory:`, `postgresql://…` or a path (default: data folder).

        `clock` returns the time (UTC if it has no zone); `tokenizer` is a function or has `count(text)`; `model`, an
        object or a function, replaces the models of the settings. `replace_embedder` drops the vectors of another
        embedder; `embed_waiting` computes them again.
        Raises: Invalid, StoreError, SchemaMismatch; ModelError when the new embedder cannot be reached.
        """
        self.settings = settings if settings is not None else Settings.load()
        if url is not None:
            self.settings = replace(self.settings, url=os.fspath(url))
        skills = Skills(self.settings.skills)
        tokens = open_tokenizer(tokenizer or self.settings.tokenizer)
        self._now = _utc_now if clock is None else _normalise_clock(clock)
        if not self.settings.url:
            warn_of_former_store(Path(store.sqlite_path(self.settings.store_url)))
        self._store = self._open_store()
        with ExitStack() as opened:
            opened.callback(self._store.close)
            models = open_models(self.settings, model)
            self.model = models.main if model is not None else None
            """Model passed to the constructor; None if the models of the settings are used."""
            self.embedding = self._open_embedding(embedder, replace_embedder)
            """Embedder and queue of the texts that wait for it: `embed_waiting()` works it off now."""
            opened.pop_all()
        self._store.embed_notes_with(self.embedding.of_notes)
        # Here, so that importing the class costs little.
        from wellkept.api import build

        shared = build.share(self._store, self.embedding, self._now, self.settings)
        self._services = build.Services(shared, models, tokens, skills)
        self.keys = self._services.keys
        """API keys of all tenants, for servers: `verify(key)` returns the record of a valid one."""
        self.idempotency = self._services.idempotency
        """Idempotency keys, for servers: a repeated request does not write twice."""
        self.logins = Logins(self._store, self._services.keys, self._now)
        """Logins to the console, for servers."""
        self.maintenance = self._services.schedule
        """Schedule of maintenance: `start()` runs it at intervals, `refresh()` has its last and next run."""
        self._is_closed = False

    def agent(self, id: str | None = None, tenant: str | None = None) -> AgentMemory:
        """Return the memory of one agent; `id` and `tenant` default to those of the settings.

        Writes nothing: the agent is created when it first remembers something.

        Raises: Invalid, Forbidden.
        """
        return AgentMemory(self._services, find_owner(id or self.settings.agent, tenant or self.settings.tenant))

    def tenant(self, id: str | None = None) -> TenantMemory:
        """Return the memory shared by a tenant's agents; `id` defaults to that of the settings. Raises: Invalid."""
        return TenantMemory(self._services, check_tenant(id or self.settings.tenant))

    def skills(self) -> Sequence[Skill]:
        """List the skills of the setting `skills` by name. Changed files are read again."""
        caller, skills = current_caller(), self._services.skills()
        return [each for each in skills if not each.agents or any(map(caller.is_allowed, each.agents))]

    def skill_problems(self) -> Sequence[str]:
        """List current problems with the skill files. A broken file keeps its last good version in use."""
        return self._services.skills.problems()

    def maintain(self, *, progress: Progress | None = None) -> MaintenanceReport:
        """Archive memories that expired, decayed or exceed the quota, and embed texts that have no vector.

        `progress` is called after each agent with the number done and the total.

        Raises: Conflict while another process runs maintenance.
        """
        self._services.retrieval_marks.flush()
        return self._services.maintain(progress=progress)

    def backup(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> BackupReport:
        """Write a compressed backup of the whole store, all tenants, at one moment; readers and writers continue.

        `progress` is called with the number of files written and the total. The notes file of a workspace is not
        part of it.

        Raises: Invalid on PostgreSQL, when the file exists and is no backup, or when it cannot be written; StoreError,
        Conflict.
        """
        self._services.retrieval_marks.flush()
        target = Path(path).absolute()
        _check_replaceable(target)
        with archives.create_archive(target, compression=BACKUP_COMPRESSION) as file:
            return self._store.back_up(file, scratch=target.parent, now=self._now(), progress=progress)

    @staticmethod
    def restore(path: str | os.PathLike[str], to: str, *, progress: Progress | None = None) -> BackupReport:
        """Restore a backup to `to`, the URL of a SQLite store that does not exist yet.

        Raises: Invalid when the backup is damaged or when there is a store already; StoreError.
        """
        from wellkept.store.sqlite.backup import restore_backup

        with _reading(Path(path), progress) as (file, report_bytes):
            return restore_backup(file, to, progress=report_bytes)

    @staticmethod
    def verify_receipt(receipt: Receipt | Mapping[str, Any]) -> bool:
        """Return True if the receipt of an erasure, also as its JSON was delivered, is as it was issued."""
        return is_as_issued(receipt)

    @staticmethod
    def verify_backup(path: str | os.PathLike[str], *, progress: Progress | None = None) -> BackupReport:
        """Read a whole backup, check every checksum and the database inside, and report its content.

        Raises: Invalid, which names the damage.
        """
        from wellkept.store.sqlite.backup import verify_backup

        with _reading(Path(path), progress) as (file, report_bytes):
            return verify_backup(file, scratch=Path(path).absolute().parent, progress=report_bytes)

    def check(self, *, is_quick: bool = False, progress: Progress | None = None) -> Sequence[CheckResult]:
        """Check the whole store, all tenants, and report each problem with its remedy; change nothing.

        `is_quick` skips the checks that read everything: each database page, each text, each event.
        """
        self._services.retrieval_marks.flush()
        return self._services.checkup(is_quick=is_quick, progress=progress)

    def list_tenants(self) -> Sequence[str]:
        """Return the ids of all tenants of the store."""
        return self._store.list_tenants()

    def mend_index(self) -> int:
        """Repair the search index of every tenant where `check` finds it incomplete or outdated.

        Returns the number of repaired entries. `embed_waiting` computes their vectors.
        """
        return self._services.mend_index()

    def background(self) -> Sequence[BackgroundStatus]:
        """Return the state and queue of each background job."""
        services = self._services
        queues = (services.context_calls, services.retrieval_marks, services.loop_guard, services.keys)
        return [each.status() for each in (*queues, self.embedding)]

    def problems(self) -> Sequence[str]:
        """Describe current problems with the models and with writing to the store. Makes no network calls."""
        models = (model.problem for model in self._services.rested_models)
        failed = [f"A model failed and is paused; wellkept continues without it: {each}" for each in models if each]
        return [*failed, *self._store.problems()]

    def count_bytes(self) -> int:
        """Return the size of the database in bytes, on all nodes of a cluster."""
        return self._store.count_bytes()

    def now(self) -> datetime:
        """Return the time of this store's clock, which decides what has expired."""
        return self._now()

    def close(self) -> None:
        """Finish pending writes and release the store. Further calls do nothing.

        Raises: StoreError when a pending write fails.
        """
        if not self._is_closed:
            self._is_closed = True
            # Callbacks run in reverse order, each of them even if another raises.
            with ExitStack() as closing:
                closing.callback(self._store.close)
                closing.callback(self._services.context_calls.close)
                closing.callback(self._services.asking.close)
                closing.callback(self._services.retrieval_marks.close)
                closing.callback(self._services.loop_guard.close)
                closing.callback(self._services.keys.close)
                closing.callback(self._services.recall.close)
                closing.callback(self._services.stats.close)
                closing.callback(self.embedding.close)
                closing.callback(self.maintenance.close)

    def __repr__(self) -> str:
        return f"Wellkept({masked(self.settings.store_url)!r}{', closed' * self._is_closed})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_store(self) -> SqlStore:
        settings = self.settings
        opened = store.open_store(
            settings.store_url,
            busy_timeout=settings.busy_timeout,
            pool_size=settings.pool_size,
            index_cache_mb=settings.index_cache_mb,
            audit_key=settings.audit_key,
            prepare_threshold=settings.prepare_threshold,
            owner_url=settings.owner_url,
        )
        if settings.workspace is None:
            return opened
        return store.open_workspace(
            opened, settings.workspace, max_notes=settings.max_total, suspicious=settings.suspicious
        )

    def _open_embedding(self, requested: Embedder | None, replace_embedder: bool) -> Embedding:
        settings = self.settings
        embedder: Embedder | None = None if requested is None else CheckedEmbedder(requested)
        if requested is None:
            key, address = settings.openai_api_key, settings.openai_base_url
            embedder = open_embedder(settings.embedder, api_key=key, base_url=address)
        if embedder is not None and replace_embedder:
            self._store.change_embedder(embedder.name, embedder.dimensions)
        elif embedder is not None and not getattr(embedder, "is_remote", False):
            # A remote embedder is not contacted here: it may be unreachable, and memory works without it.
            self._store.use_embedder(embedder.name, embedder.dimensions, replaces=getattr(embedder, "replaces", ()))
        return Embedding(self._store, embedder, self._now)


def _check_replaceable(target: Path) -> None:
    """Check that a backup may be written to `target`: only another backup is replaced. Raises: Invalid."""
    if not os.path.isfile(target) or not os.path.getsize(target):
        return
    from wellkept.store.sqlite.backup import is_backup

    try:
        with archives.open_archive(target) as (stream, _):
            is_replaceable = is_backup(stream)
    except Invalid:
        is_replaceable = False
    if not is_replaceable:
        raise Invalid(f"{target} exists and is not a backup, so it is not overwritten; name another file.")


@contextmanager
def _reading(path: Path, progress: Progress | None) -> Iterator[tuple[IO[bytes], Callable[[], None] | None]]:
    """Open a backup; yield the stream, and a callback that reports to `progress` how many megabytes have been read."""
    total = archives.get_size(path) // MEGABYTE + 1
    with archives.open_archive(path) as (stream, file):
        yield stream, None if progress is None else lambda: progress(file.tell() // MEGABYTE + 1, total)


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _normalise_clock(clock: Clock) -> Clock:
    """Wrap the clock to return UTC; a time without a zone is taken as UTC."""

    def now() -> datetime:
        time: object = clock()
        if not isinstance(time, datetime):
            raise Invalid("A clock is a function that answers with the time, such as lambda: datetime.now(UTC).")
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)

    return now
