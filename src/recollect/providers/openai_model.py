"""A language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from json import loads

from recollect.errors import ModelError
from recollect.model import Json
from recollect.providers.endpoint import Endpoint, Patience, Refused

MAX_ANSWER_BYTES = 8 * 1024 * 1024
LIMITS = ("max_tokens", "max_completion_tokens")
"""What the limit of an answer is called: most endpoints know the first name, the newest models only the second."""


class OpenAIModel:
    """`ports.Model` over HTTP. It asks nothing before it is first used, and may be used from many threads."""

    def __init__(
        self,
        model: str,
        api_key: str = "",
        base_url: str = "",
        *,
        timeout: float = 60.0,
        retries: int = 2,
        first_pause: float = 0.5,
        url_setting: str = "openai_base_url",
        key_setting: str = "openai_api_key",
    ) -> None:
        """`timeout` is for a whole answer, retries included. Raises: Invalid."""
        self._endpoint = Endpoint(
            "chat/completions",
            what="model endpoint",
            api_key=api_key,
            base_url=base_url,
            url_setting=url_setting,
            key_setting=key_setting,
            first_pause=first_pause,
        )
        self.name = f"openai:{model}@{self._endpoint.host}"
        self._model = model
        self._timeout = timeout
        self._retries = retries
        self._limit = LIMITS[0]

    def complete(self, messages: Sequence[Json], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        """Raises: ModelError."""
        question: Json = {"model": self._model, "messages": [_sendable(each) for each in messages]}
        seconds = self._timeout if timeout is None else timeout
        patience = Patience(seconds, self._retries, total=seconds)
        try:
            if max_tokens is None:
                return self._text(self._endpoint.ask(question, patience, max_bytes=MAX_ANSWER_BYTES))
            return self._text(self._limited(question, max_tokens, patience))
        except Refused as refusal:
            raise self._endpoint.explained(refusal) from None

    def _limited(self, question: Json, max_tokens: int, patience: Patience) -> bytes:
        """Raises: Refused, ModelError."""
        limit = self._limit
        try:
            return self._endpoint.ask({**question, limit: max_tokens}, patience, max_bytes=MAX_ANSWER_BYTES)
        except Refused as refusal:
            if refusal.status != HTTPStatus.BAD_REQUEST or limit != LIMITS[0]:
                raise
        answer = self._endpoint.ask({**question, LIMITS[1]: max_tokens}, patience, max_bytes=MAX_ANSWER_BYTES)
        self._limit = LIMITS[1]
        return answer

    def _text(self, answer: bytes) -> str:
        """The text of an answer. Models that think aloud put what they thought elsewhere, and it is left there.

        Raises: ModelError.
        """
        try:
            content = loads(answer)["choices"][0]["message"]["content"]
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise ModelError(f"{self._endpoint.named} should have answered with a message.") from error
        if isinstance(content, str):
            return content
        if content is None:  # said nothing, or called a tool nobody offered
            return ""
        raise ModelError(f"{self._endpoint.named} answered with something other than text.")


def _sendable(message: Json) -> Json:
    """Half a surrogate pair cannot be sent at all."""
    content = message.get("content")
    if not isinstance(content, str):
        return dict(message)
    return {**message, "content": content.encode("utf-8", "replace").decode()}
