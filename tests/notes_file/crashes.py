"""A disk that remembers what would be left of it after a power cut at any moment.

It does everything for real, and beside that keeps a model of what is certain: a file holds what it held at its last
sync, a folder the names it had at its own. Whatever came later may be there or not: of the writes to a file any number
from the first on, the last of them whole, torn or as zeros; of the changes to a folder any selection. Only the few
bytes that are overwritten in place are never torn: they lie in one sector.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from wellkept.store.notes.disk import Disk

Tree = dict[str, bytes]
"""Files by path, as a crash left them."""

Names = dict[str, object]


@dataclass(eq=False)
class File:
    """What is certain of one file, and each content it had since."""

    certain: bytes = b""
    contents: list[bytes] = field(default_factory=list)

    @property
    def current(self) -> bytes:
        return self.contents[-1] if self.contents else self.certain

    def possible(self) -> set[bytes]:
        found = {self.certain}
        before = self.certain
        for content in self.contents:
            found.add(content)
            if content.startswith(before):
                new = len(content) - len(before)
                found |= {content[: len(before) + new // 2], before + b"\0" * new}
            before = content
        return found


@dataclass(eq=False)
class Folder:
    """The names that are certain, and the changes since."""

    certain: Names = field(default_factory=dict)
    changes: list[Callable[[Names], object]] = field(default_factory=list)

    def change(self, change: Callable[[Names], object]) -> None:
        self.changes.append(change)

    @property
    def current(self) -> Names:
        return self._with(self.changes)

    def possible(self) -> Iterator[Names]:
        for chosen in product((False, True), repeat=len(self.changes)):
            yield self._with([change for change, is_done in zip(self.changes, chosen, strict=True) if is_done])

    def _with(self, changes: list[Callable[[Names], object]]) -> Names:
        names = dict(self.certain)
        for change in changes:
            change(names)
        return names


class Killed(BaseException):
    """The process ends here: no `except` of ours may notice."""


class RecordingDisk(Disk):
    """Calls `watch` after every call, and kills the process before call number `kill_at`."""

    def __init__(self, root: Path) -> None:
        self.root = Folder()
        self._path = root
        self._open: dict[int, File] = {}
        self.watch: Callable[[], None] = lambda: None
        self.kill_at: int | None = None
        self.calls = 0
        self.syncs = 0

    def trees(self) -> list[Tree]:
        """Everything a power cut might leave now, without repeats."""
        return list({tuple(sorted(tree.items())): tree for tree in _trees(self.root, "")}.values())

    def _begin(self) -> None:
        self.calls += 1
        if self.calls == self.kill_at:
            raise Killed

    def _folder(self, path: Path) -> Folder:
        folder = self.root
        for name in path.relative_to(self._path).parts:
            inner = folder.current[name]
            assert isinstance(inner, Folder)
            folder = inner
        return folder

    def open(self, path: Path, flags: int) -> int:
        if flags & os.O_CREAT:
            self._begin()
        fd = super().open(path, flags)
        folder = self._folder(path.parent)
        file = folder.current.get(path.name)
        if file is None:
            made = file = File()
            folder.change(lambda names: names.update({path.name: made}))
            self.watch()
        assert isinstance(file, File)
        self._open[fd] = file
        return fd

    def write(self, fd: int, content: bytes) -> int:
        self._begin()
        written = super().write(fd, content)
        self._open[fd].contents.append(self._open[fd].current + content[:written])
        self.watch()
        return written

    def overwrite(self, fd: int, content: bytes) -> int:
        self._begin()
        written = super().overwrite(fd, content)
        self._open[fd].contents.append(content[:written] + self._open[fd].current[written:])
        self.watch()
        return written

    def truncate(self, fd: int, size: int) -> None:
        self._begin()
        super().truncate(fd, size)
        self._open[fd].contents.append(self._open[fd].current[:size])
        self.watch()

    def sync(self, fd: int) -> None:
        self._begin()
        self.syncs += 1
        file = self._open[fd]
        file.certain, file.contents = file.current, []
        self.watch()

    sync_content = sync

    def sync_folder(self, path: Path) -> None:
        self._begin()
        self.syncs += 1
        folder = self._folder(path)
        folder.certain, folder.changes = folder.current, []
        self.watch()

    def make_folder(self, path: Path) -> None:
        self._begin()
        super().make_folder(path)
        made = Folder()
        self._folder(path.parent).change(lambda names: names.update({path.name: made}))
        self.watch()

    def rename(self, old: Path, new: Path) -> None:
        self._begin()
        super().rename(old, new)
        folder = self._folder(old.parent)
        file = folder.current[old.name]

        def move(names: Names) -> None:
            names.pop(old.name, None)
            names[new.name] = file

        folder.change(move)
        self.watch()

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._begin()
        self._folder(path.parent).change(lambda names: names.pop(path.name, None))
        self.watch()


def _trees(folder: Folder, prefix: str) -> Iterator[Tree]:
    for names in folder.possible():
        branches = [list(_contents(inner, f"{prefix}{name}")) for name, inner in names.items()]
        for chosen in product(*branches):
            yield {path: content for branch in chosen for path, content in branch.items()}


def _contents(inner: object, path: str) -> Iterator[Tree]:
    if isinstance(inner, Folder):
        yield from _trees(inner, path + "/")
    elif isinstance(inner, File):
        for content in inner.possible():
            yield {path: content}


def plant(tree: Tree, root: Path) -> None:
    """Make a folder of what a crash left."""
    for path, content in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


class HastyDisk(Disk):
    """Makes nothing last: quick for looking at what a crash left, and a mistake that tests must notice."""

    def sync(self, fd: int) -> None: ...

    def sync_content(self, fd: int) -> None: ...

    def sync_folder(self, path: Path) -> None: ...


class DyingDisk(HastyDisk):
    """Kills the process before call number `kill_at` that changes a file or a name."""

    def __init__(self) -> None:
        self.kill_at: int | None = None
        self.calls = 0

    def _begin(self) -> None:
        self.calls += 1
        if self.kill_at is not None and self.calls >= self.kill_at:
            raise Killed

    def open(self, path: Path, flags: int) -> int:
        if flags & os.O_CREAT:
            self._begin()
        return super().open(path, flags)

    def write(self, fd: int, content: bytes) -> int:
        self._begin()
        return super().write(fd, content)

    def overwrite(self, fd: int, content: bytes) -> int:
        self._begin()
        return super().overwrite(fd, content)

    def truncate(self, fd: int, size: int) -> None:
        self._begin()
        super().truncate(fd, size)

    def rename(self, old: Path, new: Path) -> None:
        self._begin()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self._begin()
        super().remove(path)
