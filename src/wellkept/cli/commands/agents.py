"""The tenant's agents: list, show, edit and remove them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, cast

import click

from wellkept.cli.commands.memories import COLOURS
from wellkept.cli.completion import complete_agent
from wellkept.cli.options import Limit, Yes, confirm_or_refuse, read_text
from wellkept.cli.output import Column, Indented, Output, Styled, confirm, list_records, show_fields
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Run
from wellkept.cli.text import count, json_record, one_line
from wellkept.memory.rules_kinds import AgentFields
from wellkept.model import Agent, Json, Kind

AgentId = Annotated[str, Argument(metavar="ID", help="The agent's id.", complete=complete_agent)]


def list_agents(
    run: Run,
    limit: Limit = 100,
    after: Annotated[str, Option(metavar="AGENT", help="Continue after this one.")] = "",
) -> None:
    """List the tenant's agents and how many memories each has.

    Example: wellkept admin agents list --tenant acme"""
    found = run.tenant.agents.list(after=after, limit=limit)
    counts = run.tenant.agents.count_memories_by_agent([agent.id for agent in found])

    def count_of(kind: Kind) -> Column:
        value = lambda agent: counts[agent.id][kind]  # noqa: E731
        return Column(kind.value.capitalize(), value, only="terminal", is_number=True, fill=COLOURS[kind])

    columns = (
        Column("Agent", _agent_cell, is_whole=True),
        Column("", lambda agent: _format_counts(counts[agent.id]), only="pipe"),
        Column("", lambda agent: agent.name, only="pipe"),
        *map(count_of, Kind),
    )
    page = ("--after", lambda agent: agent.id)
    none = "No agent has remembered anything yet: wellkept remember TEXT"
    run.show(
        list_records(
            columns, found, json=lambda each: _json(each, counts[each.id]), limit=limit, page=page, if_empty=none
        )
    )


def show(run: Run, id: AgentId) -> None:
    """Show an agent: its prompt, model, tools and appearance, and how many memories it has.

    Example: wellkept admin agents show atlas"""
    run.show(_render_agent(run.tenant.agents.get(id), run.tenant.agents.count_memories(id)))


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
    """Change an agent. What is not given stays.

    Example: wellkept admin agents edit atlas --name Atlas --tools notes,recall"""
    listed = None if tools is None else [each.strip() for each in tools.split(",") if each.strip()]
    given = {
        "name": name,
        "system_prompt": None if prompt is None else read_text(prompt),
        "model": model,
        "tools": listed,
        "colour": colour,
        "icon": icon,
        "is_active": active,
    }
    fields = cast(AgentFields, {name: value for name, value in given.items() if value is not None})
    if not fields:
        raise click.BadParameter(
            "Say what to change: --name, --prompt, --model, --tools, --colour, --icon, --active or --inactive."
        )
    edited = run.tenant.agents.update(id, **fields)
    run.show(_render_agent(edited, run.tenant.agents.count_memories(id)))


def remove(run: Run, id: AgentId, yes: Yes = False) -> None:
    """Remove an agent and everything it owns for good.

    Example: wellkept admin agents remove atlas --yes"""
    agent = run.tenant.agents.get(id)
    if not yes:
        memories = count(sum(run.tenant.agents.count_memories(id).values()), "memory")
        question = f"Remove {agent.id}, its {memories} and all else it owns for good?"
        confirm_or_refuse(run, question, refusal="Nothing was removed")
    run.tenant.agents.delete(id)
    run.show(confirm("Removed", agent.id))


def _render_agent(agent: Agent, counts: Mapping[Kind, int]) -> Output:
    values = json_record(agent) | {"id": agent.id, "memories": _format_counts(counts)}
    prompt = values.pop("system_prompt")
    shown = {"id": agent.id, **values, "created_at": agent.created_at, "updated_at": agent.updated_at}
    json = _json(agent, counts)
    if not prompt:
        return show_fields(shown, json)
    return show_fields(shown, json, lines=["system_prompt: " + prompt.replace("\n", "\n  ")], blocks=[Indented(prompt)])


def _json(agent: Agent, counts: Mapping[Kind, int]) -> Json:
    memories = {kind.value: count for kind, count in counts.items()}
    return {"id": agent.id} | json_record(agent) | {"memories_count": memories}


def _format_counts(counts: Mapping[Kind, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def _agent_cell(agent: Agent) -> Styled:
    name = ((f"  {one_line(agent.name)}", "dim"),) if agent.name != agent.id else ()
    return Styled(agent.id, "cyan", name)
