"""What was recalled is written down in batches."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import START, Clock, Place
from wellkept import Wellkept
from wellkept.api.wellkept import AgentMemory
from wellkept.upkeep import background


def test_what_was_recalled_within_a_second_is_marked_with_the_latest_of_its_times(
    wellkept: Wellkept, ann: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "PAUSE", 1000.0)  # so that nothing is written in between
    ids = [ann.remember(f"Thing {number}", kind="episode").id for number in range(4)]
    begun, retrieved = START.replace(microsecond=0) + timedelta(days=1), wellkept._services.retrieval_marks
    for seq, after in ((1, 0.0), (2, 0.4), (3, 2.0)):
        retrieved.mark(ann.owner, [seq], begun + timedelta(seconds=after))

    retrieved.flush()

    marked = [ann.get(id).last_retrieved_at for id in ids]
    soon, last = begun + timedelta(seconds=0.4), begun + timedelta(seconds=2)
    assert marked == [soon, soon, last, None]


@pytest.mark.proves("E4")
def test_who_needs_the_marks_written_waits_for_those_another_thread_has_in_hand(
    wellkept: Wellkept, ann: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode, retrieved = ann.remember("Deploys on Fridays", kind="episode"), wellkept._services.retrieval_marks
    marking, may_mark, store = threading.Event(), threading.Event(), retrieved._store
    mark_retrieved = store.mark_retrieved

    def slowly(*arguments: Any, **options: Any) -> None:
        marking.set()
        assert may_mark.wait(100)
        mark_retrieved(*arguments, **options)

    monkeypatch.setattr(background, "PAUSE", 1000.0)
    monkeypatch.setattr(store, "mark_retrieved", slowly)
    retrieved.mark(ann.owner, [1], START)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(retrieved.flush)
        assert marking.wait(100)
        second = threads.submit(retrieved.flush)
        assert not wait([second], timeout=0.2).done
        assert ann.get(episode.id).last_retrieved_at == START
        may_mark.set()
        first.result(100)
        second.result(100)

    assert store.get_memory(ann.owner, episode.id).last_retrieved_at == START


@pytest.mark.proves("E4")
def test_who_reads_a_memory_is_told_of_its_mark_before_it_is_written(
    wellkept: Wellkept, ann: AgentMemory, clock: Clock
) -> None:
    kept = ann.remember("Deploys on Fridays", kind="episode")
    other = ann.remember("Nothing of the sort", kind="episode")
    clock.forward(hours=1)

    ann.recall("deploys", limit=1)

    assert ann.get(kept.id).last_retrieved_at == clock.moment
    listed = {each.id: each.last_retrieved_at for each in ann.list()}
    assert listed == {kept.id: clock.moment, other.id: None}
    wellkept._services.retrieval_marks.flush()
    assert ann.get(kept.id).last_retrieved_at == clock.moment


def test_a_note_in_a_file_which_has_no_place_for_a_mark_is_shown_without(
    fresh_place: Place, clock: Clock, tmp_path: Path
) -> None:
    with fresh_place.open(clock, workspace=tmp_path) as store:
        note = store.agent().remember("Deploys on Fridays")
        store.agent().recall("deploys")
        assert store.agent().get(note.id).last_retrieved_at is None
