"""Several processes behind one address: shared logins, limits and metrics, which uvicorn replaces."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.server.live import ServerProcess, client_of, wait_until
from wellkept.api.wellkept import Wellkept
from wellkept.server.run import count_workers
from wellkept.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has one process")

PROGRAM = """
import sys
from wellkept.server.run import serve
from wellkept.settings import Settings
if __name__ == "__main__":
    serve(Settings(url=sys.argv[1], port=0, workers=2, rate_limit=0.001, rate_burst=40), no_auth=sys.argv[2] == "True")
"""


@contextmanager
def started(tmp_path: Path, *, no_auth: bool = True) -> Iterator[ServerProcess]:
    """A server of two workers, which end when it is killed."""
    program = (PROGRAM, f"sqlite:///{tmp_path / 'memory.db'}", str(no_auth))
    with ServerProcess("", lines=5 if no_auth else 7, program=program) as server:
        try:
            yield server
        finally:
            workers = find_workers(server)
            server.kill()
            wait_until(lambda: not any(map(is_alive, workers)))


def find_workers(server: ServerProcess) -> list[int]:
    """The ids of the worker processes; none after the server has ended."""
    return [
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if read_stat(folder)[1:2] == [str(server.pid)] and b"spawn_main" in (folder / "cmdline").read_bytes()
    ]


def is_alive(pid: int) -> bool:
    return read_stat(Path(f"/proc/{pid}"))[:1] not in ([], ["Z"])


def read_stat(folder: Path) -> list[str]:
    """The state of a process and the id of its parent; nothing if it has ended."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return []


def get_each(address: str, path: str, times: int, headers: dict[str, str] | None = None) -> list[httpx2.Response]:
    """Answers over a connection each, so that more than one worker gets to answer."""

    def get(_: int) -> httpx2.Response:
        with client_of(address) as client:
            return client.get(path, headers=headers)

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(get, range(times)))


def recall(address: str, headers: dict[str, str]) -> httpx2.Response:
    """Over a connection of its own, so that both workers get some."""
    with client_of(address) as client:
        return client.post("/api/agents/ann/recall", json={"query": "tabs or spaces?"}, headers=headers)


def test_a_store_in_memory_has_one_process(tmp_path: Path) -> None:
    assert count_workers(Settings(url=":memory:", workers=3)) == 1
    assert count_workers(Settings(url=f"sqlite:///{tmp_path / 'm.db'}", workers=3)) == 3
    assert 1 <= count_workers(Settings(url="postgresql://app@db/memories")) <= 4


def test_limits_logins_and_metrics_hold_over_all_processes(tmp_path: Path) -> None:
    with started(tmp_path, no_auth=False) as server:
        operator = (tmp_path / "memory.db.admin-key").read_text().strip()
        with client_of(server.address, operator) as client:
            busy = client.post("/api/keys", json={"scope": "write"}).json()["key"]
            asking = {"Authorization": f"Bearer {client.post('/api/keys', json={'scope': 'read'}).json()['key']}"}
            client.post("/api/agents/ann/memories", json={"text": "Prefers tabs over spaces"}).raise_for_status()
            cookies = client.post(
                "/admin/login", data={"key": operator}, headers={"Origin": server.address, "Authorization": ""}
            ).cookies
        login = {"Cookie": f"wellkept_console={next(iter(cookies.values()))}"}
        pages = get_each(server.address, "/admin", 8, headers=login)
        answers = get_each(server.address, "/api/agents", 60, headers={"Authorization": f"Bearer {busy}"})
        with ThreadPoolExecutor(4) as threads:
            recalls = list(threads.map(lambda _: recall(server.address, asking), range(12)))
        with client_of(server.address, operator) as client:
            metrics = client.get("/metrics").text
        code, out, errors = server.stop()

    assert {page.status_code for page in pages} == {200}
    assert sorted(each.status_code for each in answers) == [200] * 40 + [429] * 20
    counted = re.search(r'wellkept_requests_total\{method="GET",route="/api/agents",status="200"\} (\d+)', metrics)
    assert counted is not None
    assert int(counted[1]) == 40
    assert 'wellkept_background_running{worker="keys"} 1.0' in metrics
    assert {each.status_code for each in recalls} == {200}
    assert 'wellkept_recalls_total{outcome="found",verb="recall"} 12.0' in metrics
    assert 'wellkept_recall_source_seconds_count{source="memory"} 12.0' in metrics
    assert (code, errors) == (0, "")
    assert out.endswith("Stopped; everything is stored.\n")


def test_a_worker_killed_under_load_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """And a request tried again with its idempotency key, which another worker may get, is done once."""
    done = threading.Event()

    def write(number: int) -> list[str]:
        stored, count = [], 0
        while not done.is_set() or count < 5:
            body, headers = {"text": f"Fact {count} of {number}"}, {"Idempotency-Key": f"{number}-{count}"}
            try:
                with client_of(server.address) as client:
                    answer = client.post(f"/api/agents/a{number}/memories", json=body, headers=headers)
            except httpx2.HTTPError:
                # The worker was killed: try again.
                continue
            # The worker was killed between its commit and its answer: for a minute the key counts as in use.
            if answer.status_code != 409:
                assert answer.status_code in (200, 201), answer.text
                stored.append(answer.json()["id"])
            count += 1
        return stored

    with started(tmp_path) as server, ThreadPoolExecutor(4) as pool:
        wait_until(lambda: len(find_workers(server)) == 2)
        assert get_each(server.address, "/health", 1)[0].status_code == 200
        writers = [pool.submit(write, number) for number in range(4)]
        for _ in range(2):
            os.kill(find_workers(server)[0], signal.SIGKILL)
            wait_until(lambda: len([pid for pid in find_workers(server) if is_alive(pid)]) == 2)
        done.set()
        kept = [writer.result() for writer in writers]
    with Wellkept(f"sqlite:///{tmp_path / 'memory.db'}") as store:
        found = [store.agent(f"a{number}").list(limit=500) for number in range(4)]

    for acknowledged, memories in zip(kept, found, strict=True):
        assert set(acknowledged) <= {each.id for each in memories}
        texts = [each.text for each in memories]
        assert len(texts) == len(set(texts)), "a request that was tried again was done twice"


@pytest.mark.slow
def test_a_hang_up_replaces_the_workers_one_by_one(tmp_path: Path) -> None:
    with started(tmp_path) as server:
        wait_until(lambda: len(find_workers(server)) == 2)
        assert get_each(server.address, "/health", 1)[0].status_code == 200
        before = set(find_workers(server))
        os.kill(server.pid, signal.SIGHUP)
        while before & set(find_workers(server)):
            assert get_each(server.address, "/health", 1)[0].status_code == 200
        assert get_each(server.address, "/health", 4)[-1].status_code == 200


def test_logins_survive_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with Wellkept(url) as store:
        key = store.keys.verify(store.tenant("acme").keys.create("admin").key)
        cookie, link = store.logins.begin(key), store.logins.link_for(key)
    with Wellkept(url) as store:
        assert store.logins.key(cookie).id == key.id
        assert store.logins.key(store.logins.redeem(link)).id == key.id
        store.tenant("acme").keys.revoke(key.id)
        with pytest.raises(Exception, match="not valid or has expired"):
            store.logins.key(cookie)
