"""Tell a fresh store everything a person said, then ask in a new session, and count what the prompts show."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from benchmarks.truth.data import MARK, Person, Question
from benchmarks.truth.stores import has_ended, list_all, open_bed
from wellkept import Memory, Settings
from wellkept.api.agent import AgentMemory

WORDINGS = ("natural", "hard")
CHARS_PER_TOKEN = 4
ASKED_AFTER = timedelta(hours=9)

Row = Sequence[str]


@dataclass
class Tally:
    """Counts of one wording over any number of people, by kind of question; and characters beyond the stable block."""

    asked: Counter[str] = field(default_factory=Counter)
    current: Counter[str] = field(default_factory=Counter)
    outdated: Counter[str] = field(default_factory=Counter)
    can_be_outdated: Counter[str] = field(default_factory=Counter)
    alone: Counter[str] = field(default_factory=Counter)
    shown_anyway: int = 0
    characters: int = 0
    noise: int = 0
    misses: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        for name in ("asked", "current", "outdated", "can_be_outdated", "alone"):
            getattr(self, name).update(getattr(other, name))
        self.shown_anyway += other.shown_anyway
        self.characters += other.characters
        self.noise += other.noise


@dataclass
class Result:
    """What one person's store did."""

    person: Person
    tallies: dict[str, Tally]
    ended: Sequence[Memory]
    wrongly_ended: Sequence[Memory]
    milliseconds: float


def measure_person(person: Person, settings: Settings) -> Result:
    """Replay a person's turns at their dates and ask every question in both wordings."""
    moment = [person.turns[0].at]
    with open_bed(settings, lambda: moment[0]) as store:
        agent = store.agent(person.name)
        milliseconds = _tell(agent, person, moment)
        moment[0] = person.turns[-1].at + ASKED_AFTER
        prompts = {wording: _ask(agent, person, wording) for wording in WORDINGS}
        ended = [each for each in list_all(agent) if has_ended(each)]
    every = [set(lines) for asked in prompts.values() for lines in asked]
    stable = set.intersection(*every)
    tallies = {wording: count(person.questions, wording, prompts[wording], stable_lines=stable) for wording in WORDINGS}
    wrong = [each for each in ended if _is_still_true(each.text, person.questions)]
    return Result(person, tallies, ended, wrong, milliseconds)


def _tell(agent: AgentMemory, person: Person, moment: list[datetime]) -> float:
    """Log all turns; return the processor time of one, with everything that the store does in the background."""
    agent.context("Hello", session="warm")  # loads the embedder
    started = time.process_time()
    for turn in person.turns:
        moment[0] = turn.at
        agent.log_turn(turn.session, user=turn.user, assistant=turn.assistant)
    return 1000 * (time.process_time() - started) / len(person.turns)


def _ask(agent: AgentMemory, person: Person, wording: str) -> list[list[str]]:
    return [
        prompt_lines(agent, getattr(question, wording), f"{person.name}-{wording}-{number}")
        for number, question in enumerate(person.questions)
    ]


def prompt_lines(agent: AgentMemory, question: str, session: str) -> list[str]:
    """Return the lines of everything a model is shown with a question, but not the question itself."""
    made = agent.context(question, session=session)
    contents = [str(message["content"]) for message in made.messages]
    if contents and contents[-1].endswith(question):
        contents[-1] = contents[-1].removesuffix(question)
    return [line for content in contents for line in content.splitlines() if line.strip()]


def count(
    questions: Sequence[Question], wording: str, prompts: Sequence[Sequence[str]], *, stable_lines: set[str]
) -> Tally:
    """Count what the prompts of one wording show, each given by its lines."""
    tally = Tally()
    for question, lines in zip(questions, prompts, strict=True):
        kind, asked = question.kind, f"{wording}: {getattr(question, wording)}"
        has_current = any(question.is_current(line) for line in lines)
        old = [line for line in lines if question.is_outdated(line)]
        unmarked = [line for line in old if MARK not in line]
        tally.asked[kind] += 1
        tally.current[kind] += has_current
        tally.can_be_outdated[kind] += bool(question.outdated)
        tally.outdated[kind] += bool(unmarked)
        tally.alone[kind] += has_current and not unmarked
        tally.shown_anyway += kind == "forgotten" and bool(old)
        beyond = [line for line in lines if line not in stable_lines]
        tally.characters += sum(map(len, beyond))
        tally.noise += sum(len(line) for line in beyond if not question.is_current(line))
        if question.current and not has_current:
            tally.misses.append(f"{asked} — not shown: {question.current[0]}")
        tally.misses.extend(f"{asked} — outdated: {line.strip()}" for line in unmarked)
    return tally


def _is_still_true(text: str, questions: Sequence[Question]) -> bool:
    """Tell whether an ended text answers a question about the present and holds nothing outdated."""
    about_now = [each for each in questions if each.kind in {"changed", "unchanged"}]
    return any(each.is_current(text) for each in about_now) and not any(each.is_outdated(text) for each in questions)


def render_people(results: Sequence[Result]) -> Iterator[Row]:
    """Yield the rows of the table: each person and all, in both wordings."""
    total = {wording: Tally() for wording in WORDINGS}
    for result in results:
        for wording in WORDINGS:
            total[wording].add(result.tallies[wording])
            yield _render(result.person.name, wording, result.tallies[wording], [result])
    for wording in WORDINGS:
        yield _render("all", wording, total[wording], results)


def _render(name: str, wording: str, tally: Tally, results: Sequence[Result]) -> Row:
    about_now = ("changed", "unchanged")
    asked = sum(tally.asked.values()) or 1
    ended, wrong = (sum(map(len, found)) for found in ([r.ended for r in results], [r.wrongly_ended for r in results]))
    turns = sum(len(result.person.turns) for result in results) or 1
    milliseconds = sum(result.milliseconds * len(result.person.turns) for result in results) / turns
    return (
        name,
        wording,
        f"{sum(tally.current[kind] for kind in about_now)} of {sum(tally.asked[kind] for kind in about_now)}",
        f"{tally.outdated['changed']} of {tally.can_be_outdated['changed']}",
        f"{tally.alone['changed']} of {tally.asked['changed']}",
        f"{tally.current['past']} of {tally.asked['past']}",
        f"{tally.shown_anyway} of {tally.asked['forgotten']}",
        f"{tally.characters / CHARS_PER_TOKEN / asked:.0f} / {tally.noise / CHARS_PER_TOKEN / asked:.0f}",
        f"{wrong} of {ended}",
        f"{milliseconds:.1f}",
    )


HEADERS = (
    "person",
    "wording",
    "current shown",
    "outdated unmarked",
    "current, nothing outdated",
    "past",
    "forgotten still shown",
    "tokens / noise beyond the stable block",
    "wrong endings",
    "CPU ms a turn",
)
