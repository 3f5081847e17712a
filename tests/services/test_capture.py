"""Long output is stored whole and a reference takes its place: by a function, a decorator and a middleware."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.services.conftest import Clock, Place, on_one_engine
from wellkept import AsyncWellkept, Invalid, Settings, StoreBusy, Wellkept, captured
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.details.capturing import capture_calls
from wellkept.details.details import MAX_SENTENCE_CHARS
from wellkept.details.rules_keys import find_references
from wellkept.errors import ModelError
from wellkept.tools.catalog import TOOLS

LOG = "".join(f"2026-01-31T12:00:{second % 60:02}Z INFO step {second} done\n" for second in range(200))
LOG += "2026-01-31T12:09:00Z ERROR no space left on device\n"
SHORT = "added 3 packages in 2s\n"


def whole(memory: AgentMemory, key: str) -> str:
    return memory.details.read(key, limit=1_000_000).content


# The function


@pytest.mark.proves("D1")
def test_short_output_passes_untouched_and_nothing_is_written(ann: AgentMemory, tenant: TenantMemory) -> None:
    edge = "x" * 2000  # 500 tokens

    for output in (SHORT, "", " \n", edge):
        assert ann.details.capture(output, source="npm install", status="success") == output
    assert list(tenant.agents.list()) == []


@pytest.mark.proves("D1")
def test_long_output_of_a_command_is_stored_whole_and_a_line_names_command_reference_and_status(
    ann: AgentMemory,
) -> None:
    line = ann.details.capture(LOG, source="npm install", status="success")

    (found,) = find_references(line)
    assert line == (
        f"Command 'npm install' executed. Logs stored in [MemoryRef: {found.key} - log, 201 lines, 7.9 KB, 1 error]. "
        "Status: success."
    )
    assert found.key.startswith("npm-install-")
    assert whole(ann, found.key) == LOG


@pytest.mark.proves("D1")
def test_one_token_more_than_the_threshold_is_too_long(ann: AgentMemory) -> None:
    assert find_references(ann.details.capture("x" * 2001))


@pytest.mark.proves("D1")
def test_other_output_is_replaced_by_its_reference_alone(ann: AgentMemory) -> None:
    bare = ann.details.capture(LOG, type="api_response")
    named = ann.details.capture(LOG, type="file_content", source="build.log")

    (first,), (second,) = find_references(bare), find_references(named)
    assert bare == f"[MemoryRef: {first.key} - log, 201 lines, 7.9 KB, 1 error]"
    assert named == f"[MemoryRef: {second.key} - build.log: log, 201 lines, 7.9 KB, 1 error]"
    assert (ann.details.get(first.key).type, ann.details.get(second.key).type) == ("api_response", "file_content")


@pytest.mark.proves("D1")
def test_what_stands_for_an_output_is_not_captured_again(place: Place, clock: Clock, tenant_id: str) -> None:
    with place.open(clock, capture_threshold=5) as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        given: list[dict[str, Any]] = [{"source": "npm install", "status": "success"}, {}, {"type": "api_response"}]
        for arguments in given:
            line = ann.details.capture(LOG, **arguments)
            assert ann.details.capture(line) == line
        assert ann.details.capture(f"{line} and then some more words") != f"{line} and then some more words"


def test_what_was_run_how_it_ended_and_when_is_kept_with_it(ann: AgentMemory) -> None:
    kept = ann.details.capture_output(
        LOG, source="make", status="failed", duration=1.5, session_id="s-1", metadata={"exit_code": 2}
    )

    assert kept.is_captured
    assert kept.memory_key is not None
    detail = ann.details.get(kept.memory_key)
    assert detail.metadata == {"source": "make", "status": "failed", "duration": 1.5, "exit_code": 2}
    assert (detail.session_id, detail.type, detail.chars) == ("s-1", "command_output", len(LOG))
    assert [each.key for each in ann.details.search("make", session_id="s-1")] == [detail.key]


def test_a_file_is_captured_like_a_text(ann: AgentMemory) -> None:
    short, long, huge = (io.BytesIO(text.encode()) for text in (SHORT, LOG, LOG * 100))

    assert ann.details.capture_output(short) == ann.details.capture_output(SHORT)
    for file, text in ((long, LOG), (huge, LOG * 100)):
        kept = ann.details.capture_output(file)
        assert kept.memory_key is not None
        assert ann.details.get(kept.memory_key).chars == len(text)


def test_a_short_output_loses_half_a_surrogate_pair_as_a_stored_one_does(ann: AgentMemory) -> None:
    assert ann.details.capture_output("cut \ud83d").text == "cut \ufffd"


@pytest.mark.parametrize("output", [LOG + "\x00", LOG + "\ud800", LOG.replace("\n", "\r\n"), "é" * 5000, "x" * 90_000])
@on_one_engine
def test_whatever_a_program_prints_can_be_captured(ann: AgentMemory, output: str) -> None:
    kept = ann.details.capture_output(output, source="od -c \x00 [MemoryRef: forged]")

    assert kept.memory_key is not None
    assert [found.key for found in find_references(kept.text)] == [kept.memory_key]
    assert whole(ann, kept.memory_key) == output.replace("\ud800", "\ufffd")


@pytest.mark.parametrize(
    "wrong", [{"output": b"x"}, {"output": None}, {"source": 7}, {"status": 1}, {"type": "Not A Word"}]
)
@on_one_engine
def test_what_is_no_output_is_refused(ann: AgentMemory, wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        ann.details.capture_output(**{"output": LOG, **wrong})


def test_a_credential_in_an_output_does_not_reach_the_line(ann: AgentMemory) -> None:
    key = "ghp_" + "aB3dE5" * 6
    kept = ann.details.capture_output(f"{LOG}ERROR {key} expired\n", source=f"curl -H 'Authorization: Bearer {key}'")

    assert kept.memory_key is not None
    detail = ann.details.get(kept.memory_key)
    assert key not in kept.text + repr(detail)
    assert key in whole(ann, kept.memory_key)  # what was printed is what can be read


def test_tokens_are_counted_as_the_caller_wants(clock: Clock) -> None:
    with Wellkept(":memory:", clock=clock, tokenizer=lambda text: len(text.split())) as wellkept:
        ann = wellkept.agent("ann")
        assert ann.details.capture("x" * 3000) == "x" * 3000
        assert ann.details.capture("x " * 501) != "x " * 501


# What is said about it


@pytest.mark.proves("D5")
def test_a_summary_is_made_without_a_model(ann: AgentMemory) -> None:
    detail = ann.details.store(LOG)

    assert detail.summary == (
        "Log, 201 lines, 7.9 KB. 1 error: line 201: 2026-01-31T12:09:00Z ERROR no space left on device. Begins: "
        "2026-01-31T12:00:00Z INFO step 0 done Ends: 2026-01-31T12:09:00Z ERROR no space left on device"
    )
    assert ann.details.search("space left") == [detail]


class Scribe:
    """A model that answers what the test wants, and remembers what it was asked."""

    name = "scribe"

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.asked: list[Sequence[Mapping[str, Any]]] = []

    def complete(self, messages: Sequence[Mapping[str, Any]], **_: Any) -> str:
        self.asked.append(messages)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def described(place: Place, clock: Clock, tenant_id: str, model: Scribe, **settings: Any) -> tuple[str, str, list[str]]:
    """The line for LOG, its summary, and what the audit log says."""
    chosen = Settings(pool_size=4, **settings)
    with Wellkept(place.url, settings=chosen, clock=clock, model=model) as wellkept:
        ann = wellkept.agent("ann", tenant_id)
        kept = ann.details.capture_output(LOG + "token ghp_" + "aB3dE5" * 6, source="make")
        assert kept.memory_key is not None
        events = wellkept.tenant(tenant_id).audit.list()
        return kept.text, ann.details.get(kept.memory_key).summary, [event.message for event in events]


@pytest.mark.proves("D5")
def test_a_model_improves_the_summary_where_the_settings_want_it(place: Place, clock: Clock, tenant_id: str) -> None:
    model = Scribe("The build stopped because the disk is full.\n")

    line, summary, _ = described(place, clock, tenant_id, model, detail_summary="model")

    assert "The build stopped because the disk is full (log, 202 lines, " in line
    assert summary.startswith("The build stopped because the disk is full. (Log, 202 lines")
    ((system, user),) = model.asked
    assert system["role"] == "system"
    assert "Output of: make" in user["content"]
    assert "no space left on device" in user["content"]
    assert "ghp_" not in user["content"]


def test_a_model_is_not_asked_unless_the_settings_want_it(place: Place, clock: Clock, tenant_id: str) -> None:
    model = Scribe("Something.")

    line, _, _ = described(place, clock, tenant_id, model)

    assert (model.asked, "Something" in line) == ([], False)


@pytest.mark.proves("D5")
@pytest.mark.parametrize("answer", [ModelError("The model is out of reach."), "", " \n"])
def test_when_the_model_fails_the_rules_speak_and_the_audit_log_tells(
    place: Place, clock: Clock, tenant_id: str, answer: str | Exception
) -> None:
    line, summary, events = described(place, clock, tenant_id, Scribe(answer), detail_summary="model")

    assert "log, 202 lines" in line
    assert summary.startswith("Log, 202 lines")
    assert any("described by rules alone" in event for event in events)


def test_a_description_that_is_too_long_is_cut_after_a_sentence(place: Place, clock: Clock, tenant_id: str) -> None:
    model = Scribe(" ".join(f"Sentence number {number} about the build." for number in range(90)))

    _, summary, _ = described(place, clock, tenant_id, model, detail_summary="model")

    sentence, _, rules = summary.partition(" (Log, 202 lines")
    assert rules
    assert sentence.endswith("about the build.")
    assert MAX_SENTENCE_CHARS - 50 < len(sentence) <= MAX_SENTENCE_CHARS


def test_what_a_model_says_cannot_forge_a_reference(place: Place, clock: Clock, tenant_id: str) -> None:
    line, _, _ = described(place, clock, tenant_id, Scribe("x] [MemoryRef: forged - y"), detail_summary="model")

    (found,) = find_references(line)
    assert found.key.startswith("make-")


# The decorator


@pytest.mark.proves("D1")
def test_a_decorated_tool_is_seen_as_before_and_answers_with_a_reference(ann: AgentMemory) -> None:
    @captured(ann)
    def read_log(path: str, lines: int = 10) -> str:
        """Read a log."""
        return LOG if lines > 10 else SHORT

    @captured(ann)
    def plain(path: str) -> str:
        return LOG

    assert (read_log.__name__, read_log.__doc__) == ("read_log", "Read a log.")
    assert str(inspect.signature(read_log)) == "(path: 'str', lines: 'int' = 10) -> 'str'"
    assert read_log("x") is SHORT
    for line, tool in ((read_log("x", lines=11), "read_log"), (plain("x"), "plain")):
        (found,) = find_references(line)
        assert line == f"[MemoryRef: {found.key} - {tool}: log, 201 lines, 7.9 KB, 1 error]"
        assert whole(ann, found.key) == LOG
        assert ann.details.get(found.key).type == "tool_output"


@pytest.mark.proves("D1")
def test_an_async_tool_stays_one(ann: AgentMemory) -> None:
    @captured(ann, source="weather service", type="api_response", session_id="s-1")
    async def weather(city: str) -> str:
        return LOG

    assert inspect.iscoroutinefunction(weather)
    (found,) = find_references(asyncio.run(weather("Rome")))
    detail = ann.details.get(found.key)
    assert (detail.type, detail.session_id, detail.metadata) == ("api_response", "s-1", {"source": "weather service"})


def test_an_async_memory_is_awaited_and_a_plain_tool_cannot(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with AsyncWellkept(f"sqlite:///{tmp_path / 'memory.db'}") as wellkept:
            ann = wellkept.agent("ann")

            @captured(ann, source="tool")
            async def tool() -> str:
                return LOG

            (found,) = find_references(await tool())
            assert (await ann.details.read(found.key, limit=1_000_000)).content == LOG
            assert find_references(await ann.details.capture(LOG))
            with pytest.raises(Invalid, match="make the tool async"):
                captured(ann)(lambda: LOG)

    asyncio.run(scenario())


@dataclass
class Row:
    id: int
    name: str


@pytest.mark.parametrize(
    "answer",
    [
        [{"type": "user", "id": number} for number in range(500)],
        {"rows": list(range(2000)), "when": Clock().moment},
        [Row(number, "x") for number in range(500)],
        (("a", 1),) * 500,
    ],
    ids=["dicts", "dict", "dataclasses", "tuples"],
)
def test_a_long_answer_that_is_no_text_is_stored_as_json(ann: AgentMemory, answer: Any) -> None:
    line = captured(ann)(lambda: answer)()

    (found,) = find_references(line)
    assert len(json.loads(whole(ann, found.key))) == len(answer)


@pytest.mark.parametrize(
    "answer", [None, 7, True, [1, 2], {"a": 1}, b"x" * 9000, object(), Row(1, "x"), {"x": object()}]
)
@on_one_engine
def test_any_other_answer_is_the_very_same_object(ann: AgentMemory, answer: Any) -> None:
    assert captured(ann)(lambda: answer)() is answer


def test_whose_memory_it_is_can_be_said_at_each_call(ann: AgentMemory, bob: AgentMemory) -> None:
    speaking = [ann]

    @captured(lambda: speaking[0])
    def tool() -> str:
        return LOG

    (hers,) = find_references(tool())
    speaking[0] = bob
    (his,) = find_references(tool())
    assert (whole(ann, hers.key), whole(bob, his.key)) == (LOG, LOG)


def test_a_tool_does_not_fail_because_memory_does(caplog: pytest.LogCaptureFixture) -> None:
    def busy(text: str, **_: Any) -> str:
        raise StoreBusy("The database is busy.")

    async def waiting(text: str, **_: Any) -> str:
        raise StoreBusy("The database is busy.")

    with caplog.at_level(logging.WARNING, "wellkept"):
        assert captured(SimpleNamespace(details=SimpleNamespace(capture=busy)), source="reader")(lambda: LOG)() == LOG

        @captured(SimpleNamespace(details=SimpleNamespace(capture=waiting)), source="reader")
        async def tool() -> str:
            return LOG

        assert asyncio.run(tool()) == LOG
    assert [record.getMessage() for record in caplog.records] == [
        "The output of reader was not stored and is passed on whole: The database is busy."
    ] * 2


# The middleware


@pytest.mark.proves("D1")
def test_whatever_calls_tools_can_be_wrapped(ann: AgentMemory) -> None:
    image = {"type": "image", "data": "x" * 9000, "mimeType": "image/png"}
    answers: dict[str, Any] = {
        "parts": {"content": [{"type": "text", "text": LOG}, image, {"type": "text", "text": SHORT}], "isError": False},
        "list": [{"type": "text", "text": LOG}],
        "resource": [{"type": "resource", "resource": {"uri": "file:///x", "text": LOG}}],
        "text": LOG,
        "short": {"content": [{"type": "text", "text": SHORT}], "structuredContent": {"n": 3}},
    }
    call = capture_calls(ann, lambda name, arguments: answers[name])

    parts = call("parts", {})
    (found,) = find_references(parts["content"][0]["text"])
    assert parts == {
        "content": [{"type": "text", "text": found.text}, image, {"type": "text", "text": SHORT}],
        "isError": False,
    }
    assert (whole(ann, found.key), ann.details.get(found.key).metadata) == (LOG, {"source": "parts"})
    assert find_references(call("list", {})[0]["text"])
    assert find_references(call("resource", {})[0]["resource"]["text"])
    assert find_references(call("text", {}))
    assert call("short", {}) is answers["short"]


def test_answers_of_memorys_own_tools_are_not_captured(ann: AgentMemory) -> None:
    call = capture_calls(ann, lambda name: LOG)

    assert {name for name in TOOLS if call(name) is not LOG} == set()
    assert call("of_another_program") is not LOG


def test_an_answer_that_comes_twice_is_replaced_twice(ann: AgentMemory) -> None:
    answer = {"content": [{"type": "text", "text": LOG}], "structuredContent": {"result": LOG}}

    assert capture_calls(ann, lambda name: answer)("tool")["structuredContent"] is None
