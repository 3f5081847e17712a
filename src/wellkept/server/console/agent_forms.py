"""Forms to create, edit and delete agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Form, Path, Request
from fastapi.responses import RedirectResponse, Response

from wellkept.errors import Conflict, Forbidden, Invalid
from wellkept.memory.rules_kinds import MAX_CHARS, AgentFields
from wellkept.model import Agent
from wellkept.server.console.pages import page, page_router, place
from wellkept.server.http.auth import CurrentTenant
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
            tools=_split(self.tools),
            knowledge_categories=_split(self.knowledge_categories),
            colour=self.colour.strip(),
            icon=self.icon.strip(),
            is_active=bool(self.is_active),
        )


SentForm = Annotated[AgentForm, Depends()]


@router.get("/new-agent", scope=WRITE)
def show_new(request: Request) -> Response:
    """Show an empty form."""
    return _new_page(request, AgentForm(is_active="yes"))


@router.post("/new-agent", scope=WRITE)
def create_agent(request: Request, tenant: CurrentTenant, form: SentForm, id: Annotated[str, Form()] = "") -> Response:
    """Create an agent; the form shows a refusal and keeps what was typed. The name defaults to the id."""
    fields = form.fields()
    if not fields["name"]:
        del fields["name"]
    try:
        agent = tenant.agents.add(id.strip(), **fields)
    except (Invalid, Conflict, Forbidden) as error:
        return _new_page(request, form, id=id, problem=str(error))
    return RedirectResponse(place("agents", agent.id), status_code=303)


@router.get("/agents/{agent}/edit", scope=WRITE)
def show_agent(request: Request, tenant: CurrentTenant, agent: AgentId) -> Response:
    """Show the fields of an agent."""
    found = tenant.agents.get(agent)
    return _edit_page(request, found, AgentForm.of(found))


@router.post("/agents/{agent}/edit", scope=WRITE)
def edit_agent(request: Request, tenant: CurrentTenant, agent: AgentId, form: SentForm) -> Response:
    """Change an agent; the form shows a refusal and keeps what was typed."""
    found = tenant.agents.get(agent)
    # Only what differs, because a key of low trust may change the appearance alone.
    changed = {name: value for name, value in form.fields().items() if value != getattr(found, name)}
    try:
        tenant.agents.update(agent, **cast(AgentFields, changed))
    except (Invalid, Forbidden) as error:
        return _edit_page(request, found, form, problem=str(error))
    return RedirectResponse(place("agents", agent), status_code=303)


@router.get("/agents/{agent}/delete", scope=ADMIN)
def ask_to_delete_agent(request: Request, tenant: CurrentTenant, agent: AgentId) -> Response:
    """Ask for confirmation."""
    return _delete_page(request, tenant, agent)


@router.post("/agents/{agent}/delete", scope=ADMIN)
def delete_agent(
    request: Request, tenant: CurrentTenant, agent: AgentId, confirmed: Annotated[str, Form()] = ""
) -> Response:
    """Delete an agent and everything it owns permanently, if its id was typed as a confirmation."""
    if confirmed.strip() != agent:
        return _delete_page(request, tenant, agent, problem=f"Type {agent} to confirm.")
    tenant.agents.delete(agent)
    return RedirectResponse(place(), status_code=303)


def _edit_page(request: Request, agent: Agent, form: AgentForm, *, problem: str = "") -> Response:
    return _form_page(request, "agent_edit.html", form, problem=problem, agent=agent)


def _new_page(request: Request, form: AgentForm, *, id: str = "", problem: str = "") -> Response:
    return _form_page(request, "agent_new.html", form, problem=problem, agent=None, id=id)


def _form_page(request: Request, template: str, form: AgentForm, *, problem: str, **shown: object) -> Response:
    status = 400 if problem else 200
    return page(request, template, status=status, form=form, problem=problem, sets=SETS, longest=MAX_CHARS, **shown)


def _delete_page(request: Request, tenant: CurrentTenant, id: str, *, problem: str = "") -> Response:
    agent, count = tenant.agents.get(id), tenant.agents.count_memories(id)
    status = 400 if problem else 200
    return page(request, "agent_delete.html", status=status, agent=agent, count=sum(count.values()), problem=problem)


def _split(text: str) -> tuple[str, ...]:
    return tuple(word for each in text.split(",") if (word := each.strip()))
