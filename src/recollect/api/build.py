"""Construction of the services of one store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from recollect.api.services import Dependencies, Services
from recollect.lazy import lazy_class
from recollect.model import Kind, Owner
from recollect.policy.audit import check_key
from recollect.policy.memories.categories import Category, Lifetimes, make_lifetimes
from recollect.policy.memories.trust import Judge, judge_memory
from recollect.ports import Clock, Models, Store, TokenCounter
from recollect.services.access.keys import ApiKeys
from recollect.services.background.embedding import Embedding
from recollect.services.background.resting import GuardedModel
from recollect.services.knowledge.search import PassageSearch, SearchKnowledge
from recollect.services.knowledge.skills import Skills
from recollect.services.memories.loop_guard import LoopGuard
from recollect.services.memories.remember import Remember
from recollect.services.memories.secrets import SecretGuard
from recollect.services.memories.similar import Similar
from recollect.services.prompt.blocks import Inject
from recollect.services.prompt.prompt_log import ContextCalls
from recollect.services.prompt.transcripts import TranscriptWriter
from recollect.services.recall.history_source import AuditSource, StepSource
from recollect.services.recall.knowledge_source import KnowledgeSource
from recollect.services.recall.marks import RetrievalMarks
from recollect.services.recall.memory_source import MemorySource
from recollect.services.recall.question import RecallSource
from recollect.services.recall.recall import Recall
from recollect.services.upkeep.maintain import Maintain
from recollect.services.upkeep.schedule import MaintenanceSchedule
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.services.access.idempotency import Idempotency
    from recollect.services.details.capture import Capture
    from recollect.services.details.describe import Describe
    from recollect.services.details.details import Details
    from recollect.services.history.workflows import RecordWorkflows
    from recollect.services.knowledge.ingest import Ingest
    from recollect.services.memories.consolidate import Consolidate
    from recollect.services.memories.facts import ExtractFacts
    from recollect.services.memories.items import Items
    from recollect.services.memories.restoring import RestoreMemories
    from recollect.services.memories.secret_scan import SecretScan
    from recollect.services.prompt.assemble import Assemble
    from recollect.services.prompt.conversation import Conversations
    from recollect.services.prompt.fold import FoldTurns
    from recollect.services.prompt.gather import Gather
    from recollect.services.prompt.prompt_log import InspectContextCall
    from recollect.services.prompt.references import OffloadPieces
    from recollect.services.transfer.export import Export
    from recollect.services.transfer.foreign import ForeignImport
    from recollect.services.transfer.importing import Import
    from recollect.services.transfer.restore import Restore
    from recollect.services.upkeep.checkup import Checkup, RepairIndex
    from recollect.services.upkeep.erase import Erase
    from recollect.services.upkeep.stats import CountTenant
else:
    # Few programs use all of these.
    Idempotency = lazy_class("recollect.services.access.idempotency.Idempotency")
    Capture = lazy_class("recollect.services.details.capture.Capture")
    Describe = lazy_class("recollect.services.details.describe.Describe")
    Details = lazy_class("recollect.services.details.details.Details")
    RecordWorkflows = lazy_class("recollect.services.history.workflows.RecordWorkflows")
    Ingest = lazy_class("recollect.services.knowledge.ingest.Ingest")
    Consolidate = lazy_class("recollect.services.memories.consolidate.Consolidate")
    ExtractFacts = lazy_class("recollect.services.memories.facts.ExtractFacts")
    Items = lazy_class("recollect.services.memories.items.Items")
    RestoreMemories = lazy_class("recollect.services.memories.restoring.RestoreMemories")
    SecretScan = lazy_class("recollect.services.memories.secret_scan.SecretScan")
    Assemble = lazy_class("recollect.services.prompt.assemble.Assemble")
    Conversations = lazy_class("recollect.services.prompt.conversation.Conversations")
    FoldTurns = lazy_class("recollect.services.prompt.fold.FoldTurns")
    Gather = lazy_class("recollect.services.prompt.gather.Gather")
    InspectContextCall = lazy_class("recollect.services.prompt.prompt_log.InspectContextCall")
    OffloadPieces = lazy_class("recollect.services.prompt.references.OffloadPieces")
    Export = lazy_class("recollect.services.transfer.export.Export")
    ForeignImport = lazy_class("recollect.services.transfer.foreign.ForeignImport")
    Import = lazy_class("recollect.services.transfer.importing.Import")
    Restore = lazy_class("recollect.services.transfer.restore.Restore")
    Checkup = lazy_class("recollect.services.upkeep.checkup.Checkup")
    RepairIndex = lazy_class("recollect.services.upkeep.checkup.RepairIndex")
    Erase = lazy_class("recollect.services.upkeep.erase.Erase")
    CountTenant = lazy_class("recollect.services.upkeep.stats.CountTenant")

PARTS = ("similarity", "recency", "importance", "source")
"""Parts of a recall score that have a weight in the settings."""


def build_services(
    store: Store, embedding: Embedding, outside: Dependencies, *, now: Clock, settings: Settings
) -> Services:
    """Build the services of one store from the settings. Raises: Invalid."""
    key = check_key(settings.export_key, "export_key")
    (summary, fast), tokens, skills = _guard_models(outside.models, now), outside.tokens, outside.skills
    echoes, retrieved, stats = LoopGuard(store, now), _build_marks(store, settings), CountTenant(store, now)
    guard, judge = SecretGuard(store, now, mode=settings.secrets), partial(judge_memory, mode=settings.suspicious)
    maintain, schedule = _build_maintain(store, embedding, retrieved, judge, now, settings)
    remember = _build_remember(store, embedding, guard, echoes, schedule, now, settings)
    transcripts = TranscriptWriter(store, remember, guard, now, is_capturing=settings.capture_turns)
    conversations = _build_conversations(store, guard, summary, now, settings)
    recall = _build_recall(store, embedding, echoes, retrieved, schedule, judge, now, settings)
    inject = _build_inject(store, embedding, echoes, judge, now, settings)
    context_calls, keys = ContextCalls(store, keep=settings.context_calls_kept), ApiKeys(store, now)
    consolidate = _build_consolidate(store, remember, guard, summary, now, settings)
    gather = _build_gather(store, judge, inject, recall, skills, conversations, settings)
    assemble = _build_assemble(store, guard, gather, fast, tokens, echoes, retrieved, context_calls, now, settings)
    similar, caches = Similar(store, embedding, now), (echoes, assemble, context_calls, keys, embedding, stats)
    return Services(
        store=store,
        now=now,
        judge=judge,
        rested_models=tuple(dict.fromkeys(model for model in (summary, fast) if model is not None)),
        remember=remember,
        items=(items := Items(store, embedding, remember, recall, retrieved, now)),
        restore=RestoreMemories(store, embedding, judge, now, lifetimes=_read_lifetimes(settings)),
        transcripts=transcripts,
        conversations=conversations,
        recall=recall,
        inject=inject,
        similar=similar,
        consolidate=consolidate,
        facts=_build_facts(store, remember, guard, similar, summary, now, settings),
        scan=SecretScan(store, guard),
        details=(details := Details(store, guard, Describe(fast if settings.detail_summary == "model" else None), now)),
        capture=Capture(details, tokens, threshold=settings.capture_threshold),
        guard=guard,
        echoes=echoes,
        maintain=maintain,
        schedule=schedule,
        checkup=Checkup(store, now, agent=Owner(settings.tenant, settings.agent)),
        mend_index=RepairIndex(store, now),
        retrieved=retrieved,
        workflows=RecordWorkflows(store, guard, now),
        tokens=tokens,
        skills=skills,
        keys=keys,
        idempotency=Idempotency(store, now),
        ingest=Ingest(store, embedding, guard, outside.files, now),
        search_knowledge=SearchKnowledge(PassageSearch(store), embedding, echoes, floor=settings.recall_floor),
        assemble=assemble,
        context_calls=context_calls,
        seen=InspectContextCall(store, skills, context_calls),
        erase=Erase(store, consolidate, now, waiting=(retrieved, context_calls), caches=caches),
        stats=stats,
        export=Export(store, outside.archives, now, key=key),
        import_=_build_import(store, embedding, remember, items, transcripts, guard, outside, now, settings, key),
    )


def _guard_models(models: Models, now: Clock) -> tuple[GuardedModel | None, GuardedModel | None]:
    """Wrap the models for summaries and for fast answers. A model used for both shares one wrapper."""
    summary = None if models.summary is None else GuardedModel(models.summary, now)
    if models.fast is models.summary:
        return summary, summary
    return summary, None if models.fast is None else GuardedModel(models.fast, now)


def _build_remember(
    store: Store,
    embedding: Embedding,
    guard: SecretGuard,
    echoes: LoopGuard,
    schedule: MaintenanceSchedule,
    now: Clock,
    settings: Settings,
) -> Remember:
    return Remember(
        store,
        embedding,
        guard,
        echoes,
        now,
        max_counts={Kind.NOTE: settings.max_total},
        max_per_user=settings.max_total_per_user,
        suspicious=settings.suspicious,
        lifetimes=_read_lifetimes(settings),
        keeps_gist=settings.gist_on_expiry,
        # At most a tenth of the quota, so that an agent never has much more than its quota.
        step=settings.maintenance_writes and max(1, min(settings.maintenance_writes, settings.episode_quota // 10)),
        on_step=schedule.request,
        on_first=schedule.nudge,
    )


def _build_maintain(
    store: Store, embedding: Embedding, retrieved: RetrievalMarks, judge: Judge, now: Clock, settings: Settings
) -> tuple[Maintain, MaintenanceSchedule]:
    maintain = Maintain(
        store,
        embedding,
        now,
        quota=settings.episode_quota,
        quota_per_user=settings.episode_quota_per_user,
        lifetimes=_read_lifetimes(settings),
        keeps_gist=settings.gist_on_expiry,
        judge=judge,
    )
    return maintain, MaintenanceSchedule(maintain, retrieved.flush, now, interval=settings.maintenance_interval)


def _build_marks(store: Store, settings: Settings) -> RetrievalMarks:
    unmarked = () if settings.workspace is None else (Kind.NOTE,)
    return RetrievalMarks(store, unmarked=unmarked, lifetimes=_read_lifetimes(settings))


def _read_lifetimes(settings: Settings) -> Lifetimes:
    limited = [each.value for each in Category if each is not Category.EXPLICIT]
    return make_lifetimes(**{name: getattr(settings, f"lifetime_{name}") for name in limited})


def _build_import(
    store: Store,
    embedding: Embedding,
    remember: Remember,
    items: Items,
    transcripts: TranscriptWriter,
    guard: SecretGuard,
    outside: Dependencies,
    now: Clock,
    settings: Settings,
    key: str,
) -> Import:
    archives = outside.archives
    restore = Restore(store, embedding, archives, now, audit_key=settings.audit_key, export_key=key)
    foreign = ForeignImport(
        store,
        remember,
        items,
        transcripts,
        guard,
        now,
        max_notes=settings.max_total,
        max_per_user=settings.max_total_per_user,
    )
    return Import(archives, restore, foreign, outside.formats, agent=settings.agent)


def _build_gather(
    store: Store,
    judge: Judge,
    inject: Inject,
    recall: Recall,
    skills: Skills,
    conversations: Conversations,
    settings: Settings,
) -> Gather:
    return Gather(
        store,
        judge,
        inject=inject,
        recall=recall,
        skills=skills,
        converse=conversations,
        memories=settings.context_memories,
        passages=settings.context_passages,
        floor=settings.context_floor,
    )


def _build_assemble(
    store: Store,
    guard: SecretGuard,
    gather: Gather,
    fast: GuardedModel | None,
    tokens: TokenCounter,
    echoes: LoopGuard,
    retrieved: RetrievalMarks,
    calls: ContextCalls,
    now: Clock,
    settings: Settings,
) -> Assemble:
    return Assemble(
        store,
        now,
        gather=gather,
        fold=FoldTurns(store, guard, fast, now, max_input_chars=settings.summary_input_chars),
        # No model here: assembling a prompt must not wait for a summary.
        move=OffloadPieces(Details(store, guard, Describe(None), now)),
        tokens=tokens,
        echoes=echoes,
        retrieved=retrieved,
        calls=calls,
        budget=settings.context_budget,
        layout=settings.context_layout,
    )


def _build_recall(
    store: Store,
    embedding: Embedding,
    echoes: LoopGuard,
    retrieved: RetrievalMarks,
    schedule: MaintenanceSchedule,
    judge: Judge,
    now: Clock,
    settings: Settings,
) -> Recall:
    sources: Sequence[RecallSource] = (
        MemorySource(store, judge, words_share=settings.similarity_words),
        AuditSource(store),
        StepSource(store),
        KnowledgeSource(PassageSearch(store)),
    )
    weights = {name: getattr(settings, f"weight_{name}") for name in PARTS}
    return Recall(
        store,
        sources,
        embedding,
        echoes,
        retrieved,
        judge,
        now,
        weights=weights,
        floor=settings.recall_floor,
        half_life=timedelta(days=settings.recency_half_life),
        deadline=settings.recall_deadline,
        on_recall=schedule.nudge,
    )


def _build_consolidate(
    store: Store, remember: Remember, guard: SecretGuard, model: GuardedModel | None, now: Clock, settings: Settings
) -> Consolidate:
    is_noted, policy = settings.workspace is None, settings.consolidation
    return Consolidate(store, remember, guard, now, model=model, policy=policy, is_noted=is_noted)


def _build_facts(
    store: Store,
    remember: Remember,
    guard: SecretGuard,
    similar: Similar,
    model: GuardedModel | None,
    now: Clock,
    settings: Settings,
) -> ExtractFacts:
    is_noted, is_automatic = settings.workspace is None, settings.extract_facts
    return ExtractFacts(store, remember, guard, similar, now, model=model, is_noted=is_noted, is_automatic=is_automatic)


def _build_conversations(
    store: Store, guard: SecretGuard, model: GuardedModel | None, now: Clock, settings: Settings
) -> Conversations:
    return Conversations(
        store,
        guard,
        model,
        now,
        is_enabled=settings.summary_enabled,
        threshold=settings.summary_threshold,
        keep_last=settings.summary_keep_last,
        max_input_chars=settings.summary_input_chars,
        is_counting_all=settings.summary_counting == "all",
    )


def _build_inject(
    store: Store, embedding: Embedding, echoes: LoopGuard, judge: Judge, now: Clock, settings: Settings
) -> Inject:
    return Inject(
        store,
        embedding,
        echoes,
        judge,
        now,
        mode=settings.inject_mode,
        max_chars=settings.max_inject_chars,
        max_count=settings.max_inject_count,
        floor=settings.inject_floor,
        words_share=settings.similarity_words,
    )
