"""Recognise a user's request to forget something, in the user's own words.

Only the unmistakable ones: a verb of forgetting, and a thing of the user's or "what I said about …", and nothing else
in the sentence that could turn it around. "Forget it",
"forget the cancellation, I stay" and "delete the file" are none.
"""

from __future__ import annotations

import re
import tomllib

from wellkept.facts.rules_words import FOLDER, join_lines
from wellkept.memory import rules_fact_signs as signs

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
