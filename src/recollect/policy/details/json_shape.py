"""The outer shape of a JSON document that streams by: how many entries it has, and what its keys are called."""

from __future__ import annotations

import json
import re

MAX_KEYS = 12
MAX_KEY_CHARS = 40
MAX_CUT_CHARS = 4096
"""How much of a string that is not finished yet is kept; of a longer one only that it goes on."""

MAX_ROUNDS = 32
"""Nesting deeper than this within one piece is read bracket by bracket."""

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]', re.DOTALL)
_OTHER = bytes(set(range(128)) - set(b"{}[],"))
_PAIR = re.compile(r"\{,*\}|\[,*\]")
_EMPTY = re.compile(r"\s*(?:\{\s*\}|\[\s*\])")


class JsonShape:
    """Reads a document piece by piece in bounded memory. It counts; it does not check every comma."""

    def __init__(self) -> None:
        self.is_object = False
        self.is_broken = False  # not one JSON document, whatever may follow
        self.keys: list[str] = []
        self._is_begun = False
        self._is_empty = False
        self._is_done = False
        self._closers: list[str] = []  # what will close each level that is open
        self._commas = 0  # between entries of the document itself
        self._key = ""  # the last string at the outermost level: a key if a colon follows
        self._cut = ""
        self._is_in_string = False

    @property
    def entries(self) -> int:
        return 0 if self._is_empty else self._commas + 1

    @property
    def is_whole(self) -> bool:
        """Whether it was one document, and has ended."""
        return self._is_done and not self.is_broken and not self._cut.strip() and not self._is_in_string

    def feed(self, text: str) -> None:
        if not self._is_begun:
            self._is_begun, self._is_empty = True, _EMPTY.match(text) is not None
        whole, structure = self._cut_off(text)
        if self._closers:  # the document's own brackets are open, so pairs of brackets are inside an entry
            structure, rounds = _PAIR.sub("", structure), 1
            while rounds < MAX_ROUNDS and _PAIR.search(structure):
                structure, rounds = _PAIR.sub("", structure), rounds + 1
        wants_keys = len(self.keys) < MAX_KEYS and (self.is_object or not self._closers)
        if wants_keys and len(self._closers) - structure.count("}") - structure.count("]") <= 1:
            self._read(_TOKEN.findall(whole))
        else:
            self._read(structure)

    def _cut_off(self, text: str) -> tuple[str, str]:
        """`text` up to a string that goes on in the next piece, as it is and as brackets and commas only."""
        text, self._cut = self._cut + text, ""
        plain = text.replace("\\\\", "__").replace('\\"', "__") if "\\" in text else text  # of the same length
        if self._is_in_string:
            end = plain.find('"') + 1
            if end == 0:
                self._cut = "\\" if plain.endswith("\\") else ""  # it belongs to the character to come
                return "", ""
            text, plain, self._is_in_string = text[end:], plain[end:], False
        outside = plain.split('"')
        if len(outside) % 2 == 0:
            cut = len(text) - len(outside.pop()) - 1
            text, self._cut = text[:cut], text[cut:]
            if len(self._cut) > MAX_CUT_CHARS:
                self._is_in_string, self._cut = True, "\\" if plain.endswith("\\") else ""
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
