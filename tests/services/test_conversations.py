"""Conversations through the library, on both engines: turns, the running summary, and failing models."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.services.conftest import Clock, Place, on_one_engine
from wellkept import Wellkept
from wellkept.api.wellkept import AgentMemory
from wellkept.errors import Conflict, Invalid, NotFound
from wellkept.model import Json, Kind, Origin, Role
from wellkept.model.stored import place_of
from wellkept.prompt import rules_summaries
from wellkept.testing.fake_model import (
    Answer,
    ModelServer,
    content,
    drips,
    hangs,
    resets,
    says,
    status,
    stops_half_way,
)

SECRET = "AKIAQYLPMN5HIEXAMP42"
SMALL = {"summary_enabled": True, "summary_threshold": 6, "summary_keep_last": 2}


class Scripted:
    """A model that remembers what it was asked, and says "Summary 1.", "Summary 2." …"""

    name = "scripted"

    def __init__(self, answer: Callable[[int], str] = lambda number: f"Summary {number}.") -> None:
        self.asked: list[Sequence[Json]] = []
        self.answer = answer

    def complete(self, messages: Sequence[Json], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        self.asked.append(messages)
        return self.answer(len(self.asked))


def opened(place: Place, clock: Clock, model: object = None, **settings: Any) -> Wellkept:
    return place.open(clock, model=model, **{**SMALL, **settings})


@pytest.fixture
def model() -> Scripted:
    return Scripted()


@pytest.fixture
def summing(place: Place, clock: Clock, model: Scripted) -> Iterator[Wellkept]:
    """A store whose conversations are summarised beyond six messages, down to two."""
    with opened(place, clock, model) as wellkept:
        yield wellkept


@pytest.fixture
def sam(summing: Wellkept, tenant_id: str) -> AgentMemory:
    return summing.agent("sam", tenant_id)


def talk(agent: AgentMemory, turns: int, *, session: str = "s", start: int = 0, **options: Any) -> None:
    for number in range(start, start + turns):
        agent.log_turn(session, user=f"question {number}", assistant=f"answer {number}", **options)


def said(messages: Sequence[Json]) -> list[str]:
    """What a conversation shows, the summary marked."""
    return [("S: " if each["role"] == "system" else "") + each["content"].splitlines()[-1] for each in messages]


def actions(wellkept: Wellkept, agent: AgentMemory) -> list[str]:
    return [event.action for event in wellkept.tenant(agent.owner.tenant).audit.list(limit=100)]


# --- turns


@pytest.mark.proves("T1")
def test_a_turn_is_the_prompt_and_the_final_answer_and_nothing_else(ann: AgentMemory, place: Place) -> None:
    logged = ann.log_turn("s-1", user="  Why?\n", assistant="Because.")

    assert [(each.position, each.role, each.content) for each in logged] == [
        (1, Role.USER, "  Why?\n"),
        (2, Role.ASSISTANT, "Because."),
    ]
    assert ann.sessions.messages("s-1") == logged
    rows = place.sql(
        f"SELECT role, content FROM chat_messages WHERE tenant_id = '{ann.owner.tenant}' ORDER BY position"
    )
    assert [tuple(row) for row in rows] == [("user", "  Why?\n"), ("assistant", "Because.")]
    kept = place.sql(f"SELECT summary, summarized_count FROM chat_sessions WHERE tenant_id = '{ann.owner.tenant}'")
    assert [tuple(row) for row in kept] == [("", 0)]


def test_a_limit_leaves_out_the_oldest_messages_behind_the_summary(ann: AgentMemory, sam: AgentMemory) -> None:
    talk(ann, 3)
    newest = ann.sessions.conversation("s", limit=2)
    assert (said(newest.messages), newest.omitted_count) == (["question 2", "answer 2"], 4)
    assert (
        ann.sessions.conversation("s", limit=6)
        == ann.sessions.conversation("s", limit=7)
        == ann.sessions.conversation("s")
    )
    assert ann.sessions.conversation("new", limit=3).turns == ()
    wrong: Any
    for wrong in (0, -1, True, "2"):
        with pytest.raises(Invalid, match="limit"):
            ann.sessions.conversation("s", limit=wrong)

    talk(sam, 4, session="t")
    summed = sam.sessions.conversation("t", limit=1)
    assert (said(summed.messages), summed.omitted_count) == (["S: Summary 1.", "answer 3"], 1)


@pytest.mark.proves("T1")
def test_the_tables_take_no_other_role(ann: AgentMemory, place: Place) -> None:
    ann.log_turn("s-1", user="Why?", assistant="Because.")

    for role in ("tool", "system", "tool_result"):
        with pytest.raises(Exception, match=r"(?i)check|constraint"):
            place.sql(f"UPDATE chat_messages SET role = '{role}' WHERE tenant_id = '{ann.owner.tenant}'")


@pytest.mark.parametrize(
    "turn",
    [
        {"user": "", "assistant": "x"},
        {"user": "x", "assistant": " \n"},
        {"user": None, "assistant": "x"},
        {"user": "x\x00", "assistant": "x"},
        {"user": "x", "assistant": "\ud83d"},
        {"user": "x" * 100_001, "assistant": "x"},
    ],
)
@on_one_engine
def test_half_a_turn_is_none(ann: AgentMemory, turn: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        ann.log_turn("s-1", **turn)

    assert ann.sessions.list() == []


@pytest.mark.parametrize("id", ["", " s", "a/b", "two\nlines", "x" * 201, ".."])
@on_one_engine
def test_an_id_that_fits_no_address_is_refused(ann: AgentMemory, id: Any) -> None:
    with pytest.raises(Invalid, match="A session id is"):
        ann.log_turn(id, user="x", assistant="y")
    with pytest.raises(Invalid, match="A session id is"):
        ann.sessions.conversation(id)


def test_sessions_are_begun_listed_read_and_deleted(ann: AgentMemory, clock: Clock) -> None:
    begun = ann.sessions.start()
    clock.forward(minutes=1)
    named = ann.sessions.start("my own id")
    clock.forward(minutes=1)
    talk(ann, 2, session="third")

    assert begun.id.startswith("s-")
    assert [each.id for each in ann.sessions.list()] == ["third", "my own id", begun.id]
    assert ann.sessions.list(before=place_of(named)) == [begun]
    assert ann.sessions.get("third").message_count == 4
    assert [each.content for each in ann.sessions.messages("third", after=2, limit=1)] == ["question 1"]
    ann.sessions.delete("third")
    with pytest.raises(NotFound):
        ann.sessions.messages("third")
    with pytest.raises(Conflict):
        ann.sessions.start("my own id")


def test_a_session_belongs_to_one_agent(ann: AgentMemory, bob: AgentMemory, wellkept: Wellkept) -> None:
    talk(ann, 1)

    for attempt in (bob.sessions.get, bob.sessions.messages, bob.sessions.delete):
        with pytest.raises(NotFound, match="There is no such session"):
            attempt("s")
    assert bob.sessions.conversation("s").messages == bob.sessions.conversation("never").messages == []
    assert bob.sessions.list() == []
    with pytest.raises(Conflict):
        bob.log_turn("s", user="mine", assistant="now")
    assert len(ann.sessions.messages("s")) == 2
    everybody = wellkept.tenant(ann.owner.tenant)
    assert everybody.sessions.get("s").owner == ann.owner
    assert [each.id for each in everybody.sessions.list()] == ["s"]


@pytest.mark.parametrize("mode", ["reject", "redact"])
def test_a_secret_is_taken_out_and_nothing_else_is_lost(place: Place, clock: Clock, tenant_id: str, mode: str) -> None:
    with place.open(clock, secrets=mode) as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        ann.log_turn("s", user=f"the key is {SECRET}, deploy!", assistant="done", remember=True)

        assert ann.sessions.messages("s")[0].content == "the key is [secret removed: aws-access-key], deploy!"
        assert ann.sessions.messages("s")[1].content == "done"
        assert not [each for each in ann.list() if SECRET in each.text]
        events = wellkept.tenant(tenant_id).audit.search("secret")
        assert [event.action for event in events] == ["turn.secret"]
        assert SECRET not in str(events)
        ann.log_turn("s", user="and now?", assistant="ok")
        assert len(wellkept.tenant(tenant_id).audit.search("secret")) == 1


def test_a_flagged_secret_stays_and_is_in_the_audit_log(place: Place, clock: Clock, tenant_id: str) -> None:
    with place.open(clock, secrets="flag") as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        ann.log_turn("s", user=f"the key is {SECRET}", assistant="done")

        assert SECRET in ann.sessions.messages("s")[0].content
        assert "was flagged" in wellkept.tenant(tenant_id).audit.search("secret")[0].message


# --- turns as episodes


def test_a_turn_can_be_remembered_as_episodes(ann: AgentMemory) -> None:
    ann.log_turn("s", user="We decided to pay the $500 invoice.", assistant="Approved and paid.", remember=True)

    answer, prompt = (each for each in ann.list(kind="episode") if each.told is None)
    assert (prompt.role, prompt.origin, prompt.session_id) == (Role.USER, Origin.USER, "s")
    assert (answer.role, answer.origin, answer.session_id) == (Role.ASSISTANT, Origin.AGENT, "s")
    assert prompt.importance > 0.6
    assert "invoice" in ann.recall("invoice")[0].text


def test_a_turn_is_remembered_unless_one_objects(ann: AgentMemory, place: Place, clock: Clock, tenant_id: str) -> None:
    talk(ann, 1, remember=False)
    assert ann.list() == []
    talk(ann, 1)
    assert [each.role for each in ann.list() if each.told is None] == [Role.ASSISTANT, Role.USER]

    with place.open(clock, remember_turns=False) as wellkept:
        talk(wellkept.agent("cap", tenant_id), 1, session="c")
        assert wellkept.agent("cap", tenant_id).list() == []
        talk(wellkept.agent("cap", tenant_id), 1, session="c", remember=True)
        assert wellkept.agent("cap", tenant_id).list() != []


def test_an_answer_that_only_repeats_memory_is_logged_but_not_remembered(ann: AgentMemory) -> None:
    ann.remember("The office moves to Lisbon in June")
    ann.recall("Where does the office move?")

    ann.log_turn("s", user="Where to?", assistant="The office moves to Lisbon in June", remember=True)

    assert [each.text for each in ann.list(kind="episode")] == ["Where to?"]
    assert len(ann.sessions.messages("s")) == 2


def test_of_a_message_too_long_for_an_episode_its_ends_are_remembered(ann: AgentMemory) -> None:
    ann.log_turn("s", user="begin " + "x " * 20_000 + "end", assistant="ok", remember=True)

    text = ann.list(kind="episode")[1].text
    assert len(text) <= 10_000
    assert (text[:5], text[-3:]) == ("begin", "end")
    assert len(ann.sessions.messages("s")[0].content) > 40_000


def test_a_turn_and_its_episodes_are_kept_together_or_not_at_all(ann: AgentMemory, bob: AgentMemory) -> None:
    talk(bob, 1)

    with pytest.raises(Conflict):
        ann.log_turn("s", user="mine", assistant="now", remember=True)

    assert ann.list(kind="episode") == []


# --- the running summary


@pytest.mark.proves("T3")
def test_one_call_folds_all_but_the_newest_and_the_rest_comes_back_word_for_word(
    sam: AgentMemory, model: Scripted, summing: Wellkept
) -> None:
    talk(sam, 3)
    assert said(sam.sessions.conversation("s").messages) == [
        f"{who} {n}" for n in range(3) for who in ("question", "answer")
    ]
    assert model.asked == []  # six do not exceed six

    talk(sam, 1, start=3)
    shown = sam.sessions.conversation("s")

    assert len(model.asked) == 1
    assert said(shown.messages) == ["S: Summary 1.", "question 3", "answer 3"]
    session = sam.sessions.get("s")
    assert (session.summary, session.summarized_count, session.message_count) == ("Summary 1.", 6, 8)
    assert (shown.summary, shown.summarized_count) == ("Summary 1.", 6)
    asked = model.asked[0][1]["content"]
    assert "question 0" in asked
    assert "answer 2" in asked
    assert "question 3" not in asked
    assert "summary.fold" in actions(summing, sam)


@pytest.mark.proves("T3")
def test_the_next_call_folds_into_the_old_summary_and_comes_only_when_as_much_has_gathered_again(
    sam: AgentMemory, model: Scripted
) -> None:
    talk(sam, 4)
    sam.sessions.conversation("s")
    for number in range(4, 6):
        talk(sam, 1, start=number)
        sam.sessions.conversation("s")
    assert len(model.asked) == 1

    talk(sam, 1, start=6)
    shown = sam.sessions.conversation("s")

    assert len(model.asked) == 2
    assert said(shown.messages) == ["S: Summary 2.", "question 6", "answer 6"]
    asked = model.asked[1][1]["content"]
    assert "Summary 1." in asked
    assert "question 3" in asked
    assert "question 2" not in asked  # what is covered is not read again
    assert sam.sessions.get("s").summarized_count == 12


def test_a_rambling_model_is_limited_and_its_answer_cut_after_a_sentence(
    place: Place, clock: Clock, tenant_id: str
) -> None:
    rambling = " ".join(f"Point{number} led to plan{number} of owner{number}." for number in range(200))
    with (
        ModelServer(says(rambling)) as server,
        opened(place, clock, openai_model="m", openai_base_url=server.url) as wellkept,
    ):
        agent = wellkept.agent("sam", tenant_id)
        talk(agent, 4)
        shown = agent.sessions.conversation("s")

    assert rambling.startswith(shown.summary)
    assert 1_900 < len(shown.summary) <= 2_000
    assert shown.summary.endswith(".")
    assert shown.summarized_count == 6
    (body,) = server.bodies
    assert body["max_tokens"] == 2_000
    assert body["temperature"] < 0.5


@pytest.mark.proves("T3")
def test_a_summary_survives_a_restart_and_asking_again_asks_no_model(
    place: Place, clock: Clock, tenant_id: str, model: Scripted
) -> None:
    with opened(place, clock, model) as wellkept:
        talk(wellkept.agent("sam", tenant_id), 4)
        before = wellkept.agent("sam", tenant_id).sessions.conversation("s")

    with opened(place, clock, model) as wellkept:
        assert wellkept.agent("sam", tenant_id).sessions.conversation("s") == before
    assert len(model.asked) == 1


@pytest.mark.proves("T3")
def test_with_the_defaults_forty_one_messages_become_a_summary_and_twelve(
    place: Place, clock: Clock, tenant_id: str, model: Scripted
) -> None:
    with place.open(clock, model=model, summary_enabled=True) as wellkept:
        agent = wellkept.agent("sam", tenant_id)
        talk(agent, 20)
        assert len(agent.sessions.conversation("s").messages) == 40
        talk(agent, 1, start=20)
        assert len(agent.sessions.conversation("s").messages) == 13
    assert len(model.asked) == 1


def test_keeping_more_than_the_threshold_folds_only_what_is_beyond(
    place: Place, clock: Clock, tenant_id: str, model: Scripted
) -> None:
    with opened(place, clock, model, summary_threshold=2, summary_keep_last=4) as wellkept:
        agent = wellkept.agent("sam", tenant_id)
        talk(agent, 2)
        assert len(agent.sessions.conversation("s").messages) == 4
        talk(agent, 1, start=2)
        assert said(agent.sessions.conversation("s").messages)[:2] == ["S: Summary 1.", "question 1"]


def test_what_is_too_much_for_one_request_is_shortened_or_left_for_the_next(
    place: Place, clock: Clock, tenant_id: str, model: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules_summaries, "MAX_INPUT_CHARS", 1_000)
    with opened(place, clock, model) as wellkept:
        agent = wellkept.agent("sam", tenant_id)
        for number in range(6):
            agent.log_turn("s", user=f"{number} " + "long " * 1_000, assistant="short")
        shown = agent.sessions.conversation("s")

    asked = model.asked[0][1]["content"]
    assert len(asked) < 1_500
    assert "short" in asked
    assert agent.owner.agent == "sam"
    assert shown.summarized_count == 5  # 1,000 characters are room for five messages
    assert len(shown.turns) == 7


def test_without_a_model_a_digest_takes_the_summarys_place(place: Place, clock: Clock, tenant_id: str) -> None:
    with opened(place, clock) as wellkept:
        agent = wellkept.agent("sam", tenant_id)
        agent.log_turn("s", user="Hello there!", assistant="Hi.")
        agent.log_turn("s", user="We decided: Maria pays 4,200 EUR by May 3rd.", assistant="Noted.")
        talk(agent, 2)
        shown = agent.sessions.conversation("s")

    assert "Maria pays 4,200 EUR by May 3rd." in shown.messages[0]["content"]
    assert said(shown.messages)[1:] == ["question 1", "answer 1"]


def test_a_secret_a_model_puts_together_is_taken_out(place: Place, clock: Clock, tenant_id: str) -> None:
    with opened(place, clock, Scripted(lambda number: f"The key is {SECRET}.")) as wellkept:
        agent = wellkept.agent("sam", tenant_id)
        talk(agent, 4)
        assert SECRET not in agent.sessions.conversation("s").summary


# --- when it is off, and when it fails


@pytest.mark.proves("T5")
def test_off_means_every_message_word_for_word(place: Place, clock: Clock, tenant_id: str, model: Scripted) -> None:
    with opened(place, clock, model) as wellkept:
        talk(wellkept.agent("sam", tenant_id), 4)
        wellkept.agent("sam", tenant_id).sessions.conversation("s")

    with opened(place, clock, model, summary_enabled=False) as wellkept:
        shown = wellkept.agent("sam", tenant_id).sessions.conversation("s")

    assert said(shown.messages) == [f"{who} {n}" for n in range(4) for who in ("question", "answer")]
    assert len(model.asked) == 1


TROUBLES: dict[str, Answer] = {
    "an error": status(500),
    "a refusal of the key": status(401),
    "a redirect": status(307, Location="http://127.0.0.1:9/v1"),
    "silence": hangs,
    "an endless answer": drips,
    "a hang-up": resets,
    "half a document": stops_half_way,
    "no JSON": content(b"<html>welcome</html>"),
    "the wrong JSON": content({"ok": True}),
    "an empty answer": says(""),
    "blanks": says(" \n "),
    "no content": says(None),
    "only thoughts": says("<think>what shall I say</think>"),
    "a long one": says("word " * 5_000),
    "a refusal": says("I'm sorry, but I can't help with that."),
    "a page": says("<!DOCTYPE html><html><body>Sign in</body></html>"),
    "a loop": says("and so on " * 100),
}


@pytest.mark.proves("T5")
@pytest.mark.parametrize("trouble", TROUBLES)
@on_one_engine
def test_when_the_model_fails_the_old_summary_stays_and_the_run_goes_on(
    place: Place, clock: Clock, tenant_id: str, trouble: str
) -> None:
    with ModelServer(says("The first summary.")) as server:
        options = {"openai_model": "m", "openai_base_url": server.url}
        with opened(place, clock, **options) as wellkept:
            agent = wellkept.agent("sam", tenant_id)
            talk(agent, 4)
            assert said(agent.sessions.conversation("s").messages)[0] == "S: The first summary."
            talk(agent, 3, start=4)
            before = agent.sessions.get("s")
        server.usual = TROUBLES[trouble]

        with opened(place, clock, **options, openai_timeout=0.3) as wellkept:
            agent = wellkept.agent("sam", tenant_id)
            shown = agent.sessions.conversation("s")

            assert said(shown.messages) == [
                "S: The first summary.",
                *(f"{who} {n}" for n in range(3, 7) for who in ("question", "answer")),
            ]
            assert agent.sessions.get("s") == before
            failure = wellkept.tenant(tenant_id).audit.list()[0]
            assert failure.action == "summary.fail"
            assert failure.message.startswith("Session s could not be summarised")
            assert failure.meta["session_id"] == "s"
            agent.log_turn("s", user="next", assistant="goes on")
        server.usual = says("The second summary.")
        with opened(place, clock, **options) as wellkept:
            assert wellkept.agent("sam", tenant_id).sessions.conversation("s").summary == "The second summary."


@pytest.mark.proves("T5")
def test_without_an_old_summary_a_failure_shows_the_whole_transcript(
    place: Place, clock: Clock, tenant_id: str
) -> None:
    def broken(messages: Sequence[Json]) -> str:
        raise OSError("no route")

    with opened(place, clock, broken) as wellkept:
        agent = wellkept.agent("sam", tenant_id)
        talk(agent, 4)
        assert said(agent.sessions.conversation("s").messages) == [
            f"{w} {n}" for n in range(4) for w in ("question", "answer")
        ]
        assert agent.sessions.get("s").summary == ""


def test_what_fits_is_no_absurd_answer(place: Place, clock: Clock, tenant_id: str) -> None:
    with opened(place, clock, Scripted(lambda number: "<think>hm</think>\nS " + "x" * 1_500)) as wellkept:
        agent = wellkept.agent("sam", tenant_id)
        talk(agent, 4)
        assert agent.sessions.conversation("s").summary.startswith("S xxx")


# --- two runs at once


@pytest.mark.proves("T6")
def test_of_two_runs_at_once_one_folds_and_both_see_the_same(place: Place, clock: Clock, tenant_id: str) -> None:
    gate = threading.Barrier(2, timeout=100)

    def together(number: int) -> str:
        gate.wait()  # both have read the same turns by now
        return f"Summary by {threading.get_ident()}."

    model = Scripted(together)
    with opened(place, clock, model) as one, opened(place, clock, model) as two:
        agents = [each.agent("sam", tenant_id) for each in (one, two)]
        talk(agents[0], 4)
        with ThreadPoolExecutor(2) as threads:
            shown = list(threads.map(lambda agent: agent.sessions.conversation("s"), agents))

        assert shown[0] == shown[1]
        assert shown[0].summary == agents[0].sessions.get("s").summary
        assert (shown[0].summarized_count, len(shown[0].turns)) == (6, 2)
        assert len(model.asked) == 2
        assert actions(one, agents[0]).count("summary.fold") == 1
        assert "summary.fail" not in actions(one, agents[0])


@pytest.mark.proves("T6")
def test_a_slow_run_does_not_overwrite_a_newer_summary(place: Place, clock: Clock, tenant_id: str) -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def slow(messages: Sequence[Json]) -> str:
        is_asked.set()
        assert may_answer.wait(100)
        return "An old summary."

    quick = Scripted()
    with opened(place, clock, slow) as late, opened(place, clock, quick) as early, ThreadPoolExecutor(1) as thread:
        agent = early.agent("sam", tenant_id)
        talk(agent, 4)
        running = thread.submit(late.agent("sam", tenant_id).sessions.conversation, "s")
        assert is_asked.wait(100)
        agent.sessions.conversation("s")
        talk(agent, 3, start=4)  # meanwhile the conversation goes on, and is folded once more
        newest = agent.sessions.conversation("s")
        may_answer.set()

        assert running.result(100) == newest
        assert agent.sessions.get("s").summary == "Summary 2."


@pytest.mark.proves("T6")
def test_many_runs_and_turns_at_once_lose_nothing_and_fold_nothing_twice(
    place: Place, clock: Clock, tenant_id: str
) -> None:
    class Listing:
        """Answers with every question it was ever told of."""

        name = "listing"

        def complete(
            self, messages: Sequence[Json], *, max_tokens: int | None = None, timeout: float | None = None
        ) -> str:
            asked = messages[1]["content"].split()
            return " ".join(word.strip('",}') for word in asked if word.startswith(("q-", '"q-')))

    with opened(place, clock, Listing()) as one, opened(place, clock, Listing()) as two:
        agents = [each.agent("sam", tenant_id) for each in (one, two)]

        def run(number: int) -> None:
            for turn in range(6):
                agents[number % 2].sessions.conversation("s")
                agents[number % 2].log_turn("s", user=f"q-{number}-{turn}", assistant="ok")

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(run, range(6)))
        shown = agents[0].sessions.conversation("s")

        asked = [word.strip('"') for word in shown.summary.split()]
        folded = [*asked, *(each.content for each in shown.turns if each.role is Role.USER)]
        assert sorted(folded) == sorted(f"q-{number}-{turn}" for number in range(6) for turn in range(6))
        stored = agents[1].sessions.messages("s")
        assert [each.position for each in stored] == list(range(1, 73))
        assert folded == [each.content for each in stored if each.role is Role.USER]


# --- references


@pytest.mark.proves("T7")
def test_a_reference_the_model_dropped_is_listed_after_its_text(place: Place, clock: Clock, tenant_id: str) -> None:
    answers = {1: "The build failed, see [MemoryRef: build-2 - shorter].", 2: "It works now."}
    with opened(place, clock, Scripted(answers.__getitem__)) as wellkept:
        agent = wellkept.agent("sam", tenant_id)
        agent.log_turn(
            "s", user="[MemoryRef: npm-1 - output of npm]", assistant="and [MemoryRef: build-2 - a log, long]"
        )
        talk(agent, 3)

        first = agent.sessions.conversation("s").summary
        assert first.startswith(answers[1])
        assert first.count("MemoryRef") == 2
        assert first.endswith("[MemoryRef: npm-1 - output of npm]")

        talk(agent, 3, start=4)
        second = agent.sessions.conversation("s").summary
        assert second.startswith(answers[2])
        assert "[MemoryRef: npm-1 - output of npm]" in second
        assert "[MemoryRef: build-2 - shorter]" in second


@pytest.mark.proves("T7")
def test_references_survive_the_digest_too(place: Place, clock: Clock, tenant_id: str) -> None:
    with opened(place, clock) as wellkept:
        agent = wellkept.agent("sam", tenant_id)
        agent.log_turn("s", user="x " * 5_000 + "[MemoryRef: far-1 - at the end] " + "y " * 5_000, assistant="ok")
        talk(agent, 3)
        assert "[MemoryRef: far-1 - at the end]" in agent.sessions.conversation("s").summary


# --- reading again


@pytest.mark.proves("T8")
def test_a_replay_is_the_same_every_time_and_after_a_restart(
    place: Place, clock: Clock, tenant_id: str, model: Scripted
) -> None:
    with opened(place, clock, model) as wellkept:
        agent = wellkept.agent("sam", tenant_id)
        talk(agent, 9)
        agent.sessions.conversation("s")
        session, whole = agent.sessions.get("s"), agent.sessions.messages("s")
        paged = [
            *agent.sessions.messages("s", limit=7),
            *agent.sessions.messages("s", after=7, limit=7),
            *agent.sessions.messages("s", after=14),
        ]
        assert paged == list(whole)
    with opened(place, clock, model) as wellkept:
        agent = wellkept.agent("sam", tenant_id)
        assert agent.sessions.messages("s") == whole
        assert agent.sessions.get("s") == session
        assert agent.sessions.list() == [session]


def test_every_step_is_in_the_audit_log_without_a_word_of_what_was_said(sam: AgentMemory, summing: Wellkept) -> None:
    sam.sessions.start("s")
    talk(sam, 4, remember=False)
    sam.sessions.conversation("s")
    sam.sessions.delete("s")

    events = summing.tenant(sam.owner.tenant).audit.list(limit=100)
    assert [event.action for event in events] == [
        "session.delete",
        "summary.fold",
        *["turn.add"] * 4,
        "session.add",
    ]
    assert not [event for event in events if "question" in str(event) or "Summary 1" in str(event)]
    assert summing.tenant(sam.owner.tenant).audit.verify().is_intact


def test_the_kind_of_what_is_remembered_is_an_episode(ann: AgentMemory) -> None:
    talk(ann, 1, remember=True)

    assert {memory.kind for memory in ann.list()} == {Kind.EPISODE}
