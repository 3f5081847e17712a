"""A client has the verbs of the library, with the same parameters, or there is a reason why not."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from wellkept import AsyncClient, Client, Wellkept
from wellkept.api.agent import AgentMemory, AgentSessions
from wellkept.api.tenant import (
    AuditLog,
    TenantAgents,
    TenantData,
    TenantKeys,
    TenantKnowledge,
    TenantSecrets,
    TenantSessions,
    TenantWorkflows,
)
from wellkept.api.views import AgentChanges, AgentDetails, AgentItems, AgentKnowledge, AgentPrompts, AgentReview, Part
from wellkept.api.wellkept import TenantMemory
from wellkept.client.agent import AgentClient

FILES = "moves files of the server's machine: run the command there, or call the route"
OPERATOR = "for the operator on the server's machine"
CONSOLE = "no route: the console shows it"
PROCESS = "concerns the process that has the store open"

NOT_OFFERED: dict[type, dict[str, str]] = {
    AgentMemory: {},
    AgentDetails: {},
    AgentChanges: {"edit": CONSOLE},
    AgentItems: {"put_many": "no route writes several items as one: `put` them one by one"},
    AgentSessions: {
        "log_failure": "no route: a server logs the failures of its own agents",
        "reader": "the server reads for the user of a session by itself",
    },
    AgentReview: {"set_aside": CONSOLE},
    AgentPrompts: {
        "preview": CONSOLE,
        "render_recalled": "`recall_block` renders on the server, which knows what is forged",
        "count_tokens": "the tokenizer is the server's",
    },
    AgentKnowledge: {},
    TenantMemory: {},
    TenantAgents: {"count_memories_by_agent": "no route for several agents: `count_memories` counts those of one"},
    TenantKnowledge: dict.fromkeys(("browse", "count_categories"), CONSOLE),
    AuditLog: {"check_heads": OPERATOR},
    TenantWorkflows: {},
    TenantSessions: {},
    TenantKeys: {},
    TenantSecrets: {},
    TenantData: {"import_formats": CONSOLE},
    Wellkept: {
        **dict.fromkeys(("backup", "restore", "verify_backup"), FILES),
        "verify_receipt": "needs no store: call it on `Wellkept`",
        **dict.fromkeys(("check", "list_tenants", "mend_index"), OPERATOR),
        **dict.fromkeys(("background", "problems", "count_bytes", "now"), PROCESS),
    },
}
PARTS_NOT_OFFERED = {"users": CONSOLE, "upkeep": CONSOLE}
OTHERWISE = {"agent": "a key belongs to one tenant", "tenant": "a key belongs to one tenant"}


def parts(of: type) -> dict[str, Any]:
    return {name: each._view for name, each in inspect.getmembers(of) if isinstance(each, Part)}


PAIRS: list[tuple[type, type]] = [(AgentMemory, AgentClient), (TenantMemory, Client), (Wellkept, Client)]
PAIRS += [
    (view, parts(client)[name])
    for of, client in list(PAIRS)
    for name, view in parts(of).items()
    if name not in PARTS_NOT_OFFERED
]
each_pair = pytest.mark.parametrize(("of", "client"), PAIRS, ids=lambda each: each.__name__)


def verbs(of: type) -> dict[str, Any]:
    return {name: each for name, each in inspect.getmembers(of, callable) if not name.startswith("_")}


@each_pair
def test_every_verb_is_offered_or_has_a_reason(of: type, client: type) -> None:
    reasons = NOT_OFFERED[of]

    assert set(verbs(of)) - set(reasons) <= set(verbs(client))
    assert set(reasons) <= set(verbs(of))
    assert not set(reasons) & set(verbs(client))


@each_pair
def test_the_parameters_are_the_same(of: type, client: type) -> None:
    for name, verb in verbs(of).items():
        offered = verbs(client).get(name)
        if offered is None or name in OTHERWISE or (of is TenantMemory and name == "maintain"):
            continue
        assert inspect.signature(offered).parameters.keys() == inspect.signature(verb).parameters.keys(), name
        assert inspect.getdoc(offered), name


def test_verbs_are_awaited_where_they_should_be() -> None:
    plain, awaited = Client("http://127.0.0.1:1"), AsyncClient("http://127.0.0.1:1")
    for one, other in ((plain.agent("ann"), awaited.agent("ann")), (plain.audit, awaited.audit)):
        for name in verbs(type(other)).keys() - {"for_user", "call_tool"}:
            assert inspect.iscoroutinefunction(getattr(other, name)), name
            assert not inspect.iscoroutinefunction(getattr(one, name)), name
    plain.close()


def test_help_shows_the_librarys_words() -> None:
    assert inspect.getdoc(AgentClient.remember) == inspect.getdoc(AgentMemory.remember)
    assert AgentClient.remember.__name__ == "remember"


def test_a_verb_that_no_server_offers_says_so() -> None:
    with Client("http://127.0.0.1:1") as client:
        for view, name in ((client, "backup"), (client.agent("ann").sessions, "log_failure")):
            with pytest.raises(AttributeError, match=f"no '{name}'; a server does not offer it"):
                getattr(view, name)
        with pytest.raises(AttributeError, match=r"no 'backpu'\.$"):
            getattr(client, "backpu")  # noqa: B009
        assert not hasattr(client, "_nothing")
