"""Recall: find memories by words, meaning or likeness, build prompts of them, and explain what was found and shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Unpack

import click

from wellkept.cli import output as out
from wellkept.cli.commands.memories import kind_cell, list_memories_of, text_cell
from wellkept.cli.options import FilterOptions, MemoryId, complete_session, drop_missing, read_text
from wellkept.cli.run import Run
from wellkept.model import (
    NOTHING_FITS,
    Appearance,
    BlockItem,
    ContextCall,
    Explanation,
    Hit,
    Json,
    Kind,
    Outcome,
    Recalled,
    Source,
    State,
    Truncation,
    Unanswered,
    WorkingMemory,
)
from wellkept.prompt.rules_window import Layout
from wellkept.recall.rules_ranking import PURPOSES

COLOURS = {"system": "magenta", "user": "green", "assistant": "blue"}


class QuestionOptions(FilterOptions):
    """Options of a recall, by the names of the library.

    --kind KIND: Only core, journal, note, episode or item; repeat for more.
    --tag: Only memories with this tag.
    Rare:
    --session ID: Only of this conversation.
    --source SOURCE: Only from memory, audit, workflow or knowledge; repeat for more.
    --purpose PURPOSE: What it is for: task_intake, tool_selection, decision_memo, content or delegation."""

    kinds: list[Kind] | None
    as_of: datetime | None
    min_relevance: float | None
    sources: list[Source] | None
    purpose: Annotated[str | None, click.Choice([*map(str, PURPOSES)])]


def search(
    run: Run, query: str = "", kind: Kind | None = None, limit: int = 20, **filters: Unpack[FilterOptions]
) -> None:
    """Find memories that contain exactly this text, newest first.

    query: Text that memories must contain exactly, ignoring case.

    Example: wellkept memory search tabs --tag preference"""
    found = run.memory.search(query, kind=kind, limit=limit, **drop_missing(filters))
    run.show(list_memories_of(run, found, if_empty="" if found else advise_on_nothing(run, query, "contains that")))


def recall(run: Run, query: str, limit: int = 5, explain: bool = False, **options: Unpack[QuestionOptions]) -> None:
    """Find what answers a question best, by meaning and by words.

    query: A question in your own words.
    --explain: Explain each score.

    Example: wellkept recall 'how to indent code?' --explain"""
    hits = run.memory.recall(query, limit=limit, **drop_missing(options))
    none = "" if hits else advise_on_nothing(run, query, "fits")
    run.show(render_hits(hits, is_explained=explain, if_empty=none))


def explain(run: Run, query: str, id: str | None = None, limit: int = 5, **options: Unpack[QuestionOptions]) -> None:
    """Explain what a question finds, or why it finds a record or does not.

    query: The question, as it was asked.
    --id: The record to explain, such as m-7 or a-12; all if not given.
    --limit: Maximum number of results of that recall.

    Example: wellkept memory explain 'how to indent code?'"""
    run.show(_render_explanation(run.memory.explain(query, id, limit=limit, **drop_missing(options))))


def similar(run: Run, id: MemoryId) -> None:
    """List memories that say nearly the same, most similar first.

    Example: wellkept memory similar m-1"""
    run.show(list_memories_of(run, run.memory.review.similar(id), if_empty="Nothing else says nearly the same."))


def context(
    run: Run,
    message: str,
    session: Annotated[str | None, complete_session] = None,
    budget: int | None = None,
    blocks: bool = False,
    notes: bool = False,
    system_prompt: str | None = None,
    min_relevance: float | None = None,
    where: str | None = None,
    layout: Layout | None = None,
    participants: list[str] | None = None,
) -> None:
    """Build the next prompt from memory, knowledge and conversation.

    It is fitted into a budget of tokens, and what had to go is said.

    message: The user's new message; - reads standard input.
    --session: The conversation that the message continues; by default none.
    --budget: Maximum number of tokens; by default as in the settings.
    --blocks: Show its blocks instead of its messages.
    --notes: Show only the block of notes that fit the message.
    --system-prompt: Replaces the agent's system prompt; - reads standard input.
    Rare:
    --layout: The order of the blocks.
    --participant NAME: Somebody in a group conversation; repeat.

    Example: wellkept context 'which indentation?' --session s-1"""
    text = read_text(message)
    if notes:
        block = run.memory.prompts.inject(text)
        run.show(out.Output({"text": block}, [block or out.Remark("No notes.")]))
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
    advice = [] if has_memory or run.printer.is_json else [out.Remark(advise_on_nothing(run, text, "fits"), "yellow")]
    run.show(_render_call(made, advice) if blocks else _render_messages(run, made, session or "", advice))


def prompts(run: Run, id: str | None = None, session: Annotated[str, complete_session] = "", limit: int = 20) -> None:
    """Show the prompt of an earlier call, what was left out of it, and why; without a call, list the latest.

    id: The call; without one, list the latest.
    --session: Only calls of this conversation.

    Example: wellkept session prompts --session s-1"""
    if id is not None:
        run.show(_render_call(run.memory.prompts.get(id)))
        return
    found = run.memory.prompts.list(session_id=session, limit=limit)
    run.show(out.list_records(CALL_COLUMNS, found, if_empty="No prompts were built for this agent yet."))


def advise_on_nothing(run: Run, question: str, fits: str) -> str:
    """Say what to do when nothing was found."""
    agent = run.memory.owner.agent
    if not run.memory.list(limit=1, state="all"):
        other = "wellkept admin agents list shows who has memories"
        return f"Agent {agent} has no memories yet. Store one: wellkept remember TEXT; {other}."
    # Unlike a recall, it marks nothing as retrieved.
    items = run.memory.explain(question, limit=1).items if question.strip() else ()
    nearest = next((each for each in items if each.outcome is Outcome.RECALLED), None)
    if nearest is None:
        return f"No memory {fits}. Ask for what you want to know, in a sentence of your own."
    found = f"{nearest.id} {out.excerpt(nearest.text)}"
    return f"No memory {fits}; nearest by meaning: {found}. Ask in other words, or with fewer options."


def render_hits(hits: Recalled, *, is_explained: bool, if_empty: str = "") -> out.Output:
    """Render what recall found, best first."""

    def text(hit: Hit) -> out.Styled:
        why = ((f"\n{hit.explain}", "dim"),) if is_explained else ()
        return out.Styled(hit.text, spans=why) if hit.memory is None else text_cell(hit.memory, State.LIVE, *why)

    columns = [*HIT_COLUMNS, out.Column("Memory", text)]
    if is_explained:
        columns.append(out.Column("", lambda hit: hit.explain, only="pipe"))
    note = NOTHING_FITS if hits and all(hit.weak for hit in hits) else ""
    heads = [*map(_missing_hint, hits.unanswered), hits.heading if hits else "", note]
    listed = out.list_records(columns, hits, if_empty=if_empty)
    document = {
        "hits": [_hit_json(each, is_explained=is_explained) for each in hits],
        "missing": [out.json_record(each) for each in hits.unanswered],
        "heading": hits.heading,
        **({"note": note or if_empty} if note or if_empty else {}),
    }
    return out.Output(document, [*(out.Remark(each, "yellow") for each in heads if each), *listed.blocks])


def _hit_json(hit: Hit, *, is_explained: bool) -> Json:
    found = out.json_record(hit) | {"relevance": hit.relevance, "weak": hit.weak}
    memory, document, weights = found.pop("memory"), found.pop("document"), found.pop("weights")
    if memory is not None:
        found |= {"kind": memory["kind"], "tags": memory["tags"]}
    if document is not None:
        found |= {"title": hit.title, "heading": hit.heading, "page": hit.page}
    return found | {"weights": weights, "explain": hit.explain} if is_explained else found


def _missing_hint(unanswered: Unanswered) -> str:
    """Explain which source did not answer."""
    return f"missing: {unanswered.source}. {out.one_line(unanswered.reason)}"


def _render_explanation(explanation: Explanation) -> out.Output:
    """Render why a question finds something, or does not."""
    blocks: list[out.Block] = [out.Remark(_missing_hint(each), "yellow") for each in explanation.unanswered]
    if not explanation.id:
        blocks.append(out.Remark(out.one_line(explanation.sentence), ""))
    for each in explanation.items or (() if not explanation.id else (explanation,)):
        blocks += _explain_item(each)
    return out.Output(
        _explanation_json(explanation) | {"items": [_explanation_json(each) for each in explanation.items]}, blocks
    )


def _explanation_json(explanation: Explanation) -> Json:
    found = out.json_record(explanation)
    del found["hits"], found["items"]
    hit, rival = explanation.hit, explanation.rival
    if hit is not None:
        names = ("source", "id", "text", "score", "parts", "weights")
        found["hit"] = {name: found["hit"][name] for name in names} | {"explain": hit.explain}
    return found | {"rival": None if rival is None else {"id": rival.id, "score": rival.score}}


def _explain_item(explanation: Explanation) -> Iterable[out.Block]:
    is_found = explanation.outcome is Outcome.RECALLED
    title = f"{explanation.id}: {explanation.outcome.value.replace('_', ' ')}"
    yield [out.Styled(out.mark(is_found), "green" if is_found else "yellow"), out.Styled(title, "bold")]
    if explanation.text:
        yield out.Styled(out.shorten(out.one_line(explanation.text)))
    yield out.Piped(explanation.id, explanation.outcome, explanation.sentence)
    yield out.Styled(out.one_line(explanation.sentence))
    if explanation.words:
        yield f"words: {', '.join(map(out.one_line, explanation.words))}"
    for prompt in explanation.prompts:
        says = _describe_appearance(prompt)
        yield out.Piped(prompt.call_id, prompt.at, prompt.session_id, says)
        yield out.Styled(
            f"{prompt.call_id}, {out.local_time(prompt.at)}: {says}", "yellow" if prompt.left_out else "dim"
        )


def _describe_appearance(appearance: Appearance) -> str:
    """Say whether a prompt showed the record."""
    reason = appearance.left_out
    return f"not shown in {appearance.block}: {reason}" if reason else f"shown in {appearance.block}"


def _render_messages(run: Run, made: WorkingMemory, session: str, advice: Sequence[out.Remark]) -> out.Output:
    total = f"{made.tokens:,} of {made.budget:,} tokens"
    if run.printer.width:
        # Nothing is logged for an agent without a record in the store.
        logged = run.memory.prompts.list(session_id=session, limit=1)
        if logged and logged[0].id == made.id:
            total += f"; {run.next_command('session', 'prompts', made.id)}"
    messages = [out.Entry(each["role"], each["content"], COLOURS.get(each["role"], "")) for each in made.messages]
    return out.Output(out.json_record(made), [*messages, *_list_truncations(made), *advice, out.Styled(total, "dim")])


def _render_call(made: WorkingMemory | ContextCall, advice: Sequence[out.Remark] = ()) -> out.Output:
    """Render what a model sees, or saw at an earlier call, block by block."""
    total = f"{made.tokens:,} of {made.budget:,} tokens, {made.layout}"
    lines: list[out.Block] = [out.Piped(f"{made.id}: {total}")]
    for block in made.blocks:
        lines += [
            out.Piped(block.name, block.tokens),
            *(out.Piped(f"  {_describe_item(item)}") for item in block.items),
        ]
    table = out.Table(BLOCK_COLUMNS, made.blocks, only="terminal")
    return out.Output(
        out.json_record(made), [*lines, table, *_list_truncations(made), *advice, out.Styled(total, "dim")]
    )


def _items_cell(items: Sequence[BlockItem]) -> out.Styled:
    spans = [(f"{out.shorten(_describe_item(item))}\n", "dim" if item.left_out else "") for item in items]
    # No blank line at the end of the cell.
    spans[-1:] = [(line.rstrip(), style) for line, style in spans[-1:]]
    return out.Styled(spans=tuple(spans))


def _describe_item(item: BlockItem) -> str:
    """Describe one item of a prompt, or why it was left out."""
    score = "" if item.score is None else f" ({item.score:.3f})"
    reason = f" not shown: {item.left_out}" if item.left_out else ""
    since = f" [{item.since} since]" if item.since else ""
    text = f" {out.one_line(item.text)}" if item.text is not None and item.source != "skill" else ""
    return f"{item.id}{score}{reason}{since}{text}"


def _list_truncations(made: WorkingMemory | ContextCall) -> list[out.Remark]:
    return [out.Remark(_describe_truncation(each), "yellow") for each in made.truncations]


def _describe_truncation(truncation: Truncation) -> str:
    dropped = truncation.dropped_references
    lost = f" No longer mentioned: {', '.join(dropped)}." if dropped else ""
    return f"truncated by {truncation.tokens_removed:,} tokens: {truncation.message}{lost}"


BLOCK_COLUMNS = (
    out.Column("Block", lambda each: each.name, "cyan"),
    out.Column("Tokens", lambda each: each.tokens),
    out.Column("What is in it", lambda each: _items_cell(each.items)),
)
CALL_COLUMNS = (
    out.Column("Call", lambda each: each.id, "cyan", is_whole=True),
    out.Column("When", lambda each: each.at, "dim", is_whole=True),
    out.Column("Session", lambda each: each.session_id),
    out.Column(
        "Tokens",
        lambda each: out.Styled(f"{each.tokens:,} of {each.budget:,}", "yellow" if each.truncations else ""),
        is_whole=True,
    ),
    out.Column("", lambda each: "truncated" if each.truncations else None, only="pipe"),
)
HIT_COLUMNS = (
    # What `--min-relevance` compares; `--explain` adds the score that ranks.
    out.Column("Relevance", lambda hit: out.Styled(f"{hit.relevance:.3f}", "dim" if hit.weak else ""), is_whole=True),
    out.Column("Id", lambda hit: hit.id, "cyan", is_whole=True),
    out.Column(
        "Kind",
        lambda hit: hit.source.value if hit.memory is None else kind_cell(hit.memory.kind),
        only="terminal",
        is_wide=True,
        is_whole=True,
    ),
)
