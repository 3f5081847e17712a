"""How conversations are summarised, as options of a command; what is not given is as the settings say."""

from __future__ import annotations

from typing import Annotated

import typer

SummaryEnabled = Annotated[
    bool | None,
    typer.Option(
        "--summary-enabled/--no-summary-enabled", help="Fold old turns into a running summary.", show_default=False
    ),
]
SummaryThreshold = Annotated[
    int | None,
    typer.Option(metavar="N", help="How many messages may gather before they are folded.", show_default=False),
]
SummaryKeepLast = Annotated[
    int | None, typer.Option(metavar="N", help="How many of the newest stay as they were said.", show_default=False)
]
OpenaiModel = Annotated[str | None, typer.Option(metavar="NAME", help="The language model.", show_default=False)]
OpenaiBaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="The OpenAI-compatible endpoint.", show_default=False)
]
OpenaiSummaryModel = Annotated[
    str | None, typer.Option(metavar="NAME", help="Another model for summaries.", show_default=False)
]
OpenaiSummaryBaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Another endpoint for summaries.", show_default=False)
]
