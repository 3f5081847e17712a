"""The default embedder: its graph, its word pieces, and that near meanings are near."""

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from tests.stopwatch import times_as_long
from wellkept import Wellkept
from wellkept.errors import ModelError
from wellkept.providers import minilm
from wellkept.providers.minilm import MiniLMEmbedder, WordPieces

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
    ("Recollection remembers", "rec ##oll ##ection remembers"),
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
    ("great🎉", "[UNK]"),
    ("👩\u200d💻 codes", "[UNK] codes"),
    ("5€", "5 ##€"),
    ("我爱你", "我 [UNK] [UNK]"),
    ("b" * 101 + " kept", "[UNK] kept"),
    ("\x0b\x0c\x85", ""),
]
# The encoder's tokenizer would read its own markers.
MARKERS = ("[CLS] text [SEP]", "[ cl ##s ] text [ sep ]")


# In the order of a vocabulary that knows little.
PIECES = {piece: number for number, piece in enumerate(("[CLS]", "[SEP]", "[UNK]", "a", "b", "##b", "c"))}


@pytest.fixture(scope="module")
def embedder() -> MiniLMEmbedder:
    return MiniLMEmbedder()


@pytest.fixture(scope="module")
def vocabulary() -> list[str]:
    return packaged(minilm.VOCABULARY_FILE).decode().rstrip("\n").split("\n")


@pytest.fixture(scope="module")
def split(vocabulary: list[str]) -> WordPieces:
    return WordPieces({piece: number for number, piece in enumerate(vocabulary)}, limit=minilm.MAX_PIECES)


def packaged(name: str) -> bytes:
    return resources.files("wellkept.providers").joinpath(name).read_bytes()


def test_the_graphs_are_the_ones_whose_vectors_stores_hold() -> None:
    vectors = minilm.MiniLMEmbedder().embed(["Prefers tabs over spaces", "Ich wohne in Bamberg."])

    # Another graph needs another name, so that stores embed their texts again.
    assert minilm.NAME == "minilm-l6-v2-int8-1b7f6630"
    assert vectors[:, :3] == pytest.approx(np.array([[-0.0278, -0.0304, -0.0255], [-0.0375, 0.1157, 0.0318]]), abs=1e-3)
    assert len(packaged(minilm.GRAPH_FILE)) < 24_000_000
    assert len(packaged(minilm.FACTS_FILE)) < 6_000_000


@pytest.mark.parametrize(("text", "expected"), [*AS_THE_ENCODER, MARKERS])
def test_text_splits_into_word_pieces(split: WordPieces, vocabulary: list[str], text: str, expected: str) -> None:
    assert [vocabulary[number] for number in split(text)] == ["[CLS]", *expected.split(), "[SEP]"]


def test_long_text_is_cut(split: WordPieces) -> None:
    numbers = split("word " * 100_000)

    assert len(numbers) == minilm.MAX_PIECES
    assert numbers[-1] == split("")[-1]


def test_pieces_are_those_of_the_encoders_own_tokenizer(split: WordPieces, vocabulary: list[str]) -> None:
    """Compare with the package `tokenizers` on texts of many scripts, and on random ones."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    ids = {piece: number for number, piece in enumerate(vocabulary)}
    reference = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    reference.normalizer = normalizers.BertNormalizer()
    reference.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    reference.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    reference.enable_truncation(minilm.MAX_PIECES)
    dice = random.Random(7)
    # Later versions of Unicode are not known to all of them.
    alphabet = [chr(code) for code in range(0x600) if not 0x530 <= code < 0x5BE]
    alphabet += list("日本語한국어नमस्तेไทยอักษรไทย👩🎉€™“”…—ﬁ𝔘𝒳ꙮ\u3000\u200b\ufeff\u2028\U0002b8ff")
    texts = [text for text, _ in AS_THE_ENCODER] + [text for triple in TRIPLES for text in triple]
    texts += ["".join(dice.choices(alphabet, k=dice.randrange(1, 40))) for _ in range(500)]
    texts += [" ".join(dice.choices(vocabulary[1000:], k=dice.randrange(1, 400))) for _ in range(20)]

    assert [text for text in texts if split(text) != reference.encode(text).ids] == []


def test_a_forgotten_word_splits_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "MAX_CACHED_WORDS", 2)
    monkeypatch.setattr(minilm, "MAX_CACHED_CHARS", 1)
    split = WordPieces(PIECES, limit=20)

    assert [split("a Ab C ab b") for _ in range(3)] == [[0, 3, 3, 5, 6, 3, 5, 4, 1]] * 3
    assert split("ca cb") == [0, 2, 6, 5, 1]
    assert len(split._words) <= 2


def test_vectors_are_float32_of_length_one(embedder: MiniLMEmbedder) -> None:
    vectors = embedder.embed(["one", "two words", "a much longer text about nothing in particular", "", "🎉", "\ud800"])

    assert vectors.shape == (6, embedder.dimensions) == (6, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_no_texts_are_no_vectors(embedder: MiniLMEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 384)


def test_a_vector_depends_on_its_text_alone(embedder: MiniLMEmbedder) -> None:
    texts = [text for triple in TRIPLES for text in triple] + ["", "long " * 9_000, "end"]
    together = embedder.embed(texts)

    for text, vector in zip(texts[:20] + texts[-3:], [*together[:20], *together[-3:]], strict=True):
        assert embedder.embed([text])[0] @ vector > 0.9999


def test_case_accents_and_spacing_do_not_matter(embedder: MiniLMEmbedder) -> None:
    plain, odd = embedder.embed(["the cafe is open", "  The\tCAFÉ\u200b is\n\nopen "])

    assert plain @ odd > 0.9999


@pytest.mark.parametrize(("text", "related", "unrelated"), TRIPLES)
def test_related_is_nearer_than_unrelated(embedder: MiniLMEmbedder, text: str, related: str, unrelated: str) -> None:
    asked, near, far = embedder.embed([text, related, unrelated])

    assert asked @ near > asked @ far + 0.1


def test_the_right_answer_comes_first_among_all(embedder: MiniLMEmbedder) -> None:
    asked = embedder.embed([text for text, _, _ in TRIPLES])
    answers = embedder.embed([related for _, related, _ in TRIPLES] + [unrelated for _, _, unrelated in TRIPLES])

    first = (asked @ answers.T).argmax(axis=1)

    assert (first == np.arange(len(TRIPLES))).mean() >= 0.85


# Each is text that some way of splitting takes quadratic time for.
AWKWARD = {
    "prose": "the quick brown fox jumps over a lazy dog. ",
    "one word": "q",
    "unknown characters": "🎉",
    "accents": "\u0301\u0327",  # the two must change places to be in order
    "new words": " ".join(f"{number:x}" for number in random.Random(1).sample(range(2**40), 100_000)),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_time_does_not_grow_with_what_is_not_read(split: WordPieces, name: str) -> None:
    length = 400_000
    text = (AWKWARD[name] * (length // len(AWKWARD[name]) + 1))[:length]
    tenth = text[: length // 10]

    assert times_as_long(lambda: split(text), lambda: split(tenth)) < 10


def test_many_threads_load_one_graph_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text for triple in TRIPLES[:8] for text in triple]
    expected = MiniLMEmbedder().embed(texts)
    monkeypatch.setattr(minilm, "_loaded", [])
    opened, start = list[int](), Barrier(8)
    open_graph = minilm._open

    def count_and_open() -> minilm._Encoder:
        opened.append(1)
        return open_graph()

    monkeypatch.setattr(minilm, "_open", count_and_open)

    def embed(number: int) -> bool:
        start.wait()
        order = random.Random(number).sample(range(len(texts)), len(texts))
        found = MiniLMEmbedder().embed([texts[at] for at in order])
        return bool(((found * expected[order]).sum(axis=1) > 0.9999).all())

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(embed, range(8)))
    assert len(opened) == 1


CHILD = """
import os, sys, threading
from wellkept.providers import minilm

embedder = minilm.MiniLMEmbedder()
expected = embedder.embed(["a fork"])
stop = threading.Event()
busy = [threading.Thread(target=lambda: [embedder.embed(["busy"]) for _ in iter(stop.is_set, True)]) for _ in range(3)]
[each.start() for each in busy]
minilm._lock.acquire()  # as if another thread were loading it
if (child := os.fork()) == 0:
    assert not minilm._loaded
    os._exit(0 if (embedder.embed(["a fork"]) == expected).all() else 1)
_, status = os.waitpid(child, 0)
stop.set()
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_child_loads_its_own() -> None:
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", CHILD], timeout=60).returncode == 0


def test_opening_and_writing_do_not_load_the_runtime(tmp_path: Path) -> None:
    program = f"""
import sys
import wellkept
with wellkept.Wellkept({str(tmp_path / "memory.db")!r}) as store:
    store.agent().list()
assert "onnxruntime" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.fixture
def without_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "_loaded", [])
    # What Python puts there when an import shall fail.
    monkeypatch.setitem(sys.modules, "onnxruntime", None)


@pytest.mark.usefixtures("without_runtime")
def test_without_the_runtime_the_error_says_what_to_do() -> None:
    with pytest.raises(ModelError, match=r"onnxruntime cannot be imported .* works by words alone. Run: pip install"):
        MiniLMEmbedder().embed(["text"])


@pytest.mark.usefixtures("without_runtime")
def test_without_the_runtime_recall_works_by_words() -> None:
    with Wellkept(":memory:") as store:
        agent = store.agent()
        agent.remember("Prefers tabs over spaces")

        assert [hit.text for hit in agent.recall("tabs or spaces")] == ["Prefers tabs over spaces"]
        assert "pip install" in store.embedding.problem


ENDING = """
from threading import Barrier, Thread
from wellkept.providers.minilm import MiniLMEmbedder

embedder, texts = MiniLMEmbedder(), ["The quick brown fox jumps over the lazy dog. " * 20] * 8
all_embed = Barrier(4)

def embed_on():
    embedder.embed(texts)
    all_embed.wait()
    while True:
        embedder.embed(texts)

for _ in range(3):
    Thread(target=embed_on, daemon=True).start()
all_embed.wait()
print("done")
"""


def test_a_program_may_end_while_its_threads_embed() -> None:
    done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_the_runtime_starts_no_thread_that_reports_to_its_maker() -> None:
    program = (
        "import os; from wellkept.providers.minilm import MiniLMEmbedder; MiniLMEmbedder().embed(['tea']); "
        "print(len(os.listdir('/proc/self/task')))"
    )
    if not Path("/proc/self/task").is_dir():
        program = "print(1)"
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # NumPy's own threads
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)

    assert done.stdout == "1\n"
