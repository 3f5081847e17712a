"""Checkup of a whole store: database, index, texts, notes file and audit log.

Nothing is changed. Each check reports the result and advice; of many damaged items it names the first few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from wellkept.errors import NotFound, StoreDamaged, StoreError
from wellkept.extension import Clock, Progress
from wellkept.model import AuditEvent, CheckResult, Owner, StoreState
from wellkept.upkeep.maintain import SWEEP_GRACE

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_NAMED = 5
"""Maximum number of damaged items that a check names."""

PAGE = 500
REPAIR_BATCH = 100
"""Index entries repaired in one transaction, which blocks other writers."""

DAMAGED = "Restore a backup; or copy it aside and export what can still be read."
BROKEN_LOG = (
    "If it asks for audit_key, set it; otherwise the log was changed outside wellkept: compare it with a backup."
)
REPAIR_NODES = "Start the nodes that do not answer; their tenants are on them and nowhere else (docs/citus.md)."
GONE = "Restore a backup: the data in these tables exists nowhere else."
ORPHANS = "{:,} more belong to no detail; wellkept admin maintain removes them."
FASTER = "To search large knowledge faster, run in the database as the owner of the tables: {}"
NOT_DURABLE = "An answered write may be lost in a power cut: {}."
KEEP_DURABLE = {
    "sqlite": "keep the file on a disk of this machine",
    "postgres": "leave fsync and synchronous_commit of the server on",
}
"""Remedy for each engine."""


T = TypeVar("T")


class RepairIndex:
    """Service that repairs the search index of every tenant."""

    def __init__(self, store: SqlStore, now: Clock) -> None:
        self._store = store
        self._now = now

    def __call__(self) -> int:
        """Repair the index; return the number of entries that were missing or out of date."""
        return sum(self._mend(tenant) for tenant in self._store.list_tenants())

    def _mend(self, tenant: str) -> int:
        gaps = self._store.count_index_gaps(tenant)
        found = gaps.missing + gaps.surplus
        while found and self._record(tenant, partial(self._store.mend_index, tenant)):
            pass
        wrong = self._store.find_wrong_words(tenant)
        while entries := list(islice(wrong, REPAIR_BATCH)):
            found += self._record(tenant, partial(self._store.mend_words, tenant, entries))
        return found

    def _record(self, tenant: str, mend: Callable[[], int]) -> int:
        """Repair a batch together with the event about it; return how many entries it had."""

        def repair() -> int:
            if mended := mend():
                message = f"{mended:,} {'entry' if mended == 1 else 'entries'} of the search index were put right."
                meta = {"mended": mended}
                self._store.add_event(
                    AuditEvent(tenant=tenant, at=self._now(), action="maintenance.mend", message=message, meta=meta)
                )
            return mended

        return self._store.transaction(tenant, repair)


class Checkup:
    """Service that checks the store of every tenant."""

    def __init__(self, store: SqlStore, now: Clock, *, agent: Owner) -> None:
        """Set up; `agent` is the default agent, used to check a workspace's notes file before any agent exists."""
        self._store = store
        self._now = now
        self._agent = agent

    def __call__(self, *, is_quick: bool = False, progress: Progress | None = None) -> Sequence[CheckResult]:
        """Run the checks. `is_quick` skips those that read every page of the database, every text or every event."""
        state = self._store.describe_store()
        checks = [
            _check_schema(state),
            _check_durability(state),
            _run_check("database", lambda: self._check_database(is_quick)),
        ]
        nodes = _run_check("nodes", self._check_nodes)
        checks += [nodes] if nodes is not None else []
        # Every other check would only report the missing tables again.
        if state.lost:
            return checks
        tenants = self._store.list_tenants()
        checks.append(_run_check("index", lambda: self._check_index(tenants, is_quick=is_quick)))
        checks.append(_run_check("details", lambda: self._check_details(tenants, is_quick=is_quick, progress=progress)))
        notes = _run_check("notes", lambda: self._check_notes(tenants))
        checks += [notes] if notes is not None else []
        return checks if is_quick else [*checks, _run_check("audit log", lambda: self._check_audit(tenants))]

    def _check_database(self, is_quick: bool) -> CheckResult:
        found = self._store.find_damage(is_quick=is_quick)
        if found:
            return CheckResult(name="database", is_ok=False, says=" ".join(found), advice=DAMAGED)
        says = "its structure is whole" if is_quick else "every page and reference is whole"
        return CheckResult(name="database", is_ok=True, says=says)

    def _check_nodes(self) -> CheckResult | None:
        """Check the other nodes of a cluster; return None if the database is on one server."""
        nodes = self._store.check_nodes()
        if not nodes:
            return None
        found = [f"{node.name}: {node.problem}" for node in nodes if node.problem]
        found += [damage for node in nodes for damage in node.damage]
        says = _join_first(found) if found else f"{len(nodes)} answer, {sum(node.bytes for node in nodes):,} bytes"
        return CheckResult(name="nodes", is_ok=not found, says=says, advice=REPAIR_NODES if found else "")

    def _check_index(self, tenants: Sequence[str], *, is_quick: bool) -> CheckResult:
        gaps = [self._store.count_index_gaps(tenant) for tenant in tenants]
        missing, surplus = sum(each.missing for each in gaps), sum(each.surplus for each in gaps)
        wrong, named = (0, "") if is_quick else self._count_wrong_words(tenants)
        if not missing and not surplus and not wrong:
            says = "has an entry for every text" if is_quick else "agrees with what is stored"
            return CheckResult(name="index", is_ok=True, says=says)
        found = [f"texts missing from it: {missing:,}; entries that are out of date: {surplus:,}"]
        found += [f"entries with other words than their texts: {wrong:,} ({named})"] if wrong else []
        says = "; ".join(found)
        return CheckResult(
            name="index", is_ok=False, says=says, advice="To have it mended, run: wellkept admin reembed"
        )

    def _count_wrong_words(self, tenants: Sequence[str]) -> tuple[int, str]:
        """Count the wrong entries and name the first. There may be very many, so they are not collected in a list."""
        wrong = (each.name for tenant in tenants for each in self._store.find_wrong_words(tenant))
        named = list(islice(wrong, MAX_NAMED))
        return len(named) + sum(1 for _ in wrong), "; ".join(named)

    def _check_details(self, tenants: Sequence[str], *, is_quick: bool, progress: Progress | None) -> CheckResult:
        count, damaged = 0, list[str]()
        agents = self._list_agents(tenants)
        for done, owner in enumerate(agents, start=1):
            for key in self._iter_keys(owner):
                count += 1
                damaged += [] if self._is_whole(owner, key, is_quick=is_quick) else [f"{owner.agent}/{key}"]
            if progress is not None:
                progress(done, len(agents))
        if damaged:
            says = f"{len(damaged):,} of {count:,} are missing or damaged: {_join_first(damaged)}"
            advice = "Restore them from a backup, or delete these details and store their texts again."
            return CheckResult(name="details", is_ok=False, says=says, advice=advice)
        oldest = self._now() - SWEEP_GRACE
        orphans = sum(self._store.count_orphans(tenant, stored_before=oldest) for tenant in tenants)
        says = f"{count:,} {'is' if count == 1 else 'are'} whole" if count else "none yet"
        return CheckResult(name="details", is_ok=True, says=says, advice=ORPHANS.format(orphans) if orphans else "")

    def _list_agents(self, tenants: Sequence[str]) -> Sequence[Owner]:
        return [owner for tenant in tenants for owner in self._store.iter_owners(tenant)]

    def _iter_keys(self, owner: Owner) -> Iterator[str]:
        last = None
        while page := self._store.list_details(owner, is_active=None, before=last, limit=PAGE):
            yield from (detail.key for detail in page)
            last = page[-1].created_at, page[-1].key

    def _is_whole(self, owner: Owner, key: str, *, is_quick: bool) -> bool:
        try:
            content = self._store.open_content(owner, key)
            for position in range(0 if is_quick else len(content.newlines)):
                content.chunk(position)
        except NotFound:
            # It was deleted after it was listed.
            return True
        except StoreError:
            return False
        return True

    def _check_notes(self, tenants: Sequence[str]) -> CheckResult | None:
        """Check the notes files; return None if there are none."""
        agents = dict.fromkeys([*self._list_agents(tenants), self._agent])
        files = [self._store.find_damaged_notes(owner) for owner in agents]
        lines = list(dict.fromkeys(line for file in files if file is not None for line in file))
        if lines:
            says = f"lines of the file that are none: {_join_first(lines)}"
            advice = "Mend or remove them; all others work as ever."
            return CheckResult(name="notes", is_ok=False, says=says, advice=advice)
        is_kept = any(file is not None for file in files)
        return CheckResult(name="notes", is_ok=True, says="every line of the file is one") if is_kept else None

    def _check_audit(self, tenants: Sequence[str]) -> CheckResult:
        reports = {tenant: self._store.verify_events(tenant) for tenant in tenants}
        broken = [f"{tenant}: {report.problem}" for tenant, report in reports.items() if not report.is_intact]
        events = sum(report.events for report in reports.values())
        heads = [f"{tenant} {each.head.id} {each.head.hash}" for tenant, each in reports.items() if each.head.id]
        suffix = f"; heads: {_join_first(heads)}" if heads else ""
        says = (
            _join_first(broken) if broken else f"{events:,} {'event is' if events == 1 else 'events are'} whole{suffix}"
        )
        advice = BROKEN_LOG if broken else ""
        return CheckResult(name="audit log", is_ok=not broken, says=says, advice=advice)


def _check_schema(state: StoreState) -> CheckResult:
    missing = [*state.lost, *state.unmade]
    if missing:
        makes_them = f"Nothing that was stored is missing. Run in the database: {' '.join(state.unmade.values())}"
        advice = GONE if state.lost else makes_them
        return CheckResult(name="schema", is_ok=False, says=f"missing: {_join_first(missing)}", advice=advice)
    says, advice = f"number {state.schema}, the one this version needs", FASTER.format(" ".join(state.faster))
    return CheckResult(name="schema", is_ok=True, says=says, advice=advice if state.faster else "")


def _check_durability(state: StoreState) -> CheckResult:
    advice = "" if state.is_durable else NOT_DURABLE.format(KEEP_DURABLE[state.engine])
    return CheckResult(name="durability", is_ok=state.is_durable, says=state.durability, advice=advice)


def _run_check(name: str, look: Callable[[], T]) -> T | CheckResult:
    """Run a check; return a failed one if the database cannot be read."""
    try:
        return look()
    except StoreError as error:
        # Other failures say themselves what to do.
        advice = DAMAGED if isinstance(error, StoreDamaged) else ""
        return CheckResult(name=name, is_ok=False, says=str(error), advice=advice)


def _join_first(found: Sequence[str]) -> str:
    """Join the first items and count the others."""
    more = f" and {len(found) - MAX_NAMED:,} more" if len(found) > MAX_NAMED else ""
    return "; ".join(found[:MAX_NAMED]) + more
