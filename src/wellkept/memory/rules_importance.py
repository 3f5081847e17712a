"""Categorise episodes and rate their importance when they are stored, without a model.

Chatter is routine: small talk, reactions, and questions that carry no fact of their own. A text is chatter if each of
its sentences is. A sentence is, if it has next to no word besides function words and words that react or judge, or if
it asks without saying anything about the speaker, a person, a date or a number. In doubt a text is kept. One that
sounds like a decision, a finished task or an error is that, unless a person speaks of themselves; every other statement
is a fact. A long answer of an assistant is never a fact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wellkept.language.languages import (
    ANY,
    LEXICONS,
    Lexicon,
    find_language,
    index_phrases,
    match_phrase,
    merge_cues,
    split_words,
)
from wellkept.language.text import SMALL_TALK as OTHER_SMALL_TALK
from wellkept.memory.rules_lifetime import ANSWERING, Category, is_long_answer
from wellkept.model import Role

if TYPE_CHECKING:
    from wellkept.language.languages import CueTable


MAX_CHATTER_CHARS = 600
"""Maximum length of chatter; a longer text says something."""

SMALL_TALK_MAX_CHARS = 120
"""Maximum length of small talk."""

MAX_CONTENT = 1
MAX_CONTENT_TO_YOU = 2
MAX_CONTENT_OF_REACTION = 2
MAX_CONTENT_OF_REACTION_TO_YOU = 4
"""Content words of a remark; of one about "you"; and of both when they start as a reaction ("Wow, …")."""

PERSONS = split_words("he she him her his they their we")
"""English words for people, who a statement may be about."""

BARE = split_words(
    "next today tomorrow then too there well team guys folks test testing shorter later stop wait please"
)
"""Small talk that is none beside a word that could be meant: "next" alone, but not "next trip"."""

PHRASES = {lexicon.code: index_phrases(lexicon.phrases) for lexicon in (*LEXICONS, ANY)}

# A name that some programs put before each message of a chat.
_LABEL = re.compile(r"[A-Z][\w.'’-]{0,30}(?: [A-Z][\w.'’-]{0,30}){0,2}: ")
_TOKEN = re.compile(r"[^\W_]+(?:['-][^\W_]+)*|[,.!?;:…\n]")
_DIGIT = re.compile(r"\d")
SMALL_TALK_PHRASES = index_phrases(ANY.small_talk | {" ".join(_TOKEN.findall(phrase)) for phrase in OTHER_SMALL_TALK})
_PUNCTUATION = frozenset(",.!?;:…\n")
_SENTENCE_ENDS = frozenset(".!?…\n")


def is_chatter(text: str) -> bool:
    """Return True if a text is nothing but small talk, reactions and empty questions.

    >>> is_chatter("Wow, that sounds amazing! How was your weekend?")
    True
    >>> is_chatter("Wow, your brother bought the boat."), is_chatter("Maria owns the shop")
    (False, False)
    """
    body = _remove_label(text)
    if len(body) > MAX_CHATTER_CHARS or _DIGIT.search(body):
        return False
    if is_small_talk(body):
        return True
    tokens = _TOKEN.findall(body)
    words = [token.lower() for token in tokens]
    lexicon = find_language(body.lower(), words) or ANY
    return all(_is_empty(sentence, lexicon) for sentence in _split_sentences(tokens))


def _remove_label(text: str) -> str:
    label = _LABEL.match(text)
    return (text[label.end() :] if label else text).replace("’", "'")


def has_first_person(text: str, known: Collection[str] | None = None) -> bool:
    """Return True if the speaker talks about themselves. `known` are the words of the text, if the caller has them.

    >>> has_first_person("Mi hermano se mudó"), has_first_person("I decided to move"), has_first_person("We agreed")
    (True, True, False)
    """
    if known is not None and ANY.first_person.isdisjoint(known):
        return False
    lowered = text.lower().replace("’", "'")
    words = _TOKEN.findall(lowered)
    # A short sentence may not tell its language; then the words of any language count, which keeps rather than forgets.
    lexicon = find_language(lowered, words) or ANY
    return not lexicon.first_person.isdisjoint(words)


def _split_sentences(tokens: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the tokens of each sentence, with the mark that ends it."""
    start = 0
    for place, token in enumerate(tokens):
        if token in _SENTENCE_ENDS and (place + 1 == len(tokens) or tokens[place + 1] not in _SENTENCE_ENDS):
            yield tokens[start : place + 1]
            start = place + 1
    if start < len(tokens):
        yield tokens[start:]


def is_small_talk(text: str) -> bool:
    """Return True if `text` is nothing but thanks, greetings and acknowledgements.

    >>> is_small_talk("Thanks Anna, see you tomorrow!"), is_small_talk("ok, deploy it")
    (True, False)

    The name that a question ends with is what it asks about.

    >>> is_small_talk("Hi Anna, how are you?"), is_small_talk("Nice, France?"), is_small_talk("Great Canyon trip?")
    (True, False, False)
    """
    if len(text) > SMALL_TALK_MAX_CHARS:
        return False
    is_question, asks_about_name = text.rstrip().endswith("?"), False
    spelled = [token for token in _TOKEN.findall(text.replace("’", "'")) if token not in _PUNCTUATION]
    words = [word.lower() for word in spelled]
    if words and words[0] not in SMALL_TALK_PHRASES and words[0] not in ANY.courtesies:
        return False
    position, may_name, phrases, others = 0, False, 0, 0
    while position < len(words):
        if length := match_phrase(words, position, SMALL_TALK_PHRASES):
            phrase = " ".join(words[position : position + length])
            position, may_name, phrases = position + length, phrase in ANY.greetings, phrases + (phrase not in BARE)
            asks_about_name &= length == 1
            continue
        is_name = may_name and spelled[position][0].isupper()
        if not is_name and words[position] not in ANY.courtesies:
            return False
        asks_about_name |= is_name
        position, may_name, others = position + 1, False, others + 1
    if is_question and asks_about_name:
        return False
    return phrases > 0 or not others


def _is_empty(tokens: Sequence[str], lexicon: Lexicon) -> bool:
    """Return True if a sentence states nothing."""
    spelled = _remove_phrases(tokens, [token.lower() for token in tokens], lexicon)
    words = [token.lower() for token in spelled if token not in _PUNCTUATION]
    if not words:
        return True
    if not lexicon.first_person.isdisjoint(words) or not lexicon.dates.isdisjoint(words):
        return False
    content = [
        word
        for word in words
        if word not in lexicon.common and word not in lexicon.reactions and word not in lexicon.light
    ]
    if not content:
        return True
    names = set() if lexicon.has_capital_nouns else _find_names(spelled, lexicon)
    if names:
        return False
    if tokens[-1] == "?":
        return True
    if not lexicon.relations.isdisjoint(words):
        return False
    called = _find_called(spelled)
    count = sum(word not in called for word in content)
    is_reaction = words[0] in lexicon.reactions
    if not lexicon.second_person.isdisjoint(words):
        return count <= (MAX_CONTENT_OF_REACTION_TO_YOU if is_reaction else MAX_CONTENT_TO_YOU)
    if lexicon.reactions.isdisjoint(words) or not PERSONS.isdisjoint(words):
        return False
    return count <= (MAX_CONTENT_OF_REACTION if is_reaction else MAX_CONTENT)


def _remove_phrases(tokens: Sequence[str], words: Sequence[str], lexicon: Lexicon) -> Sequence[str]:
    """Return the tokens outside stock phrases, such as "I know" and "I'm glad"."""
    phrases = PHRASES[lexicon.code]
    if phrases.keys().isdisjoint(words):
        return tokens
    kept, position = list[str](), 0
    while position < len(words):
        length = match_phrase(words, position, phrases)
        if not length:
            kept.append(tokens[position])
        position += length or 1
    return kept


def _find_called(tokens: Sequence[str]) -> set[str]:
    """Return the names of those who are spoken to, in lower case: "Thanks, Anna!"."""
    return {
        token.lower()
        for place, token in enumerate(tokens)
        if token[0].isupper() and len(tokens) > 2 and _is_apart(tokens, place)
    }


def _is_apart(tokens: Sequence[str], place: int) -> bool:
    """Return True if punctuation or a border stands on both sides of a token."""
    is_start = place == 0 or tokens[place - 1] in _PUNCTUATION
    return is_start and (place + 1 == len(tokens) or tokens[place + 1] in _PUNCTUATION)


def _find_names(tokens: Sequence[str], lexicon: Lexicon) -> set[str]:
    """Return capitalised words inside the sentence that are not spoken to."""
    return {
        token
        for place, token in enumerate(tokens)
        if place
        and token[0].isupper()
        and not _is_apart(tokens, place)
        and token.lower() not in lexicon.common
        and token.lower() not in lexicon.reactions
        and token.lower() not in lexicon.light
    }


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

MONEY_IN_WORDS = re.compile(r"(?:hundred|thousand|illion|ty) (?:dollars|euros|pounds|francs|yen)\b")

APPROVAL = re.compile(r"\b(?:approv(?:e|es|ed|al|als|ing)|sign(?:ed)?[- ]off|authori[sz]ation|go-ahead)\b(?! rating)")
PERSONAL_FACT = re.compile(
    r"\b(?:my name is|i (?:prefer|live|work|hate|love|always|never|usually|am)|i'm (?:allergic|vegan|based|a\b)"
    r"|my (?:favou?rite|wife|husband|partner|birthday|address|daughter|son|boss|manager)|call me)\b"
)
"""Facts about the user, which are recalled most often."""

CUES = {
    name: merge_cues(lexicon.parse_cues(name) for lexicon in LEXICONS)
    for name in ("explicit", "remember", "decision", "task_completion", "error")
}
"""Cues of all languages; their words are too different to be confused."""

LOW = 0.2
"""Importance below which an episode is evicted first."""

# Importance by category or, for all others, by content.
EXPLICIT = 1.0
SMALL_TALK = 0.1
QUESTION = 0.3
TOOL_OUTPUT = 0.3  # can be reproduced
STATEMENT = 0.4
PERSONAL = 0.5
WEIGHTY = 0.7  # mentions money or an approval
MONEY_BONUS = 0.1  # added to the importance of a category

BY_CATEGORY: Mapping[Category, float] = {
    Category.TASK_COMPLETION: 0.7,
    Category.DECISION: 0.8,
    Category.ERROR: 0.6,
}

MAY_INSTRUCT = frozenset({Role.USER, Role.SYSTEM})
"""Roles whose "remember this" is an instruction. Tool output is data, and an assistant only promises."""

BLOCKER_REACH = 5
"""Number of words before a cue that can negate it ("we have not, as of today, decided")."""

MAX_CHARS = 2_000
"""Characters of a text that are rated; only an instruction to remember is looked for in all of it."""

MAX_ANSWER_CHARS = 300
"""The same for a long answer, whose beginning tells if it reports a decision, a finished task or an error."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|;\s|\n")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_CLAUSE_END = re.compile(r"[,;:–—(]| but | and then | although | though ")
_LINE_SPACE = re.compile(r"[^\S\n]+")


class Judgement(NamedTuple):
    """Category and importance (0 to 1) of an episode."""

    category: Category
    importance: float


def judge(text: str, role: Role, *, is_answer: Callable[[], bool] = lambda: False) -> Judgement:
    """Judge `text` as said by `role`. `is_answer`, asked only of chatter, says if it follows another's question.

    >>> judge("Remember that I am allergic to nuts", Role.USER)
    Judgement(category=<Category.EXPLICIT: 'explicit'>, importance=1.0)
    >>> judge("We decided to keep the old logo", Role.USER).category
    <Category.DECISION: 'decision'>
    >>> judge("There is no decision yet", Role.USER).category, judge("Thanks!", Role.USER).category
    (<Category.FACT: 'fact'>, <Category.ROUTINE: 'routine'>)
    """
    if role in ANSWERING and is_long_answer(text):
        beginning = _normalize(text[:MAX_ANSWER_CHARS])
        like = _sounds_like(beginning, set(_WORD.findall(beginning)))
        return Judgement(like or Category.ROUTINE, _rate(text, beginning, role, like))
    beginning = _normalize(text[:MAX_CHARS])
    words = set(_WORD.findall(beginning))
    if role in MAY_INSTRUCT and (_is_instruction(beginning, words) or _is_instruction_later(text)):
        return Judgement(Category.EXPLICIT, EXPLICIT)
    is_courtesy = is_small_talk(_remove_label(text))
    like = None if is_courtesy else _sounds_like(beginning, words)
    importance = SMALL_TALK if is_courtesy else _rate(text, beginning, role, like)
    if like is not None:
        is_personal = role is Role.USER and has_first_person(text[:MAX_CHARS], words)
        return Judgement(Category.FACT if is_personal else like, importance)
    return Judgement(Category.ROUTINE if is_chatter(text) and not is_answer() else Category.FACT, importance)


def find_category_of_sentence(text: str) -> Category | None:
    """Return what a sentence sounds like: asked to be remembered, a decision, a finished task, an error, or nothing.

    >>> find_category_of_sentence("We decided to keep the old logo").value
    'decision'
    """
    normalized = _normalize(text[:MAX_CHARS])
    words = set(_WORD.findall(normalized))
    return Category.EXPLICIT if _is_instruction(normalized, words) else _sounds_like(normalized, words)


def rate_importance(text: str, role: Role, category: Category | None) -> float:
    """Rate how much a text of a known category matters; exactly 1 for what someone asked to remember.

    >>> rate_importance("The board approved 40,000 EUR", Role.USER, Category.DECISION)
    0.9
    """
    if category is Category.EXPLICIT:
        return EXPLICIT
    if category not in BY_CATEGORY and is_small_talk(text):
        return SMALL_TALK
    return _rate(text, _normalize(text[:MAX_CHARS]), role, category if category in BY_CATEGORY else None)


def _rate(text: str, beginning: str, role: Role, like: Category | None) -> float:
    has_money = MONEY.search(beginning) is not None or MONEY_IN_WORDS.search(beginning) is not None
    if like is not None:
        return round(BY_CATEGORY[like] + (MONEY_BONUS if has_money else 0.0), 2)
    if has_money or APPROVAL.search(beginning):
        return WEIGHTY
    if role is Role.TOOL_RESULT:
        return TOOL_OUTPUT
    if text.rstrip().endswith("?"):
        return QUESTION
    return PERSONAL if PERSONAL_FACT.search(beginning) else STATEMENT


def _normalize(text: str) -> str:
    """Convert to lower case, straight apostrophes and single spaces; line breaks stay."""
    return _LINE_SPACE.sub(" ", text.lower().replace("’", "'"))


def _is_instruction_later(text: str) -> bool:
    """Look for an instruction to remember behind the part of a long text that is rated."""
    if len(text) <= MAX_CHARS:
        return False
    rest = _normalize(text[MAX_CHARS:])
    return _is_instruction(rest, set(_WORD.findall(rest)))


def _is_instruction(normalized: str, words: set[str]) -> bool:
    """Return True if a text asks to remember something."""
    explicit, remember = CUES["explicit"], CUES["remember"]
    if words.isdisjoint(explicit.triggers) and words.isdisjoint(remember.triggers):
        return False
    for sentence in _SENTENCE_END.split(normalized):
        spoken = set(_WORD.findall(sentence))
        if _has_cue(explicit, sentence, spoken):
            return True
        if not sentence.endswith("?") and _has_cue(remember, sentence, spoken):
            return True
    return False


def _sounds_like(normalized: str, words: set[str]) -> Category | None:
    """Return the category with the longest lifetime that a sentence sounds like."""
    likely = [category for category in BY_CATEGORY if CUES[category].may_match(normalized, words)]
    if not likely:
        return None
    found: Category | None = None
    for sentence in _SENTENCE_END.split(normalized):
        spoken = _WORD.findall(sentence)
        like = _categorise_sentence(sentence.strip(), spoken, likely) if spoken else None
        if like is Category.DECISION:
            return like
        if like is Category.TASK_COMPLETION or found is None:
            found = like or found
    return found


def _categorise_sentence(sentence: str, words: list[str], likely: Collection[Category]) -> Category | None:
    known = set(words)

    def sounds_like(category: Category) -> bool:
        return category in likely and _has_cue(CUES[category], sentence, known)

    if not sentence.endswith("?"):
        if sounds_like(Category.DECISION):
            return Category.DECISION
        if sounds_like(Category.TASK_COMPLETION) and not COUNTED_FAILURES.search(sentence):
            return Category.TASK_COMPLETION
    elif words[0] in YES_NO_STARTS or DEFINITION.search(sentence):
        return None
    return Category.ERROR if sounds_like(Category.ERROR) else None


def _has_cue(table: CueTable, sentence: str, words: set[str]) -> bool:
    """Return True if a cue occurs in the sentence without a blocker before it in its clause."""
    triggers = words & table.triggers
    if not triggers and not table.by_sign:
        return False
    tried = {id(cue): cue for trigger in triggers for cue in table.by_trigger[trigger] if cue.may_match(words)}
    for sign, cue in table.by_sign:
        if sign in sentence:
            tried[id(cue)] = cue
    for cue in tried.values():
        for match in cue.pattern.finditer(sentence):
            if not _is_blocked(sentence, match.start(), cue.blockers):
                return True
    return False


def _is_blocked(sentence: str, position: int, blockers: frozenset[str]) -> bool:
    # About 16 characters per word limit how far back the clause is searched.
    before = sentence[max(0, position - BLOCKER_REACH * 16) : position]
    clause = _CLAUSE_END.split(before)[-1]
    return not blockers.isdisjoint(_WORD.findall(clause)[-BLOCKER_REACH:])
