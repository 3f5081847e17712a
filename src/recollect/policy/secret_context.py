"""Credentials recognised by what is said about them: "the password is …", "api key: …", "PIN 4711".

Such a value may be anything, so the words around it decide where to look and its own characters decide whether it is a
value at all: `token: economics`, `password: required` and "the secret is to stir slowly" are prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect.policy.secret_text import View, fold
from recollect.policy.secret_values import Trust, is_value, trimmed

MAX_HITS = 4_000
"""Of one word in one text; more than the longest memory can hold."""

_PASSWORDS = """password passwort kennwort passwd pwd passphrase passcode pass-phrase passw0rd pa$$word p@ssword
p@ssw0rd p4ssword p4ssw0rd mot|de|passe mdp contraseña contrasena contrasenya contrasinal clave senha palavra-passe
palavra|passe wachtwoord passord lösenord adgangskode hasło heslo salasana şifre parola jelszó пароль κωδικός 密码 密碼
パスワード 비밀번호 pw pass login|password wlan-schlüssel wifi|key wpa|key netzwerkschlüssel""".split()
_TOKENS = """token api|key api-key api_key apikey api|token api|secret access|key access_key secret|key secret_key
secret-key client|secret client_secret auth|key auth_key signing|key encryption|key master|key license|key
account|key service|key private|key webhook|secret shared|secret secret credentials creds jeton clé|api clé|d'api clave|api
clave|de|api chave|api chave|de|api chiave|api api-schlüssel api|schlüssel schlüssel geheimnis sleutel api-sleutel
segredo secreto access|code authkey authtoken key ключ 令牌 密钥 トークン""".split()
_PINS = """pin pin-code pincode pin|code pin-nummer geheimzahl door|code alarm|code gate|code entry|code unlock|code
lock|code safe|code keypad|code garage|code access|code building|code code|pin código|pin türcode zugangscode
safe|combination lock|combination voicemail|code""".split()
_NOT_THE_THING = re.compile(
    r"[\s_-]*(?:s\s+)?(?:manager|managers|polic|reset|hash|length|field|form\b|rotat|strength|generat|vault|protect|less"
    r"|prompt|hint|expir|rules?\b|requirement|recover|limit|count|budget|usage|price|pricing|bucket|type|ring|ttl"
    r"|lifetime|endpoint|window|name|economic|santa|sauce|store|stores\b|path|ref\b|format|prefix|style|based|auth"
    r"|entropy|audit|check|input|box|screen|page|link|email|mail|table|column|version|size|cost|per\b|stream|id\b|ids\b"
    r"|scanning|scanner|detection|leak|sharing|service\b|issuer|verif|validat|complexity|spray|stuff|crack|dump|login\b"
    r"|value|pair|space|schema|order|board|stone|point|takeaway|result|idea|insight|player|feature|word|facts?\b"
    r"|ceremony|derivation|exchange|file|fob|chain|card|layout|binding|signature|map|press|stroke|metric|performance"
    r"|fingerprint|algorithm|rate|throughput|generation|encoding|doc|tutorial|guide|class\b|object|variable|env\b)",
    re.IGNORECASE,
)
_WORD = r"[\w'@&/#-]{1,30}+(?:\.[\w-]{1,30}+){0,3}+"
_IS = (
    r"is|was|are|remains|equals|becomes|ist|war|lautet|sind|heisst|heißt|est|etait|es|era|e|sao|e'|is:|zijn|er|ar|on|to|to be"
    r"|jest|je|olan|should be|will be|has been|reads|of|as|auf|a|en|naar|op|su|para|это|是|は"
)
_FILLER = (
    r"now|currently|still|just|again|literally|simply|set|changed|reset|updated|rotated|to|back|always|jetzt|nun"
    r"|aktuell|maintenant|ahora|agora|adesso|nu|also|the same|same|equal|as follows|as|follows|following|new one|exactly|called"
)
_TAIL = re.compile(
    rf"""
    (?P<many>e?s\b|en\b)?
    ["'`\]*_]{{0,3}}
    (?P<between>(?:\s?\([^)\n]{{1,40}}\)|(?:[ \t]{_WORD}){{0,8}}?))
    (?P<link>
        \s?(?:=>|->|:=|[:=?|]|>)=?\s?["'`*_]{{0,3}}\s{{0,3}}(?:(?i:it'?s|is)\s)?
      | [ \t](?:-{{1,2}}|>|\()[ \t]?
      | '?[ \t](?i:{_IS})(?:[ \t](?i:{_FILLER})){{0,3}}[ \t]?[:=]?\s{{1,3}}
      | 's\s
      | ,[ \t]
      | [ \t(]{{1,2}}
      | (?<=[^\x00-\x7f])\s?
    )
    (?P<value>"[^"\n]{{1,80}}"|'[^'\n]{{1,80}}'|`[^`\n]{{1,80}}`|[^\s\ufffc]{{1,200}})
    """,
    re.VERBOSE,
)
_PIN_TAIL = re.compile(
    rf"""
    (?P<between>(?:[ \t]?\([^)\n]{{1,30}}\)|(?:[ \t]{_WORD}){{0,6}}?))
    (?P<link>\s?(?:[:=]|->)\s?|[ \t](?i:{_IS})(?:[ \t](?i:{_FILLER})){{0,3}}:?[ \t]|[ \t](?i:nr\.?|no\.?|number)?[ \t]?)
    ["'`*]{{0,2}}(?P<value>\d(?:[ -]?\d){{3,9}}[\#*]?)["'`*]{{0,2}}(?![\w%€$£°/])(?![.,:]\d)
    """,
    re.VERBOSE,
)
_POSTAL = re.compile(
    r"(?i)address|deliver|postal|zip|city|district|india|ship|courier|locality|area\b|gpio|board|solder"
)
_BEFORE = re.compile(
    r"(?:^|[\s(\"'`])([^\s\"'`]{4,60})[\"'`]?[ \t]+(?:is|as|was|ist|est|es|e|als|war)[ \t]+"
    r"(?:(?:my|the|our|his|her|their|your|a|das|mein|unser|dein|le|mon|notre|la|mi|nuestra|a|minha|il|mia|het|mijn|new|das neue)[ \t]+)"
    r"(?:[\w'-]{1,20}[ \t]+){0,3}$",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"(?i)\b(?:set|chang|reset|updat|rotat|mak|made|switch|use|using|with|andert|changé|cambi)\w*\b[^\n]{0,40}$"
)
_LOGIN = re.compile(
    r"(?i:credentials?|creds|logins?|log ?in|logged in|sign in|signed in|user(?:name)?\s?(?:/|and|&|\+)\s?pass(?:word)?|zugangsdaten"
    r"|anmeldedaten|identifiants?|credenciales|credenciais|credenziali|inloggegevens|ssh in|default login)"
    r"(?:[ \t](?!user\b)[\w.'-]{1,24}){0,5}?\s?(?:[:=]|[ \t](?i:is|are|with|as|using|mit|avec|con|com|met|sind|sont|son))?\s{1,2}[\"'`(]?"
    r"(?:(?i:user(?:name)?)\s?[:=]?\s?)?([\w.@+-]{2,40})[\"'`]?(?:\s?[/:|]\s?|[ \t]+(?i:and|with|und|et|y|e)[ \t]+|,[ \t]+)"
    r"(?:(?i:pass(?:word)?|pw)\s?[:=]?\s?)?[\"'`]?([^\s\"'`]{4,100})"
)
_LOGIN_WORDS = (
    "credential", "creds", "login", "log in", "logged in", "sign in", "user/", "username/", "user and pass", "username and pass",
    "zugangsdaten", "anmeldedaten", "identifiant", "credenciales", "credenciais", "credenziali", "inloggegevens", "ssh in",
)  # fmt: skip


def _words(names: list[str]) -> tuple[str, ...]:
    return tuple(sorted({fold(name.replace("|", " ")) for name in names}, key=len, reverse=True))


_PASSWORD_WORDS, _TOKEN_WORDS, _PIN_WORDS = _words(_PASSWORDS), _words(_TOKENS), _words(_PINS)
_NEEDS_A_SIGN = frozenset({"pass", "key", "sleutel", "schlussel", "parola", "clave", fold("ключ")})


def said_secrets(view: View) -> Iterator[tuple[str, int, int]]:
    """The rule and the span, in `view`, of every value that is called a password, a key or a PIN."""
    for words, rule, trust in (
        (_PASSWORD_WORDS, "password", Trust.PASSWORD),
        (_TOKEN_WORDS, "token", Trust.TOKEN),
    ):
        for word, at in _hits(view, words):
            for start, end in _values(view.text, word, at, trust):
                yield rule, start, end
    for _, at in _hits(view, _PIN_WORDS):
        yield from _pins(view.text, at, _)
    yield from _logins(view)


def _hits(view: View, words: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Where the words stand on their own, or end a name like `DB_PASSWORD` or `dbPassword`."""
    lower, text = view.lower, view.text
    for word in words:
        at, hits = lower.find(word), 0
        while at >= 0 and hits < MAX_HITS:
            hits += 1
            before = text[at - 1] if at else " "
            if (
                not before.isalnum()
                or not before.isascii()
                or (before.islower() and text[at].isupper())
                or not word.isascii()
            ):
                yield word, at
            at = lower.find(word, at + len(word))


def _values(text: str, word: str, at: int, trust: Trust) -> Iterator[tuple[int, int]]:
    """The spans of the values said of the word that stands at `at`."""
    behind = at + len(word)
    if (
        behind < len(text)
        and text[behind].isalpha()
        and text[behind].isascii()
        and word.isascii()
        and text[behind] not in "sSeE"
    ):
        return
    if not _NOT_THE_THING.match(text, behind):
        tail = _TAIL.match(text, behind)
        if tail:
            start, end = trimmed(text, *tail.span("value"))
            if is_value(text, start, end, _trust_in(tail, text, word, at, trust), is_many=bool(tail["many"])):
                yield start, end
    window = text[max(0, at - 100) : at]
    if (
        " is " in window
        or " as " in window
        or " ist " in window
        or " est " in window
        or " es " in window
        or " als " in window
    ):
        said = _BEFORE.search(window)
        if said:
            start, end = trimmed(text, *(max(0, at - 100) + offset for offset in said.span(1)))
            if is_value(text, start, end, Trust.LOOSE, is_many=False):
                yield start, end


def _trust_in(tail: re.Match[str], text: str, word: str, at: int, trust: Trust) -> Trust:
    """How much the wording itself says that a value follows."""
    link = tail["link"].strip().lower()
    is_sign = link[:1] in (":", "=", "-", ">", "|", "?") and link != ""
    if word in _NEEDS_A_SIGN and not (is_sign and not tail["between"].strip()):
        return Trust.LOOSEST
    if trust is Trust.PASSWORD and link == "=" and text[at].isupper() and not tail["between"]:
        return Trust.ASSIGNED
    if link in ("", "(", ",") or link[:1] == "?":
        return Trust.LOOSE if trust is Trust.PASSWORD and not tail["between"].strip() else Trust.LOOSEST
    if link in (
        "to",
        "of",
        "as",
        "on",
        "a",
        "auf",
        "en",
        "e",
        "op",
        "su",
        "para",
        "naar",
        "er",
        "ar",
        "je",
        "'s",
    ) and not _CHANGED.search(text, max(0, at - 60), at):
        return Trust.LOOSE if trust is Trust.PASSWORD else Trust.LOOSEST
    return trust


def _pins(text: str, at: int, word: str) -> Iterator[tuple[str, int, int]]:
    behind = at + len(word)
    if behind < len(text) and text[behind].isalpha():
        return
    tail = _PIN_TAIL.match(text, behind)
    if not tail:
        return
    digits = "".join(c for c in tail["value"] if c.isdigit())
    is_said = bool(tail["link"].strip()) or text[at : at + 3] in ("PIN", "Pin") or word != "pin"
    around = text[max(0, at - 80) : tail.end() + 60]
    is_postal = (len(digits) == 6 or "GPIO" in around) and _POSTAL.search(around)
    if is_said and 4 <= len(digits) <= 8 and not is_postal and (word != "pin" or not _is_year_of(tail)):
        yield "pin", *tail.span("value")


def _is_year_of(tail: re.Match[str]) -> bool:
    """`pin from 2019`, with nothing that says it is the PIN."""
    return bool(tail["between"].strip()) and not tail["link"].strip()


def _logins(view: View) -> Iterator[tuple[str, int, int]]:
    for word in _LOGIN_WORDS:
        at, hits = view.lower.find(word), 0
        while at >= 0 and hits < MAX_HITS:
            hits += 1
            login = _LOGIN.match(view.text, at)
            if login:
                start, end = trimmed(view.text, *login.span(2))
                if is_value(view.text, start, end, Trust.PASSWORD, is_many=True):
                    yield "login", start, end
            at = view.lower.find(word, at + len(word))
