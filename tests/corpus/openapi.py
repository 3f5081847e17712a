"""The OpenAPI document of the corpus, compared key by key."""

from __future__ import annotations

import json
from typing import Any

from tests.corpus.recording import RECORDED, changes
from wellkept import Settings, Wellkept
from wellkept.server.app import create_app

PATH = RECORDED / "openapi.json"
VERSION = "<any>"  # grows with each release


def document() -> dict[str, Any]:
    """Return the document as it is served now."""
    with Wellkept(":memory:", settings=Settings(embedder="off")) as store:
        described: dict[str, Any] = json.loads(json.dumps(create_app(store, no_auth=True).openapi()))
    described["info"]["version"] = VERSION
    return described


def record() -> int:
    described = document()
    PATH.write_text(json.dumps(described, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
    return len(described["paths"])


def compare() -> list[str]:
    return list(changes("", json.loads(PATH.read_text("utf-8")), document()))
