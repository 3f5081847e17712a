"""Skills: instructions for agents, loaded from files and shared by all tenants.

Skills are read when the store is opened; an invalid file is an error then. Later, every use compares the stamps of the
files and reads all again if one changed. If an edit makes a file invalid, the last valid skills stay in use and the
problem is reported. A skill is never cut and never expires.

Skill files: folders with a SKILL.md each, made of front matter between two lines of `---`, and a body.

    ---
    name: refunds
    description: How to handle a refund from the first message to the payment.
    agents: [support, billing]
    ---
    1. Look up the order …

Errors name the file and the line, like those of a compiler.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from wellkept.errors import Invalid
from wellkept.language.names import check_agent
from wellkept.model import Owner, Skill

log = logging.getLogger("wellkept")

FILE = "SKILL.md"
FENCE = "---"
MAX_DEPTH = 3
"""Levels of folders searched. Folders inside that of a skill are not searched."""

MAX_BYTES = 1_000_000
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1024

Fields = dict[str, tuple[Any, int]]
"""Front matter: each value with the line of its key."""


class Skills:
    """All skills in these folders and below them, read again when a file changes."""

    def __init__(self, folders: Sequence[str]) -> None:
        """Read all skills. Raises: Invalid when a folder or a file is invalid."""
        self._folders = [Path(folder).expanduser() for folder in folders]
        self._lock = threading.Lock()
        self._stamps = self._find_stamps()
        self._held = _read_skills(self._stamps)
        self._problem = ""

    def __call__(self) -> Sequence[Skill]:
        """Return all skills, ordered by name."""
        with self._lock:
            try:
                stamps = self._find_stamps()
                if stamps != self._stamps:
                    self._held, self._stamps = _read_skills(stamps), stamps
                self._problem = ""
            # Keep all skills as they were until the file or folder is mended.
            except Invalid as error:
                if str(error) != self._problem:
                    log.warning("Skills could not be read; their last valid versions stay in use. %s", error)
                self._problem = str(error)
            return self._held

    def for_agent(self, owner: Owner) -> Sequence[Skill]:
        """Return the skills of an agent, ordered by name: those that name it, and those that name no agents."""
        return [skill for skill in self() if not skill.agents or owner.agent in skill.agents]

    def problems(self) -> Sequence[str]:
        """Return the current problem, a sentence that names the file and the line, if there is one."""
        self()
        return [self._problem] if self._problem else []

    def _find_stamps(self) -> Mapping[str, Hashable]:
        """Return the modification stamp of every skill file. Raises: Invalid."""
        found: dict[str, Hashable] = {}
        for folder in self._folders:
            if not folder.is_dir():
                raise Invalid(f"{folder}: there is no such folder of skills; correct the setting `skills`.")
            for entry in _iter_files(folder, MAX_DEPTH):
                # The file may be removed meanwhile.
                with suppress(FileNotFoundError):
                    status = entry.stat()
                    found[entry.path] = (status.st_mtime_ns, status.st_size, status.st_ino)
        return found


def _read_skills(paths: Iterable[str]) -> Sequence[Skill]:
    """Read skill files; return the skills ordered by name. Raises: Invalid."""
    named: dict[str, Skill] = {}
    for path in paths:
        skill = _read_skill(path)
        first = named.setdefault(skill.name, skill)
        if first is not skill:
            raise Invalid(f"{path}: the name {skill.name!r} is taken by {first.path}; rename one of them.")
    return tuple(named[name] for name in sorted(named))


def _read_skill(path: str) -> Skill:
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error
    if len(content) > MAX_BYTES:
        raise Invalid(f"{path}: larger than {MAX_BYTES:,} bytes, which does not fit a prompt.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(path, content.count(b"\n", 0, error.start) + 1, "not UTF-8 text")
    if "\x00" in text:
        _refuse(path, text.count("\n", 0, text.index("\x00")) + 1, "holds a NUL character; remove it")
    return _parse_skill(path, text)


def _iter_files(folder: str | Path, depth: int) -> Iterator[os.DirEntry[str]]:
    """Yield every SKILL.md below a folder, sorted by path; a folder that has one is not searched further.

    Raises: Invalid.
    """
    try:
        with os.scandir(folder) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        # The folder was removed meanwhile.
        return
    except OSError as error:
        raise Invalid(f"{folder}: cannot be read ({error.strerror}).") from error
    own = next((entry for entry in inside if entry.name == FILE and entry.is_file()), None)
    if own is not None:
        yield own
        return
    for entry in inside:
        if depth and not entry.name.startswith(".") and entry.is_dir():
            yield from _iter_files(entry.path, depth - 1)


def _parse_skill(path: str, text: str) -> Skill:
    front, body, body_line = _split(path, text)
    fields = _parse_fields(path, front)
    name = _parse_line(path, fields, "name", MAX_NAME_CHARS)
    description = _parse_text(path, fields, "description", MAX_DESCRIPTION_CHARS)
    agents = _parse_agents(path, fields)
    if not body.strip():
        _refuse(path, body_line, "the skill itself is missing; write it below the front matter")
    more = {key: value for key, (value, _) in fields.items() if key not in ("name", "description", "agents")}
    return Skill(name=name, description=description, body=body.strip("\n"), agents=agents, path=path, meta=more)


def _split(path: str, text: str) -> tuple[str, str, int]:
    """Split a file into front matter, body, and the line the body starts on."""
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        _refuse(path, 1, f"must begin with a line {FENCE}, then name and description, then another {FENCE}")
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]), number + 2
    _refuse(path, len(lines), f"the front matter has no end; close it with a line {FENCE}")


def _parse_fields(path: str, front: str) -> Fields:
    # Imported here because it is slow to load and most installations have no skills.
    yaml = import_module("yaml")
    try:
        node = yaml.compose(front, Loader=yaml.SafeLoader)
        content = yaml.safe_load(front)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        _refuse(path, 2 + (mark.line if mark else 0), f"the front matter is not valid YAML ({error.problem})")
    except yaml.reader.ReaderError as error:
        line = 2 + front.count("\n", 0, error.position)
        _refuse(path, line, "the front matter holds a character that is not allowed")
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        _refuse(path, 2, "the front matter must name fields, such as name: refunds")
    lines = {key.value: 2 + key.start_mark.line for key, _ in node.value}
    return {key: (value, lines.get(key, 2)) for key, value in content.items()}


def _parse_text(path: str, fields: Fields, key: str, most: int) -> str:
    if key not in fields:
        _refuse(path, 1, f"the front matter has no {key}")
    value, line = fields[key]
    if not isinstance(value, str) or not value.strip():
        _refuse(path, line, f"{key} must be a text (in quotes if it looks like something else)")
    if len(value.strip()) > most:
        _refuse(path, line, f"{key} is too long (max {most:,} characters)")
    return value.strip()


def _parse_line(path: str, fields: Fields, key: str, most: int) -> str:
    text = _parse_text(path, fields, key, most)
    if not text.isprintable():
        _refuse(path, fields[key][1], f"{key} must be a single line")
    return text


def _parse_agents(path: str, fields: Fields) -> tuple[str, ...]:
    value, line = fields.get("agents", ([], 1))
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        _refuse(path, line, "agents must be a list of agent ids, such as [support, billing]")
    if "agents" in fields and not value:
        _refuse(path, line, "agents is empty; leave it out to give the skill to all agents")
    try:
        return tuple(check_agent(each) for each in value)
    except Invalid as error:
        _refuse(path, line, f"agents: {str(error)[:1].lower()}{str(error)[1:].rstrip('.')}")


def _refuse(path: str, line: int, problem: str) -> NoReturn:
    raise Invalid(f"{path}:{line}: {problem}.")
