"""Names that say something, docstrings that promise something, and errors that are named when they are caught."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house.source import MODULES, Module, dotted

EMPTY_WORDS = re.compile(r"(Manager|Helper|Helpers|Util|Utils|Base|Impl)$|_v\d+$")

BROAD = {"Exception", "BaseException"}
MAY_CATCH_ALL = {
    ("recollect.store.sqlite.engine", "_serve"): "hands the error to every caller of the group that was not committed",
    ("recollect.store.sqlite.engine", "_run_job"): "hands the error to the caller's thread, where it is raised again",
    ("recollect.store.sqlite.schema", "migrate"): "rolls back and raises again",
    ("recollect.store.sqlite.engine", "_write_alone"): "rolls back and raises again",
    ("recollect.store.sqlite.engine", "_transaction"): "rolls back and raises again",
    ("recollect.store", "open_store"): "closes the engine and raises again",
    ("recollect.store.postgres.engine", "__init__"): "closes the pool and raises again",
    ("recollect.store.postgres.link", "_watch"): "without this thread a server that went away would stay away for ever",
    ("recollect.api.recollect", "__init__"): "closes the store and raises again",
    ("recollect.providers.foreign", "asked"): "an embedder or a model is anybody's code: whatever it raises, it failed",
    ("recollect.providers.onnx_embedder", "encode"): "the runtime's errors share no narrower type",
    ("recollect.providers.onnx_embedder", "_opened"): "a file of the wrong kind has no narrower type",
    ("recollect.server.mcp.protocol", "_contained"): "logs it and answers without its text, which may be somebody's",
    ("recollect.services.background.workers", "do"): "hands the error to whoever asks for the result",
    (
        "recollect.services.background.writer",
        "_tried",
    ): "one value that cannot be written must not stop those of others",
    (
        "recollect.services.background.embedding",
        "_embed_all",
    ): "raised again when the other tenants have had their turn",
    (
        "recollect.services.background.embedding",
        "_try_each",
    ): "an answer of an endpoint may be wrong in any way; others go on",
    ("recollect.services.background.embedding", "_pass"): "a thread that ends would leave everybody without vectors",
    ("recollect.server.request_id", "__call__"): "the last one who can answer; what nobody foresaw goes to the log",
}

every_module = pytest.mark.parametrize("module", MODULES, ids=str)


@every_module
def test_names_say_something(module: Module) -> None:
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    names = [module.path.stem, *(node.name for node in module.nodes if isinstance(node, kinds))]

    assert [name for name in names if EMPTY_WORDS.search(name)] == []


@every_module
def test_a_module_and_its_classes_say_what_they_are(module: Module) -> None:
    if module.source.strip():
        assert ast.get_docstring(module.tree)
    classes = [node for node in module.nodes if isinstance(node, ast.ClassDef)]
    assert [each.name for each in classes if each.name[0] != "_" and not ast.get_docstring(each)] == []


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


@every_module
def test_every_except_names_its_exception(module: Module) -> None:
    handlers = [node for node in module.nodes if isinstance(node, ast.ExceptHandler)]

    assert [each.lineno for each in handlers if each.type is None] == []
    assert [name for name in broad_excepts(module) if (module.name, name) not in MAY_CATCH_ALL] == []


def test_the_list_of_those_who_may_catch_all_is_no_longer_than_needed() -> None:
    catching = {(module.name, function) for module in MODULES for function in broad_excepts(module)}

    assert set(MAY_CATCH_ALL) <= catching
    assert len(MAY_CATCH_ALL) < 20
