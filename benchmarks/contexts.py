"""What putting a prompt together costs, and how much of it a provider's cache could reuse."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import NOW, memories, sentences
from benchmarks.floors import BareSqlite, bare_nearest
from benchmarks.measure import Line, seconds
from wellkept import Settings, Wellkept
from wellkept.api.wellkept import AgentMemory
from wellkept.extension import Embedder
from wellkept.model import Owner
from wellkept.prompt.rules_window import Layout
from wellkept.providers.checked import open_embedder
from wellkept.store import open_store

TENANT, AGENT, SESSION = "acme", "atlas", "s-1"
EPISODES = 10_000
NOTES = 500
TURNS = 200
CALLS = 60
LIMIT = 15
P50_SECONDS = 0.040
WHOLE = 1_000_000
"""A budget that nothing exceeds."""

CACHED_TURNS = 40
WORDS_PER_ANSWER = 80
REUSED_SHARE = 0.80
PROMPT = "You keep the accounts. " * 40


def measured(folder: Path) -> Iterator[Line]:
    embedder, texts = _embedder(), sentences(EPISODES + NOTES)
    matrix = embedder.embed(texts[:EPISODES])
    url = f"sqlite:///{folder / 'context.db'}"
    store = open_store(url, busy_timeout=30, pool_size=1, index_cache_mb=64)
    store.use_embedder(embedder.name, embedder.dimensions)
    store.add_memories(memories(Owner(TENANT, AGENT), texts[:EPISODES]), list(matrix))
    store.close()
    least = _floor(folder, texts, matrix, embedder)
    with Wellkept(url, settings=Settings(max_total=NOTES), clock=lambda: NOW) as wellkept:
        memory = wellkept.agent(AGENT, TENANT)
        memory.remember_many(texts[EPISODES:])
        for question, answer in zip(sentences(TURNS, seed=3), sentences(TURNS, seed=4), strict=True):
            memory.log_turn(SESSION, user=question, assistant=answer)
        for budget, what in ((WHOLE, "all of it"), (8000, "fitted into 8,000 tokens")):
            yield _speed(memory, budget, what, least)
    yield _reuse(folder)


def _embedder() -> Embedder:
    embedder = open_embedder("minilm", api_key="", base_url="")
    assert embedder is not None
    return embedder


def _speed(memory: AgentMemory, budget: int, what: str, least: float) -> Line:
    questions = sentences(CALLS, seed=9, words=8)
    memory.context(questions[0], session=SESSION, budget=budget)  # loads the index, and folds what has to be folded
    took = _p50(
        lambda question: memory.context(question, session=SESSION, system_prompt=PROMPT, budget=budget), questions
    )
    return Line(
        f"context, {TURNS} turns, {NOTES} notes, {EPISODES:,} episodes, {what} (p50)",
        f"{took * 1000:.1f} ms",
        f"{least * 1000:.1f} ms (bare search and reads)",
        took / least,
        f"<= {P50_SECONDS * 1000:.0f} ms",
        took <= P50_SECONDS,
    )


def _floor(folder: Path, texts: list[str], matrix: NDArray[np.float32], embedder: Embedder) -> float:
    """The same search and as many rows, read with nothing around them."""
    floor = BareSqlite(folder / "floor-context.db")
    floor.add_many(texts)

    def read(question: str) -> None:
        floor.search(question, LIMIT)
        bare_nearest(matrix, embedder.embed([question])[0], LIMIT)
        floor.read(NOTES + 2 * TURNS)

    took = _p50(read, sentences(CALLS, seed=9, words=8))
    floor.close()
    return took


def _reuse(folder: Path) -> Line:
    """Of the bytes of each prompt, how many are the beginning of the prompt before."""
    shares = {layout: _reused_share(folder, layout) for layout in Layout}
    stable, standard = shares[Layout.CACHE_STABLE], shares[Layout.STANDARD]
    return Line(
        f"prompt bytes a provider's cache reuses over {CACHED_TURNS} turns, cache_stable",
        f"{stable:.0%}",
        f"{standard:.0%} (standard)",
        stable / max(standard, 0.001),
        f">= {REUSED_SHARE:.0%}",
        stable >= REUSED_SHARE,
    )


def _reused_share(folder: Path, layout: Layout) -> float:
    times = iter(range(10_000_000))
    said = sentences(2 * CACHED_TURNS, seed=5)
    answers = sentences(CACHED_TURNS, seed=6, words=WORDS_PER_ANSWER)
    with Wellkept(
        f"sqlite:///{folder / f'cache-{layout}.db'}",
        settings=Settings(context_layout=layout.value, context_budget=WHOLE),
        clock=lambda: NOW.replace(microsecond=next(times) % 1_000_000),
    ) as store:
        memory = store.agent(AGENT, TENANT)
        memory.remember("I am careful with money", kind="core")
        prompts = []
        for number in range(CACHED_TURNS):
            question, thought = said[2 * number : 2 * number + 2]
            memory.remember(thought, kind="episode")
            memory.remember(f"{thought} {number}")
            made = memory.context(question, session=SESSION, system_prompt=PROMPT)
            prompts.append("".join(json.dumps(message) for message in made.messages))
            memory.log_turn(SESSION, user=question, assistant=answers[number])
    reused = sum(_common(before, after) for before, after in pairwise(prompts))
    return reused / sum(len(each) for each in prompts[1:])


def _common(one: str, two: str) -> int:
    return next((place for place, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


def _p50(work: Callable[[str], object], questions: list[str]) -> float:
    return statistics.median(seconds(partial(work, question)) for question in questions)
