"""Work that may take too long, done beside the caller, who does not have to wait for the end of it.

Unlike those of the standard library's pool, these threads do not hold up the end of the program: a source that never
answers must not keep a command from finishing.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from recollect.errors import StoreError

T = TypeVar("T")
Job = tuple[Callable[[], Any], Future[Any]]

AT_ONCE = max(1, (os.cpu_count() or 1) // 2)
"""How many turns are under way at a time where they compute: more threads would only get in each other's way."""

HOLD = 0.05
"""Seconds for which one turn may keep the next from beginning, or twice that."""

WAITING_AT_ONCE = 32
"""How many, where they wait for something across a network."""

MAX_THREADS = 128
"""Made as they are needed, and kept. So many may be slow at once before others have to wait for them."""


class Workers:
    """Threads that run one thing after the other."""

    def __init__(self, *, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads = 0
        self._free = 0  # threads that wait, less jobs that wait for them
        self._is_closed = False
        self._turns = 0  # under way
        self._queued: deque[Turn[Any]] = deque()  # until one of those ends or is given up

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Begin `work`; its result, or what it raises, is in the future.

        Raises: StoreError once closed, and in a child that was forked: threads stay behind.
        """
        self._check_not_forked()
        future: Future[T] = Future()
        with self._lock:
            self._check_open()
            if self._free <= 0 and self._threads < MAX_THREADS:
                self._threads += 1
                threading.Thread(target=self._serve, name="recollect-worker", daemon=True).start()
            else:
                self._free -= 1
            self._jobs.put((work, future))
        return future

    def begin(self, turn: Turn[Any]) -> None:
        """Have a turn worked through, now or as soon as fewer are under way.

        Raises: StoreError, as for `submit`.
        """
        self._check_not_forked()
        with self._lock:
            self._check_open()
            if self._turns >= self._at_once:
                self._queued.append(turn)
                return
            self._turns += 1
            turn.is_under_way = True
        self.submit(partial(self._work_through, turn))

    def pass_on(self, turn: Turn[Any]) -> None:
        """Let the next turn begin although this one is not done.

        Raises: StoreError, as for `submit`.
        """
        following = self._next_turn(turn)
        if following is not None:
            self.submit(partial(self._work_through, following))

    def give_up(self, turn: Turn[Any]) -> None:
        """Wait for a turn no longer: what has not begun gets threads of its own, and the next turn may begin.

        Raises: StoreError, as for `submit`.
        """
        with self._lock:
            if turn in self._queued:
                self._queued.remove(turn)
        self.pass_on(turn)
        for _ in range(turn.waiting):
            self.submit(turn.work_through)

    def close(self) -> None:
        """Let the threads end when they are done; nobody waits for them."""
        with self._lock:
            self._is_closed = True
            for _ in range(self._threads):
                self._jobs.put(None)

    def _check_not_forked(self) -> None:
        if os.getpid() != self._pid:  # asked without the lock, which a thread that is gone may have held
            raise StoreError("This store was opened before a fork; open a new one in the child process.")

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError("This store is closed; open a new one.")

    def _work_through(self, turn: Turn[Any]) -> None:
        following: Turn[Any] | None = turn
        while following is not None:
            following.work_through()
            following = self._next_turn(following)

    def _next_turn(self, turn: Turn[Any]) -> Turn[Any] | None:
        """The turn that takes the place of this one, unless that was given away already."""
        with self._lock:
            if not turn.is_under_way:
                return None
            turn.is_under_way = False
            if not self._queued:
                self._turns -= 1
                return None
            following = self._queued.popleft()
            following.is_under_way = True
            return following

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            do(*job)
            del job  # what was asked and answered is not kept until the next question
            with self._lock:
                self._free += 1


class Turn(Generic[T]):
    """Pieces of work that one thread does in order: handing each to a thread of its own costs more than most take."""

    def __init__(self, works: Sequence[Callable[[], T]]) -> None:
        self.futures: Sequence[Future[T]] = [Future() for _ in works]
        self.is_under_way = False
        self._ended = threading.Event()
        self._waiting: deque[Job] = deque(zip(works, self.futures, strict=True))

    @property
    def waiting(self) -> int:
        """How many pieces nobody has begun."""
        return len(self._waiting)

    def work_through(self) -> None:
        """Do what nobody has begun, until there is no more."""
        while self._waiting:
            try:
                job = self._waiting.popleft()
            except IndexError:  # another thread was faster
                return
            do(*job)
        if all(future.done() for future in self.futures):
            self._ended.set()

    def wait(self, seconds: float) -> bool:
        """Until all of it is done, or for so long; whether it is."""
        return self._ended.wait(seconds)


class Outcome(Protocol):
    """Where the end of some work is told."""

    def set_result(self, result: Any, /) -> None: ...

    def set_exception(self, error: BaseException, /) -> None: ...


def do(work: Callable[[], Any], outcome: Outcome) -> None:
    """Do it, and tell what it returned or raised."""
    try:
        outcome.set_result(work())
    except BaseException as error:  # noqa: BLE001  raised again where the result is asked for
        outcome.set_exception(error)
