"""A workspace for each test, and its notes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notes_file.workers import ANN
from wellkept.store.notes.file import NotesFile


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def notes(workspace: Path) -> Iterator[NotesFile]:
    notes = NotesFile(workspace, ANN)
    yield notes
    notes.close()
