"""A power cut at every single step, and a kill at every step with a power cut later: nothing acknowledged is lost."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conformance.examples import ids
from tests.notes_file.crashes import DyingDisk, HastyDisk, Killed, RecordingDisk, Tree, plant
from tests.notes_file.workers import ANN, KEEP, add, correct, file_in
from wellkept import Settings, Wellkept
from wellkept.errors import NotFound
from wellkept.model import KindName
from wellkept.store.notes import file as notes_file
from wellkept.store.notes.disk import Disk
from wellkept.store.notes.file import NotesFile

Step = Callable[["Story"], None]


@dataclass
class Story:
    """A writer on a recorded disk, what it was told, and a look at every world a power cut might leave."""

    folder: Path
    disk: RecordingDisk
    there: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    doubtful: dict[str, str] = field(default_factory=dict)  # being removed
    batch: set[str] = field(default_factory=set)  # texts being added: all or none
    correction: tuple[str, str] | None = None  # old and new text: exactly one of them must be there
    checked: int = 0
    _seen: set[object] = field(default_factory=set)
    _places: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.notes = NotesFile(self.folder, ANN, disk=self.disk)
        self.disk.watch = self.check

    def restart(self) -> None:
        self.notes = NotesFile(self.folder, ANN, disk=self.disk)

    def add(self, *texts: str, keep: int = KEEP) -> None:
        made_room = sorted(self.there, key=lambda id: int(id[2:]))[: max(0, len(self.there) + len(texts) - keep)]
        self.doubtful = {id: self.there.pop(id) for id in made_room}
        self.batch = set(texts)
        for memory in add(self.notes, *texts, keep=keep):
            self.there[memory.id] = memory.text
        self.gone |= set(self.doubtful)
        self.doubtful, self.batch = {}, set()
        self.check()

    def delete(self, id: str) -> None:
        self.doubtful = {id: self.there.pop(id)}
        self.notes.delete_memory(id)
        self.gone.add(id)
        self.doubtful = {}
        self.check()

    def correct(self, id: str, text: str) -> None:
        self.correction = self.there[id], text
        self.doubtful = {id: self.there.pop(id)}
        for memory in correct(self.notes, id, text):
            self.there[memory.id] = memory.text
        self.gone.add(id)
        self.doubtful, self.correction = {}, None
        self.check()

    def check(self) -> None:
        for tree in self.disk.trees():
            doubts = (tuple(self.doubtful), tuple(self.batch), self.correction)
            key = (tuple(sorted(tree.items())), tuple(self.there), doubts)
            if key not in self._seen:
                self._seen.add(key)
                self._check(tree)

    def _check(self, tree: Tree) -> None:
        self.checked += 1
        place = self.folder.parent / f"after-{next(self._places)}"
        place.mkdir()
        plant(tree, place)
        notes = NotesFile(place, ANN, disk=HastyDisk())
        found = {memory.id: memory.text for memory in notes.all()}
        assert {id: found.get(id) for id in self.there} == self.there, "lost"
        assert not self.gone & set(found), "came back"
        assert self.batch & set(found.values()) in (set(), self.batch), "half a batch"
        assert self.correction is None or len(set(self.correction) & set(found.values())) == 1, "neither or both"
        assert add(notes, "next")[0].id not in {*self.there, *self.gone, *self.doubtful}, "used again"
        assert set(ids(notes.all())) >= set(self.there)
        shutil.rmtree(place)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return Story(folder, RecordingDisk(folder))


STEPS: dict[str, Step] = {
    "first note": lambda story: story.add("a"),
    "another": lambda story: story.add("b"),
    "many": lambda story: story.add("c", "d", "e"),
    "delete the newest": lambda story: story.delete(max(story.there)),
    "delete the oldest": lambda story: story.delete(min(story.there)),
    "make room": lambda story: story.add("f", keep=2),
    "make room for many": lambda story: story.add("g", "h", keep=2),
    "add behind": lambda story: story.add("i"),
    "correct the oldest": lambda story: story.correct(min(story.there), "j"),
}


def test_a_power_cut_at_any_step_loses_nothing(story: Story) -> None:
    for step in STEPS.values():
        step(story)

    assert story.checked > 60


@pytest.mark.parametrize(
    "name", ["first note", "many", "delete the newest", "make room", "make room for many", "correct the oldest"]
)
def test_a_kill_at_any_step_and_a_power_cut_after_the_next_write_lose_nothing(tmp_path: Path, name: str) -> None:
    """The next writer must make good what the killed one left undone, before it promises anything itself."""
    checked = 0
    for kill_at in itertools.count(1):
        folder = tmp_path / str(kill_at) / "workspace"
        folder.mkdir(parents=True)
        story = Story(folder, RecordingDisk(folder))
        story.disk.watch = lambda: None
        if name != "first note":
            story.add("one", "two", "three")
        story.disk.kill_at = story.disk.calls + kill_at
        with suppress(Killed):
            STEPS[name](story)
        if story.disk.calls < story.disk.kill_at:
            break  # the step has fewer calls than that
        story.restart()
        found = {memory.id: memory.text for memory in story.notes.all()}
        assert story.correction is None or len(set(story.correction) & set(found.values())) == 1, "neither or both"
        removed, story.batch, story.correction = set(story.doubtful) - set(found), set(), None
        story.disk.watch = story.check
        story.add("after the kill")
        story.there |= found  # what the next writer found undone or done is so for good once it has answered
        story.gone = removed
        story.check()
        checked += story.checked
    assert kill_at > 4
    assert checked > 20


def test_a_note_that_is_said_to_be_missing_does_not_come_back(story: Story) -> None:
    """Even if whoever removed it was killed before that was certain."""
    story.disk.watch = lambda: None
    story.add("one", "two")
    story.disk.watch = lambda: None if file_in(story.folder).read_bytes().count(b"\n") > 1 else kill()

    def kill() -> None:
        raise Killed

    with suppress(Killed):
        story.delete("m-2")
    assert len(story.disk.trees()) > 1  # the rename is not certain yet
    story.disk.watch = lambda: None
    story.restart()

    with pytest.raises(NotFound):
        story.notes.delete_memory("m-2")

    story.gone, story.doubtful = {"m-2"}, {}
    story.check()


@pytest.mark.parametrize("kind", ["note", "core"])
def test_correction_leaves_the_old_or_the_new_memory_after_a_kill_at_any_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: KindName
) -> None:
    """Through the library: a note is replaced in the file, a core memory is stored in the database."""
    for kill_at in itertools.count(1):
        workspace = tmp_path / str(kill_at)
        workspace.mkdir()
        disk = DyingDisk()
        monkeypatch.setattr(notes_file, "Disk", lambda disk=disk: disk)
        with Wellkept(":memory:", settings=Settings(workspace=workspace, embedder="off")) as wellkept:
            atlas = wellkept.agent("atlas")
            atlas.remember("Likes tea")
            old = atlas.remember("Deploys to Virginia")
            disk.kill_at = disk.calls + kill_at
            with suppress(Killed):
                atlas.remember("Deploys to Frankfurt", kind=kind, supersedes=old.id)
            is_done = disk.calls < disk.kill_at
            disk.kill_at = None
            found = {memory.text for memory in atlas.list()}
        lines = {json.loads(line)["text"] for line in file_in(workspace).read_text().splitlines()}
        assert {"Likes tea"} < found
        assert lines <= found
        if is_done:
            break
    assert found == {"Likes tea", "Deploys to Frankfurt"}
    assert kill_at > 4


class Forgetful(RecordingDisk):
    """Leaves one kind of sync out."""

    def __init__(self, root: Path, forgotten: str) -> None:
        super().__init__(root)
        self._forgotten = forgotten

    def sync(self, fd: int) -> None:
        if self._forgotten != "sync":
            super().sync(fd)

    def sync_content(self, fd: int) -> None:
        if self._forgotten != "sync_content":
            super().sync(fd)

    def sync_folder(self, path: Path) -> None:
        if self._forgotten != "sync_folder":
            super().sync_folder(path)


@pytest.mark.parametrize("forgotten", ["sync", "sync_content", "sync_folder"])
def test_without_any_one_sync_something_would_be_lost(tmp_path: Path, forgotten: str) -> None:
    """Otherwise the tests above prove nothing, or the sync is not needed."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    story = Story(folder, Forgetful(folder, forgotten))

    def tell() -> None:
        for step in STEPS.values():
            step(story)

    with pytest.raises(AssertionError, match=r"lost|came back|used again"):
        tell()


def test_what_a_write_costs(story: Story) -> None:
    """Each number is how long a caller waits for the disk."""
    story.disk.watch = lambda: None
    costs: dict[str, int] = {}
    for name, step in STEPS.items():
        before = story.disk.syncs
        step(story)
        costs[name] = story.disk.syncs - before

    assert costs == {
        "first note": 6,  # three folders, the number, the file, its name
        "another": 2,  # the number, the file
        "many": 3,  # the number, the new file, its name
        "delete the newest": 2,  # the new file, its name
        "delete the oldest": 2,
        "make room": 3,
        "make room for many": 3,
        "add behind": 2,
        "correct the oldest": 3,  # the number, the new file, its name
    }


def test_the_disk_is_the_only_way_to_change_anything() -> None:
    """What is not recorded could not be checked."""
    recorded = {name for name in vars(RecordingDisk) if name in vars(Disk)}

    assert {name for name in vars(Disk) if name[0] != "_"} - recorded == {"close"}
