"""A listing has no gaps and no repeats, whatever is written meanwhile."""

from __future__ import annotations

import threading

import httpx2

from tests.server.live import client_of

COUNT = 250


def test_paging_while_new_memories_arrive(client: httpx2.Client, address: str, ann: str) -> None:
    wanted = [client.post(f"{ann}/memories", json={"text": f"old {n}"}).json()["id"] for n in range(COUNT)]
    is_done = threading.Event()
    arrived: list[int] = []

    def keep_writing() -> None:
        with client_of(address) as other:
            while not is_done.is_set():
                arrived.append(other.post(f"{ann}/memories", json={"text": "new", "kind": "journal"}).status_code)

    writer = threading.Thread(target=keep_writing)
    found: list[str] = []
    cursor = ""
    writer.start()
    try:
        while True:
            page = client.get(f"{ann}/memories", params={"limit": 7, "cursor": cursor, "q": "old"}).json()
            found += [item["id"] for item in page["items"]]
            if (cursor := page["next_cursor"]) is None:
                break
    finally:
        is_done.set()
        writer.join()

    assert found == wanted[::-1]
    assert arrived
    assert set(arrived) == {201}


def test_the_last_full_page_says_that_it_is_the_last(client: httpx2.Client, ann: str) -> None:
    for number in range(4):
        client.post(f"{ann}/memories", json={"text": f"fact {number}"})

    first = client.get(f"{ann}/memories", params={"limit": 2}).json()
    second = client.get(f"{ann}/memories", params={"limit": 2, "cursor": first["next_cursor"]}).json()

    assert [item["id"] for item in first["items"] + second["items"]] == ["m-4", "m-3", "m-2", "m-1"]
    assert second["next_cursor"] is None
