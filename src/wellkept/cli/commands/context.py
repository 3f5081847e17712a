"""Working memory: build a prompt, and see what earlier ones held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from wellkept.cli.commands.recall import advise_on_nothing
from wellkept.cli.completion import complete_session
from wellkept.cli.options import Limit, MinRelevance, Where, read_text
from wellkept.cli.output import (
    Block,
    Cell,
    Column,
    Indented,
    Line,
    Output,
    Styled,
    Table,
    list_records,
    remarks,
)
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Run
from wellkept.cli.text import json_record, one_line, shorten
from wellkept.model import BlockItem, ContextCall, Truncation, WorkingMemory
from wellkept.prompt.rules_window import Layout

COLOURS = {"system": "magenta", "user": "green", "assistant": "blue"}
CALL_COLUMNS = (
    Column("Call", lambda each: each.id, "cyan", is_whole=True),
    Column("When", lambda each: each.at, "dim", is_whole=True),
    Column("Session", lambda each: each.session_id),
    Column(
        "Tokens",
        lambda each: Styled(f"{each.tokens:,} of {each.budget:,}", "yellow" if each.truncations else ""),
        is_whole=True,
    ),
    Column("", lambda each: "truncated" if each.truncations else None, only="pipe"),
)


def context(
    run: Run,
    message: Annotated[str, Argument(help="The user's new message; - reads standard input.")],
    session: Annotated[
        str | None,
        Option(help="The conversation that the message continues; by default none.", complete=complete_session),
    ] = None,
    budget: Annotated[int | None, Option(help="Maximum number of tokens; by default as in the settings.")] = None,
    blocks: Annotated[bool, Option("--blocks", help="Show its blocks instead of its messages.")] = False,
    notes: Annotated[bool, Option("--notes", help="Show only the block of notes that fit the message.")] = False,
    system_prompt: Annotated[
        str | None, Option(help="Replaces the agent's system prompt; - reads standard input.")
    ] = None,
    min_relevance: MinRelevance = None,
    where: Where = None,
    layout: Annotated[Layout | None, Option(help="The order of the blocks.", is_rare=True)] = None,
    participants: Annotated[
        list[str] | None,
        Option("--participant", metavar="NAME", help="Somebody in a group conversation; repeat.", is_rare=True),
    ] = None,
) -> None:
    """Build the next prompt from memory, knowledge and conversation.

    It is fitted into a budget of tokens, and what had to go is said.

    Example: wellkept context 'which indentation?' --session s-1"""
    text = read_text(message)
    if notes:
        block = run.memory.prompts.inject(text)
        lines, said = ([block], [block]) if block else remarks(["No notes."])
        run.show(Output(json={"text": block}, lines=lines, blocks=said))
        return
    made = run.memory.context(
        text,
        session=session,
        system_prompt=None if system_prompt is None else read_text(system_prompt),
        budget=budget,
        layout=layout,
        min_relevance=min_relevance,
        where=where,
        participants=participants,
    )
    has_memory = any(item.source == "memory" and not item.left_out for block in made.blocks for item in block.items)
    advice = [] if has_memory or run.printer.is_json else [advise_on_nothing(run, text, "fits")]
    run.show(_render_summary(made, advice) if blocks else _render_messages(run, made, session or "", advice))


def prompts(
    run: Run,
    id: Annotated[str | None, Argument(help="The call; without one, list the latest.")] = None,
    session: Annotated[str, Option(help="Only calls of this conversation.", complete=complete_session)] = "",
    limit: Limit = 20,
) -> None:
    """Show the prompt of an earlier call, what was left out of it, and why; without a call, list the latest.

    Example: wellkept session prompts --session s-1"""
    if id is not None:
        run.show(render_call(run.memory.prompts.get(id)))
        return
    found = run.memory.prompts.list(session_id=session, limit=limit)
    run.show(list_records(CALL_COLUMNS, found, if_empty="No prompts were built for this agent yet."))


def _render_messages(run: Run, made: WorkingMemory, session: str, advice: Sequence[str]) -> Output:
    lines: list[Line] = []
    blocks: list[Block] = []
    for message in made.messages:
        lines.append(f"{message['role']}: " + message["content"].replace("\n", "\n  "))
        blocks.append(Styled(message["role"], COLOURS.get(message["role"], "")))
        blocks.append(Indented(message["content"], (0, 2, 1, 2)))
    # The next program in a pipe gets the messages alone.
    notes, said = remarks([*map(_truncation_line, made.truncations), *advice], "yellow")
    total = f"{made.tokens:,} of {made.budget:,} tokens"
    if run.printer.width:
        # Nothing is logged for an agent without a record in the store.
        logged = run.memory.prompts.list(session_id=session, limit=1)
        if logged and logged[0].id == made.id:
            total += f"; {run.next_command('session', 'prompts', made.id)}"
    return Output(json=json_record(made), lines=[*lines, *notes], blocks=[*blocks, *said, Styled(total, "dim")])


def render_call(call: ContextCall) -> Output:
    """Render what a model saw at an earlier call."""
    return _render_summary(call)


def _render_summary(made: WorkingMemory | ContextCall, advice: Sequence[str] = ()) -> Output:
    total = f"{made.tokens:,} of {made.budget:,} tokens, {made.layout}"
    lines: list[Line] = [f"{made.id}: {total}"]
    for block in made.blocks:
        lines += [(block.name, block.tokens), *(f"  {_item_line(item)}" for item in block.items)]
    columns = (
        Column("Block", lambda block: block.name, "cyan"),
        Column("Tokens", lambda block: block.tokens),
        Column("What is in it", lambda block: block.items),
    )
    rows: list[tuple[Cell, ...]] = [(each.name, f"{each.tokens:,}", _items_cell(each.items)) for each in made.blocks]
    notes, said = remarks([*map(_truncation_line, made.truncations), *advice], "yellow")
    return Output(
        json=json_record(made),
        lines=[*lines, *map(str, notes)],
        blocks=[Table(columns, rows), *said, Styled(total, "dim")],
    )


def _items_cell(items: Sequence[BlockItem]) -> Cell:
    spans = [(f"{shorten(_item_line(item))}\n", "dim" if item.left_out else "") for item in items]
    # No blank line at the end of the cell.
    spans[-1:] = [(line.rstrip(), style) for line, style in spans[-1:]]
    return Styled(spans=tuple(spans))


def _item_line(item: BlockItem) -> str:
    """Describe one item of a prompt, or why it was left out."""
    score = "" if item.score is None else f" ({item.score:.3f})"
    reason = f" not shown: {item.left_out}" if item.left_out else ""
    since = f" [{item.since} since]" if item.since else ""
    text = f" {one_line(item.text)}" if item.text is not None and item.source != "skill" else ""
    return f"{item.id}{score}{reason}{since}{text}"


def _truncation_line(truncation: Truncation) -> str:
    dropped = truncation.dropped_references
    lost = f" No longer mentioned: {', '.join(dropped)}." if dropped else ""
    return f"truncated by {truncation.tokens_removed:,} tokens: {truncation.message}{lost}"
