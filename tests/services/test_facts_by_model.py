"""A model that is asked which facts a new one ends: after the turn, and never to harm. On both engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.services.conftest import Clock, Place, on_one_engine
from tests.waiting import eventually
from wellkept import Wellkept
from wellkept.api.agent import AgentMemory
from wellkept.model import ChangeState, EndedAs
from wellkept.testing.fake_model import ModelHandler, ModelServer, hangs, says, status, stops_half_way

SECRET = "AKIAIOSFODNN7EXAMPLQ"
OLD, NEW = "I always pay in cash at the market.", "I only carry a card."


class Judge:
    """A scripted endpoint that ends the older statements that hold a word."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.word, self.ended_as = "market", "superseded"
        server.usual = self.answer

    def answer(self, handler: ModelHandler, body: Any) -> None:
        ends = [
            {"item": case["item"], "ends": id, "as": self.ended_as}
            for case in json.loads(body["messages"][-1]["content"])
            for id, old in case["old"].items()
            if self.word in old
        ]
        says(json.dumps(ends))(handler, body)

    @property
    def questions(self) -> list[Any]:
        return [json.loads(body["messages"][-1]["content"]) for body in self.server.bodies]


@pytest.fixture
def judge() -> Iterator[Judge]:
    with ModelServer() as server:
        yield Judge(server)


@pytest.fixture
def store(place: Place, clock: Clock, judge: Judge) -> Iterator[Wellkept]:
    with open_asking(place, clock, judge) as opened:
        yield opened


def open_asking(place: Place, clock: Clock, judge: Judge) -> Wellkept:
    return place.open(clock, openai_base_url=judge.server.url, openai_model="scripted", openai_timeout=2.0)


@pytest.fixture
def ann(store: Wellkept, tenant_id: str) -> AgentMemory:
    return store.agent("ann", tenant=tenant_id)


def say(agent: AgentMemory, *texts: str) -> None:
    for text in texts:
        agent.log_turn(f"s-{agent.owner.user}", user=text, assistant="All right.")


def facts(agent: AgentMemory) -> list[str]:
    return [each.text for each in agent.profile().facts]


def test_a_model_ends_what_the_rules_leave(ann: AgentMemory, clock: Clock) -> None:
    say(ann, OLD, "I have two cats.")
    clock.forward(days=1)
    say(ann, NEW)

    prompt = str(ann.context("How do I pay?", session="later").messages)

    assert (NEW in prompt, "market" in prompt) == (True, False)
    (old,) = [each for each in ann.list(state="all") if each.text == OLD and each.told is not None]
    assert (old.ended_as, ann.get(str(old.ended_by)).text, old.valid_to) == (EndedAs.SUPERSEDED, NEW, clock())
    assert ann.get(old.sources[0]).ended_as is EndedAs.SUPERSEDED
    (change,) = ann.changes.list(state="applied")
    assert "model" in change.reason
    ann.changes.undo(change.id)
    assert set(facts(ann)) == {OLD, NEW, "I have two cats."}


def test_it_is_asked_about_turns_of_a_moment_at_once_and_about_each_fact_once(ann: AgentMemory, judge: Judge) -> None:
    say(ann, OLD, "I have two cats.", "My cats are called Ida and Bo.", "My brother has a cat, too.", NEW)
    ann.context("How do I pay?")
    say(ann, "My card is a blue one.")
    ann.context("How do I pay?")

    asked = [case["new"] for question in judge.questions for case in question]
    assert len(asked) == len(set(asked))
    assert len(judge.questions) <= 4
    assert max(len(case["old"]) for question in judge.questions for case in question) <= 5
    assert judge.server.bodies[-1]["temperature"] <= 0.2


def test_nothing_is_asked_where_nothing_is_near(ann: AgentMemory, judge: Judge) -> None:
    say(ann, OLD, "The printer is a Brother from 2019.")
    ann.context("Which printer is it?")

    assert judge.questions == []


@pytest.mark.parametrize(
    "answer",
    [
        "I think the market is over.",
        "",
        "[1, 2]",
        json.dumps({"ends": []}),
        json.dumps([{"item": 0, "ends": "m-2"}]),
        json.dumps([{"item": 0, "ends": "m-2", "as": "superseded", "text": "x"}]),
        json.dumps([{"item": 0, "ends": "m-2", "as": "deleted"}]),
        json.dumps([{"item": 9, "ends": "m-2", "as": "superseded"}]),
        json.dumps([{"item": True, "ends": "m-2", "as": "superseded"}]),
        json.dumps([{"item": 0, "ends": "m-999", "as": "superseded"}]),
        json.dumps([{"item": 0, "ends": ["m-2"], "as": "superseded"}]),
        # One wrong element makes the whole answer wrong.
        json.dumps([{"item": 0, "ends": "m-2", "as": "superseded"}, {"item": 0, "ends": "m-77", "as": "over"}]),
        json.dumps([{"item": 0, "ends": "m-2", "as": "superseded"}] * 2),
        json.dumps([{"item": 0, "ends": "m-2", "as": "superseded"}])[:-9],
        "[" * 30_000,
        hangs,
        stops_half_way,
        status(500),
        says(None),
    ],
)
@on_one_engine
def test_a_wrong_answer_changes_nothing(ann: AgentMemory, store: Wellkept, judge: Judge, answer: Any) -> None:
    say(ann, OLD)
    judge.server.usual = answer if callable(answer) else says(answer)
    say(ann, NEW)

    def has_failed() -> bool:
        return any(each.action == "facts.model_fail" for each in store.tenant(ann.owner.tenant).audit.list())

    eventually(has_failed)
    assert facts(ann) == [NEW, OLD]
    assert "cash" not in repr(store.tenant(ann.owner.tenant).audit.list())


def test_a_turn_is_stored_while_the_model_hangs_and_maintenance_does_the_rest(
    place: Place, clock: Clock, judge: Judge, tenant_id: str
) -> None:
    with open_asking(place, clock, judge) as store:
        ann = store.agent("ann", tenant=tenant_id)
        say(ann, OLD)
        judge.server.usual = hangs
        say(ann, NEW)
        assert facts(ann) == [NEW, OLD]
    judge.server.usual = judge.answer
    with open_asking(place, clock, judge) as store:
        store.tenant(tenant_id).upkeep.maintain()
        assert facts(store.agent("ann", tenant=tenant_id)) == [NEW]


def test_two_processes_end_a_fact_once(place: Place, clock: Clock, judge: Judge, tenant_id: str) -> None:
    with open_asking(place, clock, judge) as one, open_asking(place, clock, judge) as other:
        ann, same = (store.agent("ann", tenant=tenant_id) for store in (one, other))
        say(ann, OLD)
        say(same, NEW)
        say(ann, "I have two cats.")
        for agent in (ann, same):
            agent.context("How do I pay?")
        assert facts(ann) == ["I have two cats.", NEW]
        assert len(ann.changes.list(state=ChangeState.APPLIED)) == 1


def test_a_question_holds_no_secret_and_nothing_of_another_user(ann: AgentMemory, judge: Judge) -> None:
    say(ann.for_user("u-1"), OLD)
    say(ann.for_user("u-2"), f"{NEW} My key is {SECRET}.", "I pay with my phone at the corner shop.")
    ann.for_user("u-2").context("How do I pay?")

    assert "market" not in json.dumps(judge.questions)
    assert SECRET not in json.dumps(judge.questions)
    assert facts(ann.for_user("u-1")) == [OLD]


def test_add_reports_what_a_model_ended(ann: AgentMemory, judge: Judge) -> None:
    talk = [{"role": "user", "content": text} for text in (OLD, "I have two cats.", NEW)]
    shown = ann.add(talk, dry_run=True)
    result = ann.add(talk)

    assert (result.source, result.problem, shown.source) == ("model", "", "model")
    assert [each.text for each in result.superseded] == [each.text for each in shown.superseded] == [NEW]
    assert facts(ann) == [NEW, "I have two cats."]
    count = len(judge.questions)
    say(ann, "The printer is a Brother from 2019.")
    ann.context("Which printer is it?")
    assert len(judge.questions) == count
    result.undo()
    assert facts(ann) == ["The printer is a Brother from 2019."]


def test_add_is_read_by_rules_when_the_model_fails(ann: AgentMemory, judge: Judge) -> None:
    judge.server.usual = says("no idea")
    result = ann.add([{"role": "user", "content": text} for text in (OLD, NEW)])

    assert (result.source, result.superseded, len(result.added)) == ("rules", (), 2)
    assert "list" in result.problem
