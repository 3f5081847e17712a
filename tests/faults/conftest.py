"""Owners to write for."""

from __future__ import annotations

import pytest

from recollect.model import Owner
from tests.conformance.examples import owner


@pytest.fixture
def ann() -> Owner:
    """An agent of a tenant of its own."""
    return owner("ann")
