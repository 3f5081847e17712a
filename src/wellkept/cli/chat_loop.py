"""The conversation with an agent, at a terminal or through a pipe, and its slash commands.

At a terminal the conversation goes on after an answer failed; in a pipe the program ends. The arrow keys offer the
prompts of the session from the store; no other file keeps what was typed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

from wellkept.agent import AgentRunner
from wellkept.cli.commands.context import render_call
from wellkept.cli.commands.memories import list_memories_of, read_states, render_remembered
from wellkept.cli.commands.recall import render_explanation, render_hits
from wellkept.cli.output import Output, Styled, confirm
from wellkept.cli.run import Run
from wellkept.cli.text import json_record, mark, safe
from wellkept.errors import Invalid, NotFound, WellkeptError
from wellkept.memory.similar import find_lookalikes
from wellkept.model import AgentAnswer, AgentQuestion, Delta, Image, RunEvent, ToolUse
from wellkept.prompt.rules_images import MAX_IMAGE_BYTES, check_image

PROMPT = "you> "
CANCELLED = "Cancelled; nothing of this turn was kept."
NOT_KEPT = "Nothing of this turn was kept."
NOTHING_YET = "Nothing was asked yet in this conversation; ask something first."
MAX_HISTORY = 200
"""Prompts the arrow keys offer."""

MAX_LINE_BYTES = 1_000_000
MAX_LISTED = 20


@dataclass(slots=True, kw_only=True)
class Chat:
    """The state of a conversation."""

    run: Run
    runner: AgentRunner
    loop: asyncio.Runner
    session_id: str | None  # None until the first answer
    prompt: str = ""  # the last one with an answer
    asked_at: datetime | None = None
    answer: AgentAnswer | None = None

    def ask(self, prompt: str, images: Sequence[Image] = ()) -> None:
        """Ask, and show the answer as it comes. Raises: WellkeptError; KeyboardInterrupt when it is cancelled."""
        question = AgentQuestion(
            owner=self.run.memory.owner, prompt=prompt, session_id=self.session_id, images=tuple(images)
        )
        asked_at = self.run.store.now()
        try:
            self.answer = self.loop.run(self.runner.run(question, self._show))
        finally:
            # Completes what was streamed, also if the rest never comes.
            self.run.show(Output())
        self.session_id, self.prompt, self.asked_at = self.answer.session_id, prompt, asked_at
        self.run.show(_render_answer(self.answer))
        # The next program in a pipe waits for the whole answer.
        if sys.stdout is not None:
            sys.stdout.flush()

    async def _show(self, event: RunEvent) -> None:
        if isinstance(event, Delta):
            self.run.printer.stream(event.text)
        else:
            self.run.show(_render_tool(event))


def converse(
    run: Run, first: str | None, *, session: str | None, images: Sequence[Path] = (), is_once: bool = False
) -> None:
    """Answer the first prompt, if it is given, and at a terminal more until the user leaves.

    Without a first one, prompts are also read from a pipe. `images` go with the first one.

    Raises: Invalid; WellkeptError when there is no model; in a pipe also when an answer fails.
    """
    if first is not None and not first.strip():
        raise Invalid("The message is blank; say what the agent should answer.")
    runner = AgentRunner(run.store)
    model = runner.model_for(run.memory.owner)
    with asyncio.Runner() as loop:
        chat = Chat(run=run, runner=runner, loop=loop, session_id=session)
        shown = [_read_image(path, number) for number, path in enumerate(images, 1)]
        if first is not None and (is_once or not run.has_terminal):
            _handle_line(chat, first, shown)
        elif run.has_terminal:
            run.show(_render_greeting(run.memory.owner.agent, model, session))
            _converse_at_terminal(chat, first, shown)
        else:
            for line in _read_lines():
                if not _handle_line(chat, line):
                    return


def _converse_at_terminal(chat: Chat, first: str | None, images: Sequence[Image]) -> None:
    if first is not None and not _handle_typed_line(chat, first, images):
        return
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
        if not _handle_typed_line(chat, line):
            return
        if readline is not None and readline.get_current_history_length() > MAX_HISTORY:
            readline.remove_history_item(0)


def _handle_typed_line(chat: Chat, line: str, images: Sequence[Image] = ()) -> bool:
    """Handle a line; say so if it is cancelled or fails, and let the conversation go on."""
    try:
        return _handle_line(chat, line, images)
    except KeyboardInterrupt:
        chat.run.printer.note(CANCELLED)
    except WellkeptError as error:
        is_turn = bool(line.strip()) and not is_command(line)
        sentence = " ".join(str(error).split()) + (f" {NOT_KEPT}" if is_turn else "")
        chat.run.printer.note("")
        click.secho(safe(sentence), fg="red", err=True)
    return True


def _handle_line(chat: Chat, line: str, images: Sequence[Image] = ()) -> bool:
    """Answer a prompt or run a slash command; return False if the conversation is over. Raises: WellkeptError."""
    line = line.strip()
    if is_command(line):
        return _run_slash(chat, line)
    if line:
        # Two slashes: a prompt that begins with one.
        chat.ask(line[1:] if line.startswith("//") else line, images)
    return True


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Slash:
    """One slash command."""

    run: Callable[[Chat, str], None]
    takes: str
    about: str


def is_command(line: str) -> bool:
    """Return True if the line is a slash command.

    >>> is_command("/help"), is_command("//etc/hosts"), is_command("Hi")
    (True, False, False)
    """
    line = line.strip()
    return line.startswith("/") and not line.startswith("//")


def _run_slash(chat: Chat, line: str) -> bool:
    """Run a slash command; return False if it ends the conversation. Raises: WellkeptError."""
    name, _, rest = line.strip().removeprefix("/").partition(" ")
    if name in LEAVING:
        return False
    command = SLASHES.get(name)
    if command is None:
        close = get_close_matches(name, SLASHES, n=1)
        hint = f"did you mean /{close[0]}?" if close else "/help lists the commands."
        raise Invalid(f"There is no command /{name[:40]}; {hint}")
    command.run(chat, rest.strip())
    return True


def _help(chat: Chat, _: str) -> None:
    lines = [f"/{name} {command.takes}".ljust(18) + command.about for name, command in SLASHES.items()]
    chat.run.printer.note("\n".join([*lines, "/quit".ljust(18) + "leave; so does Ctrl-D. Ctrl-C cancels an answer."]))


def _memories(chat: Chat, words: str) -> None:
    memory = chat.run.memory
    found = memory.search(words, limit=MAX_LISTED) if words else memory.list(limit=MAX_LISTED)
    none = "No memory contains that." if words else "Nothing is remembered yet."
    chat.run.show(list_memories_of(chat.run, found, if_empty=none))


def _why(chat: Chat, id: str) -> None:
    answer = _last_answer(chat)
    memory, run = chat.run.memory, chat.run
    if id:
        run.show(render_explanation(memory.explain(chat.prompt, id, as_of=chat.asked_at)))
        return
    recalled = ", ".join(f"{item.id} ({item.block})" for item in answer.recalled) or "nothing out of memory"
    run.printer.note(f"The model was shown: {recalled}. This is how recall scores your message:")
    run.show(render_hits(memory.recall(chat.prompt, as_of=chat.asked_at), is_explained=True))


def _context(chat: Chat, _: str) -> None:
    chat.run.show(render_call(chat.run.memory.prompts.get(_last_answer(chat).call_id)))


def _remember(chat: Chat, text: str) -> None:
    memory = chat.run.memory.remember(text, session_id=chat.session_id)
    chat.run.show(
        render_remembered(read_states(chat.run, [memory])[0], find_lookalikes(chat.run.memory.review.similar, memory))
    )


def _forget(chat: Chat, id: str) -> None:
    if not id:
        raise Invalid("Say which memory to forget, such as /forget m-7; /memories lists them.")
    chat.run.memory.forget(id)
    chat.run.show(confirm("Forgotten", id))


def _session(chat: Chat, _: str) -> None:
    none = "This conversation has no id before its first answer."
    chat.run.printer.note(none if chat.session_id is None else chat.session_id)


def _last_answer(chat: Chat) -> AgentAnswer:
    if chat.answer is None:
        raise Invalid(NOTHING_YET)
    return chat.answer


LEAVING = ("quit", "exit", "q")
SLASHES: Mapping[str, Slash] = {
    "memories": Slash(run=_memories, takes="[WORDS]", about="list memories, or those that contain these words"),
    "why": Slash(run=_why, takes="[ID]", about="why was this recalled for the last message, or why was ID not?"),
    "context": Slash(run=_context, takes="", about="what the model saw at the last message, and what it cost"),
    "remember": Slash(run=_remember, takes="TEXT", about="keep a note"),
    "forget": Slash(run=_forget, takes="ID", about="delete a memory for good"),
    "session": Slash(run=_session, takes="", about="the id of this conversation, to continue it later"),
    "help": Slash(run=_help, takes="", about="this list"),
}


def _render_greeting(agent: str, model: str, session_id: str | None) -> Output:
    """Render the first line of a conversation, for people only."""
    going_on = f", continuing {session_id}" if session_id is not None else ""
    about = f" by {model}{going_on}. /help lists commands."
    return Output(blocks=[Styled(spans=((agent, "cyan"), (about, "dim")))])


def _render_tool(use: ToolUse) -> Output:
    """Render the use of a tool, for people only; others get the answer."""
    result = (f"{mark(use.is_ok)} ", "green" if use.is_ok else "red")
    return Output(blocks=[Styled(spans=(result, (use.name, "dim")))])


def _render_answer(answer: AgentAnswer) -> Output:
    """Render the end of an answer; its text was streamed."""
    recalled, tokens = len(answer.recalled), answer.usage.input_tokens + answer.usage.output_tokens
    parts = [f"{recalled} from memory" if recalled else "", f"{tokens:,} tokens" if tokens else "", answer.session_id]
    return Output(
        json=json_record(answer) | {"tools": [{"name": use.name, "ok": use.is_ok} for use in answer.tools]},
        lines=[""],
        blocks=[Styled(" · ".join(part for part in parts if part), "dim")],
    )
