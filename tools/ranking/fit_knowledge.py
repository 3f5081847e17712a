"""Fit the weights of `wellkept.knowledge.rules_passages`.

`fit.py --knowledge scifact.jsonl.gz realtalk.jsonl.gz beam.jsonl.gz` calls it.

Every file has one set of texts and questions per line: {"memories": [{"id", "session", "speaker", "text"}],
"questions": [{"query", "turns"}]}. A session becomes a document. One or two words of a title are questions, too.
Questions about other sets and small talk are unanswerable. Shelves of several sizes are drawn from each set, so that
the weights hold for three documents and for five thousand. Figures are cross-validated over the questions. Files of
relevance (`tests/data/relevance`) become documents of a few memories each.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from records import ANSWERABLE, read_conversations
from relevance import HITS, Rated, fit_relevance, write_weights

from wellkept import Wellkept
from wellkept.knowledge import rules_passages as passages
from wellkept.knowledge.rules_chunking import DocumentPart, PartKind, split_passages
from wellkept.knowledge.rules_passages import FEATURES, PassageEvidence
from wellkept.language.text import terms
from wellkept.memory.rules_importance import is_small_talk
from wellkept.recall.rules_features import Evidence
from wellkept.recall.rules_question import find_names

OUTPUT = Path(passages.__file__).with_name(passages.WEIGHTS_FILE)
SHELF_SIZES = (1, 3, 30, 300, 3000)
COVERAGES, MEANINGS = (0.0, 0.15, 0.3, 0.5), (0.3, 0.45, 0.6, 0.8, 1.1)
"""Weights tried for the features, relative to that of the words."""

FLOORS = (0.03, 0.05, 0.07, 0.1, 0.14, 0.2)
"""Floors that are reported."""

KEYWORDS = 60
"""Questions of one or two words drawn from the titles of each set."""

FOLDS = 5
POOL = 60
"""Passages of a question that are kept for the fit."""

MAX_SETS, MAX_QUESTIONS = 2, 150
EACH = 5
"""Memories of a relevance file in each document."""

SMALL_TALK = Path(__file__).with_name("small_talk.txt")

Floats = NDArray[np.float32]


class ShelfQuestion(NamedTuple):
    """A question with its vector and the relevant passages."""

    query: str
    vector: Floats
    relevant: frozenset[int]
    kind: str


@dataclass(slots=True)
class Shelf:
    """Documents of one set, split into passages."""

    name: str
    documents: NDArray[np.int64]  # document of each passage
    lengths: Floats
    matrix: Floats
    postings: Mapping[str, tuple[NDArray[np.int64], Floats]]
    is_article: bool  # documents with titles; otherwise conversations
    questions: list[ShelfQuestion] = field(default_factory=list)

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
                turns=nothing.astype(np.bool_),
                traits=nothing.astype(np.uint8),
                cosines=np.asarray(self.matrix[kept] @ vector, np.float32),
                occurrences=occurrences,
            )
        )


def read_shelves(path: Path, store: Wellkept) -> Iterator[Shelf]:
    for one in _read_relevance(path) if path.suffix == ".jsonl" else islice(read_conversations(path), MAX_SETS):
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
        is_article = len(sessions) == len(one["memories"]) or path.suffix == ".jsonl"
        shelf = make_shelf(one.get("family", path.name), texts, documents, store, is_article=is_article)
        for question in one["questions"][:MAX_QUESTIONS]:
            query, kind = question["query"], question.get("kind", ANSWERABLE)
            relevant = frozenset[int]().union(*(place_of.get(turn, ()) for turn in question["turns"]))
            if relevant or kind != ANSWERABLE:
                shelf.questions.append(ShelfQuestion(query, embed(store, [query])[0], relevant, kind))
        if len(sessions) == len(one["memories"]):
            for query, rows in draw_keywords([text.partition("\n\n")[0] for text in texts], shelf):
                shelf.questions.append(ShelfQuestion(query, embed(store, [query])[0], rows, "keywords"))
        yield shelf


def _read_relevance(path: Path) -> Iterator[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    memories = [each for each in lines if "memory" in each]
    yield {
        "family": "relevance",
        "memories": [
            {"id": each["id"], "session": f"{place // EACH}", "speaker": "", "text": each["memory"]}
            for place, each in enumerate(memories)
        ],
        "questions": [
            {"query": each["question"], "turns": each["expected"], "kind": each["type"]}
            for each in lines
            if each.get("split") == "dev" and not is_small_talk(each["question"])
        ],
    }


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
    lines = [f"{turn['speaker']}: {turn['text']}" if turn["speaker"] else turn["text"] for turn in turns]
    parts = [DocumentPart(kind=PartKind.PARAGRAPH, text=line) for line in lines]
    return f"Conversation {turns[0]['session']}"[:60], parts


def make_shelf(
    name: str, texts: Sequence[str], documents: Sequence[int], store: Wellkept, *, is_article: bool
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


def embed(store: Wellkept, texts: Sequence[str]) -> Floats:
    # The embedder of the settings, as a store would use it.
    embedding = store.embedding
    pages = [embedding.of_texts(texts[start : start + 500]) for start in range(0, len(texts), 500)]
    return np.array([vector for page in pages for vector in page], np.float32)


@dataclass(slots=True)
class Judged:
    """One question on one shelf: the features of its best passages."""

    name: str
    size: int
    fold: int
    kind: str
    is_whole: bool  # the shelf has all documents of the set
    is_article: bool
    relevant: frozenset[int]  # documents; empty if the question is unanswerable
    documents: NDArray[np.int64]
    is_relevant: NDArray[np.bool_]
    features: Mapping[str, Floats]
    evidence: PassageEvidence  # of the best passages
    is_name: Sequence[bool]  # for each term of the question

    def rate(self, ranking: Mapping[str, float], *, by_words: bool = False) -> Rated | None:
        """Rank the passages; None if none has a word or a meaning in common with the question."""
        features = {name: each for name, each in self.features.items() if not by_words or name != "meaning"}
        scores = passages.rank_passages(features, ranking)
        top = np.argsort(-scores, kind="stable")[:HITS]
        if not scores[top[0]]:
            return None
        return Rated(
            asked=None,
            family=self.name.partition("_")[0],
            kind=self.kind,
            answers=int(self.is_relevant.sum()),
            match=passages.describe_best(self.evidence, self.is_name, features, scores, int(top[0])),
            below=scores[top[0]] - scores[top],
            relevant=self.is_relevant[top],
            known={},
        )


def judge(shelf: Shelf, size: int, fold: int, asked: ShelfQuestion, kept: NDArray[np.int64]) -> Judged:
    """Ask a question on a shelf of the passages `kept`, and keep the best of them and the relevant ones."""
    evidence, relevant = shelf.evidence(asked.query, asked.vector, kept), asked.relevant
    names = find_names(asked.query)
    features = passages.compute_features(evidence)
    found, marked = evidence.found, np.isin(evidence.found.seqs, list(relevant))
    best = np.argsort(-sum(features.values(), np.zeros(len(marked))))[:POOL]
    rows = np.unique(np.concatenate((best, np.flatnonzero(marked))))
    place = np.full(len(marked), -1)
    place[rows] = np.arange(len(rows))
    inside = [(place[held], place[held] >= 0, counts) for held, counts in found.occurrences]
    return Judged(
        shelf.name,
        size,
        fold,
        asked.kind,
        size > shelf.documents.max(),
        shelf.is_article,
        frozenset(int(shelf.documents[row]) for row in relevant),
        shelf.documents[found.seqs[rows]],
        marked[rows],
        {name: each[rows] for name, each in features.items()},
        # Only the occurrences count for a description.
        replace(evidence, found=replace(found, occurrences=[(held[ok], counts[ok]) for held, ok, counts in inside])),
        [term in names for term in passages.query_terms(asked.query)],
    )


def draw_questions(shelves: Sequence[Shelf], general: Sequence[tuple[str, Floats]]) -> Iterator[Judged]:
    """Draw answerable and unanswerable questions on shelves of several sizes."""
    chance = np.random.default_rng(7)
    for shelf in shelves:
        groups = np.split(np.arange(len(shelf.documents)), np.flatnonzero(np.diff(shelf.documents)) + 1)
        own = {each.query for each in shelf.questions}
        foreign = [each[:2] for other in shelves for each in other.questions if each.query not in own]
        sizes = sorted({*(size for size in SHELF_SIZES if size < len(groups)), len(groups)})
        for number, asked in enumerate(shelf.questions):
            # Each question on the whole shelf and on one smaller shelf.
            for size in {sizes[number % len(sizes)], len(groups)}:
                picked = set(chance.choice(len(groups), size, replace=False).tolist())
                answers = {int(shelf.documents[row]) for row in asked.relevant}
                kept = np.concatenate([groups[each] for each in sorted(picked | answers)])
                yield judge(shelf, size, number % FOLDS, asked, kept)
                # In a conversation, small talk is no unanswerable question.
                pool, kind = (general, "general") if number % 2 and shelf.is_article else (foreign, "foreign")
                text, meaning = pool[int(chance.integers(len(pool)))]
                yield judge(shelf, size, number % FOLDS, ShelfQuestion(text, meaning, frozenset(), kind), kept)


def fit_ranking(questions: Sequence[Judged]) -> Mapping[str, float]:
    """Return the weights with the best NDCG@10, averaged over the sets; of equal ones the smallest."""
    sets: dict[str, list[Judged]] = defaultdict(list)
    for each in questions:
        if each.kind == ANSWERABLE and each.size > SHELF_SIZES[1]:
            sets[each.name].append(each)
    grid = [dict(zip(FEATURES, (1.0, *some), strict=True)) for some in product(COVERAGES, MEANINGS)]
    return max(grid, key=lambda one: np.mean([np.mean([ndcg(each, one) for each in some]) for some in sets.values()]))


def rate_all(questions: Sequence[Judged], ranking: Mapping[str, float], *, by_words: bool = False) -> list[Rated]:
    """Rate the questions that find anything."""
    rated = (each.rate(ranking, by_words=by_words) for each in questions)
    return [each for each in rated if each is not None]


def ndcg(judged: Judged, ranking: Mapping[str, float]) -> float:
    """NDCG@10 over documents."""
    order = np.argsort(-passages.rank_passages(judged.features, ranking), kind="stable")
    ranked = list(dict.fromkeys(judged.documents[order].tolist()))[:10]
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(judged.relevant))))
    return sum(1 / math.log2(place + 2) for place, each in enumerate(ranked) if each in judged.relevant) / ideal


def main(paths: Sequence[Path], *, write: bool) -> None:
    with Wellkept(":memory:") as store:
        shelves = [shelf for path in paths for shelf in read_shelves(path, store)]
        # The search itself recognises the rest.
        lines = [line for line in SMALL_TALK.read_text("utf-8").splitlines() if not is_small_talk(line)]
        talk = list(zip(lines, embed(store, lines), strict=True))
    questions = list(draw_questions(shelves, talk))
    held = defaultdict[str, list[float]](list)
    for fold in range(FOLDS):
        others = [each for each in questions if each.fold != fold]
        ranking = fit_ranking(others)
        for each in questions:
            if each.fold == fold and each.kind == ANSWERABLE and each.is_whole:
                held[each.name].append(ndcg(each, ranking))
    print("folds, NDCG@10 of whole shelves:", {name: round(float(np.mean(some)), 4) for name, some in held.items()})
    ranking = fit_ranking(questions)
    stored = {
        "script": "tools/ranking/fit_knowledge.py",
        "ranking": ranking,
        "with_meaning": asdict(fit_relevance(rate_all(questions, ranking))),
        "by_words": asdict(fit_relevance(rate_all(questions, ranking, by_words=True))),
    }
    if write:
        write_weights(OUTPUT, stored)
