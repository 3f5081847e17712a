"""Servers for other programs, over HTTP and as MCP, and the registration of the MCP server in agent hosts."""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypedDict, Unpack

import click

from wellkept.cli.options import SummaryOptions, confirm_or_refuse
from wellkept.cli.output import Output, Unwrapped
from wellkept.cli.run import Run, optional_module
from wellkept.errors import Invalid
from wellkept.model import Json
from wellkept.settings import foreign_folder, masked, use_one_thread_each

NAME = "wellkept"
BACKUP = ".wellkept-backup"
"""Ending of the copy of a file from before it was changed."""

OWNER_ONLY = 0o600
PROGRAM_SECONDS = 60
NO_HOST = """This waits for an agent host to speak MCP. A host starts it by itself, for instance after:
claude mcp add wellkept -- wellkept mcp
Ctrl-D ends it."""
"""Shown to a person who types the command to see what it does."""


class McpAction(StrEnum):
    """Something else to do than to serve."""

    INSTALL = "install"


class Host(StrEnum):
    """An agent host."""

    CLAUDE = "claude"
    CLAUDE_DESKTOP = "claude-desktop"
    CODEX = "codex"
    CURSOR = "cursor"
    VSCODE = "vscode"
    GEMINI = "gemini"


def serve(
    run: Run,
    host: str | None = None,
    port: int | None = None,
    public_hosts: list[str] | None = None,
    workers: int | None = None,
    no_auth: bool = False,
    demo: bool = False,
    **options: Unpack[SummaryOptions],
) -> None:
    """Serve REST, MCP and the console over HTTP until Ctrl-C.

    The first start creates an admin key and shows it once. SIGHUP replaces the worker processes one by one.

    --host: The address to listen on; 127.0.0.1 by default.
    --port: The port to listen on; 8077 by default.
    --public-host NAME: Another host name to accept, such as memory.example.org.
    --workers N: Processes that serve; by default one per processor, up to 4.
    --no-auth: Require no key; only on a loopback address.
    --demo: Add sample data; the console removes it by one button.

    Example: wellkept serve --port 8077 --no-auth"""
    run.flags |= {"host": host, "port": port, "workers": workers, "public_hosts": public_hosts, **options}
    # Before the next line loads NumPy.
    use_one_thread_each()
    server = optional_module("wellkept.server.run", needs="The server", extra="server")
    server.serve(run.settings, no_auth=no_auth, has_sample=demo)


class InstallOptions(TypedDict):
    """Options of `mcp install`.

    --project: install: only for the project in this folder.
    --print: install: only show the entry.
    --dry-run: install: only show the change.
    --undo: install: take the entry out again.
    --yes, -y: install: do not ask for confirmation."""

    project: bool
    print: bool
    dry_run: bool
    undo: bool
    yes: bool


def mcp(
    run: Run,
    action: McpAction | None = None,
    host: Host | None = None,
    sets: str | None = None,
    **options: Unpack[InstallOptions],
) -> None:
    """Run an MCP server on standard input and output, for one agent.

    `mcp install HOST` registers it in Claude Code, Claude Desktop, Codex, Cursor, VS Code or Gemini CLI.

    action: Register the server in a host instead of running it.
    host: The host to register it in.
    --sets: The groups of tools to offer, such as notes,recall.

    Example: wellkept mcp install claude --agent atlas"""
    if action is McpAction.INSTALL:
        if host is None:
            raise Invalid(f"Name the host: wellkept mcp install {'|'.join(Host)}")
        _install(run, host, sets, options)
        return
    run.flags |= {"tool_sets": sets}
    if sys.stdin is not None and sys.stdin.isatty():
        click.secho(NO_HOST, dim=True, err=True)
    use_one_thread_each()
    server = optional_module("wellkept.server.mcp.stdio", needs="The MCP server", extra="mcp")
    server.run_stdio(run.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFile:
    """Configuration file of a host."""

    path: Path  # of the user
    in_project: str = ""  # below the folder of a project; empty: the host has none
    section: str = "mcpServers"
    has_type: bool = False  # entries name their transport


def list_host_files() -> Mapping[Host, HostFile]:
    """Return the file of each host, where this system keeps it."""
    home = Path.home()
    config = foreign_folder("XDG_CONFIG_HOME", home / ".config")
    if sys.platform == "darwin":
        config = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        config = foreign_folder("APPDATA", home / "AppData" / "Roaming")
    codex, code = foreign_folder("CODEX_HOME", home / ".codex"), config / "Code" / "User" / "mcp.json"
    return {
        Host.CLAUDE: HostFile(path=home / ".claude.json", in_project=".mcp.json", has_type=True),
        Host.CLAUDE_DESKTOP: HostFile(path=config / "Claude" / "claude_desktop_config.json"),
        Host.CODEX: HostFile(path=codex / "config.toml", in_project=".codex/config.toml", section="mcp_servers"),
        Host.CURSOR: HostFile(path=home / ".cursor" / "mcp.json", in_project=".cursor/mcp.json"),
        Host.VSCODE: HostFile(path=code, in_project=".vscode/mcp.json", section="servers", has_type=True),
        Host.GEMINI: HostFile(path=home / ".gemini" / "settings.json", in_project=".gemini/settings.json"),
    }


def _install(run: Run, host: Host, sets: str | None, options: InstallOptions) -> None:
    """Register the server in a host, or remove it: by the host's own program, else in its file. Raises: Invalid."""
    file = list_host_files()[host]
    if options["project"] and not file.in_project:
        raise Invalid(f"{host.value} has no configuration for single projects; leave out --project.")
    path = Path(file.in_project).absolute() if options["project"] else file.path
    flags = {**run.flags, "sets": sets}
    if flags["url"] is not None:
        flags["url"] = _check_url(str(flags["url"]))
    program = ["wellkept"] if options["project"] else find_program()
    words = [*program, "mcp", *(word for name, value in flags.items() if value for word in (f"--{name}", str(value)))]
    entry = {**({"type": "stdio"} if file.has_type else {}), "command": words[0], "args": words[1:]}

    def show(lines: Sequence[str], *, is_written: bool = False) -> None:
        document = {"path": str(path), "is_written": is_written, "entry": entry, "lines": [*lines]}
        run.show(Output(document, [Unwrapped(each) for each in lines]))

    if options["print"]:
        show(_render_entry(file, entry))
        return
    commands, old, new = _list_commands(host, words, options), "", ""
    change = [shlex.join(each) for each in commands]
    if not commands:
        old = _read(path)
        new = _edit(path, file, old, None if options["undo"] else entry)
        change = [*difflib.unified_diff(old.splitlines(), new.splitlines(), str(path), str(path), lineterm="", n=2)]
    if options["dry_run"] or not change:
        show(change or [f"{path} needs no change."])
        return
    if not options["yes"]:
        if run.has_terminal:
            show(change)
        question = "Run this?" if commands else f"Write {path}?"
        confirm_or_refuse(run, question, refusal="Nothing was written")
    for each in commands:
        # An entry is replaced; there may be none.
        _run(each, may_fail=each != commands[-1])
    if not commands:
        _write(path, old, new)
    show([f"Changed {path}; restart the host to use it."], is_written=True)


def _list_commands(host: Host, words: Sequence[str], options: InstallOptions) -> list[list[str]]:
    """Return the commands of the host's own program that do it; empty if it has none or is not installed."""
    # Codex writes to the file of its user only.
    has_program = host is Host.CLAUDE or (host is Host.CODEX and not options["project"])
    found = shutil.which(host) if has_program else None
    if found is None:
        return []
    scope = ["--scope", "project" if options["project"] else "user"] if host is Host.CLAUDE else []
    remove, add = [found, "mcp", "remove", *scope, NAME], [found, "mcp", "add", *scope, NAME, "--", *words]
    return [remove] if options["undo"] else [remove, add]


def _run(command: Sequence[str], *, may_fail: bool) -> None:
    """Run a command of the host's own program. Raises: Invalid."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Invalid(f"{command[0]} cannot be run: {error}.") from error
    if done.returncode and not may_fail:
        said = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise Invalid(f"{' '.join(command[:3])} failed: {said or f'exit code {done.returncode}'}")


def _render_entry(file: HostFile, entry: Json) -> list[str]:
    """Return the lines of a file that holds nothing else. TOML shares the strings and lists of JSON."""
    if file.path.suffix == ".toml":
        return [f"[{file.section}.{NAME}]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items())]
    return json.dumps({file.section: {NAME: entry}}, indent=2).splitlines()


def _edit(path: Path, file: HostFile, text: str, entry: Json | None) -> str:
    """Return the text of a file with the entry, or without if it is None. Raises: Invalid."""
    try:
        whole = {} if not text else json.loads(text)
        servers = {**whole.get(file.section, {})}
    except (ValueError, TypeError, AttributeError):
        servers = None
    if servers is None or path.suffix != ".json":
        lines = "\n".join(_render_entry(file, entry or {}))
        raise Invalid(f"{path} was not changed: it is not plain JSON. Edit it yourself; the entry is:\n{lines}")
    # Other fields of the entry, such as its environment, stay.
    old = servers.pop(NAME, None)
    wanted = None if entry is None else {**(old or {}), **entry}
    if wanted == old:
        return text
    whole = {**whole, file.section: servers if wanted is None else {**servers, NAME: wanted}}
    indent = re.search(r'\n([ \t]+)"', text)
    return json.dumps(whole, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"


def _write(path: Path, old: str, new: str) -> None:
    """Write the file if it still has the text `old`, with a copy of it beside. Raises: Invalid."""
    if _read(path) != old:
        raise Invalid(f"{path} has changed meanwhile; nothing was written. Run the command again.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A copy stays the text from before the first entry.
        if old and f'"{NAME}"' not in old:
            shutil.copy2(path, path.with_name(path.name + BACKUP))
        # In place, so that links and rights stay.
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY), "w", encoding="utf-8") as file:
            file.write(new)
    except OSError as error:
        raise Invalid(f"{path} cannot be written: {error.strerror or error}.") from error


def _read(path: Path) -> str:
    """Return the text of a file, "" if there is none. Raises: Invalid."""
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise Invalid(f"{path} cannot be read: {reason}.") from error


def find_program() -> list[str]:
    """Return the command of this installation by its full path: hosts often lack the PATH of a shell."""
    script = Path(sys.executable).with_name("wellkept.exe" if sys.platform == "win32" else "wellkept")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "wellkept"]


def _check_url(url: str) -> str:
    """Return the URL of a store as a host can use it, whatever folder it runs in.

    Raises: Invalid when it has a password, which does not belong into a configuration file.
    """
    if masked(url) != url:
        raise Invalid("The URL has a password, which is not written to a host's file; set WELLKEPT_URL for the host.")
    scheme, mark, path = url.partition("sqlite:///")
    if mark and not scheme:
        return f"sqlite:///{Path(path).absolute().as_posix()}"
    return url if "://" in url or url == ":memory:" else str(Path(url).absolute())
