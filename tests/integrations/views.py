"""The kinds of memory an adapter works on: the library on each engine, sync and async, and a client of a server."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.live import serving
from wellkept import AsyncWellkept, Client, Settings, Wellkept

KINDS = ("sqlite", "postgres", "async", "client")


@pytest.fixture(scope="module", params=KINDS)
def opened_view(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """A store, and what a program opens: the store itself, an async one or a client."""
    url = f"sqlite:///{tmp_path_factory.mktemp('store') / 'memory.db'}"
    if request.param == "postgres":
        url = str(request.getfixturevalue("postgres_url"))
    with Wellkept(settings=Settings(url=url)) as store:
        if request.param == "client":
            with serving(store) as address, Client(address) as client:
                yield store, client
        elif request.param == "async":
            program = AsyncWellkept(url)
            yield store, program
            asyncio.run(program.close())
        else:
            yield store, store


@pytest.fixture
def view(opened_view: tuple[Any, Any]) -> Any:
    """The memory of an agent that nobody has written to."""
    _, program = opened_view
    return program.agent(f"atlas-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def library(opened_view: tuple[Any, Any], view: Any) -> Any:
    """The memory of the same agent, in the library."""
    store, _ = opened_view
    return store.agent(view.owner.agent)
