"""The supervisor of the worker processes: it replaces those that die or hang, and all of them on SIGHUP.

It never waits for one worker: a signal is followed within a moment, whatever state the workers are in.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import FrameType

from wellkept.errors import StoreError

log = logging.getLogger("wellkept.server")

TICK_SECONDS = 0.1
BEAT_SECONDS = 1.0
HANG_SECONDS = 30.0
"""Seconds without a sign of life after which a worker is replaced. Long computations let the beating thread run."""

START_SECONDS = 120.0
"""Seconds a worker may take until it answers requests."""

STOP_SECONDS = 15.0
"""Seconds a worker may take to end, more than its requests get to finish; after that it is killed."""

STEADY_SECONDS = 60.0
"""A worker that dies within these seconds of its start is replaced later and later."""

MAX_DELAY = 30.0
FIRST_TRIES = 3
"""Workers that may die before any has ever answered; then the server gives up."""

Target = Callable[[Connection], None]
"""Function of a worker process, which calls `send_beats` with the connection."""


def send_beats(connection: Connection, is_ready: Callable[[], bool]) -> None:
    """Tell the supervisor from now on that this worker lives, and end it with SIGTERM when the supervisor is gone."""

    def beat() -> None:
        try:
            while True:
                connection.send(is_ready())
                time.sleep(TICK_SECONDS if not is_ready() else BEAT_SECONDS)
        except OSError:
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=beat, name="wellkept-supervisor", daemon=True).start()


class Worker:
    """One worker process."""

    def __init__(self, target: Target) -> None:
        # A fork would copy locks that other threads hold.
        context = get_context("spawn")
        self._beats, given = context.Pipe(duplex=False)
        self.process = context.Process(target=target, args=(given,))
        self.process.start()
        given.close()
        self.started = time.monotonic()
        self._heard = float("inf")
        self.is_ready = False
        self._kill_at = float("inf")

    def has_failed(self) -> bool:
        """Return True if it has died or hangs."""
        now = time.monotonic()
        try:
            while self._beats.poll():
                self.is_ready, self._heard = self._beats.recv(), now
        except (EOFError, OSError):
            # It is ending.
            pass
        is_late = now - self._heard > HANG_SECONDS or (not self.is_ready and now - self.started > START_SECONDS)
        return is_late or not self.process.is_alive()

    def stop(self) -> None:
        """Ask it to finish its requests and end."""
        if self.process.is_alive():
            self.process.terminate()
        self._kill_at = time.monotonic() + STOP_SECONDS

    def has_ended(self) -> bool:
        """Return True if it is gone; kill it when it was asked to stop and took too long."""
        if self.process.is_alive() and time.monotonic() < self._kill_at:
            return False
        self.kill()
        return True

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self._beats.close()


class Supervisor:
    """Keeps `count` workers running."""

    def __init__(self, target: Target, count: int) -> None:
        self._target, self._count = target, count
        self._workers: list[Worker] = []
        # Asked to end, and finishing their requests.
        self._leaving: list[Worker] = []
        # To be replaced after SIGHUP, and the worker that will replace the first of them.
        self._outdated: list[Worker] = []
        self._successor: Worker | None = None
        # Those that died soon after their start, one after the other.
        self._failures = 0
        self._start_at = 0.0
        self.was_ready = False
        """True since the first worker answered requests."""
        self.codes: set[int | None] = set()
        """Exit codes of the workers that were asked to end."""
        self._signals: list[int] = []

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM, then let the workers finish their requests.

        Raises: StoreError when no worker starts.
        """
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self.note_signal) for number in numbers}
        try:
            self.serve()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def serve(self) -> None:
        """Serve until `note_signal` gets SIGINT or SIGTERM. Raises: StoreError when no worker starts."""
        try:
            while signal.SIGINT not in self._signals and signal.SIGTERM not in self._signals:
                self._tend()
                time.sleep(TICK_SECONDS)
        finally:
            self._stop_all()

    def note_signal(self, number: int, frame: FrameType | None) -> None:
        """Follow a signal soon."""
        self._signals.append(number)

    def _tend(self) -> None:
        """Do what is due now, without waiting."""
        self._leaving = [each for each in self._leaving if not each.has_ended()]
        for worker in [each for each in self._workers if each.has_failed()]:
            self._bury(worker)
        self.was_ready = self.was_ready or any(each.is_ready for each in self._workers)
        if not self.was_ready and self._failures >= FIRST_TRIES:
            raise StoreError("The server's worker processes end when they start; the messages above say why.")
        while len(self._workers) < self._count and time.monotonic() >= self._start_at:
            self._workers.append(Worker(self._target))
        self._reload()

    def _bury(self, worker: Worker) -> None:
        """Remove a worker that died or hangs, and decide when the next one starts."""
        self._workers.remove(worker)
        lived = time.monotonic() - worker.started
        worker.kill()
        self._failures = 0 if lived > STEADY_SECONDS else self._failures + 1
        # 0, 1, 2, 4, 8, 16, 30 seconds.
        delay = min(2.0 ** (self._failures - 2), MAX_DELAY) if self._failures > 1 else 0.0
        self._start_at = time.monotonic() + delay
        log.warning("A worker process ended (%s); another starts in %.0f s.", worker.process.exitcode, delay)

    def _reload(self) -> None:
        """Replace the workers one after the other: each ends when its successor answers requests."""
        self._outdated = [each for each in self._outdated if each in self._workers]
        if len(self._workers) < self._count:
            # One that died is replaced first.
            return
        if self._successor is None:
            if signal.SIGHUP in self._signals:
                self._signals.remove(signal.SIGHUP)
                self._outdated = list(self._workers)
            if self._outdated:
                self._successor = Worker(self._target)
        elif self._successor.has_failed():
            log.error("A new worker process did not start; the others go on. The messages above say why.")
            self._successor.kill()
            self._successor, self._outdated = None, []
        elif self._successor.is_ready:
            # All outdated ones may have died and been replaced meanwhile.
            old = self._outdated.pop(0) if self._outdated else self._workers[0]
            self._workers.remove(old)
            old.stop()
            self._leaving.append(old)
            self._workers.append(self._successor)
            self._successor = None

    def _stop_all(self) -> None:
        asked = [*self._workers, *([] if self._successor is None else [self._successor]), *self._leaving]
        for each in asked:
            each.stop()
        alive = asked
        while alive:
            alive = [each for each in alive if not each.has_ended()]
            time.sleep(TICK_SECONDS / 10)
        self.codes |= {each.process.exitcode for each in asked}
        if -signal.SIGKILL in self.codes:
            log.error("A worker process did not end within %.0f s and was killed.", STOP_SECONDS)
