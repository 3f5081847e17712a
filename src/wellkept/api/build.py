"""Construction of the services of one store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from wellkept.access.idempotency import Idempotency
from wellkept.access.keys import ApiKeys
from wellkept.details.details import Capture, Details
from wellkept.extension import Clock, Models, TokenCounter
from wellkept.facts.asking import AskModel
from wellkept.facts.profile import Profiles
from wellkept.facts.telling import Telling
from wellkept.history.rules_history import check_key
from wellkept.knowledge.search import PassageSearch, SearchKnowledge
from wellkept.knowledge.skills import Skills
from wellkept.memory.changes import Changes
from wellkept.memory.items import Items
from wellkept.memory.loop_guard import LoopGuard
from wellkept.memory.remember import Remember
from wellkept.memory.rules_lifetime import Category, make_lifetimes
from wellkept.memory.rules_trust import Judge, judge_memory
from wellkept.memory.similar import Similar
from wellkept.model import Kind, Owner
from wellkept.model.stored import Vector
from wellkept.prompt.assemble import Assemble
from wellkept.prompt.blocks import Inject
from wellkept.prompt.conversation import Conversations
from wellkept.prompt.fold import FoldTurns
from wellkept.prompt.gather import Gather
from wellkept.prompt.prompt_log import ContextCalls, InspectContextCall
from wellkept.prompt.references import OffloadPieces
from wellkept.prompt.transcripts import TranscriptWriter
from wellkept.recall.recall import Recall, RetrievalMarks
from wellkept.secrets.check import SecretGuard, Sighting, scan_tenant
from wellkept.settings import Settings
from wellkept.upkeep.embedding import Embedding
from wellkept.upkeep.maintain import Maintain
from wellkept.upkeep.resting import GuardedModel
from wellkept.upkeep.schedule import MaintenanceSchedule
from wellkept.upkeep.stats import CountTenant

if TYPE_CHECKING:
    from wellkept.facts.adding import AddFacts
    from wellkept.history.workflows import RecordWorkflows
    from wellkept.importers import Importers
    from wellkept.knowledge.ingest import Ingest
    from wellkept.memory.changes import RestoreMemories
    from wellkept.providers.archives import Archives
    from wellkept.store.sqlstore import SqlStore
    from wellkept.transfer.archive import Export
    from wellkept.transfer.restore import Import
    from wellkept.upkeep.checkup import Checkup, RepairIndex
    from wellkept.upkeep.consolidate import Consolidate
    from wellkept.upkeep.erase import Erase
    from wellkept.upkeep.walk import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """Dependencies of the services other than the store."""

    models: Models
    tokens: TokenCounter
    skills: Skills
    archives: Archives
    formats: Importers


MAINTENANCE_WRITES = 1000
"""New memories of an agent after which it is maintained; at most a tenth of its quota."""


class Services:
    """A store and all services that work on it."""

    def __init__(
        self, store: SqlStore, embedding: Embedding, dependencies: Dependencies, *, now: Clock, settings: Settings
    ) -> None:
        """Build the services from the settings. Raises: Invalid."""
        self._export_key = check_key(settings.export_key, "export_key")
        self.store, self.now, self.tokens, self.skills = store, now, dependencies.tokens, dependencies.skills
        self._embedding, self._settings, self._dependencies = embedding, settings, dependencies
        self._summary, self._fast = _guard_models(dependencies.models, now)
        self.rested_models = tuple(dict.fromkeys(each for each in (self._summary, self._fast) if each is not None))
        limited = [each.value for each in Category if each is not Category.EXPLICIT]
        self._lifetimes = make_lifetimes(**{name: getattr(settings, f"lifetime_{name}") for name in limited})
        self.judge: Judge = partial(judge_memory, mode=settings.suspicious)
        self.guard, self.loop_guard = SecretGuard(store, now, mode=settings.secrets), LoopGuard(store, now)
        self.stats, self.keys, self.idempotency = CountTenant(store, now), ApiKeys(store, now), Idempotency(store, now)
        self._add_maintenance()
        self._add_writers()
        self._add_readers()
        self._add_prompts()

    def _add_maintenance(self) -> None:
        settings = self._settings
        unmarked = () if settings.workspace is None else (Kind.NOTE,)
        self.retrieval_marks = RetrievalMarks(self.store, unmarked=unmarked, lifetimes=self._lifetimes)
        self.maintain = Maintain(
            self.store,
            self._embedding,
            self.now,
            quota=settings.episode_quota,
            lifetimes=self._lifetimes,
            keeps_gist=settings.gist_on_expiry,
            judge=self.judge,
            consolidate=self._consolidate,
        )
        self.schedule = MaintenanceSchedule(
            self.maintain, self.retrieval_marks.flush, self.now, interval=settings.maintenance_interval
        )

    def _add_writers(self) -> None:
        store, guard, now, settings = self.store, self.guard, self.now, self._settings
        self.remember = Remember(
            store,
            self._embedding,
            guard,
            self.loop_guard,
            settings,
            now,
            lifetimes=self._lifetimes,
            step=max(1, min(MAINTENANCE_WRITES, settings.episode_quota // 10)) if settings.maintenance_interval else 0,
            on_step=self.schedule.request,
            on_first=self.schedule.nudge,
        )
        self.changes = Changes(store, self.remember, now)
        self.similar = Similar(store, self._embedding, now)
        self.telling = Telling(
            store,
            self.remember,
            self.changes,
            _embed_facts if self._embedding.is_on else lambda texts: None,
            self.similar,
            now,
            lifetimes=self._lifetimes,
            proposes=self._summary is None,
        )
        self.asking = AskModel(store, self.remember, self.telling, self.changes, guard, self._summary, now)
        self.transcripts = TranscriptWriter(
            store,
            self.remember,
            guard,
            self.telling,
            now,
            remembers=settings.remember_turns,
            on_facts=self.asking.request,
        )
        self.details = Details(store, guard, now, model=self._fast if settings.detail_summary == "model" else None)
        self.capture = Capture(self.details, self.tokens, threshold=settings.capture_threshold)

    def _add_readers(self) -> None:
        store, settings = self.store, self._settings
        self.recall = Recall(
            store,
            self._embedding,
            self.loop_guard,
            self.retrieval_marks,
            self.judge,
            self.now,
            settings,
            on_recall=self.schedule.nudge,
        )
        self.items = Items(store, self._embedding, self.remember, self.recall, self.retrieval_marks, self.now)
        self.search_knowledge = SearchKnowledge(PassageSearch(store), self._embedding, self.loop_guard)

    def _add_prompts(self) -> None:
        store, guard, now, settings = self.store, self.guard, self.now, self._settings
        self.inject = Inject(
            store,
            self._embedding,
            self.loop_guard,
            self.judge,
            now,
            settings,
        )
        self.conversations = Conversations(
            store,
            guard,
            self._summary,
            now,
            settings,
        )
        self.profiles = Profiles(store, now)
        self.context_calls = ContextCalls(store, keep=settings.context_calls_kept)
        self.inspect_call = InspectContextCall(store, self.skills, self.context_calls)
        self.assemble = Assemble(
            store,
            now,
            gather=Gather(
                store, self.judge, self.inject, self.profiles, self.recall, self.skills, self.conversations, settings
            ),
            fold=FoldTurns(store, guard, self._fast, now),
            # No model here: assembling a prompt must not wait for a summary.
            move=OffloadPieces(Details(store, guard, now)),
            settle=self.asking.settle,
            tokens=self.tokens,
            loop_guard=self.loop_guard,
            retrieval_marks=self.retrieval_marks,
            calls=self.context_calls,
            settings=settings,
        )

    def _consolidate(self, owner: Owner) -> int:
        """Compare what no model was asked about, and consolidate an agent in which memories were stored."""
        self.asking.attempt(owner)
        return self.consolidate.run_if_changed(owner)

    # Programs that never use these do not import them either. They have no state but erase's, which is that of others.

    @cached_property
    def checkup(self) -> Checkup:
        from wellkept.upkeep.checkup import Checkup

        return Checkup(self.store, self.now, agent=Owner(self._settings.tenant, self._settings.agent))

    @cached_property
    def mend_index(self) -> RepairIndex:
        from wellkept.upkeep.checkup import RepairIndex

        return RepairIndex(self.store, self.now)

    def scan(self, tenant: str, *, progress: Progress | None = None) -> Iterator[Sighting]:
        return scan_tenant(self.store, self.guard, tenant, progress)

    @cached_property
    def workflows(self) -> RecordWorkflows:
        from wellkept.history.workflows import RecordWorkflows

        return RecordWorkflows(self.store, self.guard, self.now)

    @cached_property
    def restore(self) -> RestoreMemories:
        from wellkept.memory.changes import RestoreMemories

        return RestoreMemories(self.store, self._embedding, self.judge, self.now, lifetimes=self._lifetimes)

    @cached_property
    def consolidate(self) -> Consolidate:
        from wellkept.upkeep.consolidate import Consolidate

        settings = self._settings
        return Consolidate(
            self.store,
            self.remember,
            self.changes,
            self.guard,
            self.telling.find_contradictions,
            self.now,
            model=self._summary,
            policy=settings.consolidation,
            is_noted=settings.workspace is None,
        )

    @cached_property
    def facts(self) -> AddFacts:
        from wellkept.facts.adding import AddFacts

        return AddFacts(self.store, self.remember, self.telling, self.changes, self.guard, self.now, model=self.asking)

    @cached_property
    def ingest(self) -> Ingest:
        from wellkept.knowledge.ingest import Ingest

        return Ingest(self.store, self._embedding, self.guard, self.now)

    @cached_property
    def export(self) -> Export:
        from wellkept.transfer.archive import Export

        return Export(self.store, self._dependencies.archives, self.now, key=self._export_key)

    @cached_property
    def import_(self) -> Import:
        from wellkept.transfer.check import Place
        from wellkept.transfer.foreign import ForeignImport
        from wellkept.transfer.restore import Import, Restore

        store, now, settings, archives = self.store, self.now, self._settings, self._dependencies.archives
        keys = {"audit_key": settings.audit_key, "export_key": self._export_key}
        restore = Restore(Place(store=store, embedding=self._embedding, files=archives, now=now, **keys))
        foreign = ForeignImport(store, self.remember, self.items, self.transcripts, self.guard, now, settings)
        return Import(archives, restore, foreign, self._dependencies.formats, agent=settings.agent)

    @cached_property
    def erase(self) -> Erase:
        from wellkept.upkeep.erase import Erase

        caches = (self.loop_guard, self.assemble, self.context_calls, self.keys, self._embedding, self.stats)
        return Erase(
            self.store,
            self.changes,
            self.now,
            # Queued values would be written after the erasure.
            flush=(self.retrieval_marks.flush, self.context_calls.flush),
            forget=[each.forget for each in caches],
        )


def _embed_facts(texts: Sequence[str]) -> Vector:
    """Embed texts with the packaged encoder, which is imported with the first."""
    from wellkept.providers.minilm import MiniLMEmbedder

    return MiniLMEmbedder().embed(texts)


def _guard_models(models: Models, now: Clock) -> tuple[GuardedModel | None, GuardedModel | None]:
    """Wrap the models for summaries and for fast answers. A model used for both shares one wrapper."""
    summary = None if models.summary is None else GuardedModel(models.summary, now)
    if models.fast is models.summary:
        return summary, summary
    return summary, None if models.fast is None else GuardedModel(models.fast, now)
