"""Gives an attacker something to work with, and sends its requests over real sockets.

`python -m tests.hostile.attack <address> <folder> <clients> <seconds>` sends the corpus again and again, from a process
of its own; the folder holds what `save` wrote.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from tests.hostile import bombs
from tests.hostile.corpus import FORM, MARK, ORIGIN, Attack, Target, corpus
from wellkept.api.wellkept import Wellkept

TENANT = "mallory"
PATIENCE = 120.0
"""Seconds after which an answer will not come any more: longer than the server itself works on any request here."""

TURNS = 600
MAX_HELD = 60
MEANT = ("timeout", "overloaded", "store_busy", "model")
"""Codes of refusals above 500 that the server makes on purpose."""


@dataclass(frozen=True)
class Attacker:
    """A target, and the key it is attacked with."""

    target: Target
    key: str


def prepare(wellkept: Wellkept) -> Attacker:
    """Give the attacker's tenant something of everything. The console's cookie is added by `log_in`."""
    tenant, mallory = wellkept.tenant(TENANT), wellkept.agent("mallory", TENANT)
    memory = mallory.remember(f"A fact of {MARK}", kind="core")
    for number in range(20):
        mallory.remember(f"{MARK} likes tea of sort {number}", kind="episode")
    mallory.log_turn("s", user=MARK, assistant=MARK)
    mallory.context(MARK, session="s")
    rows = mallory.details.store(json.dumps([["x" * 20] * 20] * 400), type="json").key
    lines = mallory.details.store("ab\n" * 60_000 + "ab" * 300_000).key
    document = tenant.knowledge.ingest_text(f"# Tea\n\n{MARK} " * 20, title="Tea").documents[0].document.id
    step = tenant.workflows.record(workflow="w", step="one", output=MARK, agent="mallory")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "conversations.json"
        file.write_bytes(bombs.conversation(TURNS, MARK))
        tenant.data.import_(file, format="chatgpt", agent="mallory")
    issued = tenant.keys.create("admin")
    doomed = [tenant.keys.create("write") for _ in range(4)]
    ids = {
        "agent": "mallory",
        "agents": "mallory",
        "memories": memory.id,
        "details": rows,
        "sessions": "s",
        "documents": document,
        "workflows": step.workflow_id,
        "context-calls": "c-1",
        "changes": "c-1",
        "keys": "none",
        "static": "console.css",
        "prompts": "c-1",
    }
    target = Target(
        ids=ids,
        rows=rows,
        lines=lines,
        long_session="chatgpt-long",
        read_key=tenant.keys.create("read").key,
        doomed=[(each.record.id, each.key) for each in doomed],
        cookie="",
    )
    return Attacker(target, issued.key)


def log_in(attacker: Attacker, address: str) -> Attacker:
    """Return the attacker with a cookie of the console."""
    content = f"key={attacker.key}".encode()
    login = Attack(
        "login", "POST /admin/login", "/admin/login", content, {"Content-Type": FORM, "Origin": ORIGIN}, key=""
    )
    with connect(address) as line:
        line.sendall(written(login, ""))
        head = read_answer(line).decode("latin-1")
    found = re.search(r"\r\nset-cookie: ([^;]+)", head, re.IGNORECASE)
    assert found is not None, head
    return Attacker(replace(attacker.target, cookie=found[1]), attacker.key)


def save(attacker: Attacker, file: Path) -> None:
    file.write_text(json.dumps({"key": attacker.key, "target": asdict(attacker.target)}))


def load(file: Path) -> Attacker:
    told = json.loads(file.read_text())
    return Attacker(Target(**told["target"]), told["key"])


def connect(address: str) -> socket.socket:
    where = urlsplit(address)
    return socket.create_connection((where.hostname or "", where.port or 0), timeout=PATIENCE)


def written(attack: Attack, key: str) -> bytes:
    """Return the request as bytes."""
    key = key if attack.key is None else attack.key
    lines = [f"{attack.method} {attack.path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
    lines += [f"Authorization: Bearer {key}"] if key else []
    lines += [f"{name}: {value}" for name, value in attack.headers.items()]
    if "Content-Length" not in attack.headers:
        lines.append(f"Content-Length: {len(attack.content) if attack.declared is None else attack.declared}")
    return "\r\n".join([*lines, "", ""]).encode() + attack.content


def read_answer(line: socket.socket) -> bytes:
    """Return what the server says until it hangs up, which it was asked to do."""
    pieces: list[bytes] = []
    with suppress(ConnectionError):
        while more := line.recv(262_144):
            pieces.append(more)
    return b"".join(pieces)


@dataclass
class Outcome:
    """What came of the requests. Only the thread that made it changes it."""

    statuses: Counter[int] = field(default_factory=Counter)
    routes: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def note(self, attack: Attack, answer: bytes, forbidden: str) -> None:
        """Count an answer, and keep what is wrong with it."""
        head, _, body = answer.partition(b"\r\n\r\n")
        status = int(head[9:12]) if head[9:12].isdigit() else 0
        self.statuses[status] += 1
        self.routes[attack.route] += 1
        if status >= 500 and not _is_meant(body):
            self.problems.append(f"{attack.group}: {attack.route} {attack.path[:200]}: {answer[-400:]!r}")
        if forbidden and forbidden.encode() in answer:
            self.problems.append(f"{attack.group}: {attack.route} was told of another tenant")


def _is_meant(body: bytes) -> bool:
    try:
        told = json.loads(body)
    except ValueError:
        return b"<html" in body and (b"in a moment" in body or b"longer than" in body)
    return told.get("code") in MEANT and str(told.get("error", "")).rstrip().endswith(".")


def fire(address: str, key: str, attacks: Iterator[Attack], held: list[socket.socket], forbidden: str) -> Outcome:
    """Send one request after the other; connections that are to stay open are added to `held`."""
    outcome = Outcome()
    for attack in attacks:
        line = connect(address)
        try:
            _send(line, attack, key, outcome, forbidden)
        except TimeoutError:
            outcome.problems.append(f"{attack.group}: {attack.route} {attack.path[:200]}: no answer")
        except ConnectionError:  # hung up on while there was more to send
            outcome.note(attack, b"", forbidden)
        finally:
            if attack.way == "hold":
                held.append(line)
                if len(held) > MAX_HELD:
                    held.pop(0).close()
            else:
                line.close()
    return outcome


def _send(line: socket.socket, attack: Attack, key: str, outcome: Outcome, forbidden: str) -> None:
    content = written(attack, key)
    line.sendall(content[: -len(attack.content) // 2] if attack.way == "cut" and attack.content else content)
    answer = read_answer(line) if attack.way == "whole" else b""
    outcome.note(attack, answer, forbidden)


class Supply:
    """Hands out the requests of a list to several threads, over and over again until the time is up."""

    def __init__(self, attacks: Sequence[Attack], until: float | None = None) -> None:
        self._attacks = attacks
        self._until = until
        self._numbers = count()
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Attack]:
        while True:
            with self._lock:
                number = next(self._numbers)
            is_over = number >= len(self._attacks) if self._until is None else time.monotonic() >= self._until
            if is_over:
                return
            yield self._attacks[number % len(self._attacks)]


def storm(
    address: str,
    key: str,
    attacks: Sequence[Attack],
    *,
    clients: int,
    seconds: float | None = None,
    forbidden: str = "",
    begun: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Send all attacks once, or for so many seconds, from several threads; `begun` is called before each."""
    supply = Supply(attacks, None if seconds is None else time.monotonic() + seconds)
    outcomes: list[Outcome] = []
    held: list[socket.socket] = []

    def paced(attacks: Iterator[Attack]) -> Iterator[Attack]:
        for attack in attacks:
            begun()
            yield attack

    def work() -> None:
        outcomes.append(fire(address, key, paced(iter(supply)), held, forbidden))

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for line in held:
        line.close()
    return outcomes


def totals(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the sum of what several threads have seen."""
    total = Outcome()
    for each in outcomes:
        total.statuses += each.statuses
        total.routes += each.routes
        total.problems += each.problems
    return total


def main() -> None:
    address, file, clients, seconds = sys.argv[1:]
    attacker = load(Path(file))
    attacks = corpus(attacker.target)
    print("ready", flush=True)
    outcome = totals(storm(address, attacker.key, attacks, clients=int(clients), seconds=float(seconds)))
    print(json.dumps({"statuses": outcome.statuses, "problems": outcome.problems[:20]}), flush=True)


if __name__ == "__main__":
    main()
