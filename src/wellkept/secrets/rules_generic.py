"""Credentials of common formats, independent of a provider."""

from __future__ import annotations

import base64
import binascii
import re

from wellkept.secrets.rules_shapes import (
    always,
    count_class_changes,
    is_placeholder,
    is_random,
    is_real,
    is_stated_password,
    is_variable,
    shape_rule,
)
from wellkept.secrets.rules_text import fold

# "John Doe" in base64 at the place where jwt.io has it.
_EXAMPLE_NAME = "IkpvaG4gRG9l"
_SEED = (
    r"(?!(?i:the|and|for|are|was|were|from|with|your|never|should|could|would|because|these|their|been|has|had|not|its)\b)"
    r"[A-Za-z]{3,8}"
)


def _basic_password(value: str) -> str:
    """Decode the password of base64 `name:password`; return an empty string for anything else."""
    try:
        name, _, password = base64.b64decode(value + "=" * (-len(value) % 4)).decode().partition(":")
    except (binascii.Error, ValueError):
        return ""
    return password if name.isprintable() and password.isprintable() else ""


def _is_basic(value: str) -> bool:
    password = _basic_password(value)
    return bool(password) and is_stated_password(password)


def _is_bearer(value: str) -> bool:
    if is_placeholder(value) or is_variable(value):
        return False
    return (count_class_changes(value) >= 2 or value.count(".") == 2) and any(c.isdigit() for c in value)


def _is_jwt(value: str) -> bool:
    """Return False for the token that most documentation shows, of John Doe."""
    return is_random(value) and _EXAMPLE_NAME not in value


def _is_seed_phrase(words: str) -> bool:
    return len(set(words.split())) >= 8


def _is_code_list(codes: str) -> bool:
    """Return False for a single number of three digits, word or pair of years; several are a list of codes."""
    is_single = re.fullmatch(
        r"[a-z]+\d{1,3}[a-z]?|[^0-9]+|\d{6}|20\d{6}|\d{3}[- ]\d{3}|(?:19|20)\d\d[- ](?:19|20)\d\d", codes
    )
    return is_real(codes) and not is_single


def _is_docker_auth(value: str) -> bool:
    return _is_basic(value) if _basic_password(value) else is_random(value)


_CODE_WORDS = fold(
    """recovery code|recovery key|backup code|backup-code|scratch code|one-time code|emergency code
    |wiederherstellungscode|wiederherstellungsschlüssel|notfallcode|code de récupération|codes de récupération
    |code de secours|codes de secours|código de recuperación|códigos de recuperación|código de respaldo
    |códigos de respaldo|código de recuperação|códigos de recuperação|código de backup|códigos de backup
    |codice di recupero|codici di recupero|codice di backup|codici di backup|herstelcode|kod zapasow|kody zapasow
    |kody odzyskiwania|återställningskod|gendannelseskode|kurtarma kod|yedek kod|резервный код|резервные код
    |резервні код|коды восстановления
    |備用碼|备用码|备用代码|恢复代码|恢复码|バックアップコード|リカバリーコード|복구 코드|백업 코드"""
)
_CODE_WORDS = re.sub(r"\s*\n\s*", "", _CODE_WORDS)
_CODE = (
    r"(?:(?!(?:19|20)\d\d-[01]\d-[0-3]\d)(?:\d{3,5}[- ]\d{3,5}(?![- ]?\d)|\d{6}(?:-\d{6}){7}|\d{6}|\d{8,10}"
    r"|(?=[A-Za-z-]{0,12}\d)[0-9A-Za-z]{4,6}(?:-[0-9A-Za-z]{4,6}){1,5}|[a-z]{5}-[a-z]{5}|[0-9a-f]{64}"
    r"|(?=[A-Za-z]{0,9}\d)(?:[0-9a-z]{8,12}|[0-9A-Za-z]{16})))(?!\.?[\w-])"
)
# Further codes of a list may be letters alone.
_NEXT_CODE = (
    rf"(?:{_CODE}|(?:[a-z]{{4,6}}(?:-[a-z]{{4,6}}){{1,3}}|[A-Z]{{4,6}}(?:-[A-Z]{{4,6}}){{1,3}}|[A-Z]{{8,10}})"
    r"(?!\.?[\w-]))"
)
_CODES = (
    rf"{_CODE}(?:(?:[\s,;、/|~`\"'_()+&•·–→]|(?i:and|und|et|y|e|or|oder|ou|o|и)\s|[-*]\s|\d{{1,2}}[.):]\s"
    rf"|\[[ x]\]\s){{1,8}}{_NEXT_CODE}){{0,30}}"
)

_BLOCK = r"-\s?BEGIN [A-Z0-9 ]{0,30}?PRIVATE KEY(?: BLOCK)?\s?-{2,}"
_BLOCK_HEAD = r"(?:\s|\\[nr])*(?:[A-Z][\w-]{2,20}: [^\n]{0,80}(?:\n|\\n)\s*)*"
_BLOCK_BODY = r"[A-Za-z0-9+/=]{20,}(?:[\s\\nr]{1,4}[A-Za-z0-9+/=]{16,})*"
_BLOCK_END = r"(?:[\s\\nr]{0,4}[A-Za-z0-9+/=]{0,64}[\s\\nr]{0,4}-{2,}\s?END [A-Z0-9 ]{0,40}-{2,})?"

GENERIC = (
    shape_rule(
        "private-key",
        "-begin |- begin ",
        _BLOCK + _BLOCK_HEAD + _BLOCK_BODY + _BLOCK_END,
        check=always,
        hits=(
            "-----BEGIN RSA PRIVATE KEY-----\n{b64:64}\n{b64:64}\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN OPENSSH PRIVATE KEY-----\n{b64:70}",
            "-----BEGIN PRIVATE KEY-----\\n{b64:64}\\n-----END PRIVATE KEY-----",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{b64:64}\n",
        ),
        misses=(
            "-----BEGIN PUBLIC KEY-----\n{b64:64}\n-----END PUBLIC KEY-----",
            "Files with -----BEGIN RSA PRIVATE KEY----- in them are refused by the hook.",
            "-----BEGIN CERTIFICATE-----\nMIID{b64:60}\n-----END CERTIFICATE-----",
        ),
    ),
    shape_rule(
        "age-key",
        "age-secret-key-1",
        r"(?i:AGE-SECRET-KEY-1)([A-Za-z0-9]{40,58})",
        hits=("AGE-SECRET-KEY-1{up:58}", "age: AGE-SECRET-KEY-1{up:58}"),
        misses=("an AGE-SECRET-KEY-1 line", "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"),
    ),
    shape_rule(
        "jwt",
        "eyj",
        r"(?<![A-Za-z0-9])(?i:ey)[Jj][\w-]{6,}\.[\w-]{8,}\.[\w-]{8,}",
        check=_is_jwt,
        hits=("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI{b64u:40}.{b64u:43}", "jwt eyJ{b64u:30}.eyJ{b64u:80}.{b64u:43}"),
        misses=(
            "a JWT looks like eyJ... or eyJhbGciOiJIUzI1NiJ9",
            "eyJxxxxxxxxx.xxxxxxxxxxxx.xxxxxxxxxxxxx",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0.{b64u:43}",
        ),
    ),
    shape_rule(
        "url-password",
        "://",
        r"(?<=[A-Za-z0-9])://(?P<name>[^\s:/@\"'<>]{0,100}):((?!(?P=name)@)[^\s@/\"']{3,200})@[\w\[.-]",
        check=is_stated_password,
        hits=(
            "postgres://app:{16}@db.internal:5432/prod",
            "mongodb+srv://bob:{12}@c0.mongodb.net",
            "redis://:{20}@cache:6379/0",
            "https://deploy:{20}@git.corp.example/x.git",
        ),
        misses=(
            "postgres://user:password@localhost/db",
            "amqp://guest:guest@localhost",
            "postgres://app:$DB_PASSWORD@db/prod",
            "https://example.com:8080/@me",
            "redis://:<password>@cache",
        ),
    ),
    shape_rule(
        "bearer-token",
        "bearer",
        r"(?i:bearer)[\s:=\"']{1,4}([\w~+/.=-]{10,})",
        check=_is_bearer,
        hits=("Authorization: Bearer {40}", "bearer {hex:32}", "send Bearer {b64u:24} along"),
        misses=("Bearer of bad news", "Bearer authentication2", "Authorization: Bearer <token>", "Bearer $API_TOKEN"),
    ),
    shape_rule(
        "basic-auth",
        "basic ",
        r"(?<![A-Za-z0-9])(?i:basic)\s+([A-Za-z0-9+/]{8,}={0,2})(?![\w+/])",
        check=_is_basic,
        hits=("Authorization: Basic YWxpY2U6aHVudGVyMg==", "Basic b3BzOlRyMHViNGRvciYz"),
        misses=("Basic knowledge of Python", "Basic understanding is fine", "Basic dXNlcjpwYXNzd29yZA=="),
    ),
    shape_rule(
        "docker-auth",
        '"auth"|identitytoken',
        r"(?:\"auth\"|identitytoken\"?)\s?:\s?\"([A-Za-z0-9+/=._-]{12,})\"",
        check=_is_docker_auth,
        hits=('"auths": {"r.io": {"auth": "YWxpY2U6aHVudGVyMg=="}}', '"identitytoken": "{40}"'),
        misses=('"auth": "none-required-here"', '{"auth": "dXNlcjpwYXNzd29yZA=="}'),
    ),
    shape_rule(
        "wallet-key",
        "private key|privkey|private_key|secret key|wallet key",
        r"(?i:private[ _]key|privkey|secret key|wallet key)[^\n]{0,40}?(?<![A-Za-z0-9])"
        r"((?:0x)?[0-9a-fA-F]{64}|[5KL][1-9A-HJ-NP-Za-km-z]{50,51})(?![A-Za-z0-9])",
        hits=("my private key is 0x{hex:64}", "wallet private_key={hex:64}"),
        misses=("tx 0x{hex:64} went through", "private key fingerprints are not secret"),
    ),
    shape_rule(
        "seed-phrase",
        "seed phrase|recovery phrase|mnemonic|seed words|recovery words|backup phrase|secret phrase|wallet|seed:"
        "|metamask|ledger|trezor|frase semilla|phrase de recuperation|frase de recuperacao|frase di recupero",
        r"(?i:(?:seed|recovery|backup|secret) (?:phrase|words)|mnemonic|wallet|seed|metamask|trezor|frase|phrase"
        r"|ledger[^\n]{0,20}?(?:words|worter|phrase|seed))"
        r"[^\n]{0,40}?[:=\s(\"']"
        rf"((?:(?:\d{{1,2}}[.)]\s?)?{_SEED}[\s,;]{{1,3}}){{11,23}}(?:\d{{1,2}}[.)]\s?)?{_SEED})\b",
        check=_is_seed_phrase,
        hits=(
            "Seed phrase: ripple scissors kick mammal hire column oak again sun offer wealth tomorrow",
            "the recovery phrase is zoo wrong vault umbrella table salad rabbit quantum piano ocean noble magic",
        ),
        misses=(
            "A seed phrase should never ever leave the paper that somebody once wrote down with care for them",
            "mnemonic: every good boy does fine",
        ),
    ),
    shape_rule(
        "otp-seed",
        "otpauth://|totp|2fa |authenticator|setup key",
        r"(?i:otpauth://[^\s]{0,120}?secret=|(?:(?:totp|2fa|authenticator)(?: (?:setup|secret))?|setup)"
        r" (?:secret|seed|key)[^\n:=]{0,30}?(?: is|:|=)?\s{1,2})"
        r"((?=[A-Za-z ]*[2-7])(?:[A-Z2-7]{16,64}|[A-Za-z2-7]{4}(?: [A-Za-z2-7]{4}){3,15}))"
        r"(?![A-Za-z0-9])",
        check=is_real,
        hits=("otpauth://totp/x:y?secret={b32:32}&issuer=x", "TOTP secret: {b32:16}"),
        misses=("the TOTP secret is in the vault", "otpauth://totp/x"),
    ),
    shape_rule(
        "recovery-code",
        _CODE_WORDS,
        rf"(?i:{_CODE_WORDS})(?:[^\n]{{0,40}}?|[^\n]{{0,40}}\n\s{{0,4}}"
        rf"(?:(?:[-*]|\d{{1,2}}[.):])\s)?(?:\[[ xX]\]\s)?)(?<![\w-])({_CODES})(?![\w-])",
        check=_is_code_list,
        hits=(
            "GitHub recovery codes: 3f9a2-{low:5}",
            "backup code 4821 9937",
            "The recovery code is {dig:8}.",
            "codes de récupération : {dig:4} {dig:4}, {dig:4} {dig:4}",
            "scratch codes\n1. {dig:8}\n2. {dig:8}\n3. {dig:8}",
        ),
        misses=(
            "recovery codes are in the safe",
            "backup code review on 2024-05-06",
            "backup codes from 2024-05-06 14:20, 2025-05-06 14:20",
        ),
    ),
    shape_rule(
        "app-password",
        "app password|app-password|app-specific|app-passwort|d'application|de aplicacion|de app|per le app",
        r"(?i:app[ -](?:specific )?passwor[dt]|app-specific|d'application|de app|de aplicacion|per le app)"
        r"[^\n]{0,30}?[\s:\"']([a-z]{4}(?:[ -][a-z]{4}){3}|[a-z0-9]{4}(?:-[a-z0-9]{4}){3}|(?<=[:sd\"'][ \"'])[a-z]{16})"
        r"(?![\w-])",
        hits=("Gmail app password: {lower:4} {lower:4} {lower:4} {lower:4}", "app-specific password is {lower:16}"),
        misses=("an app password that you make", "app password: see the vault of the team", "app-specific storage"),
    ),
)
