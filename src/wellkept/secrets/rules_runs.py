"""Find credentials of unknown shape: long runs of random characters without another explanation."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from wellkept.secrets.rules_shapes import MAX_EXAMINED_CHARS, count_class_changes, is_placeholder
from wellkept.secrets.rules_text import TextView, is_plain_text_encoded

MIN_RUN_CHARS = 40
MAX_RUN_CHARS = 1_500
"""Maximum length of a key; a longer run is a file."""

MIN_CHANGE_SHARE = 0.22
"""Minimum share of character class changes. Random keys change class at 45 % of positions, CamelCase below 20 %."""

_RUN = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{MIN_RUN_CHARS},}}={{0,2}}")
_PUBLIC = re.compile(
    r"0x[0-9a-fA-F]+$|AAAA[BCE][23][NV]|MIIBIjAN|MIGfMA0G|MIICIjAN|MFkwEwYH|MCowBQYDK2Vw|MII[CDFGH](?!\w{0,12}IBAAK)|Qm[1-9A-HJ-NP-Za-km-z]{44}$|baf[yk]"
    r"|[xyz]pub|age1|npub1|did:|urn:"
)
_LABELS = r"""sha-?\d+ md5 sha digest checksum hash integrity etag thumbprint commit revision address wallet public
websocket-(?:key|accept) log_?id kid cid ipfs txid transaction signature[ ]of docs? document sheet spreadsheet folder
drive file playlist video channel trace ids? id-2 uuid ulid cache[ ]key nonce salt certificate cert csr image font slug
thumbnail branch tag build container pod ssh-rsa ssh-ed25519 solana polkadot bitcoin ethereum contract mint account
program arn path peer (?:next|page|continuation|sync)[_-]?token data:\S{0,40} (?:^|[{,])\s*"[xyn]" ;\s?p"""
_LABEL = "|".join(re.split(r"(?<!\[)\s+", _LABELS))
_DESCRIBED = re.compile(rf"(?:{_LABEL})[\s:=\"'`(<~-]{{1,4}}(?:is\s|was\s|of\s|W/\")?$", re.IGNORECASE)
_PUBLISHED = re.compile(
    r"(?:public[ _-]?key|pub[ _-]?key|cle publique|clave publica|chave publica|chiave pubblica|offentlicher schlussel"
    r"|openbare sleutel|publishable|site[ _-]?key|server[ _-]?key|verification|acme-challenge|fingerprint|>>> )"
    r"[^\n]{0,50}(?:\n['\"])?$",
    re.IGNORECASE,
)
_FILE = re.compile(
    # Known first bytes of a file, or the zeros that are in every header and hardly ever in a key.
    rb"\x89PNG|\xff\xd8\xff|GIF8|%PDF|RIFF|<svg|<\?xml|BM|OggS|fLaC|ID3|II\*\0|MM\0\*|PK\x03\x04|\x1f\x8b\x08|7z\xbc\xaf"
    rb"|\xfd7zXZ|\x28\xb5\x2f\xfd|BZh|Rar!|\x1a\x45\xdf\xa3|\x7fELF|MZ|wOF[F2]|\0asm|.{4}ftyp|SQLite|(?:[^\0]*\0){3}",
    re.DOTALL,
)
_ADDRESS = re.compile(r"(?i)[a-z]://|www\.|\w\.(?:com|org|net|io|dev|app|ai|co|de|me)/")
_PATH_ENDS = ("/", "\\", ".", "@", "?", "&", ";base64,")
MAX_ADDRESS_CHARS = 400


def random_runs(view: TextView) -> Iterator[tuple[str, int, int]]:
    """Yield the rule and range of every long run that looks random."""
    for run in _RUN.finditer(view.text):
        if len(run[0]) <= MAX_RUN_CHARS and _is_key(view.text, run):
            yield "random-run", run.start(), run.end()


def _is_key(text: str, run: re.Match[str]) -> bool:
    body = run[0].rstrip("=")
    if not (any(c.islower() for c in body) and any(c.isupper() for c in body) and any(c.isdigit() for c in body)):
        return False
    if (
        count_class_changes(body) < MIN_CHANGE_SHARE * min(len(body), MAX_EXAMINED_CHARS)
        or is_placeholder(body)
        or _PUBLIC.match(body)
        or _FILE.match(base64.b64decode(body[:24], b"-_"))
    ):
        return False
    before = text[max(0, run.start() - 60) : run.start()]
    if body[0] == "/" or before.endswith(_PATH_ENDS) or _DESCRIBED.search(before) or _PUBLISHED.search(before):
        return False
    near = max(0, run.start() - MAX_ADDRESS_CHARS)
    word_at = max(near, *(text.rfind(blank, near, run.start()) + 1 for blank in " \n\t"))
    if _ADDRESS.search(text, word_at, run.start()):
        return False
    return not is_plain_text_encoded(run[0])
