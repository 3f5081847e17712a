"""Resources: texts a host may put into a prompt without asking the model.

An agent's private memory comes with the set `journal`, its stored texts with `details`; its skills are always there.
Another agent's address is answered like one that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from mcp.types import (
    Annotations,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from recollect.errors import Invalid, NotFound
from recollect.model import Detail, DetailPage
from recollect.policy.prompt.escaping import wrapped
from recollect.server.mcp.offer import Offer
from recollect.server.rest.cursor import decode_place, encode_place
from recollect.tools.bounds import MAX_CHARS

SCHEME = "recollect"
PRIVATE_MEMORY, DETAILS, SKILLS = "private-memory", "details", "skills"
PLAIN, MARKDOWN = "text/plain", "text/markdown"
PAGE = 50
MISSING = "There is no such resource here; list the resources to see what there is."
NUMBERS = ("offset", "limit", "head", "tail", "context")
WORDS = ("lines", "grep", "json_path")

TEMPLATES: Mapping[str, ResourceTemplate] = {
    each.name: each
    for each in (
        ResourceTemplate(
            name=PRIVATE_MEMORY,
            title="Private memory",
            uri_template=f"{SCHEME}://agent/{{agent}}/{PRIVATE_MEMORY}",
            description="What the agent always knows about itself, and its journal of the last days.",
            mime_type=MARKDOWN,
        ),
        ResourceTemplate(
            name=DETAILS,
            title="A stored text",
            uri_template=f"{SCHEME}://agent/{{agent}}/{DETAILS}/{{key}}{{?{','.join((*NUMBERS, *WORDS))}}}",
            description=(
                "The text behind a reference such as [MemoryRef: key - description]: a page from offset on, or lines, "
                "head, tail, grep or json_path."
            ),
            mime_type=PLAIN,
        ),
        ResourceTemplate(
            name=SKILLS,
            title="A skill",
            uri_template=f"{SCHEME}://agent/{{agent}}/{SKILLS}/{{name}}",
            description="What the agent is taught by a file, word for word.",
            mime_type=MARKDOWN,
        ),
    )
}
SETS: Mapping[str, str] = {PRIVATE_MEMORY: "journal", DETAILS: "details"}
"""The set that offers a kind of resource; none named: all of them do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """What a resource's address says."""

    kind: str
    agent: str
    name: str = ""  # of a stored text or a skill
    part: Mapping[str, str]  # what follows the question mark


def listed(offer: Offer, cursor: str | None) -> ListResourcesResult:
    """Everything there is to read: first the private memory and the skills, then stored texts, newest first.

    Raises: Invalid.
    """
    found = [] if cursor else [*_lasting(offer)]
    if not is_offered(offer, DETAILS):
        return ListResourcesResult(resources=found)
    stored = offer.memory.list_details(before=decode_place(DETAILS, cursor) if cursor else None, limit=PAGE + 1)
    found += [_detail(offer, each) for each in stored[:PAGE]]
    last = stored[PAGE - 1] if len(stored) > PAGE else None
    next_cursor = None if last is None else encode_place(DETAILS, (last.created_at, last.key))
    return ListResourcesResult(resources=found, next_cursor=next_cursor)


def templates(offer: Offer) -> ListResourceTemplatesResult:
    """How addresses are made."""
    shown = [each for kind, each in TEMPLATES.items() if is_offered(offer, kind)]
    return ListResourceTemplatesResult(resource_templates=shown)


def read(offer: Offer, uri: str) -> ReadResourceResult:
    """The text at an address. Of a stored text at most so much as fits a prompt; if more follows, a second text says
    how much, and its address is that of the next page.

    Raises: NotFound, Invalid, StoreError.
    """
    address = _parsed(uri)
    if address is None or address.agent != offer.memory.owner.agent or not is_offered(offer, address.kind):
        raise NotFound(MISSING)
    if address.kind == PRIVATE_MEMORY:
        block = offer.memory.private_memory()
        return _text(uri, "" if block is None else wrapped(block, "private_memory"), MARKDOWN)
    if address.kind == SKILLS:
        for skill in offer.memory.skills():
            if skill.name == address.name:
                return _text(uri, skill.body, MARKDOWN)
        raise NotFound(MISSING)
    part = _checked_part(address.part)
    page = offer.memory.read_detail(address.name, **{**part, "limit": min(part.get("limit", MAX_CHARS), MAX_CHARS)})
    return _page(uri, address, page)


def is_offered(offer: Offer, kind: str) -> bool:
    """Whether the sets offer resources of this kind."""
    return kind not in SETS or SETS[kind] in offer.sets


def _page(uri: str, address: Address, page: DetailPage) -> ReadResourceResult:
    contents = [TextResourceContents(uri=uri, mime_type=PLAIN, text=page.content)]
    if page.next_offset is not None:
        query = urlencode({**address.part, "offset": page.next_offset})
        following = f"{_uri(address.agent, DETAILS, address.name)}?{query}"
        contents.append(TextResourceContents(uri=following, mime_type=PLAIN, text=page.remaining))
    return ReadResourceResult(contents=[*contents])


def _text(uri: str, text: str, mime_type: str) -> ReadResourceResult:
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=mime_type, text=text)])


def _lasting(offer: Offer) -> Iterator[Resource]:
    agent = offer.memory.owner.agent
    if is_offered(offer, PRIVATE_MEMORY):
        described = TEMPLATES[PRIVATE_MEMORY]
        yield Resource(
            name=PRIVATE_MEMORY,
            title=described.title,
            uri=_uri(agent, PRIVATE_MEMORY),
            description=described.description,
            mime_type=MARKDOWN,
            annotations=Annotations(audience=["assistant"], priority=1.0),
        )
    for skill in offer.memory.skills():
        yield Resource(
            name=skill.name,
            uri=_uri(agent, SKILLS, skill.name),
            description=skill.description,
            mime_type=MARKDOWN,
            size=len(skill.body.encode()),
        )


def _detail(offer: Offer, detail: Detail) -> Resource:
    return Resource(
        name=detail.key,
        title=detail.description or None,
        uri=_uri(offer.memory.owner.agent, DETAILS, detail.key),
        description=detail.summary or None,
        mime_type=PLAIN,
        size=detail.size,
        annotations=Annotations(
            last_modified=detail.created_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        ),
    )


def _uri(agent: str, *path: str) -> str:
    return f"{SCHEME}://agent/" + "/".join(quote(each, safe="@:+") for each in (agent, *path))


def _parsed(uri: str) -> Address | None:
    """None for what is no address of ours.

    >>> _parsed("recollect://agent/atlas/details/npm-install-x7k2m9qp?tail=20").part
    {'tail': '20'}
    >>> _parsed("recollect://agent/atlas/secrets/one") is None
    True
    """
    try:
        parts = urlsplit(uri)
        part = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=20))
    except ValueError:
        return None
    path = [unquote(each) for each in parts.path.split("/")[1:]]
    if parts.scheme != SCHEME or parts.netloc != "agent" or parts.fragment or len(path) < 2:
        return None
    agent, kind, *rest = path
    if kind not in TEMPLATES or len(rest) != (kind != PRIVATE_MEMORY):
        return None
    return Address(kind=kind, agent=agent, name="".join(rest), part=part)


def _checked_part(part: Mapping[str, str]) -> dict[str, Any]:
    """Raises: Invalid."""
    checked: dict[str, Any] = {}
    for name, value in part.items():
        if name in WORDS:
            checked[name] = value
        elif name not in NUMBERS:
            raise Invalid(f"A stored text is not asked for by {name[:40]!r}; use {', '.join((*NUMBERS, *WORDS))}.")
        elif value.isascii() and value.isdecimal() and len(value) < 19:
            checked[name] = int(value)
        else:
            raise Invalid(f"{name} is a number.")
    return checked
