"""Fit the weights of `recollect.policy.passages` and write them to the package.

    python tools/ranking/fit_knowledge.py scifact.jsonl.gz realtalk.jsonl.gz beam.jsonl.gz

Every file has one set of texts and questions per line: {"memories": [{"id", "session", "speaker", "text"}],
"questions": [{"query", "turns"}]}. A session becomes a document. One or two words of a title are questions, too.
Questions about other sets and small talk are unanswerable. Shelves of several sizes are drawn from each set, so that
the weights hold for three documents and for five thousand. Figures are cross-validated over the questions.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect import Recollect
from recollect.policy import passages
from recollect.policy.chunking import DocumentPart, PartKind, split_passages
from recollect.policy.memories.importance import is_small_talk
from recollect.policy.passages import FEATURES, PassageEvidence, PassageWeights
from recollect.policy.recall.similarity import Evidence
from recollect.policy.text import terms

OUTPUT = Path(passages.__file__).with_name(passages.WEIGHTS_FILE)
SHELF_SIZES = (3, 30, 300, 3000)
UNSEEN = (0.0, 100.0)
"""Values tried for `PassageWeights.unseen`."""

SHOWN = 10
"""Passages of a question that are judged: as many as a prompt might show."""

COVERAGES, MEANINGS = (0.0, 0.15, 0.3, 0.5), (0.3, 0.45, 0.6, 0.8, 1.1)
"""Weights tried for the features, relative to that of the words."""
SPREADS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)

KEYWORDS = 60
"""Questions of one or two words drawn from the titles of each set."""

FOLDS = 5
POOL = 60
"""Passages of a question that are kept for the fit."""

MAX_SETS, MAX_QUESTIONS = 2, 150
PENALTY = 1.0
MAX_COST = 0.01
"""Share of the answerable questions that the floor may leave without their passage."""

SMALL_TALK = Path(__file__).with_name("small_talk.txt")

Floats = NDArray[np.float32]


@dataclass(slots=True)
class Shelf:
    """Documents of one set, split into passages."""

    name: str
    documents: NDArray[np.int64]  # document of each passage
    lengths: Floats
    matrix: Floats
    postings: Mapping[str, tuple[NDArray[np.int64], Floats]]
    is_article: bool  # documents with titles; otherwise conversations
    questions: list[tuple[str, Floats, frozenset[int]]] = field(default_factory=list)  # with the relevant passages

    def evidence(self, query: str, vector: Floats, kept: NDArray[np.int64]) -> PassageEvidence:
        """Return the evidence of a shelf with only the passages `kept`."""
        place = np.full(len(self.lengths), -1)
        place[kept] = np.arange(len(kept))
        nowhere = (np.zeros(0, np.int64), np.zeros(0, np.float32))
        occurrences = []
        for term in passages.query_terms(query):
            rows, counts = self.postings.get(term, nowhere)
            inside = place[rows] >= 0
            occurrences.append((place[rows][inside], counts[inside]))
        nothing = np.zeros(len(kept))
        return PassageEvidence.of_shelf(
            Evidence(
                seqs=kept,
                conversations=kept,
                lengths=self.lengths[kept],
                since=nothing,
                speakers=nothing.astype(np.int8),
                cosines=np.asarray(self.matrix[kept] @ vector, np.float32),
                occurrences=occurrences,
            )
        )


def read_shelves(path: Path, store: Recollect) -> Iterator[Shelf]:
    with gzip.open(path, "rt") as lines:
        for number, line in enumerate(lines):
            if number == MAX_SETS:
                return
            one = json.loads(line)
            sessions = defaultdict(list)
            for memory in one["memories"]:
                sessions[memory["session"]].append(memory)
            texts, documents, place_of = list[str](), list[int](), dict[str, set[int]]()
            for document, turns in enumerate(sessions.values()):
                title, parts = read_document(turns)
                split = split_passages(title, parts)
                flat = [" ".join(each.split()) for each in split]
                for turn in turns:
                    start = " ".join(turn["text"].split())[:80]
                    held = {len(texts) + place for place, each in enumerate(flat) if start in each}
                    place_of[turn["id"]] = held or set(range(len(texts), len(texts) + len(split)))
                texts += split
                documents += [document] * len(split)
            shelf = make_shelf(path.name, texts, documents, store, is_article=len(sessions) == len(one["memories"]))
            for question in one["questions"][:MAX_QUESTIONS]:
                relevant = frozenset().union(*(place_of.get(turn, ()) for turn in question["turns"]))
                if relevant:
                    shelf.questions.append((question["query"], embed(store, [question["query"]])[0], relevant))
            if shelf.is_article:
                for query, rows in draw_keywords([text.partition("\n\n")[0] for text in texts], shelf):
                    shelf.questions.append((query, embed(store, [query])[0], rows))
            yield shelf


def draw_keywords(headings: Sequence[str], shelf: Shelf) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield one or two rare words of a title as a question, with the passages below titles that contain them."""
    chance = np.random.default_rng(11)
    for row in chance.choice(len(headings), min(KEYWORDS, len(headings)), replace=False).tolist():
        words = [word for word in headings[row].split() if len(terms(word)) == 1 and word.isalpha()]
        words.sort(key=lambda word: len(shelf.postings[terms(word)[0]][0]))
        if wanted := set(terms(query := " ".join(words[: 1 + row % 2]))):
            yield query, frozenset(place for place, line in enumerate(headings) if wanted <= set(terms(line)))


def read_document(turns: Sequence[Mapping[str, str]]) -> tuple[str, list[DocumentPart]]:
    """Return the title and the parts of a session. A text alone is an article that begins with its title."""
    if len(turns) == 1 and not turns[0]["speaker"]:
        title, _, body = turns[0]["text"].partition(". ")
        return title.rstrip("."), [DocumentPart(kind=PartKind.PARAGRAPH, text=body or title)]
    parts = [DocumentPart(kind=PartKind.PARAGRAPH, text=f"{turn['speaker']}: {turn['text']}") for turn in turns]
    return f"Conversation {turns[0]['session']}"[:60], parts


def make_shelf(
    name: str, texts: Sequence[str], documents: Sequence[int], store: Recollect, *, is_article: bool
) -> Shelf:
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    lengths = np.zeros(len(texts), np.float32)
    for row, text in enumerate(texts):
        counts = Counter(terms(text))
        lengths[row] = counts.total()
        for term, count in counts.items():
            found[term].append((row, count))
    postings = {
        term: (np.array([row for row, _ in each]), np.array([count for _, count in each], np.float32))
        for term, each in found.items()
    }
    return Shelf(name, np.array(documents), lengths, embed(store, texts), postings, is_article)


def embed(store: Recollect, texts: Sequence[str]) -> Floats:
    # The embedder of the settings, as a store would use it.
    embedding = store._embedding
    pages = [embedding.of_texts(texts[start : start + 500]) for start in range(0, len(texts), 500)]
    return np.array([vector for page in pages for vector in page], np.float32)


@dataclass(slots=True)
class Judged:
    """One question on one shelf: the features of its best passages, for each value of `UNSEEN`."""

    name: str
    size: int
    fold: int
    is_whole: bool  # the shelf has all documents of the set
    is_article: bool
    is_keyword: bool  # the question is one or two words
    relevant: frozenset[int]  # documents; empty if the question is unanswerable
    documents: Mapping[float, NDArray[np.int64]]
    is_relevant: Mapping[float, NDArray[np.bool_]]
    features: Mapping[float, NDArray[np.float64]]

    evidence: PassageEvidence  # without the passages

    def rank(self, unseen: float, ranking: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the ranking scores of the best passages."""
        return np.maximum(self.features[unseen], 0) @ np.array([ranking[name] for name in FEATURES])

    def describe(self, unseen: float, ranking: Mapping[str, float]) -> Mapping[str, float]:
        """Return the properties of the best passage."""
        best = int(self.rank(unseen, ranking).argmax())
        features = {name: self.features[unseen][:, place] for place, name in enumerate(FEATURES)}
        return passages.describe_best(self.evidence, features, best, unseen=unseen)

    def rate(self, weights: PassageWeights) -> NDArray[np.float64]:
        """Return the probabilities of the best passages."""
        scores = self.rank(weights.unseen, weights.ranking)
        logit = passages.find_logit(self.describe(weights.unseen, weights.ranking), weights)
        return 1 / (1 + np.exp(-(logit + weights.spread * (scores - scores.max()))))


def judge(shelf: Shelf, size: int, fold: int, evidence: PassageEvidence, relevant: frozenset[int]) -> Judged:
    documents, is_relevant, features = {}, {}, {}
    for unseen in UNSEEN:
        found = passages.compute_features(evidence, unseen=unseen)
        matrix = np.stack([found[name] for name in FEATURES], axis=1).astype(np.float64)
        marked = np.isin(evidence.found.seqs, list(relevant))
        best = np.argsort(-matrix @ np.ones(len(FEATURES)))[:POOL]
        rows = np.unique(np.concatenate((best, np.flatnonzero(marked))))
        documents[unseen] = shelf.documents[evidence.found.seqs[rows]]
        is_relevant[unseen], features[unseen] = marked[rows], matrix[rows]
    answers = frozenset(int(shelf.documents[row]) for row in relevant)
    statistics = replace(evidence, found=Evidence.empty())
    return Judged(
        shelf.name,
        size,
        fold,
        size > shelf.documents.max(),
        shelf.is_article,
        len(evidence.holding) < 3,
        answers,
        documents,
        is_relevant,
        features,
        statistics,
    )


def draw_questions(shelves: Sequence[Shelf], small_talk: Sequence[tuple[str, Floats]]) -> Iterator[Judged]:
    """Draw answerable and unanswerable questions on shelves of several sizes."""
    chance = np.random.default_rng(7)
    strangers = [(query, vector) for shelf in shelves for query, vector, _ in shelf.questions]
    for shelf in shelves:
        groups = np.split(np.arange(len(shelf.documents)), np.flatnonzero(np.diff(shelf.documents)) + 1)
        own = {query for query, *_ in shelf.questions}
        foreign = [each for each in strangers if each[0] not in own]
        sizes = sorted({*(size for size in SHELF_SIZES if size < len(groups)), len(groups)})
        for number, (query, vector, relevant) in enumerate(shelf.questions):
            fold = number % FOLDS
            # Each question on the whole shelf and on one smaller shelf.
            for size in {sizes[number % len(sizes)], len(groups)}:
                picked = set(chance.choice(len(groups), size, replace=False).tolist())
                answers = {int(shelf.documents[row]) for row in relevant}
                kept = np.concatenate([groups[each] for each in sorted(picked | answers)])
                yield judge(shelf, size, fold, shelf.evidence(query, vector, kept), relevant)
                without = np.concatenate([groups[each] for each in sorted(picked - answers)] or [groups[0][:0]])
                if len(without):
                    stranger = foreign[int(chance.integers(len(foreign)))] if foreign and number % 2 else None
                    text, meaning = stranger or small_talk[int(chance.integers(len(small_talk)))]
                    yield judge(shelf, size, fold, shelf.evidence(text, meaning, without), frozenset())


def fit_ranking(questions: Sequence[Judged], unseen: float) -> Mapping[str, float]:
    """Return the weights with the best NDCG@10, averaged over the sets; of equal ones the smallest."""
    sets: dict[str, list[Judged]] = defaultdict(list)
    for each in questions:
        if each.relevant and each.size > SHELF_SIZES[0] and not each.is_keyword:
            sets[each.name].append(each)
    grid = [dict(zip(FEATURES, (1.0, *some), strict=True)) for some in product(COVERAGES, MEANINGS)]
    return max(
        grid, key=lambda one: np.mean([np.mean([ndcg(each, unseen, one) for each in some]) for some in sets.values()])
    )


def fit_logistic(matrix: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fit a logistic function by Newton's method."""
    rows, weights = matrix, np.zeros(matrix.shape[1])
    for _ in range(25):
        probability = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (labels - probability) - PENALTY * weights
        bend = (rows * (probability * (1 - probability))[:, None]).T @ rows + PENALTY * np.eye(rows.shape[1])
        weights = weights + np.linalg.solve(bend, slope)
    return weights


def fit(questions: Sequence[Judged], unseen: float) -> PassageWeights:
    """Fit the order of passages first, then the relevance of the best, then that of the others."""
    ranking = fit_ranking(questions, unseen)
    # In a conversation, small talk is no unanswerable question.
    questions = [each for each in questions if each.is_article]
    labels = np.array([float(each.is_relevant[unseen][each.rank(unseen, ranking).argmax()]) for each in questions])
    described = [each.describe(unseen, ranking) for each in questions]
    fitted = []
    for names in (tuple(described[0]), tuple(name for name in described[0] if "meaning" not in name)):
        matrix = np.array([[each[name] for name in names] for each in described])
        fitted.append(dict(zip(names, fit_logistic(matrix, labels).round(4).tolist(), strict=True)))
    weights = PassageWeights(unseen, ranking, 1.0, fitted[0], fitted[1], 0.0)
    losses = {spread: loss(questions, replace(weights, spread=spread)) for spread in SPREADS}
    return replace(weights, spread=min(losses, key=losses.__getitem__))


def loss(questions: Sequence[Judged], weights: PassageWeights) -> float:
    """Return the mean log loss over the passages that are shown."""
    total, count = 0.0, 0
    for each in questions:
        probabilities = np.clip(each.rate(weights), 1e-6, 1 - 1e-6)
        order = np.argsort(-probabilities)[:SHOWN]
        marked = each.is_relevant[weights.unseen][order]
        total -= float(np.log(np.where(marked, probabilities[order], 1 - probabilities[order])).sum())
        count += len(order)
    return total / count


def ndcg(judged: Judged, unseen: float, ranking: Mapping[str, float]) -> float:
    """NDCG@10 over documents."""
    order = np.argsort(-judged.rank(unseen, ranking), kind="stable")
    ranked = list(dict.fromkeys(judged.documents[unseen][order].tolist()))[:10]
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(judged.relevant))))
    return sum(1 / math.log2(place + 2) for place, each in enumerate(ranked) if each in judged.relevant) / ideal


def choose_floor(questions: Sequence[Judged], weights: PassageWeights) -> float:
    """Return the highest floor that costs at most `MAX_COST` of the answerable questions their passage."""
    asked = [each for each in questions if each.relevant and each.is_article and not each.is_keyword]
    least = recall_shown(asked, weights, 0.0) - MAX_COST
    tops = sorted(float(each.rate(weights).max()) for each in asked)
    return max((floor for floor in (0.0, *tops) if recall_shown(asked, weights, floor) >= least), default=0.0)


def report(questions: Sequence[Judged], weights: PassageWeights, floor: float) -> None:
    groups: dict[tuple[str, int], list[Judged]] = defaultdict(list)
    for each in questions:
        if not each.relevant or not each.is_keyword:
            groups[each.name, each.size].append(each)
        else:
            groups["keywords", each.size].append(each)
    print(f"{'set':28s} {'size':>5s} {'NDCG':>6s} {'found':>6s} {'kept':>6s} {'silent':>6s}")
    for (name, size), some in sorted(groups.items()):
        asked, idle = [each for each in some if each.relevant], [each for each in some if not each.relevant]
        before, after = (recall_shown(asked, weights, edge) for edge in (0.0, floor))
        silent = np.mean([each.rate(weights).max() < floor for each in idle]) if idle else 1
        score = np.mean([ndcg(each, weights.unseen, weights.ranking) for each in asked])
        print(f"{name:28s} {size:5d} {score:6.3f} {before:6.3f} {after:6.3f} {silent:6.3f}")


def recall_shown(questions: Sequence[Judged], weights: PassageWeights, floor: float) -> float:
    """Share of the questions with a relevant passage among those shown."""
    found = []
    for each in questions:
        probabilities = each.rate(weights)
        order = np.argsort(-probabilities)[: SHOWN if probabilities.max() >= floor else 0]
        least = passages.HIT_SHARE * floor
        found.append(bool(each.is_relevant[weights.unseen][order[probabilities[order] >= least]].any()))
    return float(np.mean(found)) if found else 0.0


def main(paths: Sequence[str]) -> None:
    with Recollect(":memory:") as store:
        shelves = [shelf for path in paths for shelf in read_shelves(Path(path), store)]
        # The search itself recognises the rest.
        lines = [line for line in SMALL_TALK.read_text("utf-8").splitlines() if not is_small_talk(line)]
        print(f"{len(lines)} lines of small talk and general questions that are not recognised as small talk")
        talk = list(zip(lines, embed(store, lines), strict=True))
    questions = list(draw_questions(shelves, talk))
    best: tuple[float, float] = (math.inf, 0.0)
    for unseen in UNSEEN:
        losses, held = list[float](), defaultdict[str, list[float]](list)
        for fold in range(FOLDS):
            weights = fit([each for each in questions if each.fold != fold], unseen)
            losses.append(loss([each for each in questions if each.fold == fold and each.is_article], weights))
            for each in questions:
                if each.fold == fold and each.relevant and each.is_whole and not each.is_keyword:
                    held[each.name].append(ndcg(each, unseen, weights.ranking))
        print(f"unseen {unseen:g}, cross-validated: log loss {np.mean(losses):.4f}, NDCG@10 of whole shelves:")
        print("   ", {name: round(float(np.mean(some)), 4) for name, some in held.items()}, flush=True)
        best = min(best, (float(np.mean(losses)), unseen))
    weights = fit(questions, best[1])
    floor = choose_floor(questions, weights)
    print(weights, f"floor {floor:.3f}")
    report(questions, weights, floor)
    stored = {
        "script": "tools/ranking/fit_knowledge.py",
        "unseen": weights.unseen,
        "ranking": weights.ranking,
        "spread": weights.spread,
        "with_meaning": weights.with_meaning,
        "by_words": weights.by_words,
        "floor": round(floor, 3),
    }
    OUTPUT.write_text(json.dumps(stored, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
