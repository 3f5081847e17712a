"""The floors: the least any store could do with the same engine, the same settings and the same durability."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray


def _connect(path: Path) -> apsw.Connection:
    """Open a database with our own settings for durability and erasure."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "FULL")
    connection.pragma("secure_delete", True)
    return connection


class BareSqlite:
    """One table and one FTS5 table, written with nothing in between."""

    def __init__(self, path: Path) -> None:
        self._db = _connect(path)
        self._db.execute(
            "CREATE TABLE memories (tenant_id TEXT, agent_id TEXT, seq INTEGER, kind TEXT, text TEXT, tags TEXT, "
            "importance REAL, created_at TEXT, PRIMARY KEY (tenant_id, agent_id, seq)) STRICT"
        )
        self._db.execute("CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'porter unicode61')")
        self._db.execute("INSERT INTO words (words, rank) VALUES ('secure-delete', 1)")
        self._seq = 0

    def add(self, text: str) -> None:
        """One durable memory: INSERT, FTS5 row, COMMIT."""
        self._db.execute("BEGIN IMMEDIATE")
        self._insert(text)
        self._db.execute("COMMIT")

    def add_many(self, texts: Sequence[str]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        for text in texts:
            self._insert(text)
        self._db.execute("COMMIT")

    def search(self, query: str, limit: int) -> list[Any]:
        """The best rows by FTS5's own BM25, read back."""
        match = " OR ".join(f'"{word}"' for word in query.split())
        found = self._db.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (match, limit)
        ).fetchall()
        return [row[0] for row in found]

    def read(self, count: int) -> list[Any]:
        """The newest rows, whole."""
        newest = "SELECT * FROM memories WHERE tenant_id = 'acme' AND agent_id = 'atlas' ORDER BY seq DESC LIMIT ?"
        return self._db.execute(newest, (count,)).fetchall()

    def close(self) -> None:
        self._db.close()

    def _insert(self, text: str) -> None:
        self._seq += 1
        row = ("acme", "atlas", self._seq, "episode", text, "[]", 0.5, "2026-01-01T00:00:00Z")
        self._db.execute("INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (self._seq, text))


class BareTranscript:
    """One table of messages."""

    def __init__(self, path: Path) -> None:
        self._db = _connect(path)
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
