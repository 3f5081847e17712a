"""Skills: read from files, checked line by line, fresh at every use, and never cut."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from wellkept import AsyncWellkept, Settings, Wellkept
from wellkept.errors import Invalid
from wellkept.knowledge import skills as skill_module
from wellkept.knowledge.skills import Skills
from wellkept.model import Owner

pytestmark = pytest.mark.proves("E6")

Write = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "skills"
    made.mkdir()
    return made


@pytest.fixture
def write(folder: Path) -> Write:
    def write(name: str, content: str) -> Path:
        path = folder / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return path

    return write


def skill(name: str, body: str = "Do it.", more: str = "") -> str:
    return f"---\nname: {name}\ndescription: How to {name}.\n{more}---\n{body}\n"


def opened(*folders: Path) -> Skills:
    return Skills([str(each) for each in folders])


def test_skills_are_read_from_folders_and_sorted_by_name(folder: Path, write: Write, tmp_path: Path) -> None:
    path = write("b", skill("refund", body="# Steps\n\n1. Look.\n"))
    write("deep/er", skill("greet", more="license: MIT\nmetadata:\n  version: 2\n"))
    write(".hidden", skill("never"))
    (tmp_path / "single").mkdir()
    (tmp_path / "single" / "SKILL.md").write_text("\ufeff" + skill("alone").replace("\n", "\r\n"), encoding="utf-8")

    found = opened(folder, tmp_path / "single")()

    assert [each.name for each in found] == ["alone", "greet", "refund"]
    assert found[1].meta == {"license": "MIT", "metadata": {"version": 2}}
    assert (found[2].description, found[2].body, found[2].path) == ("How to refund.", "# Steps\n\n1. Look.", str(path))
    assert found[0].body.strip() == "Do it."


def test_a_skill_is_never_cut(folder: Path, write: Write) -> None:
    body = "\n".join(f"Line {number}: {'word ' * 30}" for number in range(4000))
    write("long", skill("long", body=body))

    assert opened(folder)()[0].body == body


def test_what_lies_beside_a_skill_is_not_looked_through(folder: Path, write: Write) -> None:
    write("one", skill("one"))
    write("one/examples", skill("example"))
    write("a/b/c/too-deep", skill("deep"))

    assert [each.name for each in opened(folder)()] == ["one"]


BROKEN = {
    "no front matter": ("# Refunds\n", 1, "must begin with a line ---"),
    "no end": ("---\nname: a\n", 3, "has no end"),
    "no name": ("---\ndescription: x\n---\nbody", 1, "has no name"),
    "no description": ("---\nname: x\n---\nbody", 1, "has no description"),
    "blank description": ("---\nname: x\ndescription: ' '\n---\nbody", 3, "description must be a text"),
    "a name that is no text": ("---\n# hello\nname: 12\ndescription: y\n---\nbody", 3, "name must be a text"),
    "a name of two lines": ('---\nname: "a\\nb"\ndescription: y\n---\nbody', 2, "single line"),
    "a long name": (f"---\nname: {'x' * 65}\ndescription: y\n---\nbody", 2, "max 64"),
    "a long description": (f"---\nname: x\ndescription: {'y' * 1025}\n---\nbody", 3, "max 1,024"),
    "broken YAML": ("---\nname: x\ndescription: [a\n---\nbody", 3, "not valid YAML"),
    "a colon too many": ("---\nname: x\ndescription: a: b\n---\nbody", 3, "not valid YAML"),
    "a bell in the YAML": ("---\nname: x\ndescription: a\x07\n---\nbody", 3, "character that is not allowed"),
    "a list": ("---\n- name\n---\nbody", 2, "must name fields"),
    "no body": ("---\nname: x\ndescription: y\n---\n\n", 5, "the skill itself is missing"),
    "agents that are no list": (
        "---\nname: x\ndescription: y\nagents: atlas\n---\nb",
        4,
        "must be a list of agent ids",
    ),
    "nobody": ("---\nname: x\ndescription: y\nagents: []\n---\nb", 4, "agents is empty"),
    "an agent that cannot be": ("---\nname: x\ndescription: y\nagents: ['a b']\n---\nb", 4, "an agent id is"),
    "a NUL": ("---\nname: x\ndescription: y\n---\nb\n\x00", 6, "NUL"),
}


@pytest.mark.parametrize("problem", BROKEN)
def test_what_is_wrong_is_said_with_file_and_line(
    folder: Path, write: Write, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    content, line, says = BROKEN[problem]
    path = write("x", content)

    with pytest.raises(Invalid) as refusal:
        opened(folder)
    assert str(refusal.value).startswith(f"{path}:{line}: ")
    assert says in str(refusal.value)
    assert caplog.records == []  # it is said once, and nothing was read before that could stay in use


def test_a_file_that_is_no_text_is_refused(folder: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("x", "")
    path.write_bytes(skill("x").encode() + b"caf\xe9")
    with pytest.raises(Invalid, match=r"SKILL\.md:6: not UTF-8 text"):
        opened(folder)

    monkeypatch.setattr(skill_module, "MAX_BYTES", 10)
    with pytest.raises(Invalid, match="larger than 10 bytes"):
        opened(folder)


def test_a_folder_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(Invalid, match=r"nowhere: there is no such folder of skills"):
        Wellkept(":memory:", settings=Settings(skills=(str(folder / "nowhere"),)))


def test_two_skills_of_one_name_are_refused_at_start(folder: Path, write: Write) -> None:
    first, second = write("a", skill("same")), write("b", skill("same"))

    with pytest.raises(Invalid) as refusal:
        opened(folder)
    assert str(refusal.value) == f"{second}: the name 'same' is taken by {first}; rename one of them."


def test_a_change_is_seen_at_the_next_use(folder: Path, write: Write) -> None:
    skills = opened(folder)
    assert skills() == ()

    path = write("one", skill("one", body="First."))
    assert [each.body for each in skills()] == ["First."]
    path.write_text(skill("one", body="Second, and longer."), encoding="utf-8")
    assert [each.body for each in skills()] == ["Second, and longer."]
    held = skills()
    assert skills() is held  # nothing changed, so nothing is made anew
    path.unlink()
    assert list(skills()) == []


def test_a_broken_edit_keeps_the_last_good_version_and_is_reported(
    folder: Path, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    path = write("one", skill("one", body="Good."))
    skills = opened(folder)

    with caplog.at_level(logging.WARNING, "wellkept"):
        path.write_text("---\nname: one\n---\nBad.", encoding="utf-8")
        other = write("two", skill("two"))
        assert [each.body for each in skills()] == ["Good."]  # nor is the other one read before it is mended
        assert [each.name for each in skills()] == ["one"]
    assert skills.problems() == [f"{path}:1: the front matter has no description."]
    assert len(caplog.records) == 1  # once, not at every use

    path.write_text(skill("one", body="Better."), encoding="utf-8")
    assert [each.body for each in skills()] == ["Better.", "Do it."]
    assert skills.problems() == []

    other.write_text(skill("one", body="A double."), encoding="utf-8")
    assert [each.body for each in skills()] == ["Better.", "Do it."]
    assert len(skills.problems()) == 1
    other.write_text(skill("two", body="No more."), encoding="utf-8")
    assert skills.problems() == []


def test_a_folder_that_vanishes_takes_no_skill_away(folder: Path, write: Write) -> None:
    write("one", skill("one"))
    skills = opened(folder)

    folder.rename(folder.with_name("elsewhere"))
    assert [each.name for each in skills()] == ["one"]
    assert len(skills.problems()) == 1

    folder.with_name("elsewhere").rename(folder)
    assert [each.name for each in skills()] == ["one"]
    assert skills.problems() == []


def test_a_skill_may_be_for_some_agents_only(folder: Path, write: Write) -> None:
    write("all", skill("for-all"))
    write("some", skill("for-some", more="agents: [atlas, bob]\n"))
    skills = opened(folder)

    assert [each.name for each in skills.for_agent(Owner("acme", "atlas"))] == ["for-all", "for-some"]
    assert [each.name for each in skills.for_agent(Owner("other", "eve"))] == ["for-all"]


def test_the_library_has_them_for_every_tenant(folder: Path, write: Write) -> None:
    path = write("one", skill("one"))
    settings = Settings(skills=(str(folder),))
    with Wellkept(":memory:", settings=settings) as wellkept:
        assert [each.name for each in wellkept.skills()] == ["one"]
        path.write_text("broken", encoding="utf-8")
        assert [each.name for each in wellkept.skills()] == ["one"]
        assert len(wellkept.skill_problems()) == 1

    path.write_text(skill("one"), encoding="utf-8")

    async def awaited() -> list[str]:
        async with AsyncWellkept(":memory:", settings=settings) as wellkept:
            return [each.name for each in await wellkept.skills()]

    assert asyncio.run(awaited()) == ["one"]
