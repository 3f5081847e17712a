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
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from wellkept.details.rules_keys import REFERENCE
from wellkept.errors import ReadOnly
from wellkept.extension import Clock
from wellkept.language.text import fold
from wellkept.model import BackgroundStatus, Memory, Origin, Owner
from wellkept.prompt.rules_escaping import END_MARKS, INFORMATION, strip_joiners, to_one_line
from wellkept.prompt.rules_relevance import HEADING
from wellkept.prompt.rules_window import KNOWLEDGE_HEADING, RECALLED_HEADING
from wellkept.upkeep.writer import BackgroundWriter

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore


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


TEXTS_PER_OWNER = 200
OWNERS = 1_000
SHOWN_PER_OWNER = 2_000
"""Maximum number of hashes that the store keeps of an agent's shown texts."""

KEPT = timedelta(days=1)
"""Time for which the store keeps them: a loop comes back soon, and a fact may be told again."""

RENEWED = timedelta(hours=1)
"""Time after which a text that is shown again is written again."""

MAX_WAITING = 100_000
FORGOTTEN = "shown texts forgotten"
"""Start of the name of the record that says when a tenant's shown texts were last forgotten."""
GUARDED_ORIGINS = (Origin.AGENT, Origin.TOOL, Origin.MODEL)
"""Origins the guard applies to: a person may repeat a statement, a program would only store its own output again."""

BLOCK_SIGNS = ("[mem", "[recalled mem", "[know", "private mem", "core mem", "journal ent", '"count"', "(m-")
"""Texts of which every block that memory put into a prompt holds one. Looking closer takes far longer."""

ECHO_REFUSED = "This came out of memory, so it is remembered already; nothing was stored. Store only what is new."


class LoopGuard:
    """Bounded record of the latest texts shown to each agent, separately for each user and for none.

    This process remembers the texts themselves. Their hashes are written to the store in the background, so that other
    processes recognise them; a crash loses those of the last second.
    """

    def __init__(self, store: SqlStore, now: Clock) -> None:
        self._store = store
        self._now = now
        self._lock = threading.Lock()
        # The texts of each owner, with the time at which each was queued for the store.
        self._shown: OrderedDict[Owner, OrderedDict[str, datetime]] = OrderedDict()
        self._writer = BackgroundWriter[Owner, Mapping[str, datetime]](
            self._write,
            merge=lambda older, newer: {**older, **newer},
            name="shown",
            failed="Texts of a prompt could not be kept for the loop guard",
            size=len,
            max_size=MAX_WAITING,
        )

    def note_shown(self, owner: Owner, texts: Iterable[str]) -> None:
        """Record texts that went into a prompt or an answer, and return at once."""
        owner, now, new = owner.of(owner.user), self._now(), dict[str, datetime]()
        with self._lock:
            latest = self._shown.setdefault(owner, OrderedDict())
            for text in texts:
                if text not in latest or now - latest[text] > RENEWED:
                    new[text] = latest[text] = now
                latest.move_to_end(text)
            while len(latest) > TEXTS_PER_OWNER:
                latest.popitem(last=False)
            self._shown.move_to_end(owner)
            if len(self._shown) > OWNERS:
                self._shown.popitem(last=False)
        if new:
            self._writer.add(owner, new)

    def flush(self, tenant: str | None = None) -> None:
        """Write the queued hashes of one tenant or of all."""
        self._writer.flush(lambda owner: tenant in (None, owner.tenant))

    def forget(self, tenant: str) -> None:
        """Drop what is recorded of a tenant's agents, here and in the store."""
        with self._lock:
            for owner in [owner for owner in self._shown if owner.tenant == tenant]:
                del self._shown[owner]
        self._writer.forget(lambda owner: owner.tenant == tenant)
        self._store.forget_shown(tenant)
        # Other processes may have queued such texts before.
        self._store.put_record(f"{FORGOTTEN} {tenant}", "", at=self._now())

    def status(self) -> BackgroundStatus:
        """Return the state of the queue."""
        return self._writer.status()

    def close(self) -> None:
        """Write the queued hashes and stop the thread. Raises: StoreError."""
        self._writer.close()

    def is_echo(self, memory: Memory) -> bool:
        """Return True if a program only repeats text it was recently shown, or anybody a whole block of a prompt."""
        if memory.origin not in GUARDED_ORIGINS:
            lowered = memory.text.lower()
            has_sign = any(sign in lowered for sign in BLOCK_SIGNS)
            return has_sign and frozenset() in list_echo_hashes(memory.text)
        choices = list_echo_hashes(memory.text)
        with self._lock:
            latest = tuple(self._shown.get(memory.home, ()))
        known = frozenset(map(hash_shown, latest))
        if any(choice <= known for choice in choices):
            return True
        shared = [_add_user(memory.user, each) for each in choices]
        every = frozenset().union(*shared)
        found = self._store.find_shown(memory.owner, every, since=self._now() - KEPT) if every else frozenset()
        return any(choice.issubset(found) for choice in shared)

    def _write(self, owner: Owner, texts: Mapping[str, datetime]) -> bool:
        forgotten, at = self._store.find_record(f"{FORGOTTEN} {owner.tenant}"), max(texts.values())
        since = datetime.min.replace(tzinfo=UTC) if forgotten is None else forgotten[1]
        new = (hash_shown(text) for text, shown_at in texts.items() if shown_at > since)
        hashes = {found for found in new if found is not None}
        shown, since = _add_user(owner.user, hashes), at - KEPT
        try:
            return not hashes or self._store.add_shown(owner.whole, shown, at=at, since=since, keep=SHOWN_PER_OWNER)
        # Where nothing can be written, nothing can come back.
        except ReadOnly:
            return True


def _add_user(user: str | None, hashes: Collection[str]) -> frozenset[str]:
    """Return hashes that only this user has; those of no user stay as they are."""
    return frozenset(sha256(f"{user}\n{each}".encode()).hexdigest() if user else each for each in hashes)
