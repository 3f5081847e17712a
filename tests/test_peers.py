"""The comparison with other stores, which are not installed here: what is left out, and what is measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import peers

LINES = [
    {"id": "a", "memory": "Moved to Lisbon in spring"},
    {"id": "b", "memory": "Prefers tea over coffee"},
    {"question": "Where did I move?", "expected": ["a"]},
    {"question": "thanks!", "expected": []},
]


def test_a_store_that_is_not_installed_is_left_out_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(map(json.dumps, LINES)))
    missing = ("no-such-package", peers.PEERS["Chroma"][1])
    monkeypatch.setattr(peers, "PEERS", {"wellkept": peers.PEERS["wellkept"], "Chroma": missing})
    assert peers.main([str(file)]) == 0
    printed = capsys.readouterr()

    assert "2 memories in 1 stores, 1 questions." in printed.out
    assert re.search(
        r"\| wellkept \| \S+ \| 1\.000 \| 1\.000 \| 1\.000 \| \d+\.\d\d \| \d+\.\d\d \| 2 of 2 \|", printed.out
    )
    assert "Chroma is left out: run pip install no-such-package" in printed.err
