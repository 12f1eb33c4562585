"""Find what completion offers in the provider's rules, the configuration, the state and the system.

Loaded at a key press only: everything that other command lines do without is imported here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from ...core.errors import KafkaformError
from ...core.rule import Needs
from ...provider.registry import Registry
from ...workflow.configuration.evaluation import Inputs, read_configuration
from ...workflow.configuration.places import enter_folder
from ...workflow.configuration.policies import list_policy_ids
from ...workflow.connection import ConnectionInputs, resolve_configured, resolve_direct
from ...workflow.history import list_recent_names, list_recent_runs, list_spellings
from ...workflow.judgement import CONDITIONS, WORDS, find_rules
from ...workflow.stores import open_store


def list_conditions(context: typer.Context) -> Iterator[str]:
    """The conditions of --fail-on for a plan: ours, and the ids of the policies."""
    yield from CONDITIONS
    # What judges live objects finds nothing in a plan, so it is no condition there.
    yield from (id for id, rule in find_rules(Registry()).items() if rule.needs is not Needs.LIVE)
    _enter_folder(context)
    # A key press shows what there is; the command itself reports the faults.
    with suppress(KafkaformError):
        yield from list_policy_ids(context.params.get("policy") or ())


def list_finding_words() -> Iterable[str]:
    """Levels, harms and rules."""
    return (*WORDS, *list_rules())


def list_rules() -> Iterable[str]:
    """The ids of all rules."""
    return find_rules(Registry())


def list_liftable() -> Iterable[str]:
    """The ids of the rules whose blocks can be lifted."""
    return (id for id, rule in find_rules(Registry()).items() if rule.accept)


def list_objects(context: typer.Context) -> Iterator[str]:
    """Names from the state, and from the newest records of the log."""
    _enter_folder(context)
    store = open_store(context.params.get("state"))
    for identity, addresses in list_recent_names(store).items():
        yield from list_spellings(identity, addresses)


def list_runs(context: typer.Context) -> Iterator[str]:
    """The ids of the newest runs."""
    _enter_folder(context)
    for summary in list_recent_runs(open_store(context.params.get("state")))[0]:
        yield summary.facts.run


def list_addresses(context: typer.Context) -> Iterator[str]:
    """Addresses of blocks and of their instances. A fault of the state or of the configuration does
    not hide what the other has."""
    _enter_folder(context)
    addresses: list[str] = []
    with suppress(KafkaformError):
        state = open_store(context.params.get("state")).backend.load().state
        rows = state.objects.values() if state is not None else ()
        addresses += [owner for row in rows for owner in row.owners]
    with suppress(KafkaformError):
        desired = read_configuration(Path(), Inputs.read(())).evaluate(offline=True).desired
        addresses += [str(item.address) for item in desired.declared]
    for address in addresses:
        yield address
        # An instance such as a["x"] needs quotes, so its block is offered, too.
        yield address.partition("[")[0]


def ask_names(context: typer.Context, complete: Callable[..., Iterable[str]]) -> Iterable[str]:
    """What can follow the words that are typed so far."""
    _enter_folder(context)
    params, words = context.params, _list_words(context)
    # typer makes paths of texts only when it calls a command.
    files = [Path(file) for file in params.get("var_file") or ()]
    config = params.get("command_config")

    def ask(listing: Callable[..., Iterable[str]]) -> Iterable[str]:
        inputs = ConnectionInputs(
            params.get("bootstrap_server"),
            Path(config) if config else None,
            tuple(params.get("client_property") or ()),
            params.get("provider"),
            Inputs.read(params.get("var") or (), files),
        )
        if inputs.direct:
            connection = resolve_direct(inputs, os.environ)[0]
        else:
            connection = resolve_configured(inputs, Registry().find_provider(*words[:2]))
        session = connection.open()
        try:
            return tuple(listing(session))
        finally:
            session.close()

    return complete(words, ask)


def _list_words(context: typer.Context) -> Sequence[str]:
    """The words from the group (`describe`, …) on: operands first, then the flags that
    completions look at."""
    group = context.parent.info_name if context.parent is not None else ""
    words = [group or "", context.info_name or ""]
    flags: list[str] = []
    for parameter in context.command.params:
        value: Any = context.params.get(parameter.name or "")
        if parameter.param_type_name == "argument":
            words += value or ()
        elif isinstance(value, str) and parameter.name == "entity_type":
            flags += [parameter.opts[0], value]
    return (*words, *flags)


def _enter_folder(context: typer.Context) -> None:
    """Go to the folder of --chdir: completion does not call the function of that flag."""
    chdir = context.find_root().params.get("chdir")
    if chdir is not None:
        enter_folder(Path(chdir))
