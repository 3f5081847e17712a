"""Which way imports point, and who alone may touch the database, the environment and the clock."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from tests.house.source import MODULES, Module, dotted, reject

# A capability lives in one package: its rules (`rules*.py`, pure functions of their arguments) beside what uses them.
CAPABILITIES = {
    "access",
    "details",
    "facts",
    "history",
    "importers",
    "knowledge",
    "memory",
    "prompt",
    "recall",
    "secrets",
    "transfer",
    "upkeep",
}
# Pure packages, whose modules are rules whatever their name.
LANGUAGE = {"language"}

# What each layer may import of the others. A part that is not here is new: say where it stands.
INNER = {"arguments", "compression", "model", "errors", "text_cache", "deadline", "caller", "meter", "program"}
RULES = INNER | {"rules", "settings"}
EXTENSION = RULES | {"extension"}
WORK = EXTENSION | {"store"}
WIRING = WORK | {"providers", "services", "shared"}
FACES = WIRING | {"api", "client", "tools", "wellkept", "evaluation"}
MAY_IMPORT: dict[str, set[str]] = {
    "model": set(),
    "arguments": {"errors"},
    "compression": set(),
    "errors": set(),
    "text_cache": set(),
    "deadline": {"errors"},
    "caller": {"arguments", "model", "errors"},
    "meter": set(),
    "program": set(),
    "rules": INNER,
    "settings": INNER,
    "extension": INNER,
    "store": EXTENSION,
    "providers": EXTENSION,
    "services": WORK | {"providers", "tools", "shared"},
    "shared": WORK | {"services"},  # types only
    "tools": WIRING,  # and the type of the memory it is handed
    "api": WIRING | {"tools"},
    "client": WIRING | {"api", "tools"},
    "evaluation": WORK | {"api"},
    "integrations": WIRING | {"api", "client", "tools", "wellkept"},
    "testing": EXTENSION,
    "agent": FACES,
    "server": FACES | {"agent"},
    "cli": FACES | {"agent", "server"},
    "wellkept": FACES,
    "__main__": {"cli"},
}

ONLY_TYPES = {("tools", "api")}

DRIVERS = {"apsw", "psycopg", "psycopg_pool", "sqlite3"}
SHOWS_DRIVERS = {"wellkept.cli.commands.doctor": "`doctor` shows which versions are installed"}
RULES_NEED = {*sys.stdlib_module_names, "numpy", "re2", "Stemmer", "wellkept"}
NOT_PURE = {"socket", "urllib", "http", "subprocess", "threading", "asyncio", "tempfile", "shutil", "time", "random"}

SQL = re.compile(r"^\s*(SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+TABLE)\b", re.DOTALL)
WALL_CLOCK = re.compile(r"(^|\.)(datetime\.(now|utcnow|today)|date\.today|time\.(time|time_ns|localtime|gmtime))$")
STOPWATCH = re.compile(r"^(time\.)?(perf_counter|monotonic|sleep|perf_counter_ns|monotonic_ns)$")


def test_imports_point_inwards() -> None:
    reject(
        (f"{module} imports {source} {name}".rstrip() for module in MODULES for source, name in outward(module)),
        fix="Import inwards only, as MAY_IMPORT says",
    )


def outward(module: Module) -> Iterator[tuple[str, str]]:
    """Yield the imports of a module that its part may not make."""
    here = layer(module.name)
    allowed = MAY_IMPORT.get(here, set()) | {here}
    at_run_time = set(module.imports(at_run_time=True))
    for source, name in module.imports():
        if source.split(".")[0] == "wellkept":
            part = _imported_layer(source, name)
            is_type = (source, name) not in at_run_time and (here, part) in ONLY_TYPES
            if part not in allowed and not is_type:
                yield source, name


def layer(name: str) -> str:
    """The layer of a module: "rules" or "services" within a capability, else its package."""
    parts = name.split(".")
    part = parts[1] if len(parts) > 1 else parts[0]
    if part in LANGUAGE or (part in CAPABILITIES and parts[-1].startswith("rules")):
        return "rules"
    return "services" if part in CAPABILITIES else part


def _imported_layer(source: str, name: str) -> str:
    """The layer that an import names; the package itself and its version are "wellkept"."""
    if source == "wellkept":
        return layer(f"wellkept.{name}") if layer(f"wellkept.{name}") in MAY_IMPORT else "wellkept"
    # `from wellkept.memory import rules_trust` names a module of the package.
    return layer(f"{source}.{name}" if source.count(".") == 1 and name in NAMES_OF_RULES else source)


NAMES_OF_RULES = {module.name.rpartition(".")[2] for module in MODULES if layer(module.name) == "rules"}


def test_every_part_has_its_place() -> None:
    found = {layer(module.name) for module in MODULES}
    assert found == set(MAY_IMPORT)


def test_there_are_no_relative_imports() -> None:
    reject(
        (
            module.at(node.lineno)
            for module in MODULES
            for node in module.nodes
            if isinstance(node, ast.ImportFrom) and node.level
        ),
        fix="Import by full name",
    )


# Modules that import what is slow or rare inside functions, so that importing them costs little.
IMPORTS_LATER = {
    "wellkept.api.build": "a program that never exports, erases or ingests does not import what does",
    "wellkept.api.tenant": "a program that reads no foreign file does not import what does",
    "wellkept.api.wellkept": "importing the class does not import what opening a store needs",
    "wellkept.cli.commands.evaluation": "help does not import what measures",
    "wellkept.integrations.openai_agents": "its session works without the framework",
    "wellkept.knowledge.pdf_child": "only POSIX systems limit a process",
    "wellkept.server.http.buckets": "its lock is for POSIX systems, where processes share a file",
    "wellkept.store.notes.disk": "its locks are for POSIX systems",
    "wellkept.store.sqlite.writer": "only POSIX systems limit the size of files",
    "wellkept.store": "an engine is imported when a store on it is opened",
}


def test_imports_sit_at_the_top() -> None:
    reject(
        {
            module.at(node.lineno)
            for module in MODULES
            if module.name not in IMPORTS_LATER
            for function in module.functions
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        },
        fix="Import at the top of the module, or say in IMPORTS_LATER why not",
    )


def test_only_the_store_knows_sql() -> None:
    outside = [module for module in MODULES if module.part != "store"]
    drivers = (
        f"{module} imports {driver}"
        for module in outside
        if module.name not in SHOWS_DRIVERS
        for driver in DRIVERS & module.requirements
    )
    statements = (module.at(line) for module in outside for text, line in module.texts if SQL.match(text))

    reject([*drivers, *statements], fix="Keep drivers and SQL in wellkept.store")


def test_only_settings_reads_the_environment() -> None:
    outside = [module for module in MODULES if module.part != "settings"]
    imported = (
        f"{module} imports os.{name}"
        for module in outside
        for source, name in module.imports()
        if source == "os" and name in ("environ", "getenv")
    )
    mentioned = (
        f"{module.at(node.lineno)} {dotted(node)}"
        for module in outside
        for node in module.nodes
        if isinstance(node, ast.Attribute) and dotted(node) in ("os.environ", "os.getenv", "os.environb")
    )

    reject([*imported, *mentioned], fix="Read the environment in wellkept.settings only")


def test_only_the_api_reads_the_clock() -> None:
    reject(
        (
            f"{module.at(line)} {name}"
            for module in MODULES
            if module.part != "api"
            for name, line in module.calls()
            if WALL_CLOCK.search(name)
        ),
        fix="Take the time as an argument",
    )


PAUSES = {
    "wellkept.deadline": "says when a request has taken too long",
    "wellkept.evaluation.measure": "says how long a recall took",
    "wellkept.evaluation.speed": "measures how fast the verbs are",
    "wellkept.store.sqlite.writer": "orders snapshots by the time they began",
    "wellkept.store.notes.disk": "waits for a lock that another process holds",
    "wellkept.store.postgres.schema": "lets others pass while it waits for a lock",
    "wellkept.store.sqlite.engine": "waits for another process that creates the same file; orders snapshots",
    "wellkept.upkeep.embedding": "embeds for a recall no longer than allowed; retries refused texts later",
    "wellkept.providers.endpoint": "waits before it tries again, and for no answer longer than allowed",
    "wellkept.client.connection": "waits before it tries again",
    "wellkept.cli.commands.details": "says how long a command took",
    "wellkept.knowledge.files": "gives up on a document that takes too long",
    "wellkept.server.http.buckets": "refills a bucket by the time that has passed, and soon asks an empty one again",
    "wellkept.server.rest.health": "says how long the store has been silent",
    "wellkept.upkeep.background": "runs jobs when they are due, and says how long something has waited",
    "wellkept.upkeep.erase": "waits until no process accepts a revoked key any longer",
    "wellkept.recall.recall": "gives each source a share of the time a recall may take",
    "wellkept.upkeep.stats": "repeats counts that took long instead of counting again",
    "wellkept.store.engine": "relies on a mark in the database for some seconds",
    "wellkept.store.postgres.citus": "keeps the answers of the nodes for some seconds",
    "wellkept.store.postgres.engine": "tells which of two snapshots is older",
    "wellkept.store.search.memory_search": "forgets after minutes how often an owner was asked",
    "wellkept.store.postgres.link": "asks a server that has not answered for a second whether it is still there",
}


def test_measuring_and_waiting_have_a_reason() -> None:
    reject(
        (
            f"{module.at(line)} {name}"
            for module in MODULES
            if module.name not in PAUSES
            for name, line in module.calls()
            if STOPWATCH.match(name)
        ),
        fix="Neither measure time nor wait, or say why in PAUSES",
    )


def test_rules_are_pure() -> None:
    rules = [module for module in MODULES if layer(module.name) == "rules"]
    imports = (
        f"{module} imports {name}"
        for module in rules
        for name in module.requirements
        if name not in RULES_NEED or name in NOT_PURE
    )
    calls = (
        f"{module.at(line)} {name}"
        for module in rules
        for name, line in module.calls()
        if name in ("open", "print", "input")
    )

    reject([*imports, *calls], fix="Keep rules free of input and output, clocks and threads")


def test_the_model_and_the_errors_need_nothing_but_python() -> None:
    reject(
        (
            f"{module} imports {name}"
            for module in MODULES
            if module.part in INNER
            for name in {source.split(".")[0] for source, _ in module.imports(at_run_time=True)}
            if name not in {*sys.stdlib_module_names, "wellkept", "backports", "compression"}
        ),
        fix="Use nothing but the standard library here",
    )


def test_the_rules_find_what_they_look_for() -> None:
    """Otherwise a slip in this file would let everything pass."""
    settings, sqlite, schema, api = (
        next(module for module in MODULES if module.name == f"wellkept.{name}")
        for name in ("settings.choices", "store.sqlite.engine", "store.sqlite.engine", "api.wellkept")
    )
    assert [
        name for node in settings.nodes if isinstance(node, ast.Attribute) and (name := dotted(node)) == "os.environ"
    ]
    assert ("apsw", "") in sqlite.imports()
    assert [node for node in schema.nodes if isinstance(node, ast.Constant) and SQL.match(str(node.value))]
    assert [name for name, _ in sqlite.calls() if STOPWATCH.match(name)]
    assert [name for name, _ in api.calls() if WALL_CLOCK.search(name)]
