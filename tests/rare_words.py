"""Stores of look-alike memories, each with a word that no other holds, and questions for these words."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

LETTERS = string.ascii_lowercase + string.digits

SYLLABLES = [first + second for first in "bdklmnrstvz" for second in "aeiou"]
PARTS = "donau dampf schiff kapitän mütze fabrik halle tor wächter haus dach rinne blech schere leder tasche".split()
CYRILLIC = "ва ле ра ми на то ся ко ри да ев ин ов ск ба гу за ло пе ту".split()
KANJI = "田中山川本村高木林森石原松竹梅井上下野島崎藤佐伊加斎渡辺近遠東西南北"
SURNAMES = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗"
CHINESE_GIVEN = "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华文建国玉兰红梅海燕志新春雷晓东"
KOREAN = "김이박최정강조윤장임한오서신권황안송류홍"
KOREAN_GIVEN = "민서지현수영은준하도유진성재아윤채우호연빈"
ARABIC = "بتجدرسعفقلمنهوي"
DEVANAGARI = [first + second for first in "कगचजटडतदनपबमयरलवसह" for second in "ािीुेो"]
GIVEN = "美咲翔太陽子健一花恵真由里奈大輔直樹"


@dataclass(frozen=True)
class Shape:
    """Form of the words of a store, its memories, and its questions."""

    make: Callable[[random.Random], str]
    texts: Sequence[str]
    questions: Sequence[str]

    def list_words(self, rng: random.Random, count: int) -> list[str]:
        """Return distinct words; none is a part of another."""
        words: dict[str, str] = {}
        while len(words) < count:
            word = self.make(rng)
            words.setdefault(word, word)
        return list(words)


def syllables(rng: random.Random, parts: Sequence[str], least: int, most: int) -> str:
    return "".join(rng.choices(parts, k=rng.randint(least, most)))


def near(rng: random.Random) -> str:
    """A word that differs from others by one character."""
    word = list("kq7x2v9m")
    for at in rng.sample(range(len(word)), 4):
        word[at] = rng.choice(LETTERS)
    return "".join(word)


def in_any_case(rng: random.Random) -> str:
    """A word that differs from some others by its capitals alone."""
    return "".join(rng.choice((str.upper, str.lower))(each) for each in f"{rng.randrange(300):03}qxak")


LOG = ("The job {} finished with status ok", "2026-03-01 10:02:11 worker 7 started job {} on node 12")
TICKET = ("Ticket {} was closed by the support team", "Customer asked about {} and wants a call back")
PERSON = (
    "Had lunch with {} near the station",
    "{} sent the offer for the new office",
    "The desk of {} is by the window",
)
ASK = ("what happened with {}?", "Do you remember anything about {}?", "tell me about {}", "{} - what was that?")
ASK_PERSON = ("what do we know about {}?", "Did {} say anything?", "When did I last meet {}?")
GERMAN = ("Die {} wurde am Montag geliefert", "Für die {} gibt es noch keinen Termin")
RUSSIAN = ("Вчера {} прислала договор", "Обедали с коллегой, её зовут {}")
JAPANESE = ("{}さんと駅前で昼食をとった", "新しい事務所の見積もりは{}さんから届いた")

SHAPES: Mapping[str, Shape] = {
    "random ids": Shape(lambda rng: "".join(rng.choices(LETTERS, k=12)), LOG, ASK),
    "numbers": Shape(lambda rng: str(rng.randrange(10_000, 99_999)), TICKET, ASK),
    "tickets": Shape(lambda rng: f"PROJ-{rng.randrange(1, 9999)}", TICKET, ASK),
    "error codes": Shape(
        lambda rng: f"ERR-{rng.randrange(1000, 9999)}-{rng.choice('ABCDEF')}", LOG, (*ASK, "how was {} fixed?")
    ),
    "versions": Shape(
        lambda rng: f"{rng.randrange(20)}.{rng.randrange(30)}.{rng.randrange(30)}",
        ("Release {} went out with 3 fixes", "Rolled back to {} after 14 minutes"),
        ("what was wrong with {}?", "when did we ship {}?"),
    ),
    "addresses": Shape(
        lambda rng: f"10.0.{rng.randrange(64)}.{rng.randrange(64)}", ("Host {} is down", "{} answers again"), ASK
    ),
    "hex": Shape(lambda rng: f"{rng.randrange(16**8):08x}", ("Commit {} broke the build", "Reverted {}"), ASK),
    "uuids": Shape(
        lambda rng: "-".join(f"{rng.randrange(16**n):0{n}x}" for n in (8, 4, 4, 4, 12)), ("Order {} was paid",), ASK
    ),
    "emails": Shape(
        lambda rng: f"{syllables(rng, SYLLABLES, 2, 3)}.{syllables(rng, SYLLABLES, 2, 3)}@example.com",
        ("Sent the invoice to {} today", "{} asked to be called"),
        ("who is {}?", "what did I send to {}?"),
    ),
    "names": Shape(
        lambda rng: f"{syllables(rng, SYLLABLES, 2, 3).title()} {syllables(rng, SYLLABLES, 3, 4).title()}",
        PERSON,
        ASK_PERSON,
    ),
    "surnames": Shape(lambda rng: syllables(rng, SYLLABLES, 4, 5).title(), PERSON, ASK_PERSON),
    "one character apart": Shape(near, LOG, ASK),
    "cases": Shape(in_any_case, LOG, ASK),
    "functions": Shape(
        lambda rng: "get" + "".join(syllables(rng, SYLLABLES, 1, 2).title() for _ in range(3)), LOG, ASK
    ),
    "compounds": Shape(
        lambda rng: syllables(rng, PARTS, 4, 6).capitalize(), GERMAN, ("Was ist mit der {} passiert?", "Wo ist die {}?")
    ),
    "cyrillic": Shape(
        lambda rng: f"{syllables(rng, CYRILLIC, 2, 3).title()} {syllables(rng, CYRILLIC, 3, 4).title()}",
        RUSSIAN,
        ("Что прислала {}?", "Кто такая {}?"),
    ),
    "german questions": Shape(
        lambda rng: syllables(rng, SYLLABLES, 3, 4).title(),
        ("Mittagessen mit {} am Bahnhof", "Gestern hat {} den Vertrag geschickt"),
        ("Was hat {} gesagt?", "Was ist mit {} passiert?", "Was wissen wir über {}?"),
    ),
    "handles": Shape(
        lambda rng: f"@{syllables(rng, SYLLABLES, 3, 4)}",
        ("Asked {} for a review", "{} joined the team"),
        ASK_PERSON,
    ),
    "plates": Shape(
        lambda rng: (
            f"{''.join(rng.choices('ABCDEF', k=2))}-{''.join(rng.choices('KLMN', k=2))} {rng.randrange(10, 9999)}"
        ),
        ("Plate {} blocks the gate", "The car with plate {} is gone"),
        ASK,
    ),
    "arabic": Shape(
        lambda rng: "".join(rng.choices(ARABIC, k=6)),
        ("تحدثت مع {} عن العقد", "أرسل {} العرض"),
        ("ماذا تعرف عن {}؟", "هل قال {} شيئا؟"),
    ),
    "hindi": Shape(
        lambda rng: "".join(rng.choices(DEVANAGARI, k=4)),
        ("{} ने अनुबंध भेजा", "कल {} से मुलाकात हुई"),
        ("{} के बारे में क्या पता है?", "{} ने क्या कहा?"),
    ),
    "chinese": Shape(
        lambda rng: rng.choice(SURNAMES) + "".join(rng.sample(CHINESE_GIVEN, 2)),
        ("昨天和{}一起吃饭", "{}寄来了合同"),
        ("你还记得{}吗？", "{}是谁？"),
    ),
    "korean": Shape(
        lambda rng: rng.choice(KOREAN) + "".join(rng.sample(KOREAN_GIVEN, 2)),
        ("회의에서 {} 씨를 만났다", "{} 님이 계약서를 보냈다"),
        ("{} 씨 기억나?", "{} 님은 누구야?"),
    ),
    "japanese": Shape(
        lambda rng: "".join(rng.sample(KANJI, 2)) + "".join(rng.sample(GIVEN, 2)),
        JAPANESE,
        ("{}さんのことを覚えていますか？", "{}さんから何が届いた？"),
    ),
}


def make_store(shape: Shape, rng: random.Random, count: int) -> tuple[list[str], list[str]]:
    """Return the words of a store and its memories, in the same order."""
    words = shape.list_words(rng, count)
    return words, [rng.choice(shape.texts).format(word) for word in words]


def make_questions(shape: Shape, words: Sequence[str], rng: random.Random, count: int) -> Iterator[tuple[int, str]]:
    """Yield places of words and questions for each: first bare words, then questions in words, each half of them."""
    for number, place in enumerate(rng.sample(range(len(words)), count)):
        yield place, words[place] if number < count / 2 else rng.choice(shape.questions).format(words[place])
