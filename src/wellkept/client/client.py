"""`Client` and `AsyncClient`: a server as the library sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

from wellkept import model
from wellkept.access.rules_keys import parse_key
from wellkept.api import tenant as tenants
from wellkept.api.views import Part
from wellkept.api.wellkept import TenantMemory, Wellkept
from wellkept.arguments import checked
from wellkept.client.agent import SESSIONS, AgentClient, AsyncAgentClient
from wellkept.client.connection import AsyncConnection, HttpRequest, PlainConnection, Plan, ServerAddress
from wellkept.client.verbs import (
    C,
    ClientView,
    Verb,
    call,
    decode_ingested,
    decode_issued,
    field,
    format_value,
    many,
    one,
    pages,
    send,
)
from wellkept.errors import Forbidden, Invalid
from wellkept.knowledge import files
from wellkept.knowledge.ingest import IngestReport
from wellkept.language.names import check_agent
from wellkept.providers.archives import create_archive
from wellkept.secrets.check import Sighting
from wellkept.settings import Settings
from wellkept.upkeep.maintain import MaintenanceReport

DOCUMENTS = "/api/kb/documents"
WORKFLOWS = "/api/workflows"
TIMEOUT = 60.0
"""Seconds to wait for an answer."""
RETRIES = 4

_ingest_text = call(f"POST {DOCUMENTS}", decode_ingested)
_list_events = pages("GET /api/audit", model.AuditEvent, "audit", names={"query": "q"})


def _head(view: ClientView[Any], given: model.Json) -> Plan[model.AuditHead]:
    events = yield from _list_events(view, {"limit": 1})
    return model.AuditHead(id=events[0].id, hash=events[0].hash) if events else model.AuditHead()


def _ingest_bytes(view: ClientView[Any], given: model.Json) -> Plan[IngestReport]:
    name = given["name"].replace("\\", "/").rpartition("/")[2]
    fields = {key: value for key, value in given.items() if key not in ("name", "content") and value is not None}
    form = HttpRequest(
        method="POST",
        path=DOCUMENTS,
        headers=view._headers,
        files={"file": (name, bytes(given["content"]))},
        fields={key: format_value(value) for key, value in fields.items()},
    )
    return decode_ingested((yield from view._connection.address.exchange(form)), view.owner)


def _ingest(view: ClientView[Any], given: model.Json) -> Plan[IngestReport]:
    source = given.pop("path_or_text")
    path = files.locate_file(source)
    if path is not None and path.is_dir():
        raise Invalid("A client sends one file at a time; ingest the files of the folder one by one.")
    options = {name: value for name, value in given.items() if name not in ("include", "exclude", "prune")}
    if path is None:
        return (yield from _ingest_text(view, {"text": str(source), **options}))  # type: ignore[no-any-return]
    return (yield from _ingest_bytes(view, {"content": files.load_file(path), "name": path.name, **options}))


def _count_memories(view: ClientView[Any], given: model.Json) -> Plan[Mapping[model.Kind, int]]:
    agent = yield from send(view, "GET /api/agents/{id}", given)
    return {model.Kind(kind): count for kind, count in agent["memories_count"].items()}


def _list_passages(view: ClientView[Any], given: model.Json) -> Plan[Any]:
    document = yield from send(view, f"GET {DOCUMENTS}/{{id}}", given)
    passages = [{**each, "document_id": document["id"]} for each in document["passages"]]
    return many(model.Chunk)({"items": passages}, view.owner)


def _export(view: ClientView[Any], given: model.Json) -> Plan[model.ExportReport]:
    request = HttpRequest(method="GET", path=_add_query("/api/export", user=given.get("user")), headers=view._headers)
    content: bytes = yield from view._connection.address.exchange(replace(request, is_file=True))
    if isinstance(given["path"], str | Path):
        with create_archive(Path(given["path"]).expanduser()) as file:
            file.write(content)
    else:
        given["path"].write(content)
    end = json.loads(content[content.rindex(b"\n", 0, -1) :])["end"]
    signed = "signature" in end
    return model.ExportReport(tenant=view.owner.tenant, counts=end["counts"], sha256=end["sha256"], is_signed=signed)


def _import(view: ClientView[Any], given: model.Json) -> Plan[model.ImportReport]:
    path = Path(given.pop("path")).expanduser()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error
    # Sending a file twice changes nothing.
    request = HttpRequest(
        method="POST",
        path=_add_query("/api/import", **given),
        headers={**view._headers, "Content-Type": "application/octet-stream"},
        content=content,
        is_repeatable=True,
    )
    return one(model.ImportReport)((yield from view._connection.address.exchange(request)), view.owner)  # type: ignore[no-any-return]


def _add_query(path: str, **given: Any) -> str:
    query = urlencode({name: format_value(value) for name, value in given.items() if value is not None})
    return f"{path}?{query}" if query else path


_send_step = call(
    f"POST {WORKFLOWS}/{{workflow}}/steps", one(model.WorkflowStep), names={"agent": "agent_id"}, also={"is_new": True}
)


def _record_step(view: ClientView[Any], given: model.Json) -> Plan[model.WorkflowStep]:
    if "/" in str(given["workflow"]):
        raise Invalid("A name with a slash cannot be sent; use the id that `workflows.create` returns.")
    return (yield from _send_step(view, given))  # type: ignore[no-any-return]


class ClientAudit(ClientView[C]):
    """Audit log of a tenant on a server."""

    _embedded = (tenants.AuditLog,)

    list = Verb(tenants.AuditLog.list, _list_events)
    search = Verb(tenants.AuditLog.search, _list_events)
    verify = Verb(tenants.AuditLog.verify, call("GET /api/audit/verify", one(model.AuditReport)))
    head = Verb(tenants.AuditLog.head, _head)
    record = Verb(tenants.AuditLog.record, call("POST /api/audit", one(model.AuditEvent), names={"agent": "agent_id"}))


class ClientAgents(ClientView[C]):
    """Agents of a tenant on a server."""

    _embedded = (tenants.TenantAgents,)

    add = Verb(tenants.TenantAgents.add, call("POST /api/agents", one(model.Agent)))
    get = Verb(tenants.TenantAgents.get, call("GET /api/agents/{id}", one(model.Agent)))
    list = Verb(tenants.TenantAgents.list, pages("GET /api/agents", model.Agent, "agents", start="after"))
    update = Verb(tenants.TenantAgents.update, call("PATCH /api/agents/{id}", one(model.Agent)))
    delete = Verb(tenants.TenantAgents.delete, call("DELETE /api/agents/{id}"))
    count_memories = Verb(tenants.TenantAgents.count_memories, _count_memories)


class ClientKnowledge(ClientView[C]):
    """Documents of a tenant on a server."""

    _embedded = (tenants.TenantKnowledge,)

    ingest = Verb(tenants.TenantKnowledge.ingest, _ingest)
    ingest_text = Verb(tenants.TenantKnowledge.ingest_text, _ingest_text)
    ingest_bytes = Verb(tenants.TenantKnowledge.ingest_bytes, _ingest_bytes)
    get = Verb(tenants.TenantKnowledge.get, call(f"GET {DOCUMENTS}/{{id}}", one(model.Document)))
    passages = Verb(tenants.TenantKnowledge.passages, _list_passages)
    list = Verb(tenants.TenantKnowledge.list, pages(f"GET {DOCUMENTS}", model.Document, "documents", start="after"))
    update = Verb(tenants.TenantKnowledge.update, call(f"PATCH {DOCUMENTS}/{{id}}", one(model.Document)))
    delete = Verb(tenants.TenantKnowledge.delete, call(f"DELETE {DOCUMENTS}/{{id}}"))
    search = Verb(
        tenants.TenantKnowledge.search,
        call("POST /api/kb/search", many(model.Hit, "hits"), also={"records": True}, is_repeatable=True),
    )


class ClientWorkflows(ClientView[C]):
    """Workflows of a tenant on a server."""

    _embedded = (tenants.TenantWorkflows,)

    create = Verb(tenants.TenantWorkflows.create, call(f"POST {WORKFLOWS}", one(model.Workflow)))
    record = Verb(tenants.TenantWorkflows.record, _record_step)
    get = Verb(tenants.TenantWorkflows.get, call(f"GET {WORKFLOWS}/{{id}}", one(model.Workflow)))
    list = Verb(tenants.TenantWorkflows.list, pages(f"GET {WORKFLOWS}", model.Workflow, "workflows", start="after"))
    steps = Verb(
        tenants.TenantWorkflows.steps,
        pages(f"GET {WORKFLOWS}/{{workflow}}/steps", model.WorkflowStep, "steps", start="after"),
    )


class ClientTenantSessions(ClientView[C]):
    """Conversations of all agents of a tenant on a server."""

    _embedded = (tenants.TenantSessions,)

    list = Verb(tenants.TenantSessions.list, pages(f"GET {SESSIONS}", model.Session, "sessions"))
    get = Verb(tenants.TenantSessions.get, call(f"GET {SESSIONS}/{{id}}", one(model.Session)))


class ClientKeys(ClientView[C]):
    """API keys of a tenant on a server."""

    _embedded = (tenants.TenantKeys,)

    create = Verb(tenants.TenantKeys.create, call("POST /api/keys", decode_issued, also={"scope": "read"}))
    list = Verb(tenants.TenantKeys.list, pages("GET /api/keys", model.ApiKey, "keys", start="after"))
    revoke = Verb(tenants.TenantKeys.revoke, call("DELETE /api/keys/{id}"))


class ClientSecrets(ClientView[C]):
    """Texts of a tenant on a server that look like secrets."""

    _embedded = (tenants.TenantSecrets,)

    scan = Verb(tenants.TenantSecrets.scan, call("POST /api/secrets/scan", many(Sighting), is_repeatable=True))
    allow = Verb(tenants.TenantSecrets.allow, call("POST /api/secrets/allow", field("allowed")))


class ClientData(ClientView[C]):
    """Export, import and permanent erasure of a tenant's data on a server. The files pass through memory."""

    _embedded = (tenants.TenantData,)

    export = Verb(tenants.TenantData.export, _export)
    import_ = Verb(tenants.TenantData.import_, _import)
    erase = Verb(tenants.TenantData.erase, call("POST /api/erase", one(model.Receipt)))


class TenantVerbs(ClientView[C]):
    """Verbs of a tenant and of a store, by the routes that serve them."""

    _embedded = (Wellkept, TenantMemory)

    agents: Part[ClientAgents[C]] = Part(ClientAgents)
    knowledge: Part[ClientKnowledge[C]] = Part(ClientKnowledge)
    audit: Part[ClientAudit[C]] = Part(ClientAudit)
    workflows: Part[ClientWorkflows[C]] = Part(ClientWorkflows)
    sessions: Part[ClientTenantSessions[C]] = Part(ClientTenantSessions)
    keys: Part[ClientKeys[C]] = Part(ClientKeys)
    secrets: Part[ClientSecrets[C]] = Part(ClientSecrets)
    data: Part[ClientData[C]] = Part(ClientData)

    maintain = Verb(Wellkept.maintain, call("POST /api/maintenance", one(MaintenanceReport), is_repeatable=True))
    skills = Verb(Wellkept.skills, call("GET /api/skills", many(model.Skill)))
    skill_problems = Verb(Wellkept.skill_problems, call("GET /api/skills", field("problems")))

    _connect: ClassVar[type[Any]]

    @checked
    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        settings: Settings | None = None,
    ) -> None:
        """Connect to the server at `url` with an API key; they default to the settings `server` and `key`.

        `timeout` is the time an answer may take, in seconds; `retries` how often a request is repeated when the server
        cannot be reached or is busy. Nothing is sent until the first call.

        Raises: Invalid.
        """
        known = Settings.load() if settings is None else settings
        secret = known.key if key is None else key
        address = ServerAddress(known.server if url is None else url, secret, timeout=timeout, retries=retries)
        tenant, _ = parse_key(secret.strip()) or (known.tenant, "")
        super().__init__(type(self)._connect(address), model.Owner(tenant, known.agent))

    def tenant(self, id: str | None = None) -> Self:
        """Return this client: a key belongs to one tenant. Raises: Forbidden for another tenant."""
        if id is not None and id != self.owner.tenant:
            raise Forbidden("A key belongs to one tenant; open a client with a key of the other one.")
        return self

    def _agent_owner(self, id: str | None) -> model.Owner:
        return self.owner if id is None else replace(self.owner, agent=check_agent(id))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.address.url!r})"


class Client(TenantVerbs[PlainConnection]):
    """A wellkept server, with the verbs of `Wellkept` and of the tenant of its key.

    Open it once, share it between threads, and close it at the end (or use `with`).
    """

    _connect = PlainConnection

    def agent(self, id: str | None = None) -> AgentClient:
        """Return the memory of one agent; `id` defaults to that of the settings. Raises: Invalid."""
        return AgentClient(self._connection, self._agent_owner(id), self._headers)

    def close(self) -> None:
        """Close all connections. Further calls raise StoreError."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(TenantVerbs[AsyncConnection]):
    """Async version of `Client`: the same verbs, awaited."""

    _connect = AsyncConnection

    def agent(self, id: str | None = None) -> AsyncAgentClient:
        """Return the memory of one agent; `id` defaults to that of the settings. Raises: Invalid."""
        return AsyncAgentClient(self._connection, self._agent_owner(id), self._headers)

    async def close(self) -> None:
        """Close all connections. Further calls raise StoreError."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
