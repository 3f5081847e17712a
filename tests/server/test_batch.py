"""Many memories in one request, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.server.live import client_of, serving
from wellkept.api.wellkept import AgentMemory, Wellkept
from wellkept.errors import StoreBusy, WellkeptError
from wellkept.server.rest.memories import MAX_ITEMS
from wellkept.settings import Settings

SECRET = "The key is AKIAIOSFODNN7EXAMPLQ"
REFUSED: list[tuple[Any, str, str]] = [
    ({"text": " "}, "invalid", "Content cannot be blank"),
    ({"kind": "note"}, "invalid", "The field text is required."),
    ({"text": 7}, "invalid", "text should be a valid string."),
    ({"text": "x", "txt": "y"}, "invalid", "There is no field 'txt'"),
    ({"text": "x", "kind": "poem"}, "invalid", "poem"),
    ("only a text", "invalid", "An item must be a JSON object"),
    ({"text": SECRET}, "secret_rejected", "aws-access-key"),
    ({"text": "x", "supersedes": "m-999"}, "not_found", "There is no such memory"),
]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def wellkept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wellkept]:
    if request.param == "postgres":
        url = str(request.getfixturevalue("postgres_url"))
    else:
        url = f"sqlite:///{tmp_path_factory.mktemp('store') / 'memory.db'}"
    with Wellkept(settings=Settings(url=url)) as opened:
        yield opened


@pytest.fixture
def agent(wellkept: Wellkept, ann: str) -> AgentMemory:
    return wellkept.agent(ann.rpartition("/")[2])


def send(client: httpx2.Client, ann: str, items: list[Any], **fields: Any) -> list[dict[str, Any]]:
    answer = client.post(f"{ann}/memories/batch", json={"items": items, **fields})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def texts(agent: AgentMemory) -> list[str]:
    return [each.text for each in reversed(agent.list(limit=500))]


def actions(wellkept: Wellkept, ann: str) -> list[str]:
    agent = ann.rpartition("/")[2]
    return [each.action for each in wellkept.tenant().audit.list(limit=50) if each.agent_id == agent]


def test_each_item_is_stored_or_refused_in_its_order(client: httpx2.Client, ann: str, agent: AgentMemory) -> None:
    items: list[Any] = [{"text": "Likes tea", "tags": ["drink"]}]
    for number, (wrong, _, _) in enumerate(REFUSED):
        items += [wrong, {"text": f"Entry {number}", "kind": "journal"}]
    results = send(client, ann, items)

    assert [each["ok"] for each in results] == [True, *[False, True] * len(REFUSED)]
    for result, (_, code, says) in zip(results[1::2], REFUSED, strict=True):
        assert result["code"] == code
        assert says in result["error"]
    assert texts(agent) == ["Likes tea", *(f"Entry {number}" for number in range(len(REFUSED)))]
    stored = [agent.get(each["id"]) for each in results[::2]]
    assert [each.text for each in stored] == texts(agent)
    assert stored[0].tags == ("drink",)


def test_valid_items_share_a_transaction(client: httpx2.Client, wellkept: Wellkept, ann: str) -> None:
    send(client, ann, [{"text": "One", "kind": "journal"}, {"txt": "x"}, {"text": "Two", "kind": "journal"}, 3])

    assert actions(wellkept, ann) == ["memory.add"]


def test_a_secret_is_recorded_once(client: httpx2.Client, wellkept: Wellkept, ann: str) -> None:
    send(client, ann, [*({"text": f"Note {number}"} for number in range(9)), {"text": SECRET}])

    assert sorted(actions(wellkept, ann)) == ["memory.add", "memory.refuse"]


def test_known_notes_get_their_id(client: httpx2.Client, ann: str, agent: AgentMemory) -> None:
    known = agent.remember("Likes tea").id
    results = send(client, ann, [{"text": "likes  TEA"}, {"text": "Likes jam"}, {"text": "Likes jam"}])

    assert results[0] == {"ok": True, "id": known}
    assert results[1] == results[2]
    assert texts(agent) == ["Likes tea", "Likes jam"]


@pytest.mark.parametrize(("wrong", "code", "says"), REFUSED, ids=lambda each: str(each)[:20])
def test_atomic_stores_nothing_if_one_is_wrong(
    client: httpx2.Client, ann: str, agent: AgentMemory, wrong: Any, code: str, says: str
) -> None:
    items = [{"text": "One"}, {"text": "Two"}, wrong, {"text": "Three"}]
    answer = client.post(f"{ann}/memories/batch", json={"items": items, "atomic": True})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid" if code == "not_found" else code)
    assert answer.json()["error"].startswith("items[2]: ")
    assert says in answer.json()["error"]
    assert answer.json()["error"].endswith(". Nothing was stored.")
    assert texts(agent) == []


def test_atomic_stores_all(client: httpx2.Client, ann: str, agent: AgentMemory) -> None:
    results = send(client, ann, [{"text": "One"}, {"text": "Two", "kind": "core"}], atomic=True)

    assert [agent.get(each["id"]).text for each in results] == ["One", "Two"]


def test_the_number_of_items_is_limited(client: httpx2.Client, ann: str, agent: AgentMemory) -> None:
    items = [{"text": "x", "kind": "journal"}] * MAX_ITEMS
    refused = client.post(f"{ann}/memories/batch", json={"items": [*items, {"text": "one more"}]})

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")
    assert "1,000" in refused.json()["error"]
    assert texts(agent) == []
    assert send(client, ann, []) == send(client, ann, [], atomic=True) == []
    assert client.post(f"{ann}/memories/batch", json={"items": [], "atomic": "yes"}).status_code == 422
    assert client.post(f"{ann}/memories/batch", json={"atomic": True}).status_code == 422


def test_an_origin_above_the_key_is_refused(wellkept: Wellkept, ann: str, agent: AgentMemory) -> None:
    items = [{"text": "From a page", "origin": "tool"}, {"text": "From the user", "origin": "user"}, {"text": "Plain"}]
    key = wellkept.tenant().keys.create("write", trust="tool").key
    with serving(wellkept, no_auth=False) as address, client_of(address, key) as client:
        atomic = client.post(f"{ann}/memories/batch", json={"items": items, "atomic": True})
        assert (atomic.status_code, atomic.json()["code"]) == (403, "forbidden")
        assert atomic.json()["error"].startswith("items[1]: ")
        assert texts(agent) == []
        results = send(client, ann, items)

    assert [each.get("code") for each in results] == [None, "forbidden", None]
    assert [each.origin.value for each in agent.list()] == ["tool", "tool"]


def test_a_retry_writes_once(client: httpx2.Client, ann: str, agent: AgentMemory) -> None:
    body = {"items": [{"text": "Tea at five", "kind": "journal"}]}
    first, again = (
        client.post(f"{ann}/memories/batch", json=body, headers={"Idempotency-Key": ann[-8:]}) for _ in range(2)
    )

    assert first.content == again.content
    assert again.headers["Idempotency-Replayed"] == "true"
    assert texts(agent) == ["Tea at five"]


@pytest.mark.parametrize("wrong", [{"text": " "}, {"text": SECRET}, {"text": "x", "supersedes": "m-999"}, {}, 7])
def test_the_library_names_the_item(agent: AgentMemory, wrong: Any) -> None:
    with pytest.raises(WellkeptError) as caught:
        agent.remember_many(["One", wrong, "Three"])

    assert caught.value.item == 1
    assert texts(agent) == []


def test_results_tell_what_was_stored_before_the_store_failed(
    client: httpx2.Client, ann: str, agent: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_many = AgentMemory.remember_many

    def fail_at_two(self: AgentMemory, items: Any) -> Any:
        if [each["text"] for each in items] == ["Two"]:
            raise StoreBusy("The database is busy.")
        return remember_many(self, items)

    monkeypatch.setattr(AgentMemory, "remember_many", fail_at_two)
    failed = client.post(f"{ann}/memories/batch", json={"items": [{"text": "Two"}]})
    assert (failed.status_code, failed.json()["code"]) == (503, "store_busy")
    results = send(client, ann, [{"text": "One"}, {"text": SECRET}, {"text": "Two"}])

    assert [each.get("code") for each in results] == [None, "secret_rejected", "store_busy"]
    assert texts(agent) == ["One"]
