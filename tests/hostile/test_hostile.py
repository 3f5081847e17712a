"""No request of one tenant costs another one an error, a wrong answer or the server's memory."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import httpx2
import pytest

from tests.hostile.attack import Attacker, Outcome, log_in, prepare, storm, totals
from tests.hostile.corpus import MARK, corpus
from tests.server.live import ServerProcess, client_of
from tests.server.routes import CONSOLE, SCOPES
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings
from wellkept.testing.fake_model import ModelServer, hangs

pytestmark = pytest.mark.slow

CLIENTS = 16
ATTACKERS = 4
MAX_MEMORY_MB = 400
TENANT = "bea"
SECRET = "the harbour of bea"
"""Stands in what the other tenant stores."""

PROGRAM = """
import sys
from wellkept.server.run import serve
from wellkept.settings import Settings
model = {"openai_base_url": sys.argv[2], "openai_api_key": "none", "openai_model": "hangs", "openai_timeout": 1.0}
serve(Settings(url=sys.argv[1], port=0, workers=1, **model), no_auth=False)
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/memory.db"


class Storm:
    """A server on which one tenant works while another one attacks, once for all tests."""

    def __init__(self, address: str, pid: int, attacker: Attacker, key: str) -> None:
        self.address, self.pid, self.key = address, pid, key
        self.attacks = corpus(attacker.target)
        self.wrong: list[str] = []
        self.statuses: Counter[int] = Counter()
        self._is_over = threading.Event()
        self._attacks = count()
        self._attacks_begun = threading.Semaphore(CLIENTS)
        workers = [threading.Thread(target=self._work, args=(number,)) for number in range(CLIENTS)]
        for worker in workers:
            worker.start()
        try:
            outcomes = storm(
                address, attacker.key, self.attacks, clients=ATTACKERS, forbidden=SECRET, begun=self._note_attack
            )
            self.outcome: Outcome = totals(outcomes)
        finally:
            self._is_over.set()
            self._attacks_begun.release(2 * CLIENTS * len(STEPS))
            for worker in workers:
                worker.join()

    def _note_attack(self) -> None:
        """Let a step of normal work begin beside every second attack."""
        if next(self._attacks) % 2:
            self._attacks_begun.release()

    def _work(self, number: int) -> None:
        """Do normal work until the attack is over, and note whatever is not as it should be."""
        with client_of(self.address, self.key) as client:
            done = 0
            while done < 2 or not self._is_over.is_set():
                for step in STEPS:
                    self._attacks_begun.acquire()
                    try:
                        answer = step(client, number, done)
                    except (AssertionError, httpx2.HTTPError) as error:
                        self.wrong.append(f"{step.__name__}: {error!r}"[:500])
                        continue
                    self.statuses[answer.status_code] += 1
                    if not answer.is_success or MARK in answer.text:
                        self.wrong.append(f"{step.__name__}: {answer.status_code} {answer.text[:300]}")
                done += 1


def remember(client: httpx2.Client, number: int, done: int) -> httpx2.Response:
    text = f"{SECRET}: ship {number} docked {done} times"
    answer = client.post(f"/api/agents/b-{number}/memories", json={"text": text, "kind": "episode"})
    assert answer.json()["text"] == text
    return answer


def recall(client: httpx2.Client, number: int, done: int) -> httpx2.Response:
    answer = client.post(f"/api/agents/b-{number}/recall", json={"query": f"how often did ship {number} dock"})
    assert f"ship {number} docked" in answer.text, answer.text
    return answer


def context(client: httpx2.Client, number: int, done: int) -> httpx2.Response:
    body = {"session_id": f"s-{number}", "message": f"Where is ship {number}?"}
    answer = client.post(f"/api/agents/b-{number}/context", json=body)
    assert f"ship {number} docked" in answer.text, answer.text
    return answer


def search(client: httpx2.Client, number: int, done: int) -> httpx2.Response:
    answer = client.get(f"/api/agents/b-{number}/memories", params={"q": f"docked {done} times"})
    assert [each["text"] for each in answer.json()["items"]] == [f"{SECRET}: ship {number} docked {done} times"]
    return answer


def log_turn(client: httpx2.Client, number: int, done: int) -> httpx2.Response:
    if done == 0:
        made = client.post("/api/chat/sessions", json={"agent_id": f"b-{number}", "id": f"s-{number}"})
        assert made.status_code == 201, made.text
    said = {"user": f"Turn {done} of {SECRET}", "assistant": "Aye"}
    client.post(f"/api/chat/sessions/s-{number}/messages", json=said).raise_for_status()
    answer = client.get(f"/api/chat/sessions/s-{number}/messages", params={"limit": 200})
    assert f"Turn {done} of {SECRET}" in answer.text, answer.text
    return answer


def keep_detail(client: httpx2.Client, number: int, done: int) -> httpx2.Response:
    content = f"{SECRET} {number} {done}\n" * 200
    kept = client.post(f"/api/agents/b-{number}/details", json={"content": content})
    answer = client.get(f"/api/agents/b-{number}/details/{kept.json()['memory_key']}", params={"limit": 20_000})
    assert answer.json()["content"] == content
    return answer


STEPS: Sequence[Callable[[httpx2.Client, int, int], httpx2.Response]] = (
    *(remember, log_turn, recall, context, search, keep_detail),
)


@pytest.fixture(scope="module")
def attacked(url: str) -> Iterator[Storm]:
    with Wellkept(settings=Settings(url=url)) as wellkept:
        attacker = prepare(wellkept)
        key = wellkept.tenant(TENANT).keys.create("admin").key
    with ModelServer(hangs) as model, ServerProcess(url, program=(PROGRAM, url, model.url)) as server:
        attacker = log_in(attacker, server.address)
        yield Storm(server.address, server.pid, attacker, key)
        assert model.requests, "the model that hangs was asked"


def test_corpus_covers_every_route(attacked: Storm) -> None:
    assert len(attacked.attacks) >= 500
    assert {each.route for each in attacked.attacks} == {*SCOPES, *CONSOLE}
    assert sum(attacked.outcome.routes.values()) == len(attacked.attacks)


def test_no_answer_to_the_other_tenant_is_an_error_or_wrong(attacked: Storm) -> None:
    assert attacked.wrong == []
    assert sum(attacked.statuses.values()) >= 2 * CLIENTS * len(STEPS)
    assert set(attacked.statuses) == {200, 201}


def test_every_attack_is_answered_without_an_internal_error(attacked: Storm) -> None:
    assert attacked.outcome.problems == []
    refused = {status for status in attacked.outcome.statuses if 400 <= status < 500}
    assert {400, 401, 403, 404, 413, 422} <= refused, "it gets past the door"


def test_memory_stays_bounded(attacked: Storm) -> None:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{attacked.pid}/status").read_text())
    assert found is not None
    assert int(found[1]) / 1000 <= MAX_MEMORY_MB


def test_other_tenant_goes_on_after_the_attack(attacked: Storm) -> None:
    with client_of(attacked.address, attacked.key) as client:
        export = client.get("/api/export")
        erase = client.post("/api/erase", json={"subject": f"text:{SECRET}", "dry_run": True})
        question = {"query": "ship 3", "id": "m-1"}
        explained = client.post("/api/agents/b-3/explain", json=question)
        calls = client.get("/api/agents/b-3/context-calls")
        verified = client.get("/api/audit/verify")
        health = client.get("/health")

    for answer in (export, erase, explained, calls, verified, health):
        assert answer.status_code == 200, answer.text[:300]
        assert MARK not in answer.text
    assert export.text.count(SECRET) >= 2 * CLIENTS
    assert verified.json()["ok"] is True
    assert len(calls.json()["items"]) >= 2
    others = [each for each in health.json().get("problems", ()) if "model endpoint" not in each]
    assert others == [], "nothing but the model that hangs is a problem"
