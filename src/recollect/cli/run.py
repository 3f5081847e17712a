"""What every command shares: four options, the settings and the store behind them, and how it ends.

A command is a function whose first argument is its `Run`; its other arguments are its options. `callback_of` adds the
four common options, so that they are written down once.
"""

from __future__ import annotations

import errno
import inspect
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import typer

import recollect
from recollect.caller import CLI, acting_as
from recollect.cli.completion import complete_agent
from recollect.cli.view import View, pick_view, safe
from recollect.errors import Invalid, ModelError, NotFound, RecollectError, StoreBusy, StoreError
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.api.recollect import AgentMemory, Recollect, TenantMemory

EVERYWHERE = "Options of every command"
REFUSED = 1
UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What writing to a file that takes no more ends with."""

INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command: what it runs, and an example for its help."""

    run: Callable[..., None]
    example: str
    called: str = ""  # when the function cannot have the command's name
    lister: str = ""  # the command that lists what this one takes by its id
    replaces: tuple[str, ...] = ()  # common options it has its own meaning for

    @property
    def name(self) -> str:
        return self.called or self.run.__name__


class Run:
    """One run of a command. The store is opened when it is first asked for, and closed when the command ends."""

    def __init__(self, flags: Mapping[str, object], view: View, closing: ExitStack) -> None:
        self.flags = dict(flags)  # settings given on the command line; None: not given
        self.view = view
        self._closing = closing

    @cached_property
    def settings(self) -> Settings:
        """Raises: Invalid."""
        return Settings.load(flags=self.flags)

    @cached_property
    def store(self) -> Recollect:
        """Raises: Invalid, StoreError, SchemaMismatch."""
        return self._closing.enter_context(recollect.Recollect(settings=self.settings))

    @property
    def memory(self) -> AgentMemory:
        """The memory of the agent that is meant."""
        return self.store.agent()

    @property
    def tenant(self) -> TenantMemory:
        return self.store.tenant()

    def next_command(self, *words: str) -> str:
        """A command to type next that means the same store, tenant and agent as this one."""
        same = [word for name, value in self.flags.items() if value is not None for word in (f"--{name}", str(value))]
        return shlex.join(["recollect", *words, *same])


def _common_options(
    url: Annotated[
        str | None,
        typer.Option(
            help="Where memories are kept, such as sqlite:///notes.db.", show_default=False, rich_help_panel=EVERYWHERE
        ),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Whose agents are meant.", show_default=False, rich_help_panel=EVERYWHERE)
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            help="Whose memories are meant.",
            show_default=False,
            rich_help_panel=EVERYWHERE,
            autocompletion=complete_agent,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Answer with one JSON document.", rich_help_panel=EVERYWHERE)
    ] = False,
) -> None:
    """The signature is all that is used of this."""


def callback_of(
    command: Command, begin: Callable[[Mapping[str, object], View, ExitStack], Run] = Run
) -> Callable[..., None]:
    """What Typer calls: the command's own options and the common ones in, an exit code out."""

    def callback(
        url: str | None, tenant: str | None, as_json: bool, agent: str | None = None, **arguments: Any
    ) -> None:
        try:
            flags = _decoded({"url": url, "tenant": tenant, "agent": agent})
            with acting_as(CLI), ExitStack() as closing:
                command.run(begin(flags, pick_view(as_json=as_json), closing), **_decoded(arguments))
            if sys.stdout is not None:
                sys.stdout.flush()
        except RecollectError as error:
            typer.secho(safe(" ".join(str(error).split())), fg=typer.colors.RED, err=True)
            if (hint := _hint(error, command)) and sys.stderr is not None and sys.stderr.isatty():
                typer.secho(hint, dim=True, err=True)  # for people alone: a program reads one sentence
            raise typer.Exit(REFUSED) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:  # whoever reads our output has seen enough
            _let_go_of_output()
            raise typer.Exit(0) from error
        except OSError as error:
            if error.errno not in UNWRITABLE or error.filename is not None:
                raise
            _let_go_of_output()
            typer.secho(f"The output cannot be written ({error.strerror}).", fg=typer.colors.RED, err=True)
            raise typer.Exit(REFUSED) from error

    own = _parameters(command.run)[1:]
    common = [each for each in _parameters(_common_options) if each.name not in command.replaces]
    options = [*own, *common]
    shape = cast(Any, callback)
    shape.__signature__ = inspect.Signature(options)
    shape.__annotations__ = {option.name: option.annotation for option in options}
    shape.__doc__ = command.run.__doc__
    shape.__name__ = command.name
    return callback


def _let_go_of_output() -> None:
    """So that the interpreter's last flush finds somebody."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _hint(error: RecollectError, command: Command) -> str:
    """What a person might try next."""
    if isinstance(error, NotFound) and command.lister:
        return f"To see what there is: recollect {command.lister}"
    if isinstance(error, StoreBusy):
        return "If it stays like this, look which other program has the store open."
    if isinstance(error, StoreError):
        return "To see what is wrong with the store: recollect doctor"
    if isinstance(error, ModelError):
        return "To see whether models and embedder answer: recollect doctor --online"
    return ""


def optional_module(module: str, *, needs: str, extra: str) -> ModuleType:
    """A module of ours that needs packages not everybody has.

    Raises: Invalid, which says what to install.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "recollect":
            raise  # not a package that is missing, but a part of us
        raise Invalid(f"{needs} needs more packages; run: pip install 'recollect[{extra}]'") from error


def _decoded(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, read as UTF-8 where the locale knows only ASCII and Python kept the bytes it could not read.

    Raises: Invalid.
    """
    return {name: _as_typed(name, value) for name, value in arguments.items()}


def _as_typed(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_as_typed(name, each) for each in value]
    if type(value) is not str or value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        try:
            return os.fsencode(value).decode()
        except UnicodeError as error:
            raise Invalid(f"The {name} is not UTF-8 text.") from error
    return value


def _parameters(function: Callable[..., None]) -> list[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    found = inspect.signature(function).parameters.values()
    return [each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY) for each in found]
