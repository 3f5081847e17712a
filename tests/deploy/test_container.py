"""The image and the compose file as linters judge them: no engine builds an image in the tests."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from wellkept import __version__

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
PINNED = re.compile(r".+:v?\d+\.\d+[\w.-]*")


def instructions() -> list[tuple[str, str]]:
    """The name and the arguments of each instruction; lines that continue are joined."""
    lines = re.sub(r"\\\n\s*", " ", re.sub(r"(?m)^#.*\n", "", DOCKERFILE)).splitlines()
    return [(name.upper(), rest.strip()) for name, _, rest in (line.partition(" ") for line in lines if line.strip())]


def last_stage() -> list[tuple[str, str]]:
    found = instructions()
    start = max(place for place, (name, _) in enumerate(found) if name == "FROM")
    return found[start:]


def arguments(name: str, found: list[tuple[str, str]]) -> list[str]:
    return [rest for each, rest in found if each == name]


def test_images_are_pinned_to_a_version() -> None:
    bases = [base.split()[0] for base in arguments("FROM", instructions())]

    assert len(bases) == 2, "one stage to build, one to run"
    assert [base for base in bases if not PINNED.fullmatch(base)] == []
    assert all("slim" in base for base in bases)
    assert [each["image"] for each in COMPOSE["services"].values() if not PINNED.fullmatch(each["image"])] == []
    assert COMPOSE["services"]["wellkept"]["image"] == f"wellkept:{__version__}"


def test_the_image_runs_as_nobody_in_particular() -> None:
    stage = last_stage()
    (user,) = arguments("USER", stage)
    uid, gid = map(int, user.split(":"))

    assert uid >= 1_000
    assert gid >= 1_000
    assert [name for name, _ in stage].index("USER") < [name for name, _ in stage].index("ENTRYPOINT")
    assert not any("chmod 777" in rest or "sudo" in rest for _, rest in instructions())


def test_packages_are_checked_by_hash_and_nothing_is_fetched_by_address() -> None:
    runs = arguments("RUN", instructions())
    installs = [part for run in runs for part in run.split("&&") if re.search(r"\bpip (install|wheel)\b", part)]

    assert "ADD" not in [name for name, _ in instructions()]
    assert not re.search(r"\b(curl|wget)\b|https?://(?!127\.0\.0\.1)", DOCKERFILE)
    assert len(installs) == 4
    assert all("--require-hashes" in each or "--no-deps" in each for each in installs)


def test_it_is_checked_and_stopped_as_a_service() -> None:
    stage = last_stage()
    (health,) = arguments("HEALTHCHECK", stage)

    assert "/health" in health
    assert "--timeout=" in health
    assert all(rest.startswith("[") for name, rest in stage if name in ("ENTRYPOINT", "CMD")), "a shell eats signals"
    assert arguments("STOPSIGNAL", stage) == ["SIGTERM"]
    assert arguments("VOLUME", stage) == arguments("WORKDIR", stage) == ["/data"]


def copied() -> Iterator[str]:
    for rest in arguments("COPY", instructions()):
        if not rest.startswith("--from"):
            yield from rest.split()[:-1]


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    rules = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = [rule[1:] for rule in rules if rule.startswith("!")]

    assert "*" in rules
    assert set(copied()) == set(let_in)
    assert all((ROOT / each).exists() for each in copied())
    assert not any(fnmatch(".git/config", each) or fnmatch("deploy/.env", each) for each in let_in)


def test_services_may_do_little() -> None:
    for name, service in COMPOSE["services"].items():
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not service.get("privileged"), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        for mounted in service.get("volumes", []):
            source = mounted.split(":")[0]
            is_file = source.startswith("./")
            assert (DEPLOY / source).exists() if is_file else source in COMPOSE["volumes"], mounted
            assert not is_file or mounted.endswith(":ro"), mounted
    server = COMPOSE["services"]["wellkept"]

    assert server["read_only"] is True
    assert server["cap_drop"] == ["ALL"]
    assert server["depends_on"]["database"]["condition"] == "service_healthy"
    assert (DEPLOY / server["build"]["context"] / server["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"


def test_passwords_are_asked_for_and_not_in_the_file() -> None:
    environments = [service.get("environment", {}) for service in COMPOSE["services"].values()]
    passwords = [value for each in environments for name, value in each.items() if "PASSWORD" in name or "URL" in name]

    assert len(passwords) == 3
    assert all(":?" in each for each in passwords), "without a value compose stops"


@pytest.mark.slow
def test_compose_accepts_the_file(tmp_path: Path) -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed")
    command = [
        docker,
        "compose",
        "--file",
        str(DEPLOY / "compose.yaml"),
        "--profile",
        "monitoring",
        "config",
        "--quiet",
    ]
    passwords = {
        "POSTGRES_PASSWORD": "one",
        "WELLKEPT_PASSWORD": "two",
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
    }

    assert subprocess.run(command, env=passwords, capture_output=True, check=False, timeout=60).returncode == 0
