"""Long runs of random characters: hide those that are meant to be seen, find those that may be credentials.

Certificates, public keys, publishable keys, digests, hashes and chess positions are as random as a credential, so every
rule would have to know them. They are replaced before any rule runs.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from wellkept.secrets.rules_shapes import MAX_EXAMINED_CHARS, REMOVED, count_class_changes, is_placeholder
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


MIN_PUBLIC_CHARS = 27
"""Minimum length of a hidden run: a SHA-1 in base64."""

RUN_HINT = f"[A-Za-z0-9+/_-]{{{MIN_PUBLIC_CHARS}}}"
_LONG_RUN = re.compile(rf"[A-Za-z0-9+/_-]{{{MIN_PUBLIC_CHARS},}}+={{0,3}}")
_GAP = r"(?:\s|\\[nr])"
_BLOCK = re.compile(
    r"-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,3}(?:CERTIFICATE(?: REQUEST)?|PUBLIC KEY(?: BLOCK)?|PARAMETERS|CRL|PKCS7|CMS"
    rf"|SIGNATURE|MESSAGE|ENCRYPTED FILE) ?-{{4,5}}{_GAP}*+(?:[A-Z][\w-]{{2,20}}: [^\n]{{0,80}}{_GAP}++){{0,5}}"
    # An escaped line end is a backslash and a letter that could belong to the next line.
    rf"(?:(?:[A-Za-z0-9+/]|\\[nr]){{20,}}+=*{_GAP}*+)++(?:[A-Za-z0-9+/=]{{1,80}}{_GAP}*+){{0,2}}(?=-{{4,5}} ?END|\Z)"
)
# SHA-1, SHA-256, SHA-384 and SHA-512 in base64, and any digest in hexadecimal.
_DIGEST = r"(?:[A-Za-z0-9+/_-]{27}=?|[A-Za-z0-9+/_-]{43}=?|[\w+/-]{64}|[\w+/-]{86}(?:==)?|[0-9a-fA-F]{32,128})"
_IS_DIGEST = re.compile(_DIGEST)
_DIGEST_LABEL = re.compile(
    r"(?i)(?<![a-z])(?:sha-?\d{1,3}|md5|h1|blake[23]\w?|integrity|checksum|digest)[\"'\s:=/()]{1,4}$"
)
_SEEN_BY_ALL = re.compile(
    rf"""(?x)
    (?i:sha-?(?:1|224|256|384|512))[-_/]{_DIGEST}$                     # subresource integrity, Nix, npm
    |AAAA[BCEGI](?:3NzaC1|2VjZHNh|nNrL)                               # a public key of SSH
    |(?:pk_(?:live|test)_|sb_publishable_|phc_)                   # publishable keys of Stripe, Clerk and others
    |nonce-|RW[QRST][A-Za-z0-9+/]{{53}}$|RU[QRST][A-Za-z0-9+/]{{97}}  # a nonce, a key and a signature of minisign
    |AQ[IE]CAH|Ag[A-D][A-Za-z0-9+/]{{160}}                             # a ciphertext of AWS KMS, a sealed secret
    |[A-Za-z0-9+/]{{20,}}--[A-Za-z0-9+/]{{16}}--[A-Za-z0-9+/]{{22}}    # the credentials of Rails
    |LS0tLS1CRUdJTiB(?:DRVJUSUZJQ0FUR|QVUJMSUMgS0VZ)                   # a certificate or public key in base64
    |_+ZN?K?[A-Z0-9]                                                   # a mangled name of C++
    |(?:[1-8pnbrqkPNBRQK]{{1,8}}/){{7}}[1-8pnbrqkPNBRQK]{{1,8}}$       # a chess position
    """
)
_HASHED = re.compile(r"\$(?:2[abxy]|argon2\w{0,2}|s?crypt|pbkdf2[\w-]{0,12}|apr1|y|[156])\$[^\s\"'`]{0,120}$")
# An encrypted value of SOPS, and a public token of Mapbox.
_BRACKETED = re.compile(r"ENC\[[^\]\s]{1,2000}\]|(?<![A-Za-z0-9])pk\.eyJ[\w-]{10,300}\.[\w-]{10,100}")
_ENCRYPTED = re.compile(
    r"(?i)(?:ciphertext|cipher|encrypted\w*|\bkms\b[^\n]{0,12}|secure)[\"'\s:=]{1,4}(?:v\d:(?:[a-z0-9+/]{16}:)?)?$|vault:v\d{1,3}:$"
)


def hide_public(text: str) -> str:
    """Replace every public value by as many marks as it has characters.

    >>> hide_public("x v1 h1:" + "aB3" * 14 + "c=").count(REMOVED)
    44
    """
    if "BEGIN " in text:
        text = _BLOCK.sub(lambda block: REMOVED * len(block[0]), text)
    if "ENC[" in text or "pk.eyJ" in text:
        text = _BRACKETED.sub(lambda value: REMOVED * len(value[0]), text)
    parts, done = [], 0
    for run in _LONG_RUN.finditer(text):
        if _is_public(text, run):
            parts += [text[done : run.start()], REMOVED * len(run[0])]
            done = run.end()
    return "".join([*parts, text[done:]]) if parts else text


def _is_public(text: str, run: re.Match[str]) -> bool:
    start = run.start()
    if _SEEN_BY_ALL.match(run[0]):
        return start == 0 or not text[start - 1].isalnum()
    if _IS_DIGEST.fullmatch(run[0]) and _DIGEST_LABEL.search(text, max(0, start - 16), start):
        return True
    if _ENCRYPTED.search(text, max(0, start - 60), start):
        return True
    return "$" in text and _HASHED.search(text, max(0, start - 160), start) is not None
