"""A client has the verbs of the library, with the same parameters, or there is a reason why not."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from wellkept import AgentMemory, AsyncClient, Client, TenantMemory, Wellkept
from wellkept.api.tenant_history import AuditLog
from wellkept.client.agent import AgentClient, AsyncAgentClient
from wellkept.client.client import AsyncAuditClient, AuditClient

FILES = "moves files of the server's machine: run the command there, or call the route"
OPERATOR = "for the operator on the server's machine"
CONSOLE = "no route: the console shows it"
PROCESS = "concerns the process that has the store open"

NOT_OFFERED: dict[type, dict[str, str]] = {
    AgentMemory: {
        "set_aside": CONSOLE,
        "preview_context": CONSOLE,
        "log_failure": "no route: a server logs the failures of its own agents",
        "render_recalled": "`recall_block` renders on the server, which knows what is forged",
        "count_tokens": "the tokenizer is the server's",
        "put_items": "no route writes several items as one: `put` them one by one",
        "for_session": "the server reads for the user of a session by itself",
    },
    TenantMemory: {
        "count_memories_by_agent": "no route for several agents: `count_memories` counts those of one",
        "count_waiting": PROCESS,
        **dict.fromkeys(("stats", "peek_stats"), CONSOLE),
        **dict.fromkeys(("list_users", "browse_documents", "count_categories", "preview_maintenance"), CONSOLE),
        "export": FILES,
        "import_": FILES,
        "import_formats": FILES,
        "call_tool": "a tool needs an agent here",
    },
    AuditLog: {"check_heads": OPERATOR},
    Wellkept: {
        **dict.fromkeys(("backup", "restore", "verify_backup"), FILES),
        "verify_receipt": "needs no store: call it on `Wellkept`",
        **dict.fromkeys(("check", "list_tenants", "mend_index", "embed_waiting", "find_refused"), OPERATOR),
        **dict.fromkeys(("background", "count_waiting", "embedder_problem", "problems", "list_refused"), PROCESS),
        **dict.fromkeys(
            ("count_bytes", "has_keys", "recent_key", "verify_key", "current_key", "now", "warm_up"), PROCESS
        ),
    },
}
ONLY_PLAIN = {"call_tool": "tools call the verbs of an agent one after the other, and wait for each"}
OTHERWISE = {"agent": "a key belongs to one tenant", "tenant": "a key belongs to one tenant"}
PAIRS: list[tuple[type, type, type]] = [
    (AgentMemory, AgentClient, AsyncAgentClient),
    (TenantMemory, Client, AsyncClient),
    (AuditLog, AuditClient, AsyncAuditClient),
    (Wellkept, Client, AsyncClient),
]
each_pair = pytest.mark.parametrize(("of", "plain", "awaited"), PAIRS, ids=lambda each: each.__name__)


def verbs(of: type) -> dict[str, Any]:
    return {name: each for name, each in inspect.getmembers(of, callable) if not name.startswith("_")}


@each_pair
def test_every_verb_is_offered_or_has_a_reason(of: type, plain: type, awaited: type) -> None:
    reasons = NOT_OFFERED[of]

    assert set(verbs(of)) - set(reasons) <= set(verbs(plain))
    assert set(verbs(of)) - set(reasons) - set(ONLY_PLAIN) <= set(verbs(awaited))
    assert set(reasons) <= set(verbs(of))
    # `restore` of a store and of memories are two verbs.
    assert not set(reasons) & set(verbs(plain)) - {"call_tool"}


@each_pair
def test_the_parameters_are_the_same(of: type, plain: type, awaited: type) -> None:
    for name, verb in verbs(of).items():
        for client in (plain, awaited):
            offered = verbs(client).get(name)
            if offered is None or name in OTHERWISE or (of is TenantMemory and name == "maintain"):
                continue
            assert inspect.signature(offered).parameters.keys() == inspect.signature(verb).parameters.keys(), name
            assert inspect.getdoc(offered), name


def test_verbs_are_awaited_where_they_should_be() -> None:
    for name in verbs(AsyncAgentClient).keys() - {"for_user", "captured"}:
        assert inspect.iscoroutinefunction(getattr(AsyncAgentClient, name)), name
        assert not inspect.iscoroutinefunction(getattr(AgentClient, name)), name


def test_help_shows_the_librarys_words() -> None:
    assert inspect.getdoc(AgentClient.remember) == inspect.getdoc(AgentMemory.remember)
    assert AgentClient.remember.__name__ == "remember"


def test_a_verb_that_no_server_offers_says_so() -> None:
    with Client("http://127.0.0.1:1") as client:
        for view, name in ((client, "backup"), (client.agent("ann"), "log_failure")):
            with pytest.raises(AttributeError, match=f"no '{name}'; a server does not offer it"):
                getattr(view, name)
        with pytest.raises(AttributeError, match=r"no 'backpu'\.$"):
            getattr(client, "backpu")  # noqa: B009
        assert not hasattr(client, "_nothing")
