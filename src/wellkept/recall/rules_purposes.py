"""Purposes of a recall, read from `purposes.toml`, and the questions that call for one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wellkept.errors import Invalid
from wellkept.history.rules_history import FAILURES, is_bookkeeping
from wellkept.memory import rules_trust as instructions
from wellkept.memory.rules_lifetime import Category, find_category
from wellkept.memory.rules_trust import UNVERIFIED, is_suspicious, provenance
from wellkept.model import Hit, Recalled, Role, Source
from wellkept.prompt.rules_escaping import escape_line
from wellkept.recall.rules_ranking import weighted_sum

DEPTH = 4
"""Factor on the number of candidates, because the filter of a purpose rejects most of them."""

HEADING = "What you remember about this"
"""Heading of a recall without a purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """One kind of question, with its sources, weights and filter.

    A memory matches by its role, category or words. An event or step matches unless it is our own bookkeeping; if
    `is_narrow`, it matches only if `words` occur in its text, action or status, bookkeeping or not.
    """

    name: str
    heading: str
    sources: tuple[Source, ...]
    weights: Mapping[str, float]
    roles: Collection[Role] = ()
    categories: Collection[str] = ()
    words: re.Pattern[str] | None = None  # None matches no memory by its words
    is_narrow: bool = False  # apply `words` to events and steps as well
    failures_first: bool = False  # among the hits that are returned
    by_agent: bool = False  # one hit per agent, scored by its success rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Fields of a candidate that a purpose filters by."""

    source: Source
    text: str
    action: str = ""  # action of an event, or final status of a step
    agent_id: str | None = None
    role: Role | None = None  # this and the fields below: memories only
    category: str | None = None
    tags: Collection[str] = field(default_factory=tuple)


_SOURCE = tomllib.loads(Path(__file__).with_name("purposes.toml").read_text("utf-8"))


def _compile_words(pieces: Iterable[str]) -> re.Pattern[str]:
    words = "".join(pieces).replace("%failure%", "".join(_SOURCE["failure"]))
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


def _read_purpose(name: str, table: Mapping[str, Any]) -> Purpose:
    fields = {each: value for each, value in table.items() if each != "triggers"}
    if "words" in fields:
        fields["words"] = _compile_words(fields["words"])
    for each, kind in (("sources", Source), ("roles", Role), ("categories", Category)):
        fields[each] = tuple(map(kind, fields.get(each, ())))
    return Purpose(name=name, **fields)


PURPOSES = {name: _read_purpose(name, table) for name, table in _SOURCE["purposes"].items()}
"""Purposes by name."""

_FAILURE = _compile_words(_SOURCE["failure"])
_TRIGGERS = {name: _compile_words(_SOURCE["purposes"][name]["triggers"]) for name in _SOURCE["precedence"]}
"""Words that call for each purpose, in order of precedence."""


def check_purpose(name: str | None) -> Purpose | None:
    """Look up a purpose by name.

    Raises: Invalid.
    """
    if name is None:
        return None
    if name not in PURPOSES:
        raise Invalid(f"There is no purpose {str(name)[:40]!r}; choose {', '.join(PURPOSES)}.")
    return PURPOSES[name]


def is_relevant(purpose: Purpose, facts: Facts) -> bool:
    """Return True if a candidate matches the filter of a purpose."""
    if facts.source is Source.MEMORY:
        if facts.role in purpose.roles or find_category(facts.category) in purpose.categories:
            return True
        return purpose.words is not None and bool(purpose.words.search(" ".join([facts.text, *facts.tags])))
    is_ours = facts.source is Source.AUDIT and is_bookkeeping(facts.action)
    if purpose.by_agent and not facts.agent_id:
        return False
    if purpose.is_narrow and purpose.words is not None:
        return bool(purpose.words.search(f"{facts.text} {facts.action.replace('.', ' ')}"))
    return not is_ours


def is_failure(facts: Facts) -> bool:
    """Return True if a candidate reports a failure, by its category, status or words.

    >>> is_failure(Facts(source=Source.WORKFLOW, text="Shipped", action="failed"))
    True
    >>> is_failure(Facts(source=Source.WORKFLOW, text="No error was found", action="completed"))
    False
    """
    if facts.source is Source.MEMORY:
        return find_category(facts.category) is Category.ERROR or (
            facts.category in (None, Category.FACT) and bool(_FAILURE.search(facts.text))
        )
    if facts.source is Source.WORKFLOW:
        return facts.action in FAILURES
    return facts.action.rpartition(".")[2] in FAILURES or bool(_FAILURE.search(facts.text))


def arrange_hits(
    purpose: Purpose, hits: Sequence[Hit], failed: Collection[str], *, limit: int
) -> tuple[list[Hit], Mapping[str, str]]:
    """Order hits for a purpose; also return the ids of hits merged into another one.

    `failed` holds the ids of hits that report a failure.
    """
    if purpose.by_agent:
        return _by_agent(purpose, hits, failed)
    first = hits[:limit]
    if purpose.failures_first:
        first = sorted(first, key=lambda hit: (is_unverified(hit), hit.id not in failed))
    return [*first, *hits[limit:]], {}


def _by_agent(purpose: Purpose, hits: Sequence[Hit], failed: Collection[str]) -> tuple[list[Hit], Mapping[str, str]]:
    """Merge hits into one per agent, best track record first.

    The part `importance` is the success rate with one success and one failure added (Laplace smoothing), so that ten
    successes count more than a single one.
    """
    by_agent: dict[str, list[Hit]] = {}
    for hit in hits:
        if hit.agent_id is not None:
            by_agent.setdefault(hit.agent_id, []).append(hit)
    records = [_track_record(agent, agent_hits, failed, purpose.weights) for agent, agent_hits in by_agent.items()]
    merged = {hit.id: agent_hits[0].id for agent_hits in by_agent.values() for hit in agent_hits[1:]}
    return sorted(records, key=lambda hit: (is_unverified(hit), -hit.score)), merged


def _track_record(agent: str, hits: Sequence[Hit], failed: Collection[str], weights: Mapping[str, float]) -> Hit:
    best, successes = hits[0], sum(hit.id not in failed for hit in hits)
    parts = {**best.parts, "importance": (successes + 1) / (len(hits) + 2)}
    text = f"{agent}: {successes} of {len(hits)} went well; the most similar: {best.text}"
    return replace(best, text=text, parts=parts, weights=weights, score=weighted_sum(parts, weights))


def recall_block(recalled: Recalled) -> str | None:
    """Render recalled hits for a prompt, one line each, below a heading; return None if there are no hits.

    The text of a hit is data, so it is kept on a single line.
    """
    if not recalled:
        return None
    lines = map(_render_hit, sorted(recalled, key=is_unverified))
    return "\n".join([f"## {recalled.heading or HEADING}", *lines])


def _render_hit(hit: Hit) -> str:
    source = f"{hit.source.value} {escape_line(hit.id)}, {hit.created_at:%Y-%m-%d}"
    return f"- ({source}) {_origin_mark(hit)}{escape_line(hit.text)}"


def is_unverified(hit: Hit) -> bool:
    """Return True if a hit reads like instructions; sources without approval are judged by their words."""
    return is_suspicious(hit.memory) if hit.memory is not None else instructions.find_instruction(hit.text) is not None


def _origin_mark(hit: Hit) -> str:
    if hit.memory is not None:
        return provenance(hit.memory)
    return f"[{UNVERIFIED}] " if is_unverified(hit) else ""


MAX_PURPOSES = 3
"""Maximum number of purposes for one prompt; more would crowd out the prompt itself."""


def find_purposes(prompt: str, *, is_first: bool, has_tools: bool) -> Sequence[str]:
    """Return the purposes a prompt calls for.

    `is_first` marks the first prompt of a conversation, which starts a task. `has_tools` says that the agent can choose
    a tool.

    >>> find_purposes("Should we approve the refund?", is_first=False, has_tools=True)
    ['decision_memo']
    >>> find_purposes("Deploy the release", is_first=True, has_tools=True)
    ['task_intake', 'tool_selection']
    >>> find_purposes("Thank you!", is_first=False, has_tools=True)
    []
    """
    names = ["task_intake"] if is_first else []
    names += [name for name, words in _TRIGGERS.items() if words.search(prompt)]
    if not has_tools and "tool_selection" in names:
        names.remove("tool_selection")
    assert set(names) <= set(PURPOSES)
    return names[:MAX_PURPOSES]
