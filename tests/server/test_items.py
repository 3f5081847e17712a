"""Items over REST and in the console."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from tests.server.conftest import MovableClock
from tests.server.console import Browser, read
from wellkept.api.wellkept import AgentMemory, Wellkept
from wellkept.model import Item

FIELDS = {*Item.__dataclass_fields__}


def put(client: httpx2.Client, agent: str, key: str, value: Any, **more: Any) -> Any:
    answer = client.put(f"{agent}/items", json={"namespace": ["users", "7"], "key": key, "value": value, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_item_is_put_read_changed_and_deleted(client: httpx2.Client, ann: str) -> None:
    place = {"namespace": "users/7", "key": "profile"}
    assert client.get(f"{ann}/items", params=place).status_code == 404

    first = put(client, ann, "profile", {"name": "Lena"}, index=["name"], ttl=None)
    assert set(first) == FIELDS
    assert (first["namespace"], first["key"], first["value"]) == (["users", "7"], "profile", {"name": "Lena"})
    assert client.get(f"{ann}/items", params=place).json() == first
    assert put(client, ann, "profile", {"name": "Lena K."})["version"] == 2
    history = client.get(f"{ann}/memories/{first['id']}/history").json()["items"]
    assert [each["version"] for each in history] == [1]

    assert client.delete(f"{ann}/items", params={**place, "version": 1}).status_code == 409
    assert client.delete(f"{ann}/items", params=place).status_code == 204
    assert client.delete(f"{ann}/items", params=place).status_code == 404


def test_items_are_searched_and_their_namespaces_listed(client: httpx2.Client, ann: str) -> None:
    for number, name in enumerate(["Lena likes pancakes", "Otto likes football", "Mia likes pancakes"]):
        body = {"namespace": ["users", str(number)], "key": "a/b", "value": {"text": name, "n": number}}
        assert client.put(f"{ann}/items", json=body).status_code == 200

    def search(**body: Any) -> Any:
        answer = client.post(f"{ann}/items/search", json={"namespace": ["users"], **body})
        assert answer.status_code == 200, answer.text
        return answer.json()

    found = search(query="who plays football?", limit=1)
    assert [each["value"]["n"] for each in found["items"]] == [1]
    assert found["items"][0]["score"] > 0
    assert [
        each["value"]["n"] for each in search(where="value.n >= 1 and value.text != 'Otto likes football'")["items"]
    ] == [2]
    assert [each["value"]["n"] for each in search(where={">": ["value.n", 0]})["items"]] == [2, 1]
    pages = [search(limit=2), search(limit=2, offset=2)]
    assert [each["next_offset"] for each in pages] == [2, None]
    assert [each["value"]["n"] for page in pages for each in page["items"]] == [2, 1, 0]

    def namespaces(**query: Any) -> Any:
        return client.get(f"{ann}/items/namespaces", params=query).json()

    assert namespaces() == {"items": [["users", "0"], ["users", "1"], ["users", "2"]], "next_offset": None}
    assert namespaces(prefix="users/*", suffix="1")["items"] == [["users", "1"]]
    assert namespaces(max_depth=1)["items"] == [["users"]]
    assert namespaces(limit=2)["next_offset"] == 2
    assert client.get(f"{ann}/items", params={"namespace": "users/1", "key": "a/b"}).json()["value"]["n"] == 1


def test_a_page_of_long_items_says_where_it_stopped(client: httpx2.Client, ann: str) -> None:
    for number in range(70):
        put(client, ann, str(number), {"text": f"{number} " + "x" * 65_000}, index=False)
    found: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = client.post(f"{ann}/items/search", json={"limit": 100, "offset": offset}).json()
        assert page["items"]
        found += [each["key"] for each in page["items"]]
        offset = page["next_offset"]
    assert sorted(map(int, found)) == list(range(70))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"namespace": [], "key": "k", "value": 1}, 400),
        ({"namespace": ["a"], "key": "", "value": 1}, 400),
        ({"namespace": ["a"], "key": "k", "value": None}, 400),
        ({"namespace": ["a"], "key": "k"}, 422),
        ({"namespace": "a", "key": "k", "value": 1}, 422),
        ({"namespace": ["a"], "key": "k", "value": 1, "ttl": 0}, 400),
        ({"namespace": ["a"], "key": "k", "value": 1, "index": True}, 400),
        ({"namespace": ["a"], "key": "k", "value": "x" * 70_000}, 400),
        ({"namespace": ["a"], "key": "k", "value": 1, "version": 3}, 409),
        ({"namespace": ["a"], "key": "k", "value": 1, "colour": "red"}, 422),
    ],
    ids=str,
)
def test_what_is_no_item_is_refused(client: httpx2.Client, ann: str, body: dict[str, Any], status: int) -> None:
    answer = client.put(f"{ann}/items", json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"].strip()


def test_a_sliding_item_lives_on_when_it_is_read(client: httpx2.Client, ann: str, clock: MovableClock) -> None:
    for key in ("read", "peeked"):
        put(client, ann, key, key, ttl=600, refresh=True)
    clock.ahead = timedelta(seconds=400)
    for key, refresh in (("read", True), ("peeked", False)):
        place = f"namespace=users/7&key={key}&refresh={str(refresh).lower()}"
        assert client.get(f"{ann}/items?{place}").status_code == 200
    clock.ahead = timedelta(seconds=800)
    codes = [
        client.get(f"{ann}/items", params={"namespace": "users/7", "key": key}).status_code
        for key in ("read", "peeked")
    ]
    assert codes == [200, 404]


def test_the_console_shows_an_item_with_its_key_and_value(wellkept: Wellkept, browser: Browser) -> None:
    ann: AgentMemory = wellkept.agent(f"ann-{uuid.uuid4().hex[:8]}")
    ann.items.put(("users", "7"), "profile", {"name": "Lena"})
    item = ann.items.put(("users", "7"), "profile", {"name": "<b>Lena K.</b>"})
    assert item is not None
    home = f"/admin/agents/{ann.owner.agent}"

    listed = read(browser.get(f"{home}?kind=item"))
    assert "users/7 profile" in listed
    assert "<b>Lena K.</b>" in listed
    assert "Lena" not in read(browser.get(home))
    shown = read(browser.get(f"{home}/memories/{item.id}"))
    for part in ("Namespace users/7", "Key profile", '"name": "<b>Lena K.</b>"', "version 1, until"):
        assert part in shown
    page = browser.get(f"{home}/memories/{item.id}").text
    assert "<ins>&lt;b&gt;</ins>Lena<ins> K.&lt;/b&gt;</ins>" in page, "what changed since the former value"
    assert "<b>Lena" not in page
    assert "profile" in read(browser.get(f"{home}/memories/{item.id}/delete"))
