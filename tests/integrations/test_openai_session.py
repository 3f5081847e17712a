"""`WellkeptSession` keeps the promises of the Agents SDK's `Session` protocol; it needs no package for that."""

from __future__ import annotations

import asyncio
import base64
import random
from typing import Any

import pytest

from tests.integrations.views import library, opened_view, view
from wellkept import Invalid, Settings, Wellkept
from wellkept.integrations.openai_agents import WellkeptSession

__all__ = ["library", "opened_view", "view"]

NOISE = random.Random(7).randbytes(120_000)
ITEMS: list[Any] = [
    {"role": "user", "content": "What is in this picture?", "zebra": 1, "apple": 2},
    {
        "role": "user",
        "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{base64.b64encode(NOISE).decode()}"}],
    },
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": base64.b64encode(NOISE[:900]).decode()},
    {"type": "function_call", "call_id": "c-1", "name": "look", "arguments": '{"deep": true}', "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c-1", "output": "password: Falcon#77x\x00 \ud800 1e20 — grün 🌱"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A cat."}], "status": None},
    {"deep": {"list": [1, 2.5, 1e20, True, None, [[[]]]]}, "empty": ""},
]


def test_items_of_every_type_come_back_identical_and_in_order(view: Any) -> None:
    async def run() -> list[Any]:
        await WellkeptSession("s-1", view).add_items(ITEMS)
        return await WellkeptSession("s-1", view).get_items()

    found = asyncio.run(run())

    assert found == ITEMS
    assert [list(item) for item in found] == [list(item) for item in ITEMS]


def test_the_newest_item_is_popped_and_limits_take_the_latest(view: Any, library: Any) -> None:
    async def run() -> None:
        session = WellkeptSession("s-2", view)
        await session.add_items(ITEMS)
        assert await session.get_items(2) == ITEMS[-2:]
        assert await session.get_items(limit=0) == []
        assert [await session.pop_item() for _ in ITEMS] == ITEMS[::-1]
        assert await session.pop_item() is None

    asyncio.run(run())

    assert not library.details.list()


def test_clearing_removes_everything_of_this_session_alone(view: Any, library: Any) -> None:
    async def run() -> None:
        for name in ("a", "a/b"):
            await WellkeptSession(name, view).add_items(ITEMS[:3])
        await WellkeptSession("a", view).clear_session()
        assert await WellkeptSession("a", view).get_items() == []
        assert await WellkeptSession("a/b", view).get_items() == ITEMS[:3]

    asyncio.run(run())

    assert len(library.details.list()) == 2


def test_concurrent_adders_lose_nothing_and_poppers_share_nothing(view: Any) -> None:
    async def run() -> None:
        sessions = [WellkeptSession("s-3", view) for _ in range(12)]
        await asyncio.gather(
            *(each.add_items([{"of": number, "at": at} for at in range(5)]) for number, each in enumerate(sessions))
        )
        found = await sessions[0].get_items()
        assert sorted((each["of"], each["at"]) for each in found) == [(of, at) for of in range(12) for at in range(5)]
        for number in range(12):
            assert [each["at"] for each in found if each["of"] == number] == [0, 1, 2, 3, 4]
        popped: list[Any] = await asyncio.gather(*(each.pop_item() for each in sessions))
        assert len({(each["of"], each["at"]) for each in popped}) == 12
        assert len(await sessions[0].get_items()) == 48

    asyncio.run(run())


def test_users_have_sessions_of_their_own(view: Any) -> None:
    async def run() -> None:
        anna, bob = (WellkeptSession("s-4", view.for_user(name)) for name in ("anna", "bob"))
        await anna.add_items([{"n": 1}])
        await bob.add_items([{"n": 2}])
        assert (await anna.get_items(), await bob.get_items()) == ([{"n": 1}], [{"n": 2}])
        assert await anna.pop_item() == {"n": 1}
        assert await anna.pop_item() is None
        assert await bob.get_items() == [{"n": 2}]

    asyncio.run(run())


def test_the_agents_own_session_has_no_items_of_users(opened: Wellkept) -> None:
    atlas = opened.agent("own")

    async def run() -> list[Any]:
        await WellkeptSession("s", atlas).add_items([{"n": 0}])
        await WellkeptSession("s", atlas.for_user("anna")).add_items([{"n": 1}])
        assert await WellkeptSession("s", atlas.for_user("anna")).get_items() == [{"n": 1}]
        return await WellkeptSession("s", atlas).get_items()

    assert asyncio.run(run()) == [{"n": 0}]


def test_a_long_session_is_read_in_pages(opened: Wellkept) -> None:
    items = [{"n": number} for number in range(1_203)]

    async def run() -> None:
        session = WellkeptSession("long", opened.agent("pages"))
        await session.add_items(items[:1_100])
        for item in items[1_100:]:
            await session.add_items([item])
        assert await session.get_items() == items
        assert await session.get_items(1_150) == items[-1_150:]

    asyncio.run(run())


def test_turns_are_remembered_by_choice(view: Any, library: Any) -> None:
    name = f"talk-{library.owner.agent}"

    async def run() -> None:
        session = WellkeptSession(name, view, remember=True)
        await session.add_items([{"role": "user", "content": "never said"}])
        await session.pop_item()
        await session.add_items([{"role": "user", "content": "I moved to Oslo. My password: Falcon#77x"}])
        await session.add_items(ITEMS[3:5])
        await session.add_items([{"role": "assistant", "content": [{"type": "output_text", "text": "Welcome there!"}]}])
        await WellkeptSession(name, view).add_items([{"role": "user", "content": "unheard"}])

    asyncio.run(run())

    said = [each.content for each in library.sessions.messages(name)]
    assert said == ["I moved to Oslo. My password: [secret removed: password]", "Welcome there!"]
    assert [each.text for each in library.list(kind="episode", where="not fact.subject exists")][::-1] == said
    assert not [hit for hit in library.recall("unheard never said") if "heard" in hit.text or "never" in hit.text]


@pytest.mark.parametrize("mode", ["reject", "redact", "flag"])
def test_a_session_is_kept_whole_in_every_mode_of_secrets(mode: Any) -> None:
    with Wellkept(settings=Settings(url=":memory:", secrets=mode)) as store:
        session = WellkeptSession("s", store.agent("atlas"))
        asyncio.run(session.add_items(ITEMS))
        assert asyncio.run(session.get_items()) == ITEMS


def test_what_is_no_json_is_refused_and_nothing_is_added(opened: Wellkept) -> None:
    atlas = opened.agent("bad")
    session = WellkeptSession("s", atlas)

    with pytest.raises(Invalid, match="must be JSON"):
        asyncio.run(session.add_items([ITEMS[1], {"x": object()}]))

    assert asyncio.run(session.get_items()) == []
    assert not atlas.details.list()
