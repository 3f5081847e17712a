"""Skills: what agents are taught by files, held in memory, the same for every tenant.

They are read when the store is opened, and a file that is wrong then is an error. Later every use compares the files'
stamps with what is held and reads again what has changed. An edit that breaks a file leaves the last good version in
use and is reported; a skill is never cut and never expires.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable, Sequence

from recollect.errors import Invalid
from recollect.model import Owner, Skill
from recollect.ports import SkillFiles

log = logging.getLogger("recollect")


class Skills:
    """Every skill there is, as fresh as the files."""

    def __init__(self, files: SkillFiles) -> None:
        """Raises: Invalid when a folder or a file is not right."""
        self._files = files
        self._lock = threading.Lock()
        self._stamps: dict[str, Hashable] = {}
        self._held: dict[str, Skill] = {}  # by path
        self._broken: dict[str, str] = {}  # what is wrong with a file, by its path; "" for a folder's
        self._doubled: dict[str, str] = {}
        self._by_name: Sequence[Skill] = ()
        self._is_in_use = False
        for problem in self.problems():
            raise Invalid(problem)
        self._is_in_use = True

    def __call__(self) -> Sequence[Skill]:
        """All of them, by name."""
        self._refresh()
        return self._by_name

    def for_agent(self, owner: Owner) -> Sequence[Skill]:
        """Those an agent gets, by name: what names no agents, and what names this one."""
        return [skill for skill in self() if not skill.agents or owner.agent in skill.agents]

    def problems(self) -> Sequence[str]:
        """What is wrong with the files at the moment, each as a sentence that names the file and the line."""
        self._refresh()
        with self._lock:
            return [*self._broken.values(), *self._doubled.values()]

    def _refresh(self) -> None:
        with self._lock:
            try:
                stamps = dict(self._files.stamps())
            except Invalid as error:  # a folder that is gone for a moment takes no skill away
                self._report(self._broken, "", str(error))
                return
            self._broken.pop("", None)
            if stamps == self._stamps:
                return
            for path in self._stamps.keys() - stamps.keys():
                self._held.pop(path, None)
                self._broken.pop(path, None)
            for path in (path for path, stamp in stamps.items() if self._stamps.get(path) != stamp):
                self._read(path)
            self._stamps = stamps
            self._by_name = self._named()

    def _read(self, path: str) -> None:
        try:
            self._held[path] = self._files.read(path)
        except Invalid as error:
            self._report(self._broken, path, str(error))
        else:
            self._broken.pop(path, None)

    def _named(self) -> Sequence[Skill]:
        """By name. Of two that share one, the first file's is used and the other is reported."""
        named: dict[str, Skill] = {}
        doubled = self._doubled
        self._doubled = {}
        for skill in (self._held[path] for path in self._stamps if path in self._held):
            first = named.setdefault(skill.name, skill)
            if first is not skill:
                problem = f"{skill.path}: the name {skill.name!r} is taken by {first.path}; rename one of them."
                self._report(self._doubled, skill.path, problem, is_known=skill.path in doubled)
        return [named[name] for name in sorted(named)]

    def _report(self, where: dict[str, str], path: str, problem: str, *, is_known: bool = False) -> None:
        if self._is_in_use and where.get(path) != problem and not is_known:
            log.warning("A skill was not read; what was read before stays in use. %s", problem)
        where[path] = problem
