"""Threads for work that may hang."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from tests.waiting import LIMIT
from wellkept import StoreError
from wellkept.upkeep import background
from wellkept.upkeep.background import Workers


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    workers.close()


def test_submit_passes_on_what_the_work_returns_or_raises(workers: Workers) -> None:
    good, bad = workers.submit(lambda: 1), workers.submit(lambda: 1 // 0)

    assert good.result(LIMIT) == 1
    with pytest.raises(ZeroDivisionError):
        bad.result(LIMIT)


def test_work_that_hangs_does_not_hold_up_other_work(workers: Workers) -> None:
    may_end = threading.Event()
    hanging = [workers.submit(lambda: may_end.wait(LIMIT)) for _ in range(5)]

    assert workers.submit(lambda: "answered").result(LIMIT) == "answered"
    assert not any(each.done() for each in hanging)
    may_end.set()
    assert all(each.result(LIMIT) for each in hanging)


def test_idle_threads_are_used_again(workers: Workers) -> None:
    for _ in range(20):
        workers.submit(lambda: None).result(LIMIT)
        both = threading.Barrier(2)
        pair = [workers.submit(partial(both.wait, LIMIT)) for _ in range(2)]
        assert {each.result(LIMIT) for each in pair} == {0, 1}

    assert workers._threads <= 4


def test_no_more_threads_are_started_than_allowed(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MAX_THREADS", 2)
    may_end = threading.Event()
    jobs = [workers.submit(lambda: may_end.wait(LIMIT)) for _ in range(6)]

    assert workers._threads == 2
    may_end.set()
    assert all(each.result(LIMIT) for each in jobs)


def test_nothing_is_submitted_after_close(workers: Workers) -> None:
    workers.close()

    with pytest.raises(StoreError, match="closed"):
        workers.submit(lambda: 1)


def test_nothing_is_submitted_in_a_forked_child(workers: Workers) -> None:
    child = os.fork()
    if child == 0:
        try:
            workers.submit(lambda: 1)
        except StoreError:
            os._exit(0)
        os._exit(1)

    assert os.waitpid(child, 0)[1] == 0
