"""Recall: find memories by words, meaning or likeness, and explain what was found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Unpack

import click

from wellkept.cli.commands.memories import kind_cell, list_memories_of, text_cell
from wellkept.cli.options import AsOf, FilterOptions, Limit, MemoryId, MinRelevance, OfKind, name_options
from wellkept.cli.output import Block, Column, Line, Output, OutputNote, Styled, list_records, remarks
from wellkept.cli.parameters import Argument, Option, offer_words
from wellkept.cli.run import Run
from wellkept.cli.text import HINT_CHARS, json_record, local_time, mark, one_line, shorten
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
from wellkept.recall.rules_ranking import PURPOSES, check_purpose


def _parse_purpose(name: str) -> str:
    try:
        check_purpose(name)
    except Invalid as error:
        raise click.BadParameter(str(error)) from None
    return name


class QuestionOptions(FilterOptions):
    """Options of a recall."""

    kind: Annotated[list[Kind] | None, Option(metavar="KIND", help=f"Only {', '.join(Kind)}; repeat for more.")]
    as_of: AsOf
    min_relevance: MinRelevance
    source: Annotated[
        list[Source] | None,
        Option(metavar="SOURCE", help=f"Only from {', '.join(Source)}; repeat for more.", is_rare=True),
    ]
    purpose: Annotated[
        str | None,
        Option(
            metavar="PURPOSE",
            parser=_parse_purpose,
            help=f"What it is for: {', '.join(PURPOSES)}.",
            is_rare=True,
            complete=offer_words(PURPOSES),
        ),
    ]


def search(
    run: Run,
    query: Annotated[str, Argument(help="Text that memories must contain exactly, ignoring case.")] = "",
    kind: OfKind = None,
    limit: Limit = 20,
    **filters: Unpack[FilterOptions],
) -> None:
    """Find memories that contain exactly this text, newest first.

    Example: wellkept memory search tabs --tag preference"""
    found = run.memory.search(query, kind=kind, limit=limit, **name_options(filters))
    run.show(list_memories_of(run, found, if_empty="" if found else advise_on_nothing(run, query, "contains that")))


def recall(
    run: Run,
    query: Annotated[str, Argument(help="A question in your own words.")],
    limit: Limit = 5,
    explain: Annotated[bool, Option("--explain", help="Explain each score.")] = False,
    **options: Unpack[QuestionOptions],
) -> None:
    """Find what answers a question best, by meaning and by words.

    Example: wellkept recall 'how to indent code?' --explain"""
    hits = run.memory.recall(query, limit=limit, **name_options(options))
    none = "" if hits else advise_on_nothing(run, query, "fits")
    run.show(render_hits(hits, is_explained=explain, if_empty=none))


def explain(
    run: Run,
    query: Annotated[str, Argument(help="The question, as it was asked.")],
    id: Annotated[
        str | None, Option("--id", help="The record to explain, such as m-7 or a-12; all if not given.")
    ] = None,
    limit: Annotated[int, Option(help="Maximum number of results of that recall.")] = 5,
    **options: Unpack[QuestionOptions],
) -> None:
    """Explain what a question finds, or why it finds a record or does not.

    Example: wellkept memory explain 'how to indent code?'"""
    run.show(render_explanation(run.memory.explain(query, id, limit=limit, **name_options(options))))


def similar(run: Run, id: MemoryId) -> None:
    """List memories that say nearly the same, most similar first.

    Example: wellkept memory similar m-1"""
    run.show(list_memories_of(run, run.memory.review.similar(id), if_empty="Nothing else says nearly the same."))


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
    found = f"{nearest.id} {shorten(one_line(nearest.text), HINT_CHARS)}"
    return f"No memory {fits}; nearest by meaning: {found}. Ask in other words, or with fewer options."


HIT_COLUMNS = (
    # What `--min-relevance` compares; `--explain` adds the score that ranks.
    Column(
        "Relevance",
        lambda hit: Styled(f"{hit.relevance:.3f}", "dim" if hit.weak else ""),
        is_whole=True,
    ),
    Column("Id", lambda hit: hit.id, "cyan", is_whole=True),
    Column(
        "Kind",
        lambda hit: hit.source.value if hit.memory is None else kind_cell(hit.memory.kind),
        only="wide",
        is_whole=True,
    ),
)


def render_hits(hits: Recalled, *, is_explained: bool, if_empty: str = "") -> Output:
    """Render what recall found, best first."""

    def text(hit: Hit) -> Styled:
        why = ((f"\n{hit.explain}", "dim"),) if is_explained else ()
        return Styled(hit.text, spans=why) if hit.memory is None else text_cell(hit.memory, State.LIVE, *why)

    is_weak = bool(hits) and all(hit.weak for hit in hits)
    intro = [_missing_hint(each) for each in hits.unanswered]
    intro += [hits.heading] if hits and hits.heading else []
    note = NOTHING_FITS if is_weak else if_empty
    columns = [*HIT_COLUMNS, Column("Memory", text)]
    if is_explained:
        columns.append(Column("", lambda hit: hit.explain, only="pipe"))
    listed = list_records(columns, hits, intro=[*intro, *([note] if is_weak else [])], if_empty=if_empty)
    missing = [json_record(each) for each in hits.unanswered]
    found = [_hit_json(each, is_explained=is_explained) for each in hits]
    json = {"hits": found, "missing": missing, "heading": hits.heading}
    return Output(json=json | ({"note": note} if note else {}), lines=listed.lines, blocks=listed.blocks)


def _hit_json(hit: Hit, *, is_explained: bool) -> Json:
    found = json_record(hit) | {"relevance": hit.relevance, "weak": hit.weak}
    memory, document, weights = found.pop("memory"), found.pop("document"), found.pop("weights")
    if memory is not None:
        found |= {"kind": memory["kind"], "tags": memory["tags"]}
    if document is not None:
        found |= {"title": hit.title, "heading": hit.heading, "page": hit.page}
    return found | {"weights": weights, "explain": hit.explain} if is_explained else found


def _missing_hint(unanswered: Unanswered) -> str:
    """Explain which source did not answer."""
    return f"missing: {unanswered.source}. {one_line(unanswered.reason)}"


def render_explanation(explanation: Explanation) -> Output:
    """Render why a question finds something, or does not."""
    each_item = explanation.items or (() if not explanation.id else (explanation,))
    lines, blocks = remarks(map(_missing_hint, explanation.unanswered), "yellow")
    intro = [] if explanation.id else [one_line(explanation.sentence)]
    return Output(
        json=_explanation_json(explanation) | {"items": [_explanation_json(each) for each in explanation.items]},
        lines=[
            *map(OutputNote, intro),
            *([] if explanation.id else lines),
            *(line for each in each_item for line in _explanation_lines(each)),
        ],
        blocks=[*intro, *(block for each in each_item for block in _explanation_blocks(each)), *blocks],
    )


def _explanation_json(explanation: Explanation) -> Json:
    found = json_record(explanation)
    del found["hits"], found["items"]
    hit, rival = explanation.hit, explanation.rival
    if hit is not None:
        names = ("source", "id", "text", "score", "parts", "weights")
        found["hit"] = {name: found["hit"][name] for name in names} | {"explain": hit.explain}
    return found | {"rival": None if rival is None else {"id": rival.id, "score": rival.score}}


def _explanation_lines(explanation: Explanation) -> Iterable[Line]:
    yield explanation.id, explanation.outcome, explanation.sentence
    if explanation.words:
        yield f"words: {', '.join(map(one_line, explanation.words))}"
    for each in explanation.prompts:
        yield each.call_id, each.at, each.session_id, _appearance(each)


def _explanation_blocks(explanation: Explanation) -> Iterable[Block]:
    is_found = explanation.outcome is Outcome.RECALLED
    title = f"{explanation.id}: {explanation.outcome.value.replace('_', ' ')}"
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
    return f"not shown in {appearance.block}: {reason}" if reason else f"shown in {appearance.block}"
