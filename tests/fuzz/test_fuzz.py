"""A slice of `make fuzz`, the same few hundred requests in every run."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI

from tests.fuzz.requests import World, make
from tests.fuzz.running import send_all
from tests.fuzz.server import ATTACKED, CANARY, filled
from tests.server.live import serving
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings

pytestmark = pytest.mark.slow

SEED = 20260301
REQUESTS = 200
NOWHERE = "http://127.0.0.1:9/v1"


def test_no_request_of_a_slice_breaks_the_server(caplog: pytest.LogCaptureFixture) -> None:
    apps: list[FastAPI] = []
    settings = Settings(tenant=ATTACKED, rate_limit=0, embedder="off", openai_base_url=NOWHERE)
    with Wellkept(":memory:", settings=settings) as wellkept:
        filled(wellkept, CANARY)
        before = wellkept.agent("ann", CANARY).list()
        ids = filled(wellkept, ATTACKED)
        with serving(wellkept, apps.append, no_auth=False) as address:
            issued = [wellkept.tenant(ATTACKED).keys.create(scope) for scope in ("admin", "write", "read")]
            cookies = [apps[0].state.logins.begin(each.record) for each in issued]
            port = urlsplit(address).port or 0
            world = World(apps[0].openapi(), [each.key for each in issued], cookies, ids, port)
            assert make(world, SEED, 7) == make(world, SEED, 7)
            # On a thread of its own: tests of pages may have left an event loop on this one.
            with ThreadPoolExecutor(1) as pool:
                sending = send_all(port, range(REQUESTS), partial(make, world, SEED))
                outcome = pool.submit(asyncio.run, sending).result()
        after = wellkept.agent("ann", CANARY).list()

    assert outcome.failures == []
    assert outcome.sent == REQUESTS
    assert {"200", "201", "400", "401", "404", "422"} <= set(outcome.statuses), "it gets past the door"
    assert [each.getMessage() for each in caplog.records if "broke" in each.getMessage()] == []
    assert after == before
