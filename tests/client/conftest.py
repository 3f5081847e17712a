"""A store on each engine, the server in front of it, and a client of that: all see the same records."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.server.live import serving
from wellkept import Client, Settings, Wellkept
from wellkept.api.agent import AgentMemory
from wellkept.client.agent import AgentClient


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def wellkept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wellkept]:
    folder = tmp_path_factory.mktemp("store")
    (folder / "skills" / "tea").mkdir(parents=True)
    (folder / "skills" / "tea" / "SKILL.md").write_text("---\nname: tea\ndescription: Making tea.\n---\nBoil water.\n")
    if request.param == "postgres":
        url = str(request.getfixturevalue("postgres_url"))
    else:
        url = f"sqlite:///{folder / 'memory.db'}"
    with Wellkept(settings=Settings(url=url, skills=(str(folder / "skills"),))) as opened:
        yield opened


@pytest.fixture(scope="module")
def key(wellkept: Wellkept) -> str:
    return wellkept.tenant("acme").keys.create("operator").key


@pytest.fixture(scope="module")
def address(wellkept: Wellkept, key: str) -> Iterator[str]:
    with serving(wellkept, no_auth=False) as address:
        yield address


@pytest.fixture(scope="module")
def client(address: str, key: str) -> Iterator[Client]:
    with Client(address, key) as client:
        yield client


@pytest.fixture
def atlas(client: Client) -> AgentClient:
    """An agent that nobody has written to."""
    return client.agent(f"atlas-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def library(wellkept: Wellkept, atlas: AgentClient) -> AgentMemory:
    """The same agent without a server."""
    return wellkept.agent(atlas.owner.agent, "acme")
