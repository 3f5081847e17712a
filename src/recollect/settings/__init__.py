"""Every setting, once: its name, default, meaning and aliases are the fields of `Settings`.

Files, environment and flags are read into the same shape (key and value), matched against that one table and
converted by the type of the field. So a new setting is one line below, and every source understands it.
A key nobody knows is an error that names the nearest known one: a typing mistake never becomes a silent default.
"""

from __future__ import annotations

from recollect.settings.choices import Settings, default_url, table
from recollect.settings.heaps import share_heaps
from recollect.settings.sources import FILES
from recollect.settings.values import MASK, SettingRow, markdown, masked, setting, use_one_thread_each

__all__ = [
    "FILES",
    "MASK",
    "SettingRow",
    "Settings",
    "default_url",
    "markdown",
    "masked",
    "setting",
    "share_heaps",
    "table",
    "use_one_thread_each",
]
