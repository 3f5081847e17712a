"""A conversation with an agent, at a terminal or through a pipe.

At a terminal an answer that fails is told and the conversation goes on; in a pipe nobody would read that, and the
program ends. Prompts are offered again by the arrow keys from what the store holds of the session, and from nowhere
else: no file of ours keeps what was typed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType

import typer

from recollect.cli.chat.slash import is_command, obey
from recollect.cli.run import Run
from recollect.cli.view import safe
from recollect.errors import Invalid, NotFound, RecollectError
from recollect.model import AgentAnswer, AgentQuestion, Delta, Image, RunEvent
from recollect.policy.prompt.images import MAX_IMAGE_BYTES, checked_image
from recollect.runner import AgentRunner

PROMPT = "you> "
CANCELLED = "Cancelled; nothing of this turn was kept."
NOT_KEPT = "Nothing of this turn was kept."
MAX_OFFERED = 200
MAX_LINE_CHARS = 1_000_000


@dataclass(slots=True, kw_only=True)
class Talk:
    """Where a conversation stands."""

    run: Run
    runner: AgentRunner
    loop: asyncio.Runner
    session_id: str | None  # None until the first answer
    prompt: str = ""  # the last one that was answered
    asked_at: datetime | None = None
    answer: AgentAnswer | None = None

    def ask(self, prompt: str, images: Sequence[Image] = ()) -> None:
        """Ask, and show the answer as it comes.

        Raises: RecollectError; KeyboardInterrupt when it was cancelled.
        """
        question = AgentQuestion(
            owner=self.run.memory.owner, prompt=prompt, session_id=self.session_id, images=tuple(images)
        )
        asked_at = self.run.store.now()
        self.answer = self.loop.run(self.runner.run(question, self._show))
        self.session_id, self.prompt, self.asked_at = self.answer.session_id, prompt, asked_at
        self.run.view.answered(self.answer)

    async def _show(self, event: RunEvent) -> None:
        if isinstance(event, Delta):
            self.run.view.answer_piece(event.text)
        else:
            self.run.view.tool_used(event)


def ask_once(run: Run, prompt: str, *, session: str | None, images: Sequence[Path]) -> None:
    """Raises: RecollectError."""
    with asyncio.Runner() as loop:
        talk = Talk(run=run, runner=AgentRunner(run.store), loop=loop, session_id=session)
        talk.ask(prompt, [_image(path, number) for number, path in enumerate(images, 1)])


def converse(run: Run, *, session: str | None) -> None:
    """Raises: RecollectError when there is no model; in a pipe also when an answer fails."""
    runner = AgentRunner(run.store)
    model = runner.model_for(run.memory.owner)
    with asyncio.Runner() as loop:
        talk = Talk(run=run, runner=runner, loop=loop, session_id=session)
        if sys.stdin is not None and sys.stdin.isatty() and not run.view.is_document:
            run.view.chat_begun(run.memory.owner.agent, model, session)
            _at_a_terminal(talk)
        else:
            for line in _lines():
                if not _take(talk, line):
                    return


def _at_a_terminal(talk: Talk) -> None:
    """Until somebody leaves."""
    keyboard = _keyboard(talk)
    while True:
        try:
            line = input(PROMPT)
        except EOFError:
            print()
            return
        except KeyboardInterrupt:  # takes back what was typed, as in a shell
            print()
            continue
        try:
            if not _take(talk, line):
                return
        except KeyboardInterrupt:
            talk.run.view.chat_note(CANCELLED)
        except RecollectError as error:
            is_turn = bool(line.strip()) and not is_command(line)
            sentence = " ".join(str(error).split()) + (f" {NOT_KEPT}" if is_turn else "")
            talk.run.view.chat_note("")
            typer.secho(safe(sentence), fg=typer.colors.RED, err=True)
        if keyboard is not None and keyboard.get_current_history_length() > MAX_OFFERED:
            keyboard.remove_history_item(0)


def _take(talk: Talk, line: str) -> bool:
    """Do what a line says; whether the conversation goes on.

    Raises: RecollectError.
    """
    line = line.strip()
    if is_command(line):
        return obey(talk, line)
    if line:
        talk.ask(line[1:] if line.startswith("//") else line)  # two slashes: a prompt that begins with one
    return True


def _keyboard(talk: Talk) -> ModuleType | None:
    """Editing of lines, where Python has it; the prompts of the session are at hand."""
    try:
        readline = import_module("readline")
    except ImportError:  # Windows
        return None
    readline.clear_history()
    if talk.session_id is not None:
        with suppress(NotFound):
            for message in talk.run.memory.messages(talk.session_id, limit=MAX_OFFERED):
                if message.role.value == "user" and "\n" not in message.content:
                    readline.add_history(safe(message.content))
    return readline


def _lines() -> Iterator[str]:
    """Standard input, a prompt in each line.

    Raises: Invalid.
    """
    if sys.stdin is None:
        raise Invalid("There is no standard input to read prompts from.")
    for number, line in enumerate(iter(lambda: sys.stdin.buffer.readline(MAX_LINE_CHARS), b""), 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise Invalid(f"Line {number} of standard input is not UTF-8 text.") from None


def _image(path: Path, number: int) -> Image:
    """Raises: Invalid."""
    try:
        with path.open("rb") as file:
            return checked_image(file.read(MAX_IMAGE_BYTES + 1), number=number)
    except OSError as error:
        raise Invalid(f"The image {path} cannot be read: {error.strerror}.") from error
