"""Cues of all languages: what sounds like a decision, a finished task, an error, or an instruction to remember."""

from __future__ import annotations

import re

from wellkept.language.entries import merge_cues
from wellkept.language.languages import LEXICONS

COUNTED_FAILURES = re.compile(r"\b[1-9]\d* (?:\w+ )?(?:failed|failures?|errors?)\b")
"""Failures among many successes; they outweigh the completion."""

YES_NO_STARTS = frozenset(
    "did does do is are was were has have had can could will would should may might shall any am isn't aren't".split()
    + "didn't doesn't don't wasn't weren't hasn't haven't".split()
)
"""First words of questions that ask whether something happened instead of reporting it."""

DEFINITION = re.compile(r"^(?:what (?:does|is|are|do)|what's|who|where|which|explain)\b(?!.*\b(?:i|my|we|our|me)\b)")
"""Questions about the meaning of a word rather than about an event."""

_AMOUNT = r"\d[\d.,]{0,15} ?(?:k|m|bn|million|billion)?"
_CURRENCIES = "usd|eur|gbp|chf|jpy|dollars?|euros?|bucks|cents|quid|francs?|yen|rupees?"
MONEY = re.compile(
    rf"(?:[$€£¥₹]|\b(?:usd|eur|gbp|chf|us\$)) ?\d|{_AMOUNT} ?(?:[€£¥₹]|(?:{_CURRENCIES})\b)"
    r"|\b(?:budget|invoice|price|salary|payment|refund|rent|fee|deposit|loan|mortgage)\b(?: \w{1,30}){0,4}"
    rf" {_AMOUNT}\b(?! ?(?:%|percent|days?|weeks?|months?|years?|hours?))"
)
"""Amounts of money in figures; "pounds" alone may be a weight."""

MONEY_SIGNS = tuple(
    """$ € £ ¥ ₹ usd eur gbp chf jpy dollar buck cent quid franc yen rupee budget invoice price salary payment refund
    rent fee deposit loan mortgage""".split()
)
"""Letters without which no amount of money is in a text."""

MONEY_IN_WORDS = re.compile(r"(?:hundred|thousand|illion|ty) (?:dollars|euros|pounds|francs|yen)\b")

APPROVAL = re.compile(r"\b(?:approv(?:e|es|ed|al|als|ing)|sign(?:ed)?[- ]off|authori[sz]ation|go-ahead)\b(?! rating)")
PERSONAL = re.compile(
    r"\b(?:my name is|i (?:prefer|live|work|hate|love|always|never|usually|am)|i'm (?:allergic|vegan|based|a\b)"
    r"|my (?:favou?rite|wife|husband|partner|birthday|address|daughter|son|boss|manager)|call me)\b"
)
"""Facts about the user, which are recalled most often."""

CUES = {
    name: merge_cues(lexicon.parse_cues(name) for lexicon in LEXICONS)
    for name in ("explicit", "remember", "decision", "task_completion", "error")
}
"""Cues of all languages; their words are too different to be confused."""

FACTS = {lexicon.code: lexicon.read_facts() for lexicon in LEXICONS}
"""Patterns of facts in conversations, by language."""

UNSPACED_FACT = re.compile(
    r"(?:我们?|我們|咱们|本公司)(?:的|家|公司|团队|叫|是|住|在|有|喜欢|喜歡|不喜|不吃|对|對|从|每|都|只|用)"
    r"|(?:私|僕|俺|うち|弊社|当社|我々)(?:は|の|たち)|担当者は"
)
"""Chinese and Japanese statements about the speaker."""

UNSPACED_OTHER = re.compile(
    r"[?？]|吗|呢|请|請|ください|ですか|ますか|でしょうか|ましょうか|下さい|想|たい|知りたい|お願い"
)
"""Chinese and Japanese questions, wishes and requests."""
