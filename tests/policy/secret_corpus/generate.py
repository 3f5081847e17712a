"""A corpus of notes that hold credentials: rules' own shapes, sentences around them, and ways to hide them.

Everything is drawn from a seeded `random.Random`, so a run can be repeated. The sentences come in two halves: one was
looked at while the rules were written, the other (`HELD_OUT`) only measured.
"""

import base64
import codecs
import random
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wellkept.secrets.rules import RULES

ALPHABETS = {
    "hex": "0123456789abcdef",
    "dig": string.digits,
    "up": string.ascii_uppercase + string.digits,
    "low": string.ascii_lowercase + string.digits,
    "let": string.ascii_letters,
    "lower": string.ascii_lowercase,
    "b32": string.ascii_uppercase + "234567",
    "b64": string.ascii_letters + string.digits + "+/",
    "b64u": string.ascii_letters + string.digits + "-_",
    None: string.ascii_letters + string.digits,
}
_UUID = "{hex:8}-{hex:4}-4{hex:3}-a{hex:3}-{hex:12}"
_SLOT = re.compile(r"\{(?:(\w+):)?(\d+)\}")


def expand(template: str, rng: random.Random) -> str:
    """`template` with every `{36}` and `{hex:32}` replaced by that many random characters."""

    def drawn(slot: re.Match[str]) -> str:
        alphabet, size = ALPHABETS[slot[1]], int(slot[2])
        while True:
            run = "".join(rng.choices(alphabet, k=size))
            if not run.startswith(("-", "_", "/", "+")) and not run.endswith(("-", "_", "/", "+")):
                return run

    return _SLOT.sub(drawn, template.replace("{uuid}", _UUID))


# What people write around a key.
AROUND_KEYS = [
    "{}",
    "The key for the staging box is {}.",
    "remember this: {}",
    "User gave me their token {} for later use",
    "Deploys use {}, ask Ann before rotating.",
    "I pasted {} into the CI settings yesterday",
    "Use {} when calling the API",
    "- creds: {}",
    "Note to self ({}) expires in March",
    "export TOKEN={}",
]
HELD_OUT_AROUND_KEYS = [
    "so apparently {} still works, which is scary",
    "Bitte merken: {} gilt bis Jahresende.",
    "config line was `key: {}` in the yaml",
    "customer's integration: {} (sandbox is separate)",
    "Voici la clé du projet : {}",
    "He said to try {} if the first one is rate limited.",
    "[{}] <- from the onboarding mail",
    "La llave nueva es {} y la vieja ya no sirve",
    'set it to "{}" everywhere',
    "TODO rotate {}!",
]
# What people write around a password.
AROUND_PASSWORDS = [
    "my password is {}",
    "password: {}",
    "The wifi password is {}.",
    "pw = {}",
    "Login for the router: admin / {}",
    "DB_PASSWORD={}",
    "the passphrase for the backup disk is {}",
    "Das Passwort für den NAS ist {}",
    "Kennwort: {}",
    "mot de passe : {}",
    "La contraseña del wifi es {}",
    "a senha é {}",
    "wachtwoord: {}",
    "changed the admin password to {} today",
    "user: bob pass: {}",
    "credentials: ann/{}",
    '"password": "{}"',
]
HELD_OUT_AROUND_PASSWORDS = [
    "Netflix login is family@example.com with password {}",
    "pwd for the old laptop was {}, probably still is",
    "I always use {} as my password",
    "For Jenkins use admin:{} - creds from Tom",
    "Passwort lautet {}",
    "le mot de passe du serveur est {}",
    "Contraseña de la base: {}",
    "La password del NAS è {}",
    "root password of the printer -> {}",
    "ssh in as deploy, password {}",
    "username: carol, password: {}, region: eu",
    "{} is the new wifi password",
]
AROUND_PINS = ["my PIN is {}", "PIN: {}", "The alarm code is {}", "Die PIN lautet {}"]
HELD_OUT_AROUND_PINS = ["phone unlock pin = {}", "SIM PIN {}", "door code: {}", "the PIN for the card is {}"]

_WORDS = "summer tiger bicycle rocket coffee winter falcon marble dragon silver garden thunder pirate lemon".split()


def password(rng: random.Random) -> str:
    """One as people choose them."""
    first, second = rng.sample(_WORDS, 2)
    return rng.choice(
        [
            f"{first.title()}{rng.randint(10, 2030)}!",
            f"{first}{rng.randint(1, 99)}{second}",
            f"{first[0].upper()}{first[1:3]}@{second}{rng.randint(1, 9)}",
            f"{first.replace('e', '3').replace('o', '0')}#{rng.randint(100, 999)}",
            "".join(rng.choices(string.ascii_letters + string.digits + "!#%&*+", k=14)) + "7q",
            "hunter2",
            f"{first}-{second}-{rng.choice(_WORDS)}-{rng.choice(_WORDS)}{rng.randint(10, 99)}",
            f"{first}{rng.randint(1950, 2025)}",
        ]
    )


@dataclass(frozen=True, slots=True)
class Note:
    """A text that holds a credential."""

    text: str
    rule: str
    secret: str
    disguise: str = ""


def keys(rng: random.Random) -> Iterator[tuple[str, str]]:
    """The bare keys of every rule that has them: those of its examples that are one word."""
    for rule in RULES:
        for hit in rule.hits:
            if " " not in hit and "\n" not in hit:
                yield rule.name, expand(hit, rng)


def plain_notes(rng: random.Random, *, held_out: bool) -> Iterator[Note]:
    """Credentials as they come, in sentences."""
    around_keys = HELD_OUT_AROUND_KEYS if held_out else AROUND_KEYS
    for rule, key in keys(rng):
        for around in rng.sample(around_keys, 3):
            yield Note(around.replace("{}", key), rule, key)
    for around in (HELD_OUT_AROUND_PASSWORDS if held_out else AROUND_PASSWORDS) * 8:
        value = password(rng)
        yield Note(around.replace("{}", value), "password", value)
    for around in (HELD_OUT_AROUND_PINS if held_out else AROUND_PINS) * 3:
        value = str(rng.randint(1000, 999999))
        yield Note(around.replace("{}", value), "pin", value)
    for around in around_keys * 3:
        value = expand("{b64:44}", rng)
        yield Note(around.replace("{}", value), "random-run", value)


_CYRILLIC = str.maketrans("aceopxyisjhkABCEHKMOPTX", "асеорхуіѕјһкАВСЕНКМОРТХ")
_GREEK = str.maketrans("oavikpABEHIKMNOPTXZ", "οανικρΑΒΕΗΙΚΜΝΟΡΤΧΖ")


def _every(secret: str, size: int, gap: str) -> str:
    return gap.join(secret[i : i + size] for i in range(0, len(secret), size))


def _sprinkled(secret: str, rng: random.Random, marks: str) -> str:
    return "".join(c + (rng.choice(marks) if rng.random() < 0.3 else "") for c in secret[:-1]) + secret[-1]


def _prefix_case(secret: str) -> str:
    return secret[:8].swapcase() + secret[8:] if secret[:8].swapcase() != secret[:8] else secret.swapcase()


DISGUISES: dict[str, Callable[[str, random.Random], str]] = {
    "zero width": lambda s, rng: _sprinkled(s, rng, "\u200b\u200c\u200d\u2060\ufeff"),
    "soft hyphen, bidi": lambda s, rng: _sprinkled(s, rng, "\u00ad\u202a\u202c\u200e\u2066\u2069"),
    "combining": lambda s, rng: _sprinkled(s, rng, "\u0301\u0336\u0332\u034f"),
    "full width": lambda s, rng: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in s),
    "mathematical": lambda s, rng: "".join(
        chr(0x1D5BA + ord(c) - 97) if "a" <= c <= "z" else chr(0x1D5A0 + ord(c) - 65) if "A" <= c <= "Z" else c
        for c in s
    ),
    "cyrillic": lambda s, rng: s.translate(_CYRILLIC),
    "greek": lambda s, rng: s.translate(_GREEK),
    "two lines": lambda s, rng: s[: len(s) // 2] + "\n" + s[len(s) // 2 :],
    "many lines": lambda s, rng: _every(s, 8, "\n"),
    "blanks": lambda s, rng: _every(s, rng.choice([3, 4, 5]), " "),
    "one by one": lambda s, rng: " ".join(s),
    "dashes": lambda s, rng: _every(s, rng.choice([4, 6]), "-"),
    "dots": lambda s, rng: _every(s, 5, "."),
    "quoted pieces": lambda s, rng: '"' + _every(s, 10, '" + "') + '"',
    "base64": lambda s, rng: base64.b64encode(s.encode()).decode(),
    "base64url, no padding": lambda s, rng: base64.urlsafe_b64encode(s.encode()).decode().rstrip("="),
    "base64 twice": lambda s, rng: base64.b64encode(base64.b64encode(s.encode())).decode(),
    "hex": lambda s, rng: s.encode().hex(),
    "hex pairs": lambda s, rng: s.encode().hex(" "),
    "percent": lambda s, rng: "".join(f"%{ord(c):02X}" for c in s),
    "escapes": lambda s, rng: "".join(f"\\x{ord(c):02x}" for c in s),
    "entities": lambda s, rng: "".join(f"&#{ord(c)};" for c in s),
    "prefix case": lambda s, rng: _prefix_case(s),
    "backwards": lambda s, rng: s[::-1],
    "rot13": lambda s, rng: codecs.encode(s, "rot13"),
}


def disguised_notes(rng: random.Random, *, held_out: bool) -> Iterator[Note]:
    """Keys of every rule, hidden in every way, in sentences that do not give them away; and some passwords."""
    around_keys = HELD_OUT_AROUND_KEYS if held_out else AROUND_KEYS
    around_passwords = HELD_OUT_AROUND_PASSWORDS if held_out else AROUND_PASSWORDS
    for name, disguise in DISGUISES.items():
        for rule, key in keys(rng):
            yield Note(rng.choice(around_keys).replace("{}", disguise(key, rng)), rule, key, name)
        for around in around_passwords:
            value = password(rng)
            yield Note(around.replace("{}", disguise(value, rng)), "password", value, name)
