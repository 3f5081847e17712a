"""Authentication: the middleware that requires a key with a sufficient scope, and the dependencies that use it.

It runs before the router, so it also guards routes that are mounted later. The tenant comes only from the key, and so
do the limits under which the library works for the request. With `no_auth` every client is the operator of this
machine and works in the tenant of the settings.
"""

from __future__ import annotations

import asyncio
import math
import unicodedata
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path as FilePath
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, HTTPException, Path, Request
from fastapi.responses import JSONResponse
from starlette.requests import cookie_parser
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from wellkept.access.logins import Logins
from wellkept.access.rules_keys import is_allowed
from wellkept.api.wellkept import AgentMemory, TenantMemory, Wellkept
from wellkept.caller import OPERATOR, Caller, use_caller
from wellkept.errors import Forbidden, Invalid, NotFound, StoreError, Unauthorized
from wellkept.language.names import check_user
from wellkept.model import ApiKey, KeyScope, Origin
from wellkept.program import FORMER_NAME
from wellkept.server.console.logins import COOKIE
from wellkept.server.http.addresses import KeyCheck
from wellkept.server.http.buckets import SharedBuckets
from wellkept.server.http.errors import CHALLENGE, STATUS, error_response, http_refusal, retry_after
from wellkept.server.http.limits import HEALTH, HEALTH_WITHIN, NO_KEY_HOLDER, SPARE
from wellkept.server.http.routing import (
    UNKNOWN,
    UNLISTED,
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
KEY_WITHIN = HEALTH_WITHIN * 2 / 3
"""Seconds that `GET /health` waits for the store to look up a key; the rest is left to check the store."""

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


class AuthMiddleware:
    """Authenticates each request and finds its route.

    Sets `state["access"]` (None: no key), `state["route"]`, `state["holder"]` (the tenant that limits are counted for;
    None: the operator) and `state["is_open"]` (True if the request needed no key).
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        wellkept: Wellkept,
        keys: KeyCheck,
        logins: Logins,
        table: RouteTable,
        no_auth: bool,
        rates: FilePath | None,
    ) -> None:
        """Count requests together with the other processes that name the same file, or use the same database."""
        self._app = app
        self._wellkept = wellkept
        self._keys = keys
        self._logins = logins
        self._table = table
        self._operator = Access(tenant=wellkept.settings.tenant, scope=KeyScope.OPERATOR) if no_auth else None
        self._checks = Threads(most=SPARE)
        settings = wellkept.settings
        self._buckets = SharedBuckets(
            "key", rate=settings.rate_limit, burst=settings.rate_burst, path=rates, lease=wellkept.lease_tokens
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            # Other protocols are not served.
            return
        state = scope.setdefault("state", {})
        route = self._table.find(scope["method"], scope["path"]) or self._find_unlisted(scope)
        state["route"] = route
        refusal = None
        if self._operator is None:
            refusal = await self._admit(scope, state, route)
        else:
            state["access"] = self._operator
            state["holder"] = None
        if refusal is None and state["access"] is not None:
            refusal = _name_user(scope, state)
        access: Access | None = state["access"]
        state["is_open"] = route.scope is None or access is None
        if scope["method"] == "HEAD":
            # For monitors and proxies; the server leaves the body out.
            scope = {**scope, "method": "GET"}
        with use_caller(Caller() if access is None else access.caller):
            await (self._app if refusal is None else refusal)(scope, receive, send)

    async def _admit(self, scope: Scope, state: dict[str, Any], route: Route) -> JSONResponse | None:
        """Set the client of the request; return the refusal if it is not allowed."""
        state["access"] = None
        state["holder"] = NO_KEY_HOLDER
        try:
            key = await (self._find_health_key(scope) if scope["path"] == HEALTH else self._find_key(scope))
        except Unauthorized as error:
            return None if route.scope is None else error_response(401, str(error), error.code, headers=CHALLENGE)
        except HTTPException as error:
            return None if route.scope is None else http_refusal(Request(scope), error)
        except StoreError as error:
            if route.scope is None:
                return None
            return error_response(STATUS[error.code], str(error), error.code, headers=retry_after(error))
        # Set this before the refusals below: their pages in the console show the login.
        state["access"] = access = Access(
            tenant=key.tenant, scope=key.scope, key_id=key.id, agents=key.agents, trust=key.trust, user=key.user
        )
        state["holder"] = key.tenant
        pause = await self._buckets.take(f"{key.tenant}/{key.id}")
        if pause and route.scope is not None:
            state["refused"] = "rate"
            return error_response(429, TOO_FAST, "rate_limited", headers={"Retry-After": str(math.ceil(pause))})
        if route.scope is not None and not is_allowed(key.scope, route.scope):
            sentence = f"This key has the scope {key.scope.value}; this route requires the scope {route.scope.value}."
            return error_response(403, sentence + (FOR_OPERATORS * (route.scope is KeyScope.OPERATOR)), "forbidden")
        return self._refuse_other_agent(scope, route, access.caller)

    def _refuse_other_agent(self, scope: Scope, route: Route, caller: Caller) -> JSONResponse | None:
        """Refuse agents the key is not for: reading is answered as for a missing agent, writing is forbidden."""
        agent = unicodedata.normalize("NFC", route.agent_in(scope["path"]))
        try:
            if agent:
                caller.check_agent(agent)
        except Forbidden as error:
            is_read = route.scope is KeyScope.READ
            return error_response(404, NO_SUCH_AGENT) if is_read else error_response(403, str(error))
        return None

    async def _find_key(self, scope: Scope) -> ApiKey:
        """Return the key of a request, or of a login to the console.

        Raises: Unauthorized, HTTPException, StoreError.
        """
        # Browsers send the cookie of the console only there.
        if is_console(scope["path"]):
            sent = cookie_parser(header(scope, b"cookie") or "").get(COOKIE, "")
            return await run_sync(self._logins.key, sent)
        return await self._keys.verify(_parse_bearer(scope), scope)

    async def _find_health_key(self, scope: Scope) -> ApiKey:
        """Return the key that was sent.

        If the store does not answer, a key that was valid before still counts: it only shows what is wrong with the
        store.

        Raises: Unauthorized.
        """
        sent = _parse_bearer(scope)
        key = self._wellkept.keys.recent(sent)
        if key is None:
            began = asyncio.get_running_loop().time()
            try:
                key = await self._checks.attempt(partial(self._wellkept.keys.verify, sent), within=KEY_WITHIN)
            except (StoreError, TimeoutError):
                key = self._wellkept.keys.recent(sent, at_any_age=True)
            except Unauthorized:
                await self._keys.count_failure(scope)
                raise
            scope["state"]["waited"] = asyncio.get_running_loop().time() - began
        if key is None:
            raise Unauthorized(NO_KEY)
        return key

    def _find_unlisted(self, scope: Scope) -> Route:
        """Return the rule for a request outside the table: routes added later require an admin key."""
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        exists = any(each.matches(asked)[0] is Match.FULL for each in scope["app"].router.routes)
        return UNLISTED if exists else UNKNOWN


def _name_user(scope: Scope, state: dict[str, Any]) -> JSONResponse | None:
    """Let the request act for the user that its header or query names; return the refusal if its key is for another."""
    access: Access = state["access"]
    sent = [value.decode("utf-8", "replace") for name, value in scope["headers"] if name == USER_HEADER]
    asked = [value for name, value in parse_query(scope) if name == USER and scope["path"] not in WITH_OWN_USER]
    try:
        if max(len(sent), len(asked)) > 1:
            raise Invalid("Name one user at most: once in X-Wellkept-User, and once in the query.")
        # A client of version 0.2 would otherwise act for all users of its key.
        if header(scope, f"x-{FORMER_NAME}-user".encode()) is not None:
            raise Invalid("The header that names the user is X-Wellkept-User.")
        for user in map(check_user, (*sent, *asked)):
            access = replace(access, user=access.caller.own_user(user))
        state["access"] = access
    except (Invalid, Forbidden) as error:
        return error_response(STATUS[error.code], str(error), error.code)
    return None


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
