"""Consolidation over REST, as an operator uses it."""

from __future__ import annotations

import httpx2
import pytest


@pytest.mark.proves("X4")
def test_proposed_applied_undone_and_rejected(client: httpx2.Client, ann: str) -> None:
    for text in ("The user prefers tabs over spaces", "User prefers tabs over spaces"):
        assert client.post(f"{ann}/memories", json={"text": text}).status_code == 201

    [proposal] = client.post(f"{ann}/consolidate").json()["items"]
    applied = client.post(f"{ann}/proposals/{proposal['id']}/apply").json()

    assert (applied["state"], applied["memory_id"]) == ("applied", "m-3")
    assert [each["id"] for each in client.get(f"{ann}/memories").json()["items"]] == ["m-3"]
    again = client.post(f"{ann}/proposals/{proposal['id']}/apply")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert client.post(f"{ann}/proposals/{proposal['id']}/undo").json()["state"] == "undone"
    assert [each["id"] for each in client.get(f"{ann}/memories").json()["items"]] == ["m-2", "m-1"]
    assert client.post(f"{ann}/proposals/p-9/reject").status_code == 404


def test_they_are_listed_in_pages(client: httpx2.Client, ann: str) -> None:
    for colour in ("tabs", "owls", "ports"):
        for text in (f"The user prefers {colour} over everything", f"User prefers {colour} over everything"):
            client.post(f"{ann}/memories", json={"text": text})
    made = [each["id"] for each in client.post(f"{ann}/consolidate").json()["items"]]

    first = client.get(f"{ann}/proposals", params={"limit": 2}).json()
    rest = client.get(f"{ann}/proposals", params={"limit": 2, "cursor": first["next_cursor"]}).json()

    assert [each["id"] for each in (*first["items"], *rest["items"])] == sorted(made, reverse=True)
    assert rest["next_cursor"] is None
    assert client.get(f"{ann}/proposals", params={"state": "nonsense"}).status_code == 400
