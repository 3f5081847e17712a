"""Skills: instructions for agents, loaded from files and shared by all tenants.

Skills are read when the store is opened; an invalid file is an error then. Later, every use compares the stamps of the
files and reads the changed ones again. If an edit makes a file invalid, the last valid version stays in use and the
problem is reported. A skill is never cut and never expires.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from wellkept.errors import Invalid
from wellkept.model import Owner, Skill

if TYPE_CHECKING:
    from wellkept.knowledge.skill_files import SkillFolders

log = logging.getLogger("wellkept")


class Skills:
    """Cache of all skills, refreshed when their files change."""

    def __init__(self, files: SkillFolders) -> None:
        """Read all skills.

        Raises: Invalid when a folder or a file is invalid.
        """
        self._files = files
        self._lock = threading.Lock()
        self._stamps: dict[str, Hashable] = {}
        # Skills by path.
        self._held: dict[str, Skill] = {}
        # Problems of files by path, with "" for the folder, and names used twice.
        self._broken: dict[str, str] = {}
        self._doubled: dict[str, str] = {}
        self._by_name: Sequence[Skill] = ()
        self._is_in_use = False
        for problem in self.problems():
            raise Invalid(problem)
        self._is_in_use = True

    def __call__(self) -> Sequence[Skill]:
        """Return all skills, ordered by name."""
        self._refresh()
        return self._by_name

    def for_agent(self, owner: Owner) -> Sequence[Skill]:
        """Return the skills of an agent, ordered by name: those that name it, and those that name no agents."""
        return [skill for skill in self() if not skill.agents or owner.agent in skill.agents]

    def problems(self) -> Sequence[str]:
        """Return the current problems, each a sentence that names the file and the line."""
        self._refresh()
        with self._lock:
            return [*self._broken.values(), *self._doubled.values()]

    def _refresh(self) -> None:
        with self._lock:
            try:
                stamps = dict(self._files.stamps())
            # Keep the skills if the folder is missing for a moment.
            except Invalid as error:
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
            self._by_name = self._sort_by_name()

    def _read(self, path: str) -> None:
        try:
            self._held[path] = self._files.read(path)
        except Invalid as error:
            self._report(self._broken, path, str(error))
        else:
            self._broken.pop(path, None)

    def _sort_by_name(self) -> Sequence[Skill]:
        """Return the skills ordered by name. Of two with the same name, use the first file's and report the other."""
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
            log.warning("A skill could not be read; its last valid version stays in use. %s", problem)
        where[path] = problem
