"""The default embedder: its table, its word pieces, and that near meanings are near."""

import hashlib
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from io import BytesIO
from threading import Barrier

import numpy as np
import pytest

from tests.stopwatch import times_as_long
from wellkept.providers import static
from wellkept.providers.static import StaticEmbedder, WordPieces

# What was said, a text about the same thing in other words, and a text about something else.
TRIPLES = [
    ("How old is her dog?", "The puppy turned three in May", "The meeting moved to Friday afternoon"),
    ("Where does he work?", "My job is at a bank downtown", "We saw a beautiful sunset"),
    ("What food is she allergic to?", "Peanuts make me sick, I carry an EpiPen", "The printer is out of toner"),
    ("favourite music", "I love listening to jazz and old blues songs", "The invoice is due next week"),
    ("holiday plans", "We booked flights to Greece for the summer vacation", "The database migration failed"),
    ("the build is broken", "CI fails because the compiler reports an error", "She bakes bread on Sundays"),
    ("database password", "The credentials for Postgres are in the vault", "Our cat sleeps on the sofa"),
    ("doctor appointment", "I saw the physician about my knee pain", "The new album comes out in June"),
    ("Is she married?", "Her husband proposed at the wedding venue", "Restart the server after the update"),
    ("What car does he drive?", "My new truck is an electric pickup", "The recipe needs two eggs"),
    ("learning a language", "I practise Spanish vocabulary every morning", "The roof leaks when it rains"),
    ("pay rise", "My salary went up by ten percent", "The dog chased a squirrel"),
    ("going to the gym", "I exercise three times a week and lift weights", "The contract was signed by the lawyer"),
    ("university degree", "She graduated from college with a diploma", "He painted the fence green"),
    ("children's school", "My kids go to kindergarten and first grade", "The stock market fell sharply"),
    ("deploy to production", "Release the new version on the live servers", "Grandma knitted a scarf"),
    ("bug in the software", "There is an error in the program code", "The river flooded the valley"),
    ("moving house", "We relocated to a new apartment in the city", "The violin concert was sold out"),
    ("vegetarian dinner", "I don't eat meat, only vegetables and tofu", "The train to Berlin was late"),
    ("feeling sad", "I have been depressed and unhappy lately", "Install the package with pip"),
    ("ocean", "waves on the sea near the beach", "tax return for the office"),
    ("How much did it cost?", "The price was forty dollars", "They hiked through the forest"),
]

# What the encoder's own tokenizer answers.
AS_THE_ENCODER = [
    ("", ""),
    ("   \t\n ", ""),
    ("Hello, World!", "hello , world !"),
    ("unaffable", "una ##ffa ##ble"),
    ("embeddings", "em ##bed ##ding ##s"),
    ("Wellkept remembers", "rec ##oll ##ect remembers"),
    ("don't", "don ' t"),
    ("snake_case_name", "snake _ case _ name"),
    ("e-mail: ann@example.org", "e - mail : ann @ example . org"),
    ("v1.2.3-rc4", "v ##1 . 2 . 3 - rc ##4"),
    ("3,141.59", "3 , 141 . 59"),
    ("$12.50", "$ 12 . 50"),
    ("a<b && c>=d", "a < b & & c > = d"),
    ("C:\\temp\\x.log", "c : \\ te ##mp \\ x . log"),
    ("Café crème", "cafe cr ##eme"),
    ("Cafe\u0301", "cafe"),
    ("ÀÉÎÕÜ", "ae ##io ##u"),
    ("naïve façade", "naive facade"),
    ("Straße", "st ##raße"),
    ("İstanbul", "istanbul"),
    ("Ångström", "ang ##strom"),
    ("ΣΊΣΥΦΟΣ", "σ ##ι ##σ ##υ ##φ ##ο ##σ"),
    ("Привет, мир", "п ##р ##и ##в ##е ##т , м ##и ##р"),
    ("日本語", "日 本 語"),
    ("東京タワー", "東 京 タ ##ワ ##ー"),
    ("한국어", "ᄒ ##ᅡ ##ᆫ ##ᄀ ##ᅮ ##ᆨ ##ᄋ ##ᅥ"),
    ("שלום", "ש ##ל ##ו ##ם"),
    ("नमस्ते", "न ##म ##स ##त"),
    ("“quoted”—text…", "“ quoted ” — text …"),
    ("x²+½", "x ##² + ½"),
    ("ﬁne", "ﬁ ##ne"),
    ("soft\u00adhyphen", "soft ##hy ##ph ##en"),
    ("nul\x00byte", "nu ##lby ##te"),
    ("tab\tnew\nline", "tab new line"),
    ("no\u00a0break", "no break"),
    ("bad\ufffdchar", "bad ##cha ##r"),
    ("HTTPServerError", "https ##er ##vere ##rro ##r"),
    ("electroencephalographically", "electro ##ence ##pha ##log ##raphic ##ally"),
    ("b" * 100, "bb" + 49 * " ##bb"),
]
# Where the encoder's tokenizer gives up on a word, or reads its own markers into the text.
BETTER_THAN_THE_ENCODER = [
    ("great🎉", "great"),
    ("🎉", ""),
    ("👩\u200d💻 codes", "codes"),
    ("5€", "5 €"),
    ("100°C", "100 ° c"),
    ("我爱你", "我"),
    ("b" * 101 + " kept", "kept"),
    ("[CLS] text [SEP]", "[ cl ##s ] text [ sep ]"),
]


@pytest.fixture(scope="module")
def embedder() -> StaticEmbedder:
    return StaticEmbedder()


@pytest.fixture(scope="module")
def pieces() -> Callable[[str], str]:
    with np.load(BytesIO(table_bytes())) as arrays:
        vocabulary = arrays["pieces"].tobytes().decode().split("\n")
    split = WordPieces({piece: number for number, piece in enumerate(vocabulary)})
    return lambda text: " ".join(vocabulary[number] for number in split(text))


def table_bytes() -> bytes:
    return resources.files("wellkept.providers").joinpath(static.TABLE_FILE).read_bytes()


def test_the_table_is_the_one_that_was_measured() -> None:
    table = table_bytes()

    assert hashlib.sha256(table).hexdigest() == static.TABLE_SHA256
    assert len(table) <= 10_000_000


@pytest.mark.parametrize(("text", "expected"), [*AS_THE_ENCODER, *BETTER_THAN_THE_ENCODER])
def test_text_splits_into_word_pieces(pieces: Callable[[str], str], text: str, expected: str) -> None:
    assert pieces(text) == expected


def test_a_forgotten_word_splits_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "MAX_CACHED_WORDS", 2)
    monkeypatch.setattr(static, "MAX_CACHED_CHARS", 1)
    split = WordPieces({"a": 0, "b": 1, "##b": 2, "c": 3})

    assert [split("a Ab C ab b") for _ in range(3)] == [[0, 0, 2, 3, 0, 2, 1]] * 3
    assert len(split._words) <= 2


def test_rows_are_float32_of_length_one(embedder: StaticEmbedder) -> None:
    vectors = embedder.embed(["one", "two words", "a much longer text about nothing in particular"])

    assert vectors.shape == (3, embedder.dimensions) == (3, 256)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_no_texts_are_no_rows(embedder: StaticEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 256)


@pytest.mark.parametrize("text", ["", "  \n", "🎉🎉", "\x00\x01", "\u0301" * 50, "\ud800", "ሀሁ", "z" * 101])
def test_a_text_without_known_pieces_is_zeros(embedder: StaticEmbedder, text: str) -> None:
    vectors = embedder.embed(["before", text, "after"])

    assert not vectors[1].any()
    assert (vectors[[0, 2]] == embedder.embed(["before", "after"])).all()


def test_a_row_depends_on_its_text_alone(embedder: StaticEmbedder) -> None:
    texts = [text for triple in TRIPLES for text in triple] + [""] + ["long " * 9_000, "longer " * 20_000] + ["end"]
    together = embedder.embed(texts * 40)

    fresh = StaticEmbedder()
    for text, vector in zip(texts * 2, together, strict=False):
        assert (fresh.embed([text])[0] == vector).all()


def test_case_accents_and_spacing_do_not_matter(embedder: StaticEmbedder) -> None:
    plain, odd = embedder.embed(["the cafe is open", "  The\tCAFÉ\u200b is\n\nopen "])

    assert (plain == odd).all()


@pytest.mark.parametrize(("text", "related", "unrelated"), TRIPLES)
def test_related_is_nearer_than_unrelated(embedder: StaticEmbedder, text: str, related: str, unrelated: str) -> None:
    asked, near, far = embedder.embed([text, related, unrelated])

    assert asked @ near > asked @ far


def test_the_right_answer_comes_first_among_all(embedder: StaticEmbedder) -> None:
    asked = embedder.embed([text for text, _, _ in TRIPLES])
    answers = embedder.embed([related for _, related, _ in TRIPLES] + [unrelated for _, _, unrelated in TRIPLES])

    first = (asked @ answers.T).argmax(axis=1)

    assert (first == np.arange(len(TRIPLES))).mean() >= 0.75


def test_a_rare_word_outweighs_a_common_one_and_punctuation(embedder: StaticEmbedder) -> None:
    text, rare, common, loud = embedder.embed(["the volcano", "volcano", "the", "volcano!!!"])

    assert text @ rare > text @ common + 0.1
    assert loud @ rare > 0.95


# Each is text that some way of splitting takes quadratic time for.
AWKWARD = {
    "prose": "the quick brown fox jumps over a lazy dog. ",
    "one word": "q",
    "unknown characters": "🎉",
    "accents": "\u0301\u0327",  # the two must change places to be in order
    "new words": " ".join(f"{number:x}" for number in random.Random(1).sample(range(2**40), 100_000)),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_time_grows_with_length_and_no_faster(embedder: StaticEmbedder, name: str) -> None:
    length = 400_000
    text = (AWKWARD[name] * (length // len(AWKWARD[name]) + 1))[:length]
    tenth = text[: length // 10]

    assert times_as_long(lambda: embedder.embed([text]), lambda: embedder.embed([tenth])) < 40  # ten, or a hundred


def test_many_threads_load_one_table_and_agree() -> None:
    embedder = StaticEmbedder()
    texts = [text for triple in TRIPLES for text in triple]
    expected = StaticEmbedder().embed(texts)
    start = Barrier(8)
    tables = set()

    def embed(number: int) -> bool:
        start.wait()
        for _ in range(20):
            order = random.Random(number).sample(range(len(texts)), len(texts))
            if not (embedder.embed([texts[at] for at in order]) == expected[order]).all():
                return False
        tables.add(id(embedder._table))
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(embed, range(8)))
    assert len(tables) == 1


def test_an_embedder_that_is_not_used_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "TABLE_FILE", "missing.npz")

    unused = StaticEmbedder()

    assert (unused.name, unused.dimensions) == ("wellkept-static-256-v2", 256)
    with pytest.raises(FileNotFoundError):
        unused.embed(["now it is needed"])
