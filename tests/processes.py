"""Processes that tests start: forks of one that has imported wellkept and done nothing else."""

from __future__ import annotations

import multiprocessing

CLEAN = multiprocessing.get_context("forkserver")
CLEAN.set_forkserver_preload(["pytest", "wellkept.api.wellkept", "tests.conformance.conftest"])
