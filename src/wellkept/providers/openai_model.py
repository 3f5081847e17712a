"""Language model at an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from json import loads

from wellkept.errors import ModelError
from wellkept.model import Json
from wellkept.providers.endpoint import Endpoint, EndpointRefusal, Patience

MAX_ANSWER_BYTES = 8 * 1024 * 1024
TEMPERATURE = 0.2
"""Low, because completions are summaries and descriptions, which should not wander off."""

LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the answer's token limit: most endpoints know the first.

The newest models know only the second, and they refuse a temperature.
"""


class OpenAIModel:
    """`extension.Model` over HTTP. Connects on first use; safe to share between threads."""

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
        """Check the address and the key; `timeout` covers a whole answer including retries. Raises: Invalid."""
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
        self._is_new = False  # knows only the second name of the limit, and no temperature

    def complete(self, messages: Sequence[Json], *, max_tokens: int | None = None, timeout: float | None = None) -> str:
        """Return the answer of the model. Raises: ModelError."""
        question: Json = {"model": self._model, "messages": [_prepare(each) for each in messages]}
        seconds = self._timeout if timeout is None else timeout
        patience = Patience(seconds, self._retries, total=seconds)
        try:
            return self._parse_text(self._ask(question, max_tokens, patience))
        except EndpointRefusal as refusal:
            raise self._endpoint.explain(refusal) from None

    def _ask(self, question: Json, max_tokens: int | None, patience: Patience) -> bytes:
        """Ask with a token limit and a low temperature; if the endpoint refuses them, ask as the newest models want.

        Raises: EndpointRefusal, ModelError.
        """
        if not self._is_new:
            limited = {} if max_tokens is None else {LIMITS[0]: max_tokens}
            try:
                return self._endpoint.ask(
                    {**question, "temperature": TEMPERATURE, **limited}, patience, max_bytes=MAX_ANSWER_BYTES
                )
            except EndpointRefusal as refusal:
                if refusal.status != HTTPStatus.BAD_REQUEST:
                    raise
        limited = {} if max_tokens is None else {LIMITS[1]: max_tokens}
        answer = self._endpoint.ask({**question, **limited}, patience, max_bytes=MAX_ANSWER_BYTES)
        self._is_new = True
        return answer

    def _parse_text(self, answer: bytes) -> str:
        """Return the text of an answer, without the reasoning that some models send in other fields.

        Raises: ModelError.
        """
        try:
            content = loads(answer)["choices"][0]["message"]["content"]
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise ModelError(f"{self._endpoint.named} should have answered with a message.") from error
        if isinstance(content, str):
            return content
        # None if the model said nothing, or called a tool that was not offered.
        if content is None:
            return ""
        raise ModelError(f"{self._endpoint.named} answered with something other than text.")


def _prepare(message: Json) -> Json:
    """Replace unpaired surrogates, which cannot be sent."""
    content = message.get("content")
    if not isinstance(content, str):
        return dict(message)
    return {**message, "content": content.encode("utf-8", "replace").decode()}
