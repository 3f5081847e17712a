"""Fixtures every test may use, the markers, and how hard hypothesis tries (profiles `many` and `thorough`)."""

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.postgres_server import PostgresServer
from tests.waiting import PATIENT
from wellkept import Settings, Wellkept

MARKERS = {
    "proves(*ids)": "the promises of the requirements list that this test proves",
    "slow": "only in `make test-all`: it takes long, and few changes need it",
    "browser": "drives a real Chromium",
    "only_on(*engines)": "in tests/conformance: the engines this test is about, by how their names begin",
}

# Hundreds of programs are started here, and each would compile all of wellkept again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that starts the tests in the background has them ignore interrupts, and programs would inherit that.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

IN_MEMORY = Path("/dev/shm")
ROOM = 2 * 2**30  # bytes; the tests write a quarter of it


def _has_room(folder: Path) -> bool:
    """Return True if files can be kept there, and programs started."""
    if not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize >= ROOM and not found.f_flag & getattr(os, "ST_NOEXEC", 0)


if "TMPDIR" not in os.environ and _has_room(IN_MEMORY):
    # The tests commit tens of thousands of times, and a disk takes milliseconds for each. All workers inherit it.
    folder = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="wellkept-tests-", dir=IN_MEMORY)
    tempfile.tempdir = None
    os.chmod(folder, 0o711)  # PostgreSQL runs as another user there
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

# The same examples in every run: what a test is about decides whether it passes, not the examples of the day. Left to
# itself, hypothesis also draws constants from all modules loaded so far, which depends on what a worker ran before.
# Those who look for new examples choose the other profile. How long it takes to make one is nobody's failure.
settings.register_profile(
    "default", max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("many", settings.get_profile("default"), max_examples=200)
settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")
providers._get_local_constants = lambda: providers._local_constants

# Here as in the programs that tests start; those about a source that takes too long name a deadline of their own.
os.environ |= PATIENT
assert Settings.__init__.__kwdefaults__ is not None
Settings.__init__.__kwdefaults__["recall_deadline"] = 60.0


# What is loaded stays: looking through all of it for garbage takes a fifth of a second each time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """PostgreSQL 18 with pgvector. A server that does not start is an error, never a skip."""
    with PostgresServer.start() as server:
        yield server


@pytest.fixture(autouse=True, scope="session")
def patient_pages() -> Iterator[None]:
    """Pages wait for their numbers, however slow the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wellkept.upkeep.stats.PATIENCE", 60.0)
        yield


@pytest.fixture(scope="module")
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wellkept]:
    """A store for this module, with the settings it names as `SETTINGS`."""
    named = getattr(request.module, "SETTINGS", {})
    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path_factory.mktemp('store')}/memory.db", **named)) as store:
        yield store


@pytest.fixture(scope="module")
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh database for this module, as the ordinary role `app`."""
    url = postgres_server.create_database(has_tables=True)
    yield url
    postgres_server.drop_database(url)
