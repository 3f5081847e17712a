"""Definition of a tool, and its rendering for each protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recollect.errors import Invalid
from recollect.lazy import dataclass
from recollect.model import Json
from recollect.policy.json_values import check_json

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
    "boolean": (bool,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument of a tool."""

    description: str
    type: str = "string"
    is_required: bool = False
    choices: tuple[str, ...] = ()

    def schema(self) -> Json:
        """Return the parameter as JSON Schema."""
        schema: Json = {"type": self.type, "description": self.description}
        if self.type == "array":
            schema["items"] = {"type": "string"}
        if self.choices:
            # Plain strings: not every serialiser accepts enum members.
            schema["enum"] = [str(choice) for choice in self.choices]
        return schema


WHERE = Parameter(
    description=(
        "Filter such as: tags = food and created_at > 2026-10-01 and metadata.city = 'Oslo'. Operators: =, !=, <, <=, "
        ">, >=, in (a, b), exists, and, or, not."
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One operation a model can call on an agent's memory."""

    name: str
    set: str
    title: str
    description: str
    parameters: Mapping[str, Parameter]
    answer: Mapping[str, str]  # the fields of its answer, each with its JSON type; some may be left out
    call: Callable[..., Json]  # (memory, **arguments); the memory is None when there is no agent
    is_read_only: bool = False
    is_destructive: bool = False
    is_idempotent: bool = False
    session_argument: str = ""  # argument that is the session of the call if the model does not give it

    def schema(self) -> Json:
        """Return the arguments as JSON Schema."""
        return {
            "type": "object",
            "properties": {name: parameter.schema() for name, parameter in self.parameters.items()},
            "required": [name for name, parameter in self.parameters.items() if parameter.is_required],
            "additionalProperties": False,
        }

    def answer_schema(self) -> Json:
        """Return the answer as JSON Schema. A refusal holds `error` and, from most tools, `ok`."""
        types = {"ok": "boolean", "error": "string", **self.answer}
        return {"type": "object", "properties": {name: {"type": type} for name, type in types.items()}}

    def parse_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check the arguments and drop those that are null. Raises: Invalid."""
        check_json(arguments, what="arguments")
        present = {name: value for name, value in arguments.items() if value is not None}
        for name, value in present.items():
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise Invalid(f"{self.name} has no argument {name[:40]!r}; its arguments are: {known}.")
            _check(name, value, self.parameters[name])
        for name, parameter in self.parameters.items():
            if parameter.is_required and name not in present:
                raise Invalid(f"{self.name} needs the argument {name!r}: {parameter.description}")
        return present


def _check(name: str, value: Any, parameter: Parameter) -> None:
    if type(value) not in _TYPES[parameter.type]:
        raise Invalid(f"The argument {name!r} must be of type {parameter.type}.")
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        raise Invalid(f"The argument {name!r} must be a list of strings.")
    if parameter.choices and value not in parameter.choices:
        raise Invalid(f"The argument {name!r} must be one of: {', '.join(parameter.choices)}.")


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
