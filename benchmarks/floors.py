"""The floors: the least any store could do with the same engine, the same settings and the same durability."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wellkept.store.sqlite.floor import BareSqlite, connect

__all__ = ["BareSqlite", "BareTranscript", "BareWords", "bare_nearest"]


class BareTranscript:
    """One table of messages."""

    def __init__(self, path: Path) -> None:
        self._db = connect(path)
        self._db.execute(
            "CREATE TABLE messages (tenant_id TEXT, session_id TEXT, position INTEGER, role TEXT, content TEXT, "
            "created_at TEXT, PRIMARY KEY (tenant_id, session_id, position)) STRICT"
        )
        self._position = 0

    def add(self, *texts: str) -> None:
        """The messages of one turn, durable."""
        self._db.execute("BEGIN IMMEDIATE")
        for role, text in zip(("user", "assistant"), texts, strict=True):
            self._position += 1
            row = ("acme", "s", self._position, role, text, "2026-01-01T00:00:00Z")
            self._db.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)", row)
        self._db.execute("COMMIT")


class BareWords:
    """An inverted list in memory: the rows of each word. Scores are sums of the words' rarities."""

    def __init__(self, texts: Sequence[str]) -> None:
        rows: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            for word in set(text.split()):
                rows.setdefault(word, []).append(number)
        self._rows = {word: np.array(numbers) for word, numbers in rows.items()}
        self._total = len(texts)

    def search(self, query: str, limit: int) -> NDArray[np.intp]:
        scores = np.zeros(self._total, np.float32)
        for word in query.split():
            if (rows := self._rows.get(word)) is not None:
                scores[rows] += np.log(self._total / len(rows))
        best = np.argpartition(scores, -limit)[-limit:]
        return best[np.argsort(-scores[best])]


def bare_nearest(matrix: NDArray[np.float32], vector: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
    """The best rows by a plain product with a matrix that is already in memory."""
    scores = matrix @ vector
    best = np.argpartition(scores, -limit)[-limit:]
    return best[np.argsort(-scores[best])]
