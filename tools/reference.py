"""Write docs/reference/rest.md from the OpenAPI document and the examples of src/wellkept/server/examples.json, and
docs/reference/cli.md and settings.md from the commands and settings.

Run `python -m tools.reference` after a change of a route, a record, an example, a command or a setting; tests compare
the pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools import reference_cli, reference_settings
from wellkept import Settings, Wellkept
from wellkept.model import Json
from wellkept.server.app import create_app
from wellkept.server.openapi import load_examples

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "rest.md"
HOST = "http://127.0.0.1:8077"
HEAD = """\
# REST routes

Written from the OpenAPI document by `python -m tools.reference`. What all routes have in common, and what keys may do:
[REST](../rest.md). A running server shows the same at `/docs`.
"""


def read_document() -> Json:
    """Return the OpenAPI document of a server with keys."""
    with Wellkept(":memory:", settings=Settings(embedder="off")) as wellkept:
        document: Json = create_app(wellkept).openapi()
        return document


def render_page(document: Json) -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for tag in document["tags"]:
        parts.append(f"## {tag['name'].capitalize()}\n\n{tag['description']}\n")
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if operation["tags"][0] == tag["name"]:
                    parts.append(_render_route(document, method.upper(), path, operation))
    return "\n".join(parts)


def _render_route(document: Json, method: str, path: str, operation: Json) -> str:
    lines = [f"### `{method} {path}`", "", _unwrap(operation["description"]), ""]
    rows = [*_list_parameters(document, operation), *_list_fields(document, operation)]
    if rows:
        lines += ["| Name | In | Type | Meaning |", "|---|---|---|---|", *rows, ""]
    for example in load_examples():
        if example["route"] == f"{method} {path}":
            lines += ["```sh", _render_curl(method, example), "```", ""]
            if "answer" in example:
                lines += ["```json", json.dumps(example["answer"], indent=2, ensure_ascii=False), "```", ""]
    return "\n".join(lines)


def _list_parameters(document: Json, operation: Json) -> Iterator[str]:
    for each in operation.get("parameters", []):
        if each["in"] == "query":
            yield _render_row(document, each["name"], "query", each["schema"], each.get("description", ""))


def _list_fields(document: Json, operation: Json) -> Iterator[str]:
    for kind, media in operation.get("requestBody", {}).get("content", {}).items():
        schema = _resolve(document, media["schema"])
        for name, field in schema.get("properties", {}).items():
            place = "body" if kind == "application/json" else "form"
            is_required = name in schema.get("required", [])
            yield _render_row(document, name, f"{place}, required" if is_required else place, field)


def _render_row(document: Json, name: str, place: str, schema: Json, description: str = "") -> str:
    meaning = _unwrap(description or schema.get("description", ""))
    if schema.get("default") not in (None, "", [], {}):
        meaning += f" Default: `{json.dumps(schema['default'])}`."
    return f"| `{name}` | {place} | {_name_type(document, schema)} | {meaning.strip().replace('|', chr(92) + '|')} |"


def _name_type(document: Json, schema: Json) -> str:
    """Return the type of a value in a few words, without null."""
    schema = _resolve(document, schema)
    if "anyOf" in schema:
        kinds = [_name_type(document, each) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_name_type(document, schema.get('items', {}))}"
    return str({"date-time": "time", "binary": "file"}.get(schema.get("format", ""), schema.get("type", "any")))


def _resolve(document: Json, schema: Json) -> Json:
    while "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = document["components"]["schemas"][name]
    return schema


def _render_curl(method: str, example: Any) -> str:
    words = ["curl"]
    has_body = "body" in example or "sends" in example
    if method != ("POST" if has_body else "GET"):
        words += ["-X", method]
    words += [f"-H '{name}: {value}'" for name, value in example.get("headers", {}).items()]
    if "saves" in example:
        words += ["-o", example["saves"]]
    if "sends" in example:
        words += ["--data-binary", f"@{example['sends']}"]
    if "body" in example:
        body = json.dumps(example["body"], ensure_ascii=False).replace("'", "'\\''")
        words += ["--json", f"'{body}'"]
    address = HOST + example["path"]
    words.append(f"'{address}'" if re.search(r"[?&]", address) else address)
    return " ".join(words)


def _unwrap(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def main() -> None:
    PAGE.write_text(render_page(read_document()), encoding="utf-8")
    for page in (reference_cli, reference_settings):
        page.PAGE.write_text(page.render_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
