"""What was recalled is written down in batches."""

from __future__ import annotations

from datetime import timedelta

from recollect import Recollect
from recollect.api import AgentMemory
from tests.services.conftest import START


def test_what_was_recalled_within_a_second_is_marked_with_the_latest_of_its_times(
    recollect: Recollect, ann: AgentMemory
) -> None:
    ids = [ann.remember(f"Thing {number}", kind="episode").id for number in range(4)]
    begun, retrieved = START.replace(microsecond=0) + timedelta(days=1), recollect._services.retrieved
    for seq, after in ((1, 0.0), (2, 0.4), (3, 2.0)):
        retrieved.mark(ann.owner, [seq], begun + timedelta(seconds=after))

    retrieved.flush()

    marked = [ann.get(id).last_retrieved_at for id in ids]
    soon, later = begun + timedelta(seconds=0.4), begun + timedelta(seconds=2)
    assert marked == [soon, soon, later, None]
