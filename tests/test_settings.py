"""Settings: every source, every type, which source wins, and what a mistake says."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import reference_settings
from wellkept.errors import Invalid
from wellkept.settings import FILES, Settings, default_url, setting, table

DOCS = Path(__file__).parent.parent / "docs" / "settings.md"
NOWHERE = Path(__file__).parent / "no such folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Settings):
    """Adding a setting is one line; these have the types and aliases that the shipped ones may not have yet."""

    is_quiet: bool = setting(False, "Whether to be quiet.", "quiet.please")
    mode: Literal["relevant", "off"] = setting("relevant", "Which mode.", "memory.sample_mode")
    pin: str = setting("", "A secret number.", is_secret=True)
    level: Literal["low", "high"] | None = setting(None, "Which level.")


def load(
    folder: Path = NOWHERE, environment: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> Sample:
    return Sample.load(folder=folder, environment=environment or {}, flags=flags)


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def message(
    folder: Path, environment: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> str:
    with pytest.raises(Invalid) as caught:
        load(folder, environment, flags)
    return str(caught.value)


def test_without_any_source_everything_has_its_default() -> None:
    settings = Settings.load(folder=NOWHERE, environment={})

    assert settings == Settings()
    assert (settings.url, settings.tenant, settings.agent, settings.embedder) == ("", "default", "default", "minilm")
    assert (settings.openai_api_key, settings.openai_base_url) == ("", "https://api.openai.com/v1")
    assert (settings.busy_timeout, settings.pool_size, settings.index_cache_mb) == (10.0, 10, 256)
    weights = (settings.weight_similarity, settings.weight_recency, settings.weight_importance, settings.weight_source)
    assert weights == (0.5, 0.2, 0.2, 0.1)
    assert (settings.host, settings.port) == ("127.0.0.1", 8077)
    assert settings.tool_sets == ("memory",)


def test_settings_are_values() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().port = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        Settings("sqlite:///notes.db")  # type: ignore[call-arg]


# Which source wins


def test_a_later_source_wins_over_every_earlier_one(tmp_path: Path) -> None:
    """Each source sets the port; they are added in order, and each time the newcomer wins."""
    assert load(tmp_path).port == 8077
    write(tmp_path, "wellkept.toml", "port = 1\ntenant = 'from toml'")
    assert load(tmp_path).port == 1
    write(tmp_path, "wellkept.yaml", "port: 2")
    assert load(tmp_path).port == 2
    write(tmp_path, "wellkept.yml", "port: 3")
    assert load(tmp_path).port == 3
    write(tmp_path, "agent.json", '{"memory": {"port": 4}}')
    assert load(tmp_path).port == 4
    environment = {"WELLKEPT_CONFIG": str(write(tmp_path, "mine.toml", "port = 5"))}
    assert load(tmp_path, environment).port == 5
    environment["WELLKEPT_PORT"] = "6"
    assert load(tmp_path, environment).port == 6
    settings = load(tmp_path, environment, {"port": 7})
    assert (settings.port, settings.tenant) == (7, "from toml")


def test_the_order_of_the_files_does_not_depend_on_when_they_were_written(tmp_path: Path) -> None:
    write(tmp_path, "agent.json", '{"memory": {"port": 4}}')
    write(tmp_path, "wellkept.yaml", "port: 2")
    write(tmp_path, "wellkept.toml", "port = 1")

    assert load(tmp_path).port == 4


def test_the_current_folder_and_the_real_environment_are_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "wellkept.toml", "port = 1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.environ", {"WELLKEPT_HOST": "::1"})

    settings = Settings.load()

    assert (settings.port, settings.host) == (1, "::1")


def test_nothing_is_remembered_between_two_loads(tmp_path: Path) -> None:
    write(tmp_path, "wellkept.toml", "port = 1")
    assert load(tmp_path).port == 1
    write(tmp_path, "wellkept.toml", "port = 2")
    assert load(tmp_path).port == 2


@pytest.mark.parametrize("name", ["mine.toml", "mine.yaml", "mine.yml", "mine.json", "MINE.JSON"])
def test_the_ending_of_a_named_file_says_its_format(tmp_path: Path, name: str) -> None:
    contents = {".toml": "[memory]\nport = 5", ".json": '{"port": 5}'}
    path = write(tmp_path, name, contents.get(Path(name).suffix.lower(), "port: 5"))

    assert load(environment={"WELLKEPT_CONFIG": str(path)}).port == 5


def test_an_own_variable_wins_over_a_shared_one() -> None:
    shared = {"OPENAI_API_KEY": "shared", "OPENAI_BASE_URL": "http://shared"}
    assert (load(environment=shared).openai_api_key, load(environment=shared).openai_base_url) == (
        "shared",
        "http://shared",
    )

    own = shared | {"WELLKEPT_OPENAI_API_KEY": "own", "WELLKEPT_OPENAI_BASE_URL": ""}
    assert (load(environment=own).openai_api_key, load(environment=own).openai_base_url) == ("own", "http://shared")


def test_an_empty_variable_and_a_flag_that_is_none_are_not_set(tmp_path: Path) -> None:
    write(tmp_path, "wellkept.toml", "port = 1")
    environment = {"WELLKEPT_PORT": "", "WELLKEPT_CONFIG": "", "WELLKEPT_NO_SUCH": ""}

    assert load(tmp_path, environment, {"port": None}).port == 1


def test_variables_of_other_programs_and_of_tests_are_passed_over() -> None:
    environment = {"PORT": "1", "OPENAI_ORGANIZATION": "x", "WELLKEPT_TEST_POSTGRES_URL": "x", "wellkept_port": "1"}

    assert load(environment=environment) == Sample()


# Keys of files


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("wellkept.toml", "openai_base_url = 'http://x'"),
        ("wellkept.toml", "[openai]\nbaseURL = 'http://x'"),
        ("wellkept.toml", "openai.baseURL = 'http://x'"),
        ("wellkept.toml", "'openai.baseURL' = 'http://x'"),
        ("wellkept.yaml", "openai: {baseURL: http://x}"),
        ("wellkept.yml", "openai.baseURL: http://x"),
        ("agent.json", '{"openai": {"baseURL": "http://x", "organization": "theirs"}}'),
        ("agent.json", '{"openai.baseURL": "http://x"}'),
        ("agent.json", '{"memory": {"openai_base_url": "http://x"}}'),
        ("agent.json", '{"memory": {"openai": {"baseURL": "http://x"}}}'),
        ("agent.json", '\ufeff{"memory": {"openai_base_url": "http://x"}}'),
    ],
)
def test_a_file_may_use_the_name_or_an_alias(tmp_path: Path, name: str, content: str) -> None:
    write(tmp_path, name, content)

    assert load(tmp_path) == Sample(openai_base_url="http://x")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("wellkept.toml", "[memory]\nsample_mode = 'off'"),
        ("wellkept.yaml", "memory:\n  sample_mode: off"),
        ("agent.json", '{"memory": {"sample_mode": "off"}}'),
        ("agent.json", '{"memory.sample_mode": "off"}'),
    ],
)
def test_an_alias_may_lie_in_the_memory_table(tmp_path: Path, name: str, content: str) -> None:
    write(tmp_path, name, content)

    assert load(tmp_path) == Sample(mode="off")


@pytest.mark.parametrize(
    "content",
    [
        {"memory": {"openai_base_url": "right"}, "openai": {"baseURL": "wrong"}},
        {"openai": {"baseURL": "wrong"}, "memory": {"openai_base_url": "right"}},
        {"openai": {"baseURL": "wrong"}, "memory": {"openai": {"baseURL": "right"}}},
        {"memory": {"openai_base_url": "right", "openai.baseURL": "wrong"}},
    ],
)
def test_in_one_file_the_own_name_and_the_own_table_win(tmp_path: Path, content: object) -> None:
    write(tmp_path, "agent.json", json.dumps(content))

    assert load(tmp_path).openai_base_url == "right"


def test_plain_names_in_agent_json_are_another_programs(tmp_path: Path) -> None:
    write(tmp_path, "agent.json", '{"url": "https://example.org", "port": "theirs", "agent": {"id": 7}}')

    assert load(tmp_path) == Sample()


def test_keys_of_other_programs_in_agent_json_are_passed_over(tmp_path: Path) -> None:
    foreign = {
        "name": "bot",
        "tools": [{"port": 1}],
        "openai": "theirs",
        "agent": {"name": "x"},
        "prot": 1,
        "quiet": {},
    }
    write(tmp_path, "agent.json", json.dumps(foreign | {"memory": {"port": 5}}))

    assert load(tmp_path) == Sample(port=5)


def test_a_named_file_is_strict_unless_it_is_an_agent_json(tmp_path: Path) -> None:
    shared, mine = (write(tmp_path, name, '{"name": "bot"}') for name in ("agent.json", "mine.json"))

    assert load(environment={"WELLKEPT_CONFIG": str(shared)}) == Sample()
    assert 'mine.json: there is no setting "name"' in message(NOWHERE, {"WELLKEPT_CONFIG": str(mine)})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("wellkept.toml", ""),
        ("wellkept.toml", "[memory]\n[openai]"),
        ("wellkept.yaml", ""),
        ("wellkept.yaml", "# nothing\n"),
        ("wellkept.yaml", "port:\nurl: ~\nmemory:\nopenai: null"),
        ("agent.json", "{}"),
        ("agent.json", '{"memory": null, "port": null}'),
    ],
)
def test_nothing_sets_nothing(tmp_path: Path, name: str, content: str) -> None:
    write(tmp_path, name, content)

    assert load(tmp_path) == Sample()


def test_a_folder_with_the_name_of_a_file_is_not_a_file(tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).mkdir()

    assert load(tmp_path) == Sample()


# Mistakes in keys


@pytest.mark.parametrize(
    ("name", "content", "key", "nearest"),
    [
        ("wellkept.toml", "prot = 1", "prot", "port"),
        ("wellkept.toml", "HOST = 'x'", "HOST", "host"),
        ("wellkept.toml", "busyTimeout = 1", "busyTimeout", "busy_timeout"),
        ("wellkept.toml", "[openia]\nbaseURL = 'x'", "openia.baseURL", "openai.baseURL"),
        ("wellkept.toml", "[memroy]\n", "memroy", "memory"),
        ("wellkept.toml", "[port]\nnumber = 1", "port.number", "port"),
        ("wellkept.toml", "[[hosts]]\nname = 'x'", "hosts", "host"),
        ("wellkept.yaml", "inject_mod: off", "inject_mod", "inject_mode"),
        ("wellkept.yaml", "pool-size:", "pool-size", "pool_size"),
        ("wellkept.yml", "OPENAI.BASEURL: x", "OPENAI.BASEURL", "openai.baseURL"),
        ("agent.json", '{"memory": {"inject_moed": "off"}}', "memory.inject_moed", "inject_mode"),
        ("agent.json", '{"memory": {"tenent": "x"}}', "memory.tenent", "tenant"),
        ("agent.json", '{"memory.tenent": "x"}', "memory.tenent", "tenant"),
    ],
)
def test_an_unknown_key_names_the_file_and_the_nearest_key(
    tmp_path: Path, name: str, content: str, key: str, nearest: str
) -> None:
    path = write(tmp_path, name, content)

    assert message(tmp_path) == f'{path}: there is no setting "{key}"; the nearest one is "{nearest}".'


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("WELLKEPT_PROT", "WELLKEPT_PORT"),
        ("WELLKEPT_OPENAI_KEY", "WELLKEPT_OPENAI_API_KEY"),
        ("WELLKEPT_TOOLSETS", "WELLKEPT_TOOL_SETS"),
        ("WELLKEPT_CONFIGS", None),
        ("WELLKEPT_TESTS", None),
        ("WELLKEPT_", None),
    ],
)
def test_an_unknown_variable_names_the_nearest_variable(variable: str, nearest: str | None) -> None:
    said = message(NOWHERE, {variable: "hush"})

    assert said.startswith(f'environment: there is no setting "{variable}"; the nearest one is "WELLKEPT_')
    assert nearest is None or f'"{nearest}"' in said
    assert "hush" not in said


def test_an_unknown_flag_names_the_nearest_setting() -> None:
    assert message(NOWHERE, flags={"hots": "x"}) == 'flags: there is no setting "hots"; the nearest one is "host".'


def test_no_two_settings_share_a_name() -> None:
    keys = [key for row in table() for key in (row.name, *row.aliases, *row.environment)]

    assert len(keys) == len(set(keys))


# Values


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("tenant", "acme", "acme"),
        ("tenant", "no", "no"),
        ("tenant", "007", "007"),
        ("tenant", "2026-01-01", "2026-01-01"),
        ("embedder", "off", "off"),
        ("url", "postgresql://user@host/db?a=b", "postgresql://user@host/db?a=b"),
        ("pool_size", "1", 1),
        ("port", "0", 0),
        ("port", "65535", 65535),
        ("busy_timeout", "2", 2.0),
        ("busy_timeout", "2.5e1", 25.0),
        ("weight_recency", "0", 0.0),
        ("weight_recency", "1", 1.0),
        ("is_quiet", "true", True),
        ("is_quiet", "Yes", True),
        ("is_quiet", "ON", True),
        ("is_quiet", "1", True),
        ("workspace", "/tmp/here", Path("/tmp/here")),
        ("mode", "off", "off"),
        ("level", "high", "high"),
        ("tool_sets", "notes", ("notes",)),
    ],
)
def test_every_source_reads_the_same_text_as_the_same_value(tmp_path: Path, key: str, text: str, value: Any) -> None:
    expected = Sample(**{key: value})
    folders = {name: tmp_path / name.replace(".", "-") for name in FILES}
    for folder in folders.values():
        folder.mkdir()
    write(folders["wellkept.toml"], "wellkept.toml", f'{key} = "{text}"')
    write(folders["wellkept.yaml"], "wellkept.yaml", f"{key}: {text}")
    write(folders["wellkept.yml"], "wellkept.yml", f'"{key}": "{text}"')
    write(folders["agent.json"], "agent.json", json.dumps({"memory": {key: text}}))

    assert load(environment={f"WELLKEPT_{key.upper()}": text}) == expected
    assert load(flags={key: text}) == expected
    for folder in folders.values():
        assert load(folder) == expected
    assert type(getattr(load(flags={key: text}), key)) is type(value) or isinstance(value, Path)


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("port = 5", "port", 5),
        ("busy_timeout = 5", "busy_timeout", 5.0),
        ("busy_timeout = 0.5", "busy_timeout", 0.5),
        ("is_quiet = true", "is_quiet", True),
        ("is_quiet = false", "is_quiet", False),
        ("tool_sets = ['notes', ' recall ', '']", "tool_sets", ("notes", "recall")),
        ("tool_sets = []", "tool_sets", ()),
        ("tool_sets = 'notes, recall,'", "tool_sets", ("notes", "recall")),
        ("workspace = ''", "workspace", None),
        ("level = ''", "level", None),
        ("url = ''", "url", ""),
    ],
)
def test_typed_values_in_a_file(tmp_path: Path, line: str, key: str, value: object) -> None:
    write(tmp_path, "wellkept.toml", line)

    found = getattr(load(tmp_path), key)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("word", ["false", "No", "OFF", "0"])
def test_words_for_false(tmp_path: Path, word: str) -> None:
    write(tmp_path, "wellkept.toml", "is_quiet = true")

    assert load(tmp_path, {"WELLKEPT_IS_QUIET": word}).is_quiet is False


def test_a_path_may_begin_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write(tmp_path, "mine.toml", "port = 5")

    settings = load(environment={"WELLKEPT_WORKSPACE": "~/here", "WELLKEPT_CONFIG": "~/mine.toml"})

    assert (settings.workspace, settings.port) == (tmp_path / "here", 5)
    assert load(flags={"workspace": Path("~/here")}).workspace == tmp_path / "here"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("tenant", 7, "text (in quotes)"),
        ("embedder", False, "text (in quotes)"),
        ("port", "abc", "a whole number from 0 to 65535"),
        ("port", "80.5", "a whole number from 0 to 65535"),
        ("port", 80.0, "a whole number from 0 to 65535"),
        ("port", True, "a whole number from 0 to 65535"),
        ("port", -1, "a whole number from 0 to 65535"),
        ("port", 65536, "a whole number from 0 to 65535"),
        ("port", [80], "a whole number from 0 to 65535"),
        ("port", {}, "a whole number from 0 to 65535"),
        ("pool_size", 0, "a whole number from 1 to 1000000000"),
        ("index_cache_mb", "0", "a whole number from 1 to 1000000000"),
        ("busy_timeout", "soon", "a number from 0 to 86400"),
        ("busy_timeout", -0.1, "a number from 0 to 86400"),
        ("busy_timeout", "nan", "a number from 0 to 86400"),
        ("busy_timeout", "inf", "a number from 0 to 86400"),
        ("busy_timeout", True, "a number from 0 to 86400"),
        ("busy_timeout", 10**400, "a number from 0 to 86400"),
        ("weight_similarity", 1.01, "a number from 0 to 1"),
        ("weight_recency", -0.01, "a number from 0 to 1"),
        ("weight_importance", "2", "a number from 0 to 1"),
        ("weight_source", float("nan"), "a number from 0 to 1"),
        ("is_quiet", "maybe", "true or false"),
        ("is_quiet", 1, "true or false"),
        ("workspace", 5, "a path"),
        ("mode", "of", 'one of "relevant", "off"'),
        ("mode", False, 'one of "relevant", "off"'),
        ("level", "middle", 'one of "low", "high"'),
        ("tool_sets", 5, "a list of words"),
        ("tool_sets", ["notes", 5], "a list of words"),
    ],
)
def test_a_value_that_does_not_fit_says_what_would(tmp_path: Path, key: str, value: object, expected: str) -> None:
    path = write(tmp_path, "agent.json", json.dumps({"memory": {key: value}}))
    assert message(tmp_path) == f"{path}: memory.{key} was given {value!r}; expected {expected}."
    assert message(NOWHERE, flags={key: value}) == f"flags: {key} was given {value!r}; expected {expected}."
    if isinstance(value, str):
        variable = f"WELLKEPT_{key.upper()}"
        said = message(NOWHERE, {variable: value})
        assert said == f"environment: {variable} was given {value!r}; expected {expected}."


def test_a_wrong_value_is_an_error_also_where_a_later_source_wins(tmp_path: Path) -> None:
    write(tmp_path, "wellkept.toml", "port = 'abc'")

    assert "wellkept.toml: port was given 'abc'" in message(tmp_path, {"WELLKEPT_PORT": "1"}, {"port": 2})


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)
words = texts.map(str.strip).filter(lambda text: text and "," not in text)


@given(
    tenant=texts,
    port=st.integers(0, 65535),
    busy_timeout=st.floats(0, 86_400),
    weight_source=st.floats(0, 1),
    is_quiet=st.booleans(),
    mode=st.sampled_from(["relevant", "off"]),
    tool_sets=st.lists(words, min_size=1).map(tuple),
)
def test_what_is_written_into_the_environment_is_read_back(**values: Any) -> None:
    environment = {
        f"WELLKEPT_{name.upper()}": ",".join(value) if isinstance(value, tuple) else str(value)
        for name, value in values.items()
    }

    assert load(environment=environment) == Sample(**values)
    assert load(flags=values) == Sample(**values)


keys = st.sampled_from([key for row in table(Sample) for key in (row.name, *row.aliases)] + ["memory", "openai"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=5)


@given(content=st.dictionaries(keys, values))
def test_whatever_a_table_holds_it_is_read_or_refused(content: dict[str, object]) -> None:
    with contextlib.suppress(Invalid):
        assert isinstance(load(flags=content), Sample)


# Broken files


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("wellkept.toml", "port = 1\nhost = \n", 2),
        ("wellkept.toml", "port = 1\nport = 2\n", 2),
        ("wellkept.toml", "port = 1\n\ntool_sets = ['notes'", 3),
        ("wellkept.yaml", "port: 1\nhost: [a\nurl: b", 3),
        ("wellkept.yaml", "port: 1\nhost: 'a\n", 3),
        ("wellkept.yml", "port: 1\nhost: \x07", 2),
        ("wellkept.yml", "port: 1\nhost: !!python/object:os.system x", 2),
        ("agent.json", '{\n"port": 1,\n}', 3),
        ("agent.json", "", 1),
    ],
)
def test_a_broken_file_names_the_file_and_the_line(tmp_path: Path, name: str, content: str, line: int) -> None:
    path = write(tmp_path, name, content)
    said = message(tmp_path)

    assert said.startswith(f"{path}: not valid {path.suffix[1:].upper()}: ")
    assert re.findall(r"line (\d+)", said) == [str(line)]


@pytest.mark.parametrize(
    ("name", "content"), [("agent.json", "[1]"), ("wellkept.yaml", "- port"), ("wellkept.yaml", "port")]
)
def test_a_file_must_hold_a_table(tmp_path: Path, name: str, content: str) -> None:
    path = write(tmp_path, name, content)

    assert message(tmp_path) == f"{path}: must hold a table of settings."


@pytest.mark.parametrize(
    ("name", "content", "key"),
    [
        ("agent.json", '{"memory": true}', "memory"),
        ("agent.json", '{"memory": false}', "memory"),
        ("wellkept.toml", "openai = 'x'", "openai"),
    ],
)
def test_a_table_must_be_a_table(tmp_path: Path, name: str, content: str, key: str) -> None:
    path = write(tmp_path, name, content)

    assert message(tmp_path) == f'{path}: "{key}" must be a table of settings.'


def test_a_file_must_be_utf8(tmp_path: Path) -> None:
    path = tmp_path / "wellkept.toml"
    path.write_bytes(b"port = 1\n# caf\xe9\n")

    assert message(tmp_path) == f"{path}: not UTF-8 text (at line 2)."


def test_a_named_file_must_be_there_and_of_a_known_format(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    assert message(tmp_path, {"WELLKEPT_CONFIG": str(missing)}).startswith(f"{missing}: cannot be read (")

    other = write(tmp_path, "mine.ini", "port = 1")
    assert message(tmp_path, {"WELLKEPT_CONFIG": str(other)}).startswith(f"{other}: a settings file ends in .toml, ")


def test_yaml_is_loaded_only_for_a_yaml_file(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from wellkept.settings import Settings\n"
        "Settings.load(folder=Path(sys.argv[1]), environment={}); print('yaml' in sys.modules)"
    )

    def is_yaml_loaded() -> str:
        command = [sys.executable, "-c", program, str(tmp_path)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    write(tmp_path, "wellkept.toml", "port = 1")
    assert is_yaml_loaded() == "False"
    write(tmp_path, "wellkept.yaml", "port: 1")
    assert is_yaml_loaded() == "True"


# Secrets


def test_settings_show_no_secret_and_no_password() -> None:
    settings = Settings(openai_api_key="sk-hush", url="postgresql://ann:hu@sh@host/db?sslmode=x&password=hush&a=b")

    assert repr(settings) == str(settings)
    assert "openai_api_key=***, " in repr(settings)
    assert "url='postgresql://ann:***@host/db?sslmode=x&password=***&a=b', " in repr(settings)
    assert not re.search("hush|hu@sh", repr(settings))
    assert "openai_api_key='', " in repr(Settings())
    assert "openai_base_url='https://api.openai.com/v1', " in repr(settings)
    assert settings.openai_api_key == "sk-hush"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("wellkept.toml", "openai_api_key = 987654321"),
        ("wellkept.toml", "openai_api_key = sk-987654321"),
        ("wellkept.toml", "openai.apiKey = 'sk-987654321"),
        ("wellkept.toml", "openai.apiKey = ['sk-987654321']"),
        ("wellkept.toml", "url = ['postgresql://ann:987654321@host/db']"),
        ("wellkept.yaml", "openai_api_key: 'sk-987654321"),
        ("wellkept.yaml", "openai_api_key: [sk-987654321]"),
        ("wellkept.yaml", "openai_api_key: \x07sk-987654321"),
        ("agent.json", '{"openai": {"apiKey": sk-987654321}}'),
        ("agent.json", '{"memory": {"pin": 987654321}}'),
    ],
)
def test_an_error_shows_no_secret(tmp_path: Path, name: str, content: str) -> None:
    write(tmp_path, name, content)

    with pytest.raises(Invalid) as caught:
        load(tmp_path)

    error: BaseException | None = caught.value
    while error is not None:  # what a traceback prints: the causes, and the contexts that are not suppressed
        assert "987654321" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


# The default store


@pytest.mark.parametrize(
    ("platform", "environment", "folder"),
    [
        ("linux", {"HOME": "/home/ann"}, "/home/ann/.local/share"),
        ("linux", {"HOME": "/home/ann", "XDG_DATA_HOME": "/shared"}, "/shared"),
        ("linux", {"HOME": "/home/ann", "XDG_DATA_HOME": ""}, "/home/ann/.local/share"),
        ("linux", {"HOME": "/home/ann", "XDG_DATA_HOME": "relative"}, "/home/ann/.local/share"),
        ("darwin", {"HOME": "/Users/ann", "XDG_DATA_HOME": "/shared"}, "/Users/ann/Library/Application Support"),
        ("win32", {"HOME": "/Users/ann", "LOCALAPPDATA": "/Users/ann/Local"}, "/Users/ann/Local"),
        ("win32", {"HOME": "/Users/ann"}, "/Users/ann/AppData/Local"),
    ],
)
def test_the_default_store_is_in_the_data_folder(platform: str, environment: Mapping[str, str], folder: str) -> None:
    assert default_url(environment, platform=platform) == f"sqlite:///{folder}/wellkept/wellkept.db"


def test_without_a_home_the_default_store_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)

    with pytest.raises(Invalid, match="set WELLKEPT_URL"):
        default_url({})


def test_the_store_is_the_url_or_the_default_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert Settings().store_url == default_url()
    assert Settings(url="sqlite:///notes.db").store_url == "sqlite:///notes.db"


# The documentation


def test_the_page_of_all_settings_is_the_generated_one() -> None:
    assert reference_settings.PAGE.read_text(encoding="utf-8") == reference_settings.render_page()


def test_the_guide_names_the_twelve_that_matter_with_their_defaults() -> None:
    told = re.findall(r"^\| `(\w+)` \| (?:`(.*?)`|\(empty\)) \|", DOCS.read_text(encoding="utf-8"), re.M)
    defaults = {row.name: row.default for row in table()}

    assert len(told) == 12
    assert dict(told) == {name: defaults[name] for name, _ in told}


def test_every_row_explains_itself() -> None:
    for row in table():
        assert re.fullmatch(r"[A-Z].{10,}\.", row.meaning), row
        assert row.environment[0] == f"WELLKEPT_{row.name.upper()}"


def test_the_default_in_the_table_is_the_default() -> None:
    environment = {row.environment[0]: row.default for row in table()}
    # The tests themselves have a longer deadline.
    shipped: dict[str, Any] = {each.name: each.default for each in fields(Settings)}

    assert Settings.load(folder=NOWHERE, environment=environment) == Settings(**shipped)


@pytest.mark.parametrize(
    ("language", "name"), [("toml", "wellkept.toml"), ("yaml", "wellkept.yaml"), ("json", "agent.json")]
)
def test_the_documented_files_work(tmp_path: Path, language: str, name: str) -> None:
    examples = dict(re.findall(r"```(\w+)\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S))
    write(tmp_path, name, examples[language])
    variables = dict(line.split("=", 1) for line in examples["sh"].splitlines())
    expected = Settings(busy_timeout=5, tool_sets=("memory", "journal"), openai_base_url="http://localhost:11434/v1")

    assert Settings.load(folder=tmp_path, environment={}) == expected
    assert Settings.load(folder=NOWHERE, environment=variables) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"consolidation": "auto"},
        {"inject_mode": "bogus"},
        {"recall_deadline": -5},
        {"recall_deadline": "soon"},
        {"remember_turns": "perhaps"},
        {"tenant": 7},
        {"port": True},
    ],
)
def test_settings_built_in_python_are_checked_like_loaded_ones(given: dict[str, Any]) -> None:
    ((name, value),) = given.items()
    with pytest.raises(Invalid, match=f"^Settings: {name} was given {re.escape(repr(value))}; expected "):
        Settings(**given)
    with pytest.raises(Invalid, match=f"^flags: {name} was given "):
        Settings.load(folder=NOWHERE, environment={}, flags=given)


def test_settings_built_in_python_have_the_types_of_loaded_ones() -> None:
    built = Settings(skills=["~/skills"], workspace="notes", port="8080")  # type: ignore[arg-type]

    assert (built.skills, built.workspace, built.port) == (("~/skills",), Path("notes"), 8080)
    assert Settings(workspace=None).workspace is None
    texts = Settings(skills="skills", tool_sets="notes, recall")  # type: ignore[arg-type]
    assert (texts.skills, texts.tool_sets) == (("skills",), ("notes", "recall"))
