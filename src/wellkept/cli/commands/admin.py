"""Administration: keys, agents and workflows of a tenant, maintenance, secrets, vectors, and a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack, cast

import click

import wellkept
from wellkept.access.rules_keys import is_valid
from wellkept.cli import output as out
from wellkept.cli.commands.memories import COLOURS
from wellkept.cli.options import complete_agent, confirm_or_refuse, read_text
from wellkept.cli.run import Run, optional_module
from wellkept.errors import Invalid
from wellkept.history.rules_history import COMPLETED
from wellkept.memory.rules_kinds import AgentFields
from wellkept.model import Agent, ApiKey, Json, KeyScope, Kind, Origin, WorkflowStep
from wellkept.settings import Settings

if TYPE_CHECKING:
    from wellkept.extension import Embedder

NO_EMBEDDER = "off"
POSTGRES = ("postgresql://", "postgres://")
AgentId = Annotated[str, complete_agent]


def create_key(
    run: Run,
    scope: KeyScope,
    name: str = "",
    expires_at: datetime | None = None,
    agents: list[str] | None = None,
    trust: Origin | None = None,
    user: str | None = None,
) -> None:
    """Create a key for the tenant and print it once: only its hash is stored.

    --scope: What the key allows; each scope includes those before it.
    --name: A name for the key, shown in the list.
    --expires-at TIME: When the key expires.
    --agent ID: Limit it to this agent; may be repeated.
    --trust: The most trusted origin it may give a memory; by default any.
    --user: Limit it to this end user.

    Example: wellkept admin keys create --tenant acme --scope write --agent atlas --trust tool"""
    made = run.tenant.keys.create(scope, name=name, expires_at=expires_at, agents=agents, trust=trust, user=user)
    warning = out.Styled("It is shown only once. Anyone who has it can use the server.", "yellow")
    run.show(out.Output({"key": made.key} | out.json_record(made.record), [out.Unwrapped(made.key), warning]))


def list_keys(run: Run) -> None:
    """List the tenant's keys, oldest first, with those that are no longer valid.

    Example: wellkept admin keys list --tenant acme"""
    now = run.store.now()

    def state(key: ApiKey) -> str:
        return "valid" if is_valid(key, now) else "expired" if key.revoked_at is None else "revoked"

    columns = (
        out.Column("Id", lambda key: key.id, "cyan", is_whole=True),
        out.Column("Scope", lambda key: key.scope, is_whole=True),
        out.Column(
            "State", lambda key: out.Styled(state(key), "green" if state(key) == "valid" else "red"), is_whole=True
        ),
        *KEY_COLUMNS,
    )
    none = "There is no key yet: wellkept admin keys create --scope write"
    found = run.tenant.keys.list()
    run.show(
        out.list_records(columns, found, json=lambda key: out.json_record(key) | {"state": state(key)}, if_empty=none)
    )


def revoke_key(run: Run, id: str) -> None:
    """Revoke a key.

    id: The key's id, as listed.

    Example: wellkept admin keys revoke mzxw6ytb --tenant acme"""
    run.tenant.keys.revoke(id)
    run.show(out.confirm("Revoked", id))


def _limits(key: ApiKey) -> str:
    """List what limits a key besides its scope."""
    limits = [f"agent {each}" for each in key.agents]
    limits += [] if key.user is None else [f"user {key.user}"]
    return ", ".join([*limits, *([] if key.trust is None else [f"trust {key.trust.value}"])])


KEY_COLUMNS = (
    out.Column("Made", lambda key: key.created_at, "dim", is_wide=True, is_whole=True),
    out.Column("Last used", lambda key: key.last_used_at, "dim", is_wide=True, is_whole=True),
    out.Column("Name", lambda key: key.name, is_wide=True),
    out.Column("Limits", _limits, is_wide=True, is_whole=True),
)


def list_agents(run: Run, limit: int = 100, after: str = "") -> None:
    """List the tenant's agents and how many memories each has.

    --after AGENT: Continue after this one.

    Example: wellkept admin agents list --tenant acme"""
    found = run.tenant.agents.list(after=after, limit=limit)
    counts = run.tenant.agents.count_memories_by_agent([agent.id for agent in found])

    def count_of(kind: Kind) -> out.Column:
        value = lambda agent: counts[agent.id][kind]  # noqa: E731
        return out.Column(kind.value.capitalize(), value, only="terminal", is_number=True, fill=COLOURS[kind])

    columns = (
        out.Column("Agent", _agent_cell, is_whole=True),
        out.Column("", lambda agent: _format_counts(counts[agent.id]), only="pipe"),
        out.Column("", lambda agent: agent.name, only="pipe"),
        *map(count_of, Kind),
    )
    page = ("--after", lambda agent: agent.id)
    none = "No agent has remembered anything yet: wellkept remember TEXT"
    to_json = lambda each: _agent_json(each, counts[each.id])  # noqa: E731
    run.show(out.list_records(columns, found, json=to_json, limit=limit, page=page, if_empty=none))


def show_agent(run: Run, id: AgentId) -> None:
    """Show an agent: its prompt, model, tools and appearance, and how many memories it has.

    id ID: The agent's id.

    Example: wellkept admin agents show atlas"""
    run.show(_render_agent(run.tenant.agents.get(id), run.tenant.agents.count_memories(id)))


class AgentOptions(TypedDict):
    """Fields of an agent, by the names of the library.

    --name: Its name.
    --model: The model it uses.
    --colour: Its colour in the console.
    --icon: Its icon in the console.
    --active/--inactive: Mark it as in use, or not."""

    name: str | None
    model: str | None
    colour: str | None
    icon: str | None
    is_active: bool | None


def edit_agent(
    run: Run, id: AgentId, prompt: str | None = None, tools: str | None = None, **options: Unpack[AgentOptions]
) -> None:
    """Change an agent. What is not given stays.

    id ID: The agent's id.
    --prompt: Its system prompt; - reads standard input.
    --tools: Its tools or sets of tools, such as notes,recall; empty for all.

    Example: wellkept admin agents edit atlas --name Atlas --tools notes,recall"""
    fields = {name: value for name, value in options.items() if value is not None}
    if prompt is not None:
        fields["system_prompt"] = read_text(prompt)
    if tools is not None:
        fields["tools"] = [each.strip() for each in tools.split(",") if each.strip()]
    if not fields:
        raise click.BadParameter(
            "Say what to change: --name, --prompt, --model, --tools, --colour, --icon, --active or --inactive."
        )
    edited = run.tenant.agents.update(id, **cast(AgentFields, fields))
    run.show(_render_agent(edited, run.tenant.agents.count_memories(id)))


def remove_agent(run: Run, id: AgentId, yes: bool = False) -> None:
    """Remove an agent and everything it owns for good.

    id ID: The agent's id.

    Example: wellkept admin agents remove atlas --yes"""
    agent = run.tenant.agents.get(id)
    if not yes:
        memories = out.count(sum(run.tenant.agents.count_memories(id).values()), "memory")
        question = f"Remove {agent.id}, its {memories} and all else it owns for good?"
        confirm_or_refuse(run, question, refusal="Nothing was removed")
    run.tenant.agents.delete(id)
    run.show(out.confirm("Removed", agent.id))


def _render_agent(agent: Agent, counts: Mapping[Kind, int]) -> out.Output:
    values = out.json_record(agent) | {"id": agent.id, "memories": _format_counts(counts)}
    prompt = values.pop("system_prompt")
    shown = {"id": agent.id, **values, "created_at": agent.created_at, "updated_at": agent.updated_at}
    return out.show_fields(
        shown, _agent_json(agent, counts), blocks=[out.Entry("system_prompt", prompt, "dim")] if prompt else []
    )


def _agent_json(agent: Agent, counts: Mapping[Kind, int]) -> Json:
    memories = {kind.value: count for kind, count in counts.items()}
    return {"id": agent.id} | out.json_record(agent) | {"memories_count": memories}


def _format_counts(counts: Mapping[Kind, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def _agent_cell(agent: Agent) -> out.Styled:
    name = ((f"  {out.one_line(agent.name)}", "dim"),) if agent.name != agent.id else ()
    return out.Styled(agent.id, "cyan", name)


def record_step(run: Run, workflow: str, name: str, output: str = "", status: str = COMPLETED) -> None:
    """Record a step of a workflow and its result; --agent says who did it.

    workflow: Its id or name; a new name starts a workflow.
    name STEP: What was done.
    output: The result; - reads standard input.
    --status: The outcome.

    Example: wellkept admin workflows record 'Refund run' 'check receipt' 'Receipt found' --agent billing"""
    recorded = run.tenant.workflows.record(
        workflow=workflow, step=name, output=read_text(output), status=status, agent=run.named_agent
    )
    run.show(out.list_records(STEP_COLUMNS, [recorded], json=_step_json))


def list_workflows(run: Run, limit: int = 100, after: str = "") -> None:
    """List the tenant's workflows.

    --after ID: Continue after this one.

    Example: wellkept admin workflows list"""
    found = run.tenant.workflows.list(after=after, limit=limit)
    page = ("--after", lambda each: each.id)
    run.show(out.list_records(WORKFLOW_COLUMNS, found, limit=limit, page=page, if_empty="No workflows yet."))


def show_workflow(run: Run, id: str, limit: int = 100, after: int = 0) -> None:
    """List the steps of a workflow.

    id: The workflow's id.
    --after STEP: Continue after the step with this number.

    Example: wellkept admin workflows show refund-run"""
    steps = run.tenant.workflows.steps(id, after=after, limit=limit)
    page = ("--after", lambda each: str(each.position))
    none = "It has no steps yet."
    run.show(out.list_records(STEP_COLUMNS, steps, json=_step_json, limit=limit, page=page, if_empty=none))


WORKFLOW_COLUMNS = (
    out.Column("Workflow", lambda each: each.id, "cyan"),
    out.Column("Begun", lambda each: each.created_at, "dim", is_wide=True),
    out.Column("Name", lambda each: each.name),
)
STEP_COLUMNS = (
    out.Column("", lambda each: each.id, only="pipe"),
    out.Column("Step", lambda each: each.position, "cyan", only="terminal"),
    out.Column("When", lambda each: each.completed_at, "dim", is_wide=True),
    out.Column("Status", lambda each: each.status),
    out.Column("Agent", lambda each: each.agent_id, "cyan", is_wide=True),
    out.Column("Output", lambda each: f"{each.name}: {each.output}" if each.output else each.name),
)


def _step_json(step: WorkflowStep) -> Json:
    return {"id": step.id} | out.json_record(step)


def maintain(run: Run) -> None:
    """Archive memories that expired, are not used or exceed the quota.

    Covers every tenant and agent of the store, and computes missing vectors.

    Example: wellkept admin maintain"""
    with run.progress("Maintaining") as bar:
        report = run.store.maintain(progress=bar.report)
    values = out.json_record(report)
    fields = out.Fields({name: out.plain(value) for name, value in values.items()})
    run.show(out.Output(values | {"archived": report.archived}, [fields]))


def scan(run: Run) -> None:
    """Search everything the tenant has stored for secrets.

    That is memories, conversations, long texts, documents, workflows, logged prompts, audit events and agents.

    Example: wellkept admin secrets scan --tenant acme"""
    with run.progress("Scanning") as bar:
        found = list(run.tenant.secrets.scan(progress=bar.report))
    none: out.Block = [out.tick(True), "Nothing that is stored looks like a secret."]
    run.show(out.list_records(SIGHTING_COLUMNS, found, if_empty=none))


def allow(run: Run, text: str) -> None:
    """Allow a text that only looks like a secret, so that it can be stored.

    Only its hash is kept.

    text: The text that holds no secret; - reads standard input.

    Example: wellkept admin secrets allow 'AKIAIOSFODNN7EXAMPLQ is a sample'"""
    allowed = run.tenant.secrets.allow(read_text(text))
    run.show(out.say(f"Allowed: {allowed}", {"allowed": allowed}))


def reembed(run: Run) -> None:
    """Compute missing vectors, or all of them after a change of embedder, and repair the search index.

    Covers every tenant and agent of the store.

    Example: WELLKEPT_EMBEDDER=minilm wellkept admin reembed"""
    embedder = open_embedder(run.settings)
    if embedder is None:
        mended = run.store.mend_index()
        if not mended:
            raise Invalid("There is no embedder to make vectors with; set WELLKEPT_EMBEDDER, for example to minilm.")
        run.show(_render_reembedded(0, NO_EMBEDDER, mended=mended))
        return
    with (
        wellkept.Wellkept(settings=run.settings, embedder=embedder, replace_embedder=True) as store,
        run.progress("Embedding") as bar,
    ):
        mended = store.mend_index()
        embedded = store.embedding.embed_waiting(progress=bar.report)
    run.show(_render_reembedded(embedded, embedder.name, mended=mended))


SIGHTING_COLUMNS = (
    out.Column("Shelf", lambda each: each.shelf, "cyan"),
    out.Column("Agent", lambda each: each.agent, "cyan"),
    out.Column("Id", lambda each: each.id, "cyan", is_whole=True),
    out.Column("Seems to hold", lambda each: ", ".join(each.rules), "red"),
)


def open_embedder(settings: Settings) -> Embedder | None:
    """Open the embedder the settings name. Raises: Invalid, ModelError."""
    providers = import_module("wellkept.providers.checked")
    chosen: Embedder | None = providers.open_embedder(
        settings.embedder, api_key=settings.openai_api_key, base_url=settings.openai_base_url
    )
    return chosen


def _render_reembedded(embedded: int, embedder: str, *, mended: int) -> out.Output:
    lines = []
    if mended:
        lines.append(f"Mended {out.count(mended, 'entry')} of the search index")
    if embedded or not mended:
        lines.append(f"Embedded {embedded:,} with {embedder}")
    document = {"ok": True, "embedded": embedded, "embedder": embedder, "mended": mended}
    return out.Output(document, out.ticked(*lines))


def init_database(
    run: Run,
    owner: str = "wellkept_owner",
    application: str = "wellkept_app",
    owner_password_file: Path | None = None,
    application_password_file: Path | None = None,
    dry_run: bool = False,
) -> None:
    """Prepare a PostgreSQL database for two roles: an owner, and an application that owns nothing.

    Creates the roles, gives the tables to the owner, upgrades them, and grants the application its rights. Run it as a
    superuser, or as a role that owns the database and may create roles; again is harmless.

    --owner ROLE: The role that owns the tables.
    --application ROLE: The role that serves and owns nothing.
    --owner-password-file FILE: File with the owner's password.
    --application-password-file FILE: File with the application's password.

    Example: wellkept admin db init --url postgresql://postgres@db/memories --dry-run"""
    files = {owner: owner_password_file, application: application_password_file}
    passwords = {role: _read_password(file) for role, file in files.items() if file is not None}
    report = _open_module("schema").initialize(
        _postgres_url(run), owner=owner, application=application, passwords=passwords, dry_run=dry_run
    )
    statements = [*(f"{each};" for each in report.statements), *(f"-- migration {name}" for name in report.migrations)]
    run.show(out.Output({"ok": True} | out.json_record(report), statements))


def migrate_database(run: Run) -> None:
    """Upgrade the tables of a PostgreSQL database, as the role that owns them.

    Servers may go on meanwhile. On a Citus cluster, new tables are distributed.

    Example: wellkept admin db migrate --url postgresql://wellkept_owner@db/memories"""
    names = _open_module("schema").migrate_database(_owner_url(run))
    run.show(_render_done("migrations", names, "The tables are up to date."))


def distribute_database(run: Run) -> None:
    """Distribute the tables of a PostgreSQL database over a Citus cluster, by tenant.

    Run it as the role that owns the tables; again continues where it stopped.

    Example: wellkept admin db distribute --url postgresql://wellkept_owner@db/memories"""
    url = _owner_url(run)
    # Create the tables, and fail early if the database cannot be reached.
    _open_module("schema").migrate_database(url)
    run.show(_render_done("tables", _open_module("citus").distribute(url), "Everything is distributed already."))


def _open_module(name: str) -> ModuleType:
    return optional_module(f"wellkept.store.postgres.{name}", needs="PostgreSQL", extra="postgres")


def _postgres_url(run: Run) -> str:
    """Return the address that the options or settings name. Raises: Invalid."""
    url = run.settings.store_url
    if not url.startswith(POSTGRES):
        raise Invalid(
            "Only a PostgreSQL database can be distributed, migrated or given roles; name one with --url postgresql://…"
        )
    return url


def _owner_url(run: Run) -> str:
    """Return the address of the owner: `--url`, then the setting `owner_url`. Raises: Invalid."""
    has_flag = run.flags.get("url") is not None
    return _postgres_url(run) if has_flag or not run.settings.owner_url else run.settings.owner_url


def _read_password(file: Path) -> str:
    try:
        password = file.read_text("utf-8").strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"The password file {file} cannot be read as UTF-8 text.") from error
    if not password:
        raise Invalid(f"The password file {file} is empty.")
    return password


def _render_done(what: str, names: Sequence[str], none: str) -> out.Output:
    return out.Output({"ok": True, what: [*names]}, out.ticked(*names) or [out.Styled(none, "dim")])
