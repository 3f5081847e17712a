"""wellkept[server] can be installed beside the current release of each agent framework."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.house.source import REPOSITORY

FRAMEWORKS = "anthropic crewai google-adk langgraph langmem llama-index-core mem0ai openai-agents pydantic-ai".split()

pytestmark = pytest.mark.slow


@pytest.mark.timeout(900)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_server_installs_beside_the_current_release(framework: str) -> None:
    (current,) = resolve("--no-deps", framework)

    chosen = resolve(f"{REPOSITORY}[server]", f"{framework}=={current['version']}")

    assert {"wellkept", framework} <= {each["name"].lower().replace("_", "-") for each in chosen}


def resolve(*requirements: str) -> list[dict[str, Any]]:
    """Return what pip would install into an empty environment."""
    options = "--quiet --disable-pip-version-check --dry-run --ignore-installed --report -".split()
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, *requirements], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [each["metadata"] for each in json.loads(done.stdout)["install"]]
