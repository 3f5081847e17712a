"""Arguments and options of commands, declared by annotations and read by Click.

A parameter of a command's function is an option or an argument if its annotation says so:
`limit: Annotated[int, Option(help="Maximum number of results.")] = 20`. Its type, its default and its name tell the
rest.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import click
from click.shell_completion import CompletionItem

from wellkept.arguments import FORMER

Offers = Iterable[tuple[str, str]]
"""Completions, each with a description."""

Complete = Callable[[click.Context, str], Offers]
"""Function that finds completions of an incomplete word."""


class Argument:
    """Declaration of an argument: a value that is given without a name."""

    def __init__(
        self, *, help: str, metavar: str | None = None, exists: bool = False, complete: Complete | None = None
    ) -> None:
        """`exists` refuses the path of a missing file."""
        self.help, self.metavar, self.exists, self.complete = help, metavar, exists, complete


class Option:
    """Declaration of an option; without names, it has the name of the parameter."""

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str | None = None,
        is_common: bool = False,
        is_rare: bool = False,
        min: int | None = None,
        max: int | None = None,
        parser: Callable[[str], Any] | None = None,
        complete: Complete | None = None,
    ) -> None:
        """`is_common` says that all commands have the option, `is_rare` that only `--help --all` shows it."""
        self.names, self.help, self.metavar, self.is_common, self.is_rare = names, help, metavar, is_common, is_rare
        self.min, self.max, self.parser, self.complete = min, max, parser, complete


def offer_words(words: Iterable[str]) -> Complete:
    """Return a function that offers these words as completions."""
    return lambda _context, _incomplete: [(each, "") for each in words]


def build_parameter(declared: inspect.Parameter) -> click.Parameter:
    """Build what Click reads from a parameter whose annotation is `Annotated` with an option or an argument."""
    annotation, about = get_args(declared.annotation)
    kind, is_list = _unpack(annotation)
    has_default = declared.default is not inspect.Parameter.empty
    # For Click, any default counts as given, even None.
    default = {"default": declared.default} if has_default and declared.default is not None else {}
    if isinstance(about, Argument):
        return _Argument(
            [declared.name],
            about=about,
            type=_pick_type(kind, exists=about.exists),
            required=not has_default,
            metavar=about.metavar and (f"[{about.metavar}]" if has_default else about.metavar),
            nargs=-1 if is_list else 1,
            callback=_to_list if is_list else None,
            shell_complete=_adapt(about.complete),
            **default,
        )
    is_flag = kind is bool
    hyphenated = declared.name.replace("_", "-")
    names = about.names or (f"--{hyphenated}/--no-{hyphenated}" if is_flag else f"--{hyphenated}",)
    return CommandOption(
        [declared.name, *names],
        about=about,
        type=None if is_flag else _pick_type(kind, min=about.min, max=about.max, parser=about.parser),
        # The value of an enumeration, because the help shows it.
        required=not has_default,
        help=about.help,
        show_default=declared.default not in (None, False, ""),
        metavar=about.metavar,
        is_flag=is_flag,
        multiple=is_list,
        callback=_to_list if is_list else None,
        shell_complete=_adapt(about.complete),
        **({"default": getattr(declared.default, "value", declared.default)} if has_default else {}),
    )


FORMER_OPTIONS = {
    "since": "--since is a condition of --where now: --where 'created_at >= 2026-01-31'.",
    "until": "--until is a condition of --where now: --where 'created_at < 2026-01-31'.",
    "scope": "--scope is a condition of --where now: --where 'scope = user'.",
    "origin": "--origin is a condition of --where now: --where 'origin = tool'.",
}
"""Refusals of options until 0.2 that filtered memories."""

ALL = "--all"
"""Behind `--help`: show what is rarely used, too."""


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
        parameters = self.get_params(ctx)
        arguments = [each for each in parameters if isinstance(each, _Argument)]
        common = [each for each in parameters if isinstance(each, CommandOption) and each.about.is_common]
        own = [each for each in parameters if each not in arguments and each not in common]
        rare = [each for each in own if isinstance(each, CommandOption) and each.about.is_rare]
        if not ctx.meta.get(ALL):
            own = [each for each in own if each not in rare]
        for title, listed in (("Arguments", arguments), ("Options", own), ("Common options", common)):
            records = [record for each in listed if (record := each.get_help_record(ctx))]
            if listed is own and rare and not ctx.meta.get(ALL):
                records.append((f"--help {ALL}", f"Show {len(rare)} more options."))
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class _Argument(click.Argument):
    """An argument with a line in the help, which Click has only from version 8.5 on."""

    def __init__(self, names: Sequence[str], *, about: Argument, **details: Any) -> None:
        super().__init__(names, **details)
        self._about = about

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        has_default = isinstance(self.default, str) and self.default
        note = "  [required]" if self.required else f"  [default: {self.default}]" if has_default else ""
        return self.human_readable_name.strip("[]"), f"{self._about.help}{note}"


class CommandOption(click.Option):
    """An option and its declaration."""

    def __init__(self, names: Sequence[str], *, about: Option, **details: Any) -> None:
        super().__init__(names, **details)
        self.about = about


class _EnumChoice(click.Choice):  # type: ignore[type-arg] # generic only from Click 8.2 on
    """A choice among the values of an enumeration."""

    def __init__(self, members: type[Enum]) -> None:
        super().__init__([str(each.value) for each in members])
        self._members = members

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, self._members):
            return value
        return self._members(super().convert(value, param, ctx))


class _Parsed(click.ParamType):  # type: ignore[type-arg]
    """A value that a function parses."""

    name = "text"

    def __init__(self, parser: Callable[[str], Any]) -> None:
        self._parser = parser

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._parser(value) if isinstance(value, str) else value


def _unpack(annotation: Any) -> tuple[type, bool]:
    """Return the type of a value, and True if there may be many; None only says that it may be missing."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not type(None))
    if get_origin(annotation) is list:
        return get_args(annotation)[0], True
    return annotation, False


def _pick_type(
    kind: type,
    *,
    min: int | None = None,
    max: int | None = None,
    parser: Callable[[str], Any] | None = None,
    exists: bool = False,
) -> click.ParamType[Any]:
    if parser is not None:
        return _Parsed(parser)
    if issubclass(kind, Enum):
        return _EnumChoice(kind)
    if issubclass(kind, Path):
        return click.Path(path_type=Path, exists=exists)
    if min is not None or max is not None:
        return click.IntRange(min, max)
    types: dict[type, click.ParamType[Any]] = {int: click.INT, float: click.FLOAT, str: click.STRING}
    return types[kind]


def _to_list(ctx: click.Context, param: click.Parameter, values: tuple[Any, ...]) -> list[Any] | None:
    return list(values) or None


def _adapt(complete: Complete | None) -> Callable[..., list[CompletionItem]] | None:
    """Return the function that Click calls for completions."""
    if complete is None:
        return None

    def offer(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = complete(ctx, incomplete)
        return [CompletionItem(value, help=about or None) for value, about in found if value.startswith(incomplete)]

    return offer
