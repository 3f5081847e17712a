"""`make soak`: mixed load from sixteen connections for ten minutes, in which no answer may be an error.

`python -m benchmarks.soak 30` does it for thirty seconds.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.corpus import sentences
from benchmarks.http_load import Load, Question
from benchmarks.server import build, served

SECONDS = 600.0
CONNECTIONS = 16
AGENTS = 8
EACH = 2_000
GOOD = {200, 201}

_TEXTS = sentences(2_000, seed=21, words=8)


def mixed(number: int, count: int) -> Question:
    """What a busy agent does: mostly asking, often writing, sometimes looking around."""
    text = _TEXTS[(number * 577 + count) % len(_TEXTS)]
    agent = f"/api/agents/agent-{(number + count) % AGENTS}"
    asks: Mapping[int, Question] = {
        0: ("POST", f"{agent}/memories", {"text": f"{text} {number} {count}", "kind": "episode"}),
        1: ("POST", f"{agent}/recall", {"query": text}),
        2: ("GET", f"{agent}/memories?q={text.split()[0]}&limit=20", None),
        3: ("POST", f"/api/agents/note-{number}/memories", {"text": f"{text} {count}", "kind": "note"}),
        4: ("POST", f"{agent}/recall", {"query": text, "limit": 10, "kinds": ["episode"]}),
        5: ("GET", f"{agent}/private-memory", None),
        6: ("POST", f"/api/agents/note-{number}/inject", {"message": text}),
        7: ("GET", "/api/agents?limit=20", None),
        8: ("GET", "/health", None),
        9: ("GET", "/api/audit?limit=20", None),
    }
    return asks[count % len(asks)]


def main() -> int:
    seconds = float(sys.argv[1]) if sys.argv[1:] else SECONDS
    with tempfile.TemporaryDirectory(prefix="wellkept-soak-") as folder:
        url = f"sqlite:///{Path(folder) / 'soak.db'}"
        key = build(url, agents=AGENTS, each=EACH)
        with served(url) as (address, _):
            outcome = Load(address, key).run(mixed, connections=CONNECTIONS, seconds=seconds)
    statuses = ", ".join(f"{count:,} × {status}" for status, count in sorted(outcome.statuses.items()))
    print(f"{outcome.seconds:.0f} s, {outcome.rate:,.0f} requests/s: {statuses}; broken off: {len(outcome.broken)}")
    waits = [f"p{share:.0%} {outcome.percentile(share) * 1000:.0f} ms" for share in (0.5, 0.95, 0.99)]
    print(f"waits: {', '.join(waits)}")
    for each in sorted(set(outcome.broken))[:10]:
        print(each)
    return 0 if set(outcome.statuses) <= GOOD and not outcome.broken else 1


if __name__ == "__main__":
    sys.exit(main())
