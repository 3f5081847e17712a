"""The clock may step back or be years ahead: what has ended stays ended, and what expired can be restored."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal

import pytest

from tests.services.conftest import START, Clock, Place
from tests.waiting import eventually
from wellkept import Conflict, Wellkept
from wellkept.api.wellkept import AgentMemory
from wellkept.model import Item, Kind, State

HOUR, DAY, DECADE = timedelta(hours=1), timedelta(days=1), timedelta(days=3652)
USER = ("users", "7")


def put(ann: AgentMemory, key: str, value: Any, ttl: float | None = None) -> Item:
    item = ann.items.put(USER, key, value, ttl=ttl)
    assert item is not None
    return item


def get(ann: AgentMemory, key: str) -> Item:
    item = ann.items.get(USER, key)
    assert item is not None
    return item


def said(found: Sequence[Any]) -> list[str]:
    return [each.text for each in found]


def test_a_corrected_memory_does_not_speak_again(ann: AgentMemory, clock: Clock) -> None:
    kinds = (Kind.EPISODE, Kind.CORE, Kind.NOTE)
    old = {kind: ann.remember(f"The {kind.value} says that the office is in Lund", kind=kind) for kind in kinds}
    clock.forward(hours=2)
    for kind, each in old.items():
        ann.remember(f"The {kind.value} says that the office is in Oslo", kind=kind, supersedes=each.id)

    clock.moment -= HOUR

    asked = "Where is the office, says the episode, the core and the note?"
    assert "Lund" not in repr(
        [said(ann.list()), said(ann.list(query="office")), said(ann.recall(asked, min_relevance=0))]
    )
    assert "Lund" not in repr([said(ann.search("office")), ann.private_memory(), ann.prompts.inject(asked)])
    assert {each.id for each in ann.list(state="expired")} == {each.id for each in old.values()}
    assert [said(ann.list(kind=kind)) for kind in kinds] == [
        [f"The {kind.value} says that the office is in Oslo"] for kind in kinds
    ]
    with pytest.raises(Conflict, match="was corrected"):
        ann.restore(old[Kind.EPISODE].id)
    # The past is read as it was.
    for moment, city in ((START + HOUR, "Lund"), (START + 3 * HOUR, "Oslo")):
        assert {text.split()[-1] for text in said(ann.list(as_of=moment))} == {city}
        assert {text.split()[-1] for text in said(ann.recall(asked, as_of=moment, min_relevance=0))} == {city}
    # The text may be stored again: it is no copy of what has ended.
    assert ann.remember("The note says that the office is in Lund").id != old[Kind.NOTE].id


def test_a_correction_of_the_future_ends_nothing_yet(ann: AgentMemory, clock: Clock) -> None:
    old = ann.remember("The office is in Lund", kind="episode")
    ann.remember("The office is in Oslo", kind="episode", supersedes=old.id, valid_from=clock() + DAY)
    clock.moment -= HOUR

    assert "The office is in Lund" in said(ann.list())
    assert ann.get(old.id).state(clock()) is State.LIVE
    clock.forward(days=2)
    assert said(ann.list()) == ["The office is in Oslo"]


def test_what_was_archived_stays_so(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, maintenance_interval=0) as wellkept:
        ann = wellkept.agent("ann")
        chat = ann.remember("Thanks, that sounds great!", kind="episode")
        clock.moment = START + 400 * DAY
        assert wellkept.maintain().archived == 1

        clock.moment -= HOUR

        assert ann.list() == []
        assert said(ann.list(state="archived")) == [chat.text]
        assert ann.get(chat.id).state(clock()) is State.ARCHIVED
        assert ann.recall(chat.text, min_relevance=0) == []
        # A year ago it was live.
        assert said(ann.list(as_of=START + DAY)) == [chat.text]


def test_a_run_that_is_ten_years_ahead_ends_nothing_for_good(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, maintenance_interval=0) as wellkept:
        ann = wellkept.agent("ann")
        kept = put(ann, "kept", {"text": "pancakes"}, ttl=30 * DAY.total_seconds())
        ann.items.put(USER, "gone", {"text": "waffles"}, ttl=60)
        fact = ann.remember("Anna lives in Porto", kind="episode", expires_at=START + 30 * DAY)
        clock.forward(minutes=5)
        assert wellkept.maintain().items == 1
        clock.moment += DECADE
        assert wellkept.maintain().items == 1

        clock.moment -= DECADE
        wellkept.maintain()

        assert ann.items.get(USER, "kept") is None
        assert ann.items.search() == []
        assert ann.items.search(query="pancakes") == []
        assert {each.item_key for each in ann.list(kind="item", state="archived")} == {"kept", "gone"}
        assert [each.id for each in ann.restore(state="archived")] == [fact.id]
        assert {each.item_key for each in ann.restore(state="archived", kind="item")} == {"kept", "gone"}
        item = get(ann, "kept")
        assert (item.id, item.value, item.expires_at) == (kept.id, {"text": "pancakes"}, kept.expires_at)
        assert next(each.key for each in ann.items.search(query="pancakes")) == "kept"
        # What had expired gets its lifetime again.
        assert get(ann, "gone").expires_at == clock() + timedelta(seconds=60)
        assert said(ann.list(kind="episode")) == [fact.text]


def test_an_expired_item_is_kept_for_a_week(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, maintenance_interval=0) as wellkept:
        ann = wellkept.agent("ann")
        old = put(ann, "a", "pancakes", ttl=60)
        clock.forward(minutes=2)
        wellkept.maintain()
        new = put(ann, "a", "waffles")
        assert new.id != old.id
        with pytest.raises(Conflict, match=f"Item {new.id} has the key of {old.id} now"):
            ann.restore(old.id)
        assert ann.restore(state="archived", kind="item") == []
        ann.items.delete(USER, "a")
        assert [each.id for each in ann.restore(old.id)] == [old.id]
        clock.forward(minutes=2)
        assert wellkept.maintain().items == 1

        clock.forward(days=8)
        assert wellkept.maintain().deleted == 0, "the run before this one has not seen the week pass"
        assert wellkept.maintain().deleted == 1
        assert ann.list(kind="item", state="all") == []
        (event,) = wellkept.tenant().audit.list(limit=1)
        assert event.message == "Maintenance archived 0 episodes, deleted 1 item archived before."


def test_maintenance_goes_on_when_the_clock_is_right_again(fresh_place: Place, clock: Clock) -> None:
    clock.moment = START + DECADE
    with fresh_place.open(clock, embedder="off") as wellkept:
        wellkept.agent("ann").remember("Likes tea", kind="episode")
        wellkept.maintain()
        wellkept._store.take_lease("maintain", "a process that died", now=clock(), until=clock() + timedelta(minutes=2))
    clock.moment = START
    with fresh_place.open(clock, embedder="off") as wellkept:
        wellkept.agent("bob").remember("Thanks, great!", kind="episode", category="routine")
        wellkept.maintenance.start()
        eventually(lambda: wellkept.maintenance._job._ended > 0)
        clock.forward(days=8)

        assert wellkept.maintenance.run_if_due() is True

        last = wellkept.maintenance.refresh().last
        assert last is not None
        assert (last.at, last.counts["agents"], last.counts["archived"]) == (clock(), 2, 1)


class Model:
    """What must be true of an agent's memories, whatever the clock said meanwhile."""

    def __init__(self, wellkept: Wellkept, clock: Clock, chosen: random.Random) -> None:
        self.wellkept, self.clock, self.chosen = wellkept, clock, chosen
        self.ann = wellkept.agent("ann")
        self.ann.remember("About thing0x", kind="episode")
        self.ended: set[str] = set()
        self.forgotten: set[str] = set()
        self.number = 0

    def name(self) -> str:
        self.number += 1
        return f"thing{self.number}x"

    def list(self, state: Literal["live", "archived", "all"] = "live") -> Sequence[Any]:
        return [*self.ann.list(limit=500, state=state), *self.ann.list(limit=500, state=state, kind="item")]

    def act(self) -> None:
        memories = self.ann.list(limit=500)
        match self.chosen.choice(
            ("add", "add", "correct", "correct", "forget", "put", "jump", "jump", "maintain", "restore")
        ):
            case "add":
                end = self.clock() + DAY * self.chosen.randint(1, 40) if self.chosen.random() < 0.5 else None
                kind = self.chosen.choice((Kind.EPISODE, Kind.NOTE, Kind.CORE))
                self.ann.remember(f"About {self.name()}", kind=kind, expires_at=end)
            case "correct" if memories:
                old = self.chosen.choice(memories)
                self.ann.remember(f"About {self.name()}", kind=old.kind, supersedes=old.id)
                self.ended.add(old.id)
            case "forget" if memories:
                old = self.chosen.choice(memories)
                self.ann.forget(old.id)
                self.forgotten.add(old.id)
            case "put":
                self.ann.items.put(USER, self.name(), {"is": "something"}, ttl=self.chosen.choice((None, 60, 10**6)))
            case "jump":
                steps = (HOUR, DAY, 50 * DAY, DECADE)
                self.clock.moment += self.chosen.choice(steps) * self.chosen.choice((-1, 1))
                self.clock.moment = max(self.clock.moment, START)
            case "maintain":
                self.wellkept.maintain()
            case "restore":
                for kind in (Kind.ITEM, Kind.EPISODE, Kind.CORE):
                    self.ended -= {each.id for each in self.ann.restore(state="archived", kind=kind)}

    def check(self) -> None:
        # Otherwise the marks of a recall could move an end between two of these lists.
        self.wellkept._services.retrieval_marks.flush("default")
        every = {each.id: each for each in self.list("all")}
        archived = {each.id for each in every.values() if each.archived_at is not None}
        self.ended |= archived
        live = {each.id for each in self.list()}
        assert not live & (self.ended | self.forgotten)
        assert not self.forgotten & {*every}
        now = self.clock()
        expired = {each.id for each in every.values() if each.expires_at is not None and each.expires_at <= now}
        assert live == {*every} - self.ended - expired
        assert {each.id for each in self.list("archived")} == archived
        recalled = {
            hit.id for hit in self.ann.recall("About which thing?", limit=100, min_relevance=0, sources=["memory"])
        }
        assert recalled <= live
        assert {each.key for each in self.ann.items.search(limit=500)} == {every[id].item_key for id in live} - {None}


@pytest.mark.parametrize("seed", range(3))
def test_no_jump_of_the_clock_revives_anything(fresh_place: Place, clock: Clock, seed: int) -> None:
    with fresh_place.open(clock, maintenance_interval=0, embedder="off") as wellkept:
        model = Model(wellkept, clock, random.Random(seed))
        for _ in range(60):
            model.act()
            model.check()
        # Otherwise nothing was put to the test.
        assert len(model.ended) > 3
