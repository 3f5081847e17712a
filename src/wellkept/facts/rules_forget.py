"""Recognise a user's request to forget something, in the user's own words, and find what is meant.

Only the unmistakable ones: a verb of forgetting, and a thing of the user's or "what I said about …", and nothing else
in the sentence that could turn it around. "Forget it",
"forget the cancellation, I stay" and "delete the file" are none.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wellkept.facts import rules_signs as signs
from wellkept.facts.rules_statements import USER, Statement, find_values, read_statement, weigh
from wellkept.facts.rules_words import CODES, FOLDER, join_lines, load_attributes, load_words
from wellkept.language.text import terms

MAX_CHARS = 200
"""Characters of a request; a longer sentence says more than that."""


def _load_forms() -> tuple[tuple[re.Pattern[str], ...], re.Pattern[str], re.Pattern[str]]:
    """Return the forms of requests in all languages, what each contains, and what none may contain."""
    source = tomllib.loads((FOLDER / "forget.toml").read_text("utf-8"))
    signs_of_all = source.pop("all")
    forms = []
    for parts in source.values():
        polite, tail, worked_on = (join_lines(parts.get(name, "")) for name in ("polite", "tail", "worked_on"))
        for form in join_lines(parts["forms"], "\n    ").splitlines():
            forms.append(re.compile(polite + form.replace("<worked_on>", worked_on) + tail + "[.! ?]*$"))
    verbs, against = (re.compile(join_lines(signs_of_all[name])) for name in ("verbs", "against"))
    return tuple(forms), verbs, against


_FORMS, _VERBS, _AGAINST = _load_forms()
_AGAINST_AFTER_POLITE = re.compile(r"^(?:would you|i would (?:like|prefer)|i'd (?:like|prefer))\b")
MAX_ABOUT_WORDS = 10


def find_forget_request(sentence: str) -> str:
    """Return what a user asks to forget; empty if the sentence is no unmistakable request.

    >>> find_forget_request("Please forget my old address."), find_forget_request("Delete what I said about Tom")
    ('my old address', 'tom')
    >>> find_forget_request("Forget it, let's move on"), find_forget_request("Don't forget my birthday!")
    ('', '')
    """
    lowered = " ".join(sentence.lower().replace("’", "'").split())
    if len(lowered) > MAX_CHARS or not _VERBS.search(lowered):
        return ""
    rest = _AGAINST_AFTER_POLITE.sub("", lowered)
    if _AGAINST.search(rest) or signs.CITED.match(sentence) or '"' in sentence or "“" in sentence or "„" in sentence:
        return ""
    found = next(filter(None, (form.match(lowered) for form in _FORMS)), None)
    about = found["about"].strip(" .!?\"'") if found else ""
    return about if len(about.split()) <= MAX_ABOUT_WORDS and about not in _POINTING else ""


_POINTING = frozenset("it that this them me you us everything all".split())


WORDS_SHARE = 0.7
"""Weight of the words that a fact shares with what is asked for; the rest is the cosine of the two."""

CLEAR = 0.75
"""Score from which a text is meant, and below which it is only named as a candidate."""

RELATED = 0.24
"""Score from which something is named as a candidate; fitted to pairs such as "my car" and "Drives a Tesla"."""

MARGIN = 0.35
"""Distance below the best within which others are meant as well, or may be."""

MAX_CLEAR_CHARS = 300
"""Characters of a text that one shared subject can mean; a longer one says more, so it is only named."""

MAX_CANDIDATES = 10
MAX_ONE_WORDS = 3
_RELATIONS = frozenset(name for code in CODES for name in load_words(code).relations.values())
_OF_ONE = tuple("my |the |her |his |our |mein|unser|der |die |das |mon |ma |le |la |mi |el ".split("|"))
_FORMER = frozenset(terms("old former previous ex past alte alten alter ancien ancienne antigua antiguo anterior"))
_EMPTY = frozenset(terms("thing things everything stuff say said tell told"))


@dataclass(frozen=True, slots=True)
class Meant:
    """Numbers of the memories that are meant, best first, and whether it is clear."""

    seqs: tuple[int, ...] = ()
    is_clear: bool = False

    @classmethod
    def choose(
        cls, about: str, facts: Sequence[tuple[int, bool]], texts: Sequence[str], scores: Sequence[float]
    ) -> Meant:
        """Choose among facts, each with True if it has ended: those that are clearly meant, or else candidates.

        "My appointment" is unclear if there are two, each with a date or a name of its own.
        """
        text_of = {seq: text for (seq, _), text in zip(facts, texts, strict=True)}
        rated = sorted(zip(scores, facts, strict=True), key=lambda each: -each[0])
        if not rated or rated[0][0] < RELATED:
            return cls()
        best = rated[0][0]
        chosen = [each for each in rated if each[0] >= max(CLEAR, best - MARGIN)]
        if _FORMER & frozenset(terms(about)) and any(has_ended for _, (_, has_ended) in chosen):
            # "My old address" is the one that has been replaced.
            chosen = [each for each in chosen if each[1][1]]
        told = [read_statement(text_of[seq]) for _, (seq, _) in chosen]
        values = [find_values(each) | each.subjects - _RELATIONS - {USER} for each in told]
        is_one = about.lower().startswith(_OF_ONE) and len(about.split()) <= MAX_ONE_WORDS
        is_unclear = is_one and all(values) and len(values) > 1 and not frozenset.intersection(*values)
        if chosen and not is_unclear:
            return cls(tuple(seq for _, (seq, _) in chosen), is_clear=True)
        likely = max(RELATED, best - MARGIN)
        return cls(tuple(seq for score, (seq, _) in rated[:MAX_CANDIDATES] if score >= likely))


def rate_meant(text: str, shared: float, cosine: float, least: float = 0.0) -> float:
    """Rate how likely a text is meant; clearly only if it shares words, `least` of them, and does not say much more."""
    is_sure = shared > 0 and shared >= least and len(text) <= MAX_CLEAR_CHARS
    return shared + cosine if is_sure else min(shared + cosine, CLEAR - 0.01)


def find_meant(about: str, texts: Sequence[str]) -> Mapping[int, float]:
    """Return the places of the texts that share something with what is asked for, each with the weight of that.

    >>> find_meant("my old address", ["My address is Elm Row 4.", "I like tea."])
    {0: 0.7}
    """
    wanted = read_statement(about)
    stems = {stem for stem in terms(about) if weigh(stem, wanted.language) > 0} - _FORMER - _EMPTY
    relations = {load_words(code).relations.get(word, "") for code in CODES for word in about.lower().split()} - {""}
    if not stems and not relations:
        return {}
    total = sum(weigh(stem, wanted.language) for stem in stems) or 1.0
    is_own = not relations and wanted.subjects == {USER}
    numbers = frozenset(stem for stem in terms(about) if stem.isdigit())
    found = {}
    for place, text in enumerate(texts):
        fact = read_statement(text)
        is_of_another = fact.subjects and USER not in fact.subjects and not fact.is_thing
        if is_own and is_of_another:
            continue
        share = sum(weigh(stem, wanted.language) for stem in stems if _has(fact, stem)) / total
        if relations and relations <= fact.subjects | fact.mentions:
            share = max(share, 1.0 if len(about.split()) <= MAX_SOMEBODY_WORDS else A_HALF)
        if share > 0:
            has_numbers = numbers <= frozenset(terms(text))
            found[place] = WORDS_SHARE * share * (1.0 if has_numbers else A_HALF)
    return found


MAX_SOMEBODY_WORDS = 2
"""Words of a request that names somebody and nothing of theirs: "my brother"."""

A_HALF = 0.5


def _has(fact: Statement, stem: str) -> bool:
    return stem in fact.stems or stem in load_attributes().get(fact.attribute, ())
