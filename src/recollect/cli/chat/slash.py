"""What can be done in a conversation besides talking: lines that begin with a slash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from recollect.cli.memories import as_shown
from recollect.cli.view import Shown
from recollect.errors import Invalid
from recollect.model import AgentAnswer
from recollect.tools.lookalikes import lookalikes

if TYPE_CHECKING:
    from recollect.cli.chat.talk import Talk

NOTHING_YET = "Nothing was asked yet in this conversation; ask something first."
MOST_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Slash:
    """One command of a conversation."""

    obey: Callable[[Talk, str], None]
    takes: str
    about: str


def is_command(line: str) -> bool:
    """
    >>> is_command("/help"), is_command("//etc/hosts"), is_command("Hi")
    (True, False, False)
    """
    line = line.strip()
    return line.startswith("/") and not line.startswith("//")


def obey(talk: Talk, line: str) -> bool:
    """Do what a line with a slash says; whether the conversation goes on.

    Raises: RecollectError.
    """
    name, _, rest = line.strip().removeprefix("/").partition(" ")
    if name in LEAVING:
        return False
    command = COMMANDS.get(name)
    if command is None:
        close = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean /{close[0]}?" if close else "/help lists the commands."
        raise Invalid(f"There is no command /{name[:40]}; {hint}")
    command.obey(talk, rest.strip())
    return True


def _help(talk: Talk, _: str) -> None:
    lines = [f"/{name} {command.takes}".ljust(18) + command.about for name, command in COMMANDS.items()]
    talk.run.view.chat_note("\n".join([*lines, "/quit".ljust(18) + "leave; so does Ctrl-D. Ctrl-C cancels an answer."]))


def _memories(talk: Talk, words: str) -> None:
    memory = talk.run.memory
    found = memory.search(words, limit=MOST_LISTED) if words else memory.list(limit=MOST_LISTED)
    none = "Nothing holds that." if words else "Nothing is remembered yet."
    talk.run.view.memories(as_shown(talk.run, found), next_cursor=None, if_none=none)


def _why(talk: Talk, id: str) -> None:
    answer = _answered(talk)
    memory, view = talk.run.memory, talk.run.view
    if id:
        view.explained(memory.explain(talk.prompt, id, as_of=talk.asked_at))
        return
    shown = ", ".join(f"{item.id} ({item.block})" for item in answer.recalled) or "nothing out of memory"
    view.chat_note(f"The model was shown: {shown}. This is how your message weighs what there was:")
    view.hits(memory.recall(talk.prompt, as_of=talk.asked_at), is_explained=True)


def _context(talk: Talk, _: str) -> None:
    talk.run.view.context_call(talk.run.memory.context_call(_answered(talk).call_id))


def _remember(talk: Talk, text: str) -> None:
    memory = talk.run.memory
    kept = memory.remember(text, session_id=talk.session_id)
    shown = Shown(memory=kept, state=kept.state(talk.run.store.now()))
    talk.run.view.remembered(shown, lookalikes(memory, kept))


def _forget(talk: Talk, id: str) -> None:
    if not id:
        raise Invalid("Say which memory to forget, such as /forget m-7; /memories lists them.")
    talk.run.memory.forget(id)
    talk.run.view.forgotten(id)


def _session(talk: Talk, _: str) -> None:
    said = "This conversation has no id before its first answer."
    talk.run.view.chat_note(talk.session_id if talk.session_id is not None else said)


def _answered(talk: Talk) -> AgentAnswer:
    if talk.answer is None:
        raise Invalid(NOTHING_YET)
    return talk.answer


LEAVING = ("quit", "exit", "q")
COMMANDS: Mapping[str, Slash] = {
    "memories": Slash(obey=_memories, takes="[WORDS]", about="list what is remembered, or what holds these words"),
    "why": Slash(obey=_why, takes="[ID]", about="why was this recalled for the last message, or why was ID not?"),
    "context": Slash(obey=_context, takes="", about="what the model saw at the last message, and what it cost"),
    "remember": Slash(obey=_remember, takes="TEXT", about="keep a note"),
    "forget": Slash(obey=_forget, takes="ID", about="delete a memory for good"),
    "session": Slash(obey=_session, takes="", about="the id of this conversation, to go on with it later"),
    "help": Slash(obey=_help, takes="", about="this list"),
}
