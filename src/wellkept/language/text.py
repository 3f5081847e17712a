"""Validate text for storage, split it into search terms, and recognise the traits that recall goes by.

Words are split, folded and stemmed here once for every engine. The databases only see finished terms, so the same
search finds the same memories on both.

A trait, such as "it is a question", is stored among the terms of a memory's index entry. It has a colon, which no word
has, so it needs no column of its own and no search for words finds it. Records indexed before a trait existed lack it
until `reembed` rewrites their entries.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import Stemmer

from wellkept.errors import Invalid
from wellkept.text_cache import cache_text

_SOURCE = tomllib.loads(Path(__file__).with_name("recall.toml").read_text("utf-8"))

SELF_WORDS = frozenset(_SOURCE["self_words"].split())
TIME_WORDS = frozenset(_SOURCE["time_words"].split())
NUMBER_WORDS = frozenset(_SOURCE["number_words"].split())
NOUN_LANGUAGE_WORDS = frozenset(_SOURCE["noun_language_words"].split())
SMALL_TALK = frozenset(" ".join(_SOURCE["small_talk"].split()).split(", "))
LIGHT_WORDS: str = _SOURCE["light_words"]
ASKS_TIME = re.compile(_SOURCE["asks_time"])
ASKS_NUMBER = re.compile(_SOURCE["asks_number"])


MAX_TERM_CHARS = 64
"""Maximum length of a term; longer runs of letters are data and are found by their first characters."""

STOPWORDS = frozenset(
    """a an the and or but if then so than that this these those there here i me my mine we us our ours you your
    yours he him his she her hers it its they them their theirs who whom whose which what when where why how is
    am are was were be been being do does did doing have has had having will would shall should can could may
    might must of in on at by for with about from to into as not no nor too very just s t d ll m o re ve""".split()
)
"""Words that occur in nearly every sentence and do not help a search."""

CONTRACTIONS = frozenset(["s", "t", "d", "ll", "m", "re", "ve"])
"""Contractions that may follow an apostrophe and are not part of the word."""

# Scripts written without spaces are split into overlapping pairs of characters, all others at word boundaries.
UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f"
# Vowel signs of Indic scripts, which are no letters to a pattern, but part of a word.
_SIGNS = "".join(
    chr(code) for code in (*range(0x900, 0xE00), *range(0xE80, 0x1800)) if unicodedata.category(chr(code))[0] == "M"
)
_PIECE = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:[{_SIGNS}]+[^\W_{UNSPACED}]*)*+(?:['’][^\W_]+)?")
_PLAIN_WORD = re.compile("[a-z0-9]+(?:'[a-z0-9]+)?")
# Vowel points of Hebrew and Arabic, accents that no letter is composed with, and joiners: a word may lack them.
_POINTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u200c\u200d]+")
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNSPACED_START = re.compile(rf"[{UNSPACED}]")


QUESTION = "trait:question"
"""Nothing but questions, without a number or a date: such a text states nothing."""

ASKING = "trait:asking"
"""At least half of it is questions."""

SELF = "trait:self"
"""Somebody speaks of themselves."""

TIME = "trait:time"
"""Dates an event."""

NUMBER = "trait:number"
"""Holds a number."""

ANSWER = "trait:answer"
"""Reads like the answer of an assistant: lists, headings, offers of help."""

SPOKEN = "trait:spoken"
"""Begins with the name of its speaker, as in "Ann: hello"."""

GIST = "trait:gist"
"""The text is a gist, and the words of the entry are those of the text it stands for."""

FIXED = (QUESTION, ASKING, SELF, TIME, NUMBER, ANSWER, SPOKEN)
"""Traits of a text alone, in the order of the bits in `Evidence.traits`."""

HALF = 0.5

MAX_ANSWER_CHARS = 400
"""Length above which a text with a list or a heading reads like an answer."""

_SPEAKER = re.compile(r"\s*([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30}){0,2}): ")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*(?=[^\s.!?。！？])|\n+")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_DIGIT = re.compile(r"\d")
_LIST = re.compile(r"^\s*(?:[-*•] |\d{1,2}[.)] |#{1,4} |\*\*)", re.MULTILINE)
_OFFER = re.compile(
    r"(?:sure|certainly|of course|absolutely|great (?:question|idea|choice)|here(?:'s| is| are)\b|i'm (?:sorry|glad)"
    r"|you're welcome|as an ai|congratulations|natürlich|gerne|gern geschehen|bien sûr|avec plaisir|voici|claro"
    r"|por supuesto|aquí (?:tienes|está)|certo|certamente|ecco|com certeza|aqui está)"
)


def check_text(text: str, *, what: str = "text") -> str:
    """Return `text` if every engine can store it unchanged. Raises: Invalid."""
    if not isinstance(text, str):
        raise Invalid(f"The {what} must be a string, not {type(text).__name__}.")
    if "\x00" in text:
        raise Invalid(f"The {what} holds a NUL character (U+0000), which cannot be stored; remove it.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"The {what} holds half a surrogate pair at position {error.start}; send whole ones.") from None
    return text


def clean_text(text: str) -> str:
    """Return `text` in a form that every engine can store: without NUL characters and halves of surrogate pairs."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def has_half_pair(text: str) -> bool:
    """Return True if `text` holds half a surrogate pair, which no encoding can write."""
    return not text.isascii() and _SURROGATES.search(text) is not None


def replace_half_pairs(text: str) -> str:
    """Replace each half of a surrogate pair, which has no encoding, by U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def fold(text: str) -> str:
    """Remove differences of case and of composed and decomposed characters.

    >>> fold("STRASSE") == fold("Straße")
    True
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def like_literal(needle: str) -> str:
    """Escape `needle` for a LIKE pattern with ESCAPE '!', so that wildcards are literal.

    >>> like_literal("100%_sure!")
    '100!%!_sure!!'
    """
    return needle.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def is_question(text: str) -> bool:
    """Return True if `text` ends with a question mark, whatever closes it.

    >>> is_question("What colour? "), is_question('He asked "why?"'), is_question("Purple.")
    (True, True, False)
    """
    return text.rstrip(" \t\n)]\"'”’»").endswith(("?", "？", "؟"))


# Cached because a write looks for the same text before it stores one.
@cache_text(64)
def content_hash(text: str) -> str:
    """Return a hash that ignores differences in case, white space and Unicode form."""
    return hashlib.sha256(" ".join(fold(text).split()).encode()).hexdigest()[:32]


def terms(text: str) -> list[str]:
    """Return the search terms of `text`: folded, stemmed, without stopwords, in order and with repeats.

    >>> terms("She prefers TABS over_spaces, don't you think?")
    ['prefer', 'tab', 'over', 'space', 'think']
    >>> terms("東京都に住む")
    ['東京', '京都', '都に', 'に住', '住む']
    >>> terms("मीरा को चाय पसंद है।")
    ['मीरा', 'को', 'चाय', 'पसंद', 'है']
    """
    return join_terms(split_words(text))


def split_words(text: str) -> list[str]:
    """Return the folded words of `text`, and each run of characters written without spaces as one."""
    folded = fold(text)
    return _PLAIN_WORD.findall(folded) if folded.isascii() else _PIECE.findall(_POINTS.sub("", folded))


def join_terms(words: Iterable[str]) -> list[str]:
    """Return the search terms of words that `split_words` returned."""
    found: list[str] = []
    for piece in words:
        if piece.isascii():
            found += _split_terms(piece[:MAX_TERM_CHARS])
        elif _UNSPACED_START.match(piece):
            found += (piece[i : i + 2] for i in range(max(1, len(piece) - 1)))
        else:
            found += _split_terms(piece[:MAX_TERM_CHARS])
    return found


def is_part_of_term(term: str) -> bool:
    """Return True for a single character of a script without spaces, which longer texts hold only as part of terms.

    >>> is_part_of_term("茶"), is_part_of_term("喝茶"), is_part_of_term("a")
    (True, False, False)
    """
    return len(term) == 1 and _UNSPACED_START.match(term) is not None


# Cached because a store's vocabulary is small compared with its text. Words must be short: the cache keeps them.
@cache_text(65536)
def _split_terms(word: str) -> tuple[str, ...]:
    """Return the terms of one run of letters; empty for a stopword."""
    head, mark, tail = word.replace("’", "'").partition("'")
    # A name such as O'Neil.
    if mark and tail not in CONTRACTIONS:
        return (_stem(head + tail),)
    # The second condition matches "isn't" and "don't".
    if head in STOPWORDS or (tail == "t" and head.endswith("n")):
        return ()
    return (_stem(head),)


def _stem(word: str) -> str:
    # A stemmer holds the word it works on, so it is not thread-safe. A new one costs only 0.4 µs.
    stem: str = Stemmer.Stemmer("english", 0).stemWord(word)
    return stem


def index_terms(text: str) -> list[str]:
    """Return the terms of a memory's index entry: its words, then its traits.

    >>> index_terms("Ann: I moved in May 2021")[-5:]
    ['trait:self', 'trait:time', 'trait:number', 'trait:spoken', 'by:ann']
    >>> index_terms("What is my dog's name?")[-2:]
    ['trait:asking', 'trait:self']
    """
    words = split_words(text)
    return [*join_terms(words), *_find_traits(text, frozenset(words))]


def gist_terms(gist: str, whole: str) -> list[str]:
    """Return the terms of a gist's index entry: those of the whole text, so that it is found by what it leaves out.

    >>> gist_terms("Two ideas …", "Two ideas: oolong, cocoa")
    ['two', 'idea', 'oolong', 'cocoa', 'trait:number', 'trait:gist']
    """
    words = index_terms(whole)
    # Marks inside a word, which a gist leaves out, split it in the whole.
    return [*words, *sorted({*terms(gist)} - {*words}), GIST]


def speaker_trait(term: str) -> str:
    """Return the trait of texts whose speaker's name contains a term."""
    return f"by:{term}"


def find_name(text: str) -> str:
    """Return the name of the speaker that a text begins with, if any.

    >>> find_name("Ann Lee: hello"), find_name("note: call back")
    ('Ann Lee', '')
    """
    # Nearly every text has no name, and the pattern tries many ways to find one.
    match = _SPEAKER.match(text) if ": " in text else None
    return match[1] if match and all(word[0].isupper() for word in match[1].split()) else ""


def _find_traits(text: str, words: frozenset[str]) -> Iterator[str]:
    name = find_name(text)
    stated = text[len(name) + 1 :] if name else text
    has_digit = _DIGIT.search(stated) is not None
    has_number = has_digit or not words.isdisjoint(NUMBER_WORDS)
    has_time = not words.isdisjoint(TIME_WORDS) or (has_digit and _YEAR.search(stated) is not None)
    asked = _share_asked(stated)
    if asked == 1 and not has_number and not has_time:
        yield QUESTION
    if asked >= HALF:
        yield ASKING
    if not words.isdisjoint(SELF_WORDS):
        yield SELF
    if has_time:
        yield TIME
    if has_number:
        yield NUMBER
    if _is_answer(stated):
        yield ANSWER
    if name:
        yield SPOKEN
        yield from dict.fromkeys(map(speaker_trait, terms(name)))


def _share_asked(text: str) -> float:
    """Return the share of a text's characters that belong to questions."""
    if "?" not in text and "？" not in text:
        return 0.0
    sentences: Sequence[str] = [part for part in _SENTENCE_END.split(text.strip()) if part.strip()]
    asked = sum(len(part) for part in sentences if part.rstrip(" \"'”»)").endswith(("?", "？")))
    return asked / sum(map(len, sentences))


def _is_answer(text: str) -> bool:
    if len(text) > MAX_ANSWER_CHARS and _LIST.search(text):
        return True
    return bool(_OFFER.match(text.strip()[:40].lower().replace("’", "'")))
