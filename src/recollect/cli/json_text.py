"""Writing one JSON document on standard output."""

from __future__ import annotations

import codecs
import json
import sys

from recollect.cli.view import UNSAFE
from recollect.model import Json


def write_json(document: Json) -> None:
    """Print it, with every character a terminal might act on escaped."""
    is_unicode = sys.stdout is not None and codecs.lookup(sys.stdout.encoding).name.startswith("utf")
    text = json.dumps(document, indent=2, ensure_ascii=not is_unicode, allow_nan=False, default=str)
    # Only strings can hold such a character, and JSON knows no other control characters than line breaks.
    print(UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
