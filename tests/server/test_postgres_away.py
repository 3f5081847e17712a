"""PostgreSQL that is stopped, frozen or locked: the server says so at once, and works again by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import httpx2
import psycopg
import pytest

from tests.postgres_server import PostgresServer
from tests.server.live import NO_CERTIFICATES, ServerProcess, client_of, serving, wait_until
from wellkept.api.wellkept import Wellkept
from wellkept.server.rest import health as health_route
from wellkept.server.rest.health import NO_ANSWER, SLOW
from wellkept.settings import Settings
from wellkept.store.postgres import link

SOON = 8.0
"""Seconds a client waits. A request that waits for the pool takes 10."""

MEMORIES = "/api/agents/ann/memories"


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """One that nobody else misses while it is away."""
    with PostgresServer.start() as server:
        yield server


@pytest.fixture
def url(own_server: PostgresServer) -> str:
    return own_server.create_database(has_tables=True)


@pytest.fixture
def client(url: str) -> Iterator[httpx2.Client]:
    """Of a server that wants keys, with one that was used before."""
    with Wellkept(settings=Settings(url=url)) as wellkept:
        key = wellkept.tenant().keys.create("admin").key
        with serving(wellkept, no_auth=False) as address, client_of(address, key) as client:
            client.timeout = httpx2.Timeout(SOON)
            assert client.post(MEMORIES, json={"text": "before"}).status_code == 201
            yield client


def texts(client: httpx2.Client) -> list[str]:
    return [each["text"] for each in client.get(MEMORIES).json()["items"]]


def is_back(client: httpx2.Client) -> bool:
    return client.get(MEMORIES).status_code == 200


def test_a_stopped_server_is_named_at_once_and_used_again_when_it_is_back(
    own_server: PostgresServer, client: httpx2.Client
) -> None:
    with own_server.down():
        answers = [client.get(MEMORIES) for _ in range(5)]
        answers += [client.post(MEMORIES, json={"text": "lost"}) for _ in range(5)]
        answers.append(client.post("/api/agents/ann/recall", json={"query": "before"}))
        health = client.get("/health")
        with httpx2.Client(base_url=client.base_url, timeout=SOON, verify=NO_CERTIFICATES) as stranger:
            anonymous = stranger.get("/health")
    wait_until(lambda: is_back(client))

    assert {answer.status_code for answer in answers} == {503}
    for answer in answers[1:]:  # the first may have been under way
        assert "cannot be reached (connection refused)" in answer.json()["error"]
        assert "app:app" not in answer.text
        assert answer.headers["Retry-After"] == "1"
    assert (health.status_code, health.json()["status"]) == (503, "degraded")
    assert "cannot be reached" in health.json()["problems"][0]
    assert (anonymous.status_code, anonymous.json()["error"]) == (503, "The store does not answer.")
    assert texts(client) == ["before"]
    assert client.get("/health").json()["status"] == "ok"


def test_a_frozen_server_fails_what_is_under_way_and_everything_after_it(
    own_server: PostgresServer, client: httpx2.Client
) -> None:
    statuses: list[int] = []

    def write() -> None:
        with httpx2.Client(
            base_url=client.base_url, headers=client.headers, timeout=60, verify=NO_CERTIFICATES
        ) as patient:
            statuses.append(patient.post(MEMORIES, json={"text": "under way"}).status_code)

    with own_server.frozen():
        writing = threading.Thread(target=write)
        writing.start()
        first_health = client.get("/health")
        writing.join()
        answers = [client.get(MEMORIES) for _ in range(5)]
        health = client.get("/health")
    wait_until(lambda: is_back(client))

    assert first_health.json()["status"] == "degraded"
    assert statuses == [503]
    assert {answer.status_code for answer in answers} == {503}
    assert "cannot be reached (it does not answer)" in answers[0].json()["error"]
    assert (health.status_code, health.json()["problems"]) == (503, [answers[0].json()["error"]])
    assert texts(client).count("under way") <= 1


def test_a_recall_from_a_frozen_server_is_not_waited_for_past_its_deadline(
    own_server: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "SLOW_CALL", 1000.0)  # it is not found out otherwise
    with Wellkept(settings=Settings(url=url, recall_deadline=1.0)) as wellkept:
        wellkept.agent("ann").remember("before")
        with own_server.frozen():
            hits = wellkept.agent("ann").recall("before", sources=["memory"])

    assert (list(hits), [each.source for each in hits.unanswered]) == ([], ["memory"])


def test_killed_connections_fail_nobody_and_write_nothing_twice(
    own_server: PostgresServer, client: httpx2.Client, url: str
) -> None:
    for number in range(3):
        with psycopg.connect(own_server.admin_url(url), autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'app'")
        assert client.post(MEMORIES, json={"text": f"after {number}", "kind": "journal"}).status_code == 201

    assert texts(client) == ["after 2", "after 1", "after 0", "before"]


def test_a_locked_database_is_named_without_the_names_in_its_address(
    own_server: PostgresServer, client: httpx2.Client, url: str
) -> None:
    name = url.rpartition("/")[2]
    with psycopg.connect(own_server.admin_url("postgres"), autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        admin.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'app'")
        answers = [client.get(MEMORIES) for _ in range(3)]
        admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    wait_until(lambda: is_back(client))

    assert {answer.status_code for answer in answers} == {503}
    assert "(it refuses connections: database is not currently accepting connections)" in answers[-1].json()["error"]
    assert name not in answers[-1].text


def test_a_table_that_is_locked_holds_nobody_up_who_asks_for_the_health(
    own_server: PostgresServer, client: httpx2.Client, url: str
) -> None:
    """The server is there and only slow: nobody's connection is ended."""
    statuses: list[int] = []

    def read() -> None:
        with httpx2.Client(
            base_url=client.base_url, headers=client.headers, timeout=60, verify=NO_CERTIFICATES
        ) as patient:
            statuses.append(patient.get("/api/agents/ann").status_code)

    reading = threading.Thread(target=read)
    with psycopg.connect(own_server.admin_url(url)) as admin:
        admin.execute("LOCK TABLE agents IN ACCESS EXCLUSIVE MODE")
        reading.start()
        first = client.get("/health")
        wait_until(lambda: client.get("/health").status_code == 503)
        last = client.get("/health")
    reading.join()
    wait_until(lambda: client.get("/health").json()["status"] == "ok")

    assert (first.status_code, first.json()["problems"]) == (200, [SLOW])
    assert last.json()["error"] == NO_ANSWER
    assert statuses == [200]


def test_silences_between_answers_do_not_add_up(
    own_server: PostgresServer, client: httpx2.Client, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody asks for the health in between, but the check that was slow is answered."""
    monkeypatch.setattr(health_route, "SILENT", 0.0)

    def ask_while_locked() -> tuple[int, list[str]]:
        with psycopg.connect(own_server.admin_url(url)) as admin:
            admin.execute("LOCK TABLE agents IN ACCESS EXCLUSIVE MODE")
            answer = client.get("/health")
        return answer.status_code, answer.json()["problems"]

    assert ask_while_locked() == (200, [SLOW])
    wait_until(lambda: ask_while_locked() == (200, [SLOW]))


PROGRAM = """
from wellkept.cli import main
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_a_server_that_ends_without_its_database_says_what_is_lost(own_server: PostgresServer, workers: str) -> None:
    url = own_server.create_database(has_tables=True)
    program = (PROGRAM, "serve", "--url", url, "--port", "0", "--workers", workers, "--no-auth")
    with ServerProcess("", program=program) as server, client_of(server.address) as client:
        assert client.post(MEMORIES, json={"text": "Likes tea"}).status_code == 201
        # What a recall notes waits behind this lock until the database is gone.
        with suppress(psycopg.OperationalError), psycopg.connect(url) as holder:
            holder.execute("LOCK TABLE memories IN SHARE MODE")
            assert client.post("/api/agents/ann/recall", json={"query": "tea"}).json()["hits"]
            with own_server.down():
                code, out, errors = server.stop()

    assert code == 1
    assert "everything is stored" not in out
    assert "Every acknowledged write is stored" in errors
    assert "Traceback" not in errors
    assert "shutdown failed" not in errors
    with Wellkept(settings=Settings(url=url)) as wellkept:
        assert [each.text for each in wellkept.agent("ann").list()] == ["Likes tea"]
