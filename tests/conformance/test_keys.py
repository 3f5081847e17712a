"""Keys, logins and their limits in the store, on every engine."""

from __future__ import annotations

from tests.conformance.kit import KeyConformance


class TestKeys(KeyConformance):
    """On every engine."""
