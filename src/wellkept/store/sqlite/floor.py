"""The floor that speed is compared with: the least any store could do with SQLite and the same durability."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw


def connect(path: Path) -> apsw.Connection:
    """Open a database with the settings for durability and erasure of our own."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "FULL")
    connection.pragma("secure_delete", True)
    return connection


class BareSqlite:
    """One table and one FTS5 table, written with nothing in between: no checks, no history, no vectors."""

    def __init__(self, path: Path) -> None:
        self._db = connect(path)
        self._db.execute(
            "CREATE TABLE memories (tenant_id TEXT, agent_id TEXT, seq INTEGER, kind TEXT, text TEXT, tags TEXT, "
            "importance REAL, created_at TEXT, PRIMARY KEY (tenant_id, agent_id, seq)) STRICT"
        )
        self._db.execute("CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'porter unicode61')")
        self._db.execute("INSERT INTO words (words, rank) VALUES ('secure-delete', 1)")
        self._seq = 0

    def add(self, text: str) -> None:
        """Store one memory durably: INSERT, FTS5 row, COMMIT."""
        self._db.execute("BEGIN IMMEDIATE")
        self._insert(text)
        self._db.execute("COMMIT")

    def add_many(self, texts: Sequence[str]) -> None:
        """Store several memories in one transaction."""
        self._db.execute("BEGIN IMMEDIATE")
        for text in texts:
            self._insert(text)
        self._db.execute("COMMIT")

    def search(self, query: str, limit: int) -> list[Any]:
        """Return the numbers of the best rows by FTS5's own BM25."""
        match = " OR ".join(f'"{word}"' for word in query.split())
        found = self._db.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (match, limit)
        ).fetchall()
        return [row[0] for row in found]

    def read(self, count: int) -> list[Any]:
        """Return the newest rows."""
        newest = "SELECT * FROM memories WHERE tenant_id = 'acme' AND agent_id = 'atlas' ORDER BY seq DESC LIMIT ?"
        return self._db.execute(newest, (count,)).fetchall()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _insert(self, text: str) -> None:
        self._seq += 1
        row = ("acme", "atlas", self._seq, "episode", text, "[]", 0.5, "2026-01-01T00:00:00Z")
        self._db.execute("INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (self._seq, text))
