"""What is asked for in other words is found: by every face, and among other facts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.server.live import client_of, serving
from wellkept import Settings, Wellkept
from wellkept.api.agent import AgentMemory
from wellkept.testing.fake_model import ModelServer, says

PAIRS = Path(__file__).parent / "data" / "paraphrases" / "held_out.jsonl"
OTHER_LANGUAGES = {"german", "french", "spanish"}
FACT, QUESTION = "tabs over spaces", "What indentation style should I use?"
OTHERS = (
    "Deploy target is AWS us-east-1",
    "The standup is at nine",
    "Our dog is called Bruno",
    "Invoices are paid within 14 days",
    "Uses a standing desk because of back pain",
    "Errors go to Sentry",
    "The office is closed on Fridays",
    "Tests live next to the source files",
    "The database is PostgreSQL 16",
    "Allergic to penicillin",
    "Drives a red car",
    "The logo is blue and white",
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with the fact and twelve others, as seed 001 has it."""
    url = f"sqlite:///{tmp_path}/memory.db"
    with Wellkept(url) as store:
        store.agent().remember(FACT)
        store.agent().remember_many(OTHERS)
    return url


@pytest.mark.proves("N6")
def test_every_face_shows_the_fact_in_a_new_session(url: str) -> None:
    with (
        ModelServer() as endpoint,
        Wellkept(settings=Settings(url=url, openai_model="small", openai_base_url=endpoint.url)) as store,
    ):
        agent = store.agent()
        endpoint.usual = says("Tabs.")
        shown = {
            "context": json.dumps(agent.context(QUESTION, session="new").messages),
            "recall": " ".join(hit.text for hit in agent.recall(QUESTION)),
            "tool": json.dumps(agent.call_tool("search_my_memories", {"query": QUESTION})),
        }
        with serving(store) as address, client_of(address) as client:
            run = {"agent": agent.owner.agent, "session_id": "newer", "prompt": QUESTION}
            client.post("/agent/run", json=run).raise_for_status()
            shown["/agent/run"] = json.dumps(endpoint.requests[-1][2])
    event = {"session_id": "s-1", "cwd": "/", "hook_event_name": "UserPromptSubmit", "prompt": QUESTION}
    shown["hook"] = subprocess.run(
        [sys.executable, "-m", "wellkept", "hook", "claude"],
        input=json.dumps(event),
        env={**os.environ, "WELLKEPT_URL": url},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert [face for face, text in shown.items() if FACT not in text] == []


@pytest.mark.proves("M1")
def test_facts_are_found_by_questions_in_other_words() -> None:
    pairs = [json.loads(line) for line in PAIRS.read_text("utf-8").splitlines()]
    pairs = [each for each in pairs if each["domain"] not in OTHER_LANGUAGES]
    with Wellkept(":memory:") as store:
        agent = store.agent()
        ids = [each.id for each in agent.remember_many([each["fact"] for each in pairs])]
        found = [id in [hit.id for hit in agent.recall(each["question"])] for id, each in zip(ids, pairs, strict=True)]

    # 75 of 90, of which plain cosine finds 69.
    assert sum(found) >= 73


class EmbedderToLoad:
    """Embedder of this process that needs its first call to load; it notes what each call was for."""

    name, dimensions, is_builtin = "to load", 2, True

    def __init__(self) -> None:
        self.calls: list[Sequence[str]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        return np.eye(1, self.dimensions, dtype=np.float32).repeat(len(texts), axis=0)


@pytest.mark.parametrize("ask", [AgentMemory.recall, AgentMemory.context], ids=["recall", "context"])
def test_the_time_for_new_texts_does_not_begin_before_the_embedder_is_loaded(
    tmp_path: Path, ask: Callable[[AgentMemory, str], object]
) -> None:
    url, embedder = f"sqlite:///{tmp_path}/memory.db", EmbedderToLoad()
    with Wellkept(settings=Settings(url=url, embedder="off")) as store:
        store.agent().remember_many(OTHERS)

    with Wellkept(url, embedder=embedder) as store:
        ask(store.agent(), QUESTION)

    assert embedder.calls[0] == [QUESTION]
    assert sorted(text for call in embedder.calls[1:] for text in call) == sorted(OTHERS)


def test_an_embedder_that_takes_long_to_load_leaves_time_for_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    class Slow(EmbedderToLoad):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            nonlocal now
            now += 3600
            return super().embed(texts)

    with Wellkept(":memory:", embedder=Slow()) as store:
        store.agent().remember(FACT)
        monkeypatch.setattr("wellkept.recall.recall.monotonic", lambda: now)

        found = store.agent().recall(QUESTION)

    assert [hit.text for hit in found] == [FACT]
    assert not found.unanswered
