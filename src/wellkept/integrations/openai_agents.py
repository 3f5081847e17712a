"""Sessions, tools and recall for the OpenAI Agents SDK (package `openai-agents`).

`WellkeptSession` has the shape of the SDK's `Session` protocol and imports nothing of it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wellkept.errors import Invalid, NotFound, WellkeptError
from wellkept.integrations.plans import (
    DETAIL,
    OwnItems,
    Plan,
    ask,
    call_verb,
    drop_texts,
    is_long,
    log_turn,
    open_tools,
    parse_arguments,
    read_text,
    run_plan_async,
)
from wellkept.language.text import clean_text
from wellkept.model import Item, Json
from wellkept.secrets.rules_scan import find_secrets

if TYPE_CHECKING:
    import agents
    from agents.run_config import CallModelData, ModelInputData

    from wellkept.integrations.plans import AnyMemory

NAMESPACE = "openai-agents"
MAX_MISSES = 2


class WellkeptSession:
    """Conversation of the Agents SDK that is kept in an agent's memory.

    Each item is stored as its JSON text, so that it comes back identical, down to the order of its fields. A long one,
    and one with what looks like a secret, is kept as a detail.
    """

    def __init__(
        self,
        session_id: str,
        memory: AnyMemory,
        *,
        remember: bool = False,
        session_settings: agents.SessionSettings | None = None,
    ) -> None:
        """Open a conversation.

        `memory` is an agent's memory, or that of one of its users (`for_user`). With `remember`, what the user and the
        assistant say is also logged as a conversation of that id, and as episodes that `recall` finds.
        """
        self.session_id = session_id
        self.session_settings = session_settings
        self._memory = memory
        self._namespace = (NAMESPACE, session_id)
        self._items = OwnItems(memory)
        self._remember = remember
        self._said: list[str] = []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the latest `limit` items, or all, in the order in which they were added."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await run_plan_async(self._memory, self._get(limit))

    async def add_items(self, items: Sequence[Any]) -> None:
        """Add items: all of them or, on an error, none. Raises: Invalid."""
        await run_plan_async(self._memory, self._add(list(items)))

    async def pop_item(self) -> Any | None:
        """Remove the newest item and return it; None if there is none. No two callers get the same one."""
        return await run_plan_async(self._memory, self._pop())

    async def clear_session(self) -> None:
        """Remove all items. What was remembered of them stays."""
        self._said.clear()
        await run_plan_async(self._memory, self._clear())

    def _get(self, limit: int | None) -> Plan[list[Any]]:
        items = []
        for stored in reversed((yield from self._items.list(self._namespace, limit))):
            try:
                items.append(json.loads((yield from _unpack(stored))))
            except NotFound:
                # Someone removed it meanwhile.
                continue
        return items

    def _add(self, items: Sequence[Any]) -> Plan[None]:
        drafts: list[Json] = []
        try:
            for item in items:
                value = yield from self._pack(_dump(item))
                key = str(uuid.uuid4())
                drafts.append({"namespace": self._namespace, "key": key, "value": value, "index": False})
            yield from self._items.put(drafts)
        except WellkeptError:
            yield from drop_texts(draft["value"].get(DETAIL) for draft in drafts)
            raise
        if self._remember:
            for item in items:
                yield from self._log(item)

    def _pop(self) -> Plan[Any | None]:
        gone: set[str] = set()
        misses = 0
        while True:
            newest = yield from self._items.list(self._namespace, len(gone) + 1)
            stored = next((each for each in newest if each.id not in gone), None)
            if stored is None:
                # A page is short, too, if an item is removed while it is read.
                misses += 1
                if misses > MAX_MISSES:
                    return None
                continue
            gone.add(stored.id)
            try:
                item = json.loads((yield from _unpack(stored)))
            except NotFound:
                continue
            # False if someone else has just popped it.
            if (yield from ask("items.delete", self._namespace, stored.key)):
                yield from drop_texts([stored.value.get(DETAIL)])
                if self._said and _find_text(item, "user") == self._said[-1]:
                    self._said.pop()
                return item

    def _clear(self) -> Plan[None]:
        yield from self._items.delete((yield from self._items.list(self._namespace)))

    def _pack(self, text: str) -> Plan[Json]:
        """Return the value under which the JSON text of an item is stored."""
        value = {"item": text}
        # A secret would be refused or removed, and the item would not come back as it was.
        if not is_long(value) and not find_secrets(json.dumps(value, ensure_ascii=False)):
            return value
        source = {"source": f"{NAMESPACE}: {self.session_id}"}
        detail = yield from ask(
            "details.store", text, description="item of a session", type="session_item", metadata=source
        )
        return {DETAIL: detail.key}

    def _log(self, item: Any) -> Plan[None]:
        """Remember what was said: a turn is complete with the text of the assistant."""
        if said := _find_text(item, "user"):
            self._said.append(said)
        elif answer := _find_text(item, "assistant"):
            user, self._said = "\n\n".join(self._said), []
            yield from log_turn(self.session_id, user, answer)


def _dump(item: Any) -> str:
    """Return an item as JSON that every store accepts. Raises: Invalid."""
    try:
        text = json.dumps(item, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"An item of a session must be JSON, such as a dict: {error}") from None
    # Half a surrogate pair cannot be stored, except as an escape.
    return text if text.encode("utf-8", "replace").decode() == text else json.dumps(item)


def _unpack(stored: Item) -> Plan[str]:
    """Return the JSON text of an item. Raises: NotFound."""
    key = stored.value.get(DETAIL)
    return (yield from read_text(key)) if key else stored.value["item"]


def _find_text(item: Any, role: str) -> str:
    """Return the text of a message of this role, else ""."""
    if not isinstance(item, dict) or item.get("role") != role:
        return ""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def make_function_tools(
    memory: AnyMemory, sets: Iterable[str] | None = None, *, session_id: str | None = None
) -> list[agents.FunctionTool]:
    """Return the tools of these sets for an `Agent`; `sets` defaults to `memory`.

    `session_id` is the conversation in which the model calls them. Raises: Invalid.
    """
    from agents import FunctionTool

    tools, call = open_tools(memory, sets, session_id)

    def invoke(name: str) -> Callable[[Any, str], Awaitable[str]]:
        async def invoked(context: Any, arguments: str) -> str:
            try:
                answer = await call(name, parse_arguments(arguments))
            except ValueError as error:
                answer = {"ok": False, "error": f"The arguments of {name} are no JSON object: {error}"}
            return json.dumps(answer, ensure_ascii=False)

        return invoked

    return [
        FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=tool.schema(),
            on_invoke_tool=invoke(tool.name),
            # Optional arguments are not strict.
            strict_json_schema=False,
        )
        for tool in tools
    ]


def make_recall_filter(
    memory: AnyMemory, *, limit: int = 5
) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Return a `call_model_input_filter` that adds what is known about the user's latest message in front of it.

    The session does not keep it.
    """

    from agents.run_config import ModelInputData

    async def add_recalled(data: CallModelData[Any]) -> ModelInputData:
        given = data.model_data
        places = [place for place, item in enumerate(given.input) if _find_text(item, "user").strip()]
        if not places:
            return given
        said = given.input[places[-1]]
        block = await call_verb(memory, "prompts.recall_block", clean_text(_find_text(said, "user")), limit=limit)
        if block is None:
            return given
        content = said["content"] if isinstance(said["content"], list) else [_make_part(said["content"])]
        items = list(given.input)
        items[places[-1]] = {**said, "content": [_make_part(block), *content]}
        return ModelInputData(input=items, instructions=given.instructions)

    return add_recalled


def _make_part(text: str) -> Json:
    return {"type": "input_text", "text": text}
