"""Models that fail are left alone for a while, and nobody waits for them meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.services.conftest import Clock, Place
from tests.waiting import LIMIT
from wellkept import ModelError, Wellkept
from wellkept.api.wellkept import AgentMemory
from wellkept.errors import ModelRefused
from wellkept.model import Json
from wellkept.providers.openai import OpenAIModel
from wellkept.testing.fake_model import ModelServer, status

SUMMING = {"summary_enabled": True, "summary_threshold": 6, "summary_keep_last": 2}


class Model:
    """Answers as `answer` does, and counts how often it was asked."""

    name = "model"

    def __init__(self) -> None:
        self.answer: Callable[[str], str] = self.down
        self.asked = 0

    def complete(self, messages: Sequence[Json], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        self.asked += 1
        return self.answer(str(messages))

    @staticmethod
    def down(question: str) -> str:
        raise ModelError("The model endpoint did not answer in time.")


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def wellkept(place: Place, clock: Clock, model: Model) -> Iterator[Wellkept]:
    with place.open(clock, model=model, **SUMMING) as opened:
        yield opened


@pytest.fixture
def sam(wellkept: Wellkept, tenant_id: str) -> AgentMemory:
    return wellkept.agent("sam", tenant_id)


def talk(agent: AgentMemory, session: str) -> None:
    for number in range(5):
        agent.log_turn(session, user=f"question {number} of {session}", assistant="answer")


def test_conversations_do_not_each_wait_for_a_model_that_fails(
    wellkept: Wellkept, sam: AgentMemory, model: Model, clock: Clock, tenant_id: str
) -> None:
    talk(sam, "one")
    talk(sam, "two")
    shown = [sam.sessions.conversation(session) for session in ("one", "two", "one", "two")]
    shown_prompts = [sam.context("and now?", session="one") for _ in range(3)]

    assert model.asked == 1
    assert {len(each.turns) for each in shown} == {10}
    assert all("question 0 of one" in str(each.messages) for each in shown_prompts)
    (problem,) = wellkept.problems()
    assert problem.endswith("The model endpoint did not answer in time.")
    events = [event.action for event in wellkept.tenant(tenant_id).audit.list(limit=100)]
    assert events.count("summary.fail") == 1

    clock.forward(seconds=31)
    assert wellkept.problems() == []
    model.answer = lambda question: "They talked."
    assert sam.sessions.conversation("one").summary == "They talked."
    assert sam.sessions.conversation("two").summary == "They talked."


@pytest.mark.parametrize("is_refused", [True, False], ids=["refused", "absurd"])
def test_a_text_that_goes_wrong_keeps_nobody_else_waiting(
    wellkept: Wellkept, sam: AgentMemory, model: Model, is_refused: bool
) -> None:
    def answer(question: str) -> str:
        if "of odd" not in question:
            return "They talked."
        if is_refused:
            raise ModelRefused("The model endpoint answered with status 400.")
        return ""

    model.answer = answer
    talk(sam, "odd")
    talk(sam, "even")

    assert [len(sam.sessions.conversation("odd").turns) for _ in range(3)] == [10, 10, 10]
    assert model.asked == 1
    assert wellkept.problems() == []
    assert sam.sessions.conversation("even").summary == "They talked."


def test_when_the_rest_is_over_one_tries_and_the_others_still_do_without(
    sam: AgentMemory, model: Model, clock: Clock
) -> None:
    talk(sam, "one")
    sam.sessions.conversation("one")
    clock.forward(seconds=31)
    trying, may_fail = threading.Event(), threading.Event()

    def hang(question: str) -> str:
        trying.set()
        assert may_fail.wait(LIMIT)
        raise ModelError("It hung.")

    model.answer = hang
    first = threading.Thread(target=sam.sessions.conversation, args=("one",))
    first.start()
    assert trying.wait(LIMIT)
    assert len(sam.sessions.conversation("one").turns) == 10
    may_fail.set()
    first.join()

    assert model.asked == 2


@pytest.mark.parametrize(("code", "is_about_the_text"), [(400, True), (413, True), (422, True), (401, False)])
def test_an_endpoint_refuses_a_text_or_everybody(code: int, is_about_the_text: bool) -> None:
    with ModelServer(status(code)) as server, pytest.raises(ModelError) as caught:
        OpenAIModel("m", base_url=server.url).complete([{"role": "user", "content": "hello"}])

    assert isinstance(caught.value, ModelRefused) is is_about_the_text
