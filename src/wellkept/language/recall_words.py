"""Words that recall goes by in texts and questions, in English, German, French, Spanish, Italian and Portuguese.

`recall.toml` lists them and says what they mean.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_SOURCE = tomllib.loads(Path(__file__).with_name("recall.toml").read_text("utf-8"))

SELF_WORDS = frozenset(_SOURCE["self_words"].split())
TIME_WORDS = frozenset(_SOURCE["time_words"].split())
NUMBER_WORDS = frozenset(_SOURCE["number_words"].split())
NOUN_LANGUAGE_WORDS = frozenset(_SOURCE["noun_language_words"].split())
SMALL_TALK = frozenset(" ".join(_SOURCE["small_talk"].split()).split(", "))
LIGHT_WORDS: str = _SOURCE["light_words"]
ASKS_TIME = re.compile(_SOURCE["asks_time"])
ASKS_NUMBER = re.compile(_SOURCE["asks_number"])
