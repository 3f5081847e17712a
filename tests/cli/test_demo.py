"""The tour shows real commands, looks the same every time and leaves nothing behind."""

from __future__ import annotations

import re

import pytest

from tests.cli.program import ANSI, Program
from wellkept.cli.commands.demo import TOUR

BY_CHANCE = re.compile(r"(?<=nightly-build-)[a-z0-9]{8}|c-[0-9a-f]{22}|\b[0-9a-f]{64}\b")


def test_the_tour_is_the_same_every_time_and_leaves_nothing_behind(program: Program) -> None:
    lines, document = program.all(["demo"], ["demo", "--json", "--url", "postgresql://nobody.invalid/none"])
    assert (lines.code, lines.err, document.code, document.err) == (0, "", 0, "")

    stops = document.json["stops"]
    assert [stop["title"] for stop in stops] == [stop.title for stop in TOUR]
    told = "\n".join(
        f"{number}. {stop['title']}\n{stop['says']}\n"
        + "".join(f"$ {each['command']}\n{each['printed']}" for each in stop["commands"])
        for number, stop in enumerate(stops, start=1)
    )
    steady = BY_CHANCE.sub("<chance>", lines.out)
    assert steady.startswith(BY_CHANCE.sub("<chance>", told))
    ((score, terms),) = re.findall(r"m-3\tLena leads the billing team\n\t(\S+) = (0\.5×\S+ similarity .*)\n", steady)
    parts = [(float(weight), float(part)) for weight, part in re.findall(r"(\S+)×(\S+)", terms)]
    assert sum(weight * part for weight, part in parts) == pytest.approx(float(score), abs=0.001)
    (out_ranked,) = re.findall(r"\nm-2\tout_ranked\t.* 0\.5×(\S+) similarity", steady)
    assert parts[0][1] > 3 * float(out_ranked)
    assert [path.name for path in program.folder.iterdir()] == []


def test_the_tour_shows_every_kind_and_what_became_of_it(program: Program) -> None:
    printed = {
        each["command"].removeprefix("wellkept "): each["printed"]
        for stop in program("demo", "--json", WELLKEPT_SECRETS="flag", WELLKEPT_EMBEDDER="off").json["stops"]
        for each in stop["commands"]
    }

    assert {"core", "note", "journal", "episode"} <= {line.split("\t")[1] for line in printed.values() if "\t" in line}
    refusal = printed["remember 'The key is AKIAQYLPMN5HIEXAMP42'"]
    assert refusal.startswith("text appears to contain a secret — not stored. It matches the rule aws-access-key. ")
    assert "Orders to Norway" in printed["recall 'what does a refund to Norway cost?' --source knowledge --limit 1"]
    assert (
        "truncated by"
        in printed["context 'Shall I indent the invoice export with tabs?' --session monday --budget 170 --blocks"]
    )
    assert [line.split("\t")[0] for line in printed["list"].splitlines()] == ["m-8", "m-7", "m-5", "m-3", "m-1"]
    assert "\nexpired: 1\n" in printed["maintain"]
    assert printed["audit --verify"].startswith("The log is whole: ")


def test_the_tour_fits_a_terminal(program: Program) -> None:
    ended = program.on_terminal(80, "demo")
    shown = ANSI.sub("", ended.out)
    assert ended.code == 0
    # A refusal is one line, which the terminal itself wraps.
    assert max(len(line) for line in shown.splitlines() if "appears to contain" not in line) <= 80
    assert all(stop.title in shown for stop in TOUR)
