"""Search for secrets in the texts of a JSON value, each read together with the name of its field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.policy.secrets.scan import SecretFinding, redact


@dataclass(frozen=True, slots=True)
class JsonTexts:
    """Texts of a JSON value as lines "name: text", and the place of each text in them."""

    lines: str
    spans: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, value: Any) -> JsonTexts:
        """Render a value.

        >>> JsonTexts.of({"user": "lena", "ports": [80, "443"]})
        JsonTexts(lines='user: lena\\nports: \\nports: 443\\n', spans=[(6, 10), (26, 29)])
        """
        parts, spans, end = list[str](), list[tuple[int, int]](), 0
        for name, text in _iter_texts(value, ""):
            head = f"{name}: " if name else ""
            if text is not None:
                spans.append((end + len(head), end + len(head) + len(text)))
            parts.append(f"{head}{text or ''}\n")
            end += len(parts[-1])
        return cls("".join(parts), spans)

    def redact(self, value: Any, findings: Iterable[SecretFinding]) -> Any | None:
        """Return the value with each finding replaced by a mark; None if one lies in the name of a field."""
        found, texts = list(findings), list[str]()
        for start, end in self.spans:
            inside = [
                SecretFinding(each.rule, max(each.start, start) - start, min(each.end, end) - start)
                for each in found
                if each.start < end and each.end > start
            ]
            texts.append(redact(self.lines[start:end], inside))
        is_name = any(not any(each.start < end and each.end > start for start, end in self.spans) for each in found)
        return None if is_name else _replace_texts(value, iter(texts))


def _iter_texts(value: Any, name: str) -> Iterator[tuple[str, str | None]]:
    """Yield the name and the text of every leaf, None for one that is no text."""
    if isinstance(value, Mapping):
        for each, inner in value.items():
            yield from _iter_texts(inner, each)
    elif isinstance(value, list):
        for inner in value:
            yield from _iter_texts(inner, name)
    else:
        yield name, value if isinstance(value, str) else None


def _replace_texts(value: Any, texts: Iterator[str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _replace_texts(inner, texts) for name, inner in value.items()}
    if isinstance(value, list):
        return [_replace_texts(inner, texts) for inner in value]
    return next(texts) if isinstance(value, str) else value
