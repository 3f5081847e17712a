"""An import that is killed leaves nothing half done: importing the file again finishes it."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from wellkept import Settings, Wellkept

PROGRAM = """
import os, signal, sys
from wellkept import Wellkept, Settings

url, path, share = sys.argv[1], sys.argv[2], float(sys.argv[3])

def kill(done, total):
    if done >= total * share:
        os.kill(os.getpid(), signal.SIGKILL)

with Wellkept(url, settings=Settings(embedder="off")) as store:
    store.tenant("acme").data.import_(path, progress=kill)
"""
SHARES = (0.3, 0.55, 0.7, 0.85, 0.95)
"""Of both readings of the file: the first ends in the middle."""

LOCAL = ("audit_log", "shelves")


def rows(store: Wellkept) -> list[dict[str, Any]]:
    stream = io.BytesIO()
    store.tenant("acme").data.export(stream)
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [each for each in told if each.get("table", LOCAL[0]) not in LOCAL]


def test_an_import_that_was_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    path, url = tmp_path / "export.jsonl", f"sqlite:///{tmp_path / 'there.db'}"
    with Wellkept(f"sqlite:///{tmp_path / 'here.db'}", settings=Settings(embedder="off")) as here:
        atlas = here.agent("atlas", tenant="acme")
        for start in range(0, 1000, 250):
            atlas.remember_many([{"text": f"episode {start + i}", "kind": "episode"} for i in range(250)])
        for number in range(20):
            atlas.details.store(f"line of text {number}\n" * 2_000, description=f"log {number}")
            atlas.log_turn(f"s-{number}", user="hello", assistant="good day")
        here.tenant("acme").data.export(path)
        expected = rows(here)

    for share in SHARES:
        ended = subprocess.run([sys.executable, "-c", PROGRAM, url, path, str(share)], check=False, timeout=100)
        assert ended.returncode == -signal.SIGKILL
    with Wellkept(url, settings=Settings(embedder="off")) as there:
        half = len(there.agent("atlas", tenant="acme").list(state="all", limit=500))
        imported = there.tenant("acme").data.import_(path)
        assert half > 0
        assert imported.added
        assert rows(there) == expected
        assert there.tenant("acme").audit.verify().is_intact
        assert there.tenant("acme").data.import_(path).added == {}
