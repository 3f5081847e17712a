"""Sample data to look around in: one agent with memories, conversations and prompts of two users, and a document."""

from __future__ import annotations

import tomllib
from datetime import datetime, timedelta
from importlib.resources import files
from typing import TYPE_CHECKING

from wellkept.caller import current_caller
from wellkept.errors import Forbidden, NotFound

if TYPE_CHECKING:
    from wellkept.api.wellkept import TenantMemory

AGENT = "sample"
NAME = "Sample data"
CATEGORY = "sample"
"""Category of the sample documents."""


def add(tenant: TenantMemory, now: datetime) -> None:
    """Store the sample data in a tenant, unless it is there. Raises: Conflict if another agent has its id."""
    if has_sample(tenant):
        return
    source = tomllib.loads(files("wellkept.server.console").joinpath("sample.toml").read_text("utf-8"))
    tenant.agents.add(AGENT, name=NAME, colour="seagreen", system_prompt="You are the assistant of Lena and Tom.")
    memory = tenant.agent(AGENT)
    for fields in source["memories"]:
        fields["created_at"] = now - timedelta(days=fields.pop("age"))
    memory.remember_many(source["memories"])
    for each in source["documents"]:
        tenant.knowledge.ingest_text(each["text"], title=each["title"], category=CATEGORY)
    for each in source["conversations"]:
        theirs = memory.for_user(each["user"])
        for question, answer in each["turns"]:
            theirs.context(question, session=each["id"], budget=1_000)
            theirs.log_turn(each["id"], user=question, assistant=answer)
    build = source["detail"]
    log = "\n".join(f"compiled module_{number}" for number in range(1, build["lines"] + 1))
    memory.details.store(log, description=build["description"], session_id=source["conversations"][1]["id"])


def remove(tenant: TenantMemory) -> None:
    """Delete the sample data: the agent with all it owns, and the documents. Raises: Forbidden; NotFound."""
    current_caller().check_whole_tenant()
    if not has_sample(tenant):
        raise NotFound("There is no sample data.")
    tenant.agents.delete(AGENT)
    for each in tenant.knowledge.list(category=CATEGORY):
        if each.title.startswith("Sample: "):
            tenant.knowledge.delete(each.id)


def has_sample(tenant: TenantMemory) -> bool:
    """Return True if the tenant has the sample agent, not just one of its id."""
    try:
        return tenant.agents.get(AGENT).name == NAME
    except (NotFound, Forbidden):
        return False
