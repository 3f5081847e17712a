"""Settings: name, default, meaning and aliases of each are a field of `Settings`.

Files, environment and flags are read as keys and values, matched against that one table and converted by the type of
the field. A new setting is one field, and every source understands it. An unknown key is an error that names the
nearest known one, so a typing mistake never becomes a silent default.
"""

from __future__ import annotations

from wellkept.settings.choices import Settings, default_url, table
from wellkept.settings.sources import FILES, foreign_folder
from wellkept.settings.values import (
    MASK,
    SettingRow,
    load_numpy_with_one_thread,
    load_onnxruntime,
    masked,
    setting,
    share_heaps,
    share_metrics,
    use_one_thread_each,
)

__all__ = [
    "FILES",
    "MASK",
    "SettingRow",
    "Settings",
    "default_url",
    "foreign_folder",
    "load_numpy_with_one_thread",
    "load_onnxruntime",
    "masked",
    "setting",
    "share_heaps",
    "share_metrics",
    "table",
    "use_one_thread_each",
]
