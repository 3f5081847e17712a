"""Validate the fields of agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from wellkept.errors import Invalid
from wellkept.knowledge.rules_chunking import check_categories

MAX_CHARS: Mapping[str, int] = {"name": 200, "system_prompt": 100_000, "model": 200, "colour": 40, "icon": 40}
MAX_TOOLS = 200
MAX_TOOL_CHARS = 128
FIELDS = (*MAX_CHARS, "tools", "knowledge_categories", "is_active")


class AgentFields(TypedDict, total=False):
    """Fields that can be set on an agent."""

    name: str
    system_prompt: str
    model: str
    tools: Sequence[str]
    knowledge_categories: Sequence[str]
    colour: str
    icon: str
    is_active: bool


def check_agent_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the fields of an agent. Raises: Invalid."""
    return {name: _check_field(name, value) for name, value in fields.items()}


def _check_field(name: str, value: Any) -> Any:
    if name == "is_active":
        return value
    if name == "tools":
        return _check_tools(value)
    if name == "knowledge_categories":
        return check_categories(value)
    if name not in MAX_CHARS:
        raise Invalid(f"An agent has no {name[:40]!r}; its fields are {', '.join(FIELDS)}.")
    text: str = value
    if len(text) > MAX_CHARS[name]:
        raise Invalid(f"The agent's {name} is too long (max {MAX_CHARS[name]:,} characters).")
    if name == "name" and not text.strip():
        raise Invalid("An agent's name cannot be blank.")
    return text


def _check_tools(value: Sequence[str]) -> tuple[str, ...]:
    if len(value) > MAX_TOOLS:
        raise Invalid(f"An agent's tools are a list of at most {MAX_TOOLS} names.")
    if any(not tool or len(tool) > MAX_TOOL_CHARS for tool in value):
        raise Invalid(f"A tool's name is 1 to {MAX_TOOL_CHARS} characters.")
    return tuple(value)
