"""Which token counter a setting names, and that none of them asks the network."""

from __future__ import annotations

import base64
import hashlib
from importlib import import_module
from pathlib import Path

import pytest

from wellkept import Settings, Wellkept
from wellkept.errors import Invalid
from wellkept.providers.tokenizers import NOT_A_TOKENIZER, open_tokenizer

ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"


def test_the_default_is_the_estimate() -> None:
    assert open_tokenizer(Settings().tokenizer).count("x" * 41) == 11


def test_any_function_and_any_object_that_counts_will_do() -> None:
    class Letters:
        def count(self, text: str) -> int:
            return len(text)

    assert open_tokenizer(len).count("four") == 4
    assert open_tokenizer(Letters()).count("four") == 4


@pytest.mark.parametrize("answer", [-1, 1.5, True, None, "3"])
def test_a_function_that_does_not_count_is_told_so(answer: object) -> None:
    with pytest.raises(Invalid, match="number of its tokens"):
        open_tokenizer(lambda text: answer).count("x")  # type: ignore[arg-type,return-value]


def test_what_cannot_count_is_refused() -> None:
    with pytest.raises(Invalid) as refusal:
        open_tokenizer(7)  # type: ignore[arg-type]
    assert str(refusal.value) == NOT_A_TOKENIZER


@pytest.mark.parametrize("choice", ["", "words", "tiktoken", "tiktoken:"])
def test_an_unknown_name_is_refused_with_the_choices(choice: str) -> None:
    with pytest.raises(Invalid, match="choose estimate, or tiktoken:"):
        open_tokenizer(choice)


def test_a_store_refuses_to_open_with_a_tokenizer_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    settings = Settings(url=":memory:", tokenizer="tiktoken:cl100k_base")

    with pytest.raises(Invalid, match=r"cl100k_base.*wellkept downloads nothing"):
        Wellkept(settings=settings)


def test_an_encoding_nobody_knows_is_refused() -> None:
    with pytest.raises(Invalid, match=r"no encoding for 'klingon'; it has .*o200k_base"):
        open_tokenizer("tiktoken:klingon")


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as tiktoken leaves it, with an encoding of single bytes and one word; the network is out of reach."""
    tokens = [bytes([each]) for each in range(256)] + [b" w", b" wo", b" wor", b" word"]
    lines = b"\n".join(base64.b64encode(token) + b" " + str(rank).encode() for rank, token in enumerate(tokens))
    (tmp_path / hashlib.sha1(ADDRESS.encode()).hexdigest()).write_bytes(lines)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(import_module("tiktoken.load"), "read_file", lambda _: pytest.fail("asked the network"))
    return tmp_path


def test_a_damaged_file_counts_as_missing(cached: Path) -> None:
    with pytest.raises(Invalid, match="wellkept downloads nothing"):
        open_tokenizer("tiktoken:cl100k_base")
    assert len(list(cached.iterdir())) == 1  # and is left to its owner


@pytest.mark.parametrize("name", ["cl100k_base", "gpt-4"])
def test_a_file_that_is_there_counts_exactly(name: str, cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = cached.iterdir()
    expected = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
    sha256 = hashlib.sha256
    stand_in = sha256(file.read_bytes()).hexdigest()  # the real file is a megabyte, and its hash is in tiktoken

    class Hash:
        def __init__(self, content: bytes) -> None:
            self._real = sha256(content)

        def hexdigest(self) -> str:
            found = self._real.hexdigest()
            return expected if found == stand_in else found

    monkeypatch.setattr(hashlib, "sha256", Hash)

    counter = open_tokenizer(f"tiktoken:{name}")

    assert counter.count("a word") == 2
    assert counter.count("") == 0
    assert counter.count("<|endoftext|> \ud800") > 10  # a special token written by a user is plain text


def test_tiktoken_itself_is_left_as_it_was(cached: Path) -> None:
    with pytest.raises(Invalid):
        open_tokenizer("tiktoken:cl100k_base")

    encodings = import_module("tiktoken_ext.openai_public")
    assert encodings.load_tiktoken_bpe is import_module("tiktoken.load").load_tiktoken_bpe
