"""Cues of all languages in one table each; their words are too different to be confused."""

from __future__ import annotations

from recollect.policy.lexicon import english_cues
from recollect.policy.lexicon.entries import merge_cues
from recollect.policy.lexicon.languages import LEXICONS

CUES = {
    name: merge_cues([table, *(lexicon.cues[name] for lexicon in LEXICONS if name in lexicon.cues)])
    for name, table in english_cues.CUES.items()
}
