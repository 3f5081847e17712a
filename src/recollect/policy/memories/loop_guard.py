"""The loop guard: what memory put into a prompt does not come back as a new memory.

A text is an echo when nothing is left of it after taking away
  1. whole blocks of ours, known by their headings: `[Memories]`, `[Recalled Memories]`, `[Knowledge]` and `# Your
     Private Memory` with their items, what stands around them, and the answers of the search tools;
  2. texts that were injected or recalled, word for word but for case, white space and punctuation;
  3. the few words that introduce them ("Here is what I remember:").
Anything else that is left, even one word, may be new, and then the text is kept: losing a memory is worse than having
it twice. Quote marks, indentation, bullets and line breaks moved by re-wrapping make no difference. A reference
(`[MemoryRef: key - description]`) stands for something stored elsewhere and is never taken away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from recollect.policy.details.references import REFERENCE
from recollect.policy.prompt.escaping import END_MARKS, INFORMATION, one_line, without_joiners
from recollect.policy.prompt.relevance import HEADING
from recollect.policy.prompt.window import KNOWLEDGE_HEADING, RECALLED_HEADING
from recollect.policy.text import fold

PRIVATE_HEADING = "Your Private Memory"
CORE_SECTION = "Core Memories (permanent)"
JOURNAL_SECTION = "Recent Journal Entries"

MIN_QUOTED_WORDS = 3
"""A known text of fewer words is an echo only when it is the whole text: "yes" is in many sentences."""

LEAD_INS = frozenset(
    """
    here is are what i know about you me my your memory memories note notes noted recalled recall recalling remember
    remembered relevant following from the that stored saved these this according to as of context injected core journal
    entries private retrieved search results result found
    """.split()
)
"""Words that introduce a quotation and say nothing by themselves."""

MAX_LEAD_IN_WORDS = 12
MAX_WRAPPED_LINES = 20
"""How many lines one item may have been broken into."""

_QUOTE = re.compile(r"(?:\s{0,12}[>|])+ ?")
_DECORATION = " \t*_`\"'“”:"
_LIST_MARK = re.compile(r"(?:[-*+•–]|\d{1,3}[.)])\s+")
_LABEL = r"\((?:m-\d{1,18}|memory|audit|workflow|knowledge)(?:,[^()\n]{0,200})?\)"
_ITEM = re.compile(rf"(?:(?:[-*+•–]|\d{{1,3}}[.)])\s*)?{_LABEL}")
_INLINE_ITEM = re.compile(rf"[-*+•–]\s*{_LABEL}")
_MARKER = re.compile(rf"{_LABEL}|\[from (?:tool|import|model)(?:, unverified)?\]|\[unverified\]", re.IGNORECASE)
_JOURNAL_ITEM = re.compile(r"[-*+•–]\s+\[\d{4}-\d\d-\d\d\]")
_HEADING_MARK = re.compile(r"#{1,6}\s*")
_END_MARKS = frozenset(mark.casefold() for mark in END_MARKS.values())
_WORD = re.compile(r"(?<!\S)-(?=\d)|[^\W_]+[+#]*|[^\w\s.,;:!?'\"`’‘“”()\[\]{}*_>|/\\–—…-]")


def is_echo(text: str, known: Iterable[str]) -> bool:
    """Whether `text` holds nothing but injected blocks and texts of `known`.

    >>> is_echo("[Memories]\\n- (m-1, infra) Deploys go to us-east-1", [])
    True
    >>> is_echo("I remember: user prefers python.", ["User prefers Python"])
    True
    >>> is_echo("User prefers Python, and now Rust too", ["User prefers Python"])
    False
    """
    said = _words(_MARKER.sub(" ", text))
    if not said:
        return False
    shown = [*(one for one in known if not _is_reference(one)), INFORMATION, *END_MARKS.values()]
    pieces = [" ".join(_words(one)) for one in shown]
    # Known texts are also looked for in the unstripped text: a block broken in odd places loses only part of itself.
    return any(_says_nothing(left, said, pieces) for left in (_words(_MARKER.sub(" ", strip_injected(text))), said))


def strip_injected(text: str) -> str:
    """`text` without the blocks that memory put into a prompt; references and everything else stay as they are.

    >>> strip_injected("> [Memories]\\n> - (m-1) Likes tea\\n\\nAnd coffee since May.")
    'And coffee since May.'
    """
    if _is_search_answer(text):
        return ""
    lines = text.splitlines()
    if not any(_begins_block(line) for line in lines):
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


def _says_nothing(left: Sequence[str], said: Sequence[str], pieces: Sequence[str]) -> bool:
    """Whether all that is `left` of what was `said` are `pieces` and words that introduce them."""
    if left and " ".join(left) in pieces:
        return True
    rest = _without(left, pieces)
    return len(rest) < len(said) and len(rest) <= MAX_LEAD_IN_WORDS and LEAD_INS.issuperset(rest)


def _words(text: str) -> list[str]:
    """What is compared: words, and signs that carry meaning ("C++", "<", "%", "-5"), without case and punctuation."""
    return _WORD.findall(fold(without_joiners(one_line(text))))


def _is_reference(text: str) -> bool:
    return not _words(REFERENCE.sub("", text))


def _without(words: Sequence[str], pieces: Sequence[str]) -> list[str]:
    """`words` without every run that is one of `pieces`, the longest first."""
    joined = f" {' '.join(words)} "
    for piece in sorted(set(pieces), key=len, reverse=True):
        if piece.count(" ") + 1 < MIN_QUOTED_WORDS:
            continue
        wanted = f" {piece} "
        while wanted in joined:
            joined = joined.replace(wanted, " \n ")  # a barrier: the words around it are not neighbours
    return joined.split()


def _is_search_answer(text: str) -> bool:
    """Whether this is what a search tool answered: `{"count": …, "memories" or "results": [{"id", "text"}, …]}`."""
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


def _bare(line: str) -> str:
    """The line without quote marks; its indentation stays."""
    quoted = _QUOTE.match(line)
    return line[quoted.end() :] if quoted else line


def _title(line: str) -> str:
    """The line without what may surround a heading."""
    bare = _bare(line).strip(_DECORATION)
    mark = _LIST_MARK.match(bare)
    return bare[mark.end() :].strip(_DECORATION) if mark else bare


def _starts_list(line: str) -> bool:
    title = _title(line).casefold()
    return title.startswith(tuple(each.casefold() for each in (HEADING, RECALLED_HEADING, KNOWLEDGE_HEADING)))


def _is_heading(line: str, wanted: Sequence[str]) -> bool:
    title = _title(line)
    mark = _HEADING_MARK.match(title)
    return mark is not None and title[mark.end() :].strip(_DECORATION).casefold() in [one.casefold() for one in wanted]


def _begins_block(line: str) -> bool:
    return _starts_list(line) or _is_heading(line, (PRIVATE_HEADING, CORE_SECTION, JOURNAL_SECTION))


def _block_end(lines: Sequence[str], start: int) -> int:
    """The line after the block that begins at `start`; `start` itself when none does."""
    if _starts_list(lines[start]):
        after_heading = _title(lines[start]).partition("]")[2]
        end = _items_end(lines, start + 1, _ITEM, _INLINE_ITEM)
        return end if end > start + 1 or _ITEM.match(after_heading.lstrip(_DECORATION)) else start
    if not _begins_block(lines[start]):
        return start
    end = position = start
    while position < len(lines):
        line = lines[position]
        if _is_heading(line, (PRIVATE_HEADING,)):
            end = position + 1 if _section_follows(lines, position + 1) else end
        elif _is_heading(line, (CORE_SECTION, JOURNAL_SECTION)):
            item = _LIST_MARK if _is_heading(line, (CORE_SECTION,)) else _JOURNAL_ITEM
            section_end = _items_end(lines, position + 1, item, None)
            if section_end == position + 1:
                break
            end = section_end
            position = section_end - 1
        elif _bare(line).strip():
            break
        position += 1
    return end


def _section_follows(lines: Sequence[str], position: int) -> bool:
    rest = (line for line in lines[position : position + 3] if _bare(line).strip())
    return _is_heading(next(rest, ""), (CORE_SECTION, JOURNAL_SECTION))


def _items_end(lines: Sequence[str], start: int, item: re.Pattern[str], inline: re.Pattern[str] | None) -> int:
    """The line after the last item of a list that begins at `start`, with the lines an item was broken into.

    A line that is no item belongs to the one before when it is indented further or, in a list whose items no one else
    would write (they have an id or a date), when another item follows before the next empty line. An empty line ends
    the list, unless what follows is indented or an item with an id.
    """
    is_plain = item is _LIST_MARK
    end, indent, pending = start, 0, False
    for position in range(start, len(lines)):
        bare = _bare(lines[position])
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
        elif pending or is_plain or not _item_follows(lines, position + 1, item, inline):
            break
    return end


def _item_follows(lines: Sequence[str], position: int, item: re.Pattern[str], inline: re.Pattern[str] | None) -> bool:
    """Whether an item comes before the next empty line or block."""
    for line in lines[position : position + MAX_WRAPPED_LINES]:
        body = _bare(line).strip()
        if not body or _begins_block(line):
            return False
        if item.match(body) or (inline is not None and inline.search(body)):
            return True
    return False
