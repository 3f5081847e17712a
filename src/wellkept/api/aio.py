"""Async versions of the classes in `api`: every method runs in a worker thread.

The methods are implemented once, synchronously. Native async drivers measured no faster on either engine, and a second
implementation would drift from the first.

Cancelling a call stops the wait: a method that has not started never runs, one that has started runs to its end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, update_wrapper
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from wellkept.api.tenant_history import AuditLog
from wellkept.api.wellkept import AgentMemory, TenantMemory, Wellkept
from wellkept.details.capturing import captured
from wellkept.errors import StoreError
from wellkept.model import BackupReport, Receipt
from wellkept.secrets.check import Sighting
from wellkept.store.engine import CLOSED
from wellkept.upkeep.walk import Progress

THREADS = 32
"""Worker threads of one store: enough for many waiting writes to share a commit."""

P = ParamSpec("P")
T = TypeVar("T")


class _Wrapped(Protocol):
    _sync: Any
    _threads: ThreadPoolExecutor


def _in_thread(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[_Wrapped, P], Coroutine[Any, Any, T]]:
    """Wrap a method of the synchronous class as a coroutine method of the async one."""

    async def call(self: _Wrapped, /, *args: P.args, **kwargs: P.kwargs) -> T:
        # The copied context carries the current caller and the parent span into the thread.
        work = partial(copy_context().run, method, self._sync, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    # help() and inspect.signature() show the arguments of the wrapped method.
    update_wrapper(call, method)
    return call


class _Threads(ThreadPoolExecutor):
    """Thread pool of one store, shut down with it."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a call. Raises: StoreError."""
        try:
            return super().submit(work, *args, **kwargs)
        except RuntimeError as error:
            # The pool raises this after shutdown.
            raise StoreError(CLOSED) from error


class AsyncAgentMemory:
    """Async version of `AgentMemory`: the same methods, awaited."""

    def __init__(self, memory: AgentMemory, threads: ThreadPoolExecutor) -> None:
        self._sync = memory
        self._threads = threads
        self.owner = memory.owner

    remember = _in_thread(AgentMemory.remember)
    remember_many = _in_thread(AgentMemory.remember_many)
    get = _in_thread(AgentMemory.get)
    list = _in_thread(AgentMemory.list)
    search = _in_thread(AgentMemory.search)
    recall = _in_thread(AgentMemory.recall)
    recall_block = _in_thread(AgentMemory.recall_block)
    render_recalled = _in_thread(AgentMemory.render_recalled)
    explain = _in_thread(AgentMemory.explain)
    update = _in_thread(AgentMemory.update)
    history = _in_thread(AgentMemory.history)
    forget = _in_thread(AgentMemory.forget)
    profile = _in_thread(AgentMemory.profile)
    similar = _in_thread(AgentMemory.similar)
    review = _in_thread(AgentMemory.review)
    approve = _in_thread(AgentMemory.approve)
    restore = _in_thread(AgentMemory.restore)
    set_aside = _in_thread(AgentMemory.set_aside)
    add = _in_thread(AgentMemory.add)
    undo_add = _in_thread(AgentMemory.undo_add)
    approve_workspace = _in_thread(AgentMemory.approve_workspace)
    put = _in_thread(AgentMemory.put)
    put_items = _in_thread(AgentMemory.put_items)
    get_item = _in_thread(AgentMemory.get_item)
    get_items = _in_thread(AgentMemory.get_items)
    delete_item = _in_thread(AgentMemory.delete_item)
    search_items = _in_thread(AgentMemory.search_items)
    namespaces = _in_thread(AgentMemory.namespaces)
    store_detail = _in_thread(AgentMemory.store_detail)
    read_detail = _in_thread(AgentMemory.read_detail)
    consolidate = _in_thread(AgentMemory.consolidate)
    proposals = _in_thread(AgentMemory.proposals)
    apply_proposal = _in_thread(AgentMemory.apply_proposal)
    reject_proposal = _in_thread(AgentMemory.reject_proposal)
    undo_proposal = _in_thread(AgentMemory.undo_proposal)
    search_details = _in_thread(AgentMemory.search_details)
    list_details = _in_thread(AgentMemory.list_details)
    get_detail = _in_thread(AgentMemory.get_detail)
    hide_detail = _in_thread(AgentMemory.hide_detail)
    delete_detail = _in_thread(AgentMemory.delete_detail)
    capture = _in_thread(AgentMemory.capture)
    capture_output = _in_thread(AgentMemory.capture_output)
    log_turn = _in_thread(AgentMemory.log_turn)
    log_failure = _in_thread(AgentMemory.log_failure)
    conversation = _in_thread(AgentMemory.conversation)
    add_session = _in_thread(AgentMemory.add_session)
    sessions = _in_thread(AgentMemory.sessions)
    session = _in_thread(AgentMemory.session)
    messages = _in_thread(AgentMemory.messages)
    delete_session = _in_thread(AgentMemory.delete_session)
    inject = _in_thread(AgentMemory.inject)
    private_memory = _in_thread(AgentMemory.private_memory)
    context = _in_thread(AgentMemory.context)
    preview_context = _in_thread(AgentMemory.preview_context)
    context_calls = _in_thread(AgentMemory.context_calls)
    context_call = _in_thread(AgentMemory.context_call)
    guidance = _in_thread(AgentMemory.guidance)
    count_tokens = _in_thread(AgentMemory.count_tokens)
    skills = _in_thread(AgentMemory.skills)
    search_knowledge = _in_thread(AgentMemory.search_knowledge)
    tools = _in_thread(AgentMemory.tools)
    call_tool = _in_thread(AgentMemory.call_tool)

    def for_user(self, user: str, *, shared: bool = True) -> AsyncAgentMemory:
        """Return this agent's memory as one end user has it, like `AgentMemory.for_user`."""
        return AsyncAgentMemory(self._sync.for_user(user, shared=shared), self._threads)

    async def for_session(self, session_id: str) -> AsyncAgentMemory:
        """Return this agent's memory as the reader of a conversation has it, like `AgentMemory.for_session`."""
        find = partial(copy_context().run, self._sync.for_session, session_id)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, find)
        return AsyncAgentMemory(found, self._threads)

    def captured(self, function: Callable[..., Any] | None = None, **options: Any) -> Any:
        """Decorate an async tool function so that its output is captured: `wellkept.captured` for this agent."""
        return captured(self, **options) if function is None else captured(self, **options)(function)


def _scan(memory: TenantMemory, *, progress: Progress | None = None) -> list[Sighting]:
    """Return every stored record that appears to contain a secret."""
    return list(memory.scan(progress=progress))


class AsyncAuditLog:
    """Async version of `AuditLog`."""

    def __init__(self, audit: AuditLog, threads: ThreadPoolExecutor) -> None:
        self._sync = audit
        self._threads = threads

    list = _in_thread(AuditLog.list)
    search = _in_thread(AuditLog.search)
    verify = _in_thread(AuditLog.verify)
    head = _in_thread(AuditLog.head)
    check_heads = _in_thread(AuditLog.check_heads)
    record = _in_thread(AuditLog.record)


class AsyncTenantMemory:
    """Async version of `TenantMemory`: the same methods, awaited."""

    def __init__(self, memory: TenantMemory, threads: ThreadPoolExecutor) -> None:
        self._sync = memory
        self._threads = threads
        self.id = memory.id

    def agent(self, id: str) -> AsyncAgentMemory:
        """Return the memory of one agent. Raises: Invalid."""
        return AsyncAgentMemory(self._sync.agent(id), self._threads)

    @property
    def audit(self) -> AsyncAuditLog:
        """The tenant's audit log."""
        return AsyncAuditLog(self._sync.audit, self._threads)

    add_agent = _in_thread(TenantMemory.add_agent)
    get_agent = _in_thread(TenantMemory.get_agent)
    list_agents = _in_thread(TenantMemory.list_agents)
    update_agent = _in_thread(TenantMemory.update_agent)
    delete_agent = _in_thread(TenantMemory.delete_agent)
    count_memories = _in_thread(TenantMemory.count_memories)
    count_memories_by_agent = _in_thread(TenantMemory.count_memories_by_agent)
    stats = _in_thread(TenantMemory.stats)
    peek_stats = _in_thread(TenantMemory.peek_stats)
    list_users = _in_thread(TenantMemory.list_users)
    preview_maintenance = _in_thread(TenantMemory.preview_maintenance)
    count_waiting = _in_thread(TenantMemory.count_waiting)
    sessions = _in_thread(TenantMemory.sessions)
    session = _in_thread(TenantMemory.session)
    add_workflow = _in_thread(TenantMemory.add_workflow)
    record_step = _in_thread(TenantMemory.record_step)
    get_workflow = _in_thread(TenantMemory.get_workflow)
    list_workflows = _in_thread(TenantMemory.list_workflows)
    list_steps = _in_thread(TenantMemory.list_steps)
    ingest = _in_thread(TenantMemory.ingest)
    ingest_text = _in_thread(TenantMemory.ingest_text)
    ingest_bytes = _in_thread(TenantMemory.ingest_bytes)
    get_document = _in_thread(TenantMemory.get_document)
    list_passages = _in_thread(TenantMemory.list_passages)
    list_documents = _in_thread(TenantMemory.list_documents)
    browse_documents = _in_thread(TenantMemory.browse_documents)
    count_categories = _in_thread(TenantMemory.count_categories)
    update_document = _in_thread(TenantMemory.update_document)
    delete_document = _in_thread(TenantMemory.delete_document)
    search_knowledge = _in_thread(TenantMemory.search_knowledge)
    scan = _in_thread(_scan)
    allow_secret = _in_thread(TenantMemory.allow_secret)
    add_key = _in_thread(TenantMemory.add_key)
    list_keys = _in_thread(TenantMemory.list_keys)
    revoke_key = _in_thread(TenantMemory.revoke_key)
    maintain = _in_thread(TenantMemory.maintain)
    export = _in_thread(TenantMemory.export)
    import_ = _in_thread(TenantMemory.import_)
    import_formats = _in_thread(TenantMemory.import_formats)
    erase = _in_thread(TenantMemory.erase)
    audit_events = _in_thread(TenantMemory.audit_events)
    verify_audit = _in_thread(TenantMemory.verify_audit)
    call_tool = _in_thread(TenantMemory.call_tool)


class AsyncWellkept:
    """Async version of `Wellkept`: the same methods, awaited.

    The constructor opens the store; `async with` or `await close()` releases it.
    """

    def __init__(self, url: str | os.PathLike[str] | None = None, **options: Any) -> None:
        """Open a store. Takes the arguments of `Wellkept`. Raises: Invalid, StoreError, SchemaMismatch."""
        self._sync = Wellkept(url, **options)
        # Declared as in `_Wrapped`: mypy accepts no subtype for an attribute that can be assigned.
        self._threads: ThreadPoolExecutor = _Threads(THREADS, thread_name_prefix="wellkept")

    @property
    def sync(self) -> Wellkept:
        """The underlying `Wellkept`, for code that needs one, such as `AgentRunner`."""
        return self._sync

    @property
    def settings(self) -> Any:
        """Settings of the store."""
        return self._sync.settings

    def agent(self, id: str | None = None, tenant: str | None = None) -> AsyncAgentMemory:
        """Return the memory of one agent; `id` and `tenant` default to those of the settings. Raises: Invalid."""
        return AsyncAgentMemory(self._sync.agent(id, tenant), self._threads)

    def tenant(self, id: str | None = None) -> AsyncTenantMemory:
        """Return the memory shared by a tenant's agents; `id` defaults to that of the settings. Raises: Invalid."""
        return AsyncTenantMemory(self._sync.tenant(id), self._threads)

    skills = _in_thread(Wellkept.skills)
    skill_problems = _in_thread(Wellkept.skill_problems)
    maintain = _in_thread(Wellkept.maintain)
    backup = _in_thread(Wellkept.backup)
    check = _in_thread(Wellkept.check)
    list_tenants = _in_thread(Wellkept.list_tenants)
    mend_index = _in_thread(Wellkept.mend_index)
    embed_waiting = _in_thread(Wellkept.embed_waiting)
    find_refused = _in_thread(Wellkept.find_refused)
    list_refused = _in_thread(Wellkept.list_refused)
    background = _in_thread(Wellkept.background)
    count_waiting = _in_thread(Wellkept.count_waiting)
    warm_up = _in_thread(Wellkept.warm_up)
    embedder_problem = _in_thread(Wellkept.embedder_problem)
    problems = _in_thread(Wellkept.problems)
    count_bytes = _in_thread(Wellkept.count_bytes)
    has_keys = _in_thread(Wellkept.has_keys)
    recent_key = _in_thread(Wellkept.recent_key)
    verify_key = _in_thread(Wellkept.verify_key)
    current_key = _in_thread(Wellkept.current_key)
    now = _in_thread(Wellkept.now)

    @staticmethod
    async def restore(path: str | os.PathLike[str], to: str, *, progress: Progress | None = None) -> BackupReport:
        """Restore a backup, like `Wellkept.restore`."""
        return await asyncio.to_thread(Wellkept.restore, path, to, progress=progress)

    @staticmethod
    async def verify_receipt(receipt: Receipt | Mapping[str, Any]) -> bool:
        """Check the receipt of an erasure, like `Wellkept.verify_receipt`."""
        return Wellkept.verify_receipt(receipt)

    @staticmethod
    async def verify_backup(path: str | os.PathLike[str], *, progress: Progress | None = None) -> BackupReport:
        """Check a backup, like `Wellkept.verify_backup`."""
        return await asyncio.to_thread(Wellkept.verify_backup, path, progress=progress)

    async def close(self) -> None:
        """Finish pending writes and release the store."""
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        self._threads.shutdown()
        self._sync.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
