"""Forms to create, edit and delete agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Form, Path
from fastapi.responses import Response

from wellkept.errors import Conflict, Forbidden, Invalid
from wellkept.memory.rules_kinds import MAX_CHARS, AgentFields
from wellkept.model import Agent
from wellkept.server.console.pages import AtTenant, go, page_router, split_words
from wellkept.server.http.routing import ADMIN, WRITE
from wellkept.tools.catalog import SETS

router = page_router()
AgentId = Annotated[str, Path()]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentForm:
    """The fields of an agent as a person types them; lists are separated by commas."""

    name: Annotated[str, Form()] = ""
    system_prompt: Annotated[str, Form()] = ""
    model: Annotated[str, Form()] = ""
    tools: Annotated[str, Form()] = ""
    knowledge_categories: Annotated[str, Form()] = ""
    colour: Annotated[str, Form()] = ""
    icon: Annotated[str, Form()] = ""
    # Browsers leave out a box that is not checked.
    is_active: Annotated[str, Form()] = ""

    @classmethod
    def of(cls, agent: Agent) -> AgentForm:
        return cls(
            name=agent.name,
            system_prompt=agent.system_prompt,
            model=agent.model,
            tools=", ".join(agent.tools),
            knowledge_categories=", ".join(agent.knowledge_categories),
            colour=agent.colour,
            icon=agent.icon,
            is_active="yes" if agent.is_active else "",
        )

    def fields(self) -> AgentFields:
        return AgentFields(
            name=self.name.strip(),
            # Browsers send CR LF.
            system_prompt=self.system_prompt.replace("\r\n", "\n"),
            model=self.model.strip(),
            tools=split_words(self.tools),
            knowledge_categories=split_words(self.knowledge_categories),
            colour=self.colour.strip(),
            icon=self.icon.strip(),
            is_active=bool(self.is_active),
        )


SentForm = Annotated[AgentForm, Depends()]


@router.get("/new-agent", scope=WRITE)
def show_new(visit: AtTenant) -> Response:
    """Show an empty form."""
    return _new_page(visit, AgentForm(is_active="yes"))


@router.post("/new-agent", scope=WRITE)
def create_agent(visit: AtTenant, form: SentForm, id: Annotated[str, Form()] = "") -> Response:
    """Create an agent; the form shows a refusal and keeps what was typed. The name defaults to the id."""
    fields = form.fields()
    if not fields["name"]:
        del fields["name"]
    try:
        agent = visit.tenant.agents.add(id.strip(), **fields)
    except (Invalid, Conflict, Forbidden) as error:
        return _new_page(visit, form, id=id, problem=str(error))
    return go("agents", agent.id)


@router.get("/agents/{agent}/edit", scope=WRITE)
def show_agent(visit: AtTenant, agent: AgentId) -> Response:
    """Show the fields of an agent."""
    found = visit.tenant.agents.get(agent)
    return _edit_page(visit, found, AgentForm.of(found))


@router.post("/agents/{agent}/edit", scope=WRITE)
def edit_agent(visit: AtTenant, agent: AgentId, form: SentForm) -> Response:
    """Change an agent; the form shows a refusal and keeps what was typed."""
    found = visit.tenant.agents.get(agent)
    # Only what differs, because a key of low trust may change the appearance alone.
    changed = {name: value for name, value in form.fields().items() if value != getattr(found, name)}
    try:
        visit.tenant.agents.update(agent, **cast(AgentFields, changed))
    except (Invalid, Forbidden) as error:
        return _edit_page(visit, found, form, problem=str(error))
    return go("agents", agent)


@router.get("/agents/{agent}/delete", scope=ADMIN)
def ask_to_delete_agent(visit: AtTenant, agent: AgentId) -> Response:
    """Ask for confirmation."""
    return _delete_page(visit, agent)


@router.post("/agents/{agent}/delete", scope=ADMIN)
def delete_agent(visit: AtTenant, agent: AgentId, confirmed: Annotated[str, Form()] = "") -> Response:
    """Delete an agent and everything it owns permanently, if its id was typed as a confirmation."""
    if confirmed.strip() != agent:
        return _delete_page(visit, agent, problem=f"Type {agent} to confirm.")
    visit.tenant.agents.delete(agent)
    return go()


def _edit_page(visit: AtTenant, agent: Agent, form: AgentForm, *, problem: str = "") -> Response:
    return visit.page("agent_edit.html", form=form, problem=problem, agent=agent, sets=SETS, longest=MAX_CHARS)


def _new_page(visit: AtTenant, form: AgentForm, *, id: str = "", problem: str = "") -> Response:
    return visit.page("agent_new.html", form=form, problem=problem, agent=None, id=id, sets=SETS, longest=MAX_CHARS)


def _delete_page(visit: AtTenant, id: str, *, problem: str = "") -> Response:
    agent, counts = visit.tenant.agents.get(id), visit.tenant.agents.count_memories(id)
    return visit.page("agent_delete.html", agent=agent, count=sum(counts.values()), problem=problem)
