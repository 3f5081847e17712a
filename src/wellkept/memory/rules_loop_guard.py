"""Loop guard: text that memory put into a prompt must not come back as a new memory.

A text is an echo if nothing is left of it after removing
  1. our own blocks, recognised by their headings: `[Memories]`, `[Recalled Memories]`, `[Knowledge]` and `# Your
     Private Memory` with their items and surrounding marks, and answers of the search tools;
  2. injected or recalled texts, verbatim except for case, white space and punctuation;
  3. the few words that introduce them ("Here is what I remember:").
If even one other word is left, the text may be new and is kept: losing a memory is worse than storing it twice. Quote
marks, indentation, bullets and re-wrapped lines make no difference. A reference (`[MemoryRef: key - description]`)
points to a stored detail and is never removed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence

from wellkept.details.rules_references import REFERENCE
from wellkept.language.text import fold
from wellkept.prompt.rules_escaping import END_MARKS, INFORMATION, strip_joiners, to_one_line
from wellkept.prompt.rules_relevance import HEADING
from wellkept.prompt.rules_window import KNOWLEDGE_HEADING, RECALLED_HEADING

PRIVATE_HEADING = "Your Private Memory"
CORE_SECTION = "Core Memories (permanent)"
JOURNAL_SECTION = "Recent Journal Entries"

MIN_QUOTED_WORDS = 3
"""Minimum words of a known text that is removed from within a longer one; "yes" occurs in many sentences."""

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

MAX_COMPARED_LINES = 50
"""Maximum number of lines of a text that are compared one by one with what other processes showed."""

MAX_WRAPPED_LINES = 20
"""Maximum number of lines that one item may be wrapped into."""

_QUOTE = re.compile(r"(?:\s{0,12}[>|])+ ?")
_DECORATION = " \t*_`\"'“”:"
_LIST_MARK = re.compile(r"(?:[-*+•–]|\d{1,3}[.)])\s+")
_LABEL = r"\((?:m-\d{1,18}|memory|audit|workflow|knowledge)(?:,[^()\n]{0,200})?\)"
_ITEM = re.compile(rf"(?:(?:[-*+•–]|\d{{1,3}}[.)])\s*)?{_LABEL}")
_RECALLED_ITEM = re.compile(r"[-*+•–]\s*\(m-\d{1,18}, \d{4}-\d\d-\d\d\)\s*\S")
_INLINE_ITEM = re.compile(rf"[-*+•–]\s*{_LABEL}")
_MARKER = re.compile(rf"{_LABEL}|\[from (?:tool|import|model)(?:, unverified)?\]|\[unverified\]", re.IGNORECASE)
_JOURNAL_ITEM = re.compile(r"[-*+•–]\s+\[\d{4}-\d\d-\d\d\]")
_HEADING_MARK = re.compile(r"#{1,6}\s*")
_END_MARKS = frozenset(mark.casefold() for mark in END_MARKS.values())
_WORD = re.compile(r"(?<!\S)-(?=\d)|[^\W_]+[+#]*|[^\w\s.,;:!?'\"`’‘“”()\[\]{}*_>|/\\–—…-]")


def is_echo(text: str, known: Iterable[str]) -> bool:
    """Return True if `text` contains nothing but injected blocks and texts of `known`.

    >>> is_echo("[Memories]\\n- (m-1, infra) Deploys go to us-east-1", [])
    True
    >>> is_echo("- (m-1, 2026-03-01) Deploys go to us-east-1", [])
    True
    >>> is_echo("I remember: user prefers python.", ["User prefers Python"])
    True
    >>> is_echo("User prefers Python, and now Rust too", ["User prefers Python"])
    False
    """
    words = _words(_MARKER.sub(" ", text))
    if not words:
        return False
    if _is_recalled_list(text):
        return True
    known_texts = [*(one for one in known if not _is_reference(one)), INFORMATION, *END_MARKS.values()]
    pieces = [" ".join(_words(one)) for one in known_texts]
    # Search the unstripped text as well: a block with unusual line breaks is only removed in part.
    return any(_is_only_known(left, words, pieces) for left in (_words(_MARKER.sub(" ", strip_injected(text))), words))


def hash_shown(text: str) -> str | None:
    """Return the hash by which other processes recognise a shown text; None if it is too short or a reference."""
    words = [] if _is_reference(text) else _words(_MARKER.sub(" ", text))
    return _hash_words(words) if len(words) >= MIN_QUOTED_WORDS else None


def list_echo_hashes(text: str) -> Sequence[frozenset[str]]:
    """Return sets of hashes: the text is an echo if all of one set were shown.

    One set for the whole text, one for each part that is left without words that introduce it, one for its lines.
    """
    left = strip_injected(text)
    words, lines = _words(_MARKER.sub(" ", left)), left.splitlines()
    lead = next((place for place, word in enumerate(words) if word not in LEAD_INS), len(words))
    rests = [words[place:] for place in range(min(lead, MAX_LEAD_IN_WORDS) + 1)]
    found = [frozenset([_hash_words(rest)]) for rest in rests if len(rest) >= MIN_QUOTED_WORDS]
    parts = [_words(_MARKER.sub(" ", _title(line))) for line in lines] if 1 < len(lines) <= MAX_COMPARED_LINES else []
    parts = [part for part in parts if not LEAD_INS.issuperset(part)]
    if parts and min(map(len, parts)) >= MIN_QUOTED_WORDS:
        found.append(frozenset(map(_hash_words, parts)))
    return found


def _hash_words(words: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:32]


def _is_recalled_list(text: str) -> bool:
    """Return True if every line is an item with the id and the date of a memory, as recalled lists have them."""
    lines = [_unquote(line).strip() for line in text.splitlines()]
    return all(map(_RECALLED_ITEM.match, filter(None, lines)))


def strip_injected(text: str) -> str:
    """Remove the blocks that memory put into a prompt; references and everything else stay.

    >>> strip_injected("> [Memories]\\n> - (m-1) Likes tea\\n\\nAnd coffee since May.")
    'And coffee since May.'
    """
    if _is_search_answer(text):
        return ""
    lines = text.splitlines()
    if not any(_is_block_start(line) for line in lines):
        return text
    kept: list[str] = []
    position = 0
    while position < len(lines):
        end = _block_end(lines, position)
        if end == position:
            kept.append(lines[position])
        else:
            end += end < len(lines) and _title(lines[end]).casefold() in _END_MARKS
            if kept and _title(kept[-1]).casefold() == INFORMATION.casefold():
                kept.pop()
        position = max(end, position + 1)
    return "\n".join(kept).strip()


def _is_only_known(left: Sequence[str], words: Sequence[str], pieces: Sequence[str]) -> bool:
    """Return True if `left` consists of `pieces` and lead-in words only, and is shorter than the whole text."""
    if left and " ".join(left) in pieces:
        return True
    rest = _remove_pieces(left, pieces)
    return len(rest) < len(words) and len(rest) <= MAX_LEAD_IN_WORDS and LEAD_INS.issuperset(rest)


def _words(text: str) -> list[str]:
    """Return the words and meaningful signs ("C++", "<", "%", "-5") without case and punctuation."""
    return _WORD.findall(fold(strip_joiners(to_one_line(text))))


def _is_reference(text: str) -> bool:
    return not _words(REFERENCE.sub("", text))


def _remove_pieces(words: Sequence[str], pieces: Sequence[str]) -> list[str]:
    """Remove every run of words that is one of `pieces`, longest first."""
    joined = f" {' '.join(words)} "
    for piece in sorted(set(pieces), key=len, reverse=True):
        if piece.count(" ") + 1 < MIN_QUOTED_WORDS:
            continue
        padded = f" {piece} "
        while padded in joined:
            # The line break is a barrier: the words around a removed piece are not neighbours.
            joined = joined.replace(padded, " \n ")
    return joined.split()


def _is_search_answer(text: str) -> bool:
    """Return True for a search tool's answer: `{"count": …, "memories" or "results": [{"id", "text"}, …]}`."""
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return False
    try:
        answer = json.loads(stripped)
    except (ValueError, RecursionError):
        return False
    if not isinstance(answer, dict) or not answer.keys() <= {"count", "memories", "results"} or "count" not in answer:
        return False
    found = answer.get("memories", answer.get("results"))
    return isinstance(found, list) and all(isinstance(hit, dict) and {"id", "text"} <= hit.keys() for hit in found)


def _unquote(line: str) -> str:
    """Strip quote marks; the indentation stays."""
    quoted = _QUOTE.match(line)
    return line[quoted.end() :] if quoted else line


def _title(line: str) -> str:
    """Strip the marks that may surround a heading."""
    bare = _unquote(line).strip(_DECORATION)
    mark = _LIST_MARK.match(bare)
    return bare[mark.end() :].strip(_DECORATION) if mark else bare


def _is_list_heading(line: str) -> bool:
    title = _title(line).casefold()
    return title.startswith(tuple(each.casefold() for each in (HEADING, RECALLED_HEADING, KNOWLEDGE_HEADING)))


def _is_heading(line: str, headings: Sequence[str]) -> bool:
    title = _title(line)
    mark = _HEADING_MARK.match(title)
    return mark is not None and title[mark.end() :].strip(_DECORATION).casefold() in [
        one.casefold() for one in headings
    ]


def _is_block_start(line: str) -> bool:
    return _is_list_heading(line) or _is_heading(line, (PRIVATE_HEADING, CORE_SECTION, JOURNAL_SECTION))


def _block_end(lines: Sequence[str], start: int) -> int:
    """Return the index after the block that starts at `start`, or `start` if there is none."""
    if _is_list_heading(lines[start]):
        after_heading = _title(lines[start]).partition("]")[2]
        end = _items_end(lines, start + 1, _ITEM, _INLINE_ITEM)
        return end if end > start + 1 or _ITEM.match(after_heading.lstrip(_DECORATION)) else start
    if not _is_block_start(lines[start]):
        return start
    end = position = start
    while position < len(lines):
        line = lines[position]
        if _is_heading(line, (PRIVATE_HEADING,)):
            end = position + 1 if _has_section_next(lines, position + 1) else end
        elif _is_heading(line, (CORE_SECTION, JOURNAL_SECTION)):
            item = _LIST_MARK if _is_heading(line, (CORE_SECTION,)) else _JOURNAL_ITEM
            section_end = _items_end(lines, position + 1, item, None)
            if section_end == position + 1:
                break
            end = section_end
            position = section_end - 1
        elif _unquote(line).strip():
            break
        position += 1
    return end


def _has_section_next(lines: Sequence[str], position: int) -> bool:
    rest = (line for line in lines[position : position + 3] if _unquote(line).strip())
    return _is_heading(next(rest, ""), (CORE_SECTION, JOURNAL_SECTION))


def _items_end(lines: Sequence[str], start: int, item: re.Pattern[str], inline: re.Pattern[str] | None) -> int:
    """Return the index after the last item of the list that starts at `start`, including wrapped lines.

    A line that is not an item continues the previous one if it is indented further or, in a list with ids or dates, if
    another item follows before the next empty line. An empty line ends the list unless an indented line or an item with
    an id follows.
    """
    is_plain = item is _LIST_MARK
    end, indent, pending = start, 0, False
    for position in range(start, len(lines)):
        bare = _unquote(lines[position])
        body = bare.strip()
        depth = len(bare) - len(bare.lstrip())
        if _title(body).casefold() in _END_MARKS:
            break
        if not body:
            pending = True
        elif item.match(body):
            if pending and inline is None:
                break
            end, indent, pending = position + 1, depth, False
        elif end > start and depth > indent:
            end, pending = position + 1, False
        elif inline is not None and not pending and inline.search(body):
            end = position + 1
        elif pending or is_plain or not _has_item_next(lines, position + 1, item, inline):
            break
    return end


def _has_item_next(lines: Sequence[str], position: int, item: re.Pattern[str], inline: re.Pattern[str] | None) -> bool:
    """Return True if an item comes before the next empty line or block."""
    for line in lines[position : position + MAX_WRAPPED_LINES]:
        body = _unquote(line).strip()
        if not body or _is_block_start(line):
            return False
        if item.match(body) or (inline is not None and inline.search(body)):
            return True
    return False
