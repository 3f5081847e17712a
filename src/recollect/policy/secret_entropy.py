"""Long random runs that nothing is said about: last, and with every known innocent form left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect.policy.secret_shapes import MAX_JUDGED_CHARS, is_placeholder, turns
from recollect.policy.secret_text import View, is_plain_text_encoded

MIN_RUN_CHARS = 40
MAX_RUN_CHARS = 1_500
"""A longer run is a file, not a key."""

MIN_TURN_SHARE = 0.22
"""Random letters and digits change class at 45 of 100 places, CamelCase names at fewer than 20."""

_RUN = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{MIN_RUN_CHARS},}}={{0,2}}")
_PUBLIC = re.compile(
    r"0x[0-9a-fA-F]+$|AAAA[BCE][23][NV]|iVBORw0KGgo|/9j/|R0lGOD|JVBERi0|UklGR|PHN2Zy|Qk0|AAABAA|T2dnUw|SUkqAA|UEsDB|H4sI"
    r"|MIIBIjAN|MIICIjAN|MFkwEwYH|MCowBQYDK2Vw|MII[CDFGH](?!\w{0,12}IBAAK)|Qm[1-9A-HJ-NP-Za-km-z]{44}$|baf[yk]"
    r"|[xyz]pub|age1|npub1|did:|urn:"
)
_NAMED = re.compile(
    r"(?:sha-?\d+|md5|sha|digest|checksum|hash|integrity|etag|fingerprint|commit|revision|address|wallet|public key"
    r"|pubkey|publickey|public|cid|ipfs|txid|transaction|signature of|doc|docs|document|sheet|spreadsheet|folder|drive"
    r"|file id|file|playlist|video|channel|trace|id|ids|uuid|ulid|cache key|nonce|salt|certificate|cert"
    r"|csr|image|thumbnail|font|slug|branch|tag|build|container|pod|ssh-rsa|ssh-ed25519|solana|polkadot|bitcoin"
    r"|ethereum|contract|mint|account|program|arn|path|data:\S{0,40})[\s:=\"'`(<~-]{1,4}(?:is\s|was\s|of\s)?$",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"(?i)[a-z]://|www\.|\w\.(?:com|org|net|io|dev|app|ai|co|de|me)/")
_IN_A_PATH = ("/", "\\", ".", "@", "?", "&")
MAX_ADDRESS_CHARS = 400


def random_runs(view: View) -> Iterator[tuple[str, int, int]]:
    """The rule and the span of every long run that only chance can have written."""
    for run in _RUN.finditer(view.text):
        if len(run[0]) <= MAX_RUN_CHARS and _is_key(view.text, run):
            yield "random-run", run.start(), run.end()


def _is_key(text: str, run: re.Match[str]) -> bool:
    body = run[0].rstrip("=")
    if not (any(c.islower() for c in body) and any(c.isupper() for c in body) and any(c.isdigit() for c in body)):
        return False
    if turns(body) < MIN_TURN_SHARE * min(len(body), MAX_JUDGED_CHARS) or is_placeholder(body) or _PUBLIC.match(body):
        return False
    before = text[max(0, run.start() - 60) : run.start()]
    if body[0] == "/" or before.endswith(_IN_A_PATH) or _NAMED.search(before):
        return False
    near = max(0, run.start() - MAX_ADDRESS_CHARS)
    word_at = max(near, *(text.rfind(blank, near, run.start()) + 1 for blank in " \n\t"))
    if _ADDRESS.search(text, word_at, run.start()):
        return False
    return not is_plain_text_encoded(run[0])
