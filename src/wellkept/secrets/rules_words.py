"""Words of many languages around a credential, as data. A vertical bar is a space; a tilde stands for any ending."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wellkept.secrets.rules_text import TextView, fold

MAX_HITS = 4_000
"""Maximum number of such words in a text; the longest memory cannot hold more."""

MIN_SUFFIX_CHARS = 5
"""Minimum length of a word that may end the name of a variable without a separator, as in `PGPASSWORD=`."""

PASSWORDS = """
password passwort passwd pwd passphrase passcode pass-phrase passw0rd pa$$word p@ssword p@ssw0rd p4ssword p4ssw0rd pw
psk pass login|password code|wifi code|wi-fi code|du|wifi wifi|code wifi-code
wlan-code codice|wifi código|wifi wifi|key wpa|key kennwort wlan-schlüssel netzwerkschlüssel
mot|de|passe mots|de|passe mdp
contraseña contrasena contrasenya contrasinal clave contra|del|wifi senha palavra-passe palavra|passe parola|d'ordine
wachtwoord ww|van passord~ lösenord~ adgangskode~ salasana~ hasł~ heslo heslem şifre~ parola~ parolas~ parolam~
jelsz~ пароль~ парол~ κωδικό~ 密码 密碼 口令 パスワード 비밀번호 비번 패스워드 암호 पासवर्ड كلمة|السر كلمة|المرور
كلمة|مرور باسورد الرقم|السري الرمز|السري סיסמ~ kata|sandi mật|khẩu รหัสผ่าน رمز|عبور گذرواژه"""
TOKENS = """
token api|key api-key api_key apikey api|token api|secret access|key access_key secret|key secret_key secret-key
secret|id secret_id client|secret client_secret auth|key auth_key signing|key encryption|key master|key license|key
account|key service|key private|key webhook|secret shared|secret secret credentials creds access|code authkey authtoken
key jeton clé|api clé|d'api clé|de|l'api clave|api clave|de|api clave|de|la|api chave|api chave|de|api chave|da|api
chiave|api api-schlüssel api|schlüssel schlüssel geheimnis sleutel api-sleutel segredo secreto klucz|api klíč|k|api
api|anahtar~ ключ|api ключ 令牌 密钥 金鑰 トークン apiキー api|キー api|키 api키 مفتاح|api"""
PINS = """
pin pin-code pincode pin|code pin-nummer geheimzahl door|code alarm|code gate|code entry|code unlock|code lock|code
safe|code keypad|code garage|code access|code building|code screen|code code|pin código|pin türcode zugangscode
safe|combination lock|combination voicemail|code voicemail|pin sim|pin card|pin bank|pin phone|pin puk unlocks|with
keypad الرقم|السري пин-код пинкод пин код|от 暗証番号"""
DOORS = """
combination clave şifresi code código codice kod koodi kode код"""
LOGINS = """
credential creds login log|in log|into logged|in sign|in user/ username/ user|and|pass username|and|pass zugangsdaten
anmeldedaten identifiant credenciales credenciais credenziali inloggegevens ssh|in"""

NEEDS_SIGN = """pass key sleutel schlüssel parola~ clave ключ"""
"""Words with so many other meanings that only a sign after them announces a value."""

OTHER_KEYS = tuple(
    """public publishable site websocket idempotency cache partition primary foreign sort object request redis recv
    offentlicher openbare next page continuation pub sync cancellation memory price""".split()
)


def _fold_words(words: str) -> str:
    """Return alternatives of a pattern as the text they are matched against is folded. "|" itself looks like an l."""
    return "|".join(map(fold, words.split("|")))


IS = _fold_words(
    r"is|was|are|remains|equals|becomes|became|ist|war|wurde|lautet|sind|heisst|est|etait|es|era|sao|zijn|jest|brzmi|je"
    r"|er|ar|olan|este|la|adalah|should be|will be|has been|being|reads|это|такой|e'"
)
MAYBE = _fold_words(
    r"to|of|as|auf|a|en|naar|op|su|para|por|on|in|e|at|con|mit|with|from|von|de|til|till|na|doi thanh|thanh|menjadi"
    r"|be|cu|par|by|durch|door|przez|на"
)
FILLER = _fold_words(
    r"now|currently|still|just|again|literally|simply|set|changed|reset|updated|rotated|to|be|back|always|jetzt|nun"
    r"|aktuell|maintenant|désormais|ahora|agora|adesso|ora|nu|also|the same|equal|as follows|as|new one|exactly|called"
    r"|ficou|quedó|artık|şimdi|teraz|już|nyní|acum|sekarang|nyt|теперь|сейчас"
)
CHANGED = _fold_words(
    r"set|chang|reset|updat|rotat|mak|made|switch|chose|ändert|setzt|umgestellt|wechs|cambi|mud|alter|troqu|redefin"
    r"|modific|restablec|reinitialis|bytt|byt|ändr|skift|endr|vaih|valtozt|schimb|zmien|změn|ustaw|verander|gewijzig"
    r"|değiş|yapt|oldu|doi|đoi|ganti|replac|remplac|reemplaz|substitu|sostitu|vervang|zastąp|zmieni|pick|genomm|wähl"
    r"|смени|поменя|замени|постави|установи"
)
NEW = _fold_words(
    r"new|neu|nuev|nouv|nov[aeyo]|nuov|nieuw|nya?\b|nytt|yeni|uusi|baru|moi\b|uj\b|noua|mój|moje|nowe|nowy|новы|новое|новая"
)
BETWEEN = r"(?:c'est|it'?s|it is|now|new (?:one )?is|neu(?:es)? ist|ist jetzt|use|try|ficou|es|e')(?:[ \t]now)?"
"""Words that continue a sentence about a password after a comma."""


OTHER_MEANING = re.compile(
    r"[\s_-]*(?:s\s+)?(?:manager|managers|polic|reset|hash|length|field|form\b|rotat|strength|generat|vault|protect|less"
    r"|prompt|hint|expir|rules?\b|requirement|recover|limit|count|budget|usage|price|pricing|bucket|type|ring|ttl"
    r"|lifetime|endpoint|window|name|economic|santa|sauce|store|stores\b|path|ref\b|format|prefix|style|based|auth"
    r"|entropy|audit|check|input|box|screen|page|link|(?:e-?)?mail(?!(?:[ \t][\w'-]{1,20}){0,4}?(?:[ \t](?:"
    rf"{IS})[\s:]|\s?[:=]))|table|column|version|size|cost|per\b|stream|id\b|ids\b"
    r"|scanning|scanner|detection|leak|sharing|service\b|issuer|verif|validat|complexity|spray|stuff|crack|dump|login\b"
    r"|value|pair|space|schema|order|board|stone|point|takeaway|result|idea|insight|player|feature|word|facts?\b"
    r"|ceremony|derivation|exchange|file|fob|chain|card|layout|binding|signature|map|press|stroke|metric|performance"
    r"|fingerprint|identifier|algorithm|rate|throughput|generation|encoding|doc|tutorial|guide|class\b|object|variable"
    r"|env\b|publi|pubbl|regex|pattern)"
)


COMPOUNDED = tuple("passwort kennwort wachtwoord losenord passord adgangskode".split())
"""Words that end compounds, as in "Bankpasswort"."""

_PARAMETER = re.compile(r"[?&][A-Za-z_]{1,10}$")


def prepare_words(names: str) -> dict[str, None]:
    """Fold the words, longest first. The keys of a dictionary are in order and quickly looked up."""
    plain = [name.replace("|", " ").rstrip("~") for name in names.split()]
    # A capital letter may look like another one than the small letter does.
    words = {fold(form) for name in plain for form in (name, name.capitalize(), name.upper())}
    return dict.fromkeys(sorted(words, key=len, reverse=True))


def find_words(view: TextView, words: dict[str, None], keys: frozenset[str]) -> Iterator[tuple[str, int]]:
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
                or (word in COMPOUNDED and before.isalpha())
                or (text.startswith("=", at + len(word)) and _PARAMETER.search(text, max(0, at - 12), at))
            ):
                yield word, at
            at = lower.find(word, at + len(word))
