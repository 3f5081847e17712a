"""Moving a tenant: what a log of 100 MB costs in memory on its way out and in, and how fast memories move."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.details import log
from benchmarks.measure import Line, processor_seconds
from wellkept import Settings, Wellkept

MEMORIES = 20_000
BATCH = 1000
MOST_MEMORY = 32
MOST_EXPORT = 1.0
MOST_IMPORT = 2.0
"""Times what storing the same memories takes."""


def measured(folder: Path) -> Iterator[Line]:
    command = [sys.executable, "-m", "benchmarks.transfers", str(folder)]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    out, back = (int(number) for number in child.stdout.split())
    for what, memory in (("exporting", out), ("importing", back)):
        yield Line(
            f"{what} a log of 100 MB, memory beyond what a short one takes",
            f"{memory} MB",
            "-",
            memory / MOST_MEMORY,
            f"<= {MOST_MEMORY} MB",
            memory <= MOST_MEMORY,
        )
    yield from _moving(folder)


def _moving(folder: Path) -> Iterator[Line]:
    path = folder / "memories.jsonl"
    with Wellkept(f"sqlite:///{folder / 'from.db'}", settings=Settings()) as store:
        floor = processor_seconds(lambda: _remember(store))
        export = processor_seconds(lambda: store.tenant().data.export(path))
    with Wellkept(f"sqlite:///{folder / 'to.db'}", settings=Settings()) as store:
        imported = processor_seconds(lambda: store.tenant().data.import_(path))
    for what, took, most in (("exporting", export, MOST_EXPORT), ("importing", imported, MOST_IMPORT)):
        ratio = took / floor
        yield Line(
            f"{what} {MEMORIES:,} memories, against storing them",
            f"{MEMORIES / took:,.0f} a second",
            f"{MEMORIES / floor:,.0f} a second",
            ratio,
            f"<= {most:g}",
            ratio <= most,
        )


def _remember(store: Wellkept) -> None:
    agent = store.agent()
    for start in range(0, MEMORIES, BATCH):
        texts = (f"Order {start + each} was sent to the harbour on day {each % 31}" for each in range(BATCH))
        agent.remember_many([{"text": text, "kind": "episode"} for text in texts])


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 // 1_000_000


def _main(folder: Path) -> None:
    """In a process of its own, so that its memory is its own."""
    settings = Settings(embedder="off")
    with (
        Wellkept(f"sqlite:///{folder / 'log.db'}", settings=settings) as here,
        Wellkept(f"sqlite:///{folder / 'log-too.db'}", settings=settings) as there,
    ):
        here.agent().details.store("a short one\n" * 100)
        here.tenant().data.export(folder / "short.jsonl.zst")
        there.tenant("short").data.import_(folder / "short.jsonl.zst")
        before = _most_memory()
        here.agent().details.store(log())
        here.tenant().data.export(folder / "log.jsonl.zst")
        after = _most_memory()
        there.tenant().data.import_(folder / "log.jsonl.zst")
    print(after - before, _most_memory() - after)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
