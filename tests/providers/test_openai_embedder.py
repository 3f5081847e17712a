"""The embedder over the network, against a real HTTP server that behaves well, badly, or not at all."""

import json
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tests.waiting import eventually
from wellkept.errors import Invalid, ModelError
from wellkept.providers.endpoint import MAX_ANSWER_BYTES
from wellkept.providers.openai import MAX_CHARS, OpenAIEmbedder
from wellkept.testing.fake_model import Answer, ModelHandler, ModelServer, content, drips, hangs, status

KEY = "sk-do-not-show-me"
TEXT = "the user's private text"
DIMENSIONS = 16
MEANINGS = {"dog": 0, "puppy": 0, "car": 1, "truck": 1, "dinner": 2, "meal": 2}


def vector_of(text: str) -> list[float]:
    """Texts with a word of the same meaning lie close together; any other word has an axis of its own kind."""
    vector = [0.0] * DIMENSIONS
    for word in text.lower().split():
        vector[MEANINGS.get(word, 3 + sum(map(ord, word)) % (DIMENSIONS - 3))] += 3.0
    return vector


def vectors(handler: ModelHandler, body: Any) -> None:
    entries = [{"index": place, "embedding": vector_of(text)} for place, text in enumerate(body["input"])]
    handler.reply(200, json.dumps({"object": "list", "data": entries[::-1]}).encode())  # order is told by the index


class Endpoint(ModelServer):
    """An OpenAI-compatible server that knows vectors."""

    def __init__(self) -> None:
        super().__init__(vectors)

    @property
    def sizes(self) -> list[int]:
        return [len(body["input"]) for body in self.bodies]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as running:
        yield running


def embedder(endpoint: Endpoint, **options: Any) -> OpenAIEmbedder:
    chosen = {"timeout": 60.0, "query_timeout": 60.0, "first_pause": 0.01} | options
    return OpenAIEmbedder("small", KEY, endpoint.url, **chosen)


def failure(ask: Callable[[], object]) -> str:
    """What a caller is told. Neither the key nor the text is in it, nor in the traceback behind it."""
    with pytest.raises(ModelError) as caught:
        ask()
    whole = "".join(traceback.format_exception(caught.value))
    assert KEY not in whole
    assert TEXT not in whole
    return str(caught.value)


def expected(texts: Sequence[str]) -> Any:
    matrix = np.array([vector_of(text) for text in texts])
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def test_answers_with_unit_rows_in_the_order_of_the_texts(endpoint: Endpoint) -> None:
    texts = ["a dog", "a car", "dinner"]

    matrix = embedder(endpoint).embed(texts)

    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix, expected(texts), atol=1e-6)
    ((path, headers, body),) = endpoint.requests
    assert path == "/v1/embeddings"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {"model": "small", "input": texts}


def test_without_a_key_none_is_sent(endpoint: Endpoint) -> None:
    OpenAIEmbedder("small", "", endpoint.url).embed(["a dog"])

    assert "Authorization" not in endpoint.requests[0][1]


def test_many_texts_go_in_batches_over_one_connection(endpoint: Endpoint) -> None:
    texts = [f"text number {number}" for number in range(150)]

    matrix = embedder(endpoint).embed(texts)

    assert endpoint.sizes == [64, 64, 22]
    assert len(endpoint.connections) == 1
    np.testing.assert_allclose(matrix, expected(texts), atol=1e-6)


def test_nothing_is_asked_before_it_is_needed_and_dimensions_only_once(endpoint: Endpoint) -> None:
    asked = embedder(endpoint)
    assert endpoint.requests == []

    assert (asked.dimensions, asked.dimensions) == (DIMENSIONS, DIMENSIONS)
    assert endpoint.sizes == [1]


def test_dimensions_are_learned_from_any_answer(endpoint: Endpoint) -> None:
    asked = embedder(endpoint)
    asked.embed_query("a dog")

    assert asked.dimensions == DIMENSIONS
    assert len(endpoint.requests) == 1
    assert asked.embed([]).shape == (0, DIMENSIONS)


def test_the_name_tells_models_and_hosts_apart_and_holds_no_key() -> None:
    names = {
        OpenAIEmbedder(model, KEY, url).name
        for model, url in [
            ("small", "https://api.example.org/v1"),
            ("large", "https://api.example.org/v1"),
            ("small", "http://localhost:11434/v1"),
        ]
    }

    assert names == {"openai:small@api.example.org", "openai:large@api.example.org", "openai:small@localhost:11434"}


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_a_busy_endpoint_is_asked_again(endpoint: Endpoint, code: int) -> None:
    endpoint.script.extend([status(code), status(code)])

    assert embedder(endpoint).embed(["a dog"]).shape == (1, DIMENSIONS)
    assert len(endpoint.requests) == 3


def test_retries_end(endpoint: Endpoint) -> None:
    endpoint.usual = status(503)

    assert "status 503" in failure(lambda: embedder(endpoint, retries=2).embed([TEXT]))
    assert len(endpoint.requests) == 3


def test_waits_as_long_as_the_endpoint_asks(endpoint: Endpoint) -> None:
    endpoint.script.append(status(429, Retry_After="1"))
    started = time.monotonic()

    embedder(endpoint).embed(["a dog"])

    assert time.monotonic() - started >= 1.0


def test_does_not_wait_for_minutes(endpoint: Endpoint) -> None:
    """It would take longer than a test may."""
    endpoint.script.append(status(429, Retry_After="600"))

    assert "status 429" in failure(lambda: embedder(endpoint).embed([TEXT]))
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("value", ["soon", "nan", "-5", "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 99 Foo"])
def test_a_strange_wish_to_wait_is_no_problem(endpoint: Endpoint, value: str) -> None:
    endpoint.script.append(status(429, Retry_After=value))

    assert len(embedder(endpoint).embed(["a dog"])) == 1


@pytest.mark.parametrize("silence", [hangs, drips])
def test_gives_up_on_an_endpoint_that_does_not_finish(endpoint: Endpoint, silence: Answer) -> None:
    endpoint.usual = silence

    told = failure(lambda: embedder(endpoint, timeout=0.3, retries=1).embed([TEXT]))

    assert "did not answer in time" in told
    eventually(lambda: len(endpoint.requests) == 2)  # it may read them later than they were given up


def test_a_query_is_tried_once_and_briefly(endpoint: Endpoint) -> None:
    endpoint.usual = hangs

    assert "did not answer in time" in failure(
        lambda: embedder(endpoint, query_timeout=0.2, timeout=1000).embed_query(TEXT)
    )
    eventually(lambda: len(endpoint.requests) == 1)


def test_a_refused_query_says_so(endpoint: Endpoint) -> None:
    endpoint.usual = status(400)

    assert "status 400" in failure(lambda: embedder(endpoint).embed_query(TEXT))


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"

        told = failure(lambda: OpenAIEmbedder("small", KEY, url, retries=1, first_pause=0.01).embed([TEXT]))

    assert "cannot be reached" in told


def test_a_redirect_is_not_followed(endpoint: Endpoint) -> None:
    with Endpoint() as elsewhere:
        endpoint.usual = status(307, Location=f"{elsewhere.url}/embeddings")

        assert "is not followed" in failure(lambda: embedder(endpoint).embed([TEXT]))
        assert elsewhere.requests == []


@pytest.mark.parametrize(("code", "advice"), [(401, "openai_api_key"), (403, "openai_api_key"), (404, "model")])
def test_a_refusal_says_what_to_check_and_is_not_repeated(endpoint: Endpoint, code: int, advice: str) -> None:
    endpoint.usual = status(code)

    assert advice in failure(lambda: embedder(endpoint).embed([TEXT]))
    assert len(endpoint.requests) == 1


def test_a_batch_that_is_too_large_is_split(endpoint: Endpoint) -> None:
    def at_most_ten(handler: ModelHandler, body: Any) -> None:
        (vectors if len(body["input"]) <= 10 else status(413))(handler, body)

    endpoint.usual = at_most_ten
    texts = [f"text number {number}" for number in range(40)]

    np.testing.assert_allclose(embedder(endpoint).embed(texts), expected(texts), atol=1e-6)


def test_a_text_that_is_too_long_is_cut_and_spoils_no_others(endpoint: Endpoint) -> None:
    def short_ones(handler: ModelHandler, body: Any) -> None:
        (vectors if max(map(len, body["input"])) <= 1000 else status(400))(handler, body)

    endpoint.usual = short_ones
    texts = ["a dog", "car " * 900, "dinner"]

    np.testing.assert_allclose(embedder(endpoint).embed(texts), expected(texts), atol=1e-6)


def test_an_endpoint_that_refuses_everything_is_not_asked_for_ever(endpoint: Endpoint) -> None:
    endpoint.usual = status(400)

    assert "status 400" in failure(lambda: embedder(endpoint).embed([TEXT * 1000] * 64))
    assert len(endpoint.requests) < 20


def test_only_so_much_of_a_text_is_sent_and_never_an_empty_one(endpoint: Endpoint) -> None:
    embedder(endpoint).embed(["x" * (2 * MAX_CHARS), "  ", "half a pair: \ud83d"])

    long, blank, half = endpoint.requests[0][2]["input"]
    assert len(long) == MAX_CHARS
    assert blank.strip()
    assert half == "half a pair: ?"


def entry(place: int, *numbers: object) -> dict[str, object]:
    return {"index": place, "embedding": list(numbers)}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>welcome</html>",
        b"[" * 100_000,
        b"\xff\xfe",
        [],
        {},
        {"data": None},
        {"data": "vectors"},
        {"data": ["vector", "vector"]},
        {"data": [entry(0, 1, 2)]},
        {"data": [entry(0, 1, 2), entry(0, 1, 2)]},
        {"data": [entry(1, 1, 2), entry(2, 1, 2)]},
        {"data": [entry(0, 1, 2), entry(1, 1, 2), entry(2, 1, 2)]},
        {"data": [entry(0, 1, 2), entry(1, 1)]},
        {"data": [entry(0), entry(1)]},
        {"data": [entry(0, 0, 0), entry(1, 1, 0)]},
        {"data": [entry(0, 1, None), entry(1, 1, 0)]},
        {"data": [entry(0, 1, "word"), entry(1, 1, 0)]},
        {"data": [entry(0, 1, [2]), entry(1, 1, 0)]},
        {"data": [entry(0, float("nan"), 1), entry(1, 1, 0)]},
        {"data": [entry(0, float("inf"), 1), entry(1, 1, 0)]},
        {"data": [{"index": 0}, {"index": 1}]},
    ],
    ids=str,
)
def test_nonsense_is_not_taken_for_vectors(endpoint: Endpoint, answer: object) -> None:
    endpoint.usual = content(answer)

    assert "should have answered with 2 vectors" in failure(lambda: embedder(endpoint).embed([TEXT, TEXT]))


def test_vectors_of_another_length_than_before_are_refused(endpoint: Endpoint) -> None:
    asked = embedder(endpoint)
    asked.embed(["a dog"])
    endpoint.usual = content({"data": [entry(0, 1, 2)]})

    assert f"2 numbers instead of {DIMENSIONS}" in failure(lambda: asked.embed([TEXT]))


def test_huge_numbers_do_not_overflow(endpoint: Endpoint) -> None:
    endpoint.usual = content({"data": [entry(0, 3e300, 4e300)]})

    np.testing.assert_allclose(embedder(endpoint).embed(["a dog"]), [[0.6, 0.8]], atol=1e-6)


def test_an_endless_answer_is_cut_off(endpoint: Endpoint) -> None:
    endpoint.usual = content(b" " * (MAX_ANSWER_BYTES + 1))

    assert "too long" in failure(lambda: embedder(endpoint).embed([TEXT]))


def test_many_threads_share_it(endpoint: Endpoint) -> None:
    asked = embedder(endpoint)
    texts = [f"text number {number}" for number in range(40)]

    with ThreadPoolExecutor(8) as threads:
        rows = list(threads.map(lambda text: asked.embed([text])[0], texts))

    np.testing.assert_allclose(np.array(rows), expected(texts), atol=1e-6)


@pytest.mark.parametrize(
    "url", ["localhost:11434", "ftp://example.org", "https://", "http://[broken", "http://x:port/v1", "nonsense"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Invalid, match="openai_base_url"):
        OpenAIEmbedder("small", KEY, url)


def test_no_password_in_the_address() -> None:
    with pytest.raises(Invalid, match="openai_api_key") as caught:
        OpenAIEmbedder("small", "", "https://me:hunter2@example.org/v1")

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-a\nX-Evil: 1", "sk-ключ"])
def test_a_key_that_cannot_be_a_header_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(Invalid) as caught:
        OpenAIEmbedder("small", key, "https://example.org/v1")

    assert "sk-" not in str(caught.value)


def test_the_end_of_the_line_after_a_key_is_forgiven(endpoint: Endpoint) -> None:
    OpenAIEmbedder("small", f"{KEY}\n", f"{endpoint.url}/?version=2").embed(["a dog"])

    path, headers, _ = endpoint.requests[0]
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert path == "/v1/embeddings?version=2"
