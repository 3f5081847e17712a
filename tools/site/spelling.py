"""Finds misspelled words in README and docs/. Words of our own are in tools/site/words.txt."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from spellchecker import SpellChecker

ROOT = Path(__file__).parents[2]
WORDS = Path(__file__).with_name("words.txt")
# Code, addresses, HTML and targets of links are not prose; neither are names: `words`, snake_case, CamelCase, CAPITALS.
NO_PROSE = re.compile(
    r"^(```|~~~).*?^ *\1|`+[^`]*`+|<[^>]*>|(?<=\])\([^)]*\)|https?://\S+|^ *:::.*$|\S*[\w.]@\S*",
    re.MULTILINE | re.DOTALL,
)
WORD = re.compile(r"(?<![\w.'’/#_-])[A-Za-z][a-z]+(?:['’](?:t|re|ve|ll|d))?(?![\w/_@]|\.\w)")


def main() -> int:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    known = {word for word in WORDS.read_text("utf-8").split() if not word.startswith("#")}
    checker = SpellChecker(language="en", distance=1)
    checker.word_frequency.load_words(known)
    problems = [
        f"{page.relative_to(ROOT)}:{line}: {word}"
        for page in sorted(pages)
        for line, word in find_unknown(page, checker)
    ]
    print("\n".join(problems) or f"{len(pages)} pages are spelled right.")
    return min(len(problems), 1)


def find_unknown(page: Path, checker: SpellChecker) -> Iterator[tuple[int, str]]:
    """Yield the line and the word for each word that neither the dictionary nor our list has."""
    # Keeps the line breaks of what it takes out.
    prose = NO_PROSE.sub(lambda match: " " + "\n" * match[0].count("\n"), page.read_text("utf-8"))
    for number, line in enumerate(prose.splitlines(), 1):
        words = [word.replace("’", "'") for word in WORD.findall(line)]
        unknown = checker.unknown(words)
        yield from ((number, word) for word in words if word.lower() in unknown)


if __name__ == "__main__":
    sys.exit(main())
