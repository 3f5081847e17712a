"""HTML reader: extracts the content of a page without its navigation.

The tree is walked without recursion, so any depth works. Text collects in the innermost block; blocks become parts in
the order in which they end. If a page marks its main part, only that is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from wellkept.deadline import check_deadline, iter_with_deadline
from wellkept.errors import Invalid
from wellkept.knowledge.rules_chunking import DocumentPart, PartKind, Reading

MAX_TAGS = 300_000
"""Tags of a page; the tree takes about 300 bytes for each."""

SKIPPED = frozenset(
    "script style noscript template nav aside form button select svg canvas iframe object audio video "
    "math head dialog menu".split()
)
HIDDEN = frozenset(["navigation", "banner", "contentinfo", "search", "complementary"])
"""ARIA roles of elements around a page's content."""

MAX_ATTRIBUTES = 1_000
"""Attributes of one tag: the parser takes quadratic time in their number, and cannot be interrupted."""

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
"""The parser's message for a tree that was cut off."""
SPACE = re.compile(r"\s+")


def declared_charset(content: bytes) -> str:
    """Return the encoding a page declares; UTF-8 by default."""
    found = CHARSET.search(content[:4096])
    return found[1].decode() if found else "utf-8"


def read_html(text: str) -> Reading:
    """Parse a page. Raises: Invalid."""
    if text.count("<") > MAX_TAGS:
        raise Invalid(f"has more than {MAX_TAGS:,} tags; split it.")
    etree = import_module("lxml.etree")
    options = {"encoding": "utf-8", "huge_tree": True, "remove_comments": True, "remove_pis": True}
    parser = etree.HTMLParser(**options)
    try:
        # Attributes cost nothing without a tree, so they are counted in a first pass.
        etree.fromstring(text.encode(), etree.HTMLParser(target=_AttributeLimit(), **options))
        root = etree.fromstring(text.encode(), parser)
    except etree.LxmlError as error:
        raise Invalid(f"is not HTML that can be read ({error}).") from error
    if any(DEPTH_REACHED in entry.message for entry in parser.error_log):
        raise Invalid("is nested so deeply that its inner parts cannot be read.")
    if root is None:
        return Reading(title="", parts=[])
    page = _Page()
    for event, element in iter_with_deadline(etree.iterwalk(_find_main(root), events=("start", "end")), every=100):
        page.enter(element) if event == "start" else page.leave(element)
    page.flush()
    title = " ".join((root.findtext(".//title") or "").split())
    first = next((part.text for part in page.parts if part.kind is PartKind.HEADING), "")
    return Reading(title=first or title, parts=page.parts)


class _AttributeLimit:
    """Parser target that checks the number of attributes of each tag."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Raises: Invalid, Cancelled, TimedOut."""
        check_deadline()
        if len(attributes) > MAX_ATTRIBUTES:
            raise Invalid(f"has a tag with more than {MAX_ATTRIBUTES:,} attributes; remove it.")

    def close(self) -> None:
        """End of the document."""


def _find_main(root: Any) -> Any:
    candidates = [element for element in root.iter("main", "article") if element.tag == "main"] or list(
        root.iter("article")
    )
    return candidates[0] if len(candidates) == 1 else root


def _is_frame(element: Any) -> bool:
    """Return True for the header or footer of the whole page, not of a part of it."""
    return (
        element.tag in ("header", "footer") and next(element.iterancestors("main", "article", "section"), None) is None
    )


class _Page:
    """Parts read so far, and the block being read."""

    def __init__(self) -> None:
        self.parts: list[DocumentPart] = []
        self._kind = PartKind.PARAGRAPH
        self._level = 0
        self._text: list[str] = []
        self._skipping: Any = None  # the element being skipped
        self._holding: Any = None  # the list, table or code being read
        self._depth = 0  # of lists inside it

    def enter(self, element: Any) -> None:
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
        self._text.append(self._normalise(element.text))

    def leave(self, element: Any) -> None:
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
            self._text.append(self._normalise(element.tail))

    def flush(self) -> None:
        """End the current block."""
        text = "".join(self._text)
        if self._kind is not PartKind.CODE:
            text = "\n".join(line.rstrip() for line in text.split("\n") if line.strip(" -|"))
            text = text.strip() if self._kind is not PartKind.LIST else text.strip("\n")
        if text.strip():
            self.parts.append(DocumentPart(kind=self._kind, text=text, level=self._level))
        self._text, self._kind, self._level = [], PartKind.PARAGRAPH, 0

    def _begin(self, element: Any) -> None:
        """Start a block, which ends the one before."""
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

    def _normalise(self, text: str | None) -> str:
        if not text:
            return ""
        return text if self._kind is PartKind.CODE else SPACE.sub(" ", text)
