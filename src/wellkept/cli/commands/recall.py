"""Recall: find memories by words, meaning or likeness, and explain what was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Annotated, Unpack

import click

from wellkept.cli.commands.memories import kind_cell, memory_spans, read_states, render_memories
from wellkept.cli.options import AsOf, FilterOptions, MemoryId, MinRelevance, OfKind, name_options, read_text
from wellkept.cli.output import Block, Cell, Column, Line, Output, OutputNote, Styled
from wellkept.cli.parameters import Argument, Option, offer_words
from wellkept.cli.run import Command, Run
from wellkept.cli.text import EMPTY, json_record, json_value, local_time, mark, one_line, plain_time, safe, shorten
from wellkept.errors import Invalid
from wellkept.model import (
    NOTHING_FITS,
    Appearance,
    Explanation,
    Hit,
    Json,
    Kind,
    Outcome,
    Recalled,
    Source,
    State,
    Unanswered,
)
from wellkept.prompt.rules_relevance import InjectMode
from wellkept.recall.rules_purposes import PURPOSES, check_purpose

OnlyKinds = Annotated[list[Kind] | None, Option(metavar="KIND", help=f"Only {', '.join(Kind)}; repeat for more.")]
FromSource = Annotated[
    list[Source] | None, Option(metavar="SOURCE", help=f"Only from {', '.join(Source)}; repeat for more.")
]


def _parse_purpose(name: str) -> str:
    try:
        check_purpose(name)
    except Invalid as error:
        raise click.BadParameter(str(error)) from None
    return name


ForPurpose = Annotated[
    str | None,
    Option(
        metavar="PURPOSE",
        parser=_parse_purpose,
        help=f"What it is for: {', '.join(PURPOSES)}.",
        complete=offer_words(PURPOSES),
    ),
]


def search(
    run: Run,
    query: Annotated[str, Argument(help="Text that memories must contain exactly, ignoring case.")] = "",
    kind: OfKind = None,
    limit: Annotated[int, Option(help="Maximum number of results.")] = 20,
    **filters: Unpack[FilterOptions],
) -> None:
    """Find memories that contain exactly this text, newest first."""
    found = run.memory.search(query, kind=kind, limit=limit, **name_options(filters))
    rows = read_states(run, found)
    if_empty = f"No memory of agent {run.memory.owner.agent} contains that; wellkept recall finds by meaning."
    run.show(render_memories(rows, if_empty=if_empty))


class QuestionOptions(FilterOptions):
    """Options of a recall."""

    kind: OnlyKinds
    source: FromSource
    purpose: ForPurpose
    as_of: AsOf
    min_relevance: MinRelevance


def recall(
    run: Run,
    query: Annotated[str, Argument(help="A question in your own words.")],
    limit: Annotated[int, Option(help="Maximum number of results.")] = 5,
    explain: Annotated[bool, Option("--explain", help="Explain each score.")] = False,
    **options: Unpack[QuestionOptions],
) -> None:
    """Find what answers a question best, by meaning and by words."""
    hits = run.memory.recall(query, limit=limit, **name_options(options))
    if_empty = f"Agent {run.memory.owner.agent} recalls nothing for this; wellkept agents list shows who has memories."
    run.show(render_hits(hits, is_explained=explain, if_empty=if_empty))


def explain(
    run: Run,
    query: Annotated[str, Argument(help="The question, as it was asked.")],
    id: Annotated[
        str | None, Option("--id", help="The record to explain, such as m-7 or a-12; all if not given.")
    ] = None,
    limit: Annotated[int, Option(help="Maximum number of results of that recall.")] = 5,
    **options: Unpack[QuestionOptions],
) -> None:
    """Explain what a question finds, or why it finds a record or does not."""
    run.show(render_explanation(run.memory.explain(query, id, limit=limit, **name_options(options))))


def similar(run: Run, id: MemoryId) -> None:
    """List memories that say nearly the same, most similar first."""
    rows = read_states(run, run.memory.similar(id))
    run.show(render_memories(rows, if_empty="Nothing else says nearly the same."))


def inject(
    run: Run,
    message: Annotated[str, Argument(help="The user's last message; - reads standard input.")],
    mode: Annotated[InjectMode | None, Option(help="How notes are chosen; by default as in the settings.")] = None,
) -> None:
    """Show the notes that fit a message, as the block that goes into the next prompt."""
    run.show(_render_block(run.memory.inject(read_text(message), mode=mode)))


COMMANDS = (
    Command(run=search, example="wellkept search tabs --tag preference"),
    Command(run=recall, example="wellkept recall 'how to indent code?' --explain"),
    Command(run=explain, example="wellkept explain 'how to indent code?'"),
    Command(run=similar, example="wellkept similar m-1", listed_by="list"),
    Command(run=inject, example="wellkept inject 'how to indent code?' --mode hybrid"),
)


def render_hits(hits: Recalled, *, is_explained: bool, if_empty: str = "Nothing comes to mind.") -> Output:
    """Render what recall found, best first."""
    missing = [Styled(_missing_hint(each), "yellow") for each in hits.unanswered]
    heading = [Styled(f" {hits.heading}", "bold")] if hits and hits.heading else []
    if _is_weak(hits):
        heading.append(Styled(NOTHING_FITS, "yellow"))
    return Output(
        json={
            "hits": [_hit_json(each, is_explained=is_explained) for each in hits],
            "missing": [asdict(each) for each in hits.unanswered],
            "heading": hits.heading,
        },
        lines=_hit_lines(hits, is_explained=is_explained),
        intro=[*missing, *heading],
        columns=(
            Column("Relevance", whole=True),
            Column("Id", "cyan", whole=True),
            Column("Kind", whole=True, wide_only=True),
            Column("Memory"),
        ),
        rows=_hit_rows(hits, is_explained=is_explained),
        if_empty=if_empty,
    )


def _is_weak(hits: Recalled) -> bool:
    return bool(hits) and all(hit.weak for hit in hits)


def _hit_json(hit: Hit, *, is_explained: bool) -> Json:
    found: Json = {
        "source": hit.source.value,
        "id": hit.id,
        "text": hit.text,
        "score": hit.score,
        "relevance": hit.relevance,
        "weak": hit.weak,
        "parts": dict(hit.parts),
        "created_at": json_value(hit.created_at),
        "agent_id": hit.agent_id,
    }
    if hit.memory is not None:
        found |= {"kind": hit.memory.kind.value, "tags": list(hit.memory.tags)}
    if hit.document is not None:
        found |= {"title": hit.title, "heading": hit.heading, "page": hit.page}
    return found | {"weights": dict(hit.weights), "explain": hit.explain} if is_explained else found


def _hit_lines(hits: Recalled, *, is_explained: bool) -> Iterable[Line]:
    if hits.heading:
        yield OutputNote(hits.heading)
    if _is_weak(hits):
        yield OutputNote(NOTHING_FITS)
    for hit in hits:
        yield f"{hit.relevance:.3f}", hit.id, one_line(hit.text)
        if is_explained:
            yield f"\t{hit.explain}"
    for each in hits.unanswered:
        yield OutputNote(_missing_hint(each))


def _hit_rows(hits: Recalled, *, is_explained: bool) -> Iterable[Sequence[Cell]]:
    for hit in hits:
        # What `--min-relevance` compares; `--explain` adds the score that ranks.
        relevance = Styled(f"{hit.relevance:.3f}", "dim" if hit.weak else "bold" if hit is hits[0] else "")
        kind = hit.source.value if hit.memory is None else kind_cell(hit.memory.kind)
        text = hit.text if hit.memory is None else hit.memory.text
        spans = () if hit.memory is None else memory_spans(hit.memory, State.LIVE)
        explained = ((f"\n{hit.explain}", "dim"),) if is_explained else ()
        yield relevance, safe(hit.id), kind, Styled(shorten(one_line(text)), spans=(*spans, *explained))


def _missing_hint(unanswered: Unanswered) -> str:
    """Explain which source did not answer."""
    return f"missing: {unanswered.source}. {one_line(unanswered.reason)}"


def render_explanation(explanation: Explanation) -> Output:
    """Render why a question finds something, or does not."""
    each_item = explanation.items or (() if not explanation.id else (explanation,))
    missing = [_missing_hint(each) for each in explanation.unanswered]
    return Output(
        json=_explanation_json(explanation) | {"items": [_explanation_json(each) for each in explanation.items]},
        lines=[*_intro_lines(explanation), *(line for each in each_item for line in _explanation_lines(each))],
        blocks=[
            *((one_line(explanation.sentence),) if not explanation.id else ()),
            *(block for each in each_item for block in _explanation_blocks(each)),
            *(Styled(each, "yellow") for each in missing),
        ],
    )


def _intro_lines(explanation: Explanation) -> Iterable[Line]:
    if not explanation.id:
        yield OutputNote(one_line(explanation.sentence))
        yield from (OutputNote(_missing_hint(each)) for each in explanation.unanswered)


def _explanation_json(explanation: Explanation) -> Json:
    hit, rival = explanation.hit, explanation.rival
    return {
        "id": explanation.id,
        "text": explanation.text,
        "outcome": explanation.outcome.value,
        "sentence": explanation.sentence,
        "rank": explanation.rank,
        "hit": None if hit is None else _explained_json(hit),
        "words": list(explanation.words),
        "rival": None if rival is None else {"id": rival.id, "score": rival.score},
        "missing": [asdict(each) for each in explanation.unanswered],
        "prompts": [json_record(each) for each in explanation.prompts],
    }


def _explained_json(hit: Hit) -> Json:
    weighed = {"score": hit.score, "parts": dict(hit.parts), "weights": dict(hit.weights)}
    return {"source": hit.source.value, "id": hit.id, "text": hit.text, **weighed, "explain": hit.explain}


def _explanation_lines(explanation: Explanation) -> Iterable[Line]:
    yield safe(explanation.id), explanation.outcome.value, one_line(explanation.sentence)
    if explanation.words:
        yield f"words: {', '.join(map(one_line, explanation.words))}"
    for each in explanation.prompts:
        yield each.call_id, plain_time(each.at), safe(each.session_id) or EMPTY, _appearance(each)


def _explanation_blocks(explanation: Explanation) -> Iterable[Block]:
    is_found = explanation.outcome is Outcome.RECALLED
    title = f"{safe(explanation.id)}: {explanation.outcome.value.replace('_', ' ')}"
    yield Styled(mark(is_found), "green" if is_found else "yellow"), Styled(title, "bold")
    if explanation.text:
        yield Styled(shorten(one_line(explanation.text)))
    yield one_line(explanation.sentence)
    if explanation.words:
        yield Styled(f"Words in common: {', '.join(map(one_line, explanation.words))}", "dim")
    for prompt in explanation.prompts:
        line = f"{prompt.call_id}, {local_time(prompt.at)}: {_appearance(prompt)}"
        yield Styled(line, "yellow" if prompt.left_out else "dim")


def _appearance(appearance: Appearance) -> str:
    """Say whether a prompt showed the record."""
    reason = appearance.left_out
    return f"not shown in {appearance.block}: {safe(reason)}" if reason else f"shown in {appearance.block}"


def _render_block(block: str | None) -> Output:
    return Output(
        json={"text": block},
        lines=[] if block is None else [safe(block)],
        blocks=[Styled("No notes.", "dim") if block is None else safe(block)],
    )
