"""`wellkept knowledge skills`, and what `doctor` says about them."""

from __future__ import annotations

import pytest

from tests.cli.program import Program

SKILL = "---\nname: {name}\ndescription: How to {name}.\n{more}---\nDo\nit.\n"


@pytest.mark.proves("E6")
def test_skills_are_listed_shown_and_checked(program: Program) -> None:
    for name, more in (("greet", ""), ("refund", "agents: [atlas]\nsince: 2026-01-31\n")):
        (program.folder / "skills" / name).mkdir(parents=True)
        (program.folder / "skills" / name / "SKILL.md").write_text(SKILL.format(name=name, more=more))
    known = {"WELLKEPT_SKILLS": "skills"}

    assert program("knowledge", "skills", **known).out == "greet\t-\tHow to greet.\nrefund\tatlas\tHow to refund.\n"
    assert program("knowledge", "skills", "--agent", "bob", **known).out == "greet\t-\tHow to greet.\n"
    assert program("knowledge", "skills", "refund", **known).out == "Do\nit.\n"
    items = program("knowledge", "skills", "--json", **known).json["items"]
    assert items[1]["meta"] == {"since": "2026-01-31"}
    assert program("knowledge", "skills", "nothing", **known).code == 1
    assert "How to refund." in program.on_terminal(80, "knowledge", "skills", **known).out
    assert "2 skills can be read" in program("doctor", **known).out

    (program.folder / "skills" / "greet" / "SKILL.md").write_text("---\nname: greet\n")
    ended = program("knowledge", "skills", **known)
    assert (ended.code, ended.out) == (1, "")
    assert "SKILL.md:3: the front matter has no end" in ended.err
    ended = program("doctor", **known)
    assert ended.code == 1
    assert "skills" in ended.out
