"""How many threads NumPy's library for matrices uses: only the environment can tell it, and before it is loaded."""

from __future__ import annotations

import os

VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def use_one_thread_each() -> None:
    """Let each multiplication run on the thread that asked for it, unless the user has chosen otherwise.

    For programs that serve many at once: there the library's own threads wait for work by spinning, and take the
    processor from requests. Measured on two cores, a recall cost two and a half times as much with them.
    """
    for name in VARIABLES:
        os.environ.setdefault(name, "1")
