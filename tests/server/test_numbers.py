"""No number in a request breaks the server, for its own tenant or for another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

from tests.server.live import client_of, serving
from tests.waiting import eventually
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings

HOSTILE = (
    *("-1", "0", "2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e308"),
    *("NaN", "Infinity", "true", "9" * 400),
)
HERE = "\0"


class Document:
    """The numbers an OpenAPI document names, and requests that put something in their place."""

    def __init__(self, document: Any, key: str) -> None:
        """`key` is that of a detail."""
        self._document = document
        self._paths = {"agent": "evil", "id": "m-1", "key": key}

    def requests(self) -> Iterator[tuple[str, str, dict[str, str], str]]:
        """Method, path, query and body of a request for each number, which is marked by `HERE`."""
        for path, operations in self._document["paths"].items():
            for method, operation in operations.items():
                for name, value in self._paths.items():
                    path = path.replace(f"{{{name}}}", value)
                for each in operation.get("parameters", ()):
                    is_number = self._kinds(each["schema"]) & {"integer", "number"}
                    if each["in"] == "query" and (is_number or each["name"] == "cursor"):
                        yield method, path, {each["name"]: HERE}, ""
                content = operation.get("requestBody", {}).get("content", {})
                if schema := content.get("application/json", {}).get("schema"):
                    for body in self._bodies(schema):
                        yield method, path, {}, json.dumps(body)

    def _followed(self, schema: Any) -> Any:
        while "$ref" in schema:
            schema = self._document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return schema

    def _choices(self, schema: Any) -> list[Any]:
        schema = self._followed(schema)
        return [self._followed(each) for each in schema["anyOf"]] if "anyOf" in schema else [schema]

    def _kinds(self, schema: Any) -> set[str]:
        return {each.get("type", "") for each in self._choices(schema)}

    def _example(self, schema: Any) -> Any:
        schema = self._followed(schema)
        if found := schema.get("examples") or schema.get("enum"):
            return found[0]
        schema = self._choices(schema)[0]
        if schema.get("type") == "object":
            return {name: self._example(schema["properties"][name]) for name in schema.get("required", ())}
        return {"string": "x", "integer": 1, "number": 0.5, "boolean": False, "array": []}.get(schema.get("type", ""))

    def _bodies(self, schema: Any) -> Iterator[Any]:
        """The example of a schema, once for each number in it."""
        for each in self._choices(schema):
            if each.get("type") in ("integer", "number"):
                yield HERE
            elif each.get("type") == "array":
                for item in self._bodies(each["items"]):
                    yield [item]
            elif each.get("type") == "object" and "properties" in each:
                for name, field in each["properties"].items():
                    for body in self._bodies(field):
                        yield self._example(each) | {name: body}
            elif each.get("type") == "object":
                yield {"anything": HERE}


def answers(client: httpx2.Client, key: str) -> Iterator[tuple[str, int]]:
    """The status of every hostile request, and what it was."""
    for method, path, query, body in Document(client.get("/openapi.json").json(), key).requests():
        for number in HOSTILE:
            answer = client.request(
                method,
                path,
                params=dict.fromkeys(query, number),
                content=body.replace(json.dumps(HERE), number) or None,
                headers={"Content-Type": "application/json"} if body else {},
            )
            yield f"{method} {path} {[*query]} {body[:80]} {number[:30]}", answer.status_code


def test_hostile_numbers_break_nothing_for_anybody(tmp_path: Path) -> None:
    with Wellkept(settings=Settings(url=f"sqlite:///{tmp_path / 'memory.db'}")) as wellkept:
        wellkept.agent("evil", tenant="evil").remember("Prefers tabs")
        key = wellkept.agent("evil", tenant="evil").details.store("a line\n" * 900).key
        evil, good = (wellkept.tenant(name).keys.create("admin").key for name in ("evil", "good"))
        with serving(wellkept, no_auth=False) as address:
            with client_of(address, evil) as client:
                told = dict(answers(client, key))
                refused = client.post(
                    "/api/agents/evil/context", json={"session_id": "s", "message": "hi", "budget": 2**63}
                )
            with client_of(address, good) as client:
                client.post("/api/agents/ann/memories", json={"text": "Prefers spaces"})
                client.post("/api/agents/ann/context", json={"session_id": "s", "message": "spaces?"})
                others = [
                    client.get("/api/agents/ann/context-calls"),
                    client.post("/api/agents/ann/explain", json={"query": "spaces?", "id": "m-1"}),
                    client.get("/api/export"),
                    client.post("/api/erase", json={"subject": "text:nobody"}),
                ]
                eventually(lambda: client.get("/health").json()["problems"] == [])

    assert len(told) > 300
    assert {request: status for request, status in told.items() if status >= 500} == {}
    assert refused.status_code == 400
    assert "from 1 to 1,000,000,000" in refused.json()["error"]
    assert [answer.status_code for answer in others] == [200, 200, 200, 200]
    assert len(others[0].json()["items"]) == 1
