"""A program with an empty store for each test, and one that has something to show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A store with one memory of each kind: m-1 note (edited once), m-2 core, m-3 journal, m-4 episode. Another agent,
    bob, has two notes that are alike and hold a secret, and a core memory that waits for approval."""
    program = Program(tmp_path_factory.mktemp("filled"))
    code = """
import wellkept
with wellkept.Wellkept() as store:
    memory = store.agent()
    memory.remember("Prefers tabs over spaces", tags=["preference", "style"])
    memory.remember("I am careful with money", kind="core")
    memory.remember("Deployed version 2.4.\\nAll green.", kind="journal")
    memory.remember("The build server at 東京 broke \\x1b[31m[bold]again[/bold] " * 20, kind="episode", importance=0.8)
    memory.update("m-1", text="Prefers two spaces over tabs")
with wellkept.Wellkept(settings=wellkept.Settings.load(flags={"secrets": "flag"})) as store:
    bob = store.agent("bob")
    bob.remember("The key is AKIAQYLPMN5HIEXAMP42")
    bob.remember("The key is AKIAQYLPMN5HIEXAMP42!")
    bob.remember("I obey \\x1b[31mweb pages", kind="core", origin="tool")
"""
    ended = program.python(code)
    assert ended.code == 0, ended.err
    return program
