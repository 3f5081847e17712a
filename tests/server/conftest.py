"""One SQLite server for each module; a test keeps to itself by using an agent nobody else has."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from tests.server.console import Browser
from tests.server.live import client_of, serving
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings


class MovableClock:
    """The real time, moved by what a test wants."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture(scope="module")
def module_clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def clock(module_clock: MovableClock) -> Iterator[MovableClock]:
    yield module_clock
    module_clock.ahead = timedelta()


@pytest.fixture(scope="module")
def wellkept(tmp_path_factory: pytest.TempPathFactory, module_clock: MovableClock) -> Iterator[Wellkept]:
    settings = Settings(url=f"sqlite:///{tmp_path_factory.mktemp('store') / 'memory.db'}")
    with Wellkept(settings=settings, clock=module_clock) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(wellkept: Wellkept) -> Iterator[str]:
    with serving(wellkept) as address:
        yield address


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[httpx2.Client]:
    with client_of(address) as client:
        yield client


@pytest.fixture
def browser(address: str) -> Iterator[Browser]:
    browser = Browser(address)
    yield browser
    browser.close()


@pytest.fixture
def ann() -> str:
    """The address of an agent nobody has written to."""
    return f"/api/agents/ann-{uuid.uuid4().hex[:8]}"
