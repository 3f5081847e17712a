"""The first requests to a server, all at once, when nothing is cached yet."""

from __future__ import annotations

from pathlib import Path

from tests.server.live import client_of, serving
from tests.threads import clear_caches, fresh_words, run_together
from wellkept import Settings, Wellkept

CLIENTS = 12
WORDS = 60


def test_parallel_first_recalls_find_what_was_stored(tmp_path: Path) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path / 'memory.db'}", embedder="off", recall_deadline=60)
    texts = [" ".join(fresh_words(WORDS)) for _ in range(CLIENTS)]
    found = dict[int, tuple[int, list[str]]]()
    with Wellkept(settings=settings) as wellkept, serving(wellkept) as address:
        ids = [wellkept.agent("atlas").remember(text, kind="core").id for text in texts]
        clear_caches()

        def recall(number: int) -> None:
            with client_of(address) as client:
                answer = client.post("/api/agents/atlas/recall", json={"query": texts[number], "limit": 1})
            hits = answer.json()["hits"] if answer.is_success else []
            found[number] = (answer.status_code, [hit["id"] for hit in hits])

        run_together(CLIENTS, recall)

    assert found == {number: (200, [id]) for number, id in enumerate(ids)}
