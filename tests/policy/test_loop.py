"""What memory put into a prompt does not come back as a new memory, and nothing else is lost."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.memory.loop_guard import hash_shown, is_block, list_echo_hashes
from wellkept.model import Kind, Memory, Owner
from wellkept.prompt.rules_relevance import render_notes
from wellkept.prompt.rules_window import private_memory

PYTHON = "User prefers Python over JavaScript"
PORT = "Project uses PostgreSQL 16 on port 5432"
KNOWN = [PYTHON, PORT, "Likes tea", "Deploy target is AWS us-east-1"]

BLOCK = f"[Memories]\n- (m-1, preference) {PYTHON}\n- (m-2, infra) {PORT}"
PRIVATE = (
    "# Your Private Memory\n\n## Core Memories (permanent)\n- I am kind\n  and patient\n\n"
    "## Recent Journal Entries\n- [2026-02-01] Met Ann\n- [2026-02-02] Read a book"
)
REFERENCE = "[MemoryRef: cmd_log_123 - output of npm install]"


def is_echo(text: str, known: Sequence[str]) -> bool:
    shown = set(map(hash_shown, known))
    return any(each <= shown for each in list_echo_hashes(text))


def quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


@pytest.mark.parametrize("block", [BLOCK, PRIVATE, BLOCK + "\n\n" + PRIVATE, PRIVATE + "\n\n" + BLOCK])
@pytest.mark.parametrize(
    "reshaped",
    [
        str,
        quoted,
        indented,
        lambda text: quoted(quoted(text)),
        lambda text: quoted(indented(text)),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: f"```\n{text}\n```",
        lambda text: f"\n\n{text}\n\n",
        lambda text: f"Here is what I remember:\n\n{text}",
        lambda text: text.replace("- ", "* "),
        lambda text: text.replace("- ", "• "),
        lambda text: text.replace("[Memories]", "**[Memories]**").replace("# Your", "## Your"),
        lambda text: text.upper().replace("(M-", "(m-"),
    ],
)
def test_our_own_block_is_an_echo_however_it_is_laid_out(block: str, reshaped: object) -> None:
    assert callable(reshaped)
    assert is_echo(reshaped(block), [])


@pytest.mark.parametrize(
    "text",
    [
        "[Memories]\n- (m-1, preference) User prefers Python\n  over JavaScript\n- (m-2, infra) Uses\n  Redis",
        "[Memories]\n\n- (m-1) One thing\n\n- (m-2) Another thing",
        "[Memories]\n1. (m-1) One thing\n2. (m-2) Another thing",
        "- [Memories]\n  - (m-1) One thing\n  - (m-2) Another thing",
        "[Memories] - (m-1, preference) User prefers Python - (m-2) Likes tea",
        "[Memories]:\n- (m-1, a tag with words) One thing",
        "[Recalled Memories]\n- (m-7) One thing\n- (audit, 2026-01-01) Another thing\n- (knowledge) A third",
        "# Your Private Memory\n\n## Core Memories (permanent)\n- I am kind",
        "## Core Memories (permanent)\n- I am kind\n- I am patient",
    ],
)
def test_blocks_are_recognised_without_knowing_the_texts(text: str) -> None:
    assert is_echo(text, [])


@pytest.mark.parametrize(
    "text",
    [
        PYTHON,
        PYTHON.lower(),
        PYTHON.upper() + "!!",
        f"  {PYTHON}.  ",
        "user  prefers\npython — over\njavascript",
        f'"{PYTHON}"',
        f"- {PYTHON}",
        f"- (m-1, preference) {PYTHON}",
        f"> (m-1) {PYTHON}",
        f"{PYTHON}. {PORT}.",
        f"{PORT}\n{PYTHON}",
        f"I remember that {PYTHON}.",
        f"From my notes:\n- {PYTHON}\n- {PORT}",
        f"{BLOCK}\n{PYTHON}",
        "likes tea",
        "(m-3) Likes tea",
        "[Memories] - (m-1, preference) User prefers Python over\nJavaScript - (m-2, infra) Project uses\n"
        "PostgreSQL 16 on port 5432",
    ],
)
def test_a_text_that_was_injected_is_an_echo(text: str) -> None:
    assert is_echo(text, KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "?!",
        "Hello",
        f"{PYTHON}, but for scripts she now takes Go",
        f"{PYTHON} no more",
        f"It is not true that {PYTHON.lower()}",
        f"Forget that {PYTHON}",
        "User prefers JavaScript over Python",
        "User prefers Python over TypeScript",
        "Project uses PostgreSQL 16 on port 5433",
        "Project uses PostgreSQL 17 on port 5432",
        "Ann likes tea",
        "Likes tea and cake",
        "Does she like tea?",
        f"{BLOCK}\n\nThe second one is out of date.",
        f"{BLOCK}\nI moved to Berlin.",
        f"I moved to Berlin.\n{BLOCK}",
        f"{PRIVATE}\n\nI moved to Berlin.",
        f"{PRIVATE}\nI moved to Berlin.",
        "- (m-2) is out of date: the port is 5433 now",
        "Updates:\n- (m-2) port is 5433\n- (m-3) gone",
        "(m-2) is relevant",
        "[Memories]",
        "[Memories]\n- summer of 2019\n- the old house",
        "[Memories] of a geisha is a film",
        "My memories of the trip:\n- the sea\n- the food",
        "# Your Private Memory",
        "# Your Private Memory\n\nis a song I like",
        "## Recent Journal Entries\n- wrote a page\n- read a book",
        "## Core Memories (permanent)\n- I am kind\nMy list for today:\n- buy milk",
        "## Core Memories (permanent)\n- I am kind\n\n- buy milk",
        REFERENCE,
        f"Command 'npm install' executed. Logs stored in {REFERENCE}. Status: Success.",
        f"{BLOCK}\n{REFERENCE}",
        json.dumps({"count": 3, "files": ["a", "b"]}),
        json.dumps({"memories": [{"id": "m-1", "text": "x"}], "comment": "new"}),
        '{"count": 1, "memories": [{"id"',
        "[" * 2000,
    ],
)
def test_what_says_something_new_is_no_echo(text: str) -> None:
    assert not is_echo(text, KNOWN)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("User likes C++", "User likes C#"),
        ("User likes C", "User likes C++"),
        ("x < 5 holds", "x > 5 holds"),
        ("It is -5 outside", "It is 5 outside"),
        ("It costs 5 %", "It costs 5 $"),
        ("Version 3.5 it is", "Version 35 it is"),
    ],
)
def test_signs_that_carry_meaning_are_compared(text: str, known: str) -> None:
    assert not is_echo(text, [known])


def test_a_known_reference_does_not_make_references_echoes() -> None:
    assert not is_echo(REFERENCE, [REFERENCE])
    assert is_echo(f"Logs are in {REFERENCE}", [f"Logs are in {REFERENCE}"])


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=5))
def test_whatever_is_rendered_is_recognised(texts: list[str]) -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    notes = [
        Memory(id=f"m-{number}", owner=Owner("t", "a"), kind=Kind.NOTE, text=text, tags=(text[:5],), created_at=when)
        for number, text in enumerate(texts, 1)
    ]

    block = render_notes(notes)

    assert block is not None
    assert is_echo(block, [])
    assert is_echo(quoted(block), [])


@given(st.lists(st.from_regex(r"[A-Za-z][A-Za-z ]{0,20}(\n[A-Za-z][A-Za-z ]{0,20}){0,2}", fullmatch=True), min_size=1))
def test_private_memory_is_recognised(texts: list[str]) -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    memories = [Memory(owner=Owner("t", "a"), kind=Kind.CORE, text=text, created_at=when) for text in texts]

    for block in (private_memory(memories, memories), private_memory([], memories), private_memory(memories, [])):
        assert block is not None
        assert is_block(block)


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=3))
def test_any_text_is_judged_without_an_error(text: str, known: list[str]) -> None:
    is_echo(text, known)


@given(st.from_regex(r"[A-Za-z]{4,9}( [A-Za-z]{4,9}){3,8}\.", fullmatch=True))
def test_a_block_with_a_sentence_before_or_after_it_is_kept(sentence: str) -> None:
    assert not is_echo(f"{sentence}\n\n{BLOCK}", [])
    assert not is_echo(f"{BLOCK}\n\n{sentence}", [])


def test_a_block_of_passages_is_an_echo() -> None:
    block = "[Knowledge]\n- (knowledge, 2026-03-01) Refunds take\n  five days.\n- (knowledge, 2026-03-01) No cash."

    assert is_echo(block, [])
    assert not is_echo(f"{block}\n\nBut six in May.", [])
