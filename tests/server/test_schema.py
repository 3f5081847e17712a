"""Requests nobody would think of, made from the server's own OpenAPI document: none may break it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CHECKS = """not_a_server_error status_code_conformance content_type_conformance response_schema_conformance
allow_header_conformance unsupported_method use_after_free ensure_resource_availability""".split()
PHASES = "examples coverage fuzzing stateful".split()


def test_no_request_breaks_the_server(address: str, tmp_path: Path) -> None:
    # As a program of its own, because its pytest plugin reaches into pytest's internals and breaks with new versions;
    # with one worker, because CPython 3.11 cannot parse source in two threads at once, which it does.
    options = ["--checks", ",".join(CHECKS), "--phases", ",".join(PHASES), "--max-examples", "5", "--workers", "1"]
    run = subprocess.run(
        [SCHEMATHESIS, "run", f"{address}/openapi.json", *options, "--warnings", "off", "--no-color"],
        cwd=tmp_path,  # where it leaves its notes
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
