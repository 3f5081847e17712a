"""Names that say something, docstrings that promise something, and errors that are named when they are caught."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from tests.house.source import MODULES, Module, dotted, reject

QUESTION_WORD = re.compile(r"\s*(What|Whatever|Whether|Which|Who|Whoever|Whose|How|Where|Why)\b")
EMPTY_WORDS = re.compile(r"(Manager|Helper|Helpers|Util|Utils|Base|Impl)$|_v\d+$")

BROAD = {"Exception", "BaseException"}
MAY_CATCH_ALL = {
    ("wellkept.store.sqlite.writer", "_serve"): "hands the error to every caller of the group that was not committed",
    ("wellkept.store.sqlite.writer", "_run_job"): "hands the error to the caller's thread, where it is raised again",
    ("wellkept.store.sqlite.engine", "migrate"): "rolls back and raises again",
    ("wellkept.store.sqlite.writer", "_write_alone"): "rolls back and raises again",
    ("wellkept.store.sqlite.writer", "_transaction"): "rolls back and raises again",
    ("wellkept.store.postgres.engine", "__init__"): "closes the pool and raises again",
    ("wellkept.store.postgres.link", "_watch"): "without this thread a server that went away would stay away for ever",
    (
        "wellkept.providers.checked",
        "call_foreign",
    ): "an embedder or a model is anybody's code: whatever it raises, it failed",
    (
        "wellkept.recall.recall",
        "search_all",
    ): "logs it; a defect of one source must not take the others with it",
    ("wellkept.providers.onnx_embedder", "_open"): "a file of the wrong kind has no narrower type",
    ("wellkept.server.mcp.protocol", "_hide_errors"): "logs it and answers without its text, which may be somebody's",
    ("wellkept.upkeep.background", "_serve"): "hands the error to whoever asks for the result",
    ("wellkept.server.threads", "_run"): "hands the error to whoever asks for the result",
    (
        "wellkept.upkeep.background",
        "_write_entry",
    ): "one value that cannot be written must not stop those of others",
    (
        "wellkept.upkeep.embedding",
        "_embed_all",
    ): "raised again when the other tenants have had their turn",
    (
        "wellkept.upkeep.embedding",
        "_try_each",
    ): "an answer of an endpoint may be wrong in any way; others go on",
    ("wellkept.upkeep.background", "_work"): "if the thread ended, nothing would be done in the background any more",
    ("wellkept.server.http.requests", "__call__"): "the last one who can answer; what nobody foresaw goes to the log",
}


def test_names_say_something() -> None:
    names = (
        *((str(module), module.path.stem) for module in MODULES),
        *((module.at(each.lineno), each.name) for module in MODULES for each in (*module.functions, *module.classes)),
    )

    reject((f"{place} {name}" for place, name in names if EMPTY_WORDS.search(name)), fix="Choose a name that says more")


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module in MODULES:
        for each in module.tree.body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                places[each.name].append(module.name)

    reject(
        (f"{name}: {', '.join(modules)}" for name, modules in places.items() if len(modules) > 1),
        fix="Give each public class a name of its own",
    )


def test_modules_and_public_classes_have_docstrings() -> None:
    modules = (module.at(1) for module in MODULES if module.source.strip() and not ast.get_docstring(module.tree))
    classes = (
        f"{module.at(each.lineno)} {each.name}"
        for module in MODULES
        for each in module.classes
        if not each.name.startswith("_") and not ast.get_docstring(each)
    )

    reject([*modules, *classes], fix="Write a docstring")


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    reject(
        (
            f"{module.at(line)} {text.splitlines()[0]}"
            for module in MODULES
            for text, line in module.docstrings
            if QUESTION_WORD.match(text)
        ),
        fix="Begin docstrings with a verb or a noun",
    )


def broad_excepts(module: Module) -> set[str]:
    """The functions that catch everything; "" stands for the module itself."""
    found: set[str] = set()

    def visit(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if BROAD & {dotted(each).split(".")[-1] for each in caught}:
                found.add(function)
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(module.tree, "")
    return found


def test_every_except_names_its_exception() -> None:
    bare = (
        module.at(node.lineno)
        for module in MODULES
        for node in module.nodes
        if isinstance(node, ast.ExceptHandler) and node.type is None
    )
    broad = (
        f"{module} {function}"
        for module in MODULES
        for function in broad_excepts(module)
        if (module.name, function) not in MAY_CATCH_ALL
    )

    reject([*bare, *broad], fix="Name the exception, or say in MAY_CATCH_ALL why it must be any")


def test_the_list_of_those_who_may_catch_all_is_no_longer_than_needed() -> None:
    catching = {(module.name, function) for module in MODULES for function in broad_excepts(module)}

    assert set(MAY_CATCH_ALL) <= catching
    assert len(MAY_CATCH_ALL) < 20
