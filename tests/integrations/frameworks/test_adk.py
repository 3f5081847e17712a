"""WellkeptMemoryService with a real runner of google-adk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai.types import Content, FunctionCall, Part

from tests.integrations.examples import read_expected, run_example
from tests.server.live import serving
from wellkept import Client, Wellkept
from wellkept.integrations.adk import WellkeptMemoryService

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgres", "client"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WellkeptMemoryService]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:///{tmp_path}/memory.db"
    with Wellkept(url) as store:
        if request.param == "client":
            key = store.tenant().keys.create("write").key
            with serving(store, no_auth=False) as address, Client(address, key) as client:
                yield WellkeptMemoryService(client)
        else:
            yield WellkeptMemoryService(store)


def event(id: str, text: str, author: str = "user") -> Event:
    return Event(id=id, author=author, content=Content(role="user", parts=[Part(text=text)]), timestamp=1_760_000_000.0)


def search(service: WellkeptMemoryService, query: str, *, app: str, user: str = "lena") -> list[MemoryEntry]:
    found = asyncio.run(service.search_memory(app_name=app, user_id=user, query=query))
    return list(found.memories)


def texts(entries: list[MemoryEntry]) -> list[str]:
    return [part.text for entry in entries for part in entry.content.parts]


def test_a_session_is_added_again_without_repeating_events(service: WellkeptMemoryService) -> None:
    session = Session(id="s-1", app_name="shop", user_id="lena", events=[event("e-1", "My order number is 4711")])
    asyncio.run(service.add_session_to_memory(session))
    call = Event(id="e-2", author="model", content=Content(parts=[Part(function_call=FunctionCall(name="look_up"))]))
    session.events += [call, event("e-3", "Your order ships on Friday", "shop")]
    asyncio.run(service.add_session_to_memory(session))

    found = search(service, "When does the order ship?", app="shop")

    assert sorted(texts(found)) == ["My order number is 4711", "Your order ships on Friday"]
    entry = next(each for each in found if each.author == "shop")
    assert entry.timestamp == "2025-10-09T08:53:20+00:00"
    assert search(service, "When does the order ship?", app="shop", user="kim") == []
    assert search(service, "When does the order ship?", app="other") == []


def test_a_deleted_event_does_not_come_back(service: WellkeptMemoryService) -> None:
    session = Session(id="s-2", app_name="bin", user_id="lena", events=[event("e-1", "I am allergic to penicillin")])
    asyncio.run(service.add_session_to_memory(session))
    (found,) = search(service, "What is she allergic to?", app="bin")
    asyncio.run(service.delete_memory(app_name="bin", user_id="kim", memory_id=found.id))
    assert texts(search(service, "What is she allergic to?", app="bin")) == ["I am allergic to penicillin"]

    asyncio.run(service.delete_memory(app_name="bin", user_id="lena", memory_id=found.id))
    asyncio.run(service.add_session_to_memory(session))

    assert search(service, "What is she allergic to?", app="bin") == []
    asyncio.run(service.delete_memory(app_name="bin", user_id="lena", memory_id="m-999"))


def test_an_event_with_a_secret_does_not_keep_the_others_out(service: WellkeptMemoryService) -> None:
    events = [event("e-1", "The password is hunter2-Xk99-qq81-zz"), event("e-2", "The printer is on floor three")]
    asyncio.run(service.add_events_to_memory(app_name="office", user_id="lena", events=events))

    assert texts(search(service, "Where is the printer?", app="office")) == ["The printer is on floor three"]


def test_characters_that_no_store_takes_neither_lose_an_event_nor_a_search(service: WellkeptMemoryService) -> None:
    events = [event("e-1", "The printer \x00 is on floor three")]
    asyncio.run(service.add_events_to_memory(app_name="floors", user_id="lena", events=events))

    assert texts(search(service, "Where is \x00 the printer?", app="floors")) == ["The printer  is on floor three"]


def test_memories_are_added_as_they_are(service: WellkeptMemoryService) -> None:
    entry = MemoryEntry(content=Content(parts=[Part(text="Prefers window seats")]), custom_metadata={"topic": "travel"})
    asyncio.run(service.add_memory(app_name="trips", user_id="lena", memories=[entry], custom_metadata={"by": "form"}))

    (found,) = search(service, "Which seats does she prefer?", app="trips")

    assert texts([found]) == ["Prefers window seats"]
    assert found.custom_metadata == {"topic": "travel", "by": "form"}


class ScriptedModel(BaseLlm):
    """Model that keeps what it was asked."""

    asked: list[Any] = []  # noqa: RUF012

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked.append(llm_request)
        yield LlmResponse(content=Content(role="model", parts=[Part(text="Noted.")]))


def test_a_runner_shows_the_memory_to_its_model(tmp_path: Path) -> None:
    async def run(store: Wellkept) -> ScriptedModel:
        model = ScriptedModel(model="scripted", asked=[])
        agent = LlmAgent(name="nurse", model=model, instruction="Be kind.", tools=[PreloadMemoryTool()])
        sessions, memory = InMemorySessionService(), WellkeptMemoryService(store)
        runner = Runner(app_name="ward", agent=agent, session_service=sessions, memory_service=memory)
        for said in ("I am allergic to penicillin", "What am I allergic to?"):
            session = await sessions.create_session(app_name="ward", user_id="lena")
            message = Content(role="user", parts=[Part(text=said)])
            async for _ in runner.run_async(user_id="lena", session_id=session.id, new_message=message):
                pass
            stored = await sessions.get_session(app_name="ward", user_id="lena", session_id=session.id)
            assert stored is not None
            await memory.add_session_to_memory(stored)
        return model

    with Wellkept(f"sqlite:///{tmp_path}/memory.db") as store:
        model = asyncio.run(run(store))

    assert "I am allergic to penicillin" in str(model.asked[1].model_dump())
    assert "I am allergic to penicillin" not in str(model.asked[1].contents[-1])


def test_the_example_of_the_page(tmp_path: Path) -> None:
    assert run_example("adk", tmp_path) == read_expected("adk")
