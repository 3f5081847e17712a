"""Workflows, release notes and the list of components: pinned, complete, and about this version."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.release_notes import main, read_notes
from wellkept import __version__

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
USES = re.compile(r"uses: (\S+)(.*)")


def steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_and_name_their_version(workflow: Path) -> None:
    used = USES.findall(workflow.read_text(encoding="utf-8"))

    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_do_little(workflow: Path) -> None:
    whole = yaml.safe_load(workflow.read_text(encoding="utf-8"))

    assert whole["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in whole["jobs"].values())
    checkouts = [step for step in steps(workflow) if "actions/checkout" in step.get("uses", "")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    # Text of others must not become part of a command.
    assert not any("${{" in step.get("run", "") for step in steps(workflow))


def test_one_action_has_one_version() -> None:
    used = {action for path in WORKFLOWS for action, _ in USES.findall(path.read_text(encoding="utf-8"))}

    assert len({action.partition("@")[0] for action in used}) == len(used)


def test_targets_of_the_workflow_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    runs = [step["run"] for path in WORKFLOWS for step in steps(path) if "run" in step]
    targets = {name for run in runs for name in re.findall(r"\bmake ([a-z-]+)", run)}

    assert targets >= {"test", "test-all", "audit", "sbom"}
    assert all(re.search(rf"(?m)^{target}:", makefile) for target in targets)


def test_the_version_has_notes() -> None:
    notes = read_notes(CHANGES, __version__)

    assert len(notes) > 1_000
    assert "## " not in re.sub("###+ ", "", notes)
    assert main([f"v{__version__}"]) == 0
    assert main(["v9.9.9"]) == 1
    with pytest.raises(ValueError, match="says nothing about 9"):
        read_notes(CHANGES, "9.9.9")


def test_the_newest_version_comes_first_and_is_the_one_of_the_package() -> None:
    headings = re.findall(r"(?m)^## (\S+)", CHANGES)

    assert headings[:2] == ["Unreleased", __version__]


def test_a_release_publishes_the_site() -> None:
    release = steps(ROOT / ".github" / "workflows" / "release.yml")

    assert any(step.get("with", {}).get("path") == "build/site" for step in release)
    assert any("actions/deploy-pages@" in step.get("uses", "") for step in release)


def test_other_files_name_the_same_version() -> None:
    plugin = json.loads(
        (ROOT / "plugins" / "claude-code" / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8")
    )

    assert plugin["version"] == __version__


def test_workflows_install_by_hash_alone() -> None:
    """A package that nobody has pinned could change what is tested, built or published."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    ends_locked = {"locked", "sbom", "audit", "release-notes"}
    for workflow in WORKFLOWS:
        for job in yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values():
            lines = "\n".join(step.get("run", "") for step in job["steps"]).splitlines()
            targets = [name for line in lines for name in re.findall(r"\bmake ([a-z-]+)", line)]
            assert targets[:1] == ["locked"] or set(targets) <= ends_locked, targets
            installs = [line for line in lines if "pip install" in line]
            # wellkept itself has no hash; without its dependencies, nothing else is installed with it.
            assert all("--require-hashes" in line or "--no-deps --no-build-isolation" in line for line in installs), (
                lines
            )
    for target in ends_locked - {"locked", "release-notes"}:
        assert re.search(rf"(?m)^{target}: \$\(TOOLS\)/installed ", makefile), target
    assert "pip-audit --strict" in makefile  # otherwise packages it could not look up count as safe


@pytest.mark.slow
def test_the_list_of_components_has_every_locked_package(tmp_path: Path) -> None:
    """`make sbom`, in an environment of its own."""
    command = ["make", "-C", str(ROOT), "sbom", f"TOOLS={tmp_path / 'tools'}", f"PYTHON={sys.executable}"]
    subprocess.run(command, check=True, capture_output=True, timeout=250)
    listed = json.loads((ROOT / "build" / "sbom.json").read_text(encoding="utf-8"))
    locked = set(re.findall(r"(?m)^([\w.-]+)==", (ROOT / "deploy" / "requirements.lock").read_text(encoding="utf-8")))

    assert listed["bomFormat"] == "CycloneDX"
    assert {each["name"] for each in listed["components"]} == locked
    assert (listed["metadata"]["component"]["name"], listed["metadata"]["component"]["version"]) == (
        "wellkept",
        __version__,
    )


def test_security_policy_names_what_is_out_of_scope() -> None:
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")

    assert [*re.findall(r"(?m)^## (.+)$", policy)][-1] == "Out of scope"
    for target in re.findall(r"\]\((docs/[\w-]+\.md)", policy):
        assert (ROOT / target).exists(), target
