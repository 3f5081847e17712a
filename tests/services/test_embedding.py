"""Memories are stored whatever the embedder does, found by words meanwhile, and by meaning once it answers."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.providers.test_openai_embedder import DIMENSIONS, Endpoint, hangs, status, vector_of, vectors
from tests.waiting import eventually
from wellkept import ModelError, SchemaMismatch, Settings, StoreError, Wellkept
from wellkept.program import FORMER_NAME
from wellkept.providers.openai import OpenAIEmbedder
from wellkept.testing.fake_model import ModelHandler
from wellkept.upkeep import embedding, resting


class Moody:
    """A local embedder that works only while `is_well`."""

    name = "moody"
    dimensions = DIMENSIONS
    is_well = True

    def embed(self, texts: Sequence[str]) -> Any:
        if not self.is_well:
            raise RuntimeError("out of memory")
        return [vector_of(text) for text in texts]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/memories.db"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as running:
        yield running


def remote(endpoint: Endpoint, model: str = "small", *, query_timeout: float = 60.0) -> OpenAIEmbedder:
    """One that waits for an answer longer than a test may take."""
    return OpenAIEmbedder(model, "", endpoint.url, timeout=1000, query_timeout=query_timeout, retries=0)


def found(store: Wellkept, query: str) -> list[str]:
    return [hit.text for hit in store.agent("atlas").recall(query, min_relevance=0)]


def answers(store: Wellkept, query: str) -> list[str]:
    """What is found and is more than the nearest there is: by a word of the query, or by its meaning."""
    return [hit.text for hit in store.agent("atlas").recall(query) if not hit.weak]


def test_a_failing_embedder_costs_nothing_but_the_meaning(url: str) -> None:
    moody = Moody()
    with Wellkept(url, embedder=moody) as store:
        moody.is_well = False
        note = store.agent("atlas").remember("a puppy slept here")

        assert store.agent("atlas").get(note.id) == note
        assert answers(store, "who slept") == ["a puppy slept here"]
        assert answers(store, "dog") == []
        assert store.embedding.count_waiting() == 1

        moody.is_well = True
        eventually(lambda: store.embedding.count_waiting() == 0)  # by itself, after a pause
        assert answers(store, "dog") == ["a puppy slept here"]


def test_what_failed_can_be_made_up_for_at_any_time(url: str) -> None:
    moody = Moody()
    moody.is_well = False
    with Wellkept(url, embedder=moody) as store:
        store.agent("atlas").remember_many([f"{'puppy' if at % 2 else 'truck'} number {at}" for at in range(150)])
        store.agent("nina", tenant="acme").remember("a truck")
        with pytest.raises(ModelError, match="RuntimeError"):
            store.embedding.embed_waiting()

    moody.is_well = True
    with Wellkept(url, embedder=moody) as store:
        assert store.embedding.count_waiting() == 151
        assert store.embedding.embed_waiting() == 151
        assert (store.embedding.embed_waiting(), store.embedding.count_waiting()) == (0, 0)
        assert [text.split()[0] for text in found(store, "dog")] == ["puppy"] * 5
        (hit,) = store.agent("nina", tenant="acme").recall("car")
        assert (hit.text, hit.weak) == ("a truck", False)


def test_an_edit_while_it_fails_drops_the_old_meaning(url: str) -> None:
    moody = Moody()
    with Wellkept(url, embedder=moody) as store:
        note = store.agent("atlas").remember("a puppy")
        moody.is_well = False
        store.agent("atlas").update(note.id, text="a truck")
        moody.is_well = True

        store.embedding.embed_waiting()
        assert answers(store, "car") == ["a truck"]
        assert answers(store, "dog") == []


def test_a_hanging_endpoint_holds_up_neither_writes_nor_closing(url: str, endpoint: Endpoint) -> None:
    """Whatever waited for its answer would wait until the test has run out of time."""
    endpoint.usual = hangs
    store = Wellkept(url, embedder=remote(endpoint, query_timeout=0.5))
    agent = store.agent("atlas")

    agent.remember("a puppy slept here")
    eventually(lambda: len(endpoint.requests) == 1)  # the thread is waiting for its answer now
    for number in range(20):
        agent.remember(f"note {number}")
    assert found(store, "who slept")[0] == "a puppy slept here"
    store.close()

    with Wellkept(url, embedder=None, settings=Settings(embedder="off")) as reopened:
        assert len(reopened.agent("atlas").list()) == 21
        assert reopened.embedding.count_waiting() == 21


def test_searches_do_not_each_wait_for_an_endpoint_that_hangs(
    url: str, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> int:
        return endpoint.bodies.count({"model": "small", "input": ["who slept"]})

    monkeypatch.setattr(resting, "REST", timedelta(hours=1))
    endpoint.usual = hangs
    with Wellkept(url, embedder=remote(endpoint, query_timeout=2.0)) as store:
        store.agent("atlas").remember("a puppy slept here")
        assert found(store, "who slept") == ["a puppy slept here"]
        eventually(lambda: asked() == 1)
        for _ in range(20):
            assert found(store, "who slept") == ["a puppy slept here"]

    assert asked() == 1


def test_searches_use_the_endpoint_again_once_it_answers_the_queue(url: str, endpoint: Endpoint) -> None:
    endpoint.usual = status(500)
    with Wellkept(url, embedder=remote(endpoint)) as store:
        store.agent("atlas").remember("a puppy slept here")
        assert answers(store, "dog") == []

        endpoint.usual = vectors
        eventually(lambda: answers(store, "dog") == ["a puppy slept here"])


def test_a_remote_embedder_fills_vectors_in_behind_the_write(url: str, endpoint: Endpoint) -> None:
    with Wellkept(url, embedder=remote(endpoint)) as store:
        store.agent("atlas").remember("a puppy slept here")
        eventually(lambda: store.embedding.count_waiting() == 0)

        assert answers(store, "dog") == ["a puppy slept here"]
    assert [body["input"] for _, _, body in endpoint.requests] == [["a puppy slept here"], ["dog"]]


def test_a_store_opens_while_the_endpoint_is_down_and_catches_up(url: str) -> None:
    endpoint = Endpoint()  # nobody listens yet
    settings = Settings(url=url, embedder="openai:small", openai_base_url=endpoint.url, agent="atlas")
    with Wellkept(settings=settings) as store:
        store.agent().remember("a puppy slept here")
        assert answers(store, "who slept") == ["a puppy slept here"]
        with pytest.raises(ModelError, match="cannot be reached"):
            store.embedding.embed_waiting()

    with endpoint, Wellkept(settings=settings) as store:
        assert endpoint.requests == []  # opening asks nothing
        # But the first answer to a search shows it is there, and what waits is sent.
        eventually(lambda: answers(store, "dog") == ["a puppy slept here"])
        assert store.embedding.count_waiting() == 0


def test_another_model_is_noticed_at_its_first_vector_and_writes_go_on(url: str, endpoint: Endpoint) -> None:
    with Wellkept(url, embedder=remote(endpoint)) as store:
        store.agent("atlas").remember("a puppy slept here")
        store.embedding.embed_waiting()

    with Wellkept(url, embedder=remote(endpoint, "large")) as store:
        store.agent("atlas").remember("a truck")
        with pytest.raises(SchemaMismatch, match="wellkept admin reembed"):
            found(store, "dog")
        with pytest.raises(SchemaMismatch, match="openai:small@"):
            store.embedding.embed_waiting()
        assert len(store.agent("atlas").list()) == 2

    with Wellkept(url, embedder=remote(endpoint, "large"), replace_embedder=True) as store:
        assert store.embedding.embed_waiting() + store.embedding.count_waiting() <= 2
        eventually(lambda: store.embedding.count_waiting() == 0)
        assert found(store, "dog") == ["a puppy slept here", "a truck"]
        assert found(store, "car") == ["a truck", "a puppy slept here"]


class FormerTable:
    """Stands for the built-in embedder of version 0.2."""

    name = f"{FORMER_NAME}-static-256-v2"
    dimensions = 256

    def embed(self, texts: Sequence[str]) -> Any:
        return [[1.0] + [0.0] * 255 for text in texts]


def test_a_store_of_the_former_built_in_embedder_opens_and_comes_over_by_itself(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Wellkept(url, embedder=FormerTable()) as store:
        store.agent("atlas").remember("Prefers tabs over spaces")
        store.embedding.embed_waiting()

    with Wellkept(url) as store:
        assert "To make all of them now, run: wellkept admin reembed" in caplog.text
        assert store.embedding.count_waiting() == 1
        assert found(store, "tabs") == ["Prefers tabs over spaces"]
        store.agent("atlas").remember("Drives a red car")
        eventually(lambda: store.embedding.count_waiting() == 0)
        assert found(store, "which vehicle?")[:1] == ["Drives a red car"]

    caplog.clear()
    with Wellkept(url):
        assert caplog.messages == []
    with pytest.raises(SchemaMismatch, match="minilm"):
        Wellkept(url, embedder=FormerTable())


def test_vectors_are_not_given_up_for_an_embedder_that_is_out_of_reach(url: str, endpoint: Endpoint) -> None:
    with Wellkept(url, embedder=remote(endpoint)) as store:
        store.agent("atlas").remember("a puppy slept here")
        store.embedding.embed_waiting()
    endpoint.usual = status(500)

    with pytest.raises(ModelError, match="status 500"):
        Wellkept(url, embedder=remote(endpoint, "large"), replace_embedder=True)

    endpoint.usual = vectors
    with Wellkept(url, embedder=remote(endpoint)) as store:
        assert answers(store, "dog") == ["a puppy slept here"]


def test_closing_in_the_middle_of_an_answer_is_quiet(
    url: str, endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.usual = hangs
    store = Wellkept(url, embedder=remote(endpoint))
    store.agent("atlas").remember("a puppy slept here")
    eventually(lambda: len(endpoint.requests) == 1)
    thread = store.embedding._job._thread
    store.close()
    assert thread is not None
    assert thread.is_alive()

    with caplog.at_level(logging.WARNING):
        endpoint.released.set()
        thread.join(60)

    assert not thread.is_alive()
    assert caplog.messages == []


def test_without_an_embedder_words_are_enough(url: str) -> None:
    with Wellkept(settings=Settings(url=url, embedder="off")) as store:
        store.agent("atlas").remember("a puppy slept here")

        assert found(store, "who slept") == ["a puppy slept here"]
        assert store.embedding.embed_waiting() == 0


def refuses(cursed: str) -> Callable[[ModelHandler, Any], None]:
    """Answer as usual unless a text holds a word; then no text of the request gets a vector."""

    def answer(handler: ModelHandler, body: Any) -> None:
        if any(cursed in text for text in body["input"]):
            status(400)(handler, body)
        else:
            vectors(handler, body)

    return answer


def test_refused_text_is_skipped_named_and_tried_again(
    url: str, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Wellkept(settings=Settings(url=url, embedder="off")) as store:
        cursed = store.agent("eve", tenant="evil").remember("a cursed puppy")
        store.agent("eve", tenant="evil").remember("a truck")
        store.agent("ann", tenant="good").remember_many([f"puppy number {number}" for number in range(5)])
    monkeypatch.setattr(embedding, "FIRST_REST", 0.2)
    endpoint.usual = refuses("cursed")

    with Wellkept(url, embedder=remote(endpoint)) as store:
        store.embedding.wake()
        eventually(lambda: store.tenant("good").upkeep.count_waiting() == 0)
        eventually(lambda: store.embedding.count_waiting() == 1)
        eventually(lambda: [each.tries for each in store.embedding.refused()] > [2])
        (refused,) = store.embedding.refused("evil")
        assert (refused.tenant, refused.agent, refused.id) == ("evil", "eve", cursed.id)
        assert refused.problem.endswith("answered with status 400.")
        assert "puppy" not in refused.problem
        assert store.embedding.refused("good") == []
        assert store.embedding.problem == "", "it works, only not for this text"
        assert [each.set_aside for each in store.background() if each.name == "embedding"] == [1]

        endpoint.usual = vectors
        eventually(lambda: store.embedding.count_waiting() == 0)
        assert store.embedding.refused() == []


def test_embed_waiting_and_maintain_go_on_behind_a_refused_text(url: str, endpoint: Endpoint) -> None:
    with Wellkept(settings=Settings(url=url, embedder="off")) as store:
        store.agent("eve").remember_many(["a puppy", "a cursed puppy", *(f"note {number}" for number in range(70))])
    endpoint.usual = refuses("cursed")

    with Wellkept(url, embedder=remote(endpoint)) as store:
        assert [each.id for each in store.embedding.find_refused()] == ["m-2"]
        report = store.maintain()
        assert (report.embedded, report.embedding_problem) == (71, "")
        assert store.embedding.embed_waiting() == 0
        endpoint.usual = vectors
        assert store.embedding.embed_waiting() == 1, "although it rests"


def test_refused_text_that_is_deleted_is_forgotten(url: str, endpoint: Endpoint) -> None:
    endpoint.usual = refuses("cursed")
    with Wellkept(url, embedder=remote(endpoint)) as store:
        note = store.agent("eve").remember("a cursed puppy")
        eventually(lambda: len(store.embedding.refused()) == 1)
        store.agent("eve").forget(note.id)
        store.embedding.embed_waiting()
        assert store.embedding.refused() == []


def test_failing_embedder_is_not_taken_for_refused_texts(url: str, endpoint: Endpoint) -> None:
    endpoint.usual = status(500)
    with Wellkept(url, embedder=remote(endpoint)) as store:
        store.agent("eve").remember("a puppy")
        with pytest.raises(ModelError, match="status 500"):
            store.embedding.embed_waiting()
        assert store.embedding.refused() == []
        assert "status 500" in store.embedding.problem


def test_maintain_does_not_wait_for_a_hanging_embedder(
    url: str, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The endpoint hangs for longer than the test may take."""
    monkeypatch.setattr(embedding, "PATIENCE", 0.2)
    endpoint.usual = hangs
    with Wellkept(url, embedder=remote(endpoint)) as store:
        store.agent("eve").remember("a puppy")
        report = store.maintain()

    assert (report.embedded, report.embedding_problem) == (0, embedding.EMBEDDER_HANGS)


def test_failures_in_some_tenants_leave_the_others_their_vectors(
    url: str, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = {"a-failing": StoreError("no"), "b-failing": StoreError("no"), "c-broken": ZeroDivisionError()}
    with Wellkept(settings=Settings(url=url, embedder="off")) as store:
        for tenant in (*failures, "good"):
            store.agent("ann", tenant=tenant).remember("a puppy")
    with Wellkept(url, embedder=remote(endpoint)) as store:
        list_unembedded = store._store.list_unembedded

        def broken(tenant: str, **options: Any) -> Any:
            if tenant in failures:
                raise failures[tenant]
            return list_unembedded(tenant, **options)

        monkeypatch.setattr(store._store, "list_unembedded", broken)
        store.embedding.wake()
        eventually(lambda: store.tenant("good").upkeep.count_waiting() == 0)
        eventually(lambda: store.background()[-1].failures > 1)
        monkeypatch.undo()
        eventually(lambda: store.embedding.count_waiting() == 0)


class Counting:
    """An embedder that counts the texts it is given; a remote one hangs until it is released."""

    name = "counting"
    dimensions = DIMENSIONS

    def __init__(self, *, is_remote: bool) -> None:
        self.is_remote = is_remote
        self.may_answer = threading.Event()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        if self.is_remote:
            self.may_answer.wait(60)
        return [vector_of(text) for text in texts]


def test_neither_a_write_nor_its_hint_embeds_and_each_text_is_embedded_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "GATHER", 60.0)
    counting = Counting(is_remote=False)
    with Wellkept(url, embedder=counting) as store:
        atlas = store.agent("atlas")
        atlas.call_tool("memory_store", {"text": "Prefers tabs over spaces"})
        answer = atlas.call_tool("memory_store", {"text": "The user prefers tabs over spaces"})

        assert [each["id"] for each in answer["similar"]] == ["m-1"]
        assert counting.texts == []
        assert store.embedding.count_waiting() == 2

        found(store, "which indentation?")
        found(store, "which indentation?")
        assert counting.texts == ["The user prefers tabs over spaces", "Prefers tabs over spaces", "which indentation?"]
        assert store.embedding.count_waiting() == 0
        assert store._store.list_waiting_tenants(embedding.EVER) == []


@pytest.mark.proves("M5")
def test_what_one_program_stores_another_finds_by_its_meaning_at_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "GATHER", 60.0)
    with Wellkept(url, embedder=Moody()) as store:
        store.agent("atlas").remember("a puppy slept here")
        store.agent("atlas").remember("a truck")
        assert store.embedding.count_waiting() == 2

    with Wellkept(url, embedder=Moody()) as store:
        assert found(store, "dog")[:1] == ["a puppy slept here"]
        assert store.embedding.count_waiting() == 0


def test_a_write_gets_its_vector_in_the_background(url: str) -> None:
    with Wellkept(url, embedder=Moody()) as store:
        store.agent("atlas").remember("a puppy slept here")
        store.tenant().knowledge.ingest_text("About trucks.", title="Trucks")

        eventually(lambda: store.embedding.count_waiting() == 0)


def test_a_recall_embeds_the_newest_texts_and_leaves_the_rest(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "GATHER", 60.0)
    counting = Counting(is_remote=False)
    with Wellkept(url, embedder=counting) as store:
        atlas = store.agent("atlas")
        atlas.remember_many([f"fact number {number}" for number in range(100)])

        found(store, "which fact?")

        assert counting.texts[:-1] == [f"fact number {number}" for number in range(99, 35, -1)]
        assert store.embedding.count_waiting() == 36


def test_a_recall_does_not_wait_long_for_the_vectors_of_others(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "GATHER", 60.0)
    settings = Settings(url=url, recall_deadline=4.0)
    with Wellkept(settings=settings, embedder=Moody()) as store:
        store.agent("atlas").remember("a puppy slept here")
        with store.embedding._batch_lock:
            assert found(store, "who slept") == ["a puppy slept here"]
            assert store.embedding.count_waiting() == 1


def test_programs_that_store_and_recall_together_embed_every_text(url: str) -> None:
    stores = [Wellkept(url, embedder=Moody()) for _ in range(4)]

    def work(number: int) -> None:
        for each in range(10):
            stores[number].agent("atlas").remember(f"truck {number} {each}")
            found(stores[number], "car")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    eventually(lambda: stores[0].embedding.count_waiting() == 0)
    eventually(lambda: stores[0]._store.list_waiting_tenants(embedding.EVER) == [])
    for store in stores:
        assert len(store.agent("atlas").recall("car", limit=50)) == 40
        store.close()


def test_neither_a_write_nor_its_hint_waits_for_a_remote_embedder(url: str) -> None:
    counting = Counting(is_remote=True)
    with Wellkept(url, embedder=counting) as store:
        atlas = store.agent("atlas")
        atlas.call_tool("memory_store", {"text": "Prefers tabs over spaces"})
        answer = atlas.call_tool("memory_store", {"text": "The user prefers tabs over spaces"})

        # The words are enough to find it. The embedder still hangs in the background thread, with the first text.
        assert [each["id"] for each in answer["similar"]] == ["m-1"]
        assert [each.id for each in atlas.review.similar("m-2")] == ["m-1"]
        counting.may_answer.set()
        eventually(lambda: store.embedding.count_waiting() == 0)
        assert sorted(text for text in counting.texts if text != embedding.PROBE) == [
            "Prefers tabs over spaces",
            "The user prefers tabs over spaces",
        ]
