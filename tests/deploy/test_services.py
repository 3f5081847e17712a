"""The unit of systemd, the proxies, the role of PostgreSQL, and the drill of the documentation, executed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.program import Program
from tests.documentation import DOCS, read_blocks
from tests.postgres_server import PostgresServer, find_program
from wellkept import Wellkept
from wellkept.cli.app import COMMANDS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNIT = (DEPLOY / "systemd" / "wellkept.service").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
DRILL = PAGE.partition("## The drill")[2].partition("\n## ")[0]
HARDENED = {
    *("NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "PrivateDevices=yes"),
    *("DynamicUser=yes", "CapabilityBoundingSet=", "RestrictSUIDSGID=yes", "SystemCallFilter=@system-service"),
}


def test_the_unit_is_hardened_and_runs_the_program() -> None:
    lines = set(UNIT.splitlines())

    assert lines >= HARDENED
    assert "ExecStart=/opt/wellkept/bin/wellkept serve" in lines
    assert "StateDirectory=wellkept" in lines
    assert "Environment=WELLKEPT_URL=sqlite:////var/lib/wellkept/wellkept.db" in lines


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "wellkept.service"
    # The program is not installed there.
    unit.write_text(UNIT.replace("/opt/wellkept/bin/wellkept", "/bin/true"))
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")


def test_proxies_hold_nothing_back() -> None:
    nginx = (DEPLOY / "proxy" / "nginx.conf").read_text(encoding="utf-8")
    caddy = (DEPLOY / "proxy" / "Caddyfile").read_text(encoding="utf-8")

    assert {"proxy_buffering off;", "proxy_request_buffering off;", "proxy_http_version 1.1;"} <= set(
        map(str.strip, nginx.splitlines())
    )
    assert "flush_interval -1" in caddy
    assert "location = /metrics" in nginx
    assert "path /metrics" in caddy


@pytest.mark.slow
def test_nginx_accepts_its_file(tmp_path: Path) -> None:
    nginx, openssl = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"), shutil.which("openssl")
    if nginx is None or openssl is None:
        pytest.skip("nginx or openssl is not installed")
    options = "req -x509 -newkey rsa:2048 -nodes -subj /CN=memory.example.org -days 2 -keyout key.pem -out cert.pem"
    subprocess.run([openssl, *options.split()], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    text = (DEPLOY / "proxy" / "nginx.conf").read_text(encoding="utf-8")
    text = re.sub(r"/etc/letsencrypt\S+fullchain.pem", str(tmp_path / "cert.pem"), text)
    text = re.sub(r"/etc/letsencrypt\S+privkey.pem", str(tmp_path / "key.pem"), text)
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"pid {tmp_path}/pid;\nerror_log {tmp_path}/log;\nevents {{}}\nhttp {{\n{text}}}\n")
    done = subprocess.run([nginx, "-t", "-c", str(whole)], capture_output=True, text=True, check=False, timeout=60)

    assert "test is successful" in done.stderr, done.stderr


@pytest.mark.slow
def test_caddy_accepts_its_file(tmp_path: Path) -> None:
    caddy = shutil.which("caddy")
    if caddy is None:
        pytest.skip("caddy is not installed")
    command = [caddy, "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "proxy" / "Caddyfile")]
    environment = {**os.environ, "HOME": str(tmp_path)}

    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)


def variables(server: PostgresServer) -> dict[str, str]:
    """How PostgreSQL's programs find the server, as its superuser."""
    parts = urlsplit(server.admin_url("postgres"))
    found = {"PGHOST": parts.hostname or "", "PGPORT": str(parts.port), "PGUSER": parts.username or "postgres"}
    return found | {"PATH": f"{find_program('psql').parent}:/usr/bin:/bin", "LC_ALL": "C"}


def test_the_role_of_compose_can_open_a_store_and_the_drill_restores_it(tmp_path: Path) -> None:
    """The script that compose runs, a store by its role, then the commands of the documentation."""
    with PostgresServer.start(durable=True) as server:
        found = variables(server)
        script = [str(DEPLOY / "postgres" / "create-role.sh")]
        environment = {**found, "POSTGRES_USER": found["PGUSER"], "WELLKEPT_PASSWORD": "it's a pass'word"}
        subprocess.run(script, env=environment, check=True, capture_output=True, timeout=60)
        address = f"postgresql://wellkept@{found['PGHOST']}:{found['PGPORT']}"
        with Wellkept(f"{address}/wellkept") as store:
            store.agent("ann").remember("Prefers tabs over spaces")
            store.tenant("other").agents.add("bob")
        program = Program(tmp_path)
        (block,) = re.findall(r"```sh\n(pg_dump.*?)```", DRILL, re.DOTALL)
        for line in block.splitlines():
            name, *rest = shlex.split(line.replace("postgresql://wellkept@localhost", address))
            if name == "wellkept":
                ended = program(*rest)
                assert ended.code == 0, ended.out
            else:
                command = [str(find_program(name)), *rest]
                subprocess.run(command, cwd=tmp_path, env=found, check=True, capture_output=True, timeout=60)
        with Wellkept(f"{address}/drill") as restored:
            assert [each.text for each in restored.agent("ann").list()] == ["Prefers tabs over spaces"]
            assert restored.list_tenants() == ["default", "other"]
            assert restored.agent("ann").recall("tabs or spaces?")


def test_postgresql_in_ten_minutes_takes_the_quickstart_along(tmp_path: Path, postgres_url: str) -> None:
    commands = "".join(read_blocks(DOCS / "how-to" / "postgresql.md", "sh"))
    lines = re.findall(r"^(?:env -u WELLKEPT_URL )?wellkept .*$", commands, re.MULTILINE)
    assert lines[-1] == "wellkept serve"
    program = Program(tmp_path)
    program.ok("remember", "Prefers tabs over spaces", "--tag", "preference")
    for line in lines[:-1]:
        words = shlex.split(line)
        variables = {} if words[0] == "env" else {"WELLKEPT_URL": postgres_url}
        ended = program(*words[words.index("wellkept") + 1 :], **variables)
        # The server of the tests does not sync, which doctor reports.
        assert ended.code == ("doctor" in words), (line, ended)

    with Wellkept(postgres_url) as store:
        (memory,) = store.agent("default").list()
        assert memory.tags == ("preference",), "the one of the quickstart, once"


def test_the_drill_on_sqlite_brings_everything_back(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.ok("remember", "Prefers tabs over spaces")
    (block,) = re.findall(r"```sh\n(wellkept.*?)```", DRILL, re.DOTALL)
    outputs = []
    for line in block.splitlines():
        name, *rest = shlex.split(line)
        assert name == "wellkept"
        ended = program(*rest)
        assert ended.code == 0, (line, ended)
        outputs.append(ended.out)

    assert "Prefers tabs over spaces" in outputs[-1]


@pytest.mark.parametrize("command", re.findall(r"^wellkept [a-z].*$", PAGE.replace("\\\n", ""), re.MULTILINE))
def test_commands_of_the_page_exist(tmp_path: Path, command: str) -> None:
    _, *words = shlex.split(command, comments=True)
    options = [each for each in words if each.startswith("--")]
    lengths = range(1, len(words) + 1)
    path = next(words[:number] for number in lengths if " ".join(words[:number]) in COMMANDS)
    helped = Program(tmp_path)(*path, "--help", "--all").out

    assert [each for each in options if each not in helped] == []
