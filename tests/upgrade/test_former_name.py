"""What version 0.2 wrote under its former name opens unchanged: `store_0_2` was made by it."""

from __future__ import annotations

import gzip
import logging
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.house.source import REPOSITORY
from wellkept import Settings, Wellkept
from wellkept.program import FORMER_NAME
from wellkept.settings import default_url

WRITTEN = Path(__file__).with_name("store_0_2")
KEY = (WRITTEN / "key.txt").read_text().strip()
MAY_NAME_IT = ("CHANGELOG.md", "tests/upgrade/")
MOST_LINES = 10


def unpack(name: str, folder: Path) -> Path:
    """Unpack one of the archives into a new folder."""
    with tarfile.open(WRITTEN / name) as files:
        files.extractall(folder, filter="data")
    return folder


def export_file(folder: Path) -> Path:
    path = folder / "export.jsonl"
    path.write_bytes(gzip.decompress((WRITTEN / "export.jsonl.gz").read_bytes()))
    return path


def open_store(folder: Path) -> Wellkept:
    return Wellkept(f"sqlite:///{unpack('store.tar.xz', folder)}/memory.db")


def open_backup(folder: Path) -> Wellkept:
    url = f"sqlite:///{folder}/restored.db"
    Wellkept.restore(WRITTEN / "backup.tar", to=url)
    return Wellkept(url)


def open_export(folder: Path) -> Wellkept:
    store = Wellkept(f"sqlite:///{folder}/imported.db")
    store.tenant("acme").data.import_(export_file(folder))
    return store


@pytest.mark.parametrize("opened", [open_store, open_backup, open_export])
def test_everything_is_there(opened: Callable[[Path], Wellkept], tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        acme = store.tenant("acme")
        atlas = acme.agent("atlas")

        launch = next(each for each in atlas.list() if "launch" in each.text)
        # What an import may not put into every prompt waits for approval.
        assert sorted(each.text for each in (*atlas.list(), *atlas.review.list())) == [
            "I am careful with money",
            "Lena lives in Oslo",
            "Prefers tabs over spaces",
            "The launch is on Tuesday",
        ]
        assert atlas.history(launch.id)[0].text == "The launch is on Monday"
        assert [each.metadata for each in atlas.list() if each.user == "u-7"] == [{"city": "Oslo"}]
        assert [each.text for each in atlas.recall("tabs or spaces?")][:1] == ["Prefers tabs over spaces"]
        assert "disk full" in atlas.details.read(atlas.details.list()[0].key, limit=100).content
        assert [each.title for each in acme.knowledge.list()] == ["Handbook"]
        assert acme.audit.verify().is_intact


def test_an_api_key_opens_its_tenant(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        issued = store.keys.verify(KEY)

        assert issued.tenant == "acme"
        assert store.tenant("acme").keys.create("read").key.startswith("wellkept_")


def test_the_notes_of_a_workspace_are_read(tmp_path: Path) -> None:
    folder = unpack("notes.tar.xz", tmp_path)
    settings = Settings(url=f"sqlite:///{folder}/memory.db", workspace=folder / "project")

    with Wellkept(settings=settings) as store:
        notes = store.agent("atlas").list()
        assert [(each.id, each.text) for each in notes] == [
            ("m-2", "Deploys on Fridays"),
            ("m-1", "Uses two spaces in YAML"),
        ]


def test_a_backup_verifies() -> None:
    assert Wellkept.verify_backup(WRITTEN / "backup.tar").problems == ()


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Default data folder of a user who has used version 0.2."""
    monkeypatch.setenv("XDG_DATA_HOME", f"{tmp_path}")
    monkeypatch.delenv("WELLKEPT_URL", raising=False)
    old = unpack("store.tar.xz", tmp_path / FORMER_NAME)
    for each in old.glob("memory.db*"):
        each.rename(old / each.name.replace("memory", FORMER_NAME))
    return tmp_path


def test_the_first_start_names_the_command_that_moves_the_old_store(
    data_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Wellkept(settings=Settings()) as store:
        store.agent("atlas", tenant="acme").remember("Written before the move")
    with Wellkept(settings=Settings()):
        pass

    [warning] = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert f"{data_folder / FORMER_NAME}" in warning
    subprocess.run(["sh", "-c", warning.split("run: ")[1]], check=True)
    assert default_url().endswith("/wellkept/wellkept.db")
    with Wellkept(settings=Settings()) as store:
        atlas = store.agent("atlas", tenant="acme")
        assert "Prefers tabs over spaces" in [each.text for each in atlas.list()]
        assert "disk full" in atlas.details.read(atlas.details.list()[0].key, limit=100).content
    assert (data_folder / "wellkept-new" / "wellkept.db").is_file()


def test_settings_under_the_former_name_are_named_once_and_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    variable = f"{FORMER_NAME.upper()}_AGENT"
    (tmp_path / f"{FORMER_NAME}.toml").write_text("agent = 'other'")

    settings = Settings.load(folder=tmp_path, environment={variable: "hush", "WELLKEPT_TENANT": "acme"})

    assert (settings.agent, settings.tenant) == ("default", "acme")
    [warning] = [each.getMessage() for each in caplog.records]
    assert variable in warning
    assert f"{FORMER_NAME}.toml" in warning
    assert "hush" not in warning


def test_a_command_says_it_on_the_other_stream(data_folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wellkept", "memory", "list", "--json"], capture_output=True, text=True, cwd=data_folder
    )

    assert done.returncode == 0
    assert done.stdout.startswith("{")
    assert done.stderr.count("version 0.2") == 1


def test_few_lines_have_the_former_name() -> None:
    found: Any = subprocess.run(
        ["git", "grep", "-niI", FORMER_NAME], cwd=REPOSITORY, capture_output=True, text=True
    ).stdout.splitlines()
    lines = [each for each in found if not each.startswith(MAY_NAME_IT)]

    assert len(lines) <= MOST_LINES, lines


def test_settings_that_are_gone_are_ignored_and_named_in_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "wellkept.toml").write_text('recall_floor = 0.1\nembedder = "static"\nport = 9000\n')
    variables = {"WELLKEPT_CONTEXT_FLOOR": "0.2", f"{FORMER_NAME.upper()}_PORT": "9001"}

    with caplog.at_level(logging.WARNING):
        settings = Settings.load(folder=tmp_path, environment=variables)

    assert (settings.port, settings.embedder) == (9000, Settings().embedder)
    (warning,) = caplog.messages
    for name in ("recall_floor", "embedder", "WELLKEPT_CONTEXT_FLOOR", f"{FORMER_NAME.upper()}_PORT"):
        assert name in warning
    assert "static" not in warning
    assert "0.2" not in warning
