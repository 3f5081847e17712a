"""Edits of other programs' configuration files that change one entry and keep every other byte.

JSON may have comments and trailing commas, as some hosts allow. Every edit is checked: the new text must parse, contain
the entry, and otherwise mean what it meant before.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wellkept.errors import Invalid
from wellkept.model import Json

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[\[\]{},:]|[^\s\[\]{},:"/]+|\s+', re.DOTALL)
"""A string, a comment, a bracket or sign, a number or word, or white space."""

TOML_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
BYTE_ORDER_MARK = "\ufeff"
NOT_JSON = "it is not a JSON object"
NOT_TOML = "it is not valid TOML"


class _Member(NamedTuple):
    """One member of an object in a text: where its name and its value begin and end."""

    name: str
    start: int
    value: int
    end: int


def set_json(text: str, section: str, name: str, entry: Json) -> str:
    """Set an entry of a section, such as `mcpServers`, and keep its other fields. Raises: Invalid."""
    newline = _find_newline(text)
    if not text.strip():
        return json.dumps({section: {name: entry}}, indent=2, ensure_ascii=False).replace("\n", newline) + newline
    before, root = parse_json(text), _first_brace(text)
    step = _find_indent(text)
    outer = _find_member(text, root, section)
    if outer is None:
        edited = _insert(text, root, section, {name: entry}, step, 1, newline)
    elif text[outer.value] != "{":
        raise Invalid(NOT_JSON)
    elif (inner := _find_member(text, outer.value, name)) is None:
        edited = _insert(text, outer.value, name, entry, step, 2, newline)
    else:
        old = before[section][name]
        whole = {**old, **entry} if isinstance(old, dict) else entry
        if whole == old:
            return text
        edited = text[: inner.value] + _render(whole, step, 2, newline) + text[inner.end :]
    _check(before, parse_json(edited), section, name, entry)
    return edited


def remove_json(text: str, section: str, name: str) -> str:
    """Remove an entry of a section. Raises: Invalid."""
    before, outer = parse_json(text), _find_member(text, _first_brace(text), section)
    inner = None if outer is None or text[outer.value] != "{" else _find_member(text, outer.value, name)
    if inner is None:
        return text
    start, end = len(text[: inner.start].rstrip()), inner.end
    comma = re.compile(r"\s*,").match(text, end)
    if comma is not None:
        end = comma.end()
    elif text[start - 1] == ",":
        start -= 1
    edited = text[:start] + text[end:]
    _check(before, parse_json(edited), section, name, None)
    return edited


def parse_json(text: str) -> Json:
    """Parse JSON with comments and trailing commas. Raises: Invalid."""
    kept: list[str] = []
    for token in _tokens(text.removeprefix(BYTE_ORDER_MARK)):
        if token[:2] in ("//", "/*") or token.isspace():
            continue
        if token in ("}", "]") and kept and kept[-1] == ",":
            kept.pop()
        kept.append(token)
    try:
        parsed = json.loads(" ".join(kept))
    except ValueError as error:
        raise Invalid(NOT_JSON) from error
    if not isinstance(parsed, dict):
        raise Invalid(NOT_JSON)
    return parsed


def _tokens(text: str) -> Sequence[str]:
    found = TOKEN.findall(text)
    if sum(map(len, found)) != len(text):
        raise Invalid(NOT_JSON)
    return found


def _first_brace(text: str) -> int:
    place = 0
    for token in _tokens(text):
        if token == "{":
            return place
        place += len(token)
    raise Invalid(NOT_JSON)


def _find_member(text: str, brace: int, name: str) -> _Member | None:
    """Find a member of the object that begins at `brace`; of several with this name the last, which counts."""
    found, depth, place, last = None, 0, brace, brace
    named, key, value = "", -1, -1
    for token in TOKEN.findall(text, brace):
        is_blank = token.isspace() or token[:2] in ("//", "/*")
        if depth == 1 and not is_blank:
            if token in (",", "}"):
                if value >= 0 and named == name:
                    found = _Member(name, key, value, last)
                key = value = -1
            elif key < 0:
                key, named = place, json.loads(token) if token[0] == '"' else ""
            elif token != ":" and value < 0:
                value = place
        depth += (token in ("{", "[")) - (token in ("}", "]"))
        place += len(token)
        if not is_blank:
            last = place
        if depth == 0:
            break
    return found


def _insert(text: str, brace: int, name: str, value: Json, step: str, depth: int, newline: str) -> str:
    """Insert a first member: no comma before it has to be found, and comments stay where they are."""
    rest = text[brace + 1 :]
    is_empty = _next_token(rest) == "}"
    member = f"{newline}{step * depth}{json.dumps(name)}: {_render(value, step, depth, newline)}"
    if not is_empty:
        # Members that share the line of their brace stay on one line, behind the new one.
        return f"{text[: brace + 1]}{member},{rest if rest[:1] in chr(13) + chr(10) else ' ' + rest.lstrip(' ')}"
    after = rest if rest.lstrip(" \t")[:1] in ("\r", "\n", "/") else f"{newline}{step * (depth - 1)}{rest.lstrip()}"
    return f"{text[: brace + 1]}{member}{after}"


def _next_token(text: str) -> str:
    return next((each for each in TOKEN.findall(text) if not each.isspace() and each[:2] not in ("//", "/*")), "")


def _render(value: Json, step: str, depth: int, newline: str) -> str:
    lines = json.dumps(value, indent=step, ensure_ascii=False).split("\n")
    return newline.join([lines[0], *(step * depth + line for line in lines[1:])])


def _find_newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _find_indent(text: str) -> str:
    found = re.search(r'\n([ \t]+)"', text)
    return "  " if found is None else found[1]


def set_toml(text: str, section: str, name: str, entry: Json) -> str:
    """Set the table `[section.name]` and keep its other keys. Raises: Invalid."""
    before = parse_toml(text)
    newline = _find_newline(text)
    old = before.get(section, {}).get(name, {})
    if old and {**old, **entry} == old:
        return text
    # What looks like its header may be part of a text.
    start, end = _find_table(text, section, name) if old else (-1, -1)
    if start < 0:
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        edited = f"{text}{gap}{_render_table(section, name, entry, newline)}"
    else:
        # Tables below it, such as its env, have headers of their own and stay.
        plain = {key: value for key, value in old.items() if f"[{section}.{name}.{key}]" not in text}
        edited = text[:start] + _render_table(section, name, {**plain, **entry}, newline) + text[end:]
    _check(before, parse_toml(edited), section, name, entry)
    return edited


def remove_toml(text: str, section: str, name: str) -> str:
    """Remove the table `[section.name]` and those below it. Raises: Invalid."""
    before, edited, newline = parse_toml(text), text, _find_newline(text)
    while (found := _find_table(edited, section, name, is_below=True))[0] >= 0:
        above = edited[: found[0]].rstrip("\r\n \t")
        edited = above + (newline if above else "") + edited[found[1] :]
    _check(before, parse_toml(edited), section, name, None)
    return edited


def parse_toml(text: str) -> Json:
    """Raises: Invalid."""
    try:
        return tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))
    except ValueError as error:
        raise Invalid(NOT_TOML) from error


def _find_table(text: str, section: str, name: str, *, is_below: bool = False) -> tuple[int, int]:
    """Return where the block of a table begins and ends, with the blank lines after it; (-1, -1) if there is none."""
    below = r"(?:\s*\.[^\]]*)?" if is_below else ""
    header = re.compile(rf"^[ \t]*\[\s*{section}\s*\.\s*[\"']?{name}[\"']?\s*{below}\][^\n]*\n?", re.MULTILINE)
    found = header.search(text)
    if found is None:
        return -1, -1
    following = TOML_HEADER.search(text, found.end())
    end = len(text) if following is None else following.start()
    # Comments right above the next table belong to that.
    block = text[found.start() : end]
    kept = re.sub(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*\Z", "", block)
    return found.start(), found.start() + len(kept) + (1 if block[len(kept) :][:1] == "\n" else 0)


def _render_table(section: str, name: str, entry: Json, newline: str) -> str:
    lines = [f"[{section}.{name}]", *(f"{_key(key)} = {_toml_value(value)}" for key, value in entry.items())]
    return newline.join(lines) + newline


def _toml_value(value: Any) -> str:
    """Render a value. TOML shares the strings, numbers and words of JSON."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_toml_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError as error:
        raise Invalid(NOT_TOML) from error


def _key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _check(before: Json, after: Json, section: str, name: str, entry: Json | None) -> None:
    """Check that only the entry has changed. Raises: Invalid."""
    servers = dict(after.get(section, {}))
    now, others = servers.pop(name, None), {**before, section: {**before.get(section, {})}}
    others[section].pop(name, None)
    is_set = now is None if entry is None else now is not None and {**now, **entry} == now
    if not is_set or {**after, section: servers} != others:
        raise Invalid("it has a form that cannot be edited safely")
