"""Filters and metadata on the command line."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import Program


def test_metadata_is_stored_filtered_and_edited(program: Program) -> None:
    program.ok("remember", "Dinner in Oslo", "--tag", "food", "--metadata", "city=Oslo", "--metadata", "stars=4")
    program.ok("remember", "Dinner in Rome", "--tag", "food", "--metadata", '{"city": "Rome", "open": true}')

    listed, found, recalled, none, wrong, odd = program.all(
        ["memory", "list", "--where", "tags = food and created > 2020-01-01 and metadata.stars >= 4"],
        ["memory", "search", "dinner", "--where", "metadata.open = true"],
        ["recall", "dinner", "--where", "metadata.city = 'Rome'", "--min-relevance", "0"],
        ["memory", "list", "--where", "metadata.stars = '4'"],
        ["memory", "list", "--where", "tags ="],
        ["remember", "x", "--metadata", "city"],
    )
    assert [each.out.rpartition("\t")[2] for each in (listed, found, recalled)] == [
        "Dinner in Oslo\n",
        "Dinner in Rome\n",
        "Dinner in Rome\n",
    ]
    assert none.out == ""
    assert (wrong.code, wrong.err) == (
        1,
        "The filter is wrong at character 7: expected a value after `=` instead of the end.\n",
    )
    assert odd.code == 2
    assert "KEY=VALUE" in odd.err
    assert program("memory", "edit", "m-1", "--metadata", "city=Bergen", "--json").json["metadata"] == {
        "city": "Bergen"
    }
    assert 'metadata: {"city": "Bergen"}' in program.ok("memory", "show", "m-1")
    assert program("memory", "edit", "m-1", "--metadata", "{}", "--json").json["metadata"] == {}


def test_documents_are_filtered(program: Program, tmp_path: Path) -> None:
    for lang in ("en", "de"):
        file = tmp_path / f"{lang}.md"
        file.write_text(f"# Refunds {lang}\n\nRefunds are paid within 14 days.")
        program.ok("knowledge", "ingest", str(file), "--metadata", f"lang={lang}")

    found = program("knowledge", "search", "refunds are paid", "--where", "metadata.lang = en", "--json").json
    assert [hit["title"] for hit in found["hits"]] == ["Refunds en"]
    (document,) = program("knowledge", "list", "--where", "metadata.lang = de", "--json").json["items"]
    edited = program("knowledge", "edit", document["id"], "--metadata", "lang=nl", "--json").json["items"]
    assert [each["metadata"] for each in edited] == [{"lang": "nl"}]


def test_memories_are_restored_by_a_filter(program: Program) -> None:
    program.ok("remember", "Dinner in Oslo", "--metadata", "city=Oslo")

    refused, nothing = program.all(
        ["memory", "restore"], ["memory", "restore", "--where", "state = archived and metadata.city = Oslo"]
    )
    assert refused.code == 1
    assert (nothing.out, nothing.code) == ("", 0)
