"""Find credentials by the words around them: "the password is …", "api key: …", "PIN 4711".

Such a value may be anything, so the words decide where to look and its characters decide if it is a value at all:
`token: economics`, `password: required` and "the secret is to stir slowly" are prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wellkept.policy.secrets.text import TextView, fold
from wellkept.policy.secrets.values import WEAK_WORDS, Certainty, is_value, trim_value

MAX_HITS = 4_000
"""Maximum number of such words in a text; the longest memory cannot hold more."""

_PASSWORDS = """password passwort kennwort passwd pwd passphrase passcode pass-phrase passw0rd pa$$word p@ssword
p@ssw0rd p4ssword p4ssw0rd mot|de|passe mdp contraseña contrasena contrasenya contrasinal clave senha palavra-passe
palavra|passe wachtwoord passord lösenord adgangskode hasło heslo salasana şifre parola jelszó пароль κωδικός 密码 密碼
パスワード 비밀번호 pw psk pass login|password wlan-schlüssel wifi|key wpa|key netzwerkschlüssel""".split()
_TOKENS = """token api|key api-key api_key apikey api|token api|secret access|key access_key secret|key secret_key
secret-key client|secret client_secret auth|key auth_key signing|key encryption|key master|key license|key
account|key service|key private|key webhook|secret shared|secret secret credentials creds jeton clé|api clé|d'api
clave|api clave|de|api chave|api chave|de|api chiave|api api-schlüssel api|schlüssel schlüssel geheimnis sleutel
api-sleutel segredo secreto access|code authkey authtoken key ключ 令牌 密钥 トークン""".split()
_PINS = """pin pin-code pincode pin|code pin-nummer geheimzahl door|code alarm|code gate|code entry|code unlock|code
lock|code safe|code keypad|code garage|code access|code building|code code|pin código|pin türcode zugangscode
safe|combination lock|combination voicemail|code""".split()
_OTHER_MEANING = re.compile(
    r"[\s_-]*(?:s\s+)?(?:manager|managers|polic|reset|hash|length|field|form\b|rotat|strength|generat|vault|protect|less"
    r"|prompt|hint|expir|rules?\b|requirement|recover|limit|count|budget|usage|price|pricing|bucket|type|ring|ttl"
    r"|lifetime|endpoint|window|name|economic|santa|sauce|store|stores\b|path|ref\b|format|prefix|style|based|auth"
    r"|entropy|audit|check|input|box|screen|page|link|email|mail|table|column|version|size|cost|per\b|stream|id\b|ids\b"
    r"|scanning|scanner|detection|leak|sharing|service\b|issuer|verif|validat|complexity|spray|stuff|crack|dump|login\b"
    r"|value|pair|space|schema|order|board|stone|point|takeaway|result|idea|insight|player|feature|word|facts?\b"
    r"|ceremony|derivation|exchange|file|fob|chain|card|layout|binding|signature|map|press|stroke|metric|performance"
    r"|fingerprint|identifier|algorithm|rate|throughput|generation|encoding|doc|tutorial|guide|class\b|object|variable|env\b|publi|pubbl)"
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
"""Maximum distance between such a word and its value."""

MIN_SUFFIX_CHARS = 5
"""Minimum length of a word that may end the name of a variable without a separator, as in `PGPASSWORD=`."""

MAX_WORDS_BETWEEN = 8
MAX_CHARS_BETWEEN = 90
"""Maximum distance between such a word and the verb or sign that links it to its value."""

_PIN_TAIL = re.compile(
    rf"""
    (?P<between>(?:[ \t]?\([^)\n]{{1,30}}\)|(?:[ \t][\w'@&/\#.-]{{1,30}}+){{0,6}}?))
    (?P<link>\s?(?:[:=]|->)\s?|[ \t](?i:{_IS}|e)(?:[ \t](?i:{_FILLER})){{0,3}}:?[ \t]
        |[ \t](?i:nr\.?|no\.?|number)?[ \t]?)
    ["'`*]{{0,2}}(?P<value>\d(?:[ -]?\d){{3,9}}[\#*]?)["'`*]{{0,2}}(?![\w%€$£°/])(?![.,:]\d|[ ][A-Z]{{2}}\b)
    """,
    re.VERBOSE,
)
_DIGITS = re.compile(r"\d")
_YEAR = re.compile(r"(?:19|20)\d\d")
_POSTAL = re.compile(r"(?i)address|deliver|postal|lookup|zip|city|district|india|ship|courier|locality|area\b")
_ELECTRIC = re.compile(r"(?i)gpio|\bboard|solder|connector|\bheader\b|\bground\b|jumper|socket|arduino|\bLED\b|volt")
_BEFORE = re.compile(
    r"(?:^|[\s(\"'`])([^\s\"'`]{4,60})[\"'`]?[ \t]+(?:is|as|was|ist|est|es|e|als|war)[ \t]+"
    r"(?:(?:my|the|our|his|her|their|your|das|mein|unser|le|mon|notre|la|mi|nuestra|minha|il|mia|het|mijn)[ \t]+)"
    r"(?:(?!(?:bad|worst|weak|weakest|popular|typical|example|common|terrible)[ \t])[\w'-]{1,20}[ \t]+){0,3}$"
)
_CHANGED = re.compile(r"\b(?:set|chang|reset|updat|rotat|mak|made|switch|use|using|with|andert|cambi)\w*\b[^\n]{0,40}$")
_GIVEN = re.compile(
    r"(?:\b(?:with|using|mit|avec|con|com|met)|@[^\s@]{2,60})[ \t]+(?:(?:the|dem|le|la|el|a|het)[ \t]+)?$"
)
_PAIR = re.compile(
    r"(?<![\w/.@-])(?:admin|root|administrator|user|deploy|ubuntu|postgres|sa|test|guest|pi):([^\s:/\"'`]{5,60})(?![:/\w])"
)
_PAIR_SIGN = ":"
_ACCESS = re.compile(r"cred|log ?in|sign ?in|passw|\bpw\b|account|access|zugang|\buse\b|\bauth")
_LOGIN = re.compile(
    r"(?i:credentials?|creds|logins?|log ?in|logged in|sign in|signed in|user(?:name)?\s?(?:/|and|&|\+)\s?pass(?:word)?"
    r"|zugangsdaten|anmeldedaten|identifiants?|credenciales|credenciais|credenziali|inloggegevens|ssh in|default login)"
    r"(?:[ \t](?!user\b)[\w.'-]{1,24}){0,5}?"
    r"\s?(?:[:=]|[ \t](?i:is|are|with|as|using|mit|avec|con|com|met|sind|sont|son))?\s{1,2}[\"'`(]?"
    r"(?:(?i:user(?:name)?)\s?[:=]?\s?)?([\w.@+-]{2,40})[\"'`]?"
    r"(?:\s?/\s?|:(?!\s)|\s\|\s|[ \t]+(?i:and|with|und|et|y|e)[ \t]+|,[ \t]+)"
    r"(?:(?i:pass(?:word)?|pw)\s?[:=]?\s?)?[\"'`]?((?![\w.+-]{1,64}@[\w-]{1,40}\.\w)[^\s\"'`]{4,100})"
)


_OTHER_KEYS = tuple(
    """public publishable site websocket idempotency cache partition primary foreign sort object request redis recv
    offentlicher openbare next page continuation sync cancellation""".split()
)
_NAMED_BEFORE = ("key", "token", "schlussel", "sleutel")
_VERBS_BEFORE = (" is ", " as ", " ist ", " est ", " es ", " als ", " was ")
_WORD_END = re.compile(r"(?:s|es|en|er|S)?(?![A-Za-z])")
_GAP = re.compile(r"[ \n.-]")
_PIECES = {
    size: re.compile(
        rf"[!-~]{{{size}}}([ \n.-]{{1,2}})[!-~]{{{size}}}(?:\1[!-~]{{{size}}}){{0,12}}"
        rf"(?:\1[!-~]{{1,{size - 1}}})?(?![^\s,;.])"
    )
    for size in range(2, 9)
}
_FUNCTION_WORDS = re.compile(
    r"\b(?:the|and|for|one|are|not|you|it|is|in|on|to|of|at|by|or|if|we|as|das|der|die|ist|les|que)\b"
)


def _prepare_words(names: list[str]) -> dict[str, None]:
    """Fold the words, longest first. The keys of a dictionary are in order and quickly looked up."""
    return dict.fromkeys(sorted({fold(name.replace("|", " ")) for name in names}, key=len, reverse=True))


_PASSWORD_WORDS, _TOKEN_WORDS, _PIN_WORDS = _prepare_words(_PASSWORDS), _prepare_words(_TOKENS), _prepare_words(_PINS)
_LOGIN_WORDS = _prepare_words(
    """credential creds login log|in logged|in sign|in user/ username/ user|and|pass username|and|pass zugangsdaten
    anmeldedaten identifiant credenciales credenciais credenziali inloggegevens ssh|in""".split()
)
DESCRIBING_WORDS = (*_PASSWORD_WORDS, *_TOKEN_WORDS, *_PIN_WORDS, *_LOGIN_WORDS, *WEAK_WORDS, _PAIR_SIGN)
_NEEDS_SIGN = frozenset({"pass", "key", "sleutel", "schlussel", "parola", "clave", fold("ключ")})


def find_described(view: TextView, keys: frozenset[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the rule and range, in `view`, of every value that is called a password, a key or a PIN.

    `keys` are the `DESCRIBING_WORDS`, among others, that occur in the text.
    """
    has_weak_word = not keys.isdisjoint(WEAK_WORDS)
    for words, rule, trust in (
        (_PASSWORD_WORDS, "password", Certainty.PASSWORD),
        (_TOKEN_WORDS, "token", Certainty.TOKEN),
    ):
        for word, at in _find_words(view, words, keys):
            if not has_weak_word and not view.has_marks(at - REACH, at + len(word) + REACH):
                continue
            for start, end in _find_values(view, word, at, trust):
                yield rule, start, end
    for word, at in _find_words(view, _PIN_WORDS, keys):
        yield from _find_pins(view.text, at, word)
    yield from _find_logins(view, keys)


def _find_words(view: TextView, words: dict[str, None], keys: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Yield occurrences of whole words, or of words that end a name such as `DB_PASSWORD` or `dbPassword`."""
    lower, text, hits = view.lower, view.text, 0
    if words.keys().isdisjoint(keys):
        return
    for word in words:
        at = lower.find(word) if word in keys else -1
        while at >= 0 and hits < MAX_HITS:
            hits += 1
            before = text[at - 1] if at else " "
            if (
                not before.isalnum()
                or not before.isascii()
                or (before.islower() and text[at].isupper())
                or not word.isascii()
                or (
                    len(word) >= MIN_SUFFIX_CHARS
                    and before.isupper()
                    and text[at + len(word) : at + len(word) + 1] == "="
                )
            ):
                yield word, at
            at = lower.find(word, at + len(word))


def _find_values(view: TextView, word: str, at: int, trust: Certainty) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the values for the word at `at`."""
    text, after = view.text, at + len(word)
    if word.isascii() and not _WORD_END.match(text, after):
        return
    # `user:password@host` is the concern of another rule; `new Password('r0sebud')` and `Password {` are a class.
    following = text[after : after + 2]
    if following[:1] == "@" or following == " {" or (following[:1] == "(" and text.endswith("new ", 0, at)):
        return
    if word.endswith(_NAMED_BEFORE) and view.lower[max(0, at - 14) : at].rstrip(" _-").endswith(_OTHER_KEYS):
        return
    is_thing = not _OTHER_MEANING.match(view.lower, after)
    if is_thing:
        for tail, certainty in _tails(view, word, at, trust):
            if span := _value_in(tail, text, certainty):
                yield span
                break
    window_at = max(0, at - 100)
    window = view.lower[window_at:at]
    if is_thing and any(verb in window for verb in _VERBS_BEFORE) and (before := _BEFORE.search(window)):
        start, end = trim_value(text, window_at + before.start(1), window_at + before.end(1))
        if is_value(
            text, start, end, Certainty.PASSWORD if trust is Certainty.PASSWORD else Certainty.LOOSE, is_many=True
        ):
            yield start, end


def _tails(view: TextView, word: str, at: int, trust: Certainty) -> Iterator[tuple[re.Match[str], Certainty]]:
    """Yield candidate phrases after the word at `at`, likeliest first, with the certainty of their wording."""
    lower, after = view.lower, at + len(word)
    loose = Certainty.LOOSE if trust is Certainty.PASSWORD else Certainty.LOOSEST
    tail = _SIGN_NEXT.match(lower, after)
    if tail:
        is_assigned = trust is Certainty.PASSWORD and tail["link"].strip() == "=" and view.text[at].isupper()
        yield tail, Certainty.ASSIGNED if is_assigned else trust
    if word in _NEEDS_SIGN:
        trust, loose = loose, Certainty.LOOSEST
    link = _LINK.search(lower, after, after + MAX_CHARS_BETWEEN)
    if link and link["link"] and lower.count(" ", after, link.start()) <= MAX_WORDS_BETWEEN:
        tail = _AFTER_LINK.match(lower, link.end())
        if tail:
            yield tail, trust
    tail = _UNSURE.match(lower, after)
    if tail:
        yield tail, trust if _CHANGED.search(lower, max(0, at - 60), at) else loose
    tail = _NEXT.match(lower, after)
    if tail:
        is_given = word not in _NEEDS_SIGN and _GIVEN.search(lower, max(0, at - 80), at)
        yield tail, trust if is_given else loose


def _value_in(tail: re.Match[str], text: str, trust: Certainty) -> tuple[int, int] | None:
    """Return the range of the value in `tail`, whole or in pieces of the same length; None if it is no value."""
    start, end = trim_value(text, *tail.span("value"))
    if is_value(text, start, end, trust, is_many=bool(tail.groupdict().get("many"))):
        return start, end
    if trust in (Certainty.LOOSE, Certainty.LOOSEST):
        return None
    pieces = _PIECES[end - start].match(text, start) if end - start in _PIECES else None
    if pieces and not _FUNCTION_WORDS.search(pieces[0].lower()):
        joined = _GAP.sub("", pieces[0])
        if is_value(joined, 0, len(joined), trust, is_many=True):
            return pieces.span()
    return None


def _find_pins(text: str, at: int, word: str) -> Iterator[tuple[str, int, int]]:
    after = at + len(word)
    if after < len(text) and text[after].isalpha():
        return
    tail = _PIN_TAIL.match(text, after) if _DIGITS.search(text, after, after + MAX_CHARS_BETWEEN) else None
    if not tail:
        return
    digits = "".join(c for c in tail["value"] if c.isdigit())
    is_announced = bool(tail["link"].strip()) or text[at : at + 3] in ("PIN", "Pin") or word != "pin"
    around = text[max(0, at - 80) : tail.end() + 60]
    is_other = (len(digits) == 6 and _POSTAL.search(around)) or (word == "pin" and _ELECTRIC.search(around))
    if is_announced and 4 <= len(digits) <= 8 and not is_other and not _is_year_of(tail, word):
        yield "pin", *tail.span("value")


def _is_year_of(tail: re.Match[str], word: str) -> bool:
    """Return True for a year as in `pin from 2019` or `building code 2021`, where nothing says that it is the code."""
    if tail["link"].strip():
        return False
    return bool(tail["between"].strip()) if word == "pin" else _YEAR.fullmatch(tail["value"]) is not None


def _find_logins(view: TextView, keys: frozenset[str]) -> Iterator[tuple[str, int, int]]:
    for pair in _PAIR.finditer(view.lower) if _PAIR_SIGN in keys else ():
        start, end = trim_value(view.text, *pair.span(1))
        around = view.lower[max(0, pair.start() - 60) : pair.end() + 60]
        if _ACCESS.search(around) and is_value(view.text, start, end, Certainty.PASSWORD, is_many=True):
            yield "login", start, end
    for word in _LOGIN_WORDS.keys() & keys:
        at, hits = view.lower.find(word), 0
        while at >= 0 and hits < MAX_HITS:
            hits += 1
            login = _LOGIN.match(view.text, at)
            if login:
                start, end = trim_value(view.text, *login.span(2))
                if is_value(view.text, start, end, Certainty.PASSWORD, is_many=True):
                    yield "login", start, end
            at = view.lower.find(word, at + len(word))
