"""Parse a question: its words and their forms, the speaker it asks about, and the time spans it mentions.

Time spans are such as "last May", "two weeks before Christmas", "on 8 May 2023". Days, months, years, weekdays and
words such as "yesterday" are also read in German, French, Spanish, Italian and Portuguese; the rest is English only. A
question without an explicit date has no span. Relative dates count from the time of the question.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wellkept.language.text import ASKS_NUMBER, ASKS_TIME, NOUN_LANGUAGE_WORDS, fold, speaker_trait, terms
from wellkept.language.text import LIGHT_WORDS as OTHER_LIGHT_WORDS
from wellkept.model import Role

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TABLES = tomllib.loads(Path(__file__).with_name("questions.toml").read_text("utf-8"))


def _number_words(words: Sequence[str], *, first: int = 0, between: str | None = None) -> Mapping[str, int]:
    return {word: number for number, line in enumerate(words, first) for word in line.split(between)}


def _invert_table(table: Mapping[str, str], *, between: str | None = ",") -> Mapping[str, str]:
    return {word: name for name, words in table.items() for word in words.split(between)}


MONTHS, NUMBERS = _number_words(_TABLES["months"], first=1), _number_words(_TABLES["numbers"], first=1)
DAYS, NEAR_DAYS = _number_words(_TABLES["days"]), _number_words(_TABLES["near_days"], between=",")
SEASONS: Mapping[str, int] = _TABLES["seasons"]
HOLIDAYS: Mapping[str, tuple[int, int]] = _TABLES["holidays"]
PAST_UNITS, RECENT_UNITS = _invert_table(_TABLES["past_units"]), _invert_table(_TABLES["recent_units"])
UNIT_WORDS, UNIT_DAYS = _invert_table(_TABLES["unit_words"], between=None), _TABLES["unit_days"]

FADE_DAYS = 3.0
"""Half-life in days outside a span. People mention an event on the day or soon after it."""

FADE_SHARE = 0.5
"""Half-life as a share of the span's length, used if it exceeds `FADE_DAYS`. Long spans are vaguer."""


@dataclass(frozen=True, slots=True)
class Span:
    """An inclusive range of days."""

    first: date
    last: date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    def closeness(self, days: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return 1 inside the span and a value that halves every few days outside it, slower outside a long span.

        `days` are `date.toordinal` values with the time of day as the fraction.
        """
        start, end = self.first.toordinal(), self.last.toordinal() + 1
        away = np.maximum(np.maximum(start - days, days - end), 0)
        fading: NDArray[np.float32] = (0.5 ** (away / max(FADE_DAYS, FADE_SHARE * self.days))).astype(np.float32)
        return fading


def spans(question: str, now: datetime) -> list[Span]:
    """Extract the time spans a question mentions, in order of appearance.

    >>> from datetime import UTC
    >>> now = datetime(2023, 5, 30, tzinfo=UTC)
    >>> [(str(span.first), str(span.last)) for span in spans("What did I plant two weeks ago?", now)]
    [('2023-05-13', '2023-05-19')]
    >>> [(str(span.first), str(span.last)) for span in spans("Where was Dave in August 2022?", now)]
    [('2022-08-01', '2022-08-31')]
    """
    text = " ".join(question.lower().replace("’", "'").split())
    found: list[tuple[int, Span]] = []
    if not _DIGIT.search(text) and _list_hints().isdisjoint(_WORD.findall(text)):
        return []
    for pattern, parse in _list_parsers():
        text = _extract(text, pattern, lambda match, parse=parse: parse(match, now.date()), found)  # type: ignore[misc]
    return [span for _, span in sorted(found, key=lambda each: each[0])]


def _extract(
    text: str, pattern: re.Pattern[str], parse: Callable[[re.Match[str]], Span | None], found: list[tuple[int, Span]]
) -> str:
    """Record the spans that `pattern` matches and blank them out, so that no later pattern matches them again."""

    def blank(match: re.Match[str]) -> str:
        try:
            span = parse(match)
        except (ValueError, OverflowError):
            # Not a valid date, such as 31 June or the year 12023.
            return match[0]
        if span is None:
            return match[0]
        found.append((match.start(), span))
        return "\x00" * len(match[0])

    return pattern.sub(blank, text)


def _month_span(year: int, month: int, months: int = 1) -> Span:
    after = year * 12 + month - 1 + months
    return Span(date(year, month, 1), date(after // 12, after % 12 + 1, 1) - timedelta(days=1))


def _year_of(month: int, day: int, year: str | None, today: date) -> int:
    """Return the year as a number, or without one the year of the most recent such day."""
    # Day 28 exists in every month of every year, unlike 29 February.
    return int(year) if year else today.year - (date(today.year, month, min(day, 28)) > today)


def _parse_day(match: re.Match[str], today: date) -> Span:
    month, day = MONTHS[match["month"]], int(match["day"])
    at = date(_year_of(month, day, match["year"], today), month, day)
    return _shift(Span(at, at), match)


def _parse_iso(match: re.Match[str], today: date) -> Span:
    at = date(int(match["year"]), int(match["month"]), int(match["day"]))
    return _shift(Span(at, at), match)


def _parse_slashed(match: re.Match[str], today: date) -> Span:
    """Parse 7/22 or 22/7; the month comes first unless its number exceeds 12."""
    month, day = int(match["one"]), int(match["two"])
    if month > 12:
        month, day = day, month
    year = match["year"]
    if year and len(year) == 2:
        year = f"20{year}"
    at = date(_year_of(month, day, year, today), month, day)
    return Span(at, at)


def _parse_holiday(match: re.Match[str], today: date) -> Span:
    month, day = HOLIDAYS[match["holiday"]]
    at = date(_year_of(month, day, match["year"], today), month, day)
    return _shift(Span(at, at), match)


def _shift(span: Span, match: re.Match[str]) -> Span:
    """Shift a span by its lead-in: "two weeks before …", "the Sunday before …", "the week after …"."""
    lead = match["lead"]
    if not lead:
        return span
    *counted, unit, way = lead.split()
    sign = -1 if way == "before" else 1
    if unit in DAYS:
        step = (
            (span.first.weekday() - DAYS[unit]) % 7 or 7 if sign < 0 else (DAYS[unit] - span.first.weekday()) % 7 or 7
        )
        at = span.first + timedelta(days=sign * step)
        return Span(at, at)
    unit = unit.removesuffix("s")
    number = next((_parse_number(word) for word in counted if word not in ("the", "of")), None)
    # "the week before" without a number means the whole week.
    if number is None:
        length = timedelta(days=round(UNIT_DAYS[unit]))
        one_day = timedelta(days=1)
        return (
            Span(span.first - length, span.first - one_day)
            if sign < 0
            else Span(span.last + one_day, span.last + length)
        )
    return _span_around(span.first + timedelta(days=round(sign * number * UNIT_DAYS[unit])), unit)


def _span_around(at: date, unit: str) -> Span:
    """Return a span of about one unit around a day, because people count in round numbers."""
    # Half a unit on each side of the day: 0, 3, 15 and 182 days for a day, a week, a month and a year.
    slack = timedelta(days=round(UNIT_DAYS[unit] / 2 - 0.6))
    return Span(at - slack, at + slack)


def _parse_number(word: str) -> int:
    return NUMBERS[word] if word in NUMBERS else int(word)


def _parse_month(match: re.Match[str], today: date) -> Span | None:
    """Parse a month. Requires a preposition, a part or a year, because April, June and May are also first names."""
    before, year, month = match["before"], match["year"], MONTHS[match["month"]]
    if not (before or year or match["part"]):
        return None
    is_earlier = not year and before == "last " and month == today.month
    return _narrow(_month_span(_year_of(month, 1, year, today) - is_earlier, month), match["part"])


def _narrow(whole: Span, part: str | None) -> Span:
    """Narrow a span: "the beginning of", "the first half of", "the last two weeks of", "the second weekend of"."""
    if not part:
        return whole
    *words, unit = part.removesuffix(" of ").split()
    days = (whole.last - whole.first).days + 1
    # The beginning, the middle and the end are about a third each.
    if unit in ("beginning", "start"):
        return Span(whole.first, whole.first + timedelta(days=days // 3))
    if unit in ("end",):
        return Span(whole.last - timedelta(days=days // 3), whole.last)
    if unit in ("middle",):
        return Span(whole.first + timedelta(days=days // 3), whole.last - timedelta(days=days // 3))
    is_last = "last" in words
    counted = [_parse_number(word) for word in words if word in NUMBERS or word.isdigit()]
    length = days // 2 if unit == "half" else round((counted[0] if counted else 1) * UNIT_DAYS[unit.removesuffix("s")])
    which = next((number for number, word in enumerate(("first", "second", "third", "fourth")) if word in words), 0)
    if is_last or (unit == "half" and which):
        return Span(whole.last - timedelta(days=length - 1), whole.last)
    start = whole.first + timedelta(days=which * length)
    return Span(start, min(start + timedelta(days=length - 1), whole.last))


def _parse_season(match: re.Match[str], today: date) -> Span | None:
    month, stated_year = SEASONS[match["season"]], match["year"]
    if not stated_year and match["before"] is None:
        return None
    year = _year_of(month, 1, stated_year, today)
    span = _month_span(year, month, 3)
    if match["before"] == "last " and not stated_year and span.last >= today:
        span = _month_span(year - 1, month, 3)
    return span


def _parse_ago(match: re.Match[str], today: date) -> Span:
    unit = match["unit"]
    return _span_around(today - timedelta(days=round(_parse_number(match["number"]) * UNIT_DAYS[unit])), unit)


def _parse_past(match: re.Match[str], today: date) -> Span:
    """Parse "the last 10 days" and "in the last month" as a span that ends today."""
    number, unit = match["number"], RECENT_UNITS.get(match["unit"]) or UNIT_WORDS.get(match["unit"]) or match["unit"]
    return Span(today - timedelta(days=round((_parse_number(number) if number else 1) * UNIT_DAYS[unit])), today)


def _parse_this(match: re.Match[str], today: date) -> Span:
    unit = match["unit"]
    if unit == "year":
        return Span(date(today.year, 1, 1), today)
    if unit == "month":
        return Span(today.replace(day=1), today)
    return Span(today - timedelta(days=today.weekday()), today)


def _parse_last(match: re.Match[str], today: date) -> Span:
    unit = PAST_UNITS.get(match[1], match[1])
    if unit == "year":
        return Span(date(today.year - 1, 1, 1), date(today.year - 1, 12, 31))
    if unit == "month":
        end = today.replace(day=1) - timedelta(days=1)
        return Span(end.replace(day=1), end)
    monday = today - timedelta(days=today.weekday())
    if unit == "weekend":
        return Span(monday - timedelta(days=2), monday - timedelta(days=1))
    return Span(monday - timedelta(days=7), monday - timedelta(days=1))


def _parse_weekday(match: re.Match[str], today: date) -> Span:
    at = today - timedelta(days=(today.weekday() - DAYS[match["weekday"]]) % 7 or 7)
    return Span(at, at)


def _parse_near(match: re.Match[str], today: date) -> Span:
    at = today - timedelta(days=NEAR_DAYS[match[0]])
    return Span(at, at)


def _parse_year(match: re.Match[str], today: date) -> Span:
    year = int(match["year"])
    return Span(date(year, 1, 1), date(year, 12, 31))


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def _build_parsers() -> Iterator[tuple[re.Pattern[str], Callable[[re.Match[str], date], Span | None]]]:
    """Yield patterns and their parsers, most specific first; each match hides its text from later patterns."""
    month, weekday, season = _alternatives(MONTHS), _alternatives(DAYS), _alternatives(SEASONS)
    unit, number = r"(?P<unit>day|week|weekend|month|year)", rf"(?:\d{{1,3}}|{_alternatives(NUMBERS)})"
    units, ordinal = r"(?:day|week|weekend|month|year)s?", r"(?:st|nd|rd|th|er|\.|º)?"
    year = r"(?P<year>(?:19|20)\d\d)\b"
    with_year = rf",?(?: (?:of |de |del )?{year})?"
    counted = rf"(?:the |{number} (?:of )?)?{units}|(?:the )?(?:{weekday})"
    lead = rf"(?:\b(?P<lead>(?:{counted}) (?:before|after)) )?(?:the )?"
    piece = rf"beginning|start|middle|end|(?:first|second|third|fourth|last) (?:{number} )?(?:half|{units})"
    part = rf"(?:\b(?P<part>(?:{piece}) of ))?"
    before = (
        r"(?P<before>\b(?:last|this|in|of|during|since|by|until|around|in the|during the|im|letzten|seit|en|em|di|nel)"
        r" )?"
    )
    yield re.compile(rf"{lead}\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b"), _parse_iso
    yield (
        re.compile(rf"{lead}\b(?P<day>\d{{1,2}}){ordinal} (?:of |de |di )?(?P<month>{month})\b\.?{with_year}"),
        _parse_day,
    )
    yield re.compile(rf"{lead}\b(?P<month>{month})\.? (?P<day>\d{{1,2}}){ordinal}\b{with_year}"), _parse_day
    yield re.compile(r"\b(?P<one>\d{1,2})/(?P<two>\d{1,2})(?:/(?P<year>\d{4}|\d\d))?\b"), _parse_slashed
    yield re.compile(rf"{lead}\b(?P<holiday>{_alternatives(HOLIDAYS)})(?!\w){with_year}"), _parse_holiday
    yield re.compile(rf"{part}{before}\b(?P<month>{month})\b{with_year}"), _parse_month
    yield re.compile(rf"{before}\b(?P<season>{season})\b{with_year}"), _parse_season
    yield re.compile(rf"\b(?P<number>{number})(?: of)? {unit}s? (?:ago|earlier)\b"), _parse_ago
    yield re.compile(rf"\b(?:past|last) (?P<number>{number}) (?:of )?{unit}s?\b"), _parse_past
    yield re.compile(rf"\bpast (?P<number>){unit}\b"), _parse_past
    # "The last month" ends today, "last month" is that of the calendar, and "the last month of the year" is neither.
    yield re.compile(r"\bthe last (?P<number>)(?P<unit>day|week|month|year)\b(?! of\b)"), _parse_past
    of_others = r"(?! (?:d(?:u|e|es|er|el|i|ella|o|a)\b|d'|vo[mn]\b))"
    yield re.compile(rf"\b(?P<number>)(?P<unit>{_alternatives(RECENT_UNITS)})\b{of_others}"), _parse_past
    counted = rf"(?P<unit>{_alternatives(UNIT_WORDS)})\b{of_others}"
    yield (
        re.compile(
            rf"\b(?:letzten|vergangenen|últim[oa]s|ultim[ie]|dernières|derniers) (?P<number>{number}) {counted}"
        ),
        _parse_past,
    )
    yield re.compile(rf"\b(?P<number>{number}) (?:derniers|dernières|últim[oa]s|ultim[ie]) {counted}"), _parse_past
    yield re.compile(r"\bthis (?P<unit>week|month|year)\b"), _parse_this
    yield re.compile(r"\b(?:last(?= weekend)|(?<!\bthe )last) (weekend|week|month|year)\b"), _parse_last
    yield re.compile(rf"\b(?P<unit>{_alternatives(PAST_UNITS)})\b"), _parse_last
    yield (
        re.compile(rf"\b(?:last|on|this past|am|letzten|el|le|il|na|no) (?P<weekday>{weekday})\b"),
        _parse_weekday,
    )
    # "hier" is French for yesterday and German for here; French puts a space before the question mark.
    near = _alternatives(word for word in NEAR_DAYS if word != "hier")
    yield re.compile(rf"(?<![\w-])(?:(?:{near})\b|hier(?= \?))"), _parse_near
    yield re.compile(rf"\b(?:in|of|during|since|by|year|im jahr|seit|en|em|nel) {year}"), _parse_year


_DIGIT, _WORD = re.compile(r"\d"), re.compile(r"\w+")


@cache
def _list_hints() -> frozenset[str]:
    """Return words of which every match of a parser without a digit holds one. Few questions do."""
    names = (MONTHS, DAYS, SEASONS, HOLIDAYS, NEAR_DAYS, PAST_UNITS, RECENT_UNITS, UNIT_WORDS)
    units = (f"{unit}{ending}" for unit in UNIT_DAYS for ending in ("", "s"))
    return frozenset((*(_WORD.findall(name)[0] for each in names for name in each), *units))


@cache
def _list_parsers() -> Sequence[tuple[re.Pattern[str], Callable[[re.Match[str], date], Span | None]]]:
    """Compile the patterns once, when the first question is read."""
    return tuple(_build_parsers())


def other_forms(term: str) -> Sequence[str]:
    """Return the indexed terms of a word's other irregular forms; empty for most words.

    >>> other_forms("bought"), other_forms("go"), other_forms("tree")
    (('buy',), ('went', 'gone'), ())
    """
    return _families().get(term, ())


# Cached instead of computed at import: stemming all of them takes a few milliseconds.
@cache
def _families() -> Mapping[str, Sequence[str]]:
    families = [tuple(dict.fromkeys(terms(family))) for family in _TABLES["irregular"].split(",")]
    return {form: tuple(other for other in family if other != form) for family in families for form in family}


MAX_TERMS = 64
"""Maximum number of terms searched; long pasted text is searched by its first words."""

LIGHT = 0.5
"""Weight of words that ask, count or date but seldom name the subject."""


_SPEECH_VERBS = (
    r"(?:told|said|mention(?:ed)?|ask(?:ed)?|shared|wrote|gave|talked|explained|described|brought|recommended|suggested"
    r"|provided|listed|created|made|showed|advised|proposed|offered|named|used|called|included|calculated|came up)"
)
_I_SAID = re.compile(
    rf"\b(?:i|we)(?:'ve| have| had|'d)? (?:just |already |previously |once )?{_SPEECH_VERBS}\b"
    r"|\bdid i (?:say|tell|mention|ask)\b"
)
_YOU_SAID = re.compile(
    rf"\byou(?:'ve| have| had|'d)? (?:just |already |previously |once |also )?{_SPEECH_VERBS}\b"
    r"|\b(?:did|have|had) you\b|\byour (?:recommend|suggest|answer|advice|explanation|response|repl|list)"
    r"|\b(?:our|the) (?:previous|last|earlier|past|prior) (?:chat|conversation|discussion|session|talk)|\bremind me\b"
)
_HISTORY = re.compile(
    r"\b(?:audit|history|logs?|logged|journal|activity|verlauf|protokoll\w*|historique|journaux|historial|registros?"
    r"|cronologia|histórico)\b|\bwho (?:\w+ )?(?:changed|edited|deleted|erased|removed|stored|added|created|approved"
    r"|corrected|archived|exported|imported) (?:it|this|that|the|m-)\b"
    r"|\b(?:was|were|been|got) (?:\w+ )?(?:changed|edited|deleted|erased|removed|stored|corrected|archived|exported"
    r"|imported)\b|\b[a-z]-\d+\b"
)
_WITH_CAPITAL = re.compile(r"\b[^\W\d_a-zß-öø-ÿ]\w+")
_CAPITALISED = re.compile(r"(?<=[^.?!:\s] )[^\W\d_a-zß-öø-ÿ]\w+")
_FIRST_PERSON = re.compile(r"\b(?:i|my|mine|me|myself|we|our|ours|us)\b")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query."""

    terms: Sequence[str]  # distinct, as indexed; the forms of one word are adjacent
    forms: Sequence[int]  # number of terms that belong to each word
    weights: Sequence[float]  # weight of each word
    is_name: Sequence[bool] = ()  # for each word: it is written like a name
    names: Sequence[str] = ()  # traits of texts by a speaker whose name is among the words; see `language.text`
    speaker: Role | None = None  # the speaker the question asks about, if it says so
    spans: Sequence[Span] = ()  # the time spans it mentions
    asks_time: bool = False  # it asks when something was
    asks_number: bool = False  # it asks how many, how much or how old

    def count_content(self) -> int:
        """Return the number of words that do not merely ask, count or date."""
        return sum(weight == 1 for weight in self.weights)

    @property
    def lookups(self) -> Sequence[str]:
        """Terms to look up in an index: the words, then the names."""
        return [*self.terms, *self.names]

    @classmethod
    def read(cls, query: str, now: datetime) -> ParsedQuery:
        """Parse a query.

        >>> from datetime import UTC
        >>> question = ParsedQuery.read("Which hotel did you recommend last May?", datetime(2026, 3, 1, tzinfo=UTC))
        >>> question.terms, question.speaker, [str(span.first) for span in question.spans]
        (['hotel', 'recommend', 'last'], <Role.ASSISTANT: 'assistant'>, ['2025-05-01'])
        """
        words, folded, names = _word_forms(query), fold(query), find_names(query)
        return cls(
            terms=[form for word in words for form in word],
            forms=[len(word) for word in words],
            weights=[LIGHT if _light_terms().intersection(word) else 1.0 for word in words],
            is_name=[word[0] in names for word in words],
            names=[speaker_trait(term) for term in dict.fromkeys(terms(" ".join(_WITH_CAPITAL.findall(query))))],
            speaker=find_speaker(query),
            spans=spans(query, now),
            asks_time=bool(ASKS_TIME.search(folded)),
            asks_number=bool(ASKS_NUMBER.search(folded)),
        )


def _word_forms(query: str) -> list[tuple[str, ...]]:
    """Return the distinct words, each with its other forms, so that "went" and "go" count once."""
    words: list[tuple[str, ...]] = []
    seen: set[str] = set()
    for term in list(dict.fromkeys(terms(query)))[:MAX_TERMS]:
        if term not in seen:
            words.append((term, *other_forms(term)))
            seen.update(words[-1])
    return words


def find_names(query: str) -> frozenset[str]:
    """Return the terms of words with a capital inside a sentence; German, which writes every noun so, has none."""
    found = " ".join(_CAPITALISED.findall(query))
    if not found or not NOUN_LANGUAGE_WORDS.isdisjoint(query.lower().split()):
        return frozenset()
    return frozenset(terms(found))


# Cached instead of computed at import: stemming all of them takes a few milliseconds.
@cache
def _light_terms() -> frozenset[str]:
    return frozenset(terms(f"{_TABLES['light_words']} {OTHER_LIGHT_WORDS}"))


def asks_history(query: str) -> bool:
    """Return True if a question asks for the records of what was done, not only for facts.

    >>> asks_history("Who deleted the note about Oslo?"), asks_history("Where does Ann live?")
    (True, False)
    """
    return _HISTORY.search(query.lower()) is not None


def find_speaker(query: str) -> Role | None:
    """Return the speaker a question asks about: the user if it says "I", the assistant if it says "you".

    >>> find_speaker("What breed is my dog?"), find_speaker("What did you suggest?"), find_speaker("Where is Ann?")
    (<Role.USER: 'user'>, <Role.ASSISTANT: 'assistant'>, None)
    """
    text = query.lower().replace("’", "'")
    if _I_SAID.search(text):
        return Role.USER
    if _YOU_SAID.search(text):
        return Role.ASSISTANT
    return Role.USER if _FIRST_PERSON.search(text) else None
