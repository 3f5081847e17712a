"""The tour shows real commands, finds answers that share no word with the question, and keeps its store."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from tests.cli.program import ANSI, Program
from wellkept.cli.commands.demo import TOUR

MAX_LINES = 60
FINDS = {"shipped": "Thursday", "approve": "review", "car": "Volvo"}
SMALL = {"the", "a", "is", "what", "when", "how", "does", "on", "an", "i", "by"}


def words(text: str) -> set[str]:
    return {*re.findall(r"[a-z]+", text.lower())} - SMALL


def test_the_tour_shows_what_it_says_and_keeps_its_store(program: Program) -> None:
    lines, document = program.all(["demo"], ["demo", "--json", "--url", "postgresql://nobody.invalid/none"])
    assert (lines.code, lines.err, document.code, document.err) == (0, "", 0, "")
    assert len(lines.out.splitlines()) <= MAX_LINES
    steps = document.json["steps"]
    assert [each["command"] for each in steps] == [f"wellkept {line}" for _, lines in TOUR for line in lines]
    printed = {each["command"]: each["printed"] for each in steps}

    for word, answer in FINDS.items():
        ((command, found),) = [each for each in printed.items() if word in each[0] and " recall " in each[0]]
        assert answer in found
        assert "Nothing fits" not in found
        assert not words(shlex.split(command)[2]) & words(found.rpartition("\t")[2])
    (prompt,) = [out for command, out in printed.items() if " context " in command]
    assert "Porto" in prompt
    assert "Lisbon" not in prompt
    assert steps[-2]["printed"].startswith("Forgotten")
    assert "Volvo" in steps[-2]["printed"]
    assert "Volvo" not in steps[-1]["printed"]

    url = document.json["url"]
    assert "Thursday" in program.ok("memory", "list", "--url", url)
    assert f"--url {url}" in document.json["look"]
    assert "wellkept serve --no-auth --url sqlite:///" in lines.out
    for told in (url, re.findall(r"--url (\S+)", lines.out)[-1]):
        shutil.rmtree(Path(told.removeprefix("sqlite:///")).parent)
    assert list(program.folder.iterdir()) == []


def test_the_tour_fits_a_terminal(program: Program) -> None:
    ended = program.on_terminal(80, "demo", TMPDIR=str(program.folder))
    shown = ANSI.sub("", ended.out)

    assert ended.code == 0
    assert max(len(line) for line in shown.splitlines() if "--url" not in line) <= 80
    assert all(says.partition(".")[0] in shown.replace("\n", " ") for says, _ in TOUR)
