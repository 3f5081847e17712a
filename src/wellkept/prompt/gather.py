"""Gather everything that may enter the next prompt, without duplicates and before any cut; render single blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from wellkept.deadline import check_deadline
from wellkept.errors import Invalid, NotFound
from wellkept.facts.profile import Profiles
from wellkept.facts.rules_profile import select_lines
from wellkept.knowledge.skills import Skills
from wellkept.language.names import memory_id, memory_seq
from wellkept.language.text import check_text, fold
from wellkept.language.values import MAX_LIMIT
from wellkept.memory.rules_filters import Condition
from wellkept.memory.rules_importance import is_small_talk
from wellkept.memory.rules_trust import is_suspicious
from wellkept.meter import METER
from wellkept.model import Conversation, Hit, Kind, Memory, Outcome, Owner, Recalled, Role, Source
from wellkept.model.stored import ToolResult
from wellkept.prompt.rules_escaping import break_false_references, escape_item, find_keys
from wellkept.prompt.rules_relevance import InjectMode, choose_notes, parse_mode, render_notes, select_notes
from wellkept.prompt.rules_window import (
    REMEMBERED,
    SHOWN_ELSEWHERE,
    Form,
    Layout,
    LeftOut,
    Piece,
    PromptPart,
    Window,
    identify_piece,
    private_memory,
    render_clock,
    render_group,
    render_identity,
)
from wellkept.prompt.summaries import Conversations
from wellkept.recall.recall import Recall
from wellkept.recall.rules_matching import find_best
from wellkept.recall.rules_question import ParsedQuery
from wellkept.recall.rules_ranking import RecallRequest, is_unverified, recall_block
from wellkept.shared import Shared

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_KEYS = 200
"""Maximum number of references looked up for one prompt; further ones are broken like forged ones."""


def break_forged_references(store: SqlStore, owner: Owner, texts: Sequence[str]) -> Sequence[str]:
    """Return the texts with every `[MemoryRef: …]` broken that names no detail of this agent.

    Raises: StoreError.
    """
    keys = dict.fromkeys(key for text in texts for key in find_keys(text))
    if not keys:
        return texts
    known = {key for key in islice(keys, MAX_KEYS) if _has_detail(store, owner, key)}
    return [break_false_references(text, known) if find_keys(text) else text for text in texts]


def break_forged_in_memories(store: SqlStore, owner: Owner, memories: Sequence[Memory]) -> Sequence[Memory]:
    """Return the memories with forged references broken and everything else unchanged."""
    texts = break_forged_references(store, owner, [memory.text for memory in memories])
    return [
        memory if text == memory.text else replace(memory, text=text)
        for memory, text in zip(memories, texts, strict=True)
    ]


def _has_detail(store: SqlStore, owner: Owner, key: str) -> bool:
    try:
        return store.get_detail(owner, key).is_active
    except NotFound:
        return False


MAX_NOTES = 10_000


PAGE = 100

MAX_CHARS = 1_000_000
"""Characters of one kind that are read for a prompt. Reading and rendering more would hold up other requests."""


class Blocks:
    """Service that selects notes and private memories, and renders them as blocks for prompts of a program's own."""

    def __init__(self, shared: Shared) -> None:
        self._store, self._judge, self._now, self._settings = shared.store, shared.judge, shared.now, shared.settings
        self._embedding, self._loop_guard = shared.embedding, shared.loop_guard

    def render_notes(self, owner: Owner, message: str, *, mode: str | None = None) -> str | None:
        """Return the block of notes for the last user message; None when no notes are selected.

        Raises: Invalid.
        """
        picked = self.select_notes(owner, message, mode=mode)
        self._loop_guard.note_shown(owner, [note.text for note in picked])
        return render_notes(break_forged_in_memories(self._store, owner, picked))

    def render_private(self, owner: Owner) -> str | None:
        """Return the block of core memories and journal entries, if there are any."""
        core, journal = self.list_private(owner, self._now())
        self._loop_guard.note_shown(owner, [memory.text for memory in (*core, *journal)])
        return private_memory(*(break_forged_in_memories(self._store, owner, each) for each in (core, journal)))

    def render_recalled(self, owner: Owner, recalled: Recalled) -> str | None:
        """Return the block of the hits of a recall; None if there are none."""
        texts = break_forged_references(self._store, owner, [hit.text for hit in recalled])
        hits = (replace(hit, text=text) for hit, text in zip(recalled, texts, strict=True))
        return recall_block(Recalled(hits, recalled.unanswered, recalled.heading))

    def select_notes(self, owner: Owner, message: str, *, mode: str | None = None) -> Sequence[Memory]:
        """Return the notes for the last user message, best first; notes that read like instructions come last.

        The loop guard is not informed, because the notes may still be cut from the prompt.

        Raises: Invalid.
        """
        settings, now = self._settings, self._now()
        chosen = parse_mode(settings.inject_mode if mode is None else mode)
        if chosen is InjectMode.OFF:
            return []
        notes = self._store.list_memories(owner, kind=Kind.NOTE, now=now, limit=MAX_NOTES)
        room = {"max_chars": settings.max_inject_chars, "max_count": settings.max_inject_count}
        if chosen is not InjectMode.HYBRID:
            return select_notes(notes, message, mode=chosen, now=now, judge=self._judge, **room)
        return choose_notes(notes, lambda: self._rank_notes(owner, message, now), now=now, judge=self._judge, **room)

    def _rank_notes(self, owner: Owner, message: str, now: datetime) -> Sequence[str]:
        """Return the ids of the notes, most relevant to the message first; none for small talk."""
        if not message.strip() or is_small_talk(message):
            return []
        query = ParsedQuery.read(message, now)
        # The question first: the embedder may have to be loaded, which is not to use up the time for the others.
        vector = self._embedding.move_to_answer(self._embedding.of_query(message))
        self._embedding.prepare(owner)
        evidence = self._store.weigh_memories(owner, query.lookups, vector, kinds=[Kind.NOTE], now=now)
        return [*map(memory_id, find_best(evidence, query, limit=self._settings.max_inject_count))]

    def list_private(self, owner: Owner, now: datetime) -> tuple[Sequence[Memory], Sequence[Memory]]:
        """Return the live core memories and journal entries, each oldest first, suspicious ones last.

        Beyond `MAX_CHARS` characters of a kind, its oldest memories are left out.
        """
        core, journal = (
            sorted(
                map(self._judge, self._list_newest(owner, kind, now)),
                key=lambda memory: (is_suspicious(memory), memory.created_at, memory_seq(memory.id) or 0),
            )
            for kind in (Kind.CORE, Kind.JOURNAL)
        )
        return core, journal

    def _list_newest(self, owner: Owner, kind: Kind, now: datetime) -> Sequence[Memory]:
        found: list[Memory] = []
        room, before = MAX_CHARS, None
        while True:
            check_deadline()
            page = self._store.list_memories(owner, kind=kind, now=now, before=before, limit=PAGE)
            for memory in page:
                room -= len(memory.text)
                if room < 0:
                    return found
                found.append(memory)
            if len(page) < PAGE:
                return found
            before = memory_seq(page[-1].id)


MAX_TOOL_RESULTS = 20
"""Maximum number of stored tool results in a prompt, the newest; older ones can be recalled."""

SPARE = 3
"""Factor of hits recalled over hits shown, since some are in the prompt already."""

FAR_BEHIND = 0.3
"""Share of the best hit's relevance below which a fact is not shown beside the block of facts."""

MAX_BESIDE = 2
"""Maximum number of facts beside the block."""

SURE = 0.6
"""Relevance from which a turn that states no fact is shown beside the block."""

OWN_KINDS = (Kind.CORE, Kind.JOURNAL, Kind.NOTE)
"""Kinds that enter a prompt without being recalled."""

STORED = (*REMEMBERED, PromptPart.TOOL_RESULTS)
"""Parts with untrusted text, in which forged references are broken. Conversation turns stay unchanged."""

SPEAKERS = (Role.USER, Role.ASSISTANT)

CHARS_PER_TOKEN = 5
"""Characters read of a conversation for each token of the budget: more than fit, whatever the language."""


OMITTED = "{} of this conversation are left out."


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRequest:
    """Validated arguments of one context call."""

    owner: Owner
    session_id: str  # empty: no earlier turns
    message: str
    system_prompt: str | None
    tool_results: Sequence[ToolResult] | None
    layout: Layout
    budget: int
    now: datetime
    participants: Sequence[str]  # of a group conversation
    is_asking: bool  # there is something to recall; for small talk ("thanks, that's all") nothing is
    min_relevance: float | None = None  # least relevance of what is recalled; None: no limit
    where: Condition | None = None  # only memories that meet it are recalled


MAX_PASSAGES = 5
"""Passages of documents that may enter one prompt."""


class Gather:
    """Service that reads every source once and returns the pieces by part."""

    def __init__(
        self,
        shared: Shared,
        blocks: Blocks,
        profiles: Profiles,
        recall: Recall,
        skills: Skills,
        conversations: Conversations,
    ) -> None:
        self._store, self._judge, self._blocks, self._recall = shared.store, shared.judge, blocks, recall
        self._profiles, self._skills, self._conversations = profiles, skills, conversations
        self._limits = {PromptPart.MEMORIES: shared.settings.context_memories, PromptPart.KNOWLEDGE: MAX_PASSAGES}

    def __call__(self, request: PromptRequest) -> Window:
        """Gather the pieces of the next prompt.

        Raises: Invalid.
        """
        owner = request.owner
        core, journal = self._blocks.list_private(owner, request.now)
        pieces: dict[PromptPart, Sequence[Piece]] = {
            PromptPart.SYSTEM_PROMPT: self._system_prompt(request),
            PromptPart.CLOCK: [Piece(id="clock", text=render_clock(request.now))],
            PromptPart.SKILLS: [Piece(id=each.name, text=each.body) for each in self._skills.for_agent(owner)],
            PromptPart.CORE: _memory_pieces(core),
            PromptPart.JOURNAL: _memory_pieces(journal),
            PromptPart.NOTES: _memory_pieces(self._blocks.select_notes(owner, request.message)),
            PromptPart.CONVERSATION: self._conversation(request),
            PromptPart.TOOL_RESULTS: self._tool_results(request),
            PromptPart.MESSAGE: [Piece(id="message", role="user", text=request.message)]
            if request.message.strip()
            else [],
        }
        facts = self._profiles.list_told(owner)
        pieces[PromptPart.PROFILE] = self._profile(facts, pieces)
        left_out: dict[PromptPart, tuple[LeftOut, ...]] = {}
        if request.is_asking:
            limit = min(MAX_LIMIT, SPARE * max(1, *self._limits.values()))
            wanted = RecallRequest(
                query=request.message,
                limit=limit,
                min_relevance=request.min_relevance,
                where=request.where,
                keeps_sources=True,
                is_asking=True,
            )
            hits = self._recall.rank(owner, wanted).hits
            METER.get().count_recall("context", is_empty=not hits)
            # The nearest memories are worth the room that is left; long passages and records of others are not.
            is_cut = request.min_relevance is not None
            weak = [hit for hit in hits if hit.weak and not is_cut]
            strong = [hit for hit in hits if is_cut or not hit.weak]
            passages = sorted((hit for hit in strong if hit.source is Source.KNOWLEDGE), key=lambda hit: -hit.relevance)
            memories = [hit for hit in strong if hit.source is not Source.KNOWLEDGE]
            memories += [hit for hit in weak if hit.source is Source.MEMORY]
            memories = _select_beside_block(memories, facts, pieces[PromptPart.PROFILE])
            known = _ShownPieces(pieces)
            for part, found in ((PromptPart.MEMORIES, memories), (PromptPart.KNOWLEDGE, passages)):
                most, is_passage = self._limits[part], part is PromptPart.KNOWLEDGE
                pieces[part], elsewhere = known.select_new(map(_hit_piece, found), most=most)
                below = [hit for hit in weak if hit not in found and (hit.source is Source.KNOWLEDGE) is is_passage]
                left_out[part] = (*elsewhere, *map(_leave_out_weak, below[:most]))
        checked = {part: tuple(self._break_references(owner, part, each)) for part, each in pieces.items()}
        return Window(layout=request.layout, pieces=checked, left_out=left_out)

    def _profile(self, facts: Sequence[Memory], pieces: Mapping[PromptPart, Sequence[Piece]]) -> list[Piece]:
        """Return the stable block of facts, less what notes or the turns of this conversation show in full."""
        shown = [fold(piece.text) for part in (PromptPart.NOTES, PromptPart.CONVERSATION) for piece in pieces[part]]
        lines = select_lines(facts)
        return _memory_pieces([self._judge(each) for each in lines if not any(fold(each.text) in t for t in shown)])

    def rate(self, request: PromptRequest) -> Mapping[str, float]:
        """Return the relevance of core memories, journal entries and notes to the message, by id.

        Those that recall does not find are left out.
        """
        if not request.is_asking:
            return {}
        found = self._recall.rank(request.owner, RecallRequest(query=request.message, limit=MAX_LIMIT, kinds=OWN_KINDS))
        return {hit.id: hit.relevance for hit in found.hits}

    def _break_references(self, owner: Owner, part: PromptPart, pieces: Sequence[Piece]) -> Sequence[Piece]:
        """Break forged references in pieces that come from the store or from a tool."""
        if part not in STORED:
            return pieces
        texts = break_forged_references(self._store, owner, [piece.text for piece in pieces])
        return [
            piece if text == piece.text else _with_text(piece, text) for piece, text in zip(pieces, texts, strict=True)
        ]

    def _system_prompt(self, request: PromptRequest) -> list[Piece]:
        """Return the given system prompt, the agent's own or, if that is blank, its name; then its group."""
        agent, text = self._store.find_agent(request.owner), request.system_prompt
        name, own = (request.owner.agent, "") if agent is None else (agent.name, agent.system_prompt)
        if text is None:
            text = own
        pieces = [Piece(id="system prompt", text=text if text.strip() else render_identity(name))]
        itself = (fold(name), fold(request.owner.agent))
        others = [each for each in request.participants if fold(each) not in itself]
        return [*pieces, Piece(id="participants", text=render_group(others))] if others else pieces

    def _conversation(self, request: PromptRequest) -> list[Piece]:
        if not request.session_id:
            return []
        max_chars = CHARS_PER_TOKEN * request.budget
        return _conversation_pieces(self._conversations(request.owner, request.session_id, max_chars=max_chars))

    def _tool_results(self, request: PromptRequest) -> list[Piece]:
        """Return the given tool results; without any, those stored for this session."""
        if request.tool_results is not None:
            return [_parse_tool_result(number, each) for number, each in enumerate(request.tool_results, start=1)]
        if not request.session_id:
            return []
        stored = self._store.list_tool_results(
            request.owner, request.session_id, now=request.now, limit=MAX_TOOL_RESULTS
        )
        return [
            Piece(id=each.id, text=each.text, label=f"{each.id}, {each.created_at:%Y-%m-%d %H:%M}", memory=each)
            for each in map(self._judge, reversed(stored))
        ]


def _select_beside_block(hits: Sequence[Hit], facts: Sequence[Memory], block: Sequence[Piece]) -> list[Hit]:
    """Return the hits that are worth a line beside the block of facts, best first.

    What a turn states stands as facts of its own, so it is shown by that of its facts that is nearest to the message;
    other talk is worth its room only if it surely helps. Memories of other kinds stay, as does what has ended, which is
    only found by a question about the past.
    """
    if not facts:
        return list(hits)
    stated: dict[str, list[Memory]] = {}
    for fact in facts:
        for source in fact.sources:
            stated.setdefault(source, []).append(fact)
    own = {hit.id: hit.relevance for hit in hits}
    least = FAR_BEHIND * max(own.values(), default=0.0)
    shown = {piece.id for piece in block}
    chosen: dict[str, Hit] = {}
    for hit in hits:
        memory = hit.memory
        is_talk = memory is not None and memory.session_id is not None and memory.role in SPEAKERS
        if memory is None or not is_talk or memory.ended_as is not None:
            chosen.setdefault(hit.id, hit)
        elif memory.told is not None or hit.id in stated:
            fact = max(stated.get(hit.id, [memory]), key=lambda each: own.get(each.id, 0.0))
            if fact.id not in shown and len(shown) < len(block) + MAX_BESIDE and hit.relevance >= least:
                shown.add(fact.id)
                chosen[fact.id] = replace(hit, id=fact.id, text=fact.text, memory=fact)
        elif hit.relevance >= SURE:
            chosen.setdefault(hit.id, hit)
    return list(chosen.values())


class _ShownPieces:
    """Index of the pieces the prompt already shows, by identity."""

    def __init__(self, pieces: Mapping[PromptPart, Sequence[Piece]]) -> None:
        self._places: dict[str, PromptPart] = {}
        for part in (*REMEMBERED[:4], PromptPart.CONVERSATION, PromptPart.TOOL_RESULTS):
            for piece in pieces[part]:
                for name in identify_piece(piece):
                    self._places.setdefault(name, part)

    def select_new(self, found: Iterable[Piece], *, most: int) -> tuple[list[Piece], tuple[LeftOut, ...]]:
        """Return the first pieces that are not shown yet, at most `most`, and those skipped because they are.

        Suspicious pieces only get places that are left.
        """
        new: list[Piece] = []
        doubtful: list[Piece] = []
        left_out: list[LeftOut] = []
        for piece in found:
            if len(new) == most:
                break
            places = [self._places[name] for name in identify_piece(piece) if name in self._places]
            if places:
                left_out.append(LeftOut(piece=piece, reason=SHOWN_ELSEWHERE.format(places[0].value)))
            else:
                (doubtful if piece.is_suspicious else new).append(piece)
        return [*new, *doubtful][:most], tuple(left_out)


def _memory_pieces(memories: Sequence[Memory]) -> list[Piece]:
    return [
        Piece(id=memory.id, text=memory.text, label=memory.id, memory=memory, is_suspicious=is_suspicious(memory))
        for memory in memories
    ]


def _conversation_pieces(conversation: Conversation) -> list[Piece]:
    summary = [
        Piece(id="summary", text=escape_item(message["content"]), stored=message["content"], form=Form.SUMMARY)
        for message in conversation.messages[: len(conversation.messages) - len(conversation.turns)]
    ]
    if conversation.omitted_count:
        # A turn is two messages.
        first = conversation.summarized_count // 2 + 1
        last = (conversation.turns[0].position - 1) // 2
        name = f"turns {first} to {last}"
        summary.append(Piece(id=name, text=OMITTED.format(name.capitalize()), form=Form.SUMMARY))
    return summary + [
        Piece(id=f"turn {turn}", text=each.content, form=Form.TURN, role=each.role.value, turn=turn)
        for each in conversation.turns
        # A turn is two messages: the user's and the answer.
        for turn in [(each.position + 1) // 2]
    ]


def _leave_out_weak(hit: Hit) -> LeftOut:
    piece = Piece(id=hit.id, text=hit.text, score=hit.score, source=hit.source.value)
    return LeftOut(piece=piece, reason=Outcome.BELOW_THRESHOLD.value)


def _hit_piece(hit: Hit) -> Piece:
    """Return the piece of a hit, labelled as the loop guard expects: a memory by its id, others by their source.

    A passage begins with its title, headings and page; its label adds the id, so that the model can cite it.
    """
    label_name = hit.id if hit.source is Source.MEMORY else hit.source.value
    if hit.source is Source.KNOWLEDGE:
        label_name = f"{label_name}, {hit.id}"
    return Piece(
        id=hit.id,
        text=hit.text,
        label=f"{label_name}, {hit.created_at:%Y-%m-%d}",
        score=hit.score,
        relevance=hit.relevance,
        source=hit.source.value,
        memory=hit.memory,
        is_suspicious=is_unverified(hit),
    )


def _with_text(piece: Piece, text: str) -> Piece:
    memory = None if piece.memory is None else replace(piece.memory, text=text)
    return replace(piece, text=text, memory=memory, stored=piece.stored or piece.text)


def _parse_tool_result(number: int, result: ToolResult) -> Piece:
    if isinstance(result, str):
        result = {"content": result}
    if not isinstance(result.get("content"), str):
        raise Invalid('A tool result must be a text, or {"content": "…", "name": "…"}.')
    name = result.get("name") or ""
    text = check_text(result["content"], what="tool result")
    return Piece(id=f"tool {number}", text=text, label=check_text(name, what="name of a tool"))
