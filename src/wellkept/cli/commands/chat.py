"""Talking to an agent, at a terminal or through a pipe; a line that begins with / is a command of the program.

At a terminal the conversation goes on after an answer failed; in a pipe the program ends. The arrow keys offer the
prompts of the session from the store; no other file keeps what was typed.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Unpack

import click

from wellkept.cli.options import ModelOptions, complete_session, read_text
from wellkept.cli.output import Output, Piped, Styled, json_record, mark, safe
from wellkept.cli.run import Run, optional_module
from wellkept.errors import Invalid, NotFound, WellkeptError
from wellkept.model import AgentAnswer, AgentQuestion, Delta, Image, RunEvent
from wellkept.prompt.rules_tokens import MAX_IMAGE_BYTES, check_image

if TYPE_CHECKING:
    from wellkept.agent import AgentRunner

PROMPT = "you> "
CANCELLED = "Cancelled; nothing of this turn was kept."
NOT_KEPT = "Nothing of this turn was kept."
LEAVING = ("/quit", "/exit", "/q")
HELP = """A line that begins with / is a command of wellkept on this agent, such as:
/memory list        what is remembered
/recall 'QUESTION'  what a question finds; /memory explain says why, or why not
/session prompts    what the model saw
/remember 'TEXT'    keep a note; /memory forget ID deletes one
/quit               leave; so does Ctrl-D. Ctrl-C cancels an answer."""
MAX_HISTORY = 200
"""Prompts the arrow keys offer."""

MAX_LINE_BYTES = 1_000_000


@dataclass(slots=True, kw_only=True)
class Chat:
    """The state of a conversation."""

    run: Run
    runner: AgentRunner
    loop: asyncio.Runner
    session_id: str | None  # None until the first answer

    def handle(self, line: str, images: Sequence[Image] = ()) -> None:
        """Answer a prompt, or run a command. Raises: WellkeptError; KeyboardInterrupt when it is cancelled."""
        line = line.strip()
        if line == "/help":
            self.run.printer.note(HELP)
        elif is_command(line):
            _run_command(self.run, line[1:])
        elif line:
            # Two slashes: a prompt that begins with one.
            self._ask(line[1:] if line.startswith("//") else line, images)

    def _ask(self, prompt: str, images: Sequence[Image]) -> None:
        """Ask, and show the answer as it comes."""
        owner = self.run.memory.owner
        question = AgentQuestion(owner=owner, prompt=prompt, session_id=self.session_id, images=tuple(images))
        try:
            answer = self.loop.run(self.runner.run(question, self._show))
        finally:
            # Completes what was streamed, also if the rest never comes.
            self.run.show(Output())
        self.session_id = answer.session_id
        self.run.show(_render_answer(answer))
        # The next program in a pipe waits for the whole answer.
        if sys.stdout is not None:
            sys.stdout.flush()

    async def _show(self, event: RunEvent) -> None:
        if isinstance(event, Delta):
            self.run.printer.stream(event.text)
        else:
            # For people only; others get the answer.
            result = (f"{mark(event.is_ok)} ", "green" if event.is_ok else "red")
            self.run.show(Output(blocks=[Styled(spans=(result, (event.name, "dim")))]))


def chat(
    run: Run,
    message: str | None = None,
    session: Annotated[str | None, complete_session] = None,
    once: bool = False,
    image: list[Path] | None = None,
    **options: Unpack[ModelOptions],
) -> None:
    """Talk to an agent, which answers with its memory. /help lists the commands, Ctrl-D leaves.

    Every turn is stored. In a pipe, each line of standard input is a message.

    message: The first message; - reads standard input.
    --session SESSION: The conversation to continue; by default a new one.
    --once: Answer the message, and end.
    --image FILE: An image that goes with the message; repeat for more.

    Example: wellkept chat 'Tabs or spaces?' --session monday"""
    if message is None and (once or image):
        raise click.BadParameter("--once and --image go with a message.")
    run.flags |= options
    agent = optional_module("wellkept.agent", needs="Running an agent", extra="agent")
    first = None if message is None else read_text(message)
    if first is not None and not first.strip():
        raise Invalid("The message is blank; say what the agent should answer.")
    runner: AgentRunner = agent.AgentRunner(run.store)
    model = runner.model_for(run.memory.owner)
    with asyncio.Runner() as loop:
        chat = Chat(run=run, runner=runner, loop=loop, session_id=session)
        shown = [_read_image(path, number) for number, path in enumerate(image or (), 1)]
        if first is not None and (once or not run.has_terminal):
            chat.handle(first, shown)
        elif run.has_terminal:
            going_on = f", continuing {session}" if session is not None else ""
            about = f" by {model}{going_on}. /help lists commands."
            run.show(Output(blocks=[Styled(spans=((run.memory.owner.agent, "cyan"), (about, "dim")))]))
            _converse_at_terminal(chat, first, shown)
        else:
            for line in _read_lines():
                if line.strip() in LEAVING:
                    return
                chat.handle(line)


def _converse_at_terminal(chat: Chat, first: str | None, images: Sequence[Image]) -> None:
    if first is not None:
        _handle_typed(chat, first, images)
    readline = _load_readline(chat)
    while True:
        try:
            line = input(PROMPT)
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            # Discards what was typed, as in a shell.
            print()
            continue
        if line.strip() in LEAVING:
            return
        _handle_typed(chat, line)
        if readline is not None and readline.get_current_history_length() > MAX_HISTORY:
            readline.remove_history_item(0)


def _handle_typed(chat: Chat, line: str, images: Sequence[Image] = ()) -> None:
    """Handle a line; say so if it is cancelled or fails, and let the conversation go on."""
    try:
        chat.handle(line, images)
    except KeyboardInterrupt:
        chat.run.printer.note(CANCELLED)
    except WellkeptError as error:
        sentence = " ".join(str(error).split()) + ("" if is_command(line) else f" {NOT_KEPT}")
        chat.run.printer.note("")
        click.secho(safe(sentence), fg="red", err=True)


def is_command(line: str) -> bool:
    """Return True if the line is a command of the program.

    >>> is_command("/memory list"), is_command("//etc/hosts"), is_command("Hi")
    (True, False, False)
    """
    line = line.strip()
    return line.startswith("/") and not line.startswith("//")


def _run_command(run: Run, line: str) -> None:
    """Run a command of the program on the store that is open. Raises: Invalid."""
    program = click.get_current_context().find_root().command
    try:
        program.main(shlex.split(line), prog_name="/", standalone_mode=False, obj=run)
    except click.ClickException as error:
        raise Invalid(error.format_message()) from error
    except ValueError as error:
        raise Invalid(f"The command cannot be read: {error}.") from error


def _load_readline(chat: Chat) -> ModuleType | None:
    """Enable line editing where Python supports it, with the prompts of the session as history."""
    try:
        readline = import_module("readline")
    # Windows has no readline.
    except ImportError:
        return None
    readline.clear_history()
    if chat.session_id is not None:
        with suppress(NotFound):
            for message in chat.run.memory.sessions.messages(chat.session_id, limit=MAX_HISTORY):
                if message.role.value == "user" and "\n" not in message.content:
                    readline.add_history(safe(message.content))
    return readline


def _read_lines() -> Iterator[str]:
    """Yield the lines of standard input, one prompt each. Raises: Invalid."""
    if sys.stdin is None:
        raise Invalid("There is no standard input to read prompts from.")
    for number, line in enumerate(iter(lambda: sys.stdin.buffer.readline(MAX_LINE_BYTES), b""), 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise Invalid(f"Line {number} of standard input is not UTF-8 text.") from None


def _read_image(path: Path, number: int) -> Image:
    """Raises: Invalid."""
    try:
        with path.open("rb") as file:
            return check_image(file.read(MAX_IMAGE_BYTES + 1), number=number)
    except OSError as error:
        raise Invalid(f"The image {path} cannot be read: {error.strerror}.") from error


def _render_answer(answer: AgentAnswer) -> Output:
    """Render the end of an answer; its text was streamed."""
    recalled, tokens = len(answer.recalled), answer.usage.input_tokens + answer.usage.output_tokens
    parts = [f"{recalled} from memory" if recalled else "", f"{tokens:,} tokens" if tokens else "", answer.session_id]
    document = json_record(answer) | {"tools": [{"name": use.name, "ok": use.is_ok} for use in answer.tools]}
    return Output(document, [Piped(""), Styled(" · ".join(part for part in parts if part), "dim")])
