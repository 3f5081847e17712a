"""Outer shape of a streamed JSON document: the number of its entries and the names of its keys."""

from __future__ import annotations

import json
import re

MAX_KEYS = 12
MAX_KEY_CHARS = 40
MAX_CUT_CHARS = 4096
"""Maximum length kept of an unfinished string; of a longer one only its state is kept."""

MAX_ROUNDS = 32
"""Maximum depth of nesting removed pair by pair within one piece; deeper nesting is read token by token."""

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]', re.DOTALL)
_OTHER = bytes(set(range(128)) - set(b"{}[],"))
_PAIR = re.compile(r"\{,*\}|\[,*\]")
_EMPTY = re.compile(r"\s*(?:\{\s*\}|\[\s*\])")


class JsonShape:
    """Streaming reader with bounded memory. It counts entries but does not validate every comma."""

    def __init__(self) -> None:
        self.is_object = False
        self.is_broken = False  # not a single JSON document, regardless of what follows
        self.keys: list[str] = []
        self._has_started = False
        self._is_empty = False
        self._is_done = False
        self._closers: list[str] = []  # closing bracket of each open level
        self._commas = 0  # at the outermost level
        self._key = ""  # last string at the outermost level; a key if a colon follows
        self._pending = ""
        self._is_in_string = False

    @property
    def entries(self) -> int:
        return 0 if self._is_empty else self._commas + 1

    @property
    def is_whole(self) -> bool:
        """True if a single document was read to its end."""
        return self._is_done and not self.is_broken and not self._pending.strip() and not self._is_in_string

    def feed(self, text: str) -> None:
        if not self._has_started:
            self._has_started, self._is_empty = True, _EMPTY.match(text) is not None
        whole, structure = self._hold_back(text)
        # Inside the document, matching brackets belong to an entry and can be dropped.
        if self._closers:
            structure, rounds = _PAIR.sub("", structure), 1
            while rounds < MAX_ROUNDS and _PAIR.search(structure):
                structure, rounds = _PAIR.sub("", structure), rounds + 1
        is_reading_keys = len(self.keys) < MAX_KEYS and (self.is_object or not self._closers)
        if is_reading_keys and len(self._closers) - structure.count("}") - structure.count("]") <= 1:
            self._read(_TOKEN.findall(whole))
        else:
            self._read(structure)

    def _hold_back(self, text: str) -> tuple[str, str]:
        """Hold back an unfinished string; return the rest verbatim, and reduced to brackets and commas."""
        text, self._pending = self._pending + text, ""
        # Replacements of the same length keep positions valid.
        plain = text.replace("\\\\", "__").replace('\\"', "__") if "\\" in text else text
        if self._is_in_string:
            end = plain.find('"') + 1
            if end == 0:
                # A trailing backslash escapes the next piece's first character.
                self._pending = "\\" if plain.endswith("\\") else ""
                return "", ""
            text, plain, self._is_in_string = text[end:], plain[end:], False
        outside = plain.split('"')
        if len(outside) % 2 == 0:
            cut = len(text) - len(outside.pop()) - 1
            text, self._pending = text[:cut], text[cut:]
            if len(self._pending) > MAX_CUT_CHARS:
                self._is_in_string, self._pending = True, "\\" if plain.endswith("\\") else ""
        structure = "".join(outside[::2]).encode("ascii", "ignore").translate(None, _OTHER)
        return text, structure.decode()

    def _read(self, tokens: list[str] | str) -> None:
        closers = self._closers
        for token in tokens:
            if token in "{[":
                if not closers:
                    self.is_broken |= self._is_done
                    self.is_object = token == "{"
                closers.append("}" if token == "{" else "]")
            elif token in "}]":
                self.is_broken |= not closers or closers.pop() != token
                self._is_done = not closers
            elif len(closers) == 1:
                if token == ",":
                    self._commas += 1
                elif token == ":":
                    self._add_key()
                else:
                    self._key = token

    def _add_key(self) -> None:
        if self.is_object and self._key and len(self.keys) < MAX_KEYS:
            try:
                self.keys.append(str(json.loads(self._key, strict=False))[:MAX_KEY_CHARS])
            except ValueError:
                self.is_broken = True
        self._key = ""
