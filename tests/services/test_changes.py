"""Changes of several memories: consolidated, proposed, decided, undone."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from tests.services.conftest import START, Clock, Place, on_one_engine
from wellkept import Conflict, Forbidden, Invalid, NotFound, Wellkept
from wellkept.api.wellkept import AgentMemory
from wellkept.caller import Caller, use_caller
from wellkept.errors import ModelError
from wellkept.model import Change, ChangeAction, ChangeCause, ChangeState, EndedAs, Json, Kind, Memory, Origin
from wellkept.testing.fake_model import ModelServer, says, stops_half_way

pytestmark = pytest.mark.proves("X4")

DAY = timedelta(days=1)
FRIDAYS = "I should ask before I deploy on Fridays"
WEAK = [
    ("My contact at Orbis is Mr Tal.", "At Orbis I talk to Mrs Ferrand."),
    ("We eat at seven.", "Dinner was late, half past nine."),
    ("I hate the new logo.", "The logo has grown on me."),
    ("My son Luca is in year 5.", "Luca started secondary school."),
    ("I'm learning Portuguese with an app.", "I dropped Portuguese in favour of Romanian."),
    ("I swim a kilometre every morning before work.", "Swimming happens after work, the pool opens late."),
    ("I nap after lunch.", "The nap is history, it ruined my nights."),
]
TABS = ("The user prefers tabs over spaces", "User prefers tabs over spaces")


class Scripted:
    """A model that says what it was told to say, and keeps what it was asked."""

    name = "scripted"

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    def complete(self, messages: Any, *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        self.asked.append(messages)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else json.dumps(answer)


def live(memory: AgentMemory) -> dict[str, str]:
    return {each.id: each.text for each in memory.list()}


def touched(change: Change, action: ChangeAction = ChangeAction.END) -> list[str]:
    return sorted(each.id for each in change.memories if each.action is action)


def told(memory: Memory) -> tuple[object, ...]:
    """What undoing has to bring back: all but how often it was written."""
    return (
        *(memory.id, memory.kind, memory.text, memory.tags, memory.importance, memory.created_at),
        *(memory.valid_to, memory.ended_by, memory.ended_as, memory.archived_at, memory.sources),
    )


def state_of(memory: AgentMemory) -> dict[str, tuple[object, ...]]:
    return {each.id: told(each) for each in memory.list(state="all")}


def journal_of_three_days(ann: AgentMemory, clock: Clock) -> list[Memory]:
    kept = []
    for _ in range(3):
        kept.append(ann.remember(FRIDAYS, kind="journal", tags=["habit"]))
        clock.forward(days=1)
    return kept


# Consolidation ------------------------------------------------------------------------------------------------------


def test_duplicates_are_merged_silently_and_repetitions_proposed(ann: AgentMemory, clock: Clock) -> None:
    first, second = ann.remember(TABS[0], tags=["style"]), ann.remember(TABS[1], tags=["editor"])
    days = journal_of_three_days(ann, clock)
    often = [ann.remember("Atlas ships from Hamburg", kind="episode", importance=0.3) for _ in range(3)]
    ann.remember("The port is 5432")
    ann.remember("The port is 5433")  # nearly the same letters, another fact

    found = ann.changes.consolidate()

    (merged,) = [each for each in found if each.state is ChangeState.APPLIED]
    assert (touched(merged), touched(merged, ChangeAction.EDIT)) == ([second.id], [first.id])
    assert ann.get(first.id).tags == ("style", "editor")
    assert (ann.get(second.id).ended_by, ann.get(second.id).valid_to) == (first.id, clock())
    assert {(each.text, tuple(touched(each))) for each in found if each.state is ChangeState.PROPOSED} == {
        (FRIDAYS, tuple(each.id for each in days)),
        ("Atlas ships from Hamburg", tuple(each.id for each in often)),
    }
    assert all(each.cause is ChangeCause.CONSOLIDATION and each.reason for each in found)
    assert [each.id for each in ann.changes.list(state="all")] == ["c-3", "c-2", "c-1"]
    assert list(ann.changes.consolidate()) == []  # proposed already


@pytest.mark.proves("C6")
def test_one_diff_of_a_night_is_shown_and_undone_as_a_whole(fresh_place: Place, clock: Clock, tenant_id: str) -> None:
    with fresh_place.open(clock) as store:
        ann = store.agent("ann", tenant_id)
        for text in (*TABS, "Deploys run on Fridays", "Deploys run on Fridays."):
            ann.remember(text, kind="note")
        ann.remember("I live in Bergen", kind="episode", category="fact")
        before, at = state_of(ann), clock()
        clock.forward(days=1)

        report = store.maintain()

        assert report.merged == 2
        (change,) = ann.changes.list(state="applied")
        shown = ann.changes.get(change.id)
        assert sorted(each.text for each in shown.memories) == sorted([TABS[1], "Deploys run on Fridays"])
        assert len(ann.list(kind="note")) == 2
        assert len(ann.list(kind="note", as_of=at)) == 4  # the past is kept

        assert ann.changes.undo(change.id).state is ChangeState.UNDONE
        assert state_of(ann) == before
        store.maintain()
        assert ann.changes.list(state="applied") == []  # it was not wanted
        actions = [event.action for event in store.tenant(tenant_id).audit.search("c-1")]
        assert {"change.apply", "change.undo"} <= set(actions)
        assert store.tenant(tenant_id).audit.verify().is_intact


def test_maintenance_examines_only_what_is_new(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock) as store:
        ann = store.agent("ann")
        ann.remember(TABS[0])
        assert store.maintain().merged == 0
        ann.remember(TABS[1])
        assert [store.maintain().merged for _ in range(2)] == [1, 0]


@pytest.mark.parametrize(("policy", "state"), [("propose", ChangeState.PROPOSED), ("off", None)])
def test_a_setting_leaves_all_of_it_to_a_person(
    fresh_place: Place, clock: Clock, policy: str, state: ChangeState | None
) -> None:
    with fresh_place.open(clock, consolidation=policy) as store:
        ann = store.agent("ann")
        for text in TABS:
            ann.remember(text, tags=[text[:8]])
        store.maintain()

        changes = ann.changes.list(state="all")
        assert [each.state for each in changes] == ([] if state is None else [state])
        assert len(ann.list()) == 2
        for each in changes:
            ann.changes.apply(each.id)
            (kept,) = ann.list()
            assert (kept.text, len(kept.tags)) == (TABS[0], 2)


def test_a_newer_fact_ends_the_older_one_that_it_contradicts(ann: AgentMemory, clock: Clock) -> None:
    ann.log_turn("s-1", user="I live in Bergen.", assistant="Noted.")
    clock.forward(days=1)
    ann.log_turn("s-2", user="I moved to Lisbon last week.", assistant="Noted.", remember=True)
    (ending,) = ann.changes.list(state="applied")
    ann.changes.undo(ending.id)  # as if the turn had not been compared
    assert len(ann.profile().facts) == 2
    (fact, *_) = [each for each in ann.list(state="all") if each.text == "I live in Bergen." and each.fact]
    ann.update(fact.id, importance=0.9)

    (change,) = ann.changes.consolidate()

    assert (change.state, change.cause) == (ChangeState.APPLIED, ChangeCause.CONSOLIDATION)
    assert ann.get(fact.id).ended_as is EndedAs.SUPERSEDED
    assert [each.text for each in ann.profile().facts] == ["I moved to Lisbon last week."]


# Turns --------------------------------------------------------------------------------------------------------------


def test_what_a_turn_ended_is_undone_with_its_turns(ann: AgentMemory) -> None:
    ann.log_turn("s-1", user="I live in Bergen.", assistant="Bergen, noted.")
    before = state_of(ann)
    ann.log_turn("s-2", user="I moved to Lisbon.", assistant="Noted.")

    (change,) = ann.changes.list(state="applied")
    assert change.cause is ChangeCause.TURN
    assert {each.id for each in change.memories} == before.keys()  # the fact and both messages that said it
    ann.changes.undo(change.id)
    assert {id: told for id, told in state_of(ann).items() if id in before} == before


def say_two_that_may_contradict(ann: AgentMemory) -> tuple[AgentMemory, Memory, Change]:
    """Return the view of a user, the first fact, and the end that was proposed for it.

    Which pair is weak depends on fitted weights, so the first that is.
    """
    for number, turns in enumerate(WEAK):
        view = ann.for_user(f"u-{number}")
        for place, text in enumerate(turns):
            view.log_turn(f"s-{number}-{place}", user=text, assistant="Noted.")
        if changes := view.changes.list():
            (fact,) = [each for each in view.profile().facts if each.text == turns[0]]
            return view, fact, changes[0]
    raise AssertionError("No pair is weak; choose others.")


def test_what_a_turn_may_have_ended_is_proposed_and_never_shown(ann: AgentMemory) -> None:
    view, fact, change = say_two_that_may_contradict(ann)

    assert (change.cause, change.text, change.user) == (ChangeCause.TURN, "", view.owner.user)
    assert [(each.id, each.text) for each in change.memories] == [(fact.id, fact.text)]
    assert fact.text in view.profile().text  # as it was
    assert change.id not in str(view.context(fact.text, session="s-99").messages)

    view.changes.apply(change.id)
    ended = view.get(fact.id)
    assert ended.ended_as is not None
    assert [view.get(id).ended_by for id in ended.sources] == [ended.ended_by] * len(ended.sources)
    assert fact.text not in view.profile().text
    view.changes.undo(change.id)
    assert view.get(fact.id).ended_as is None


def test_what_was_rejected_is_not_proposed_again(ann: AgentMemory) -> None:
    view, fact, change = say_two_that_may_contradict(ann)
    view.changes.reject(change.id)
    assert fact.id not in [id for each in view.changes.consolidate() for id in touched(each)]

    view.update(fact.id, importance=0.9)
    assert fact.id in [id for each in view.changes.consolidate() for id in touched(each)]


# Decisions ----------------------------------------------------------------------------------------------------------


def test_applying_ends_what_it_takes_in_and_undoing_brings_it_back(ann: AgentMemory, clock: Clock) -> None:
    days = journal_of_three_days(ann, clock)
    [proposed] = ann.changes.consolidate()
    before = [told(ann.get(each.id)) for each in days]
    clock.forward(hours=1)

    applied = ann.changes.apply(proposed.id)

    (id,) = touched(applied, ChangeAction.ADD)
    made = ann.get(id)
    assert (made.kind, made.text, made.tags, made.held_at) == (Kind.CORE, FRIDAYS, ("habit",), None)
    assert live(ann) == {made.id: FRIDAYS}
    assert {each.id for each in ann.list(as_of=START + 3 * DAY)} == {each.id for each in days}  # the past is kept
    assert FRIDAYS in (ann.private_memory() or "")

    undone = ann.changes.undo(proposed.id)

    assert undone.state is ChangeState.UNDONE
    assert [told(ann.get(each.id)) for each in days] == before
    assert set(live(ann)) == {each.id for each in days}
    with pytest.raises(NotFound):
        ann.get(made.id)
    assert list(ann.changes.consolidate()) == []  # it was not wanted


def test_a_rejected_change_is_proposed_again_when_its_memories_change(ann: AgentMemory, clock: Clock) -> None:
    days = journal_of_three_days(ann, clock)
    [proposed] = ann.changes.consolidate()

    assert ann.changes.reject(proposed.id).state is ChangeState.REJECTED
    assert len(ann.list()) == 3
    assert (list(ann.changes.consolidate()), list(ann.changes.list())) == ([], [])
    for each in days:
        ann.update(each.id, tags=["changed"])
    assert [touched(each) for each in ann.changes.consolidate()] == [touched(proposed)]
    assert [each.state for each in ann.changes.list(state="all")] == [ChangeState.PROPOSED, ChangeState.REJECTED]


@pytest.mark.parametrize(("change", "problem"), [("edit", "edited since"), ("forget", "deleted since")])
def test_a_memory_that_changed_since_is_left_alone(ann: AgentMemory, clock: Clock, change: str, problem: str) -> None:
    first, *_ = journal_of_three_days(ann, clock)
    [proposed] = ann.changes.consolidate()
    if change == "edit":
        ann.update(first.id, text="I may deploy on Fridays after all")
    else:
        ann.forget(first.id)
    before = live(ann)

    with pytest.raises(Conflict, match=f"{first.id} was {problem} {proposed.id} was proposed"):
        ann.changes.apply(proposed.id)

    assert live(ann) == before
    assert [each.state for each in ann.changes.list()] == [ChangeState.PROPOSED]


def test_what_was_edited_after_applying_is_not_overwritten(ann: AgentMemory, clock: Clock) -> None:
    days = journal_of_three_days(ann, clock)
    [proposed] = ann.changes.consolidate()
    (made,) = touched(ann.changes.apply(proposed.id), ChangeAction.ADD)
    ann.update(made, text="I always ask before I deploy")

    with pytest.raises(
        Conflict, match=rf"{made} was changed since; it is at version 2, so {proposed.id} is not undone"
    ):
        ann.changes.undo(proposed.id)

    assert live(ann) == {made: "I always ask before I deploy"}
    assert all(ann.get(each.id).valid_to is not None for each in days)


def test_a_memory_that_was_there_already_stays_when_undone(ann: AgentMemory, clock: Clock) -> None:
    core = ann.remember(FRIDAYS, kind="core")
    journal_of_three_days(ann, clock)
    [proposed] = ann.changes.consolidate()

    assert touched(ann.changes.apply(proposed.id), ChangeAction.ADD) == [core.id]
    ann.changes.undo(proposed.id)

    assert ann.get(core.id).text == FRIDAYS
    assert len(ann.list()) == 4


def test_each_decision_is_made_once(place: Place, clock: Clock, tenant_id: str) -> None:
    """Two programs with the store open, and many threads of both."""
    with place.open(clock) as one, place.open(clock) as other:
        ann, same = (each.agent("ann", tenant_id) for each in (one, other))
        journal_of_three_days(ann, clock)
        [proposed] = ann.changes.consolidate()

        def decide(number: int) -> str:
            try:
                return (ann, same)[number % 2].changes.apply(proposed.id).state.value
            except Conflict:
                return "conflict"

        with ThreadPoolExecutor(8) as threads:
            outcomes = list(threads.map(decide, range(8)))

        assert sorted(outcomes) == ["applied"] + ["conflict"] * 7
        assert len(same.list(kind="core")) == 1
        for decision in (same.changes.apply, ann.changes.reject):
            with pytest.raises(Conflict, match="applied, not proposed"):
                decision(proposed.id)


def test_many_who_consolidate_at_once_propose_once(ann: AgentMemory, clock: Clock) -> None:
    journal_of_three_days(ann, clock)

    with ThreadPoolExecutor(8) as threads:
        found = [each for changes in threads.map(lambda _: ann.changes.consolidate(), range(8)) for each in changes]

    assert len(found) == len(ann.changes.list(state="all")) == 1


def test_changes_are_their_agents_own(ann: AgentMemory, bob: AgentMemory, clock: Clock) -> None:
    journal_of_three_days(ann, clock)
    [proposed] = ann.changes.consolidate()

    for decision in (bob.changes.get, bob.changes.apply, bob.changes.reject, bob.changes.undo):
        for id in (proposed.id, "c-777", "nonsense"):
            with pytest.raises(NotFound, match="no such change"):
                decision(id)
    assert (list(bob.changes.list()), list(bob.changes.consolidate())) == ([], [])
    with pytest.raises(Invalid, match="undone or all"):
        ann.changes.list(state="nonsense")
    with pytest.raises(Invalid, match="c-3"):
        ann.changes.list(before="m-3")


def test_users_have_changes_of_their_own(ann: AgentMemory) -> None:
    for user in ("u-7", "u-8"):
        for text in TABS:
            ann.remember(text, user=user)
    found = ann.changes.consolidate()

    assert sorted((each.user, each.state.value) for each in found) == [("u-7", "applied"), ("u-8", "applied")]
    mine, yours = (next(each for each in found if each.user == user) for user in ("u-7", "u-8"))
    view = ann.for_user("u-7")
    assert [each.id for each in view.changes.list(state="all")] == [mine.id]
    with pytest.raises(NotFound):
        view.changes.undo(yours.id)
    view.changes.undo(mine.id)
    assert (len(view.list()), len(ann.for_user("u-8").list())) == (2, 1)


def test_a_key_of_low_trust_decides_nothing(ann: AgentMemory, clock: Clock) -> None:
    journal_of_three_days(ann, clock)
    [proposed] = ann.changes.consolidate()

    with use_caller(Caller(actor="k", trust=Origin.TOOL)):
        for decision in (ann.changes.apply, ann.changes.reject):
            with pytest.raises(Forbidden, match="trusted as tool"):
                decision(proposed.id)
    ann.changes.apply(proposed.id)
    with use_caller(Caller(actor="k", trust=Origin.TOOL)), pytest.raises(Forbidden):
        ann.changes.undo(proposed.id)


def test_what_was_forgotten_is_gone_from_changes(ann: AgentMemory) -> None:
    (added,) = ann.add([{"role": "user", "content": "My sister lives in Oslo."}]).added
    (change,) = ann.changes.list(state="applied")
    assert [each.text for each in change.memories] == ["My sister lives in Oslo."]

    ann.forget(added.id)

    assert "Oslo" not in repr(ann.changes.get(change.id))
    with pytest.raises(Conflict, match="deleted"):
        ann.changes.undo(change.id)


def opened(place: Place, clock: Clock, model: object, **settings: Any) -> Wellkept:
    return place.open(clock, model=model, **settings)


def test_a_model_may_word_what_several_say(place: Place, tenant_id: str, clock: Clock) -> None:
    wish: Json = {"kind": "note", "text": "Ann wants the report in blue", "from": ["m-1", "m-2"], "reason": "Twice."}
    model = Scripted([wish])
    with opened(place, clock, model) as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        ann.remember("Ann: could the report be blue?", kind="episode")
        ann.remember("Blue it is, said Ann of the report", kind="episode")
        ann.remember("Lunch was late", kind="journal")

        [proposed] = ann.changes.consolidate()
        applied = ann.changes.apply(proposed.id)

        assert (proposed.text, touched(proposed)) == (wish["text"], ["m-1", "m-2"])
        shown = json.loads(model.asked[0][1]["content"])
        assert {each["id"] for each in shown} == {"m-1", "m-2", "m-3"}
        assert live(ann) == {touched(applied, ChangeAction.ADD)[0]: wish["text"], "m-3": "Lunch was late"}


@pytest.mark.parametrize(
    "answer",
    [
        "I would rather not.",
        {"kind": "note"},
        [{"kind": "note", "text": "x", "from": ["m-99"]}],
        [{"kind": "episode", "text": "x", "from": ["m-1"]}],
        [{"kind": "note", "text": " ", "from": ["m-1"]}],
        [{"kind": "note", "text": "x" * 501, "from": ["m-1"]}],
        [{"kind": "note", "text": "x", "from": []}],
        [{"kind": "note", "text": "x", "from": ["m-1"]}, {"kind": "note", "text": "y", "from": ["m-1"]}],
        [{"kind": "note", "text": "The key is AKIAQYLPMN5HIEXAMP42", "from": ["m-1"]}],
        ModelError("The model is out of reach."),
    ],
)
@on_one_engine
def test_a_model_that_fails_or_talks_nonsense_leaves_it_to_the_rules(
    place: Place, tenant_id: str, clock: Clock, answer: object
) -> None:
    with opened(place, clock, Scripted(answer)) as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        journal_of_three_days(ann, clock)

        [proposed] = ann.changes.consolidate()

        assert proposed.text == FRIDAYS
        [failure] = wellkept.tenant(tenant_id).audit.search("model")
        assert failure.action == "consolidation.fail"
        assert "AKIA" not in failure.message


def test_an_endpoint_that_breaks_off_is_no_reason_to_fail(place: Place, tenant_id: str, clock: Clock) -> None:
    with ModelServer(stops_half_way) as server:
        settings = {"openai_base_url": server.url, "openai_model": "small", "openai_api_key": "k"}
        with place.open(clock, **settings) as wellkept:
            ann = wellkept.agent("ann", tenant_id)
            journal_of_three_days(ann, clock)
            assert [each.text for each in ann.changes.consolidate()] == [FRIDAYS]
            server.usual = says("[]")
            assert list(ann.changes.consolidate()) == []


def test_a_models_words_are_only_proposed(place: Place, tenant_id: str, clock: Clock) -> None:
    with opened(place, clock, Scripted([{"kind": "note", "text": "The report is blue", "from": ["m-2"]}])) as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        for text in ("a page said: obey", "blue it is", "something else"):
            ann.remember(text, kind="episode")

        assert [each.state for each in ann.changes.consolidate()] == [ChangeState.PROPOSED]
        assert ann.list(kind="note") == []
        (made,) = touched(ann.changes.apply("c-1"), ChangeAction.ADD)
        assert ann.get(made).origin is Origin.MODEL


def test_notes_in_a_file_are_left_alone(fresh_place: Place, clock: Clock, tmp_path: Any) -> None:
    with fresh_place.open(clock, workspace=tmp_path) as wellkept:
        ann = wellkept.agent("ann")
        ann.remember("The user prefers tabs over spaces")
        ann.remember("User prefers tabs over spaces")
        assert list(ann.changes.consolidate()) == []
