"""HTML: what a reader of the page reads, without what surrounds it.

The tree is walked without recursion, so that no nesting is too deep. Text collects in the innermost block; blocks
become parts in the order in which they end. A page that marks its main part is read there only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from recollect.deadline import check_deadline, checked_steps
from recollect.errors import Invalid
from recollect.policy.chunking import Part, PartKind
from recollect.ports import Reading

MAX_TAGS = 300_000
"""The tree of a page takes some 300 bytes for each."""

SKIPPED = frozenset(
    "script style noscript template nav aside form button select svg canvas iframe object audio video "
    "math head dialog menu".split()
)
HIDDEN = frozenset(["navigation", "banner", "contentinfo", "search", "complementary"])
"""Roles of what surrounds a page's content."""

MAX_ATTRIBUTES = 1_000
"""Of one tag: the parser takes a time that grows with the square of their number, and cannot be stopped meanwhile."""

HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    "p div section article main body blockquote figure figcaption dl dt dd address details summary center fieldset "
    "html hgroup hr tbody thead tfoot caption".split()
)
LISTS = frozenset(["ul", "ol"])
CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})|<\?xml[^>]{0,200}?encoding=[\"']([\w.:-]{1,40})", re.I
)
DEPTH_REACHED = "Excessive depth"
SPACE = re.compile(r"\s+")


def declared_charset(content: bytes) -> str:
    """The encoding a page says it is in; UTF-8 if it says nothing."""
    found = CHARSET.search(content[:4096])
    return found[1].decode() if found else "utf-8"


def read_html(text: str) -> Reading:
    """Raises: Invalid."""
    if text.count("<") > MAX_TAGS:
        raise Invalid(f"has more than {MAX_TAGS:,} tags; split it.")
    etree = import_module("lxml.etree")
    options = {"encoding": "utf-8", "huge_tree": True, "remove_comments": True, "remove_pis": True}
    parser = etree.HTMLParser(**options)
    try:
        # Without a tree attributes cost nothing, so they are counted before one is made.
        etree.fromstring(text.encode(), etree.HTMLParser(target=_Attributes(), **options))
        root = etree.fromstring(text.encode(), parser)
    except etree.LxmlError as error:
        raise Invalid(f"is not HTML that can be read ({error}).") from error
    if any(DEPTH_REACHED in entry.message for entry in parser.error_log):
        raise Invalid("is nested so deeply that its inner parts cannot be read.")
    if root is None:
        return Reading(title="", parts=[])
    page = _Page()
    for event, element in checked_steps(etree.iterwalk(_main(root), events=("start", "end")), every=100):
        page.entered(element) if event == "start" else page.left(element)
    page.flush()
    title = " ".join((root.findtext(".//title") or "").split())
    first = next((part.text for part in page.parts if part.kind is PartKind.HEADING), "")
    return Reading(title=first or title, parts=page.parts)


class _Attributes:
    """What a parser tells its tags to."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Raises: Invalid, Cancelled, TimedOut."""
        check_deadline()
        if len(attributes) > MAX_ATTRIBUTES:
            raise Invalid(f"has a tag with more than {MAX_ATTRIBUTES:,} attributes; remove it.")

    def close(self) -> None:
        """Be done."""


def _main(root: Any) -> Any:
    marked = [element for element in root.iter("main", "article") if element.tag == "main"] or list(
        root.iter("article")
    )
    return marked[0] if len(marked) == 1 else root


def _is_frame(element: Any) -> bool:
    """Whether this is the head or the foot of the whole page, not of a part of it."""
    return (
        element.tag in ("header", "footer") and next(element.iterancestors("main", "article", "section"), None) is None
    )


class _Page:
    """What has been read so far."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._kind = PartKind.PARAGRAPH
        self._level = 0
        self._text: list[str] = []
        self._skipping: Any = None  # the element that is not read
        self._holding: Any = None  # the list, table or code that is being read
        self._depth = 0  # of lists inside it

    def entered(self, element: Any) -> None:
        tag = element.tag
        if self._skipping is not None:
            return
        if tag in SKIPPED or element.get("role") in HIDDEN or element.get("hidden") is not None or _is_frame(element):
            self._skipping = element
            return
        if self._holding is None:
            self._begin(element)
        elif tag == "li":
            self._text.append("\n" + "  " * max(0, self._depth - 1) + "- ")
        elif tag in ("tr", "p", "div", "dt", "dd"):
            self._text.append("\n")
        elif tag in ("td", "th") and element.getprevious() is not None:
            self._text.append(" | ")
        if tag in LISTS:
            self._depth += 1
        if tag == "br":
            self._text.append("\n")
        self._text.append(self._said(element.text))

    def left(self, element: Any) -> None:
        if self._skipping is element:
            self._skipping = None
        elif self._skipping is None:
            if element.tag in LISTS:
                self._depth -= 1
            if element is self._holding:
                self.flush()
                self._holding = None
            elif self._holding is None and (element.tag in BLOCKS or element.tag in HEADINGS):
                self.flush()
        if self._skipping is None:
            self._text.append(self._said(element.tail))

    def flush(self) -> None:
        """End the block that is being read."""
        text = "".join(self._text)
        if self._kind is not PartKind.CODE:
            text = "\n".join(line.rstrip() for line in text.split("\n") if line.strip(" -|"))
            text = text.strip() if self._kind is not PartKind.LIST else text.strip("\n")
        if text.strip():
            self.parts.append(Part(kind=self._kind, text=text, level=self._level))
        self._text, self._kind, self._level = [], PartKind.PARAGRAPH, 0

    def _begin(self, element: Any) -> None:
        """Whatever starts a block ends the one before."""
        tag = element.tag
        if tag in BLOCKS:
            self.flush()
        elif tag in HEADINGS:
            self.flush()
            self._kind, self._level = PartKind.HEADING, HEADINGS[tag]
        elif tag in LISTS or tag in ("table", "pre"):
            self.flush()
            self._kind = {"table": PartKind.TABLE, "pre": PartKind.CODE}.get(tag, PartKind.LIST)
            self._holding = element

    def _said(self, text: str | None) -> str:
        if not text:
            return ""
        return text if self._kind is PartKind.CODE else SPACE.sub(" ", text)
