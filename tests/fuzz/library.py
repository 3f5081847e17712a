"""Fuzz the library: no call, whatever its arguments, may end otherwise than normally or in an error of ours.

    python -m tests.fuzz.library --minutes 5 [--seed N] [--engine sqlite|postgres]
    python -m tests.fuzz.library --only 12       makes the calls of one round again

Every public method is found by introspection. A round is one new tenant, whose state grows odder with each call.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import logging
import os
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import chdir, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Unpack, get_args, get_origin, get_type_hints

from tests.fuzz.values import ODD, Maker, OwnError
from tests.postgres_server import PostgresServer
from wellkept import Settings, StoreError, Wellkept, WellkeptError

CALLS = 150
"""Calls of a round."""

PATIENCE = 20.0
"""Seconds after which a call is said to hang."""

LEFT_OUT = {"close", "captured"}
"""Methods that end the store, or that call what they are given."""

Views = Callable[[], Sequence[Any]]


@dataclass
class Outcome:
    """What came of the calls."""

    calls: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    is_shown: bool = False

    def fail(self, failure: str) -> None:
        self.failures.append(failure)
        if self.is_shown:
            print(failure, flush=True)


@dataclass(frozen=True)
class Method:
    """A public method, with the annotations of its arguments."""

    owner: str
    name: str
    call: Callable[..., Any]
    hints: dict[str, Any]
    required: frozenset[str]


def find_methods(view: Any) -> list[Method]:
    """Return the public methods of an object."""
    found = inspect.getmembers(type(view), callable)
    return [describe(view, name) for name, _ in found if not name.startswith("_") and name not in LEFT_OUT]


def describe(view: Any, name: str) -> Method:
    method = getattr(view, name)
    original = inspect.unwrap(getattr(method, "__func__", method))
    hints, parameters = get_type_hints(original, include_extras=True), inspect.signature(method).parameters
    rest = [hint for each, hint in hints.items() if get_origin(hint) is Unpack]
    named = {each: hints.get(each, Any) for each, one in parameters.items() if one.kind is not one.VAR_KEYWORD}
    for hint in rest:
        named |= get_type_hints(get_args(hint)[0], include_extras=True)
    required = {each for each, one in parameters.items() if one.default is one.empty and each in named}
    return Method(type(view).__name__, name, method, named, frozenset(required))


def run_round(views: Views, seed: int, outcome: Outcome, *, calls: int = CALLS) -> None:
    """Make the calls of a round, in an order that the seed decides."""
    maker = Maker(seed)
    for number in range(calls):
        view = maker.random.choice(views())
        method = maker.random.choice(find_methods(view))
        given = {
            name: maker.value(hint, name)
            for name, hint in method.hints.items()
            if name in method.required or maker.random.random() < 0.3
        }
        try_call(method, given, maker, outcome, f"round {seed}, call {number}")


def run_each(views: Views, seed: int, outcome: Outcome, *, share: float = 1.0, until: float = float("inf")) -> None:
    """Give each argument of each method every odd value, or a share of them, beside right ones."""
    maker = Maker(seed, oddness=0.0)
    for view in {type(view): view for view in views()}.values():
        for method in find_methods(view):
            for name in method.hints:
                for number, make in enumerate(ODD):
                    if time.monotonic() < until and maker.random.random() < share:
                        given = {each: maker.value(method.hints[each], each) for each in method.required}
                        try_call(method, {**given, name: make()}, maker, outcome, f"{name} = odd value {number}")


def try_call(method: Method, given: dict[str, Any], maker: Maker, outcome: Outcome, place: str) -> None:
    """Make a call and judge how it ends."""
    place = f"{place}: {method.owner}.{method.name}"
    started = time.monotonic()
    try:
        with watching() as logged:
            found = method.call(**given)
            found = asyncio.run(found) if inspect.iscoroutine(found) else found
            maker.keep(list(found) if isinstance(found, Iterator) else found)
        outcome.calls[method.name] += 1
        for line in logged:
            outcome.fail(f"{place} logged {line}\n    {show(given)}")
    except OwnError:
        pass
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  this is what is looked for
        outcome.calls[f"{method.name}: {type(error).__name__}"] += 1
        if not is_meant(error):
            lines = "".join(traceback.format_exception(error)[-14:])
            outcome.fail(f"{place}\n    {show(given)}\n{lines}")
    if time.monotonic() - started > PATIENCE:
        outcome.fail(f"{place} took {time.monotonic() - started:.0f} seconds\n    {show(given)}")


def is_meant(error: BaseException) -> bool:
    """Return True for an error of ours that names the cause. Nothing is wrong with the store, so that is none."""
    is_ours = isinstance(error, WellkeptError) and type(error) is not WellkeptError
    return is_ours and not (isinstance(error, StoreError) and error.__cause__ is not None)


@contextmanager
def watching() -> Iterator[list[str]]:
    """Collect what is logged as an error."""
    lines: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: lines.append(record.getMessage() + str(record.exc_info or ""))  # type: ignore[method-assign]
    log = logging.getLogger("wellkept")
    log.addHandler(handler)
    try:
        yield lines
    finally:
        log.removeHandler(handler)


def show(given: dict[str, Any]) -> str:
    shown = []
    for name, value in given.items():
        try:
            text = repr(value)
        except (Exception, RecursionError) as error:  # noqa: BLE001  odd values cannot be shown
            text = f"<{type(value).__name__}: {type(error).__name__}>"
        shown.append(f"{name}={text[:300]}")
    return ", ".join(shown).encode("utf-8", "backslashreplace").decode()


def fill(wellkept: Wellkept, name: str) -> Views:
    """Give a new tenant a few memories, and return the views of it."""
    tenant, ann = wellkept.tenant(name), wellkept.agent("ann", name)
    ann.remember("👍")
    ann.remember("Prefers tabs over spaces", tags=["food"], metadata={"city": "Oslo"})
    ann.remember("What about the tea?", kind="episode", session_id="s-1", user="ann")
    ann.log_turn("s-1", user="Which indentation?", assistant="Tabs.", user_id="ann")
    ann.log_turn("s-2", user="...", assistant="the")
    ann.items.put("users/7", "lena", {"name": "Lena", "age": 40})
    ann.details.store("tea\n" * 2_000, description="a log")
    tenant.knowledge.ingest_text("# Tea\n\nGreen tea is steeped for two minutes.", title="Tea")
    tenant.workflows.record(workflow="hire somebody", step="ask", output="done", agent="ann")

    def views() -> Sequence[Any]:
        return (
            *[ann] * 5,
            wellkept.agent("bob", name),
            *[ann.for_user("ann")] * 2,
            *[tenant] * 4,
            tenant.audit,
            wellkept,
        )

    return views


@contextmanager
def in_new_folder() -> Iterator[None]:
    """Work in a folder of its own: calls write files there."""
    with tempfile.TemporaryDirectory(prefix="wellkept-fuzz-") as folder, chdir(folder):
        yield


def fuzz(
    url: str,
    rounds: Iterable[int],
    *,
    share: float = 0.0,
    calls: int = CALLS,
    until: float = float("inf"),
    is_shown: bool = False,
) -> Outcome:
    """Make rounds of calls on the store at a URL, each in a tenant of its own.

    Before, each argument of each method gets a `share` of the odd values.
    """
    outcome = Outcome(is_shown=is_shown)
    with in_new_folder(), Wellkept(settings=Settings(url=url, tenant="unused")) as wellkept:
        if share:
            run_each(fill(wellkept, "each"), 0, outcome, share=share, until=until)
        for number in rounds:
            if time.monotonic() > until:
                break
            with chdir(tempfile.mkdtemp(dir=os.curdir)):
                run_round(fill(wellkept, f"round-{number}"), number, outcome, calls=calls)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.library", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--engine", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--share", type=float, default=0.2, help="of the odd values that each argument gets first")
    parser.add_argument("--only", type=int, help="make the calls of this round")
    wanted = parser.parse_args()
    rounds: Sequence[int] = range(wanted.seed, wanted.seed + 10**6) if wanted.only is None else [wanted.only]
    until = time.monotonic() + 60 * wanted.minutes
    with PostgresServer.start() if wanted.engine == "postgres" else nullcontext() as server:
        url = server.create_database(has_tables=True) if server else ":memory:"
        outcome = fuzz(url, rounds, share=wanted.share if wanted.only is None else 0.0, until=until, is_shown=True)
    print(f"from round {rounds[0]}: {outcome.calls.total()} calls, {len(outcome.failures)} failures")
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
