"""The programs in examples/ run as they are, without a key or a network."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.documentation import ROOT, run_python
from tests.waiting import PATIENT
from wellkept.testing.fake_model import ModelServer, says

EXAMPLES = ROOT / "examples"
QUESTION = "What am I allergic to?"


def test_the_chat_remembers_facts_across_conversations(tmp_path: Path) -> None:
    with ModelServer(says("Noted.")) as model:
        environment = {"OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "scripted"}
        first = run_python([str(EXAMPLES / "chat.py")], tmp_path, environment, typed="I'm allergic to penicillin.\n\n")
        run_python([str(EXAMPLES / "chat.py")], tmp_path, environment, typed=f"{QUESTION}\n")

    assert "assistant: Noted.\n  (remembered: I'm allergic to penicillin.)" in first
    # The others ask the model for facts.
    prompts = [body["messages"] for _, _, body in model.requests if body["messages"][-1]["content"] == QUESTION]
    assert "I'm allergic to penicillin." in str(prompts[0][:-1])


def test_users_of_the_web_application_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WELLKEPT_URL", f"sqlite:///{tmp_path}/app.db")
    app = load("fastapi_app").app

    async def visit() -> list[Any]:
        transport = httpx2.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://app") as client,
        ):
            anna, ben = {"X-User": "anna"}, {"X-User": "ben"}
            stored = await client.post("/memories", json={"text": "I am vegetarian"}, headers=anna)
            assert stored.status_code == 201
            refused = await client.post("/memories", json={"text": "Key: AKIAQYLPMN5HIEXAMP42"}, headers=anna)
            assert refused.status_code == 422
            question = {"question": "am I vegetarian?"}
            answers = [await client.get("/recall", params=question, headers=user) for user in (anna, ben)]
            prompt = await client.post("/prompt?session=s-1", json={"text": "Am I vegetarian?"}, headers=anna)
            return [*(answer.json() for answer in answers), prompt.json()]

    found, foreign, prompt = asyncio.run(visit())
    assert [hit["text"] for hit in found] == ["I am vegetarian"]
    assert foreign == []
    assert "I am vegetarian" in str(prompt[:-1])


def test_the_setup_of_a_coding_agent_runs(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", str(EXAMPLES / "coding_agent.sh")],
        env=os.environ | PATIENT | {"PATH": path, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=250,
    )

    assert done.returncode == 0, done.stderr
    notes = r"- (m-1, project) Run the tests with make test\n- (m-2, rule) Never push to main; open a pull request"
    assert rf'"additionalContext": "[Memories]\n{notes}"' in done.stdout
    assert "2999:2999" in done.stdout
    assert "aws-access-key" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_recall_is_evaluated_on_own_questions(tmp_path: Path) -> None:
    printed = run_python([str(EXAMPLES / "evaluate_recall.py")], tmp_path, {})
    _, _, configured, words = printed.splitlines()

    assert configured.split()[2:5] == ["1.000", "1.000", "1.000"]
    assert words.startswith("words alone")


def load(name: str) -> Any:
    """Import an example as a module."""
    spec = spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
