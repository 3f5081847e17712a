"""Registration of the MCP server in the configuration files of agent hosts."""

from __future__ import annotations

import difflib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from wellkept.cli.config_edits import parse_json, parse_toml, remove_json, remove_toml, set_json, set_toml
from wellkept.errors import Invalid
from wellkept.model import Json
from wellkept.settings import foreign_folder, masked

NAME = "wellkept"
BACKUP = ".wellkept-backup"
"""Ending of the copy of a file from before it was changed."""


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

    def render(self) -> str:
        """Return the entry as it is written to an empty file."""
        return self._set("")

    def install(self, text: str) -> str:
        """Return the text of the file with the entry. Raises: Invalid."""
        return self._edit(lambda: self._set(text))

    def undo(self, text: str) -> str | None:
        """Return the text without the entry: the backup if nothing else has changed; None to delete the file.

        Raises: Invalid.
        """
        backup = read_text(self.backup_path)
        if text == self._set(backup or ""):
            return backup
        remove = remove_toml if self._file.is_toml else remove_json
        return self._edit(lambda: remove(text, self._file.section, NAME))

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
        parsed = (parse_toml if self._file.is_toml else parse_json)(text) if text.strip() else {}
        return NAME in parsed.get(self._file.section, {})

    def _set(self, text: str) -> str:
        edit = set_toml if self._file.is_toml else set_json
        return edit(text, self._file.section, NAME, self.entry)

    def _edit(self, edit: Callable[[], str]) -> str:
        try:
            return edit()
        except Invalid as error:
            advice = f"Edit it yourself; the entry is: {json.dumps({NAME: self.entry})}"
            raise Invalid(f"{self.path} was not changed: {error}. {advice}") from error


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
