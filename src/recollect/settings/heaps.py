"""How many heaps the threads of a process allocate from."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module

HEAPS = 2
M_ARENA_MAX = -8
"""The name of that setting in glibc's malloc.h."""


def share_heaps() -> None:
    """Let all threads allocate from a few heaps, unless the user has chosen otherwise. Call it before they start.

    By default glibc gives threads heaps of their own, and what a request has freed in one is of no use to the others.
    Measured on two cores under attack, the server took 408 to 450 MB at its peak, and 271 MB with two heaps.
    """
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(AttributeError):  # musl has one heap, and no such function
            import_module("ctypes").CDLL(None).mallopt(M_ARENA_MAX, HEAPS)
