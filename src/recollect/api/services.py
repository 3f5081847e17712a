"""The services of one store, and what they need besides it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.lazy import dataclass

if TYPE_CHECKING:
    from recollect.policy.memories.trust import Judge
    from recollect.ports import ArchiveFiles, Clock, DocumentFiles, ForeignFormats, Models, Store, TokenCounter
    from recollect.services.access.idempotency import Idempotency
    from recollect.services.access.keys import ApiKeys
    from recollect.services.background.resting import GuardedModel
    from recollect.services.details.capture import Capture
    from recollect.services.details.details import Details
    from recollect.services.history.workflows import RecordWorkflows
    from recollect.services.knowledge.ingest import Ingest
    from recollect.services.knowledge.search import SearchKnowledge
    from recollect.services.knowledge.skills import Skills
    from recollect.services.memories.consolidate import Consolidate
    from recollect.services.memories.facts import ExtractFacts
    from recollect.services.memories.items import Items
    from recollect.services.memories.loop_guard import LoopGuard
    from recollect.services.memories.remember import Remember
    from recollect.services.memories.restoring import RestoreMemories
    from recollect.services.memories.secret_scan import SecretScan
    from recollect.services.memories.secrets import SecretGuard
    from recollect.services.memories.similar import Similar
    from recollect.services.prompt.assemble import Assemble
    from recollect.services.prompt.blocks import Inject
    from recollect.services.prompt.conversation import Conversations
    from recollect.services.prompt.prompt_log import ContextCalls, InspectContextCall
    from recollect.services.prompt.transcripts import TranscriptWriter
    from recollect.services.recall.marks import RetrievalMarks
    from recollect.services.recall.recall import Recall
    from recollect.services.transfer.export import Export
    from recollect.services.transfer.importing import Import
    from recollect.services.upkeep.checkup import Checkup, RepairIndex
    from recollect.services.upkeep.erase import Erase
    from recollect.services.upkeep.maintain import Maintain
    from recollect.services.upkeep.schedule import MaintenanceSchedule
    from recollect.services.upkeep.stats import CountTenant


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """A store and all services that work on it."""

    store: Store
    now: Clock
    judge: Judge
    rested_models: Sequence[GuardedModel]
    remember: Remember
    items: Items
    restore: RestoreMemories
    transcripts: TranscriptWriter
    conversations: Conversations
    recall: Recall
    inject: Inject
    similar: Similar
    consolidate: Consolidate
    facts: ExtractFacts
    scan: SecretScan
    details: Details
    capture: Capture
    guard: SecretGuard
    echoes: LoopGuard
    maintain: Maintain
    schedule: MaintenanceSchedule
    checkup: Checkup
    mend_index: RepairIndex
    retrieved: RetrievalMarks
    workflows: RecordWorkflows
    tokens: TokenCounter
    skills: Skills
    keys: ApiKeys
    idempotency: Idempotency
    ingest: Ingest
    search_knowledge: SearchKnowledge
    assemble: Assemble
    context_calls: ContextCalls
    seen: InspectContextCall
    erase: Erase
    stats: CountTenant
    export: Export
    import_: Import


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """Dependencies of the services other than the store."""

    models: Models
    tokens: TokenCounter
    skills: Skills
    files: DocumentFiles
    archives: ArchiveFiles
    formats: ForeignFormats
