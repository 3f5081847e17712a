"""Words of the pages are in the dictionary or in our list."""

from __future__ import annotations

import pytest

from tools.site.spelling import main


def test_pages_are_spelled_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0, capsys.readouterr().out
