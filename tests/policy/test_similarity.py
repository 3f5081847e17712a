"""How well a memory fits a question."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from wellkept.language.text import FIXED, index_terms
from wellkept.model import Role
from wellkept.recall.rules_features import SPEAKERS, Evidence, Frame, NeighbourWeights, compute_features
from wellkept.recall.rules_matching import find_best, load_weights, score_records
from wellkept.recall.rules_question import ParsedQuery

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def evidence(
    query: str, *texts: str, cosines: list[float] | None = None, as_turns: bool = False, **more: Any
) -> tuple[Evidence, ParsedQuery]:
    """What an index would tell of these facts or turns, each its own conversation unless said otherwise."""
    asked = ParsedQuery.read(query, NOW)
    words = [index_terms(text) for text in texts]
    occurrences = []
    for term in asked.lookups:
        counts = np.array([each.count(term) for each in words], np.float32)
        occurrences.append((np.flatnonzero(counts), counts[counts > 0]))
    columns: dict[str, Any] = {
        "seqs": np.arange(1, len(texts) + 1),
        "conversations": -np.arange(1, len(texts) + 1),
        "lengths": np.array([len(each) for each in words], np.float32),
        "since": np.full(len(texts), NOW.timestamp()),
        "speakers": np.zeros(len(texts), np.int8),
        "traits": np.array(
            [sum((trait in each) << bit for bit, trait in enumerate(FIXED)) for each in words], np.uint8
        ),
        "cosines": None if cosines is None else np.array(cosines, np.float32),
        "occurrences": occurrences,
        "turns": np.full(len(texts), as_turns),
        **more,
    }
    return Evidence(**columns), asked


def similarities(found: Evidence, asked: ParsedQuery) -> Any:
    """The similarity of every record, 0 for those that do not match at all."""
    best = find_best(found, asked, limit=len(found.seqs))
    return np.array([best.get(int(seq), 0.0) for seq in found.seqs])


def strengths(found: Evidence, asked: ParsedQuery) -> Any:
    """The score that each record is ranked by, as a turn if any is one."""
    family = load_weights().turns if found.turns.any() else load_weights().facts
    return score_records(found, compute_features(found, asked), family)


def order(found: tuple[Evidence, ParsedQuery]) -> list[int]:
    return list(find_best(*found, limit=10))


def test_what_shares_words_comes_before_what_does_not() -> None:
    assert order(evidence("red apples", "a pear", "red apple pie", "a red door")) == [2, 3]


def test_meaning_finds_what_shares_no_word() -> None:
    near, far = similarities(*evidence("puppy", "my dog", "a truck", cosines=[0.7, 0.1]))

    assert near > 0.5 > 0.1 > far


def test_irregular_forms_are_one_word() -> None:
    assert order(evidence("Where did I buy it?", "a pear", "bought at the market", "a door")) == [2]
    plain = evidence("buy", "buy buy", "a pear")
    mixed = evidence("bought and buy", "bought, buy", "a pear")
    assert strengths(*plain).tolist() == strengths(*mixed).tolist()


def test_what_has_no_vector_yet_is_judged_by_its_words() -> None:
    nan = float("nan")
    found, asked = evidence("puppy food", "puppy food", "puppy food", "a truck", cosines=[nan, 0.9, nan])

    fit = strengths(found, asked)

    assert fit[0] > fit[2]
    assert 3 not in find_best(found, asked, limit=5)


def test_an_answer_is_found_by_the_words_of_its_question() -> None:
    talk = np.array([7, 7, 7, 8])
    texts = ("Which city do you like?", "Lisbon, no doubt", "Fine", "Lisbon, no doubt")

    found = order(evidence("favourite city", *texts, conversations=talk, as_turns=True))
    assert found[0] == 2  # not the question before it, nor the same words elsewhere
    assert 4 not in found


def test_neighbours_lend_nothing_across_conversations() -> None:
    found = order(evidence("city", "Which city?", "Lisbon", conversations=np.array([1, 2]), as_turns=True))

    assert found == [1]


@pytest.mark.parametrize("as_turns", [False, True])
def test_a_conversation_about_it_lends_weight(as_turns: bool) -> None:
    texts = ("apples", "pears", "plums", "figs", "the tax", "the car", "the tax", "a tree", "a lake", "a cat")
    talk = np.array([1] * 5 + [2] * 5)

    fit = strengths(*evidence("apples and tax", *texts, conversations=talk, as_turns=as_turns))
    assert fit[4] > fit[6]
    assert (fit[1] > fit[7]) == as_turns  # of a fact that holds no word, its company says nothing


@pytest.mark.parametrize(
    ("query", "first"),
    [("Where did I buy the lamp?", 1), ("Which lamp did you recommend?", 2), ("Where is the lamp?", 2)],
)
def test_who_is_asked_for_comes_first(query: str, first: int) -> None:
    speakers = np.array([SPEAKERS.index(Role.USER), SPEAKERS.index(Role.ASSISTANT)], np.int8)

    assert order(evidence(query, "the lamp", "the lamp", speakers=speakers, as_turns=True))[0] == first


def test_what_is_no_turn_is_never_somebody_elses() -> None:
    plain, asked = evidence("Which lamp did you recommend?", "the lamp", "the tree")

    assert strengths(plain, asked)[0] == strengths(plain, replace(asked, speaker=None))[0]


def test_the_time_that_is_asked_for_comes_first() -> None:
    times = [datetime(2025, month, 20, tzinfo=UTC).timestamp() for month in (3, 5, 8)]

    found = order(evidence("What did we paint in May 2025?", "we paint", "we paint", "we paint", since=np.array(times)))

    assert found[0] == 2


def test_a_question_about_nothing_we_know_gets_low_numbers() -> None:
    texts, others = ("red apples", *["a pear"] * 40), [0.3] * 40
    known = evidence("red apples", *texts, cosines=[0.7, *others])
    strange = evidence("quantum chromodynamics", *texts, cosines=[0.35, *others])

    assert similarities(*known).max() > 0.3
    assert similarities(*strange).max() < 0.05


def test_one_list_of_two_indexes_is_judged_like_one() -> None:
    whole, asked = evidence("red apple", "red apple", "apple", "red", cosines=[0.5, 0.4, 0.3])
    first, _ = evidence("red apple", "red apple", cosines=[0.5])
    rest, _ = evidence("red apple", "apple", "red", cosines=[0.4, 0.3])
    rest = replace(rest, seqs=rest.seqs + 1, conversations=rest.conversations - 1)

    joined = first.with_more(rest)

    assert similarities(joined, asked) == pytest.approx(similarities(whole, asked))


def test_facts_and_turns_are_each_weighed_by_their_own_and_compared_by_their_relevance() -> None:
    texts, cosines = ("Keeps kosher", "the diet he had was strict", *["a pear"] * 10), [0.5, 0.3, *[0.0] * 10]
    turns = np.array([False, True, *[True] * 10])
    mixed = evidence("What is his diet?", *texts, cosines=cosines, turns=turns)
    alone = [evidence("What is his diet?", *texts, cosines=cosines, as_turns=each) for each in (False, True)]

    fact, turn, *_ = similarities(*mixed)

    assert order(mixed)[0] == 1, "near in meaning, though it holds no word of the question"
    assert order(alone[1])[0] == 2, "as turns, the words count more"
    assert 0 < turn < fact


def test_what_matches_in_no_way_is_found_only_if_nothing_matches() -> None:
    assert order(evidence("zebra", "a pear", "a plum")) == [2, 1]  # the newest first
    assert set(similarities(*evidence("zebra", "a pear", "a plum"))) == {0.0}
    assert order(evidence("zebra", "a pear", "a zebra")) == [2]


def test_nothing_is_like_nothing() -> None:
    assert find_best(Evidence.empty(), ParsedQuery.read("anything", NOW), limit=5) == {}


def random_evidence(seed: int, *, records: int = 120) -> tuple[Evidence, ParsedQuery]:
    """Conversations of all lengths, some records without a vector, words that few and many hold."""
    choose = np.random.default_rng(seed)
    conversations = np.sort(choose.integers(0, records // 3, records))
    cosines = choose.uniform(-0.1, 0.8, records).astype(np.float32)
    cosines[choose.random(records) < 0.1] = np.nan
    occurrences = []
    for share in (0.02, 0.3, 0.9, 0.0):
        rows = np.flatnonzero(choose.random(records) < share)
        occurrences.append((rows, choose.integers(1, 4, len(rows)).astype(np.float32)))
    found = Evidence(
        seqs=choose.permutation(records) + 1,
        conversations=conversations,
        lengths=choose.integers(1, 40, records).astype(np.float32),
        since=np.full(records, NOW.timestamp()),
        speakers=choose.integers(0, len(SPEAKERS), records).astype(np.int8),
        turns=choose.random(records) < 0.5,
        traits=choose.integers(0, 128, records).astype(np.uint8),
        cosines=cosines,
        occurrences=occurrences,
    )
    return found, ParsedQuery.read("my new red apple pie", NOW)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_are_those_that_comparing_all_would_find(seed: int) -> None:
    found, asked = random_evidence(seed)
    likeness = similarities(found, asked)
    order = np.lexsort((-found.seqs, -likeness))

    for limit in (1, 7, 60, 500):
        assert find_best(found, asked, limit=limit) == {
            int(found.seqs[each]): float(likeness[each]) for each in order[:limit] if likeness[each] > 0
        }


@pytest.mark.parametrize("seed", range(10))
def test_what_an_index_keeps_from_question_to_question_changes_nothing(seed: int) -> None:
    found, asked = random_evidence(seed)
    kept = replace(found, frame=Frame.of(found.conversations, found.lengths))

    assert np.array_equal(strengths(kept, asked), strengths(found, asked), equal_nan=True)


@pytest.mark.parametrize("seed", range(10))
def test_what_few_rows_lend_is_what_they_lend_among_all(seed: int) -> None:
    found, _ = random_evidence(seed)
    beside = NeighbourWeights.of(found.conversations)
    total = len(found.seqs)
    rows, counts = (np.concatenate(each) for each in zip(*found.occurrences, strict=True))
    words = np.repeat(np.arange(len(found.occurrences)), [len(each) for each, _ in found.occurrences])

    lent_to, lent_words, lent = beside.lend_words(rows, words, counts, total, back=counts)

    everywhere, expected = np.zeros((2, len(found.occurrences), total), np.float32)
    everywhere[lent_words, lent_to] = lent
    expected[words, rows] = counts
    assert np.allclose(everywhere, [beside.lend(each) for each in expected])
    assert len(set(zip(lent_words.tolist(), lent_to.tolist(), strict=True))) == len(lent)


def test_a_word_that_only_asks_does_not_outweigh_one_that_names_something() -> None:
    found = evidence("which order of concerts do you suggest?", "the order you suggest", "concerts", "a", "b", "c")

    fit, in_full = (strengths(*each) for each in (found, naming(found)))
    assert fit[1] > fit[0] / 2  # one word that names something against two that ask
    assert fit[0] < in_full[0]


def test_a_repetition_is_an_echo_and_a_question_with_words_of_its_own_is_not() -> None:
    query = "Which hotel did Ann book in Oslo?"
    found, asked = evidence(
        query,
        query,
        "Which hotel in Oslo should Ann book for her brother and the dog?",
        "Ann booked the hotel Bristol in Oslo",
    )
    echo = compute_features(found, asked)["echo"]
    assert echo[0] > 0.99, "it holds the words of the question and no others"
    assert 0 < echo[1] < 0.8 * echo[0], "it holds them, too, and says more"
    assert echo[2] == 0, "it states something"


def test_the_same_question_in_other_words_does_not_come_before_the_answer() -> None:
    asked_before = "Do you happen to know which hotel it was that Ann booked in Oslo, please?"
    found = evidence(
        "Which hotel did Ann book in Oslo?",
        asked_before,
        "By the way, Ann booked the Bristol for our stay in Oslo.",
        "Tom likes tea",
        cosines=[0.7, 0.6, 0.1],
    )
    assert order(found)[0] == 2


def naming(found: tuple[Evidence, ParsedQuery]) -> tuple[Evidence, ParsedQuery]:
    """The same, had every word of the question named something."""
    known, asked = found
    return known, replace(asked, weights=[1.0] * len(asked.terms))


def test_a_named_day_or_month_excludes_others() -> None:
    long_ago = np.array([datetime(2025, 6, 1, tzinfo=UTC).timestamp(), NOW.timestamp()])
    day = evidence("the concert yesterday", "a concert", "a concert", since=long_ago)
    month = evidence("the concert in January", "a concert", "a concert", since=long_ago)

    for found in (day, month):
        earlier, later = strengths(*found)
        assert earlier < later
