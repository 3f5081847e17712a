"""Tools of the set `memory`, called as a model calls them, on both engines."""

from __future__ import annotations

from typing import Any

from wellkept.api.agent import AgentMemory


def ids(listed: Any) -> list[str]:
    return [each["id"] for each in listed]


def test_a_fact_is_remembered_recalled_listed_and_forgotten(ann: AgentMemory) -> None:
    stored = ann.call_tool("remember", {"text": "Keeps kosher", "tags": ["diet"]})
    ann.call_tool("remember", {"text": "Drives a red Tesla Model 3"})

    assert stored == {"ok": True, "id": "m-1"}
    assert (
        ids(ann.call_tool("recall", {"query": "Which restaurant fits the diet of this user?"})["results"])[0] == "m-1"
    )
    assert ids(ann.call_tool("list_memories", {})["memories"]) == ["m-2", "m-1"]
    assert ann.call_tool("forget", {"id": "m-1"}) == {"ok": True, "forgotten": [{"id": "m-1"}]}
    assert ids(ann.call_tool("list_memories", {"limit": 5})["memories"]) == ["m-2"]


def test_the_profile_shows_what_users_told_and_forget_hides_what_is_meant(ann: AgentMemory) -> None:
    ann.log_turn("s", user="I live in Turku. My sister Tilda is a midwife.", assistant="All right.")

    everything = ann.call_tool("profile", {})
    about_tilda = ann.call_tool("profile", {"subject": "Tilda"})
    hidden = ann.call_tool("forget", {"about": "where I live"})

    assert {each["text"] for each in everything["facts"]} == {"I live in Turku.", "My sister Tilda is a midwife."}
    assert [each["text"] for each in about_tilda["facts"]] == ["My sister Tilda is a midwife."]
    assert [each["text"] for each in hidden["forgotten"]] == ["I live in Turku."]
    assert "30 days" in hidden["note"]
    assert [each["text"] for each in ann.call_tool("profile", {})["facts"]] == ["My sister Tilda is a midwife."]
    ann.restore(ids(hidden["forgotten"])[0])
    assert len(ann.call_tool("profile", {})["facts"]) == 2


def test_a_note_is_forgotten_by_words(ann: AgentMemory) -> None:
    ann.call_tool("remember", {"text": "Keeps kosher"})
    ann.call_tool("remember", {"text": "Drives a red Tesla Model 3"})

    named, hidden = (ann.call_tool("forget", {"about": each}) for each in ("his diet", "the Tesla"))

    assert (named["ok"], ids(named["candidates"])) == (False, ["m-1"])
    assert (hidden["ok"], ids(hidden["forgotten"])) == (True, ["m-2"])


def test_what_is_not_clear_or_not_known_is_not_forgotten(ann: AgentMemory) -> None:
    nothing = ann.call_tool("forget", {"about": "the name of my parrot"})

    assert (nothing["ok"], nothing["candidates"]) == (False, [])
    assert "nothing was forgotten" in nothing["error"]
    for wrong in ({}, {"id": "m-1", "about": "my parrot"}):
        assert ann.call_tool("forget", wrong)["error"].startswith("Name what to forget once")
    assert ann.call_tool("profile", {"subject": "Nobody"})["facts"] == []


def test_a_long_text_is_read_in_parts(ann: AgentMemory) -> None:
    detail = ann.details.store("line one\n" * 1_000, description="a log")

    page = ann.call_tool("read_detail", {"key": detail.key, "limit": 100})

    assert (len(page["content"]), page["next_offset"]) == (100, 100)
