"""Makes requests for the fuzzer: valid ones from the OpenAPI document, then changed, down to single bytes.

Request number n of a seed is always the same bytes (but for the ids the server gave when it was filled), whatever ran
before it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from tests.server.routes import CONSOLE, SCOPES

Json = Any
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "CONNECT")
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
BOUNDARY = "fuzz-9f2c"

STRINGS: Sequence[str] = (
    *("", " ", "\n", "\x00", "a\x00b", "\ud800", "x\udfff", "\ufeff", "\u202e", "\u200b" * 9, "🎉" * 40, "é" * 600),
    *(
        "a" * 501,
        "a" * 20_000,
        "%s%n",
        "../../etc/passwd",
        "'; drop table agents; --",
        "{{7*7}}",
        "<script>",
        "\x1b[2J",
    ),
    *("null", "NaN", "-0", "1e999", "9" * 400, "0x10", "2026-02-31T00:00:00Z", "9999-12-31T23:59:59.999999+14:00"),
    *("0001-01-01T00:00:00-14:00", "2026-01-31T12:00:00Z", "m-1", "m-0", "m--1", "m-99999999999999999999", "text:a"),
    *("agent:ann", "session:s-1", "memory:ann/m-1", "tenant", "$..*", "$[?@.a>1]", "$" + "[*]" * 60, "$['a'", "(a+)+$"),
    *("[", "(?P<", "\\", "a{1,99999}", "1-2", "5-1", "-1-", "0-0", "1-99999999999999999999", "core", "note", "episode"),
    *("read", "admin", "write", "all", "live", "gzip", "zstd", "MERGE", "sk-proj-" + "a" * 48, "AKIAIOSFODNN7EXAMPLE"),
)
NUMBERS: Sequence[str] = (
    *("0", "-0", "-0.0", "1", "-1", "2", "100", "101", "4294967296", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775809", "1e16", "1e308", "1e309", "-1e309", "0.1", "1e-400", "NaN", "Infinity", "-Infinity"),
    *("9" * 300, "9" * 4301, "1" + "0" * 30, "00", "1.", ".5", "true", "null", '"1"'),
)
TOKENS: Sequence[bytes] = (
    *(b"\x00", b"\xff", b"\r\n", b"\n", b"\r", b" ", b"\t", b"%00", b"%ff", b"%ED%A0%80", b"\\ud800", b'"', b"{", b"}"),
    *(b"[" * 2000, b"]", b",", b":", b"\\u0000", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf0\x9f\x8e\x89", b"..", b"//"),
    *(b"?", b"&", b"=", b";", b"#", b"0\r\n\r\n", b"Host: evil\r\n", b"Content-Length: 1\r\n", b"chunked", b"-1"),
    *(
        b"99999999999999999999",
        b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"A" * 70_000,
        b"\x16\x03\x01",
        b"PRI * HTTP/2.0",
    ),
)
CHARSETS = ("utf-8", "undefined", "idna", "utf-7", "utf-16", "unicode_escape", "hex", "x" * 500, "")
HEADERS: Sequence[bytes] = (
    b"Expect: 100-continue",
    b"Expect: the unexpected",
    b"Upgrade: websocket\r\nConnection: Upgrade",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AA",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Content-Encoding: gzip",
    b"Content-Length: 0",
    b"Content-Length: 18446744073709551616",
    b"Content-Length: -1",
    b"Origin: null",
    b"Origin: http://evil.example",
    b"Host: evil.example",
    b"Host: [::1",
    b"Host: localhost:99999999",
    b"Cookie: wellkept_console=\xff\xfe; =; a",
    b"Cookie: " + b"wellkept_console=x; " * 400,
    b"Accept: text/event-stream",
    b"Accept: \xff;q=x, */*;q=nan",
    b"Accept: text/html",
    b"Range: bytes=0-1",
    b"If-None-Match: *",
    b"X-Request-Id: \xff",
    b"X-Request-Id: " + b"a" * 65,
    b"X-Forwarded-For: 1.2.3.4, evil",
    b"X-HTTP-Method-Override: DELETE",
    b"X-Wellkept-Agent: \xff\x01",
    b"MCP-Protocol-Version: 2026-07-28",
    b"MCP-Protocol-Version: \xff",
    b"Mcp-Session-Id: nothing",
    b"Last-Event-ID: 7",
    b"Authorization: Bearer \xff\xfe",
    b"Authorization: Bearer wellkept_mfrw2zi_aaaaaaaa_" + b"a" * 52,
    b"Authorization: Basic YTpi",
    b"Connection: keep-alive",
    b"Connection: close, keep-alive, \xff",
    b"Content-Type: application/json; charset=utf-16",
    b'Content-Type: \xff/\xfe; =;;"',
    b"A: " + b"b" * 9_000,
    b"Idempotency-Key: \xff",
    b"Idempotency-Key: fuzz-1",
)
MCP_METHODS = (
    *(
        "initialize",
        "server/discover",
        "ping",
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/read",
        "nothing",
    ),
    *("resources/templates/list", "prompts/list", "prompts/get", "completion/complete", "notifications/initialized"),
    *("logging/setLevel", "resources/subscribe", "sampling/createMessage", "notifications/cancelled", "", "tools/call"),
)
TOOL_NAMES = (
    *("memory_store", "memory_search", "memory_delete", "save_to_journal", "save_to_core", "store_memory"),
    *(
        "remember",
        "recall",
        "forget",
        "profile",
        "list_memories",
        "read_detail",
        "retrieve_memory",
        "search_memory",
        "search_my_memories",
        "search_knowledge",
    ),
)
ARGUMENTS = (
    "text",
    "query",
    "id",
    "tags",
    "content",
    "key",
    "limit",
    "metadata",
    "description",
    "offset",
    "grep",
    "lines",
)


@dataclass(frozen=True)
class World:
    """What the requests are about: the server's own description, keys to choose from, and ids that exist."""

    document: Mapping[str, Any]
    keys: Sequence[str]
    cookies: Sequence[str]
    ids: Mapping[str, Sequence[str]]
    port: int


@dataclass(frozen=True)
class Made:
    """A request as bytes; framed: its length is as it says, so an answer has to come."""

    content: bytes
    is_framed: bool
    method: str


def make(world: World, seed: int, number: int) -> Made:
    """Return request `number` of this seed."""
    return _Maker(world, random.Random(f"{seed}:{number}")).request()


class _Maker:
    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng

    def _chance(self, odds: float) -> bool:
        return self._rng.random() < odds

    def request(self) -> Made:
        rng = self._rng
        method, path = rng.choice([*SCOPES, *CONSOLE, *["POST /mcp"] * 6, *["POST /admin/login"] * 2]).split(" ", 1)
        if path == "/admin/logout" and self._chance(0.9):  # else most requests to the console came without a login
            path = "/admin/login"
        operation = self._world.document["paths"].get(path, {}).get(method.lower(), {})
        if self._chance(0.03):
            method = rng.choice(METHODS)
        target = self._path(path) + self._query(operation)
        kind, body = self._body(method, path, operation)
        head, body = self._head(method, target, path, kind, body)
        content, is_framed = head + b"\r\n\r\n" + body, True
        if self._chance(0.3):
            content, is_framed = self._mangled(content), False
        elif b"Content-Length: " in content[len(content) - len(body) - 200 :] and self._chance(0.02):
            content, is_framed = content[: -max(1, len(body) // 2)], False
        return Made(content, is_framed, method)

    def _path(self, path: str) -> str:
        def value(match: re.Match[str]) -> str:
            known = self._world.ids.get(match[1], self._world.ids["id"])
            return quote(self._rng.choice(known) if self._chance(0.85) else self._text(), safe="", errors="replace")

        return re.sub(r"\{(\w+)(?::path)?\}", value, path)

    def _query(self, operation: Mapping[str, Any]) -> str:
        parameters = [each for each in operation.get("parameters", ()) if each["in"] == "query"]
        chosen = [each for each in parameters if self._chance(0.5)]
        pairs = [(each["name"], self._loose(self._value(each.get("schema", {})))) for each in chosen]
        if self._chance(0.1):
            pairs.append((self._rng.choice(["q", "limit", "agent", "sets", "x", "next"]), self._text()))
        query = urlencode(pairs, errors="replace")
        if self._chance(0.05):
            query += self._rng.choice(["&limit=1&limit=2", "&%ff=%fe", "&=&&=", "%00", "&q=%ED%A0%80", "&cursor=AAAA"])
        return f"?{query}" if query else ""

    def _body(self, method: str, path: str, operation: Mapping[str, Any]) -> tuple[str, bytes]:
        if path == "/mcp":
            return JSON, self._dumped(self._message())
        if path.startswith("/admin"):
            return self._form() if method == "POST" else ("", b"")
        content = operation.get("requestBody", {}).get("content", {})
        if not content:
            return (JSON, self._dumped(self._hostile(2))) if self._chance(0.05) else ("", b"")
        if path == "/api/import" and self._chance(0.5):
            return "application/octet-stream", self._lines()
        if MULTIPART in content and self._chance(0.5):
            return self._multipart()
        value = self._value(content[JSON]["schema"]) if JSON in content else self._hostile(2)
        return JSON, self._dumped(self._changed(value))

    def _head(self, method: str, target: str, path: str, kind: str, body: bytes) -> tuple[bytes, bytes]:
        rng, origin = self._rng, f"http://127.0.0.1:{self._world.port}"
        version = "HTTP/1.0" if self._chance(0.02) else "HTTP/1.1"
        target = origin + target if self._chance(0.01) else target
        lines = [
            f"{method} {target} {version}".encode("latin-1", "replace"),
            f"Host: 127.0.0.1:{self._world.port}".encode(),
        ]
        if path.startswith("/admin"):
            lines += [f"Origin: {origin}".encode()] * (not self._chance(0.05))
            lines += [f"Cookie: wellkept_console={rng.choice(self._world.cookies)}".encode()] * (not self._chance(0.1))
        elif not self._chance(0.05):
            lines.append(f"Authorization: Bearer {rng.choice(self._world.keys)}".encode())
        if kind:
            lines.append(b"Content-Type: " + (kind if not self._chance(0.03) else "text/plain").encode())
        if path == "/mcp":
            lines.append(
                b"Accept: " + rng.choice([b"application/json, text/event-stream", b"text/event-stream", b"*/*"])
            )
        if body and self._chance(0.15):
            lines.append(b"Transfer-Encoding: chunked")
            body = self._chunked(body)
        elif body or method not in ("GET", "HEAD"):
            lines.append(f"Content-Length: {len(body)}".encode())
        if self._chance(0.15):
            extra = rng.choice(HEADERS)
            if not extra.startswith((b"Transfer-Encoding", b"Content-Length")):
                lines.append(extra)
        return b"\r\n".join(lines), body

    def _chunked(self, body: bytes) -> bytes:
        cuts = sorted(self._rng.randrange(1, len(body) + 1) for _ in range(self._rng.randrange(1, 5)))
        parts = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True) if start < end]
        extension = b";a=\xff" if self._chance(0.1) else b""
        return b"".join(b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts) + b"0\r\n\r\n"

    def _mangled(self, content: bytes) -> bytes:
        """Change single bytes, anywhere."""
        data = bytearray(content)
        for _ in range(self._rng.choice([1, 1, 1, 2, 4, 16])):
            at = self._rng.randrange(len(data) + 1)
            length = min(self._rng.choice([1, 1, 2, 8, 60]), len(data) - at)
            change = self._rng.randrange(5)
            if change == 0:
                data[at : at + length] = self._rng.randbytes(length)
            elif change == 1:
                data[at:at] = self._rng.choice(TOKENS)
            elif change == 2:
                del data[at : at + length]
            elif change == 3:
                data[at:at] = data[at : at + length] * self._rng.choice([1, 2, 50])
            else:
                line = data.find(b"\r\n", at)
                data[max(line, 0) : max(line, 0)] = b"\r\n" + self._rng.choice(HEADERS)
        return bytes(data)

    # --- values

    def _text(self) -> str:
        known = [each for ids in self._world.ids.values() for each in ids]
        return self._rng.choice(STRINGS if self._chance(0.6) else known)

    def _value(self, schema: Mapping[str, Any]) -> Json:
        """Return a value that mostly fits the schema."""
        rng = self._rng
        if "$ref" in schema:
            return self._value(self._world.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        for choices in ("anyOf", "oneOf", "allOf"):
            if choices in schema:
                return self._value(rng.choice(schema[choices]))
        if self._chance(0.8) and (schema.get("enum") or schema.get("examples")):
            return rng.choice(schema.get("enum") or schema["examples"])
        kind = schema.get("type")
        if kind == "object":
            properties, required = schema.get("properties", {}), schema.get("required", ())
            wanted = [name for name in properties if name in required or self._chance(0.2)]
            if not properties:
                return {self._text(): self._hostile(2)}
            return {name: self._value(properties[name]) for name in wanted}
        if kind == "array":
            return [self._value(schema.get("items", {})) for _ in range(rng.choice([0, 1, 1, 2, 6]))]
        if kind in ("integer", "number"):
            return _Number(rng.choice(NUMBERS)) if self._chance(0.2) else rng.choice([0, 1, 2, 5, 20, 0.5])
        if kind == "boolean":
            return self._chance(0.5)
        if kind == "null":
            return None
        return self._text() if self._chance(0.15) else f"word {rng.randrange(1000)} about tabs, tea and Oslo"

    def _hostile(self, depth: int) -> Json:
        rng = self._rng
        choice = rng.randrange(9 if depth else 6)
        if choice < 3:
            return self._text()
        if choice == 3:
            return _Number(rng.choice(NUMBERS))
        if choice == 4:
            return rng.choice([None, True, False, [], {}, "", 0])
        if choice == 5:
            nested: Json = self._text()
            for level in range(rng.choice([5, 31, 33, 200, 900, 5000])):
                nested = _Nested(nested, level % 2 == 0)
            return nested
        if choice < 8:
            return {self._text(): self._hostile(depth - 1) for _ in range(rng.randrange(4))}
        return [self._hostile(depth - 1) for _ in range(rng.randrange(4))]

    def _changed(self, value: Json) -> Json:
        if not isinstance(value, dict) or self._chance(0.55):
            return value
        if self._chance(0.05):
            return self._hostile(2)
        names = list(value)
        if names and self._chance(0.7):
            value = {**value, self._rng.choice(names): self._hostile(2)}
        elif names and self._chance(0.5):
            value = {name: each for name, each in value.items() if name != names[0]}
        else:
            value = {**value, self._text(): self._hostile(1)}
        return value

    def _loose(self, value: Json) -> str:
        return value if isinstance(value, str) else _dumps(value)

    def _dumped(self, value: Json) -> bytes:
        text = _dumps(value, is_ascii=self._chance(0.5))
        encoding = self._rng.choice(["utf-16", "utf-8-sig", "latin-1"]) if self._chance(0.02) else "utf-8"
        return text.encode(encoding, "surrogatepass" if encoding.startswith("utf") else "replace")

    # --- bodies of other kinds

    def _message(self) -> Json:
        """A message of the Model Context Protocol."""
        rng = self._rng
        params: Json = {"name": rng.choice([*TOOL_NAMES, self._text()])}
        names = [name for name in ARGUMENTS if self._chance(0.25)]
        if self._chance(0.8):
            params["arguments"] = {name: self._hostile(2) if self._chance(0.5) else self._text() for name in names}
        if self._chance(0.3):
            params = {
                "uri": rng.choice(["memory://private", "wellkept://details/x", self._text()]),
                "cursor": self._text(),
            }
        if self._chance(0.1):
            params = self._hostile(2)
        if self._chance(0.1):
            params = {
                "ref": {"type": "ref/prompt", "name": self._text()},
                "argument": {"name": "a", "value": self._text()},
            }
        message = {
            "jsonrpc": "2.0",
            "id": rng.choice([1, "a", None, _Number("1e400"), -1]),
            "method": rng.choice(MCP_METHODS),
        }
        message["params"] = params
        return self._changed(message) if self._chance(0.5) else message

    def _form(self) -> tuple[str, bytes]:
        names = ("key", "text", "tags", "importance", "wish", "format", "agent", "scope", "name", "expires", "version")
        fields = [(name, self._text()) for name in names if self._chance(0.3)]
        if self._chance(0.3):
            return self._multipart()
        return FORM, urlencode(fields, errors="replace").encode()

    def _multipart(self) -> tuple[str, bytes]:
        parts = []
        for name in ("file", "title", "category", "is_published", "images", "prompt", "key", "wish", "x"):
            if self._chance(0.35):
                said = f'Content-Disposition: form-data; name="{name}"'
                if name in ("file", "images") or self._chance(0.05):
                    named = self._rng.choice(
                        ["a.md", "a.pdf", "a.html", "a.txt", "../a.md", "a.\x00md", "a", "é🎉.md", '"']
                    )
                    said += f'; filename="{named}"'
                content = self._lines() if self._chance(0.3) else self._text().encode("utf-8", "surrogatepass")
                if self._chance(0.2):
                    content = self._rng.choice(
                        [b"%PDF-1.4\n", b"<html><p>", b"---\na: [\n---\n", b"\x89PNG\r\n\x1a\n", b"PK\x03\x04"]
                    )
                parts.append(f"--{BOUNDARY}\r\n{said}\r\n\r\n".encode() + content + b"\r\n")
        charset = f"; charset={self._rng.choice(CHARSETS)}" if self._chance(0.15) else ""
        return f"{MULTIPART}; boundary={BOUNDARY}{charset}", b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()

    def _lines(self) -> bytes:
        """An import that is not in order."""
        rows: list[Callable[[], Json]] = [
            lambda: {"wellkept": "export", "version": 1, "tenant": "x", "exported_at": self._text()},
            lambda: {"table": self._rng.choice(["agents", "memories", "audit_log", "x"]), "row": self._hostile(2)},
            lambda: {"end": {"counts": {"agents": 1}, "sha256": "0" * 64}},
            lambda: {"id": "1", "memory": self._text(), "user_id": self._text(), "created_at": self._text()},
            lambda: {"type": "entity", "name": self._text(), "observations": [self._text()]},
            lambda: {"namespace": ["a"], "key": "k", "value": self._hostile(2)},
            lambda: {"title": self._text(), "mapping": {"a": {"message": self._hostile(2)}}},
        ]
        chosen = [self._rng.choice(rows)() for _ in range(self._rng.randrange(1, 4))]
        return b"".join(_dumps(each).replace(": ", ":").encode("utf-8", "surrogatepass") + b"\n" for each in chosen)


@dataclass(frozen=True)
class _Number:
    """Digits as they are written, also those no float can hold."""

    text: str


@dataclass(frozen=True)
class _Nested:
    """A value inside a list or an object."""

    inner: Json
    is_list: bool


def _dumps(value: Json, *, is_ascii: bool = True) -> str:
    """JSON of any depth, with numbers as they were written."""
    opened, closed = [], []
    while isinstance(value, _Nested):
        opened.append("[" if value.is_list else '{"a": ')
        closed.append("]" if value.is_list else "}")
        value = value.inner
    if isinstance(value, _Number):
        text = value.text
    elif isinstance(value, dict):
        pairs = (
            f"{json.dumps(name, ensure_ascii=is_ascii)}: {_dumps(each, is_ascii=is_ascii)}"
            for name, each in value.items()
        )
        text = "{" + ", ".join(pairs) + "}"
    elif isinstance(value, list):
        text = "[" + ", ".join(_dumps(each, is_ascii=is_ascii) for each in value) + "]"
    else:
        text = json.dumps(value, ensure_ascii=is_ascii)
    return "".join(opened) + text + "".join(reversed(closed))
