"""A request crosses few files: each is a place to look when it fails."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import FrameType

import pytest
from starlette.testclient import TestClient

from tests.house.source import MODULES, PACKAGE, reject
from wellkept.api.wellkept import Wellkept
from wellkept.server.app import create_app
from wellkept.settings import Settings
from wellkept.upkeep import embedding

MAX_FILES = 40
"""Files of ours with a function that runs while a memory is stored over REST, without a key (which adds three)."""

MAX_FILES_NAMING_A_FIELD = 10


class FilesCrossed:
    """The files of the package whose functions are called, in all threads started from now on."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            self.names.add(path.relative_to(PACKAGE).as_posix())


def test_storing_a_memory_over_rest_crosses_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The thread that embeds later is no part of the request.
    monkeypatch.setattr(embedding, "GATHER", 60.0)
    crossed, before = FilesCrossed(), sys.getprofile()
    settings = Settings(url=f"sqlite:///{tmp_path}/memory.db")
    with Wellkept(settings=settings) as wellkept:
        threading.setprofile(crossed)
        try:
            with TestClient(create_app(wellkept, no_auth=True), base_url="http://127.0.0.1") as client:
                for text in ("Prefers tea", "Lives in Oslo"):
                    assert client.post("/api/agents/ann/memories", json={"text": text}).status_code == 201
                # Only now: the first requests read files and build tables that later ones find ready.
                crossed.names.clear()
                client.post("/api/agents/ann/memories", json={"text": "Deploys go out on Tuesdays"})
                names = set(crossed.names)
        finally:
            threading.setprofile(before)

    # Otherwise the profile was not set where the request runs.
    assert {"server/http/auth.py", "memory/remember.py", "store/sqlite/writer.py"} <= names
    if len(names) > MAX_FILES:
        reject(names, fix=f"Join files that always run together; a memory stored over REST crosses over {MAX_FILES}")


def test_few_files_name_a_field_of_a_memory() -> None:
    """Adding a field to `Memory` changes as many modules, and a migration for each engine."""
    naming = [module.at(1) for module in MODULES if "valid_from" in module.source]

    assert "src/wellkept/model/records.py:1" in naming
    if len(naming) > MAX_FILES_NAMING_A_FIELD:
        reject(naming, fix=f"Derive the field from the dataclass; over {MAX_FILES_NAMING_A_FIELD} modules name it")
