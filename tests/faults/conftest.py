"""Owners to write for."""

from __future__ import annotations

import pytest

from tests.conformance.examples import owner
from wellkept.model import Owner


@pytest.fixture
def ann() -> Owner:
    """An agent of a tenant of its own."""
    return owner("ann")
