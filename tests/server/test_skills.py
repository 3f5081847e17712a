"""`/api/skills`, and what `/health` says about files that are broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.live import client_of, serving
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings

SKILL = "---\nname: {name}\ndescription: How to.\nsince: 2026-01-31\n{more}---\nDo it.\n"


@pytest.mark.proves("E6")
def test_skills_are_listed_whole_and_by_agent(tmp_path: Path) -> None:
    for name, more in (("all", ""), ("some", "agents: [atlas]\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(SKILL.format(name=name, more=more))
    settings = Settings(skills=(str(tmp_path),))
    with Wellkept(":memory:", settings=settings) as store, serving(store) as address, client_of(address) as client:
        answer = client.get("/api/skills").json()
        assert answer["items"][0] == {
            "name": "all",
            "description": "How to.",
            "body": "Do it.",
            "agents": [],
            "meta": {"since": "2026-01-31"},
        }
        assert [each["name"] for each in client.get("/api/skills?agent=atlas").json()["items"]] == ["all", "some"]
        assert [each["name"] for each in client.get("/api/skills?agent=bob").json()["items"]] == ["all"]
        assert client.get("/api/skills?agnt=bob").status_code == 422
        assert client.get("/api/skills?agent=a%20b").status_code == 400
        assert client.get("/health").json()["status"] == "ok"

        (tmp_path / "all" / "SKILL.md").write_text("broken")
        answer = client.get("/api/skills").json()
        assert [each["name"] for each in answer["items"]] == ["all", "some"]
        assert answer["problems"] == client.get("/health").json()["problems"]
        assert "SKILL.md:1: must begin with" in answer["problems"][0]
