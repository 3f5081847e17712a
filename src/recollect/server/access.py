"""The door: no request reaches a route without a key that allows it.

It stands in front of the router, so it also guards what is mounted later. The tenant comes from the key and from
nowhere else, and so do the limits under which the library works for the request. With `no_auth` everybody is the
operator of this machine, and works in the tenant of the settings.
"""

from __future__ import annotations

import asyncio
import math
import unicodedata
from dataclasses import dataclass
from functools import partial
from typing import Any

from anyio.to_thread import run_sync
from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.requests import cookie_parser
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.api.recollect import Recollect
from recollect.caller import OPERATOR, Caller, calling
from recollect.errors import Forbidden, StoreError, Unauthorized
from recollect.model import ApiKey, KeyScope, Origin
from recollect.policy.keys import allows
from recollect.server.addresses import KeyCheck
from recollect.server.admin.logins import COOKIE, Logins, is_console
from recollect.server.errors import CHALLENGE, STATUS, error_response, http_refusal, retry_after
from recollect.server.headers import header
from recollect.server.limits import HEALTH, HEALTH_WITHIN, NO_KEY_HOLDER, SPARE, Buckets
from recollect.server.scopes import UNKNOWN_PATH, Rule, ScopeTable
from recollect.server.threads import Threads

NO_KEY = "This route takes a key: send the header Authorization: Bearer <key>."
TOO_FAST = "This key is asking too often; wait a moment."
KEY_WITHIN = HEALTH_WITHIN * 2 / 3
"""Seconds whoever asks for the server's health waits for the store to tell whose key it is."""

FOR_OPERATORS = " Whoever runs the server can make one: recollect keys create --scope operator"
NO_SUCH_AGENT = "There is no such agent."
UNKNOWN = Rule(UNKNOWN_PATH, KeyScope.READ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who is asking."""

    tenant: str
    scope: KeyScope
    key_id: str | None = None  # None: the operator of a server without keys
    agents: tuple[str, ...] = ()  # the agents the key is limited to; empty: all
    trust: Origin | None = None  # the most trusted origin it may claim; None: any

    @property
    def caller(self) -> Caller:
        """The same for the library, and for the audit log."""
        return Caller(actor=self.key_id or OPERATOR, scope=self.scope, agents=self.agents, trust=self.trust)


class KeyGuard:
    """Looks at every request, notes who is asking (`state["access"]`) and which route is meant (`state["route"]`).

    For the limits behind it: who holds a place meanwhile (`state["holder"]`: a tenant; None: the operator), and whether
    anybody could have sent it (`state["is_open"]`).
    """

    def __init__(
        self, app: ASGIApp, *, recollect: Recollect, keys: KeyCheck, logins: Logins, router: Any, no_auth: bool
    ) -> None:
        self._app = app
        self._recollect = recollect
        self._keys = keys
        self._logins = logins
        self._router = router
        self._table = ScopeTable()
        self._operator = Access(tenant=recollect.settings.tenant, scope=KeyScope.OPERATOR) if no_auth else None
        self._checks = Threads(most=SPARE)
        self._buckets = Buckets(rate=recollect.settings.rate_limit, burst=recollect.settings.rate_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # nothing here speaks any other protocol
        state = scope.setdefault("state", {})
        rule = self._table.find(scope["method"], scope["path"]) or self._unlisted(scope)
        state["route"] = rule.path
        refusal = None
        if self._operator is None:
            refusal = await self._admit(scope, state, rule)
        else:
            state["access"] = self._operator
            state["holder"] = None
        access: Access | None = state["access"]
        state["is_open"] = rule.scope is None or access is None
        with calling(Caller() if access is None else access.caller):
            await (self._app if refusal is None else refusal)(scope, receive, send)

    async def _admit(self, scope: Scope, state: dict[str, Any], rule: Rule) -> JSONResponse | None:
        """Notes whose request this is; the refusal, if it may not go on."""
        state["access"] = None
        state["holder"] = NO_KEY_HOLDER
        try:
            key = await (self._key_for_health(scope) if scope["path"] == HEALTH else self._key(scope))
        except Unauthorized as error:
            return None if rule.scope is None else error_response(401, str(error), error.code, headers=CHALLENGE)
        except HTTPException as error:
            return None if rule.scope is None else http_refusal(Request(scope), error)
        except StoreError as error:
            if rule.scope is None:
                return None
            return error_response(STATUS[error.code], str(error), error.code, headers=retry_after(error))
        state["access"] = access = Access(  # also a page that refuses says who
            tenant=key.tenant, scope=key.scope, key_id=key.id, agents=key.agents, trust=key.trust
        )
        state["holder"] = key.tenant
        pause = self._buckets.take(f"{key.tenant}/{key.id}")
        if pause and rule.scope is not None:
            state["refused"] = "rate"
            return error_response(429, TOO_FAST, "rate_limited", headers={"Retry-After": str(math.ceil(pause))})
        if rule.scope is not None and not allows(key.scope, rule.scope):
            sentence = f"This key has the scope {key.scope.value}; this takes one with the scope {rule.scope.value}."
            return error_response(403, sentence + (FOR_OPERATORS * (rule.scope is KeyScope.OPERATOR)), "forbidden")
        return self._other_agent(scope, rule, access.caller)

    def _other_agent(self, scope: Scope, rule: Rule, caller: Caller) -> JSONResponse | None:
        """Answer for an agent the key is not for as for one that does not exist; to make it is forbidden."""
        agent = unicodedata.normalize("NFC", rule.agent_in(scope["path"]))
        try:
            if agent:
                caller.check_agent(agent)
        except Forbidden as error:
            is_read = rule.scope is KeyScope.READ
            return error_response(404, NO_SUCH_AGENT) if is_read else error_response(403, str(error))
        return None

    async def _key(self, scope: Scope) -> ApiKey:
        """Raises: Unauthorized, HTTPException, StoreError."""
        if is_console(scope["path"]):  # a browser sends the console's cookie, and only there
            sent = cookie_parser(header(scope, b"cookie") or "").get(COOKIE, "")
            return await run_sync(self._logins.key, sent)
        return await self._keys.verify(_bearer(scope), scope)

    async def _key_for_health(self, scope: Scope) -> ApiKey:
        """The key that was sent. Where the store does not tell, one that was good before still is: it opens nothing
        but what is wrong with the store.

        Raises: Unauthorized.
        """
        sent = _bearer(scope)
        key = self._recollect.recent_key(sent)
        if key is None:
            began = asyncio.get_running_loop().time()
            try:
                key = await self._checks.attempt(partial(self._recollect.verify_key, sent), within=KEY_WITHIN)
            except (StoreError, TimeoutError):
                key = self._recollect.recent_key(sent, at_any_age=True)
            except Unauthorized:
                self._keys.count_failure(scope)
                raise
            scope["state"]["waited"] = asyncio.get_running_loop().time() - began
        if key is None:
            raise Unauthorized(NO_KEY)
        return key

    def _unlisted(self, scope: Scope) -> Rule:
        """What is in no table takes an admin key, if it exists; what does not is left to the router to say so."""
        exists = any(route.matches(scope)[0] is Match.FULL for route in self._router.routes)
        return Rule(UNKNOWN_PATH, KeyScope.ADMIN) if exists else UNKNOWN


def _bearer(scope: Scope) -> str:
    """Raises: Unauthorized."""
    kind, _, sent = (header(scope, b"authorization") or "").partition(" ")
    if kind.lower() != "bearer" or not sent.strip():
        raise Unauthorized(NO_KEY)
    return sent.strip()
