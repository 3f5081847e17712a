"""Why something was recalled, or was not: the same question, asked again by the same code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.services.conftest import Clock, Place, break_steps
from tests.services.test_recall_sources import know
from wellkept import Wellkept
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.model import Explanation, Outcome

QUESTION = "when is the office open?"


def why(ann: AgentMemory, id: str, query: str = QUESTION, **options: Any) -> Explanation:
    return ann.explain(query, id, **options)


@pytest.fixture
def wellkept(own_store: Wellkept) -> Wellkept:
    return own_store


def test_what_is_recalled_says_where_it_stands_and_why(ann: AgentMemory) -> None:
    ann.remember("The office opens at nine")
    ann.remember("The office is in Lisbon")

    hits = ann.recall(QUESTION)
    for place, hit in enumerate(hits, 1):
        said = why(ann, hit.id)
        assert said.hit is not None
        assert (said.outcome, said.rank) == (Outcome.RECALLED, place)
        assert said.hit == replace(hit, memory=said.hit.memory)  # but for when it was last recalled
        assert f"number {place} of 2" in said.sentence
        assert hit.explain in said.sentence
        assert "office" in said.words


def test_what_is_out_ranked_says_by_what_and_how_much(ann: AgentMemory) -> None:
    for number in range(60):
        ann.remember(f"The office is open in week {number}", kind="episode")
    ann.remember("Once somebody left an umbrella in the office", kind="episode", importance=0.0)

    last = ann.recall(QUESTION, limit=3)[-1]
    said = why(ann, "m-61", limit=3)
    assert said.outcome is Outcome.OUT_RANKED
    assert said.rank is not None
    assert said.rank > 3
    assert said.rival is not None
    assert said.rival.id == last.id
    assert said.hit is not None
    assert said.rival.score > said.hit.score
    assert f"{said.rival.score - said.hit.score:.3f} more" in said.sentence


def test_it_tells_what_became_of_it_in_the_latest_prompts(ann: AgentMemory, bob: AgentMemory, clock: Clock) -> None:
    for number in range(5):
        ann.remember(f"The office is open in week {number} of the {'very ' * 40}long year", kind="episode")
    bob.remember("The office is closed", kind="episode")
    bob.context(QUESTION, session="s-9")
    calls = [ann.context(QUESTION, session="s-1", budget=8000)]
    clock.forward(seconds=1)
    calls.append(ann.context(QUESTION, session="s-1", budget=300))
    (memories,) = [block for block in calls[1].blocks if block.name == "memories"]
    out = next(item.id for item in memories.items if item.left_out)

    said = why(ann, out)
    assert said.outcome is Outcome.RECALLED
    assert [(each.call_id, each.block, each.left_out) for each in said.prompts] == [
        (calls[1].id, "memories", "budget"),
        (calls[0].id, "memories", ""),
    ]
    assert {hit.id for hit in said.hits} == {hit.id for hit in ann.recall(QUESTION)}
    assert why(ann, "turn 1").prompts == ()
    assert [each.session_id for each in why(bob, "m-1").prompts] == ["s-9"]


def test_what_is_missing_and_what_is_somebody_elses_are_told_alike(
    ann: AgentMemory, bob: AgentMemory, wellkept: Wellkept, tenant: TenantMemory
) -> None:
    ann.remember("The office opens at nine")
    bob.remember_many(["The office opens at nine", "Bob has a key to the office"])
    tenant.workflows.record(workflow="run", step="x")
    stranger = wellkept.agent("ann", f"{tenant.id}-other")

    answers = [why(ann, "m-2"), why(ann, "m-77"), why(stranger, "m-1"), why(stranger, "a-1"), why(stranger, "run/1")]
    answers += [why(ann, id) for id in ("a-99", "run/9", "walk/1", "book#0", "nonsense", "")]
    assert {(each.outcome, each.sentence) for each in answers} == {
        (Outcome.MISSING, "There is nothing of this id, or it is not yours.")
    }


def test_what_is_out_of_use_says_so(ann: AgentMemory, tenant: TenantMemory, clock: Clock) -> None:
    ann.remember("The office opens at nine", kind="journal")
    ann.remember("The office opens at ten")
    ann.remember("The office opens at eleven", supersedes="m-2")
    ann.remember("The office opens at midnight", kind="core", origin="tool")
    ann.remember("The office opens at one", kind="episode")
    tenant._store.archive_memories(ann.owner, [5], now=clock())
    then = clock()
    clock.forward(days=8)
    ann.remember("The office opens at noon")

    outcomes = {id: why(ann, id).outcome.value for id in ("m-1", "m-2", "m-4", "m-5")}
    assert outcomes == {"m-1": "expired", "m-2": "superseded", "m-4": "held", "m-5": "archived"}
    assert why(ann, "m-6", as_of=then).outcome is Outcome.LATER
    assert why(ann, "m-6").outcome is Outcome.RECALLED


def test_what_was_filtered_says_by_what(ann: AgentMemory, tenant: TenantMemory) -> None:
    ann.remember("The office opens at nine")
    tenant.audit.record("office.open", "The office was opened", agent="kim")
    tenant.audit.record("office.open", "The office was opened again", agent="kim")
    know(tenant, "draft", "The office opens at eight.", is_published=False)

    assert "kind note; asked were core" in why(ann, "m-1", kinds=["core"]).sentence
    assert "memory, was not asked" in why(ann, "m-1", sources=["audit"]).sentence
    assert "does not help with decision_memo" in why(ann, "m-1", purpose="decision_memo").sentence
    assert "not published" in why(ann, "draft#0").sentence
    counted = {why(ann, id, purpose="delegation").outcome for id in ("a-2", "a-3")}
    assert counted == {Outcome.RECALLED, Outcome.FILTERED}


def test_a_double_says_of_what(ann: AgentMemory, tenant: TenantMemory) -> None:
    ann.remember("The office was opened")
    tenant.audit.record("office.open", "The office was opened")

    said = why(ann, "a-2")
    assert (said.outcome, said.rival and said.rival.id) == (Outcome.DOUBLE, "m-1")
    assert "says the same as m-1" in said.sentence


def test_what_has_nothing_in_common_says_so(place: Place, clock: Clock, tenant_id: str) -> None:
    with place.open(clock, embedder="off") as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        ann.remember("Likes green tea")
        event = wellkept.tenant(tenant_id).audit.record("kitchen.tea", "Tea was made")

        nearest = why(ann, "m-1")  # alone, it is recalled although it is weak
        assert (nearest.outcome, nearest.words) == (Outcome.RECALLED, ())
        assert nearest.hit is not None
        assert nearest.hit.weak
        assert why(ann, "m-1", min_relevance=0.1).outcome is Outcome.BELOW_THRESHOLD
        ann.remember("The office opens at nine")
        assert why(ann, "m-1").outcome is Outcome.NOT_EMBEDDED
        assert "shares no word" in why(ann, "m-1").sentence
        assert "no vector yet" in why(ann, "m-1").sentence
        assert why(ann, f"a-{event.id}").outcome is Outcome.NO_MATCH


def test_every_source_can_be_explained(ann: AgentMemory, tenant: TenantMemory) -> None:
    ann.remember("The office opens at nine")
    tenant.audit.record("office.open", "The office was opened early")
    tenant.workflows.record(workflow="Office run", step="open", output="Office open")
    know(tenant, "handbook", "The office is open from nine to five.")

    for hit in ann.recall(QUESTION, limit=20):
        assert why(ann, hit.id, limit=20).hit == hit


def test_explaining_is_not_a_retrieval(ann: AgentMemory, wellkept: Wellkept) -> None:
    ann.remember("The office opens at nine")
    why(ann, "m-1")
    wellkept._services.retrieval_marks.flush()

    assert ann.get("m-1").last_retrieved_at is None
    assert ann.remember("The office opens at nine, mostly", origin="agent").id == "m-2"


def test_a_source_that_did_not_answer_says_so(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock) as wellkept:
        wellkept.tenant().workflows.record(workflow="run", step="office")
        break_steps(fresh_place)

        said = why(wellkept.agent("ann"), "run/1")
        assert said.outcome is Outcome.UNANSWERED
        assert [each.source for each in said.unanswered] == ["workflow"]


def test_without_an_id_every_hit_and_what_came_near_are_explained(ann: AgentMemory, bob: AgentMemory) -> None:
    for number in range(4):
        ann.remember(f"The office is open in week {number}", kind="episode")
    ann.remember("The office is open in week 3", kind="journal")
    ann.remember("Penguins cannot fly", kind="episode")
    bob.remember("The office is open in week 9", kind="episode")

    said = ann.explain(QUESTION, limit=2)
    single = [ann.explain(QUESTION, each.id, limit=2) for each in said.items]

    assert (said.id, said.outcome) == ("", Outcome.RECALLED)
    assert [each.id for each in said.items[:2]] == [hit.id for hit in ann.recall(QUESTION, limit=2)]
    assert [each.id for each in said.hits] == [each.id for each in said.items[:2]]
    assert [each.outcome for each in said.items[:2]] == [Outcome.RECALLED] * 2
    assert {Outcome.OUT_RANKED, Outcome.DOUBLE} <= {each.outcome for each in said.items[2:]}
    assert [(each.id, each.outcome, each.sentence) for each in said.items] == [
        (each.id, each.outcome, each.sentence) for each in single
    ]
    assert all(each.text == ann.get(each.id).text for each in said.items)
    assert len(said.items) <= 2 + 5


def test_an_empty_answer_tells_what_was_below_the_threshold(ann: AgentMemory) -> None:
    ann.remember("The office opens at nine")

    said = ann.explain("which offices open?", min_relevance=1.0)

    assert said.outcome is Outcome.BELOW_THRESHOLD
    (item,) = said.items
    assert (item.id, item.outcome, item.text) == ("m-1", Outcome.BELOW_THRESHOLD, "The office opens at nine")
    assert ann.explain(QUESTION, sources=["workflow"]).items == ()
    assert ann.explain(QUESTION, sources=["workflow"]).outcome is Outcome.NO_MATCH


def test_an_empty_answer_says_that_nothing_is_there(ann: AgentMemory) -> None:
    assert ann.explain("Where is the key?").sentence.startswith("Nothing is recalled: no memory is kept here yet")
