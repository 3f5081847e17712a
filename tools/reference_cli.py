"""Write docs/reference/cli.md from the commands, as `wellkept … --help --all` shows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from wellkept.cli.app import program
from wellkept.cli.parameters import ALL, CommandOption

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
HEAD = """\
# Commands

Written from the commands by `python -m tools.reference`. What they have in common: [the command line](../cli.md).
Options in italics are shown only by `--help --all`.

Every command takes `--url` (the store), `--tenant`, `--agent`, `--user` (the agent's end user) and `--json` (print one
JSON document).

## At the top
"""


def render_page() -> str:
    """Return the text of the page."""
    app = program()
    return "\n".join([HEAD, *_render_group(app, click.Context(app, info_name="wellkept"))])


def _render_group(group: click.Group, context: click.Context) -> Iterator[str]:
    context.meta[ALL] = True
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            if context.parent is None:
                yield f"## {name}\n\n{command.help}\n"
            yield from _render_group(command, inner)
        else:
            yield _render_command(command, inner)


def _render_command(command: click.Command, context: click.Context) -> str:
    words = context.command_path.removeprefix("wellkept ")
    usage = " ".join(command.collect_usage_pieces(context))
    about = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    lines = [f"### {words}", "", about, "", "```sh", f"wellkept {words} {usage}", "```", ""]
    rows = [row for each in command.get_params(context) if (row := _render_parameter(each, context))]
    if rows:
        lines += ["| Option | Meaning |", "|---|---|", *rows, ""]
    return "\n".join([*lines, f"{(command.epilog or '').replace('Example: ', 'Example: `', 1)}`", ""])


def _render_parameter(parameter: click.Parameter, context: click.Context) -> str:
    record = parameter.get_help_record(context)
    option = parameter if isinstance(parameter, CommandOption) else None
    if record is None or "--help" in parameter.opts or (option and option.is_common):
        return ""
    name = f"*`{record[0]}`*" if option and option.is_rare else f"`{record[0]}`"
    name, meaning = (each.replace("|", "\\|") for each in (name, " ".join(record[1].split())))
    return f"| {name} | {meaning} |"
