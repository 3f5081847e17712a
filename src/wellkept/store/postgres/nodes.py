"""Workers of a Citus cluster, as its coordinator reaches them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from wellkept.model import ClusterNode
from wellkept.store.postgres.failures import translate_errors
from wellkept.store.postgres.link import Connection

IS_CLUSTER = (
    "SELECT to_regproc('run_command_on_workers') IS NOT NULL AND to_regclass('pg_dist_node') IS NOT NULL "
    "AND to_regclass('pg_dist_placement') IS NOT NULL"
)

EXAMINE = (
    "SELECT pg_database_size(current_database()) || ' ' || (SELECT count(*) FROM pg_index WHERE NOT indisvalid) || ' ' "
    "|| (SELECT coalesce(sum(checksum_failures), 0) FROM pg_stat_database WHERE datname = current_database())"
)
"""Command for each worker: size, invalid indexes, and pages with a wrong checksum."""

ASK_WORKERS = "SELECT nodename, nodeport, success, result FROM run_command_on_workers(%s) ORDER BY 1, 2"
"""A worker that does not answer has `success` false and the reason as its result; the others answer all the same."""

LIST_SHARDS = (
    "SELECT n.nodename, n.nodeport, array_agg(s.shardid ORDER BY s.shardid) FROM pg_dist_shard s "
    "JOIN pg_dist_placement p ON p.shardid = s.shardid JOIN pg_dist_node n ON n.groupid = p.groupid "
    "WHERE s.logicalrelid = to_regclass('agents') GROUP BY 1, 2"
)

CHECK_SECONDS = 10.0
"""Seconds for which the answers of the nodes are kept."""

MAX_NAMED = 8
"""Shards that a sentence names."""

AWAY = "The node {} of the database cluster does not answer ({}). Shards of agents on it: {}."


class ClusterNodes:
    """Nodes of one database; none if it is not distributed."""

    def __init__(self, connect: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._is_cluster: bool | None = None
        self._known: Sequence[ClusterNode] = ()
        self._checked_at = -CHECK_SECONDS

    def check(self) -> Sequence[ClusterNode]:
        """Ask all nodes, unless that was done a moment ago. Raises: StoreError."""
        with self._lock:
            if self._is_cluster is not False and time.monotonic() - self._checked_at >= CHECK_SECONDS:
                with translate_errors(), self._connect() as connection:
                    self._known = self._ask(connection)
                self._checked_at = time.monotonic()
            return self._known

    def problems(self) -> Sequence[str]:
        """Name the nodes that did not answer the last time."""
        return [AWAY.format(node.name, node.problem, _join_first(node.shards)) for node in self._known if node.problem]

    def _ask(self, connection: Connection) -> Sequence[ClusterNode]:
        if self._is_cluster is None:
            self._is_cluster = connection.execute(IS_CLUSTER).fetchone() == (True,)
        if not self._is_cluster:
            return ()
        shards = {(name, port): tuple(numbers) for name, port, numbers in connection.execute(LIST_SHARDS).fetchall()}
        answers = connection.execute(ASK_WORKERS, [EXAMINE]).fetchall()
        return [_node_from(*answer, shards=shards.get(answer[:2], ())) for answer in answers]


def _node_from(host: str, port: int, is_answered: bool, result: str, *, shards: tuple[int, ...]) -> ClusterNode:
    name = f"{host}:{port}"
    if not is_answered:
        return ClusterNode(name=name, problem=" ".join(result.split()) or "no reason given", shards=shards)
    size, invalid, wrong = map(int, result.split())
    damage = [f"On {name}, {invalid} indexes are not valid; REINDEX them there."] if invalid else []
    damage += [f"On {name}, {wrong} pages had a wrong checksum when the server read them."] if wrong else []
    return ClusterNode(name=name, bytes=size, damage=tuple(damage), shards=shards)


def _join_first(shards: Sequence[int]) -> str:
    more = f" and {len(shards) - MAX_NAMED} more" if len(shards) > MAX_NAMED else ""
    return ", ".join(map(str, shards[:MAX_NAMED])) + more if shards else "none"
