"""Fixtures every test may use, the markers, and how hard hypothesis tries (profiles `many` and `thorough`)."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from recollect import Recollect, Settings
from tests.postgres_server import PostgresServer
from tests.waiting import PATIENT

MARKERS = {
    "proves(*ids)": "the promises of the requirements list that this test proves",
    "slow": "only in `make test-all`: it takes long, and few changes need it",
    "browser": "drives a real Chromium",
    "only_on(*engines)": "in tests/conformance: the engines this test is about, by how their names begin",
}

if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    # Hundreds of programs are started here, and each would compile all of recollect again. All workers share it.
    compiled = os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="recollect-tests-")
    atexit.register(shutil.rmtree, compiled, ignore_errors=True)

# The same examples in every run: what a test is about decides whether it passes, not the examples of the day. Left to
# itself, hypothesis also draws constants from all modules loaded so far, which depends on what a worker ran before.
# Those who look for new examples choose the other profile. How long it takes to make one is nobody's failure.
settings.register_profile(
    "default", max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("many", settings.get_profile("default"), max_examples=200)
settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")
providers._get_local_constants = lambda: providers._local_constants

# Here as in the programs that tests start; those about a source that takes too long name a deadline of their own.
os.environ |= PATIENT
assert Settings.__init__.__kwdefaults__ is not None
Settings.__init__.__kwdefaults__["recall_deadline"] = 60.0


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """PostgreSQL 18 with pgvector. A server that does not start is an error, never a skip."""
    with PostgresServer.start() as server:
        yield server


@pytest.fixture(scope="module")
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recollect]:
    """A store for this module, with the settings it names as `SETTINGS`."""
    named = getattr(request.module, "SETTINGS", {})
    with Recollect(settings=Settings(url=f"sqlite:///{tmp_path_factory.mktemp('store')}/memory.db", **named)) as store:
        yield store


@pytest.fixture(scope="module")
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh database for this module, as the ordinary role `app`."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)
