"""Big texts through the library, on both engines: stored from anywhere, described, found, read in parts."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.services.conftest import Clock, Place, on_one_engine
from wellkept import Wellkept
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.deadline import DEADLINE, Deadline
from wellkept.details import parts
from wellkept.details.parts import read_matches
from wellkept.details.rules_keys import MAX_DESCRIPTION_CHARS, SUFFIX_ALPHABET, PartRequest
from wellkept.errors import Cancelled, Invalid, NotFound, StoreError
from wellkept.store.tables.details import CHUNK_CHARS, Content

LOG = "".join(f"{number} {'ERROR disk full' if number % 3000 == 0 else 'ok naïve'} 𝄞\n" for number in range(1, 20_001))
LINES = LOG.splitlines(keepends=True)
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def key(ann: AgentMemory) -> str:
    return ann.details.store(LOG, description="disk log").key


# --- storing


@pytest.mark.proves("D4")
def test_a_detail_says_what_it_is(ann: AgentMemory, clock: Clock) -> None:
    about = {"source": "npm install", "status": "success", "exit_code": 0, "duration": 1.5, "argv": ["npm", None]}
    detail = ann.details.store(
        "added 212 packages\n", description="npm  install\n", type="command_output", session_id="s-1", metadata=about
    )

    assert re.fullmatch(rf"npm-install-[{SUFFIX_ALPHABET}]{{8}}", detail.key)
    assert (detail.type, detail.description, detail.session_id) == ("command_output", "npm install", "s-1")
    assert (detail.metadata, detail.created_at, detail.is_active) == (about, clock(), True)
    assert (detail.size, detail.chars, detail.lines) == (19, 19, 1)
    assert "added 212 packages" in detail.summary
    assert ann.details.get(detail.key) == detail


def test_a_key_begins_with_words_about_the_text(ann: AgentMemory) -> None:
    def begins(**said: Any) -> str:
        return ann.details.store("text", **said).key.rpartition("-")[0]

    assert begins(description="Über die Brücke!") == "uber-die-brucke"
    assert begins(metadata={"source": "git log --oneline"}) == "git-log-oneline"
    assert begins(description="日本語", type="api_response") == "api-response"
    assert begins() == "text"
    assert begins(description="word " * 50) == "word-word-word-word-word-word-word-word"
    assert len({ann.details.store("text", description="same").key for _ in range(5)}) == 5


def in_every_form(text: str, folder: Path) -> list[Any]:
    path = folder / "log.txt"
    path.write_bytes(text.encode())
    raw = text.encode()
    return [
        text,
        raw,
        bytearray(raw),
        path,
        io.StringIO(text, newline=""),
        io.BytesIO(raw),
        (text[at : at + 777] for at in range(0, len(text), 777)),
        [raw[at : at + 777] for at in range(0, len(raw), 777)],  # cuts characters in half
    ]


def test_content_comes_in_any_form(ann: AgentMemory, tmp_path: Path) -> None:
    stored = [ann.details.store(each) for each in in_every_form(LOG, tmp_path)]

    assert len({(each.content_hash, each.chars, each.lines) for each in stored}) == 1
    assert (stored[0].chars, stored[0].lines, stored[0].size) == (len(LOG), 20_000, len(LOG.encode()))


def test_what_is_not_text_is_made_text(ann: AgentMemory) -> None:
    assert ann.details.read(ann.details.store(b"caf\xe9 \x00 \xff\n").key).content == "caf\ufffd \x00 \ufffd\n"
    assert ann.details.read(ann.details.store("half \ud800 pair").key).content == "half \ufffd pair"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "nothing to store"),
        (iter([]), "nothing to store"),
        (7, "not int"),
        (["text", 7], "not int"),
        (Path("/no/such/file"), r"/no/such/file cannot be read: No such file"),
    ],
)
@on_one_engine
def test_what_cannot_be_stored_is_refused(ann: AgentMemory, content: Any, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        ann.details.store(content)
    assert ann.details.list() == []


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("type", "Command Output", "type is a short word"),
        ("type", "", "type is a short word"),
        ("description", "x" * (MAX_DESCRIPTION_CHARS + 1), "description is too long"),
        ("description", "a\x00b", "NUL"),
        ("session_id", " ", "session_id is 1 to 200"),
        ("metadata", {"when": object()}, "only what JSON knows"),
        ("metadata", {"rate": float("nan")}, "only what JSON knows"),
        ("metadata", {"note": "x" * 10_001}, "Metadata is at most 10,000 bytes"),
        ("metadata", {"note": "a\x00b"}, "NUL"),
        ("metadata", {"note": "\ud800"}, "half a surrogate pair"),
        ("metadata", {"note": json.loads("[" * 900 + "]" * 900)}, "nested too deeply"),
    ],
)
@on_one_engine
def test_what_cannot_be_said_about_a_text_is_refused(ann: AgentMemory, field: str, value: Any, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        ann.details.store("text", **{field: value})


def test_what_reaches_prompts_holds_no_credential_and_the_text_is_kept_as_it_is(
    ann: AgentMemory, tenant: TenantMemory
) -> None:
    text = f"export GITHUB_TOKEN={TOKEN}\nerror: {TOKEN} was refused\n"
    detail = ann.details.store(
        text, description=f"login with {TOKEN}", metadata={"source": f"curl -H 'Authorization: Bearer {TOKEN}'"}
    )

    assert TOKEN not in repr(detail)
    assert TOKEN not in repr(tenant.audit.list())
    assert TOKEN.lower() not in detail.key
    assert "secret removed" in detail.description
    assert ann.details.read(detail.key).content == text
    assert ann.details.search(TOKEN) == []


def test_storing_hiding_and_deleting_are_in_the_audit_log_without_a_word_of_it(
    ann: AgentMemory, tenant: TenantMemory
) -> None:
    key = ann.details.store("private words", description="salary of bob").key
    ann.details.hide(key)
    ann.details.hide(key, is_hidden=False)
    ann.details.delete(key)

    events = tenant.audit.list()
    assert [each.action for each in events] == ["detail.delete", "detail.show", "detail.hide", "detail.add"]
    assert all(each.agent_id == "ann" and key.rpartition("-")[2] in each.message for each in events)
    assert not any(word in repr(events) for word in ("salary", "bob", "private"))


# --- finding


def test_a_search_ranks_by_words_and_time_and_takes_signs_as_they_are(ann: AgentMemory, clock: Clock) -> None:
    def store(description: str, text: str, **more: Any) -> str:
        clock.forward(minutes=1)
        return ann.details.store(text, description=description, **more).key

    npm = store("npm install", "added 3 packages", session_id="s-1")
    build = store("build of the site", "error: Straße fehlt", metadata={"source": "npm run build"})
    full = store("disk", "100%_full\n")

    def found(query: str = "", **more: Any) -> list[str]:
        return [each.key for each in ann.details.search(query, **more)]

    assert found() == [full, build, npm]
    assert found("npm") == [build, npm]
    assert found("npm INSTALL") == [npm, build]
    assert found("strasse") == [build]
    assert found("100%_full") == found("%") == found("0%_f") == [full]
    assert found("1_0") == found("nothing here") == []
    assert found("npm", session_id="s-1") == found(session_id="s-1") == [npm]
    assert found(limit=1) == [full]
    ann.details.hide(build)
    assert found("npm") == [npm]


def test_a_listing_goes_on(ann: AgentMemory, clock: Clock) -> None:
    keys: list[str] = []
    for number in range(5):
        clock.forward(seconds=1)
        keys.insert(0, ann.details.store(f"text {number}").key)

    first = [each.key for each in ann.details.list(limit=2)]
    rest = [each.key for each in ann.details.list(before=first[-1])]

    assert first + rest == keys

    last = ann.details.get(keys[1])
    ann.details.delete(last.key)
    assert [each.key for each in ann.details.list(before=(last.created_at, last.key))] == rest
    with pytest.raises(NotFound):
        ann.details.list(before=last.key)


def test_a_search_goes_on(ann: AgentMemory, clock: Clock) -> None:
    keys: list[str] = []
    for number in range(5):
        clock.forward(seconds=1)
        keys.insert(0, ann.details.store(f"text {number}").key)

    assert [each.key for each in ann.details.search("text", offset=3, limit=5)] == keys[3:]
    for query, offset in (("text", -1), ("text", 10**10), ("", 1)):
        with pytest.raises(Invalid, match="offset"):
            ann.details.search(query, offset=offset)


def test_a_hidden_detail_is_kept_but_neither_found_nor_read(ann: AgentMemory) -> None:
    key = ann.details.store("text", description="plan").key
    assert ann.details.hide(key).is_active is False

    with pytest.raises(NotFound, match=r"There is no such detail\."):
        ann.details.read(key)
    assert ann.details.search("plan") == ann.details.list() == []
    assert [each.key for each in ann.details.list(is_active=False)] == [key]

    ann.details.hide(key, is_hidden=False)
    assert ann.details.read(key).content == "text"


def test_others_find_and_read_nothing(ann: AgentMemory, bob: AgentMemory, wellkept: Wellkept, key: str) -> None:
    for other in (bob, wellkept.agent("ann", "somebody-else")):
        assert other.details.search("disk") == other.details.list() == []
        answers = set()
        for attempt in (other.details.read, other.details.get, other.details.delete, other.details.hide):
            for each in (key, "no-such-key", "../../etc/passwd", "", "x" * 10_000):
                with pytest.raises(NotFound) as refusal:
                    attempt(each)
                answers.add(str(refusal.value))
        assert answers == {"There is no such detail."}
    assert ann.details.read(key).total == len(LOG)


def test_deleting_takes_the_text_along_unless_somebody_else_has_it(
    ann: AgentMemory, bob: AgentMemory, place: Place
) -> None:
    text = "deleted for good " * 1000
    mine, his = (each.details.store(text).key for each in (ann, bob))

    ann.details.delete(mine)
    assert bob.details.read(his, limit=100).content == text[:100]
    assert count_texts(place, ann) == 1
    bob.details.delete(his)
    assert count_texts(place, ann) == 0
    with pytest.raises(NotFound):
        bob.details.read(his)


def count_texts(place: Place, ann: AgentMemory) -> int:
    return int(place.sql(f"SELECT count(*) FROM detail_contents WHERE tenant_id = '{ann.owner.tenant}'")[0][0])


def test_maintenance_sweeps_what_a_deleted_agent_leaves(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock) as wellkept:
        gone, stays = wellkept.agent("gone"), wellkept.agent("stays")
        gone.details.store("of the one that goes")
        key = stays.details.store("of the one that stays").key
        wellkept.tenant().agents.delete("gone")

        assert wellkept.maintain().swept == 0  # it might be on its way into a new detail
        clock.forward(hours=2)
        assert wellkept.maintain().swept == 1
        assert wellkept.maintain().swept == 0
        (event,) = (each for each in wellkept.tenant().audit.list() if "no detail has" in each.message)
        assert event.message == "Maintenance archived 0 episodes and removed 1 text no detail has."
        assert stays.details.read(key).content == "of the one that stays"


def test_a_missing_text_is_said_and_concerns_its_key_only(ann: AgentMemory, place: Place) -> None:
    lost, kept = ann.details.store("lost").key, ann.details.store("kept").key
    content_hash = ann.details.get(lost).content_hash
    place.sql(f"DELETE FROM detail_contents WHERE content_hash = '{content_hash}'")

    with pytest.raises(StoreError, match="The text behind this key is missing from the store"):
        ann.details.read(lost)
    assert ann.details.read(kept).content == "kept"


# --- reading parts


@pytest.mark.proves("D3")
def test_pages_together_are_the_text_and_each_says_how_to_go_on(ann: AgentMemory, key: str) -> None:
    offset: int | None = 0
    read = ""
    while offset is not None:
        page = ann.details.read(key, offset=offset, limit=150_000)
        assert (page.offset, page.total, page.total_lines) == (len(read), len(LOG), 20_000)
        assert page.first_line == LOG.count("\n", 0, offset) + 1
        read, offset = read + page.content, page.next_offset
        if offset is not None:
            assert f"go on with offset={offset}" in page.remaining
    assert read == LOG
    assert ann.details.read(key).content == LOG[:4000]


@pytest.mark.proves("D3")
@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 3), (120, 180), (7000, 7400), (19_999, 20_000)])
def test_lines_by_their_numbers(ann: AgentMemory, key: str, first: int, last: int) -> None:
    page = ann.details.read(key, lines=f"{first}-{last}")

    assert page.content == "".join(LINES[first - 1 : last])
    assert (page.first_line, page.last_line) == (first, last)
    assert page.offset == len("".join(LINES[: first - 1]))
    assert page.next_offset == (page.offset + len(page.content) if last < 20_000 else None)


@pytest.mark.proves("D3")
def test_head_tail_and_open_ranges(ann: AgentMemory, key: str) -> None:
    assert ann.details.read(key, lines="120").content == LINES[119]
    assert ann.details.read(key, lines="19990-").content == "".join(LINES[19_989:])
    assert ann.details.read(key, lines="19990-99999").content == "".join(LINES[19_989:])
    assert ann.details.read(key, head=3).content == "".join(LINES[:3])
    tail = ann.details.read(key, tail=3)
    assert (tail.content, tail.first_line, tail.next_offset) == ("".join(LINES[-3:]), 19_998, None)
    assert f"{tail.offset:,} characters come before it" in tail.remaining
    assert ann.details.read(key, tail=10**9, limit=1_000_000).content == LOG


def test_lines_that_do_not_fit_end_with_a_whole_line_and_say_how_to_go_on(ann: AgentMemory, key: str) -> None:
    page = ann.details.read(key, lines="100-200", limit=100)

    assert page.content.endswith("\n")
    assert "".join(LINES[99:]).startswith(page.content)
    assert page.last_line is not None
    assert f'lines="{page.last_line + 1}-200"' in page.remaining
    tail = ann.details.read(key, tail=200, limit=100)
    assert LOG.endswith(tail.content)
    assert tail.content.splitlines()[0] in LOG.splitlines()
    assert len(tail.content) <= 100


@pytest.mark.proves("D3")
def test_grep_shows_lines_with_numbers_and_what_stands_around_them(ann: AgentMemory, key: str) -> None:
    page = ann.details.read(key, grep="error DISK", context=1)

    assert page.matches == 6
    assert page.content.splitlines()[:4] == [
        f"2999-{LINES[2998][:-1]}",
        f"3000:{LINES[2999][:-1]}",
        f"3001-{LINES[3000][:-1]}",
        "--",
    ]
    assert page.remaining == "6 matches; there are no more."
    assert ann.details.read(key, grep="/^(77|78) .*naïve/", context=0).content == f"77:{LINES[76]}78:{LINES[77]}"


def test_grep_goes_on_where_it_stopped(ann: AgentMemory, key: str) -> None:
    found, offset = "", 0
    for _ in range(10):
        page = ann.details.read(key, grep="error", context=0, limit=60, offset=offset)
        assert len(page.content) <= 60
        found += page.content
        if page.next_offset is None:
            break
        assert f"offset={page.next_offset}" in page.remaining
        offset = page.next_offset
    assert re.findall(r"(?m)^(\d+):", found) == ["3000", "6000", "9000", "12000", "15000", "18000"]


def test_grep_takes_signs_as_they_are_unless_between_slashes(ann: AgentMemory) -> None:
    key = ann.details.store("[ERROR] a.b\nE axb\n/usr/lib/x\n50% (done)\n").key

    def found(pattern: str) -> list[str]:
        return re.findall(r"(?m)^(\d+):", ann.details.read(key, grep=pattern, context=0).content)

    assert found("[error]") == found("a.b") == ["1"]
    assert found("/a.b/") == ["1", "2"]
    assert found("50% (") == ["4"]
    assert found("/usr/lib/") == ["3"]
    assert found("/") == ["3"]
    assert "between slashes" in ann.details.read(key, grep="error|done").remaining
    assert found("/error|done/") == ["1", "4"]
    with pytest.raises(Invalid, match="RE2 cannot compile this regular expression"):
        found("/(unclosed/")
    with pytest.raises(Invalid, match="RE2 cannot compile this regular expression"):
        found(r"/(a)\1/")


def test_no_pattern_keeps_the_server_busy(ann: AgentMemory) -> None:
    """With a backtracking engine each of these would take longer than anybody waits."""
    text = json.dumps({"items": [{"name": "a" * 60 + "!"}]}) + "\n"
    key = ann.details.store(text).key

    assert ann.details.read(key, grep="/(a+)+$/").matches == 0
    assert ann.details.read(key, json_path="$.items[?match(@.name, '(a+)+')]").content == "[]"
    assert ann.details.read(key, json_path="$.items[?search(@.name, '(a+)+$')]").content == "[]"


def test_grep_in_one_endless_line_shows_the_surroundings(ann: AgentMemory) -> None:
    line = "x" * 300_000 + "NEEDLE" + "y" * 300_000 + "NEEDLE" + "z" * 100
    key = ann.details.store(line).key

    page = ann.details.read(key, grep="needle")

    assert page.matches == 2
    assert len(page.content) < 1500
    for at in (300_000, 600_006):
        shown = re.search(r"offset=(\d+)", page.content.splitlines()[0 if at == 300_000 else 1])
        assert shown is not None
        assert "NEEDLE" in ann.details.read(key, offset=int(shown[1]), limit=400).content


def test_a_match_across_the_border_of_two_chunks_is_found(ann: AgentMemory) -> None:
    for before in ("x" * 99 + "\n", "x" * 100):
        text = (before * (CHUNK_CHARS // 100 + 1))[: CHUNK_CHARS - 3] + "NEEDLE" + "y" * 50
        assert ann.details.read(ann.details.store(text).key, grep="NEEDLE").matches == 1


@pytest.mark.proves("D3")
def test_json_is_asked_by_path(ann: AgentMemory) -> None:
    key = ann.details.store(json.dumps({"items": [{"name": f"n{n}", "price": n} for n in range(100)]})).key

    def values(path: str) -> Any:
        return json.loads(ann.details.read(key, json_path=path).content)

    assert values("$.items[3].name") == ["n3"]
    assert values("$.items[?@.price > 97].name") == ["n98", "n99"]
    assert values("$..price") == list(range(100))
    assert values("$.nothing") == []
    assert values("items[3].name") == values(".items[3].name") == ["n3"]  # a model takes the beginning for granted
    page = ann.details.read(key, json_path="$.items[*]", limit=50)
    assert (page.matches, page.next_offset) == (100, 50)
    rest = ann.details.read(key, json_path="$.items[*]", offset=50)
    assert len(json.loads(page.content + rest.content)) == 100
    for wrong in ("items[", "$.items[?@.name =~ /a/]", "", "$.items[", "$$items"):
        with pytest.raises(Invalid, match=r"^'.*' is not a JSON path( \(see character \d+\))?; write one like \$\."):
            values(wrong)


@on_one_engine
def test_json_path_makes_only_what_is_read_of_a_long_answer(ann: AgentMemory) -> None:
    rows = [["é\n" * 10, {"a": [], "b": {}}] * 20] * 500
    key = ann.details.store(json.dumps(rows)).key
    whole = json.dumps(rows * 9, ensure_ascii=False, indent=2)

    page = ann.details.read(key, json_path="$[*,*,*,*,*,*,*,*,*]", limit=100)

    assert page.content == whole[:100]
    assert page.total < 1_100_000 < len(whole)
    assert re.fullmatch(
        r"4,500 values\. At least 1,000,\d+ characters of this answer follow; go on with the same path, offset=100\.",
        page.remaining,
    )
    start = len(whole) - 50
    last = ann.details.read(key, json_path="$[*,*,*,*,*,*,*,*,*]", offset=start)
    assert (last.content, last.total, last.next_offset) == (whole[start:], len(whole), None)
    assert last.remaining == "4,500 values."


def test_json_path_stops_at_ten_thousand_values(ann: AgentMemory) -> None:
    key = ann.details.store(json.dumps(list(range(10_001)))).key

    page = ann.details.read(key, json_path="$[*]", limit=1_000_000)

    assert json.loads(page.content) == list(range(10_000))
    assert (page.next_offset, page.remaining) == (None, "The first 10,000 values.")


def test_lines_of_json_are_a_list_and_other_texts_are_refused(ann: AgentMemory) -> None:
    key = ann.details.store('{"level": "info"}\n\n{"level": "error"}\n').key
    assert json.loads(ann.details.read(key, json_path="$[*].level").content) == ["info", "error"]

    with pytest.raises(Invalid, match=r"not JSON \(line 1, column 1\); read it with lines="):
        ann.details.read(ann.details.store("plain text\n").key, json_path="$")
    with pytest.raises(Invalid, match="nested too deeply"):
        ann.details.read(ann.details.store("[" * 100_000).key, json_path="$")
    long = ann.details.store("\n" * 20_000_001).key
    with pytest.raises(
        Invalid, match=r"20,000,001 characters; up to 20,000,000 can be asked by JSON path\. Read it with grep=, lines="
    ):
        ann.details.read(long, json_path="$[0]")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"lines": "1-2", "tail": 3}, "one way at a time: lines or tail"),
        ({"grep": "x", "json_path": "$"}, "one way at a time: grep or json_path"),
        ({"head": 3, "offset": 7}, "one way at a time: offset or head"),
        ({"lines": "0-3"}, "the first line is 1"),
        ({"lines": "7-3"}, "Name lines as"),
        ({"lines": "a"}, "Name lines as"),
        ({"offset": -1}, "offset is a whole number"),
        ({"limit": 0}, "limit is a whole number from 1 to 1,000,000"),
        ({"limit": 1_000_001}, "limit is a whole number"),
        ({"head": 0}, "head is a whole number"),
        ({"tail": True}, "`tail` must be a whole number, not bool"),
        ({"grep": ""}, "The search pattern must have 1 to"),
        ({"grep": "x", "context": 51}, "context is a whole number"),
    ],
)
@on_one_engine
def test_a_part_nobody_can_mean_is_refused(ann: AgentMemory, key: str, part: dict[str, Any], said: str) -> None:
    with pytest.raises(Invalid, match=said):
        ann.details.read(key, **part)


def test_behind_the_end_there_is_nothing_and_that_is_said(ann: AgentMemory, key: str) -> None:
    for part in ({"offset": len(LOG)}, {"offset": 10**12}, {"lines": "20001-20002"}):
        page = ann.details.read(key, **part)
        assert (page.content, page.next_offset, page.total) == ("", None, len(LOG))
        assert "There is no text at this offset" in page.remaining
    assert ann.details.read(ann.details.store("short").key).remaining == "This is all of it."


# --- the same against plain Python, with chunks so small that everything lies on a border


class Small(Content):
    """A text in chunks of seven characters."""

    chunk_chars = 7

    def __init__(self, text: str) -> None:
        self.text = text
        self.chars = len(text)
        self.lines = text.count("\n") + (text != "" and not text.endswith("\n"))
        self.newlines: Sequence[int] = [text.count("\n", 0, at) for at in range(0, len(text), 7)]

    def chunk(self, position: int) -> str:
        return self.text[position * 7 : position * 7 + 7]


TEXTS = st.text(alphabet="ab\nB", min_size=1, max_size=60)


def lines_of(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def part(**said: Any) -> PartRequest:
    return PartRequest(**{"limit": 10_000, **said})


@given(TEXTS, st.integers(1, 40), st.integers(0, 40))
def test_any_lines_of_any_text(text: str, first: int, more: int) -> None:
    small = parts.StoredText(Small(text))

    got = parts.read_lines("k", small, part(lines=(first, first + more)))
    assert got.content == "".join(lines_of(text)[first - 1 : first + more])
    if got.content:
        assert (got.first_line, got.last_line) == (first, min(first + more, len(lines_of(text))))
    assert parts.read_lines("k", small, part(tail=first)).content == "".join(lines_of(text)[-first:])
    assert parts.read_lines("k", small, part(head=first)).content == "".join(lines_of(text)[:first])


@given(TEXTS, st.integers(0, 70), st.integers(1, 70))
def test_any_page_of_any_text(text: str, offset: int, limit: int) -> None:
    page = parts.read_page("k", parts.StoredText(Small(text)), part(offset=offset, limit=limit))

    assert page.content == text[offset : offset + limit]
    assert page.next_offset == (offset + limit if offset + limit < len(text) else None)


@given(TEXTS, st.sampled_from(["a", "ab", "ba", "/a|b/", "/^a/", "/b$/", "/b*/"]), st.integers(0, 2))
def test_grep_finds_the_lines_that_match_in_any_text(text: str, pattern: str, context: int) -> None:
    expression = re.compile(pattern[1:-1] if pattern[0] == "/" else re.escape(pattern), re.IGNORECASE)
    every = [line.removesuffix("\n") for line in lines_of(text)]
    wanted = [number for number, line in enumerate(every, 1) if expression.search(line)]
    near = {each for number in wanted for each in range(number - context, number + context + 1)}

    page = read_matches("k", parts.StoredText(Small(text)), part(grep=pattern, context=context))

    shown = [line for line in page.content.splitlines() if line != "--"]
    assert [int(line.partition(":")[0]) for line in shown if re.match(r"\d+:", line)] == wanted
    assert [int(re.match(r"\d+", line)[0]) for line in shown] == sorted(near & set(range(1, len(every) + 1)))  # type: ignore[index]
    assert all(re.split("[:-]", line, maxsplit=1)[1] == every[int(re.split("[:-]", line)[0]) - 1] for line in shown)
    assert page.matches == len(wanted)


class Noticed(Deadline):
    """Tells when the work for it is under way."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.is_begun = threading.Event()

    def check(self) -> None:
        self.is_begun.set()
        super().check()


def test_a_json_path_that_takes_long_holds_up_no_other_tenant(tmp_path: Path) -> None:
    same = ",".join(["0.5"] * 30_000)
    endless = "$" + "[0,0,0,0,0,0,0,0]" * 6 + "[?@[0]!=@[1]]"
    document = "[" * 6 + f"[[{same}],[{same}]]" + "]" * 6
    with Wellkept(f"sqlite:///{tmp_path / 'memory.db'}") as wellkept:
        mallory, ann = wellkept.agent("m", tenant="hostile"), wellkept.agent("ann", tenant="quiet")
        slow, quick = mallory.details.store(f"[{document}]").key, ann.details.store(f"[{document}]").key
        deadlines = [Noticed(600), Noticed(600)]

        def read(deadline: Deadline) -> None:
            DEADLINE.set(deadline)
            with pytest.raises(Cancelled):
                mallory.details.read(slow, json_path=endless)

        threads = [threading.Thread(target=read, args=(each,)) for each in deadlines]
        for thread in threads:
            thread.start()
        for each in deadlines:
            assert each.is_begun.wait(60)
        token = DEADLINE.set(Deadline(30))
        try:
            assert ann.details.read(quick, json_path="$[0][0][0][0][0][0][0][0][1]").content == "[\n  0.5\n]"
        finally:
            DEADLINE.reset(token)
            for each in deadlines:
                each.cancel()
            for thread in threads:
                thread.join()
