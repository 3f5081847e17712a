"""Lock files: every package pinned and hashed, nothing from an address, and all that the project asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {"requirements.lock": ("server", "mcp", "postgres", "otel"), "ci.lock": ("all", "dev", "docs")}
ENTRY = re.compile(r"(?m)^([\w.\-\[\],]+)==(\S+)(?: ; ([^\\\n]+?))?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def read_lock(name: str) -> dict[str, list[str]]:
    """The versions of each package; a package may have several, for different platforms."""
    text = (ROOT / "deploy" / name).read_text(encoding="utf-8")
    versions: dict[str, list[str]] = {}
    for package, version, _, _ in ENTRY.findall(text):
        versions.setdefault(canonicalize_name(package), []).append(version)
    left = re.sub(r"(?m)^#.*\n", "", ENTRY.sub("", text)).strip()
    assert left == "", left[:200]
    return versions


def wanted(extras: tuple[str, ...]) -> dict[str, Requirement]:
    """The requirements of the project with these extras, by package."""
    found: dict[str, Requirement] = {}
    lines, waiting = list(PROJECT["dependencies"]), list(extras)
    seen: set[str] = set()
    while waiting:
        extra = waiting.pop()
        if extra not in seen:
            seen.add(extra)
            for line in PROJECT["optional-dependencies"][extra]:
                requirement = Requirement(line)
                if requirement.name == PROJECT["name"]:
                    waiting += requirement.extras
                else:
                    lines.append(line)
    for line in lines:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate():
            found[canonicalize_name(requirement.name)] = requirement
    return found


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_has_all_that_the_project_asks_for(name: str) -> None:
    locked = read_lock(name)
    requirements = wanted(EXTRAS[name])

    assert len(requirements) > 10
    for package, requirement in requirements.items():
        assert any(requirement.specifier.contains(each) for each in locked.get(package, [])), (
            f"{requirement}: make lock"
        )


@pytest.mark.parametrize("name", [*EXTRAS, "build.lock", "tools.lock"])
def test_a_lock_names_no_address(name: str) -> None:
    assert read_lock(name)
    assert "://" not in (ROOT / "deploy" / name).read_text(encoding="utf-8")


def test_what_builds_the_image_is_locked() -> None:
    assert {"hatchling", "editables"} <= set(read_lock("build.lock"))


def test_what_looks_at_the_packages_is_locked() -> None:
    assert {"cyclonedx-bom", "pip-audit"} <= set(read_lock("tools.lock"))
