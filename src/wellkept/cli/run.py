"""Parts shared by all commands: five options, settings and store, output, error handling and exit codes.

A command is a function whose first argument is its `Run`; `parameters` makes options of the others, and `build_command`
adds the five common ones. `app.COMMANDS` says where it stands.
"""

from __future__ import annotations

import errno
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
from typing import TYPE_CHECKING, Annotated, Any

import click

import wellkept
from wellkept.caller import CLI, Caller, current_caller, use_caller
from wellkept.cli.options import complete_agent, drop_missing
from wellkept.cli.output import Output, Printer, ProgressBar, pick_printer, safe
from wellkept.cli.parameters import HelpfulCommand, build_parameters, read_docstring
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
    def named_agent(self) -> str | None:
        """The agent given on the command line, if there is one."""
        return None if self.flags["agent"] is None else str(self.flags["agent"])

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
    run: Run,
    url: str | None = None,
    tenant: str | None = None,
    agent: Annotated[str | None, complete_agent] = None,
    user: str | None = None,
    json: bool = False,
) -> None:
    """Declare the common options; only the signature and these lines are used.

    --url: The store, such as sqlite:///notes.db.
    --tenant: The tenant whose agents are used.
    --agent: The agent whose memories are used.
    --user: The agent's end user whose memories are used.
    --json: Print one JSON document."""


def build_command(function: Callable[..., None], path: str, listed_by: str = "") -> click.Command:
    """Return what Click runs: it takes all options, runs the command and turns errors into exit codes.

    `listed_by` is the command that lists the ids it takes. An option of the function takes the place of a common one
    with the same name.
    """
    own = build_parameters(function)
    taken = {name for each in own for name in each.opts if name.startswith("--")}
    common = [each for each in build_parameters(_common_options, is_common=True) if not taken & {*each.opts}]

    def callback(**arguments: Any) -> None:
        try:
            given = {name: _decode(name, value) for name, value in arguments.items()}
            shared = {each.name: given.pop(each.name) for each in common if each.name}
            with ExitStack() as closing:
                function(_start(shared, closing), **given)
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

    about, example = read_docstring(function)
    # Lists of commands show the first sentence.
    short = f"{' '.join(SENTENCE_END.split(about)[0].split())}."
    name = path.rpartition(" ")[2]
    return HelpfulCommand(
        name, callback=callback, params=[*own, *common], help=about, short_help=short, epilog=f"Example: {example}"
    )


def _start(shared: dict[str, Any], closing: ExitStack) -> Run:
    """Return the run of a command, whose caller is set until `closing`. Raises: Invalid."""
    flags = {name: shared.get(name) for name in ("url", "tenant", "agent")}
    outer: Run | None = click.get_current_context().obj
    user = shared.get("user")
    if user is None and outer is not None:
        user = current_caller().user
    closing.enter_context(use_caller(Caller(actor=CLI, user=None if user is None else check_user(user))))
    run = Run(flags, pick_printer(as_json=shared["json"]), closing)
    if outer is not None and any(flags.values()):
        run.flags = outer.flags | drop_missing(flags)
    elif outer is not None:
        # A line of a chat or of the demo.
        run.settings, run.store = outer.settings, outer.store
    return run


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


def _decode(name: str, value: Any) -> Any:
    """Decode arguments as UTF-8 when the locale is ASCII and Python kept the bytes as surrogates. Raises: Invalid."""
    if isinstance(value, list):
        return [_decode(name, each) for each in value]
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
