"""Rows of changes: what was proposed, applied, rejected and undone, with the memories it touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellkept.errors import Conflict, NotFound
from wellkept.language.names import change_id, change_seq
from wellkept.model import Change, ChangeAction, ChangedMemory, ChangeState, Owner
from wellkept.store.engine import Unit, Units
from wellkept.store.tables.columns import COLUMNS
from wellkept.store.tables.rows import BEHIND_ALL, RecordRows, json_list, json_text, merge_parts, owner_params

NO_SUCH_CHANGE = "There is no such change."
MAX_PROPOSED = 100
"""Changes of one user that wait for a decision; a new one takes the place of the oldest."""


class ChangeRows(Units):
    """Changes of an agent and their states."""

    def add_changes(self, owner: Owner, changes: Sequence[Change]) -> Sequence[Change]:
        """Add changes and return them with their ids; leave out proposals for a memory that another one waits for.

        Locks the agent, so that concurrent runs do not propose the same twice. The proposals of a user beyond
        `MAX_PROPOSED` make room. An agent that does not exist gets none.
        """

        def add(unit: Unit) -> Sequence[Change]:
            if unit.one("hold_agent", **owner_params(owner.whole)) is None:
                return []
            found = unit.one("last_change", **owner_params(owner.whole))
            last: int = found[0] if found else 0
            added: list[Change] = []
            waiting: dict[str | None, list[Change]] = {}
            for change in changes:
                if change.state is ChangeState.PROPOSED:
                    if change.user not in waiting:
                        waiting[change.user] = self._list_waiting(unit, owner.of(change.user))
                    touched = {each.id for known in waiting[change.user] for each in known.memories if each.id}
                    if not touched.isdisjoint(each.id for each in change.memories):
                        continue
                    waiting[change.user].append(change)
                added.append(replace(change, id=change_id(last + len(added) + 1)))
            for user, known in waiting.items():
                for old in known[:-MAX_PROPOSED]:
                    unit.run("delete_change", **owner_params(owner.of(user)), seq=change_seq(old.id) or 0)
            unit.run_many("add_change", map(_change_values, added))
            return added

        return self.write(owner.tenant, add)

    def _list_waiting(self, unit: Unit, owner: Owner) -> list[Change]:
        values = {"state": ChangeState.PROPOSED.value, "before": BEHIND_ALL, "limit": MAX_PROPOSED}
        return [*map(change_from, unit.all("list_changes", **owner_params(owner), **values))][::-1]

    def get_change(self, owner: Owner, id: str) -> Change:
        """Return one change. Raises: NotFound."""
        seq = change_seq(id) or 0
        row = self.read(owner.tenant, lambda unit: unit.one("find_change", **owner_params(owner), seq=seq))
        if row is None:
            raise NotFound(NO_SUCH_CHANGE)
        return change_from(row)

    def list_changes(
        self, owner: Owner, *, state: ChangeState | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[Change]:
        """List changes, newest first, starting after the number `before`; `state` None lists all."""
        values = {"state": "" if state is None else state.value, "before": before or BEHIND_ALL, "limit": limit}

        def read(unit: Unit) -> list[list[Change]]:
            parts = (unit.all("list_changes", **owner_params(part), **values) for part in owner.parts)
            return [[*map(change_from, rows)] for rows in parts]

        return merge_parts(self.read(owner.tenant, read), limit, lambda change: change_seq(change.id) or 0)

    def decide_change(self, change: Change, *, was: ChangeState) -> Change:
        """Store the new state of a change. Raises: Conflict when it is no longer in the state it `was` in."""

        def decide(unit: Unit) -> Change:
            if not unit.run("decide_change", **_change_values(change), was=was.value):
                raise Conflict(f"This change is no longer {was.value}; read it again.")
            return change

        return self.write(change.owner.tenant, decide)

    def delete_old_changes(self, owner: Owner, *, before: datetime, proposed_before: datetime) -> int:
        """Delete changes decided before a time, and those proposed before another one; return their number."""
        values = {"before": before, "proposed_before": proposed_before}
        return self.write(owner.tenant, lambda unit: unit.run("delete_old_changes", **owner_params(owner), **values))


def _parse_memories(memories: str | list[Any]) -> tuple[ChangedMemory, ...]:
    return tuple(
        ChangedMemory(
            action=ChangeAction(each["action"]),
            id=str(each["id"]),
            version=each["version"],
            new_version=each["new_version"],
            before=dict(each["before"]),
            after=dict(each["after"]),
        )
        for each in json_list(memories)
    )


def _render_memories(memories: Sequence[ChangedMemory]) -> str:
    names = ("action", "id", "version", "new_version", "before", "after")
    return json_text([{name: getattr(each, name) for name in names} for each in memories])


_CHANGES = RecordRows(
    Change,
    COLUMNS["change"],
    seq=("id", change_id, lambda id: change_seq(id) or 0),
    memories=("memories", _parse_memories, _render_memories),
)
change_from, _change_values = _CHANGES.parse, _CHANGES.render
