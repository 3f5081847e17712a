"""Loop guard: text that memory put into a prompt must not come back as a new memory.

A text is an echo if nothing is left of it after removing
  1. our own blocks, recognised by their headings: `[Memories]`, `[Recalled Memories]`, `[Knowledge]` and `# Your
     Private Memory` with their items and surrounding marks, and answers of the search tools;
  2. injected or recalled texts, which are known by hashes of their words: all of it, or each line, item or sentence;
  3. the few words that introduce them ("Here is what I remember:").
If even one other word is left, the text may be new and is kept: losing a memory is worse than storing it twice. Quote
marks, indentation, bullets and re-wrapped lines make no difference. A reference (`[MemoryRef: key - description]`)
points to a stored detail and is never removed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

from wellkept.details.rules_keys import REFERENCE
from wellkept.language.text import fold
from wellkept.prompt.rules_escaping import END_MARKS, INFORMATION, strip_joiners, to_one_line
from wellkept.prompt.rules_relevance import HEADING
from wellkept.prompt.rules_window import KNOWLEDGE_HEADING, RECALLED_HEADING

LEAD_INS = frozenset(
    """
    here is are what i know about you me my your memory memories note notes noted recalled recall recalling remember
    remembered relevant following from the that stored saved these this according to as of context injected core journal
    entries private retrieved search results result found
    """.split()
)
"""Words that introduce a quotation and carry no information."""

MAX_LEAD_IN_WORDS = 12
"""Maximum number of lead-in words; a longer rest may be a sentence with a meaning."""

MIN_PART_WORDS = 2
"""Minimum words of a known text that is recognised as a part of a longer one; "yes" occurs in many texts."""

MAX_PARTS = 50
"""Maximum number of parts of a text that are compared one by one with what was shown."""

_QUOTE = re.compile(r"(?:\s{0,12}[>|])+ ?")
_DECORATION = " \t*_`\"'“”:"
_LIST_MARK = re.compile(r"(?:[-*+•–]|\d{1,3}[.)])\s+")
_LABEL = r"\((?:m-\d{1,18}|memory|audit|workflow|knowledge)(?:,[^()\n]{0,200})?\)"
_ITEM = re.compile(rf"(?:(?:[-*+•–]|\d{{1,3}}[.)])\s*)?{_LABEL}")
_RECALLED_ITEM = re.compile(r"[-*+•–]\s*\(m-\d{1,18}, \d{4}-\d\d-\d\d\)\s*\S")
_INLINE_ITEM = re.compile(rf"[-*+•–]\s*{_LABEL}")
_JOURNAL_ITEM = re.compile(r"[-*+•–]\s+\[\d{4}-\d\d-\d\d\]")
_NO_ITEM = re.compile(r"(?!)")
_MARKER = re.compile(rf"{_LABEL}|\[from (?:tool|import|model)(?:, unverified)?\]|\[unverified\]", re.IGNORECASE)
_HEADING_MARK = re.compile(r"#{1,6}\s*")
_LIST_HEADINGS = tuple(each.casefold() for each in (HEADING, RECALLED_HEADING, KNOWLEDGE_HEADING))
_SECTIONS = {
    "your private memory": _NO_ITEM,
    "core memories (permanent)": _LIST_MARK,
    "recent journal entries": _JOURNAL_ITEM,
}
"""Titles of our private memory with the items that follow each."""

_FRAME = frozenset(mark.casefold().strip(_DECORATION) for mark in (INFORMATION, *END_MARKS.values()))
_WORD = re.compile(r"(?<!\S)-(?=\d)|[^\W_]+[+#]*|[^\w\s.,;:!?'\"`’‘“”()\[\]{}*_>|/\\–—…-]")
_PARTS = (
    re.compile(r"\n"),
    re.compile(rf"\n(?=[ \t>|]*(?:[-*+•–]|\d{{1,3}}[.)])\s)|(?:[-*+•–]\s*)?{_LABEL}"),
    re.compile(r"\n|(?<=[.!?])\s"),
)
"""Borders of the parts of a text: its lines, its items, which may be wrapped, and its sentences."""


def list_echo_hashes(text: str) -> Sequence[frozenset[str]]:
    """Return sets of hashes: the text is an echo if all of one set were shown; an empty set needs none.

    >>> list_echo_hashes("- (m-1, 2026-03-01) Deploys go to us-east-1")
    [frozenset()]
    >>> hash_shown("User prefers Python") in frozenset().union(*list_echo_hashes("I remember: user prefers python."))
    True
    """
    if not _words(text):
        return []
    left = strip_injected(text)
    if left != text and LEAD_INS.issuperset(words := _words(left)) and len(words) <= MAX_LEAD_IN_WORDS:
        return [frozenset()]
    found = []
    # A block with unusual line breaks is only removed in part, so all of the text is compared as well.
    for each in dict.fromkeys((left, text)):
        words = _words(each)
        lead = next((place for place, word in enumerate(words) if word not in LEAD_INS), len(words))
        rests = (words[place:] for place in range(min(lead, MAX_LEAD_IN_WORDS) + 1))
        found += [frozenset([_hash_words(rest)]) for rest in rests if rest]
        for border in _PARTS:
            titles = [_title(part) for part in border.split(each)]
            framed = [title for title in titles if title.casefold() not in _FRAME]
            parts = [part for part in map(_words, framed) if not LEAD_INS.issuperset(part)]
            # One part is a quotation if a mark of ours stood beside it; otherwise it was compared as a whole.
            is_quoted = len(parts) > 1 or (len(parts) == 1 and len(framed) < len(titles))
            if is_quoted and len(parts) <= MAX_PARTS and min(map(len, parts)) >= MIN_PART_WORDS:
                found.append(frozenset(map(_hash_words, parts)))
    return found


def hash_shown(text: str) -> str | None:
    """Return the hash by which a shown text is recognised; None if it has no words or is a reference."""
    words = _words(text) if _words(REFERENCE.sub("", text)) else []
    return _hash_words(words) if words else None


def _hash_words(words: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:32]


def _words(text: str) -> list[str]:
    """Return the words and meaningful signs ("C++", "<", "%", "-5") without case, punctuation and our labels."""
    return _WORD.findall(fold(strip_joiners(to_one_line(_MARKER.sub(" ", text)))))


def strip_injected(text: str) -> str:
    """Remove the blocks that memory put into a prompt; references and everything else stay.

    A block is a heading with at least one item. A line after an item belongs to it if it is indented further or, in a
    list with ids or dates, if another item follows before an empty line. A list without them ends at an empty line.

    >>> strip_injected("> [Memories]\\n> - (m-1) Likes tea\\n\\nAnd coffee since May.")
    'And coffee since May.'
    """
    lines = [line for line in text.splitlines() if _title(line).casefold() not in _FRAME]
    if _is_search_answer(text) or all(_RECALLED_ITEM.match(line) for each in lines if (line := _unquote(each).strip())):
        return ""
    kept: list[str] = []
    # Lines that belong to the block if an item follows, what its items look like, and the indentation of the last one.
    held: list[str] = []
    item, indent = _NO_ITEM, -1
    for line in lines:
        bare = _unquote(line)
        body, depth = bare.strip(), len(bare) - len(bare.lstrip())
        is_plain, is_after_gap = item is _LIST_MARK, bool(held) and not _unquote(held[-1]).strip()
        if heading := _find_heading(line):
            item = heading
            has_item = item is _ITEM and _ITEM.match(_title(line).partition("]")[2].lstrip(_DECORATION))
            held, indent = ([], depth) if has_item else ([*held, line], -1)
        elif body and item.match(body) and not (is_plain and is_after_gap and indent >= 0):
            held, indent = [], depth
        elif not body:
            held.append(line)
        elif indent >= 0 and (depth > indent or (item is _ITEM and not is_after_gap and _INLINE_ITEM.search(body))):
            held = []
        elif indent >= 0 and not is_plain and not is_after_gap:
            held.append(line)
        else:
            kept += [*held, line]
            held, item, indent = [], _NO_ITEM, -1
    return "\n".join([*kept, *held]).strip() if len(kept) + len(held) < len(text.splitlines()) else text


def _find_heading(line: str) -> re.Pattern[str] | None:
    """Return what the items below a heading of ours look like; None for any other line."""
    title = _title(line)
    if title.casefold().startswith(_LIST_HEADINGS):
        return _ITEM
    mark = _HEADING_MARK.match(title)
    return _SECTIONS.get(title[mark.end() :].strip(_DECORATION).casefold()) if mark else None


def _is_search_answer(text: str) -> bool:
    """Return True for a search tool's answer: `{"count": …, "memories" or "results": [{"id", "text"}, …]}`."""
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return False
    try:
        answer = json.loads(stripped)
    except (ValueError, RecursionError):
        return False
    found = answer.get("memories", answer.get("results"))
    is_answer = "count" in answer and answer.keys() <= {"count", "memories", "results"} and isinstance(found, list)
    return is_answer and all(isinstance(hit, dict) and {"id", "text"} <= hit.keys() for hit in found)


def _unquote(line: str) -> str:
    """Strip quote marks; the indentation stays."""
    quoted = _QUOTE.match(line)
    return line[quoted.end() :] if quoted else line


def _title(line: str) -> str:
    """Strip the marks that may surround a heading or an item."""
    bare = _unquote(line).strip(_DECORATION)
    mark = _LIST_MARK.match(bare)
    return bare[mark.end() :].strip(_DECORATION) if mark else bare
