"""`Recollect`: opens a store and hands out the views of its tenants and agents.

Nothing is kept between calls except what the store holds, so one `Recollect` serves many threads at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from recollect.api.agent import AgentMemory
from recollect.api.build import Outside, wired
from recollect.api.tenant import TenantMemory
from recollect.caller import current_caller
from recollect.errors import Invalid
from recollect.model import ApiKey, BackgroundStatus, Check, RefusedText, Skill
from recollect.policy.names import checked_tenant
from recollect.ports import Clock, Embedder, Store, TokenCounter
from recollect.providers.archives import Archives
from recollect.providers.documents import Files
from recollect.providers.embedders import CheckedEmbedder, open_embedder
from recollect.providers.importers import Importers
from recollect.providers.models import GivenModel, open_models
from recollect.providers.skill_files import SkillFolders
from recollect.providers.tokenizers import open_tokenizer
from recollect.services.background.embedding import Embedding
from recollect.services.knowledge.skills import Skills
from recollect.services.upkeep.maintain import MaintenanceReport
from recollect.services.walk import Progress
from recollect.settings import Settings
from recollect.store import open_store, open_workspace

__all__ = ["AgentMemory", "Recollect", "TenantMemory"]


class Recollect:
    """One store of memories. Open it once, share it between threads, close it at the end (or use `with`)."""

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
        """Open the store at `url`: `sqlite:///file.db`, `:memory:`, `postgresql://…` or a path; by default a file
        in the user's data folder. `clock` answers with the time, in UTC if it names no zone. `tokenizer` is an object
        with `count(text)`, or a function; `model`, an object or a function, takes the place of those the settings name.
        `replace_embedder` gives up vectors another embedder made, to be made anew by `embed_waiting`.

        Raises: Invalid, StoreError, SchemaMismatch; ModelError when `replace_embedder` finds the new one out of reach.
        """
        self.settings = settings if settings is not None else Settings.load()
        if url is not None:
            self.settings = replace(self.settings, url=os.fspath(url))
        skills = Skills(SkillFolders(self.settings.skills))
        tokens = open_tokenizer(tokenizer or self.settings.tokenizer, folder=self.settings.tiktoken_cache_dir)
        self._now = _utc_now if clock is None else _checked(clock)
        self._store = self._open_store()
        try:
            models = open_models(self.settings, model)
            self.model = models.main if model is not None else None
            """The model that was given; None: those of the settings are asked."""
            self._embedding = self._open_embedding(embedder, replace_embedder)
        except BaseException:
            self._store.close()
            raise
        self._store.embed_notes_with(self._embedding.of_texts)
        self._services = wired(
            self._store,
            self._embedding,
            Outside(
                models=models, tokens=tokens, skills=skills, files=Files(), archives=Archives(), formats=Importers()
            ),
            now=self._now,
            settings=self.settings,
        )
        self.idempotency = self._services.idempotency
        """For servers: the keys that requests carry so that a retry does not write twice."""
        self._is_closed = False

    def agent(self, id: str | None = None, tenant: str | None = None) -> AgentMemory:
        """One agent's memory. Nothing is written by this; the agent is made when it first remembers something.

        Raises: Invalid, Forbidden.
        """
        return self.tenant(tenant).agent(id or self.settings.agent)

    def tenant(self, id: str | None = None) -> TenantMemory:
        """What all agents of a tenant share.

        Raises: Invalid.
        """
        return TenantMemory(self._services, checked_tenant(id or self.settings.tenant))

    def skills(self) -> Sequence[Skill]:
        """What agents are taught by the files of the setting `skills`, by name; read again when a file changed."""
        caller, skills = current_caller(), self._services.skills()
        return [each for each in skills if not each.agents or any(map(caller.is_allowed, each.agents))]

    def skill_problems(self) -> Sequence[str]:
        """What is wrong with those files at the moment; what was read before stays in use."""
        return self._services.skills.problems()

    def maintain(self, *, progress: Progress | None = None) -> MaintenanceReport:
        """Let memories fade: archive what expired, what decayed and what exceeds the quota; embed what waits.
        `progress` is told after each agent how many are done, of how many.

        Raises: Conflict while another process is at it.
        """
        self._services.retrieved.flush()
        return self._services.maintain(progress=progress)

    def check(self, *, is_quick: bool = False, progress: Progress | None = None) -> Sequence[Check]:
        """Look over the whole store, every tenant, and say what is not in order and what to do about it; nothing is
        changed. `is_quick` leaves out what reads everything: each page of the database, each text, each event.
        """
        self._services.retrieved.flush()
        return self._services.checkup(is_quick=is_quick, progress=progress)

    def list_tenants(self) -> Sequence[str]:
        """Return the ids of all tenants of the store."""
        return self._store.list_tenants()

    def mend_index(self) -> int:
        """Put right what `check` finds missing from the search index or out of date in it, in every tenant; how many
        entries those were. `embed_waiting` makes their vectors.
        """
        return self._services.mend_index()

    def embed_waiting(self) -> int:
        """Give a vector to every memory that has none yet; how many those were.

        Texts the embedder refuses are skipped; `find_refused` names them.

        Raises: ModelError when it fails altogether.
        """
        return self._embedding.embed_waiting()

    def count_waiting(self) -> int:
        """How many texts have no vector yet, in every tenant."""
        return self._embedding.count_waiting()

    def find_refused(self) -> Sequence[RefusedText]:
        """Ask the embedder about some texts that wait, and return those it refuses, of every tenant; they are skipped
        and tried again later.

        Raises: ModelError, StoreError.
        """
        return self._embedding.find_refused()

    def list_refused(self, tenant: str | None = None) -> Sequence[RefusedText]:
        """Return the texts the embedder has refused since this store was opened, of one tenant or of all."""
        return self._embedding.refused(tenant)

    def background(self) -> Sequence[BackgroundStatus]:
        """Return the state of each background thread and its queue; a thread that died is started again."""
        services = self._services
        workers = (services.context_calls, services.retrieved, services.keys, self._embedding)
        return [each.status() for each in workers]

    def verify_key(self, key: str) -> ApiKey:
        """Whose key this is and what it allows.

        Raises: Unauthorized when it is unknown, revoked or has expired.
        """
        return self._services.keys.verify(key)

    def current_key(self, tenant: str, id: str) -> ApiKey:
        """The key of this id, for whoever has shown it to `verify_key` before.

        Raises: Unauthorized when it was revoked or has expired since.
        """
        return self._services.keys.current(tenant, id)

    def embedder_problem(self) -> str:
        """Why the embedder failed when it was last asked; empty if it did not."""
        return self._embedding.problem

    def problems(self) -> Sequence[str]:
        """What is wrong at the moment with the models and with writing to the store, in sentences. It asks nobody."""
        models = (model.problem for model in self._services.rested_models)
        failed = [f"A model is left alone for a moment, and done without: {each}" for each in models if each]
        return [*failed, *self._store.problems()]

    def count_bytes(self) -> int:
        """How large the database is."""
        return self._store.count_bytes()

    def has_keys(self) -> bool:
        """Whether there is a key that opens something, in whatever tenant."""
        return self._services.keys.is_any_valid()

    def recent_key(self, key: str, *, at_any_age: bool = False) -> ApiKey | None:
        """What `verify_key` answered within the last second, or `at_any_age`, when it may have been revoked elsewhere
        since; waits for nothing, so an event loop may call it."""
        return self._services.keys.recent(key, at_any_age=at_any_age)

    def now(self) -> datetime:
        """The time by this store's clock, which decides what has expired."""
        return self._now()

    def close(self) -> None:
        """Finish what is being written and let go of the store. Calling it again does nothing.

        Raises: StoreError when something that was to be written a little later cannot be.
        """
        if not self._is_closed:
            self._is_closed = True
            with ExitStack() as closing:  # the last one first, and every one of them, whatever another one raises
                closing.callback(self._store.close)
                closing.callback(self._services.context_calls.close)
                closing.callback(self._services.retrieved.close)
                closing.callback(self._services.keys.close)
                closing.callback(self._services.recall.close)
                closing.callback(self._embedding.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_store(self) -> Store:
        settings = self.settings
        store = open_store(
            settings.store_url,
            busy_timeout=settings.busy_timeout,
            pool_size=settings.pool_size,
            index_cache_mb=settings.index_cache_mb,
            audit_key=settings.audit_key,
        )
        if settings.workspace is None:
            return store
        return open_workspace(store, settings.workspace, max_notes=settings.max_total, suspicious=settings.suspicious)

    def _open_embedding(self, given: Embedder | None, replace_embedder: bool) -> Embedding:
        chosen = given or open_embedder(
            self.settings.embedder, api_key=self.settings.openai_api_key, base_url=self.settings.openai_base_url
        )
        if chosen is None:
            return Embedding(self._store, None, self._now)
        embedder = CheckedEmbedder(chosen)
        if replace_embedder:
            self._store.change_embedder(embedder.name, embedder.dimensions)
        elif not embedder.is_remote:  # a remote one is asked nothing yet: it may be out of reach, and memory works on
            self._store.use_embedder(embedder.name, embedder.dimensions)
        return Embedding(self._store, embedder, self._now)


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _checked(clock: Clock) -> Clock:
    """The clock, in UTC whatever zone it is set to; one that names none is taken to be in UTC already."""

    def now() -> datetime:
        told: object = clock()
        if not isinstance(told, datetime):
            raise Invalid("A clock is a function that answers with the time, such as lambda: datetime.now(UTC).")
        return told.replace(tzinfo=UTC) if told.tzinfo is None else told.astimezone(UTC)

    return now
