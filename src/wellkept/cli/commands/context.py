"""Working memory: build a prompt, and see what earlier ones held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Annotated

from wellkept.cli.options import MinRelevance, Where, read_text
from wellkept.cli.output import Block, Cell, Column, Indented, Line, Output, OutputNote, Styled, Table
from wellkept.cli.parameters import Argument, Option
from wellkept.cli.run import Command, Run
from wellkept.cli.text import EMPTY, json_value, local_time, one_line, plain_time, safe, shorten
from wellkept.model import BlockItem, ContextCall, Json, Truncation, WorkingMemory
from wellkept.prompt.rules_window import Layout

COLOURS = {"system": "magenta", "user": "green", "assistant": "blue"}


def context(
    run: Run,
    message: Annotated[str, Argument(help="The user's new message; - reads standard input.")],
    session: Annotated[str | None, Option(help="The conversation that the message continues; by default none.")] = None,
    system_prompt: Annotated[
        str | None, Option(help="Replaces the agent's system prompt; - reads standard input.")
    ] = None,
    budget: Annotated[int | None, Option(help="Maximum number of tokens; by default as in the settings.")] = None,
    layout: Annotated[Layout | None, Option(help="The order of the blocks; by default as in the settings.")] = None,
    min_relevance: MinRelevance = None,
    where: Where = None,
    participants: Annotated[
        list[str] | None,
        Option("--participant", metavar="NAME", help="Somebody in a group conversation; repeat for more."),
    ] = None,
    blocks: Annotated[bool, Option("--blocks", help="Show its blocks instead of its messages.")] = False,
) -> None:
    """Build the prompt of the next call: memory, knowledge and conversation, fitted into a budget."""
    made = run.memory.context(
        read_text(message),
        session=session,
        system_prompt=None if system_prompt is None else read_text(system_prompt),
        budget=budget,
        layout=layout,
        min_relevance=min_relevance,
        where=where,
        participants=participants,
    )

    def find_command() -> str:
        # Nothing is logged for an agent without a record in the store.
        logged = run.memory.context_calls(session_id=session or "", limit=1)
        return run.next_command("seen", made.id) if logged and logged[0].id == made.id else ""

    run.show(_render_summary(made, asdict(made)) if blocks else _render_messages(made, find_command))


def seen(
    run: Run,
    id: Annotated[str | None, Argument(help="The call; without one, list the latest.")] = None,
    session: Annotated[str, Option(help="Only calls of this conversation.")] = "",
    limit: Annotated[int, Option(help="Maximum number of results.")] = 20,
) -> None:
    """Show the prompt of an earlier call, what was left out of it, and why."""
    if id is None:
        run.show(_render_calls(run.memory.context_calls(session_id=session, limit=limit)))
    else:
        run.show(render_call(run.memory.context_call(id)))


COMMANDS = (
    Command(run=context, example="wellkept context 'which indentation?' --session s-1"),
    Command(run=seen, example="wellkept seen --session s-1", listed_by="seen"),
)


def _render_messages(made: WorkingMemory, find_command: Callable[[], str]) -> Output:
    """Render the messages; `find_command` looks up the command that shows them again, or ""."""
    return Output(json=asdict(made), lines=_message_lines(made), blocks=_message_blocks(made, find_command))


def _message_lines(made: WorkingMemory) -> Iterable[Line]:
    for message in made.messages:
        yield f"{message['role']}: " + safe(message["content"]).replace("\n", "\n  ")
    # The next program in a pipe gets the messages alone.
    for each in made.truncations:
        yield OutputNote(_truncation_line(each))


def _message_blocks(made: WorkingMemory, find_command: Callable[[], str]) -> Iterable[Block]:
    for message in made.messages:
        yield Styled(message["role"], COLOURS.get(message["role"], ""))
        yield Indented(safe(message["content"]), (0, 2, 1, 2))
    yield from _truncation_blocks(made)
    command = safe(find_command())
    yield Styled(f" {made.tokens:,} of {made.budget:,} tokens" + (f"; {command}" if command else ""), "dim")


def _render_calls(calls: Sequence[ContextCall]) -> Output:
    return Output(
        json={"items": [_call_json(call) for call in calls], "next_cursor": None},
        lines=(
            (
                call.id,
                plain_time(call.at),
                safe(call.session_id) or EMPTY,
                f"{call.tokens} of {call.budget}",
                "truncated" if call.truncations else EMPTY,
            )
            for call in calls
        ),
        columns=(
            Column("Call", "cyan", whole=True),
            Column("When", "dim", whole=True),
            Column("Session"),
            Column("Tokens", whole=True),
        ),
        rows=(
            (
                call.id,
                local_time(call.at),
                safe(call.session_id) or EMPTY,
                Styled(f"{call.tokens:,} of {call.budget:,}", "yellow" if call.truncations else ""),
            )
            for call in calls
        ),
        if_empty="No prompts were built for this agent yet.",
    )


def render_call(call: ContextCall) -> Output:
    """Render what a model saw at an earlier call."""
    return _render_summary(call, _call_json(call))


def _call_json(call: ContextCall) -> Json:
    document = asdict(call)
    del document["owner"]
    return document | {"at": json_value(call.at)}


def _render_summary(made: WorkingMemory | ContextCall, json: Json) -> Output:
    table = Table(
        (Column("Block", "cyan"), Column("Tokens"), Column("What is in it")),
        ((block.name, f"{block.tokens:,}", _items_cell(block.items)) for block in made.blocks),
    )
    total = Styled(f" {made.tokens:,} of {made.budget:,} tokens, {made.layout}", "dim")
    return Output(json=json, lines=_summary_lines(made), blocks=[table, *_truncation_blocks(made), total])


def _summary_lines(made: WorkingMemory | ContextCall) -> Iterable[Line]:
    yield f"{made.id}: {made.tokens:,} of {made.budget:,} tokens, {made.layout}"
    for block in made.blocks:
        yield f"{block.name}\t{block.tokens}"
        for item in block.items:
            yield f"  {_item_line(item)}"
    for each in made.truncations:
        yield _truncation_line(each)


def _items_cell(items: Sequence[BlockItem]) -> Cell:
    spans = [(f"{shorten(_item_line(item))}\n", "dim" if item.left_out else "") for item in items]
    # No blank line at the end of the cell.
    spans[-1:] = [(line.rstrip(), style) for line, style in spans[-1:]]
    return Styled(spans=tuple(spans))


def _item_line(item: BlockItem) -> str:
    """Describe one item of a prompt, or why it was left out."""
    score = "" if item.score is None else f" ({item.score:.3f})"
    reason = f" not shown: {safe(item.left_out)}" if item.left_out else ""
    since = f" [{item.since} since]" if item.since else ""
    text = f" {one_line(item.text)}" if item.text is not None and item.source != "skill" else ""
    return f"{safe(item.id)}{score}{reason}{since}{text}"


def _truncation_line(truncation: Truncation) -> str:
    dropped = truncation.dropped_references
    lost = f" No longer mentioned: {', '.join(dropped)}." if dropped else ""
    return f"truncated by {truncation.tokens_removed:,} tokens: {safe(truncation.message)}{safe(lost)}"


def _truncation_blocks(made: WorkingMemory | ContextCall) -> list[Block]:
    return [Styled(f" {_truncation_line(each)}", "yellow") for each in made.truncations]
