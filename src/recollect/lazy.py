"""Modules that are imported on first use.

For modules with tables that take long to build: importing recollect does not wait for them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


class LazyModule:
    """Proxy for a module, imported on first use. Unlike the standard library's, it is safe for concurrent threads."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(import_module(self._name), attribute)
        # Cached, so that each attribute takes this path only once.
        setattr(self, attribute, found)
        return found


zstd = LazyModule("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
"""Zstandard compression, which the standard library has from Python 3.14 on."""


def zstd_options() -> dict[Any, int]:
    """Return the options of a compressor whose frames have a checksum."""
    return {zstd.CompressionParameter.checksum_flag: 1}
