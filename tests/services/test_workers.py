"""Work beside the caller: in turn as long as all goes well, side by side as soon as something hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from recollect import StoreError
from recollect.services.background.workers import AT_ONCE, Turn, Workers

PATIENCE = 100.0  # only to end what hangs


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    workers.close()


def test_the_pieces_of_a_turn_are_done_in_order_on_one_thread(workers: Workers) -> None:
    done: list[tuple[int, int]] = []

    def note(each: int) -> None:
        done.append((each, threading.get_ident()))

    turn = Turn([partial(note, each) for each in range(5)])

    workers.begin(turn)
    for future in turn.futures:
        future.result(PATIENCE)

    assert [each for each, _ in done] == [0, 1, 2, 3, 4]
    assert len({thread for _, thread in done}) == 1


def test_a_piece_that_fails_takes_nothing_else_with_it(workers: Workers) -> None:
    turn = Turn([lambda: 1, lambda: 1 // 0, lambda: 3])

    workers.begin(turn)

    assert (turn.futures[0].result(PATIENCE), turn.futures[2].result(PATIENCE)) == (1, 3)
    with pytest.raises(ZeroDivisionError):
        turn.futures[1].result(PATIENCE)


def test_what_stands_behind_something_that_hangs_gets_threads_of_its_own(workers: Workers) -> None:
    may_end, both = threading.Event(), threading.Barrier(2)
    turn = Turn([lambda: may_end.wait(PATIENCE), lambda: both.wait(PATIENCE) >= 0, lambda: both.wait(PATIENCE) >= 0])
    workers.begin(turn)

    workers.give_up(turn)

    assert all(future.result(PATIENCE) for future in turn.futures[1:])  # each waited for the other
    assert not turn.futures[0].done()
    may_end.set()
    assert turn.futures[0].result(PATIENCE)


def test_turns_that_hang_and_were_given_up_hold_nobody_up(workers: Workers) -> None:
    may_end = threading.Event()
    hanging = [Turn([lambda: may_end.wait(PATIENCE)]) for _ in range(AT_ONCE)]
    for turn in hanging:
        workers.begin(turn)
    first, second = Turn([lambda: "first"]), Turn([lambda: "second"])
    workers.begin(first)
    workers.begin(second)

    workers.give_up(hanging[0])
    assert first.futures[0].result(PATIENCE) == "first"
    assert second.futures[0].result(PATIENCE) == "second"

    may_end.set()
    assert all(turn.futures[0].result(PATIENCE) for turn in hanging)
    last = [Turn([partial(int, each)]) for each in range(3 * AT_ONCE)]
    for each in last:
        workers.begin(each)
    assert [each.futures[0].result(PATIENCE) for each in last] == list(range(3 * AT_ONCE))


def test_a_turn_that_takes_long_lets_the_next_begin_and_goes_on_itself(workers: Workers) -> None:
    may_end = threading.Event()
    slow = [Turn([lambda: may_end.wait(PATIENCE), lambda: "and on"]) for _ in range(AT_ONCE)]
    following = Turn([lambda: "next"])
    for turn in slow:
        workers.begin(turn)
    workers.begin(following)

    workers.pass_on(following)  # has not begun, so it has nothing to pass on
    assert not following.futures[0].done()
    workers.pass_on(slow[0])
    workers.pass_on(slow[0])

    assert following.futures[0].result(PATIENCE) == "next"
    may_end.set()
    assert [turn.futures[1].result(PATIENCE) for turn in slow] == ["and on"] * AT_ONCE


def test_a_turn_that_never_began_can_be_given_up(workers: Workers) -> None:
    may_end = threading.Event()
    for _ in range(AT_ONCE):
        workers.begin(Turn([lambda: may_end.wait(PATIENCE)]))
    turn = Turn([lambda: 1, lambda: 2])
    workers.begin(turn)

    workers.give_up(turn)

    assert [future.result(PATIENCE) for future in turn.futures] == [1, 2]
    may_end.set()


def test_nothing_begins_once_they_are_closed(workers: Workers) -> None:
    workers.close()

    with pytest.raises(StoreError, match="closed"):
        workers.begin(Turn([lambda: 1]))
