"""Knowledge for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recollect.cli.knowledge.plain import about, failed, state
from recollect.cli.table import new_table
from recollect.cli.view import one_line, safe
from recollect.model import Chunk, Document, Skill
from recollect.services.knowledge.report import Change, Ingested


class TerminalKnowledge:
    """The part of `View` that is about knowledge, in tables."""

    _console: Console
    _is_narrow: bool

    def ingested(self, ingested: Ingested) -> None:
        table = new_table("Change", *(() if self._is_narrow else ("Id", "Passages")), "Document")
        for each in ingested.documents:
            document, style = each.document, "dim" if each.change is Change.UNCHANGED else "green"
            change, name = Text(each.change.value, style=style), Text(one_line(document.source or document.title))
            more = (Text(document.id, style="cyan"), f"{each.passages:,}")
            table.add_row(change, *(() if self._is_narrow else more), name)
        for id in ingested.removed:
            table.add_row(Text("removed", style="yellow"), Text(id, style="cyan"))
        if table.row_count:
            self._console.print(table)
        elif not ingested.failures:
            self._console.print(Text("There is nothing here that can be read.", style="dim"))
        for failure in ingested.failures:
            self._console.print(Text(one_line(failed(failure)), style="red"))

    def documents(self, documents: Sequence[Document], *, next_cursor: str | None) -> None:
        if not documents:
            self._console.print(Text("There are no documents; take some in with: recollect ingest PATH", style="dim"))
            return
        table = new_table("Id", *(() if self._is_narrow else ("State", "Category")), "Title", whole=["Id"])
        for each in documents:
            title = Text(one_line(each.title))
            if each.source:
                title.append(f"  {one_line(each.source)}", style="dim")
            more = (state(each), Text(one_line(each.category)))
            table.add_row(Text(each.id, style="cyan"), *(() if self._is_narrow else more), title)
        self._console.print(table)
        if next_cursor is not None:
            self._console.print(Text(f" There are more: add --after {next_cursor}", style="dim"))

    def document(self, document: Document, passages: Sequence[Chunk]) -> None:
        grid = Table.grid(padding=(0, 2))
        for name, value in about(document).items():
            grid.add_row(Text(name, style="dim"), Text(one_line(value)))
        self._console.print(Padding(grid, (1, 2)))
        for passage in passages:
            self._console.print(Text(f" {passage.position}", style="cyan"))
            self._console.print(Padding(Text(safe(passage.text)), (0, 2, 1, 4)))

    def skills(self, skills: Sequence[Skill], problems: Sequence[str], *, is_whole: bool) -> None:
        if is_whole:
            for skill in skills:
                self._console.print(Padding(Text(safe(skill.body)), (1, 2)))
        elif skills:
            table = new_table("Skill", "For", "What it is for")
            for skill in skills:
                agents = ", ".join(skill.agents) or "everybody"
                table.add_row(Text(safe(skill.name), style="cyan"), safe(agents), Text(one_line(skill.description)))
            self._console.print(table)
        else:
            self._console.print(Text("No skills; name folders of SKILL.md files in the setting skills.", style="dim"))
        for problem in problems:
            self._console.print(Text(one_line(problem), style="red"))
