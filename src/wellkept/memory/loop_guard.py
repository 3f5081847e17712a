"""Loop guard: text that memory put into a prompt must not come back as a new memory.

A text is an echo if all of it was shown lately: as a whole, or each of its lines, items or sentences. Texts are
compared by hashes of their words, so quote marks, indentation, bullets, labels and re-wrapped lines make no difference,
and the few words that introduce a quotation do not count ("Here is what I remember:"). A whole block of a prompt is an
echo wherever it was shown; it is recognised by its heading and its items. If one other word is left, the text may be
new and is kept: losing a memory is worse than storing it twice. A reference (`[MemoryRef: key - description]`) points
to a stored detail and is never an echo.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from textwrap import dedent
from typing import TYPE_CHECKING

from wellkept.details.rules_keys import REFERENCE
from wellkept.errors import ReadOnly
from wellkept.extension import Clock
from wellkept.language.text import fold
from wellkept.model import BackgroundStatus, Memory, Origin, Owner
from wellkept.prompt.rules_escaping import END_MARKS, INFORMATION, strip_joiners, to_one_line
from wellkept.upkeep.background import Queue

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore


LEAD_INS = frozenset(
    """
    here is are what i know about you me my your memory memories note notes noted recalled recall recalling remember
    remembered relevant following from the that stored saved these this according to as of context injected core journal
    entries private retrieved search results result found knowledge permanent recent
    """.split()
)
"""Words of our headings, and words that introduce a quotation; they carry no information."""

MAX_LEAD_IN_WORDS = 12
"""Maximum number of lead-in words; a longer rest may be a sentence with a meaning."""

MIN_PART_WORDS = 2
"""Minimum words of a known text that is recognised as a part of a longer one; "yes" occurs in many texts."""

MAX_PARTS = 200
"""Maximum number of parts of a text that are compared one by one with what was shown."""

_QUOTE = re.compile(r"(?:\s{0,12}[>|])+ ?")
_DECORATION = " \t*_`\"'“”:"
_LIST_MARK = re.compile(r"(?:[-*+•–]|\d{1,3}[.)])\s+")
_LABEL = r"\((?:[a-z]-[\w#-]{1,60}|memory|audit|workflow|knowledge)(?:,[^()\n]{0,200})?\)"
_DATE = r"\[\d{4}-\d\d-\d\d\]"
_MARKER = re.compile(rf"{_LABEL}|{_DATE}|\[from (?:tool|import|model)(?:, unverified)?\]|\[unverified\]", re.IGNORECASE)
_LABELLED_ITEM = re.compile(rf"(?:(?:[-*+•–]|\d{{1,3}}[.)])\s*)?{_LABEL}")
_RECALLED_ITEM = re.compile(r"[-*+•–]\s*\(m-\d{1,18}, \d{4}-\d\d-\d\d\)\s*\S")
_HEADINGS = {
    "[memories]": _LABELLED_ITEM,
    "[recalled memories]": _LABELLED_ITEM,
    "[knowledge]": _LABELLED_ITEM,
    "your private memory": _RECALLED_ITEM,
    "core memories (permanent)": _LIST_MARK,
    "recent journal entries": re.compile(rf"[-*+•–]\s+{_DATE}"),
}
"""Headings of our blocks with what the items below each look like. Items of what was recalled need no heading."""

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

    >>> list_echo_hashes("[Memories]\\n- (m-1) Deploys go to us-east-1")
    [frozenset()]
    >>> hash_shown("User prefers Python") in frozenset().union(*list_echo_hashes("I remember: user prefers python."))
    True
    """
    if is_block(text):
        return [frozenset()]
    words = _words(text)
    lead = next((place for place, word in enumerate(words) if word not in LEAD_INS), len(words))
    rests = (words[place:] for place in range(min(lead, MAX_LEAD_IN_WORDS) + 1))
    found = [frozenset([_hash_words(rest)]) for rest in rests if rest]
    for border in _PARTS:
        titles = [_title(part) for part in border.split(text)]
        framed = [title for title in titles if title.casefold() not in _FRAME]
        parts = [part for part in map(_words, framed) if not LEAD_INS.issuperset(part)]
        # One part is a quotation if a mark of ours stood beside it; otherwise it was compared as a whole.
        is_quoted = len(parts) > 1 or (len(parts) == 1 and len(framed) < len(titles))
        if is_quoted and len(parts) <= MAX_PARTS and min(map(len, parts)) >= MIN_PART_WORDS:
            found.append(frozenset(map(_hash_words, parts)))
    return found


def is_block(text: str) -> bool:
    """Return True if a text is nothing but blocks of a prompt: headings, each with items, which may be indented."""
    items, has_item = _RECALLED_ITEM, False
    for line in dedent("\n".join(map(_unquote, text.splitlines()))).splitlines():
        title = _title(line).lstrip("# ").casefold()
        heading = next((name for name in _HEADINGS if title.startswith(name)), None)
        if heading:
            items, has_item = _HEADINGS[heading], has_item or re.search(_LABEL, line) is not None
        elif LEAD_INS.issuperset(_words(line)) or title in _FRAME:
            # A list without labels ends at an empty line.
            items = _RECALLED_ITEM if items is _LIST_MARK else items
        elif items.match(line.strip()):
            has_item = True
        elif not (has_item and line[0].isspace()):
            return False
    return has_item


def hash_shown(text: str) -> str | None:
    """Return the hash by which a shown text is recognised; None if it has no words or is a reference."""
    words = _words(text) if _words(REFERENCE.sub("", text)) else []
    return _hash_words(words) if words else None


def _hash_words(words: Sequence[str]) -> str:
    return sha256(" ".join(words).encode()).hexdigest()[:32]


def _words(text: str) -> list[str]:
    """Return the words and meaningful signs ("C++", "<", "%", "-5") without case, punctuation and our labels."""
    return _WORD.findall(fold(strip_joiners(to_one_line(_MARKER.sub(" ", text)))))


def _unquote(line: str) -> str:
    """Strip quote marks; the indentation stays."""
    quoted = _QUOTE.match(line)
    return line[quoted.end() :] if quoted else line


def _title(line: str) -> str:
    """Strip quote marks, and the marks that may surround a heading or an item."""
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

NEVER = datetime.min.replace(tzinfo=UTC)
GUARDED_ORIGINS = (Origin.AGENT, Origin.TOOL, Origin.MODEL)
"""Origins the guard applies to: a person may repeat a statement, a program would only store its own output again."""

ECHO_REFUSED = "This came out of memory, so it is remembered already; nothing was stored. Store only what is new."


class LoopGuard:
    """Bounded record of the latest texts shown to each agent, separately for each user and for none.

    This process remembers the texts themselves. Their hashes are written to the store in the background, so that other
    processes recognise them; a crash loses those of the last second. An erasure in any process forgets them in all.
    """

    def __init__(self, store: SqlStore, now: Clock) -> None:
        self._store = store
        self._now = now
        self._lock = threading.Lock()
        # The texts of each owner, with the time at which each was queued for the store.
        self._shown: OrderedDict[Owner, OrderedDict[str, datetime]] = OrderedDict()
        self._writer = Queue[Owner, Mapping[str, datetime]](
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
        """Drop what is recorded of a tenant's agents, here, in the store and in other processes."""
        # Before the hashes go: what another process writes in the meantime, it finds to be forgotten.
        self._store.put_record(f"{FORGOTTEN} {tenant}", "", at=self._now())
        self._drop_forgotten(tenant)
        self._writer.forget(lambda owner: owner.tenant == tenant)
        self._store.forget_shown(tenant)

    def status(self) -> BackgroundStatus:
        """Return the state of the queue."""
        return self._writer.status()

    def close(self) -> None:
        """Write the queued hashes and stop the thread. Raises: StoreError."""
        self._writer.close()

    def is_echo(self, memory: Memory) -> bool:
        """Return True if a program only repeats text it was recently shown, or anybody a whole block of a prompt."""
        if memory.origin not in GUARDED_ORIGINS:
            return is_block(memory.text)
        choices = list_echo_hashes(memory.text)
        if self._is_latest(memory.home, choices):
            self._drop_forgotten(memory.owner.tenant)
            if self._is_latest(memory.home, choices):
                return True
        shared = [_add_user(memory.user, each) for each in choices]
        every = frozenset().union(*shared)
        found = self._store.find_shown(memory.owner, every, since=self._now() - KEPT) if every else frozenset()
        return any(choice.issubset(found) for choice in shared)

    def _is_latest(self, owner: Owner, choices: Iterable[frozenset[str]]) -> bool:
        with self._lock:
            latest = tuple(self._shown.get(owner, ()))
        known = frozenset(map(hash_shown, latest))
        return any(choice <= known for choice in choices)

    def _drop_forgotten(self, tenant: str) -> datetime:
        """Drop here what a tenant's agents were shown before any process last forgot it, and return that time."""
        record = self._store.find_record(f"{FORGOTTEN} {tenant}")
        since = NEVER if record is None else record[1]
        with self._lock:
            for texts in (texts for owner, texts in self._shown.items() if owner.tenant == tenant):
                for text in [text for text, shown_at in texts.items() if shown_at <= since]:
                    del texts[text]
        return since

    def _write(self, owner: Owner, texts: Mapping[str, datetime]) -> bool:
        since, at = self._drop_forgotten(owner.tenant), max(texts.values())
        new = (hash_shown(text) for text, shown_at in texts.items() if shown_at > since)
        shown = _add_user(owner.user, {found for found in new if found is not None})
        try:
            is_done = not shown or self._store.add_shown(
                owner.whole, shown, at=at, since=at - KEPT, keep=SHOWN_PER_OWNER
            )
            # They were forgotten between the two, perhaps before these were added.
            if shown and self._drop_forgotten(owner.tenant) > since:
                self._store.forget_shown(owner.tenant)
        # Where nothing can be written, nothing can come back.
        except ReadOnly:
            return True
        return is_done


def _add_user(user: str | None, hashes: Collection[str]) -> frozenset[str]:
    """Return hashes that only this user has; those of no user stay as they are."""
    return frozenset(sha256(f"{user}\n{each}".encode()).hexdigest() if user else each for each in hashes)
