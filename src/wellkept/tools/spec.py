"""Definition of a tool, and its rendering for each protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wellkept.arguments import refuse_former
from wellkept.errors import Invalid
from wellkept.language.values import check_json
from wellkept.model import Json

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
    "boolean": (bool,),
}


DEFINITIONS: Json = json.loads(Path(__file__).with_name("definitions.json").read_bytes())
"""Sets of tools with all that a model reads of them, and the guidance for their use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One operation a model can call on an agent's memory."""

    name: str
    set: str
    title: str
    description: str
    parameters: Mapping[str, Json]  # each as JSON Schema
    required: Sequence[str]
    answer: Mapping[str, str]  # the fields of its answer, each with its JSON type; some may be left out
    call: Callable[..., Json]  # (memory, **arguments)
    without_agent: Json  # the answer when there is no agent
    is_read_only: bool = False
    is_destructive: bool = False
    is_idempotent: bool = False
    session_argument: str = ""  # argument that is the session of the call if the model does not give it

    def schema(self) -> Json:
        """Return the arguments as JSON Schema."""
        return {
            "type": "object",
            "properties": {name: dict(parameter) for name, parameter in self.parameters.items()},
            "required": list(self.required),
            "additionalProperties": False,
        }

    def answer_schema(self) -> Json:
        """Return the answer as JSON Schema. A refusal holds `error` and, from most tools, `ok`; `hint` is advice."""
        types = {"ok": "boolean", "error": "string", "hint": "string", **self.answer}
        return {"type": "object", "properties": {name: {"type": type} for name, type in types.items()}}

    def parse_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check the arguments and drop those that are null. Raises: Invalid."""
        check_json(arguments, what="arguments")
        present = {name: value for name, value in arguments.items() if value is not None}
        for name, value in present.items():
            if name not in self.parameters:
                if "min_relevance" in self.parameters:
                    refuse_former([name])
                known = ", ".join(self.parameters) or "none"
                raise Invalid(f"{self.name} has no argument {name[:40]!r}; its arguments are: {known}.")
            _check(name, value, self.parameters[name])
        for name in self.required:
            if name not in present:
                raise Invalid(f"{self.name} needs the argument {name!r}: {self.parameters[name]['description']}")
        return present


def _check(name: str, value: Any, schema: Json) -> None:
    if type(value) not in _TYPES[schema["type"]]:
        raise Invalid(f"The argument {name!r} must be of type {schema['type']}.")
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        raise Invalid(f"The argument {name!r} must be a list of strings.")
    if "enum" in schema and value not in schema["enum"]:
        raise Invalid(f"The argument {name!r} must be one of: {', '.join(schema['enum'])}.")


def for_openai(tool: Tool) -> Json:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema()}
    return {"type": "function", "function": function}


def for_anthropic(tool: Tool) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema()}


def for_mcp(tool: Tool) -> Json:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.schema(),
        "outputSchema": tool.answer_schema(),
        "annotations": {
            "title": tool.title,
            "readOnlyHint": tool.is_read_only,
            "destructiveHint": tool.is_destructive,
            "idempotentHint": tool.is_idempotent,
            "openWorldHint": False,
        },
    }


RENDERERS: Mapping[str, Callable[[Tool], Json]] = {"openai": for_openai, "anthropic": for_anthropic, "mcp": for_mcp}
