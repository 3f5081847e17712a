"""Parts shared by all commands: five options, settings and store, output, error handling and exit codes.

A command is a function whose first argument is its `Run`; its other arguments are its options. `build_command` adds
the five common options. `app.COMMANDS` says where it stands.
"""

from __future__ import annotations

import errno
import inspect
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import click

import wellkept
from wellkept.caller import CLI, Caller, current_caller, use_caller
from wellkept.cli.completion import complete_agent
from wellkept.cli.output import Output, Printer, ProgressBar, pick_printer
from wellkept.cli.parameters import HelpfulCommand, Option, build_parameter
from wellkept.cli.text import safe
from wellkept.errors import Invalid, ModelError, NotFound, StoreBusy, StoreError, WellkeptError
from wellkept.language.names import check_user
from wellkept.program import advise_install
from wellkept.settings import Settings, load_numpy_with_one_thread

if TYPE_CHECKING:
    from wellkept.api.wellkept import AgentMemory, TenantMemory, Wellkept

REFUSED = 1
UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""errno values that mean the output cannot be written."""

INTERRUPTED = 130
SENTENCE_END = re.compile(r"\.(?=\s|$)")

log = logging.getLogger("wellkept")


class Run:
    """One run of a command. The store is opened on first use and closed when the command ends."""

    def __init__(self, flags: Mapping[str, object], printer: Printer, closing: ExitStack) -> None:
        self.flags = dict(flags)  # settings given on the command line; None: not given
        self.printer = printer
        self._closing = closing

    @cached_property
    def settings(self) -> Settings:
        """Raises: Invalid."""
        return Settings.load(flags=self.flags)

    @cached_property
    def store(self) -> Wellkept:
        """Raises: Invalid, StoreError, SchemaMismatch."""
        load_numpy_with_one_thread()
        return self._closing.enter_context(wellkept.Wellkept(settings=self.settings))

    @property
    def library(self) -> type[Wellkept]:
        """The class of stores, for commands that open none."""
        return wellkept.Wellkept

    @property
    def memory(self) -> AgentMemory:
        """The memory of the agent, and possibly of the user, that the options name."""
        return self.store.agent()

    @property
    def tenant(self) -> TenantMemory:
        return self.store.tenant()

    @property
    def has_terminal(self) -> bool:
        """Return True if a person can be asked."""
        return not self.printer.is_json and sys.stdin is not None and sys.stdin.isatty()

    def show(self, output: Output) -> None:
        """Print the result."""
        self.printer.show(output)

    def progress(self, label: str) -> ProgressBar:
        """Return a progress bar, a context manager."""
        return ProgressBar(self.printer, label)

    def embed_stored(self) -> None:
        """Embed what a command stored in bulk; a recall embeds only few texts."""
        try:
            with self.progress("Embedding") as bar:
                self.store.embedding.embed_waiting(progress=bar.report)
        except ModelError as error:
            log.warning("It is stored, and found by its words until it has vectors: %s", error)

    def next_command(self, *words: str) -> str:
        """Return a command line for the same store, tenant, agent and user as this run."""
        flags = self.flags | {"user": current_caller().user}
        same = [word for name, value in flags.items() if value is not None for word in (f"--{name}", str(value))]
        return shlex.join(["wellkept", *words, *same])


def _common_options(
    url: Annotated[str | None, Option(help="The store, such as sqlite:///notes.db.", is_common=True)] = None,
    tenant: Annotated[str | None, Option(help="The tenant whose agents are used.", is_common=True)] = None,
    agent: Annotated[
        str | None, Option(help="The agent whose memories are used.", is_common=True, complete=complete_agent)
    ] = None,
    user: Annotated[str | None, Option(help="The agent's end user whose memories are used.", is_common=True)] = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON document.", is_common=True)] = False,
) -> None:
    """Declare the common options; only the signature is used."""


def build_command(
    function: Callable[..., None],
    path: str,
    listed_by: str = "",
    make_run: Callable[[Mapping[str, object], Printer, ExitStack], Run] = Run,
) -> click.Command:
    """Return what Click runs: it takes all options, runs the command and turns errors into exit codes.

    The last line of the function's docstring is an example. `listed_by` is the command that lists the ids it takes.
    An option of the function takes the place of a common one with the same name.
    """
    declared = _parameters(function)[1:]
    own = [build_parameter(each) for each in declared]
    taken = {name for each in own for name in each.opts if name.startswith("--")}
    common = [each for each in map(build_parameter, _parameters(_common_options)) if not taken & {*each.opts}]
    has_user = any(each.name == "user" for each in common)

    def callback(
        url: str | None, tenant: str | None, as_json: bool, agent: str | None = None, **arguments: Any
    ) -> None:
        try:
            flags, given = _decode({"url": url, "tenant": tenant, "agent": agent}), _decode(arguments)
            user = given.pop("user", None) if has_user else None
            caller = Caller(actor=CLI, user=None if user is None else check_user(user))
            with use_caller(caller), ExitStack() as closing:
                function(make_run(flags, pick_printer(as_json=as_json), closing), **given)
            if sys.stdout is not None:
                sys.stdout.flush()
        except WellkeptError as error:
            click.secho(safe(" ".join(str(error).split())), fg="red", err=True)
            if (hint := _hint(error, listed_by)) and sys.stderr is not None and sys.stderr.isatty():
                # Only for people: a program reads one sentence.
                click.secho(hint, dim=True, err=True)
            raise click.exceptions.Exit(REFUSED) from error
        except KeyboardInterrupt as error:
            raise click.exceptions.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:
            # The reader closed the pipe, as `head` does.
            _detach_output()
            raise click.exceptions.Exit(0) from error
        except OSError as error:
            if error.errno not in UNWRITABLE or error.filename is not None:
                raise
            _detach_output()
            click.secho(f"The output cannot be written ({error.strerror}).", fg="red", err=True)
            raise click.exceptions.Exit(REFUSED) from error

    about, _, example = inspect.cleandoc(function.__doc__ or "").rpartition("\n\nExample: ")
    # Lists of commands show the first sentence.
    short = f"{' '.join(SENTENCE_END.split(about)[0].split())}."
    epilog = f"Example: {example}"
    name = path.rpartition(" ")[2]
    return HelpfulCommand(name, callback=callback, params=[*own, *common], help=about, short_help=short, epilog=epilog)


def _detach_output() -> None:
    """Redirect standard output to the null device, so that the interpreter's last flush succeeds."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _hint(error: WellkeptError, listed_by: str) -> str:
    """Suggest what to try next."""
    if isinstance(error, NotFound) and listed_by:
        return f"To see what there is: wellkept {listed_by}"
    if isinstance(error, StoreBusy):
        return "If it stays like this, look which other program has the store open."
    if isinstance(error, StoreError):
        return "To see what is wrong with the store: wellkept doctor"
    if isinstance(error, ModelError):
        return "To see whether models and embedder answer: wellkept doctor --online"
    return ""


def optional_module(module: str, *, needs: str, extra: str) -> ModuleType:
    """Import a module that needs optional packages. Raises: Invalid, which says what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "wellkept":
            # A part of wellkept itself is missing.
            raise
        raise Invalid(f"{needs} needs more packages; {advise_install(extra)}") from error


def _decode(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Decode arguments as UTF-8 when the locale is ASCII and Python kept the bytes as surrogates. Raises: Invalid."""
    return {name: _decode_value(name, value) for name, value in arguments.items()}


def _decode_value(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_decode_value(name, each) for each in value]
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
    """Return the parameters of a function as keywords; `**options: Unpack[…]` gives one for each key, with None."""
    hints = get_type_hints(function, include_extras=True)
    found: list[inspect.Parameter] = []
    for each in inspect.signature(function).parameters.values():
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            options = get_type_hints(get_args(hints[each.name])[0], include_extras=True)
            found += [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
                for name, hint in options.items()
            ]
        else:
            found.append(each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY))
    return found
