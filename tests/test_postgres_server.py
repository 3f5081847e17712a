"""The PostgreSQL that other tests stand on is real, isolated, unprivileged, and gone afterwards."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import psycopg
import pytest

from tests import postgres_server as module
from tests.postgres_server import PostgresServer
from tests.waiting import eventually

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(module.SERVER_VARIABLE, raising=False)
        with PostgresServer.start() as started:
            yield started


def ask(url: str, query: str) -> Any:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("version", [pytest.param(16, marks=pytest.mark.slow), 18])
def test_both_engines_start_with_vectors_and_stop_without_a_trace(
    version: Literal[16, 18], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(module.SERVER_VARIABLE, raising=False)
    with PostgresServer.start(version) as server:
        url = server.create_database()
        assert ask(url, "SHOW server_version").startswith(f"{version}.")
        assert ask(url, "SELECT extversion FROM pg_extension WHERE extname = 'vector'") >= "0.8"
        assert ask(url, "SELECT '[3,4]'::vector <-> '[0,0]'") == 5
        assert server.process is not None
        pids = [server.process.pid, ask(url, "SELECT pg_backend_pid()")]
        folder = server.process.folder
        assert is_alive(pids[0])
        assert folder.is_dir()

    assert not any(is_alive(pid) for pid in pids)
    assert not folder.exists()
    server.stop()  # twice is harmless


def test_the_application_role_is_ordinary(server: PostgresServer) -> None:
    url = server.create_database()
    assert ask(url, "SELECT current_user") == "app"
    assert ask(url, "SELECT rolsuper OR rolbypassrls OR rolcreatedb FROM pg_roles WHERE rolname = 'app'") is False
    assert ask(server.admin_url(url), "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is True
    assert ask(server.admin_url(url), "SELECT current_database()") == ask(url, "SELECT current_database()")


def test_the_application_role_is_held_by_row_level_security_on_its_own_tables(server: PostgresServer) -> None:
    url = server.create_database()
    with psycopg.connect(url, autocommit=True) as app:
        app.execute("CREATE TABLE t AS SELECT 1 AS x")
        app.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
        app.execute("ALTER TABLE t FORCE ROW LEVEL SECURITY")

    assert ask(url, "SELECT count(*) FROM t") == 0
    assert ask(server.admin_url(url), "SELECT count(*) FROM t") == 1


def test_databases_are_isolated_and_dropped_even_while_in_use(server: PostgresServer) -> None:
    mine, yours = server.create_database(), server.create_database()
    with psycopg.connect(mine) as connection:
        connection.execute("CREATE TABLE secrets (x int)")
        connection.commit()
        assert ask(yours, "SELECT to_regclass('secrets')") is None
        assert ask(mine, "SELECT to_regclass('secrets')") == "secrets"

        server.drop_database(mine)

    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        ask(mine, "SELECT 1")
    assert ask(yours, "SELECT 1") == 1


def test_the_server_listens_on_loopback_only(server: PostgresServer) -> None:
    admin = server.admin_url("postgres")
    assert ask(admin, "SHOW listen_addresses") == "127.0.0.1"
    assert server.process is not None
    assert Path(ask(admin, "SHOW unix_socket_directories")).is_relative_to(server.process.folder)


def test_a_durable_server_keeps_what_it_acknowledged_through_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(module.SERVER_VARIABLE, raising=False)
    with PostgresServer.start(durable=True) as server:
        url = server.create_database()
        assert ask(url, "SHOW fsync") == "on"
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE t AS SELECT 7 AS x")
        server.crash()
        assert ask(url, "SELECT x FROM t") == 7


def test_another_server_can_be_named_and_is_left_running(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(module.SERVER_VARIABLE, server.admin_url("postgres"))
    with PostgresServer.start() as borrowed:
        url = borrowed.create_database()
        assert ask(url, "SELECT current_user") == "app"
        with pytest.raises(RuntimeError, match="will not crash"):
            borrowed.crash()

    assert ask(url, "SELECT 1") == 1


def test_a_server_that_cannot_start_says_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []
    make_folder = module._make_folder

    def noted_folder(account: module.Account) -> Path:
        folders.append(make_folder(account))
        return folders[-1]

    monkeypatch.setattr(module, "_make_folder", noted_folder)
    monkeypatch.setattr(module, "SETTINGS", {"shared_buffers": "nonsense"})
    monkeypatch.delenv(module.SERVER_VARIABLE, raising=False)

    with pytest.raises(RuntimeError, match="nonsense"):
        PostgresServer.start()
    assert [folder.exists() for folder in folders] == [False]


def test_binaries_that_nobody_can_reach_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if "--version" in args[0]:
            raise PermissionError
        return run(*args, **kwargs)

    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", refuse)
    monkeypatch.delenv(module.SERVER_VARIABLE, raising=False)

    with PostgresServer.start() as server:
        assert server.process is not None
        assert (server.process.folder / "engine").is_dir()
        assert ask(server.create_database(), "SELECT '[3,4]'::vector <-> '[0,0]'") == 5


def test_no_server_outlives_a_killed_test_run() -> None:
    program = (
        "import sys; from tests.postgres_server import PostgresServer; server = PostgresServer.start();"
        "print(server.process.pid, server.process.folder, flush=True); sys.stdin.read()"
    )
    environment = {name: value for name, value in os.environ.items() if name != module.SERVER_VARIABLE}
    command, pipe = [sys.executable, "-c", program], subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe) as run:
        assert run.stdout is not None
        pid, folder = run.stdout.readline().decode().split()
        assert is_alive(int(pid))
        run.kill()

    eventually(lambda: not is_alive(int(pid)) and not Path(folder).exists())


# What our own functions for a cluster call, as an extension that has the name of Citus.
STAND_IN = """
CREATE TABLE public.pg_dist_node (groupid INTEGER, nodename TEXT, nodeport INTEGER, noderole TEXT DEFAULT 'primary');
CREATE FUNCTION public.citus_set_coordinator_host(host text, port integer) RETURNS void LANGUAGE sql AS
  $$ INSERT INTO public.pg_dist_node VALUES (0, host, port) $$;
CREATE FUNCTION public.citus_add_node(host text, port integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF port = current_setting('port')::integer THEN
    RAISE 'Node cannot add itself as a worker';
  END IF;
  ALTER ROLE app CONNECTION LIMIT 99;
  PERFORM pg_sleep(0.3);
  INSERT INTO public.pg_dist_node SELECT count(*) + 1, host, port FROM public.pg_dist_node;
END $$;
CREATE FUNCTION public.run_command_on_workers(command text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  port integer;
  psql text := (SELECT setting FROM pg_config WHERE name = 'BINDIR')
    || '/psql -v ON_ERROR_STOP=1 -h 127.0.0.1 -U postgres -p ';
BEGIN
  FOR port IN SELECT nodeport FROM public.pg_dist_node WHERE groupid > 0 LOOP
    EXECUTE format('COPY (SELECT %L) TO PROGRAM %L', command, psql || port);
  END LOOP;
END $$;
"""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    """A coordinator, which knows itself as a node, and a worker."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name, ExitStack() as running:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "extension").mkdir()
        (folder / "extension" / "citus.control").write_text("default_version = '1'\n")
        (folder / "extension" / "citus--1.sql").write_text(STAND_IN)
        monkeypatch.delenv(module.SERVER_VARIABLE, raising=False)
        monkeypatch.setitem(module.SETTINGS, "extension_control_path", f"{folder}:$system")
        coordinator, worker = (running.enter_context(PostgresServer.start()) for _ in range(2))
        urls = [each.process.url for each in (coordinator, worker) if each.process is not None]
        with psycopg.connect(urls[0], autocommit=True) as admin:
            admin.execute("CREATE EXTENSION citus")
            admin.execute("SELECT citus_set_coordinator_host('127.0.0.1', %s)", [urlsplit(urls[0]).port])
            admin.execute("SELECT citus_add_node('127.0.0.1', %s)", [urlsplit(urls[1]).port])
        monkeypatch.setenv(module.SERVER_VARIABLE, urls[0])
        yield coordinator


def test_two_workers_create_databases_on_a_cluster_at_once(cluster: PostgresServer) -> None:
    with ThreadPoolExecutor(2) as pool:
        servers = [each.result() for each in [pool.submit(PostgresServer.start) for _ in range(2)]]
        made = [each.result() for each in [pool.submit(server.create_database) for server in servers]]

    for url in made:
        nodes = ask(cluster.admin_url(url), "SELECT array_agg(groupid ORDER BY groupid) FROM pg_dist_node")
        assert nodes == [0, 2]
        assert ask(url, "SELECT count(*) FROM pg_extension WHERE extname = 'vector'") == 1
