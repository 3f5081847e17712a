"""What a question says besides its topic: whose words it asks for, and when they were said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.model import Role
from recollect.policy.dates import Span, spans
from recollect.policy.text import terms

MAX_TERMS = 64
"""A question has few words that tell; a pasted page is searched by its first ones."""

_TOLD = (
    r"(?:told|said|mention(?:ed)?|ask(?:ed)?|shared|wrote|gave|talked|explained|described|brought|recommended|suggested"
    r"|provided|listed|created|made|showed|advised|proposed|offered|named|used|called|included|calculated|came up)"
)
_I_SAID = re.compile(
    rf"\b(?:i|we)(?:'ve| have| had|'d)? (?:just |already |previously |once )?{_TOLD}\b"
    r"|\bdid i (?:say|tell|mention|ask)\b"
)
_YOU_SAID = re.compile(
    rf"\byou(?:'ve| have| had|'d)? (?:just |already |previously |once |also )?{_TOLD}\b"
    r"|\b(?:did|have|had) you\b|\byour (?:recommend|suggest|answer|advice|explanation|response|repl|list)"
    r"|\b(?:our|the) (?:previous|last|earlier|past|prior) (?:chat|conversation|discussion|session|talk)|\bremind me\b"
)
_FIRST_PERSON = re.compile(r"\b(?:i|my|mine|me|myself|we|our|ours|us)\b")


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as recall understands it."""

    terms: Sequence[str]  # distinct, as they are indexed
    speaker: Role | None = None  # who said what is asked for, if the question tells
    spans: Sequence[Span] = ()  # when, if it tells

    @classmethod
    def read(cls, query: str, now: datetime) -> Asked:
        """
        >>> from datetime import UTC
        >>> question = Asked.read("Which hotel did you recommend last May?", datetime(2026, 3, 1, tzinfo=UTC))
        >>> question.terms, question.speaker, [str(span.first) for span in question.spans]
        (['hotel', 'recommend', 'last'], <Role.ASSISTANT: 'assistant'>, ['2025-05-01'])
        """
        distinct = list(dict.fromkeys(terms(query)))[:MAX_TERMS]
        return cls(terms=distinct, speaker=asked_speaker(query), spans=spans(query, now))


def asked_speaker(query: str) -> Role | None:
    """Who said what is asked for: one asks an assistant in the first person about oneself, in the second about it.

    >>> asked_speaker("What breed is my dog?"), asked_speaker("What did you suggest?"), asked_speaker("Where is Ann?")
    (<Role.USER: 'user'>, <Role.ASSISTANT: 'assistant'>, None)
    """
    text = query.lower().replace("’", "'")
    if _I_SAID.search(text):
        return Role.USER
    if _YOU_SAID.search(text):
        return Role.ASSISTANT
    return Role.USER if _FIRST_PERSON.search(text) else None
