"""Number of malloc heaps that the threads of a process share."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module

HEAPS = 2
"""Heaps to share."""
M_ARENA_MAX = -8
"""Constant of that option in glibc's malloc.h."""


def share_heaps() -> None:
    """Limit glibc to a few malloc heaps, unless the user has set a number. Call it before threads start.

    By default glibc gives threads their own heaps, and memory freed in one is not reused by the others. Measured on two
    cores under load, the server peaked at 408 to 450 MB without this and at 271 MB with two heaps.
    """
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        # musl has no mallopt.
        with suppress(AttributeError):
            import_module("ctypes").CDLL(None).mallopt(M_ARENA_MAX, HEAPS)
