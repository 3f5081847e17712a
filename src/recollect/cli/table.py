"""The one look tables have on a terminal."""

from __future__ import annotations

from collections.abc import Collection

from rich.box import SIMPLE_HEAD
from rich.table import Table


def new_table(
    *headers: str, text: str | None = None, whole: Collection[str] = (), numbers: Collection[str] = ()
) -> Table:
    """A table of these columns. `text` takes the room that is left, the last one if none is named, none if it is empty;
    those that are `whole` are broken over lines only when nothing else helps; `numbers` stand to the right.
    """
    roomy = headers[-1] if text is None else text
    drawn = Table(box=SIMPLE_HEAD, header_style="dim", pad_edge=False, padding=(0, 1))
    for header in headers:
        drawn.add_column(
            header,
            overflow="fold",
            no_wrap=header in whole,
            ratio=1 if header == roomy else None,
            justify="right" if header in numbers else "left",
        )
    return drawn
