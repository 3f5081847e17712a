"""The TypeScript client fits the REST API. With npm, also: its own tests pass against real servers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wellkept
from wellkept import Wellkept
from wellkept.server.app import create_app

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
PROSE = {"description", "summary", "title", "example", "examples"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    with Wellkept(":memory:") as store:
        return create_app(store, no_auth=True).openapi()


def strip(node: Any) -> Any:
    """Return a document as scripts/generate.mjs hashes it: without prose, with numbers as JavaScript writes them."""
    if isinstance(node, dict):
        # The example of a body stands beside its schema.
        prose = {
            name for name in PROSE if not isinstance(node.get(name), dict) or (name == "example" and "schema" in node)
        }
        return {name: strip(value) for name, value in node.items() if name not in prose}
    if isinstance(node, list):
        return [strip(each) for each in node]
    return int(node) if isinstance(node, float) and node.is_integer() else node


def test_generated_types_match_the_document(document: dict[str, Any]) -> None:
    whole = strip({name: value for name, value in document.items() if name not in ("info", "servers")})
    text = json.dumps(whole, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    (written,) = re.findall(r"sha256:(\w+)", (CLIENT / "src" / "api.ts").read_text("utf-8"))
    assert written == hashlib.sha256(text.encode()).hexdigest(), "run: cd clients/typescript && npm run generate"


def test_every_path_of_the_client_exists(document: dict[str, Any]) -> None:
    used: set[str] = set()
    for path in (CLIENT / "src").glob("*.ts"):
        if path.name != "api.ts":
            used |= set(re.findall(r'"(/(?:api|agent|health)[^"]*)"', path.read_text("utf-8")))
    assert len(used) > 20
    assert used <= set(document["paths"])


def test_the_package_has_the_version_of_the_library() -> None:
    package = json.loads((CLIENT / "package.json").read_text("utf-8"))
    assert package["version"] == wellkept.__version__
    assert "dependencies" not in package


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tests_of_the_client_pass(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    assert npm, "install Node.js 20.3 or newer, with npm"
    shutil.copytree(CLIENT, tmp_path / "clients" / "typescript", ignore=shutil.ignore_patterns("node_modules", "dist"))
    shutil.copytree(CLIENT.parents[1] / "docs" / "integrations", tmp_path / "docs" / "integrations")
    environment = os.environ | {"WELLKEPT_PYTHON": sys.executable}
    commands = (["install", "--no-audit", "--no-fund"], ["run", "generate", "--", "--check"], ["test"])
    for words in commands:
        done = subprocess.run(
            [npm, *words],
            cwd=tmp_path / "clients" / "typescript",
            env=environment,
            capture_output=True,
            text=True,
            timeout=800,
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
