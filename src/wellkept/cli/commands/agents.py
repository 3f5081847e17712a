"""The tenant's agents: list, show, edit and remove them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import click

from wellkept.cli.commands.memories import COLOURS
from wellkept.cli.completion import complete_agent
from wellkept.cli.options import read_text
from wellkept.cli.output import Column, Grid, Output, Styled, confirm, next_page
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Command, Run
from wellkept.cli.text import json_record, one_line, plain_time, safe
from wellkept.errors import Invalid
from wellkept.memory.rules_agents import AgentFields
from wellkept.model import Agent, Json, Kind

NOT_ASKED = "Nothing was removed, because there is no terminal to confirm on. Add --yes."
NOT_CONFIRMED = "Nothing was removed."

AgentId = Annotated[str, Argument(metavar="ID", help="The agent's id.", complete=complete_agent)]


def list_(
    run: Run,
    limit: Annotated[int, Option(help="Maximum number of results.")] = 100,
    after: Annotated[str, Option(metavar="AGENT", help="Continue after this one.")] = "",
) -> None:
    """List the tenant's agents and how many memories each has."""
    found = run.tenant.list_agents(after=after, limit=limit)
    counts = run.tenant.count_memories_by_agent([agent.id for agent in found])
    run.show(_render_agents(found, counts, next_cursor=found[-1].id if len(found) == limit else None))


def show(run: Run, id: AgentId) -> None:
    """Show an agent: its prompt, model, tools and appearance, and how many memories it has."""
    run.show(_render_agent(run.tenant.get_agent(id), run.tenant.count_memories(id)))


def edit(
    run: Run,
    id: AgentId,
    name: Annotated[str | None, Option(help="Its name.")] = None,
    prompt: Annotated[str | None, Option(help="Its system prompt; - reads standard input.")] = None,
    model: Annotated[str | None, Option(help="The model it uses.")] = None,
    tools: Annotated[
        str | None, Option(help="Its tools or sets of tools, such as notes,recall; empty for all.")
    ] = None,
    colour: Annotated[str | None, Option(help="Its colour in the console.")] = None,
    icon: Annotated[str | None, Option(help="Its icon in the console.")] = None,
    active: Annotated[bool | None, Option("--active/--inactive", help="Mark it as in use, or not.")] = None,
) -> None:
    """Change an agent. What is not given stays."""
    fields: AgentFields = {}
    if name is not None:
        fields["name"] = name
    if prompt is not None:
        fields["system_prompt"] = read_text(prompt)
    if model is not None:
        fields["model"] = model
    if tools is not None:
        fields["tools"] = [each.strip() for each in tools.split(",") if each.strip()]
    if colour is not None:
        fields["colour"] = colour
    if icon is not None:
        fields["icon"] = icon
    if active is not None:
        fields["is_active"] = active
    if not fields:
        raise click.BadParameter(
            "Say what to change: --name, --prompt, --model, --tools, --colour, --icon, --active or --inactive."
        )
    edited = run.tenant.update_agent(id, **fields)
    run.show(_render_agent(edited, run.tenant.count_memories(id)))


def remove(
    run: Run, id: AgentId, yes: Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")] = False
) -> None:
    """Remove an agent and everything it owns for good."""
    agent = run.tenant.get_agent(id)
    if not yes:
        if not run.has_terminal:
            raise Invalid(NOT_ASKED)
        count = sum(run.tenant.count_memories(id).values())
        memories = f"{count:,} {'memory' if count == 1 else 'memories'}"
        if not click.confirm(f"Remove {safe(agent.id)}, its {memories} and all else it owns for good?", err=True):
            raise Invalid(NOT_CONFIRMED)
    run.tenant.delete_agent(id)
    run.show(confirm("Removed", agent.id))


COMMANDS = (
    Command(run=list_, example="wellkept agents list --tenant acme", alias="list"),
    Command(run=show, example="wellkept agents show atlas", listed_by="agents list"),
    Command(run=edit, example="wellkept agents edit atlas --name Atlas --tools notes,recall", listed_by="agents list"),
    Command(run=remove, example="wellkept agents remove atlas --yes", listed_by="agents list"),
)


def _render_agents(
    agents: Sequence[Agent], counts: Mapping[str, Mapping[Kind, int]], *, next_cursor: str | None
) -> Output:
    kinds = [Column(kind.value.capitalize(), number=True, fill=COLOURS[kind], overflow="ellipsis") for kind in Kind]
    return Output(
        json={"items": [_json(each, counts[each.id]) for each in agents], "next_cursor": next_cursor},
        lines=((safe(each.id), _format_counts(counts[each.id]), one_line(each.name)) for each in agents),
        columns=(Column("Agent", whole=True), *kinds),
        rows=((_agent_cell(each), *(f"{counts[each.id][kind]:,}" for kind in Kind)) for each in agents),
        if_empty="No agent has remembered anything yet.",
        more=next_page("--after", next_cursor, "There are more"),
    )


def _render_agent(agent: Agent, counts: Mapping[Kind, int]) -> Output:
    fields = {
        "id": agent.id,
        "name": agent.name,
        "model": agent.model,
        "tools": ", ".join(agent.tools),
        "knowledge_categories": ", ".join(agent.knowledge_categories),
        "colour": agent.colour,
        "icon": agent.icon,
        "is_active": "yes" if agent.is_active else "no",
        "created_at": plain_time(agent.created_at),
        "updated_at": plain_time(agent.updated_at),
        "memories": _format_counts(counts),
    }
    about = {name: one_line(value) for name, value in fields.items() if value}
    if agent.system_prompt:
        about["system_prompt"] = safe(agent.system_prompt)
    return Output(
        json=_json(agent, counts),
        lines=[f"{name}: " + value.replace("\n", "\n  ") for name, value in about.items()],
        blocks=[
            Grid(
                [(Styled(name, "dim"), Styled(value, "cyan" if name == "id" else "")) for name, value in about.items()]
            )
        ],
    )


def _json(agent: Agent, counts: Mapping[Kind, int]) -> Json:
    memories = {kind.value: count for kind, count in counts.items()}
    return {"id": agent.id} | json_record(agent) | {"memories_count": memories}


def _format_counts(counts: Mapping[Kind, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def _agent_cell(agent: Agent) -> Styled:
    name = ((f"  {one_line(agent.name)}", "dim"),) if agent.name != agent.id else ()
    return Styled(safe(agent.id), "cyan", name)
