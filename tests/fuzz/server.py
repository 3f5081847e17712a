"""A server to be fuzzed, as a process of its own, with two tenants: one that is attacked, and one nobody may touch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.requests import World
from wellkept import Wellkept
from wellkept.settings import Settings

ATTACKED, CANARY = "fuzz", "canary"
PROGRAM = """
import sys
from wellkept.server.run import serve
from wellkept.settings import Settings
nowhere = "http://127.0.0.1:9/v1"
serve(Settings(url=sys.argv[1], port=0, workers=1, tenant="fuzz", rate_limit=0, openai_base_url=nowhere), no_auth=False)
"""


@dataclass
class FuzzedServer:
    """A running server."""

    url: str
    address: str
    log: Path
    process: subprocess.Popen[str]
    canary_key: str

    def world(self) -> World:
        """Return what requests may be about; makes new keys, for the case that the old ones were revoked."""
        with Wellkept(settings=Settings(url=self.url)) as wellkept:
            tenant, keys = wellkept.tenant(ATTACKED), []
            for scope in ("operator", "admin", "write", "read"):
                keys.append(tenant.keys.create(scope).key)
            ids = filled(wellkept, ATTACKED)
        document = self.get("/openapi.json", keys[0])
        port = int(self.address.rpartition(":")[2])
        return World(document, keys, [self._login(key) for key in keys[1:3]], ids, port)

    def get(self, path: str, key: str) -> Any:
        """Return the JSON of an answer."""
        return json.loads(self._read(path, key))

    def count_requests(self, key: str) -> int:
        """Return how many requests the server has answered."""
        lines = self._read("/metrics", key).decode().splitlines()
        return int(sum(float(each.rpartition(" ")[2]) for each in lines if each.startswith("wellkept_requests_total")))

    def canary(self) -> list[str]:
        """Return the rows the canary has; those of the audit log are left out, where the export itself is noted."""
        rows = [json.loads(line) for line in self._read("/api/export", self.canary_key).decode().splitlines()[1:-1]]
        return [json.dumps(row) for row in rows if row["table"] not in ("audit_log", "shelves")]

    def complaints(self) -> list[str]:
        """Return what the server logged of errors nobody foresaw."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [each for each in lines if "Traceback" in each or " broke" in each or "never retrieved" in each]

    def _read(self, path: str, key: str) -> bytes:
        request = urllib.request.Request(self.address + path, headers={"Authorization": f"Bearer {key}"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            content: bytes = answer.read()
        return content

    def _login(self, key: str) -> str:
        opener = urllib.request.build_opener(_NoRedirect)
        request = urllib.request.Request(
            f"{self.address}/admin/login", data=f"key={key}".encode(), headers={"Origin": self.address}
        )
        try:
            opener.open(request, timeout=60)
        except urllib.error.HTTPError as answer:
            return str(answer.headers["Set-Cookie"]).partition(";")[0].partition("=")[2]
        raise AssertionError("The login did not lead anywhere.")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@contextmanager
def fuzzed_server(url: str = "") -> Iterator[FuzzedServer]:
    """Run a server on a new SQLite file, or on the (empty) database of `url`, until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="wellkept-fuzz-") as folder:
        url = url or f"sqlite:///{folder}/memory.db"
        with Wellkept(settings=Settings(url=url)) as wellkept:
            filled(wellkept, CANARY)
            canary_key = wellkept.tenant(CANARY).keys.create("operator").key
            wellkept.tenant(ATTACKED).keys.create("admin")
        log = Path(folder) / "server.log"
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("WELLKEPT_", "OPENAI_"))
        }
        with log.open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, url], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
            )
        try:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(5)]
            (docs,) = (line for line in said if line.startswith("Reference "))
            yield FuzzedServer(url, docs.split()[-1].removesuffix("/docs"), log, process, canary_key)
        finally:
            process.terminate()
            try:
                process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def filled(wellkept: Wellkept, name: str) -> dict[str, list[str]]:
    """Give a tenant something of everything, and return the ids."""
    tenant, ann = wellkept.tenant(name), wellkept.agent("ann", name)
    memories = [ann.remember(f"Fact {number}: prefers tea in Oslo", kind="episode") for number in range(3)]
    memories.append(ann.remember("Prefers tabs over spaces"))
    session = f"s-{uuid.uuid4().hex[:8]}"
    ann.log_turn(session, user="Which indentation?", assistant="Tabs.")
    log = "\n".join(f"line {number} of a log" for number in range(500))
    details = [ann.details.store(log, description="a log"), ann.details.store('{"a": [1, {"b": "c"}]}', type="json")]
    document = tenant.knowledge.ingest_text("# Tea\n\nGreen tea is steeped for two minutes.", title="Tea").documents[0]
    step = tenant.workflows.record(workflow="hire somebody", step="ask", output="done", agent="ann")
    return {
        "agent": ["ann", "bob"],
        "id": [*(each.id for each in memories), session, document.document.id, step.workflow_id, "1", "console.css"],
        "key": [each.key for each in details],
    }
