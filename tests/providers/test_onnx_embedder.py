"""The embedder from a folder: tiny ONNX models, made here byte by byte, whose answers can be worked out by hand."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from wellkept import Wellkept
from wellkept.errors import Invalid, ModelError
from wellkept.providers.checked import open_embedder
from wellkept.providers.onnx_embedder import MAX_TOKENS, OnnxEmbedder

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "dog", "puppy", "car", "red"]
PAD, CLS, SEP, UNK, DOG, PUPPY, CAR, RED = range(len(WORDS))

# A row for each word. The padding's is large: if padding ever counted, every answer below would be wrong.
TABLE = np.array(
    [[90, 90, 90], [0, 0, 1], [0, 0, 2], [0.5, 0.5, 0.5], [4, 0, 0], [4, 1, 0], [0, 8, 0], [1, 1, 0]], np.float32
)

FLOAT, INT64, INT32, STRING = 1, 7, 6, 8  # ONNX's numbers for types of elements


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def field(number: int, value: int | str | bytes) -> bytes:
    """One field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    encoded = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(encoded)) + encoded


def node(operator: str, inputs: Sequence[str], output: str, **attributes: int) -> bytes:
    settings = b"".join(field(5, field(1, name) + field(3, value) + field(20, 2)) for name, value in attributes.items())
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, operator) + settings


def value(name: str, kind: int, *shape: str | int) -> bytes:
    sizes = b"".join(field(1, field(1 if isinstance(size, int) else 2, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, sizes)))


def constant(name: str, array: NDArray[np.float32] | NDArray[np.int64]) -> bytes:
    kind = FLOAT if array.dtype == np.float32 else INT64
    sizes = b"".join(field(1, size) for size in array.shape)
    return sizes + field(2, kind) + field(8, name) + field(9, array.tobytes())


def model(
    nodes: Sequence[bytes], inputs: Sequence[bytes], outputs: Sequence[bytes], table: NDArray[np.float32]
) -> bytes:
    constants = [constant("table", table), constant("one", np.array([1], np.int64))]
    parts = [(1, nodes), (2, [b"tiny"]), (5, constants), (11, inputs), (12, outputs)]
    graph = b"".join(field(number, each) for number, several in parts for each in several)
    return field(1, 8) + field(7, graph) + field(8, field(2, 18))  # ONNX 1.13: IR version 8, operators 18


TOKENS_IN = [value(name, INT64, "batch", "length") for name in ("input_ids", "attention_mask", "token_type_ids")]
LOOK_UP = node("Gather", ["table", "input_ids"], "last_hidden_state")
HIDDEN = value("last_hidden_state", FLOAT, "batch", "length", 3)


def token_model(table: NDArray[np.float32] = TABLE, inputs: Sequence[bytes] = TOKENS_IN) -> bytes:
    """Answers with a vector for each token: the row of its word."""
    return model([LOOK_UP], inputs, [HIDDEN], table)


def sentence_model() -> bytes:
    """Answers with tokens and, as its second output, the largest number of each column."""
    largest = node("ReduceMax", ["last_hidden_state", "one"], "sentence_embedding", keepdims=0)
    return model([LOOK_UP, largest], TOKENS_IN, [HIDDEN, value("sentence_embedding", FLOAT, "batch", 3)], TABLE)


def folder_with(path: Path, content: bytes, *, at: str = "model.onnx", max_length: int | None = None) -> Path:
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
    )
    if max_length is not None:
        tokenizer.enable_truncation(max_length)
        tokenizer.enable_padding(length=max_length, pad_id=PAD, pad_token="[PAD]")
    (path / at).parent.mkdir(parents=True, exist_ok=True)
    (path / at).write_bytes(content)
    tokenizer.save(str(path / "tokenizer.json"))
    return path


def unit(*rows: Sequence[float]) -> NDArray[np.float64]:
    matrix = np.array(rows, np.float64)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def mean(*words: int) -> Sequence[float]:
    return list(TABLE[[CLS, *words, SEP]].mean(axis=0))


def test_a_text_is_the_mean_of_its_tokens_without_the_padding(tmp_path: Path) -> None:
    encoder = OnnxEmbedder(str(folder_with(tmp_path, token_model())))

    matrix = encoder.embed(["dog", "red car car puppy", "car"])

    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix, unit(mean(DOG), mean(RED, CAR, CAR, PUPPY), mean(CAR)), atol=1e-6)
    assert encoder.dimensions == 3


def test_a_models_own_sentence_vector_is_preferred(tmp_path: Path) -> None:
    encoder = OnnxEmbedder(str(folder_with(tmp_path, sentence_model())))

    np.testing.assert_allclose(encoder.embed(["dog car"]), unit([4, 8, 2]), atol=1e-6)


def test_the_first_token_counts_if_the_folder_says_so(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, token_model())
    by_mean = OnnxEmbedder(str(folder)).name
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))

    encoder = OnnxEmbedder(str(folder))

    np.testing.assert_allclose(encoder.embed(["dog car"]), unit(list(TABLE[CLS])), atol=1e-6)
    assert encoder.name != by_mean


def test_the_model_may_lie_in_a_folder_below(tmp_path: Path) -> None:
    encoder = OnnxEmbedder(str(folder_with(tmp_path, token_model(), at="onnx/model.onnx")))

    np.testing.assert_allclose(encoder.embed(["dog"]), unit(mean(DOG)), atol=1e-6)


def test_a_model_may_want_fewer_inputs_and_smaller_integers(tmp_path: Path) -> None:
    small = [value("input_ids", INT32, "batch", "length")]
    encoder = OnnxEmbedder(str(folder_with(tmp_path, token_model(inputs=small))))

    np.testing.assert_allclose(encoder.embed(["dog", "car red"]), unit(mean(DOG), mean(CAR, RED)), atol=1e-6)


def test_the_tokenizer_says_how_much_is_read(tmp_path: Path) -> None:
    encoder = OnnxEmbedder(str(folder_with(tmp_path, token_model(), max_length=4)))

    np.testing.assert_allclose(
        encoder.embed(["dog dog car car car", "car"]), unit(mean(DOG, DOG), mean(CAR)), atol=1e-6
    )


def test_of_a_long_text_a_fixed_part_is_read_if_it_does_not(tmp_path: Path) -> None:
    encoder = OnnxEmbedder(str(folder_with(tmp_path, token_model())))
    read = MAX_TOKENS - 2  # the first and the last token are marks

    matrix = encoder.embed(["dog " * read + "car " * 1000])

    np.testing.assert_allclose(matrix, unit(mean(*[DOG] * read)), atol=1e-6)


def test_many_texts_keep_their_order(tmp_path: Path) -> None:
    encoder = OnnxEmbedder(str(folder_with(tmp_path, token_model())))
    counts = [(number * 7) % 41 for number in range(100)]

    matrix = encoder.embed([" ".join(["dog"] * count + ["car"]) for count in counts])

    np.testing.assert_allclose(matrix, unit(*(mean(*[DOG] * count, CAR) for count in counts)), atol=1e-6)
    assert encoder.embed([]).shape == (0, 3)


def test_an_empty_text_has_a_vector_too(tmp_path: Path) -> None:
    encoder = OnnxEmbedder(str(folder_with(tmp_path, token_model())))

    np.testing.assert_allclose(encoder.embed([""]), unit(mean()), atol=1e-6)


def test_many_threads_load_it_once_and_get_the_same_answers(tmp_path: Path) -> None:
    encoder = OnnxEmbedder(str(folder_with(tmp_path, token_model())))

    with ThreadPoolExecutor(8) as threads:
        matrices = list(threads.map(lambda _: encoder.embed(["dog", "red car"]), range(40)))

    for matrix in matrices:
        np.testing.assert_allclose(matrix, unit(mean(DOG), mean(RED, CAR)), atol=1e-6)


def test_the_name_follows_the_content_not_the_place(tmp_path: Path) -> None:
    one = OnnxEmbedder(str(folder_with(tmp_path / "one", token_model())))
    copy = OnnxEmbedder(str(folder_with(tmp_path / "two", token_model())))
    other_model = OnnxEmbedder(str(folder_with(tmp_path / "three", token_model(TABLE * 2))))
    other_tokenizer = OnnxEmbedder(str(folder_with(tmp_path / "four", token_model(), max_length=8)))
    weights = folder_with(tmp_path / "five", token_model())
    (weights / "model.onnx_data").write_bytes(b"weights")

    assert one.name == copy.name
    assert len({each.name for each in (one, other_model, other_tokenizer, OnnxEmbedder(str(weights)))}) == 4
    assert one.name.startswith("onnx:")


def test_a_missing_folder_or_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"no folder .*nowhere"):
        OnnxEmbedder(str(tmp_path / "nowhere"))
    with pytest.raises(Invalid, match=r"neither model\.onnx nor onnx/model\.onnx"):
        OnnxEmbedder(str(tmp_path))
    (tmp_path / "model.onnx").write_bytes(token_model())
    with pytest.raises(Invalid, match=r"no tokenizer\.json"):
        OnnxEmbedder(str(tmp_path))


@pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json", "1_Pooling/config.json"])
def test_a_damaged_file_is_named(tmp_path: Path, broken: str) -> None:
    folder = folder_with(tmp_path, token_model())
    (folder / broken).parent.mkdir(exist_ok=True)
    (folder / broken).write_bytes(b"damaged")

    with pytest.raises(Invalid, match=broken):
        _ = OnnxEmbedder(str(folder)).dimensions


def test_a_model_that_is_no_sentence_encoder_is_refused(tmp_path: Path) -> None:
    strange_input = token_model(inputs=[*TOKENS_IN, value("pixels", FLOAT, "batch", 3)])
    strange_type = token_model(inputs=[*TOKENS_IN[:2], value("token_type_ids", STRING, "batch", "length")])
    no_ids = model([node("Gather", ["table", "attention_mask"], "last_hidden_state")], TOKENS_IN[1:], [HIDDEN], TABLE)
    flat = node("ReduceMax", ["last_hidden_state"], "flat", keepdims=0)
    no_vectors = model([LOOK_UP, flat], TOKENS_IN, [value("flat", FLOAT)], TABLE)

    for place, (content, reason) in enumerate(
        [(strange_input, "pixels"), (strange_type, "token_type_ids"), (no_ids, "input_ids"), (no_vectors, "flat")]
    ):
        with pytest.raises(Invalid, match=f"not a sentence encoder: .*{reason}"):
            _ = OnnxEmbedder(str(folder_with(tmp_path / str(place), content))).dimensions


def test_a_model_that_fails_at_work_is_a_model_error(tmp_path: Path) -> None:
    encoder = OnnxEmbedder(str(folder_with(tmp_path, token_model(TABLE[:DOG]))))  # it knows no word from "dog" on

    assert encoder.dimensions == 3
    with pytest.raises(ModelError, match="ONNX model failed"):
        encoder.embed(["dog"])


def test_memories_are_recalled_with_it(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, token_model())
    chosen = open_embedder(f"onnx:{folder}")

    with Wellkept(":memory:", embedder=chosen) as store:
        agent = store.agent("atlas")
        agent.remember("car")
        agent.remember("puppy")
        best = agent.recall("dog", limit=1)

    assert [hit.text for hit in best] == ["puppy"]
