"""Settings in force, without secrets, and the origin of each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wellkept.settings.choices import Settings, table
from wellkept.settings.values import MASK, SettingRow, masked


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """A setting's current value, without secrets, and its origin."""

    name: str
    value: str | float | list[str]
    source: str
    default: str
    environment: str
    meaning: str


def describe_settings(current: Settings, flags: Mapping[str, object] | None = None) -> Sequence[SettingValue]:
    """Return every setting with its origin: default, file, environment or flag.

    Raises: Invalid when a settings file can no longer be read.
    """
    in_files = Settings.load(environment={})
    return [_read_setting(row, current, in_files, flags or {}) for row in table()]


def _read_setting(row: SettingRow, current: Settings, in_files: Settings, flags: Mapping[str, object]) -> SettingValue:
    value = getattr(current, row.name)
    if flags.get(row.name) is not None:
        source = "flag"
    elif value != getattr(in_files, row.name):
        source = "environment"
    else:
        source = "default" if value == getattr(Settings(), row.name) else "file"
    return SettingValue(
        name=row.name,
        # An empty URL says little; the store has a default place.
        value=_mask_secrets(current.store_url if row.name == "url" else value, row),
        source=source,
        default=row.default,
        environment=row.environment[0],
        meaning=row.meaning,
    )


def _mask_secrets(value: str | float | tuple[str, ...], row: SettingRow) -> str | float | list[str]:
    if row.is_secret and value:
        return MASK
    if isinstance(value, str):
        return masked(value)
    return list(value) if isinstance(value, tuple) else value
