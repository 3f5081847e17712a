"""Keys: told once, stored as a hash, refused when they should be, and never written anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.services.conftest import START, Clock
from wellkept import AsyncWellkept, Settings, Wellkept
from wellkept.access.rules_keys import key_text, parse_key
from wellkept.errors import Invalid, NotFound, Unauthorized
from wellkept.model import KeyScope

NOW = START


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Wellkept]:
    with Wellkept(url, settings=Settings(embedder="off"), clock=clock) as opened:
        yield opened


def test_a_key_opens_its_tenant_with_its_scope(store: Wellkept) -> None:
    issued = store.tenant("acme").keys.create("write", name=" the  CI ")

    found = store.keys.verify(issued.key)

    assert (found.tenant, found.scope, found.id, found.name) == ("acme", KeyScope.WRITE, issued.record.id, "the CI")
    assert parse_key(issued.key) == ("acme", issued.record.id)
    assert store.keys.is_any_valid()


def test_keys_that_are_none(store: Wellkept) -> None:
    key = store.tenant("acme").keys.create("admin").key
    head, _, secret = key.rpartition("_")
    wrong = [
        "",
        "hunter2",
        key[:-1],
        key.upper(),
        f"{key} ",
        f"{head}_{secret[::-1]}",
        key_text("another", store.tenant("acme").keys.list()[0].id, bytes(32)),
        key.replace("_mfrw2zi_", "_mfrw2zj_"),
        "wellkept_77777777_aaaaaaaa_" + "a" * 52,
        "wellkept_e4_aaaaaaaa_" + "a" * 52,
    ]

    for each in wrong:
        with pytest.raises(Unauthorized, match="not valid"):
            store.keys.verify(each)


def test_a_revoked_key_is_refused_at_once_and_stays_listed(store: Wellkept, clock: Clock) -> None:
    acme = store.tenant("acme")
    issued = acme.keys.create("read")
    store.keys.verify(issued.key)
    assert store.keys.recent(issued.key) == issued.record

    acme.keys.revoke(issued.record.id)

    assert store.keys.recent(issued.key) is None
    with pytest.raises(Unauthorized):
        store.keys.verify(issued.key)
    assert [key.revoked_at for key in acme.keys.list() if key.id == issued.record.id] == [NOW]


def test_another_tenant_cannot_revoke_a_key(store: Wellkept) -> None:
    issued = store.tenant("acme").keys.create("read")

    with pytest.raises(NotFound, match=r"^There is no such key\.$"):
        store.tenant("other").keys.revoke(issued.record.id)
    assert store.keys.verify(issued.key)


def test_a_key_revoked_elsewhere_is_refused_within_a_second(store: Wellkept, url: str, clock: Clock) -> None:
    issued = store.tenant("acme").keys.create("read")
    store.keys.verify(issued.key)
    with Wellkept(url, settings=Settings(embedder="off"), clock=clock) as elsewhere:
        elsewhere.tenant("acme").keys.revoke(issued.record.id)

    clock.moment += timedelta(seconds=1)

    assert store.keys.recent(issued.key) is None
    with pytest.raises(Unauthorized):
        store.keys.verify(issued.key)


def test_a_key_expires(store: Wellkept, clock: Clock) -> None:
    issued = store.tenant("acme").keys.create("read", expires_at=NOW + timedelta(milliseconds=500))
    assert store.keys.verify(issued.key)

    clock.moment += timedelta(milliseconds=500)

    assert store.keys.recent(issued.key) is None
    with pytest.raises(Unauthorized):
        store.keys.verify(issued.key)


def test_refused(store: Wellkept) -> None:
    acme = store.tenant("acme")
    with pytest.raises(Invalid, match="There is no scope 'root'; the scopes are read, write, admin"):
        acme.keys.create("root")
    with pytest.raises(Invalid, match="at most 100 characters"):
        acme.keys.create("read", name="x" * 101)
    with pytest.raises(Invalid, match="must lie in the future"):
        acme.keys.create("read", expires_at=NOW)
    with pytest.raises(Invalid, match="with a zone"):
        acme.keys.create("read", expires_at=datetime(2027, 1, 1))  # noqa: DTZ001


def test_the_last_use_is_written_down_every_few_minutes(store: Wellkept, url: str, clock: Clock) -> None:
    tenant = "used"
    issued = store.tenant(tenant).keys.create("read")
    moments = []
    for minutes in (0, 1, 6):
        clock.moment = NOW + timedelta(minutes=minutes)
        store.keys.verify(issued.key)
        store._services.keys.close()  # waits for the thread
        moments.append(store.tenant(tenant).keys.list()[0].last_used_at)

    assert moments == [NOW, NOW, NOW + timedelta(minutes=6)]


def test_the_key_itself_is_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Wellkept(f"sqlite:///{tmp_path / 'memory.db'}", settings=Settings(embedder="off")) as store:
        acme = store.tenant("acme")
        issued = acme.keys.create("admin", name="mine")
        store.keys.verify(issued.key)
        acme.keys.revoke(issued.record.id)
        with pytest.raises(Unauthorized) as refused:
            store.keys.verify(issued.key)
        events = acme.audit.list()
        secret = issued.key.rpartition("_")[2]
        assert secret not in repr(issued) + repr(events) + str(refused.value) + caplog.text
        assert [event.action for event in events] == ["key.revoke", "key.add"]
        assert acme.audit.verify().is_intact
    assert secret.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_it_looks_like_a_secret_to_us_too(store: Wellkept) -> None:
    """Somebody will paste one into a conversation."""
    issued = store.tenant("acme").keys.create("read")

    with pytest.raises(Invalid, match="appears to contain a secret"):
        store.agent("atlas", "acme").remember(f"Use {issued.key} for it")


@pytest.mark.anyio
async def test_awaited(anyio_backend: str) -> None:
    async with AsyncWellkept(":memory:", settings=Settings(embedder="off")) as store:
        issued = await store.tenant("acme").keys.create("read")
        assert store.sync.keys.verify(issued.key).id == issued.record.id


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
