"""Document files: find and load them, and read Markdown, text, HTML and PDF into the same kind of parts.

A page is walked without recursion, so any depth works; if it marks its main part, only that is read. A few bytes of PDF
can unpack to gigabytes or be drawn without end, so a child process with limits on memory and time reads it. It is
started as a program: forking a server with threads is not safe.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn

from wellkept.deadline import check_deadline, iter_with_deadline
from wellkept.errors import Invalid
from wellkept.knowledge.rules_chunking import DocumentPart, PartKind, Reading
from wellkept.program import advise_install

MAX_BYTES = 50_000_000
MAX_CHARS = 5_000_000

MARKDOWN = frozenset([".md", ".markdown", ".mdown", ".mkd"])
HTML = frozenset([".html", ".htm", ".xhtml"])
PDF = frozenset([".pdf"])
TEXT = frozenset([".txt", ".text", ".rst", ".adoc", ".org"])
KNOWN = MARKDOWN | HTML | PDF | TEXT
"""Endings searched for in a folder. A file that is named directly may have any ending."""

MAX_PATH_CHARS = 1024
PATH_PATTERN = re.compile(rf"(?:[~.]?/)?\S+(?:{'|'.join(map(re.escape, sorted(KNOWN)))})", re.IGNORECASE)
"""One word that ends like a file: it is taken as a path even if the file does not exist."""

TOO_LARGE = f"is larger than {MAX_BYTES // 1_000_000} MB; split it"
PDF_MARK = b"%PDF-"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def locate_file(path_or_text: str | Path) -> Path | None:
    """Return the path that a caller names; None for a text. Raises: Invalid."""
    text = path_or_text if isinstance(path_or_text, str) else ""
    looks_like_path = not isinstance(path_or_text, str) or bool(PATH_PATTERN.fullmatch(text))
    if not looks_like_path and (len(text) > MAX_PATH_CHARS or "\n" in text or not text.strip()):
        return None
    path = Path(os.path.expanduser(path_or_text))
    try:
        if path.exists():
            return path
    except (OSError, ValueError, RuntimeError) as error:
        # Too long or with a NUL: a text, not a path.
        if not isinstance(path_or_text, str):
            raise Invalid(f"{path_or_text}: cannot be read ({error}).") from error
        return None
    if looks_like_path:
        raise Invalid(f"There is no file or folder {str(path_or_text)!r}.")
    return None


def load_file(path: Path) -> bytes:
    """Return the content of a file. Raises: Invalid."""
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error
    if len(content) > MAX_BYTES:
        raise Invalid(f"{path} {TOO_LARGE}.")
    return content


def walk_folder(folder: Path, *, include: Sequence[str], exclude: Sequence[str]) -> Sequence[Path]:
    """Return the paths of the documents below a folder, from there. Raises: Invalid."""
    return sorted(
        path
        for path in (path.relative_to(folder) for path in _iter_files(folder))
        if (_matches(path, include) if include else path.suffix.lower() in KNOWN) and not _matches(path, exclude)
    )


def read_document(content: bytes, *, name: str) -> Reading:
    """Read the content of a file by the reader for its name; without one, as Markdown. Raises: Invalid."""
    suffix = Path(name).suffix.lower()
    try:
        if len(content) > MAX_BYTES:
            raise Invalid(f"{TOO_LARGE}.")
        if suffix in PDF or content.startswith(PDF_MARK):
            return read_pdf(content)
        text = _decode(content, declared_charset(content) if suffix in HTML else "utf-8")
        if suffix in HTML:
            return read_html(text)
        return read_markdown(text) if suffix in MARKDOWN or not name else read_text(text)
    except Invalid as error:
        raise Invalid(f"{name or 'The text'} {error}") from error
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("lxml", "pypdf"):
            raise
        kind = "PDF" if error.name == "pypdf" else "HTML"
        raise Invalid(f"{name} is {kind}, which needs more packages; {advise_install('documents')}") from error


def _decode(content: bytes, charset: str) -> str:
    """Decode the content of a text file. Raises: Invalid, without the name of the file."""
    if content.startswith(UTF_16):
        charset = "utf-16"
    elif b"\x00" in content:
        raise Invalid("is not text: it holds NUL bytes.")
    try:
        text = content.decode("utf-8-sig" if charset.lower() in ("utf-8", "utf8") else charset)
    except (UnicodeDecodeError, LookupError) as error:
        line = content.count(b"\n", 0, error.start) + 1 if isinstance(error, UnicodeDecodeError) else 1
        raise Invalid(f"is not {charset[:40]} text (at line {line}); save it as UTF-8.") from error
    if len(text) > MAX_CHARS:
        raise Invalid(f"has more than {MAX_CHARS:,} characters; split it.")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x00" in text:
        raise Invalid(f"holds a NUL character (at line {text.count(chr(10), 0, text.index(chr(0))) + 1}); remove it.")
    return text


def _iter_files(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder except hidden ones and those in linked folders.

    A link to a file outside of the folder is not followed: a cloned repository could point it at any file of its user.

    Raises: Invalid.
    """
    top = os.path.realpath(folder)
    for place, folders, names in os.walk(folder, onerror=_refuse_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(place, name) for name in names if not name.startswith(".")):
            if path.is_file() and (not path.is_symlink() or path.resolve().is_relative_to(top)):
                yield path


def _refuse_unreadable(error: OSError) -> NoReturn:
    raise Invalid(f"{error.filename}: cannot be read ({error.strerror}).") from error


def _matches(path: Path, patterns: Sequence[str]) -> bool:
    """Return True if the path, its name or one of its folders matches one of the patterns."""
    names = [path.as_posix(), path.name, *(parent.as_posix() for parent in path.parents), *path.parts[:-1]]
    return any(fnmatch(name, pattern.rstrip("/")) for pattern in patterns for name in names if name != ".")


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


MAX_SECONDS = 60
MAX_MEMORY = 600_000_000
"""Bytes of the process, with 40 MB for Python. Systems that cannot limit memory have only the time."""

PROGRAM = Path(__file__).with_name("pdf_child.py")
DEADLINE_CHECK_SECONDS = 0.1


def read_pdf(content: bytes) -> Reading:
    """Parse a document. Raises: Invalid, Cancelled, TimedOut, ModuleNotFoundError."""
    if find_spec("pypdf") is None:
        raise ModuleNotFoundError(name="pypdf")
    answer = _run_child(content)
    if "refused" in answer:
        raise Invalid(answer["refused"])
    if "exceeded" in answer:
        raise Invalid(f"takes more than {answer['exceeded']} to read; split it, or print it to a new PDF.")
    parts = [
        DocumentPart(
            kind=PartKind.HEADING if level else PartKind.PARAGRAPH, text=text, level=level, place="page", number=page
        )
        for level, text, page in answer["parts"]
    ]
    return Reading(title=answer["title"], parts=parts)


def _run_child(content: bytes) -> dict[str, Any]:
    """Return what the child answers; it is gone when this returns or raises. Raises: Cancelled, TimedOut."""
    until = time.monotonic() + MAX_SECONDS
    # -P: the folder of the program is no place for modules.
    command = [sys.executable, "-P", str(PROGRAM), str(MAX_MEMORY), str(MAX_SECONDS), *filter(None, sys.path)]
    # The library warns of every flaw it tolerates, on the standard error.
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing) as process:
        try:
            sent: bytes | None = content
            while time.monotonic() < until:
                check_deadline()
                try:
                    answer, _ = process.communicate(sent, timeout=DEADLINE_CHECK_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    sent = None
            else:
                return {"exceeded": f"{MAX_SECONDS} seconds"}
        finally:
            process.kill()
    if answer:
        found: dict[str, Any] = json.loads(answer)
        return found
    # The system ends a process that has used its seconds, or fails to get memory, with a signal.
    if process.returncode < 0:
        return {"exceeded": "the allowed time or memory"}
    return {"refused": "is broken: it cannot be read as PDF. Open it in a viewer and save it again."}
