"""Recall asks four sources, ranks what they find together, and names the one that did not answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.hanging import Hanging
from tests.services.conftest import START, Clock, Place, break_steps, hanging_steps
from tests.waiting import LIMIT, eventually
from wellkept import Invalid, Settings, StoreError, Wellkept
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.model import WEAK, Document, Hit, Source, SourceName
from wellkept.recall import recall
from wellkept.recall.rules_ranking import SOURCE_PRIORITY

pytestmark = pytest.mark.proves("E3")


def know(tenant: TenantMemory, id: str, *passages: str, is_published: bool = True) -> None:
    """Put a document on the tenant's shelf, as ingesting one does."""
    document = Document(
        id=id,
        tenant=tenant.id,
        title=id,
        content_hash=id,
        is_published=is_published,
        created_at=START,
        updated_at=START,
    )
    tenant._store.prepare_document(document, passages)()


@pytest.fixture
def refunds(tenant: TenantMemory, ann: AgentMemory) -> AgentMemory:
    """Something about refunds in every source."""
    ann.remember("Kim wants every refund above 50 euro explained")
    tenant.audit.record("order.refund", "A refund of 30 euro was paid to order 7", agent="billing")
    tenant.workflows.record(workflow="Refund run", step="check", output="Refund for order 7 is due", agent="billing")
    know(tenant, "handbook", "Our refund policy: within 30 days, with a receipt.", "Parking is behind the house.")
    return ann


def sources(hits: Sequence[Hit]) -> set[str]:
    return {hit.source.value for hit in hits}


def test_every_source_has_its_say(refunds: AgentMemory) -> None:
    note = refunds.get("m-1")
    hits = refunds.recall("refund", limit=20)

    assert sources(hits) == {"memory", "audit", "workflow", "knowledge"}
    assert hits.unanswered == ()
    by_source = {hit.source: hit for hit in reversed(hits)}
    assert by_source[Source.MEMORY].id == "m-1"
    assert by_source[Source.MEMORY].memory == note
    assert by_source[Source.AUDIT].id == "a-2"
    assert (by_source[Source.WORKFLOW].id, by_source[Source.WORKFLOW].agent_id) == ("refund-run/1", "billing")
    assert by_source[Source.WORKFLOW].text == "Refund run, check (completed): Refund for order 7 is due"
    assert by_source[Source.KNOWLEDGE].id == "handbook#0"
    assert len(refunds.recall("refund", limit=3)) == 3


def test_the_score_is_the_weighted_sum_and_says_so(refunds: AgentMemory) -> None:
    hits = refunds.recall("refund", limit=20)

    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert hit.weights == {"similarity": 0.5, "recency": 0.2, "importance": 0.2, "source": 0.1}
        assert all(0 <= part <= 1 for part in hit.parts.values())
        assert hit.score == pytest.approx(sum(hit.weights[name] * part for name, part in hit.parts.items()))
        assert hit.parts["source"] == pytest.approx(hit.parts["similarity"] * SOURCE_PRIORITY[hit.source])
        assert hit.explain.startswith(f"{hit.score:.3f} = 0.5×{hit.parts['similarity']:.3f} similarity + 0.2×")
    assert SOURCE_PRIORITY == {"memory": 1.0, "audit": 0.8, "workflow": 0.6, "knowledge": 0.5}
    assert max(hit.parts["similarity"] for hit in hits) < 1


def test_weights_are_settings(place: Place, clock: Clock, tenant_id: str) -> None:
    weights = {"weight_similarity": 0.0, "weight_recency": 0.0, "weight_importance": 0.0, "weight_source": 1.0}
    with place.open(clock, **weights) as wellkept:
        ann, tenant = wellkept.agent("ann", tenant_id), wellkept.tenant(tenant_id)
        tenant.audit.record("order.refund", "Refund paid")
        ann.remember("A refund, by the way, is due")

        hits = ann.recall("refund")
        assert [hit.id for hit in hits] == ["m-1", "a-1"]
        assert [hit.score for hit in hits] == [hit.parts["source"] for hit in hits]


def test_only_the_sources_that_are_named_are_asked(refunds: AgentMemory) -> None:
    for source in ("memory", "audit", "workflow", "knowledge"):
        assert sources(refunds.recall("refund", sources=[source])) == {source}
    assert sources(refunds.recall("refund", sources=["audit", "workflow"], limit=20)) == {"audit", "workflow"}
    assert sources(refunds.recall("refund", kinds=["note"], limit=20)) == {"memory"}  # kinds are of memories


@pytest.mark.parametrize(
    ("names", "says"), [(["mind"], "choose among memory, audit"), ([], "at least one"), ("audit", "list")]
)
def test_a_source_that_is_none_is_refused(ann: AgentMemory, names: Any, says: str) -> None:
    with pytest.raises(Invalid, match=says):
        ann.recall("refund", sources=names)


def test_what_says_the_same_is_shown_once_and_the_best_is_kept(tenant: TenantMemory, ann: AgentMemory) -> None:
    ann.remember("The refund was paid")
    tenant.audit.record("order.refund", "the REFUND  was paid")
    tenant.workflows.record(workflow="run", step="pay", output="The refund was paid")
    know(tenant, "notes", "The refund was paid")

    hits = ann.recall("refund paid", limit=20)
    assert [hit.id for hit in hits if "paid" in hit.text.lower()] == ["m-1"]


@pytest.mark.parametrize(
    "query", ["%", "_", "' OR true --", '"', "refund' OR '1'='1", "refund:*", "refund & !x", "(refund"]
)
def test_a_question_is_only_words(refunds: AgentMemory, query: str) -> None:
    found = sources(refunds.recall(query, sources=["audit", "workflow"], limit=20))

    assert found == ({"audit", "workflow"} if "refund" in query else set())


def test_a_strong_answer_elsewhere_comes_before_a_weak_memory(tenant: TenantMemory, ann: AgentMemory) -> None:
    ann.remember("Likes green tea in the morning")
    tenant.audit.record("order.refund", "Invoice 4711 was refunded to Globex")

    assert ann.recall("was invoice 4711 refunded to Globex?")[0].id == "a-2"


def test_bookkeeping_does_not_push_memories_aside(ann: AgentMemory) -> None:
    """Every memory leaves an event that says a note was stored; who asks for a note means the note."""
    for number in range(30):
        ann.remember(f"Guest {number} likes tea", kind="episode")
    ann.remember("A note on the guests: number 17 stored a suitcase here")

    best = ann.recall("which note says who stored a suitcase in 17?")
    assert best[0].id == "m-31"
    assert not any(hit.source is Source.AUDIT for hit in best)


def test_bookkeeping_is_found_when_it_is_asked_for(ann: AgentMemory) -> None:
    ann.remember("The guest likes tea")

    # On PostgreSQL the event is part of the log soon after.
    eventually(lambda: sources(ann.recall("note stored", sources=["audit"])) == {"audit"})
    assert "audit" in sources(ann.recall("show the history of the note that was stored"))


def test_the_past_is_asked_of_every_source(refunds: AgentMemory, tenant: TenantMemory, clock: Clock) -> None:
    then = clock()
    clock.forward(days=2)
    for number in range(30):
        tenant.audit.record("order.refund", f"refund number {number}")
        tenant.workflows.record(workflow="Later run", step="refund", output=f"refund {number}")

    hits = refunds.recall("refund", as_of=then, limit=20)
    assert sources(hits) == {"memory", "audit", "workflow", "knowledge"}
    assert all(hit.created_at <= then for hit in hits)


@pytest.mark.proves("E12")
def test_an_agent_sees_others_only_through_what_the_tenant_shares(
    wellkept: Wellkept, tenant: TenantMemory, refunds: AgentMemory, bob: AgentMemory
) -> None:
    bob.remember("The refund password hint is a secret of bob's own heart")
    stranger = wellkept.agent("ann", f"{tenant.id}-other")

    everything = refunds.recall("refund secret heart", limit=100)
    assert "bob's own heart" not in str(everything)
    assert sources(bob.recall("refund", limit=100)) == {"memory", "audit", "workflow", "knowledge"}
    assert stranger.recall("refund", limit=100) == []


def test_only_memories_are_marked_as_retrieved(refunds: AgentMemory, wellkept: Wellkept, clock: Clock) -> None:
    refunds.recall("refund", limit=20)
    wellkept._services.retrieval_marks.flush()

    assert refunds.get("m-1").last_retrieved_at == clock()


def test_what_was_recalled_from_anywhere_is_recognised_when_it_comes_back(refunds: AgentMemory) -> None:
    refunds.recall("refund", limit=20)

    with pytest.raises(Invalid, match="came out of memory"):
        refunds.remember("Our refund policy: within 30 days, with a receipt.", origin="agent")


# --- slow and broken sources


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    with Hanging.released() as embedder:
        yield embedder


def test_an_embedder_that_hangs_costs_the_meaning_and_is_named(
    tmp_path: Any, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "EMBEDDER_SHARE", 0.3 / LIMIT)
    settings = Settings(url=f"sqlite:///{tmp_path}/m.db", recall_deadline=LIMIT)
    with Wellkept(settings=settings, embedder=hanging) as wellkept:
        wellkept.agent("ann").remember("The refund was paid")
        wellkept.tenant().audit.record("order.refund", "Refund of 30 euro")
        wellkept.embedding.embed_waiting()
        hanging.may_answer.clear()

        hits = wellkept.agent("ann").recall("refund")

        assert {hit.id for hit in hits} == {"m-1", "a-2"}
        (missing,) = hits.unanswered
        assert missing.source == "embedder"
        assert "by words alone" in missing.reason
        hanging.may_answer.set()


def test_the_built_in_embedder_runs_on_the_callers_thread(tmp_path: Any) -> None:
    before = set(threading.enumerate())
    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path}/m.db")) as wellkept:
        wellkept.agent("ann").remember("The refund was paid")
        wellkept.embedding.embed_waiting()
        assert wellkept.agent("ann").recall("refund")

        assert "wellkept-worker" not in {thread.name for thread in set(threading.enumerate()) - before}


@pytest.mark.parametrize("order", [("workflow", "memory"), ("memory", "workflow")])
def test_a_source_that_hangs_is_named_and_leaves_the_others_their_time(
    fresh_place: Place, clock: Clock, monkeypatch: pytest.MonkeyPatch, order: Sequence[SourceName]
) -> None:
    """PostgreSQL waits for a lock, SQLite computes without end; the driver stops either."""
    # However slow the machine, the first source has 2 seconds, and the second many.
    monkeypatch.setattr(recall, "RESERVED_SHARE", 0.95 if order[0] == "workflow" else 0.0)
    deadline = 40.0 if order[0] == "workflow" else 6.0
    with fresh_place.open(clock, recall_deadline=deadline, embedder="off") as wellkept:
        ann = wellkept.agent("ann")
        ann.remember("The refund was paid")
        wellkept.tenant().workflows.record(workflow="run", step="refund")
        with hanging_steps(fresh_place):
            hits = ann.recall("refund", sources=order)

        assert [hit.id for hit in hits] == ["m-1"]
        assert [(each.source, each.reason) for each in hits.unanswered] == [
            ("workflow", f"It did not answer within {deadline:g} s.")
        ]
        # Once nothing hangs any more, it answers again.
        assert [hit.id for hit in ann.recall("refund", sources=["workflow"])] == ["run/1"]


def test_a_recall_that_nobody_answers_in_time_names_every_source(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, recall_deadline=0.5, embedder="off") as wellkept:
        wellkept.tenant().workflows.record(workflow="run", step="refund")
        with hanging_steps(fresh_place):
            hits = wellkept.agent("ann").recall("refund", sources=["workflow"])

    assert (list(hits), [each.source for each in hits.unanswered]) == ([], ["workflow"])


@pytest.mark.parametrize("place", ["postgres-18"], indirect=True)
def test_a_pool_without_a_free_connection_is_not_waited_for_past_the_deadline(
    place: Place, clock: Clock, tenant_id: str
) -> None:
    with place.open(clock, recall_deadline=0.5, embedder="off", pool_size=1) as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        ann.remember("The refund was paid")
        taken, may_end = threading.Event(), threading.Event()

        def hold(_: Any) -> None:
            taken.set()
            assert may_end.wait(LIMIT)

        with ThreadPoolExecutor(1) as pool:
            holding = pool.submit(wellkept._store._engine.read, tenant_id, hold)
            assert taken.wait(LIMIT)
            hits = ann.recall("refund")
            may_end.set()
            holding.result(LIMIT)

    assert {each.source for each in hits.unanswered} == {"memory", "audit", "workflow", "knowledge"}


def test_a_source_that_fails_is_named_and_the_others_stand(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock) as wellkept:
        ann = wellkept.agent("ann")
        ann.remember("The refund was paid")
        wellkept.tenant().workflows.record(workflow="run", step="refund")
        break_steps(fresh_place)

        hits = ann.recall("refund", limit=1)
        assert [hit.id for hit in hits] == ["m-1"]
        assert [each.source for each in hits.unanswered] == ["workflow"]
        with pytest.raises(StoreError):  # nobody is left to answer
            ann.recall("refund", sources=["workflow"])


def test_a_source_with_a_defect_is_named_logged_and_leaves_the_others(
    fresh_place: Place, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Words that no version has written: decoding them raises what nobody expects."""
    with fresh_place.open(clock) as wellkept:
        ann = wellkept.agent("ann")
        ann.remember("The refund was paid")
        wellkept.tenant().workflows.record(workflow="run", step="refund")
        broken = "x'0102030405'" if fresh_place.engine == "sqlite" else "'\\x0102030405'"
        fresh_place.sql(f"UPDATE step_index SET terms = {broken}")

        hits = ann.recall("refund", limit=1)
        assert [hit.id for hit in hits] == ["m-1"]
        assert [(each.source, "failed unexpectedly" in each.reason) for each in hits.unanswered] == [("workflow", True)]
        assert "The recall source workflow failed unexpectedly" in caplog.text
        assert "The refund was paid" in str(ann.context("refund", session="s").messages)
        assert ann.explain("refund", "run/1").outcome == "unanswered"
        with pytest.raises(Exception, match=r"buffer|bytes|size|index"):  # nobody is left to answer
            ann.recall("refund", sources=["workflow"])


WORDLESS = ["👍", "...", "the", "!", "x", "é", "茶", "7"]


@pytest.mark.parametrize(("text", "user"), [*((text, "") for text in WORDLESS), ("👍", "u-1")])
def test_memories_without_words_are_left_after_a_deletion_or_an_edit(ann: AgentMemory, text: str, user: str) -> None:
    memory = ann.for_user(user) if user else ann
    memory.items.put(("n",), "k", {"a": text}, index=["a"])
    kept, gone = memory.remember(text), memory.remember("Prefers tabs")
    edited = memory.remember("Prefers spaces")

    def ask_all() -> None:
        assert not memory.recall("tabs, or spaces?").unanswered
        assert memory.recall(f"tabs {text}")
        assert memory.context("tabs, or spaces?", session="s").messages
        assert memory.explain("tabs, or spaces?", kept.id).outcome
        assert memory.items.search(("n",), query="tabs")

    # More than once, because an owner that is asked often gets an index of its own on PostgreSQL.
    for _ in range(6):
        ask_all()
    memory.forget(gone.id)
    ask_all()
    memory.update(edited.id, text=f"{text} {text}")
    ask_all()
    memory.remember("Prefers tabs again")
    assert [hit.text for hit in memory.recall("tabs", limit=1)] == ["Prefers tabs again"]


def test_many_recalls_at_once_all_get_their_answers(refunds: AgentMemory) -> None:
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(refunds.recall("refund", limit=20))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(answers) == 12
    assert all(sources(hits) == {"memory", "audit", "workflow", "knowledge"} for hits in answers)


def test_a_closed_store_recalls_nothing(place: Place, clock: Clock, tenant_id: str) -> None:
    with place.open(clock) as wellkept:
        ann = wellkept.agent("ann", tenant_id)
    with pytest.raises(StoreError, match="closed"):
        ann.recall("refund")


@pytest.mark.proves("M3")
def test_what_fits_poorly_is_recalled_and_marked_as_weak(refunds: AgentMemory) -> None:
    hits = refunds.recall("quantum chromodynamics")

    assert hits
    assert all(hit.weak and hit.relevance == hit.parts["similarity"] < WEAK for hit in hits)
    assert not refunds.recall("refund")[0].weak
    for limit in (1, 5):
        assert refunds.recall("thanks, that's all", limit=limit, min_relevance=0) == []


def test_min_relevance_is_the_least_relevance_of_each_hit(refunds: AgentMemory) -> None:
    similarities = [hit.parts["similarity"] for hit in refunds.recall("refund", min_relevance=0, limit=20)]
    least = sorted(similarities)[len(similarities) // 2]

    kept = [hit.parts["similarity"] for hit in refunds.recall("refund", min_relevance=least, limit=20)]
    assert sorted(kept) == sorted(each for each in similarities if each >= least)
    for refused in (-0.1, 1.1, True, "0.5"):
        with pytest.raises(
            Invalid, match=r"from 0 \(everything\) to 1|`min_relevance` must be a number, not (bool|str)"
        ):
            refunds.recall("refund", min_relevance=refused)  # type: ignore[arg-type]


def test_what_min_relevance_leaves_out_is_explained(ann: AgentMemory) -> None:
    ann.remember("Kim wants every refund explained")

    assert ann.recall("refund", min_relevance=1) == []
    explained = ann.explain("refund", "m-1", min_relevance=1)
    assert explained.outcome == "below_threshold"
    assert "`min_relevance` is 1" in explained.sentence
    assert ann.explain("refund", "m-1").outcome == "recalled"
    assert "small talk" in ann.explain("thanks!", "m-1").sentence


def test_a_stored_question_lends_its_words_to_its_answer_only(ann: AgentMemory) -> None:
    for text in ("My sister lives in Oslo", "When does the train leave?", "It leaves at 9:40 from platform 3"):
        ann.remember(text, kind="episode", session_id="s-1")

    hits = ann.recall("When does the train leave?")

    assert hits[0].text == "It leaves at 9:40 from platform 3"
    assert {hit.text: hit.parts["similarity"] for hit in hits}["My sister lives in Oslo"] < 0.2


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("How should I indent code?", "Indent code with tabs"),
        ("Who should I ask about invoices?", "Maria pays the invoices"),
        ("when is tea?", "Tea is at four"),
        ("茶", "四点喝茶"),
    ],
)
@pytest.mark.parametrize("others", [(), ("The car is blue", "Ann lives in Oslo", "Lunch costs nine euros")])
def test_short_questions_find_their_note_in_a_tiny_store(
    ann: AgentMemory, question: str, note: str, others: Sequence[str]
) -> None:
    ann.remember_many([*others, note])

    assert [hit.text for hit in ann.recall(question)][:1] == [note]


def test_a_passage_and_a_memory_that_say_the_same_are_about_as_relevant(tenant: TenantMemory, ann: AgentMemory) -> None:
    ann.remember_many(["Parcels to Norway take nine days", "The car is blue", "Ann lives in Oslo"])
    know(tenant, "shipping", "Shipping\n\nParcels to Norway take nine days.", "Returns\n\nReturns are free.")

    hits = ann.recall("How long do parcels to Norway take?")

    similarity = {hit.source: hit.parts["similarity"] for hit in hits[:2]}
    assert similarity[Source.MEMORY] == pytest.approx(similarity[Source.KNOWLEDGE], abs=0.2)
