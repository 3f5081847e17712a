"""What the documentation shows is what the server does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from tests.server.live import client_of, serving
from tests.waiting import eventually
from tools.reference import PAGE as REFERENCE
from tools.reference import read_document, render_page
from wellkept import __version__
from wellkept.api.wellkept import Wellkept
from wellkept.server.app import create_app
from wellkept.server.openapi import load_examples
from wellkept.settings import Settings
from wellkept.testing.fake_model import ModelHandler, ModelServer, says

PAGE = (Path(__file__).parents[2] / "docs" / "rest.md").read_text(encoding="utf-8")
KEY_ID = "mzxw6ytb"
DETAIL = "npm-install-x7k2m9qp"
HASH = re.compile("[0-9a-f]{16}|[0-9a-f]{64}")
CHANGING = re.compile(r"c-[0-9a-f]{22}|now: \w{3} \d{4}-\d\d-\d\d \d\d:\d\d UTC")
"""Ids that begin with the time, and the time itself inside of a sentence."""


def routes(client: httpx2.Client) -> set[str]:
    paths = client.get("/openapi.json").json()["paths"]
    return {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}


def test_every_route_is_documented(client: httpx2.Client) -> None:
    page = REFERENCE.read_text("utf-8")

    assert page == render_page(read_document()), "Run python -m tools.reference"
    assert set(re.findall(r"^### `([A-Z]+ \S+)`$", page, re.MULTILINE)) == routes(client)


def test_the_examples_answer_as_shown() -> None:
    with (
        ModelServer(seeing) as endpoint,
        Wellkept(":memory:", settings=Settings(openai_base_url=endpoint.url)) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        ids, files = {KEY_ID: KEY_ID, DETAIL: DETAIL}, dict[str, bytes]()
        for example in load_examples():
            if example["route"] == "POST /api/maintenance":
                eventually(lambda: wellkept.embedding.count_waiting() == 0)  # it counts what it embeds itself
            text = json.dumps(example, ensure_ascii=False)
            for shown, real in ids.items():
                text = text.replace(shown, real)
            example = json.loads(text)
            answer = send(client, example, files)
            assert answer.is_success, (example["route"], answer.text)
            if example["route"] == "POST /api/keys":
                ids[KEY_ID] = answer.json()["id"]
                example["answer"]["id"] = ids[KEY_ID]
            if example["route"] == "POST /api/agents/{agent}/details":
                ids[DETAIL] = answer.json()["memory_key"]
                example = json.loads(text.replace(DETAIL, ids[DETAIL]))
            if "answer" in example:
                assert example["answer"] == _like(example["answer"], answer.json()), example["route"]


class LosingAnswers(httpx2.HTTPTransport):
    """A connection on which the first answers are lost."""

    left = 2

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = super().handle_request(request)
        if self.left:
            self.left -= 1
            answer.close()
            raise httpx2.ReadError("lost")
        return answer


def test_the_retry_in_python_writes_once(address: str, client: httpx2.Client) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    with httpx2.Client(base_url=address, transport=LosingAnswers()) as losing:
        answer = names["post"](losing, "/api/agents/retrying/memories", {"text": "Tea", "kind": "journal"})

    assert (answer.status_code, answer.headers["Idempotency-Replayed"]) == (201, "true")
    assert len(client.get("/api/agents/retrying/memories").json()["items"]) == 1


def seeing(handler: ModelHandler, body: Any) -> None:
    """A model that looks at what it is shown."""
    is_image = isinstance(body["messages"][-1]["content"], list)
    says("A single pixel." if is_image else "Tabs, if you ask me.")(handler, body)


def send(client: httpx2.Client, example: Any, files: dict[str, bytes]) -> httpx2.Response:
    """Send an example; what an answer would leave in a file is left in `files`."""
    method, headers, content = example["route"].split()[0], dict(example.get("headers", {})), None
    if "body" in example:
        content = json.dumps(example["body"]).encode()
        headers |= {"Content-Type": "application/json", "Accept": "application/json"}
    elif "sends" in example:
        content = files[example["sends"]]
    answer = client.request(method, example["path"], content=content, headers=headers)
    if "saves" in example:
        files[example["saves"]] = answer.content
    return answer


def _like(shown: Any, real: Any) -> Any:
    if isinstance(shown, dict) and isinstance(real, dict):
        counted = {"events"} | ({"id"} if "hash" in real else set())  # whatever else is worth an event by now
        counted |= {"present"} if "refused_count" in real else set()  # as much as the page has made by now
        return {n: shown.get(n) if n in counted else _like(shown.get(n), value) for n, value in real.items()}
    if real == __version__:
        return shown
    if isinstance(shown, list) and isinstance(real, list) and len(shown) == len(real):
        return [_like(*pair) for pair in zip(shown, real, strict=True)]
    if isinstance(shown, str) and shown.endswith("…") and str(real).startswith(shown[:-1]):
        return shown
    if isinstance(shown, str) and isinstance(real, str) and (real.endswith("Z") or HASH.fullmatch(real)):
        return shown
    if isinstance(shown, str) and isinstance(real, str) and CHANGING.sub("", shown) == CHANGING.sub("", real):
        return shown
    return pytest.approx(real, abs=0.001) if isinstance(real, float) else real


def test_the_reference_is_shown_by_a_script_of_this_server(client: httpx2.Client) -> None:
    page = client.get("/docs")
    script = client.get("/docs/viewer.js")
    again = client.get("/docs/viewer.js", headers={"If-None-Match": script.headers["ETag"]})
    policy = dict(each.split(" ", 1) for each in page.headers["Content-Security-Policy"].split("; "))

    assert page.headers["Content-Type"].startswith("text/html")
    assert re.findall(r"(?:src|href|spec-url)=\"(.*?)\"", page.text) == [
        "/docs/viewer.js",
        "/openapi.json",
        "/openapi.json",
    ]
    assert "<noscript>" in page.text
    assert (policy["default-src"], policy["script-src"], policy["connect-src"]) == ("'none'", "'self'", "'self'")
    assert "OpenAPI Explorer" in script.text[:100]
    assert script.headers["Content-Type"].startswith("text/javascript")
    assert (again.status_code, again.content) == (304, b"")


def test_the_document_names_scopes_errors_tags_and_servers(client: httpx2.Client) -> None:
    document = client.get("/openapi.json").json()
    tags, operations = {each["name"]: each["description"] for each in document["tags"]}, 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            operations += 1
            statuses = operation["responses"].keys()
            assert tags[operation["tags"][0]], (method, path)
            assert {"400", "429", "503", "default"} <= statuses, (method, path)
            assert ("404" in statuses) is ("{" in path), (method, path)
            assert ("413" in statuses) is ("requestBody" in operation), (method, path)

    assert operations > 60
    assert document["servers"] == [{"url": "/", "description": "This server"}]
    assert all(
        each["content"]["application/json"]["example"]["code"] for each in document["components"]["responses"].values()
    )


@pytest.mark.parametrize("no_auth", [False, True])
def test_scopes_are_in_the_text_of_each_route(tmp_path: Path, no_auth: bool) -> None:
    with Wellkept(f"sqlite:///{tmp_path / 'm.db'}", settings=Settings()) as wellkept:
        document = create_app(wellkept, no_auth=no_auth).openapi()

    for methods in document["paths"].values():
        for operation in methods.values():
            scope = operation["x-scope"]
            assert operation["description"].endswith("Needs no key." if scope == "none" else f"`{scope}`.")


def test_examples_of_the_document_fit_their_schemas(client: httpx2.Client) -> None:
    document = client.get("/openapi.json").json()
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    parts = [part for each in operations for part in (each.get("requestBody", {}), *each["responses"].values())]
    contents = [part["content"]["application/json"] for part in parts if "application/json" in part.get("content", {})]
    shown = [content for content in contents if "example" in content]

    assert len(shown) > 60
    for content in shown:
        schema = content["schema"] | {"components": document["components"]}
        jsonschema_rs.validate(schema, content["example"])
