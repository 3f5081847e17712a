"""Resources: texts that a host may add to a prompt.

The set `memory` offers the profile, `journal` the private memory of an agent, `memory` and `details` its stored texts;
skills are always offered. The addresses of other agents are answered like missing ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from mcp import types

from wellkept.errors import Invalid, NotFound
from wellkept.language.names import encode_cursor
from wellkept.model import Detail, DetailPage
from wellkept.prompt.rules_escaping import wrap_block
from wellkept.server.mcp.client import ClientContext
from wellkept.server.paging import decode_place
from wellkept.tools.verbs import MAX_CHARS

SCHEME = "wellkept"
PROFILE, PRIVATE_MEMORY, DETAILS, SKILLS = "profile", "private-memory", "details", "skills"
PLAIN, MARKDOWN = "text/plain", "text/markdown"
PAGE = 50
MISSING = "There is no such resource here; list the resources to see what there is."
NUMBERS = ("offset", "limit", "head", "tail", "context")
WORDS = ("lines", "grep", "json_path")
TEMPLATES: Mapping[str, types.ResourceTemplate] = {
    each.name: each
    for each in (
        types.ResourceTemplate(
            name=PROFILE,
            title="Profile",
            uri_template=f"{SCHEME}://agent/{{agent}}/{PROFILE}{{?subject}}",
            description="What is true now of the user and of whoever the user spoke about, or only of a subject.",
            mime_type=MARKDOWN,
        ),
        types.ResourceTemplate(
            name=PRIVATE_MEMORY,
            title="Private memory",
            uri_template=f"{SCHEME}://agent/{{agent}}/{PRIVATE_MEMORY}",
            description="What the agent always knows about itself, and its journal of the last days.",
            mime_type=MARKDOWN,
        ),
        types.ResourceTemplate(
            name=DETAILS,
            title="A stored text",
            uri_template=f"{SCHEME}://agent/{{agent}}/{DETAILS}/{{key}}{{?{','.join((*NUMBERS, *WORDS))}}}",
            description=(
                "The text behind a reference such as [MemoryRef: key - description]: a page from offset on, or lines, "
                "head, tail, grep or json_path."
            ),
            mime_type=PLAIN,
        ),
        types.ResourceTemplate(
            name=SKILLS,
            title="A skill",
            uri_template=f"{SCHEME}://agent/{{agent}}/{SKILLS}/{{name}}",
            description="What the agent is taught by a file, word for word.",
            mime_type=MARKDOWN,
        ),
    )
}
SETS: Mapping[str, Collection[str]] = {
    PROFILE: ("memory",),
    PRIVATE_MEMORY: ("journal",),
    DETAILS: ("memory", "details"),
}
"""The sets that offer a kind of resource; kinds without one are always offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAddress:
    """The parts of a resource's address."""

    kind: str
    agent: str
    name: str = ""  # of a stored text or a skill
    part: Mapping[str, str]  # what follows the question mark


def list_resources(client: ClientContext, cursor: str | None) -> types.ListResourcesResult:
    """List all resources: profile, private memory and skills, then stored texts, newest first. Raises: Invalid."""
    found = [] if cursor else [*_permanent(client)]
    if not is_offered(client, DETAILS):
        return types.ListResourcesResult(resources=found)
    stored = client.memory.details.list(before=decode_place(DETAILS, cursor) if cursor else None, limit=PAGE + 1)
    found += [_detail(client, each) for each in stored[:PAGE]]
    last = stored[PAGE - 1] if len(stored) > PAGE else None
    next_cursor = None if last is None else encode_cursor(DETAILS, (last.created_at, last.key))
    return types.ListResourcesResult(resources=found, next_cursor=next_cursor)


def list_templates(client: ClientContext) -> types.ListResourceTemplatesResult:
    """List the templates of addresses."""
    offered = [each for kind, each in TEMPLATES.items() if is_offered(client, kind)]
    return types.ListResourceTemplatesResult(resource_templates=offered)


def read(client: ClientContext, uri: str) -> types.ReadResourceResult:
    """Return the text at an address.

    A stored text is cut to fit a prompt; if more follows, a second text says how much, at the address of the next page.

    Raises: NotFound, Invalid, StoreError.
    """
    address = _parse_address(uri)
    if address is None or address.agent != client.memory.owner.agent or not is_offered(client, address.kind):
        raise NotFound(MISSING)
    if address.kind == PROFILE:
        text = client.memory.profile(subject=address.part.get("subject") or None).text
        return _text(uri, wrap_block(text, PROFILE) if text else "", MARKDOWN)
    if address.kind == PRIVATE_MEMORY:
        block = client.memory.private_memory()
        return _text(uri, "" if block is None else wrap_block(block, "private_memory"), MARKDOWN)
    if address.kind == SKILLS:
        for skill in client.memory.knowledge.skills():
            if skill.name == address.name:
                return _text(uri, skill.body, MARKDOWN)
        raise NotFound(MISSING)
    part = _parse_part(address.part)
    page = client.memory.details.read(address.name, **{**part, "limit": min(part.get("limit", MAX_CHARS), MAX_CHARS)})
    return _page(uri, address, page)


def is_offered(client: ClientContext, kind: str) -> bool:
    """Return True if the sets offer resources of this kind."""
    return kind not in SETS or any(each in client.sets for each in SETS[kind])


def _page(uri: str, address: ResourceAddress, page: DetailPage) -> types.ReadResourceResult:
    contents = [types.TextResourceContents(uri=uri, mime_type=PLAIN, text=page.content)]
    if page.next_offset is not None:
        query = urlencode({**address.part, "offset": page.next_offset})
        following = f"{_uri(address.agent, DETAILS, address.name)}?{query}"
        contents.append(types.TextResourceContents(uri=following, mime_type=PLAIN, text=page.remaining))
    return types.ReadResourceResult(contents=[*contents])


def _text(uri: str, text: str, mime_type: str) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)])


def _permanent(client: ClientContext) -> Iterator[types.Resource]:
    agent = client.memory.owner.agent
    for kind in (each for each in (PROFILE, PRIVATE_MEMORY) if is_offered(client, each)):
        described = TEMPLATES[kind]
        yield types.Resource(
            name=kind,
            title=described.title,
            uri=_uri(agent, kind),
            description=described.description,
            mime_type=MARKDOWN,
            annotations=types.Annotations(audience=["assistant"], priority=1.0),
        )
    for skill in client.memory.knowledge.skills():
        yield types.Resource(
            name=skill.name,
            uri=_uri(agent, SKILLS, skill.name),
            description=skill.description,
            mime_type=MARKDOWN,
            size=len(skill.body.encode()),
        )


def _detail(client: ClientContext, detail: Detail) -> types.Resource:
    return types.Resource(
        name=detail.key,
        title=detail.description or None,
        uri=_uri(client.memory.owner.agent, DETAILS, detail.key),
        description=detail.summary or None,
        mime_type=PLAIN,
        size=detail.size,
        annotations=types.Annotations(
            last_modified=detail.created_at.isoformat(timespec="seconds").replace("+00:00", "Z")
        ),
    )


def _uri(agent: str, *path: str) -> str:
    return f"{SCHEME}://agent/" + "/".join(quote(each, safe="@:+") for each in (agent, *path))


def _parse_address(uri: str) -> ResourceAddress | None:
    """Return the parts of an address; None if it is not one of ours.

    >>> _parse_address("wellkept://agent/atlas/details/npm-install-x7k2m9qp?tail=20").part
    {'tail': '20'}
    >>> _parse_address("wellkept://agent/atlas/secrets/one") is None
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
    if kind not in TEMPLATES or len(rest) != (kind not in (PROFILE, PRIVATE_MEMORY)):
        return None
    return ResourceAddress(kind=kind, agent=agent, name="".join(rest), part=part)


def _parse_part(part: Mapping[str, str]) -> dict[str, Any]:
    """Raises: Invalid."""
    checked: dict[str, Any] = {}
    for name, value in part.items():
        if name in WORDS:
            checked[name] = value
        elif name not in NUMBERS:
            raise Invalid(f"There is no parameter {name[:40]!r}; use {', '.join((*NUMBERS, *WORDS))}.")
        elif value.isascii() and value.isdecimal() and len(value) < 19:
            checked[name] = int(value)
        else:
            raise Invalid(f"{name} is a number.")
    return checked
