"""A server with a tenant, keys of each scope and a clock that stands still, and requests as the corpus writes them.

A request is one line: who asks, the method, the address, headers in brackets, and the body. Who asks is the scope of a
key, `bound` (a key for the agent zoe only), `other` (an admin of another tenant), `wrong`, or `nobody`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from urllib.parse import urlsplit

from tests.corpus.recording import Masks, shorten
from tests.server.live import serving
from wellkept import Settings, Wellkept

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
TENANT, OTHER = "acme", "globex"
SHOWN_HEADERS = ("Allow", "Location", "Retry-After", "WWW-Authenticate", "X-Wellkept-Error", "Idempotency-Replayed")
REQUEST = re.compile(r"(\w+) ([A-Z]+) (\S+)((?: \[[A-Z][\w-]*: [^\]]*\])*)(?: (.*))?", re.DOTALL)
TIME_OF_SECTION = timedelta(minutes=1)
TIME_OF_REQUEST = timedelta(milliseconds=1)

UNREADABLE = {
    "/metrics": "numbers and times of this process: names and labels only",
    "/docs": "a page: its size only",
    "/docs/viewer.js": "a program that others wrote",
    "/openapi.json": "compared key by key in a test of its own",
}


class Clock:
    """Time of the store, which only moves when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class Asker:
    """Sends requests and returns the answers as they are kept."""

    def __init__(self, address: str, clock: Clock, masks: Masks, keys: Mapping[str, str]) -> None:
        self._connection = HTTPConnection(urlsplit(address).netloc, timeout=100)
        self._host = urlsplit(address).netloc
        self._clock = clock
        self._masks = masks
        self._keys = keys
        self._title = ""
        self._section = START

    def __call__(self, title: str, asked: str) -> str:
        """Ask once. A request is made a millisecond after the one before, a section is begun a minute later."""
        if title != self._title:
            self._title = title
            self._section += TIME_OF_SECTION
            self._clock.now = self._section
        self._clock.now += TIME_OF_REQUEST
        parts = REQUEST.fullmatch(asked)
        assert parts is not None, asked
        who, method, target, headers, body = parts.groups()
        sent = self._headers(who, headers)
        content = None if body is None else to_bytes(self._masks.reveal(body))
        if content is not None and "Content-Type" not in sent:
            sent["Content-Type"] = "application/json"
        self._connection.request(method, self._masks.reveal(target), content, sent)
        answer = self._connection.getresponse()
        content = answer.read()
        shown = "".join(f"[{name}: {value}] " for name in SHOWN_HEADERS if (value := answer.headers.get(name)))
        told = self._told(urlsplit(target).path, answer.status, answer.headers.get_content_type(), content)
        return f"{answer.status} {self._masks.mask(shown)}{told}".rstrip().replace(self._host, "<host>")

    def close(self) -> None:
        self._connection.close()

    def _headers(self, who: str, written: str) -> dict[str, str]:
        sent = dict(each.split(": ", 1) for each in re.findall(r"\[([^\]]*)\]", written))
        if who in self._keys:
            sent["Authorization"] = f"Bearer {self._keys[who]}"
        return sent

    def _told(self, path: str, status: int, kind: str, content: bytes) -> str:
        if status == 200 and path in UNREADABLE:
            return f"{kind}, not compared: {UNREADABLE[path]}"
        if not content:
            return kind if status == 200 else ""
        if kind == "application/json":
            value = self._masks.mask(json.loads(content))
            return json.dumps(value, ensure_ascii=False)
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return f"{kind}, {content[:2]!r}"
        return f"{kind} {shorten(str(self._masks.mask(text)))!r}"


def to_bytes(written: str) -> bytes:
    """Return a body as it is sent: `⏎` ends a line, and bytes that are no text are written as `\\xff`."""
    encoded = written.replace("⏎", "\r\n").encode()
    return re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes.fromhex(found[1].decode()), encoded)


@contextmanager
def asking(area: str) -> Iterator[Asker]:
    """Serve an empty store for one area of the corpus."""
    clock, masks = Clock(), Masks()
    settings = Settings(
        tenant=TENANT, embedder="off", rate_limit=0, max_failed_keys=0, openai_base_url="http://127.0.0.1:9/v1"
    )
    with Wellkept(":memory:", settings=settings, clock=clock) as store:
        keys = {}
        for who, tenant, scope in (
            ("read", TENANT, "read"),
            ("write", TENANT, "write"),
            ("admin", TENANT, "admin"),
            ("operator", TENANT, "operator"),
            ("other", OTHER, "admin"),
        ):
            clock.now += TIME_OF_REQUEST
            issued = store.tenant(tenant).keys.create(scope, name=who)
            keys[who] = issued.key
            masks.name(issued.record.id, f"<{who}.1>")
        clock.now += TIME_OF_REQUEST
        bound = store.tenant(TENANT).keys.create("write", name="bound", agents=["zoe"])
        masks.name(bound.record.id, "<bound.1>")
        keys |= {"bound": bound.key, "wrong": keys["admin"][:-4] + "aaaa"}
        with serving(store, no_auth=area.startswith("open")) as address:
            asker = Asker(address, clock, masks, keys)
            try:
                yield asker
            finally:
                asker.close()
