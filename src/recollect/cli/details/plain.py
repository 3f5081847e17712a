"""Details for pipes and files."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from recollect.cli.view import one_line, plain_time
from recollect.model import Detail, DetailPage
from recollect.policy.details.references import reference


class PlainDetails:
    """The part of `View` that is about details, as lines."""

    def detail_stored(self, detail: Detail) -> None:
        print(one_line(reference(detail.key, detail.description)))

    def detail_list(self, found: Sequence[Detail]) -> None:
        for each in found:
            about = [each.key, each.type, plain_time(each.created_at), f"{each.lines} lines", one_line(each.summary)]
            print("\t".join(about))

    def detail_part(self, page: DetailPage) -> None:
        """The text as it is: it goes to a file or another program."""
        sys.stdout.write(page.content)
        if page.content and not page.content.endswith("\n"):
            sys.stdout.write("\n")
        sys.stdout.flush()
        print(one_line(page.remaining), file=sys.stderr)

    def detail_changed(self, key: str, done: str) -> None:
        print(f"{done}: {key}")
