"""`wellkept mcp install`: one entry in the file of a host, and every other byte as it was."""

from __future__ import annotations

import json
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from wellkept.cli import hosts
from wellkept.cli.app import program
from wellkept.cli.config_edits import parse_json, remove_json, remove_toml, set_json, set_toml
from wellkept.cli.hosts import HOSTS, Host
from wellkept.errors import Invalid

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
    '{\r\n\t"theme": "Dracula",\r\n\t"mcpServers": {\r\n\t}\r\n}',
    '// my servers\n{\n  /* "mcpServers": {} */\n  "x": "// no comment",\n  "mcpServers": {\n    // one\n  },\n}\n',
    '{"mcpServers": {"wellkept": {"command": "old", "env": {"A": "b"}}, "z": {}}}',
    '{"mcpServers": {"a": {}, "wellkept": {"command": "old"},}}',
    "{}",
    "{ }",
    '\ufeff{"x": {"mcpServers": {"wellkept": 1}}}',
]
TOML_TEXTS = [
    'model = "o3"\n',
    'model = "o3" # no line end',
    '[mcp_servers.other]\ncommand = "x"\n\n# about tools\n[tools]\nweb = true\n',
    '[mcp_servers.wellkept]\ncommand = "old"\nargs = [\n  "a",\n]\nstartup = 9\n\n# next\n[tools]\nw = 1\n',
    '[mcp_servers."wellkept"]\ncommand = "old"\n\n[mcp_servers.wellkept.env]\nA = "b"\n\n[z]\na = 1\n',
    'a = """\n[mcp_servers.wellkept]\n"""\n',
    "x = 1\r\n",
    '[mcp_servers.other]\r\ncommand = "x"\r\n\r\n# about tools\r\n[tools]\r\nweb = true\r\n',
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of nobody, and a project in it as the current folder."""
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def run(*words: str, **options: Any) -> Any:
    return CliRunner().invoke(program("mcp"), ["mcp", "install", *words], **options)


def parse(path: Path) -> dict[str, Any]:
    text = path.read_text("utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


@pytest.mark.parametrize("host", list(Host))
def test_a_host_gets_the_command_of_this_installation(home: Path, host: Host) -> None:
    done = run(host.value, "--agent", "atlas", "--sets", "notes", "--yes")

    assert done.exit_code == 0, done.output
    entry = parse(home / FILES[host])[HOSTS[host].section]["wellkept"]
    command = [entry["command"], *entry["args"]]
    assert command == [*hosts.find_program(), "mcp", "--agent", "atlas", "--sets", "notes"]
    assert Path(command[0]).is_absolute()
    assert stat.S_IMODE((home / FILES[host]).stat().st_mode) == 0o600
    assert run(host.value, "--undo", "--agent", "atlas", "--sets", "notes", "--yes").exit_code == 0
    assert not (home / FILES[host]).exists()


@pytest.mark.parametrize("host", [each for each in Host if each is not Host.CLAUDE_DESKTOP])
def test_a_project_gets_a_command_that_works_for_everybody(home: Path, host: Host) -> None:
    assert run(host.value, "--project", "--yes").exit_code == 0
    written = home / "project" / HOSTS[host].in_project
    assert parse(written)[HOSTS[host].section]["wellkept"]["command"] == "wellkept"
    assert run("claude-desktop", "--project", "--yes").exit_code == 1


@pytest.mark.parametrize("text", JSON_TEXTS)
def test_json_keeps_every_other_byte(text: str) -> None:
    edited = set_json(text, "mcpServers", "wellkept", ENTRY)

    had, has = parse_json(text), parse_json(edited)
    old = had.get("mcpServers", {}).get("wellkept", {})
    assert has["mcpServers"].pop("wellkept") == {**old, **ENTRY}
    had.setdefault("mcpServers", {}).pop("wellkept", None)
    assert has == had
    assert ("\r\n" in text) == ("\r\n" in edited)
    assert re.findall("//.*|/[*].*", edited) == re.findall("//.*|/[*].*", text)
    # Once more changes nothing, and what was inserted can be taken out again.
    assert set_json(edited, "mcpServers", "wellkept", ENTRY) == edited
    assert "wellkept" not in parse_json(remove_json(edited, "mcpServers", "wellkept"))["mcpServers"]
    if not old:
        rest = remove_json(edited, "mcpServers", "wellkept")
        assert "".join(rest.split()).replace('"mcpServers":{},', "") in (
            "".join(text.split()).replace('"mcpServers":{},', ""),
            "".join(text.replace("{", '{"mcpServers":{}', 1).split()),
        )


@pytest.mark.parametrize("text", TOML_TEXTS)
def test_toml_keeps_every_other_byte(text: str) -> None:
    edited = set_toml(text, "mcp_servers", "wellkept", ENTRY)

    had, has = tomllib.loads(text), tomllib.loads(edited)
    old = had.get("mcp_servers", {}).get("wellkept", {})
    assert has["mcp_servers"].pop("wellkept") == {**old, **ENTRY}
    had.setdefault("mcp_servers", {}).pop("wellkept", None)
    assert has == had
    assert re.findall("#.*", edited) == re.findall("#.*", text)
    assert set_toml(edited, "mcp_servers", "wellkept", ENTRY) == edited
    if not old:
        assert edited.startswith(text)
    if '"""' in text:
        # What looks like a header is part of a text: nothing is removed rather than too much.
        with pytest.raises(Invalid):
            remove_toml(edited, "mcp_servers", "wellkept")
        return
    removed = remove_toml(edited, "mcp_servers", "wellkept")
    assert "wellkept" not in tomllib.loads(removed).get("mcp_servers", {})
    # Ends of lines are not mixed.
    assert "\r" not in text or removed.count("\n") == removed.count("\r\n")


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (set_json, "[]"),
        (set_json, '{"a": '),
        (set_json, '{"mcpServers": []}'),
        (set_json, "{'a': 1}"),
        (set_toml, "= 1"),
        (set_toml, "mcp_servers = { wellkept = { command = 'x' } }"),
        (set_toml, "mcp_servers.wellkept.command = 'x'"),
    ],
)
def test_a_file_in_another_form_is_left_alone(edit: Any, text: str) -> None:
    with pytest.raises(Invalid):
        edit(text, "mcp_servers" if edit is set_toml else "mcpServers", "wellkept", ENTRY)


def test_the_file_is_shown_backed_up_and_restored(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    before = '{\n    "mcpServers": {"other": {"command": "x"}} // mine\n}\n'
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
    assert "needs no change" in run("cursor", "--yes").output
    assert run("cursor", "--agent", "nova", "--yes").exit_code == 0
    assert run("cursor", "--agent", "nova", "--undo", "--yes").exit_code == 0
    assert path.read_text() == before
    assert [each.name for each in path.parent.iterdir()] == ["mcp.json"]


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


def test_a_read_only_file_is_not_replaced(home: Path) -> None:
    (home / ".claude.json").write_text("{}")
    (home / ".claude.json").chmod(0o444)

    refused = run("claude", "--yes")
    assert refused.exit_code == 1
    assert "is read-only" in refused.output
    assert (home / ".claude.json").read_text() == "{}"
    assert not (home / ".claude.json.wellkept-backup").exists()


def test_a_broken_file_is_not_touched(home: Path) -> None:
    (home / ".claude.json").write_text('{"a": ')
    refused = run("claude", "--yes")

    assert refused.exit_code == 1
    assert "was not changed: it is not a JSON object. Edit it yourself" in " ".join(refused.output.split())
    assert (home / ".claude.json").read_text() == '{"a": '


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
    assert HOSTS[Host.CLAUDE_DESKTOP].path() == support / "Claude" / "claude_desktop_config.json"
    assert HOSTS[Host.VSCODE].path() == support / "Code" / "User" / "mcp.json"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("APPDATA", str(home / "roaming"))
    assert HOSTS[Host.VSCODE].path() == home / "roaming" / "Code" / "User" / "mcp.json"
    monkeypatch.setenv("CODEX_HOME", str(home / "codex"))
    assert HOSTS[Host.CODEX].path() == home / "codex" / "config.toml"
