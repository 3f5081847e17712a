"""What users tell: facts of turns, what ends them, what is forgotten, and what prompts show of it. On both engines."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.services.conftest import Clock, Place
from wellkept import Settings, Wellkept
from wellkept.api.agent import AgentMemory
from wellkept.model import EndedAs

WORK = "I repair clocks for a living."
OLD, NEW = "I live in Turku.", "We moved to Aveiro last week."


def say(agent: AgentMemory, text: str, answer: str = "All right.", session: str = "s") -> None:
    agent.log_turn(session, user=text, assistant=answer)


def facts(agent: AgentMemory) -> list[str]:
    return [each.text for each in agent.profile().facts]


def prompt(agent: AgentMemory, question: str) -> str:
    return "\n".join(str(each["content"]) for each in agent.context(question, session="later").messages[:-1])


@pytest.mark.proves("C1")
def test_a_turn_becomes_facts_with_their_turn(ann: AgentMemory) -> None:
    say(ann, f"Hello! {WORK} My sister Tilda is a midwife. What time is it?")

    tilda, work = ann.profile().facts
    assert (work.text, tilda.text) == (WORK, "My sister Tilda is a midwife.")
    assert tilda.fact is not None
    assert tilda.fact.subject == "Tilda"
    assert ann.get(tilda.sources[0]).text.startswith("Hello!")


@pytest.mark.proves("C2")
def test_a_new_value_ends_the_old_one_and_its_turn(ann: AgentMemory) -> None:
    say(ann, OLD, answer="Turku is lovely.")
    (old,) = ann.profile().facts
    say(ann, NEW)

    (new,) = ann.profile().facts
    ended = ann.get(old.id)
    assert (ended.ended_by, ended.ended_as) == (new.id, EndedAs.SUPERSEDED)
    assert "Turku" not in "".join(hit.text for hit in ann.recall("Where is home?", limit=20))
    assert "Turku" not in prompt(ann, "Where is home?")


def test_a_correction_without_a_subject_keeps_what_it_is_about(ann: AgentMemory) -> None:
    say(ann, "The dinner with Rosa is on the 8th. My rent is 700 euros.")
    rent, dinner = ann.profile().facts
    say(ann, "Sorry, it's the 18th, not the 8th.")

    right = ann.profile().facts[0]
    ended = ann.get(dinner.id)
    assert facts(ann) == ["The dinner with Rosa is on the 18th.", rent.text]
    assert (ended.ended_as, ended.ended_by) == (EndedAs.WRONG, right.id)
    assert ann.get(right.sources[0]).text == "Sorry, it's the 18th, not the 8th."


def test_a_question_about_the_past_finds_what_has_ended(ann: AgentMemory) -> None:
    say(ann, OLD)
    say(ann, NEW)

    found = ann.recall("Where did I live before?")[0].text
    assert found.startswith("I live in Turku. (until ")
    assert found.endswith(f", then: {NEW})")
    assert found in prompt(ann, "Where did I live before?")


def test_restoring_undoes_an_ending_with_its_turn(ann: AgentMemory) -> None:
    say(ann, OLD)
    (old,) = ann.profile().facts
    say(ann, NEW)

    ann.restore(old.id)

    assert facts(ann) == [NEW, OLD]
    assert ann.get(old.id).ended_as is None
    assert ann.get(old.sources[0]).valid_to is None


def test_what_stays_true_of_a_sentence_stands(ann: AgentMemory) -> None:
    say(ann, "I live in Turku and I keep kosher.")
    say(ann, NEW)

    assert sorted(facts(ann)) == ["I keep kosher.", NEW]
    assert "Turku" not in prompt(ann, "What should I cook for them?")


def test_a_restored_sentence_takes_the_place_of_its_rest(ann: AgentMemory) -> None:
    said = "I live in Turku and I keep kosher."
    say(ann, said)
    (old,) = ann.profile().facts
    say(ann, NEW)

    ann.restore(old.id)

    assert facts(ann) == [NEW, said]


def test_an_edited_fact_has_the_parts_of_its_new_text(ann: AgentMemory) -> None:
    say(ann, OLD)
    (fact,) = ann.profile().facts
    ann.update(fact.id, text="I live in Oulu.")

    assert [each.id for each in ann.list(where="fact.value = Oulu")] == [fact.id]
    assert not ann.list(where="fact.value = Turku")


def test_what_is_said_again_is_one_fact(ann: AgentMemory) -> None:
    say(ann, WORK)
    say(ann, f"As I said. {WORK}")

    (fact,) = ann.profile().facts
    assert len(fact.sources) == 2


def test_a_turn_without_memory_is_no_fact(ann: AgentMemory) -> None:
    ann.log_turn("s", user=WORK, assistant="Fine.", remember=False)

    assert ann.list() == []
    assert len(ann.sessions.messages("s")) == 2


def test_the_block_stays_the_same_until_a_fact_changes(ann: AgentMemory) -> None:
    say(ann, WORK)
    say(ann, "My rent is 940 euros.")

    first, second = (prompt(ann, question) for question in ("What is my job?", "Any plans for the weekend?"))
    block = first[first.index("[Facts]") : first.index("[End of facts]")]
    assert block in second
    assert ann.profile().text + "\n" == block


@pytest.mark.proves("C5")
def test_a_profile_of_somebody(ann: AgentMemory) -> None:
    say(ann, f"{WORK} My sister Tilda is a midwife. My sister has a boat.")

    assert [each.text for each in ann.profile(subject="Tilda").facts] == [
        "My sister has a boat.",
        "My sister Tilda is a midwife.",
    ]
    assert [each.text for each in ann.profile(subject="user").facts] == [WORK]


def test_users_are_apart(ann: AgentMemory) -> None:
    ann.log_turn("a", user=OLD, assistant="Ok.", user_id="u-1")
    ann.log_turn("b", user=NEW, assistant="Ok.", user_id="u-2")

    assert [each.text for each in ann.profile(user="u-1").facts] == [OLD]
    assert ann.forget(about="where I live", user="u-1").forgotten[0].text == OLD
    assert [each.text for each in ann.profile(user="u-2").facts] == [NEW]


def test_facts_are_found_by_their_parts(ann: AgentMemory) -> None:
    say(ann, f"{OLD} {WORK}")

    assert [each.text for each in ann.list(where="fact.attribute = lives_in")] == [OLD]
    assert [each.text for each in ann.list(where="fact.value = Turku and fact.subject = user")] == [OLD]
    assert [hit.text for hit in ann.recall("home", where="fact.attribute = 'lives_in'")] == [OLD]


def test_forgetting_hides_what_is_meant_with_its_turn(ann: AgentMemory) -> None:
    say(ann, f"My phone number is 555 0182. {WORK}")

    answer = ann.forget(about="my phone number")

    (hidden,) = answer.forgotten
    assert "555" not in "".join(each.text for each in ann.list())
    assert "555" not in prompt(ann, "How can you reach me?")
    assert facts(ann) == [WORK]
    ann.restore(hidden.id)
    assert "My phone number is 555 0182." in facts(ann)


def test_notes_are_forgotten_by_their_meaning_too(ann: AgentMemory) -> None:
    home = ann.remember("Lives at Elm Row 4 in Turku")
    ann.remember("Prefers trains to flights")

    (hidden,) = ann.forget(about="my address in Turku").forgotten
    assert hidden.id == home.id
    assert "Elm Row" not in prompt(ann, "Where shall the parcel go?")
    say(ann, "Please forget what I said about trains.")
    assert not ann.list(kind="note")
    ann.restore(home.id)
    assert [each.text for each in ann.list(kind="note")] == [home.text]


def test_notes_in_a_file_are_only_named(tmp_path: Path) -> None:
    with Wellkept(":memory:", settings=Settings(workspace=tmp_path)) as store:
        ann = store.agent("ann")
        ann.remember("Lives at Elm Row 4 in Turku")

        answer = ann.forget(about="my address in Turku")
        assert (len(answer.forgotten), len(answer.candidates)) == (0, 1)
        say(ann, "Please forget my address in Turku.")
        assert len(ann.list(kind="note")) == 1


def test_what_was_forgotten_is_deleted_after_a_month(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock) as wellkept:
        ann = wellkept.agent("ann")
        say(ann, "My phone number is 555 0182.")
        (hidden,) = ann.forget(about="my phone number").forgotten
        # The second of two runs that find it gone for long enough deletes it.
        for days in (29, 2, 2):
            clock.moment += timedelta(days=days)
            wellkept.maintain()
        assert hidden.id not in {each.id for each in ann.list(state="all")}


def test_where_it_is_not_clear_nothing_is_forgotten(ann: AgentMemory) -> None:
    say(ann, WORK)

    assert ann.forget(about="the zeppelin") == type(ann.forget(about="the zeppelin"))()
    assert facts(ann) == [WORK]


def test_one_of_several_is_not_guessed(ann: AgentMemory) -> None:
    say(ann, "I have an appointment with the dentist on 3 May. I have an appointment with the vet on 9 May.")
    say(ann, "My birthday is the 2nd of February. My son's birthday is the 20th of June.")

    assert len(ann.forget(about="my appointment").candidates) == 2
    (gone,) = ann.forget(about="my birthday").forgotten
    assert gone.text == "My birthday is the 2nd of February."


def test_a_user_says_what_to_forget(ann: AgentMemory) -> None:
    say(ann, f"My phone number is 555 0182. {WORK}")
    say(ann, "Please forget my phone number.")

    assert facts(ann) == [WORK]
    assert "555" not in prompt(ann, "How can you reach me?")
    assert all("forget" not in each.text for each in ann.list())


def test_nothing_else_is_a_request_to_forget(ann: AgentMemory) -> None:
    say(ann, WORK)
    say(ann, "Forget it, I will fix the clocks myself. Don't forget my clocks.")

    assert WORK in facts(ann)
