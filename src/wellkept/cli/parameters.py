"""Arguments and options of commands: the signature of a function, described by lines of its docstring.

    def show(run: Run, id: str, limit: int = 20) -> None:
        \"""Show a document.

        id ID: The document's id.
        --limit: Maximum number of passages.

The type, the default and the name of a value come from the signature; `--tag` fills the parameter `tag`, `tags` or
`tag_id`. What has no line has the one in `SHARED`. Behind a line "Rare:" are options that only `--help --all` shows. An
annotation may add a type of Click, or a function that offers completions.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import click
from click.shell_completion import CompletionItem

from wellkept.arguments import FORMER
from wellkept.cli.options import parse_metadata, parse_time

LINE = re.compile(r"^((?:--?[\w-]+(?:/--[\w-]+)?(?:, -\w)?)|\w+)(?: ([A-Z][\w.=]*))?: (.+)$", re.DOTALL)
EXAMPLE = "\n\nExample: "
RARE = "Rare:"

SHARED = """
id ID: The memory's id, such as m-7.
session SESSION: The session's id.
--kind: Only this kind.
--limit: Maximum number of results.
--where FILTER: Only what passes this filter, such as "tags = food and metadata.city = 'Oslo'".
--metadata KEY=VALUE: A field of your own, such as city=Oslo, or a JSON object; repeat for more.
--yes, -y: Do not ask for confirmation.
--dry-run: Write nothing; show what would happen.
--as-of TIME: As of this time; local time unless a zone is given.
--min-relevance: Leave out results of less relevance, 0 to 1.
Rare:
--secrets MODE: Handling of what seems to be a secret: reject, redact or flag.
"""
"""Lines of values that mean the same in several commands."""

FORMER_OPTIONS = {
    "since": "--since is a condition of --where now: --where 'created_at >= 2026-01-31'.",
    "until": "--until is a condition of --where now: --where 'created_at < 2026-01-31'.",
    "scope": "--scope is a condition of --where now: --where 'scope = user'.",
    "origin": "--origin is a condition of --where now: --where 'origin = tool'.",
}
"""Refusals of options until 0.2 that filtered memories."""

ALL = "--all"
"""Behind `--help`: show what is rarely used, too."""

Offers = Iterable[tuple[str, str]]
"""Completions, each with a description."""


@dataclass(frozen=True, slots=True)
class Described:
    """The line of a docstring about a value."""

    names: Sequence[str]  # of an option; an argument has none
    metavar: str | None
    help: str
    is_rare: bool


class Argument(click.Argument):
    """A value that is given without a name, with a line in the help, which Click has only from version 8.5 on."""

    def __init__(self, names: Sequence[str], *, help: str, **details: Any) -> None:
        super().__init__(names, **details)
        self._help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        has_default = isinstance(self.default, str) and self.default
        note = "  [required]" if self.required else f"  [default: {self.default}]" if has_default else ""
        return self.human_readable_name.strip("[]"), f"{self._help}{note}"


class CommandOption(click.Option):
    """An option that most runs need, or that is rare, or that all commands have."""

    def __init__(self, names: Sequence[str], *, is_rare: bool, is_common: bool, **details: Any) -> None:
        super().__init__(names, **details)
        self.is_rare, self.is_common = is_rare, is_common


def read_docstring(function: Callable[..., Any]) -> tuple[str, str]:
    """Return what a command does, without the lines about its values, and the example at the end."""
    about, _, example = inspect.cleandoc(function.__doc__ or "").rpartition(EXAMPLE)
    return "\n\n".join(each for each in about.split("\n\n") if not _is_description(each)), example


def build_parameters(function: Callable[..., Any], *, is_common: bool = False) -> list[click.Parameter]:
    """Build what Click reads from a signature, without its first parameter, and from the docstring."""
    described = _describe(SHARED) | _describe(function.__doc__ or "")
    hints = get_type_hints(function, include_extras=True)
    found: list[click.Parameter] = []
    for each in [*inspect.signature(function).parameters.values()][1:]:
        if each.kind is not inspect.Parameter.VAR_KEYWORD:
            found.append(_build(each.name, hints[each.name], each.default, described, is_common=is_common))
            continue
        # `**options: Unpack[…]` has an option for each key, None if it is not given, False for a flag.
        options = get_args(hints[each.name])[0]
        known = _describe(SHARED) | _describe(options.__doc__ or "") | _describe(function.__doc__ or "")
        for name, hint in get_type_hints(options, include_extras=True).items():
            found.append(_build(name, hint, False if hint is bool else None, known))
    return found


def _is_description(paragraph: str) -> bool:
    return paragraph.startswith(RARE) or LINE.match(paragraph.partition("\n")[0]) is not None


def _describe(docstring: str) -> dict[str, Described]:
    """Return what the lines of a docstring say, by the name of the value."""
    found: dict[str, Described] = {}
    for paragraph in inspect.cleandoc(docstring).split("\n\n"):
        usual, _, rare = f"\n{paragraph}".partition(f"\n{RARE}\n") if _is_description(paragraph) else ("", "", "")
        for is_rare, lines in enumerate((usual, rare)):
            for line in re.split(r"\n(?! )", lines):
                if match := LINE.match(" ".join(line.split())):
                    names, metavar, about = match.groups()
                    options = names.split(", ") if names.startswith("-") else ()
                    name = names.partition(",")[0].partition("/")[0].lstrip("-").replace("-", "_")
                    found[name] = Described(options, metavar, about, bool(is_rare))
    return found


def _build(
    name: str, hint: Any, default: Any, described: Mapping[str, Described], *, is_common: bool = False
) -> click.Parameter:
    names = (name, name.removesuffix("s"), name.removesuffix("_id"), name.removesuffix("_"), name.removeprefix("is_"))
    line = next(described[each] for each in names if each in described)
    annotation, *marks = get_args(hint) if get_origin(hint) is Annotated else [hint]
    kind, is_list = _unpack(annotation)
    has_default = default is not inspect.Parameter.empty
    details: dict[str, Any] = {
        "type": next((each for each in marks if isinstance(each, click.ParamType)), None) or _pick_type(kind),
        "required": not has_default,
        "help": line.help,
        "metavar": line.metavar,
        "shell_complete": next((_adapt(each) for each in marks if inspect.isfunction(each)), None),
        "callback": parse_metadata if kind is dict else _to_list if is_list else None,
    }
    # The help shows the value of an enumeration. For an argument, any default counts as given, even None.
    if has_default and (default is not None or line.names):
        details["default"] = getattr(default, "value", default)
    if not line.names:
        optional = line.metavar and f"[{line.metavar}]"
        details["metavar"] = optional if has_default else line.metavar
        return Argument([name], nargs=-1 if is_list else 1, **details)
    return CommandOption(
        [name, *line.names],
        is_rare=line.is_rare,
        is_common=is_common,
        is_flag=kind is bool,
        multiple=is_list or kind is dict,
        show_default=default not in (None, False, ""),
        **details,
    )


def _unpack(annotation: Any) -> tuple[type, bool]:
    """Return the type of a value, and True if there may be many; None only says that it may be missing."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not type(None))
    if get_origin(annotation) is list:
        return get_args(annotation)[0], True
    return get_origin(annotation) or annotation, False


def _pick_type(kind: type) -> click.ParamType[Any] | None:
    if issubclass(kind, Enum):
        return _EnumChoice(kind)
    if issubclass(kind, Path):
        return click.Path(path_type=Path)
    if issubclass(kind, datetime):
        return _Time()
    types: dict[type, click.ParamType[Any]] = {int: click.INT, float: click.FLOAT}
    return None if kind is bool else types.get(kind, click.STRING)


class _EnumChoice(click.Choice):  # type: ignore[type-arg] # generic only from Click 8.2 on
    """A choice among the values of an enumeration."""

    def __init__(self, members: type[Enum]) -> None:
        super().__init__([str(each.value) for each in members])
        self._members = members

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, self._members) else self._members(super().convert(value, param, ctx))


class _Time(click.ParamType):  # type: ignore[type-arg]
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        return value if isinstance(value, datetime) else parse_time(value)


def _to_list(ctx: click.Context, param: click.Parameter, values: tuple[Any, ...]) -> list[Any] | None:
    return list(values) or None


def _adapt(complete: Callable[[click.Context, str], Offers]) -> Callable[..., list[CompletionItem]]:
    """Return the function that Click calls for completions."""

    def offer(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = complete(ctx, incomplete)
        return [CompletionItem(value, help=about or None) for value, about in found if value.startswith(incomplete)]

    return offer


class Helpful(click.Command):
    """A command or group whose help shows what is rarely used only with `--help --all`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = args[: args.index("--")] if "--" in args else args
        if ALL in own and {*own} & {*ctx.help_option_names}:
            ctx.meta[ALL] = True
            args = [each for each in args if each != ALL]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.lstrip("-").replace("-", "_")
            if sentence := FORMER.get(name) or FORMER_OPTIONS.get(name):
                raise click.UsageError(sentence, ctx) from error
            raise


class HelpfulCommand(Helpful):
    """A command whose help lists arguments, its own options, and the options that all commands have."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, listed in self._sort_parameters(ctx):
            records = [record for each in listed if (record := each.get_help_record(ctx))]
            hidden = [each for each in listed if isinstance(each, CommandOption) and each.is_rare]
            if hidden and not ctx.meta.get(ALL):
                records = [record for each in listed if each not in hidden and (record := each.get_help_record(ctx))]
                records.append((f"--help {ALL}", f"Show {len(hidden)} more options."))
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def _sort_parameters(self, ctx: click.Context) -> Iterator[tuple[str, Sequence[click.Parameter]]]:
        parameters = self.get_params(ctx)
        common = [each for each in parameters if isinstance(each, CommandOption) and each.is_common]
        yield "Arguments", [each for each in parameters if isinstance(each, Argument)]
        yield "Options", [each for each in parameters if not isinstance(each, Argument) and each not in common]
        yield "Common options", common
