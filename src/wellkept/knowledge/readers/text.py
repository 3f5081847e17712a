"""Readers for plain text and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from itertools import chain, islice
from typing import Any

from wellkept.deadline import check_deadline, iter_with_deadline
from wellkept.errors import Invalid
from wellkept.knowledge.rules_chunking import DocumentPart, PartKind, Reading

MAX_NESTING = 20
MAX_TOKENS = 100_000
"""Parser tokens of a document, about 1 kB each. A book has 20,000."""

MAX_LINES = 250_000
MAX_PARAGRAPHS = 250_000
MAX_CELLS = 30_000
"""Table cells of a document; beyond that, tables are read as paragraphs, because a cell takes three tokens."""

BLANK = re.compile(r"\n[ \t]*\n")
FRONT_MATTER = re.compile(
    r"\A\ufeff?(?:---[ \t]*\n(.*?\n)??(?:---|\.\.\.)|\+\+\+[ \t]*\n(.*?\n)??\+\+\+)[ \t]*(?:\n|\Z)", re.DOTALL
)
"""Fields before a text, as YAML between lines of dashes or TOML between lines of plus signs."""
FIELD_LINE = re.compile(r"[\w.\-]+[ \t]*[:=]|[\[\]{}\-#\"'\s]|\Z")
"""Beginning of a line of such fields: a name of one word, a list, a comment, or what continues the line before."""

TITLE = re.compile(r"^title[ \t]*[:=](.+)$", re.MULTILINE)

COMMENT = re.compile(
    # Code, which may show a comment, is kept.
    r"(?P<code>^[ \t]*(?P<fence>```+|~~~+).*?^[ \t]*(?P=fence)|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|<!--.*?-->",
    re.DOTALL | re.MULTILINE,
)
OPEN = "\x00"
"""Stands for the beginning of a comment without an end; no text contains it."""

EMPTY_LINK = re.compile(
    r"^[ ]{0,3}\[[^\]\n]+\]:[ \t]*(?:#|<>)[ \t]*(?:\([^\n]*\)|\"[^\n]*\"|'[^\n]*')[ \t]*$", re.MULTILINE
)
"""Link definition without an address, the way to write a comment in plain Markdown."""

KINDS = {
    "bullet_list_open": PartKind.LIST,
    "ordered_list_open": PartKind.LIST,
    "fence": PartKind.CODE,
    "code_block": PartKind.CODE,
    "table_open": PartKind.TABLE,
}


def read_text(text: str) -> Reading:
    """Split a text into paragraphs at blank lines. Raises: Invalid."""
    parts = list(islice(_paragraphs(text, 1), MAX_PARAGRAPHS + 1))
    if len(parts) > MAX_PARAGRAPHS:
        raise Invalid(f"has more than {MAX_PARAGRAPHS:,} paragraphs; split it.")
    return Reading(title="", parts=parts)


def read_markdown(text: str) -> Reading:
    """Parse a text by the block structure of CommonMark and tables; keep the text between blocks, but no comments."""
    front = FRONT_MATTER.match(text)
    # A paragraph between two rules is text.
    if front and not all(map(FIELD_LINE.match, (front[1] or front[2] or "").split("\n"))):
        front = None
    named = TITLE.search(front[1] or front[2] or "") if front else None
    title = named[1].strip(" \t").strip("\"'") if named else ""
    first_line = text.count("\n", 0, front.end()) if front else 0
    parts = list(_blocks(text[front.end() :] if front else text, first_line))
    if not title:
        title = next((part.text for part in parts if part.kind is PartKind.HEADING), "")
    return Reading(title=title, parts=parts)


def _blocks(text: str, skipped: int) -> Iterator[DocumentPart]:
    """Raises: Invalid."""
    if text.count("\n") > MAX_LINES:
        raise Invalid(f"has more than {MAX_LINES:,} lines; split it, or save it as plain text.")
    parser = import_module("markdown_it").MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    if text.count("|") <= MAX_CELLS:
        parser.enable("table")
    # Only the block structure is needed; the text inside stays unparsed.
    parser.core.ruler.disable(["inline"])
    # The limit is also checked before each line of these blocks.
    within = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("table", "limit", _check_limits, within)
    lines = text.split("\n")
    done = 0
    for token, following in _with_next(parser.parse(text)):
        if token.level or token.map is None or token.map[1] <= done:
            continue
        first, last = token.map
        # Link definitions.
        yield from _paragraphs(_remove_comments("\n".join(lines[done:first])), skipped + done + 1)
        done = last
        if token.type == "heading_open":
            level, heading = int(token.tag[1:]), _remove_comments(following.content)
            yield DocumentPart(kind=PartKind.HEADING, text=heading, level=level, number=skipped + first + 1)
        elif token.type != "hr":
            kind, block = KINDS.get(token.type, PartKind.PARAGRAPH), "\n".join(lines[first:last])
            block = block if kind is PartKind.CODE else _remove_comments(block)
            yield DocumentPart(kind=kind, text=block, number=skipped + first + 1)
    yield from _paragraphs(_remove_comments("\n".join(lines[done:])), skipped + done + 1)


def _remove_comments(text: str) -> str:
    """Remove comments outside code.

    >>> _remove_comments("One <!-- hidden --> two `<!-- shown -->`")
    'One  two `<!-- shown -->`'
    """
    text = EMPTY_LINK.sub("", text) if "]:" in text else text
    end = text.rfind("-->")
    if end < 0:
        return text
    # A beginning after the last end is no comment; to search for its end would take quadratic time.
    searched = text[:end] + text[end:].replace("<!--", OPEN)
    return COMMENT.sub(lambda found: found["code"] or "", searched).replace(OPEN, "<!--")


def _check_limits(state: Any, *_: object) -> bool:
    """Check the parser's progress before each block; return False, so that it parses the block itself."""
    check_deadline()
    if len(state.tokens) > MAX_TOKENS:
        raise Invalid(f"has more than {MAX_TOKENS:,} marks of structure, such as list items and table cells; split it.")
    return False


def _with_next(tokens: list[Any]) -> Iterator[tuple[Any, Any]]:
    # Not strict: without tokens the second list still has one item.
    return zip(tokens, [*tokens[1:], None], strict=False)


def _paragraphs(text: str, line: int) -> Iterator[DocumentPart]:
    start = counted = 0
    for border in iter_with_deadline(chain(BLANK.finditer(text), [None]), every=100):
        end = len(text) if border is None else border.start()
        paragraph = text[start:end]
        if paragraph.strip():
            begin = end - len(paragraph.lstrip())
            line += text.count("\n", counted, begin)
            counted = begin
            yield DocumentPart(kind=PartKind.PARAGRAPH, text=paragraph, number=line)
        start = len(text) if border is None else border.end()
