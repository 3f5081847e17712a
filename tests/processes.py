"""Processes that tests start: forks of one that has imported recollect and done nothing else."""

from __future__ import annotations

import multiprocessing

CLEAN = multiprocessing.get_context("forkserver")
CLEAN.set_forkserver_preload(["pytest", "recollect.api.recollect", "tests.conformance.conftest"])
