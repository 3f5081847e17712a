"""A stranger's first minutes: what README prints runs in a clone, and nothing sends anybody to what is not ours."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
import urllib.request
from email import message_from_string
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.cli.program import Program
from tests.documentation import ROOT, read_blocks
from tests.house.source import PACKAGE
from wellkept.program import PROGRAM, advise_install

README = ROOT / "README.md"
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"])
FOLDERS = ("docs", "examples", "plugins")
PAGES = [README, *(page for folder in FOLDERS for page in sorted((ROOT / folder).rglob("*.md")))]
FOREIGN = re.compile(rf"github\.com/{PROGRAM}|{PROGRAM}\.github\.io|github\.{PROGRAM}|githubuser(?:content)|@{PROGRAM}")


class Reader(Program):
    """Types the commands of a page; `programs` is the folder that has those that it names."""

    command = ()

    def __init__(self, folder: Path, programs: Path) -> None:
        super().__init__(folder)
        self._programs = programs

    def environment(self, **more: str) -> dict[str, str]:
        whole = super().environment(PATH=f"{self._programs}:/usr/bin:/bin", WELLKEPT_PORT="0", WELLKEPT_WORKERS="1")
        return {name: value for name, value in whole.items() if name not in ("PYTHONPATH", "WELLKEPT_URL")} | more

    def run(self, *words: str) -> str:
        with self.start(*words) as process:
            out, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
        return out.decode()


def test_what_readme_prints_runs(tmp_path: Path) -> None:
    _, *lines = read_commands()

    follow(lines, Reader(tmp_path, Path(sys.executable).parent))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_readme_prints_runs_in_a_clone(tmp_path: Path) -> None:
    """From nothing: the packages come from the index."""
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    install, *lines = read_commands()
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", clone], check=True)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    programs = tmp_path / "venv" / "bin"
    subprocess.run([programs / install[0], *install[1:], "--quiet"], cwd=clone, check=True)

    follow(lines, Reader(home, programs))


def read_commands() -> list[list[str]]:
    """Return the words of each command of README's first block; the first installs."""
    commands = [shlex.split(line, comments=True) for line in read_blocks(README, "sh")[0].splitlines()]
    assert commands[0] == ["pip", "install", ".[mcp,server]"]
    return commands


def follow(lines: list[list[str]], reader: Reader) -> None:
    """Do what README says after the installation."""
    demo, install, serve = lines
    assert "$ wellkept recall" in reader.run(*demo)
    assert reader.asked("[y/N]", "y", *install).code == 0
    assert PROGRAM in json.loads((reader.folder / ".claude.json").read_text("utf-8"))["mcpServers"]
    (program,) = read_blocks(README, "python")
    hit, *_ = reader.run("python", "-c", program).splitlines()
    assert hit.startswith("Prefers trains to flights 0.")
    with reader.start(*serve) as server:
        try:
            check_server(server)
        finally:
            server.terminate()
            server.communicate(timeout=100)


def check_server(server: subprocess.Popen[bytes]) -> None:
    """It prints its address and a key, and answers there."""
    assert server.stdout is not None
    shown = ""
    while not (re.search(r"http://127\.0\.0\.1:\d+", shown) and f"{PROGRAM}_" in shown):
        line = server.stdout.readline().decode()
        assert line, shown
        shown += line
    address = re.findall(r"http://127\.0\.0\.1:\d+", shown)[0]
    with urllib.request.urlopen(f"{address}/health", timeout=60) as answer:
        assert json.load(answer)["status"] == "ok"


def test_the_package_page_has_neither_dead_links_nor_pictures(tmp_path: Path) -> None:
    """A package index shows README without the files of the repository."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=200)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as files:
        (name,) = (each for each in files.namelist() if each.endswith(".dist-info/METADATA"))
        metadata = message_from_string(files.read(name).decode())
    page = str(metadata.get_payload())

    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_all("Project-URL") is None  # there is no address yet
    assert "](" not in page.replace("](https://", "")
    assert "<img" not in page
    assert "Quickstart (docs/quickstart.md) ·" in page
    assert page.count("```") == README.read_text("utf-8").count("```")


def test_nothing_points_to_an_address_that_is_not_ours() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    found = [file.name for file in files if file.is_file() and FOREIGN.search(file.read_text("utf-8", "ignore"))]

    assert len(files) > 500
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_pages_need_no_package_index(page: Path) -> None:
    """Only README and the page of installation name what will be there."""
    text = page.read_text("utf-8")
    if page.name in ("README.md", "install.md") and page.parent in (ROOT, ROOT / "docs"):
        text = "".join(read_blocks(page, "sh"))

    assert re.findall(rf"(?:pip install|uvx)[^\n`#]*[ ']{PROGRAM}(?![\w/ ]).*", text) == []


def test_advice_names_extras_that_exist() -> None:
    """It is the only place that says how to install them."""
    texts = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    advised = {extra for text in texts.values() for extra in re.findall(r"advise_install\(['\"](\w+)", text)}
    needed = {extra for text in texts.values() for extra in re.findall(r"needs=.*extra=\"(\w+)\"", text)}
    named = {
        extra for page in PAGES for extra in re.findall(r"extra\]\(\S*install\.md\) `(\w+)`", page.read_text("utf-8"))
    }

    assert len(advised) >= 8
    assert named >= {"documents", "onnx"}
    assert advised | needed | named <= EXTRAS
    assert {path.name for path, text in texts.items() if f"pip install '{PROGRAM}" in text} == set()
    assert advise_install("mcp") == f"run: pip install '{PROGRAM}[mcp]' (in a clone: pip install '.[mcp]')"
