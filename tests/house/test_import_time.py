"""Importing wellkept costs next to nothing: what is slow or optional comes with the first use."""

from __future__ import annotations

import subprocess
import sys

SLOW = "numpy apsw psycopg pydantic fastapi mcp click asyncio yaml Stemmer jinja2 uvicorn httpx"


def test_importing_wellkept_imports_nothing_slow() -> None:
    program = f"import sys, wellkept; print(*sorted(set({SLOW.split()!r}) & set(sys.modules)))"

    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert child.stdout.split() == []


def test_importing_the_library_leaves_drivers_and_the_encoder_to_their_first_use() -> None:
    names = {"apsw", "psycopg", "asyncio", "onnxruntime", "wellkept.upkeep.erase", "wellkept.transfer.restore"}
    program = f"import sys; from wellkept import Wellkept; print(*sorted({names!r} & set(sys.modules)))"

    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert child.stdout.split() == []


def test_every_public_name_can_be_imported() -> None:
    program = "import wellkept; print([name for name in wellkept.__all__ if getattr(wellkept, name, None) is None])"

    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert child.stdout.strip() == "[]"
