"""Write the examples of the OpenAPI document: the requests and answers that docs/rest.md shows, by route.

Run `python -m tools.reference_examples` after a change of docs/rest.md; a test compares them.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "rest.md"
TARGET = ROOT / "src" / "wellkept" / "server" / "examples.json"
HEADING = re.compile(r"^### `([A-Z]+) (\S+)`$", re.MULTILINE)
EXAMPLE = re.compile(r"```sh\n(curl .*?)\n```\n(?:\n```json\n(.*?)\n```)?", re.DOTALL)
HOST = "http://127.0.0.1:8077"


def read_examples(page: str) -> dict[str, Any]:
    """Return the first example of each route that calls the route, by method and path."""
    headings = [*HEADING.finditer(page)]
    ends = [*(each.start() for each in headings[1:]), len(page)]
    found: dict[str, Any] = {}
    for heading, end in zip(headings, ends, strict=True):
        method, path = heading.groups()
        for command, answer in EXAMPLE.findall(page[heading.end() : end]):
            called, address, body = parse_curl(command)
            if called == method and re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)), address):
                shown = {"request": body, "answer": json.loads(answer) if answer else None}
                found[f"{method} {path}"] = {part: value for part, value in shown.items() if value is not None}
                break
    return {name: shown for name, shown in found.items() if shown}


def parse_curl(command: str) -> tuple[str, str, Any]:
    """Return the method, the path and the JSON body of a call.

    >>> parse_curl("curl --json '{}' http://127.0.0.1:8077/api/agents?limit=1")
    ('POST', '/api/agents', {})
    """
    words = iter(shlex.split(command)[1:])
    method, address, body = "", "", None
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "--json":
            body = json.loads(next(words))
        elif word in ("-H", "-o", "--data-binary"):
            method = method or ("POST" if word == "--data-binary" else "")
            next(words)
        else:
            address = word.removeprefix(HOST).partition("?")[0]
    return method or ("GET" if body is None else "POST"), address, body


def render_examples(page: str) -> str:
    """Return the text of the file."""
    return json.dumps(read_examples(page), ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(render_examples(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
