"""Requests nobody would think of, made from the server's own OpenAPI document: none may break it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx2
import pytest

from tests.server.live import serving
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CHECKS = """not_a_server_error status_code_conformance content_type_conformance response_schema_conformance
allow_header_conformance unsupported_method use_after_free ensure_resource_availability""".split()
PHASES = "examples coverage fuzzing stateful".split()
SEED = "20260301"
LONGEST = 280
METHODS = {"get", "post", "put", "patch", "delete"}


def schemathesis(
    address: str, folder: Path, *, examples: int, checks: Sequence[str], phases: Sequence[str], key: str = ""
) -> None:
    # As a program of its own, because its pytest plugin reaches into pytest's internals and breaks with new versions;
    # with one worker, because CPython 3.11 cannot parse source in two threads at once, which it does.
    options = ["--checks", ",".join(checks), "--phases", ",".join(phases), "--max-examples", str(examples)]
    options += ["--header", f"Authorization: Bearer {key}"] if key else []
    run = subprocess.run(
        [
            str(SCHEMATHESIS),
            "run",
            f"{address}/openapi.json",
            *options,
            "--workers",
            "1",
            "--seed",
            SEED,
            "--warnings",
            "off",
            "--request-timeout",
            "60",
            "--suppress-health-check",  # how quickly it thinks of requests says nothing about the server
            "all",
        ]
        + ["--no-color"],
        cwd=folder,  # where it leaves its notes
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )

    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]


@pytest.mark.slow
def test_no_request_breaks_the_server(address: str, tmp_path: Path) -> None:
    schemathesis(address, tmp_path, examples=5, checks=CHECKS, phases=PHASES)


@pytest.mark.slow
def test_no_request_breaks_a_server_with_keys(tmp_path: Path) -> None:
    """With a key, and (that is what `ignored_auth` tries) without one and with a wrong one."""
    with Wellkept(":memory:", settings=Settings(rate_limit=0, max_failed_keys=0)) as wellkept:
        key = wellkept.tenant().keys.create("admin").key
        with serving(wellkept, no_auth=False) as address:
            schemathesis(
                address, tmp_path, examples=2, checks=[*CHECKS, "ignored_auth"], phases=["examples", "fuzzing"], key=key
            )


def test_every_route_says_how_it_refuses(client: httpx2.Client) -> None:
    document = client.get("/openapi.json").json()
    shape = document["components"]["schemas"]["ErrorBody"]
    assert set(shape["properties"]) == {"ok", "error", "code"}
    for path, methods in document["paths"].items():
        for method in METHODS & set(methods):
            answers = methods[method]["responses"]
            assert "default" in answers, (method, path)
            told = answers["default"]["content"]["application/json"]["schema"]
            assert told == {"$ref": "#/components/schemas/ErrorBody"}
