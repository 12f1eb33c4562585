"""`kafkaform alter`: change configs, limits and credentials of what no block manages."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from kafkaform_kafka.inspect.configs import select_own
from kafkaform_kafka.inspect.document_page import document_page
from kafkaform_kafka.inspect.source import DescribeQuery as Described

from ...core.errors import UsageError
from ...core.value import FrozenMap
from ...plan.model import Plan
from ...render.page import render_page
from ...render.text import inline, render_json
from ...workflow.alter.amendments import Alteration, read_alteration, read_entity_names
from ...workflow.alter.dry_run import rehearse
from ...workflow.alter.elections import make_election, plan_election
from ...workflow.alter.move_cancellation import make_cancellation, plan_cancellation
from ...workflow.alter.planning import make_workspace, plan_alteration
from ...workflow.applying import run_apply
from ...workflow.connection import Connection
from ...workflow.run import ApplyRequest, Approve, Scene
from ...workflow.stores import parse_duration
from ..options.connection import Way, connects
from ..options.flag_groups import take_flags
from ..options.flags import AutoApprove, Input, Json, LockTimeout, Quiet, StateFile
from ..options.variable_order import InOrder
from ..terminal.run_command import accept, advise, show_run
from ..terminal.screen import open_screen
from .describe import get_terminal_width, read_document

app = typer.Typer(help="Change settings that no block manages.", no_args_is_help=True)
READS = "this shell only reads; nothing was sent"
VALIDATED = "Nothing was sent. Without --validate you are asked, and it is applied."
IDLE = "Nothing is to be changed."

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME")]
Add = Annotated[
    list[str],
    typer.Option("--add-config", metavar="K=V,K2=[A,B]", help="Set these; keep the others."),
]
Delete = Annotated[list[str], typer.Option("--delete-config", metavar="K,K2", help="Remove these.")]
Default = Annotated[bool, typer.Option("--entity-default", help="Use the default entity.")]
CancelMove = Annotated[bool, typer.Option("--cancel-move", help="Stop the running replica move.")]
Validate = Annotated[
    bool, typer.Option("--validate", help="Show the plan and its dry run; send nothing.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Don't wait for all brokers to show it.")]


class AlterOptions(Struct, frozen=True):
    """How an `alter` shall be carried out, as its flags say."""

    auto_approve: bool
    validate: bool
    wait: bool
    state: str | None
    lock_timeout: float
    json: bool
    quiet: bool
    input: bool


def _read_options(
    auto_approve: AutoApprove = False,
    validate: Validate = False,
    no_wait: NoWait = False,
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
    json: Json = False,
    quiet: Quiet = False,
    input: Input = True,
) -> AlterOptions:
    """What the flags mean. Raises UsageError."""
    seconds = parse_duration(lock_timeout, "--lock-timeout")
    return AlterOptions(auto_approve, validate, not no_wait, state, seconds, json, quiet, input)


carries_out = take_flags("doing", _read_options)


class TypedEdit(Struct, frozen=True):
    """What shall be altered and how, as it is typed. names: None is the default entity."""

    names: tuple[str | None, ...]
    add: Sequence[str]
    delete: Sequence[str]

    def read_alteration(
        self, entity: str, client: tuple[bool, str | None] = (False, None)
    ) -> Alteration:
        """The flags' texts, read. Raises UsageError."""
        return read_alteration(entity, self.names, self.add, self.delete, client)


def _read_edit(names: Names = None, add_config: Add = [], delete_config: Delete = []) -> TypedEdit:
    return TypedEdit(tuple(names or ()), add_config, delete_config)


edits = take_flags("edit", _read_edit, first=True)


@edits
def _read_edit_or_default(edit: TypedEdit, entity_default: Default = False) -> TypedEdit:
    """Raises UsageError for a name beside the default."""
    if entity_default and edit.names:
        raise UsageError("--entity-default stands in the place of a name", "Give one of them.")
    return replace(edit, names=(None,)) if entity_default else edit


edits_or_default = take_flags("edit", _read_edit_or_default, first=True)


@app.command(cls=InOrder)
@connects
@carries_out
@edits
def topic(
    way: Way,
    doing: AlterOptions,
    edit: TypedEdit,
    cancel_move: CancelMove = False,
    elect_preferred: Annotated[
        bool, typer.Option("--elect-preferred", help="Elect the first replicas as leaders.")
    ] = False,
) -> None:
    """Change topic configs, stop a move, or elect leaders.

    This command never creates or deletes topics.
    """
    names = tuple(name for name in read_entity_names("topic", edit.names) if name is not None)
    if elect_preferred:
        wanted = make_election(names, bool(edit.add or edit.delete or cancel_move))
    elif cancel_move:
        wanted = make_cancellation(names, (*edit.add, *edit.delete))
    else:
        wanted = edit.read_alteration("topic")
    _alter(way, doing, wanted)


@app.command(cls=InOrder)
@connects
@carries_out
@edits_or_default
def broker(way: Way, doing: AlterOptions, edit: TypedEdit) -> None:
    """Change dynamic broker configs.

    With --entity-default, change those that all brokers share.
    """
    _alter(way, doing, edit.read_alteration("broker"))


@app.command(cls=InOrder)
@connects
@carries_out
@edits_or_default
def user(
    way: Way,
    doing: AlterOptions,
    edit: TypedEdit,
    client_id: Annotated[
        str | None, typer.Option("--client-id", metavar="ID", help="Limit this client of the user.")
    ] = None,
    client_default: Annotated[
        bool, typer.Option("--client-default", help="Set the default for the user's clients.")
    ] = False,
) -> None:
    """Change user quotas and SCRAM credentials.

    Write a credential as SCRAM-SHA-256=[iterations=8192,password=env:NAME].
    """
    _alter(way, doing, edit.read_alteration("user", _read_client(client_id, client_default)))


@app.command(cls=InOrder)
@connects
@carries_out
@edits_or_default
def client(way: Way, doing: AlterOptions, edit: TypedEdit) -> None:
    """Change client ID quotas."""
    _alter(way, doing, edit.read_alteration("client"))


@app.command(cls=InOrder)
@connects
@carries_out
@edits_or_default
def ip(way: Way, doing: AlterOptions, edit: TypedEdit) -> None:
    """Change IP address limits."""
    _alter(way, doing, edit.read_alteration("ip"))


@app.command(cls=InOrder)
@connects
@carries_out
@edits
def group(way: Way, doing: AlterOptions, edit: TypedEdit) -> None:
    """Change group configs."""
    _alter(way, doing, edit.read_alteration("group"))


@app.command("client-metrics", cls=InOrder)
@connects
@carries_out
@edits
def client_metrics(way: Way, doing: AlterOptions, edit: TypedEdit) -> None:
    """Change client metrics subscriptions."""
    _alter(way, doing, edit.read_alteration("client-metrics"))


def _read_client(name: str | None, default: bool) -> tuple[bool, str | None]:
    if default and name is not None:
        raise UsageError("--client-default stands in the place of --client-id", "Give one of them.")
    return default or name is not None, name or None


def _alter(way: Way, doing: AlterOptions, wanted: Alteration) -> None:
    """Plan, ask, apply, verify, and describe what is there then; or plan alone. Raises the error
    that the exit code stands for."""
    console = replace(way.console, interactive=way.console.interactive and doing.input)
    found = way.resolve_connection()
    with way.open_session() as session:
        cluster_id = session.facts.scope_id
    sends = not doing.validate and (way.kept is None or way.kept.writes)
    with open_screen(
        console, json=doing.json, quiet=doing.quiet, command="alter", sends=sends
    ) as shown:
        space = make_workspace(found, cluster_id, doing.state, keep=sends)
        ask = _make_request(doing, found, wanted, shown.ask_approval)
        if not sends:
            plan = rehearse(space, ask, shown.progress, validate=doing.validate)
            if not doing.validate:
                raise UsageError(READS, "Begin it with --allow-apply to change things.")
            shown.note(VALIDATED if plan.effective else IDLE)
            return
        done = show_run(shown, partial(run_apply, space, ask), outputs=False)
        if done.report is None:
            shown.note(IDLE)
    with way.open_session() as session:
        for kind, what in _list_documents(wanted):
            document = read_document(session, kind, what)
            if doing.json:
                console.write(render_json(document))
            else:
                console.write_lines(["", *_render_document(document, get_terminal_width(console))])


def _make_request(
    doing: AlterOptions, found: Connection, wanted: Alteration, approve: Approve
) -> ApplyRequest:
    make = _choose_planner(wanted)
    return ApplyRequest(
        approve=accept if doing.auto_approve else approve,
        approved_by="auto_approve" if doing.auto_approve else "terminal",
        wait=doing.wait,
        lock_timeout=doing.lock_timeout,
        command="alter",
        instance=found.instance,
        make=lambda scene: make(scene, found, wanted),
        again=advise("alter"),
    )


def _render_document(document: FrozenMap, width: int | None) -> list[str]:
    """The document for people: of configs what is set on the object itself, and how to see all,
    because a broker has hundreds."""
    if document["kind"] != "configs":
        return list(render_page(document_page(document), width))
    kept = select_own(document)
    told = list(render_page(document_page(kept), width))
    if kept != document:
        kind, names = document["entity_type"], [one["name"] for one in document["entities"]]
        named = " ".join(f"--entity-name {shlex.quote(name)}" for name in names)
        told.append(
            inline(f"All of them: `kafkaform describe configs --entity-type {kind} {named}`.")
        )
    return told


def _choose_planner(wanted: Alteration) -> Callable[[Scene, Connection, Alteration], Plan]:
    if wanted.elect_preferred:
        return plan_election
    return plan_cancellation if wanted.cancel_move else plan_alteration


def _list_documents(wanted: Alteration) -> list[tuple[str, Described]]:
    """What to describe again: KIP-248 prints the fresh state after an alter."""
    names = tuple(name for name in wanted.names if name is not None)
    if wanted.cancel_move or wanted.elect_preferred:
        return [("topics", Described(escape_glob(name))) for name in names]
    if wanted.entity in ("user", "client", "ip"):
        part = "client-id" if wanted.entity == "client" else wanted.entity
        found = []
        for name in wanted.names:
            fields = FrozenMap({part: escape_glob(name)})
            found.append(("quotas", Described(fields=fields)))
            if wanted.entity == "user" and name is not None:
                found.append(("users", Described(escape_glob(name))))
        return found
    types = {"topic": "topics", "broker": "brokers", "group": "groups"}
    kind = types.get(wanted.entity, wanted.entity)
    named = tuple(name or "" for name in wanted.names)
    return [("configs", Described(exact=named, entity_type=kind))]


def escape_glob(name: str | None) -> str:
    """A glob that fits this name alone; the default entity has an empty one."""
    return "" if name is None else glob.escape(name)
