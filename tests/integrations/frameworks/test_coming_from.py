"""The lines for other packages in docs/coming-from.md run with these packages, and print what the page lets expect."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers import Mem0, make_embed
from tests.documentation import DOCS, read_blocks

BLOCKS = {re.findall(r"(?:from|import) (\w+)", block)[0]: block for block in read_blocks(DOCS / "coming-from.md", "py")}


def test_lines_of_mem0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    local = Mem0(tmp_path, make_embed())  # a vector store in a folder, and no endpoint
    # Imported by `Mem0`, which has switched its statistics off before.
    monkeypatch.setattr("mem0.Memory", lambda: local.memory)
    exec(BLOCKS["mem0"], {})

    assert capsys.readouterr().out == "Prefers trains to flights\n3\n"


def test_lines_of_langmem(capsys: pytest.CaptureFixture[str]) -> None:
    embed = make_embed()

    def embed_all(texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    endpoint = '"dims": 1536, "embed": "openai:text-embedding-3-small"'
    names: dict[str, Any] = {"embed_all": embed_all}
    assert endpoint in BLOCKS["langgraph"]
    exec(BLOCKS["langgraph"].replace(endpoint, '"dims": 384, "embed": embed_all'), names)

    assert capsys.readouterr().out == "True\n"
