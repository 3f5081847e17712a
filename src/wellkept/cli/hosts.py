"""Registration of the MCP server in agent hosts: by the host's own program where it is installed, else in its file."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from wellkept.errors import Invalid
from wellkept.model import Json
from wellkept.settings import foreign_folder, masked

NAME = "wellkept"
BACKUP = ".wellkept-backup"
"""Ending of the copy of a file from before it was changed."""

PROGRAM_SECONDS = 60


class Host(StrEnum):
    """An agent host."""

    CLAUDE = "claude"
    CLAUDE_DESKTOP = "claude-desktop"
    CODEX = "codex"
    CURSOR = "cursor"
    VSCODE = "vscode"
    GEMINI = "gemini"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFile:
    """Configuration file of a host."""

    path: Callable[[], Path]  # of the user
    in_project: str = ""  # below the folder of a project; empty: the host has none
    section: str = "mcpServers"
    has_type: bool = False  # entries name their transport
    is_toml: bool = False


def _home(*parts: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*parts)


def _config(*parts: str) -> Callable[[], Path]:
    """Return a path in the folder where programs keep their configuration."""

    def path() -> Path:
        if sys.platform == "darwin":
            return Path.home().joinpath("Library", "Application Support", *parts)
        if sys.platform == "win32":
            return foreign_folder("APPDATA", Path.home() / "AppData" / "Roaming").joinpath(*parts)
        return foreign_folder("XDG_CONFIG_HOME", Path.home() / ".config").joinpath(*parts)

    return path


HOSTS: dict[Host, HostFile] = {
    Host.CLAUDE: HostFile(path=_home(".claude.json"), in_project=".mcp.json", has_type=True),
    Host.CLAUDE_DESKTOP: HostFile(path=_config("Claude", "claude_desktop_config.json")),
    Host.CODEX: HostFile(
        path=lambda: foreign_folder("CODEX_HOME", Path.home() / ".codex") / "config.toml",
        in_project=".codex/config.toml",
        section="mcp_servers",
        is_toml=True,
    ),
    Host.CURSOR: HostFile(path=_home(".cursor", "mcp.json"), in_project=".cursor/mcp.json"),
    Host.VSCODE: HostFile(
        path=_config("Code", "User", "mcp.json"), in_project=".vscode/mcp.json", section="servers", has_type=True
    ),
    Host.GEMINI: HostFile(path=_home(".gemini", "settings.json"), in_project=".gemini/settings.json"),
}


class HostConfig:
    """The entry of wellkept in the configuration of one host."""

    def __init__(self, host: Host, arguments: Sequence[str], *, is_project: bool) -> None:
        """`arguments` are those of `wellkept mcp`. Raises: Invalid when the host has no file in projects."""
        self._file = HOSTS[host]
        if is_project and not self._file.in_project:
            raise Invalid(f"{host.value} has no configuration for single projects; leave out --project.")
        path = Path(self._file.in_project).absolute() if is_project else self._file.path()
        # A link stays a link, and the file behind it is changed.
        self.path = path.resolve() if path.is_symlink() else path
        command, *first = ["wellkept"] if is_project else find_program()
        stdio = {"type": "stdio"} if self._file.has_type else {}
        self.entry: Json = {**stdio, "command": command, "args": [*first, "mcp", *arguments]}
        scope = ["--scope", "project" if is_project else "user"] if host is Host.CLAUDE else []
        # Codex writes to the file of its user only.
        found = shutil.which(host) if host is Host.CLAUDE or (host is Host.CODEX and not is_project) else None
        words = [NAME, "--", command, *first, "mcp", *arguments]
        self._add = [found, "mcp", "add", *scope, *words] if found else []
        self._remove = [found, "mcp", "remove", *scope, NAME] if found else []

    def list_commands(self, *, is_undo: bool) -> list[list[str]]:
        """Return the commands of the host's own program that do it; empty if it has none or is not installed."""
        if not self._add:
            return []
        before = [self._remove] if self._has_entry(read_text(self.path) or "") else []
        return before if is_undo else [*before, self._add]

    def run(self, command: Sequence[str]) -> None:
        """Run a command of the host's own program. Raises: Invalid."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Invalid(f"{command[0]} cannot be run: {error}.") from error
        if done.returncode:
            said = (done.stderr or done.stdout).strip().rpartition("\n")[2]
            raise Invalid(f"{' '.join(command[:3])} failed: {said or f'exit code {done.returncode}'}")

    def render(self) -> str:
        """Return the entry as it is written to an empty file."""
        return self._set("", self.entry)

    def install(self, text: str) -> str:
        """Return the text of the file with the entry. Raises: Invalid."""
        return self._edit(text, self.entry)

    def undo(self, text: str) -> str | None:
        """Return the text without the entry: the backup if nothing else has changed; None to delete the file.

        Raises: Invalid.
        """
        backup = read_text(self.backup_path)
        if text == self._edit(backup or "", self.entry):
            return backup
        return self._edit(text, None)

    @property
    def backup_path(self) -> Path:
        return self.path.with_name(self.path.name + BACKUP)

    def write(self, old: str | None, new: str | None, *, has_backup: bool) -> None:
        """Replace the file if it still has the text `old`. Raises: Invalid."""
        if read_text(self.path) != old:
            raise Invalid(f"{self.path} has changed meanwhile; nothing was written. Run the command again.")
        if old is not None and not self.path.stat().st_mode & stat.S_IWUSR:
            raise Invalid(f"{self.path} is read-only; nothing was written. Make it writable, or edit its source.")
        try:
            # A backup stays the text from before the first entry.
            if old is not None and has_backup and not self._has_entry(old):
                _replace(self.backup_path, old, like=self.path)
            if new is None:
                self.path.unlink(missing_ok=True)
            else:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                _replace(self.path, new, like=self.path)
            if not has_backup:
                self.backup_path.unlink(missing_ok=True)
        except OSError as error:
            raise Invalid(f"{self.path} cannot be written: {error.strerror or error}.") from error

    def diff(self, old: str | None, new: str | None) -> list[str]:
        """Return the change, as `diff -u` shows it."""
        before, after, path = (old or "").splitlines(), (new or "").splitlines(), str(self.path)
        return list(difflib.unified_diff(before, after, path, path, lineterm="", n=2))

    def _has_entry(self, text: str) -> bool:
        try:
            return NAME in self._parse(text)[self._file.section]
        except (Invalid, KeyError, TypeError):
            return False

    def _parse(self, text: str) -> Json:
        """Raises: Invalid."""
        text = text.removeprefix("\ufeff")
        try:
            parsed = tomllib.loads(text) if self._file.is_toml else json.loads(text or "{}")
        except ValueError as error:
            raise Invalid(f"it is not plain {'TOML' if self._file.is_toml else 'JSON'}") from error
        if not isinstance(parsed, dict) or not isinstance(parsed.get(self._file.section, {}), dict):
            raise Invalid(f"it is not an object with {self._file.section}")
        return parsed

    def _edit(self, text: str, entry: Json | None) -> str:
        """Return a text with the entry, or without if it is None. Raises: Invalid."""
        try:
            return self._set(text, entry)
        except Invalid as error:
            advice = f"Edit it yourself; the entry is: {json.dumps({NAME: self.entry})}"
            raise Invalid(f"{self.path} was not changed: {error}. {advice}") from error

    def _set(self, text: str, entry: Json | None) -> str:
        parsed, section = self._parse(text), self._file.section
        servers = {**parsed.get(section, {})}
        old = servers.pop(NAME, {})
        # Other fields of the entry, such as its environment, stay.
        wanted = None if entry is None else {**old, **entry}
        if wanted == (old or None):
            return text
        whole = {**parsed, section: servers if wanted is None else {**servers, NAME: wanted}}
        if self._file.is_toml:
            return _set_table(text, section, wanted, whole)
        indent = re.search(r'\n([ \t]+)"', text)
        return json.dumps(whole, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"


def _set_table(text: str, section: str, entry: Json | None, whole: Json) -> str:
    """Replace the table of wellkept in TOML, and keep everything else as it is. Raises: Invalid."""
    header = rf"^[ \t]*\[\s*{section}\s*\.\s*[\"']?{NAME}[\"']?\s*(?:\.[^\]]*)?\]"
    # A table ends at the next one, which the comments above it belong to.
    rest = re.sub(rf"{header}(?:.*\n?)(?:(?!(?:[ \t]*#.*\n|\s*\n)*[ \t]*\[).*\n?)*", "", text, flags=re.MULTILINE)
    if entry is not None:
        rows = "".join(f"{key} = {_render_toml(value)}\n" for key, value in entry.items())
        rest = f"{rest.rstrip()}\n\n[{section}.{NAME}]\n{rows}".lstrip("\n")
    try:
        is_same = {section: {}, **tomllib.loads(rest)} == whole
    except ValueError:
        is_same = False
    if not is_same:
        raise Invalid("it has a form that cannot be edited safely")
    return rest


def _render_toml(value: object) -> str:
    """Render a value. TOML shares the strings, numbers and lists of JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_render_toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False, default=str)


def find_program() -> list[str]:
    """Return the command of this installation by its full path: hosts often lack the PATH of a shell."""
    script = Path(sys.executable).with_name("wellkept.exe" if sys.platform == "win32" else "wellkept")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "wellkept"]


def check_url(url: str) -> str:
    """Return the URL of a store as a host can use it, whatever folder it runs in.

    Raises: Invalid when it has a password, which does not belong into a configuration file.
    """
    if masked(url) != url:
        raise Invalid("The URL has a password, which is not written to a host's file; set WELLKEPT_URL for the host.")
    scheme, mark, path = url.partition("sqlite:///")
    if mark and not scheme:
        return f"sqlite:///{Path(path).absolute().as_posix()}"
    return url if "://" in url or url == ":memory:" else str(Path(url).absolute())


def read_text(path: Path) -> str | None:
    """Return the text of a file with its line ends; None if there is none. Raises: Invalid."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise Invalid(f"{path} cannot be read: {reason}.") from error


def _replace(path: Path, text: str, *, like: Path) -> None:
    """Write a file at once, with the permissions of another one; a new one is for its owner only."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if like.exists():
            os.chmod(name, like.stat().st_mode & 0o777)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
