"""Authentication: the middleware that requires a key with a sufficient scope, and the dependencies that use it.

It runs before the router, so it also guards routes that are mounted later. The tenant comes only from the key, and so
do the limits under which the library works for the request. With `no_auth` every client is the operator of this
machine and works in the tenant of the settings.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import Depends, HTTPException, Path, Request
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from wellkept.access.rules_keys import is_allowed
from wellkept.api.wellkept import AgentMemory, TenantMemory, Wellkept
from wellkept.caller import OPERATOR, Caller, use_caller
from wellkept.errors import Forbidden, Invalid, NotFound, StoreError, Unauthorized, WellkeptError
from wellkept.language.names import check_user
from wellkept.model import ApiKey, KeyScope, Origin
from wellkept.program import FORMER_NAME
from wellkept.server.http import limits
from wellkept.server.http.buckets import Buckets, network_of
from wellkept.server.http.errors import answer_error
from wellkept.server.http.metrics import Metrics
from wellkept.server.http.routing import (
    CONSOLE_COOKIE,
    USER,
    USER_HEADER,
    Route,
    RouteTable,
    header,
    is_console,
    parse_query,
)
from wellkept.server.threads import Threads

NO_KEY = "This route requires a key; send the header Authorization: Bearer <key>."
TOO_FAST = "This key sends too many requests; wait a moment."
TOO_MANY_KEYS = "Too many wrong keys came from this address; check the key and try again later."
KEY_WITHIN = limits.HEALTH_WITHIN / 2
"""Seconds that `GET /health` waits for the store to look up a key; the rest is left to check the store."""

MAX_SUSPECTS = 8
"""Concurrent look-ups of unknown keys for addresses that have sent too many wrong ones."""

FOR_OPERATORS = " The operator of the server can create one: wellkept admin keys create --scope operator"
NO_SUCH_AGENT = "There is no such agent."
WITH_OWN_USER = frozenset({"/api/export"})
"""Routes whose parameter `user` does not name the user they act for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Identity and limits of the client."""

    tenant: str
    scope: KeyScope
    key_id: str | None = None  # None: the operator of a server without keys
    agents: tuple[str, ...] = ()  # the agents the key is limited to; empty: all
    trust: Origin | None = None  # the most trusted origin it may claim; None: any
    user: str | None = None  # the end user of the key, or else of the request; None: all

    @property
    def caller(self) -> Caller:
        """Caller for the library and the audit log."""
        return Caller(
            actor=self.key_id or OPERATOR, scope=self.scope, agents=self.agents, trust=self.trust, user=self.user
        )


class KeyCheck:
    """Verifies keys, and slows down addresses that keep sending wrong ones.

    Only failures count, so a valid key still works from the same address: one that was verified a moment ago at once,
    others by one of a few concurrent look-ups, which cost the store little.
    """

    def __init__(self, wellkept: Wellkept, metrics: Metrics, failures: FilePath | None) -> None:
        """Count failures together with the other processes that name the same file."""
        self._wellkept = wellkept
        per_minute = wellkept.settings.max_failed_keys
        self._failures = Buckets(rate=per_minute / 60, burst=max(per_minute, 1), path=failures)
        self._failed = metrics.failed_keys
        self._suspects = 0
        self._threads = Threads(most=wellkept.settings.max_requests)
        self._health = Threads(most=limits.SPARE)

    async def verify(self, sent: str, scope: Scope) -> ApiKey:
        """Return the record of a key.

        Raises: Unauthorized; HTTPException (429) when its address has sent too many wrong ones; StoreError.
        """
        recent = self._wellkept.keys.recent(sent)
        if recent is not None:
            return recent
        is_suspect = self._failures.is_empty(_address(scope))
        if is_suspect and self._suspects >= MAX_SUSPECTS:
            self.count_failure(scope)
        self._suspects += is_suspect
        try:
            look_up = partial(self._wellkept.keys.verify, sent)
            if scope["path"] == limits.HEALTH:
                return await self._health.attempt(look_up, within=KEY_WITHIN)
            return await self._threads.run(look_up)
        except Unauthorized:
            self.count_failure(scope)
            raise
        except (StoreError, TimeoutError):
            # A key that was valid before still shows what is wrong with the store.
            known = self._wellkept.keys.recent(sent, at_any_age=True)
            if known is None or scope["path"] != limits.HEALTH:
                raise
            return known
        finally:
            self._suspects -= is_suspect

    async def login(self, cookie: str) -> ApiKey:
        """Return the key of a login to the console. Raises: Unauthorized, StoreError."""
        return await self._threads.run(partial(self._wellkept.logins.key, cookie))

    def count_failure(self, scope: Scope) -> None:
        """Count a wrong key of this request's address. Raises: HTTPException (429) when there were too many."""
        self._failed.inc()
        pause = self._failures.take(_address(scope))
        if pause:
            scope["state"]["refused"] = "failures"
            raise HTTPException(429, TOO_MANY_KEYS, headers={"Retry-After": str(math.ceil(pause))})


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return network_of(client[0]) if client else ""


class AuthMiddleware:
    """Authenticates each request and finds its route; what is no route is answered 404 or 405.

    Sets `state["access"]` (None: no key), `state["route"]`, `state["holder"]` (the tenant that limits are counted for;
    None: the operator) and `state["is_open"]` (True if the request needed no key).
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        wellkept: Wellkept,
        keys: KeyCheck,
        table: RouteTable,
        no_auth: bool,
        rates: FilePath | None,
    ) -> None:
        """Count requests together with the other processes that name the same file."""
        self._app = app
        self._keys = keys
        self._table = table
        settings = wellkept.settings
        self._operator = Access(tenant=settings.tenant, scope=KeyScope.OPERATOR) if no_auth else None
        self._buckets = Buckets(rate=settings.rate_limit, burst=settings.rate_burst, path=rates)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            # For monitors and proxies; the server leaves the body out.
            scope = {**scope, "method": "GET"}
        state = scope["state"]
        route = self._table.find(scope["method"], scope["path"])
        state |= {"access": self._operator, "holder": None, "is_open": False}
        if route is not None:
            state["route"] = route
        app = self._app
        try:
            if self._operator is None:
                await self._admit(scope, route)
            if state["access"] is not None:
                state["access"] = _for_user(state["access"], scope)
            if route is None:
                raise HTTPException(405 if self._table.methods(scope["path"]) else 404)
            state["is_open"] = route.scope is None or state["access"] is None
        except (WellkeptError, HTTPException) as error:
            app = answer_error(Request(scope), error)
        with use_caller(Caller() if state["access"] is None else state["access"].caller):
            await app(scope, receive, send)

    async def _admit(self, scope: Scope, route: Route | None) -> None:
        """Set the client of the request. Raises: Unauthorized, Forbidden, NotFound, HTTPException, StoreError."""
        state, needed = scope["state"], KeyScope.READ if route is None else route.scope
        state["holder"] = limits.NO_KEY_HOLDER
        try:
            key = await self._find_key(scope)
        except (WellkeptError, HTTPException, TimeoutError):
            if needed is None:
                return
            raise
        # Set this before the refusals below: their pages in the console show the login.
        state["access"] = access = Access(
            tenant=key.tenant, scope=key.scope, key_id=key.id, agents=key.agents, trust=key.trust, user=key.user
        )
        state["holder"] = key.tenant
        pause = self._buckets.take(f"{key.tenant}/{key.id}")
        if needed is None:
            return
        if pause:
            state["refused"] = "rate"
            raise HTTPException(429, TOO_FAST, headers={"Retry-After": str(math.ceil(pause))})
        if not is_allowed(key.scope, needed):
            sentence = f"This key has the scope {key.scope.value}; this route requires the scope {needed.value}."
            raise Forbidden(sentence + FOR_OPERATORS * (needed is KeyScope.OPERATOR))
        # Reading is answered as for a missing agent.
        if agent := "" if route is None else unicodedata.normalize("NFC", route.agent_in(scope["path"])):
            try:
                access.caller.check_agent(agent)
            except Forbidden:
                if needed is KeyScope.READ:
                    raise NotFound(NO_SUCH_AGENT) from None
                raise

    async def _find_key(self, scope: Scope) -> ApiKey:
        """Return the key of a request, or of a login to the console.

        Raises: Unauthorized, HTTPException, StoreError.
        """
        # Browsers send the cookie of the console only there.
        if is_console(scope["path"]):
            return await self._keys.login(cookie_parser(header(scope, b"cookie") or "").get(CONSOLE_COOKIE, ""))
        return await self._keys.verify(_parse_bearer(scope), scope)


def _for_user(access: Access, scope: Scope) -> Access:
    """Return the client, acting for the user that its header or query names. Raises: Invalid, Forbidden."""
    sent = [value.decode("utf-8", "replace") for name, value in scope["headers"] if name == USER_HEADER]
    asked = [value for name, value in parse_query(scope) if name == USER and scope["path"] not in WITH_OWN_USER]
    if max(len(sent), len(asked)) > 1:
        raise Invalid("Name one user at most: once in X-Wellkept-User, and once in the query.")
    # A client of version 0.2 would otherwise act for all users of its key.
    if header(scope, f"x-{FORMER_NAME}-user".encode()) is not None:
        raise Invalid("The header that names the user is X-Wellkept-User.")
    for user in map(check_user, (*sent, *asked)):
        access = replace(access, user=access.caller.own_user(user))
    return access


def _parse_bearer(scope: Scope) -> str:
    """Return the key in the Authorization header. Raises: Unauthorized."""
    kind, _, sent = (header(scope, b"authorization") or "").partition(" ")
    if kind.lower() != "bearer" or not sent.strip():
        raise Unauthorized(NO_KEY)
    return sent.strip()


def readable_agent(tenant: TenantMemory, id: str) -> AgentMemory:
    """Return the memory of an agent that a query names.

    Raises: Invalid; NotFound when the key is limited to other agents, as for one in the path.
    """
    try:
        return tenant.agent(id)
    except Forbidden:
        raise NotFound(NO_SUCH_AGENT) from None


async def current_wellkept(request: Request) -> Wellkept:
    """Return the store this app serves."""
    wellkept: Wellkept = request.app.state.wellkept
    return wellkept


async def possible_access(request: Request) -> Access | None:
    """Return the client if it sent a key; for public routes."""
    access: Access | None = request.scope["state"]["access"]
    return access


async def current_access(request: Request) -> Access:
    """Return the client. Raises: Unauthorized on a public route without a key."""
    access = await possible_access(request)
    if access is None:
        raise Unauthorized(NO_KEY)
    return access


CurrentWellkept = Annotated[Wellkept, Depends(current_wellkept)]
CurrentAccess = Annotated[Access, Depends(current_access)]
PossibleAccess = Annotated[Access | None, Depends(possible_access)]


async def current_tenant(request: Request) -> TenantMemory:
    """Return the tenant of the key, or of the settings on a server without keys."""
    access = await current_access(request)
    return (await current_wellkept(request)).tenant(access.tenant)


CurrentTenant = Annotated[TenantMemory, Depends(current_tenant)]


async def current_agent(
    request: Request, agent: Annotated[str, Path(description="The agent's id.", examples=["atlas"])]
) -> AgentMemory:
    """Return the memory of the agent in the path, within the tenant of the request."""
    access = await current_access(request)
    return (await current_wellkept(request)).agent(agent, access.tenant)


CurrentAgent = Annotated[AgentMemory, Depends(current_agent)]
