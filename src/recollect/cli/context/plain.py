"""Working memory for pipes and files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from recollect.cli.view import one_line, plain_time, safe
from recollect.model import BlockItem, ContextCall, WorkingMemory

EMPTY = "-"


class PlainContext:
    """The part of `View` that is about working memory, as lines."""

    def context(self, made: WorkingMemory, *, is_summary: bool, see: Callable[[], str]) -> None:
        if is_summary:
            _print_blocks(made)
            return
        for message in made.messages:
            print(f"{message['role']}: " + safe(message["content"]).replace("\n", "\n  "))
        for each in made.truncations:  # for whoever looks on; the next program gets the messages alone
            print(truncation_line(each.message, each.tokens_removed, each.dropped_references), file=sys.stderr)

    def context_calls(self, calls: Sequence[ContextCall]) -> None:
        for call in calls:
            at = plain_time(call.at)
            shortened = "truncated" if call.truncations else EMPTY
            print("\t".join([call.id, at, safe(call.session_id), f"{call.tokens} of {call.budget}", shortened]))

    def context_call(self, call: ContextCall) -> None:
        _print_blocks(call)


def _print_blocks(made: WorkingMemory | ContextCall) -> None:
    print(f"{made.id}: {made.tokens:,} of {made.budget:,} tokens, {made.layout}")
    for block in made.blocks:
        print(f"{block.name}\t{block.tokens}")
        for item in block.items:
            print(f"  {item_line(item)}")
    for each in made.truncations:
        print(truncation_line(each.message, each.tokens_removed, each.dropped_references))


def item_line(item: BlockItem) -> str:
    """One thing that was shown, or why it was not."""
    score = "" if item.score is None else f" ({item.score:.3f})"
    why = f" not shown: {safe(item.left_out)}" if item.left_out else ""
    since = f" [{item.since} since]" if item.since else ""
    text = f" {one_line(item.text)}" if item.text is not None and item.source != "skill" else ""
    return f"{safe(item.id)}{score}{why}{since}{text}"


def truncation_line(message: str, removed: int, dropped: Sequence[str]) -> str:
    """What one step did."""
    lost = f" No longer mentioned: {', '.join(dropped)}." if dropped else ""
    return f"truncated by {removed:,} tokens: {safe(message)}{safe(lost)}"
