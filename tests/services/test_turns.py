"""Recalls of an embedded store compute one after the other, and none waits for long."""

from __future__ import annotations

import threading

import pytest

from wellkept.upkeep import background
from wellkept.upkeep.background import Turns


def test_threads_take_turns() -> None:
    took, inside, most = Turns(), 0, 0

    def compute() -> None:
        nonlocal inside, most
        for _ in range(200):
            with took.take():
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=compute) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == 1


def test_a_thread_that_waited_long_enough_goes_on_and_leaves_the_turn_to_its_holder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "TURN_SECONDS", 0.01)
    took = Turns()
    with took.take():
        with took.take():
            pass
        assert took._lock.locked()
    assert not took._lock.locked()


def test_the_turn_is_given_back_after_an_error() -> None:
    took = Turns()
    with pytest.raises(LookupError), took.take():
        raise LookupError
    assert not took._lock.locked()
