"""Two servers on one PostgreSQL database, with a client that asks now one and now the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from typing import Any

import httpx2

from tests.server.live import client_of, serving
from tests.waiting import eventually
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings


@contextmanager
def two_servers(url: str, **settings: Any) -> Iterator[tuple[Wellkept, list[httpx2.Client], str]]:
    """Two servers, a client of each, and a key."""
    with ExitStack() as stack:
        stores = [stack.enter_context(Wellkept(settings=Settings(url=url, embedder="off", **settings))) for _ in "ab"]
        key = stores[0].tenant("acme").keys.create("write").key
        addresses = [stack.enter_context(serving(store, no_auth=False)) for store in stores]
        yield stores[0], [stack.enter_context(client_of(address, key)) for address in addresses], key


def ask_in_turn(clients: list[httpx2.Client], count: int) -> Counter[int]:
    return Counter(client.get("/api/agents").status_code for client in islice(cycle(clients), count))


def test_a_revoked_key_is_refused_by_both(postgres_url: str) -> None:
    with two_servers(postgres_url) as (wellkept, clients, key):
        assert ask_in_turn(clients, 4) == {200: 4}
        wellkept.tenant("acme").keys.revoke(wellkept.keys.verify(key).id)
        assert clients[0].get("/api/agents").status_code == 401
        eventually(lambda: clients[1].get("/api/agents").status_code == 401)


def test_one_request_sent_to_both_is_carried_out_once(postgres_url: str) -> None:
    with two_servers(postgres_url) as (wellkept, clients, _key), ThreadPoolExecutor(8) as pool:
        for number in range(5):
            headers = {"Idempotency-Key": f"key-{number}"}
            body = {"text": f"Orders number {number}", "kind": "journal"}
            sent = [
                pool.submit(client.post, "/api/agents/ann/memories", json=body, headers=headers)
                for client in (*clients, *clients)
            ]
            codes = Counter(each.result().status_code for each in sent)
            assert codes[201] >= 1
            assert set(codes) <= {201, 409}
        assert len(wellkept.agent("ann", tenant="acme").list(kind="journal")) == 5


def test_what_one_server_showed_is_no_news_to_the_other(postgres_url: str) -> None:
    with two_servers(postgres_url) as (wellkept, clients, _key):
        text = "The harbour crane is repaired on the last Friday of the month."
        clients[0].post("/api/agents/ann/memories", json={"text": text})
        assert clients[0].post("/api/agents/ann/recall", json={"query": "harbour crane"}).json()["hits"]

        def is_refused() -> bool:
            echo = {"text": text, "kind": "episode", "origin": "agent"}
            return clients[1].post("/api/agents/ann/memories", json=echo).status_code != 201

        eventually(is_refused)
        assert wellkept.agent("ann", tenant="acme").list(kind="note")
