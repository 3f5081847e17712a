"""Port methods that do not concern notes, delegated to the SQL store."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from recollect.store.sqlstore import SqlStore

P = ParamSpec("P")
R = TypeVar("R")


def delegate(method: Callable[Concatenate[SqlStore, P], R]) -> Callable[Concatenate[SqlDelegate, P], R]:
    """Return a method with the same signature that calls the SQL store."""
    name = method.__name__

    @wraps(method)
    def call(self: SqlDelegate, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = getattr(self.sql, name)(*args, **kwargs)
        return result

    return call


class SqlDelegate:
    """The part of `ports.Store` that a workspace does not change.

    Not a subclass of the port: a protocol's empty methods would stand in for a missing one. mypy compares the router
    with the port where it is returned as a `Store`, and a test does at run time.
    """

    def __init__(self, sql: SqlStore) -> None:
        self.sql = sql

    # AgentStore
    add_agent = delegate(SqlStore.add_agent)
    get_agent = delegate(SqlStore.get_agent)
    find_agent = delegate(SqlStore.find_agent)
    list_agents = delegate(SqlStore.list_agents)
    update_agent = delegate(SqlStore.update_agent)
    count_days = delegate(SqlStore.count_days)
    count_users = delegate(SqlStore.count_users)

    # MemoryStore
    prune_memories = delegate(SqlStore.prune_memories)
    sample_vectors = delegate(SqlStore.sample_vectors)

    # ItemStore
    find_item = delegate(SqlStore.find_item)
    hold_items = delegate(SqlStore.hold_items)
    set_item_end = delegate(SqlStore.set_item_end)
    find_item_numbers = delegate(SqlStore.find_item_numbers)
    list_item_paths = delegate(SqlStore.list_item_paths)
    delete_expired_items = delegate(SqlStore.delete_expired_items)

    # DetailStore
    begin_content = delegate(SqlStore.begin_content)
    add_detail = delegate(SqlStore.add_detail)
    get_detail = delegate(SqlStore.get_detail)
    list_details = delegate(SqlStore.list_details)
    search_details = delegate(SqlStore.search_details)
    set_detail_active = delegate(SqlStore.set_detail_active)
    delete_detail = delegate(SqlStore.delete_detail)
    open_content = delegate(SqlStore.open_content)
    sweep_contents = delegate(SqlStore.sweep_contents)
    drop_content = delegate(SqlStore.drop_content)

    # TranscriptStore
    add_session = delegate(SqlStore.add_session)
    get_session = delegate(SqlStore.get_session)
    find_session = delegate(SqlStore.find_session)
    find_tenant_session = delegate(SqlStore.find_tenant_session)
    list_sessions = delegate(SqlStore.list_sessions)
    list_tenant_sessions = delegate(SqlStore.list_tenant_sessions)
    delete_session = delegate(SqlStore.delete_session)
    add_messages = delegate(SqlStore.add_messages)
    list_messages = delegate(SqlStore.list_messages)
    update_summary = delegate(SqlStore.update_summary)

    # KnowledgeStore
    put_document = delegate(SqlStore.put_document)
    prepare_document = delegate(SqlStore.prepare_document)
    hold_document = delegate(SqlStore.hold_document)
    get_document = delegate(SqlStore.get_document)
    find_documents = delegate(SqlStore.find_documents)
    list_documents = delegate(SqlStore.list_documents)
    list_documents_by_title = delegate(SqlStore.list_documents_by_title)
    count_categories = delegate(SqlStore.count_categories)
    delete_document = delegate(SqlStore.delete_document)
    list_chunks = delegate(SqlStore.list_chunks)
    find_chunks = delegate(SqlStore.find_chunks)
    weigh_chunks = delegate(SqlStore.weigh_chunks)

    # EmbeddingStore
    use_embedder = delegate(SqlStore.use_embedder)
    change_embedder = delegate(SqlStore.change_embedder)
    list_tenants = delegate(SqlStore.list_tenants)
    list_unembedded = delegate(SqlStore.list_unembedded)
    count_unembedded = delegate(SqlStore.count_unembedded)
    set_vectors = delegate(SqlStore.set_vectors)

    # AuditStore
    add_event = delegate(SqlStore.add_event)
    list_events = delegate(SqlStore.list_events)
    find_events = delegate(SqlStore.find_events)
    search_events = delegate(SqlStore.search_events)
    verify_events = delegate(SqlStore.verify_events)
    audit_head = delegate(SqlStore.audit_head)
    check_heads = delegate(SqlStore.check_heads)

    # AllowanceStore
    add_allowance = delegate(SqlStore.add_allowance)
    list_allowances = delegate(SqlStore.list_allowances)
    delete_allowance = delegate(SqlStore.delete_allowance)

    # ContextStore
    add_context_calls = delegate(SqlStore.add_context_calls)
    get_context_call = delegate(SqlStore.get_context_call)
    list_context_calls = delegate(SqlStore.list_context_calls)
    add_shown = delegate(SqlStore.add_shown)
    find_shown = delegate(SqlStore.find_shown)
    forget_shown = delegate(SqlStore.forget_shown)
    list_tool_results = delegate(SqlStore.list_tool_results)

    # WorkflowStore
    add_workflow = delegate(SqlStore.add_workflow)
    get_workflow = delegate(SqlStore.get_workflow)
    find_workflow = delegate(SqlStore.find_workflow)
    list_workflows = delegate(SqlStore.list_workflows)
    add_step = delegate(SqlStore.add_step)
    list_steps = delegate(SqlStore.list_steps)
    find_steps = delegate(SqlStore.find_steps)
    search_steps = delegate(SqlStore.search_steps)

    # ProposalStore
    add_proposals = delegate(SqlStore.add_proposals)
    get_proposal = delegate(SqlStore.get_proposal)
    list_proposals = delegate(SqlStore.list_proposals)
    decide_proposal = delegate(SqlStore.decide_proposal)

    # MaintenanceStore
    list_aging = delegate(SqlStore.list_aging)
    count_aging = delegate(SqlStore.count_aging)
    archive_memories = delegate(SqlStore.archive_memories)
    find_last_episode = delegate(SqlStore.find_last_episode)
    mark_retrieved = delegate(SqlStore.mark_retrieved)
    count_recalls = delegate(SqlStore.count_recalls)
    take_lease = delegate(SqlStore.take_lease)
    end_lease = delegate(SqlStore.end_lease)
    put_record = delegate(SqlStore.put_record)
    find_record = delegate(SqlStore.find_record)
    count_bytes = delegate(SqlStore.count_bytes)
    count_states = delegate(SqlStore.count_states)

    # CheckupStore
    back_up = delegate(SqlStore.back_up)
    describe_store = delegate(SqlStore.describe_store)
    find_damage = delegate(SqlStore.find_damage)
    count_index_gaps = delegate(SqlStore.count_index_gaps)
    mend_index = delegate(SqlStore.mend_index)
    find_wrong_words = delegate(SqlStore.find_wrong_words)
    mend_words = delegate(SqlStore.mend_words)
    count_orphans = delegate(SqlStore.count_orphans)
    count_unknown_contents = delegate(SqlStore.count_unknown_contents)

    # KeyStore
    add_key = delegate(SqlStore.add_key)
    find_key = delegate(SqlStore.find_key)
    list_keys = delegate(SqlStore.list_keys)
    revoke_key = delegate(SqlStore.revoke_key)
    mark_used = delegate(SqlStore.mark_used)
    add_login = delegate(SqlStore.add_login)
    find_login = delegate(SqlStore.find_login)
    take_link = delegate(SqlStore.take_link)
    delete_logins = delegate(SqlStore.delete_logins)

    # IdempotencyStore
    find_answer = delegate(SqlStore.find_answer)
    keep_answer = delegate(SqlStore.keep_answer)
    renew_key = delegate(SqlStore.renew_key)
    prune_answers = delegate(SqlStore.prune_answers)
    erase_answers = delegate(SqlStore.erase_answers)

    # TransferStore
    check_row = delegate(SqlStore.check_row)
    last_imported = delegate(SqlStore.last_imported)
    count_events = delegate(SqlStore.count_events)

    # ErasureStore
    list_hanging = delegate(SqlStore.list_hanging)
    plan_sealing = delegate(SqlStore.plan_sealing)
    keep_erased = delegate(SqlStore.keep_erased)
    find_erased = delegate(SqlStore.find_erased)
    scrub = delegate(SqlStore.scrub)

    # Store
    problems = delegate(SqlStore.problems)
