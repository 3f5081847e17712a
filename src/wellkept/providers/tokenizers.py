"""Construction of token counters by name. None of them uses the network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from wellkept.errors import Invalid
from wellkept.extension import TokenCounter
from wellkept.program import advise_install
from wellkept.prompt.rules_tokens import estimate_tokens
from wellkept.settings import foreign_folder

CHOICES = "estimate, or tiktoken:<encoding or model> such as tiktoken:o200k_base"
ENCODINGS_MODULE = "tiktoken_ext.openai_public"
NOT_A_TOKENIZER = "A tokenizer is a function from a text to the number of its tokens, or has such a method `count`."


def open_tokenizer(choice: str | TokenCounter | Callable[[str], int]) -> TokenCounter:
    """Return the counter a setting names, or wrap the given one. Raises: Invalid."""
    if not isinstance(choice, str):
        count = getattr(choice, "count", choice)
        if not callable(count):
            raise Invalid(NOT_A_TOKENIZER)
        return CheckedCounter(count)
    name, _, argument = choice.partition(":")
    if choice == "estimate":
        return CheckedCounter(estimate_tokens)
    if name == "tiktoken" and argument:
        return CheckedCounter(_open_tiktoken(argument, _find_folder()))
    raise Invalid(f"There is no tokenizer {choice!r}; choose {CHOICES}.")


class CheckedCounter:
    """Wrapper of a counting function that checks its results."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count

    def count(self, text: str) -> int:
        """Count the tokens of a text. Raises: Invalid when the function does not return a number of tokens."""
        tokens = self._count(text)
        if type(tokens) is not int or tokens < 0:
            raise Invalid(NOT_A_TOKENIZER)
        return tokens


def _find_folder() -> Path:
    """Return the folder where tiktoken itself keeps its files."""
    default = Path(import_module("tempfile").gettempdir(), "data-gym-cache")
    return foreign_folder("TIKTOKEN_CACHE_DIR", foreign_folder("DATA_GYM_CACHE_DIR", default))


def _open_tiktoken(name: str, folder: Path) -> Callable[[str], int]:
    try:
        tiktoken, encodings = import_module("tiktoken"), _copy_module(ENCODINGS_MODULE)
    except ModuleNotFoundError as error:
        raise Invalid(f"This tokenizer needs the package 'tiktoken'; {advise_install('tokens')}") from error
    vars(encodings)["load_tiktoken_bpe"] = lambda address, expected_hash: _read_ranks(address, expected_hash, folder)
    constructors = {each: make for each, make in encodings.ENCODING_CONSTRUCTORS.items() if each != "gpt2"}
    try:
        encoding_name = name if name in constructors else tiktoken.encoding_name_for_model(name)
        make = constructors[encoding_name]
    except KeyError as error:
        known = ", ".join(constructors)
        raise Invalid(f"tiktoken has no encoding for {name!r}; it has {known}, and the models it knows.") from error
    encoding = tiktoken.Encoding(**make())

    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text.encode("utf-8", "replace").decode()))

    return count


def _copy_module(name: str) -> ModuleType:
    """Execute the module again under our control, so that changes to it affect no other code."""
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(name=name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _read_ranks(address: str, expected_hash: str, folder: Path) -> dict[bytes, int]:
    """Read the tokens from a file that tiktoken downloaded before."""
    path = folder / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Invalid(_describe_missing(address, folder)) from error
    if hashlib.sha256(content).hexdigest() != expected_hash:
        raise Invalid(_describe_missing(address, folder))
    pairs: list[Any] = [line.split() for line in content.splitlines() if line]
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def _describe_missing(address: str, folder: Path) -> str:
    name = address.rpartition("/")[2].removesuffix(".tiktoken")
    return (
        f"tiktoken's file for {name!r} is not in {folder}, and wellkept downloads nothing. Where there is a network, "
        f"run: python -c 'import tiktoken; tiktoken.get_encoding(\"{name}\")', or set the tokenizer to estimate."
    )
