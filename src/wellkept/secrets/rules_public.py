"""Hide values that are meant to be seen: certificates, public keys, publishable keys, digests, hashes, chess positions.

They are as random as a credential, so every rule would have to know them. They are replaced before any rule runs.
"""

from __future__ import annotations

import re

from wellkept.secrets.rules_shapes import REMOVED

MIN_CHARS = 27
"""Minimum length of a hidden run: a SHA-1 in base64."""

RUN_HINT = f"[A-Za-z0-9+/_-]{{{MIN_CHARS}}}"
_RUN = re.compile(rf"[A-Za-z0-9+/_-]{{{MIN_CHARS},}}+={{0,3}}")
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
_PUBLIC = re.compile(
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
    for run in _RUN.finditer(text):
        if _is_public(text, run):
            parts += [text[done : run.start()], REMOVED * len(run[0])]
            done = run.end()
    return "".join([*parts, text[done:]]) if parts else text


def _is_public(text: str, run: re.Match[str]) -> bool:
    start = run.start()
    if _PUBLIC.match(run[0]):
        return start == 0 or not text[start - 1].isalnum()
    if _IS_DIGEST.fullmatch(run[0]) and _DIGEST_LABEL.search(text, max(0, start - 16), start):
        return True
    if _ENCRYPTED.search(text, max(0, start - 60), start):
        return True
    return "$" in text and _HASHED.search(text, max(0, start - 160), start) is not None
