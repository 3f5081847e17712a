"""Train the readings of statements, and the weights that tell whether a statement ends an older one.

    python tools/facts/train.py            # train on nine tenths of the pages, and print what the rest says
    python tools/facts/train.py --write    # and write the graph and the weights of the package
    python tools/facts/train.py --final    # and print figures on the pairs that are held out

The upper half of the packaged encoder is trained further as an encoder of single sentences, together with what compares
two of its vectors. README.md beside this file says what it needs and what was measured.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors.numpy import load_file
from torch import Tensor, nn

from wellkept.facts.rules_pairs import SIGNS, compare
from wellkept.facts.rules_ratings import ENDINGS, WEIGHTS_FILE
from wellkept.facts.rules_statements import Statement, read_statement
from wellkept.providers import minilm

sys.path.insert(0, str(Path(__file__).parents[1] / "embedder"))
import build_encoder as encoder

FOLDER = Path(__file__).parent
LABELS = {"supersedes": "superseded"} | {each.value: each.value for each in ENDINGS}
KINDS = ("fact", "remark", "nothing")
EPOCHS, RATE, HEAD_RATE, DECAY, DROPOUT = 4, 4e-5, 1e-3, 0.01, 0.1
HIDDEN, PLACES = 128, 128
PAIRS_PER_STEP = 16
STRANGERS = 3
"""Statements of other pairs put before each new one, which keeps them."""

BEFORE, AFTER = 2, 1
"""Statements of the same turn that count as being around one."""


class Pair(NamedTuple):
    """An older statement and a new one, with what is said around the new one."""

    old: str
    new: str
    around: tuple[str, ...] = ()
    label: str = "keeps"

    @property
    def ends(self) -> bool:
        """Return True if the new statement ends the older one."""
        return self.label != "keeps"


class Group(NamedTuple):
    """What one step is trained on: a page, or some pairs."""

    name: str
    pairs: Sequence[Pair]
    kinds: Sequence[tuple[str, str]] = ()  # sentences, and whether they state anything


def read_page(page: Mapping[str, object]) -> Group:
    """Return each new statement of a page with all that stood before it, and the kind of each sentence."""
    standing, pairs, kinds = dict(page["have"]), [], []
    for turn in page["turns"]:
        kinds += [(part["t"], part["k"]) for part in turn["parts"]]
        stated = [part for part in turn["parts"] if part["k"] != "nothing"]
        for place, part in enumerate(stated):
            beside = stated[max(0, place - BEFORE) : place] + stated[place + 1 : place + 1 + AFTER]
            around, ends = tuple(each["t"] for each in beside), part.get("ends", {})
            pairs += [Pair(old, part["t"], around, ends.get(name, "keeps")) for name, old in standing.items()]
            standing = {name: old for name, old in standing.items() if name not in ends}
            standing[part.get("id", f"{len(pairs)}")] = part["t"]
    return Group(page["who"] + json.dumps(page["have"]), pairs, kinds)


def read_pairs(name: str) -> list[Pair]:
    """Read the pairs of a file."""
    rows = map(json.loads, (FOLDER / "pairs" / name).read_text("utf-8").splitlines())
    return [Pair(row["old"], row["new"], label=LABELS.get(row["label"], row["label"])) for row in rows]


def read_groups() -> tuple[list[Group], list[Group]]:
    """Return the groups to train on, and the pages to measure with: a tenth, by a checksum."""
    files = sorted((FOLDER / "pages").glob("*.jsonl"))
    pages = [read_page(json.loads(line)) for file in files for line in file.read_text("utf-8").splitlines() if line]
    is_kept = [int(hashlib.sha1(page.name.encode()).hexdigest(), 16) % 10 == 0 for page in pages]
    return [p for p, kept in zip(pages, is_kept, strict=True) if not kept], [
        p for p, kept in zip(pages, is_kept, strict=True) if kept
    ]


def mix_pairs(pairs: Sequence[Pair]) -> Iterator[Group]:
    """Yield some pairs at a time, in an order by chance, each with strangers."""
    mixed = random.sample(pairs, len(pairs))
    for start in range(0, len(mixed), PAIRS_PER_STEP):
        part = mixed[start : start + PAIRS_PER_STEP]
        own = {(pair.old, pair.new) for pair in part}
        strangers = [Pair(random.choice(part).old, pair.new) for pair in part for _ in range(STRANGERS)]
        yield Group("pairs", [*part, *(each for each in strangers if each[:2] not in own)])


@cache
def load_states(text: str) -> tuple[Tensor, NDArray[np.float32]]:
    """Return the states of a text's pieces after the lower layers, and its vector."""
    loaded = minilm._load()
    ((_, inputs),) = loaded._make_batches([text])
    vectors, states = loaded.session.run(["vectors", "states"], inputs)
    return torch.tensor(states), vectors[0]


@cache
def describe(text: str) -> Statement:
    """Read a statement, with its vector."""
    return replace(read_statement(text), vector=load_states(text)[1])


@cache
def find_signs(old: str, new: str) -> tuple[float, ...]:
    """Return what two statements have in common by rules."""
    return tuple(compare(describe(old), describe(new)))


class Layer(nn.Module):
    """A layer of the encoder, with its weights."""

    def __init__(self, tensors: Mapping[str, NDArray[np.float32]], number: int) -> None:
        super().__init__()
        self.parts = nn.ModuleDict()
        prefix = f"encoder.layer.{number}."
        for name in sorted({key.removeprefix(prefix).rsplit(".", 1)[0] for key in tensors if key.startswith(prefix)}):
            weight, bias = (torch.tensor(tensors[f"{prefix}{name}.{part}"]) for part in ("weight", "bias"))
            made = nn.LayerNorm(len(weight), eps=1e-12) if weight.ndim == 1 else nn.Linear(*reversed(weight.shape))
            made.weight.data, made.bias.data = weight, bias
            self.parts[name.replace(".", "_")] = made
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, state: Tensor, mask: Tensor) -> Tensor:
        shape = (*state.shape[:2], encoder.HEADS, encoder.FEATURES // encoder.HEADS)
        heads = (
            self.parts[f"attention_self_{name}"](state).view(shape).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        seen = F.scaled_dot_product_attention(*heads, attn_mask=mask[:, None, None], dropout_p=DROPOUT * self.training)
        mixed = self.parts["attention_output_dense"](seen.transpose(1, 2).flatten(2))
        state = self.parts["attention_output_LayerNorm"](state + self.drop(mixed))
        inner = self.parts["output_dense"](F.gelu(self.parts["intermediate_dense"](state)))
        return self.parts["output_LayerNorm"](state + self.drop(inner))


class Reader(nn.Module):
    """The upper layers, and what compares two readings; `wellkept.facts.rules_ratings` computes the same."""

    def __init__(self) -> None:
        super().__init__()
        tensors = load_file(encoder.packaged(encoder.WEIGHTS, encoder.WEIGHTS_SHA256))
        self.layers = nn.ModuleList(Layer(tensors, number) for number in range(encoder.LOWER_LAYERS, encoder.LAYERS))
        self.drop = nn.Dropout(DROPOUT)
        self.old, self.new, self.around = (nn.Linear(encoder.FEATURES, PLACES) for _ in range(3))
        self.near, self.near_around = nn.Parameter(torch.tensor(6.0)), nn.Parameter(torch.tensor(1.0))
        self.hidden, self.end = nn.Linear(4 * encoder.FEATURES, HIDDEN), nn.Linear(HIDDEN, 1)
        self.change, self.signs = nn.Linear(encoder.FEATURES, 1), nn.Linear(len(SIGNS), 1)
        self.ending = nn.Linear(HIDDEN, len(ENDINGS))
        self.kind = nn.Linear(encoder.FEATURES, len(KINDS))
        nn.init.zeros_(self.signs.weight)
        nn.init.constant_(self.signs.bias, -4.0)

    def read(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """Return the readings of texts, each of the length that the weights are used with."""
        found, order = {}, sorted(set(texts), key=lambda text: len(load_states(text)[0]))
        third = max(1, -(-len(order) // 3))
        for part in (order[start : start + third] for start in range(0, len(order), third)):
            states = nn.utils.rnn.pad_sequence([load_states(text)[0] for text in part], batch_first=True)
            lengths = torch.tensor([len(load_states(text)[0]) for text in part])
            mask = torch.arange(states.shape[1]) < lengths[:, None]
            for layer in self.layers:
                states = layer(states, mask)
            total = (states * mask[:, :, None]).sum(1)
            found |= zip(part, F.normalize(total, dim=1) * encoder.FEATURES**0.5, strict=True)
        return found

    def forward(self, pairs: Sequence[Pair], readings: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the score of each pair, and the scores of how the older statement ends."""
        nothing = torch.zeros(encoder.FEATURES)
        old = torch.stack([readings[pair.old] for pair in pairs])
        new = torch.stack([readings[pair.new] for pair in pairs])
        around = torch.stack(
            [
                torch.stack([readings[text] for text in pair.around]).mean(0) if pair.around else nothing
                for pair in pairs
            ]
        )
        both = torch.cat([old * new, (old - new).abs(), old, new], 1)
        hidden, place = self.drop(F.gelu(self.hidden(self.drop(both)))), self.old(old)
        score = self.near * F.cosine_similarity(place, self.new(new))
        score = score + self.near_around * F.cosine_similarity(place, self.around(around))
        score = score + (self.end(hidden) + self.change(new)).squeeze(1)
        score = score + self.signs(torch.tensor([find_signs(pair.old, pair.new) for pair in pairs])).squeeze(1)
        return score, self.ending(hidden)

    def weights(self) -> dict[str, NDArray[np.float16]]:
        """Return the weights as the package names them."""
        state = {name: value.detach().numpy() for name, value in self.state_dict().items()}
        found = {}
        for name in ("old", "new", "around", "hidden", "ending", "kind"):
            found |= {name: state[f"{name}.weight"].T, f"{name}_bias": state[f"{name}.bias"]}
        found |= {name: state[f"{name}.weight"][0] for name in ("end", "change", "signs")}
        found |= {name: state[name] for name in ("near", "near_around")}
        found["bias"] = sum(state[f"{name}.bias"][0] for name in ("end", "change", "signs"))
        return {name: np.asarray(value, np.float16) for name, value in found.items()}


def compute_loss(reader: Reader, group: Group) -> Tensor:
    """Return how wrong the reader is about a group."""
    texts = [text for pair in group.pairs for text in (pair.old, pair.new, *pair.around)]
    readings = reader.read([*texts, *(text for text, _ in group.kinds)])
    score, ending = reader(group.pairs, readings)
    ends = torch.tensor([float(pair.ends) for pair in group.pairs])
    loss = F.binary_cross_entropy_with_logits(score, ends, reduction="sum")
    loss = loss / max(8, len({pair.new for pair in group.pairs}))
    ended = [(row, pair.label) for row, pair in enumerate(group.pairs) if pair.ends]
    if ended:
        names = [each.value for each in ENDINGS]
        wanted = torch.tensor([names.index(label) for _, label in ended])
        loss = loss + 0.3 * F.cross_entropy(ending[[row for row, _ in ended]], wanted)
    if group.kinds:
        kinds = reader.kind(reader.drop(torch.stack([readings[text] for text, _ in group.kinds])))
        loss = loss + 0.5 * F.cross_entropy(kinds, torch.tensor([KINDS.index(kind) for _, kind in group.kinds]))
    return loss


def train(pages: Sequence[Group], pairs: Sequence[Pair], held: Sequence[Group], epochs: int) -> Reader:
    """Train a reader, and print what it is worth after each round."""
    reader = Reader()
    heads = [value for name, value in reader.named_parameters() if not name.startswith("layers")]
    options = [{"params": reader.layers.parameters(), "lr": RATE}, {"params": heads, "lr": HEAD_RATE}]
    optimizer = torch.optim.AdamW(options, weight_decay=DECAY)
    steps = epochs * (len(pages) + -(-len(pairs) // PAIRS_PER_STEP))
    rise = 0.06 * steps
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / rise) * (1 - step / steps))
    for epoch in range(epochs):
        reader.train()
        groups, total = [*pages, *mix_pairs(pairs)], 0.0
        for group in random.sample(groups, len(groups)):
            loss = compute_loss(reader, group)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"round {epoch + 1}: loss {total / len(groups):.3f}", flush=True)
        measure(reader, "pages", held)
    return reader


def measure(reader: Reader, name: str, groups: Sequence[Group]) -> None:
    """Print how well the chances tell the pairs apart, and what each threshold is worth."""
    reader.eval()
    with torch.no_grad():
        chances = []
        for group in groups:
            texts = [text for pair in group.pairs for text in (pair.old, pair.new, *pair.around)]
            chances.append(reader(group.pairs, reader.read(texts))[0].sigmoid().numpy())
    found, ends = np.concatenate(chances), np.array([pair.ends for group in groups for pair in group.pairs])
    ranks, count = found.argsort().argsort(), ends.sum()
    area = (ranks[ends].sum() - count * (count - 1) / 2) / (count * (len(ends) - count))
    rows = [f"{name}: {len(ends)} pairs, {count} end, AUC {area:.3f}"]
    for least in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        right = (ends & (found >= least)).sum()
        rows.append(f"{least}: precision {right / max((found >= least).sum(), 1):.2f} recall {right / count:.2f}")
    print("; ".join(rows), flush=True)


def write(reader: Reader) -> None:
    """Write the graph of the upper layers and the weights into the package."""
    tensors = dict(load_file(encoder.packaged(encoder.WEIGHTS, encoder.WEIGHTS_SHA256)))
    for number, layer in enumerate(reader.layers, encoder.LOWER_LAYERS):
        prefix = f"encoder.layer.{number}."
        for key in [key for key in tensors if key.startswith(prefix)]:
            name, part = key.removeprefix(prefix).rsplit(".", 1)
            tensors[key] = getattr(layer.parts[name.replace(".", "_")], part).detach().numpy()
    graph = encoder.Graph(tensors).upper_model()
    onnx.checker.check_model(graph)
    onnx.save(graph, encoder.PROVIDERS / minilm.FACTS_FILE)
    np.savez_compressed(WEIGHTS_FILE, **reader.weights())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the graph and the weights of the package")
    parser.add_argument("--final", action="store_true", help="measure on the pairs that are held out")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    given = parser.parse_args()
    random.seed(1)
    torch.manual_seed(1)
    pages, held = read_groups()
    reader = train(pages, read_pairs("pairs.jsonl"), held, given.epochs)
    if given.final:
        measure(reader, "held out", [Group("held out", read_pairs("held_out.jsonl"))])
    if given.write:
        write(reader)


if __name__ == "__main__":
    main()
