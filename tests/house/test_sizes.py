"""A module fits into one reading, a function onto one screen, a folder into one glance."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.house.source import MODULES, PACKAGE, Module, reject

MAX_MODULE_LINES = 800
MAX_FUNCTION_LINES = 60
MAX_MODULES_IN_A_FOLDER = 30
MIN_LINES_FOR_ONE_IMPORTER = 60

STANDS_ALONE = {
    "wellkept.providers.otlp": "only providers open sockets",
}


def test_modules_are_short() -> None:
    reject(
        (f"{module.at(1)} has {module.length} lines" for module in MODULES if module.length >= MAX_MODULE_LINES),
        fix=f"Split modules of {MAX_MODULE_LINES} lines or more",
    )


def test_functions_are_short() -> None:
    lengths = (
        (module.at(each.lineno), each.name, (each.end_lineno or each.lineno) - each.lineno + 1)
        for module in MODULES
        for each in module.functions
    )

    reject(
        (f"{place} {name} has {length} lines" for place, name, length in lengths if length >= MAX_FUNCTION_LINES),
        fix=f"Split functions of {MAX_FUNCTION_LINES} lines or more",
    )


def test_folders_are_small() -> None:
    sizes = Counter(
        module.path.parent.relative_to(PACKAGE).as_posix() for module in MODULES if module.path.stem != "__init__"
    )

    reject(
        (
            f"src/wellkept/{folder} has {size} modules"
            for folder, size in sizes.items()
            if size > MAX_MODULES_IN_A_FOLDER
        ),
        fix=f"Split folders of more than {MAX_MODULES_IN_A_FOLDER} modules",
    )


def test_a_small_module_with_one_importer_is_part_of_it() -> None:
    importers = importers_of_modules()

    reject(
        (
            f"{module.at(1)} has {module.length} lines, only for {next(iter(importers[module.name]))}"
            for module in MODULES
            if module.length < MIN_LINES_FOR_ONE_IMPORTER and len(importers[module.name]) == 1
            if module.path.stem != "__init__" and module.name not in STANDS_ALONE
        ),
        fix=f"Move modules under {MIN_LINES_FOR_ONE_IMPORTER} lines into the only one that imports them",
    )


def importers_of_modules() -> dict[str, set[str]]:
    """Return which modules import each module."""
    known: dict[str, Module] = {module.name: module for module in MODULES}
    importers: dict[str, set[str]] = defaultdict(set)
    for module in MODULES:
        for source, name in module.imports():
            target = f"{source}.{name}" if f"{source}.{name}" in known else source
            if target in known:
                importers[target].add(module.name)
    return importers


def test_importers_are_found() -> None:
    """Otherwise a slip in this file would let every small module pass."""
    importers = importers_of_modules()

    assert len(importers["wellkept.errors"]) > 20
    assert importers["wellkept.cli"] == {"wellkept.__main__"}
