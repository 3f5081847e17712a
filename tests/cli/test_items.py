"""`wellkept memory items`."""

from __future__ import annotations

import re

from tests.cli.program import Program

LENA = '{"name": "Lena", "age": 31}'


def test_an_item_is_put_read_found_and_deleted(program: Program) -> None:
    assert program.ok("memory", "items", "put", "users/7", "profile", LENA, "--index", "name") == (
        "users/7 profile is at version 1\n"
    )
    assert program.ok("memory", "items", "get", "users/7", "profile") == f"{LENA}\n"
    told = program("memory", "items", "get", "users/7", "profile", "--json").json
    assert (told["namespace"], told["key"], told["value"]) == (["users", "7"], "profile", {"name": "Lena", "age": 31})
    program.ok(
        "memory", "items", "put", "users/8", "profile", "-", "--no-index", "--ttl", "3600", "--refresh", given=b'["a"]'
    )

    found = program.ok("memory", "items", "search", "users", "--query", "who is Lena?")
    assert re.fullmatch(rf"users/7 profile\t1\t[0-9-]{{10}}T[0-9:]{{8}}Z\t{re.escape(LENA)}\n", found)
    assert program("memory", "items", "search", "--json").json["items"][0]["value"] == ["a"]
    assert program.ok("memory", "items", "search", "--where", "value.age > 30").startswith("users/7 ")
    assert "users/7" in program.on_terminal(100, "memory", "items", "search").out
    assert program.ok("memory", "items", "namespaces") == "users/7\nusers/8\n"
    assert program("memory", "items", "namespaces", "--max-depth", "1", "--json").json["items"] == [["users"]]

    stale = program("memory", "items", "delete", "users/7", "profile", "--version", "7")
    assert (stale.code, "version 1" in stale.err) == (1, True)
    assert program.ok("memory", "items", "delete", "users/7", "profile") == "Deleted: users/7/profile\n"
    missing = program("memory", "items", "get", "users/7", "profile")
    assert (missing.code, "no item with this key" in missing.err) == (1, True)
    assert program("memory", "items", "delete", "users/7", "profile").code == 1


def test_what_is_no_item_is_refused_with_a_sentence(program: Program) -> None:
    for arguments, sentence in (
        (("users/7", "a", "Lena"), "not JSON"),
        (("users/7", "a", "null"), "no value"),
        (("", "a", "1"), "namespace"),
        (("users/7", "a", "1", "--ttl", "0"), "seconds"),
        (("users/7", "a", "1", "--index", "b", "--no-index"), "exclude"),
    ):
        refused = program("memory", "items", "put", *arguments)
        assert refused.code in (1, 2)
        assert sentence in refused.err
