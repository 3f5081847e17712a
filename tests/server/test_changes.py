"""Changes over REST, as an operator uses them."""

from __future__ import annotations

import httpx2
import pytest


@pytest.mark.proves("X4")
def test_proposed_applied_undone_and_rejected(client: httpx2.Client, ann: str) -> None:
    for _ in range(3):
        ship = {"text": "Atlas ships from Hamburg", "kind": "episode"}
        assert client.post(f"{ann}/memories", json=ship).status_code == 201

    [change] = client.post(f"{ann}/changes/consolidate").json()["items"]
    assert (change["state"], change["text"]) == ("proposed", "Atlas ships from Hamburg")
    applied = client.post(f"{ann}/changes/{change['id']}/apply").json()

    assert (applied["state"], applied["memories"][0]["id"]) == ("applied", "m-4")
    assert [each["id"] for each in client.get(f"{ann}/memories").json()["items"]] == ["m-4"]
    again = client.post(f"{ann}/changes/{change['id']}/apply")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    shown = client.get(f"{ann}/changes/{change['id']}").json()
    assert {each["text"] for each in shown["memories"]} == {"Atlas ships from Hamburg"}
    assert client.post(f"{ann}/changes/{change['id']}/undo").json()["state"] == "undone"
    assert [each["id"] for each in client.get(f"{ann}/memories").json()["items"]] == ["m-3", "m-2", "m-1"]
    assert client.post(f"{ann}/changes/c-9/reject").status_code == 404


def test_they_are_listed_in_pages(client: httpx2.Client, ann: str) -> None:
    for city in ("Hamburg", "Rotterdam", "Antwerp"):
        for _ in range(3):
            client.post(f"{ann}/memories", json={"text": f"Atlas ships from {city}", "kind": "episode"})
    made = [each["id"] for each in client.post(f"{ann}/changes/consolidate").json()["items"]]

    first = client.get(f"{ann}/changes", params={"limit": 2}).json()
    rest = client.get(f"{ann}/changes", params={"limit": 2, "cursor": first["next_cursor"]}).json()

    assert [each["id"] for each in (*first["items"], *rest["items"])] == sorted(made, reverse=True)
    assert rest["next_cursor"] is None
    assert client.get(f"{ann}/changes", params={"state": "nonsense"}).status_code == 400
