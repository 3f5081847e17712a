"""`SqlStore`, and keys that are taken together with the first write of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import NOW, note
from wellkept.errors import NotFound, RequestInProgress
from wellkept.model import Kind, Owner
from wellkept.model.stored import CLAIM, Claim, KeptAnswer
from wellkept.store.sqlstore import SqlStore
from wellkept.store.tables.access import ROW_BYTES

DAY = timedelta(hours=24)
ANSWER = KeptAnswer(
    at=NOW, request_hash="abc", status=201, content_type="application/json", body=b'{"id":"m-1"}\x00\xff'
)


def claim_of(owner: Owner, holder: str = "first", *, key: str = "k", after: timedelta = timedelta()) -> Claim:
    at = NOW + after
    return Claim(tenant=owner.tenant, key_hash=key, holder=holder, at=at, expires_at=at + DAY)


@contextmanager
def claiming(claim: Claim) -> Iterator[None]:
    token = CLAIM.set(claim)
    try:
        yield
    finally:
        CLAIM.reset(token)


def write(store: SqlStore, owner: Owner) -> None:
    store.add_memories([note("Tea at five", owner, kind=Kind.JOURNAL)], [None])


def count(store: SqlStore, owner: Owner) -> int:
    return len(store.list_memories(owner, now=NOW, limit=100))


def write_in_transaction(store: SqlStore, owner: Owner) -> None:
    store.transaction(owner.tenant, lambda: write(store, owner))


@pytest.mark.parametrize("written", [write, write_in_transaction])
def test_key_is_taken_with_the_first_write(
    written: Callable[[SqlStore, Owner], None], store: SqlStore, ann: Owner
) -> None:
    first, second = claim_of(ann), claim_of(ann, "second")
    with claiming(first):
        assert store.find_answer(first) is None
        written(store, ann)
        written(store, ann)
    assert (first.is_written, store.find_answer(second)) == (True, KeptAnswer(at=NOW))

    with claiming(second), pytest.raises(RequestInProgress):
        written(store, ann)

    assert (second.is_written, second.is_lost, count(store, ann)) == (False, True, 2)


def test_failed_write_leaves_the_key_free(store: SqlStore, ann: Owner) -> None:
    first, second = claim_of(ann), claim_of(ann, "second")

    def fail() -> None:
        write(store, ann)
        raise NotFound("No.")

    with claiming(first), pytest.raises(NotFound):
        store.transaction(ann.tenant, fail)
    assert store.find_answer(second) is None

    with claiming(second):
        write(store, ann)
    assert count(store, ann) == 1


def test_key_is_not_taken_by_other_tenants_or_after_the_request(store: SqlStore, ann: Owner, stranger: Owner) -> None:
    claim = claim_of(ann)
    with claiming(claim):
        write(store, stranger)
        assert store.find_answer(claim) is None
        claim.is_over = True
        write(store, ann)
    assert store.find_answer(claim) is None
    assert store.find_answer(replace(claim, tenant=stranger.tenant)) is None


def test_many_writers_with_one_key_write_once(lasting_place: Place, store: SqlStore, ann: Owner) -> None:
    other = lasting_place.open()

    def attempt(number: int) -> bool:
        claim = claim_of(ann, str(number))
        with claiming(claim):
            try:
                write((store, other)[number % 2], ann)
            except RequestInProgress:
                return False
            return True

    try:
        with ThreadPoolExecutor(16) as pool:
            assert sum(pool.map(attempt, range(16))) == 1
    finally:
        other.close()
    assert count(store, ann) == 1


def test_threads_of_one_request_do_not_exclude_each_other(store: SqlStore, ann: Owner) -> None:
    claim = claim_of(ann)

    def work(_: int) -> None:
        with claiming(claim):
            write(store, ann)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert (count(store, ann), claim.is_lost) == (4, False)


def test_answer_comes_back_byte_for_byte(store: SqlStore, ann: Owner, stranger: Owner) -> None:
    claim = claim_of(ann)
    store.keep_answer(claim, ANSWER)  # nothing was written before
    store.keep_answer(claim_of(ann, "second"), replace(ANSWER, status=409))

    assert store.find_answer(claim) == ANSWER
    assert store.find_answer(claim_of(stranger)) is None


def test_key_is_free_again_after_a_day(store: SqlStore, ann: Owner) -> None:
    store.keep_answer(claim_of(ann), ANSWER)
    almost, after = claim_of(ann, "x", after=DAY - timedelta(microseconds=1)), claim_of(ann, "y", after=DAY)
    assert store.find_answer(almost) == ANSWER
    assert store.find_answer(after) is None

    with claiming(after):
        write(store, ann)

    assert store.find_answer(after) == KeptAnswer(at=NOW + DAY)


def test_pruning_drops_what_expired_and_the_oldest_beyond_the_limit(store: SqlStore, ann: Owner) -> None:
    for hour in range(4):
        store.keep_answer(claim_of(ann, key=f"k{hour}", after=timedelta(hours=hour)), replace(ANSWER, body=b"x" * 500))
    prune = partial(store.prune_answers, ann.tenant)

    def left(now: timedelta = timedelta(hours=4)) -> list[str]:
        keys = [f"k{hour}" for hour in range(4)]
        return [key for key in keys if store.find_answer(claim_of(ann, key=key, after=now)) is not None]

    assert prune(created_until=NOW - DAY, max_bytes=4 * (ROW_BYTES + 500)) == 0
    assert prune(created_until=NOW, max_bytes=10**9) == 1
    assert left() == ["k1", "k2", "k3"]
    assert prune(created_until=NOW - DAY, max_bytes=2 * (ROW_BYTES + 500) + 1) == 1
    assert left() == ["k2", "k3"]


def test_erasing_takes_answers_and_leaves_keys(store: SqlStore, ann: Owner, stranger: Owner) -> None:
    kept, at_work = claim_of(ann), claim_of(ann, "busy", key="k2")
    store.keep_answer(kept, ANSWER)
    store.keep_answer(claim_of(stranger), ANSWER)
    with claiming(at_work):
        write(store, ann)

    assert store.erase_answers(ann.tenant) == 2
    store.keep_answer(at_work, ANSWER)  # worked out before the erasure

    assert store.find_answer(kept) == replace(ANSWER, body=None)
    assert store.find_answer(at_work) == KeptAnswer(at=NOW)
    assert store.find_answer(claim_of(stranger)) == ANSWER
    assert store.erase_answers(ann.tenant, with_keys=True) == 2
    assert store.find_answer(kept) is None


@pytest.mark.parametrize("with_keys", [False, True])
def test_request_that_erases_keeps_its_own_answer(with_keys: bool, store: SqlStore, ann: Owner) -> None:
    other, erasing = claim_of(ann), claim_of(ann, "erasing", key="k2")
    store.keep_answer(other, ANSWER)
    with claiming(erasing):
        write(store, ann)
        assert store.erase_answers(ann.tenant, with_keys=with_keys) == 1
    store.keep_answer(erasing, ANSWER)

    assert store.find_answer(erasing) == ANSWER
    assert store.find_answer(other) == (None if with_keys else replace(ANSWER, body=None))
