"""How many heaps the threads of a server's process allocate from."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, threading
from wellkept.settings import share_heaps

share_heaps()
barrier = threading.Barrier(16)

def allocate():
    kept = bytes(10_000)
    barrier.wait()

threads = [threading.Thread(target=allocate) for _ in range(16)]
for each in threads:
    each.start()
for each in threads:
    each.join()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, file)
libc.fflush(file)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc has a heap for each thread")
def test_threads_share_two_heaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)

    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout

    assert 1 <= told.count("<heap nr=") <= 2
