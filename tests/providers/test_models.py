"""Language models: those behind a real HTTP server that behaves well, badly or not at all, and those given."""

from __future__ import annotations

import json
import socket
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.waiting import eventually
from wellkept import Settings, Wellkept
from wellkept.errors import Invalid, ModelError
from wellkept.model import Json
from wellkept.providers.checked import CheckedModel, open_models
from wellkept.providers.openai import MAX_COMPLETION_BYTES, OpenAIModel
from wellkept.testing.fake_model import (
    Answer,
    ModelHandler,
    ModelServer,
    completion,
    content,
    drips,
    drips_headers,
    hangs,
    resets,
    says,
    status,
    stops_half_way,
)

KEY = "sk-do-not-show-me"
TEXT = "the user's private text"
QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": TEXT}]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(says("Hello.")) as running:
        yield running


def model(server: ModelServer, **options: Any) -> OpenAIModel:
    return OpenAIModel("small", KEY, server.url, **{"timeout": 60.0, "first_pause": 0.01, **options})


def failure(ask: Callable[[], object]) -> str:
    """What a caller is told. Neither the key nor the text is in it, nor in the traceback behind it."""
    with pytest.raises(ModelError) as caught:
        ask()
    whole = "".join(traceback.format_exception(caught.value))
    assert KEY not in whole
    assert TEXT not in whole
    return str(caught.value)


def test_a_question_is_sent_in_openais_protocol_and_its_text_comes_back(server: ModelServer) -> None:
    assert model(server).complete(QUESTION, max_tokens=50) == "Hello."

    ((path, headers, body),) = server.requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {"model": "small", "messages": QUESTION, "max_tokens": 50, "temperature": 0.2}


def test_the_name_says_which_model_and_where_without_the_key(server: ModelServer) -> None:
    assert model(server).name == f"openai:small@{server.url.split('/')[2]}"


def test_half_a_surrogate_pair_is_replaced_and_other_content_passed_on(server: ModelServer) -> None:
    picture = {"role": "user", "content": [{"type": "text", "text": "look"}]}

    model(server).complete([{"role": "user", "content": "half: \ud83d"}, picture])

    assert server.bodies[0]["messages"] == [{"role": "user", "content": "half: ?"}, picture]


@pytest.mark.parametrize("trouble", [status(429), status(500), status(503, Retry_After="0"), resets, stops_half_way])
def test_what_may_pass_is_tried_again(server: ModelServer, trouble: Answer) -> None:
    server.script.extend([trouble, trouble])

    assert model(server).complete(QUESTION) == "Hello."
    assert len(server.requests) == 3


def test_retries_end(server: ModelServer) -> None:
    server.usual = status(503)

    assert "status 503" in failure(lambda: model(server, retries=1).complete(QUESTION))
    assert len(server.requests) == 2


def test_no_retry_begins_that_could_not_end_in_time(server: ModelServer) -> None:
    server.usual = status(503, Retry_After="20")

    assert "status 503" in failure(lambda: model(server, timeout=20.0).complete(QUESTION))
    assert len(server.requests) == 1


@pytest.mark.parametrize(("code", "advice"), [(401, "openai_api_key"), (403, "openai_api_key"), (404, "model")])
def test_a_refusal_says_what_to_check_and_is_not_repeated(server: ModelServer, code: int, advice: str) -> None:
    server.usual = status(code)

    assert advice in failure(lambda: model(server).complete(QUESTION))
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(server: ModelServer) -> None:
    with ModelServer() as elsewhere:
        server.usual = status(307, Location=f"{elsewhere.url}/chat/completions")

        assert "is not followed" in failure(lambda: model(server).complete(QUESTION))
        assert elsewhere.requests == []


@pytest.mark.parametrize("silence", [hangs, drips, drips_headers])
def test_the_timeout_is_for_all_of_it(server: ModelServer, silence: Answer) -> None:
    server.usual = silence

    told = failure(lambda: CheckedModel(model(server, timeout=0.3), timeout=0.3).complete(QUESTION))

    assert "did not answer in time" in told


def test_a_caller_may_have_less_time(server: ModelServer) -> None:
    server.usual = hangs

    assert "in time" in failure(lambda: model(server, timeout=100).complete(QUESTION, timeout=0.2))


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"

        told = failure(lambda: OpenAIModel("small", KEY, url, retries=1, first_pause=0.01).complete(QUESTION))

    assert "cannot be reached" in told


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>welcome</html>",
        b'{"choices": [{"message": {"content": "half',
        b"[" * 100_000,
        b"\xff\xfe",
        [],
        {},
        {"choices": []},
        {"choices": None},
        {"choices": [{"message": "text"}]},
        {"choices": [{"text": "old protocol"}]},
        completion(["a", "list"]),
        completion(7),
    ],
    ids=str,
)
def test_nonsense_is_not_taken_for_an_answer(server: ModelServer, answer: object) -> None:
    server.usual = content(answer)

    assert "answered with" in failure(lambda: model(server).complete(QUESTION))


def test_no_content_is_an_empty_answer(server: ModelServer) -> None:
    server.usual = says(None)

    assert model(server).complete(QUESTION) == ""


def test_a_huge_answer_is_cut_off(server: ModelServer) -> None:
    server.usual = content(b" " * (MAX_COMPLETION_BYTES + 1))

    assert "too long" in failure(lambda: model(server).complete(QUESTION))


def test_bytes_that_only_claim_to_be_compressed_are_no_answer(server: ModelServer) -> None:
    server.usual = lambda handler, body: handler.reply(200, b"not gzip", Content_Encoding="gzip")

    assert "cannot be read" in failure(lambda: model(server, retries=0).complete(QUESTION))


def test_a_model_that_knows_only_the_new_name_of_the_limit_is_asked_by_that_name_from_then_on(
    server: ModelServer,
) -> None:
    def newest(handler: ModelHandler, body: Any) -> None:
        (status(400) if {"max_tokens", "temperature"} & body.keys() else says("Hello."))(handler, body)

    server.usual = newest
    asked = model(server)

    assert [asked.complete(QUESTION, max_tokens=9) for _ in range(2)] == ["Hello.", "Hello."]
    assert ["max_completion_tokens" in body for body in server.bodies] == [False, True, True]


def test_a_bad_request_stays_one(server: ModelServer) -> None:
    server.usual = status(400)

    assert "status 400" in failure(lambda: model(server).complete(QUESTION, max_tokens=9))


def test_many_threads_share_it(server: ModelServer) -> None:
    server.usual = lambda handler, body: says(body["messages"][0]["content"])(handler, body)
    asked = model(server)

    def echo(number: int) -> str:
        return asked.complete([{"role": "user", "content": str(number)}])

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(echo, range(40))) == [str(number) for number in range(40)]


@pytest.mark.parametrize("url", ["localhost:11434", "ftp://example.org", "http://[broken", "https://me:pw@example.org"])
def test_an_address_that_is_none_is_refused_by_the_name_of_its_setting(url: str) -> None:
    with pytest.raises(Invalid, match="openai_summary_base_url"):
        open_models(Settings(openai_model="small", openai_summary_base_url=url))


# --- which model serves which purpose


def names(**settings: Any) -> list[str | None]:
    models = open_models(Settings(**settings))
    return [None if each is None else each.name for each in (models.main, models.summary, models.fast)]


def test_without_a_model_there_is_none() -> None:
    assert names(openai_api_key=KEY) == [None, None, None]


def test_what_is_not_set_for_a_purpose_is_as_for_the_main_model() -> None:
    host = "http://one.example/v1"
    assert names(openai_model="big", openai_base_url=host) == ["openai:big@one.example"] * 3
    assert names(openai_summary_model="small", openai_base_url=host) == [None, "openai:small@one.example", None]
    assert names(
        openai_model="big",
        openai_base_url=host,
        openai_summary_base_url="http://two.example/v1",
        openai_fast_model="quick",
    ) == ["openai:big@one.example", "openai:big@two.example", "openai:quick@one.example"]


def test_each_purpose_has_its_own_key_and_time() -> None:
    with ModelServer() as one, ModelServer(hangs) as two:
        settings = Settings(
            openai_model="big",
            openai_base_url=one.url,
            openai_api_key="key-1",
            openai_summary_base_url=two.url,
            openai_summary_api_key="key-2",
            openai_timeout=0.2,
        )
        models = open_models(settings)
        assert models.main is not None
        assert models.summary is not None

        models.main.complete(QUESTION)
        with pytest.raises(ModelError, match="in time"):
            models.summary.complete(QUESTION)

        assert one.requests[0][1]["Authorization"] == "Bearer key-1"
        eventually(lambda: two.requests)  # it may read them later than they were given up
        assert two.requests[0][1]["Authorization"] == "Bearer key-2"


def test_a_refusal_names_the_setting_that_is_wrong(server: ModelServer) -> None:
    server.usual = status(401)
    settings = Settings(openai_model="m", openai_api_key="a", openai_base_url=server.url, openai_summary_api_key="b")
    models = open_models(settings)
    assert models.summary is not None

    with pytest.raises(ModelError, match="openai_summary_api_key"):
        models.summary.complete(QUESTION)


# --- models that a program brings along


class Brought:
    """A model object as a program may have it."""

    name = "brought"

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer
        self.seen: list[tuple[Sequence[Json], int | None, float | None]] = []

    def complete(self, messages: Sequence[Json], *, max_tokens: int | None = None, timeout: float | None = None) -> Any:
        self.seen.append((messages, max_tokens, timeout))
        return self.answer()


def test_an_object_or_a_function_can_be_the_model() -> None:
    brought = Brought(lambda: "from an object")

    assert CheckedModel(brought).complete(QUESTION, max_tokens=5, timeout=2) == "from an object"
    assert brought.seen == [(QUESTION, 5, 2)]
    assert CheckedModel(lambda messages: json.dumps(messages)).complete(QUESTION) == json.dumps(QUESTION)


def test_a_given_model_serves_every_purpose() -> None:
    models = open_models(Settings(openai_model="ignored"), Brought(lambda: "x"))

    assert models.main is models.summary is models.fast
    assert models.main is not None
    assert models.main.name == "brought"


@pytest.mark.parametrize("thing", ["gpt", 7, object()])
def test_anything_else_is_no_model(thing: Any) -> None:
    with pytest.raises(Invalid, match=f"`model` must be .* or a function, not {type(thing).__name__}."):
        Wellkept(":memory:", settings=Settings(), model=thing)


def test_a_model_whose_complete_is_no_method_is_none() -> None:
    class Finished:
        complete = True

    thing: Any = Finished()
    with pytest.raises(Invalid, match="A model has"):
        Wellkept(":memory:", settings=Settings(), model=thing)


def test_whatever_it_raises_it_failed() -> None:
    def broken(messages: Sequence[Json]) -> str:
        raise KeyError("choices")

    assert "failed (KeyError)" in failure(lambda: CheckedModel(broken).complete(QUESTION))


@pytest.mark.parametrize("answer", [None, b"bytes", {"text": "x"}])
def test_an_answer_that_is_not_text_is_none(answer: Any) -> None:
    assert "should have answered with text" in failure(lambda: CheckedModel(Brought(lambda: answer)).complete(QUESTION))


def test_one_that_never_answers_holds_up_nobody() -> None:
    ended = threading.Event()

    told = failure(lambda: CheckedModel(lambda messages: str(ended.wait()), timeout=0.1).complete(QUESTION))

    ended.set()
    assert "did not answer in time" in told


def test_what_no_store_could_keep_is_taken_out_of_an_answer() -> None:
    assert CheckedModel(lambda messages: "a\x00b \ud83d").complete(QUESTION) == "ab ?"
