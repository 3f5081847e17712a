"""A web application whose users have memories of their own: uvicorn fastapi_app:app.

curl --json '{"text": "I am vegetarian"}' -H 'X-User: anna' http://127.0.0.1:8000/memories
curl -H 'X-User: anna' 'http://127.0.0.1:8000/recall?question=what+do+I+eat'

In your application, the user comes from your login and not from a header that anybody can set.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException, Request
from pydantic import BaseModel

from wellkept import AsyncWellkept, Invalid, SecretRejected
from wellkept.api.aio import AsyncAgentMemory


@asynccontextmanager
async def open_store(app: FastAPI) -> AsyncIterator[None]:
    """Open one store for all requests; it is safe to share."""
    async with AsyncWellkept(os.environ.get("WELLKEPT_URL", "sqlite:///app.db")) as store:
        app.state.assistant = store.agent("assistant")
        yield


app = FastAPI(lifespan=open_store)


def get_memory(request: Request, x_user: Annotated[str, Header()]) -> AsyncAgentMemory:
    """Return the assistant's memory as this user has it."""
    memory: AsyncAgentMemory = request.app.state.assistant.for_user(x_user)
    return memory


UserMemory = Annotated[AsyncAgentMemory, Depends(get_memory)]


class Text(BaseModel):
    text: str


@app.post("/memories", status_code=201)
async def remember(body: Text, memory: UserMemory) -> dict[str, str]:
    try:
        stored = await memory.remember(body.text)
    except (Invalid, SecretRejected) as problem:
        raise HTTPException(422, str(problem)) from problem
    return {"id": stored.id, "text": stored.text}


@app.get("/recall")
async def recall(question: str, memory: UserMemory) -> list[dict[str, object]]:
    return [{"text": hit.text, "score": round(hit.score, 3)} for hit in await memory.recall(question)]


@app.post("/prompt")
async def build_prompt(body: Text, session: str, memory: UserMemory) -> list[dict[str, object]]:
    """Return the messages for your model."""
    prompt = await memory.context(body.text, session=session, budget=4000)
    return [dict(message) for message in prompt.messages]
