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

from wellkept.api import tenant as tenants
from wellkept.api.agent import AgentSessions
from wellkept.api.views import AgentChanges, AgentDetails, AgentItems, AgentKnowledge, AgentPrompts, AgentReview, Part
from wellkept.api.wellkept import AgentMemory, Wellkept
from wellkept.errors import StoreError
from wellkept.extension import Progress
from wellkept.model import BackupReport, Owner, Receipt
from wellkept.secrets.check import Sighting
from wellkept.store.engine import CLOSED

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


class _View:
    """Base class of the views of a store."""

    def __init__(self, view: Any, threads: ThreadPoolExecutor) -> None:
        self._sync = view
        self._threads = threads

    def _open(self, view: Callable[[Any, ThreadPoolExecutor], T], name: str) -> T:
        return view(getattr(self._sync, name), self._threads)


class AsyncDetails(_View):
    """Async version of `AgentDetails`."""

    store = _in_thread(AgentDetails.store)
    read = _in_thread(AgentDetails.read)
    get = _in_thread(AgentDetails.get)
    list = _in_thread(AgentDetails.list)
    search = _in_thread(AgentDetails.search)
    capture = _in_thread(AgentDetails.capture)
    capture_output = _in_thread(AgentDetails.capture_output)
    hide = _in_thread(AgentDetails.hide)
    delete = _in_thread(AgentDetails.delete)


class AsyncItems(_View):
    """Async version of `AgentItems`."""

    put = _in_thread(AgentItems.put)
    put_many = _in_thread(AgentItems.put_many)
    get = _in_thread(AgentItems.get)
    get_many = _in_thread(AgentItems.get_many)
    delete = _in_thread(AgentItems.delete)
    search = _in_thread(AgentItems.search)
    namespaces = _in_thread(AgentItems.namespaces)


class AsyncSessions(_View):
    """Async version of `AgentSessions`."""

    start = _in_thread(AgentSessions.start)
    list = _in_thread(AgentSessions.list)
    get = _in_thread(AgentSessions.get)
    messages = _in_thread(AgentSessions.messages)
    conversation = _in_thread(AgentSessions.conversation)
    delete = _in_thread(AgentSessions.delete)
    log_failure = _in_thread(AgentSessions.log_failure)

    async def reader(self, session_id: str) -> AsyncAgentMemory:
        """Return the agent's memory as the reader of a conversation has it, like `AgentSessions.reader`."""
        find = partial(copy_context().run, self._sync.reader, session_id)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, find)
        return AsyncAgentMemory(found, self._threads)


class AsyncReview(_View):
    """Async version of `AgentReview`."""

    list = _in_thread(AgentReview.list)
    approve = _in_thread(AgentReview.approve)
    set_aside = _in_thread(AgentReview.set_aside)
    approve_workspace = _in_thread(AgentReview.approve_workspace)
    similar = _in_thread(AgentReview.similar)


class AsyncChanges(_View):
    """Async version of `AgentChanges`."""

    list = _in_thread(AgentChanges.list)
    get = _in_thread(AgentChanges.get)
    apply = _in_thread(AgentChanges.apply)
    reject = _in_thread(AgentChanges.reject)
    undo = _in_thread(AgentChanges.undo)
    edit = _in_thread(AgentChanges.edit)
    consolidate = _in_thread(AgentChanges.consolidate)


class AsyncPrompts(_View):
    """Async version of `AgentPrompts`."""

    list = _in_thread(AgentPrompts.list)
    get = _in_thread(AgentPrompts.get)
    inject = _in_thread(AgentPrompts.inject)
    preview = _in_thread(AgentPrompts.preview)
    recall_block = _in_thread(AgentPrompts.recall_block)
    render_recalled = _in_thread(AgentPrompts.render_recalled)
    count_tokens = _in_thread(AgentPrompts.count_tokens)


class AsyncAgentKnowledge(_View):
    """Async version of `AgentKnowledge`."""

    search = _in_thread(AgentKnowledge.search)
    skills = _in_thread(AgentKnowledge.skills)


class AsyncAgentMemory(_View):
    """Async version of `AgentMemory`: the same methods, awaited."""

    details = Part(AsyncDetails)
    items = Part(AsyncItems)
    sessions = Part(AsyncSessions)
    review = Part(AsyncReview)
    changes = Part(AsyncChanges)
    prompts = Part(AsyncPrompts)
    knowledge = Part(AsyncAgentKnowledge)

    remember = _in_thread(AgentMemory.remember)
    recall = _in_thread(AgentMemory.recall)
    context = _in_thread(AgentMemory.context)
    log_turn = _in_thread(AgentMemory.log_turn)
    add = _in_thread(AgentMemory.add)
    profile = _in_thread(AgentMemory.profile)
    list = _in_thread(AgentMemory.list)
    get = _in_thread(AgentMemory.get)
    forget = _in_thread(AgentMemory.forget)
    explain = _in_thread(AgentMemory.explain)
    remember_many = _in_thread(AgentMemory.remember_many)
    search = _in_thread(AgentMemory.search)
    update = _in_thread(AgentMemory.update)
    restore = _in_thread(AgentMemory.restore)
    history = _in_thread(AgentMemory.history)
    tools = _in_thread(AgentMemory.tools)
    call_tool = _in_thread(AgentMemory.call_tool)
    private_memory = _in_thread(AgentMemory.private_memory)

    @property
    def owner(self) -> Owner:
        """Owner of the memories."""
        return self._sync.owner  # type: ignore[no-any-return]

    def for_user(self, user: str, *, shared: bool = True) -> AsyncAgentMemory:
        """Return this agent's memory as one end user has it, like `AgentMemory.for_user`."""
        return AsyncAgentMemory(self._sync.for_user(user, shared=shared), self._threads)


class AsyncAgents(_View):
    """Async version of `TenantAgents`."""

    add = _in_thread(tenants.TenantAgents.add)
    get = _in_thread(tenants.TenantAgents.get)
    list = _in_thread(tenants.TenantAgents.list)
    update = _in_thread(tenants.TenantAgents.update)
    delete = _in_thread(tenants.TenantAgents.delete)
    count_memories = _in_thread(tenants.TenantAgents.count_memories)
    count_memories_by_agent = _in_thread(tenants.TenantAgents.count_memories_by_agent)


class AsyncKnowledge(_View):
    """Async version of `TenantKnowledge`."""

    ingest = _in_thread(tenants.TenantKnowledge.ingest)
    ingest_text = _in_thread(tenants.TenantKnowledge.ingest_text)
    ingest_bytes = _in_thread(tenants.TenantKnowledge.ingest_bytes)
    get = _in_thread(tenants.TenantKnowledge.get)
    passages = _in_thread(tenants.TenantKnowledge.passages)
    list = _in_thread(tenants.TenantKnowledge.list)
    browse = _in_thread(tenants.TenantKnowledge.browse)
    count_categories = _in_thread(tenants.TenantKnowledge.count_categories)
    update = _in_thread(tenants.TenantKnowledge.update)
    delete = _in_thread(tenants.TenantKnowledge.delete)
    search = _in_thread(tenants.TenantKnowledge.search)


class AsyncAuditLog(_View):
    """Async version of `AuditLog`."""

    list = _in_thread(tenants.AuditLog.list)
    search = _in_thread(tenants.AuditLog.search)
    verify = _in_thread(tenants.AuditLog.verify)
    head = _in_thread(tenants.AuditLog.head)
    check_heads = _in_thread(tenants.AuditLog.check_heads)
    record = _in_thread(tenants.AuditLog.record)


class AsyncWorkflows(_View):
    """Async version of `TenantWorkflows`."""

    create = _in_thread(tenants.TenantWorkflows.create)
    record = _in_thread(tenants.TenantWorkflows.record)
    get = _in_thread(tenants.TenantWorkflows.get)
    list = _in_thread(tenants.TenantWorkflows.list)
    steps = _in_thread(tenants.TenantWorkflows.steps)


class AsyncTenantSessions(_View):
    """Async version of `TenantSessions`."""

    list = _in_thread(tenants.TenantSessions.list)
    get = _in_thread(tenants.TenantSessions.get)


class AsyncKeys(_View):
    """Async version of `TenantKeys`."""

    create = _in_thread(tenants.TenantKeys.create)
    list = _in_thread(tenants.TenantKeys.list)
    revoke = _in_thread(tenants.TenantKeys.revoke)


class AsyncUsers(_View):
    """Async version of `TenantUsers`."""

    list = _in_thread(tenants.TenantUsers.list)


def _scan(secrets: tenants.TenantSecrets, *, progress: Progress | None = None) -> list[Sighting]:
    """Return every stored record that appears to contain a secret."""
    return list(secrets.scan(progress=progress))


class AsyncSecrets(_View):
    """Async version of `TenantSecrets`."""

    scan = _in_thread(_scan)
    allow = _in_thread(tenants.TenantSecrets.allow)


class AsyncData(_View):
    """Async version of `TenantData`."""

    export = _in_thread(tenants.TenantData.export)
    import_ = _in_thread(tenants.TenantData.import_)
    import_formats = _in_thread(tenants.TenantData.import_formats)
    erase = _in_thread(tenants.TenantData.erase)


class AsyncUpkeep(_View):
    """Async version of `TenantUpkeep`."""

    maintain = _in_thread(tenants.TenantUpkeep.maintain)
    preview = _in_thread(tenants.TenantUpkeep.preview)
    stats = _in_thread(tenants.TenantUpkeep.stats)
    peek_stats = _in_thread(tenants.TenantUpkeep.peek_stats)
    count_waiting = _in_thread(tenants.TenantUpkeep.count_waiting)


class AsyncTenantMemory(_View):
    """Async version of `TenantMemory`: the same methods, awaited."""

    agents = Part(AsyncAgents)
    knowledge = Part(AsyncKnowledge)
    audit = Part(AsyncAuditLog)
    workflows = Part(AsyncWorkflows)
    sessions = Part(AsyncTenantSessions)
    keys = Part(AsyncKeys)
    users = Part(AsyncUsers)
    secrets = Part(AsyncSecrets)
    data = Part(AsyncData)
    upkeep = Part(AsyncUpkeep)

    @property
    def id(self) -> str:
        """Id of the tenant."""
        return self._sync.id  # type: ignore[no-any-return]

    def agent(self, id: str) -> AsyncAgentMemory:
        """Return the memory of one agent. Raises: Invalid."""
        return AsyncAgentMemory(self._sync.agent(id), self._threads)


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
    background = _in_thread(Wellkept.background)
    problems = _in_thread(Wellkept.problems)
    count_bytes = _in_thread(Wellkept.count_bytes)
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
