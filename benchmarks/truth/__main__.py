"""Measure current truth at the public verb: what prompts show after people changed, corrected and withdrew facts.

`--people` and `--statements` measure one part; `--held-out` the half that nobody tunes on; `--misses` prints what went
wrong, of the other half only. `--model` asks a scripted model that answers by the labels. `--set remember_turns=false`
measures with another setting than the default.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.truth.data import Person, read_people, read_rows
from benchmarks.truth.model import serve_good_model
from benchmarks.truth.people import HEADERS, measure_person, render_people
from benchmarks.truth.statements import measure_statements
from wellkept import Settings

STATEMENTS = ("pairs_en", "pairs_de", "pairs_fr", "pairs_es", "keep", "sentences", "forget", "never")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument("--people", nargs="*", metavar="NAME", help="only people: all, or those with these names")
    parser.add_argument("--statements", action="store_true", help="only pairs, sentences and requests to forget")
    parser.add_argument("--held-out", action="store_true", help="the half that rules must not be tuned on")
    parser.add_argument("--misses", action="store_true", help="print every miss; refused with --held-out")
    parser.add_argument("--model", action="store_true", help="with a scripted model that answers from the labels")
    parser.add_argument("--set", dest="changed", action="append", default=[], metavar="NAME=VALUE", help="a setting")
    given = parser.parse_args(arguments)
    if given.misses and given.held_out:
        parser.error("Misses of the held-out half are not shown, so that nobody tunes on them.")
    misses: list[str] = []
    settings = _settings(given.changed)
    if not given.statements:
        people = [each for each in read_people(held_out=given.held_out) if each.name in (given.people or (each.name,))]
        with serve_good_model(people) as server:
            if given.model:
                settings = replace(settings, openai_base_url=server.url, openai_model="scripted")
            _print_table(HEADERS, _measure_people(people, settings, misses))
            print(f"\nQuestions to the model: {len(server.requests)}" if given.model else "")
    if given.people is None:
        rows = {name: read_rows(name, held_out=given.held_out) for name in STATEMENTS}
        _print_table(("statements", "figure"), measure_statements(rows, settings, misses))
    if given.misses:
        print("", *misses, sep="\n")
    return 0


def _settings(changed: Sequence[str]) -> Settings:
    """Return the defaults, whatever this machine's files say, with the changes of the command line (values in JSON)."""
    pairs = [each.partition("=") for each in changed]
    return Settings(**{name: json.loads(value) for name, _, value in pairs})


def _measure_people(people: Sequence[Person], settings: Settings, misses: list[str]) -> Iterator[Sequence[str]]:
    results = []
    for person in people:
        print(f"{person.name}: {len(person.turns)} turns", file=sys.stderr)
        result = measure_person(person, settings)
        results.append(result)
        found = [miss for tally in result.tallies.values() for miss in tally.misses]
        found += [f"wrongly ended: {each.text}" for each in result.wrongly_ended]
        misses.extend(f"{person.name}, {each}" for each in found)
    yield from render_people(results)


def _print_table(headers: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    print("", f"| {' | '.join(headers)} |", f"|{'---|' * len(headers)}", sep="\n")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
