"""Zstandard compression, which the standard library has from Python 3.14 on."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["zstd", "zstd_options"]


def zstd_options() -> dict[Any, int]:
    """Return the options of a compressor whose frames have a checksum."""
    return {zstd.CompressionParameter.checksum_flag: 1}
