"""Facts out of turns: statements are stored, end what they replace, and hide what is to be forgotten.

A turn is read before its transaction and written in it, so a reader sees the turn, its facts and what they ended at
once, and `profile` needs no background work. Comparing at the write costs some milliseconds: stored facts are parsed
and embedded once for a process, and only those that share something with the new statement are compared. Vectors are
those of the packaged encoder, whatever embedder the store uses, because the thresholds were fitted for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from wellkept.caller import current_caller
from wellkept.deadline import check_deadline
from wellkept.errors import ModelError
from wellkept.extension import Clock
from wellkept.facts.requests import MAX_FACTS
from wellkept.facts.rules_forget import Meant, find_forget_request, find_meant, rate_meant
from wellkept.facts.rules_pairs import Consequence, Verdict, count_evidence, judge, rate_nearness
from wellkept.facts.rules_ratings import states_something
from wellkept.facts.rules_statements import (
    Excluded,
    Statement,
    Tier,
    describe_parts,
    exchange_value,
    is_whole_clause,
    read_statement,
    read_turn,
    split_clauses,
)
from wellkept.facts.rules_words import load_words
from wellkept.language.names import memory_seq
from wellkept.language.text import content_hash
from wellkept.memory import rules_trust as trust
from wellkept.memory.changes import CONTRADICTED, Changes, find_turns, propose_change, propose_end
from wellkept.memory.remember import Edited, Remember, Similar
from wellkept.memory.rules_importance import rate_importance
from wellkept.memory.rules_lifetime import LIFETIMES, Category, Lifetimes
from wellkept.memory.rules_trust import find_instruction
from wellkept.model import AuditEvent, Change, ChangeCause, EndedAs, Forgotten, Kind, Memory, Origin, Owner, Role
from wellkept.model.stored import Vector
from wellkept.text_cache import cache_text
from wellkept.upkeep.consolidate import Contradiction

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_KNOWN = 1_000
"""Newest standing facts of a user that a turn is compared with."""

MAX_COMPARED = 150
"""Standing facts that one statement is compared with: those that share words with it, then the newest."""

MAX_READ = 40
"""Sentences of a turn that are compared with what stands; a message with more is a text."""

LEAST_NEAR = 0.3
"""Nearness of a statement below which a model is not asked about it."""

MAX_CACHED = 8_192
"""Texts whose statement and vector are kept in memory."""

NOTED = (Kind.NOTE, Kind.CORE, Kind.JOURNAL)
"""Kinds that are remembered on purpose, which a request to forget may mean besides facts."""

MAX_RELATED = 60
"""Memories near to a request to forget, of the kinds above and of facts, that are compared with it."""

MAX_FORGOTTEN = 12
"""Memories that one request in a turn may hide; more are not one subject."""

INSTRUCTION = "reads like instructions"
TOO_MANY = f"beyond the first {MAX_FACTS} facts of one call"
SAID_TWICE = "said twice in this conversation"
REASONS = {ChangeCause.TURN: "A turn said something else.", ChangeCause.ADD: "A conversation was read."}

Encode: TypeAlias = "Callable[[Sequence[str]], tuple[Vector, Vector]]"
"""Returns the vectors and the readings of texts."""

log = logging.getLogger("wellkept")


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a standing fact by a new statement, by its place in the reading."""

    seq: int  # of a stored fact; -1 - place of one of the same reading
    by: int
    verdict: Verdict
    rest: str = ""  # what stays true of the old sentence


@dataclass(slots=True)
class TurnReading:
    """Statements of a turn, compared with what stands."""

    statements: list[Statement] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)  # the message that each statement comes from
    left_out: list[tuple[int, str, str]] = field(default_factory=list)  # message, sentence and reason
    endings: list[Ending] = field(default_factory=list)
    proposals: list[Ending] = field(default_factory=list)
    repeated: dict[int, int] = field(default_factory=dict)  # numbers of facts that are said again, with the message
    hidden: list[int] = field(default_factory=list)  # numbers of memories that the user asks to forget
    is_request: bool = False  # the turn asks to forget something, so it is no memory itself


@dataclass(frozen=True, slots=True)
class WrittenTurn:
    """Memories that a reading became, and the facts that they ended with the place of the newer one."""

    added: Sequence[Memory] = ()
    ended: Sequence[tuple[int, Memory]] = ()
    change: Change | None = None
    rests: Sequence[tuple[int, Memory]] = ()  # what stays true of sentences that ended, likewise


@dataclass(slots=True)
class ParsedFact:
    """The statement of a stored fact, which gets its vector when it is first compared."""

    statement: Statement


@cache_text(MAX_CACHED)
def parse_fact(text: str) -> ParsedFact:
    """Parse the text of a stored fact, once for a process."""
    return ParsedFact(read_statement(text))


class Telling:
    """Service that reads what users tell."""

    def __init__(
        self,
        store: SqlStore,
        remember: Remember,
        changes: Changes,
        encode: Encode,
        similar: Similar,
        now: Clock,
        *,
        lifetimes: Lifetimes = LIFETIMES,
        proposes: bool = True,
    ) -> None:
        """Set up; `proposes` is False if a model decides about the ends that are not sure."""
        self._store = store
        self._remember = remember
        self._changes = changes
        self._encode = encode
        self._similar = similar
        self._now = now
        self._lifetime = lifetimes[Category.FACT]
        self._proposes = proposes

    def read(self, owner: Owner, text: str) -> TurnReading:
        """Read a user's turn and compare it with the standing facts of exactly this user."""
        reading, wanted = self._read(owner, [(0, text)])
        for _, about in wanted:
            reading.is_request = True
            meant = self.find_meant(owner, about)
            if meant.is_clear and len(meant.seqs) <= MAX_FORGOTTEN:
                reading.hidden += meant.seqs
        return reading

    def read_conversation(self, owner: Owner, messages: Iterable[tuple[int, str]]) -> TurnReading:
        """Read a user's messages, by their numbers. What they ask to forget is only left out: they are not said now."""
        reading, wanted = self._read(owner, messages)
        reading.left_out += [(turn, about, "asks to forget something") for turn, about in wanted]
        return reading

    def _read(self, owner: Owner, messages: Iterable[tuple[int, str]]) -> tuple[TurnReading, list[tuple[int, str]]]:
        """Return a reading, and what the messages ask to forget."""
        reading, wanted = TurnReading(), list[tuple[int, str]]()
        known = self.list_known(owner)
        heard = {content_hash(old.statement.text): seq for seq, old in reversed(known)}
        usual = known[0][1].statement.language if known else ""
        for turn, text in messages:
            # A later message may replace what an earlier one said, which has no number yet.
            start = len(reading.statements)
            for each in self._add_readings(list(read_turn(text, usual=usual)), heard):
                if about := find_forget_request(each.text):
                    wanted.append((turn, about))
                elif isinstance(each, Excluded):
                    reading.left_out.append((turn, each.text, each.reason))
                elif find_instruction(each.text):
                    reading.left_out.append((turn, each.text, INSTRUCTION))
                elif len(reading.statements) >= MAX_FACTS:
                    reading.left_out.append((turn, each.text, TOO_MANY))
                else:
                    self._take(reading, each, turn, known, heard)
            said = reading.statements[start:]
            known += [(-1 - place, ParsedFact(each)) for place, each in enumerate(said, start)]
        return reading, wanted

    def _add_readings(
        self, parts: Sequence[Statement | Excluded], heard: Collection[str]
    ) -> Iterator[Statement | Excluded]:
        """Add to the new statements of a turn what they are compared by, and keep remarks that rules left out."""
        new = [each for each in parts if isinstance(each, Statement) or each.remark]
        new = [each for each in new if content_hash(each.text) not in heard][:MAX_READ]
        vectors, readings = self._read_texts([each.text for each in new])
        read = dict[int, Statement]()
        for place, (each, vector, reading) in enumerate(zip(new, vectors, readings, strict=False)):
            # As in the pages that the weights were fitted to: two statements before, and one after.
            beside = [*readings[max(0, place - 2) : place], *readings[place + 1 : place + 2]]
            around = np.mean(beside, axis=0) if beside else np.zeros_like(reading)
            if found := each if isinstance(each, Statement) else each.remark if states_something(reading) else None:
                read[id(each)] = replace(found, vector=vector, reading=reading, around=around)
        return (read.get(id(each), each) for each in parts)

    def write(
        self,
        owner: Owner,
        reading: TurnReading,
        turns: Mapping[int, Sequence[Memory]],
        *,
        session_id: str | None,
        at: datetime,
        cause: ChangeCause = ChangeCause.TURN,
        metadata: Mapping[str, Any] | None = None,
    ) -> WrittenTurn:
        """Store what was said, and end what it ended; `turns` are what each message is stored as.

        The caller holds a transaction.
        """
        now = self._now()
        memories = self.make_memories(owner, reading, turns, session_id=session_id, at=at, metadata=metadata)
        encoded = self._store.encode_memories(memories)
        added = list(self._remember.add_now(owner, memories, encoded, now)) if memories else []
        ended, edited, rests = list[tuple[int, Memory]](), list[Edited](), list[tuple[int, Memory]]()
        for each in reading.endings:
            seq = each.seq if each.seq > 0 else memory_seq(added[-1 - each.seq].id) or 0
            pairs, left = self.end(owner, seq, added[each.by], each.verdict.ended_as, at=at, rest=each.rest)
            rests += [(each.by, memory) for memory in left]
            ended += [(each.by, old) for old, _ in pairs[:1]]
            if each.seq > 0:
                edited += pairs
            elif pairs:
                added[-1 - each.seq] = pairs[0][1]
                edited += pairs[1:]
        new, change = [*(added if cause is ChangeCause.ADD else ()), *(each for _, each in rests)], None
        if edited or new:
            change = self._changes.record(owner, cause, REASONS[cause], added=new, edited=edited)
        if self._proposes:
            self._propose(owner, reading.proposals, added)
        self._add_sources(owner, reading, turns, now)
        if reading.hidden:
            self.hide(owner, reading.hidden, "was forgotten because the user asked for it")
        return WrittenTurn(added, ended, change, rests)

    def _add_sources(
        self, owner: Owner, reading: TurnReading, turns: Mapping[int, Sequence[Memory]], now: datetime
    ) -> None:
        """Name the turns that say a stored fact again as its sources. The caller holds a transaction."""
        said = {seq: turns.get(turn, ()) for seq, turn in reading.repeated.items()}
        again = {seq: each.id for seq, found in said.items() for each in found if each.role is Role.USER}
        found = self._store.find_memories(owner, list(again)) if again else {}
        for seq, memory in found.items():
            if again[seq] not in memory.sources:
                self._store.update_memory(replace(memory, sources=(*memory.sources, again[seq])), replaced_at=now)

    def make_memories(
        self,
        owner: Owner,
        reading: TurnReading,
        turns: Mapping[int, Sequence[Memory]],
        *,
        session_id: str | None,
        at: datetime,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[Memory]:
        """Return the memories that the statements of a reading become."""
        said = zip(reading.statements, reading.turns, strict=True)
        made = [self._make(owner, each, turns.get(turn, ()), session_id, at) for each, turn in said]
        return [replace(each, metadata=metadata) for each in made] if metadata else made

    def end(
        self, owner: Owner, seq: int, by: Memory, ended_as: EndedAs, *, at: datetime, rest: str = ""
    ) -> tuple[Sequence[Edited], Sequence[Memory]]:
        """End a fact with the turns it came from, and keep the `rest` of its sentence; return both.

        The caller holds a transaction.
        """
        fact, now = self._store.find_memories(owner, [seq]).get(seq), self._now()
        if fact is None or not _can_end(fact, at):
            return [], []
        turns = (each for each in find_turns(self._store, owner, [fact]) if each.valid_to is None)
        marks: dict[str, Any] = {"valid_to": at, "ended_by": by.id, "ended_as": ended_as}
        edited = self._remember.edit_now(owner, [replace(each, **marks) for each in (fact, *turns)], now)
        if not rest:
            return edited, []
        kept = self.make_rest(owner, fact, rest)
        return edited, self._remember.add_now(owner, [kept], self._store.encode_memories([kept]), now)

    def make_rest(self, owner: Owner, fact: Memory, rest: str) -> Memory:
        """Return the memory of what stays true of a fact that ends."""
        kept = self._make(owner, read_statement(rest), (), fact.session_id, fact.created_at)
        return replace(kept, sources=fact.sources, metadata=fact.metadata)

    def _propose(self, owner: Owner, endings: Sequence[Ending], added: Sequence[Memory]) -> None:
        """Propose ends that are not sure enough to happen silently. The caller holds a transaction."""
        found = self._store.find_memories(owner, [each.seq for each in endings]) if endings else {}
        now, proposed = self._now(), list[Change]()
        for each in endings:
            if (fact := found.get(each.seq)) is not None and _can_end(fact, now):
                by = added[each.by]
                end = propose_end(fact, by, each.verdict.ended_as)
                proposed.append(propose_change(owner, ChangeCause.TURN, CONTRADICTED.format(by.id), [end], now))
        self._changes.propose(owner, proposed)

    def hide(self, owner: Owner, seqs: Sequence[int], why: str) -> Sequence[Memory]:
        """Hide memories with the turns they came from, restorably. The caller holds a transaction."""
        now = self._now()
        found = list(self._store.find_memories(owner, sorted({*seqs})).values())
        hidden = []
        for memory in (*found, *find_turns(self._store, owner, found)):
            is_allowed = trust.is_within(memory.origin, current_caller().trust)
            if memory.forgotten_at is None and is_allowed and self._store.can_hide(memory):
                gone = replace(memory, forgotten_at=now, archived_at=memory.archived_at or now)
                hidden.append(self._store.update_memory(gone, replaced_at=now))
        if hidden:
            ids = [memory.id for memory in hidden]
            self._record(owner, "memory.hide", f"{len(ids)} memories: each {why}.", ids)
        return [memory for memory in hidden if memory.id in {each.id for each in found}]

    def forget(self, owner: Owner, about: str) -> Forgotten:
        """Hide the memories of exactly this user that a few words mean, or name what may be meant.

        Those that cannot be hidden are named as well: notes of a workspace file, and what is trusted more.
        """
        meant = self.find_meant(owner, about)
        found = self._store.find_memories(owner, list(meant.seqs))
        hidden: Sequence[Memory] = ()
        if meant.is_clear:
            why = "was forgotten by its meaning"
            hidden = self._store.transaction(owner.tenant, lambda: self.hide(owner, meant.seqs, why))
        gone = {memory.id for memory in hidden}
        left = (found[seq] for seq in meant.seqs if seq in found)
        return Forgotten(forgotten=tuple(hidden), candidates=tuple(each for each in left if each.id not in gone))

    def find_meant(self, owner: Owner, about: str) -> Meant:
        """Find the facts, also ended ones, and the notes, core memories and journal entries meant by a few words."""
        now = self._now()
        facts = [
            *self._store.list_told(owner, now=now, limit=MAX_KNOWN),
            *self._store.list_told(owner, now=now, is_ended=True, limit=MAX_KNOWN),
        ]
        near = [
            *self._similar.find_related(owner, about, kinds=NOTED, limit=MAX_RELATED),
            *self._similar.find_related(owner, about, kinds=[Kind.EPISODE], limit=MAX_RELATED),
        ]
        related = {each.id: each for each in near if each.told is not None or each.kind in NOTED}
        known = [*{**{each.id: each for each in facts}, **related}.values()]
        shared = find_meant(about, [memory.text for memory in known])
        compared = [(each, shared.get(place, 0.0)) for place, each in enumerate(known)]
        compared = [(each, share) for each, share in compared if share > 0 or each.id in related]
        # "Team 5" means no note of team 4.
        most = max(shared.values(), default=0.0)
        vectors, _ = self._read_texts([about, *(each.text for each, _ in compared)])
        cosines = [float(vectors[0] @ each) for each in vectors[1:]] if len(vectors) else [0.0] * len(compared)
        return Meant.choose(
            about,
            [(memory_seq(each.id) or 0, each.valid_to is not None) for each, _ in compared],
            [each.text for each, _ in compared],
            [
                rate_meant(each.text, share, cosine, most if each.kind in NOTED else 0.0)
                for (each, share), cosine in zip(compared, cosines, strict=True)
            ],
        )

    def list_known(self, owner: Owner) -> list[tuple[int, ParsedFact]]:
        """Return the standing facts of exactly this user by their numbers, newest first."""
        texts = self._store.list_told_texts(owner, now=self._now(), limit=MAX_KNOWN)
        return [(seq, parse_fact(text)) for seq, text in texts]

    def _take(
        self,
        reading: TurnReading,
        new: Statement,
        turn: int,
        known: Sequence[tuple[int, ParsedFact]],
        heard: dict[str, int],
    ) -> None:
        """Add a statement to the reading, with what it ends, unless it is among those `heard`, and still stands."""
        taken = {ending.seq for ending in reading.endings}
        mark = content_hash(new.text)
        same = heard.get(mark)
        if same is not None and same not in taken:
            if same < 0:
                reading.left_out.append((turn, new.text, SAID_TWICE))
            else:
                reading.repeated[same] = turn
            return
        place = len(reading.statements)
        heard[mark] = -1 - place
        if exchanged := exchange_value(new, [old.statement.text for _, old in known]):
            # "It's the 14th, not the 4th" alone would not tell what.
            reading.statements.append(read_statement(exchanged[1], usual=new.language))
            reading.turns.append(turn)
            verdict = Verdict(Consequence.END, EndedAs.WRONG)
            reading.endings.append(Ending(known[exchanged[0]][0], place, verdict))
            return
        reading.statements.append(new)
        reading.turns.append(turn)
        for seq, old, verdict in self._judge(new, known):
            if seq not in taken and (seq > 0 or verdict.action is Consequence.END):
                found = reading.endings if verdict.action is Consequence.END else reading.proposals
                found.append(Ending(seq, place, verdict, self.find_rest(old, new)))

    def _judge(
        self, new: Statement, known: Sequence[tuple[int, ParsedFact]]
    ) -> Iterator[tuple[int, Statement, Verdict]]:
        """Yield the statements that a new one ends or may end, with what it means for them."""
        compared = ParsedFact(new)
        near = sorted(known, key=lambda each: -count_evidence(each[1].statement, new))[:MAX_COMPARED]
        self._add_vectors([compared, *(old for _, old in near)])
        for (seq, old), verdict in zip(
            near, judge([old.statement for _, old in near], compared.statement), strict=True
        ):
            if verdict.action is not Consequence.NOTHING:
                yield seq, old.statement, verdict

    def find_rest(self, old: Statement, new: Statement) -> str:
        """Return what stays true of a sentence that ends, if it can be cut cleanly; empty if it cannot.

        "I live in Turku and I keep kosher", "We moved to Aveiro": "I keep kosher."
        """
        parts = [part.strip(" .,;!") for part in split_clauses(old.text, load_words(old.language))]
        if len(parts) == 1 or not all(is_whole_clause(part, old.language) for part in parts):
            return ""
        clauses = [(place, ParsedFact(read_statement(part, usual=old.language))) for place, part in enumerate(parts)]
        ended = {place for place, _, _ in self._judge(new, clauses)}
        live = [part for place, part in enumerate(parts) if place not in ended]
        return " ".join(f"{part[0].upper()}{part[1:]}." for part in live) if len(live) < len(parts) else ""

    def find_nearest(self, new: Statement, known: Sequence[tuple[int, ParsedFact]], limit: int) -> list[int]:
        """Return the numbers of the statements that are most likely about the same, nearest first."""
        compared = ParsedFact(new)
        self._add_vectors([compared, *(old for _, old in known)])
        rated = [(rate_nearness(old.statement, compared.statement), seq) for seq, old in known]
        return [seq for nearness, seq in sorted(rated, reverse=True)[:limit] if nearness >= LEAST_NEAR]

    def find_contradictions(self, facts: Sequence[Memory], since: int) -> Iterator[Contradiction]:
        """Compare the facts of one user that were stored after the memory number `since` with those before each.

        Yield the older fact, the newer one that ends it, how, and True if that is sure and leaves nothing that is true.
        """
        ordered = sorted(facts, key=lambda memory: (memory.since, memory_seq(memory.id) or 0))
        parsed = [(place, parse_fact(memory.text)) for place, memory in enumerate(ordered)]
        for place, new in enumerate(ordered):
            if (memory_seq(new.id) or 0) > since:
                check_deadline()
                statement = parsed[place][1].statement
                for older, old, verdict in self._judge(statement, parsed[:place]):
                    is_sure = verdict.action is Consequence.END and not self.find_rest(old, statement)
                    yield ordered[older], new, verdict.ended_as, is_sure

    def _make(
        self, owner: Owner, statement: Statement, turns: Sequence[Memory], session_id: str | None, at: datetime
    ) -> Memory:
        sources = tuple(each.id for each in turns if each.role is Role.USER or _repeats(each.text, statement))
        return Memory(
            owner=owner.whole,
            kind=Kind.EPISODE,
            text=statement.text,
            role=Role.USER,
            session_id=session_id,
            importance=rate_importance(statement.text, Role.USER, Category.FACT),
            category=Category.FACT.value,
            origin=trust.lower_origin(Origin.USER, current_caller().trust),
            created_at=at,
            expires_at=None if self._lifetime is None else at + self._lifetime,
            user=owner.user or None,
            told=describe_parts(statement, is_remark=statement.tier is Tier.REMARK),
            sources=sources,
        )

    def _add_vectors(self, facts: Sequence[ParsedFact]) -> None:
        missing = [each for each in facts if each.statement.vector is None]
        vectors, readings = self._read_texts([each.statement.text for each in missing])
        for each, vector, reading in zip(missing, vectors, readings, strict=False):
            each.statement = replace(each.statement, vector=vector, reading=reading)

    def _read_texts(self, texts: Sequence[str]) -> tuple[Vector, Vector]:
        """Return the vectors and the readings of texts; none if the packaged encoder cannot be used."""
        if texts:  # most questions state nothing, and need no encoder
            try:
                return self._encode(texts)
            except ModelError as error:
                log.warning("Facts end no others: %s", error)
        return np.empty((0, 0), np.float32), np.empty((0, 0), np.float32)

    def _record(self, owner: Owner, action: str, message: str, ids: Sequence[str]) -> None:
        event = AuditEvent(
            tenant=owner.tenant,
            at=self._now(),
            action=action,
            agent_id=owner.agent,
            message=message,
            meta={"ids": list(ids)},
        )
        self._store.add_event(event)


def _can_end(fact: Memory, at: datetime) -> bool:
    is_standing = fact.valid_to is None and fact.archived_at is None and fact.since <= at
    return is_standing and trust.is_within(fact.origin, current_caller().trust)


def _repeats(answer: str, statement: Statement) -> bool:
    """Return True if an answer repeats what a statement says, such as the name of a place."""
    told = read_statement(answer[:2_000]).stems
    values = {stem for stem in statement.content if stem in told}
    return bool(values) and 2 * len(values) >= len(statement.content)
