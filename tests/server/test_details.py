"""`/api/agents/{agent}/details`."""

from __future__ import annotations

import json
import re

import apsw
import httpx2
import pytest

from wellkept.api.wellkept import Wellkept

LOG = "".join(f"{number} {'error' if number % 100 == 0 else 'ok'}\n" for number in range(1, 1001))


def stored(client: httpx2.Client, ann: str, **body: object) -> str:
    answer = client.post(f"{ann}/details", json={"content": LOG, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["memory_key"])


@pytest.mark.proves("D3", "D4")
def test_a_text_is_kept_and_read_in_parts(client: httpx2.Client, ann: str) -> None:
    body = {"content": LOG, "description": "build log", "type": "command_output", "metadata": {"source": "make"}}
    answer = client.post(f"{ann}/details", json=body | {"session_id": "s-1"})

    told = answer.json()
    key = told["memory_key"]
    assert answer.status_code == 201
    assert told["reference"] == f"[MemoryRef: {key} - build log]"
    assert (told["type"], told["session_id"], told["metadata"]) == ("command_output", "s-1", {"source": "make"})
    assert (told["chars"], told["lines"]) == (len(LOG), 1000)

    def part(query: str) -> dict[str, object]:
        answer = client.get(f"{ann}/details/{key}?{query}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    page = part("offset=10&limit=20")
    assert (page["content"], page["offset"], page["total"], page["next_offset"]) == (LOG[10:30], 10, len(LOG), 30)
    assert "offset=30" in str(page["remaining"])
    assert part("")["content"] == LOG[:4000]
    assert part("lines=120-122")["content"] == "120 ok\n121 ok\n122 ok\n"
    assert part("head=1")["content"] == "1 ok\n"
    assert part("tail=1")["content"] == "1000 error\n"
    assert (part("grep=ERROR&context=0")["matches"], part("tail=1")["next_offset"]) == (10, None)
    assert part("grep=/^7[78] /&context=0")["content"] == "77:77 ok\n78:78 ok\n"


def test_json_is_asked_by_path(client: httpx2.Client, ann: str) -> None:
    key = stored(client, ann, content=json.dumps({"items": [{"n": 1}, {"n": 2}]}))

    answer = client.get(f"{ann}/details/{key}", params={"json_path": "$.items[*].n"})
    assert json.loads(answer.json()["content"]) == [1, 2]


def test_details_are_listed_searched_and_paged(client: httpx2.Client, ann: str) -> None:
    keys = [stored(client, ann, description=f"log {word}", session_id=word) for word in ("one", "two", "three")]

    page = client.get(f"{ann}/details?limit=2").json()
    rest = client.get(f"{ann}/details", params={"limit": 2, "cursor": page["next_cursor"]}).json()
    assert [each["memory_key"] for each in (*page["items"], *rest["items"])] == keys[::-1]
    assert rest["next_cursor"] is None
    assert [each["memory_key"] for each in client.get(f"{ann}/details?q=two").json()["items"]] == [keys[1]]
    assert [each["memory_key"] for each in client.get(f"{ann}/details?session_id=one").json()["items"]] == [keys[0]]
    assert client.get(f"{ann}/details?cursor=wrong").status_code == 400


def test_a_hidden_detail_is_not_found_until_it_is_shown_again(client: httpx2.Client, ann: str) -> None:
    key = stored(client, ann)

    assert client.patch(f"{ann}/details/{key}", json={"is_active": False}).json()["is_active"] is False
    assert client.get(f"{ann}/details/{key}").status_code == 404
    assert client.get(f"{ann}/details").json()["items"] == []
    assert client.patch(f"{ann}/details/{key}", json={"is_active": True}).status_code == 200
    assert client.patch(f"{ann}/details/{key}", json={}).json()["is_active"] is True
    assert client.get(f"{ann}/details/{key}").status_code == 200


def test_deleted_foreign_and_missing_are_answered_alike(client: httpx2.Client, ann: str) -> None:
    key = stored(client, ann)
    other = stored(client, f"{ann}-2")
    assert client.delete(f"{ann}/details/{key}").status_code == 204

    answers = [client.get(f"{ann}/details/{each}") for each in (key, other, "no-such-key", "..%2f..%2fetc")]
    assert {(each.status_code, each.json().get("code")) for each in answers} == {(404, "not_found")}
    assert len({each.json()["error"] for each in answers[:3]}) == 1
    assert client.get(f"{ann}-2/details/{other}").status_code == 200


def test_refusals_say_what_to_do(client: httpx2.Client, ann: str) -> None:
    key = stored(client, ann)

    for query, code, said in (
        ("lines=1-2&tail=3", 400, "one way at a time"),
        ("lines=x", 400, "Name lines as"),
        ("limit=0", 400, "limit is a whole number"),
        ("grep=/(/", 400, "regular expression"),
        ("json_path=$", 400, "not JSON"),
        ("lime=1", 422, "There is no parameter 'lime'"),
    ):
        answer = client.get(f"{ann}/details/{key}?{query}")
        assert (answer.status_code, answer.json()["ok"]) == (code, False)
        assert re.search(re.escape(said), answer.json()["error"]), answer.text
    assert client.post(f"{ann}/details", json={"content": ""}).status_code == 400
    assert client.post(f"{ann}/details", json={}).status_code == 422


def test_a_damaged_text_is_a_503_of_its_key_only(client: httpx2.Client, ann: str, wellkept: Wellkept) -> None:
    key, sound = stored(client, ann, content="spoilt text"), stored(client, ann, content="sound")
    content_hash = wellkept.agent(ann.rpartition("/")[2]).details.get(key).content_hash
    connection = apsw.Connection(wellkept.settings.url.removeprefix("sqlite:///"))
    connection.set_busy_timeout(100_000)
    connection.execute("UPDATE detail_chunks SET frame = x'00' WHERE content_hash = ?", (content_hash,))
    connection.close()

    answer = client.get(f"{ann}/details/{key}")
    assert (answer.status_code, answer.json()["code"]) == (503, "store")
    assert "is damaged in the store" in answer.json()["error"]
    assert client.get(f"{ann}/details/{sound}").json()["content"] == "sound"
