"""The MCP part of the corpus: what the real program says over its standard streams, one message at a time.

A request is written as its method and its parameters, after the tool sets the program was started with. The program
has a clock of its own, so times are masked.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.program import Program, shared_warm
from tests.corpus.recording import Masks, Section, asked_again, grouped, in_a_row, load, replay, save
from tests.corpus.spoiling import near, values_of

NAME = "mcp"
SERVER = "wellkept.server.mcp.stdio"
ALL = "memory,notes,journal,recall,details,items,admin"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "corpus", "version": "1"}}
SETS = ("", "notes,journal,recall,details", "items,admin")
"""Those that are started only to be asked what they offer; "" is what is offered if nothing is chosen."""

CALLS: dict[str, list[dict[str, Any]]] = {
    "recall": [{"query": "which tea?"}, {"query": "thanks!"}],
    "memory_store": [
        {"text": "Prefers tabs over spaces"},
        {"text": "prefers tabs over spaces"},
        {"text": "Eats in Oslo 東京", "tags": ["food"], "scope": "user", "metadata": {"city": "Oslo"}},
        {"text": "Prefers two spaces", "supersedes": "m-1"},
        {"text": "The key is AKIAIOSFODNN7EXAMPLQ"},
    ],
    "memory_search": [
        {"query": "SPACES"},
        {"tag": "food"},
        {"where": "metadata.city = 'Oslo'"},
        {"where": "nothing ="},
        {"query": "nowhere"},
    ],
    "save_to_journal": [{"content": "We met on Tuesday"}],
    "save_to_core": [{"content": "I am careful with money"}],
    "search_my_memories": [
        {"query": "how many spaces?"},
        {"query": "whom did we meet?", "limit": 1, "purpose": "task_intake"},
        {"query": "thanks!"},
        {"query": "spaces", "min_relevance": 0.99},
    ],
    "search_knowledge": [{"query": "refunds"}, {"query": "refunds", "categories": ["policy"], "limit": 1}],
    "store_memory": [
        {"content": "one\ntwo\nthree\n"},
        {"content": '{"a": [1, 2]}', "description": "a list", "type": "json", "thread_id": "monday"},
    ],
    "retrieve_memory": [
        {"memory_key": "<detail.1>"},
        {"id": "<detail.1>", "lines": "2-3"},
        {"memory_key": "<detail.1>", "grep": "t"},
        {"memory_key": "<detail.2>", "json_path": "$.a[0]"},
        {"memory_key": "nothing"},
    ],
    "search_memory": [{"query": "list"}, {"thread_id": "monday"}],
    "item_put": [
        {"namespace": "users/7", "key": "profile", "value": {"name": "Lena"}},
        {"namespace": "users/7", "key": "profile", "value": {"name": "Ida"}, "version": 1},
        {"namespace": "users/7", "key": "profile", "value": {"name": "Eva"}, "version": 1},
    ],
    "item_get": [{"namespace": "users/7", "key": "profile"}, {"namespace": "users/7", "key": "nothing"}],
    "item_search": [{"namespace": "users"}, {"where": "value.name = Ida"}, {"query": "what is she called?"}],
    "item_namespaces": [{}, {"prefix": "users"}],
    "item_delete": [{"namespace": "users/7", "key": "profile"}],
    "memory_list": [{}, {"kind": "core"}, {"state": "archived"}],
    "memory_add": [
        {"conversation": "user: I am allergic to penicillin.\nassistant: Noted.", "dry_run": True},
        {"conversation": "user: I am allergic to penicillin.\nassistant: Noted.", "session_id": "monday"},
    ],
    "memory_changes": [{}, {"state": "all"}],
    "memory_decide": [{"id": "c-99", "decision": "undo"}],
    "memory_restore": [{"ids": ["m-1"]}, {"state": "archived"}],
    "memory_delete": [{"id": "m-2"}, {"id": "m-2"}],
    "remember": [{"text": "Keeps kosher", "tags": ["diet"]}, {"text": "The key is AKIAIOSFODNN7EXAMPLQ"}],
    "profile": [{}, {"subject": "Tom"}],
    "list_memories": [{"limit": 2}],
    "forget": [{}, {"about": "my parrot"}, {"id": "m-99"}],
    "read_detail": [{"key": "<detail.1>", "limit": 5}, {"key": "<detail.1>", "grep": "three"}, {"key": "nothing"}],
}
OTHERS = (
    "ping {}",
    "nothing {}",
    "tools/list {}",
    'tools/list {"cursor": "x"}',
    'tools/call {"name": "no_such_tool", "arguments": {}}',
    'tools/call {"name": "memory_store"}',
    "tools/call {}",
    "resources/list {}",
    "resources/templates/list {}",
    'resources/read {"uri": "wellkept://agent/atlas/private-memory"}',
    'resources/read {"uri": "wellkept://agent/atlas/profile?subject=Tom"}',
    'resources/read {"uri": "wellkept://agent/atlas/details/<detail.1>"}',
    'resources/read {"uri": "wellkept://agent/atlas/details/<detail.1>?tail=1"}',
    'resources/read {"uri": "wellkept://agent/bob/private-memory"}',
    'resources/read {"uri": "wellkept://nothing"}',
    'resources/read {"uri": "file:///etc/passwd"}',
    "resources/read {}",
    "prompts/list {}",
    *(
        f'prompts/get {{"name": "{name}", "arguments": {{"question": "Where do we eat in Oslo?"}}}}'
        for name in ("task_intake", "tool_selection", "decision_memo", "content", "delegation", "nothing")
    ),
    'prompts/get {"name": "task_intake"}',
)


class Host:
    """A host that starts the program with some sets of tools, and says hello to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._masks = Masks(has_times=True)
        self._title = ""
        self._process: subprocess.Popen[str] | None = None
        self._number = 0

    def __call__(self, title: str, asked: str) -> str:
        """Send one message; each title is a program of its own."""
        if title != self._title:
            self.close()
            self._title = title
            self._process = self._start(title.partition(": ")[2])
        method, _, params = self._masks.reveal(asked).partition(" ")
        self._number += 1
        message = f'{{"jsonrpc": "2.0", "id": {self._number}, "method": "{method}", "params": {params}}}\n'
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(message)
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self._number:
                return self._told(answer)
        return json.dumps({"ended": self._process.wait()})

    def _told(self, answer: dict[str, Any]) -> str:
        told = answer.get("result", answer.get("error"))
        if isinstance(told, dict) and "structuredContent" in told:
            (content,) = told["content"]  # repeats the structured content as text
            assert json.loads(content["text"]) == told["structuredContent"]
            del told["content"]
        return json.dumps(self._masks.mask(told), ensure_ascii=False)

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()

    def _start(self, sets: str) -> subprocess.Popen[str]:
        program = [str(shared_warm(SERVER).bin / "wellkept"), "mcp", "--agent", "atlas"]
        process = subprocess.Popen(
            [*program, *(["--sets", sets] if sets else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            cwd=self._folder,
            env=Program(self._folder).environment(WELLKEPT_EMBEDDER="off"),
        )
        return process


@contextmanager
def hosting() -> Iterator[Host]:
    with tempfile.TemporaryDirectory() as folder:
        host = Host(Path(folder))
        try:
            yield host
        finally:
            host.close()


def record() -> int:
    hello, listing = f"initialize {json.dumps(HELLO)}", "tools/list {}"
    with hosting() as ask:

        def asked(title: str, *requests: str) -> Iterator[tuple[str, str]]:
            return ((each, ask(title, each)) for each in requests)

        titles = [f"started with: {sets}" for sets in SETS]
        sections = [Section(title, in_a_row(asked(title, hello, listing))) for title in titles]
        title = f"started with: {ALL}"
        whole = Section(title, in_a_row(asked(title, hello, listing)))
        tools = {each["name"]: each for each in json.loads(whole.exchanges[1].answer)["tools"]}
        assert set(CALLS) == set(tools), "say in CALLS how each tool is called"
        for name, calls in CALLS.items():
            whole.exchanges += in_a_row(asked(title, *(call(name, given) for given in calls)))
            whole.exchanges += grouped(asked(title, *dict.fromkeys(_spoiled(tools[name], calls[0]))))
        whole.exchanges += in_a_row(asked(title, *OTHERS))
    sections.append(whole)
    with hosting() as ask:
        sections = asked_again(sections, ask)
    save(NAME, sections)
    return sum(len(each.asked) for section in sections for each in section.exchanges)


def compare() -> list[str]:
    with hosting() as ask:
        return replay(load(NAME), ask)


def call(name: str, given: Any) -> str:
    return f"tools/call {json.dumps({'name': name, 'arguments': given})}"


def _spoiled(tool: dict[str, Any], good: dict[str, Any]) -> Iterator[str]:
    schema = tool["inputSchema"]
    yield call(tool["name"], {**good, "nothing": 1})
    for name, field in schema["properties"].items():
        if name in schema["required"]:
            yield call(tool["name"], {key: value for key, value in good.items() if key != name})
        yield call(tool["name"], {**good, near(name): 1})
        for value in values_of({}, field):
            if value != "\ud800":  # no message of the protocol can hold it
                yield call(tool["name"], {**good, name: value})
