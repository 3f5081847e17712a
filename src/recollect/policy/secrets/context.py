"""Credentials recognised by what is said about them: "the password is …", "api key: …", "PIN 4711".

Such a value may be anything, so the words around it decide where to look and its own characters decide whether it is a
value at all: `token: economics`, `password: required` and "the secret is to stir slowly" are prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect.policy.secrets.shapes import probe
from recollect.policy.secrets.text import View, fold
from recollect.policy.secrets.values import Trust, has_weak, is_value, trimmed

MAX_HITS = 4_000
"""Of such words in one text; more than the longest memory can hold."""

_PASSWORDS = """password passwort kennwort passwd pwd passphrase passcode pass-phrase passw0rd pa$$word p@ssword
p@ssw0rd p4ssword p4ssw0rd mot|de|passe mdp contraseña contrasena contrasenya contrasinal clave senha palavra-passe
palavra|passe wachtwoord passord lösenord adgangskode hasło heslo salasana şifre parola jelszó пароль κωδικός 密码 密碼
パスワード 비밀번호 pw pass login|password wlan-schlüssel wifi|key wpa|key netzwerkschlüssel""".split()
_TOKENS = """token api|key api-key api_key apikey api|token api|secret access|key access_key secret|key secret_key
secret-key client|secret client_secret auth|key auth_key signing|key encryption|key master|key license|key
account|key service|key private|key webhook|secret shared|secret secret credentials creds jeton clé|api clé|d'api
clave|api clave|de|api chave|api chave|de|api chiave|api api-schlüssel api|schlüssel schlüssel geheimnis sleutel
api-sleutel segredo secreto access|code authkey authtoken key ключ 令牌 密钥 トークン""".split()
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
    r"|fingerprint|algorithm|rate|throughput|generation|encoding|doc|tutorial|guide|class\b|object|variable|env\b)"
)
_IS = (
    r"is|was|are|remains|equals|becomes|ist|war|lautet|sind|heisst|est|etait|es|era|sao|zijn|jest|je|olan|should be"
    r"|will be|has been|reads|это|e'"
)
_MAYBE = r"to|of|as|auf|a|en|naar|op|su|para|on|e|er|ar|at|con|mit|with"
_FILLER = (
    r"now|currently|still|just|again|literally|simply|set|changed|reset|updated|rotated|to|be|back|always|jetzt|nun"
    r"|aktuell|maintenant|ahora|agora|adesso|nu|also|the same|equal|as follows|as|new one|exactly|called"
)
_VALUE = r"""(?P<value>"[^"\n\ufffc]{1,80}"|'[^'\n\ufffc]{1,80}'|`[^`\n\ufffc]{1,80}`|[^\s\ufffc]{1,200})"""
_SIGN = (
    r"""[ \t]?["'`\]*_)]{0,3}\s?(?:=>|->|:=|[:=|>])=?\s?["'`*_]{0,3}\s{0,3}(?:(?:it'?s|is)\s)?"""
    r"""|[ \t]--?[ \t]|'s\s|[是は]\s?"""
)
_SIGN_NEXT = re.compile(rf"(?P<many>e?s\b|en\b)?(?P<link>{_SIGN}){_VALUE}")
_LINK = re.compile(
    rf"(?P<stop>[.!?;,](?=\s|$)|[\n\ufffc])|(?P<link>[ \t](?:{_IS})(?=[\s:=])|(?=[:=|>)]|[ \t]-){_SIGN})"
)
_AFTER_LINK = re.compile(rf"(?:[ \t](?:{_FILLER})(?![^\s:=])){{0,3}}[ \t]?[:=]?\s{{0,3}}{_VALUE}")
_UNSURE = re.compile(
    rf"(?P<many>e?s\b)?(?:[ \t][\w'-]{{1,30}}+){{0,2}}?[ \t](?:{_MAYBE})(?:[ \t](?:{_FILLER})){{0,3}}[ \t]{_VALUE}"
)
_NEXT = re.compile(rf"(?P<many>e?s\b|en\b)?(?:[,?]?[ \t]\(?|\(|(?<=[^\x00-\x7f])){_VALUE}")

REACH = 200
"""How far from such a word its value may stand."""

MAX_WORDS_BETWEEN = 8
MAX_CHARS_BETWEEN = 90
"""Between what is spoken of and what is said about it."""

_PIN_TAIL = re.compile(
    rf"""
    (?P<between>(?:[ \t]?\([^)\n]{{1,30}}\)|(?:[ \t][\w'@&/\#.-]{{1,30}}+){{0,6}}?))
    (?P<link>\s?(?:[:=]|->)\s?|[ \t](?i:{_IS}|e)(?:[ \t](?i:{_FILLER})){{0,3}}:?[ \t]
        |[ \t](?i:nr\.?|no\.?|number)?[ \t]?)
    ["'`*]{{0,2}}(?P<value>\d(?:[ -]?\d){{3,9}}[\#*]?)["'`*]{{0,2}}(?![\w%€$£°/])(?![.,:]\d)
    """,
    re.VERBOSE,
)
_DIGITS = re.compile(r"\d")
_POSTAL = re.compile(
    r"(?i)address|deliver|postal|lookup|zip|city|district|india|ship|courier|locality|area\b|gpio|board|solder"
)
_BEFORE = re.compile(
    r"(?:^|[\s(\"'`])([^\s\"'`]{4,60})[\"'`]?[ \t]+(?:is|as|was|ist|est|es|e|als|war)[ \t]+"
    r"(?:(?:my|the|our|his|her|their|your|das|mein|unser|le|mon|notre|la|mi|nuestra|minha|il|mia|het|mijn)[ \t]+)"
    r"(?:[\w'-]{1,20}[ \t]+){0,3}$"
)
_CHANGED = re.compile(r"\b(?:set|chang|reset|updat|rotat|mak|made|switch|use|using|with|andert|cambi)\w*\b[^\n]{0,40}$")
_PAIR = re.compile(
    r"(?<![\w/.@-])(?:admin|root|administrator|user|deploy|ubuntu|postgres|sa|test|guest|pi):([^\s:/]{5,60})(?![:/\w])"
)
_ACCESS = re.compile(r"cred|log ?in|sign ?in|passw|\bpw\b|account|access|zugang|\buse\b|\bauth")
_LOGIN = re.compile(
    r"(?i:credentials?|creds|logins?|log ?in|logged in|sign in|signed in|user(?:name)?\s?(?:/|and|&|\+)\s?pass(?:word)?"
    r"|zugangsdaten|anmeldedaten|identifiants?|credenciales|credenciais|credenziali|inloggegevens|ssh in|default login)"
    r"(?:[ \t](?!user\b)[\w.'-]{1,24}){0,5}?"
    r"\s?(?:[:=]|[ \t](?i:is|are|with|as|using|mit|avec|con|com|met|sind|sont|son))?\s{1,2}[\"'`(]?"
    r"(?:(?i:user(?:name)?)\s?[:=]?\s?)?([\w.@+-]{2,40})[\"'`]?"
    r"(?:\s?/\s?|:(?!\s)|\s\|\s|[ \t]+(?i:and|with|und|et|y|e)[ \t]+|,[ \t]+)"
    r"(?:(?i:pass(?:word)?|pw)\s?[:=]?\s?)?[\"'`]?([^\s\"'`]{4,100})"
)


_OTHER_KEYS = tuple("public idempotency cache partition primary foreign sort object request redis".split())
_SAID_BEFORE = (" is ", " as ", " ist ", " est ", " es ", " als ", " was ")
_WORD_END = re.compile(r"(?:s|es|en|er|S)?(?![A-Za-z])")
_GAP = re.compile(r"[ \n.-]")
_PIECES = {
    size: re.compile(
        rf"[!-~]{{{size}}}([ \n.-]{{1,2}})[!-~]{{{size}}}(?:\1[!-~]{{{size}}}){{0,12}}"
        rf"(?:\1[!-~]{{1,{size - 1}}})?(?![^\s,;.])"
    )
    for size in range(2, 9)
}
_LITTLE_WORDS = re.compile(
    r"\b(?:the|and|for|one|are|not|you|it|is|in|on|to|of|at|by|or|if|we|as|das|der|die|ist|les|que)\b"
)


def _words(names: list[str]) -> tuple[tuple[str, str], ...]:
    """The words as they are looked for, longest first, each with what tells that a text may hold it."""
    folded = sorted({fold(name.replace("|", " ")) for name in names}, key=len, reverse=True)
    return tuple((word, probe(word, is_start=False)) for word in folded)


_PASSWORD_WORDS, _TOKEN_WORDS, _PIN_WORDS = _words(_PASSWORDS), _words(_TOKENS), _words(_PINS)
_LOGIN_WORDS = _words(
    """credential creds login log|in logged|in sign|in user/ username/ user|and|pass username|and|pass zugangsdaten
    anmeldedaten identifiant credenciales credenciais credenziali inloggegevens ssh|in""".split()
)
_NEEDS_A_SIGN = frozenset({"pass", "key", "sleutel", "schlussel", "parola", "clave", fold("ключ")})


def said_secrets(view: View) -> Iterator[tuple[str, int, int]]:
    """The rule and the span, in `view`, of every value that is called a password, a key or a PIN."""
    is_weak = has_weak(view.words)
    for words, rule, trust in (
        (_PASSWORD_WORDS, "password", Trust.PASSWORD),
        (_TOKEN_WORDS, "token", Trust.TOKEN),
    ):
        for word, at in _hits(view, words):
            if not is_weak and not view.has_marks(at - REACH, at + len(word) + REACH):
                continue
            for start, end in _values(view, word, at, trust):
                yield rule, start, end
    for word, at in _hits(view, _PIN_WORDS):
        yield from _pins(view.text, at, word)
    yield from _logins(view)


def _hits(view: View, words: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, int]]:
    """Where the words stand on their own, or end a name like `DB_PASSWORD` or `dbPassword`."""
    lower, text, hits = view.lower, view.text, 0
    for word, sign in words:
        if sign not in view.words:
            continue
        at = lower.find(word)
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


def _values(view: View, word: str, at: int, trust: Trust) -> Iterator[tuple[int, int]]:
    """The spans of the values said of the word that stands at `at`."""
    text, behind = view.text, at + len(word)
    if word.isascii() and not _WORD_END.match(text, behind):
        return
    if word.endswith("key") and view.lower[max(0, at - 14) : at].rstrip(" _-").endswith(_OTHER_KEYS):
        return
    is_thing = not _NOT_THE_THING.match(view.lower, behind)
    if is_thing:
        for tail, how_sure in _tails(view, word, at, trust):
            if span := _value_in(tail, text, how_sure):
                yield span
                break
    window_at = max(0, at - 100)
    window = view.lower[window_at:at]
    if is_thing and any(verb in window for verb in _SAID_BEFORE) and (said := _BEFORE.search(window)):
        start, end = trimmed(text, window_at + said.start(1), window_at + said.end(1))
        if is_value(text, start, end, Trust.PASSWORD if trust is Trust.PASSWORD else Trust.LOOSE, is_many=True):
            yield start, end


def _tails(view: View, word: str, at: int, trust: Trust) -> Iterator[tuple[re.Match[str], Trust]]:
    """What may be said of the word at `at`, likeliest first, each with how surely its wording announces a value."""
    lower, behind = view.lower, at + len(word)
    loosely = Trust.LOOSE if trust is Trust.PASSWORD else Trust.LOOSEST
    tail = _SIGN_NEXT.match(lower, behind)
    if tail:
        is_assigned = trust is Trust.PASSWORD and tail["link"].strip() == "=" and view.text[at].isupper()
        yield tail, Trust.ASSIGNED if is_assigned else trust
    if word in _NEEDS_A_SIGN:
        trust, loosely = loosely, Trust.LOOSEST
    link = _LINK.search(lower, behind, behind + MAX_CHARS_BETWEEN)
    if link and link["link"] and lower.count(" ", behind, link.start()) <= MAX_WORDS_BETWEEN:
        tail = _AFTER_LINK.match(lower, link.end())
        if tail:
            yield tail, trust
    tail = _UNSURE.match(lower, behind)
    if tail:
        yield tail, trust if _CHANGED.search(lower, max(0, at - 60), at) else loosely
    tail = _NEXT.match(lower, behind)
    if tail:
        yield tail, loosely


def _value_in(tail: re.Match[str], text: str, trust: Trust) -> tuple[int, int] | None:
    """The span of the value in `tail`, in one piece or in several of the same length; None: it is no value."""
    start, end = trimmed(text, *tail.span("value"))
    if is_value(text, start, end, trust, is_many=bool(tail.groupdict().get("many"))):
        return start, end
    if trust in (Trust.LOOSE, Trust.LOOSEST):
        return None
    pieces = _PIECES[end - start].match(text, start) if end - start in _PIECES else None
    if pieces and not _LITTLE_WORDS.search(pieces[0].lower()):
        joined = _GAP.sub("", pieces[0])
        if is_value(joined, 0, len(joined), trust, is_many=True):
            return pieces.span()
    return None


def _pins(text: str, at: int, word: str) -> Iterator[tuple[str, int, int]]:
    behind = at + len(word)
    if behind < len(text) and text[behind].isalpha():
        return
    tail = _PIN_TAIL.match(text, behind) if _DIGITS.search(text, behind, behind + MAX_CHARS_BETWEEN) else None
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
    for pair in _PAIR.finditer(view.lower) if ":" in view.lower else ():
        start, end = trimmed(view.text, *pair.span(1))
        around = view.lower[max(0, pair.start() - 60) : pair.end() + 60]
        if _ACCESS.search(around) and is_value(view.text, start, end, Trust.PASSWORD, is_many=True):
            yield "login", start, end
    for word, sign in _LOGIN_WORDS:
        if sign not in view.words:
            continue
        at, hits = view.lower.find(word), 0
        while at >= 0 and hits < MAX_HITS:
            hits += 1
            login = _LOGIN.match(view.text, at)
            if login:
                start, end = trimmed(view.text, *login.span(2))
                if is_value(view.text, start, end, Trust.PASSWORD, is_many=True):
                    yield "login", start, end
            at = view.lower.find(word, at + len(word))
