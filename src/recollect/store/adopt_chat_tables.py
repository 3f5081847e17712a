"""Conversations from before: tables of the same names that lack what ours have.

Ours without the summary's columns simply get them. Another program's are set aside under a new name, where they stay
as they were, and their users' and assistants' messages are copied into ours, for the default agent of the default
tenant. Both happen inside the transaction of the step they belong to, so two servers that start at once do it once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from recollect.errors import SchemaMismatch

SESSIONS, MESSAGES = "chat_sessions", "chat_messages"
ASIDE = "_before_recollect"

COLUMN_TYPES = {
    "sqlite": {"summary": "TEXT NOT NULL DEFAULT ''", "summarized_count": "INTEGER NOT NULL DEFAULT 0"},
    "postgres": {"summary": "TEXT NOT NULL DEFAULT ''", "summarized_count": "BIGINT NOT NULL DEFAULT 0"},
}
LONG_AGO = {"sqlite": "'1970-01-01T00:00:00.000000Z'", "postgres": "'1970-01-01T00:00:00Z'::timestamptz"}
TIME = {"sqlite": "strftime('%Y-%m-%dT%H:%M:%f', {0}) || '000Z'", "postgres": "{0}::timestamptz"}
ROW = {"sqlite": "m.rowid", "postgres": "m.ctid"}
NOT_OURS_TO_READ = (
    "The database has a table chat_sessions of another program, with tenants of its own or without what a conversation "
    "needs. Rename it, or give recollect a database of its own."
)


def is_lacking(columns: Collection[str]) -> bool:
    """Whether a table of sessions that is there has no place for a summary."""
    return bool(columns) and not {*columns} >= {"summary", "summarized_count"}


def around(
    engine: str, applied: Mapping[int, str], sessions: Collection[str], messages: Collection[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """What to run before and after the next step of the schema, given the columns of the tables that are there.

    Raises: SchemaMismatch when they are another program's and cannot be read.
    """
    if not sessions:
        return (), ()
    if applied:
        return [
            f"ALTER TABLE {SESSIONS} ADD COLUMN {name} {kind}"
            for name, kind in COLUMN_TYPES[engine].items()
            if name not in sessions
        ], ()
    if "tenant_id" in sessions or "id" not in sessions or not {*messages} >= {"session_id", "role", "content"}:
        raise SchemaMismatch(NOT_OURS_TO_READ)
    aside = [f"ALTER TABLE {table} RENAME TO {table}{ASIDE}" for table in (MESSAGES, SESSIONS)]
    return aside, _copied(engine, {*sessions}, {*messages})


def _copied(engine: str, sessions: Collection[str], messages: Collection[str]) -> Sequence[str]:
    begun, used = _time(engine, "s.created_at", sessions), _time(engine, "s.updated_at", sessions)
    said, long_ago = _time(engine, "m.created_at", messages), LONG_AGO[engine]
    order = "m.position" if "position" in messages else "m.created_at" if "created_at" in messages else ROW[engine]
    own = f"FROM {MESSAGES} m WHERE m.tenant_id = 'default' AND m.session_id = {SESSIONS}.id"
    summary = ("''", "0") if is_lacking(sessions) else ("coalesce(s.summary, '')", "coalesce(s.summarized_count, 0)")
    statements = [] if engine == "sqlite" else ["SET LOCAL recollect.tenant = 'default'"]
    return [
        *statements,
        f"INSERT INTO tenants (tenant_id, created_at) VALUES ('default', {long_ago})",
        "INSERT INTO agents (tenant_id, id, name, created_at, updated_at) "
        f"VALUES ('default', 'default', 'default', {long_ago}, {long_ago})",
        f"INSERT INTO {SESSIONS} (tenant_id, id, agent_id, summary, summarized_count, created_at, updated_at) "
        f"SELECT 'default', CAST(s.id AS TEXT), 'default', {summary[0]}, {summary[1]}, coalesce({begun}, {long_ago}), "
        f"coalesce({used}, {begun}, {long_ago}) FROM {SESSIONS}{ASIDE} s",
        f"INSERT INTO {MESSAGES} (tenant_id, session_id, position, role, content, created_at) "
        "SELECT 'default', CAST(m.session_id AS TEXT), "
        f"row_number() OVER (PARTITION BY m.session_id ORDER BY {order}, {ROW[engine]}), m.role, m.content, "
        f"coalesce({said}, {long_ago}) FROM {MESSAGES}{ASIDE} m "
        "WHERE m.role IN ('user', 'assistant') AND m.content IS NOT NULL "
        f"AND EXISTS (SELECT 1 FROM {SESSIONS}{ASIDE} s WHERE s.id = m.session_id)",
        f"UPDATE {SESSIONS} SET message_count = (SELECT count(*) {own}) WHERE tenant_id = 'default'",
        # A summary that claims to cover more than there is was counted another way; it is made anew.
        f"UPDATE {SESSIONS} SET summary = '', summarized_count = 0 "
        "WHERE tenant_id = 'default' AND (summarized_count > message_count OR summarized_count < 0)",
    ]


def _time(engine: str, column: str, columns: Collection[str]) -> str:
    return TIME[engine].format(column) if column.partition(".")[2] in columns else "NULL"
