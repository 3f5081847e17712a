"""The secret detector: every rule's examples, notes that must pass, credentials in disguise, and what always holds."""

import random
import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.secret_corpus.generate import DISGUISES, Note, disguised_notes, expand, password, plain_notes
from wellkept.secrets import rules_context as context
from wellkept.secrets import rules_scan as scan
from wellkept.secrets.rules import RULES
from wellkept.secrets.rules_context import DESCRIBING_WORDS
from wellkept.secrets.rules_scan import SecretFinding, find_secrets, redact
from wellkept.secrets.rules_text import _FOLD, MAX_KEPT_CHARS, fold

CORPUS = Path(__file__).parent / "secret_corpus"
SEED = 20_260
MIN_PLAIN_RECALL = 0.95
MIN_DISGUISED_RECALL = 0.85
MIN_RECALL_PER_DISGUISE = 0.70
MIN_RECALL = 0.95
MIN_PRECISION = 0.98
MIN_REMOVED = 0.98


def benign(name: str) -> list[str]:
    lines = (CORPUS / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("# ")]


BENIGN = benign("benign.txt") + benign("benign_held_out.txt")


def expand_line(line: str, rng: random.Random) -> str:
    """A line of a corpus file as the note it stands for."""
    text = re.sub(r"(?<!\\)\\n", "\n", line).replace("\\\\n", "\\n")
    return expand(text.replace("{password}", password(rng)), rng)


def test_every_rule_has_examples_both_ways() -> None:
    assert [rule.name for rule in RULES if len(rule.hits) < 2 or len(rule.misses) < 2] == []
    assert [rule.name for rule in RULES if not re.fullmatch(r"[a-z0-9-]{1,40}", rule.name)] == []
    assert [key for rule in RULES for key in rule.keys if key != key.lower()] == []


def test_every_rule_finds_its_examples() -> None:
    tried = [(rule.name, expand(hit, random.Random(seed))) for rule in RULES for hit in rule.hits for seed in range(10)]
    assert [(name, text) for name, text in tried if not find_secrets(text)] == []


def test_rules_find_what_they_are_named_for() -> None:
    """An example may also fit a broader rule, but hardly any rule is only ever covered by another one."""
    named = {
        rule.name
        for rule in RULES
        for hit in rule.hits
        if rule.name in {finding.rule for finding in find_secrets(expand(hit, random.Random(1)))}
    }
    assert len(named) >= 0.9 * len({rule.name for rule in RULES})


def test_every_rule_leaves_its_counterexamples_alone() -> None:
    tried = [(rule, expand(miss, random.Random(seed))) for rule in RULES for miss in rule.misses for seed in range(3)]
    wrong = [(rule.name, text) for rule, text in tried if rule.name in {each.rule for each in find_secrets(text)}]
    assert wrong == []


def test_ordinary_notes_raise_no_alarm() -> None:
    assert [text for text in BENIGN if find_secrets(text)] == []


def test_public_values_and_examples_of_documentation_pass() -> None:
    notes = [expand_line(line, random.Random(line)) for line in benign("public_values.txt")]
    assert [note for note in notes if find_secrets(note)] == []


def test_credentials_in_files_commands_and_sentences_are_found() -> None:
    notes = [expand_line(line, random.Random(f"{line}{n}")) for line in benign("assignments.txt") for n in range(3)]
    assert [note for note in notes if not find_secrets(note)] == []


def test_a_secret_next_to_public_values_is_found() -> None:
    rng = random.Random(SEED)
    block = "-----BEGIN CERTIFICATE-----\nMIID{b64:60}\n{b64:64}\n-----END CERTIFICATE-----"
    for text in (f"{block}\nDB_PASSWORD=Falcon77", "sha256-{b64:43}= ghp_{36}", f"ghp_{{36}}\n{block}"):
        assert [finding.rule for finding in find_secrets(expand(text, rng))] in (["password"], ["github-token"])


GIVEN_AWAY = [
    "Remember my API key is sk-abc123...",
    "sk-abc123def456ghi789",
    "password: hunter2",
    "my password is letmein",
    "PW = Tr0ub4dor&3",
    "PIN is 1234",
    "The PIN for the card is 4711",
    "Kennwort: Sommer2024!",
    "mot de passe : Bourgogne#42",
    "la contraseña es Gato*Negro9",
    "a senha do wifi é banana77x",
    "wachtwoord is Tulp!2023",
    "пароль: qwerty123",
    "密码是 Xk29fLm!",
    "the token is 9f8a7b6c5d4e",
    'passphrase is "correct horse battery staple"',
    "log in with root / t00r!x",
    "user: bob pass: hunter2",
    "DB_PASSWORD=swordfish",
    "changed the admin password to Falcon77",
    "Tr0ub4dor&3 is my password",
    "p a s s w o r d : h u n t e r 2",
    "The router admin pass is Gx7#pLq2",
    "la clave del wifi es Torres*88",
    "il PIN della carta è 5521",
    "netflix pw: popcorn4life",
    "Das Kennwort von Oma ist Rosenstolz1953",
    "the password's hunter2 btw",
    "ssh root@10.1.2.3 password toor99x",
    "The password used to be Monday#1 and is now Tuesday#2",
    "creds for grafana: admin:Gr4f4na!",
]


def test_what_is_said_about_a_value_gives_it_away() -> None:
    assert [text for text in GIVEN_AWAY if not find_secrets(text)] == []


def marked(line: str) -> tuple[str, list[tuple[int, int]]]:
    """A text with its secrets in brackets as it is without them, and where the secrets are."""
    pieces = re.split("[⟦⟧]", expand_line(line, random.Random(line)))
    ends = list(accumulate(map(len, pieces)))
    return "".join(pieces), list(zip(ends[:-1:2], ends[1::2], strict=True))


@pytest.mark.parametrize("half", ["", "_held_out"])
def test_secrets_of_every_class_are_found_and_removed_whole(half: str) -> None:
    found, removed = [], []
    for text, secrets in map(marked, benign(f"secrets{half}.txt")):
        spans = [(each.start, each.end) for each in find_secrets(text)]
        found.append(any(start < b and a < end for start, end in secrets for a, b in spans))
        removed += [any(a <= start and end <= b for a, b in spans) for start, end in secrets if found[-1]]
    harmless = [expand_line(line, random.Random(line)) for line in benign(f"harmless{half}.txt")]
    false_alarms = [text for text in harmless if find_secrets(text)]

    assert recall(found) >= MIN_RECALL
    assert recall(removed) >= MIN_REMOVED
    assert sum(found) / (sum(found) + len(false_alarms)) >= MIN_PRECISION, false_alarms


def recall(found: Sequence[bool]) -> float:
    return sum(found) / len(found)


def is_found(note: Note) -> bool:
    return bool(find_secrets(note.text))


@pytest.mark.parametrize("held_out", [False, True])
def test_plain_credentials_are_found(held_out: bool) -> None:
    found = [is_found(note) for note in plain_notes(random.Random(SEED), held_out=held_out)]

    assert recall(found) >= MIN_PLAIN_RECALL


@pytest.mark.parametrize("held_out", [False, True])
def test_disguised_credentials_are_found(held_out: bool) -> None:
    found = [(note.disguise, is_found(note)) for note in disguised_notes(random.Random(SEED), held_out=held_out)]

    assert recall([each for _, each in found]) >= MIN_DISGUISED_RECALL
    for disguise in DISGUISES:
        assert recall([each for name, each in found if name == disguise]) >= MIN_RECALL_PER_DISGUISE, disguise


def test_the_span_is_that_of_the_original_characters() -> None:
    key = expand("ghp_{36}", random.Random(SEED))
    hidden = "\u200b".join(key)
    text = f"Ünïcode first, then {hidden} and more"

    (finding,) = find_secrets(text)

    assert finding == SecretFinding("github-token", text.index(hidden), text.index(hidden) + len(hidden))
    assert redact(text, [finding]) == "Ünïcode first, then [secret removed: github-token] and more"


def test_only_the_value_is_taken_out_of_a_sentence() -> None:
    text = "The wifi password is Falcon#77, ask Ann for the guest one."
    assert redact(text, find_secrets(text)) == (
        "The wifi password is [secret removed: password], ask Ann for the guest one."
    )


def test_only_the_password_is_taken_out_of_an_address() -> None:
    text = "Use postgres://app:Falcon77x@db.corp:5432/prod, ask Ann."
    assert (
        redact(text, find_secrets(text))
        == "Use postgres://app:[secret removed: url-password]@db.corp:5432/prod, ask Ann."
    )


def test_a_finding_never_shows_the_credential() -> None:
    assert "hunter2" not in repr(find_secrets("password: hunter2"))


def test_overlapping_findings_are_redacted_once() -> None:
    assert redact("abcdef", [SecretFinding("b", 2, 5), SecretFinding("a", 1, 3)]) == "a[secret removed: a]f"


LINES = st.sampled_from([*BENIGN[::7], *(note.text for note in plain_notes(random.Random(SEED), held_out=False))])
TEXTS = st.one_of(
    st.text(),
    st.text(alphabet=" \n:=-_/.\"'aAbB019%\\&#;x\u200b\ufffc[]"),
    st.lists(st.one_of(LINES, st.text(max_size=8)), max_size=6).map(" ".join),
    st.lists(LINES, max_size=4).map("\n".join),
)


@given(TEXTS)
def test_spans_are_in_order_and_in_the_text(text: str) -> None:
    found = find_secrets(text)
    assert all(0 <= finding.start < finding.end <= len(text) for finding in found)
    assert all(first.end <= second.start for first, second in pairwise(found))
    assert {finding.rule for finding in found} <= scan.RULE_NAMES


@given(TEXTS)
def test_the_automaton_finds_the_keys_that_a_plain_search_finds(text: str) -> None:
    keys = {*scan._RULES_BY_KEY, *DESCRIBING_WORDS} - scan._LONGER.keys()
    found, lower = scan._SIGNS.find(text), text.lower()
    assert found >= {key for key in keys if key in lower}
    for key in scan._LONGER.keys() & scan._RULES_BY_KEY.keys() - found:
        matches = [rule.pattern.search(text) for rule in scan._RULES_BY_KEY[key]]
        assert not any(match and lower.startswith(key, match.start()) for match in matches)


def test_a_text_that_cannot_be_encoded_is_scanned() -> None:
    assert [finding.rule for finding in find_secrets("\ud83d my password is hunter2")] == ["password"]


@given(TEXTS)
def test_redaction_leaves_nothing_to_find(text: str) -> None:
    assert find_secrets(redact(text, find_secrets(text))) == []


HARD = [
    "a", "aB3", "password ", "password: a1 ", "pw is ", "PIN ", "ghp_ ", "glpat-", "sk-", "eyJ.", "://a:", "%41",
    "a b ", "00 ", "0x41,", "YWJjZGVmZ2hpamts ", "-----BEGIN PRIVATE KEY-----", "heroku key ", "seed phrase zoo ",
    "user/pass a/b ", "x1 is my password ", "(password (", "\\x41", "&#65;", "ａ", "\u200b", "密码",
    "AAAAAAAAAAAAAAAAAAAAAAAAAA-", "- BEGIN ",
]  # fmt: skip


@pytest.mark.parametrize("piece", HARD)
def test_work_grows_with_the_length_only(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in characters handed to the rules' checks and values judged, not in seconds."""
    counts = {size: judged(piece, size, monkeypatch) for size in (4_000, 16_000)}
    assert counts[16_000] <= 6 * counts[4_000] + 2_000


def judged(piece: str, size: int, monkeypatch: pytest.MonkeyPatch) -> int:
    count = 0
    for module, name in ((context, "_value_in"), (scan, "_key_end"), (scan, "_credential_range")):
        judge = getattr(module, name)

        def counted(*args: object, judge: object = judge) -> object:
            nonlocal count
            count += 1
            return judge(*args)  # type: ignore[operator]

        monkeypatch.setattr(module, name, counted)
    find_secrets((piece * size)[:size])
    monkeypatch.undo()
    return count


@pytest.mark.parametrize("piece", HARD)
def test_a_long_text_takes_no_more_than_moments(piece: str) -> None:
    """It takes some hundredths of a second; a pattern that backtracks would take hours and run into the time limit."""
    find_secrets((piece * 100_000)[:100_000])


def test_folding_keeps_a_bounded_number_of_characters() -> None:
    for first in range(0x4000, 0x10000, 0x1000):
        fold("".join(map(chr, range(first, first + 0x1000))))

    assert len(_FOLD) <= MAX_KEPT_CHARS
