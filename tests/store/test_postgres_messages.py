"""Messages between the program and PostgreSQL: what each holds, and how often the program waits for an answer."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.conformance.examples import NOW, note, owner, texts
from tests.postgres_server import PostgresServer
from wellkept.deadline import limit_reads
from wellkept.errors import StoreError
from wellkept.store import open_store
from wellkept.store.postgres.engine import send_together
from wellkept.store.sqlstore import SqlStore

SENT = re.compile(r"LOG:  (?:statement|execute [^:]*): (.*)")


@contextmanager
def counting_turns(url: str) -> Iterator[tuple[str, list[int]]]:
    """Relay connections; yield their URL and the number of times that the program spoke after the server."""
    parts, turns = urlsplit(url), [0]
    has_answered = threading.Event()
    with ExitStack() as opened:
        listening = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        address = f"{parts.username}:{parts.password}@127.0.0.1:{listening.getsockname()[1]}"

        def relay(source: socket.socket, target: socket.socket, is_program: bool) -> None:
            with suppress(OSError):
                while sent := source.recv(65536):
                    if not is_program:
                        has_answered.set()
                    elif has_answered.is_set():
                        has_answered.clear()
                        turns[0] += 1
                    target.sendall(sent)
            with suppress(OSError):
                target.shutdown(socket.SHUT_RDWR)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    program = opened.enter_context(listening.accept()[0])
                    server = opened.enter_context(socket.create_connection((parts.hostname, parts.port)))
                    for ends in ((program, server, True), (server, program, False)):
                        threading.Thread(target=relay, args=ends, daemon=True).start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield parts._replace(netloc=address).geturl(), turns
        listening.shutdown(socket.SHUT_RDWR)
        accepting.join()


def open_at(url: str) -> SqlStore:
    return open_store(url, busy_timeout=100, pool_size=1, index_cache_mb=1)


def test_a_read_sends_each_statement_alone_and_waits_no_more_often(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    """Citus sends the whole message to its workers for each SET LOCAL in it."""
    name = urlsplit(postgres_url).path[1:]
    with psycopg.connect(postgres_server.admin_url(postgres_url), autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} SET log_statement = 'all'")
    ann = owner()
    with counting_turns(postgres_url) as (url, turns):
        store = open_at(url)
        store.add_memory(note("apples", ann))
        before, start = turns[0], len(postgres_server.read_log().encode())

        with limit_reads(100):
            assert texts(store.list_memories(ann, now=NOW)) == ["apples"]

        # The beginning, the query and the end.
        assert turns[0] - before == 3
        store.read_together(ann.tenant, lambda: store.list_memories(ann, now=NOW))
        store.close()
    sent = SENT.findall(postgres_server.read_log(start))
    assert [each for each in sent if each.startswith("SET LOCAL")] != []
    assert [each for each in sent if ";" in each] == []
    assert "WARNING" not in postgres_server.read_log(start)


def test_a_beginning_that_fails_leaves_a_connection_that_works(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.UndefinedObject, match="no_such_setting"):
            send_together(connection, ("BEGIN", "SET LOCAL no_such_setting = 1", "SELECT 1"))

        connection.rollback()
        send_together(connection, ("BEGIN", "SELECT 1"))
        assert connection.execute("SELECT 2").fetchone() == (2,)
        connection.rollback()


def test_a_connection_that_ends_during_the_beginning_is_reported(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        with pytest.raises(psycopg.OperationalError):
            send_together(connection, ("BEGIN", "SELECT pg_terminate_backend(pg_backend_pid())", "SELECT 1"))
        assert connection.broken


def test_a_tenant_that_cannot_begin_is_an_error_of_the_store(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, ann = open_at(postgres_url), owner()
    with monkeypatch.context() as broken:
        broken.setattr("wellkept.store.postgres.engine.PROPAGATE", "SET LOCAL no_such_setting = 1")
        with pytest.raises(StoreError, match="42704"):
            store.list_memories(ann, now=NOW)
    assert store.list_memories(ann, now=NOW) == []
    store.close()
