"""The wrapper that holds any embedder to its word."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from wellkept.errors import Invalid, ModelError
from wellkept.providers import minilm
from wellkept.providers.checked import CheckedEmbedder, open_embedder


class Given:
    """An embedder as a user might write one: it answers whatever it is told to."""

    name = "given"
    dimensions: Any = 2

    def __init__(self, answer: object = ((3.0, 4.0),)) -> None:
        self.answer = answer

    def embed(self, texts: Sequence[str]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Remote(Given):
    """One that lives across a network, which is down until `is_up`."""

    is_remote = True
    is_up = False

    @property
    def dimensions(self) -> int:
        if not self.is_up:
            raise ConnectionError("10.0.0.7 is down")
        return 2


class WithQueries(Given):
    def embed_query(self, text: str) -> Any:
        return [0.0, len(text)]


def test_lists_become_unit_rows_of_float32() -> None:
    checked = CheckedEmbedder(Given([[3, 4], [0, 0]]))

    matrix = checked.embed(["one", "two"])

    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix, [[0.6, 0.8], [0.0, 0.0]], atol=1e-7)
    assert checked.embed([]).shape == (0, 2)


@pytest.mark.parametrize(
    "answer",
    [
        [],
        [[1.0, 2.0, 3.0]],
        [[1.0, 2.0], [1.0, 2.0]],
        [1.0, 2.0],
        [[float("nan"), 1.0]],
        [["a", "b"]],
        None,
        [[1.0], [2, 3]],
    ],
    ids=str,
)
def test_any_other_answer_is_a_model_error(answer: object) -> None:
    with pytest.raises(ModelError, match="'given'"):
        CheckedEmbedder(Given(answer)).embed(["secret text"])


def test_whatever_it_raises_it_failed() -> None:
    with pytest.raises(ModelError, match="KeyError") as caught:
        CheckedEmbedder(Given(KeyError("secret text"))).embed(["secret text"])
    assert "secret" not in str(caught.value)

    own = ModelError("The model is asleep.")
    with pytest.raises(ModelError) as caught:
        CheckedEmbedder(Given(own)).embed(["text"])
    assert caught.value is own


def test_a_query_goes_to_the_embedders_own_method_if_it_has_one() -> None:
    np.testing.assert_allclose(CheckedEmbedder(Given()).embed_query("abc"), [0.6, 0.8], atol=1e-7)
    np.testing.assert_allclose(CheckedEmbedder(WithQueries()).embed_query("abc"), [0, 1], atol=1e-7)


@pytest.mark.parametrize("dimensions", [None, 0, -1, 2.0, "2", True])
def test_dimensions_are_a_positive_whole_number(dimensions: object) -> None:
    given = Given()
    given.dimensions = dimensions

    with pytest.raises(Invalid, match="An embedder has"):
        CheckedEmbedder(given)


@pytest.mark.parametrize("given", [object(), type("Nameless", (Given,), {"name": ""})()])
def test_what_is_no_embedder_is_refused(given: Any) -> None:
    with pytest.raises(Invalid, match="An embedder has"):
        CheckedEmbedder(given)


def test_a_remote_embedder_is_asked_nothing_until_it_is_used() -> None:
    remote = Remote()
    checked = CheckedEmbedder(remote)

    with pytest.raises(ModelError, match="ConnectionError"):
        _ = checked.dimensions
    remote.is_up = True
    assert checked.dimensions == 2
    remote.is_up = False
    assert checked.dimensions == 2


@pytest.mark.parametrize("choice", ["", "openai", "openai:", "onnx:", "word2vec", "static", "minilm:7", "OFF"])
def test_an_unknown_choice_names_the_known_ones(choice: str) -> None:
    with pytest.raises(Invalid, match="choose minilm, off, openai:<model> or onnx:<folder>"):
        open_embedder(choice)


def test_the_choices_open_what_they_name() -> None:
    builtin, remote = open_embedder("minilm"), open_embedder("openai:small", base_url="http://localhost:9/v1")

    assert open_embedder("off") is None
    assert builtin is not None
    assert (builtin.name, builtin.dimensions) == (minilm.NAME, 384)
    assert remote is not None
    assert remote.name == "openai:small@localhost:9"
