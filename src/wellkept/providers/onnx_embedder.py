"""Embedder for a local folder with an ONNX model and its tokenizer.

Reads folders written by sentence-transformers, Optimum or fastembed. Downloads nothing.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from wellkept.errors import Invalid, ModelError
from wellkept.program import FORMER_NAME
from wellkept.providers.checked import NATIVE_CALLS
from wellkept.settings import load_onnxruntime

MODEL_FILES = ("model.onnx", "onnx/model.onnx")
WEIGHTS_SUFFIX = "_data"  # a model of more than 2 GB keeps its weights in model.onnx_data
TOKENIZER_FILE = "tokenizer.json"
POOLING_FILE = "1_Pooling/config.json"

MAX_TOKENS = 256
"""Tokens read of a text, if the tokenizer sets no limit."""

BATCH = 32
RECIPE = f"{FORMER_NAME}-onnx-1".encode()
"""Part of the embedder's name: change it when the same model would give other vectors."""

SENTENCE_OUTPUT = "sentence_embedding"
PADDING_WORDS = ("[PAD]", "<pad>")
INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}

Floats = NDArray[np.float32]


class OnnxEmbedder:
    """`extension.Embedder` of an ONNX model. Loaded on first use; safe to share between threads."""

    is_builtin = True  # it only computes, so recall runs it on the caller's thread

    def __init__(self, folder: str) -> None:
        """Find the files of the model. Raises: Invalid when the folder does not hold a model and its tokenizer."""
        self._folder = Path(folder).expanduser()
        if not self._folder.is_dir():
            raise Invalid(f"There is no folder {str(self._folder)!r} to load an ONNX embedder from.")
        models = [self._folder / name for name in MODEL_FILES if (self._folder / name).is_file()]
        if not models:
            raise Invalid(f"The folder {str(self._folder)!r} holds neither {' nor '.join(MODEL_FILES)}.")
        self._model = models[0]
        self._tokenizer = self._folder / TOKENIZER_FILE
        if not self._tokenizer.is_file():
            raise Invalid(f"The folder {str(self._folder)!r} holds no {TOKENIZER_FILE}.")
        self._lock = threading.Lock()
        self._name: str | None = None
        self._encoder: _Encoder | None = None

    @property
    def name(self) -> str:
        """Name derived from the content of the files, independent of their location.

        Raises: Invalid when they cannot be read.
        """
        with self._lock:
            if self._name is None:
                self._name = f"onnx:{self._digest()[:16]}"
            return self._name

    @property
    def dimensions(self) -> int:
        """Length of the vectors. Raises: Invalid when the model cannot be loaded."""
        return self._load().dimensions

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector for each text. Raises: ModelError; Invalid when the model cannot be loaded."""
        encoder = self._load()
        vectors = np.empty((len(texts), encoder.dimensions), np.float32)
        # Texts of similar length share a batch, which keeps the padding small.
        by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(texts), BATCH):
            places = by_length[start : start + BATCH]
            vectors[places] = encoder.encode([texts[place] for place in places])
        return vectors

    def _digest(self) -> str:
        digest = hashlib.sha256(RECIPE)
        optional = (self._model.with_name(self._model.name + WEIGHTS_SUFFIX), self._folder / POOLING_FILE)
        try:
            for path in (self._model, self._tokenizer, *(path for path in optional if path.is_file())):
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise Invalid(f"An ONNX embedder's file cannot be read ({error.strerror}).") from error
        return digest.hexdigest()

    def _load(self) -> _Encoder:
        with self._lock:
            if self._encoder is None:
                tokenizer = _open(self._tokenizer, lambda: Tokenizer.from_file(str(self._tokenizer)))
                options = {"providers": ["CPUExecutionProvider"]}
                runtime = load_onnxruntime()
                session = _open(self._model, lambda: runtime.InferenceSession(str(self._model), **options))
                self._encoder = _Encoder.create(session, tokenizer, is_first_token=_uses_first_token(self._folder))
            return self._encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class _Encoder:
    """A loaded model with its inputs and the output used for vectors."""

    session: Any
    tokenizer: Any
    inputs: dict[str, Any]  # name and integer type
    output: str
    is_first_token: bool
    dimensions: int = 0

    @classmethod
    def create(cls, session: Any, tokenizer: Any, *, is_first_token: bool) -> _Encoder:
        """Configure the tokenizer and check the inputs of the model.

        Raises: Invalid when the model is not a sentence encoder.
        """
        truncation, padding = tokenizer.truncation or {}, tokenizer.padding or {}
        known = [word for word in PADDING_WORDS if tokenizer.token_to_id(word) is not None]
        word = padding.get("pad_token") or next(iter(known), PADDING_WORDS[0])
        number = padding.get("pad_id", tokenizer.token_to_id(word) or 0)
        tokenizer.enable_truncation(truncation.get("max_length", MAX_TOKENS))
        # Pads to the longest text of a batch, not to a fixed length.
        tokenizer.enable_padding(pad_id=number, pad_token=word)

        inputs = {each.name: INTEGERS.get(each.type) for each in session.get_inputs()}
        unknown = sorted(name for name, kind in inputs.items() if name not in _FEEDS or kind is None)
        if unknown or "input_ids" not in inputs:
            reason = f"it needs the input {unknown[0]!r}" if unknown else "it has no input 'input_ids'"
            raise Invalid(f"This ONNX model is not a sentence encoder: {reason}.")
        outputs = [each.name for each in session.get_outputs()]
        output = SENTENCE_OUTPUT if SENTENCE_OUTPUT in outputs else outputs[0]
        unsized = cls(session=session, tokenizer=tokenizer, inputs=inputs, output=output, is_first_token=is_first_token)
        return cls(
            **{name: getattr(unsized, name) for name in cls.__slots__} | {"dimensions": unsized._measure_width()}
        )

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector, as a row, for each text. Raises: ModelError."""
        encodings = self.tokenizer.encode_batch(list(texts))
        feeds = {name: np.array([_FEEDS[name](each) for each in encodings], kind) for name, kind in self.inputs.items()}
        # The runtime's errors share no narrower type.
        (answer,) = NATIVE_CALLS.call("ONNX model", lambda: self.session.run([self.output], feeds))
        vectors = self._pool(np.asarray(answer, np.float32), [each.attention_mask for each in encodings])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Floats = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        return unit

    def _pool(self, answer: Floats, masks: Sequence[Sequence[int]]) -> Floats:
        if answer.ndim == 2:
            return answer
        if answer.ndim != 3:
            raise ModelError(
                f"The ONNX model's output {self.output!r} is neither one vector per text nor one per token."
            )
        if self.is_first_token:
            first: Floats = answer[:, 0]
            return first
        mask = np.array(masks, np.float32)[:, :, None]
        mean: Floats = (answer * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)
        return mean

    def _measure_width(self) -> int:
        try:
            return int(self.encode(["dimensions"]).shape[1])
        except ModelError as error:
            raise Invalid(f"This ONNX model is not a sentence encoder: {error}") from error


_FEEDS: dict[str, Callable[[Any], Sequence[int]]] = {
    "input_ids": lambda encoding: encoding.ids,
    "attention_mask": lambda encoding: encoding.attention_mask,
    "token_type_ids": lambda encoding: encoding.type_ids,
}


def _open(path: Path, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Exception as error:
        # Neither package has a narrower type for a malformed file.
        raise Invalid(f"{str(path)!r} cannot be loaded; it is damaged or of an unknown type.") from error


def _uses_first_token(folder: Path) -> bool:
    """Return True if the model pools a text into its first token instead of the mean of all."""
    try:
        pooling = json.loads((folder / POOLING_FILE).read_text(encoding="utf-8"))
        return bool(pooling.get("pooling_mode_cls_token"))
    except FileNotFoundError:
        return False
    except (OSError, ValueError, AttributeError) as error:
        raise Invalid(f"{str(folder / POOLING_FILE)!r} cannot be read.") from error
