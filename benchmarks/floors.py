"""The floors: the least any store could do with the same engine, the same settings and the same durability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recollect.store.sqlite.floor import BareSqlite

__all__ = ["BareSqlite", "bare_nearest"]


def bare_nearest(matrix: NDArray[np.float32], vector: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
    """The best rows by a plain product with a matrix that is already in memory."""
    scores = matrix @ vector
    best = np.argpartition(scores, -limit)[-limit:]
    return best[np.argsort(-scores[best])]
