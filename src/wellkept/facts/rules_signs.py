"""Signs in a message, of all languages, that tell statements from questions, requests and pasted texts.

`words/signs.toml` holds the patterns.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from wellkept.facts.rules_words import FOLDER

_SOURCE = {
    name: pattern.strip("\n").replace("\n|", "|")
    for name, pattern in tomllib.loads((FOLDER / "signs.toml").read_text("utf-8")).items()
}


def _compile(name: str) -> re.Pattern[str]:
    return re.compile(_SOURCE[name].replace("<tag>", _SOURCE["tag"].removeprefix("(?i)^")))


FENCE = _compile("fence")
QUOTED = _compile("quoted")
SENTENCE = _compile("sentence")
ABBREVIATION = _compile("abbreviation")
CODE = _compile("code")
FORMULA = _compile("formula")
BULLET = _compile("bullet")
CITED = _compile("cited")
UNSPACED = _compile("unspaced")
WORD = _compile("word")
TAG_END = _compile("tag_end")
UNWANTED = _compile("unwanted")
TASK = _compile("task")
CITING = _compile("citing")
DEMAND = _compile("demand")


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; an abbreviation does not end one."""
    pending = ""
    for part in SENTENCE.split(text):
        pending = f"{pending} {part}".strip() if pending else part.strip()
        if pending and not ABBREVIATION.search(pending):
            yield pending
            pending = ""
    if pending:
        yield pending
