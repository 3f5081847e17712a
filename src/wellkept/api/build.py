"""Construction of the services of one store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from wellkept.memory.remember import Remember, Similar
from wellkept.memory.rules_lifetime import Category, make_lifetimes
from wellkept.memory.rules_trust import judge_memory
from wellkept.model import Kind, Owner
from wellkept.model.stored import Vector
from wellkept.prompt.assemble import Assemble, OffloadPieces
from wellkept.prompt.gather import Blocks, Gather
from wellkept.prompt.prompt_log import ContextCalls
from wellkept.prompt.summaries import Conversations, FoldTurns
from wellkept.prompt.transcripts import TranscriptWriter
from wellkept.recall.explain import Explain
from wellkept.recall.recall import Recall, RetrievalMarks
from wellkept.secrets.check import SecretGuard, Sighting, scan_tenant
from wellkept.settings import Settings
from wellkept.shared import Shared
from wellkept.tools import catalog
from wellkept.upkeep.embedding import Embedding
from wellkept.upkeep.maintain import Maintain, MaintenanceSchedule
from wellkept.upkeep.resting import GuardedModel
from wellkept.upkeep.stats import CountTenant

if TYPE_CHECKING:
    from wellkept.extension import Progress
    from wellkept.facts.adding import AddFacts
    from wellkept.history.workflows import RecordWorkflows
    from wellkept.knowledge.ingest import Ingest
    from wellkept.memory.changes import RestoreMemories
    from wellkept.store.sqlstore import SqlStore
    from wellkept.transfer.archive import Export
    from wellkept.transfer.restore import Import
    from wellkept.upkeep.checkup import Checkup, RepairIndex
    from wellkept.upkeep.consolidate import Consolidate
    from wellkept.upkeep.erase import Erase


MAINTENANCE_WRITES = 1000
"""New memories of an agent after which it is maintained; at most a tenth of its quota."""


class Services:
    """A store and all services that work on it."""

    def __init__(self, shared: Shared, models: Models, tokens: TokenCounter, skills: Skills) -> None:
        self.shared, self.tokens, self.skills = shared, tokens, skills
        self.store, self.now, self.judge, self.guard = shared.store, shared.now, shared.judge, shared.guard
        self.loop_guard, self.retrieval_marks = shared.loop_guard, shared.retrieval_marks
        self._embedding, self._settings, self._lifetimes = shared.embedding, shared.settings, shared.lifetimes
        self._summary, self._fast = _guard_models(models, self.now)
        self.rested_models = tuple(dict.fromkeys(each for each in (self._summary, self._fast) if each is not None))
        store, now = self.store, self.now
        self.stats, self.keys, self.idempotency = CountTenant(store, now), ApiKeys(store, now), Idempotency(store, now)
        self.render_tools, self.call_tool = catalog.render_tools, catalog.call
        self._add_maintenance()
        self._add_writers()
        self._add_readers()
        self._add_prompts()

    def _add_maintenance(self) -> None:
        settings = self._settings
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
            _read_statements,
            self.similar,
            now,
            lifetimes=self._lifetimes,
            proposes=self._summary is None,
        )
        self.asking = AskModel(store, self.remember, self.telling, self.changes, guard, self._summary, now)
        self.transcripts = TranscriptWriter(self.shared, self.remember, self.telling, on_facts=self.asking.request)
        self.details = Details(store, guard, now, model=self._fast if settings.detail_summary == "model" else None)
        self.capture = Capture(self.details, self.tokens, threshold=settings.capture_threshold)

    def _add_readers(self) -> None:
        store = self.store
        self.recall = Recall(self.shared, on_recall=self.schedule.nudge)
        self.items = Items(store, self._embedding, self.remember, self.recall, self.retrieval_marks, self.now)
        self.search_knowledge = SearchKnowledge(PassageSearch(store), self._embedding, self.loop_guard)

    def _add_prompts(self) -> None:
        shared = self.shared
        self.blocks, self.profiles = Blocks(shared), Profiles(shared.store, shared.now)
        self.conversations = Conversations(shared, self._summary)
        self.context_calls = ContextCalls(shared.store, self.skills, keep=shared.settings.context_calls_kept)
        self.explain = Explain(shared, self.recall, self.context_calls)
        # No model here: assembling a prompt must not wait for a summary.
        details = Details(shared.store, shared.guard, shared.now)
        self.assemble = Assemble(
            shared,
            Gather(shared, self.blocks, self.profiles, self.recall, self.skills, self.conversations),
            FoldTurns(shared, self._fast),
            OffloadPieces(details),
            self.context_calls,
            self.tokens,
            settle=self.asking.settle,
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

        return Export(self.store, self.now, key=self._settings.export_key)

    @cached_property
    def import_(self) -> Import:
        from wellkept.transfer.check import Place
        from wellkept.transfer.foreign import ForeignImport
        from wellkept.transfer.restore import Import, Restore

        store, now, settings = self.store, self.now, self._settings
        keys = {"audit_key": settings.audit_key, "export_key": settings.export_key}
        restore = Restore(Place(store=store, embedding=self._embedding, now=now, **keys))
        foreign = ForeignImport(store, self.remember, self.items, self.transcripts, self.guard, now, settings)
        return Import(restore, foreign, agent=settings.agent)

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


def _read_statements(texts: Sequence[str]) -> tuple[Vector, Vector]:
    """Return the vectors and the readings of texts by the packaged encoder, which is imported with the first."""
    from wellkept.providers.minilm import read_statements

    return read_statements(texts)


def share(store: SqlStore, embedding: Embedding, now: Clock, settings: Settings) -> Shared:
    """Build what the services of a store share. Raises: Invalid."""
    check_key(settings.export_key, "export_key")
    limited = [each.value for each in Category if each is not Category.EXPLICIT]
    lifetimes = make_lifetimes(**{name: getattr(settings, f"lifetime_{name}") for name in limited})
    # A file of notes cannot hold a mark.
    unmarked = () if settings.workspace is None else (Kind.NOTE,)
    return Shared(
        store=store,
        settings=settings,
        now=now,
        embedding=embedding,
        guard=SecretGuard(store, now, mode=settings.secrets),
        loop_guard=LoopGuard(store, now),
        retrieval_marks=RetrievalMarks(store, unmarked=unmarked, lifetimes=lifetimes),
        judge=partial(judge_memory, mode=settings.suspicious),
        lifetimes=lifetimes,
    )


def _guard_models(models: Models, now: Clock) -> tuple[GuardedModel | None, GuardedModel | None]:
    """Wrap the models for summaries and for fast answers. A model used for both shares one wrapper."""
    summary = None if models.summary is None else GuardedModel(models.summary, now)
    if models.fast is models.summary:
        return summary, summary
    return summary, None if models.fast is None else GuardedModel(models.fast, now)
