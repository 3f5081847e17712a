"""Pure functions return on 16 threads what they return on one.

The list of functions is derived: every public function of the rules (`rules*.py`, `language`) whose arguments can be
made from a text, and the functions outside it that several threads call with a text. Threads go first, on empty
caches and on words nobody has used: a wrong answer that was cached would otherwise be compared with itself.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from types import ModuleType
from typing import Any

from tests.house.source import MODULES
from tests.threads import clear_caches, fresh_words, run_together
from wellkept.details.rules_digest import TextDigester
from wellkept.knowledge.files import read_html, read_markdown, read_text
from wellkept.language.languages import CueTable
from wellkept.language.text import terms
from wellkept.memory.loop_guard import list_echo_hashes
from wellkept.model import Kind, Memory, Owner, Role
from wellkept.prompt.rules_tokens import estimate_tokens
from wellkept.providers.minilm import MiniLMEmbedder
from wellkept.recall.rules_question import ParsedQuery
from wellkept.secrets.rules_text import TextView, fold_view
from wellkept.store.postgres.index import tsvector_literal
from wellkept.store.search.encoding import encode_terms
from wellkept.store.tables.details import ContentDraft, decompress_chunk

THREADS = 8
TEXTS = 6
WORDS = 40
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PHRASES = (
    "I went to Lisbon last Friday, and children bought 3 tickets.",
    "# Deploying\n\n- the build failed: `make test` | see [MemoryRef: build-x7k2m9qp - log]\n",
    "password = hunter2-but-longer Straße ﬁne 東京都に住む don't O’Neil's <b>bold</b>",
    '{"role": "tool", "content": "ok"} m-7 s-2 user:ann Decided: we use PostgreSQL!',
)


def fresh_texts() -> Sequence[str]:
    return [f"{PHRASES[number % len(PHRASES)]} {' '.join(fresh_words(WORDS))}" for number in range(TEXTS)]


def memories(text: str) -> Sequence[Memory]:
    halves = (text[: len(text) // 2], text[len(text) // 2 :])
    return [
        Memory(id=f"m-{number}", owner=Owner("acme", "atlas"), kind=Kind.NOTE, text=half, created_at=NOW)
        for number, half in enumerate(halves, 1)
    ]


MADE_FROM: Mapping[str, Callable[[str], Any]] = {
    "str": str,
    "str | None": str,
    "str | Fingerprint": str,
    "object": str,
    "bytes": str.encode,
    "bool": bool,
    "int": len,
    "float": lambda text: 1 / len(text),
    "Iterable[float]": lambda text: [1 / len(text)],
    "datetime": lambda text: NOW,
    "datetime | None": lambda text: NOW,
    "Role": lambda text: Role.USER,
    "Kind": lambda text: Kind.NOTE,
    "Sequence[str]": str.split,
    "Iterable[str]": str.split,
    "Collection[str]": str.split,
    "Sequence[Memory]": memories,
    "Iterable[tuple[str, str]]": lambda text: [("user", text)],
    "Sequence[tuple[str, str]]": lambda text: [("user", text)],
    "CountText": lambda text: estimate_tokens,
    "TextView": fold_view,
}
"""How an argument of each type is made from a text. A function that wants anything else is not in the list."""


def rule_modules() -> Sequence[ModuleType]:
    names = [module.name for module in MODULES]
    return [
        import_module(name)
        for name in names
        if name.rpartition(".")[2].startswith("rules") or name.startswith("wellkept.language")
    ]


def called_with_text(function: Callable[..., Any]) -> Callable[[str], Any] | None:
    """The function as one of a text; None if its arguments cannot be made from one."""
    wanted = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    if not wanted or any(str(each.annotation) not in MADE_FROM for each in wanted):
        return None

    def call(text: str) -> Any:
        given = {each.name: MADE_FROM[str(each.annotation)](text) for each in wanted}
        return function(**given)

    return call


def functions_of_text() -> Mapping[str, Callable[[str], Any]]:
    found: dict[str, Callable[[str], Any]] = {}
    for module in rule_modules():
        for name, function in vars(module).items():
            is_own = getattr(function, "__module__", "") == module.__name__ and not inspect.isclass(function)
            if is_own and not name.startswith("_") and callable(function):
                call = called_with_text(function)
                if call is not None:
                    found[f"{module.__name__.removeprefix('wellkept.')}.{name}"] = call
    return {**found, **ELSEWHERE}


def chunked(text: str) -> object:
    draft = ContentDraft()
    draft.feed(text)
    draft.seal()
    frame = next(draft.frames())
    draft.close()
    return draft.content_hash, decompress_chunk(frame, chars=draft.chars)


def digested(text: str) -> object:
    digest = TextDigester()
    digest.feed(text)
    return digest.finish()


EMBEDDER = MiniLMEmbedder()
ELSEWHERE: Mapping[str, Callable[[str], Any]] = {
    "memory.loop_guard.list_echo_hashes": list_echo_hashes,
    "recall.rules_question.ParsedQuery": lambda text: ParsedQuery.read(text, NOW),
    "details.rules_digest.TextDigester": digested,
    "store.search.encoding.encode_terms": lambda text: encode_terms(terms(text)),
    "store.postgres.index.tsvector_literal": lambda text: tsvector_literal(terms(text)),
    "store.content": chunked,
    "providers.minilm": lambda text: EMBEDDER.embed([text]).tobytes(),
    "knowledge.files.read_markdown": read_markdown,
    "knowledge.files.read_html": read_html,
    "knowledge.files.read_text": read_text,
}
FUNCTIONS = functions_of_text()
MUST_BE_LISTED = {
    "language.text.terms",
    "history.rules_history.history_terms",
    "language.text.index_terms",
    "memory.rules_duplicates.compute_similarity",
    "memory.rules_importance.judge",
    "prompt.rules_relevance.keywords",
    "secrets.rules_scan.find_secrets",
    "recall.rules_question.other_forms",
    "recall.rules_question.spans",
    "memory.loop_guard.list_echo_hashes",
}


def answer(function: Callable[[str], Any], text: str) -> object:
    """What the function returns, as something that can be compared; or what it raises."""
    try:
        returned = function(text)
        plain = list(returned) if isinstance(returned, Iterator) else returned
    except Exception as error:  # noqa: BLE001  what is raised is compared, too
        return type(error), str(error)
    if isinstance(plain, CueTable):
        return asdict(plain)  # a cue equals only itself
    return [each.text for each in plain] if _is_views(plain) else plain.text if isinstance(plain, TextView) else plain


def _is_views(returned: object) -> bool:
    return isinstance(returned, list) and any(isinstance(each, TextView) for each in returned)


def answers_of_threads(name: str, texts: Sequence[str]) -> Sequence[Mapping[str, object]]:
    """What each of many threads is answered; each begins with another text."""
    answers: list[dict[str, object]] = [{} for _ in range(THREADS)]

    def ask(number: int) -> None:
        for place in range(len(texts)):
            text = texts[(place + number) % len(texts)]
            answers[number][text] = answer(FUNCTIONS[name], text)

    run_together(THREADS, ask)
    return answers


def test_list_of_functions_is_complete() -> None:
    assert set(FUNCTIONS) >= MUST_BE_LISTED
    assert len(FUNCTIONS) > 100


def test_threads_get_the_answers_of_one_thread() -> None:
    asked = {name: fresh_texts() for name in FUNCTIONS}
    clear_caches()
    answers = {name: answers_of_threads(name, texts) for name, texts in asked.items()}
    clear_caches()
    alone = {name: {text: answer(FUNCTIONS[name], text) for text in texts} for name, texts in asked.items()}

    wrong = Counter(name for name, given in answers.items() for each in given if each != alone[name])
    assert not wrong
