"""`kafkaform state list|show|rm|mv|rebind|pull|push`: show, edit and copy the state. `kafkaform
show [PLAN]`: show a saved plan, or the state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial, reduce
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import to_builtins
from msgspec.structs import replace

from ...core.address import matches, parse_address
from ...core.clock import SystemClock
from ...core.diagnostics import suggest
from ...core.errors import UsageError, exit_code
from ...core.resource import Identity
from ...core.text import render_with_exact
from ...core.value import FrozenMap
from ...core.words import NEUTRAL, NO_WORDS, Vocabulary
from ...render.plan_comparison import compare_plans, render_comparison
from ...render.text import Detail, inline, mask_value, render_count, render_json, render_value
from ...state.codec import encode
from ...state.model import Row, State, drop_address, move_address
from ...workflow.plan_documents import load_plan, load_plan_document, read_words_of, render_plan
from ...workflow.repository.folders import refuse_state_variable
from ...workflow.state_transfer import edit_state, forget_instance, rebind_instance
from ...workflow.state_transfer import pull_state as pull_store
from ...workflow.state_transfer import push_state as push_store
from ...workflow.stores import load_listed_states, open_store, parse_duration
from ...workflow.workspace import open_workspace
from ..options.flags import (
    FolderFlags,
    LockTimeout,
    NoColor,
    StateFile,
    Var,
    VarFile,
    choose_folders,
    chooses_folders,
    complete_addresses,
)
from ..terminal.console import Console, outlive_output
from ..terminal.results import write_paged

app = typer.Typer(help="Inspect, edit and copy the state.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Address = Annotated[str, typer.Argument(metavar="ADDRESS", autocompletion=complete_addresses)]


PLAN_HELP = "A plan saved with `plan --out FILE`."


@app.command("list")
@chooses_folders
def list_(
    chosen: FolderFlags,
    pattern: Annotated[
        str, typer.Argument(metavar="GLOB", autocompletion=complete_addresses)
    ] = "*",
    state: StateFile = None,
) -> int:
    """List the addresses that own objects, one per line."""
    if chosen.typed:
        return _list_folders(chosen, pattern, state)
    stored = open_store(state).backend.load().state
    Console.make_standard().write_lines(map(inline, _list_owners(stored, pattern)))
    return 0


def _list_owners(stored: State | None, pattern: str) -> list[str]:
    rows = stored.objects.values() if stored else ()
    return sorted({owner for row in rows for owner in row.owners if matches(pattern, owner)})


def _list_folders(chosen: FolderFlags, pattern: str, state: str | None) -> int:
    """List the addresses of many folders, each after the path of its folder; return the gravest
    exit code."""
    if state is not None:
        raise UsageError(
            "--state names one state, and each folder of a repository has its own",
            "Leave it out.",
        )
    console, code = Console.make_standard(), 0
    refuse_state_variable(os.environ)
    choice = choose_folders(chosen)
    for item in load_listed_states(choice.repository, choice.folders):
        path = item.folder.path
        # A state that cannot be read does not hide those of the other folders.
        if item.error is not None:
            faults = (replace(f, summary=f"{path}: {f.summary}") for f in item.error.diagnostics)
            console.show_diagnostics(tuple(faults))
            code = max(code, exit_code(item.error))
        owners = _list_owners(item.state, pattern)
        console.write_lines(f"{inline(path)}: {inline(owner)}" for owner in owners)
    return code


@app.command("show")
def show_objects(
    address: Address,
    json: Json = False,
    detail: Annotated[
        bool, typer.Option("--detail", help="Show all attributes, also those of an ACL.")
    ] = False,
    state: StateFile = None,
) -> None:
    """Show the objects that an address owns."""
    stored = open_store(state).backend.load().state
    rows = stored.find_owned(address) if stored else ()
    if not rows:
        owners = {
            owner for row in (stored.objects.values() if stored else ()) for owner in row.owners
        }
        hint = suggest(address, owners) or "`kafkaform state list` shows all addresses."
        raise UsageError(f"The state has no object with the address {address}", hint)
    console = Console.make_standard()
    for row in rows:
        if json:
            console.write(render_json(_make_row_document(row)))
        else:
            words = read_words_of([row.identity.instance])
            console.write_lines(render_row(row, words, detail=detail))


@app.command()
def rm(
    addresses: Annotated[
        list[str],
        typer.Argument(metavar="ADDRESS…", show_default=False, autocompletion=complete_addresses),
    ] = [],
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            metavar="NAME",
            help="Forget all objects of this provider instance, for a system that is gone for "
            "good.",
        ),
    ] = None,
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
) -> None:
    """Remove addresses from the state; their objects stay as they are."""
    # Only the record of ownership goes. The next plan sees the objects as not managed.
    if addresses and provider is None:
        drop = partial(reduce, drop_address, list(dict.fromkeys(addresses)))
        _edit_state("state rm", state, lock_timeout, drop)
        text = f"The state no longer has {', '.join(addresses)}; the objects themselves stay."
    elif provider is not None and not addresses:
        text = _forget_provider(provider, state, lock_timeout)
    else:
        raise UsageError(
            "`state rm` takes either addresses or --provider",
            "`kafkaform state rm kafka_topic.orders` forgets one block, `kafkaform state rm "
            "--provider kafka_connect` everything of one provider.",
        )
    Console.make_standard().write(text)


def _forget_provider(instance: str, state: str | None, lock_timeout: str) -> str:
    """Forget a provider instance, and say what was forgotten."""
    outlive_output()
    timeout = parse_duration(lock_timeout, "--lock-timeout")
    forgotten = forget_instance(open_store(state), instance, timeout)
    text = (
        f"Forgot {render_count(forgotten.objects, 'object')} of {instance}; the objects "
        "themselves stay."
    )
    if forgotten.steps:
        steps = render_count(forgotten.steps, "step")
        text += f" {steps} of earlier runs ended without a known result."
    if forgotten.work:
        text += f" {render_count(forgotten.work, 'task')} of earlier runs will not be followed."
    return text


@app.command()
def mv(
    source: Annotated[str, typer.Argument(metavar="SOURCE", autocompletion=complete_addresses)],
    target: Annotated[str, typer.Argument(metavar="TARGET")],
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
) -> None:
    """Rename an address in the state to match its renamed block."""
    # A row with an impossible address could never be declared, moved or removed again.
    try:
        parse_address(target)
    except ValueError as error:
        raise UsageError(str(error)) from None
    _edit_state(
        "state mv", state, lock_timeout, lambda before: move_address(before, source, target)
    )
    Console.make_standard().write(f"{source} is now {target}.")


@app.command()
def rebind(
    instance: Annotated[
        str,
        typer.Argument(metavar="INSTANCE", help="The provider instance, such as schema_registry."),
    ],
    from_: Annotated[
        str,
        typer.Option("--from", metavar="URL", help="The former address, which still answers."),
    ],
    var: Var = [],
    var_file: VarFile = [],
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
) -> None:
    """Bind the state to a system that has moved to another address.

    It is for systems that the state knows by their address, such as schema registries without an id
    of their own. Both addresses are read, and all recorded objects have to be equal there, with
    their versions and ids. Nothing is written there.
    """
    outlive_output()
    timeout = parse_duration(lock_timeout, "--lock-timeout")
    space = open_workspace(variables=var, variable_files=var_file, state=state)
    rebound = rebind_instance(space, instance, from_, timeout)
    Console.make_standard().write(
        f"The state of {instance} belongs to {rebound.after} now, and no longer to "
        f"{rebound.before}: {render_count(rebound.objects, 'object')} with the same values and ids."
    )


@app.command()
def pull(
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Save the state to this file, and its log to the same folder.",
        ),
    ] = None,
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
) -> None:
    """Print the state, or save it with its log.

    You can use the saved file with --state.
    """
    store, clock = open_store(state), SystemClock()
    if out is None:
        stored = store.backend.load().state
        if stored is None:
            raise UsageError(f"{store.backend.location}: there is no state yet")
        Console.make_standard().write(encode(stored).decode().rstrip("\n"))
        return
    # The log is appended in portions: a reader that leaves must not cut it in half.
    outlive_output()
    target = open_store(out)
    pulled = pull_store(store, target, clock, parse_duration(lock_timeout, "--lock-timeout"))
    Console.make_standard().write(
        f"Saved serial {pulled.serial} to {out}, and its log to {target.sink.location}."
    )


@app.command()
def push(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A state file whose log is in the same folder.")
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite even a newer state of the same lineage.")
    ] = False,
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
) -> None:
    """Copy a state file and its log to this folder's store.

    Use this to move to an object store or to restore a backup.
    """
    outlive_output()
    source, target = open_store(file), open_store(state)
    timeout = parse_duration(lock_timeout, "--lock-timeout")
    pushed = push_store(source, target, SystemClock(), timeout, force=force)
    Console.make_standard().write(
        f"{target.backend.location} is serial {pushed.serial} now: "
        f"{render_count(len(pushed.objects), 'object')}. Its log is {target.sink.location}."
    )


def _edit_state(
    command: str, state_file: str | None, lock_timeout: str, change: Callable[[State], State]
) -> None:
    """Edit the state and record that."""
    outlive_output()
    timeout = parse_duration(lock_timeout, "--lock-timeout")
    edit_state(open_store(state_file), command, timeout, change)


def render_row(row: Row, words: Vocabulary = NO_WORDS, *, detail: bool = False) -> Iterator[str]:
    """One row for people: its owners, its identity, and its attributes. words: of its provider;
    without detail, a sentence stands for the attributes of an object that has one."""
    identity, provider = row.identity, words.get(row.identity.instance, NEUTRAL)
    sentence = "" if detail else provider.describe_object(identity.kind, identity.key)
    yield f"# {inline(', '.join(row.owners))}"
    yield inline(f"{identity.kind} {sentence or identity.key} ({identity.instance})")
    about = {"id": row.incarnation, "protected": row.protected, "owner": row.owner}
    about["secret version"] = row.secret_version
    about["park"] = render_with_exact(row.park, "ms") if row.park is not None else None
    labels = {"labels": row.labels} if row.labels else {}
    for name, item in about.items():
        if item is not None and not (sentence and item == "no"):
            yield f"  {name} = {render_value(item)}"
    attributes = () if sentence else sorted(row.attributes.items())
    find_unit = _choose_units(row.identity, words)
    for name, item in (*labels.items(), *attributes):
        if isinstance(item, FrozenMap):
            yield f"  {name}:"
            for key, value in sorted(item.items()):
                text = mask_value(value, sensitive=False, unit=find_unit((name, key)))
                yield f"    {inline(key)} = {text}"
        else:
            yield f"  {name} = {mask_value(item, sensitive=False, unit=find_unit((name,)))}"
    yield ""


def _choose_units(identity: Identity, words: Vocabulary) -> Callable[[tuple[str, ...]], str]:
    """What finds the unit of an attribute of this object."""
    kind = words.get(identity.instance, NEUTRAL).kinds.get(identity.kind)
    return kind.unit if kind is not None and kind.unit is not None else lambda _: ""


def make_state_document(state: State | None) -> dict[str, Any]:
    """The state for programs."""
    if state is None:
        return {"format_version": "1.0", "resources": []}
    rows = [_make_row_document(row) for _, row in sorted(state.objects.items())]
    return {
        "format_version": "1.0",
        "lineage": state.lineage,
        "serial": state.serial,
        "providers": state.providers,
        "outputs": state.outputs,
        "resources": rows,
    }


def _make_row_document(row: Row) -> dict[str, Any]:
    return {
        "instance": row.identity.instance,
        "type": row.identity.kind,
        "identity": row.identity.key,
        "addresses": row.owners,
        "id": row.incarnation,
        "protected": row.protected,
        "secret_version": row.secret_version,
        "values": row.attributes,
        "owner": row.owner,
        "labels": row.labels,
        "park": row.park,
        "depends_on": row.depends_on,
    }


def show(
    plan_file: Annotated[Path | None, typer.Argument(metavar="PLAN", help=PLAN_HELP)] = None,
    other_plan: Annotated[
        Path | None, typer.Argument(metavar="OTHER", help="Compare PLAN with this plan.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print Terraform's plan JSON, or the state.")
    ] = False,
    comment: Annotated[
        bool, typer.Option("--markdown", help="Print a review comment in Markdown.")
    ] = False,
    html: Annotated[bool, typer.Option("--html", help="Print an HTML page for a review.")] = False,
    detail: Annotated[
        bool, typer.Option("--detail", help="Show each change by itself, also equal ones.")
    ] = False,
    no_color: NoColor = False,
    state: StateFile = None,
) -> None:
    """Show a saved plan, or the state; or how two plans differ.

    To compare, name two plans, saved ones or the JSON of `show --json`. Differences that need no
    new approval, such as times and notes, are left out.
    """
    console = Console.make_standard(no_color=no_color)
    if plan_file is None:
        _show_state(console, state, json=json, detail=detail)
        return
    if other_plan is not None:
        _show_comparison(console, plan_file, other_plan, json=json)
        return
    # Its checksum is checked, so what is shown is what an apply of the file would do.
    plan = load_plan(plan_file)
    if json:
        console.write(render_plan(plan, "json"))
    elif comment:
        console.write(render_plan(plan, "markdown", whole=plan_file))
    elif html:
        console.write(render_plan(plan, "html"))
    else:
        form: Detail = "full" if detail else "grouped"
        text = render_plan(plan, colour=console.colour, width=console.width, detail=form)
        write_paged(console, text)


def _show_state(console: Console, state_file: str | None, *, json: bool, detail: bool) -> None:
    state = open_store(state_file).backend.load().state
    if json:
        console.write(render_json(make_state_document(state)))
    elif state is None or not state.objects:
        console.write("The state is empty.")
    else:
        instances = {identity.instance for identity in state.objects}
        words = read_words_of(sorted(instances))
        rows = (render_row(row, words, detail=detail) for _, row in sorted(state.objects.items()))
        write_paged(console, "\n".join(line for lines in rows for line in lines))


def _show_comparison(console: Console, first: Path, second: Path, *, json: bool) -> None:
    differences = compare_plans(load_plan_document(first), load_plan_document(second))
    if json:
        console.write(render_json(to_builtins(differences)))
    elif not differences:
        console.write("Both plans do the same.")
    else:
        title = f"What differs between {first}, the first plan, and {second}, the second:"
        write_paged(console, "\n".join((title, *render_comparison(differences))))
