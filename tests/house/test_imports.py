"""Which way imports point, and who alone may touch the database, the environment and the clock."""

from __future__ import annotations

import ast
import re
import sys

import pytest

from tests.house.source import MODULES, Module, dotted

# What each part may import of the others. A part that is not here is new: say where it stands.
INNER = {"model", "errors", "lazy", "deadline", "caller"}
PURE = INNER | {"policy", "settings"}
PORTS = PURE | {"ports"}
WIRING = PORTS | {"store", "providers", "services"}
FACES = WIRING | {"api", "capturing", "tools", "recollect", "evaluation"}
MAY_IMPORT: dict[str, set[str]] = {
    "model": set(),
    "errors": set(),
    "lazy": set(),
    "deadline": {"errors"},
    "caller": {"model", "errors"},
    "capturing": INNER,
    "policy": INNER,
    "settings": INNER,
    "ports": PURE,
    "store": PORTS,
    "providers": PORTS,
    "services": PORTS,
    "tools": WIRING,  # and the type of the memory it is handed
    "api": WIRING | {"capturing", "tools"},
    "evaluation": PORTS | {"api"},
    "runner": FACES,
    "server": FACES | {"runner"},
    "cli": FACES | {"runner", "server"},
    "recollect": FACES,
    "__main__": {"cli"},
}

ONLY_TYPES = {("tools", "api")}

DRIVERS = {"apsw", "psycopg", "psycopg_pool", "sqlite3"}
SHOWS_DRIVERS = {"recollect.cli.doctor": "`doctor` shows which versions are installed"}
POLICY_NEEDS = {*sys.stdlib_module_names, "numpy", "Stemmer", "recollect"}
NOT_PURE = {"socket", "urllib", "http", "subprocess", "threading", "asyncio", "tempfile", "shutil", "time", "random"}

SQL = re.compile(r"^\s*(SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+TABLE)\b", re.DOTALL)
WALL_CLOCK = re.compile(r"(^|\.)(datetime\.(now|utcnow|today)|date\.today|time\.(time|time_ns|localtime|gmtime))$")
STOPWATCH = re.compile(r"^(time\.)?(perf_counter|monotonic|sleep|perf_counter_ns|monotonic_ns)$")

every_module = pytest.mark.parametrize("module", MODULES, ids=str)


@every_module
def test_imports_point_inwards(module: Module) -> None:
    allowed = MAY_IMPORT[module.part] | {module.part}
    at_run_time = set(module.imports(at_run_time=True))
    for source, name in module.imports():
        if source.split(".")[0] == "recollect":
            part = _part(source, name)
            is_type = (source, name) not in at_run_time and (module.part, part) in ONLY_TYPES
            assert part in allowed or is_type, f"{module} imports {source} {name}"


def _part(source: str, name: str) -> str:
    """The part of the house an import names; the package itself and its version are "recollect"."""
    if source == "recollect":
        return name if name in MAY_IMPORT else "recollect"
    return source.split(".")[1]


@every_module
def test_there_are_no_relative_imports(module: Module) -> None:
    assert not [node.lineno for node in module.nodes if isinstance(node, ast.ImportFrom) and node.level]


@every_module
def test_imports_sit_at_the_top(module: Module) -> None:
    functions = [node for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = [
        node.lineno for each in functions for node in ast.walk(each) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert not inside


@every_module
def test_only_the_store_knows_sql(module: Module) -> None:
    if module.part == "store":
        return
    if module.name not in SHOWS_DRIVERS:
        assert not DRIVERS & {source.split(".")[0] for source, _ in module.imports()}
    texts = [node.value for node in module.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert not [text for text in texts if SQL.match(text)]


@every_module
def test_only_settings_reads_the_environment(module: Module) -> None:
    if module.part == "settings":
        return
    assert not [name for source, name in module.imports() if source == "os" and name in ("environ", "getenv")]
    mentions = [dotted(node) for node in module.nodes if isinstance(node, ast.Attribute)]
    assert not [name for name in mentions if name in ("os.environ", "os.getenv", "os.environb")]


@every_module
def test_only_the_api_reads_the_clock(module: Module) -> None:
    if module.part == "api":
        return
    assert not [(name, line) for name, line in module.calls() if WALL_CLOCK.search(name)]


PAUSES = {
    "recollect.deadline": "says when a request has taken too long",
    "recollect.evaluation": "says how long a recall took",
    "recollect.store.sqlite.engine": "waits for another process that is making the same file",
    "recollect.providers.endpoint": "waits before it tries again, and for no answer longer than allowed",
    "recollect.cli.command": "says how long a command took",
    "recollect.providers.readers.pdf": "gives up on a document that takes too long",
    "recollect.server.rest.health": "says how long the store has been silent",
    "recollect.services.background.embedding": "leaves an embedder that failed alone for a while",
    "recollect.services.background.writer": "says how long something has waited to be written",
    "recollect.services.background.refusals": "leaves a text that was refused alone for a while",
    "recollect.store.postgres.link": "asks a server that has not answered for a second whether it is still there",
}


@every_module
def test_nobody_measures_or_waits_without_a_reason(module: Module) -> None:
    if module.name not in PAUSES:
        assert not [(name, line) for name, line in module.calls() if STOPWATCH.match(name)]


@every_module
def test_policy_is_pure(module: Module) -> None:
    if module.part != "policy":
        return
    needed = {source.split(".")[0] for source, _ in module.imports()}
    assert needed <= POLICY_NEEDS
    assert not needed & NOT_PURE
    assert not [name for name, _ in module.calls() if name in ("open", "print", "input")]


def test_the_model_and_the_errors_need_nothing_but_python() -> None:
    for module in MODULES:
        if module.part in INNER:
            assert {source.split(".")[0] for source, _ in module.imports()} <= {*sys.stdlib_module_names, "recollect"}


def test_the_rules_find_what_they_look_for() -> None:
    """Otherwise a slip in this file would let everything pass."""
    settings, sqlite, schema, api = (
        next(module for module in MODULES if module.name == f"recollect.{name}")
        for name in ("settings.choices", "store.sqlite.engine", "store.sqlite.schema", "api.recollect")
    )
    assert [
        name for node in settings.nodes if isinstance(node, ast.Attribute) and (name := dotted(node)) == "os.environ"
    ]
    assert ("apsw", "") in sqlite.imports()
    assert [node for node in schema.nodes if isinstance(node, ast.Constant) and SQL.match(str(node.value))]
    assert [name for name, _ in sqlite.calls() if STOPWATCH.match(name)]
    assert [name for name, _ in api.calls() if WALL_CLOCK.search(name)]
