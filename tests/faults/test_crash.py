"""What was acknowledged survives kill -9, and nothing is there by half."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.crash_loop import check, crash_loop


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(tmp_path: Path) -> None:
    ((_, ledger),) = crash_loop(tmp_path, cycles=8, seed=11)

    assert len(ledger.texts) >= 100
    assert ledger.gone


def test_the_check_notices_what_is_wrong(tmp_path: Path) -> None:
    """Otherwise the test above would prove nothing."""
    ((path, ledger),) = crash_loop(tmp_path, cycles=1, seed=1)
    stays = next(id for id in ledger.texts if id not in ledger.leaving | set(ledger.announced))

    text = ledger.texts[stays]
    ledger.texts[stays] = "something else"
    with pytest.raises(AssertionError, match="lost an acknowledged edit"):
        check(path, ledger)

    ledger.texts[stays] = text
    ledger.gone.add(stays)
    with pytest.raises(AssertionError, match="is back"):
        check(path, ledger)

    ledger.gone.remove(stays)
    ledger.note("added m-99999999 never")
    with pytest.raises(AssertionError, match="acknowledged and is lost"):
        check(path, ledger)
