"""Talking to an agent by the program: at a terminal with keys that are pressed, through pipes, and in one go."""

from __future__ import annotations

import base64
import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.cli.program import ANSI, Program
from tests.server.live import client_of, serving
from wellkept import Settings, Wellkept
from wellkept.testing.fake_model import ModelServer, breaks_off, calls, status, talks, trickles

GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00,"
SECONDS = 90.0
PATIENCE = 10.0  # before a key is pressed again
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"


@pytest.fixture(scope="module")
def module_endpoint() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def endpoint(module_endpoint: ModelServer) -> ModelServer:
    module_endpoint.requests.clear()
    module_endpoint.script.clear()
    module_endpoint.usual = talks("Tabs", ".")
    return module_endpoint


@pytest.fixture
def quick(tmp_path: Path) -> Program:
    """The program without its start-up; it has no terminal of its own."""
    return Program(tmp_path, "wellkept.agent.loop", "wellkept.cli.commands.chat")


@pytest.fixture
def model(endpoint: ModelServer) -> dict[str, str]:
    """The variables that tell the program where its model is."""
    return {"OPENAI_MODEL": "small", "OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "sk-x"}


class Typist:
    """Somebody at a terminal: types, and waits for what is shown."""

    def __init__(self, program: Program, *arguments: str, **variables: str) -> None:
        self._ours, theirs = pty.openpty()
        environment = program.environment(TERM="xterm-256color", TTY=os.ttyname(theirs), **variables)
        line = 'exec <"$TTY" >"$TTY" 2>&1; exec "$@"'  # opened by the first of a session, it is its terminal
        self._process = subprocess.Popen(
            ["sh", "-c", line, "sh", *program.command, *arguments],
            cwd=program.folder,
            env=environment,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._theirs = theirs  # kept open: there is a terminal also before the program has found it
        self._read = b""
        self._taken = 0  # characters of what is shown

    def sees(self, text: str) -> str:
        """Waits until this is shown, and takes all up to it."""
        deadline = time.monotonic() + SECONDS
        while text not in self._shown():
            assert time.monotonic() < deadline, f"waited for {text!r} and saw {self._shown()!r}"
            if not self._reads(0.1):
                assert self._process.poll() is None, f"ended before {text!r}; saw {self._shown()!r}"
        seen = self._shown().partition(text)[0] + text
        self._taken += len(seen)
        return seen

    def types(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def interrupts(self, until: str) -> str:
        """Presses Ctrl-C until this is shown, as anybody would, when all that was typed has been shown.

        Python's line reading notices the key only while it waits for one, and readline not at all when the terminal
        throws away, for that key, what readline has already seen coming: both take microseconds nobody's fingers hit.
        """
        deadline = time.monotonic() + SECONDS
        while until not in self._shown():
            assert time.monotonic() < deadline, f"interrupted, waited for {until!r} and saw {self._shown()!r}"
            self.types(CTRL_C)
            pause = time.monotonic() + PATIENCE
            while until not in self._shown() and time.monotonic() < pause:
                self._reads(0.1)
        return self.sees(until)

    def _shown(self) -> str:
        """What was shown and not taken yet; read as a whole, for it may come in the middle of a letter or a colour."""
        return ANSI.sub("", self._read.decode(errors="replace"))[self._taken :]

    def _reads(self, seconds: float) -> bool:
        """Whether something was shown within this time."""
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        self._read += os.read(self._ours, 65536)
        return True

    def ended(self) -> int:
        """How the program ended, having been left to read the rest."""
        deadline = time.monotonic() + SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            if select.select([self._ours], [], [], 0.05)[0]:
                os.read(self._ours, 65536)
        return self._process.wait(SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._ours)
        os.close(self._theirs)


def stored(program: Program, agent: str = "default") -> list[list[tuple[str, str]]]:
    """What the agent's conversations say."""
    with Wellkept(f"sqlite:///{program.folder / 'notes.db'}", settings=Settings()) as store:
        memory = store.agent(agent)
        return [
            [(m.role.value, m.content) for m in memory.sessions.messages(each.id)] for each in memory.sessions.list()
        ]


ANSWER = "## Plan\n\n**Tabs** it is, see [the guide](https://evil.example) and <b>this</b>:\n\n- one\n- two"


def test_an_answer_is_shown_as_it_was_written(
    program: Program, quick: Program, model: dict[str, str], endpoint: ModelServer
) -> None:
    endpoint.script.extend([talks(*(ANSWER[place : place + 7] for place in range(0, len(ANSWER), 7))), talks(ANSWER)])

    with Typist(program, "chat", "--once", "How?", **model) as someone:
        shown = someone.sees("\r\ns-")
    piped = quick.ok("chat", "--once", "How?", **model)

    assert ANSWER in shown.replace("\r\n", "\n")
    assert piped == f"{ANSWER}\n"


def test_a_conversation_at_a_terminal(program: Program, model: dict[str, str], endpoint: ModelServer) -> None:
    endpoint.script.extend([calls("remember", text="Likes tabs"), talks("Not", "ed \x1b[31mred.")])

    with Typist(program, "chat", "--session", "monday", **model) as someone:
        assert "default by small, continuing monday" in someone.sees("you> ")
        someone.types("I like tabs\r")
        shown = someone.sees("you> ")
        assert "✓ remember" in shown
        assert r"Noted \x1b[31mred." in shown, "a model must not colour the terminal"
        someone.types("/memory list\r")
        assert "Likes tabs" in someone.sees("you> ")
        someone.types("What do I like?\r")
        assert "from memory · monday" in someone.sees("you> ")
        someone.types("/recall 'What do I like?' --explain\r")
        assert "similarity" in someone.sees("you> ")
        someone.types("/memory explain 'What do I like?' --id m-99\r")
        assert "missing" in someone.sees("you> ").partition("m-99")[2]
        someone.types("/session prompts --session monday\r")
        assert "monday" in someone.sees("you> ").partition("--session monday")[2]
        someone.types("/memory forget m-1\r")
        someone.sees("you> ")
        someone.types("/remember 'Likes coffee'\r")
        assert "Remembered m-7" in someone.sees("you> ")
        someone.types("/memory list --agent nobody\r")
        assert "Agent nobody has none" in re.sub(r"\s+", " ", someone.sees("you> "))
        someone.types("/rememer x\r")
        assert "There is no command 'rememer'. Did you mean 'remember'?" in re.sub(r"\s+", " ", someone.sees("you> "))
        someone.types("/memory forget m-1\r")
        assert "There is no such memory." in someone.sees("you> ")
        someone.types("/help\r")
        assert "/memory list" in someone.sees("you> ").partition("/help")[2]
        someone.types("/quit\r")
        assert someone.ended() == 0

    assert [role for role, _ in stored(program)[0]] == ["user", "assistant"] * 2
    assert stored(program)[0][0] == ("user", "I like tabs")


def test_the_first_message_can_be_an_argument(program: Program, model: dict[str, str], endpoint: ModelServer) -> None:
    endpoint.script.extend([status(401), talks("Two."), talks("One.")])

    with Typist(program, "chat", "hi", **model) as someone:
        assert "Nothing of this turn was kept." in someone.sees("you> ")
        someone.types("again\r")
        assert "Two." in someone.sees("you> ")
        someone.types(CTRL_D)
        assert someone.ended() == 0
    with Typist(program, "chat", "hi", **model) as someone:
        assert "One." in someone.sees("you> ")
        someone.types(UP + "\r")
        assert "Tabs." in someone.sees("you> ")
        someone.types(CTRL_D)
        assert someone.ended() == 0

    last, first = stored(program)
    assert first == [("user", "again"), ("assistant", "Two.")]
    assert last == [("user", "hi"), ("assistant", "One."), ("user", "hi"), ("assistant", "Tabs.")]


def test_in_a_pipe_a_first_message_is_the_only_one(
    quick: Program, model: dict[str, str], endpoint: ModelServer
) -> None:
    assert quick.ok("chat", "hi", "--session", "s-1", given="more\n", **model) == "Tabs.\n"
    assert quick.ok("chat", "-", "--session", "s-1", given="more", **model) == "Tabs.\n"
    refused = quick("chat", " ", **model)

    assert stored(quick) == [[("user", "hi"), ("assistant", "Tabs."), ("user", "more"), ("assistant", "Tabs.")]]
    assert (refused.code, refused.err) == (1, "The message is blank; say what the agent should answer.\n")


def test_answers_that_are_cancelled_or_fail_are_not_kept_and_the_conversation_goes_on(
    program: Program, model: dict[str, str], endpoint: ModelServer
) -> None:
    with Wellkept(f"sqlite:///{program.folder / 'notes.db'}", settings=Settings()) as store:
        store.agent().log_turn("s-1", user="Said before", assistant="Yes.")
    endpoint.script.extend([trickles("Half an answer"), status(401), breaks_off("Half")])

    with Typist(program, "chat", "--session", "s-1", **model) as someone:
        someone.sees("you> ")
        someone.types("half a quest")
        someone.sees("half a quest")
        someone.interrupts("you> ")
        someone.types("Go on\r")
        someone.sees("Half an answer")
        someone.types(CTRL_C)
        assert "Cancelled; nothing of this turn was kept." in someone.sees("you> ")
        for _ in range(2):
            someone.types("Hello\r")
            someone.sees("Nothing of this turn was kept.")
            someone.sees("you> ")
        someone.types(UP * 4 + "\r")  # Hello, Hello or once, Go on, Said before
        someone.sees("Tabs.")
        someone.sees("you> ")
        someone.types(CTRL_D)
        assert someone.ended() == 0

    (_, _, again, answer), *others = stored(program)
    assert (others, answer) == ([], ("assistant", "Tabs."))
    assert again[1] in ("Said before", "Go on")
    left = {path.name for path in program.folder.rglob("*") if path.is_file()}
    assert not [name for name in left if "history" in name], "what was typed is in the store and nowhere else"


def test_in_a_pipe_each_line_is_a_prompt(quick: Program, model: dict[str, str], endpoint: ModelServer) -> None:
    endpoint.script.extend([talks("One", "."), talks("Two.")])

    ended = quick("chat", "--session", "s-1", given="first\n\n/remember 'Likes tea'\nsecond\n/quit\nthird\n", **model)

    assert (ended.code, ended.err) == (0, "")
    first, kept, second = ended.out.splitlines()
    assert (first, second) == ("One.", "Two.")
    assert kept.endswith("Likes tea")
    assert stored(quick) == [[("user", "first"), ("assistant", "One."), ("user", "second"), ("assistant", "Two.")]]
    assert endpoint.bodies[1]["messages"][1]["content"] == "first", "it is one conversation"


def test_in_a_pipe_a_failure_ends_it(quick: Program, model: dict[str, str], endpoint: ModelServer) -> None:
    endpoint.usual = status(401)

    ended = quick("chat", given="first\nsecond\n", **model)

    assert (ended.code, ended.out) == (1, "")
    assert "check openai_api_key" in ended.err
    assert len(endpoint.requests) == 1


def test_ask_answers_once_also_about_images_and_as_json(
    quick: Program, model: dict[str, str], endpoint: ModelServer
) -> None:
    (quick.folder / "dot.gif").write_bytes(GIF)
    (quick.folder / "note.txt").write_text("no image")

    assert quick.ok("chat", "--once", "Tabs or spaces?", "--session", "s-1", **model) == "Tabs.\n"
    told = quick("chat", "--once", "-", "--session", "s-1", "--json", given="And how wide?", **model).json
    assert (told["response"], told["session_id"], told["agent"]) == ("Tabs.", "s-1", "default")
    assert told["tools"] == []
    assert told["usage"]["requests"] == 1
    quick.ok("chat", "--once", "What is this?", "--image", "dot.gif", **model)
    assert endpoint.bodies[-1]["messages"][-1]["content"][1]["image_url"]["url"].startswith("data:image/gif")
    refused = [
        quick("chat", "--once", "What is this?", "--image", name, **model) for name in ("note.txt", "missing.png")
    ]
    assert [each.code for each in refused] == [1, 1]
    assert "PNG, JPEG, GIF or WebP" in refused[0].err
    assert "cannot be read" in refused[1].err
    assert len(endpoint.requests) == 3


def test_without_a_model_it_says_what_to_set(quick: Program) -> None:
    for ended in quick.all(["chat"], ["chat", "--once", "Hello"]):
        assert ended.code == 1
        assert "OPENAI_MODEL" in ended.err
        assert len(ended.err.splitlines()) == 1


@pytest.mark.proves("T9")
def test_every_face_stores_the_same_session(
    program: Program, quick: Program, model: dict[str, str], endpoint: ModelServer
) -> None:
    """`/agent/run`, `/agent/vision`, the terminal and the command line: one component, one transcript, one prompt."""
    endpoint.usual = lambda handler, body: talks("Tabs", ", then.")(handler, body)
    prompts = ["Tabs or spaces?", "And how wide?"]
    seen: dict[str, list[Any]] = {}

    def noted(face: str) -> None:
        seen[face] = [_without_images(body["messages"]) for body in endpoint.bodies]
        endpoint.requests.clear()

    for prompt in prompts:
        quick.ok("chat", "--once", prompt, "--agent", "asked", "--session", "asked", **model)
    noted("asked")
    with Typist(program, "chat", "--agent", "chatted", "--session", "chatted", **model) as someone:
        for prompt in prompts:
            someone.sees("you> ")
            someone.types(f"{prompt}\r")
        someone.sees("then.")
        someone.sees("you> ")
        someone.types(CTRL_D)
        assert someone.ended() == 0
    noted("chatted")
    settings = Settings(openai_model="small", openai_base_url=endpoint.url)
    with Wellkept(f"sqlite:///{program.folder / 'notes.db'}", settings=settings) as store:
        with serving(store) as address, client_of(address) as client:
            for prompt in prompts:
                client.post("/agent/run", json={"agent": "run", "session_id": "run", "prompt": prompt})
            noted("run")
            image = base64.b64encode(GIF).decode()
            for prompt in prompts:
                body = {"agent": "looked", "session_id": "looked", "prompt": prompt, "images": [image]}
                client.post("/agent/vision", json=body)
            noted("looked")
        transcripts = {
            face: [(each.position, each.role, each.content) for each in store.agent(face).sessions.messages(face)]
            for face in seen
        }
        episodes = {face: [(each.role, each.text) for each in store.agent(face).list(kind="episode")] for face in seen}

    assert len(transcripts["asked"]) == 4
    assert len(episodes["asked"]) >= 3
    for face in seen:
        assert transcripts[face] == transcripts["asked"], face
        assert episodes[face] == episodes["asked"], face
        assert unnamed(seen[face], face) == unnamed(seen["asked"], "asked"), face


def _without_images(messages: list[Any]) -> list[Any]:
    return [
        {**each, "content": each["content"][0]["text"] if isinstance(each["content"], list) else each["content"]}
        for each in messages
    ]


def unnamed(bodies: list[Any], face: str) -> str:
    """The prompts without what differs from run to run: whose they are, and when."""
    text = str(bodies).replace(f"You are {face}.", "You are ….")
    return re.sub(r"now: \w{3} [\d-]+ [\d:]+ UTC", "now", text)
