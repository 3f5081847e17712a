"""How long one tenant waits while another one attacks: sixteen connections at work, quiet and beside a hostile corpus.

The attacker has four connections and a process of its own, and sends every request of `tests/hostile` again and again.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.corpus import sentences
from benchmarks.http_load import Load, Outcome, Question
from benchmarks.measure import Line
from benchmarks.server import build, served
from tests.hostile.attack import log_in, prepare, save
from wellkept import Settings, Wellkept
from wellkept.testing.fake_model import ModelServer, hangs

AGENTS = 8
EACH = 1_000
CONNECTIONS = 16
ATTACKERS = 4
SECONDS = 10.0
TURNS = 3
MOST = 3.0
MAX_MEMORY_MB = 400
GOOD = {200, 201}

_TEXTS = sentences(2_000, seed=33, words=8)


def measured(folder: Path) -> Iterator[Line]:
    url = f"sqlite:///{folder / 'attacked.db'}"
    key = build(url, agents=AGENTS, each=EACH)
    with Wellkept(settings=Settings(url=url)) as wellkept:
        attacker = prepare(wellkept)
        for number in range(CONNECTIONS):
            wellkept.agent(f"agent-{number % AGENTS}").log_turn(f"s-{number}", user="Hello", assistant="Hello")
    with ModelServer(hangs) as model, served(url, environment=_model(model)) as (address, process):
        file = folder / "attacker.json"
        save(log_in(attacker, address), file)
        load = Load(address, key)
        load.run(normal, connections=CONNECTIONS, seconds=SECONDS / 2)  # brings the indexes into memory
        resting = _megabytes(process, "VmRSS")
        quiet, attacked = Outcome(), Outcome()
        for _ in range(TURNS):
            _add(quiet, load.run(normal, connections=CONNECTIONS, seconds=SECONDS))
            with _attack(address, file):
                _add(attacked, load.run(normal, connections=CONNECTIONS, seconds=SECONDS))
        peak = _megabytes(process, "VmHWM")
    for share in (0.5, 0.99):
        before, now = (each.percentile(share) * 1000 for each in (quiet, attacked))
        what = f"wait of {CONNECTIONS} clients beside {ATTACKERS} hostile ones of another tenant, p{share:.0%}"
        yield Line(what, f"{now:.0f} ms", f"{before:.0f} ms (quiet)", now / before, f"<= {MOST}", now <= MOST * before)
    what = "the server's memory at its peak meanwhile"
    is_met = peak <= MAX_MEMORY_MB
    yield Line(what, f"{peak:.0f} MB", f"{resting:.0f} MB (before)", peak / resting, f"<= {MAX_MEMORY_MB} MB", is_met)


def _model(model: ModelServer) -> Mapping[str, str]:
    """Return settings that let agents ask a model which never answers, on this machine."""
    told = {"BASE_URL": model.url, "API_KEY": "none", "MODEL": "hangs", "TIMEOUT": "1"}
    return {f"WELLKEPT_OPENAI_{name}": value for name, value in told.items()}


def normal(number: int, count: int) -> Question:
    """Return what an agent does next: remember, recall, ask for context, search, keep turns and long texts."""
    text = _TEXTS[(number * 577 + count) % len(_TEXTS)]
    agent = f"/api/agents/agent-{number % AGENTS}"
    asks: Mapping[int, Question] = {
        0: ("POST", f"{agent}/memories", {"text": f"{text} {number} {count}", "kind": "episode"}),
        1: ("POST", f"{agent}/recall", {"query": text}),
        2: ("GET", f"{agent}/memories?q={text.split()[0]}&limit=20", None),
        3: ("POST", f"{agent}/context", {"session_id": f"s-{number}", "message": text}),
        4: ("POST", f"/api/chat/sessions/s-{number}/messages", {"user": text, "assistant": text}),
        5: ("POST", f"{agent}/details", {"content": f"{text} {number} {count}\n" * 100}),
        6: ("GET", f"{agent}/details?limit=10", None),
        7: ("POST", f"{agent}/inject", {"message": text}),
    }
    return asks[count % len(asks)]


@contextmanager
def _attack(address: str, file: Path) -> Iterator[None]:
    """Attack until the end of the block."""
    command = [sys.executable, "-m", "tests.hostile.attack", address, str(file), str(ATTACKERS), str(SECONDS + 1)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield
        told = json.loads(process.stdout.readline())
        assert sum(told["statuses"].values()) > 0
        assert not told["problems"], told["problems"]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _add(total: Outcome, more: Outcome) -> None:
    assert not more.broken, more.broken[:3]
    assert set(more.statuses) <= GOOD, more.statuses
    total.waits += more.waits
    total.statuses += more.statuses


def _megabytes(process: int, name: str) -> float:
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) / 1000
