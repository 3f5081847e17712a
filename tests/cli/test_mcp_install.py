"""`wellkept mcp install`: one entry in the file of a host, by its own program where it has one."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from wellkept.cli.app import program
from wellkept.cli.commands.server import Host, find_program, list_host_files

REPOSITORY = Path(__file__).parents[2]
ENTRY = {"command": "/bin/wellkept", "args": ["mcp"]}
FILES = {
    "claude": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "gemini": ".gemini/settings.json",
}
JSON_TEXTS = [
    '{"mcpServers": {"other": {"command": "x"}}, "n": 1}',
    '{\n    "a": [1, 2,\n 3],\n    "mcpServers": {\n        "other": {"command": "{\\"}"}\n    }\n}\n',
    '{"mcpServers": {"wellkept": {"command": "old", "env": {"A": "b"}}, "z": {}}}',
    "{}",
    "",
    '\ufeff{"x": {"mcpServers": {"wellkept": 1}}}',
]
WITH_FILES = [each for each in Host if each is not Host.CODEX]
# A program of a host that writes down how it was called.
HOST_PROGRAM = '#!/bin/sh\necho "$@" >> "$HOME/calls"\n[ ! -e "$HOME/fail" ] || { echo "no rights" >&2; exit 3; }\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of nobody, and a project in it as the current folder."""
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/bin")
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def run(*words: str, **options: Any) -> Any:
    return CliRunner().invoke(program(), ["mcp", "install", *words], **options)


def servers(path: Path, host: Host) -> Any:
    return json.loads(path.read_text("utf-8"))[list_host_files()[host].section]


@pytest.mark.parametrize("host", WITH_FILES)
def test_a_host_gets_the_command_of_this_installation(home: Path, host: Host) -> None:
    done = run(host.value, "--agent", "atlas", "--sets", "notes", "--yes")

    assert done.exit_code == 0, done.output
    entry = servers(home / FILES[host], host)["wellkept"]
    command = [entry["command"], *entry["args"]]
    assert command == [*find_program(), "mcp", "--agent", "atlas", "--sets", "notes"]
    assert Path(command[0]).is_absolute()
    assert stat.S_IMODE((home / FILES[host]).stat().st_mode) == 0o600
    assert run(host.value, "--undo", "--agent", "atlas", "--sets", "notes", "--yes").exit_code == 0
    assert servers(home / FILES[host], host) == {}


@pytest.mark.parametrize("host", [each for each in WITH_FILES if each is not Host.CLAUDE_DESKTOP])
def test_a_project_gets_a_command_that_works_for_everybody(home: Path, host: Host) -> None:
    assert run(host.value, "--project", "--yes").exit_code == 0
    written = home / "project" / list_host_files()[host].in_project
    assert servers(written, host)["wellkept"]["command"] == "wellkept"
    assert run("claude-desktop", "--project", "--yes").exit_code == 1


@pytest.mark.parametrize("text", JSON_TEXTS)
def test_everything_else_in_the_file_stays(home: Path, text: str) -> None:
    path = home / FILES["cursor"]
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    had = json.loads(text.removeprefix("\ufeff") or "{}")
    old = had.setdefault("mcpServers", {}).pop("wellkept", {})

    assert run("cursor", "--agent", "atlas", "--yes").exit_code == 0
    has = json.loads(path.read_text("utf-8"))
    entry = has["mcpServers"].pop("wellkept")
    assert {**old, **entry} == entry | {name: old[name] for name in old if name == "env"}
    assert entry["args"][-2:] == ["--agent", "atlas"]
    assert has == had
    assert "needs no change" in run("cursor", "--agent", "atlas", "--yes").output
    assert run("cursor", "--undo", "--yes").exit_code == 0
    assert json.loads(path.read_text("utf-8")) == had


@pytest.mark.parametrize("text", ["[]", '{"a": ', '{"mcpServers": []}', '{"mcpServers": {}} // mine'])
def test_a_file_in_another_form_is_left_alone(home: Path, text: str) -> None:
    path = home / FILES["cursor"]
    path.parent.mkdir()
    path.write_text(text)

    refused = run("cursor", "--yes")
    assert refused.exit_code == 1
    assert "was not changed: it is not plain JSON. Edit it yourself; the entry is:" in " ".join(refused.output.split())
    assert path.read_text() == text


def test_codex_adds_a_server_itself_or_shows_what_to_add(home: Path) -> None:
    refused = run("codex", "--agent", "atlas", "--yes")

    assert refused.exit_code == 1
    assert "[mcp_servers.wellkept]" in refused.output
    assert "[mcp_servers.wellkept]" in run("codex", "--print").output
    assert not (home / FILES["codex"]).exists()


@pytest.mark.parametrize(("host", "scope"), [("claude", "--scope user "), ("codex", "")])
def test_a_host_that_can_add_a_server_does_so_itself(home: Path, host: str, scope: str) -> None:
    (home / "bin").mkdir()
    (home / "bin" / host).write_text(HOST_PROGRAM)
    (home / "bin" / host).chmod(0o755)
    command = " ".join([*find_program(), "mcp", "--agent", "atlas"])
    added, removed = f"mcp add {scope}wellkept -- {command}", f"mcp remove {scope}wellkept"

    assert added in run(host, "--agent", "atlas", "--dry-run").output.replace("\n", "")
    assert not (home / "calls").exists()
    assert run(host, "--agent", "atlas").exit_code == 1
    assert run(host, "--agent", "atlas", "--yes").exit_code == 0
    # An entry is replaced.
    assert (home / "calls").read_text().splitlines() == [removed, added]
    assert not (home / FILES[host]).exists()
    assert run(host, "--undo", "--yes").exit_code == 0
    assert (home / "calls").read_text().splitlines() == [removed, added, removed]
    (home / "fail").touch()
    refused = run(host, "--yes")
    assert refused.exit_code == 1
    assert "mcp add failed: no rights" in " ".join(refused.output.split())


def test_the_file_is_shown_and_backed_up(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    before = '{\n    "mcpServers": {"other": {"command": "x"}}\n}\n'
    path.write_text(before)
    path.chmod(0o640)

    shown = run("cursor", "--dry-run")
    assert '+        "wellkept": {' in shown.output
    assert path.read_text() == before
    assert run("cursor").exit_code == 1
    assert path.read_text() == before
    assert run("cursor", "--yes").exit_code == 0
    assert (home / ".cursor" / "mcp.json.wellkept-backup").read_text() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert run("cursor", "--agent", "nova", "--yes").exit_code == 0
    assert run("cursor", "--agent", "nova", "--undo", "--yes").exit_code == 0
    assert json.loads(path.read_text()) == json.loads(before)


def test_what_others_wrote_meanwhile_stays(home: Path) -> None:
    run("gemini", "--yes")
    path = home / ".gemini" / "settings.json"
    path.write_text(path.read_text().replace('"mcpServers"', '"theme": "Dracula",\n  "mcpServers"'))

    assert run("gemini", "--undo", "--yes").exit_code == 0
    assert json.loads(path.read_text()) == {"theme": "Dracula", "mcpServers": {}}


def test_a_link_stays_a_link(home: Path) -> None:
    (home / "dotfiles.json").write_text("{}")
    (home / ".claude.json").symlink_to(home / "dotfiles.json")

    assert run("claude", "--yes").exit_code == 0
    assert (home / ".claude.json").is_symlink()
    assert "wellkept" in (home / "dotfiles.json").read_text()


def test_a_store_is_named_so_that_the_host_finds_it(home: Path) -> None:
    entry = json.loads(run("claude", "--print", "--url", "sqlite:///notes.db").output)["mcpServers"]["wellkept"]
    assert entry["args"][-1] == f"sqlite:///{home}/project/notes.db"
    assert not (home / ".claude.json").exists()
    refused = run("claude", "--print", "--url", "postgresql://app:hunter2@db/x")
    assert refused.exit_code == 1
    assert "hunter2" not in refused.output
    assert "Name the host" in run().output


def test_platforms_have_their_own_places(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    support = home / "Library" / "Application Support"
    assert list_host_files()[Host.CLAUDE_DESKTOP].path == support / "Claude" / "claude_desktop_config.json"
    assert list_host_files()[Host.VSCODE].path == support / "Code" / "User" / "mcp.json"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("APPDATA", str(home / "roaming"))
    assert list_host_files()[Host.VSCODE].path == home / "roaming" / "Code" / "User" / "mcp.json"
    monkeypatch.setenv("CODEX_HOME", str(home / "codex"))
    assert list_host_files()[Host.CODEX].path == home / "codex" / "config.toml"
