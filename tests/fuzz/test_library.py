"""Slices of the fuzzing of the library, the same in every run, and a long one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.fuzz.library import Outcome, describe, fill, find_methods, fuzz, in_new_folder, run_round, try_call
from tests.fuzz.values import Maker
from tests.server.live import serving
from wellkept import AsyncWellkept, Client, Settings, StoreError, Wellkept
from wellkept.api.agent import AgentMemory

SEED = 20261119


def test_no_call_of_a_slice_ends_otherwise_than_well_or_in_an_error_of_ours() -> None:
    outcome = fuzz(":memory:", [SEED], share=0.02, calls=120)

    assert outcome.failures == []
    assert outcome.calls["remember: Invalid"] > 0, "it refuses"
    assert sum(count for name, count in outcome.calls.items() if ":" not in name) > 50, "it gets past the door"


def test_none_does_on_postgres(postgres_url: str) -> None:
    assert fuzz(postgres_url, [SEED + 1], share=0.01, calls=40).failures == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_none_of_many_rounds_does(engine: str, postgres_url: str) -> None:
    url = ":memory:" if engine == "sqlite" else postgres_url

    assert fuzz(url, range(SEED + 2, SEED + 12), share=0.2).failures == []


def raise_python_error(memory: AgentMemory, text: str) -> None:
    raise TypeError


def raise_store_error(memory: AgentMemory, text: str) -> None:
    raise StoreError("The database failed.") from ValueError("a value it cannot hold")


@pytest.mark.parametrize("broken", [raise_python_error, raise_store_error])
def test_the_fuzzer_finds_a_method_by_itself_and_its_failure(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AgentMemory, "a_new_method", broken, raising=False)
    outcome = Outcome()
    with Wellkept(":memory:") as wellkept:
        ann = wellkept.agent("ann")
        assert "a_new_method" in {method.name for method in find_methods(ann)}
        try_call(describe(ann, "a_new_method"), {"text": "tea"}, Maker(SEED), outcome, "here")
        try_call(describe(ann, "get"), {"id": "m-7"}, Maker(SEED), outcome, "here")

    (failure,) = outcome.failures
    assert "AgentMemory.a_new_method" in failure


def test_awaited_calls_end_alike() -> None:
    outcome = Outcome()
    with in_new_folder():
        store = AsyncWellkept(":memory:")
        try:
            fill(store.sync, "awaited")
            ann, tenant = store.agent("ann", "awaited"), store.tenant("awaited")
            run_round(lambda: (ann, ann, ann.for_user("ann"), tenant, tenant.audit, store), SEED, outcome, calls=40)
        finally:
            asyncio.run(store.close())

    assert outcome.failures == []
    assert outcome.calls.total() > 30


@pytest.mark.slow
def test_calls_of_a_client_end_alike() -> None:
    outcome = Outcome()
    with in_new_folder(), Wellkept(":memory:") as wellkept:
        fill(wellkept, "default")
        with serving(wellkept) as address, Client(address, settings=Settings()) as client:
            ann = client.agent("ann")
            run_round(lambda: (ann, ann, ann.for_user("ann"), client, client.audit), SEED, outcome, calls=300)

    assert outcome.failures == []
    assert outcome.calls.total() > 200
