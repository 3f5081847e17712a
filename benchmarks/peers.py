"""`python -m benchmarks.peers [FILE…]`: the same memories and questions in wellkept and in other stores.

All stores but wellkept get the vectors of wellkept's built-in encoder, so that stores are compared and not models, and
no model is downloaded. mem0 stores texts as they are (`infer=False`). Without a file, the facts and the questions in
other words of `tests/data/paraphrases/held_out.jsonl` are used, on which nothing was fitted. A store that is not
installed is left out with a sentence. Each runs in this process, with files in a temporary folder; another process,
killed while it stores, shows what is durable.

Install them beside wellkept: pip install mem0ai langgraph chromadb
basic-memory is not among them: it needs Python 3.12.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import mean, median
from time import process_time
from typing import Any, Protocol

from wellkept import Settings, Wellkept
from wellkept.evaluation import LabelledSet, read_sets
from wellkept.evaluation.scores import compute_metrics
from wellkept.providers.checked import open_embedder

LIMIT = 10
METRIC_NAMES = ("recall@5", "recall@10", "mrr")
HEADERS = ("Store", "Version", "R@5", "R@10", "MRR", "Store, CPU ms", "Search, CPU ms", "Survives kill -9")
HELD_OUT = Path(__file__).parents[1] / "tests/data/paraphrases/held_out.jsonl"
"""Facts and questions in other words that nothing of wellkept was fitted on."""

KILLED_AFTER = 40
"""Acknowledged memories after which a process that stores is killed."""


class Peer(Protocol):
    """A store under comparison."""

    def add(self, id: str, text: str) -> None: ...

    def search(self, question: str) -> Sequence[str]:
        """Return the ids of the best memories."""

    def close(self) -> None: ...


class _Wellkept:
    """wellkept with default settings, except that no text is refused and notes are not limited."""

    def __init__(self, folder: Path, embed: Callable[[str], list[float]]) -> None:
        settings = Settings(secrets="flag", max_total=1_000_000, recall_deadline=60)
        self._opened = Wellkept(f"sqlite:///{folder / 'wellkept.db'}", settings=settings)
        self._agent = self._opened.agent("bench")
        self._labels: dict[str, str] = {}

    def add(self, id: str, text: str) -> None:
        self._labels[self._agent.remember(text[:500], metadata={"label": id}).id] = id

    def search(self, question: str) -> Sequence[str]:
        hits = self._agent.recall(question, limit=LIMIT, sources=["memory"])
        # A process that finds what another one stored has to look the labels up.
        return [self._labels.get(hit.id) or self._agent.get(hit.id).metadata["label"] for hit in hits]

    def close(self) -> None:
        self._opened.close()


class Mem0:
    """mem0's `Memory` over a local Qdrant, without a language model."""

    def __init__(self, folder: Path, embed: Callable[[str], list[float]]) -> None:
        # It asks for a key although it calls no model here.
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder / "mem0"), OPENAI_API_KEY="unused")
        dimensions = len(embed("a"))
        place = {"path": str(folder / "qdrant"), "embedding_model_dims": dimensions, "on_disk": True}
        config = {
            "vector_store": {"provider": "qdrant", "config": place},
            "history_db_path": str(folder / "history.db"),
        }
        self.memory: Any = importlib.import_module("mem0").Memory.from_config(config)
        self.memory.embedding_model = _Mem0Embedder(embed)

    def add(self, id: str, text: str) -> None:
        message = [{"role": "user", "content": text}]
        self.memory.add(message, user_id="bench", infer=False, metadata={"label": id})

    def search(self, question: str) -> Sequence[str]:
        found = self.memory.search(question, filters={"user_id": "bench"}, top_k=LIMIT, threshold=0.0)
        return [each["metadata"]["label"] for each in found["results"]]

    def close(self) -> None:
        self.memory.vector_store.client.close()


class _Mem0Embedder:
    """The methods that mem0 calls of an embedder."""

    def __init__(self, embed: Callable[[str], list[float]]) -> None:
        self._embed = embed

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._embed(text)

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [self._embed(text) for text in texts]


class _LangGraph:
    """LangGraph's `InMemoryStore`, which keeps nothing on disk: its others need a server or SQLite with extensions."""

    def __init__(self, folder: Path, embed: Callable[[str], list[float]]) -> None:
        module: Any = importlib.import_module("langgraph.store.memory")

        def embed_all(texts: Sequence[str]) -> list[list[float]]:
            return [embed(text) for text in texts]

        self._store: Any = module.InMemoryStore(index={"dims": len(embed("a")), "embed": embed_all, "fields": ["text"]})

    def add(self, id: str, text: str) -> None:
        self._store.put(("bench",), id, {"text": text})

    def search(self, question: str) -> Sequence[str]:
        return [each.key for each in self._store.search(("bench",), query=question, limit=LIMIT)]

    def close(self) -> None:
        pass


class _Chroma:
    """Chroma's persistent client, by cosine."""

    def __init__(self, folder: Path, embed: Callable[[str], list[float]]) -> None:
        chroma: Any = importlib.import_module("chromadb")
        options = chroma.config.Settings(anonymized_telemetry=False)
        client = chroma.PersistentClient(path=str(folder / "chroma"), settings=options)
        by_cosine = {"hnsw:space": "cosine"}
        self._collection = client.get_or_create_collection("bench", embedding_function=None, metadata=by_cosine)
        self._embed = embed

    def add(self, id: str, text: str) -> None:
        self._collection.add(ids=[id], documents=[text], embeddings=[self._embed(text)])

    def search(self, question: str) -> Sequence[str]:
        found = self._collection.query(query_embeddings=[self._embed(question)], n_results=LIMIT)
        return list(found["ids"][0])

    def close(self) -> None:
        pass


PEERS: dict[str, tuple[str, type]] = {
    "wellkept": ("wellkept", _Wellkept),
    "mem0": ("mem0ai", Mem0),
    "LangGraph store": ("langgraph-checkpoint", _LangGraph),
    "Chroma": ("chromadb", _Chroma),
}
"""By name: the package, and the class that uses it."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="memories and questions for `wellkept admin eval`"
    )
    parser.add_argument("--sets", type=int, default=1_000_000, help="use the first sets of each file only")
    parser.add_argument("--store", nargs=2, metavar=("STORE", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--find", nargs=2, metavar=("STORE", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    sets = [one for path in given.files or [HELD_OUT] for one in [*read_sets(path)][: given.sets]]
    if given.store or given.find:
        name, folder = given.store or given.find
        peer: Peer = PEERS[name][1](Path(folder), make_embed())
        (store_all if given.store else find_all)(peer, sets)
        return 0
    asked = [question for one in sets for question in one.questions if question.expected and question.is_headline]
    print(f"{datetime.now(UTC).date()}, {platform.machine()}, Python {platform.python_version()};")
    print(f"{sum(len(one.memories) for one in sets):,} memories in {len(sets)} stores, {len(asked):,} questions.\n")
    print(f"| {' | '.join(HEADERS)} |\n|{'---|' * len(HEADERS)}")
    for name, (package, make_peer) in PEERS.items():
        try:
            installed = version(package)
        except PackageNotFoundError:
            print(f"{name} is left out: run pip install {package}", file=sys.stderr)
            continue
        cells = (name, installed, *measure_peer(make_peer, sets), count_survivors(name, arguments))
        print(f"| {' | '.join(cells)} |", flush=True)
    return 0


def measure_peer(
    make_peer: Callable[[Path, Callable[[str], list[float]]], Peer], sets: Sequence[LabelledSet]
) -> list[str]:
    """Return the cells of a store: what it finds, and the processor time of an add and of a search.

    That of an add is the mean of all, with what the store does in the background; that of a search is the median.
    """
    scores, adds, searches = list[dict[str, float]](), list[float](), list[float]()
    embed = make_embed()
    for one in sets:
        with tempfile.TemporaryDirectory(prefix="wellkept-peers-", ignore_cleanup_errors=True) as folder:
            store = make_peer(Path(folder), embed)
            adds.append(_timed(_fill, store, one)[0] / max(len(one.memories), 1))
            for question in one.questions:
                if question.expected and question.is_headline:
                    seconds, found = _timed(store.search, question.text)
                    searches.append(seconds)
                    scores.append(compute_metrics(found, question.expected))
            store.close()
    shares = [f"{mean(each[name] for each in scores):.3f}".removeprefix("0") for name in METRIC_NAMES]
    return [*shares, f"{1_000 * mean(adds):.2f}", f"{1_000 * median(searches):.2f}"]


def _fill(store: Peer, one: LabelledSet) -> None:
    for each in one.memories:
        store.add(each.id, each.spoken)
    store.search("anything")  # waits for vectors that are computed in the background


def count_survivors(name: str, arguments: Sequence[str]) -> str:
    """Kill a process that stores after `KILLED_AFTER` acknowledged memories; return how many another one finds."""
    command = [sys.executable, "-m", "benchmarks.peers", *arguments]
    with tempfile.TemporaryDirectory(prefix="wellkept-peers-", ignore_cleanup_errors=True) as folder:
        with subprocess.Popen([*command, "--store", name, folder], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            stored = [line.strip() for _, line in zip(range(KILLED_AFTER), writer.stdout, strict=False)]
            writer.kill()
        answer = subprocess.run([*command, "--find", name, folder], capture_output=True, text=True, check=False)
    return f"{len({*stored} & {*answer.stdout.splitlines()})} of {len(stored)}"


def store_all(peer: Peer, sets: Sequence[LabelledSet]) -> None:
    """Store all memories of the first set, and print the id of each that is acknowledged."""
    for each in sets[0].memories:
        peer.add(each.id, each.spoken)
        print(each.id, flush=True)


def find_all(peer: Peer, sets: Sequence[LabelledSet]) -> None:
    """Print the id of each memory of the first set that its own text finds."""
    for each in sets[0].memories:
        if each.id in peer.search(each.spoken):
            print(each.id)


def _timed(work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    began = process_time()
    result = work(*arguments)
    return process_time() - began, result


def make_embed() -> Callable[[str], list[float]]:
    """Return a function that embeds a text as wellkept does by default."""
    embedder = open_embedder("minilm")
    assert embedder is not None

    def embed(text: str) -> list[float]:
        return [float(each) for each in embedder.embed([text])[0]]

    return embed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
